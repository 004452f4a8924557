"""Draws the pictures of this chapter from a trace of its program; plots/draw.py runs it."""

import sheet
import traces
from sheet import GREY, LANE, NOW, TINT, Matrix, Page, cells, matrix, product

D, SEQ, TILE, WARP_SHOWN, COLUMN = 64, 64, 32, 1, 20


def run(folder):
    return traces.run(folder, "08_fused_bwd", f"--heads 1 --seq {SEQ} --dim {D}")[-1]


MATRICES = {"queries": lambda n: ((n, D), f"{n} queries x {D}"), "keys": lambda _: ((TILE, D), f"{TILE} keys x {D}"),
            "pairs": lambda n: ((n, TILE), "query x key")}


class Warp:
    """What the warp that is drawn loads and stores in the first key tile."""

    def __init__(self, folder):
        self.launch = run(folder)
        self.P = [r for r in self.shared(1, kind="store") if r.place == self.shared(1, kind="store")[0].place]  # P comes before dS
        self.base = min(min(r.elements()) for r in self.launch.requests(epoch=1, space="shared", kind="store", place=self.P[0].place))
        self.rows = [self.in_P(r)[0][0] for r in self.P]
        self.n = self.launch.block[0] // 32 * len(self.rows)
        self.added = self.launch.requests(warp=WARP_SHOWN, array="dV", kind="atomic", epoch=2)
        self.keys = sorted({at[0] for at in flat(self.added)})

    def shared(self, epoch, **wanted):
        return self.launch.requests(warp=WARP_SHOWN, space="shared", epoch=epoch, **wanted)

    def held(self, epoch, source, element):
        return next(r for r in self.shared(epoch, source=source, kind="load") if element in r.held())

    def in_P(self, request, lane=None):
        return [list(divmod(word - self.base, TILE)) for word in request.elements(lane)]

    def matrix(self, kind, name, below, now, owned=(), lane=()):
        shape, what = MATRICES[kind](self.n)
        return matrix(name, what, shape, below, now, owned, lane)


def flat(requests, at=None):
    return sum((cells(r.elements(at), D) for r in requests), [])


def who_owns_rows(folder):
    warp, lane = Warp(folder), sheet.MARKED
    rows, row, key = warp.rows, warp.rows[1], warp.keys[2]
    assert [warp.n + row, key] in [warp.in_P(r, 0)[0] for r in warp.shared(2, source=traces.COMPUTED, kind="load")], "dS lies behind P"
    dQ = warp.launch.requests(warp=WARP_SHOWN, array="dQ", kind="store")
    columns, part = sorted({at[1] for at in flat(dQ, lane)}), product(rows, range(TILE))
    return sheet.matrix_page(
        ("touched for one FMA", f"the rest of warp {WARP_SHOWN}'s rows", f"lane {lane}"),
        (f"1. P and dS: warp {WARP_SHOWN} computes rows {rows[0]} and {row}, lane = key",
         warp.matrix("queries", "Q_smem, dO_smem", f"row {row}, column {COLUMN}: a broadcast",
                     cells(warp.held(1, "Q", row * D + COLUMN).held(), D), product(rows, range(D))),
         warp.matrix("keys", "K_smem, V_smem", f"column {COLUMN}, one key per lane:\n32 rows in 32 banks",
                     cells(warp.held(1, "K", COLUMN).held(), D), lane=[product([warp.in_P(warp.P[1], lane)[0][1]], (0, D - 1))]),
         warp.matrix("pairs", "P_smem, dS_smem", f"the sums of row {row},\none per lane", warp.in_P(warp.P[1]), part,
                     [warp.in_P(warp.P[1], lane)])),
        ("2. dQ += dS K: the same rows, lane = column",
         warp.matrix("pairs", "dS_smem", f"row {row}, key {key}:\na broadcast", [[row, key]], part),
         warp.matrix("keys", "K_smem", f"key {key}, 32 neighbours", cells(warp.held(2, "K", key * D).held(), D),
                     lane=[product((0, TILE - 1), [column]) for column in columns]),
         warp.matrix("queries", "dQ_reg", f"the sums of row {row}, in registers\nuntil the last key", flat(dQ[2:3]),
                     product(rows, range(D)), [[at] for at in flat(dQ, lane)])))


def who_owns_keys(folder):
    warp, lane = Warp(folder), sheet.MARKED
    keys, key, added = warp.keys, warp.keys[2], warp.added
    of_key = [warp.in_P(r, 0)[0] for r in warp.shared(2, source=traces.COMPUTED, kind="load")]
    of_key = [at for at in of_key if at[1] == key and at[0] < warp.n]
    dO = warp.shared(2, source="dO", kind="load")[: len(of_key)]
    columns = sorted({at[1] for at in flat(added, lane)})
    return sheet.matrix_page(
        ("touched for one sum per lane", f"the rest of warp {WARP_SHOWN}'s keys", f"lane {lane}"),
        (f"3. dV += P^T dO, dK += dS^T Q: warp {WARP_SHOWN} computes {len(keys)} keys, lane = column",
         warp.matrix("pairs", "P_smem, dS_smem", f"key {key} of {len(of_key)} rows:\nto registers, for\nall columns", of_key,
                     product(range(warp.n), keys)),
         warp.matrix("queries", "dO_smem, Q_smem", f"{len(dO)} rows, one per request:\n{len(dO)} requests of 32 neighbours",
                     sum((cells(r.held(), D) for r in dO), []), lane=[product((0, warp.n - 1), [column]) for column in columns]),
         warp.matrix("keys", "dV, dK, global memory", f"key {key}: then one atomicAdd per lane",
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
        page.text(left + wide / 2, top + tall + 1.2, "not to scale", size=8.5, ha="center")
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


PICTURES = who_owns_rows, who_owns_keys, gathered
