"""The roofline, which plot.py draws: FLOPs per byte of device memory of each step, and how fast it computes.

A step's point comes from what Nsight Compute counted (plots/counters.sh): bytes and time are summed over its kernels.
FLOPs are those of the definition, 4 B H N^2 d forward and 2.5 times that backward, so a step that computes something
twice gets no credit for it. What is still in the L2 cache when a kernel ends is not counted, so a point may lie to the
right of the line at which every tensor moves once.
"""

import json
import math

import provenance
import style

# Ceilings of the cards that were counted: name; FP32 TFLOP/s and TB/s of device memory from NVIDIA's datasheets; TFLOP/s
# of a kernel that issues FFMA and nothing else, measured (None: not measured). The newest card stands first.
CARDS = {"h200": ("NVIDIA H200", 66.9, 4.8, None), "h100": ("NVIDIA H100 80GB HBM3", 66.9, 3.35, 60.5)}
OPTIONS = "--batch 4 --heads 16 --seq 1024 --dim 64"
ROWS, LENGTH, DIM = 4 * 16 * 1024, 1024, 64  # B H N, N and d of these options
MOVED = {"fwd": "Q, K, V, O and L\nmoved once each", "bwd": "Q, K, V, O, dO, dQ, dK, dV\nand L moved once each"}


def facts(pass_, steps):
    """Points [step, FLOPs per byte, TFLOP/s] of these steps, and the card's ceilings."""
    folder = provenance.ROOT / "plots" / "data" / "counters"
    card = next(card for card in CARDS if (folder / f"{card}-counters.jsonl").exists())
    runs, previous = {}, None
    for line in map(json.loads, (folder / f"{card}-counters.jsonl").read_text(encoding="utf-8").splitlines()):
        this = line["step"], line["options"]
        if line["options"] == OPTIONS and line["step"] in steps:  # one line per launch; a later run replaces an earlier one
            runs[line["step"]] = (runs.get(line["step"], []) if this == previous else []) + [line["counters"]]
        previous = this
    flops = 4.0 * ROWS * LENGTH * DIM * (1.0 if pass_ == "fwd" else 2.5)
    total = lambda kernels, *names: sum(kernel[name] for kernel in kernels for name in names)
    points = [[step, flops / total(kernels, "dram__bytes_read.sum", "dram__bytes_write.sum"),
               flops / total(kernels, "gpu__time_duration.sum") * 1e-3]
              for step, kernels in sorted(runs.items()) if step[2] == "_"]
    least = flops / (4.0 * ROWS * ((4 if pass_ == "fwd" else 8) * DIM + 1))
    return {"card": CARDS[card], "pass": pass_, "points": points, "least": least} if points else None


def plain_ticks(axis):
    """1, 10, 100 instead of powers of ten, with 2 and 5 between where a decade or two is all there is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if math.log10(high / low) < 2.5 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def draw(facts):
    (card, peak, bandwidth, measured), least = facts["card"], facts["least"]
    ridge = peak / bandwidth
    fig, axes = style.figure(height=5.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    intensities = [least, ridge] + [intensity for _, intensity, _ in facts["points"]]
    left, right = min(intensities) / 3, max(intensities) * 4
    axes.set_xlim(left, right)
    axes.set_ylim(min(rate for *_, rate in facts["points"]) / 2.5, peak * 2.2)
    axes.plot([left, ridge, right], [left * bandwidth, peak, peak], color=style.INK, linewidth=1.8,
              label=f"bound: {bandwidth} TB/s of memory,\n{peak} TFLOP/s of FP32")
    if measured:
        axes.plot([measured / bandwidth, right], [measured] * 2, color=style.GREY, linewidth=1.8, linestyle="--",
                  label=f"FMAs alone, measured:\n{measured} TFLOP/s")
    axes.axvline(least, color=style.GREY, linewidth=1.4, linestyle=":", zorder=1, label=MOVED[facts["pass"]])
    for step, intensity, rate in sorted(facts["points"], key=lambda point: -point[2]):
        axes.plot(intensity, rate, marker=style.marker_of(step), color=style.color_of(step), markersize=9, zorder=4,
                  linestyle="none", label=f"{step}: {rate:.2g} TFLOP/s")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid()
    axes.set_xlabel("FLOPs per byte of device memory")
    axes.set_ylabel("TFLOP/s")
    words = {"fwd": "forward", "bwd": "backward"}[facts["pass"]]
    axes.set_title(f"What the {words} steps attain, and what bounds them\n{card}, B 4, H 16, N {LENGTH}, d {DIM}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9.5)
    return fig
