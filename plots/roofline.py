#!/usr/bin/env python3
"""Draws the roofline: how much arithmetic each step does for a byte of device memory, and how fast it does it.

    roofline.py            draw plots/pictures/roofline_fwd.png and _bwd.png if what they show has changed
    roofline.py --check    are they up to date? (needs no matplotlib)

A step's point comes from what Nsight Compute counted (plots/counters.sh): bytes and time are summed over its kernels.
FLOPs are those of the definition, 4 B H N^2 d forward and 10 backward, so a step that computes something twice gets no
credit for it. What is
still in the L2 cache when a kernel ends has not been written to device memory and is not counted, so a point may lie to
the right of the line at which every tensor moves once.
"""

import json
import math
from dataclasses import astuple, dataclass
from pathlib import Path

import provenance
import records as rec

ROOT = provenance.ROOT
COUNTERS = ROOT / "plots" / "data" / "counters" / "h100-counters.jsonl"

# The card that the counters were taken on, and its ceilings.
CARD = "NVIDIA H100 80GB HBM3"
PEAK_TFLOPS = 66.9  # NVIDIA's H100 SXM datasheet, FP32: 132 SMs x 128 multiply-adds a cycle at 1.98 GHz
PEAK_TBYTES = 3.35  # a second; the same datasheet, memory bandwidth
FFMA_TFLOPS = 60.5  # measured: nothing but FFMA, 16 warps an SM with 16 independent chains each, at 1975 MHz

OPTIONS = "--batch 4 --heads 16 --seq 1024 --dim 64"
SHAPE = rec.Shape(batch=4, heads=16, seq=1024, seq_kv=1024, dim=64)


@dataclass(frozen=True)
class Point:
    step: str
    intensity: float  # FLOPs for a byte of device memory
    tflops: float


@dataclass(frozen=True)
class Pass:
    name: str
    words: str
    products: int  # of 2 B H N^2 d FLOPs each
    tensors: int  # of B H N d floats, each moved once at least, beside L
    moved: str

    def flops(self):
        return 2.0 * self.products * SHAPE.work()

    def least_bytes(self):
        return 4.0 * SHAPE.batch * SHAPE.heads * SHAPE.seq * (self.tensors * SHAPE.dim + 1)

    def has(self, step):
        return ("_bwd" in step) == (self.name == "bwd")


FORWARD = Pass("fwd", "forward", 2, 4, "Q, K, V, O and L\nmoved once each")
BACKWARD = Pass("bwd", "backward", 5, 8, "Q, K, V, O, dO, dQ, dK, dV\nand L moved once each")


# ---- what to draw: no matplotlib here -----------------------------------------------------------------------------


def counter_lines():
    return [json.loads(line) for line in COUNTERS.read_text(encoding="utf-8").splitlines()]


def runs_of_steps(lines):
    """{step: its kernels}. A step's lines lie together, a line a launch; a later run of it replaces an earlier one."""
    runs, previous = {}, None
    for line in lines:
        this = (line["step"], line["options"])
        if line["options"] == OPTIONS:
            kernels = runs.setdefault(line["step"], [])
            if this != previous:
                kernels.clear()
            kernels.append(line["counters"])
        previous = this
    return runs


def point(pass_, step, kernels):
    moved = sum(kernel["dram__bytes_read.sum"] + kernel["dram__bytes_write.sum"] for kernel in kernels)
    nanoseconds = sum(kernel["gpu__time_duration.sum"] for kernel in kernels)
    return Point(step, pass_.flops() / moved, pass_.flops() / nanoseconds * 1e-3)


def points(pass_):
    return [point(pass_, step, kernels) for step, kernels in sorted(runs_of_steps(counter_lines()).items()) if pass_.has(step)]


# ---- drawing --------------------------------------------------------------------------------------------------------


