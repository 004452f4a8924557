#!/usr/bin/env python3
"""Writes the measured numbers, the diffs and the quoted code into the book's pages. Standard library only.

    tables.py            brings README.md, docs/**/*.md and steps/*/README.md up to date
    tables.py --check    changes nothing; names each marker that is out of date and each measured-looking number that
                         was typed by hand; exit status 1 if there is any

A block stands between two comments, each at the beginning of a line:

    <!-- begin table ladder -->                            the steps' forward passes side by side; also: ladder bwd,
                                                           ladder fwd B4,H16,N2048,d64
    <!-- begin table sizes 03_online_softmax -->           one step at every recorded size; also: sizes STEP bwd
    <!-- begin table counters 03_online_softmax -->        what Nsight Compute counted, a column a kernel
    <!-- begin table truth B1,H2,N256,d64 -->              the simulated device's counts beside Nsight Compute's
    <!-- begin table traffic 03_online_softmax -->         what a step's kernels ask of global memory; also: traffic STEP
                                                           B1,H2,N200,d40
    <!-- begin table peers 06_vectorized -->               a step beside PyTorch, timed in one process; also: peers STEP bwd
    <!-- begin table variants 06_vectorized -->            a chapter's variants, the plainest first, the chapter last; also:
                                                           variants STEP BEFORE, with the row of another step on top
    <!-- begin table trials 06_vectorized 128 -->          tilings tried by hand, one run each, at this d
    <!-- begin table alternatives 06_vectorized order -->  other ways tried by hand, one run each, in one respect
    <!-- begin table stalls 06_vectorized -->              what its warps wait for
    <!-- begin table peer_kernels -->                      which units PyTorch's kernels multiply with
    <!-- begin table operands -->                          what a multiply-add's registers cost
    <!-- begin table memory -->                            latency and bandwidth of each level of memory, a column a card
    <!-- begin table machine_code -->                      the loops of 06's two products, as compiled
    <!-- begin table gallery steps -->                     the pictures of a folder's pages, with the words that pages show them by
    <!-- begin table bits -->                              whether two runs gave the same bits
    <!-- begin table verdicts -->                          what compute-sanitizer says of the planted faults
    <!-- begin diff 01_naive 02_tiled_matmul -->           from steps/01_naive/naive.cu to .../tiled_matmul.cu
    <!-- begin code steps/01_naive/naive.cu scores -->     the function `scores` with the comment before it
    <!-- begin file steps/06.../2_not_overlapped.patch --> a whole file

and ends with <!-- end table -->, <!-- end diff -->, <!-- end code --> or <!-- end file -->. A value within a line is written

    <!-- n ms:03_online_softmax:B4,H16,N4096,d64 -->1.23 ms<!-- /n -->

with these keys, where SIZE is B4,H16,N4096,d64 and may go on with ,M203 (keys, where they are not as many as the
queries), ,causal and ,bwd (the backward pass), ,det (its deterministic variant) or ,both (one after the other):

    ms:STEP:SIZE  p25:STEP:SIZE  p75:STEP:SIZE  tflops:STEP:SIZE  memory:STEP:SIZE    with their units
    ratio:A/B:SIZE      the time of A divided by the time of B: A takes that many times as long
    speedup:A/B:SIZE    the time of B divided by the time of A: A is that many times as fast
    peer:STEP:SIZE      the time of PyTorch's 'efficient' backend divided by the step's, both of one process
    variant:A/B:DIM     the time of the variant or step A divided by that of B, both of one run of plots/record_variants.sh
    asked:DIM           the instructions for which copy_tile of 06 asks a piece whether it is inside
    card  date  driver  toolkit  commit  clocks                                       of the recorded measurements
    truth               "n of m": the simulated device's counts that lie within 5 % of Nsight Compute's

What has not been recorded is a dash. A number that looks measured and stands outside of markers is an error, unless its
line says where it is from and carries <!-- cited -->.
"""

import argparse
import difflib
import json
import math
import os
import re
import sys
from pathlib import Path

import records as rec

ROOT = Path(__file__).resolve().parent.parent
DASH = "-"
DETAILS = ("date", "driver", "toolkit", "commit", "clocks")
BASELINES = {"fwd": "01_", "bwd": "07_"}
PASSES = (*BASELINES, "det", "both")

# A block holds no other beginning: one whose end was forgotten must not swallow the text up to the next one's end.
BLOCK = re.compile(r"^<!-- begin (table|diff|code|file) ([^\n]*?) -->\n((?:(?!<!-- begin )[^\n]*\n)*?)<!-- end \1 -->$", re.MULTILINE)
INLINE = re.compile(r"<!-- n (\S+) -->(.*?)<!-- /n -->")
ANY_MARKER = re.compile(r"^<!-- (?:begin|end)\b.*$|<!-- (?:n\b[^>]*|/n) -->", re.MULTILINE)
MEASURED = re.compile(
    r"\d[\d.,]*\s*(?:(?:ms|µs|μs|us|TFLOP/s|TFLOPS|GFLOP/s|TB/s|GB/s)\b|(?:times|x|×)\s+(?:as\s+fast|faster|slower)\b)"
)


class BadMarker(Exception):
    """A marker that asks for what there is not."""


# ---- numbers as text ------------------------------------------------------------------------------------------------


