#!/usr/bin/env python3
"""Draws the pictures of chapters 04_fa1_fwd and 05_fa2_fwd, computed from the sizes and index formulas of their kernels.

    draw_forward.py            draws steps/*/NAME.png where the picture is missing or its scripts have changed
    draw_forward.py --check    draws nothing; are the pictures up to date? (needs no matplotlib)

The page, the matrices and the colours are those of draw_chapters.py. Lengths are in tenths of an inch; y grows downwards.
"""

from pathlib import Path

import draw_chapters as sheet
import provenance
from draw_chapters import Matrix, arrow, box, close_page, key_to_colours, open_page, text

ROOT = Path(__file__).resolve().parent.parent
WARP = 32
TILE = 32  # Br and Bc of both chapters
D = 64  # the head dimension that is drawn
LANE_SHOWN = 5
TITLE = {"size": 12.5, "weight": "bold"}


# ---- the order in which the tiles of S are visited -------------------------------------------------------------------

TILES = 4  # T_r and T_c as drawn


def grid_of_visits(axes, x, y, cell, number, fill):
    """The tiles of S, each with the number of its visit. `number(i, j)` and `fill(i, j)` for query tile i, key tile j."""
    import style

    for i in range(TILES):
        for j in range(TILES):
            face = fill(i, j)
            box(axes, x + j * cell, y + i * cell, cell, cell, face=face, edge=style.GREY, line=0.9, order=2)
            color = "white" if face == sheet.NOW else style.INK
            text(axes, x + (j + 0.5) * cell, y + (i + 0.5) * cell, str(number(i, j)), size=11, ha="center", color=color, zorder=5)


def strip(axes, x, y, width, cell, across, name, fill):
    """One row or column of tiles beside the grid."""
    import style

    for t in range(TILES):
        if across:
            box(axes, x + t * cell, y, cell, width, face=fill(t), edge=style.GREY, line=0.9)
        else:
            box(axes, x, y + t * cell, width, cell, face=fill(t), edge=style.GREY, line=0.9)
    if across:
        text(axes, x - 1.0, y + width / 2, name, weight="bold", ha="right")
    else:
        text(axes, x + width / 2, y - 1.3, name, weight="bold", ha="center")


