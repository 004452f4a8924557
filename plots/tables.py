#!/usr/bin/env python3
"""Writes the measured numbers and the quoted code into the book's pages. Standard library only.

    tables.py            brings README.md, docs/**/*.md and steps/*/*.md up to date
    tables.py --check    changes nothing; names each marker that is out of date and each measured-looking number typed by hand; exit status 1 if any
    tables.py --changes  prints how many lines each rung changes of the one before it
    tables.py --help     prints this and a line for each table

A block stands between two comments, each at the beginning of a line, and ends with <!-- end table --> and so on:

    <!-- begin table counters 03_online_softmax --> a table and its arguments, in the order in which --help shows them
    <!-- begin code steps/01_naive/naive.cu scores -->  the function `scores` with the comment before it
    <!-- begin file docs/sessions.txt ncu -->      a file, or a section of it
    <!-- begin output steps/09_fa2_bwd_warps/worked.py -->  what a script prints

A table shows the first card of CARDS that has such records, and says which; `h100` as the last word chooses that card. A
value within a line is written <!-- n ms:03_online_softmax:B4,H16,N4096,d64 -->1.23 ms<!-- /n --> with these keys, where
SIZE is B4,H16,N4096,d64 and may go on with ,M203 (keys, if not as many as queries), ,causal and ,bwd (backward), ,det (deterministic) or ,both:

    ms:STEP:SIZE  tflops:STEP:SIZE    with their units
    ratio:A/B:SIZE  speedup:A/B:SIZE    A's time divided by B's; B's time divided by A's
    pair:A/B:SIZE       the time of A's forward pass and B's backward pass together
    rung:A/B:DIM        the time of the rung A divided by that of B, at the size of the rungs' tables
    stands:RUNG         the rung's rate in % of the best library's at d 64 (d 128), and at d 64 how busy its units are and what
                        its warps wait for most; of chapter 14 at its own size, of 15 the rate alone, without a variant
    percent:STEP:SIZE   the step's rate in % of cuDNN's (fp32: of PyTorch's fused kernel's), in one process
    percent:STEP/math:SIZE   the same in % of another backend of PyTorch, or of fa4, FlashAttention-4
    peer:STEP:SIZE      the time of PyTorch's fused kernel ('efficient', 'flash' in 16 bits) divided by the step's, in one process
    constant:NAME       one of the card's constants (plots/probes.py)
    knockout:STEP:DIM:NAME:less  what a kernel without one part saves, in % (knockouts.sh; NAME with hyphens); or its rate, in 1e12
                        FLOP/s; or alone: the time of the scores' exponentials, 16 per cycle of an SM, in % of the whole kernel's
    ablation:RUNG:DIM:NAME:more  how much longer a rung without one idea takes, in %
    error:WAY[/WAY]:INPUT  an error of chapter 16 on the simulated device, in % of O's norm; the ratio of two (plots/runs.py)
    variants:STEP:WHAT:PASS:DIM:causal|full   the time of what a rung of chapter 15 is compared with, divided by its own
    splits:mean|median|p95|max|within|shapes[-beyond-one]   the regret of chapter 14's rule for the number of splits
    decode:STEP:SIZE:copy|cudnn|flash   what part of that one's rate a decoding step reaches, at a SIZE like B8,H32,G8,N1,M4096
    asked:DIM           the instructions for which copy_tile of 06 asks a piece whether it is inside
    card  date  driver  toolkit  commit  clocks     of the recorded latencies; card:peers and so on of another kind
    truth               "n of m": the simulated device's counts that lie within 5 % of Nsight Compute's

A sentence that says why a time is what it is has a marker beside it, which the records must bear out:

    <!-- why COUNTER OP VALUE STEP SIZE -->     <!-- why issue_active < 60 10d_swizzle B4,H16,N1024,d64,bf16 -->
    <!-- why knockout|form|trial|ablation NAME OP VALUE STEP SIZE -->  <!-- why form no-turns < 0.9 12e_order B2,H32,N8192,d64,bf16 -->

What has not been recorded is a dash in a table of which other cells are recorded; else it is an error. A number that looks measured outside of markers is an error, unless its line carries <!-- cited -->.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import causes
import probes
import quotes
import records as rec
import trials
from causes import COUNTED, COUNTERS_AT, FFMA, HMMA, STALLS, limits, longest_kernel, stall_counter, stalls_of
from records import BEST, DASH, BadMarker, need, number, options_of, parse_size, size_in_bytes
from truth import agreement, apart, truth, truth_rows

CARDS = ("h200", "h100")
# A block holds no other beginning: one whose end was forgotten must not swallow the text up to the next one's end.
BLOCK = re.compile(r"^<!-- begin (table|code|file|output) ([^\n]*?) -->\n((?:(?!<!-- begin )[^\n]*\n)*?)<!-- end \1 -->$", re.MULTILINE)
INLINE = re.compile(r"<!-- (n) (\S+) -->(.*?)<!-- /n -->")
ANY_MARKER = re.compile(r"^<!-- (?:begin|end)\b.*$|<!-- (?:n\b[^>]*|/n) -->", re.MULTILINE)
MEASURED = re.compile(r"\d[\d.,]*\s*(?:(?:ms|µs|μs|us|TFLOP/s|TFLOPS|GFLOP/s|TB/s|GB/s)\b|(?:times|x|×)\s+(?:as\s+fast|faster|slower)\b)")


def divided(a, b):
    return a / b if a is not None and b else None


def markdown_table(headings, alignments, rows):
    marks = {"l": "---", "r": "---:"}
    lines = [headings, [marks[alignment] for alignment in alignments], *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


# ---- the book: what the pages may quote ------------------------------------------------------------------------------------


class Book:
    def __init__(self, root):
        self.root, self.wanted, self.used = root, None, set()
        self.pages = sorted([root / "README.md", *root.glob("docs/**/*.md"), *root.glob("steps/*/*.md")])
        # Of the simulated device, a line per run: what tests compare, and what is only beside a card's counts.
        self.meters = [line for path in sorted(root.glob("plots/data/counters/meter*.jsonl")) for line in rec.lines(path)]

    def lines(self, kind, name="*", fit=lambda line: True):
        """The lines of plots/data/<kind>/<card>-<name>.jsonl that fit, of the card that is wanted or the first that has any."""
        for card in [self.wanted] if self.wanted else CARDS:
            files = sorted((self.root / "plots" / "data" / kind).glob(f"{card}-{name}.jsonl"))
            if found := [line for file in files for line in rec.lines(file) if fit(line)]:
                self.used.add(card)
                return found
        return []

    def records(self, kind="latency"):
        return [rec.record_of(line) for line in self.lines(kind)]

    def counters(self, step, options):
        """What Nsight Compute counted of each launch of a step, in order."""
        return [line for line in self.lines("counters", "counters") if (line["step"], line["options"]) == (step, options)]

    def on_card(self):
        """What Nsight Compute counted at the sizes of the book and at those that were drawn."""
        return self.lines("counters", "counters") + self.lines("counters", "drawn")

    def kernel_file(self, step):
        found = [*self.root.glob(f"steps/*/{step}.cu"), *self.root.glob(f"steps/{step}/{step[3:]}.cu")]
        need(len(found) == 1, f'there is no kernel file of a step "{step}"')
        return found[0]

    def says(self, step, member):
        """A text member of its `struct step`."""
        text = self.kernel_file(step).read_text(encoding="utf-8")
        match = re.search(rf'\.{member}\s*=\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text)
        return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1])) if match else ""

    def changed_lines(self, old, new):
        """Added plus deleted, by diffutils' `diff`, less what moved to a header and what is only indented anew. (git may be missing.)"""
        before, after = self.kernel_file(old), self.kernel_file(new)
        moved = [header for header in quotes.included(after) if header not in quotes.included(before)]
        text = quotes.without(before.read_text(encoding="utf-8"), moved, after.read_text(encoding="utf-8"))
        done = subprocess.run(["diff", "-b", "-", after], input=text, capture_output=True, text=True)
        need(done.returncode < 2, f"diff of {old} and {new}: {done.stderr}")
        return sum(line.startswith(("<", ">")) for line in done.stdout.splitlines())

    def chain(self, chapter):
        """The rungs of a chapter in order, the last one being the chapter's own, and those beside the chain."""
        rungs = [step for step in rec.rungs(self.root) if step.startswith(chapter[:2])]
        need(rungs, f'there is no chapter "{chapter}"')
        beside = [rung for rung in rungs if self.says(rung, "beside")]
        return [rung for rung in rungs if rung not in beside], beside

    def steps_between(self, chapter):
        """Which rung each is compared with: the one before it; beside the chain, the one that its first line names, else the last."""
        chain, beside = self.chain(chapter)
        first = {rung: self.kernel_file(rung).read_text(encoding="utf-8").split("\n")[0].split() for rung in beside}
        return dict(zip(chain[1:], chain)) | {rung: words[2] if words[2] in chain else chain[-1] for rung, words in first.items()}


