"""Tables and numbers of what was tried by hand: other tilings, other ways, a kernel without one of its parts. Standard library only."""

import functools
import re

import probes
import records as rec
from records import BEST, DASH, need, number


def trials(book, page, step, dim):
    """Tilings tried by hand, one run each, at one d; `what` says what is different."""
    lines = book.lines("trials", "tilings", lambda line: (line["step"], str(line["dim"])) == (step, dim))
    size = next((f'B {line["batch"]}, H {line["heads"]}, N {line["seq"]}' for line in lines), DASH)
    rows = [[f'`<{", ".join(map(str, line["tiling"]))}>`' if line["tiling"] else DASH, line["what"], number(line["tflops"]),
             number(line["tflops_causal"])] for line in lines]
    if lines and (dtype := lines[0].get("dtype")):  # the best library's kernel, which did not run in the trials' process
        shape = [rec.Shape(*(lines[0][key] for key in ("batch", "heads", "seq", "seq", "dim")), causal) for causal in (False, True)]
        best = [rec.find(book.records("peers"), f"pytorch_{BEST[dtype][0]}", one, lines[0]["pass"]) for one in shape]
        rows.append([DASH, f"{BEST[dtype][1][5:]}, in another process", *(number(line and line.tflops) for line in best)])
    shown = 4 if any(row[3] != DASH for row in rows) else 3  # under a causal mask some were not tried
    return [f"{size}, d {dim}", "", "TFLOP/s", "causal"][:shown], "llrr"[:shown], [row[:shown] for row in rows]


def forms(book, page, step, dim):
    """Other forms of a kernel, timed in turns with it and PyTorch's in one process (forms.sh), at one d."""
    lines = [line for line in book.lines("trials", "forms") if str(line["dim"]) == dim and line["step"] == step]
    need(lines, f"no form of {step} is recorded at d {dim}")
    causal, size = {line["name"]: line for line in lines if line["causal"]}, lines[0]
    key, peer = ("ratio_to_efficient", "'efficient'") if size["dtype"] == "fp32" else ("ratio_to_flash", "FlashAttention-2")
    rows = [[line["what"], *(cell for one in (line, causal[line["name"]]) for cell in (number(one["tflops"]), f"{one[key]:.2f}"))]
            for line in lines if not line["causal"]]
    heads = [f'B {size["batch"]}, H {size["heads"]}, N {size["seq"]}, d {dim}, {size["dtype"]}', "TFLOP/s", f"of {peer}", "causal", f"of {peer}"]
    if any(line.get("ptxas") for line in lines):
        heads += ["largest error", "bytes of spills"]
        for row, line in zip(rows, (line for line in lines if not line["causal"])):
            row += [f'{line["largest_error"]:.1e}', line["ptxas"][0].split()[-1]] if line["ptxas"] else [DASH, DASH]
    return heads, "l" + "r" * (len(heads) - 1), rows


def alternatives(book, page, step, respect, file="orders", key="step"):
    """Other ways tried by hand, one run each, in one respect: milliseconds, compared with those of the first one."""
    times, size = {}, "B 4, H 16, N 4096"
    for line in book.lines("trials", file):
        if line[key] == step and respect in line:
            times.setdefault(line[respect], {})[line["dim"]] = line["ms"]
            size = line.get("size", size)
    need(times, f"no {file} of {step} are recorded")
    whole = next(iter(times.values()))
    rows = [[what, *(cell for dim, first in whole.items() for cell in (number(ms.get(dim), " ms"), f"{ms[dim] / first * 100:.1f} %" if dim in ms else DASH))]
            for what, ms in times.items()]
    return [size, *(cell for dim in whole for cell in (f"d {dim}", "of the first"))], "l" + "rr" * len(whole), rows


def knockouts(book, page, step):
    """The times of a kernel without one of its parts (knockouts.sh)."""
    return alternatives(book, page, step, "what", "knockouts")


INPUTS = {"random": "ordinary inputs, 4096 keys", "outliers": "outliers, 4096 keys", "sink": "a sink, 4096 keys", "flat": "flat rows, 32768 keys"}
WAYS = {"bf16": "bf16: chapter 12", "tensor": "e4m3, one scale per tensor", "head": "one scale per head", "block": "one scale per 128 rows",
        "hadamard": "Hadamard, one scale per tensor", "hadamard-block": "Hadamard, one scale per 128 rows",
        "one-accumulator": "one scale per tensor, one accumulator for all tiles"}


def error_of(book, way, kind):
    """A recorded error of O on the simulated device, relative to its norm: total, or in bf16 of inputs that are numbers of bf16."""
    lines = [line for line in rec.lines(book.root / "plots/data/trials/sim-accuracy.jsonl") if (line["way"], line["input"]) == (way, kind)]
    return lines[-1] if lines else None


def percent(share):
    return f"{100 * share:#.2g}".rstrip(".")  # two digits: 8.0, 17


