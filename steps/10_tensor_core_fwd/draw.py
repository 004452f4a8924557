"""Draws the pictures of this chapter: the fragments of mma.sync, and banks from traces of two rungs; plots/draw.py runs it."""

import sheet
import traces
from sheet import LANE, TINT, Page

CHOSEN = 13  # the lane whose elements are picked out
M, N, K = 16, 8, 16


def fragments(_):
    """The lane of each element, by the drawing in common/tensor.cuh; as many elements per lane as it says."""
    lanes = {"A": [[row % 8 * 4 + k % 8 // 2 for k in range(K)] for row in range(M)],
             "B": [[col * 4 + k % 8 // 2 for col in range(N)] for k in range(K)],
             "C": [[row % 8 * 4 + col // 2 for col in range(N)] for row in range(M)]}
    for name, elements in (("A", 8), ("B", 4), ("C", 4)):
        held = sum(lanes[name], [])
        assert all(held.count(lane) == elements for lane in range(32)), name
    page, cell, y = Page(36, "The lane that holds each element of A, B and C (m16n8k16)"), 1.55, 5.2
    for name, what, x in (("A", "A: 16 rows, k across", 3), ("B", "B: k down", 34), ("C", "C: 16 rows", 53)):
        rows = lanes[name]
        matrix = page.matrix(x, y, len(rows), len(rows[0]), cell, what)
        cells = sheet.product(range(len(rows)), range(len(rows[0])))
        matrix.fill([at for at in cells if rows[at[0]][at[1]] // 4 == CHOSEN // 4], TINT, order=2)
        matrix.fill([at for at in cells if rows[at[0]][at[1]] == CHOSEN], LANE)
        matrix.lines(1, 1, sheet.PALE, 0.6)
        matrix.lines(8, 8, sheet.GREY, 0.9)
        for r, c in cells:
            lane = rows[r][c]
            page.text(x + (c + 0.5) * cell, y + (r + 0.5) * cell, str(lane), size=7.5, ha="center",
                      color="white" if lane == CHOSEN else sheet.INK)
    page.text(67, y + 5, "a row of C lies\nin 4 lanes")
    g, t = divmod(CHOSEN, 4)
    page.key(33.8, (LANE, f"lane {CHOSEN}: g = {g}, t = {t}"), (TINT, f"the rest of its quad, lanes {4 * g} to {4 * g + 3}"))
    return page


def banks(folder):
    """The first quadrant of the first ldmatrix, of Q: lanes 0 to 7 name its rows."""
    launch = lambda program: traces.run(folder, program, "--heads 1 --seq 64 --dim 64")[-1]
    quadrant = lambda program: launch(program).requests(warp=0, kind="ldmatrix")[0].offsets[:8] + [None] * 24
    return sheet.panels([("10c: a quadrant, 8 rows of 16 bytes, in a plain tile", quadrant("10c_ldmatrix"), 16, None, "load"),
                         ("10d: the same quadrant in a swizzled tile", quadrant("10d_swizzle"), 16, None, "load")])


PICTURES = fragments, banks
