#!/usr/bin/env python3
"""Draws the pictures of chapter 06_vectorized, computed from the sizes and index formulas of its kernel.

    draw_06.py            draws steps/06_vectorized/NAME.png where the picture is missing or its scripts have changed
    draw_06.py --check    draws nothing; are the pictures up to date? (needs no matplotlib)

The page, the matrices and the colours are those of draw_chapters.py. Lengths are in tenths of an inch; y grows downwards.
"""

from pathlib import Path

import draw_chapters as sheet
import provenance
from draw_chapters import Matrix, box, close_page, key_to_colours, open_page, text

ROOT = Path(__file__).resolve().parent.parent
WARP = 32
TM, TN, BC, D = 8, 8, 64, 64
ROWS, COLS = 4, 8  # the lanes of a warp
STRIDE = D + 4
LANE_SHOWN = 5
TITLE = {"size": 12.5, "weight": "bold"}


def lane_row(lane):
    return (lane & 1) | (lane >> 3 & 2)


def lane_col(lane):
    return lane >> 1 & 7


def wavefronts(piece):
    """Of a 16-byte load in which lane i reads piece(i), where different pieces lie in different banks."""
    shared = any(all(piece(lane) == piece(lane ^ bit) for lane in range(WARP)) for bit in (1, 2))
    return 2 if shared else 4


