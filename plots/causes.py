"""Causes: what the marker beside a sentence claims of the recorded counters, times and trials, and the table from which a
chapter's section "What limits it" is written. Standard library only.

Such a marker says COUNTER OP VALUE STEP SIZE, or trial NAME, form NAME, knockout NAME, or ablation NAME, OP VALUE STEP SIZE, or
variant WHAT:PASS:MASK or part NAME, OP VALUE STEP dD; OP is <, > or =. COUNTER is

    a counter of the step's longest kernel: Nsight Compute's name, or its beginning after the unit's (issue_active)
    COUNTER/COUNTER    one counter divided by another
    share              the time of the step's longest kernel divided by the time of all its kernels
    largest_stall      what a warp waits for most, of the recorded reasons: long_scoreboard, wait, ...
    other_stalls       cycles per instruction that a warp waits for reasons that are not recorded
    ms                 the time of a rung

SIZE ends with the heads of K and V where these are fewer, as B8,H32,N1,d128,M16384,G8. VALUE is a number, a word, a step (its
value), or NUMBER*STEP. A trial's value is its rate divided by the rate of the first
trial of its table; NAME is a part of what it says, with hyphens for blanks. A form's value is its rate divided by the rate of the
chapter's last rung in the same process. A knockout's value is the time of a kernel without
one of its parts divided by the time of the whole kernel. A variant's value is the time of what it is compared with (time_variants.py) divided
by its own, a part's (a row of a table of alternatives) its time divided by that of the table's first row.
"""

import json
import operator
import re
from pathlib import Path

import records as rec
import trials
from records import need, number

COUNTERS_AT = "B4,H16,N1024,d64"
# counters.json has, of Nsight Compute's counters:
# rows: what a table's row shows of a kernel: a counter, times a factor, over another; a kernel without it gets a dash;
# stalls: what a warp waits for;
# compared: a name, the meter's totals, the requests that bound them, and the card's counters. A card counts cp.async and
# ldmatrix among the loads;
# causes: why a ratio lies outside, and the steps, kernels and names where it does, at all sizes at which it does.
COUNTED = json.loads((Path(__file__).parent / "counters.json").read_text(encoding="utf-8"))
STALLS = COUNTED["stalls"]
TIME, ISSUED = "gpu__time_duration.sum", "smsp__inst_executed.sum"
FFMA, HMMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "sm__inst_executed_pipe_tensor_op_hmma.sum"
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"  # where a kernel multiplies by wgmma

WHY = re.compile(r"(?<!`)<!-- why\b(.*?)-->", re.DOTALL)  # in backticks the marker is only quoted
OPS = {"<": operator.lt, ">": operator.gt, "=": operator.eq}


def stall_counter(name):
    """Cycles that a warp waits for this, on average, per instruction that it issues: the warps that wait, summed over all cycles,
    divided by the cycles in which an instruction is issued."""
    return f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio"


def stalls_of(counters):
    """The recorded reasons that a kernel's warps wait, the largest first."""
    return sorted(STALLS, key=lambda name: -counters.get(stall_counter(name), 0))


def longest_kernel(book, step, options):
    """The counters of the kernel that takes most of a step's time; {} when none are recorded."""
    return max((k["counters"] for k in book.counters(step, options)), key=lambda c: c.get(TIME, 0), default={})


def counter(counters, name):
    if name == "largest_stall":
        return stalls_of(counters)[0]
    if name == "other_stalls":  # of a warp's cycles per instruction, in one of which it issues, those that no recorded reason takes
        return counter(counters, "warps_active/issue_active") * 16 - 1 - sum(counter(counters, stall_counter(stall)) for stall in STALLS)
    if name not in counters and "/" in name:
        above, below = (counter(counters, part) for part in name.split("/", 1))
        return above / below if below else float("nan")
    pattern = re.compile(rf"__(?:average_warps_issue_)?{re.escape(name)}(?![a-z])")
    found = [name] if name in counters else [full for full in counters if pattern.search(full)]
    need(len(found) == 1, f'"{name}" names {", ".join(found) or "no recorded counter"}')
    return counters[found[0]]


