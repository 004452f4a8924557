#!/usr/bin/env python3
"""Records what the book's tables and plots show. Standard library only; build the preset first.

    record.py [--out FOLDER] [--jobs N] [--only REGEX] [PART...]    on this machine's card, with the programs of the cuda preset
    record.py meter [--check] BIN_DIR [STEP...]      what the simulated device counts; BIN_DIR is build/sim/bin
    record.py meter --beside BIN_DIR                 the same of all other runs that a card has counted
    record.py profile STEP OPTIONS...                what Nsight Compute counts of one step, printed

The parts: latency, rungs, counters, bits, probes (these when none is named); drawn (counters at ten sizes that follow from
the commit, of rungs at two); causes (where these differ from the recorded ones of the meter, the counters of kernels
without what counters.json names as causes);
peers, which needs PyTorch; verdicts, which takes several minutes. Each writes FOLDER/<part>/<card>-*.jsonl (default:
plots/data) anew, a JSON line a run, and prints how long it took. --only: of the programs whose names match, and the lines
of the others as they are in plots/data. --jobs is how many small programs ncu counts side by side (default: 4). COMMIT names the commit where git
cannot. Nothing of the card is set, only read. Exit status: 0; 1 something failed; 2 bad usage; 3 no card or tool.

meter --check compares with what is recorded and writes nothing; exit status 1 with the differences, 77 when nothing of
these steps is recorded, or when they differ because the kernel was edited since (with CI=true that is 1, too).
"""

import argparse
import csv
import datetime
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import instructions
import records as rec
import tables
import truth

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "cuda" / "bin"
DATA = ROOT / "plots" / "data"
REFUSED = 2  # a program's exit status
QUICK_MS = 30  # of B 4, H 16, N 4096, d 64: who is quicker is measured at more sizes
SLOW_MS = 60  # who takes longer runs less often,
TOO_SLOW_MS = 4000  # and not at all
MUCH_MEMORY = 8e9  # bytes
failures = []


def options(B, H, N, d, more=""):
    return f"--batch {B} --heads {H} --seq {N} --dim {d} {more}".strip()


# What is counted by the simulated device, and on the card for the table that compares the two.
TRUTH = [options(1, 2, 256, 64), options(1, 2, 200, 40), options(1, 3, 320, 48, "--seq-kv 192 --causal"),
         options(1, 2, 160, 128), options(1, 2, 130, 59)]
TRUTH += [f"{size} --deterministic" for size in TRUTH[:2]]
# Of steps for few queries, with groups of heads: one split and many, every number of row tiles, pages.
DECODED = [options(1, 8, 1, 128, "--heads-kv 2 --seq-kv 1000"), options(2, 6, 5, 72, "--heads-kv 2 --seq-kv 2500 --causal"),
           options(1, 4, 8, 64, "--heads-kv 1 --seq-kv 3000 --dtype fp16"), options(1, 24, 4, 128, "--heads-kv 1 --seq-kv 200 --causal"),
           options(4, 16, 2, 64, "--heads-kv 8 --seq-kv 130"),
           options(3, 8, 2, 128, "--heads-kv 2 --seq-kv 2000 --page-size 16 --lengths 2000,0,65"),
           options(1, 4, 4, 64, "--heads-kv 2 --seq-kv 300 --page-size 64 --lengths 200 --causal")]
# On both devices: at the last four, the number of splits depends on the number of multiprocessors, which is the H100's and the H200's.
SPLITS = [DECODED[i] for i in (3, 4, 6)] + [f"SIMT_MULTIPROCESSORS=132 {DECODED[i]}" for i in (0, 1, 2, 5)]
# Of steps that have variants of attention, each one in both passes and both tilings; a step refuses those that it lacks.
VARIED = [f"--heads 4 --dim {d} {variant} --pass {pass_}" for pass_ in ("fwd", "bwd") for d in (64, 128) for variant in (
    "--seq 200 --window 40,10", "--seq 200 --softcap 20 --alibi", "--seq 200 --heads-kv 2", "--lengths 130,0,65,5",
    "--seq 200 --dropout 0.3", "--seq 200 --rotary interleaved")]
# By the simulated device alone: tilings of other d, a mask whose corner lies on no tile's.
METERED = TRUTH + [*(options(1, 1, 130, d) for d in (24, 32, 36, 96)), options(1, 2, 330, 128, "--seq-kv 250 --causal"),
                   *(f"{size} --deterministic" for size in TRUTH[2:4]), options(1, 1, 130, 64, "--dtype fp16"),
                   *(f"SIMT_SHARED_KIB=99 {options(1, 1, 130, d, more)}" for d in (64, 128) for more in ("", "--deterministic")),
                   *DECODED, *SPLITS[3:], *VARIED]
