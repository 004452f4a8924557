#!/usr/bin/env python3
"""Draws the measurements: latency by step, latency against sequence length, memory against sequence length.

    plot.py --recorded plots/data --out plots/pictures     the committed pictures
    plot.py --results FILE --out FOLDER                    the same of one's own measurements
    plot.py --check                                        are the committed pictures up to date? (needs no matplotlib)

--results takes precedence over --recorded when it holds lines that were measured on a card.
"""

import argparse
import math
import sys
from collections import defaultdict
from pathlib import Path

import provenance
import records as rec

ROOT = Path(__file__).resolve().parent.parent
PASSES = {"fwd": "forward", "bwd": "backward"}
KINDS = ("latency_by_step", "latency_by_length", "memory_by_length", "memory_one_head")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


# ---- what to draw: no matplotlib here -----------------------------------------------------------------------------


def best_shape(records):
    """The size that most steps were measured at; among such the one that the book quotes, else the largest."""
    steps_at = defaultdict(set)
    for record in records:
        steps_at[record.shape].add(record.step)
    return max(steps_at, key=lambda shape: (len(steps_at[shape]), shape == rec.QUOTED, shape.work()), default=None)


def family(shape):
    """Everything but the length, which varies along a picture's axis."""
    return (shape.batch, shape.heads, shape.dim, shape.causal)


def best_family(records):
    """The square problems that were measured at most lengths; among such those of the size that the book quotes."""
    lengths = defaultdict(set)
    for record in records:
        if record.shape.seq == record.shape.seq_kv:
            lengths[family(record.shape)].add(record.shape.seq)
    return max(lengths, key=lambda key: (len(lengths[key]), key == family(rec.QUOTED), key), default=None)


def count_of_lengths(records):
    chosen = best_family(records)
    return len({record.shape.seq for record in records if chosen and family(record.shape) == chosen})


def series(records, value):
    """{step: [(N, value), ...]} over the best family."""
    chosen = best_family(records)
    points = defaultdict(dict)
    for record in records:  # a later line replaces an earlier one
        shape = record.shape
        if shape.seq == shape.seq_kv and family(shape) == chosen and value(record) is not None:
            points[record.step][shape.seq] = value(record)
    return {step: sorted(points[step].items()) for step in sorted(points)}


def inputs_and_outputs(shape_family, length, pass_):
    """Bytes of Q K V O in fp32 and of L; the backward pass adds dO dQ dK dV."""
    batch, heads, dim, _ = shape_family
    matrices = 4 if pass_ == "fwd" else 8
    return 4 * batch * heads * length * (matrices * dim + 1)