def value_of(book, name, step, size):
    """What a marker's COUNTER or trial is of a step at a size."""
    book.kernel_file(step.partition("@")[0])
    kind, _, words = name.partition(" ")
    if kind == "variant":
        what, pass_, mask = (words + "::").split(":")[:3]
        line = trials.variant_line(book, step, what, pass_, size[1:], mask)
        need(line and line["ratio"], f"{words} of {step} is not recorded")
        return line["ratio"]
    if kind == "part":
        tables = {}
        for line in book.lines("trials", "orders"):
            if (line["step"], f"d{line['dim']}") == (step, size):
                for respect in line.keys() & {"parts", "blocks", "edges", "start", "store"}:
                    tables.setdefault(respect, {})[line[respect].replace(" ", "-")] = line["ms"]
        named = [(what, ms / next(iter(table.values()))) for table in tables.values() for what, ms in table.items() if words in what]
        found = [share for what, share in named if what == words] or [share for _, share in named]
        need(len(found) == 1, f"{len(found)} parts are called so")
        return found[0]
    size, _, dtype = re.fullmatch(r"(.*?)(,(fp32|fp16|bf16))?", size).groups()
    bare, _, heads_kv = size.partition(",G")
    shape, pass_ = rec.parse_size(bare)
    need(not heads_kv or " " not in name and name != "ms", "with fewer heads of K and V only counters are recorded")
    runs = book.records("rungs") + book.records("latency")
    need(not dtype or dtype in {line.details["dtype"] for line in runs if line.step == step}, f"no {dtype} of {step} is recorded")
    if words:
        file, value, key = {"trial": ("tilings", "tflops", "step"), "form": ("forms", "tflops", "step"), "knockout": ("knockouts", "ms", "step"), "ablation": ("ablations", "ms", "rung")}[kind]
        rates = {line["what"].replace(" ", "-"): line[value] for line in book.lines("trials", file, lambda line: line[key] == step)
                 if (kind != "form" or line["causal"] == shape.causal) and [line[field] for field in ("batch", "heads", "seq", "dim")] == [
                     shape.batch, shape.heads, shape.seq, shape.dim]}
        found = [rates[words]] if words in rates else [rate for what, rate in rates.items() if words in what]
        need(len(found) == 1, f"{len(found)} {kind}s are called so")
        return found[0] / (next(rate for what, rate in rates.items() if kind != "form" or what == "the-chapter's-last-rung" or what.endswith("-itself")))
    if name == "ms":
        line = rec.find(runs, step, shape, pass_) or rec.find(runs, step, shape, "bwd")
        need(line, f"no time of {step} is recorded at {size}")
        return line.ms
    counters = longest_kernel(book, step, rec.options_of(size))
    need(counters, f"no counters of {step} are recorded at {size}")
    if name == "share":
        return counters[TIME] / sum(kernel["counters"][TIME] for kernel in book.counters(step, rec.options_of(size)))
    return counter(counters, name)


def check(book, words):
    """Raises BadMarker where a claim is none, or where the records speak against it."""
    book.wanted, [*name, op, limit, step, size] = None, words if len(words) > 4 else ["", "", "", "", ""]
    need(op in OPS and 1 <= len(name) <= 2 and (len(name) == 1 or name[0] in ("trial", "form", "knockout", "ablation", "variant", "part")), "not COUNTER OP VALUE STEP SIZE")
    value = value_of(book, " ".join(name), step, size)
    factor, other = re.fullmatch(r"(?:([\d.]+)\*)?(.*)", limit).groups()
    if re.match(r"\d\d[a-z]?_", other):
        limit = float(factor or 1) * value_of(book, " ".join(name), other, size)
    elif not isinstance(value, str):
        need(re.fullmatch(r"\d+(\.\d+)?", limit), f'"{limit}" is no number and no step')
        limit = float(limit)
    need(OPS[op](value, limit), f"recorded is {value if isinstance(value, str) else number(value)}")


def limits(book, page, chapter, dim="64"):
    """Of every rung of a chapter: the counters of its longest kernel that say what may limit it."""
    size = COUNTERS_AT.replace("d64", f"d{dim}")
    found = [(rung, counters) for rung in sum(book.chain(chapter), []) if (counters := longest_kernel(book, rung, rec.options_of(size)))]
    tensor = any(counters[HMMA] > 0.1 * counters[ISSUED] for _, counters in found)
    groups = all(BUSY in counters for _, counters in found)
    rows = []
    for rung, counters in found:
        waits = [f"{STALLS[name]} ({counters[stall_counter(name)]:.2f})" for name in stalls_of(counters)[:2]]
        work = counters[BUSY] if groups else counters[ISSUED] / counters[HMMA] if tensor else counters[FFMA] / counters[ISSUED] * 3.125
        rows.append([f"`{rung}`", number(counters[TIME] / 1000), number(counter(counters, "warps_active") * 0.16),
                     number(counter(counters, "issue_active")), number(counter(counters, "data_pipe_lsu_wavefronts.sum")),
                     number(work), *waits])
    return [str(rec.parse_size(size)[0]), "µs", "warps per scheduler", "issue slots used, %", "L1 data path busy, %",
            "tensor cores busy, %" if groups else "instructions per mma" if tensor else "FMAs, % of instructions", "a warp waits most for", "and then for"], "lrrrrrll", rows


def busy(book, rung, size=COUNTERS_AT):
    """How busy the units of a rung's longest kernel are at d 64, and what its warps wait for most."""
    counters = longest_kernel(book, rung, rec.options_of(size))
    need(counters, f"no counters of {rung} are recorded at {size}")
    units = [("data path", "data_pipe_lsu_wavefronts.sum"), ("issue slots", "issue_active"), ("tensor cores", BUSY)]
    shares = [f"{name} {counter(counters, full):.0f} %" for name, full in units if full != BUSY or BUSY in counters]
    return f"{', '.join(shares)}; waits for {STALLS[stalls_of(counters)[0]]}"
