#!/usr/bin/env python3
"""Draws the pictures of chapter 09_fa2_bwd_warps, computed from the sizes and index formulas of its kernel.

    draw_09.py            draws steps/09_fa2_bwd_warps/NAME.png where the picture is missing or its scripts have changed
    draw_09.py --check    draws nothing; are the pictures up to date? (needs no matplotlib)

The page, the matrices and the colours are those of draw_chapters.py. Lengths are in tenths of an inch; y grows downwards.
"""

from pathlib import Path

import draw_chapters as sheet
import provenance
from draw_chapters import Matrix, arrow, box, close_page, key_to_colours, open_page, text

ROOT = Path(__file__).resolve().parent.parent
WARP = 32
HALF_WARPS = 4
D, BR, BC = 64, 64, 128  # tiling<64, 64, 128>
LANE_ROWS, LANE_COLS = 4, 8
S_ROWS, S_KEYS = BR // 2, BC // 2
K_COL_WARPS, Q_COL_WARPS = 1, 2
K_COLS, K_KEYS = D // K_COL_WARPS, BC // (HALF_WARPS // K_COL_WARPS)
Q_COLS, Q_ROWS = D // Q_COL_WARPS, BR // (2 * HALF_WARPS // Q_COL_WARPS)
WARP_SHOWN, LANE_SHOWN = 1, 5
TITLE = {"size": 12.5, "weight": "bold"}
WAITS = "#F0F0F0"
ARRIVES = "#F6DDB0"


def lane_row(lane):
    return (lane & 1) | (lane >> 3 & 2)


def lane_col(lane):
    return lane >> 1 & 7


