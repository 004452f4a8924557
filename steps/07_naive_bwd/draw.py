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
        step = [request.offsets[1] - request.offsets[0] for name in ("A_smem", "B_smem")
                for request in launch.requests(BLOCK, warp=0, array=name, kind="store")[:1]]
        found.append({"kernel": launch.kernel, "parts": parts, "transposed": transposed, "smem_step": step})
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
    page = Page(62, "Five products by one kernel: each block computes one tile of the left side")
    left, half = 2.0, 41.0
    for one, x, middle in zip(found, (left, left + half, left, left + half, left), (10.6, 10.6, 32.2, 32.2, 49.4)):
        (C, c_tiles), (A, a_tiles), (B, b_tiles) = one["parts"]
        M = operand(page, x, middle, C, c_tiles, False, target=True)
        factor = "scale " if C in ("S", "dK", "dQ") else ""
        page.text(M.right + 0.9, middle, "= " + factor, size=10.5)
        first = operand(page, M.right + 3.2 + 4.0 * bool(factor), middle, A, a_tiles, one["transposed"][0])
        second = operand(page, first.right + 1.6, middle, B, b_tiles, one["transposed"][1])
        bottom = max(M.bottom, first.bottom, second.bottom)
        page.text(x, bottom + 1.6, one["kernel"], family="monospace")
    y = 21.8
    page.box(left, y - 1.5, 76.5, 3.0, SAND, GREY, order=2)
    for x, words, family in ((left + 0.8, "softmax_backward", "monospace"), (left + 22, "S becomes P, in place", "sans-serif"),
                             (left + half, "dP becomes dS, in place", "sans-serif")):
        page.text(x, y, words, family=family)
    x, y = left + half, 43.4
    page.text(x, y, "The lanes of a warp read along the arrow,\nwhich is the order in memory:", weight="bold")
    smem = {(which, one["transposed"][which]): "along a row" if one["smem_step"][which] == 4 else "down a column"
            for one in found for which in (0, 1)}
    lines = [(False, f"not transposed: stored {smem[0, False]} of A_smem\nor B_smem, as it was read"),
             (True, f"A transposed: stored {smem[0, True]} of A_smem,\nwhich then holds A^T"),
             (True, f"B transposed: stored {smem[1, True]}\nof B_smem, turned on the way")]
    for n, (down, words) in enumerate(lines):
        at = y + 4.2 + 4.0 * n
        page.box(x, at - 0.85, 1.7, 1.7, NOW, order=2)
        page.arrow(*(((x + 0.85, at - 0.65), (x + 0.85, at + 0.65)) if down else ((x + 0.2, at), (x + 1.5, at))), "white")
        page.text(x + 3.0, at, words)
    page.key(60.2, (INK, "the block's tile"), (NOW, "loaded now"), (TINT, "loaded before or after"), (SAND, "N_q x N_kv, in global memory"))
    return page


PICTURES = five_products,
