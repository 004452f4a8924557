#!/usr/bin/env python3
"""Draws the pictures of chapters 07_naive_bwd and 08_fused_bwd, computed from the sizes and index formulas of their kernels.

    draw_backward.py            draws steps/*/NAME.png where the picture is missing or its scripts have changed
    draw_backward.py --check    draws nothing; are the pictures up to date? (needs no matplotlib)

The page, the matrices and the colours are those of draw_chapters.py. Lengths are in tenths of an inch; y grows downwards.
"""

from pathlib import Path

import draw_chapters as sheet
import provenance
from draw_chapters import Matrix, arrow, box, close_page, key_to_colours, open_page, text

ROOT = Path(__file__).resolve().parent.parent
WARP = 32
D = 64  # the head dimension that is drawn
LANE_SHOWN = 5
TITLE = {"size": 12.5, "weight": "bold"}
STORED = "#F6DDB0"  # N_q x N_kv, in global memory


# ---- 07: five products ------------------------------------------------------------------------------------------------

TILES = {"N_q": 4, "N_kv": 5, "d": 2}  # as drawn, in tiles of 32
# The name of C, of A and B as they are multiplied, the shape (rows, cols, depth), which operand is transposed, and the
# factor. As the launches in backward().
PRODUCTS = [
    ("S", "Q", "K", ("N_q", "N_kv", "d"), (False, True), "scale "),
    ("dP", "dO", "V", ("N_q", "N_kv", "d"), (False, True), ""),
    ("dV", "P", "dO", ("N_kv", "d", "N_q"), (True, False), ""),
    ("dK", "dS", "Q", ("N_kv", "d", "N_q"), (True, False), "scale "),
    ("dQ", "dS", "K", ("N_q", "d", "N_kv"), (False, False), "scale "),
]
STEP_OF_WALK = 1  # the tile of both operands that is shown


def operand(axes, x, y, rows, cols, cell, name, transposed, walk):
    """An operand as it stands in the product. `walk`: "row" or "column" and its number, the tiles that the block reads."""
    face = STORED if {rows, cols} == {"N_q", "N_kv"} else "white"
    M = Matrix(axes, x, y, TILES[rows], TILES[cols], cell, face=face)
    kind, at = walk
    for step in range(M.cols if kind == "row" else M.rows):
        row, col = (at, step) if kind == "row" else (step, at)
        M.fill(row, col, sheet.NOW if step == STEP_OF_WALK else sheet.SECTOR_TINT)
    grid_lines(M)
    text(axes, x + TILES[cols] * cell / 2, y - 1.2, name + ("^T" if transposed else ""), weight="bold", ha="center")
    # The direction of memory within the tile shown.
    row, col = (at, STEP_OF_WALK) if kind == "row" else (STEP_OF_WALK, at)
    cx, cy, half = x + (col + 0.5) * cell, y + (row + 0.5) * cell, 0.4 * cell
    ends = ((cx, cy - half), (cx, cy + half)) if transposed else ((cx - half, cy), (cx + half, cy))
    white_arrow(axes, *ends)
    return M


