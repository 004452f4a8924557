"""What the simulated device counts: `record.py meter`. Standard library only."""

import bisect
import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import records as rec
import tables
from runs import COUNTED, DATA, METERED, ROOT, TRUTH, WORKED, fail, failures, run, write

# Instructions that a kernel executed on the simulated device, from how often its threads entered each basic block. Needs objdump, and
# knows the processor x86-64 alone.
LINE = re.compile(r"\s*([0-9a-f]+):\s+(\w+)(?:.*<([^>+]+)>)?")
FLOATING = re.compile(r"v?(add|sub|mul|div|sqrt|min|max|u?comi)[sp][sd]")
DIVISION = re.compile(r"i?div[bwlq]?")  # of integers; the compiler divides by constants otherwise
NAMES = FLOATING_POINT, CALLS, DIVISIONS = "floating_point_instructions", "function_calls", "integer_divisions"
HOOKS = ("__tsan_", "__sanitizer_", "__ubsan_")

WORK = ("basic_blocks", "accesses_during_async_copies", *NAMES)
WORK_SHARE = 0.03


def can_be_counted():
    return platform.machine() == "x86_64" and shutil.which("objdump")


def executed(program, counts):
    """counts: address, times entered, address, times entered, ... How many instructions of those that every compiler makes of a
    source: arithmetic in floating point, calls (of expf() and the like), and divisions of integers by what is no constant."""
    entered = dict(zip(counts[::2], counts[1::2]))
    if not entered or not can_be_counted():
        return {}
    addresses, lines = disassembled(program)
    found, times = dict.fromkeys(NAMES, 0), 0
    for at in range(bisect.bisect_left(addresses, min(entered)), bisect.bisect_left(addresses, max(entered) + 65536)):
        name, target = lines[at]
        times = entered.get(addresses[at], times)
        if FLOATING.fullmatch(name):
            found[FLOATING_POINT] += times
        elif DIVISION.fullmatch(name):
            found[DIVISIONS] += times
        elif name == "call" and not (target or "").startswith(HOOKS):
            found[CALLS] += times
        elif name in ("jmp", "ret") or target == "__sanitizer_cov_trace_pc":  # a block ends, or another begins
            times = 0
    return found


@functools.lru_cache(1)
def disassembled(program):
    """Addresses, and the name and target of the instruction at each."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True)
    found = [match.groups() for line in done.stdout.splitlines() if (match := LINE.match(line))]
    return [int(address, 16) for address, *_ in found], [rest for _, *rest in found]


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
        kernel["work"].update(executed(programs / step, kernel.pop("basic_block_counts")))
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


def without(mapping, *names):
    return {key: value for key, value in mapping.items() if key not in names}


def in_lines(line):
    """As meter.jsonl keeps it: the chapters' counts by lines, without the work."""
    return {**without(line, "source"), "meter": [without(kernel, "work") for kernel in line["meter"]]}


def in_sums(line):
    """As work.jsonl keeps it: all counts but zeros."""
    kernels = [without(kernel, "lines", "events") for kernel in line["meter"]]
    for kernel in kernels:
        for name in ("totals", "work"):
            kernel[name] = {key: count for key, count in kernel[name].items() if count}
    return {**line, "meter": kernels}


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
        counted = key[2] not in NAMES or can_be_counted()
        some = WORK_SHARE * before if key[2] in WORK and None not in (before, now) else 0
        if counted and before != now and not (some and abs(before - now) <= some):
            fail(f"{recorded['step']} {recorded['options']}: {key[1]}: {key[2]}: recorded {before}, now {now}")


FILES = {DATA / "counters" / "work.jsonl": (WORKED, in_sums), DATA / "counters" / "meter.jsonl": (METERED, in_lines)}


def record(programs, steps):
    for path, (sizes, form) in FILES.items():
        mine = [step for step in steps if form == in_sums or rec.is_chapter(step)]
        new = [form(line) for step in mine for size in sizes if (line := metered(programs, step, size))]
        kept = [line for line in rec.lines(path) if line["step"] not in steps]
        with path.open("w", encoding="utf-8") as file:
            write(file, *sorted(kept + new, key=lambda line: line["step"]))


def record_beside(programs):
    known = {(line["step"], line["options"]) for line in rec.lines(DATA / "counters" / "meter.jsonl")}
    counted = {(line["step"], line["options"]) for line in tables.Book(ROOT).on_card()}
    pairs = [(step, size) for step, size in sorted(counted - known) if "/" not in step and not size.startswith(tuple(COUNTED))]
    with (DATA / "counters" / "meter-beside.jsonl").open("w", encoding="utf-8") as file:
        write(file, *(line and in_lines(line) for line in (metered(programs, *pair, places=False) for pair in pairs)))


def check(programs, steps):
    recorded = [(line, form) for path, (_, form) in FILES.items() for line in rec.lines(path) if line["step"] in steps]
    edited = False
    recorded.sort(key=lambda pair: sum(sum(kernel["totals"].values()) for kernel in pair[0]["meter"]))  # one may be enough
    if "TEST_FEWER" in os.environ:  # ./run.sh test: the smaller half, a sixth of the time
        recorded = recorded[: (len(recorded) + 1) // 2]
    for line, form in recorded:
        new = metered(programs, line["step"], line["options"])
        check_meter(line, new and form(new))
        edited = edited or new and new["source"] != line.get("source", new["source"])
    edited = edited and failures and os.environ.get("CI") != "true"
    if edited or not recorded:
        print(f"SKIPPED: {', '.join(steps)}: {'edited since its counts were recorded' if edited else 'nothing is recorded'}")
        sys.exit(77)


def meter(arguments):
    option = arguments.pop(0) if arguments[:1] in (["--check"], ["--beside"]) else ""
    if not arguments:
        print("record.py: meter needs the folder of the programs; see record.py --help", file=sys.stderr)
        sys.exit(2)
    programs, steps = Path(arguments[0]), arguments[1:] or sorted({*rec.chapters(ROOT), *rec.rungs(ROOT)})
    if option == "--beside":
        record_beside(programs)
    else:
        (check if option else record)(programs, steps)