# Of rungs as well: all counts, without the lines, and the work, which depends on the compiler a little.
# The last widths of tilings, causal and not, for much and for little shared memory.
WORKED = [TRUTH[1], TRUTH[2], TRUTH[3], f"{TRUTH[1]} --deterministic", options(1, 1, 97, 64), options(1, 1, 97, 64, "--causal"),
          options(1, 1, 70, 32), options(1, 1, 97, 64, "--deterministic"), options(1, 1, 70, 32, "--deterministic"),
          *(f"SIMT_SHARED_KIB={KiB} {options(1, 1, 65, d)}" for KiB, d in ((99, 64), (99, 128), (99, 32), (163, 64), (163, 128))),
          *(f"SIMT_SHARED_KIB={KiB} {options(1, 1, 65, d)} --deterministic" for KiB, d in ((99, 32), (163, 64), (163, 128))),
          options(1, 1, 97, 128, "--dtype fp16"),
          # One block, the first: under a mask it should be one of the longest.
          *(options(1, 1, 300, 64, f"--causal --meter-blocks 1000{more}") for more in ("", " --deterministic")), *DECODED, *VARIED]
WORK = ("basic_blocks", "accesses_during_async_copies", *instructions.NAMES)
WORK_SHARE = 0.03
LONG = [options(8, 32, queries, 128, "--heads-kv 8 --seq-kv 16384") for queries in (1, 8)]  # 537 MB of K and V
COUNTED = [options(4, 16, 1024, 64), options(4, 16, 1024, 128)]

# The counters that the tables show, under ncu's names, and a few more.
SHOWN = {"launch__registers_per_thread" if name == "registers" else name for _, name, _, below in tables.COUNTED["rows"]
         for name in (name, *(below or "").split(" + ")) if name}