def accuracy(book, page):
    """The errors of chapter 16 on the simulated device, in % of O's norm; those that the program's check refuses are marked."""
    rows = [[words, *(percent(line['total']) + ('' if line['ok'] else ' (wrong)') if (line := error_of(book, way, kind)) else DASH for kind in INPUTS)]
            for way, words in WAYS.items()]
    return ["error of O, % of its norm", *INPUTS.values()], "l" + "r" * len(INPUTS), rows


def accuracy_value(book, way, kind):
    """error:WAY:INPUT, or the ratio of two: WAY/WAY."""
    lines = [error_of(book, one, kind) for one in way.split("/")]
    need(all(lines), f"no error of {way} with {kind} is recorded")
    return number(lines[0]["total"] / lines[1]["total"]) if len(lines) == 2 else f"{percent(lines[0]['total'])} %"


def ablations(book, page, rung):
    """The times of a rung without one of its ideas, whose results are right (knockouts.sh)."""
    return alternatives(book, page, rung, "what", "ablations", "rung")


def knockout(book, step, dim, name, what, file="knockouts", key="step"):
    """A number of one kernel of `knockouts` or `ablations`; `what` is less, more, rate or alone (top of tables.py)."""
    lines = {line["what"].rpartition(": ")[2].replace(" ", "-"): line for line in book.lines("trials", file) if (line[key], str(line["dim"])) == (step, dim)}
    need(name in lines, f'no "{name}" of the {file} of {step} is recorded at d {dim}; there are: {", ".join(lines)}')
    line, whole = lines[name], next(iter(lines.values()))["ms"]
    scores = line["batch"] * line["heads"] * line["seq"] ** 2
    cycles = probes.of_card(book)["clock_mma"][1] * 1e6  # in a millisecond
    values = {"less": f"{round(100 * (1 - line['ms'] / whole))} %", "more": f"{round(100 * (line['ms'] / whole - 1))} %", "rate": number((10 if line["pass"] == "bwd" else 4) * scores * line["dim"] / line["ms"] / 1e9),
              "alone": f"{100 * scores / (probes.SMS * 16 * cycles) / whole:.0f} %"}
    need(what in values, f'a knockout\'s "{what}" is not one of {", ".join(values)}')
    return values[what]


ablation = functools.partial(knockout, file="ablations", key="rung")
def devices(book, page, one, *several):
    """A step on one card, and rungs on several, at the lengths at which all but the longest runs were timed; and which part of an equal
    share of the work of `one` each reaches."""
    lines = {(line["step"], line["seq"], line["causal"]): line for line in book.lines("trials", "devices")}
    at = [key[1:] for key in lines if key[0] == one]
    need(at, f"{one} is not recorded beside several devices")
    rows = [[f"{N}" + ", causal" * causal, number(lines[one, N, causal]["ms_median"], " ms"),
             *(cell for step in several for line in [lines.get((step, N, causal))] for cell in (
                 number(line and line["ms_median"], " ms"), DASH if line is None else
                 f'{100 * lines[one, N, causal]["ms_median"] / line["devices"] / line["ms_median"]:.0f} %'))] for N, causal in at]
    size = lines[one, *at[0]]
    return [f'B {size["batch"]}, H {size["heads"]}, d {size["dim"]}, N', f"`{one}`", *(cell for step in several for cell in (f"`{step}`", "of an equal share"))], \
        "lr" + "rr" * len(several), rows


def parallel(book, page, forward, backward):
    """Chapter 17 on several cards beside PyTorch's context parallelism, which alternated with it (time_devices.py)."""
    lines = {(line["pass"], line["step"], line["seq"]): line for line in book.lines("trials", "parallel")}
    pairs = {N: [(lines[way, ours, N], lines[way, "context_parallel", N]) for way, ours in (("fwd", forward), ("bwd", backward))] for _, _, N in lines}
    rows = [[str(N), *(cell for ours, theirs in pair for cell in (number(ours["ms_median"], " ms"), f'{number(theirs["ms_median"], " ms")} ({theirs["idea"].split(", ")[-1]})',
                                                                  f'{theirs["ms_median"] / ours["ms_median"]:.2f}'))] for N, pair in sorted(pairs.items())]
    size = next(iter(lines.values()))
    return [f'{size["devices"]} cards, B {size["batch"]}, H {size["heads"]}, d {size["dim"]}, causal, N', *(cell for step in (forward, backward) for cell in (f"`{step}`", "PyTorch", "ratio"))], \
        "lrrrrrr", rows


def on_devices(book, rung):
    """Where a rung of chapter 17 stands."""
    line = next(line for line in book.lines("trials", "devices") if (line["step"], line["seq"], line["causal"]) == (rung, 32768, True))
    return f'{number(line["tflops"])} TFLOP/s on {line["devices"]} cards at N 32768 and d 128, causal'


DECODING = "B8,H32,G8,N1,M65536", "B8,H32,N1,d128,M16384,G8"  # where chapter 14's rungs stand: the size of their times, and of their counters
DECODED = ("14a_one_block", "14b_split", "14c_group")