def draw_04_order_of_visits(path, metadata):
    import style

    cell, x, y = 6.0, 21.0, 14.5
    i_now, j_now = 2, 1
    visit = lambda i, j: j * TILES + i + 1
    now = visit(i_now, j_now)
    fig, axes = open_page(49)
    text(axes, 1, 1.4, "One block, one head: down all query tiles, then on to the next tile of keys", **TITLE)

    fill = lambda i, j: sheet.NOW if visit(i, j) == now else style.PALE if visit(i, j) < now else "white"
    grid_of_visits(axes, x, y, cell, visit, fill)
    held = lambda j: sheet.OWNED if j == j_now else "white"
    strip(axes, x, 5.2, 2.4, cell, True, "K", held)
    strip(axes, x, 8.4, 2.4, cell, True, "V", held)
    for j in range(TILES):
        text(axes, x + (j + 0.5) * cell, 12.3, f"{j * TILE} to {j * TILE + TILE - 1}", size=8.5, ha="center")
    text(axes, x + TILES * cell + 0.8, 12.3, "key", size=8.5)
    needed = lambda i: sheet.SECTOR_TINT if i == i_now else "white"
    strip(axes, 1.0, y, 6.0, cell, False, "Q", needed)
    strip(axes, 8.6, y, 6.0, cell, False, "O", needed)
    strip(axes, 15.6, y, 1.0, cell, False, "m", needed)
    strip(axes, 17.6, y, 1.0, cell, False, "l", needed)
    for column in range(TILES):  # the way through the tiles
        at = x + (column + 0.82) * cell
        arrow(axes, at, y + 0.8, at, y + TILES * cell - 0.8, style.GREY)
    top, foot = y + i_now * cell, y + (i_now + 1) * cell
    for left, width in ((1.0, 6.0), (8.6, 6.0), (15.6, 1.0), (17.6, 1.0)):
        box(axes, left, top, width, cell, edge=sheet.NOW, line=1.8, order=6)
    for left, width in ((8.6, 6.0), (15.6, 1.0), (17.6, 1.0)):
        box(axes, left + 0.35, top + 0.35, width - 0.7, cell - 0.7, edge=sheet.LANE, line=1.5, order=7)
    text(axes, 4.0, (top + foot) / 2, "read", ha="center", color=sheet.NOW)
    text(axes, 11.6, (top + foot) / 2 - 1.1, "read,", ha="center", color=sheet.NOW)
    text(axes, 11.6, (top + foot) / 2 + 1.1, "written", ha="center", color=sheet.LANE)

    side = x + TILES * cell + 3.5
    lines = [
        (f"Visit {now}", "", "bold", style.INK),
        (f"in shared memory since visit {visit(0, j_now)}:", "", "normal", style.INK),
        ("K, V", f"{TILE} x d each", "normal", style.INK),
        ("read from global memory:", "", "normal", sheet.NOW),
        ("Q", f"{TILE} x d", "normal", sheet.NOW),
        ("O", f"{TILE} x d", "normal", sheet.NOW),
        ("m, l", f"{TILE} each", "normal", sheet.NOW),
        ("written back:", "", "normal", sheet.LANE),
        ("O", f"{TILE} x d", "normal", sheet.LANE),
        ("m, l", f"{TILE} each", "normal", sheet.LANE),
    ]
    for row, (words, shape, weight, color) in enumerate(lines):
        text(axes, side + (2.5 if shape else 0), y + 1.0 + 2.35 * row, words, size=10.5, weight=weight, color=color)
        text(axes, side + 8.5, y + 1.0 + 2.35 * row, shape, size=10.5, color=color)
    text(axes, 1, 41.4, "At the first tile of keys O, m and l are not read: they are known to be 0, -inf and 0. At the last one L is written.")
    key_to_colours(axes, 45.2, [
        (sheet.NOW, sheet.NOW, "this visit", 12),
        (style.PALE, style.GREY, "visits before", 14.5),
        (sheet.OWNED, style.GREY, "stays in shared memory", 22),
        ("none", sheet.NOW, "read", 8.5),
        ("none", sheet.LANE, "written back", 12),
    ])
    close_page(fig, path, metadata)


def draw_05_loops_exchanged(path, metadata):
    import style

    cell, y = 5.2, 16.2
    now, row_now = 3, 1
    fig, axes = open_page(50)

    def side(x, title, words, number, fill, kept_row, kept_column):
        text(axes, x, 1.4, title, **TITLE)
        text(axes, x, 4.3, words)
        grid = x + 12.2
        strip(axes, grid, 7.0, 2.2, cell, True, "K", kept_column)
        strip(axes, grid, 10.0, 2.2, cell, True, "V", kept_column)
        strip(axes, x, y, 3.6, cell, False, "Q", kept_row)
        strip(axes, x + 4.2, y, 3.6, cell, False, "O", kept_row)
        strip(axes, x + 8.4, y, 1.0, cell, False, "m", kept_row)
        strip(axes, x + 10.2, y, 1.0, cell, False, "l", kept_row)
        grid_of_visits(axes, grid, y, cell, number, fill)
        return grid

    first = lambda i, j: j * TILES + i + 1
    fa1_now = first(2, 1)
    moved = lambda t, at: sheet.SECTOR_TINT if t == at else "white"
    kept = lambda t, at: sheet.OWNED if t == at else "white"
    grid = side(1.0, "04: a block a head", "outer loop: keys; inner loop: queries", first,
                lambda i, j: sheet.NOW if first(i, j) == fa1_now else style.PALE if first(i, j) < fa1_now else "white",
                lambda i: moved(i, 2), lambda j: kept(j, 1))
    for column in range(TILES):
        at = grid + (column + 0.84) * cell
        arrow(axes, at, y + 0.6, at, y + TILES * cell - 0.6, style.GREY)
    below = y + TILES * cell + 2.0
    text(axes, 1.0, below, "each visit:  Q, O, m, l read;  O, m, l written\neach tile of keys:  K, V read once\n"
         "at each visit O is divided by l", va="top")

    grid = side(43.0, "05: a block a query tile", "blocks: queries; loop: keys", lambda i, j: j + 1,
                lambda i, j: ("white" if i != row_now else sheet.NOW if j + 1 == now else style.PALE if j + 1 < now else "white"),
                lambda i: kept(i, row_now), lambda j: moved(j, now - 1))
    for row in range(TILES):
        at = y + (row + 0.84) * cell
        arrow(axes, grid + 0.6, at, grid + TILES * cell - 0.6, at, style.GREY)
        text(axes, grid + TILES * cell + 0.5, y + (row + 0.5) * cell, f"{row}", color=style.INK, weight="bold" if row == row_now else "normal")
    text(axes, grid + TILES * cell + 1.0, y - 1.3, "block", ha="center")
    text(axes, 43.0, below, "each visit:  K, V read\neach query tile:  Q read once, O and L written once\nat the end O is divided by l", va="top")
    key_to_colours(axes, 48.0, [
        (sheet.NOW, sheet.NOW, "this visit", 12),
        (style.PALE, style.GREY, "this block's visits before", 23),
        (sheet.OWNED, style.GREY, "stays in the block", 18.5),
        (sheet.SECTOR_TINT, style.GREY, "travels at each visit", 17),
    ])
    close_page(fig, path, metadata)