def draw(pass_, shown, path, metadata):
    import plot
    import style

    fig, axes = style.figure(height=5.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    least = pass_.flops() / pass_.least_bytes()
    intensities = [least] + [point.intensity for point in shown]
    left, right = min(intensities) / 3, max(intensities) * 4
    axes.set_xlim(left, right)
    axes.set_ylim(min(point.tflops for point in shown) / 2.5, PEAK_TFLOPS * 2.2)
    draw_roofs(axes, left, right)
    draw_least(axes, least, pass_.moved)
    for point in shown:
        draw_point(axes, point)
    plot.plain_ticks(axes.xaxis)
    plot.plain_ticks(axes.yaxis)
    axes.grid()
    axes.set_xlabel("FLOPs for each byte of device memory")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"What the {pass_.words} steps attain, and what bounds them\n{CARD}, {SHAPE}")
    style.save(fig, path, metadata)


def draw_roofs(axes, left, right):
    """Memory bounds to the left of the ridge, arithmetic to the right of it."""
    import style

    ridge = PEAK_TFLOPS / PEAK_TBYTES
    axes.plot([left, ridge, right], [left * PEAK_TBYTES, PEAK_TFLOPS, PEAK_TFLOPS], color=style.INK, linewidth=1.8)
    axes.plot([FFMA_TFLOPS / PEAK_TBYTES, right], [FFMA_TFLOPS] * 2, color=style.GREY, linewidth=1.8, linestyle="--")
    label(axes, f"FP32 peak, {PEAK_TFLOPS} TFLOP/s", (ridge, PEAK_TFLOPS), (14, 5), ha="left", va="bottom")
    measured = f"multiply-adds alone, measured: {FFMA_TFLOPS}"
    label(axes, measured, (ridge, FFMA_TFLOPS), (14, -5), ha="left", va="top", color=style.GREY)
    middle = (left * ridge) ** 0.5
    label(
        axes, f"device memory, {PEAK_TBYTES} TB/s", (middle, middle * PEAK_TBYTES), (-8, 8), ha="center", va="center",
        rotation=slope_in_degrees(axes, (left, left * PEAK_TBYTES), (ridge, PEAK_TFLOPS)), rotation_mode="anchor",
    )


def label(axes, text, at, offset, **options):
    """Words at a point, on white, so that grid lines stop at them."""
    white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", bbox=white, **options)


def slope_in_degrees(axes, low, high):
    """As the reader sees the line, which the axes' scales decide."""
    axes.figure.canvas.draw()  # settles the axes' size
    low, high = axes.transData.transform([low, high])
    return math.degrees(math.atan2(high[1] - low[1], high[0] - low[0]))


def draw_least(axes, least, words):
    import style

    axes.axvline(least, color=style.GREY, linewidth=1.2, linestyle=":", zorder=1)
    foot = (least, axes.get_ylim()[0])
    label(axes, words, foot, (-6, 8), ha="right", va="bottom", color=style.GREY)


def draw_point(axes, point):
    import style

    color = style.color_of(point.step)
    axes.plot(point.intensity, point.tflops, marker=style.marker_of(point.step), color=color, markersize=9, zorder=4)
    text = f"{point.step}\n{point.tflops:.2g} TFLOP/s"
    label(axes, text, (point.intensity, point.tflops), (10, 0), va="center", color=color)


def pictures():
    scripts = [Path(__file__), provenance.STYLE, ROOT / "plots" / "plot.py"]
    found = []
    for pass_ in (FORWARD, BACKWARD):
        shown = points(pass_)
        drawing = lambda path, metadata, pass_=pass_, shown=shown: draw(pass_, shown, path, metadata)
        path = ROOT / "plots" / "pictures" / f"roofline_{pass_.name}.png"
        found.append(provenance.Picture(path, scripts, drawing, drawn_data=json.dumps([astuple(point) for point in shown])))
    return found


if __name__ == "__main__":
    provenance.main(pictures(), "Draws the roofline when what it shows has changed.")