def decoded(book, size):
    """The lines of time_decode.py at a size like B8,H32,G8,N1,M4096, by their steps."""
    keys = dict(zip(("batch", "heads", "heads_kv", "seq", "seq_kv"), re.findall(r"[A-Z](\d+)", size), strict=True))
    lines = [line for line in book.lines("trials", "decode") if all(str(line[key]) == value for key, value in keys.items())]
    return {line["step"] + (f",P{line['page_size']}" if line.get("page_size") else ""): line for line in lines}


def of_sizes(book, sizes, step, heads, cells):
    """A table of decoding: of each size the cells of its lines, among which those of the step must be."""
    rows = []
    for size in sizes:
        lines, (B, H, G, N, M) = decoded(book, size), re.findall(r"\d+", size)
        need(step in lines, f"no {step} is recorded at {size}")
        rows.append([B, f"{H} on {G}", N, M, *cells(lines)])
    return ["sequences", "heads", "queries", "keys", *heads], "l" * 4 + "r" * len(heads), rows


def decode(book, page, *sizes):
    """Decoding: milliseconds of the rungs, and of the last one what part of a copy's bytes per second it reaches, and of PyTorch's kernels."""
    return of_sizes(book, sizes, DECODED[-1], [*(f"`{step}`" for step in DECODED), "of a copy", "of cuDNN", "of FlashAttention-2"], lambda lines: [
        *(number(lines[step]["ms_median"], " ms") for step in DECODED),
        *(number(lines[DECODED[-1]][beside]) for beside in ("share_of_copy", "ratio_to_cudnn", "ratio_to_flash"))])


def decode_value(book, step, size, beside):
    """What part of a copy's rate a step reaches, or of cuDNN's or FlashAttention-2's: `beside` is copy, cudnn or flash."""
    lines = decoded(book, size)
    need(step in lines, f"no {step} is recorded at {size}")
    return number(lines[step]["share_of_copy" if beside == "copy" else f"ratio_to_{beside}"])


def pages(book, page, *sizes):
    """Decoding from pages: what part of a copy's rate 14_decode reaches on contiguous keys and on pages of 16, 64 and 256."""
    return of_sizes(book, sizes, "14_decode", ["contiguous", "pages of 16", "pages of 64", "pages of 256"], lambda lines: [
        number(lines[name]["share_of_copy"]) if (name := f"14_decode{more}") in lines else DASH for more in ("", ",P16", ",P64", ",P256")])


def regret(book, what):
    """How much longer the rule's number of splits takes than the best of those that were tried, over the recorded shapes: mean, median,
    p95 or max in %, `within` (shapes at most 5 % slower) or `shapes`. With `-beyond-one` behind it: where one of the two is not 1."""
    lines, what = book.lines("trials", "splits"), what.removesuffix(beyond := "-beyond-one" * what.endswith("-beyond-one"))
    lines = [line for line in lines if not beyond or line["rule"] != 1 or min(line["ms"], key=line["ms"].get) != "1"]
    regrets = sorted(line["ms"][str(line["rule"])] / min(line["ms"].values()) - 1.0 for line in lines)
    need(regrets, "no splits are recorded")
    values = {"mean": sum(regrets) / len(regrets), "median": regrets[len(regrets) // 2], "p95": regrets[-(-19 * len(regrets) // 20) - 1], "max": regrets[-1]}
    counts = {"within": sum(value <= 0.05 for value in regrets), "shapes": len(regrets)}
    need(what in values or what in counts, f'"{what}" is none of {", ".join((*values, *counts))}')
    return str(counts[what]) if what in counts else f"{100 * values[what]:.1f} %"


VARIANTS = {"plain": "plain", "window": "window of 1024", "packed": "packed, 16 of 1024", "drawn": "packed, drawn lengths", "softcap": "softcap 30",
            "alibi": "ALiBi", "dropout": "dropout 0.1", "rotary-interleaved": "rotary interleaved", "rotary-halved": "rotary halved",
            "groups": "8 heads per group"}


def variant_line(book, step, what, pass_, dim, causal):
    need(what in VARIANTS and causal in ("causal", "full"), f'"{what}:{causal}" is no case; there are {", ".join(VARIANTS)}, causal and full')
    fit = lambda line: (line["step"], line["what"], line["pass"], str(line["dim"]), line["causal"]) == (step, VARIANTS[what], pass_, dim, causal == "causal")
    return next((line for line in book.lines("trials", "variants") if fit(line)), None)


def variant_value(book, *case):
    """The time of what a rung of chapter 15 is compared with (time_variants.py), divided by its own."""
    line = variant_line(book, *case)
    need(line, f"{':'.join(case)} is not recorded")
    return number(line["ratio"])


def variants(book, page, pass_, *cases):
    """The same as a table; a case is STEP:WHAT."""
    rows = []
    for case in cases:
        step, what = case.split(":")
        cells = [variant_line(book, step, what, pass_, dim, causal) for dim in ("64", "128") for causal in ("full", "causal")]
        need(all(cells), f"{case} is not recorded in the {pass_} pass")
        rows.append([f"`{step}`", VARIANTS[what], " ".join(cells[0]["beside"]).replace("_", " "), *(number(line["ratio"]) for line in cells)])
    return ["rung", "what", "beside", "d 64", "d 64, causal", "d 128", "d 128, causal"], "lllrrrr", rows