def number(value, unit=""):
    """Three significant digits, never an exponent."""
    if value is None or not math.isfinite(value):
        return DASH
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{digits}f}{unit}"


def size_in_bytes(value):
    if value is None:
        return DASH
    if value == 0:
        return "none"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value} B" if unit == "B" else number(value, " " + unit)
        value /= 1024


def parse_size(text):
    """ "B4,H16,N4096,d64,causal" as a Shape and a pass."""
    values, causal, pass_ = {}, False, "fwd"
    for part in text.split(","):
        match = re.fullmatch(r"([BHNMd])([1-9]\d*)", part)
        if match:
            values[match[1]] = int(match[2])
        elif part == "causal":
            causal = True
        elif part in PASSES:
            pass_ = part
        else:
            raise BadMarker(f'"{part}" in the size "{text}" is none of B H N M d with a number, causal, fwd, bwd, det, both')
    missing = [letter for letter in "BHNd" if letter not in values]
    if missing:
        raise BadMarker(f'the size "{text}" does not say {", ".join(missing)}')
    seq = values["N"]
    return rec.Shape(values["B"], values["H"], seq, values.get("M", seq), values["d"], causal), pass_


# ---- the book: what the pages may quote -----------------------------------------------------------------------------


class Book:
    def __init__(self, root):
        self.root = root
        self.records = rec.of_main_card(rec.read(rec.data_files(root / "plots" / "data")))
        files = sorted((root / "plots" / "data" / "counters").glob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        self.counters = [line for line in lines if "counters" in line]  # of a card, a line a kernel
        self.meters = [line for line in lines if "meter" in line]  # of the simulated device, a line a run
        self.peers = self.lines_of("peers")
        self.variants = self.lines_of("variants")  # with a "tiling" where it is not the committed one
        self.bits = self.lines_of("bits")
        self.verdicts = self.lines_of("sanitizer")

    def lines_of(self, folder):
        files = sorted((self.root / "plots" / "data" / folder).glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]

    def pages(self):
        pages = [self.root / "README.md", *self.root.glob("docs/**/*.md"), *self.root.glob("steps/*/README.md")]
        return sorted(page for page in pages if page.exists())

    def step_names(self):
        return sorted(path.name for path in self.root.glob("steps/[0-9][0-9]_*") if path.is_dir())

    def kernel_file(self, step):
        path = self.root / "steps" / step / (step.split("_", 1)[-1] + ".cu")
        if not path.exists():
            raise BadMarker(f'there is no {path.relative_to(self.root)} for the step "{step}"')
        return path

    def need_step(self, step):
        if step not in self.step_names() and not any(record.step == step for record in self.records):
            raise BadMarker(f'there is no step "{step}"')

    def idea(self, step):
        """As its `struct step` says; what was recorded may be older."""
        path = self.root / "steps" / step / (step.split("_", 1)[-1] + ".cu")
        if path.exists():
            match = re.search(r'\.idea\s*=\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', path.read_text(encoding="utf-8"))
            if match:
                return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))
        ideas = [record.idea for record in self.records if record.step == step]
        return ideas[-1] if ideas else ""

    def value(self, step, size, field):
        self.need_step(step)
        shape, pass_ = parse_size(size)
        record = rec.find(self.records, step, shape, pass_)
        return getattr(record, field) if record else None


def divided(a, b):
    return a / b if a is not None and b else None


# ---- blocks ---------------------------------------------------------------------------------------------------------


