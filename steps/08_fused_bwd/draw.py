#!/usr/bin/env python3
"""Draws the pictures of this chapter from a trace of its program: draw.py [--check]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import sheet  # noqa: E402 (its folder comes first)
import traces  # noqa: E402



from sheet import GREY, LANE, NOW, OWNED, TINT, Matrix, Page, cells  # noqa: E402

D, SEQ, TILE, WARP_SHOWN, COLUMN = 64, 64, 32, 1, 20


def run(folder):
    return traces.run(folder, "08_fused_bwd", f"--heads 1 --seq {SEQ} --dim {D}")[-1]


def who_owns_what(folder):
    launch, lane = run(folder), sheet.MARKED
    shared = lambda epoch, **wanted: launch.requests(space="shared", epoch=epoch, **wanted)
    mine = lambda *epoch, **wanted: [r for r in shared(*epoch, **wanted) if r.warp == WARP_SHOWN]
    stores = mine(1, kind="store")
    base = min(min(r.elements()) for r in shared(1, kind="store") if r.place == stores[0].place)  # P comes first
    of_P = [r for r in stores if r.place == stores[0].place]
    in_P = lambda r, at=None: [list(divmod(word - base, TILE)) for word in r.elements(at)]
    rows = [in_P(r)[0][0] for r in of_P]
    q = [r for r in mine(1, source="Q") if r.held(0) == [rows[1] * D + COLUMN]][0]
    k = [r for r in mine(1, source="K") if COLUMN in [held % D for held in r.held()]][0]

    added = launch.requests(warp=WARP_SHOWN, array="dV", kind="atomic", epoch=2)
    keys = sorted({row for r in added for row, _ in cells(r.elements(), D)})
    key = keys[2]
    sums = [r for r in added if cells(r.elements(), D)[0] == [key, 0]][0]
    broadcasts = [in_P(r, 0)[0] for r in mine(2, source=traces.COMPUTED, kind="load")]
    n = launch.block[0] // 32 * len(rows)
    of_key = [at for at in broadcasts if at[1] == key and at[0] < n]
    dS = [row - n for row, col in broadcasts if col == key and row - n in rows]  # dS lies behind P
    row_of_K = [r for r in mine(2, source="K", kind="load") if r.held()[0] // D == key][0]
    dQ = launch.requests(warp=WARP_SHOWN, array="dQ", kind="store")
    dO = mine(2, source="dO", kind="load")[: len({row for row, _ in of_key})]
    return {
        "rows": rows, "keys": keys, "queries": n,
        "scores": {"Q": cells(q.held(0), D), "K": cells(k.held(), D), "P": in_P(of_P[1]), "lane": in_P(of_P[1], lane)},
        "dQ": {"dS": [[sorted(set(dS))[1], key]], "K": cells(row_of_K.held(), D), "now": cells(dQ[2].elements(), D),
               "lane": sum((cells(r.elements(lane), D) for r in dQ), [])},
        "dV": {"P": of_key, "dO": sum((cells(r.held(), D) for r in dO), []), "now": cells(sums.elements(), D),
               "lane": sum((cells(r.elements(lane), D) for r in added), []), "requests": len(dO)},
    }


def draw_who_owns_what(facts):
    rows, keys, n = facts["rows"], facts["keys"], facts["queries"]
    across = lambda numbers, cols: [[row, col] for row in numbers for col in range(cols)]
    columns = sorted({column for _, column in facts["dQ"]["lane"]})
    page, lane = Page(81), sheet.MARKED
    scores, dQ, dV = facts["scores"], facts["dQ"], facts["dV"]
    key = dV["now"][0][0]
    one = lambda name, what, shape, below, **more: {"name": name, "what": what, "shape": shape, "below": below, **more}
    sheet.row_of_matrices(page, 1.6, f"1. P and dS: warp {WARP_SHOWN} computes rows {rows[0]} and {rows[1]}, lane = key", [
        one("Q_smem, dO_smem", f"{n} queries x {D}", (n, D), f"row {rows[1]}, column {COLUMN}: a broadcast",
            owned=across(rows, D), now=scores["Q"]),
        one("K_smem, V_smem", f"{TILE} keys x {D}", (TILE, D), f"column {COLUMN}, one key per lane:\n32 rows in 32 banks",
            now=scores["K"], lane=[[[scores["lane"][0][1], 0], [scores["lane"][0][1], D - 1]]]),
        one("P_smem, dS_smem", "query x key", (n, TILE), f"the sums of row {rows[1]},\none per lane", owned=across(rows, TILE),
            now=scores["P"], lane=[scores["lane"]])])
    sheet.row_of_matrices(page, 27.8, "2. dQ += dS K: the same rows, lane = column", [
        one("dS_smem", "query x key", (n, TILE), f"row {rows[1]}, key {key}:\na broadcast", owned=across(rows, TILE), now=dQ["dS"]),
        one("K_smem", f"{TILE} keys x {D}", (TILE, D), f"key {key}, 32 neighbours", now=dQ["K"],
            lane=[[[0, c], [TILE - 1, c]] for c in columns]),
        one("dQ_reg", f"{n} queries x {D}", (n, D), f"the sums of row {rows[1]}, in registers\nuntil the last key",
            owned=across(rows, D), now=dQ["now"], lane=[[at] for at in dQ["lane"]])])
    sheet.row_of_matrices(page, 53.6, f"3. dV += P^T dO, dK += dS^T Q: warp {WARP_SHOWN} computes {len(keys)} keys, lane = column", [
        one("P_smem, dS_smem", "query x key", (n, TILE), f"key {key} of {len(dV['P'])} rows:\nto registers, for\nall columns",
            owned=[[r, k] for r in range(n) for k in keys], now=dV["P"]),
        one("dO_smem, Q_smem", f"{n} queries x {D}", (n, D), f"{dV['requests']} rows, one per request:\n{dV['requests']} requests of 32 neighbours",
            now=dV["dO"], lane=[[[0, c], [n - 1, c]] for c in columns]),
        one("dV, dK, global memory", f"{TILE} keys x {D}", (TILE, D), f"key {key}: then one atomicAdd per lane",
            owned=across(keys, D), now=dV["now"], lane=[[at] for at in dV["lane"]])])
    page.key(79.2, (NOW, "touched for one FMA (3: for one sum)"), (OWNED, f"warp {WARP_SHOWN}"), (None, LANE, f"lane {lane}"))
    return page


# ---- contributions are gathered -------------------------------------------------------------------------------------


def gathered(folder):
    """Query rows of a block, and how often it adds to each element of dV."""
    launch = run(folder)
    rows = {row for r in launch.requests(array="dQ", kind="store") for row, _ in cells(r.elements(), D)}
    added = [element for r in launch.requests(array="dV", kind="atomic") for element in r.elements()]
    times = {added.count(element) for element in set(added)}
    assert len(times) == 1 and len(set(added)) == SEQ * D
    return [len(rows), times.pop()]


def draw_gathered(facts):
    (rows, times), N, key, column = facts, 4096, 40, 5
    page, cell = Page(54), 0.62
    strips = [(0, 8.4), (1, 21.0), (N // rows - 1, 36.0)]
    for x, title, gathers in ((1.5, f"This chapter: {rows} rows, one addition", True), (42.0, "Without gathering: one per row", False)):
        page.title(1.6, title, x)
        page.text(x + 9.6, 6.4, f"P, key {key}", size=8.5, ha="right")
        page.text(x + 11.0, 6.4, f"dO, column {column}", size=8.5)
        left, top, wide, tall = x + 29.0, 10.0, 6.0, 30.0
        page.box(left, top, wide, tall, "white", GREY, order=2)
        page.text(left + wide / 2, top - 3.0, "dV", weight="bold", ha="center")
        page.text(left + wide / 2, top - 1.2, f"{N} x {D}", size=8.5, ha="center")
        ex, ey = left + 1.6, top + 13.5
        page.box(ex, ey, 1.3, 1.3, LANE, order=5)
        page.text(left + wide / 2, ey + 4.2, f"key {key},\ncolumn {column}", size=8.5, ha="center")
        for block, y in strips:
            middle = y + rows * cell / 2
            page.text(x, middle, f"block\n{block}")
            for at in (7.4, 11.2):
                M = Matrix(page, x + at, y, rows, 1, cell)
                M.fill([(r, 0) for r in range(rows)], TINT, order=2)
                M.lines(1, color="white")
            page.text(x + 9.6, middle, "x", ha="center")
            ends = (x + 17.3, middle) if gathers else (ex - 0.1, ey + 0.65)
            for r in range(rows):
                page.line([M.right + 0.3, ends[0]], [M.at(r, 0)[1], ends[1]], GREY if gathers else LANE, 0.7, order=6)
            if gathers:
                page.box(x + 17.3, middle - 0.9, 1.8, 1.8, NOW, order=6)
                page.text(x + 18.2, middle + 2.1, "dV_sum", size=8.5, ha="center")
                page.arrow((x + 19.4, middle), (ex - 0.2, ey + 0.65), LANE)
        page.text(x + 9.6, 34.2, "...", ha="center", size=12.5, weight="bold")
        count = N // rows * times if gathers else N
        page.text(x, 48.6, f"N {N}: {count} additions to each element of dV")
    page.key(52.2, (TINT, f"{rows} rows, in shared memory"), (NOW, "a register of one lane"), (LANE, "atomicAdd, global memory"))
    return page


if __name__ == "__main__":
    sheet.main(__file__, {"who_owns_what.png": (who_owns_what, draw_who_owns_what), "gathered.png": (gathered, draw_gathered)})
