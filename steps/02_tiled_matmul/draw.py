#!/usr/bin/env python3
"""Draws the pictures of this chapter from a trace of its program: draw.py [--check]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import sheet  # noqa: E402 (its folder comes first)
import traces  # noqa: E402

from sheet import LANE, NOW, OWNED, cells  # noqa: E402

TILE, D, WARP_SHOWN, PADDED = 32, 64, 2, 33
CELL = 0.5


def scores(folder):
    """The launch of S = Q K^T."""
    return traces.run(folder, "02_tiled_matmul", "--heads 1 --seq 64 --dim 64")[0]


def who_reads_what(folder):
    launch = scores(folder)
    mine = lambda number=0, **wanted: launch.requests(warp=WARP_SHOWN, **wanted)[number]
    a = mine(1, array="A_smem", kind="load", epoch=1)  # of the second round of the loop over k
    round_ = a.elements(0)
    four = [request for request in launch.requests(warp=WARP_SHOWN, array="B_smem", kind="load", epoch=1)
            if request.elements(0)[0] // PADDED in [element % TILE for element in round_]]
    lane = lambda request, cols: cells(request.elements(sheet.MARKED), cols)
    whole = lambda request, cols: cells(request.elements(), cols)
    parts = {"Q": (mine(array="Q"), D), "A": (mine(array="A_smem", kind="store"), TILE), "K": (mine(array="K"), D),
             "B": (mine(array="B_smem", kind="store"), PADDED)}
    store = mine(array="workspace", kind="store")
    return {
        "load": {name: [whole(*part), lane(*part)] for name, part in parts.items()},
        "A": whole(a, TILE),
        "B": sum((whole(request, PADDED) for request in four), []),
        "B_lane": sum((lane(request, PADDED) for request in four), []),
        "S": [whole(store, 64), lane(store, 64)],
        "requests": 1 + len(four),
        "multiply_adds": len(round_),
    }


def draw_who_reads_what(facts):
    page = sheet.Page(58)
    page.title(1.6, f"Loading: warp {WARP_SHOWN} copies one row of each tile")
    top, drawn = 9.6, {}
    labels = {"Q": ("Q, global memory", "32 queries x 32 columns"), "A": ("A_smem[y][x]", "query x column"),
              "K": ("K, global memory", "32 keys x 32 columns"), "B": ("B_smem[x][y]", "column x key, 1 padding")}
    for n, (name, (heading, what)) in enumerate(labels.items()):
        cols = PADDED if name == "B" else TILE
        M = drawn[name] = page.matrix(1.5 + 20.4 * n, top, TILE, cols, CELL, heading, what)
        touched, lane = facts["load"][name]
        M.fill(touched, NOW)
        M.bounds(lane)
    for a, b in (("Q", "A"), ("K", "B")):
        start, end = drawn[a].at(WARP_SHOWN, TILE), drawn[b].at(WARP_SHOWN, 0)
        page.arrow((start[0], start[1]), (end[0] - 0.8, end[1]))
    page.text(1.5, 27.2, "lane x loads column x of a query row: neighbours,\nand stores it in the same order", va="top")
    page.text(42.3, 27.2, "lane x loads column x of a key: neighbours,\nand stores it down a column of the tile", va="top")

    page.title(33.0, f"Multiplying: {facts['requests']} requests of the warp for {facts['multiply_adds']} FMAs per thread")
    top = 37.0 + 1.6
    A = page.matrix(1.5, top, TILE, TILE, CELL, "A_smem", "")
    B = page.matrix(21.9, top, TILE, PADDED, CELL, "B_smem", "")
    S = page.matrix(42.3, top, TILE, TILE, CELL, "S: the block's tile", "")
    A.fill(facts["A"], NOW)
    B.fill(facts["B"], NOW)
    S.fill(facts["S"][0], OWNED)
    for M, lane in ((A, facts["A"]), (B, facts["B_lane"]), (S, facts["S"][1])):
        M.bounds(lane)
    page.text((A.right + B.x) / 2, A.at(16, 0)[1], "×", size=14, ha="center")
    page.text((B.right + S.x) / 2, A.at(16, 0)[1], "=", size=14, ha="center")
    x = S.right + 2.0
    page.text(x, A.at(3, 0)[1], "A: 1 request of 16 bytes,\none address for all lanes")
    page.text(x, A.at(12, 0)[1], f"B: {facts['requests'] - 1} requests of 4 bytes,\n32 neighbours each")
    page.text(x, A.at(21, 0)[1], "S: one sum per lane, stored\nafter the last tile")
    page.key(A.bottom + 1.9, (NOW, "touched now"), (OWNED, f"sums of warp {WARP_SHOWN}"), (None, LANE, f"lane {sheet.MARKED}"))
    return page


def banks(folder):
    return scores(folder).requests(warp=0, array="B_smem", kind="store")[0].offsets


def draw_banks(offsets):
    words = [offset // 4 for offset in offsets]
    unpadded = [4 * (word // PADDED * TILE + word % PADDED) for word in words]
    return sheet.panels([("A warp stores a column of B_smem[32][32 + 1]", offsets, 4, None, "store"),
                         ("The same store to B_smem[32][32], without padding", unpadded, 4, None, "store")])


if __name__ == "__main__":
    sheet.main(__file__, {"who_reads_what.png": (who_reads_what, draw_who_reads_what), "banks.png": (banks, draw_banks)})