def white_arrow(axes, start, end):
    shape = {"arrowstyle": "-|>", "color": "white", "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
    axes.annotate("", end, start, arrowprops=shape, zorder=8)


def grid_lines(M):
    import style

    for row in range(1, M.rows):
        M.axes.plot([M.x, M.right], [M.y + row * M.cell] * 2, color=style.GREY, linewidth=0.5, zorder=5)
    for col in range(1, M.cols):
        M.axes.plot([M.x + col * M.cell] * 2, [M.y, M.bottom], color=style.GREY, linewidth=0.5, zorder=5)


def product(axes, x, middle, cell, which):
    """One of the five, its matrices on a common middle line; below it what each launch is called."""
    import style

    C, A, B, (rows, cols, depth), (A_transposed, B_transposed), factor = PRODUCTS[which]
    row, col = 2, 1  # of the tile of C that is shown
    place = lambda n: middle - TILES[n] * cell / 2
    M = Matrix(axes, x, place(rows), TILES[rows], TILES[cols], cell, face=STORED if depth == "d" else "white")
    M.fill(row, col, style.INK)
    grid_lines(M)
    text(axes, x + TILES[cols] * cell / 2, M.y - 1.2, C, weight="bold", ha="center")
    text(axes, M.right + 0.9, middle, "= " + factor, size=10.5)
    at = M.right + 3.2 + (4.0 if factor else 0.0)
    left = operand(axes, at, place(rows), rows, depth, cell, A, A_transposed, ("row", row))
    right = operand(axes, left.right + 1.6, place(depth), depth, cols, cell, B, B_transposed, ("column", col))
    bottom = max(M.bottom, left.bottom, right.bottom)
    flags = ", ".join("true" if flag else "false" for flag in (A_transposed, B_transposed))
    text(axes, x, bottom + (3.3 if which < 2 else 1.7), f"matmul<{flags}>", family="monospace")
    if which < 2:  # the sizes of the others follow
        for matrix, down, across in ((M, rows, cols), (left, rows, depth), (right, depth, cols)):
            text(axes, (matrix.x + matrix.right) / 2, matrix.bottom + 1.2, f"{down} x {across}", size=8.5, ha="center")


def draw_07_five_products(path, metadata):
    import style

    cell = 2.1
    fig, axes = open_page(62)
    text(axes, 1, 1.4, "Five products by one kernel; a block makes one tile of the left side", **TITLE)
    left, half = 2.0, 41.0
    product(axes, left, 10.4, cell, 0)
    product(axes, left + half, 10.4, cell, 1)

    # The softmax between them.
    y = 21.4
    box(axes, left, y - 1.5, 76.5, 3.0, face=STORED, edge=style.GREY, order=2)
    text(axes, left + 0.8, y, "softmax_backward", family="monospace", zorder=5)
    text(axes, left + 22, y, "S becomes P, in place", zorder=5)
    text(axes, left + half, y, "dP becomes dS, in place", zorder=5)

    product(axes, left, 31.6, cell, 2)
    product(axes, left + half, 31.6, cell, 3)
    product(axes, left, 49.0, cell, 4)

    # The arrows, and where the numbers go.
    x, y = left + half, 42.2
    text(axes, x, y, "The lanes of a warp read along the arrow,", weight="bold")
    text(axes, x, y + 1.9, "which is the order in memory:", weight="bold")
    lines = [("→", "as it is stored, row to row:"), ("", "A_smem[row][k], B_smem[k][col]"),
             ("↓", "A transposed, kept as it lies:"), ("", "A_smem[k][row]"),
             ("↓", "B transposed, turned over on the way:"), ("", "B_smem[k][col], down a column")]
    for n, (sign, words) in enumerate(lines):
        at = y + 4.3 + 1.75 * n + 0.5 * (n // 2)
        if sign:
            box(axes, x, at - 0.85, 1.7, 1.7, face=sheet.NOW, order=2)
            ends = ((x + 0.85, at - 0.65), (x + 0.85, at + 0.65)) if sign == "↓" else ((x + 0.2, at), (x + 1.5, at))
            white_arrow(axes, *ends)
        text(axes, x + 3.0, at, words, **({} if sign else {"family": "monospace", "size": 8.5}))
    key_to_colours(axes, 60.0, [
        (style.INK, style.INK, "the block's tile", 15),
        (sheet.NOW, sheet.NOW, "what is loaded now", 18),
        (sheet.SECTOR_TINT, style.GREY, "before and after", 16),
        (STORED, style.GREY, "N_q x N_kv, in global memory", 26),
    ])
    close_page(fig, path, metadata)


# ---- 08: who owns what --------------------------------------------------------------------------------------------------

WARPS, ROWS, BC = 8, 2, 32
BR = WARPS * ROWS
WARP_SHOWN, C_SHOWN, KEY_SHOWN = 1, 20, 17


def rows_of(warp):
    return [warp + r * WARPS for r in range(ROWS)]


def keys_of(warp):
    return list(range(warp, BC, WARPS))


def part(axes, top, title, matrices, cell=0.4):
    """A title and the matrices (name, what, rows, cols) below it, side by side."""
    text(axes, 1, top, title, **TITLE)
    drawn, x = [], 3.0
    for name, what, rows, cols in matrices:
        drawn.append(Matrix(axes, x, top + 7.0, rows, cols, cell))
        text(axes, x, top + 3.7, name, weight="bold")
        text(axes, x, top + 5.7, what)
        x += cols * cell + 3.6
    return drawn


def caption(axes, matrix, words):
    text(axes, matrix.x, matrix.bottom + 1.2, words, va="top")


def draw_08_who_owns_what(path, metadata):
    import style

    # Every row of the block has one warp in the first two parts, every key of the tile one in the third.
    assert sorted(r for w in range(WARPS) for r in rows_of(w)) == list(range(BR))
    assert sorted(k for w in range(WARPS) for k in keys_of(w)) == list(range(BC))
    rows, keys = rows_of(WARP_SHOWN), keys_of(WARP_SHOWN)
    row, key = rows[1], KEY_SHOWN
    assert key in keys
    fig, axes = open_page(88)
    query, keys_64, pair = f"{BR} queries x {D}", f"{BC} keys x {D}", "query x key"

    Q, K, P = part(axes, 1.4, f"1. P and dS: warp {WARP_SHOWN} has rows {rows[0]} and {rows[1]}, lane = key",
                   [("Q_smem, dO_smem", query, BR, D), ("K_smem, V_smem", keys_64, BC, D),
                    ("P_smem, dS_smem", pair, BR, BC)])
    for r in rows:
        P.fill(r, 0, sheet.OWNED, cols=BC)
        Q.fill(r, 0, sheet.OWNED, cols=D)
    Q.fill(row, C_SHOWN, sheet.NOW)
    K.fill(0, C_SHOWN, sheet.NOW, rows=BC)
    P.fill(row, 0, sheet.NOW, cols=BC)
    K.outline(LANE_SHOWN, 0, 1, D, sheet.LANE)
    P.outline(row, LANE_SHOWN, 1, 1, sheet.LANE)
    caption(axes, Q, f"row {row}, column {C_SHOWN}: a broadcast")
    caption(axes, K, f"column {C_SHOWN}, a lane each:\n32 rows in 32 banks")
    caption(axes, P, f"the sums of row {row},\na lane each")

    dS, K, dQ = part(axes, 30.0, "2. dQ += dS K: the same rows, lane = column",
                     [("dS_smem", pair, BR, BC), ("K_smem", keys_64, BC, D), ("dQ_reg", query, BR, D)])
    for r in rows:
        dS.fill(r, 0, sheet.OWNED, cols=BC)
        dQ.fill(r, 0, sheet.OWNED, cols=D)
    dS.fill(row, key, sheet.NOW)
    K.fill(key, 0, sheet.NOW, cols=WARP)
    dQ.fill(row, 0, sheet.NOW, cols=WARP)
    for t in range(D // WARP):
        K.outline(0, LANE_SHOWN + t * WARP, BC, 1, sheet.LANE, line=1.1)
        for r in rows:
            dQ.outline(r, LANE_SHOWN + t * WARP, 1, 1, sheet.LANE, line=1.3)
    caption(axes, dS, f"row {row}, key {key}:\na broadcast")
    caption(axes, K, f"key {key}, 32 neighbours")
    caption(axes, dQ, f"the sums of row {row}, in registers\nuntil the last key")

    P, dO, dV = part(axes, 58.0, f"3. dV += P^T dO, dK += dS^T Q: warp {WARP_SHOWN} has four keys, lane = column",
                     [("P_smem, dS_smem", pair, BR, BC), ("dO_smem, Q_smem", query, BR, D),
                      ("dV, dK, global", keys_64, BC, D)])
    for k in keys:
        P.fill(0, k, sheet.OWNED, rows=BR)
        dV.fill(k, 0, sheet.OWNED, cols=D)
    P.fill(0, key, sheet.NOW, rows=BR)
    dO.fill(0, 0, sheet.NOW, rows=BR, cols=WARP)
    dV.fill(key, 0, sheet.NOW, cols=WARP)
    for t in range(D // WARP):
        dO.outline(0, LANE_SHOWN + t * WARP, BR, 1, sheet.LANE, line=1.1)
        for k in keys:
            dV.outline(k, LANE_SHOWN + t * WARP, 1, 1, sheet.LANE, line=1.3)
    caption(axes, P, f"key {key} of all {BR} rows:\nto P_reg and dS_reg,\nfor all columns")
    caption(axes, dO, f"{BR} rows, one after the other:\n{BR} requests of 32 neighbours,\n{BR} multiply-adds")
    caption(axes, dV, f"key {key}: then one atomicAdd a lane")
    key_to_colours(axes, 86.0, [
        (sheet.NOW, sheet.NOW, "touched for one multiply-add (3: for all of one sum)", 42),
        (sheet.OWNED, style.GREY, f"warp {WARP_SHOWN}", 10),
        ("none", sheet.LANE, f"lane {LANE_SHOWN}", 10),
    ])
    close_page(fig, path, metadata)


# ---- 08: contributions are gathered ------------------------------------------------------------------------------------

N = 4096


def draw_08_gathered(path, metadata):
    import style

    fig, axes = open_page(58)
    cell, gap = 0.68, 2.6
    key, column = 40, 5
    blocks = [0, 1, N // BR - 1]
    strips = [7.2, 7.2 + BR * cell + gap, 7.2 + 2 * (BR * cell + gap) + 2.0]

    def side(x, title, gathers, below):
        text(axes, x, 1.4, title, **TITLE)
        text(axes, x + 9.4, 5.4, f"P, key {key}", size=8.5, ha="right")
        text(axes, x + 10.6, 5.4, f"dO, column {column}", size=8.5)
        # dV, and the element that all add to.
        left, top, wide, tall = x + 29.5, 10.0, 6.0, 32.0
        box(axes, left, top, wide, tall, face="white", edge=style.GREY, order=2)
        text(axes, left + wide / 2, top - 3.2, "dV", weight="bold", ha="center")
        text(axes, left + wide / 2, top - 1.2, f"{N} x {D}", size=8.5, ha="center")
        ex, ey, size = left + 1.6, top + 0.45 * tall, 1.3
        box(axes, ex, ey, size, size, face=sheet.LANE, order=5)
        text(axes, left + wide / 2, ey + 4.2, f"key {key},\ncolumn {column}", size=8.5, ha="center")
        for block, y in zip(blocks, strips):
            middle = y + BR * cell / 2
            text(axes, x, middle, f"block\n{block}", va="center")
            P = Matrix(axes, x + 7.4, y, BR, 1, cell)
            dO = Matrix(axes, x + 11.2, y, BR, 1, cell)
            for M in (P, dO):
                M.fill(0, 0, sheet.SECTOR_TINT, rows=BR)
                box(axes, M.x, M.y, cell, BR * cell, edge=style.GREY, line=0.8, order=5)
                for r in range(1, BR):
                    axes.plot([M.x, M.x + cell], [M.y + r * cell] * 2, color="white", linewidth=0.8, zorder=4)
            text(axes, x + 9.65, middle, "x", ha="center")
            if gathers:
                for r in range(BR):
                    at = y + (r + 0.5) * cell
                    axes.plot([dO.x + cell + 0.3, x + 17.3], [at, middle], color=style.GREY, linewidth=0.7, zorder=3)
                box(axes, x + 17.3, middle - 0.9, 1.8, 1.8, face=sheet.NOW, order=6)
                text(axes, x + 18.2, middle + 2.1, "dV_sum", size=8.5, ha="center")
                arrow(axes, x + 19.4, middle, ex - 0.2, ey + size / 2, sheet.LANE)
            else:
                for r in range(BR):
                    at = y + (r + 0.5) * cell
                    axes.plot([dO.x + cell + 0.3, ex - 0.1], [at, ey + size / 2], color=sheet.LANE, linewidth=0.7, zorder=6)
        text(axes, x + 9.6, strips[2] - 2.1, "...", ha="center", size=12.5, weight="bold")
        text(axes, x, strips[2] + BR * cell + 3.2, below, va="top")

    side(1.5, "This chapter: 16 rows, one addition", True,
         f"N {N}: {N // BR} additions to each element")
    side(42.0, "08_scattered: each row by itself", False,
         f"N {N}: {N} additions to each element")
    key_to_colours(axes, 56.2, [
        (sheet.SECTOR_TINT, style.GREY, f"{BR} rows, in shared memory", 24),
        (sheet.NOW, sheet.NOW, "a register of one lane", 20),
        (sheet.LANE, sheet.LANE, "atomicAdd, global memory", 24),
    ])
    close_page(fig, path, metadata)


PICTURES = {
    "07_naive_bwd/five_products.png": draw_07_five_products,
    "08_fused_bwd/who_owns_what.png": draw_08_who_owns_what,
    "08_fused_bwd/gathered.png": draw_08_gathered,
}

if __name__ == "__main__":
    inputs = [Path(__file__), Path(sheet.__file__), provenance.STYLE]
    provenance.main([provenance.Picture(ROOT / "steps" / name, inputs, draw) for name, draw in PICTURES.items()])
