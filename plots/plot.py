#!/usr/bin/env python3
"""Draws the measurements: latency by step, by rung of a chapter and by sequence length; the bounds of rungs; memory; traffic;
the roofline.

    plot.py                                  the committed pictures, from plots/data
    plot.py --results FILE --out FOLDER      those that one's own measurements are enough for
    plot.py --check                          are the committed pictures up to date? (needs no matplotlib)

A picture shows one card, which it names: of those in plots/data, the one that was measured last.
"""

import argparse
import functools
import math
import os
import sys
from collections import defaultdict
from pathlib import Path

import causes
import probes
import provenance
import records as rec
import style
import tables
from provenance import ROOT

PASSES = {"fwd": "forward", "bwd": "backward"}
METERED = "--batch 1 --heads 2 --seq 256 --dim 64"  # the run of each step that shows its traffic

# Ceilings of the cards that were counted: TB/s of device memory; per width of the inputs the peak in TFLOP/s, both from
# NVIDIA's datasheets. What less than the peak bounds these kernels: FMAs of a register tile and mma.sync, both measured.
CARDS = {"NVIDIA H200": 4.8, "NVIDIA H100 80GB HBM3": 3.35}
PEAKS = {32: ("CUDA cores, FP32", 66.9), 16: ("16-bit tensor cores", 989)}
BOOK = tables.Book(ROOT)
CONSTANTS = {name: value for name, (_, value, _) in probes.of_card(BOOK).items()}
MEASURED = {32: ("FMAs alone, measured", round(CONSTANTS["fma"], 1)),
            16: ("mma.sync alone, measured", round(CONSTANTS["mma"]))}
LENGTH, HEADS = 1024, 4 * 16  # the runs that a roofline shows; each of d 64, and d 128 where steps of 16 bits are drawn
COUNTED = "--batch 4 --heads 16 --seq 1024 --dim"


# ---- what to draw: no matplotlib here -----------------------------------------------------------------------------


def newest_card(records):
    """The records of one card: numbers of two do not belong in one picture."""
    _, newest = max(((record.details.get("date") or "", number) for number, record in enumerate(records)), default=("", None))
    return [record for record in records if record.device == records[newest].device]


def family(shape):
    """Everything but the length, which varies along a picture's axis."""
    return shape.batch, shape.heads, shape.dim, shape.causal


def name(record):
    """Of a step in a picture: the data type beside it where it is not fp32."""
    dtype = record.details.get("dtype", "fp32")
    return record.step + (f" ({dtype})" if dtype != "fp32" else "")


def by_step(records, title):
    """Latency at the size that most steps were measured at; among such the one that the book quotes, else the largest."""
    steps_at = defaultdict(set)
    for record in records:
        steps_at[record.shape].add(record.step)
    work = lambda shape: shape.batch * shape.heads * shape.seq * shape.seq_kv * shape.dim
    shape = max(steps_at, key=lambda shape: (len(steps_at[shape]), shape == rec.QUOTED, work(shape)), default=None)
    last = {name(record): record.ms for record in records if record.shape == shape}  # a later line replaces an earlier one
    if len(last) < 2:
        return None
    dtypes = {label.partition(" (")[2] for label in last}
    common = dtypes.pop() if len(dtypes) == 1 else ""  # of all of them: stands once, in the title
    last = {label.removesuffix(f" ({common}"): ms for label, ms in last.items()}
    shown = f", {common[:-1]}" if common else ""
    return {"title": f"{title}\n{records[0].device}, {shape}{shown}", "points": sorted(last.items(), key=lambda point: (point[0][:2], point[0][2] == "_", point))}