def draw_who_owns_what(path, metadata):
    import style

    cell = 0.7
    fig, axes = open_page(63)
    text(axes, 1, 1.4, "A warp's piece of S at d = 64: 32 queries x 64 keys", **TITLE)
    row, col = lane_row(LANE_SHOWN), lane_col(LANE_SHOWN)
    S = Matrix(axes, 5, 6.6, ROWS * TM, BC, cell)
    text(axes, S.x - 0.6, 5.2, "key", ha="right")
    for key in range(0, BC, COLS):
        text(axes, S.x + (key + 4) * cell, 5.2, f"{key} to {key + 7}", size=8.5, ha="center")
    text(axes, 2.4, S.y + ROWS * TM * cell / 2, "query", ha="center", rotation=90)
    S.fill(0, 0, sheet.SECTOR_TINT, rows=ROWS, cols=COLS, order=2)
    mine = [(row + ROWS * i, col + COLS * j) for i in range(TM) for j in range(TN)]
    for at in mine:
        S.fill(*at, sheet.LANE, order=3)
    S.grid()
    for i in range(1, TM):
        y = S.y + i * ROWS * cell
        axes.plot([S.x, S.right], [y, y], color=style.GREY, linewidth=0.9, zorder=5)
    for j in range(1, TN):
        x = S.x + j * COLS * cell
        axes.plot([x, x], [S.y, S.bottom], color=style.GREY, linewidth=0.9, zorder=5)
    x = S.right + 2.2
    text(axes, x, S.y + 5.5, f"lane {LANE_SHOWN}: queries\n{row} + 4 i, keys {col} + 8 j,\n{len(mine)} scores in\nits registers", va="center", color=sheet.LANE)
    text(axes, x, S.y + 15.5, "8 x 8 times the\nsame pattern of\n4 x 8 lanes", va="center")

    # The pattern, enlarged: the numbers of the lanes.
    top = 38.0
    text(axes, 1, 32.4, "The pattern, and which lanes share an address", **TITLE)
    big = 2.9
    P = Matrix(axes, 5, top, ROWS, COLS, big, sheet.SECTOR_TINT)
    for lane in range(WARP):
        r, c = lane_row(lane), lane_col(lane)
        if lane == LANE_SHOWN:
            P.fill(r, c, sheet.LANE, order=3)
        text(axes, P.x + (c + 0.5) * big, P.y + (r + 0.5) * big, str(lane), size=10.5, ha="center", zorder=6,
             color="white" if lane == LANE_SHOWN else style.INK)
    P.grid()
    text(axes, P.x, top - 1.4, "lane_col: key, bits 3 2 1")
    text(axes, 2.2, P.y + ROWS * big / 2, "lane_row: query, bits 4 0", ha="center", rotation=90)

    # One load of Q and one of K, lane by lane: equal colour and number, equal address.
    left, width = 39.0, 1.2
    shades = ["#BBDDF3", "#F6DDB0", "#CDE9DF", "#E8CFE0", "#FFFFFF", "#D9D9D9", "#F3C9B0", "#CFCBEA"]

    def strip(y, name, piece, note):
        text(axes, left, y - 1.5, name)
        for lane in range(WARP):
            box(axes, left + lane * width, y, width, 2.2, face=shades[piece(lane)], edge=style.GREY, line=0.6)
            text(axes, left + (lane + 0.5) * width, y + 1.1, str(piece(lane)), size=8, ha="center", zorder=6)
        text(axes, left + WARP * width, y + 3.5, note, ha="right")

    words = lambda piece, how: f"{how}: {wavefronts(piece)} wavefronts"
    for lane in range(0, WARP, 4):
        text(axes, left + (lane + 0.5) * width, top - 3.4, str(lane), size=8, ha="center", color=style.GREY)
    text(axes, left - 1.0, top - 3.4, "lane", size=8, ha="right", color=style.GREY)
    strip(top, "load of Q: row of the piece", lane_row, words(lane_row, "lanes i and i^2 agree"))
    strip(top + 7.4, "load of K: row of the piece", lane_col, words(lane_col, "lanes i and i^1 agree"))
    plain = lambda lane: lane % COLS
    assert wavefronts(lane_row) == wavefronts(lane_col) == 2 and wavefronts(plain) == 4
    strip(top + 14.8, "load of K, if the column were lane % 8", plain, words(plain, "neither"))

    # The banks of 8 rows of K, which one load reads.
    banks = [(r * STRIDE + c) % 32 for r in range(COLS) for c in range(4)]
    assert sorted(banks) == list(range(32))
    y = top + ROWS * big + 3.6
    text(axes, 1, y, f"8 rows of K, {STRIDE} floats apart, begin in the banks", va="center")
    for r in range(COLS):
        text(axes, 2.5 + 3.7 * r, y + 2.0, str(r * STRIDE % 32), size=10.5, ha="center", weight="bold")
    text(axes, 1, y + 4.0, "and have 4 banks each: all 32, none twice.", va="center")
    key_to_colours(axes, 61.2, [
        (sheet.LANE, sheet.LANE, f"lane {LANE_SHOWN}", 12),
        (sheet.SECTOR_TINT, style.GREY, "the first 4 x 8 elements: one of each lane", 34),
    ])
    close_page(fig, path, metadata)


def draw_timeline(path, metadata):
    import style

    fig, axes = open_page(24)
    text(axes, 1, 1.4, "What is computed and what travels (lengths not to scale)", **TITLE)
    start, round_, s, soft = 12.0, 31.0, 12.0, 7.0
    o = round_ - s - soft
    lanes = {"computed": 6.4, "K buffer": 11.2, "V buffer": 16.0}
    tall = 3.0
    for name, y in lanes.items():
        text(axes, 1, y + tall / 2, name, weight="bold")

    def part(name, x, width, words, face, edge=style.GREY, color=style.INK):
        box(axes, x, lanes[name], width, tall, face=face, edge=edge, line=0.9, order=2)
        text(axes, x + width / 2, lanes[name] + tall / 2, words, size=9, ha="center", zorder=5, color=color)

    for turn, (j, j_next) in enumerate((("j", "j+1"), ("j+1", "j+2"))):
        x = start + turn * round_
        part("computed", x, s, "S = Q K^T", sheet.NOW, color="white")
        part("computed", x + s, soft, "softmax", sheet.OWNED)
        part("computed", x + s + soft, o, "O += P V", sheet.NOW, color="white")
        part("K buffer", x, s + soft, f"K({j}) in use", sheet.SECTOR_TINT)
        part("K buffer", x + s + soft, o, f"K({j_next}) arrives", "#F6DDB0")
        part("V buffer", x, s + soft, f"V({j}) arrives", "#F6DDB0")
        part("V buffer", x + s + soft, o, f"V({j}) in use", sheet.SECTOR_TINT)
        for at, what in ((x, f"wait for K({j})"), (x + s + soft, f"wait for V({j})")):
            axes.plot([at, at], [5.4, 19.8], color=sheet.LANE, linewidth=2.0, zorder=6)
            text(axes, at, 4.4, what, size=8.5, ha="center", color=sheet.LANE)
    key_to_colours(axes, 22.2, [
        ("none", sheet.LANE, "wait and barrier", 19),
        (sheet.SECTOR_TINT, style.GREY, "read by the warps", 20),
        ("#F6DDB0", style.GREY, "written by cp.async", 22),
    ], x=start)
    close_page(fig, path, metadata)


