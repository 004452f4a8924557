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
import re
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
PEERS = {"pytorch_efficient": "PyTorch 'efficient'", "pytorch_flash": "FlashAttention-2", "pytorch_cudnn": "cuDNN", "fa4": "FlashAttention-4"}
METERED = "--batch 1 --heads 2 --seq 256 --dim 64"  # the run of each step that shows its traffic

# Ceilings of the cards that were counted: TB/s of device memory; per width of the inputs the peak in TFLOP/s, both from
# NVIDIA's datasheets. What less than the peak bounds these kernels: FMAs of a register tile and mma.sync, both measured.
CARDS = {"NVIDIA H200": 4.8, "NVIDIA H100 80GB HBM3": 3.35}
PEAKS = {32: ("CUDA cores, FP32", 66.9), 16: ("16-bit tensor cores", 989), 8: ("8-bit tensor cores", 1979)}
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


def by_step(records, peers, words, unit):
    """Latency at the size that most steps were measured at; among such the one that the book quotes, else the largest. A row is
    [name, milliseconds, None, is it a peer?]: by data type first the steps, then the peers."""
    steps_at = defaultdict(set)
    for record in records:
        steps_at[record.shape].add(record.step)
    work = lambda shape: shape.batch * shape.heads * shape.seq * shape.seq_kv * shape.dim
    shape = max(steps_at, key=lambda shape: (len(steps_at[shape]), shape == rec.QUOTED, work(shape)), default=None)
    last = {}  # a later line replaces an earlier one
    for record in [*records, *peers]:
        is_peer = record.step in PEERS
        if record.shape == shape:
            order = -record.ms if is_peer else (record.step[:2], record.step[2] == "_", record.step)
            last[record.details.get("dtype", "fp32"), is_peer, record.step] = order, PEERS.get(record.step, record.step), record.ms
    if sum(not is_peer for _, is_peer, _ in last) < 2:
        return None
    dtypes = sorted({dtype for dtype, is_peer, _ in last if not is_peer}, key=list(rec.BEST).index)
    rows = [[called + f", {dtype}" * (len(dtypes) > 1), ms, None, kind] for dtype in dtypes for kind in (False, True)
            for _, called, ms in sorted(row for (of, is_peer, _), row in last.items() if (of, is_peer) == (dtype, kind))]
    where = f"{records[0].device}, {shape}" + f", {dtypes[0]}" * (len(dtypes) == 1)
    ours = [row for row in rows if not row[3]]
    ends = (f"{rec.number(ms, ' ms')} in {unit} {step.partition('_')[0]}" for step, ms, *_ in (ours[0], ours[-1]))
    return {"title": f"{words}: {', '.join(ends)}\n{where}", "points": rows}


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
    """Q K V O in elements of so many bytes and L in fp32, each once; the backward pass adds dO dQ dK dV. In eight bits O has 16."""
    return batch * heads * length * ((element * (8 if backward else 4) + (element == 1)) * dim + 4)


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
            # By the totals, for what the TMA copies belongs to no line.
            sectors = sum(count for kernel in run["meter"] for key, count in kernel["totals"].items() if re.fullmatch("global_.*_sectors", key))
            element = 5 / 4 if "(fp8)" in names[run["step"]] else 2 if "(" in names[run["step"]] else 4  # fp8: Q, K, V of one byte, O of two
            least = int(least_bytes(b, h, n, d, run["step"] in backward, element))
            assert 32 * sectors >= least, f"{run['step']} requests fewer bytes than its inputs and outputs have: a count is missing"
            found[run["step"]] = [names[run["step"]], 32 * sectors, least, False]
    points = sorted(found.values())
    first, last = (times_least(*next(point for point in points if point[0].startswith(step))[1:3]) for step in ("01", "06"))
    return {"title": f"Bytes requested: {first} times the least in chapter 01, {last} times in 06\nFrom global memory, "
                     f"B {b}, H {h}, N {n}, d {d}; counted by the simulated device", "points": points}


def times_least(value, least):
    return f"{value / least:.{int(value < 10 * least)}f}"


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
    at = [" and ".join(unit for unit in of if of[unit] >= max(of.values()) - 2) for of in (first, last)]
    finding = f"Busiest: first {at[0]} ({max(first.values())} %), at last {at[1]} ({max(last.values())} %)"
    title = f"{finding}\n{words[0].upper()}{words[1:]}, {BOOK.records()[-1].device}, {size}"
    return {"title": title, "points": points} if len(points) > 2 else None


