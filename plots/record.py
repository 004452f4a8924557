#!/usr/bin/env python3
"""Records what the book's tables and plots show. Standard library only; build the preset first.

    record.py [--out FOLDER] [--jobs N] [--only REGEX] [PART...]    on this machine's card, with the programs of the cuda preset
    record.py meter [--check] BIN_DIR [STEP...]      what the simulated device counts; BIN_DIR is build/sim/bin
    record.py meter --beside BIN_DIR                 the same of all other runs that a card has counted
    record.py accuracy [--check] BIN_DIR [STEP...]   chapter 16's errors on the simulated device, for each kind of input
    record.py profile STEP OPTIONS...                what Nsight Compute counts of one step, printed

The parts: latency, rungs, counters, bits, probes (these when none is named); drawn (counters at ten sizes that follow from
the commit, of rungs at two); causes (where these differ from the recorded ones of the meter, the counters of kernels
without what counters.json names as causes);
peers, which needs PyTorch; verdicts, which takes several minutes. Each writes FOLDER/<part>/<card>-*.jsonl (default:
plots/data) anew, a JSON line a run, and prints how long it took. --only: of the programs whose names match, and the lines
of the others as they are in plots/data. --jobs is how many small programs ncu counts side by side (default: 4). COMMIT names the commit where git
cannot. Nothing of the card is set, only read. Exit status: 0; 1 something failed; 2 bad usage; 3 no card or tool.

meter --check and accuracy --check compare with what is recorded and write nothing; exit status 1 with the differences, 77 when nothing of
these steps is recorded, or when they differ because the kernel was edited since (with CI=true that is 1, too).
"""

import argparse
import datetime
import functools
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import meter
import nsight
import records as rec
import tables
import truth
from nsight import count, count_all, no_card, profile_program
from runs import BIN, COUNTED, DATA, INPUTS, LONG, ROOT, SPLITS, TRUTH, VARIED, WAYS, fail, failures, options, run, write

QUICK_MS = 30  # of B 4, H 16, N 4096, d 64: who is quicker is measured at more sizes
SLOW_MS = 60  # who takes longer runs less often,
TOO_SLOW_MS = 4000  # and not at all
MUCH_MEMORY = 8e9  # bytes


def first_line(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()


class Card:
    """Its name, the stamps of each line, its SM clock, which nvidia-smi reports twenty times a second, and its files."""

    def __init__(self, out, only):
        try:
            device, driver = first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split(", ")
        except (OSError, subprocess.CalledProcessError, ValueError):
            no_card("this machine has no CUDA card")
        model = re.search(r"\b[A-Z]{1,2}\d{1,4}", device)
        self.name = model[0].lower() if model else re.sub(r"\W+", "-", device).lower()
        self.commit = os.environ.get("COMMIT") or first_line("git", "rev-parse", "--short", "HEAD")
        stamps = {"driver": driver, "commit": self.commit, "date": datetime.datetime.now(datetime.timezone.utc).date()}
        self.stamps = [word for key, value in stamps.items() for word in ("--stamp", f"{key}={value}")]
        self.out, self.only, self.unfinished, self.log = out, re.compile(only), [], tempfile.NamedTemporaryFile("r")
        self.chapters, self.rungs = (list(filter(self.only.match, steps(ROOT))) for steps in (rec.chapters, rec.rungs))
        self.sampler = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-i", "0",
                                         "-lms", "50"], stdout=open(self.log.name, "w", encoding="ascii"))

    def clocks(self):
        """The highest since the last call."""
        seen = [int(word) for word in self.log.read().split() if word.isdigit()]
        return {"clocks": f"SM {max(seen)} MHz at most" if seen else "unknown"}

    def new_file(self, kind, name):
        self.unfinished.append(self.out / kind / f"{self.name}-{name}.jsonl.part")
        self.unfinished[-1].parent.mkdir(parents=True, exist_ok=True)
        file = self.unfinished[-1].open("w", encoding="utf-8")
        old = DATA / kind / f"{self.name}-{name}.jsonl"
        if kind in ("latency", "rungs", "counters", "bits") and old.exists():
            write(file, *(line for line in rec.lines(old) if not self.only.match(line["step"])))
        return file


def measure(card, file, step, size, expected_ms=0.0):
    """A run's line, written to the file; {} when the step refused the size."""
    few = ["--repeat", "5", "--warmup", "1"] if expected_ms > SLOW_MS else []
    card.clocks()
    line = run([BIN / step, *options(*size).split(), *few, *card.stamps], card.clocks)
    write(file, line)
    return line or {}