def forth_and_back(i):
    """The columns of O in the order of multiply_columns in device.cuh."""
    return range(TN) if i % 2 == 0 else reversed(range(TN))


ORDERS = {  # of the elements (i, j) of a lane's piece of O, for one key
    "four columns at a time,\nover all rows": [(i, 4 * t + q) for t in range(TN // 4) for i in range(TM) for q in range(4)],
    "row by row": [(i, j) for i in range(TM) for j in range(TN)],
    "row by row, columns\nforth and back": [(i, j) for i in range(TM) for j in forth_and_back(i)],
}


def draw_order(path, metadata):
    import style

    fig, axes = open_page(34.5)
    text(axes, 1, 1.4, "One key of O += P V: which multiply-adds share a factor with the one before", **TITLE)
    cell = 2.5
    for n, (name, order) in enumerate(ORDERS.items()):
        assert sorted(order) == [(i, j) for i in range(TM) for j in range(TN)]
        before = [None, *order]
        alone = [at for at, last in zip(order, before) if last is None or (at[0] != last[0] and at[1] != last[1])]
        O = Matrix(axes, 5.5 + 25.5 * n, 9.2, TM, TN, cell, "white")
        text(axes, O.x, 5.2, name, va="center")
        if n == 0:
            text(axes, O.x - 3.6, O.y + TM * cell / 2, "P: a row i of the lane", ha="center", rotation=90)
        text(axes, O.x + TN * cell / 2, O.bottom + 1.2, "V: a column j of the lane", ha="center")
        for i in range(TM):
            for j in range(TN):
                O.fill(i, j, sheet.LANE if (i, j) in alone else sheet.SECTOR_TINT, order=2)
        O.grid()
        xs = [O.x + (j + 0.5) * cell for _, j in order]
        ys = [O.y + (i + 0.5) * cell for i, _ in order]
        axes.plot(xs, ys, color=style.INK, linewidth=1.0, zorder=6)
        axes.plot(xs[:1], ys[:1], marker="o", color=style.INK, markersize=5, zorder=7)
        axes.plot(xs[-1:], ys[-1:], marker="s", color=style.INK, markersize=5, zorder=7)
        text(axes, O.x + TN * cell, 7.9, f"{len(alone)} of {len(order)} share none", size=9, ha="right")
    key_to_colours(axes, 33.0, [
        (sheet.SECTOR_TINT, style.GREY, "shares one: two registers to read", 27),
        (sheet.LANE, sheet.LANE, "shares none: three", 18),
    ])
    close_page(fig, path, metadata)


PICTURES = {"who_owns_what.png": draw_who_owns_what, "timeline.png": draw_timeline, "order.png": draw_order}

if __name__ == "__main__":
    inputs = [Path(__file__), Path(sheet.__file__), provenance.STYLE]
    folder = ROOT / "steps" / "06_vectorized"
    provenance.main([provenance.Picture(folder / name, inputs, draw) for name, draw in PICTURES.items()])