PEERS = {"fp32": ("efficient", "math"), "fp16": ("flash", "cudnn"), "bf16": ("flash", "cudnn")}


def percent(book, line, backend=None):
    """A record's rate, of the rate of a backend of PyTorch (the best one) at the same size, data type and pass."""
    dtype = line and line.details["dtype"]
    theirs = line and rec.find(book.records("peers"), backend if backend == "fa4" else f"pytorch_{backend or BEST[dtype][0]}", line.shape, line.pass_)
    return f"{100 * theirs.ms / line.ms:.0f} %" if theirs and theirs.details["dtype"] == dtype else DASH


# ---- tables of times ---------------------------------------------------------------------------------------------------------


def ladder(book, page, pass_="fwd", size=None):
    """The recorded steps side by side at one size."""
    shape = parse_size(size)[0] if size else rec.QUOTED
    records = [line for line in book.records() if line.pass_ == pass_]
    found = [(step, rec.find(records, step, shape, pass_)) for step in sorted({line.step for line in records})]
    need(found, f"ladder: nothing of {pass_} is recorded")
    first = found[0][1]
    other_type = lambda line: f" ({line.details['dtype']})" if line and line.details["dtype"] != "fp32" else ""
    rows = [[f"[{step}]({os.path.relpath(book.root / 'steps' / step / 'README.md', page.parent)})",
             rec.WHOLE.get(step, book.says(step, "idea")) + other_type(line),
             number(line and line.ms, " ms"), DASH if other_type(line) else number(divided(first and first.ms, line and line.ms), "x"),
             percent(book, line), size_in_bytes(line and line.workspace)] for step, line in found]
    return [str(shape), "idea", "latency", f"speedup over {found[0][0][:2]}",
            "% of PyTorch's fused kernel (bf16: of cuDNN)", "extra memory"], "llrrrr", rows