# ---- how shared memory is divided ------------------------------------------------------------------------------------


def draw_04_shared_memory(path, metadata):
    import style

    PAD, KIB = 1, 1024
    scale = 74.0 / (64 * KIB)  # a block's 64 KiB are 74 units wide
    left = 2.0
    fig, axes = open_page(37)
    text(axes, 1, 1.4, "A block's shared memory, drawn to scale", **TITLE)
    faces = {"Q": sheet.SECTOR_TINT, "K": sheet.OWNED, "V": "#F6DDB0", "S": "#E8CFE0"}
    for row, d in enumerate((64, 128)):
        parts = [("Q", TILE, d, PAD), ("K", TILE, d, PAD), ("V", TILE, d, 0), ("S", TILE, TILE, PAD)]
        total = 4 * sum(rows * (cols + pad) for _, rows, cols, pad in parts)
        # The formula of the kernel file: (Br + Bc) (d + PAD) + Bc d + Br (Bc + PAD).
        assert total == 4 * ((TILE + TILE) * (d + PAD) + TILE * d + TILE * (TILE + PAD))
        y, tall = 8.6 + 12.6 * row, 5.0
        text(axes, left, y - 2.0, f"d = {d}:  {total} bytes", size=11, weight="bold")
        x = left
        for name, rows, cols, pad in parts:
            size = 4 * rows * (cols + pad)
            padding = 4 * rows * pad * scale
            box(axes, x, y, size * scale, tall, face=faces[name], edge=style.INK, line=1.0, order=2)
            if pad:
                box(axes, x + size * scale - padding, y, padding, tall, face=style.INK, order=3)
            middle = x + size * scale / 2 - padding / 2
            text(axes, middle, y + 1.6, name, size=11, weight="bold", ha="center", zorder=5)
            text(axes, middle, y + 3.6, str(size), size=8.5, ha="center", zorder=5)
            shape = f"{rows} x ({cols} + {pad})" if pad else f"{rows} x {cols}"
            if size * scale > 8:
                text(axes, middle, y + tall + 1.3, shape, size=8.5, ha="center")
            else:
                text(axes, x + 0.8, y + tall + 1.3, shape, size=8.5)
            x += size * scale
    for limit in (48, 64):
        at = left + limit * KIB * scale
        axes.plot([at, at], [4.8, 28.6 if limit == 48 else 31.0], color=sheet.LANE, linewidth=1.4, linestyle="--", zorder=1)
    text(axes, left + 48 * KIB * scale, 30.0, "48 KiB: the most a launch gets without asking", color=sheet.LANE, ha="center")
    text(axes, left + 64 * KIB * scale, 32.4, "64 KiB: the most that every card since 7.5 gives when asked", color=sheet.LANE, ha="right")
    key_to_colours(axes, 35.2, [(style.INK, style.INK, "padding: one float after each row (drawn together, at the end)", 40)], x=left)
    close_page(fig, path, metadata)


# ---- who reads what: S = Q K^T above, O = P V below --------------------------------------------------------------------


