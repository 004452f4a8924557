"""Draws the pictures of this chapter from a trace of its program; plots/draw.py runs it."""

import sheet
import traces
from sheet import GREY, LANE, NOW, TINT, Matrix, Page, cells, matrix, product

D, SEQ, TILE, WARP_SHOWN, COLUMN = 64, 64, 32, 1, 20


def run(folder):
    return traces.run(folder, "08_fused_bwd", f"--heads 1 --seq {SEQ} --dim {D}")[-1]


def who_owns_what(folder):
    launch, lane = run(folder), sheet.MARKED
    mine = lambda epoch, **wanted: launch.requests(warp=WARP_SHOWN, space="shared", epoch=epoch, **wanted)
    held = lambda epoch, source, element: next(r for r in mine(epoch, source=source, kind="load") if element in r.held())
    of_P = [r for r in mine(1, kind="store") if r.place == mine(1, kind="store")[0].place]  # P comes before dS
    base = min(min(r.elements()) for r in launch.requests(epoch=1, space="shared", kind="store", place=of_P[0].place))
    in_P = lambda r, at=None: [list(divmod(word - base, TILE)) for word in r.elements(at)]
    rows = [in_P(r)[0][0] for r in of_P]
    row, n = rows[1], launch.block[0] // 32 * len(rows)
    added = launch.requests(warp=WARP_SHOWN, array="dV", kind="atomic", epoch=2)
    keys = sorted({at[0] for r in added for at in cells(r.elements(), D)})
    key = keys[2]
    broadcasts = [in_P(r, 0)[0] for r in mine(2, source=traces.COMPUTED, kind="load")]
    of_key = [at for at in broadcasts if at[1] == key and at[0] < n]
    assert [n + row, key] in broadcasts, "dS of the row, which lies behind P"
    dQ = launch.requests(warp=WARP_SHOWN, array="dQ", kind="store")
    columns = sorted({at[1] for r in dQ for at in cells(r.elements(lane), D)})
    dO = mine(2, source="dO", kind="load")[: len(of_key)]
    queries, keys_64, P = ((n, D), f"{n} queries x {D}"), ((TILE, D), f"{TILE} keys x {D}"), ((n, TILE), "query x key")
    one = lambda name, of, below, now, owned=(), lane=(): matrix(name, of[1], of[0], below, now, owned, lane)
    flat = lambda requests, at=None: sum((cells(r.elements(at), D) for r in requests), [])
    return sheet.matrix_page(
        ("touched for one FMA (3: for one sum)", f"warp {WARP_SHOWN}", f"lane {lane}"),
        (f"1. P and dS: warp {WARP_SHOWN} computes rows {rows[0]} and {row}, lane = key",
         one("Q_smem, dO_smem", queries, f"row {row}, column {COLUMN}: a broadcast",
             cells(held(1, "Q", row * D + COLUMN).held(), D), product(rows, range(D))),
         one("K_smem, V_smem", keys_64, f"column {COLUMN}, one key per lane:\n32 rows in 32 banks",
             cells(held(1, "K", COLUMN).held(), D), lane=[product([in_P(of_P[1], lane)[0][1]], (0, D - 1))]),
         one("P_smem, dS_smem", P, f"the sums of row {row},\none per lane", in_P(of_P[1]), product(rows, range(TILE)), [in_P(of_P[1], lane)])),
        ("2. dQ += dS K: the same rows, lane = column",
         one("dS_smem", P, f"row {row}, key {key}:\na broadcast", [[row, key]], product(rows, range(TILE))),
         one("K_smem", keys_64, f"key {key}, 32 neighbours", cells(held(2, "K", key * D).held(), D),
             lane=[product((0, TILE - 1), [column]) for column in columns]),
         one("dQ_reg", queries, f"the sums of row {row}, in registers\nuntil the last key", flat(dQ[2:3]), product(rows, range(D)),
             [[at] for at in flat(dQ, lane)])),
        (f"3. dV += P^T dO, dK += dS^T Q: warp {WARP_SHOWN} computes {len(keys)} keys, lane = column",
         one("P_smem, dS_smem", P, f"key {key} of {len(of_key)} rows:\nto registers, for\nall columns", of_key, product(range(n), keys)),
         one("dO_smem, Q_smem", queries, f"{len(dO)} rows, one per request:\n{len(dO)} requests of 32 neighbours",
             sum((cells(r.held(), D) for r in dO), []), lane=[product((0, n - 1), [column]) for column in columns]),
         one("dV, dK, global memory", keys_64, f"key {key}: then one atomicAdd per lane",
             flat([r for r in added if key * D in r.elements()]), product(keys, range(D)), [[at] for at in flat(added, lane)])))


def gathered(folder):
    """Query rows of a block, and how often it adds to each element of dV."""
    launch, N, key, column = run(folder), 4096, 40, 5
    rows = len({row for r in launch.requests(array="dQ", kind="store") for row, _ in cells(r.elements(), D)})
    added = [element for r in launch.requests(array="dV", kind="atomic") for element in r.elements()]
    times, = {added.count(element) for element in set(added)}
    assert len(set(added)) == SEQ * D
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


PICTURES = who_owns_what, gathered