def shapes_of(lines):
    return sorted({line.shape for line in lines}, key=lambda s: (s.causal, s.batch * s.heads, s.dim, s.seq, s.seq_kv))


def sizes(book, page, step, pass_="fwd"):
    """One step at every size that was recorded, the small ones first."""
    book.kernel_file(step)
    lines, rows = [line for line in book.records() if line.step == step and line.pass_ == pass_], []
    for shape in shapes_of(lines):
        line = rec.find(lines, step, shape, pass_)
        quartiles = f"{number(line.p25)} to {number(line.p75)} ms" if line.p25 and line.p75 else DASH
        rows.append([str(shape), number(line.ms, " ms"), quartiles, number(line.tflops)])
    return ["size", "median", "quartiles", "TFLOP/s"], "lrrr", rows


def rung_line(book, rung, dim):
    return next((line for line in book.records("rungs")[::-1] if line.step == rung and line.shape.dim == dim), None)


def rungs(book, page, chapter):
    """The rungs of a chapter, those beside the chain last."""
    (chain, beside), before, rows = book.chain(chapter), book.steps_between(chapter), []
    for rung in chain + beside:
        lines = [rung_line(book, rung, dim) for dim in (64, 128)]
        idea = book.says(rung, "idea") + f" ({book.says(rung, 'beside')})" * (rung in beside)
        rows.append([f"`{rung}`", idea, str(book.changed_lines(before[rung], rung)) if rung in before else DASH,
                     *(cell for line in lines for cell in (number(line and line.ms, " ms"), number(line and line.tflops),
                                                           percent(book, line)))])
    types = [line.details["dtype"] for rung in chain[-1:] + beside if (line := rung_line(book, rung, 64))]
    best = "; ".join(dict.fromkeys(BEST[dtype][1] + " (fp32)" * (dtype != types[0]) for dtype in types))
    heads = ["B 4, H 16, N 4096", "idea", "changed lines", "d 64", "TFLOP/s", best, "d 128", "TFLOP/s", best]
    timed = [i for i, head in enumerate(heads) if head != best or any(row[i] != DASH for row in rows)]  # a library may not have been
    return [heads[i] for i in timed], "llrrrrrrr"[: len(timed)], [[row[i] for i in timed] for row in rows]