def markdown_table(headings, alignments, rows):
    marks = {"l": "---", "r": "---:"}
    lines = [headings, [marks[alignment] for alignment in alignments], *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def ladder(book, page, arguments):
    """The steps side by side at one size."""
    pass_ = arguments[0] if arguments else "fwd"
    if pass_ not in BASELINES:
        raise BadMarker(f'ladder: "{pass_}" is neither fwd nor bwd')
    shape = parse_size(arguments[1])[0] if len(arguments) > 1 else rec.QUOTED
    recorded = rec.steps_of(book.records, pass_)
    # A step that is in the book but not yet measured has a row of dashes; its name tells its pass.
    unmeasured = {step for step in book.step_names() if step not in {r.step for r in book.records}}
    steps = sorted(set(recorded) | {step for step in unmeasured if ("_bwd" in step) == (pass_ == "bwd")})
    first = next((step for step in steps if step.startswith(BASELINES[pass_])), None)
    baseline = rec.find(book.records, first, shape, pass_)
    rows = []
    for step in steps:
        record = rec.find(book.records, step, shape, pass_)
        link = os.path.relpath(book.root / "steps" / step / "README.md", page.parent)
        rows.append(
            [
                f"[{step}]({link})",
                book.idea(step),
                number(record.ms if record else None, " ms"),
                number(divided(baseline.ms if baseline else None, record.ms if record else None), "x"),
                number(record.tflops if record else None),
                size_in_bytes(record.workspace if record else None),
            ]
        )
    headings = ["step", "idea", "latency", f"speedup over {BASELINES[pass_][:2]}", "TFLOP/s", "extra memory"]
    return markdown_table(headings, "llrrrr", rows)


def sizes(book, page, arguments):
    """One step at every size that was recorded, the small ones first."""
    if not arguments:
        raise BadMarker("sizes: of which step?")
    step, pass_ = arguments[0], arguments[1] if len(arguments) > 1 else "fwd"
    book.need_step(step)
    shapes = {record.shape for record in book.records if record.step == step and record.pass_ == pass_}
    rows = []
    for shape in sorted(shapes, key=lambda s: (s.causal, s.batch * s.heads, s.dim, s.seq, s.seq_kv)):
        record = rec.find(book.records, step, shape, pass_)
        quartiles = f"{number(record.p25)} to {number(record.p75)} ms" if record.p25 and record.p75 else DASH
        rows.append([str(shape), number(record.ms, " ms"), quartiles, number(record.tflops)])
    return markdown_table(["size", "median", "quartiles", "TFLOP/s"], "lrrr", rows or [[DASH] * 4])


COUNTERS_AT = "--batch 4 --heads 16 --seq 1024 --dim 64"


def per(numerator, denominator):
    return lambda c: divided(c.get(numerator), c.get(denominator))


def counter(name):
    return lambda c: c.get(name)


# What a row shows of a kernel's counters; a kernel that has no such thing (no shared memory, say) gets a dash.
COUNTER_ROWS = [
    ("time, microseconds", lambda c: divided(c.get("gpu__time_duration.sum"), 1000)),
    ("registers per thread", counter("registers")),
    ("warps resident, % of the most an SM holds", counter("sm__warps_active.avg.pct_of_peak_sustained_active")),
    ("issue slots used, %", counter("smsp__issue_active.avg.pct_of_peak_sustained_active")),
    ("L1 data path busy, %", counter("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed")),
    ("sectors per global load", per("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                  "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")),
    ("sectors per global store", per("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                   "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")),
    ("global load sectors found in L1, %", counter("l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct")),
    ("wavefronts per shared load", per("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                                     "smsp__inst_executed_op_shared_ld.sum")),
    ("wavefronts per shared store", per("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                                      "smsp__inst_executed_op_shared_st.sum")),
    ("FMAs, % of instructions", lambda c: divided(
        c.get("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 0) * 100 / 32, c.get("smsp__inst_executed.sum"))),
    ("device memory read, MB", lambda c: divided(c.get("dram__bytes_read.sum"), 1e6)),
    ("device memory written, MB", lambda c: divided(c.get("dram__bytes_write.sum"), 1e6)),
]
STALLS = {
    "long_scoreboard": "a load from global or local memory",
    "short_scoreboard": "a load from shared memory",
    "lg_throttle": "a free place in the queue for global memory",
    "mio_throttle": "a free place in the queue for shared memory",
    "barrier": "a barrier",
    "wait": "a fixed number of cycles",
    "dispatch_stall": "operands from the register file",
    "math_pipe_throttle": "a free FMA unit",
}


def stall(counters, name):
    """Warps that wait for this, on average, in each cycle that issues an instruction."""
    return counters.get(f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio", 0)


def main_stall(counters):
    return STALLS[max(STALLS, key=lambda name: stall(counters, name))]


def counters_table(book, page, arguments):
    """The counters of each kernel of a step, a column a kernel, in the order of launch."""
    if not arguments:
        raise BadMarker("counters: of which step?")
    book.need_step(arguments[0])
    kernels = [k for k in book.counters if k["step"] == arguments[0] and k["options"] == COUNTERS_AT]
    rows = [[label, *(number(value(k["counters"])) for k in kernels)] for label, value in COUNTER_ROWS]
    rows = [row for row in rows if any(cell not in (DASH, "0") for cell in row[1:])]
    rows.append(["what a warp waits for most", *(main_stall(k["counters"]) for k in kernels)])
    headings = ["B 4, H 16, N 1024, d 64", *("`" + k["kernel"].removeprefix("void ") + "`" for k in kernels)]
    return markdown_table(headings, "l" + "r" * len(kernels), rows)


# ---- the simulated device's counts ----------------------------------------------------------------------------------

L1 = "l1tex__"
# What is compared: a name, the meter's totals, and the card's counters. A card counts cp.async among the loads.
COMPARED = [
    ("global load sectors", ["global_load_sectors", "global_copy_sectors"],
     [L1 + "t_sectors_pipe_lsu_mem_global_op_ld.sum"]),
    ("global store sectors", ["global_store_sectors"], [L1 + "t_sectors_pipe_lsu_mem_global_op_st.sum"]),
    ("global atomic sectors", ["global_atomic_sectors"],
     [L1 + "t_sectors_pipe_lsu_mem_global_op_red.sum", L1 + "t_sectors_pipe_lsu_mem_global_op_atom.sum"]),
    ("shared load wavefronts", ["shared_load_wavefronts"], [L1 + "data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]),
    ("shared store wavefronts", ["shared_store_wavefronts"], [L1 + "data_pipe_lsu_wavefronts_mem_shared_op_st.sum"]),
    ("shared load conflicts", ["shared_load_conflicts"],
     [L1 + "data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"]),
    ("shared store conflicts", ["shared_store_conflicts"],
     [L1 + "data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"]),
]
LEAST_RATIO, MOST_RATIO, LEAST_SHARE = 0.95, 1.05, 0.9

# Why a ratio lies outside of that: by step, kernel and what is compared, for all sizes at which it does.
OTHER_TRAFFIC = ("A few in a hundred thousand wavefronts, and another few in each run of the profiler: no access of the "
                 "kernel can conflict with itself, so other traffic must have been in the way, perhaps copies that arrived")
CAUSES = {  # (step, kernel, what): cause
    ("09_fa2_bwd_warps", "backward_keys<tiling<64, 64, 128>, true>", "shared load conflicts"): OTHER_TRAFFIC,
    ("09_fa2_bwd_warps", "backward_keys<tiling<64, 64, 128>, true>", "shared store conflicts"): OTHER_TRAFFIC,
}


def options_of(shape):
    return f"--batch {shape.batch} --heads {shape.heads} --seq {shape.seq} --dim {shape.dim}"


def plain_kernel(name):
    """Nsight Compute writes `void matmul<1>` or `void matmul<(bool)1>` for what the source calls `matmul<true>`."""
    name, _, arguments = name.removeprefix("void ").partition("<")
    arguments = re.sub(r"\((?:bool|int|unsigned int|unsigned)\)|\s", "", arguments)
    return name + "<" * bool(arguments) + re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", arguments))


def count_on_card(book, run, kernel, names):
    """The sum over the launches of a kernel; None when the card's counters were not taken."""
    launches = [c["counters"] for c in book.counters if c["step"] == run["step"] and c["options"] == run["options"]
                and plain_kernel(c["kernel"]) == plain_kernel(kernel["kernel"])]
    launches = launches[-kernel["launches"]:]  # taken again: the later ones count
    if len(launches) < kernel["launches"] or any(name not in launch for launch in launches for name in names):
        return None
    return sum(launch[name] for launch in launches for name in names)


def comparisons(book, shape=None):
    """Each kernel's counts beside the card's: step, kernel, what, the meter's, the card's, ratio, cause."""
    rows = []
    for run in book.meters:
        if shape and run["options"] != options_of(shape):
            continue
        for kernel in run["meter"]:
            for what, totals, names in COMPARED:
                ours = sum(kernel["totals"][name] for name in totals)
                theirs = count_on_card(book, run, kernel, names)
                if theirs is None:  # not taken yet
                    if ours:
                        rows.append((run["step"], kernel["kernel"], what, ours, None, None, ""))
                    continue
                if ours == theirs == 0:
                    continue
                ratio = ours / theirs if theirs else math.inf
                off = not LEAST_RATIO <= ratio <= MOST_RATIO
                cause = CAUSES.get((run["step"], kernel["kernel"], what)) if off else ""
                if cause is None:
                    where = f'{run["step"]} {run["options"]}, {kernel["kernel"]}'
                    raise BadMarker(f"truth: {where}: {what} {ours}, on the card {theirs}; name the cause in CAUSES of "
                                    "plots/tables.py")
                rows.append((run["step"], kernel["kernel"], what, ours, theirs, ratio, cause))
    return rows


def truth_share(book):
    """How many ratios are in range, of how many."""
    ratios = [row[5] for row in comparisons(book) if row[5] is not None]
    inside = sum(LEAST_RATIO <= ratio <= MOST_RATIO for ratio in ratios)
    if not ratios or inside < LEAST_SHARE * len(ratios):
        raise BadMarker(f"truth: only {inside} of {len(ratios)} ratios lie in {LEAST_RATIO} to {MOST_RATIO}")
    return inside, len(ratios)


def truth(book, page, arguments):
    """The meter's counts beside Nsight Compute's, a row a counter, and the causes of the differences below."""
    if len(arguments) != 1:
        raise BadMarker("truth: at which size?")
    rows, causes, before = [], [], None
    for step, kernel, what, ours, theirs, ratio, cause in comparisons(book, parse_size(arguments[0])[0]):
        if cause and cause not in causes:
            causes.append(cause)
        kernel_cell = f"{step[:2]} `{kernel}`"
        note = f"({causes.index(cause) + 1})" if cause else ""
        rows.append([kernel_cell if kernel_cell != before else "", what, str(ours),
                     DASH if theirs is None else str(theirs),
                     DASH if ratio is None or math.isinf(ratio) else f"{ratio:.3f}", note])
        before = kernel_cell
    text = markdown_table(["kernel", "counter", "simulated", "card", "ratio", "cause"], "llrrrl", rows or [[DASH] * 6])
    return text + "".join(f"\n({number_}) {cause}.\n" for number_, cause in enumerate(causes, start=1))


TRAFFIC_AT = "B1,H2,N256,d64"


def traffic(book, page, arguments):
    """What the kernels of a step ask of global memory, beside the different bytes that they touch."""
    if not arguments:
        raise BadMarker("traffic: of which step?")
    size = arguments[1] if len(arguments) > 1 else TRAFFIC_AT
    shape = parse_size(size)[0]
    runs = [run for run in book.meters if run["step"] == arguments[0] and run["options"] == options_of(shape)]
    if not runs:
        raise BadMarker(f'traffic: nothing was recorded of "{arguments[0]}" at {size}')
    rows = []
    for kernel in runs[-1]["meter"]:
        lines = [line for line in kernel["lines"] if line["space"] == "global"]
        sectors = sum(line["sectors"] for line in lines)
        different = kernel["different_bytes_read"] + kernel["different_bytes_written"]
        rows.append([f'`{kernel["kernel"]}`', str(sum(line["requests"] for line in lines)), str(sectors),
                     size_in_bytes(sum(line["bytes"] for line in lines)), size_in_bytes(32 * sectors),
                     size_in_bytes(different), number(divided(32 * sectors, different))])
    headings = [str(shape), "requests", "sectors", "bytes requested", "bytes in the sectors", "different bytes", "ratio"]
    return markdown_table(headings, "lrrrrrr", rows)


# ---- beside others ---------------------------------------------------------------------------------------------------


def peer_line(book, name, shape, pass_):
    """The last such line; None when there is none."""
    for line in reversed(book.peers):
        same = (line["batch"], line["heads"], line["seq"], line["seq_kv"], line["dim"], line["causal"])
        if line["step"] == name and line["pass"] == pass_ and rec.Shape(*same) == shape:
            return line
    return None


def peers(book, page, arguments):
    """A step beside PyTorch's two fp32 backends at every size at which they took turns."""
    if not arguments:
        raise BadMarker("peers: of which step?")
    step, pass_ = arguments[0], arguments[1] if len(arguments) > 1 else "fwd"
    shapes = {rec.Shape(p["batch"], p["heads"], p["seq"], p["seq_kv"], p["dim"], p["causal"])
              for p in book.peers if p["step"] == step and p["pass"] == pass_}
    if not shapes:
        raise BadMarker(f"peers: {step} was not timed beside PyTorch ({pass_})")
    rows = []
    for shape in sorted(shapes, key=lambda s: (s.causal, s.batch * s.heads, s.dim, s.seq)):
        ours, *theirs = (peer_line(book, name, shape, pass_) for name in (step, "pytorch_efficient", "pytorch_math"))
        rows.append([str(shape), number(ours["ms_median"], " ms"), number(ours["tflops"]),
                     *(number(line["ms_median"] if line else None, " ms") for line in theirs),
                     number(ours["ratio_to_efficient"])])
    headings = ["size", step[:2], "TFLOP/s", "PyTorch 'efficient'", "PyTorch 'math'", "'efficient' / " + step[:2]]
    return markdown_table(headings, "lrrrrr", rows)


TENSOR_MULTIPLY_ADDS = 16 * 8 * 8  # of a TF32 instruction, mma.m16n8k8


def peer_kernels(book, page, arguments):
    """Multiply-adds of PyTorch's kernels, in units of those that their products need; TFLOP/s count the needed ones."""
    rows = []
    for line in (k for k in book.counters if k["step"].startswith("pytorch_")):
        name = re.sub(r"_tilesize.*", "", line["kernel"])  # cuBLAS's go on for long
        products = 1 if "gemm" in name else 5 if "cutlassB" in name else 2
        B, H, N, d = map(int, re.findall(r"\d+", line["options"]))
        needed = products * B * H * N**2 * d
        ffma = line["counters"]["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
        tensor = line["counters"]["sm__inst_executed_pipe_tensor_op_hmma.sum"]
        rows.append(["'" + line["step"].removeprefix("pytorch_") + "'", f"`{name}`", str(d), str(products),
                     f"{ffma / needed:.2f}", f"{tensor * TENSOR_MULTIPLY_ADDS / needed:.2f}",
                     number(2 * needed / line["counters"]["gpu__time_duration.sum"] * 1e-3)])
    return markdown_table(["B 4, H 16, N 1024", "kernel", "d", "products", "on CUDA cores", "on tensor cores", "TFLOP/s"],
                          "llrrrrr", rows)


def operands(book, page, arguments):
    """Cycles of a multiply-add, from probes/operands.cu of chapter 06."""
    found = [line["cycles"] for line in book.lines_of("probes") if "cycles" in line]
    if not found:
        raise BadMarker("operands: none recorded")
    cycles = found[-1]
    return markdown_table(["factors still at hand from the multiply-add before", "cycles of a scheduler"], "lr",
                          [[kept, f"{cycles[kept]:.2f}"] for kept in ("none", "one", "both")])


MEMORY_ROWS = [
    ("shared memory, latency in cycles", "latency_cycles", "shared", 1),
    ("L1 cache, latency in cycles", "latency_cycles", "l1", 1),
    ("L2 cache, latency in cycles", "latency_cycles", "l2", 1),
    ("device memory, latency in cycles", "latency_cycles", "dram", 1),
    ("L2 cache, TB/s read by all SMs", "bytes_per_second", "l2", 1e12),
    ("device memory, TB/s read by all SMs", "bytes_per_second", "dram", 1e12),
]


def memory(book, page, arguments):
    """What docs/probes/memory.cu measured, the last run of each card."""
    cards = {line["device"]: line for line in book.lines_of("probes") if "latency_cycles" in line}
    rows = [[label, *(number(card[group][level] / unit) for card in cards.values()), *([] if cards else [DASH])]
            for label, group, level, unit in MEMORY_ROWS]
    return markdown_table(["measured", *(cards or ["not recorded yet"])], "l" + "r" * max(1, len(cards)), rows)


def gallery(book, page, arguments):
    """Every picture that the pages of a folder (steps, docs, plots) show, under the page that shows it first."""
    folder = book.root / (arguments[0] if arguments else "steps")
    shown, text = set(), ""
    for source in [other for other in book.pages() if other != page]:
        pictures = []
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+\.png)\)", source.read_text(encoding="utf-8")):
            picture = (source.parent / target).resolve()
            if picture.is_relative_to(folder) and picture not in shown:
                shown.add(picture)
                pictures.append(f"![{words}]({os.path.relpath(picture, page.parent)})\n\n{words}\n\n")
        if pictures:
            name = source.parent.name if source.name == "README.md" else source.name
            name = name if source.parent != book.root else "README"
            text += f"### [{name}]({os.path.relpath(source, page.parent)})\n\n" + "".join(pictures)
    if not text:
        raise BadMarker(f"gallery: no page shows a picture of {folder.name}")
    return "\n" + text


def machine_code(book, page, arguments):
    """What plots/machine_code.py read in the loops of chapter 06's two products."""
    rows = [[str(line["dim"]), name, str(loop["multiply_adds"]), str(loop["instructions"] - loop["multiply_adds"]),
             f"{loop['three_registers'] / loop['multiply_adds'] * 100:.0f} %"]
            for line in book.lines_of("machine_code") for name, loop in zip(("S", "O"), line["products"])]
    return markdown_table(["d", "product", "multiply-adds in a turn", "other instructions", "read three registers"], "rlrrr", rows)


def variant_line(book, name, dim, tiled=False):
    """The last line of a variant, or with tiled the quickest of all tilings; None when there is none."""
    lines = [v for v in book.variants if v["step"] == name and v["dim"] == dim and (tiled or "tiling" not in v)]
    if not lines:
        return None
    return min(lines, key=lambda v: v["ms_median"]) if tiled else lines[-1]


def ladder_of_variants(book, step):
    """Names and what each has that the one before it lacks: whole files first, then the patched ones, then the step."""
    folder = book.kernel_file(step).parent / "variants"
    names = []
    for file in sorted(folder.glob("*.cu")):
        idea = re.search(r'\.idea = "([^"]*)"', file.read_text(encoding="utf-8"))[1]
        names.append((step[:3] + file.stem, idea))
    above = ""
    for file in sorted(folder.glob("[1-9]_*.patch"), reverse=True):
        fields = dict(line.split(": ", 1) for line in file.read_text(encoding="utf-8").splitlines()[:2] if ": " in line)
        names.append((step[:3] + file.stem[2:], above or fields["leaves"]))
        above = "and " + fields["takes away"]
    return [*names, (step, above or book.idea(step))]


def variants(book, page, arguments):
    if not arguments:
        raise BadMarker("variants: of which step?")
    names = [(name, book.idea(name)) for name in arguments[1:]] + ladder_of_variants(book, arguments[0])
    tilings = any("tiling" in v and v["step"] == name for v in book.variants for name, _ in names)
    rows = []
    for name, what in names:
        row = ["`" + name + "`", what]
        for dim in (64, 128):
            line = variant_line(book, name, dim)
            row += [number(line["ms_median"], " ms") if line else DASH, number(line["tflops"]) if line else DASH]
        if tilings:
            best = variant_line(book, name, 64, tiled=True)
            tried = any("tiling" in v and v["step"] == name for v in book.variants)
            row += [best.get("tiling", "the same") if tried else DASH, number(best["tflops"]) if tried else DASH]
        rows.append(row)
    headings = ["B 4, H 16, N 4096", "", "d 64", "TFLOP/s", "d 128", "TFLOP/s"]
    if tilings:
        headings += ["best tiling tried, d 64", "TFLOP/s"]
    return markdown_table(headings, "llrrrr" + "lr" * tilings, rows)


def trials(book, page, arguments):
    """What was tried while a chapter was written; `what` says what is different."""
    if len(arguments) != 2:
        raise BadMarker("trials: of which step, at which d?")
    lines = [line for line in book.lines_of("trials")
             if "tiling" in line and (line["step"], line["dim"]) == (arguments[0], int(arguments[1]))]
    if not lines:
        raise BadMarker(f"trials: there are none of {arguments[0]} at d {arguments[1]}")
    rows = [[f'`<{", ".join(map(str, line["tiling"]))}>`', line["what"], number(line["tflops"]), number(line["tflops_causal"])]
            for line in lines]
    width = 4 if any(line["tflops_causal"] for line in lines) else 3
    return markdown_table([f"B 4, H 16, N 4096, d {arguments[1]}", "", "TFLOP/s", "causal"][:width], "llrr"[:width],
                          [row[:width] for row in rows])


def alternatives(book, page, arguments):
    """Milliseconds of the alternatives in one respect, the first one being what the others are compared with."""
    if len(arguments) != 2:
        raise BadMarker("alternatives: of which step, in what?")
    step, respect = arguments
    times = {}
    for line in book.lines_of("trials"):
        if line["step"] == step and respect in line:
            times.setdefault(line[respect], {})[line["dim"]] = line["ms"]
    if not times:
        raise BadMarker(f"alternatives: none of {step} in {respect}")
    first = next(iter(times.values()))
    rows = [[what, *(cell for dim in (64, 128) for cell in (number(ms[dim], " ms"), f"{ms[dim] / first[dim] * 100:.1f} %"))]
            for what, ms in times.items()]
    return markdown_table(["B 4, H 16, N 4096", "d 64", "of the first", "d 128", "of the first"], "lrrrr", rows)


def stalls(book, page, arguments):
    """Cycles that a warp waits for each instruction issued, the longest first, in the kernel of a step that takes longest."""
    if len(arguments) != 1:
        raise BadMarker("stalls: of which step?")
    dims, found = (64, 128), []
    for dim in dims:
        kernels = [k["counters"] for k in book.counters
                   if k["step"] == arguments[0] and k["options"] == COUNTERS_AT.replace("64", str(dim))]
        if not kernels:
            raise BadMarker(f"stalls: no counters of {arguments[0]} at d {dim}")
        longest = max(kernels, key=lambda counters: counters["gpu__time_duration.sum"])
        found.append({name: stall(longest, name) for name in STALLS})
    reasons = sorted(STALLS, key=lambda name: -found[0][name])
    rows = [[f"`{name}`", STALLS[name], *(f"{values[name]:.2f}" for values in found)] for name in reasons]
    return markdown_table(["B 4, H 16, N 1024", "waits for", "d 64", "d 128"], "llrr", rows)


def bits_table(book, page, arguments):
    """Runs of one program on one problem, two by two."""
    rows, runs = [], {}
    for line in book.bits:
        name = f'`{line["step"]}{" --deterministic" if line.get("deterministic") else ""}`'
        runs.setdefault(name, []).append(line)
    for name, (first, second) in runs.items():
        rows.append([name, *("the same" if first["bits"][out] == second["bits"][out] else "different"
                             for out in ("dq", "dk", "dv"))])
    first = book.bits[0]
    size = rec.Shape(*(first[key] for key in ("batch", "heads", "seq", "seq_kv", "dim")))
    return markdown_table([f"two runs at {size}", "bits of dQ", "of dK", "of dV"], "llll", rows)


def verdicts(book, page, arguments):
    tools = ("memcheck", "racecheck", "initcheck", "synccheck")
    found = lambda line: [tool for tool in tools if line[tool] == "found"]
    rows = []
    for what, twin in (("planted faults", False), ("correct twins", True)):
        lines = [line for line in book.verdicts if line["twin"] == twin]
        none = [line for line in lines if not found(line)]
        rows.append([what, str(len(lines)), *(str(sum(tool in found(line) for line in lines)) for tool in tools), str(len(none))])
    text = markdown_table(["", "kernels", *tools, "found by none"], "lrrrrrr", rows)
    missed = ", ".join(f'`{line["fault"]}`' for line in book.verdicts if not line["twin"] and not found(line))
    accused = ", ".join(f'`{line["fault"]}`' for line in book.verdicts if line["twin"] and found(line))
    return f"{text}\nFaults found by none: {missed}.\n\nTwins accused: {accused}.\n"


def table(book, page, arguments):
    kinds = {"ladder": ladder, "sizes": sizes, "counters": counters_table, "truth": truth, "traffic": traffic,
             "peers": peers, "variants": variants, "trials": trials,
             "alternatives": alternatives, "stalls": stalls, "bits": bits_table, "verdicts": verdicts,
             "peer_kernels": peer_kernels, "operands": operands, "machine_code": machine_code, "memory": memory,
             "gallery": gallery}
    if not arguments or arguments[0] not in kinds:
        raise BadMarker(f"there is no such table; there are: {', '.join(kinds)}")
    return kinds[arguments[0]](book, page, arguments[1:])


def diff(book, page, arguments):
    """A unified diff, three lines of context."""
    if len(arguments) != 2:
        raise BadMarker("diff takes two steps")
    paths = [book.kernel_file(step) for step in arguments]
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in paths)
    lines = [f"--- {paths[0].relative_to(book.root)}", f"+++ {paths[1].relative_to(book.root)}"]
    # unified_diff ignores lines that are frequent in a long file, braces among them, and its diffs are the worse for it.
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{line_range(first[1], last[2])} +{line_range(first[3], last[4])} @@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [" " + line for line in old[i1:i2]]
            else:
                lines += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
    return fenced("diff", lines)


def line_range(start, stop):
    length = stop - start
    return f"{start + 1 if length else start},{length}"


def fenced(language, lines):
    return f"```{language}\n" + "".join(line + "\n" for line in lines) + "```\n"


def code(book, page, arguments):
    """One function or struct, from the comment before it to its closing brace."""
    if len(arguments) != 2:
        raise BadMarker("code takes a file and a function's name")
    path, name = book.root / arguments[0], arguments[1]
    if not path.is_file():
        raise BadMarker(f"there is no {arguments[0]}")
    lines = path.read_text(encoding="utf-8").splitlines()
    at = definition(lines, name)
    if at is None:
        raise BadMarker(f"{arguments[0]} does not define {name}")
    start, end = first_line(lines, at), last_line(lines, at)
    language = {".cu": "cuda", ".cuh": "cuda", ".py": "python", ".sh": "bash"}.get(path.suffix, "c")
    return fenced(language, lines[start : end + 1])


def whole_file(book, page, arguments):
    if len(arguments) != 1 or not (book.root / arguments[0]).is_file():
        raise BadMarker(f"file takes a file of the project, not {' '.join(arguments)}")
    path = book.root / arguments[0]
    return fenced({".patch": "diff"}.get(path.suffix, ""), path.read_text(encoding="utf-8").splitlines())


def definition(lines, name):
    """The line that holds `name(` and whose statement goes on to a brace rather than to a semicolon."""
    start = re.compile(rf"^(?![\s/#*}}]).*\b{re.escape(name)}\(")
    for at, line in enumerate(lines):
        if start.match(line):
            rest = re.sub(r"//.*", "", "\n".join(lines[at : at + 20]))
            if re.match(r"[^;{]*\{", rest):
                return at
    return None


def first_line(lines, at):
    """Upward over the rest of the declaration and the comment before it."""
    while at > 0:
        above = lines[at - 1].rstrip()
        if above.endswith("*/"):  # a comment, which may hold empty lines
            at -= 1
            while "/*" not in lines[at] and at > 0:
                at -= 1
        elif above.startswith("//") or (above and above[0] not in "#}" and not above.endswith((";", "}"))):
            at -= 1
        else:
            break
    return at


def last_line(lines, at):
    while at + 1 < len(lines) and not lines[at].startswith("}"):
        at += 1
    return at


# ---- inline values --------------------------------------------------------------------------------------------------


def inline_value(book, key):
    kind, *rest = key.split(":")
    if kind == "card" and not rest:
        return book.records[0].device if book.records else DASH
    if kind in DETAILS and not rest:
        return str(book.records[-1].details.get(kind) or DASH) if book.records else DASH
    if kind == "truth" and not rest:
        return "{} of {}".format(*truth_share(book))
    if kind == "peer" and len(rest) == 2:
        line = peer_line(book, rest[0], *parse_size(rest[1]))
        return number(line["ratio_to_efficient"] if line else None)
    if kind == "asked" and len(rest) == 1:
        return next((str(line["instructions_to_ask"]) for line in book.lines_of("machine_code") if str(line["dim"]) == rest[0]), DASH)
    if kind == "variant" and len(rest) == 2 and "/" in rest[0] and rest[1] in ("64", "128"):
        lines = [variant_line(book, name, int(rest[1])) for name in rest[0].split("/", 1)]
        return number(divided(*(line["ms_median"] if line else None for line in lines)))
    fields = {"ms": ("ms", " ms"), "p25": ("p25", " ms"), "p75": ("p75", " ms"), "tflops": ("tflops", " TFLOP/s")}
    if len(rest) != 2 or kind not in {*fields, "memory", "ratio", "speedup"}:
        raise BadMarker(f'"{key}" is no key; the top of plots/tables.py lists them')
    step, size = rest
    if kind == "memory":
        return size_in_bytes(book.value(step, size, "workspace"))
    if kind in fields:
        field, unit = fields[kind]
        return number(book.value(step, size, field), unit)
    if "/" not in step:
        raise BadMarker(f'"{key}": {kind} takes two steps, A/B')
    times = [book.value(name, size, "ms") for name in step.split("/", 1)]
    return number(divided(*(times if kind == "ratio" else reversed(times))))


# ---- pages ----------------------------------------------------------------------------------------------------------


class Page:
    """A page, what it should say, and what is wrong with it."""

    def __init__(self, book, path):
        self.book, self.path = book, path
        self.text = path.read_text(encoding="utf-8")
        self.stale, self.errors = [], []
        self.lint()
        self.renewed = INLINE.sub(self.renew_inline, BLOCK.sub(self.renew_block, self.text))

    def name(self):
        return str(self.path.relative_to(self.book.root))

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def renew_block(self, match):
        kind, words = match[1], match[2].split()
        makers = {"table": table, "diff": diff, "code": code, "file": whole_file}
        try:
            body = makers[kind](self.book, self.path, words)
        except BadMarker as error:
            self.errors.append(f"{self.name()}:{self.line_of(match.start())}: {error}")
            return match[0]
        if body != match[3]:
            self.stale.append(f"{self.name()}: {kind} {match[2]}")
        return f"<!-- begin {kind} {match[2]} -->\n{body}<!-- end {kind} -->"

    def renew_inline(self, match):
        try:
            value = inline_value(self.book, match[1])
        except BadMarker as error:
            self.errors.append(f"{self.name()}: {error}")
            return match[0]
        if value != match[2]:
            self.stale.append(f"{self.name()}: {match[1]}")
        return f"<!-- n {match[1]} -->{value}<!-- /n -->"

    def lint(self):
        """Numbers typed by hand and markers without their other half, both looked for outside of what is generated."""
        blank = lambda match: re.sub(r"[^\n]", "", match[0])  # keeps the count of lines
        outside = INLINE.sub(blank, BLOCK.sub(blank, self.text))
        for number_, line in enumerate(outside.split("\n"), start=1):
            for marker in ANY_MARKER.findall(line):
                self.errors.append(f'{self.name()}:{number_}: "{marker}" is a marker without its other half, or unknown')
            measured = MEASURED.search(line)
            if measured and "<!-- cited -->" not in line:
                self.errors.append(f'{self.name()}:{number_}: "{measured[0]}" was typed by hand; generate or cite it')

    def rewrite(self):
        if self.renewed != self.text:
            self.path.write_text(self.renewed, encoding="utf-8")
            print(f"{self.name()}: rewritten ({len(self.stale)} changed)")


def main():
    parser = argparse.ArgumentParser(description="Writes measured numbers, diffs and quoted code into the pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; name what is out of date or typed by hand")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: the one that holds this script)")
    arguments = parser.parse_args()
    try:
        book = Book(arguments.root.resolve())
    except (rec.BadRecord, OSError) as error:
        print(f"tables.py: {error}", file=sys.stderr)
        sys.exit(2)
    pages = [Page(book, path) for path in book.pages()]
    complaints = [error for page in pages for error in page.errors]
    if arguments.check:
        complaints += [f"{stale}: out of date; run plots/tables.py" for page in pages for stale in page.stale]
    else:
        for page in pages:
            page.rewrite()
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