def number(value):
    """Three significant digits without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{digits}f}"


def bytes_label(value):
    unit = 0
    while value >= 1024 and unit + 1 < len(UNITS):
        value /= 1024
        unit += 1
    return f"{value:.3g} {UNITS[unit]}"


def grouped(lines):
    """Steps that share every point become one line with all their names: two lines on each other look like one."""
    groups = {}
    for step, points in lines.items():
        groups.setdefault(tuple(points), []).append(step)
    return [(steps, points) for points, steps in groups.items()]


def group_label(steps):
    """Their names, or their numbers when there are too many for the room beside a line."""
    if len(steps) <= 2:
        return ",\n".join(steps)
    return "steps " + ", ".join(step.split("_", 1)[0] for step in steps)


# ---- drawing --------------------------------------------------------------------------------------------------------


def draw_latency_by_step(records, pass_, path, metadata):
    import style

    shape = best_shape(records)
    bars = [(step, rec.find(records, step, shape, pass_)) for step in rec.steps_of(records, pass_)]
    bars = [(step, record.ms) for step, record in bars if record is not None]
    fig, axes = style.figure(height=1.7 + 0.38 * len(bars))
    axes.barh([step for step, _ in bars], [ms for _, ms in bars], color=[style.color_of(step) for step, _ in bars], height=0.62)
    white = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # grid lines stop at a label
    for row, (_, ms) in enumerate(bars):
        axes.annotate(f"{number(ms)} ms", (ms, row), xytext=(5, 0), textcoords="offset points", va="center", bbox=white)
    axes.invert_yaxis()  # the first step on top
    axes.set_xscale("log")
    fastest, slowest = min(ms for _, ms in bars), max(ms for _, ms in bars)
    # A logarithmic bar has no natural foot: leave the shortest one a third of a decade, and room for the labels.
    axes.set_xlim(fastest / 2.2, slowest * (slowest / fastest * 2.2) ** 0.17)
    plain_ticks(axes.xaxis)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_xlabel("milliseconds, logarithmic (shorter is faster)")
    axes.set_title(f"Latency of the {PASSES[pass_]} pass, by step\n{records[0].device}, {shape}")
    style.save(fig, path, metadata)


def draw_latency_by_length(records, pass_, path, metadata):
    import style

    fig, axes = length_axes(records, f"Latency of the {PASSES[pass_]} pass, by sequence length")
    labels = []
    for step, points in series(records, lambda record: record.ms).items():
        draw_line(axes, step, points)
        labels.append((step, style.color_of(step), points[-1]))
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.set_ylabel("milliseconds")
    label_lines(fig, axes, labels)
    style.save(fig, path, metadata)


def draw_memory_by_length(records, pass_, path, metadata):
    import style

    lines = series(records, lambda record: record.workspace)
    lengths = sorted({length for points in lines.values() for length, _ in points})
    ideal = [(length, inputs_and_outputs(best_family(records), length, pass_)) for length in lengths]
    drawn = [value for points in lines.values() for _, value in points if value > 0] + [value for _, value in ideal]
    floor = 2.0 ** math.floor(math.log2(min(drawn)) - 2)  # where "none" goes, which a logarithmic axis has no place for

    fig, axes = length_axes(records, f"Memory beyond inputs and outputs, {PASSES[pass_]} pass")
    axes.plot(*zip(*ideal), color=style.GREY, linewidth=2.2, zorder=1)
    labels = [("inputs and outputs", style.GREY, ideal[-1])]
    for steps, points in grouped(lines):
        points = [(length, value or floor) for length, value in points]
        draw_line(axes, steps[0], points)
        labels.append((group_label(steps), style.color_of(steps[0]), points[-1]))
    memory_ticks(axes, floor, max(drawn))
    label_lines(fig, axes, labels)
    style.save(fig, path, metadata)


def length_axes(records, title):
    import style

    batch, heads, dim, causal = best_family(records)
    fig, axes = style.figure()
    axes.set_title(f"{title}\n{records[0].device}, B {batch}, H {heads}, d {dim}" + (", causal" if causal else ""))
    axes.set_xscale("log", base=2)
    lengths = sorted({r.shape.seq for r in records if family(r.shape) == (batch, heads, dim, causal)})
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.minorticks_off()
    axes.set_xlabel("sequence length N")
    axes.grid()
    return fig, axes


def draw_line(axes, step, points):
    import style

    axes.plot(
        *zip(*points),
        color=style.color_of(step),
        linestyle=style.dashes_of(step),
        marker=style.marker_of(step),
        linewidth=2.2,
        markersize=6.5,
        clip_on=False,
        zorder=3,
    )


def plain_ticks(axis):
    """1, 10, 100 instead of powers of ten, with 2 and 5 between where a decade or two is all there is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axis.get_view_interval()
    few = math.log10(high / low) < 2.5
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if few else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def memory_ticks(axes, floor, top):
    """Powers of two that have names, and "none" at the foot."""
    axes.set_yscale("log", base=2)
    exponents = range(math.ceil(math.log2(floor)) + 2, math.ceil(math.log2(top)) + 1)
    every = max(1, math.ceil(len(exponents) / 7))
    ticks = [2.0**exponent for exponent in exponents if exponent % every == 0]
    axes.set_yticks([floor] + ticks, ["none"] + [bytes_label(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=floor / 2)  # clear of the axis


def label_lines(fig, axes, labels):
    """Names each line at the right edge, moved apart where they would touch. `labels`: (text, colour, last point)."""
    from matplotlib.transforms import offset_copy

    fig.canvas.draw()  # settles the axes' size, in which the distances are measured
    room = 15.5 * fig.dpi / 72  # one line of text
    ends = sorted(((axes.transData.transform(point)[1], text, color, point) for text, color, point in labels), key=lambda e: e[0])
    longest = max(point[0] for _, _, _, point in ends)
    beside = offset_copy(axes.transData, fig, x=10, units="points")
    previous_top = -math.inf
    for height, text, color, point in ends:
        half = room * (text.count("\n") + 1) / 2
        center = max(height, previous_top + half)
        previous_top = center + half
        # A line that ends early is led to its name.
        leader = {"arrowstyle": "-", "color": color, "linestyle": ":", "linewidth": 1.2, "shrinkA": 2, "shrinkB": 6}
        at = longest, axes.transData.inverted().transform((0, center))[1]
        axes.annotate(text, point, xytext=at, textcoords=beside, va="center", color=color, annotation_clip=False,
                      arrowprops=leader if point[0] < longest else None)


# ---- the command -----------------------------------------------------------------------------------------------------


def pictures_of(records, files, folder):
    """Four pictures a pass, and the paths of those that there are no measurements for."""
    draw = {"latency_by_step": draw_latency_by_step, "latency_by_length": draw_latency_by_length, "memory_by_length": draw_memory_by_length,
            "memory_one_head": draw_memory_by_length}
    pictures, unused = [], []
    for pass_ in PASSES:
        timed = [record for record in records if record.pass_ == pass_ and record.ms]
        one_head = [record for record in timed if family(record.shape) == (1, 1, rec.QUOTED.dim, False)]
        for kind in KINDS:
            mine = one_head if kind == "memory_one_head" else timed
            path = folder / f"{kind}_{pass_}.png"
            if mine and (kind == "latency_by_step" or count_of_lengths(mine) > 1):
                function = lambda path, metadata, draw=draw[kind], mine=mine, pass_=pass_: draw(mine, pass_, path, metadata)
                scripts = [Path(__file__), provenance.STYLE, Path(rec.__file__)]
                pictures.append(provenance.Picture(path, scripts + files, function))
            else:
                unused.append(path)
    return pictures, unused


def choose(results, recorded):
    """The records to draw and the files they came from."""
    if results is not None:
        records = rec.of_main_card(rec.read([results]))
        if records or recorded is None:
            return records, [results]
    files = rec.data_files(recorded)
    return rec.of_main_card(rec.read(files)), files


def parse_arguments():
    parser = argparse.ArgumentParser(description="Draws the measurements.")
    parser.add_argument("--recorded", type=Path, help="folder of recorded measurements (default: plots/data)")
    parser.add_argument("--results", type=Path, help="JSON lines measured here, drawn instead when a card wrote them")
    parser.add_argument("--out", type=Path, default=ROOT / "plots" / "pictures", help="default: plots/pictures")
    parser.add_argument("--check", action="store_true", help="draw nothing; name pictures missing or out of date")
    arguments = parser.parse_args()
    if arguments.recorded is None and arguments.results is None:
        arguments.recorded = ROOT / "plots" / "data"
    return arguments


def main():
    arguments = parse_arguments()
    try:
        records, files = choose(arguments.results, arguments.recorded)
    except (rec.BadRecord, OSError) as error:
        sys.exit(f"plot.py: {error}")
    pictures, unused = pictures_of(records, files, arguments.out)
    if arguments.check:
        orphans = [path for path in unused if path.exists()]
        for path in orphans:
            print(f"{provenance.shown(path)}: drawn from measurements that are gone", file=sys.stderr)
        sys.exit(1 if orphans or provenance.check(pictures) else 0)
    if not pictures:
        print("No recorded measurements: no pictures to draw.")
        return
    print(f"Pictures of what was measured on {records[0].device}:")
    sys.exit(provenance.update(pictures))


if __name__ == "__main__":
    main()