def in_scores(warp, lane):
    """The elements of S or dP that a lane owns: make_P_and_dS."""
    row, key = warp // 2 * S_ROWS + lane_row(lane), warp % 2 * S_KEYS + lane_col(lane)
    return [(row + LANE_ROWS * i, key + LANE_COLS * j) for i in range(S_ROWS // LANE_ROWS) for j in range(S_KEYS // LANE_COLS)]


def in_keys(warp, lane):
    """The elements of dV or dK that a lane owns: backward_keys."""
    key = warp // K_COL_WARPS * K_KEYS + 4 * lane_row(lane)
    col = warp % K_COL_WARPS * K_COLS + 4 * lane_col(lane)
    return [(key + 4 * LANE_ROWS * n + i, col + 4 * LANE_COLS * c + e) for n in range(K_KEYS // 4 // LANE_ROWS)
            for i in range(4) for c in range(K_COLS // 4 // LANE_COLS) for e in range(4)]


def in_dQ(warp, lane):
    """The elements of dQ that a lane owns, of all eight warps: add_dQ."""
    row = warp // Q_COL_WARPS * Q_ROWS + lane_row(lane)
    col = warp % Q_COL_WARPS * Q_COLS + 4 * lane_col(lane)
    return [(row + LANE_ROWS * i, col + 4 * LANE_COLS * c + e) for i in range(Q_ROWS // LANE_ROWS)
            for c in range(Q_COLS // 4 // LANE_COLS) for e in range(4)]


def owned_once(piece, rows, cols, warps):
    """The lanes of the warps own every element, none twice."""
    elements = [at for warp in range(warps) for lane in range(WARP) for at in piece(warp, lane)]
    return sorted(elements) == [(r, c) for r in range(rows) for c in range(cols)]


def panel(axes, x, y, rows, cols, cell, piece, warps):
    """A tile: its warps outlined and numbered, one warp shaded, one lane's elements filled."""
    import style

    assert owned_once(piece, rows, cols, len(warps))
    M = Matrix(axes, x, y, rows, cols, cell)
    for warp, (row, col, height, width) in enumerate(warps):
        if warp == WARP_SHOWN:
            M.fill(row, col, sheet.SECTOR_TINT, rows=height, cols=width, order=2)
            for at in piece(warp, LANE_SHOWN):
                M.fill(*at, sheet.LANE, order=3)
        else:
            text(axes, x + (col + width / 2) * cell, y + (row + height / 2) * cell, f"warp {warp}", ha="center", zorder=7)
        M.outline(row, col, height, width, style.INK, line=1.1)
    return M


def draw_who_owns_what(path, metadata):
    import style

    fig, axes = open_page(86)

    # The grid: S of one head, a block a column of tiles.
    text(axes, 1, 1.6, "The grid: a block has a tile of 128 keys, and walks down the queries", **TITLE)
    cell_w, cell_h, x, y = 3.6, 1.8, 14.0, 7.4
    text(axes, x - 0.8, y - 1.5, "keys", ha="right")
    for j in range(4):
        text(axes, x + (j + 0.5) * cell_w, y - 1.5, f"{BC * j}", size=8.5, ha="center")
        for i in range(8):
            face = sheet.NOW if (i, j) == (3, 1) else sheet.OWNED if j == 1 else "white"
            box(axes, x + j * cell_w, y + i * cell_h, cell_w, cell_h, face=face, edge=style.GREY, line=0.8, order=2)
    for i in range(8):
        text(axes, x - 0.8, y + (i + 0.5) * cell_h, f"{BR * i}", size=8.5, ha="right")
    text(axes, 5.0, y + 4 * cell_h, "query rows\nof S, P, dP, dS", ha="center")
    arrow(axes, x + 1.85 * cell_w, y + 4.6 * cell_h, x + 1.85 * cell_w, y + 7.6 * cell_h, style.GREY)
    text(axes, x + 1.5 * cell_w, y + 8 * cell_h + 1.5, "block 1", ha="center")

    # Inside a block, for one tile.
    left, wide = 34.5, 44.0
    text(axes, left, 5.2, "One tile, 64 query rows x 128 keys, in a block of 8 warps:")
    half_w = (wide - 2.0) / 2
    rows = [("S = Q K^T", "dP = dO V^T"), ("P, to shared memory", "dS = scale P (dP - D), too"), ("dV += P^T dO", "dK += dS^T Q")]
    for h, name in enumerate(("first half, warps 0 to 3", "second half, warps 4 to 7")):
        hx = left + h * (half_w + 2.0)
        text(axes, hx + half_w / 2, 7.9, name, ha="center", weight="bold")
        for r, words in enumerate(rows):
            top = 9.4 + 3.6 * r
            stays = r == 2
            box(axes, hx, top, half_w, 2.8, face=sheet.OWNED if stays else sheet.SECTOR_TINT, edge=style.GREY, order=2)
            text(axes, hx + half_w / 2, top + 1.4, words[h], ha="center", zorder=5)
    text(axes, left + half_w / 2, 20.6, "dV of 128 keys stays in registers", size=8.5, ha="center")
    text(axes, left + 1.5 * half_w + 2.0, 20.6, "dK of 128 keys stays in registers", size=8.5, ha="center")
    box(axes, left, 22.0, wide, 2.8, face=ARRIVES, edge=style.GREY, order=2)
    text(axes, left + wide / 2, 23.4, "dQ += dS K, all warps over all 128 keys", ha="center", zorder=5)
    arrow(axes, left + half_w - 1.2, 11.0 + 4.2, left + half_w + 2.0, 11.0 + 4.2, sheet.LANE)
    text(axes, left + wide / 2, 26.0, "added to dQ in global memory", size=8.5, ha="center")

    # The tiles, and what one warp and one lane own.
    title_y, top, cell = 29.8, 38.0, 0.26
    text(axes, 1, title_y, "What a warp owns, and what a lane", **TITLE)
    corners = lambda high, across, of, warps=HALF_WARPS: [(w // of * high, w % of * across, high, across) for w in range(warps)]
    S = panel(axes, 3.0, top, BR, BC, cell, in_scores, corners(S_ROWS, S_KEYS, 2))
    G = panel(axes, 40.5, top, BC, D, cell, in_keys, corners(K_KEYS, K_COLS, K_COL_WARPS))
    Q = panel(axes, 61.5, top, BR, D, cell, in_dQ, corners(Q_ROWS, Q_COLS, Q_COL_WARPS, 2 * HALF_WARPS))
    names = ((S, "S, dP: 4 warps each", "query rows", "keys"), (G, "dV, dK: 4 each", "keys", "columns"),
             (Q, "dQ: 8 warps", "query rows", "columns"))
    for M, name, down, across in names:
        text(axes, M.x, top - 4.8, name, weight="bold", size=11)
        text(axes, M.x, top - 2.6, f"{M.rows} {down} x {M.cols} {across}", size=9)
        for at in (0, M.rows // 2):
            text(axes, M.x - 0.4, M.y + at * cell + 0.6, str(at), size=8, ha="right")
        for at in (0, M.cols // 2):
            text(axes, M.x + at * cell + 0.2, M.y - 0.9, str(at), size=8)

    count = len(in_scores(WARP_SHOWN, LANE_SHOWN)), len(in_keys(WARP_SHOWN, LANE_SHOWN)), len(in_dQ(WARP_SHOWN, LANE_SHOWN))
    assert count == (64, 64, 16)
    text(axes, S.x, S.bottom + 2.9, f"{count[0]} of a lane: rows lane_row + 4 i and keys\nlane_col + 8 j of its warp, i, j = 0 to 7")
    text(axes, G.x, G.bottom + 3.9, f"{count[1]} of a lane: keys 4 lane_row + 16 n\n+ 0 to 3, columns 4 lane_col + 32 c\n"
         "+ 0 to 3 of its warp, n, c = 0, 1")
    text(axes, Q.x, Q.bottom + 4.6, f"{count[2]} of a lane: rows\nlane_row + 4 i, columns\n4 lane_col + 0 to 3\n"
         "of its warp, i = 0 to 3.")

    # The lanes.
    big, px, py = 2.4, 8.0, 67.2
    text(axes, px - 5.0, py - 3.2, "lane_col: bits 3 2 1 of the lane's number")
    P = Matrix(axes, px, py, LANE_ROWS, LANE_COLS, big, sheet.SECTOR_TINT)
    for lane in range(WARP):
        r, c = lane_row(lane), lane_col(lane)
        if lane == LANE_SHOWN:
            P.fill(r, c, sheet.LANE, order=3)
        text(axes, P.x + (c + 0.5) * big, P.y + (r + 0.5) * big, str(lane), size=10, ha="center", zorder=6,
             color="white" if lane == LANE_SHOWN else style.INK)
    P.grid()
    for c in range(LANE_COLS):
        text(axes, P.x + (c + 0.5) * big, py - 1.0, str(c), size=8.5, ha="center", color=style.GREY)
    for r in range(LANE_ROWS):
        text(axes, P.x - 0.6, P.y + (r + 0.5) * big, str(r), size=8.5, ha="right", color=style.GREY)
    text(axes, 3.0, P.y + LANE_ROWS * big / 2, "lane_row:\nbits 4 0", ha="center", rotation=90)
    key_to_colours(axes, 80.6, [
        (sheet.SECTOR_TINT, style.GREY, f"warp {WARP_SHOWN}, or {WARP_SHOWN} of a half", 17),
        (sheet.LANE, sheet.LANE, f"its lane {LANE_SHOWN}", 13),
        (sheet.NOW, sheet.NOW, "the tile of now", 17),
        (sheet.OWNED, style.GREY, "the block's, for the whole walk", 28),
    ])
    key_to_colours(axes, 83.8, [(ARRIVES, style.GREY, "to global memory for every tile", 30)])
    close_page(fig, path, metadata)


def draw_barriers(path, metadata):
    import style

    fig, axes = open_page(46)
    text(axes, 1, 1.6, "One tile of queries, from barrier to barrier (lengths not to scale)", **TITLE)
    start = 11.0
    parts = (("scores", 13.0), ("P", 8.0), ("dS", 8.0), ("keys", 13.0), ("dQ", 14.0))
    at, x = {}, start
    for name, width in parts:
        at[name] = (x, width)
        x += width
    end = x
    lanes = {"first half": 8.4, "second half": 13.0, "copies": 17.6}
    tall = 3.2
    for name, y in lanes.items():
        text(axes, 1, y + tall / 2, name, weight="bold")

    def part(lane, name, words, face, to=None, color=style.INK, size=9.5):
        left, width = at[name]
        width = (to or left + width) - left
        box(axes, left, lanes[lane], width, tall, face=face, edge=style.GREY, line=0.9, order=2)
        text(axes, left + width / 2, lanes[lane] + tall / 2, words, size=size, ha="center", zorder=5, color=color)

    part("first half", "scores", "S = Q K^T", sheet.NOW, color="white")
    part("first half", "P", "writes P", sheet.OWNED)
    part("first half", "dS", "waits", WAITS, color=style.GREY)
    part("first half", "keys", "dV += P^T dO", sheet.NOW, color="white")
    part("first half", "dQ", "dQ += dS K", sheet.NOW, color="white")
    part("second half", "scores", "dP = dO V^T", sheet.NOW, color="white")
    part("second half", "P", "waits", WAITS, color=style.GREY)
    part("second half", "dS", "writes dS", sheet.OWNED)
    part("second half", "keys", "dK += dS^T Q", sheet.NOW, color="white")
    part("second half", "dQ", "dQ += dS K", sheet.NOW, color="white")
    part("copies", "scores", "", sheet.SECTOR_TINT, to=at["dQ"][0])
    for name in ("scores", "keys"):
        text(axes, at[name][0] + at[name][1] / 2, lanes["copies"] + tall / 2, "Q, dO in use", ha="center", zorder=5)
    part("copies", "dQ", "next Q, dO arrive", ARRIVES)

    lines = (
        (start, "1"), (at["dS"][0], "2"), (at["keys"][0], "3"), (at["dQ"][0], "4"), (end, "1"),
    )
    for where, number in lines:
        axes.plot([where, where], [6.6, 21.8], color=sheet.LANE, linewidth=2.2, zorder=6)
        text(axes, where, 5.2, number, ha="center", size=11, weight="bold", color=sheet.LANE)

    y = 25.0
    text(axes, 1, y, "What each __syncthreads() prevents", size=11, weight="bold")
    reasons = (
        ("1", "after each thread has waited for its own copies:\n"
              "reading rows of Q, dO, L2, D (at first K, V) that another thread has not copied yet;\n"
              "overwriting dS while a warp still multiplies it with K for dQ"),
        ("2", "the second half reading P before the first half has written it"),
        ("3", "reading P or dS for dV, dK and dQ before their warps have written them"),
        ("4", "the copies of the next tile overwriting Q or dO while a warp still reads them for dV or dK"),
    )
    y += 2.6
    for number, words in reasons:
        count = words.count("\n") + 1
        text(axes, 2.0, y, number, size=10.5, weight="bold", color=sheet.LANE)
        text(axes, 4.4, y - 0.9, words, size=10, va="top")
        y += 1.8 * count + 1.2
    key_to_colours(axes, 43.6, [
        ("none", sheet.LANE, "barrier", 11),
        (sheet.NOW, sheet.NOW, "multiplies", 13),
        (sheet.OWNED, style.GREY, "writes shared memory", 21),
        (sheet.SECTOR_TINT, style.GREY, "read", 8),
        (ARRIVES, style.GREY, "written by cp.async", 20),
    ])
    close_page(fig, path, metadata)


PICTURES = {"who_owns_what.png": draw_who_owns_what, "barriers.png": draw_barriers}

if __name__ == "__main__":
    inputs = [Path(__file__), Path(sheet.__file__), provenance.STYLE]
    folder = ROOT / "steps" / "09_fa2_bwd_warps"
    provenance.main([provenance.Picture(folder / name, inputs, draw) for name, draw in PICTURES.items()])