def peers(book, page, step, pass_="fwd"):
    """A step beside PyTorch's two backends for its data type, and FlashAttention-4 where it is recorded, at every size at which they took turns."""
    lines, rows = [line for line in book.records("peers") if line.pass_ == pass_], []
    mine = [line for line in lines if line.step == step]
    need(mine, f"peers: nothing was recorded of {step} {pass_}")
    dtype = mine[0].details["dtype"]
    names, more = [f"pytorch_{name}" for name in PEERS[dtype]], ["fa4"] * any((line.step, line.details["dtype"]) == ("fa4", dtype) for line in lines)
    for shape in shapes_of(mine):
        ours, *theirs = (rec.find(lines, name, shape, pass_) for name in (step, *names, *more))
        rows.append([str(shape), number(ours.ms, " ms"), number(ours.tflops), *(number(line and line.ms, " ms") for line in theirs),
                     percent(book, ours), *(percent(book, ours, name) for name in more)])
    heads = [f"PyTorch '{name.removeprefix('pytorch_')}'" for name in names] + ["FlashAttention-4" for _ in more]
    return ["size", step.split("_")[0], "TFLOP/s", *heads, f"% of '{BEST[dtype][0]}'", *("% of FA-4" for _ in more)], "l" + "r" * (5 + 2 * len(more)), rows


# ---- tables of counts ----------------------------------------------------------------------------------------------------------

def counter_rows(kernels):
    rows = [["", *("`" + k["kernel"].removeprefix("void ") + "`" for k in kernels)]]
    for label, name, factor, below in COUNTED["rows"]:
        cells = [number(divided(factor * c[name] if name in c else None, sum(c.get(part, 0) for part in below.split(" + ")) if below else 1))
                 for c in (k["counters"] for k in kernels)]
        rows += [[label, *cells]] if set(cells) - {DASH, "0"} else []
    return [*rows, ["what a warp waits for most", *(STALLS[stalls_of(k["counters"])[0]] for k in kernels)]]


def counters(book, page, step, *options):
    """What Nsight Compute counted: a column per kernel of a step, or per rung of a chapter's number, its longest kernel."""
    size = " ".join(options) or options_of(COUNTERS_AT)
    if step.isdigit():
        kernels = [{"kernel": rung, "counters": counted} for rung in book.chain(step)[0]
                   if (counted := longest_kernel(book, rung, size))]
    else:
        kernels = book.counters(step, size)
    headings, *rows = counter_rows(kernels)
    return [rec.size_of(size), *headings[1:]], "l" + "r" * len(kernels), rows * bool(kernels)


def stalls(book, page, step):
    """What warps wait for: cycles for each instruction issued, the longest first, in the kernel that takes longest."""
    longest = [longest_kernel(book, step, options_of(COUNTERS_AT.replace("d64", f"d{dim}"))) for dim in (64, 128)]
    rows = [[f"`{name}`", STALLS[name], *(f"{counters.get(stall_counter(name), 0):.2f}" for counters in longest)]
            for name in stalls_of(longest[0])]
    rows.append(["others", "reasons that are not recorded", *(f"{causes.counter(counters, 'other_stalls'):.2f}" for counters in longest if counters)])
    return ["B 4, H 16, N 1024", "waits for", "d 64", "d 128"], "llrr", rows * all(longest)


def traffic(book, page, step, size="B1,H2,N256,d64"):
    """What the kernels of a step ask of global memory, beside the different bytes that they touch."""
    runs = [run for run in book.meters if (run["step"], run["options"]) == (step, options_of(size))]
    need(runs, f'traffic: nothing was recorded of "{step}" at {size}')
    rows = []
    for kernel in runs[-1]["meter"]:
        lines = [line for line in kernel["lines"] if line["space"] == "global"]
        requests, sectors, requested = (sum(line[what] for line in lines) for what in ("requests", "sectors", "bytes"))
        different = kernel["different_bytes_read"] + kernel["different_bytes_written"]
        rows.append([f'`{kernel["kernel"]}`', str(requests), str(sectors), *map(size_in_bytes, (requested, 32 * sectors, different)),
                     number(divided(32 * sectors, different))])
    return [f"kernel at {parse_size(size)[0]}", "requests", "sectors", "bytes requested", "bytes in the sectors", "different bytes",
            "ratio"], "lrrrrrr", rows