def products(axes, cell, top, below, words):
    """The six matrices of both products at one pair of tiles; `words` are the six headings."""
    left, gap = 4.0, 4.2
    shapes = [(TILE, D), (TILE, D), (TILE, TILE)]
    above, x = [], left
    for (rows, cols), (name, what) in zip(shapes, words[:3]):
        above.append(Matrix(axes, x, top, rows, cols, cell))
        text(axes, x, top - 3.3, name, weight="bold")
        text(axes, x, top - 1.3, what)
        x += cols * cell + gap
    shapes = [(TILE, TILE), (TILE, D), (TILE, D)]
    lower, x = [], left
    for (rows, cols), (name, what) in zip(shapes, words[3:]):
        lower.append(Matrix(axes, x, below, rows, cols, cell))
        text(axes, x, below - 3.3, name, weight="bold")
        text(axes, x, below - 1.3, what)
        x += cols * cell + gap
    return above, lower


def thin_lines(matrix, every):
    """Lines between groups of rows."""
    import style

    for row in range(every, matrix.rows, every):
        y = matrix.y + row * matrix.cell
        matrix.axes.plot([matrix.x, matrix.right], [y, y], color=style.GREY, linewidth=0.8, zorder=5)


def draw_04_who_reads_what(path, metadata):
    import style

    warps, warp, c, key = 8, 1, 20, 12
    fig, axes = open_page(58.5)
    cell = 0.4
    top, below = 8.4, 35.4
    text(axes, 1, 1.4, "S = Q K^T: lane = query, a warp does every eighth key", **TITLE)
    text(axes, 1, 28.4, "O = P V: a warp does every eighth row, lane = column", **TITLE)
    words = [("Q_smem", "32 queries x 64"), ("K_smem", "32 keys x 64"), ("S_smem", "query x key"),
             ("S_smem, now P", "query x key"), ("V_smem", "32 keys x 64"), ("O, global", "32 queries x 64")]
    (Q, K, S), (P, V, O) = products(axes, cell, top, below, words)
    mine = range(warp, TILE, warps)  # keys above, rows below
    at = mine[1]
    for m in mine:
        S.fill(0, m, sheet.OWNED, rows=TILE)
        O.fill(m, 0, sheet.OWNED, cols=D)
        P.fill(m, 0, sheet.OWNED, cols=TILE)
    Q.fill(0, c, sheet.NOW, rows=TILE)
    K.fill(at, c, sheet.NOW)
    S.fill(0, at, sheet.NOW, rows=TILE)
    Q.outline(LANE_SHOWN, 0, 1, D, sheet.LANE)
    S.outline(LANE_SHOWN, at, 1, 1, sheet.LANE)
    K.outline(at, 0, 1, D, style.INK, line=0.9)
    text(axes, Q.x, Q.bottom + 1.4, f"column {c} of 32 rows:\n32 words in 32 banks, 1 wavefront", va="top")
    text(axes, K.x, K.bottom + 1.4, f"one element of key {at}, for all lanes:\na broadcast, 1 wavefront", va="top")
    text(axes, S.x, S.bottom + 1.4, f"the sums of key {at},\na lane each", va="top")

    P.fill(at, key, sheet.NOW)
    P.outline(at, 0, 1, TILE, style.INK, line=0.9)
    V.fill(key, 0, sheet.NOW, cols=WARP)
    V.outline(0, LANE_SHOWN, TILE, 1, sheet.LANE)
    O.fill(at, 0, sheet.NOW, cols=WARP)
    O.outline(at, LANE_SHOWN, 1, 1, sheet.LANE)
    text(axes, P.x, P.bottom + 1.4, f"one element of\nrow {at}: a broadcast", va="top")
    text(axes, V.x, V.bottom + 1.4, f"key {key}, 32 neighbours:\n32 words in 32 banks, 1 wavefront", va="top")
    text(axes, O.x, O.bottom + 1.4, f"the sums of row {at}, a lane each; after\nthe last key read, rescaled and written", va="top")
    key_to_colours(axes, 56.2, [
        (sheet.NOW, sheet.NOW, "touched for this multiply-add", 27),
        (sheet.OWNED, style.GREY, f"the rest of what warp {warp} does", 26),
        ("none", sheet.LANE, f"lane {LANE_SHOWN}", 10),
    ])
    close_page(fig, path, metadata)


