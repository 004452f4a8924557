"""Draws the picture of this chapter from a trace of its program; plots/draw.py runs it."""

import sheet
import traces

TITLES = {  # by kernel and array: what a warp does with one load
    ("scores", "Q"): "scores: a warp loads one element of Q",
    ("scores", "K"): "scores: a warp loads column 0 of 32 rows of K",
    ("output", "V"): "output: a warp loads 32 neighbours of one row of V",
}


def loads(folder):
    launches = {launch.kernel: launch for launch in traces.run(folder, "01_naive", "--heads 1 --seq 64 --dim 64")}
    return [[kernel, array, launches[kernel].requests(warp=0, array=array)[0].offsets] for kernel, array in TITLES]


def draw_loads(facts):
    return sheet.panels([(TITLES[kernel, array], offsets, 4, array, "load") for kernel, array, offsets in facts])


PICTURES = {"who_reads_what.png": (loads, draw_loads)}