def peer_kernels(book, page):
    """FMAs of PyTorch's kernels, in units of those that their products need; TFLOP/s count the needed ones."""
    rows = []
    for line in book.lines("counters", "peers"):
        name = re.sub(r"_tilesize.*", "", line["kernel"])  # cuBLAS's go on for long
        products = 1 if "gemm" in name else 5 if "cutlassB" in name else 2
        B, H, N, d = map(int, re.findall(r"\d+", line["options"]))
        needed, counted = products * B * H * N**2 * d, line["counters"]
        tensor = counted[HMMA] * 16 * 8 * 8  # FMAs of a TF32 instruction, mma.m16n8k8
        rows.append([f"'{line['step'].removeprefix('pytorch_')}'", f"`{name}`", str(d), str(products), f"{counted[FFMA] / needed:.2f}",
                     f"{tensor / needed:.2f}", number(2 * needed / counted["gpu__time_duration.sum"] * 1e-3)])
    return ["B 4, H 16, N 1024", "kernel", "d", "products", "on CUDA cores", "on tensor cores", "TFLOP/s"], "llrrrrr", rows


# ---- tables of other records -------------------------------------------------------------------------------------------------------


def bits(book, page):
    """Runs of one program on one problem, two by two."""
    lines, rows = book.lines("bits"), []
    for first, second in zip(lines[::2], lines[1::2]):
        name = f'`{first["step"]}{" --deterministic" if first.get("deterministic") else ""}`'
        rows.append([name, *("the same" if first["bits"][out] == second["bits"][out] else "different" for out in ("dq", "dk", "dv"))])
    return ["two runs at B 1, H 16, N 1024, d 64", "bits of dQ", "of dK", "of dV"], "llll", rows


def verdicts(book, page):
    """What compute-sanitizer says of the planted faults."""
    tools, notes, rows = ("memcheck", "racecheck", "initcheck", "synccheck"), "", []
    for words, twin in (("planted faults", False), ("correct twins", True)):
        lines = [line for line in book.lines("sanitizer") if line["twin"] == twin]
        finders = {line["fault"]: [tool for tool in tools if line[tool] == "found"] for line in lines}
        rows.append([words, str(len(lines)), *(str(sum(tool in found for found in finders.values())) for tool in tools),
                     str(sum(not found for found in finders.values()))])
        told = ", ".join(f"`{fault}`" for fault, found in finders.items() if bool(found) == twin)
        notes += f"\n{'Twins accused' if twin else 'Faults found by none'}: {told or 'none'}.\n"
    return ["", "kernels", *tools, "found by none"], "lrrrrrr", rows, notes


def gallery(book, page, folder="steps"):
    """Every picture that the pages of a folder (steps, docs, plots) show, under the page that shows it first."""
    shown, text = set(), ""
    for source in [other for other in book.pages if other != page]:
        pictures = ""
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+\.(?:png|svg))\)", source.read_text(encoding="utf-8")):
            picture = (source.parent / target).resolve()
            if picture.is_relative_to(book.root / folder) and picture not in shown:
                shown.add(picture)
                pictures += f"![{words}]({os.path.relpath(picture, page.parent)})\n\n{words}\n\n"
        name = "README" if source.parent == book.root else source.parent.name if source.name == "README.md" else source.name
        text += f"### [{name}]({os.path.relpath(source, page.parent)})\n\n{pictures}" if pictures else ""
    need(text, f"gallery: no page shows a picture of {folder}")
    unseen = sorted(picture.name for picture in book.root.glob(f"{folder}/**/*.png")
                    if picture not in shown)
    need(not unseen, f"gallery: no page shows {', '.join(unseen)} of {folder}")
    return "\n" + text


TABLES = {function.__name__: function for function in (
    ladder, sizes, rungs, peers, trials.trials, trials.forms, trials.alternatives, trials.knockouts, trials.ablations, trials.decode, trials.pages, trials.variants,
    trials.devices, trials.parallel, trials.accuracy, counters, limits, stalls, truth, agreement, apart, traffic, peer_kernels, probes.operands, probes.memory, probes.constants, probes.machine_code, bits,
    verdicts, gallery)}


