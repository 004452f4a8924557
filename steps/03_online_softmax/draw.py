"""Draws the pictures of this chapter, who reads what from a trace of its program; plots/draw.py runs it."""

from fractions import Fraction

import sheet
import traces
from sheet import GREY, INK, LANE, NOW, TINT, Page, cells, matrix

D, ROWS = 64, 32
KEY, COLUMN = 12, 20  # the moment that is drawn


def who_reads_what(folder):
    launch = traces.run(folder, "03_online_softmax", f"--heads 1 --seq {ROWS} --dim {D}")[0]

    def row_per_lane(array):
        of = lambda lane: sum((cells(r.elements(lane), D) for r in launch.requests(warp=0, array=array)), [])
        return [at for at in of(None) if at[1] == COLUMN], of(None), [of(sheet.MARKED)]

    def one_for_all(array):
        request = next(r for r in launch.requests(warp=0, array=array) if KEY * D + COLUMN in r.elements())
        elements, sectors = set(request.elements()), {element // 8 for element in request.elements()}
        return f"{array}[{KEY}][{COLUMN}]: {len(elements)} element, {len(sectors)} sector\nfor 32 FMAs", cells(elements, D)

    return sheet.matrix_page(
        ("touched now", "registers", f"lane {sheet.MARKED}: one query row"),
        ("First: s += Q_reg[c] * K[c] for all columns c of one key",
         matrix("Q_reg[64]", "32 query rows, one per lane", (ROWS, D), "registers: each lane\nhas its own row", *row_per_lane("Q")),
         matrix("K, global memory", "32 keys x 64", (ROWS, D), *one_for_all("K"))),
        ("Then: O_reg[c] = O_reg[c] * rescale + weight * V[c]",
         matrix("O_reg[64]", "32 query rows, one per lane", (ROWS, D), "registers, with one m and one l\nper lane", *row_per_lane("O")),
         matrix("V, global memory", "32 keys x 64", (ROWS, D), *one_for_all("V"))))


# Query 3 of the 4 x 4 example in docs/math.md; scale = ln 2, so exp(S) = 2^(Q K^T).
QUERY_3 = (2, 1, 1, 0)
K = ((0, 0, 1, 0), (0, 2, 0, 0), (-1, 0, 2, 1), (1, 1, 0, 0))
V = ((1, 0, 2, 0), (0, 3, 0, 1), (4, 0, 0, -2), (0, 1, -1, 5))


def key_by_key(_):
    """Equations 10 to 12, key by key, in exact fractions: what is known after each key."""
    page = Page(47, "Query 3 of the 4 x 4 example: what its thread knows after each key")
    left, width, bar, tall, foot = 15.0, 16.4, 2.5, 11.0, 19.0
    page.text(1, foot - tall / 2, "exp(S - m)\nof the keys\nso far")
    page.text(1, foot + 1.3, "key", color=GREY)
    scores, weights, m, l, o = [], [], None, Fraction(0), (Fraction(0),) * 4
    for index, (k, v) in enumerate(zip(K, V)):
        scores.append(sum(a * b for a, b in zip(QUERY_3, k)))
        m_new = max(scores)
        rescale = Fraction(0) if m is None else Fraction(2) ** (m - m_new)
        before, weights = weights, [Fraction(2) ** (score - m_new) for score in scores]
        l, o, m = l * rescale + weights[-1], tuple(a * rescale + weights[-1] * b for a, b in zip(o, v)), m_new
        assert sum(weights) == l
        x = left + index * width
        page.text(x, 4.6, f"after key {index}", size=11, weight="bold")
        page.line([x, x + 4 * (bar + 0.6) - 0.6], [foot, foot], INK, 1.0)
        for j, value in enumerate(weights):
            height, at = float(value) * tall, x + j * (bar + 0.6)
            label = height
            if j < index and before[j] != value:
                old = float(before[j]) * tall
                page.box(at, foot - old, bar, old, "white", GREY, 1.0)
                label = old if old - height < 2 else height  # no room between the two heights
            page.box(at, foot - height, bar, height, NOW if j == index else TINT, NOW, order=2)
            page.text(at + bar / 2, foot - label - 0.9, str(value), ha="center")
            page.text(at + bar / 2, foot + 1.3, str(j), ha="center", color=GREY)
        known = {"s / ln 2": scores[-1], "m / ln 2": m, "rescale": rescale, "weight": weights[-1], "l": l,
                 "O, not divided": f"({', '.join(map(str, o))})"}
        for row, (name, value) in enumerate(known.items()):
            y, changed = foot + 5.0 + 2.9 * row, name == "rescale" and value not in (0, 1)
            if index == 0:
                page.text(1, y, name, size=11, weight="bold")
            page.text(x, y, str(value), size=10 if name[0] == "O" else 11, color=LANE if changed else INK,
                      weight="bold" if changed else "normal")
    page.key(41.6, (NOW, "the new key: its height is weight"), (TINT, "earlier keys"), ("white", "their height before the rescale"))
    page.text(1, 44.8, f"At the end: O = {known['O, not divided']} / l = ({', '.join(str(value / l) for value in o)})", size=11)
    return page


PICTURES = who_reads_what, key_by_key