def draw_05_who_owns_what(path, metadata):
    import style

    warps, rows, warp, c, key = 4, 8, 1, 20, 12
    fig, axes = open_page(60)
    cell = 0.4
    top, below = 8.4, 36.0
    row0 = warp * rows
    text(axes, 1, 1.4, "S = Q K^T: a warp has 8 rows, lane = key", **TITLE)
    text(axes, 1, 29.0, "O += P V: the same rows, lane = column", **TITLE)
    words = [("Q_smem", "32 queries x 64"), ("K_smem", "32 keys x 64"), ("S_reg[8]", "query x key"),
             ("S_reg[8], now P", "query x key"), ("V_smem", "32 keys x 64"), ("O_reg[8][2]", "32 queries x 64")]
    (Q, K, S), (P, V, O) = products(axes, cell, top, below, words)
    for matrix in (Q, S, P, O):
        thin_lines(matrix, rows)
    for matrix in (S, P, O):
        matrix.fill(row0, 0, sheet.OWNED, rows=rows, cols=matrix.cols)
    for matrix in (Q, P):
        text(axes, matrix.x - 0.7, matrix.y - 1.3, "warp", size=8.5, ha="right")
        for w in range(warps):
            text(axes, matrix.x - 1.1, matrix.y + (w + 0.5) * rows * cell, str(w), ha="right",
                 weight="bold" if w == warp else "normal")
    Q.fill(row0, c, sheet.NOW, rows=rows)
    K.fill(0, c, sheet.NOW, rows=TILE)
    S.outline(row0, LANE_SHOWN, rows, 1, sheet.LANE)
    K.outline(LANE_SHOWN, 0, 1, D, sheet.LANE)
    text(axes, Q.x, Q.bottom + 1.4, f"column {c} of the warp's rows:\n8 broadcasts", va="top")
    text(axes, K.x, K.bottom + 1.4, f"column {c}, a lane each:\n1 request, 32 banks", va="top")
    text(axes, S.x, S.bottom + 1.4, "9 requests,\n8 multiply-adds", va="top")

    P.fill(row0, key, sheet.NOW, rows=rows)
    V.fill(key, 0, sheet.NOW, cols=D)
    for t in range(D // WARP):
        O.outline(row0, LANE_SHOWN + t * WARP, rows, 1, sheet.LANE)
        V.outline(key, LANE_SHOWN + t * WARP, 1, 1, sheet.LANE)
    text(axes, P.x, P.bottom + 1.4, f"P of key {key}, from\nlane {key} to all:\n8 shuffles", va="top")
    text(axes, V.x, V.bottom + 1.4, f"row {key}, 64 neighbours:\n2 requests", va="top")
    text(axes, O.x, O.bottom + 1.4, "10 requests (shuffles are served by\nthe same pipe), 16 multiply-adds", va="top")
    key_to_colours(axes, 57.6, [
        (sheet.NOW, sheet.NOW, "touched now", 15),
        (sheet.OWNED, style.GREY, f"registers of warp {warp}", 20),
        ("none", sheet.LANE, f"lane {LANE_SHOWN}: one key above, two columns below", 32),
    ])
    close_page(fig, path, metadata)


# ---- the tiles under a causal mask -------------------------------------------------------------------------------------


def causal_tiles(N_q, N_kv, Br, Bc):
    """As the kernel decides, {(query tile, key tile): "skipped", "masked" or "full"}."""
    kinds = {}
    shift = N_kv - N_q
    for row0 in range(0, N_q, Br):
        end = max(0, min(N_kv, row0 + Br - 1 + shift + 1))
        for key0 in range(0, N_kv, Bc):
            masked = key0 + Bc > min(N_kv, row0 + shift + 1)
            kinds[row0 // Br, key0 // Bc] = "skipped" if key0 >= end else "masked" if masked else "full"
    return kinds


def draw_05_causal_tiles(path, metadata):
    import style

    tile, cell = 4, 1.62
    fig, axes = open_page(48)
    faces = {"full": sheet.SECTOR_TINT, "masked": sheet.OWNED, "skipped": "white"}

    def draw(x, N_q, N_kv, title):
        y = 11.0
        text(axes, x, 1.4, title, **TITLE)
        kinds = causal_tiles(N_q, N_kv, tile, tile)
        count = lambda kind: sum(k == kind for k in kinds.values())
        text(axes, x, 4.4, f"N_q = {N_q}, N_kv = {N_kv}: {count('full')} full, {count('masked')} masked, {count('skipped')} skipped")
        text(axes, x, 8.2, "key")
        for j in range(0, N_kv, tile):
            text(axes, x + (j + 0.5) * cell, 9.9, str(j), size=8.5, ha="center")
        for (i, j), kind in kinds.items():
            X, Y = x + j * tile * cell, y + i * tile * cell
            box(axes, X, Y, tile * cell, tile * cell, face=faces[kind], order=1)
            if kind == "masked":  # hidden, or no key at all
                for r in range(tile):
                    for k in range(tile):
                        if j * tile + k >= min(N_kv, i * tile + r + N_kv - N_q + 1):
                            box(axes, X + k * cell, Y + r * cell, cell, cell, face="white", order=2)
                            text(axes, X + (k + 0.5) * cell, Y + (r + 0.5) * cell, "×", size=8, ha="center",
                                 color=style.GREY, zorder=3)
        for (i, j) in kinds:
            X, Y = x + j * tile * cell, y + i * tile * cell
            box(axes, X, Y, tile * cell, tile * cell, edge=style.GREY, line=1.0, order=4)
        # The diagonal: row i sees keys 0 to i + N_kv - N_q.
        steps = []
        for row in range(N_q):
            at = x + (row + N_kv - N_q + 1) * cell
            steps += [(at, y + row * cell), (at, y + (row + 1) * cell)]
        axes.plot([s[0] for s in steps], [s[1] for s in steps], color=sheet.LANE, linewidth=1.8, zorder=6)
        for i in range(N_q // tile):
            visits = sum(kinds[i, j] != "skipped" for j in range(-(-N_kv // tile)))
            text(axes, x + -(-N_kv // tile) * tile * cell + 0.7, y + (i + 0.5) * tile * cell, str(visits), size=10)
        return y + N_q * cell, x + -(-N_kv // tile) * tile * cell

    bottom, right = draw(3.4, 16, 16, "As many queries as keys")
    text(axes, 1.9, 11.0 + 8 * cell, "query", ha="center", rotation=90)
    text(axes, right - 0.7, 9.9, "visits", size=8.5, ha="left")
    x = 38.4
    low, right = draw(x, 12, 22, "Fewer queries than keys")
    text(axes, x - 1.5, 11.0 + 6 * cell, "query", ha="center", rotation=90)
    text(axes, right - 0.7, 9.9, "visits", size=8.5, ha="left")
    text(axes, x, low + 1.2, "Keys 22 and 23 do not exist. The diagonal passes through the\n"
         "inside of tiles, so each block has more than one masked tile.", va="top")
    entries = [
        (faces["full"], style.GREY, "full: no test of the mask", 24),
        (faces["masked"], style.GREY, "masked: each score is tested", 27),
        ("white", style.GREY, "skipped: not loaded", 20),
    ]
    key_to_colours(axes, bottom + 3.4, entries)
    axes.plot([1.0, 2.6], [bottom + 6.2] * 2, color=sheet.LANE, linewidth=1.8)
    text(axes, 3.3, bottom + 6.2, "a row sees the keys left of this line;  × a score that becomes -inf;  visits: key tiles that a block visits")
    text(axes, 1.0, bottom + 9.0, "Drawn with tiles of 4 x 4; the kernel's are 32 x 32.")
    close_page(fig, path, metadata)


PICTURES = {
    "04_fa1_fwd/order_of_visits.png": draw_04_order_of_visits,
    "04_fa1_fwd/shared_memory.png": draw_04_shared_memory,
    "04_fa1_fwd/who_reads_what.png": draw_04_who_reads_what,
    "05_fa2_fwd/loops_exchanged.png": draw_05_loops_exchanged,
    "05_fa2_fwd/who_owns_what.png": draw_05_who_owns_what,
    "05_fa2_fwd/causal_tiles.png": draw_05_causal_tiles,
}

if __name__ == "__main__":
    inputs = [Path(__file__), Path(sheet.__file__), provenance.STYLE]
    provenance.main([provenance.Picture(ROOT / "steps" / name, inputs, draw) for name, draw in PICTURES.items()])
