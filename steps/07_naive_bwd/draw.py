"""Draws the picture of this chapter from a trace of its program; plots/draw.py runs it."""

import sheet
import traces
from sheet import GREY, INK, NOW, SAND, TINT, Matrix, Page, product

TILE, SIZES = 32, {"N_q": 128, "N_kv": 160, "d": 64}
SHAPES = {name: ("N_q", "d") for name in ("Q", "dO", "dQ")} | {name: ("N_kv", "d") for name in ("K", "V", "dK", "dV")}
SHAPES |= {name: ("N_q", "N_kv") for name in ("S", "P", "dP", "dS")}
BLOCK, STEP = (1, 2, 0), 1  # the block that is drawn, and its step along the depth
CELL = 2.1


def products(folder):
    """The five launches in order: C, A and B with the tiles that the block takes of them, and which operands it transposes."""
    blocks = ",".join(str(BLOCK[0] + BLOCK[1] * SIZES[across] // TILE) for across in ("N_kv", "d"))
    options = f"--heads 1 --seq {SIZES['N_q']} --seq-kv {SIZES['N_kv']} --dim {SIZES['d']}"
    pairs, found, softmax_done = SIZES["N_q"] * SIZES["N_kv"], [], False
    for launch in traces.run(folder, "07_naive_bwd", options, blocks):
        softmax_done = softmax_done or "softmax" in launch.kernel
        if BLOCK not in launch.blocks or "matmul" not in launch.kernel:
            continue
        loads, parts = launch.requests(BLOCK, space="global", kind="load"), []
        for requests in (launch.requests(BLOCK, space="global", kind="store"), loads[::2], loads[1::2]):
            name, first = requests[0].array, requests[0].elements()[0]
            if name == "workspace":
                name = ("P" if softmax_done else "S") if first < pairs else ("dS" if softmax_done else "dP")
            cols, start = SIZES[SHAPES[name][1]], pairs * (name in ("dS", "dP"))
            places = (divmod(request.elements()[0] - start, cols) for request in requests)
            parts.append([name, list(dict.fromkeys((row // TILE, col // TILE) for row, col in places))])  # each tile once
        transposed = [SHAPES[parts[1][0]][0] != SHAPES[parts[0][0]][0], SHAPES[parts[2][0]][1] != SHAPES[parts[0][0]][1]]
        found.append({"parts": parts, "transposed": transposed})
    return found


def operand(page, x, middle, name, tiles, transposed, target=False):
    """A matrix as it stands in the product, with the tiles that the block takes; arrows along the order in memory."""
    rows, cols = (SIZES[size] // TILE for size in SHAPES[name])
    if transposed:
        rows, cols, tiles = cols, rows, [at[::-1] for at in tiles]
    M = Matrix(page, x, middle - rows * CELL / 2, rows, cols, CELL)
    if "d" not in SHAPES[name]:
        M.fill(product(range(rows), range(cols)), SAND, order=2)
    M.fill(tiles, INK if target else TINT)
    if not target:
        M.fill([tiles[STEP]], NOW)
        cx, cy, half = *M.at(*tiles[STEP]), 0.4 * CELL
        page.arrow(*(((cx, cy - half), (cx, cy + half)) if transposed else ((cx - half, cy), (cx + half, cy))), "white")
    M.lines(1, 1, width=0.5)
    page.text(x + cols * CELL / 2, M.y - 1.2, name + ("^T" if transposed else ""), weight="bold", ha="center")
    return M


def five_products(folder):
    found = products(folder)
    assert [one["parts"][0][0] for one in found] == ["S", "dP", "dV", "dK", "dQ"]
    page = Page(55.6, "Five products by one kernel: each block computes one tile of the left side")
    left, half = 2.0, 41.0
    for one, x, middle in zip(found, (left, left + half, left, left + half, left), (10.6, 10.6, 28.0, 28.0, 42.6)):
        (C, c_tiles), (A, a_tiles), (B, b_tiles) = one["parts"]
        M = operand(page, x, middle, C, c_tiles, False, target=True)
        factor = "scale " if C in ("S", "dK", "dQ") else ""
        page.text(M.right + 0.9, middle, "= " + factor, size=10.5)
        first = operand(page, M.right + 3.2 + 4.0 * bool(factor), middle, A, a_tiles, one["transposed"][0])
        operand(page, first.right + 1.6, middle, B, b_tiles, one["transposed"][1])
    y = 18.4
    page.box(left, y - 1.5, 76.5, 3.0, "white", GREY, order=2)
    for x, words, family in ((left + 0.8, "softmax_backward", "monospace"), (left + 22, "S becomes P, in place", "sans-serif"),
                             (left + half, "dP becomes dS, in place", "sans-serif")):
        page.text(x, y, words, family=family)
    for n, (down, words) in enumerate(((False, "read as stored"), (True, "read transposed"))):
        x, at = left + half, 40.0 + 4.6 * n
        page.box(x, at - 1.3, 2.6, 2.6, NOW, order=2)
        page.arrow(*(((x + 1.3, at - 1.0), (x + 1.3, at + 1.0)) if down else ((x + 0.3, at), (x + 2.3, at))), "white")
        page.text(x + 4.2, at, words, size=11)
    page.key(51.2, (INK, "the block's tile"), (NOW, "loaded now"), (TINT, "loaded before or after"))
    page.key(54.0, (SAND, "query x key matrix: kept in global memory"))
    return page


PICTURES = five_products,