def bytes_label(value):
    unit = max(0, min(4, int(math.log2(max(value, 1)) // 10)))
    return f"{value / 1024**unit:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


# ---- drawing --------------------------------------------------------------------------------------------------------


DARK = "#595959"  # what is compared with, in words
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


def framed(facts, height, **axes_properties):
    """A row per point; the title has the whole width."""
    fig, axes = style.figure(height=height)
    fig.suptitle(facts["title"], x=0.01, ha="left", fontsize=13, weight="bold")
    axes.set_yticks(range(len(facts["points"])), [point[0] for point in facts["points"]])
    axes.set(**axes_properties)
    axes.tick_params(axis="y", length=0)
    return fig, axes


def draw_dots(facts, label, words):
    """A mark per row on a logarithmic axis, its value beside it; a line leads to it from the least possible."""
    points, with_least = facts["points"], any(point[2] for point in facts["points"])
    low, high = min(point[2] or point[1] for point in points), max(point[1] for point in points)
    fig, axes = framed(facts, 1.6 + 0.4 * len(points), xscale="log", xlim=(low / 1.6, high * (high / low * 1.8) ** (0.3 if with_least else 0.17)),
                       xlabel=words, ylim=(len(points) - 0.4, -1.2 if with_least else -0.6))
    for row, (step, value, least, is_peer) in enumerate(points):
        looks = {"color": DARK, "marker": "d", "markerfacecolor": "white", "markeredgewidth": 2} if is_peer else style.looks(step)
        axes.plot(value, row, **looks, markersize=10, clip_on=False, zorder=4)
        color = DARK if is_peer else style.INK
        write(axes, value, row, label(value) + (f" ({times_least(value, least)}x)" if least else ""), 10, bbox=WHITE, color=color)
        axes.get_yticklabels()[row].set_color(color)
        if least:
            axes.plot([least, value], [row] * 2, color=looks["color"], linewidth=2.5, alpha=0.5)
            axes.plot([least] * 2, [row - 0.35, row + 0.35], color=style.INK, linewidth=2.5)
    axes.grid(axis="x")
    plain_ticks(axes.xaxis)
    if with_least:
        write(axes, points[0][2], -0.8, "the least: each input read once, each output written once", -3, ha="left", fontsize=10, bbox=WHITE)
        axes.set_xticks([2**power for power in range(18, 31, 3) if low / 1.6 < 2**power])
        axes.xaxis.set_major_formatter(lambda value, _: bytes_label(value))
    return fig


def draw_climb(facts):
    """A bar per rung and peer; a rung's is compared with that of the rung before."""
    points, before = facts["points"], None
    fig, axes = framed(facts, 1.5 + 0.4 * len(points), xlim=(0, 1.32 * max(ms for _, ms, *_ in points)), ylim=(len(points) - 0.5, -0.6),
                       xlabel="milliseconds; in brackets: compared with the rung before")
    for row, (_, ms, _, is_peer) in enumerate(points):
        ratio = 1 if is_peer or not before else before / ms
        change = f" ({ratio:.2f}x faster)" if ratio >= 1.005 else f" ({1 / ratio:.2f}x slower)" if ratio <= 0.995 else " (the same)"
        axes.barh(row, ms, height=0.72, color=style.GREY if is_peer else style.PALETTE[3] if ratio <= 0.995 else style.PALETTE[0])
        write(axes, ms, row, rec.number(ms, " ms") + change * bool(before and not is_peer), 5)
        axes.get_yticklabels()[row].set_color(DARK if is_peer else style.INK)
        before = ms
    return fig


def draw_bounds(facts):
    """A line per unit down the rungs: the share of a kernel's time in which it is busy. Two points are within the clock's error."""
    points, looks = facts["points"], [(style.PALETTE[0], "o"), (style.PALETTE[3], "s"), (style.PALETTE[2], "^")]
    notes = [unit.partition(" (100 %: ")[::2] for unit in points[0][2] if "(100 %" in unit]
    fig, axes = framed(facts, 2.9 + 0.4 * len(points), xlim=(0, 100), ylim=(len(points) - 0.4, -2.4), xlabel="% of the time in which each unit works"
                       + "".join(f"\n(100 % of the {unit}: {what}" for unit, what in notes))
    to_the_right = max(points[0][2].values()) < 0.5  # where words stand, so that no line to other words crosses them
    order = sorted(points[0][2], key=points[0][2].get, reverse=to_the_right)
    for (color, marker), unit in zip(looks, points[0][2]):
        shares, y = [100 * share[unit] for *_, share in points], -0.7 - 0.6 * order.index(unit)
        axes.plot([shares[0], *shares], [y, *range(len(points))], color=color, marker=marker, markevery=slice(1, None), linewidth=2.5,
                  markersize=8, zorder=4)
        write(axes, shares[0], y, unit.partition(" (")[0], 5 if to_the_right else -5, ha="left" if to_the_right else "right", color=color,
              weight="bold", bbox=WHITE)
    for row, (_, time, share) in enumerate(points):
        most = 100 * max(share.values())
        write(axes, most, row, f"{most:.0f} %", 9, weight="bold", bbox=WHITE, zorder=5)
        write(axes, 100, row, f"{time:.0f} µs", 26, annotation_clip=False)
    write(axes, 100, -0.7, "time", 26, annotation_clip=False)
    axes.grid(axis="x")
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
    passes = facts["passes"]
    for step, dim, intensity, rate in points:
        looks = style.looks(step) | ({"markerfacecolor": "white", "markeredgewidth": 2} if dim == 128 else {})
        axes.plot(intensity, rate, **looks, markersize=9, zorder=4, linestyle="none")
        # The label stands left of a mark before a line of least bytes, but the two passes' labels on two sides.
        ahead = 3 * intensity > min(least.values()) and not (both and passes[step] == "fwd")
        # Where an earlier chapter's mark of the same pass is as high, within 3 %, its label has the other side.
        ahead ^= both and any(other < step and passes[other] == passes[step] and abs(math.log(rate / theirs)) < 0.03 for other, _, _, theirs in points)
        label(intensity, rate, f"{step[:2]}" + (f", d {dim}: {rate:.0f}" if both else f": {rate:.2g} TFLOP/s"), -9 if ahead else 9,
              (3 if dim == 128 else -3) if both else 0, ha="right" if ahead else "left")
    return fig


def listed(records, rungs, peers):
    """{name: (facts or None, draw)} of the pictures of these records: of chapters, and of their rungs."""
    axis, found = "milliseconds, logarithmic (further left is faster)", {}
    dots = lambda facts: draw_dots(facts, lambda ms: rec.number(ms, " ms"), axis)
    for pass_, words in PASSES.items():
        timed = [record for record in records if record.pass_ == pass_ and record.ms]
        theirs = [peer for peer in peers if peer.pass_ == pass_ and peer.device == records[0].device and peer.step in PEERS]
        steps = [record for record in timed if rec.is_chapter(record.step)]
        one_head = [record for record in steps if family(record.shape) == (1, 1, rec.QUOTED.dim, False)]
        found[f"latency_by_step_{pass_}"] = by_step(steps, theirs, f"{words.title()} pass", "chapter"), dots
        found[f"latency_by_length_{pass_}"] = (by_length(steps, f"Latency of the {words} pass", lambda record: record.ms),
                                               lambda facts: draw_lines(facts, "milliseconds"))
        for kind, mine in (("memory_by_length", steps), ("memory_one_head", one_head)):
            found[f"{kind}_{pass_}"] = (memory(mine, f"Memory beyond inputs and outputs, {words} pass", pass_),
                                        lambda facts: draw_lines(facts, "bytes"))
        climbed = [record for record in rungs if record.pass_ == pass_ and record.ms]
        for chapter in sorted({record.step[:2] for record in climbed}):
            mine = [record for record in climbed if record.step.startswith(chapter) and record.step[2] != "x"]  # those on the chain
            if len({record.step for record in mine}) > 2:
                found[f"climb_{chapter}"] = by_step(mine, theirs, f"{words.title()} pass", "rung"), draw_climb
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
    chosen = listed(records, rungs, [] if own else BOOK.records("peers"))
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