# ---- parts ----------------------------------------------------------------------------------------------------------


def latency(card, _):
    file = card.new_file("latency", "steps")
    for step in card.chapters:
        at = functools.partial(measure, card, file, step)
        ms = 0.0
        for N in (512, 1024, 2048, 4096):
            ms = at((4, 16, N, 64), ms * 4).get("ms_median", 0.0)
        if 0 < ms < QUICK_MS:
            at((4, 16, 8192, 64))
            for d, mask in ((64, "--causal"), (128, ""), (128, "--causal")):
                for N in (1024, 4096, 8192):
                    at((4, 16, N, d, mask))
        at((1, 1, 128, 32))
        line = at((1, 1, 4096, 64))
        for N in (16384, 65536):  # one head as long as time and memory allow
            if line and 16 * line["ms_median"] < TOO_SLOW_MS and 16 * line["workspace_bytes"] < MUCH_MEMORY:
                line = at((1, 1, N, 64), 16 * line["ms_median"])
        for more in ("--deterministic", "--pass both"):
            if at((4, 16, 4096, 64, more)):
                at((4, 16, 4096, 128, more))
        at((1, 1, 128, 32, "--pass both"))


def rungs(card, _):
    file = card.new_file("rungs", "rungs")
    for step in card.rungs:
        for d in (64, 128):
            measure(card, file, step, (4, 16, 4096, d))


def counters(card, jobs):
    chapters, all_rungs = card.chapters, card.rungs
    climbed = [step for step in all_rungs if len([other for other in all_rungs if other[:2] == step[:2]]) > 2]
    wide = [(step, size) for step in dict.fromkeys(chapters + climbed) for size in COUNTED]
    wide += [(step, COUNTED[0] + " --deterministic") for step in chapters]
    wide += [(step, size) for step in all_rungs for size in LONG]
    narrow = [(step, size) for step in dict.fromkeys(chapters + all_rungs)
              for size in (TRUTH if step in chapters else TRUTH[:2]) + (SPLITS + VARIED if step >= "14" else [])]
    file = card.new_file("counters", "counters")
    count_all(narrow, jobs, file)
    for step, size in wide:
        write(file, *count(step, size, nsight.METRICS))


def drawn(card, jobs):
    sizes, chapters = rec.drawn(card.commit), card.chapters
    pairs = [(step, size) for step in dict.fromkeys(chapters + card.rungs) for size in (sizes if step in chapters else sizes[:2])]
    count_all(pairs, jobs, card.new_file("counters", "drawn"), {"commit": card.commit})


def causes(card, jobs):
    """The programs without what counters.json names as causes, where a recorded count does not agree with the meter's."""
    pairs = sorted({(row.run["step"], row.run["options"]) for row in truth.comparisons(tables.Book(ROOT)) if not row.agree and card.only.match(row.run["step"])})
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("build", ".*"), dirs_exist_ok=True)
        for pattern, old, new in tables.COUNTED["without"]:
            for path in Path(folder).glob(pattern):
                path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        build = ["cmake", "--build", "--preset", "cuda", "-j", str(os.cpu_count()), "--target", *{step for step, _ in pairs}]
        for command in (["cmake", "--preset", "cuda"], build):
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        count_all(pairs, jobs, card.new_file("counters", "causes"), programs=Path(folder) / "build/cuda/bin")


def bits(card, _):
    file = card.new_file("bits", "bits")
    for step in card.chapters:
        for more in ("", "", "--deterministic", "--deterministic"):
            write(file, run([BIN / step, *options(1, 16, 1024, 64, more).split(), "--pass", "bwd", "--no-time", *card.stamps]))


def probes(card, _):
    capability = first_line("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").replace(".", "").replace("90", "90a")
    for source in filter(lambda path: card.only.match(path.parts[-3]), sorted(ROOT.glob("**/probes/*.cu"))):
        with tempfile.NamedTemporaryFile() as program:
            command = ["nvcc", "-std=c++20", "-O3", "-gencode", f"arch=compute_{capability},code=sm_{capability}",
                       f"-I{ROOT / 'common' / 'device'}", "-o", program.name, source]
            if subprocess.run(command).returncode == 0:
                program.file.close()
                print(first_line(program.name), file=card.new_file("probes", source.stem), flush=True)
            else:
                fail(f"{source} does not compile")


