"""Draws the picture of this chapter from a trace of its program; plots/draw.py runs it."""

import sheet
import traces


def who_reads_what(folder):
    """What a warp does with one load, by kernel and array."""
    launches = {launch.kernel: launch for launch in traces.run(folder, "01_naive", "--heads 1 --seq 64 --dim 64")}
    offsets = lambda kernel, array: launches[kernel].requests(warp=0, array=array)[0].offsets
    return sheet.panels([(f"{kernel}: a warp loads {words}", offsets(kernel, array), 4, array, "load") for kernel, array, words in (
        ("scores", "Q", "one element of Q"), ("scores", "K", "column 0 of 32 rows of K"),
        ("output", "V", "32 neighbours of one row of V"))])


PICTURES = who_reads_what,
