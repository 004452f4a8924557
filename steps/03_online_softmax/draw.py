#!/usr/bin/env python3
"""Draws the pictures of this chapter, who reads what from a trace of its program: draw.py [--check]."""

from fractions import Fraction
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import sheet  # noqa: E402 (its folder comes first)
import traces  # noqa: E402

from sheet import GREY, INK, LANE, NOW, OWNED, PALE, TINT, Page  # noqa: E402

D, ROWS, KEYS = 64, 32, 32
KEY, COLUMN = 12, 20  # the moment that is drawn
CELL = 0.5


def who_reads_what(folder):
    launch = traces.run(folder, "03_online_softmax", f"--heads 1 --seq {KEYS} --dim {D}")[0]
    moment = lambda array: next(r for r in launch.requests(warp=0, array=array) if KEY * D + COLUMN in r.elements())
    requests = {array: [moment(array).elements(), len({offset // 32 for offset in moment(array).offsets})]
                for array in "KV"}
    rows = {array: [[min(of), max(of)] for of in zip(*(r.elements() for r in launch.requests(warp=0, array=array)))]
            for array in "QO"}  # first and last element of each lane
    return {"requests": requests, "rows": rows}


def draw_who_reads_what(facts):
    page = Page(56)
    left, right, top, below = 1.0, 46.0, 8.0, 31.4
    page.title(1.6, "Registers: one query row per lane", left)
    page.title(1.6, "Global memory: a broadcast", right)
    drawn = {}
    for name, x, y, what in (("Q", left, top, "32 queries, Q_reg[64] per lane"), ("K", right, top, "32 keys x 64"),
                             ("O", left, below, "so far, O_reg[64] per lane"), ("V", right, below, "32 keys x 64")):
        drawn[name] = M = page.matrix(x, y, ROWS, D, CELL, name, what)
        if name in "QO":
            rows = facts["rows"][name]
            M.fill([(first // D, c) for first, last in rows for c in range(first % D, last % D + 1)], OWNED, order=2)
            M.fill([(first // D, COLUMN) for first, _ in rows], NOW)
            M.rectangle(rows[sheet.MARKED][0] // D, 0, 1, D)
            continue
        touched, sectors = facts["requests"][name]
        M.fill([(row, c) for row in range(KEY) for c in range(D)], PALE, order=2)
        M.fill([divmod(element // 8 * 8 + k, D) for element in touched for k in range(8)], TINT)
        M.fill([divmod(element, D) for element in touched], NOW, order=4)
        M.rectangle(KEY, 0, 1, D, INK, 1.0)
        count = len(set(touched))
        page.text(x, M.bottom + 1.3, f"{name}[{KEY}][{COLUMN}]: {count} element, {sectors} sector, 32 FMAs")
    for n, name in enumerate("ml"):
        M = page.matrix(drawn["O"].right + 2.2 + 3 * n, below, ROWS, 2, CELL, name)
        M.fill([(row, c) for row in range(ROWS) for c in range(2)], OWNED, order=2)
        M.rectangle(facts["rows"]["O"][sheet.MARKED][0] // D, 0, 1, 2)
    for name, to in (("K", drawn["Q"].right + 0.8), ("V", drawn["O"].right + 7.0)):
        y = drawn[name].at(KEY, 0)[1]
        page.arrow((drawn[name].x - 0.6, y), (to, y), NOW)
    page.text(left, drawn["Q"].bottom + 1.3, "first: s += Q_reg[c] * K[c] for all c")
    page.text(left, drawn["O"].bottom + 1.3, "then: O_reg[c] = O_reg[c] * rescale + weight * V[c]")
    page.key(53.6, (NOW, "touched now"), (OWNED, "registers"), (PALE, "earlier keys"), (TINT, "rest of the sector"),
             (None, LANE, f"lane {sheet.MARKED}"))
    return page


# Query 3 of the 4 x 4 example in docs/math.md; scale = ln 2, so exp(S) = 2^(Q K^T).
QUERY_3 = (2, 1, 1, 0)
K = ((0, 0, 1, 0), (0, 2, 0, 0), (-1, 0, 2, 1), (1, 1, 0, 0))
V = ((1, 0, 2, 0), (0, 3, 0, 1), (4, 0, 0, -2), (0, 1, -1, 5))


def key_by_key(_):
    """Equations 10 to 12, key by key, in exact fractions: what is known after each key, as text."""
    steps, scores, m, l, o = [], [], None, Fraction(0), (Fraction(0),) * 4
    for k, v in zip(K, V):
        s = sum(a * b for a, b in zip(QUERY_3, k))
        m_new = s if m is None else max(m, s)
        rescale = Fraction(0) if m is None else Fraction(2) ** (m - m_new)
        weight = Fraction(2) ** (s - m_new)
        before = [Fraction(2) ** (score - m) for score in scores]
        l, o, m = l * rescale + weight, tuple(a * rescale + weight * b for a, b in zip(o, v)), m_new
        scores.append(s)
        after = [Fraction(2) ** (score - m) for score in scores]
        assert sum(after) == l
        steps.append({"s / ln 2": str(s), "m / ln 2": str(m), "rescale": str(rescale), "weight": str(weight), "l": str(l),
                      "O, not divided": "(" + ", ".join(map(str, o)) + ")", "before": list(map(str, before)),
                      "after": list(map(str, after)), "end": ", ".join(str(value / l) for value in o)})
    return steps


def draw_key_by_key(steps):
    page = Page(47)
    left, width, bar, tall, foot = 15.0, 16.4, 2.5, 11.0, 19.0
    page.title(1.6, "Query 3 of the 4 x 4 example: what its thread knows after each key")
    page.text(1, foot - tall / 2, "exp(S - m)\nof the keys\nso far")
    rows = ("s / ln 2", "m / ln 2", "rescale", "weight", "l", "O, not divided")
    for row, name in enumerate(rows):
        page.text(1, foot + 5.0 + 2.9 * row, name, size=11, weight="bold")
    page.text(1, foot + 1.3, "key", color=GREY)
    for index, step in enumerate(steps):
        x = left + index * width
        page.text(x, 4.6, f"after key {index}", size=11, weight="bold")
        page.line([x, x + 4 * (bar + 0.6) - 0.6], [foot, foot], INK, 1.0)
        for j, value in enumerate(step["after"]):
            height, at = float(Fraction(value)) * tall, x + j * (bar + 0.6)
            label = height
            if j < index and step["before"][j] != value:
                old = float(Fraction(step["before"][j])) * tall
                page.box(at, foot - old, bar, old, "white", GREY, 1.0)
                label = old if old - height < 2 else height  # no room between the two heights
            page.box(at, foot - height, bar, height, NOW if j == index else TINT, NOW, order=2)
            page.text(at + bar / 2, foot - label - 0.9, value, ha="center")
            page.text(at + bar / 2, foot + 1.3, str(j), ha="center", color=GREY)
        for row, name in enumerate(rows):
            changed = name == "rescale" and step[name] not in ("0", "1")
            page.text(x, foot + 5.0 + 2.9 * row, step[name], size=10 if name[0] == "O" else 11,
                      color=LANE if changed else INK, weight="bold" if changed else "normal")
    end = steps[-1]
    page.key(41.6, (NOW, "the new key: its height is weight"), (TINT, "earlier keys"), ("white", "their height before the rescale"))
    page.text(1, 44.8, f"At the end: O = {end['O, not divided']} / l = ({end['end']})", size=11)
    return page


if __name__ == "__main__":
    sheet.main(__file__, {"who_reads_what.png": (who_reads_what, draw_who_reads_what),
                          "key_by_key.png": (key_by_key, draw_key_by_key)})
