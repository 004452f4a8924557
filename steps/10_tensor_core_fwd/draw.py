"""Draws the pictures of this chapter: the fragments of mma.sync, and from traces of its rungs who holds and loads what, and
banks; plots/draw.py runs it."""

import sheet
import traces
from sheet import GREY, LANE, PALE, TINT, Page

CHOSEN = 13  # the lane whose elements are picked out
M, N, K = 16, 8, 16


def fragments(_):
    """The lane of each element, by the drawing in common/device/tensor.cuh; as many elements per lane as it says."""
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
    page.key(33.8, (LANE, f"lane {CHOSEN} = 4 g + t: g = {g}, t = {t}"), (TINT, f"the rest of its quad, lanes {4 * g} to {4 * g + 3}"))
    return page


# ---- from traces: rows of 64 elements are 128 bytes; a register holds a pair, 4 bytes ---------------------------------


def launch(folder, program):
    return traces.run(folder, program, "--heads 1 --seq 64 --dim 64")[-1]


def pairs(request):
    """Of each lane: the row and the number in its row of the pair of elements that it loads or stores."""
    return [(offset // 128, offset % 128 // 4) for offset in request.offsets]


def fragment_A(folder):
    """10b loads each register of Q's A fragments by its own load: who holds which pair of 16 x 16 elements."""
    return [pairs(r) for r in launch(folder, "10b_mma").requests(warp=0, kind="load", space="shared", bytes=4)[:4]]


def drawn_pairs(page, x, y, held, names, columns, words, cell=(2.6, 1.5)):
    """Matrix of 16 rows: a box per pair, with the lane that holds it; the marked lane's with the names of its registers."""
    wide, tall = cell
    page.text(x, y - 1.5, words, weight="bold")
    for register, name in zip(held, names):
        for lane, (row, pair) in enumerate(register):
            mine, face = lane == CHOSEN, TINT if lane // 4 == CHOSEN // 4 else "white"
            page.box(x + (pair - columns[0]) * wide, y + row * tall, wide, tall, LANE if mine else face, PALE, 0.6,
                     4 if mine else 2, name if mine else str(lane), size=7.5)
    right = x + len(columns) * wide
    page.box(x, y, right - x, 16 * tall, edge=GREY, order=6)
    page.line([x, right], [y + 8 * tall] * 2, GREY, 0.9)
    return right


def P_from_S(folder):
    """The lanes of two C tiles, from where 10b stores O, and of an A: the same pairs in the same lanes."""
    stores = [pairs(r) for r in launch(folder, "10b_mma").requests(warp=0, array="O", kind="store")]
    C = [stores[8 * half + tile] for tile in (0, 1) for half in (0, 1)]  # stored: rows g of 8 tiles, then rows g + 8
    A = fragment_A(folder)
    assert A == C
    page = Page(42, "P needs no move: the lane that computed a score holds it as an operand")
    y, g = 9.4, CHOSEN // 4
    for row in (0, 8):
        page.text(3.4, y + (row + 0.5) * 1.5, f"row {row}", ha="right", size=8)
    drawn_pairs(page, 4.0, y, C[:2], ["C0 C1", "C2 C3"], range(4), "keys 0 to 7", (3.3, 1.5))
    right = drawn_pairs(page, 18.6, y, C[2:], ["C0 C1", "C2 C3"], range(4, 8), "keys 8 to 15", (3.3, 1.5))
    page.text(4.0, 5.2, "S = Q K^T: two C tiles, fp32")
    page.text(48.6, 5.2, "P: one A of P V, 16 bits")
    drawn_pairs(page, 48.6, y, A, ["A0", "A1", "A2", "A3"], range(8), "keys 0 to 15", (3.5, 1.5))
    page.arrow((right + 2.4, y + 12), (46.8, y + 12))
    page.text((right + 47.6) / 2, y + 8.4, "exp(S - m),\nrounded to\n16 bits", ha="center")
    page.text((right + 47.6) / 2, y + 15.6, "no shuffle,\nno shared\nmemory", ha="center")
    page.text(1, y + 27.0, f"Lane {CHOSEN}, rows {g} and {g + 8}: A0 = C0 C1 and A1 = C2 C3 of the left tile, "
              "A2 = C0 C1 and A3 = C2 C3 of the right tile.")
    page.key(40.2, (LANE, f"lane {CHOSEN}: two numbers per box"), (TINT, "the rest of its quad"),
             ("white", "the number of the lane that holds the pair"))
    return page


def ldmatrix(folder):
    """The first ldmatrix.x4 of Q: the 16 bytes to which each lane points, and the pairs that each lane gets, which are what
    10b loads register by register."""
    offsets = launch(folder, "10c_ldmatrix").requests(warp=0, kind="ldmatrix")[0].offsets
    page, y, tall, wide = Page(44, "ldmatrix.x4: a lane gives one address and receives four pairs"), 10.4, 1.5, 2.15
    page.text(4.6, 4.8, "Each lane gives the address of one row")
    page.text(4.6, 6.8, "of a quadrant: 8 elements, 16 bytes.")
    x = 5.0
    for quadrant, (row, col) in enumerate(((0, 0), (8, 0), (0, 8), (8, 8))):
        for lane in range(8 * quadrant, 8 * quadrant + 8):
            at, first = offsets[lane] // 128, offsets[lane] % 128 // 2
            assert (at, first) == (row + lane % 8, col)
            page.box(x + first * wide, y + at * tall, 8 * wide, tall, LANE if lane == CHOSEN else "white",
                     PALE, 0.6, 4 if lane == CHOSEN else 2, f"lane {lane}", size=8)
    page.box(x, y, 16 * wide, 16 * tall, edge=GREY, order=6)
    page.line([x, x + 16 * wide], [y + 8 * tall] * 2, GREY, 1.4)
    page.line([x + 8 * wide] * 2, [y, y + 16 * tall], GREY, 1.4)
    for row in (0, 8):
        page.text(x - 0.6, y + (row + 0.5) * tall, f"row {row}", ha="right", size=8)
    left = 45.6
    for number, (half, at_y) in enumerate(((1, -1.2), (1, 25.2), (3, -1.2), (3, 25.2))):
        page.text(x + half * 4 * wide, y + at_y, f"quadrant {number}", ha="center", weight="bold")
        page.text(left + half * 8.0, y + at_y, f"register {number}", ha="center", weight="bold")
    page.text(left, 4.8, "Register i of each lane receives a pair of")
    page.text(left, 6.8, "quadrant i. Numbers: the lane.")
    received = fragment_A(folder)
    drawn_pairs(page, left, y, received, [f"reg {i}" for i in range(4)], range(8), "", (4.0, tall))
    page.line([left + 16.0] * 2, [y, y + 16 * tall], GREY, 1.4)
    page.key(39.4, (LANE, f"lane {CHOSEN}: the row it names, the pairs it receives"),
             (TINT, "the pairs of the rest of its quad"))
    page.text(1, 42.0, f"Lane {CHOSEN} names row {CHOSEN % 8} of quadrant {CHOSEN // 8} for other lanes. From this quadrant "
              f"it receives a pair of row {received[CHOSEN // 8][CHOSEN][0] % 8}.")
    return page


def banks(folder):
    """The first quadrant of the first ldmatrix, of Q: lanes 0 to 7 name its rows."""
    quadrant = lambda program: launch(folder, program).requests(warp=0, kind="ldmatrix")[0].offsets[:8] + [None] * 24
    return sheet.panels([("10c: a quadrant, 8 rows of 16 bytes, in a plain tile", quadrant("10c_ldmatrix"), 16, None, "ldmatrix"),
                         ("10d: the same quadrant in a swizzled tile", quadrant("10d_swizzle"), 16, None, "ldmatrix")])


PICTURES = fragments, P_from_S, ldmatrix, banks