def by_length(records, title, value):
    """{step: [(N, value), ...]} of the square problems that were measured at most lengths, preferably the book's."""
    records, lengths = [record for record in records if record.shape.seq == record.shape.seq_kv], defaultdict(set)
    for record in records:
        lengths[family(record.shape)].add(record.shape.seq)
    chosen = max(lengths, key=lambda key: (len(lengths[key]), key == family(rec.QUOTED), key), default=None)
    if chosen is None or len(lengths[chosen]) < 2:
        return None
    lines = defaultdict(dict)
    for record in records:
        if family(record.shape) == chosen and value(record) is not None:
            lines[name(record)][record.shape.seq] = value(record)
    batch, heads, dim, causal = chosen
    where = f"{records[0].device}, B {batch}, H {heads}, d {dim}" + (", causal" if causal else "")
    return {"title": f"{title}\n{where}", "lengths": sorted(lengths[chosen]), "family": chosen,
            "lines": {step: sorted(points.items()) for step, points in sorted(lines.items())}}


def least_bytes(batch, heads, length, dim, backward, element=4):
    """Q K V O in elements of so many bytes and L in fp32, each once; the backward pass adds dO dQ dK dV."""
    return batch * heads * length * (element * (8 if backward else 4) * dim + 4)


def memory(records, title, pass_):
    facts = by_length(records, title, lambda record: record.workspace)
    if facts is not None:
        batch, heads, dim, _ = facts["family"]
        facts["ideal"] = [(N, least_bytes(batch, heads, N, dim, pass_ == "bwd")) for N in facts["lengths"]]
        shared = set.intersection(*({N for N, _ in points} for points in facts["lines"].values()))
        groups = defaultdict(dict)  # steps that agree wherever all were measured: two lines on each other look like one
        for step, points in facts["lines"].items():
            groups[tuple(value for N, value in points if N in shared)][step] = points
        facts["lines"] = {", ".join(step.split("_")[0] if len(steps) > 2 else step for step in steps): max(steps.values(), key=len)
                          for steps in groups.values()}
    return facts


def traffic(records):
    """Per timed step: bytes in the sectors of all its requests to global memory, and the least that the definition needs."""
    backward = {record.step for record in records if record.pass_ == "bwd"}
    names = {record.step: name(record) for record in records}
    (b, h, n, d), found = map(int, METERED.split()[1::2]), {}
    for run in BOOK.meters:
        if run["options"] == METERED and run["step"] in names and rec.is_chapter(run["step"]):
            sectors = sum(access.get("sectors", 0) for kernel in run["meter"] for access in kernel["lines"])
            shown = names[run["step"]]
            found[run["step"]] = shown, 32 * sectors, least_bytes(b, h, n, d, run["step"] in backward, 2 if "(" in shown else 4)
    return {"title": f"Bytes that each step requests from global memory\nB {b}, H {h}, N {n}, d {d}", "points": sorted(found.values())}