def table(book, page, name=None, *arguments):
    need(name in TABLES, f"there is no such table; there are: {', '.join(TABLES)}")
    book.used = set()
    book.wanted = arguments[-1] if arguments and arguments[-1] in CARDS else None
    try:
        made = TABLES[name](book, page, *(arguments[:-1] if book.wanted else arguments))
    except TypeError as error:
        raise BadMarker(f"{name}: {error}") from error
    if isinstance(made, str):
        return made
    headings, alignments, rows, *notes = made
    need(len(book.used) < 2, f"{name}: records of {' and '.join(sorted(book.used))} in one table")
    card = f"\nCard: {book.used.pop().upper()}.\n" if book.used else ""
    return markdown_table(headings, alignments, rows or [[DASH] * len(headings)]) + card + "".join(notes)


# ---- inline values -------------------------------------------------------------------------------------------------------------------


VALUES = {  # of the records of one step or of two
    "ms": lambda a: number(a.ms, " ms"), "tflops": lambda a: number(a.tflops, " TFLOP/s"),
    "peer": lambda a: number(a.details["ratio_to_" + PEERS[a.details["dtype"]][0]]), "ratio": lambda a, b: number(divided(a.ms, b.ms)),
    "rung": lambda a, b: number(divided(a.ms, b.ms)), "speedup": lambda a, b: number(divided(b.ms, a.ms)),
}
OTHERS = {  # of other records: by kind and number of words
    ("constant", 1): probes.constant, ("decode", 3): trials.decode_value, ("variants", 5): trials.variant_value, ("splits", 1): trials.regret,
    ("knockout", 4): trials.knockout, ("ablation", 4): trials.ablation, ("error", 2): trials.accuracy_value,
}


def inline_value(book, page, key):
    book.wanted, (kind, *rest) = None, key.split(":")
    if kind in ("card", "date", "driver", "toolkit", "commit", "clocks") and len(rest) < 2:
        lines = book.records(*rest)
        return str(lines[-1].details.get("device" if kind == "card" else kind) or DASH) if lines else DASH
    if (kind, len(rest)) in OTHERS:
        return OTHERS[kind, len(rest)](book, *rest)
    if kind == "truth" and not rest:
        rows = truth_rows(book)
        return f"{sum(bool(row.agree) for row in rows)} of {len(rows)}"
    if kind == "asked" and len(rest) == 1:
        return next((str(line["instructions_to_ask"]) for line in book.lines("machine_code") if str(line["dim"]) == rest[0] and not line["form"]), DASH)
    if kind == "pair" and len(rest) == 2:
        pair = [rec.find(book.records(), step, parse_size(rest[1])[0], pass_) for step, pass_ in zip(rest[0].split("/"), ("fwd", "bwd"))]
        return number(sum(line.ms for line in pair), " ms") if len(pair) == 2 and all(pair) else DASH
    if kind == "percent" and len(rest) == 2:
        step, _, backend = rest[0].partition("/")
        book.kernel_file(step)
        return percent(book, rec.find(book.records("peers"), step, *parse_size(rest[1])), backend)
    if kind == "stands" and len(rest) == 1:
        book.kernel_file(rest[0])
        if rest[0].startswith("14"):
            return f"{trials.decode_value(book, rest[0], trials.DECODING[0], 'copy')} of a copy's rate; {causes.busy(book, rest[0], trials.DECODING[1])}"
        plain = [trials.variant_line(book, rest[0], "plain", pass_, dim, "full") for dim in ("64", "128") for pass_ in ("fwd", "bwd")] if rest[0][:2] == "15" else []
        lines = [rec.record_of({"seq_kv": line["seq"]} | line) for line in plain if line and line["pass"] == next(filter(None, plain))["pass"]]
        lines = lines or [rung_line(book, rest[0], dim) for dim in (64, 128)]
        if rest[0].startswith("17"):
            return trials.on_devices(book, rest[0])
        need(all(lines), f"no times of {rest[0]} are recorded at both d")
        if lines[0].details["dtype"] == "fp8":  # neither a library nor counters at this size
            return f"{number(lines[0].tflops)} ({number(lines[1].tflops)}) TFLOP/s"
        library = BEST[lines[0].details["dtype"]][0].replace("cudnn", "cuDNN").replace("efficient", "'efficient'")
        return f"{percent(book, lines[0])} ({percent(book, lines[1])})" + ("" if plain else f" of {library}; {causes.busy(book, rest[0])}")
    need(len(rest) == 2 and kind in VALUES, f'"{key}" is no key; the top of plots/tables.py lists them')
    steps, size = rest[0].split("/"), rest[1]
    need(len(steps) == (2 if kind in ("ratio", "speedup", "rung") else 1), f'"{key}": A/B are two steps, STEP is one')
    for step in steps:
        book.kernel_file(step)
    if kind == "rung":
        lines = [rung_line(book, step, int(size)) for step in steps]
    else:
        lines = [rec.find(book.records("peers" if kind == "peer" else "latency"), step, *parse_size(size)) for step in steps]
    return VALUES[kind](*lines) if all(lines) else DASH