REQUESTS = {f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")}
TRUTH_METRICS = sorted({name for *_, names, others in truth.COMPARED for name in names + others} | REQUESTS | {"launch__registers_per_thread"})
PEER_METRICS = ["gpu__time_duration.sum", "launch__registers_per_thread", "smsp__inst_executed.sum", tables.FFMA, tables.HMMA]
METRICS = sorted(SHOWN.union(TRUTH_METRICS, PEER_METRICS, map(tables.stall_counter, tables.STALLS), {
    "l1tex__lsuin_requests.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    "smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum"}))
# What only Hopper has, counted of the chapters for it: wgmma, and tiles copied by the TMA.
HOPPER = ["sm__inst_executed_pipe_tensor_op_gmma.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum",
          "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum", "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
          "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "sm__inst_executed_pipe_xu.sum"]


def fail(what):
    failures.append(what)
    print(f"FAILED: {what}", file=sys.stderr, flush=True)


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


def no_card(why):
    print(f"record.py: {why}", file=sys.stderr)
    sys.exit(3)


def run(command, more=dict):
    """The JSON line of a program with the fields that more() gives; None when it refused or failed."""
    with tempfile.NamedTemporaryFile("r") as line:
        done = subprocess.run([*command, "--json", line.name], capture_output=True, text=True)
        if done.returncode not in (0, REFUSED):
            fail(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return None if done.returncode else {**json.load(line), **more()}


def write(file, *lines):
    for line in filter(None, lines):
        print(json.dumps(line, separators=(",", ":")), file=file, flush=True)


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
        write(file, *count(step, size, METRICS))


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


def count_all(pairs, jobs, file, more={}, programs=BIN):
    """Counts of the SMs do not change when other programs wait their turn beside; time and traffic to memory do."""
    with ThreadPoolExecutor(jobs) as pool:
        for lines in pool.map(lambda pair: count(*pair, TRUTH_METRICS, programs), pairs):
            write(file, *({**line, **more} for line in lines))


def count(step, size, metrics, programs=BIN):
    """Nsight Compute's counters of each kernel of a step, in the order of launch; [] when it refuses the size."""
    words = [word for word in size.split() if not word.startswith("SIMT_")]  # the simulated device's alone
    program, metrics = [programs / step, *words, "--no-time", "--no-check"], [*metrics, *(HOPPER if step >= "12" else [])]
    with tempfile.NamedTemporaryFile("r") as json_line:
        kernels = profile_program([*program, "--json", json_line.name], metrics, [])
        line = json_line.read()
    if not line or not kernels:
        if subprocess.run(program, capture_output=True).returncode != REFUSED:
            fail(f"ncu counted nothing of {step} {size}; to see why: ncu {' '.join(map(str, program))}")
        return []
    # The harness computes O and L for a backward pass by a kernel of its own.
    own = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob(f"steps/{step[:2]}_*/*.cu"))
    if json.loads(line)["pass"] == "bwd" and re.sub("^void |<.*", "", kernels[0][0]) + "(" not in own:
        kernels = kernels[1:]
    return [{"step": step, "options": size, "kernel": name, "counters": counted} for name, counted in kernels]


def profile_program(command, metrics, selection):
    """(kernel, counters) of each launch, from ncu's raw page."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--kernel-name-base",
           "demangled", "--metrics", ",".join(metrics), *selection]
    try:
        done = subprocess.run([*ncu, *command], capture_output=True, text=True)
    except OSError:
        no_card("ncu of Nsight Compute is not on PATH")
    names, *kernels = csv.reader(line for line in [*done.stdout.splitlines(), '"ID"'] if line.startswith('"'))
    kernels = [dict(zip(names, row)) for row in kernels[1:-1]]  # the first row holds the units
    number = lambda text: float(text.replace(",", ""))
    value = lambda text: int(number(text)) if number(text).is_integer() else number(text)
    return [(fields["Kernel Name"].split("(")[0],
             {name.replace("launch__registers_per_thread", "registers"): value(fields[name]) for name in metrics
              if re.match(r"[\d.]", fields.get(name, ""))}) for fields in kernels]


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
            kernels = profile_program(command, PEER_METRICS, ["--profile-from-start", "off", "--kernel-name", *selection])
            if not kernels:
                fail(f"ncu counted nothing of {backend}")
            write(file, *({"step": f"pytorch_{backend}", "options": options(4, 16, 1024, d), "kernel": name,
                           "counters": counted} for name, counted in kernels))


def verdicts(card, _):
    if subprocess.run([ROOT / "tests" / "sanitize_faults.sh"], stdout=card.new_file("sanitizer", "verdicts")).returncode:
        fail("tests/sanitize_faults.sh")


PARTS = {part.__name__: part for part in (latency, rungs, counters, bits, probes, drawn, causes, peers, verdicts)}


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


# ---- the simulated device --------------------------------------------------------------------------------------------------


@functools.cache
def metered(programs, step, size, places=True):
    """What the meter counts in a run; None when the step refuses it. The places of accesses are kept at the first sizes."""
    # Counts do not depend on the run. Which request is kept as a line's example does, when blocks run side by side.
    variables, at, numbers = ("SIMT_THREADS=1 " + size).partition(" --")
    line = run(["env", *variables.split(), programs / step, *(at + numbers).split(), "--meter", "--no-check", "--no-time"])
    if line is None:
        return None
    for kernel in line["meter"]:
        kernel["work"] = {name: kernel.pop(name) for name in (*WORK[:2], "async_copies")}
        kernel["work"].update(instructions.executed(programs / step, kernel.pop("basic_block_counts")))
        if size not in TRUTH[:2] or not places:
            del kernel["lines"], kernel["events"]
            continue
        for place in kernel["lines"] + kernel["events"]:  # the path in the project, wherever the build folder lies
            place["file"] = re.sub(r"^.*?(?=(steps|common|tests)/)", "", place["file"])
        for place in kernel["lines"]:  # how far apart two arrays lie differs from run to run
            if len({place["sample"][end].split("[")[0] for end in ("lowest", "highest")} if "sample" in place else "1") > 1:
                del place["sample"]
        # Not in the order in which the compiler happened to lay out the code.
        kernel["lines"].sort(key=lambda l: (l["file"], l["line"], l["space"], l["access"], l.get("sample", {}).get("lowest", "")))
        kernel["events"].sort(key=lambda e: (e["file"], e["line"], e["what"]))
    return {"step": step, "options": size, "source": line["kernel"],
            **{key: line[key] for key in ("workspace_bytes", "calls", "meter")}}


def in_lines(line):
    """As meter.jsonl keeps it: the chapters' counts by lines, without the work."""
    return line and {**{key: value for key, value in line.items() if key != "source"},
                     "meter": [{key: value for key, value in kernel.items() if key != "work"} for kernel in line["meter"]]}


def in_sums(line):
    """As work.jsonl keeps it: all counts but zeros."""
    return line and {**line, "meter": [
        {key: {name: count for name, count in value.items() if count} if isinstance(value, dict) else value
         for key, value in kernel.items() if key not in ("lines", "events")} for kernel in line["meter"]]}


def sums(line):
    """A compiler of another version may place an access on a neighbouring line, so the sums of each kernel are compared. The
    arguments of a template are one of the values, so that a kernel with others is compared as well."""
    apart = ("lines", "events", "totals", "work")
    whole = {"kernel": "all of it", "totals": {key: line.get(key) for key in ("workspace_bytes", "calls")}}
    return {(at, kernel["kernel"].partition("<")[0], key): value for at, kernel in enumerate([whole, *line["meter"]])
            for key, value in {**kernel, **kernel["totals"], **kernel.get("work", {})}.items() if key not in apart}


def check_meter(recorded, line):
    """Name each count that is another than the recorded one."""
    old, new = sums(recorded), sums(line or {"meter": []})
    in_both = {key[:2] for key in old} & {key[:2] for key in new}
    zeros = {name for kernel in (line or recorded)["meter"] if "work" in kernel for name in {**kernel["totals"], **kernel["work"]}}
    for key in old | new:
        if key[:2] in in_both and key not in old and key[2] not in zeros:
            continue  # the device counts it since then
        before, now = (counts.get(key, 0 if key[:2] in in_both else None) for counts in (old, new))
        counted = key[2] not in instructions.NAMES or instructions.can_be_counted()
        some = WORK_SHARE * before if key[2] in WORK and None not in (before, now) else 0
        if counted and before != now and not (some and abs(before - now) <= some):
            fail(f"{recorded['step']} {recorded['options']}: {key[1]}: {key[2]}: recorded {before}, now {now}")


def meter(arguments):
    option = arguments.pop(0) if arguments[:1] in (["--check"], ["--beside"]) else ""
    if not arguments:
        print("record.py: meter needs the folder of the programs; see record.py --help", file=sys.stderr)
        sys.exit(2)
    programs, steps = Path(arguments[0]), arguments[1:] or sorted({*rec.chapters(ROOT), *rec.rungs(ROOT)})
    if option == "--beside":
        known = {(line["step"], line["options"]) for line in rec.lines(DATA / "counters" / "meter.jsonl")}
        pairs = {(line["step"], line["options"]): None for line in tables.Book(ROOT).on_card() if "/" not in line["step"]
                 and (line["step"], line["options"]) not in known and not line["options"].startswith(tuple(COUNTED))}
        with (DATA / "counters" / "meter-beside.jsonl").open("w", encoding="utf-8") as file:
            return write(file, *(in_lines(metered(programs, *pair, places=False)) for pair in sorted(pairs)))
    found, edited = False, False
    for name, sizes, form in (("work", WORKED, in_sums), ("meter", METERED, in_lines)):
        path = DATA / "counters" / f"{name}.jsonl"
        recorded = rec.lines(path)
        if not option:
            new = [form(line) for step in steps for size in sizes if (name == "work" or rec.is_chapter(step))
                   and (line := metered(programs, step, size))]
            kept = [line for line in recorded if line["step"] not in steps]
            with path.open("w", encoding="utf-8") as file:
                write(file, *sorted(kept + new, key=lambda line: line["step"]))
            continue
        for line in [line for line in recorded if line["step"] in steps]:
            new = metered(programs, line["step"], line["options"])
            check_meter(line, form(new))
            found, edited = True, edited or new and new["source"] != line.get("source", new["source"])
    if not option:
        return
    edited = edited and failures and os.environ.get("CI") != "true"
    if edited or not found:
        print(f"SKIPPED: {', '.join(steps)}: {'edited since its counts were recorded' if edited else 'nothing is recorded'}")
        sys.exit(77)


def profile(arguments):
    """The rows that the chapters' tables show, a column per kernel."""
    step, size = arguments[0], " ".join(arguments[1:])
    done = subprocess.run([BIN / step, *arguments[1:], "--no-time", "--no-check"])  # ncu would hide what it says
    if done.returncode:
        sys.exit(done.returncode)
    kernels = count(step, size, METRICS)
    if not kernels:
        sys.exit(3)
    rows = tables.counter_rows(kernels)
    widths = [max(map(len, column)) for column in zip(*rows)]
    for label, *cells in rows:
        print(label.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:])), sep="  ")


if __name__ == "__main__":
    if sys.argv[1:2] == ["meter"]:
        meter(sys.argv[2:])
    elif sys.argv[1:2] == ["profile"]:
        profile(sys.argv[2:])
    else:
        record(sys.argv[1:])
    sys.exit(1 if failures else 0)