def roofline(bits, steps):
    """Points [step, d, FLOPs per byte of device memory, TFLOP/s] of steps {step: pass}, and the card's ceilings. Bytes and
    time are what Nsight Compute counted (record.py counters), summed over a step's kernels. FLOPs are those of the
    definition, 4 B H N^2 d forward and 2.5 times that backward, so a step that computes something twice gets no credit for
    it. A part of what a kernel stores last is in the L2 cache when it ends. The counter does not see these bytes, which
    memory must still take: a step is charged for the writing of all its outputs. So no point lies right of the line of its
    pass."""
    points, least, card = [], {}, BOOK.records()[-1].device
    for step, pass_ in sorted(steps.items()):
        for dim in (64, 128) if bits == 16 else (64,):
            kernels = [kernel["counters"] for kernel in BOOK.counters(step, f"{COUNTED} {dim}")]
            total = lambda name: sum(kernel[name] for kernel in kernels)
            flops = 4.0 * HEADS * LENGTH**2 * dim * (2.5 if pass_ == "bwd" else 1.0)
            outputs = HEADS * LENGTH * (3 * dim * bits // 8 if pass_ == "bwd" else dim * bits // 8 + 4)
            if kernels and rec.is_chapter(step):
                least.setdefault(pass_, flops / least_bytes(1, HEADS, LENGTH, dim, pass_ == "bwd", bits // 8))
                moved = total("dram__bytes_read.sum") + max(outputs, total("dram__bytes_write.sum"))
                points.append([step, dim, flops / moved, flops / total("gpu__time_duration.sum") * 1e-3])
                assert points[-1][2] < 1.01 * least[pass_], f"{step} moves fewer bytes than its inputs and outputs have"
    return {"card": (card, CARDS[card]), "ceilings": [*PEAKS[bits], MEASURED[bits]], "points": points, "least": least,
            "passes": steps} if points else None


def bounds(chapter):
    """Points [rung, microseconds, {unit: share of them in which it works}] of the rungs on a chapter's chain, by the counters of
    each rung's longest kernel. All shares are of the time of that run, with its launch and with SMs that have no block. The
    counters give the data path's so. For the others cycles are needed, and the clock of that run is not recorded: it is taken
    to be the clock of the loop of FMAs or of mma.sync. An FMA takes as long as one that shares a factor with the FMA before, an
    mma.sync as long as in a loop of independent ones."""
    points = []
    for rung in BOOK.chain(chapter)[0]:
        counted = causes.longest_kernel(BOOK, rung, rec.options_of(causes.COUNTERS_AT))
        if not counted:
            return None
        products = counted[causes.HMMA] > 0.01 * counted[causes.ISSUED]  # the card counts a few in kernels that have none
        cycles = counted[causes.TIME] * CONSTANTS["clock_mma" if products else "clock_fma"] * probes.SMS
        share = {"data path of L1 and shared memory": causes.counter(counted, "data_pipe_lsu_wavefronts.sum") / 100,
                 "issue slots of all SMs": counted[causes.ISSUED] / probes.SCHEDULERS / cycles}
        if causes.BUSY in counted:  # a wgmma is one instruction of many sizes, so its cycles are counted instead
            share["tensor cores (100 %: products in each cycle)"] = counted[causes.BUSY] / 100
        elif products:
            share[f"tensor cores (100 %: mma.sync alone, {CONSTANTS['mma']:.0f}e12 FLOP/s)"] = counted[causes.HMMA] * CONSTANTS["mma_cycles"] / cycles
        else:
            share[f"FMA units (100 %: FMAs alone, {CONSTANTS['fma']:.0f}e12 FLOP/s)"] = counted[causes.FFMA] / probes.SCHEDULERS / probes.LANES * CONSTANTS["peak"] / CONSTANTS["fma"] / cycles
        assert max(share.values()) < 1, f"{rung} is faster than one of its units: a constant or a count is wrong"
        points.append([rung, counted[causes.TIME] / 1000, share])
    size = f"{rec.parse_size(causes.COUNTERS_AT)[0]}, {'bf16' if products else 'fp32'}"
    words = PASSES["bwd" if chapter in ("09", "11", "13") else "fwd"]
    first, last = ({unit.partition(" (")[0].partition(" of ")[0]: round(100 * of) for unit, of in share.items()} for _, _, share in (points[0], points[-1]))
    at = [", ".join(unit for unit in of if of[unit] >= max(of.values()) - 2) for of in (first, last)]
    finding = f"Busiest: {at[0]} {max(first.values())} %, at last {at[1] if at[1] != at[0] else ''} {max(last.values())} %".replace("  ", " ")
    title = f"{finding}\n{words[0].upper()}{words[1:]}, {BOOK.records()[-1].device}, {size}"
    return {"title": title, "points": points} if len(points) > 2 else None


def bytes_label(value):
    unit = max(0, min(4, int(math.log2(max(value, 1)) // 10)))
    return f"{value / 1024**unit:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


# ---- drawing --------------------------------------------------------------------------------------------------------


WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # behind words that stand on lines


def plain_ticks(axis):
    """1, 10, 100 instead of powers of ten, with 2 and 5 between where a decade or two is all there is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if math.log10(high / low) < 2.5 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def write(axes, x, y, text, dx, dy=0, **more):
    """Beside a point, by so many 1/72 inches."""
    axes.annotate(text, (x, y), xytext=(dx, dy), textcoords="offset points", **{"va": "center"} | more)


def draw_dots(facts, label, words):
    """A dot per step on a logarithmic axis, its value beside it. points: [step, value] or [step, value, least possible]."""
    points, mark = facts["points"], None
    fig, axes = style.figure(height=1.8 + 0.38 * len(points))
    for row, (step, value, *least) in enumerate(points):
        axes.plot(value, row, **style.looks(step), markersize=9, clip_on=False)
        write(axes, value, row, label(value), 9, bbox=WHITE)
        for low in least:
            mark, = axes.plot([low] * 2, [row - 0.4, row + 0.4], color=style.INK, linewidth=2)
    low, high = min(point[-1] for point in points), max(point[1] for point in points)
    axes.set_yticks(range(len(points)), [point[0] for point in points])
    axes.set(xscale="log", xlim=(low / 1.8, high * (high / low * 1.8) ** 0.17), xlabel=words, title=facts["title"],
             ylim=(len(points) + (0.5 if mark else -0.4), -0.6))  # the first step on top, below the last one the legend
    axes.tick_params(axis="y", length=0)
    axes.grid()
    plain_ticks(axes.xaxis)
    if mark is not None:
        axes.legend([mark], ["each input read once, each output written once"], loc="lower right", edgecolor="white", fontsize=9.5)
        axes.set_xticks([2**power for power in range(18, 31, 3) if low / 1.8 < 2**power])
        axes.xaxis.set_major_formatter(lambda value, _: bytes_label(value))
    return fig


def draw_bounds(facts):
    """A bar per rung and unit: the share of the kernel's time in which it is busy. Two points are within the clock's error."""
    points = facts["points"]
    fig, axes = style.figure(height=3.0 + 0.5 * len(points))
    for row, (_, time, share) in enumerate(points):
        for at, (value, colour) in enumerate(zip(share.values(), style.PALETTE[1:])):
            y = row + 0.27 * (at - 1)
            axes.barh(y, 100 * value, height=0.25, color=colour)
            write(axes, 100 * value, y, f"{100 * value:.0f}", 4, fontsize=9, weight="bold" if round(100 * value) >= round(100 * max(share.values())) - 2 else "normal")
        write(axes, 100, row, f"{time:.0f} µs", 12, annotation_clip=False)
    axes.set_yticks(range(len(points)), [point[0] for point in points])
    write(axes, 100, -0.62, "time", 12, fontsize=9, annotation_clip=False)
    axes.set(xlim=(0, 100), ylim=(len(points) - 0.4, -0.6), title=facts["title"], xlabel="% of the unit's own peak; bold: the busiest, and what comes within 2 of it")
    handles = [axes.barh(0, 0, color=colour) for _, colour in zip(points[0][2], style.PALETTE[1:])]
    axes.legend(handles, list(points[0][2]), loc="upper center", bbox_to_anchor=(0.42, -0.9 / len(points)), ncol=1,
                frameon=False)
    axes.tick_params(axis="y", length=0)
    return fig


def draw_lines(facts, words):
    """Lines over the sequence length; the legend lists them from the highest to the lowest."""
    fig, axes = style.figure()
    none = None  # where "none" goes, for which a logarithmic axis has no place
    lines = facts["lines"]
    if "ideal" in facts:
        drawn = [value for points in [*lines.values(), facts["ideal"]] for _, value in points if value > 0]
        none = 2.0 ** math.floor(math.log2(min(drawn)) - 2)
        axes.plot(*zip(*facts["ideal"]), color=style.GREY, linewidth=2.2, zorder=1, label="inputs and outputs, fp32")
    common = max((N for N in facts["lengths"] if all(N in dict(points) for points in lines.values())), default=None)
    for step, points in sorted(lines.items(), key=lambda line: -dict(line[1]).get(common, line[1][-1][1])):
        axes.plot([N for N, _ in points], [value or none for _, value in points], **style.looks(step), label=step,
                  linewidth=2.2, markersize=6.5, clip_on=False, zorder=3)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2 if none else 10)
    axes.set_xticks(facts["lengths"], [str(length) for length in facts["lengths"]])
    axes.minorticks_off()
    if none:
        exponents = range(int(math.log2(none)) + 2, math.ceil(math.log2(max(drawn))) + 1)
        ticks = [2.0**exponent for exponent in exponents if exponent % max(1, math.ceil(len(exponents) / 7)) == 0]
        axes.set_yticks([none] + ticks, ["none"] + [bytes_label(tick) for tick in ticks])
        axes.set_ylim(bottom=none / 2)
    else:
        plain_ticks(axes.yaxis)
    last = "the last length measured" + " for one of its steps" * (words == "bytes")
    axes.set(xlabel=f"sequence length N, rows\n(a line ends at {last})", ylabel=f"{words}, logarithmic", title=facts["title"])
    axes.grid()
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=10)
    return fig


def draw_roofline(facts):
    """Everything is named where it stands; a line of least bytes has the colour of its pass's step where there are two."""
    (card, bandwidth), (unit, peak, less), least = facts["card"], facts["ceilings"], facts["least"]
    ridge, both = peak / bandwidth, len(least) > 1
    points = sorted(facts["points"], key=lambda point: -point[3])
    intensities = [*least.values(), ridge] + [point[2] for point in points]
    left, right, margin = min(intensities) / 3, max(intensities) * (2.6 if both else 4), (peak / points[-1][3]) ** 0.14
    fig, axes = style.figure(height=5.0)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(points[-1][3] / margin, peak * margin))
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid()
    words = "steps in 16 bits" if both else f"{PASSES[next(iter(least))]} steps in fp32"
    axes.set(xlabel="FLOPs per byte of device memory, logarithmic", ylabel="TFLOP/s, logarithmic",
             title=f"What the {words} attain, and what bounds them\n{card}, B 4, H 16, N {LENGTH}" + ", d 64" * (not both))
    fig.get_layout_engine().execute(fig)  # the axes have their size, and the slope its angle

    label = functools.partial(write, axes, bbox=WHITE, fontsize=10, zorder=3)
    axes.plot([left, ridge, right], [left * bandwidth, peak, peak], color=style.INK, linewidth=1.8)
    label(right, peak, f"{peak} TFLOP/s: {unit}", -2, 4, ha="right", va="bottom")
    (x0, y0), (x1, y1) = axes.transData.transform([(left, left * bandwidth), (ridge, peak)])
    middle = math.sqrt(left * ridge)
    label(middle, middle * bandwidth, f"{bandwidth} TB/s of memory", -5, 5, ha="center", rotation_mode="anchor",
          rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)))
    axes.plot([less[1] / bandwidth, right], [less[1]] * 2, color=style.GREY, linewidth=1.8, linestyle="--")
    label(less[1] / bandwidth, less[1], f"{less[1]}: {less[0]}", 8, -4, va="top")
    for n, (pass_, at) in enumerate(sorted(least.items(), key=lambda line: line[1])):
        steps = [step for step, *_ in points if facts["passes"][step] == pass_]
        color = style.looks(steps[0])["color"] if both else style.GREY
        axes.axvline(at, color=color, linewidth=1.4, linestyle=":", zorder=1)
        before = both and not n
        text = f"{PASSES[pass_]}: least bytes\n(each array moved once)" if both else "least bytes:\nnothing lies\nright of here"
        label(at, math.sqrt(peak * less[1]) if both else axes.get_ylim()[0] * margin, text, -6 if before else 6, 0,
              ha="right" if before else "left")
    for step, dim, intensity, rate in points:
        looks = style.looks(step) | ({"markerfacecolor": "white", "markeredgewidth": 2} if dim == 128 else {})
        axes.plot(intensity, rate, **looks, markersize=9, zorder=4, linestyle="none")
        # The label stands left of a mark before a line of least bytes, but the two passes' labels on two sides.
        ahead = 3 * intensity > min(least.values()) and not (both and facts["passes"][step] == "fwd")
        # Where an earlier chapter's mark is as high, within 3 %, its label has the other side.
        ahead ^= both and any(other < step and abs(math.log(rate / theirs)) < 0.03 for other, _, _, theirs in points)
        label(intensity, rate, f"{step[:2]}" + (f", d {dim}: {rate:.0f}" if both else f": {rate:.2g} TFLOP/s"), -9 if ahead else 9,
              (3 if dim == 128 else -3) if both else 0, ha="right" if ahead else "left")
    return fig


def listed(records, rungs):
    """{name: (facts or None, draw)} of the pictures of these records: of chapters, and of their rungs."""
    axis, found = "milliseconds, logarithmic (further left is faster)", {}
    dots = lambda facts: draw_dots(facts, lambda ms: rec.number(ms, " ms"), axis)
    for pass_, words in PASSES.items():
        timed = [record for record in records if record.pass_ == pass_ and record.ms]
        steps = [record for record in timed if rec.is_chapter(record.step)]
        one_head = [record for record in steps if family(record.shape) == (1, 1, rec.QUOTED.dim, False)]
        found[f"latency_by_step_{pass_}"] = by_step(steps, f"Latency of the {words} pass"), dots
        found[f"latency_by_length_{pass_}"] = (by_length(steps, f"Latency of the {words} pass", lambda record: record.ms),
                                               lambda facts: draw_lines(facts, "milliseconds"))
        for kind, mine in (("memory_by_length", steps), ("memory_one_head", one_head)):
            found[f"{kind}_{pass_}"] = (memory(mine, f"Memory beyond inputs and outputs, {words} pass", pass_),
                                        lambda facts: draw_lines(facts, "bytes"))
        climbed = [record for record in rungs if record.pass_ == pass_ and record.ms]
        for chapter in sorted({record.step[:2] for record in climbed}):
            mine = [record for record in climbed if record.step.startswith(chapter) and record.step[2] != "x"]  # those on the chain
            if len({record.step for record in mine}) > 2:
                found[f"climb_{chapter}"] = by_step(mine, f"Latency of the rungs of chapter {chapter}"), dots
    return found


def main():
    parser = argparse.ArgumentParser(description="Draws the measurements.")
    parser.add_argument("--results", type=Path, help="JSON lines measured here, drawn instead of plots/data when a card wrote them")
    parser.add_argument("--out", type=Path, default=ROOT / "plots" / "pictures", help="default: plots/pictures")
    parser.add_argument("--check", action="store_true", help="draw nothing; name pictures missing or out of date")
    arguments = parser.parse_args()
    try:
        own = rec.read([arguments.results]) if arguments.results else []
    except (rec.BadRecord, OSError) as error:
        sys.exit(f"plot.py: {error}")
    records, rungs = (newest_card(own or BOOK.records(kind)) for kind in ("latency", "rungs"))
    chosen = listed(records, rungs)
    if not own:
        for chapter in sorted({record.step[:2] for record in rungs} & {step[:2] for step in rec.rungs(ROOT)}):
            chosen[f"bounds_{chapter}"] = bounds(chapter), draw_bounds
        chosen["traffic_by_step"] = traffic(records), lambda facts: draw_dots(facts, bytes_label, "bytes, logarithmic")
        for pass_ in PASSES:
            own_of = {r.step: pass_ for r in records if r.pass_ == pass_ and name(r) == r.step}
            chosen[f"roofline_{pass_}"] = roofline(32, own_of), draw_roofline
        of_16_bits = {r.step: r.pass_ for r in records if r.pass_ in PASSES and name(r) != r.step}
        chosen["roofline_16bit"] = roofline(16, of_16_bits), draw_roofline
    pictures = [provenance.Picture(arguments.out / f"{name}.png", [__file__], facts, draw)
                for name, (facts, draw) in chosen.items() if facts is not None]
    orphans = sorted({*arguments.out.glob("*.png")} - {picture.path for picture in pictures}) if arguments.check else []
    for path in orphans:
        print(f"{os.path.relpath(path)}: drawn from measurements that are gone", file=sys.stderr)
    sys.exit(1 if orphans else provenance.update(pictures, arguments.check))


if __name__ == "__main__":
    main()