# ---- pages ---------------------------------------------------------------------------------------------------------------------------


def is_empty(made):
    """Nothing, a dash alone, or a table with a row or a column of nothing else below its heads (beside its first column)."""
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in made.splitlines() if line.startswith("|")]
    cells = [*(row[1:] or row for row in rows[2:]), *list(zip(*rows[2:]))[1:]] if len(rows) > 1 else []
    return made.strip() in ("", DASH) or len(rows) == 2 or any(set(line) <= {"", DASH} for line in cells)


class Page:
    """A page, what it should say, and what is wrong with it."""

    def __init__(self, book, path):
        self.book, self.path, self.name = book, path, str(path.relative_to(book.root))
        self.text = path.read_text(encoding="utf-8")
        self.stale, self.errors = [], []
        self.lint()
        self.weigh()
        self.renewed = INLINE.sub(self.renew, BLOCK.sub(self.renew, self.text))

    def renew(self, match):
        kind, words, old = match.groups()
        make = {"table": table, "code": quotes.code, "file": quotes.whole_file, "output": quotes.output, "n": inline_value}[kind]
        try:
            new = make(self.book, self.path, *words.split())
        except BadMarker as error:
            self.errors.append(f"{self.name}: {error}")
            return match[0]
        if is_empty(new):
            self.errors.append(f"{self.name}: {kind} {words}: nothing is recorded, so it would be empty")
        if new != old:
            self.stale.append(f"{self.name}: {kind} {words}")
        start, end = (at - match.start() for at in match.span(3))
        return match[0][:start] + new + match[0][end:]

    def weigh(self):
        """The causes that the page gives, against the records."""
        for match in causes.WHY.finditer(self.text):
            try:
                causes.check(self.book, match[1].split())
            except BadMarker as error:
                at = self.text.count("\n", 0, match.start()) + 1
                self.errors.append(f"{self.name}:{at}: why {' '.join(match[1].split())}: {error}")

    def lint(self):
        """Numbers typed by hand and markers without their other half, both looked for outside of what is generated."""
        blank = lambda match: re.sub(r"[^\n]", "", match[0])  # keeps the count of lines
        outside = INLINE.sub(blank, BLOCK.sub(blank, self.text))
        for at, line in enumerate(outside.split("\n"), start=1):
            for marker in ANY_MARKER.findall(line):
                self.errors.append(f'{self.name}:{at}: "{marker}" is a marker without its other half, or unknown')
            if (measured := MEASURED.search(line)) and "<!-- cited -->" not in line:
                self.errors.append(f'{self.name}:{at}: "{measured[0]}" was typed by hand; generate or cite it')


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"], ["--changes"]):
        out = sys.stdout if arguments == ["--help"] else sys.stderr
        print(__doc__, causes.__doc__, sep="\n", file=out)
        for name, made in TABLES.items():
            print("   ", name, *list(inspect.signature(made).parameters.values())[2:], "-", made.__doc__, file=out)
        sys.exit(0 if arguments == ["--help"] else 2)
    try:
        book = Book(Path(__file__).resolve().parent.parent)
        if arguments == ["--changes"]:
            for chapter in sorted({rung[:2] for rung in rec.rungs(book.root)}):
                for new, old in book.steps_between(chapter).items():
                    print(f"{book.changed_lines(old, new):4} {old} -> {new}")
            return
        pages = [Page(book, path) for path in book.pages]
    except (ValueError, KeyError, OSError) as error:
        print(f"tables.py: {error!r}", file=sys.stderr)
        sys.exit(2)
    complaints = [error for page in pages for error in page.errors]
    for page in pages:
        if arguments:
            complaints += [f"{stale}: out of date; run plots/tables.py" for stale in page.stale]
        elif page.renewed != page.text:
            page.path.write_text(page.renewed, encoding="utf-8")
            print(f"{page.name}: rewritten ({len(page.stale)} changed)")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