def peers(card, _):
    python = [sys.executable, "-B", ROOT / "tests" / "pytorch" / "time_peers.py", "--json"]
    recorded = rec.read(file for file in [card.out / "latency" / f"{card.name}-steps.jsonl"] if file.exists())
    for pass_, name in (("fwd", "forward"), ("bwd", "backward")):
        quick = [line.step for line in recorded if line.ms and line.ms < QUICK_MS
                 and (line.pass_, line.shape, line.details["dtype"]) == (pass_, rec.QUOTED, "fp32")]
        chosen = ["--steps", ",".join([*quick, *["10x_tf32"] * (pass_ == "fwd")])] if quick else []
        for dtype, steps in (("fp32", chosen), ("bf16", [])):
            output = card.new_file("peers", f"{name}-{dtype}").name
            if subprocess.run([*python, output, "--pass", pass_, "--dtype", dtype, *steps]).returncode:
                fail(f"time_peers.py --pass {pass_} --dtype {dtype}")
    file = card.new_file("counters", "peers")
    for d in (64, 128):
        for backend, selection in (("efficient", ["regex:fmha"]), ("math", ["regex:gemm", "--launch-count", "2"])):
            command = [sys.executable, ROOT / "tests" / "pytorch" / "run_peers.py", backend, "4", "16", "1024", str(d)]
            kernels = profile_program(command, nsight.PEER_METRICS, ["--profile-from-start", "off", "--kernel-name", *selection])
            if not kernels:
                fail(f"ncu counted nothing of {backend}")
            write(file, *({"step": f"pytorch_{backend}", "options": options(4, 16, 1024, d), "kernel": name,
                           "counters": counted} for name, counted in kernels))


def verdicts(card, _):
    if subprocess.run([ROOT / "tests" / "sanitize_faults.sh"], stdout=card.new_file("sanitizer", "verdicts")).returncode:
        fail("tests/sanitize_faults.sh")


PARTS = {part.__name__: part for part in (latency, rungs, counters, bits, probes, drawn, causes, peers, verdicts)}


def accuracy(arguments):
    """One line per way and kind of input."""
    check, arguments = arguments[:1] == ["--check"], arguments[arguments[:1] == ["--check"]:]
    if not arguments:
        sys.exit(print("record.py: accuracy needs the folder of the programs; see record.py --help", file=sys.stderr) or 2)
    path, lines = DATA / "trials" / "sim-accuracy.jsonl", []
    old = {(line["way"], line["input"]): line for line in rec.lines(path)} if path.exists() else {}
    for way, command in WAYS.items():
        step, *more = command.split()
        for kind, size in INPUTS.items() if not arguments[1:] or step in arguments[1:] else ():
            line = run([Path(arguments[0]) / step, *size.split(), "--input", kind, *more, "--no-time"], wrong=1)
            if line is None:
                continue
            new = {"way": way, "input": kind, "step": step, "options": size, "source": line["kernel"], "ok": line["ok"], "error": line["err_rel"]["o"],
                   "bound": line["bound_rel"]["o"], "total": line.get("total_err_rel", line["err_rel"]["o"])}
            if check and (was := old.get((way, kind))) and was["source"] != new["source"]:
                sys.exit(print(f"SKIPPED: {step}: edited since its errors were recorded") or (1 if os.environ.get("CI") == "true" else 77))
            if check and not (was and was["ok"] == new["ok"] and math.isclose(was["total"], new["total"], rel_tol=1e-6)):
                fail(f"{way}, {kind}: recorded {was}, now {new}")
            old[way, kind] = new
    if not check:
        with path.open("w", encoding="utf-8") as file:
            write(file, *(old[key] for key in ((way, kind) for way in WAYS for kind in INPUTS) if key in old))


def record(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    arguments = parser.parse_args(arguments)
    card = Card(arguments.out, arguments.only)
    for part in arguments.parts or list(PARTS)[:5]:
        start = time.monotonic()
        PARTS[part](card, arguments.jobs)
        while card.unfinished:
            path = card.unfinished.pop()
            path.rename(path.with_suffix(""))
        print(f"{part}: {time.monotonic() - start:.0f} s", flush=True)
    card.sampler.terminate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["meter"]:
        meter.meter(sys.argv[2:])
    elif sys.argv[1:2] == ["accuracy"]:
        accuracy(sys.argv[2:])
    elif sys.argv[1:2] == ["profile"]:
        nsight.profile(sys.argv[2:])
    else:
        record(sys.argv[1:])
    sys.exit(1 if failures else 0)
