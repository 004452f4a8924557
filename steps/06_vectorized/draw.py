"""Draws the pictures of this chapter from a trace of its last rung; plots/draw.py runs it."""

import re

import sheet
import traces
from provenance import ROOT
from sheet import GREY, INK, LANE, NOW, OWNED, SAND, TINT, Page, cells

D, SEQ = 64, 128


def run(folder, program="06_vectorized"):
    return traces.run(folder, program, f"--heads 1 --seq {SEQ} --seq-kv {3 * 64} --dim {D}")[-1]


def loads(folder, *program):
    """Of the first warp: one load of Q and one of K in the product S = Q K^T."""
    launch = run(folder, *program)
    epoch = traces.epoch_of(launch, "Q", "K")
    return [launch.requests(warp=0, epoch=epoch, space="shared", kind="load", bytes=16, source=name)[0] for name in "QK"]


def who_owns_what(folder):
    warp = traces.product(run(folder), "Q", "K", D)[0]
    rows, keys = (sorted({row for lane in warp for row in lane[axis]}) for axis in (0, 1))
    assert sorted(sum((sheet.product(*of) for of in warp), [])) == sheet.product(rows, keys), "each score has one lane"
    rows, keys, lane, places = len(rows), len(keys), sheet.MARKED, traces.lane_places(warp)
    mine, yours = warp[lane]
    down, across = (max(place[axis] for place in places) + 1 for axis in (0, 1))
    page, cell = Page(37.5, f"A warp's part of S at d = {D}: {rows} query rows x {keys} keys"), 0.8
    S = page.matrix(9, 6.6, rows, keys, cell)
    page.text(S.x - 0.6, 5.2, "key", ha="right")
    for key in range(0, keys, across):
        page.text(S.at(0, key)[0], 5.2, f"{key} to {key + across - 1}", size=8.5)
    page.text(1.6, S.at(rows // 2, 0)[1], "query row", ha="center", rotation=90)
    for row in range(0, rows, down):
        page.text(S.x - 0.6, S.y + (row + down / 2) * cell, f"{row} to {row + down - 1}", size=8.5, ha="right")
    S.fill(sheet.product(range(down), range(across)), TINT, order=2)
    S.fill(sheet.product(mine, yours), LANE)
    S.lines(1, 1, sheet.PALE, 0.6)
    S.lines(down, across, GREY, 0.9)
    x = S.right + 1.6
    page.text(x, S.y + 3.6, f"pattern of {down} x {across}\nscores, one\nper lane")
    page.text(x, S.y + 13.0, f"lane {lane}: one score\nper pattern,\n{len(mine) * len(yours)} in its\nregisters", color=LANE)
    page.key(35.6, (LANE, f"lane {lane}"), (TINT, f"the first of {rows // down} x {keys // across} patterns"))
    return page


def lane_pattern(page, x, y, cell, place):
    """place: [lane's row, lane's column] of 32 lanes; the numbers of the lanes stand where they are."""
    rows, cols = (max(at[i] for at in place) + 1 for i in (0, 1))
    grid = sheet.Matrix(page, x, y, rows, cols, cell)
    grid.fill(sheet.product(range(rows), range(cols)), TINT, order=2)
    grid.fill([place[sheet.MARKED]], LANE)
    grid.lines(1, 1, "white")
    grid.numbers({tuple(at): lane for lane, at in enumerate(place)}, white=[tuple(place[sheet.MARKED])])
    return grid


def one_address(folder):
    """The lanes' order in the pattern, and which pairs of lanes read one address of each operand."""
    places = traces.lane_places(traces.product(run(folder), "Q", "K", D)[0])
    page, costs = Page(33, "Neighbours in the pattern of lanes read one address"), set()
    for x, name, words, request in zip((1, 42), "QK", ("same query row", "same key"), loads(folder)):
        bit = next(bit for bit in (1, 2) if sheet.pairs_agree(request.offsets, bit))
        page.text(x, 5.6, f"{words}: one address of {name}", size=11, weight="bold")
        grid = lane_pattern(page, x, 8.4, 4.0, places)
        for lane in range(sheet.WARP):
            if lane < lane ^ bit:
                grid.bounds([places[lane], places[lane ^ bit]], color=INK, line=2.2)
        costs.add(len(sheet.wavefronts(request.offsets, 16)))
    cost, = costs
    page.key(30.8, (LANE, f"lane {sheet.MARKED}"), (None, INK, "a pair of lanes that reads one address"))
    page.text(1, 27.2, f"So a load of 16 bytes per lane takes {cost} wavefronts, not {16 * sheet.WARP // (sheet.BANKS * traces.WORD)}.", size=11)
    return page


def banks(folder):
    """The first load of K in the product S = Q K^T, rung by rung."""
    shown, floats = [], []
    for rung, words in (("06b_wide_loads", "a load of K: rows {} floats apart"), ("06c_padded", "the same load: rows padded to {} floats"),
                        ("06d_lane_order", "the same load: lanes reordered")):
        offsets = loads(folder, rung)[1].offsets
        first, second, *_ = sorted(set(offsets))
        floats.append((second - first) // 4)
        shown.append((f"{rung[:3]}, {words.format(floats[-1])}", offsets, 16, None, "load"))
    assert floats[0] == D and floats[1] == floats[2]
    return sheet.panels(shown)


def timeline(folder):
    launch = run(folder)
    first = traces.epoch_of(launch, "Q", "K")
    keys = 1 + max(key for lane in traces.product(launch, "Q", "K", D)[0] for key in lane[1])
    page = Page(25, "What is computed and what arrives meanwhile (lengths not to scale)")
    x, tall = 12.0, 3.0
    bands = {"computed": 6.4, "K buffer": 11.2, "V buffer": 16.0}
    for name, y in bands.items():
        page.text(1, y + tall / 2, name, weight="bold")
    named = lambda array, tile: f"{array}(j)" if tile == 0 else f"{array}(j+{tile})"
    for epoch, in traces.activity(launch, {"K": D * keys, "V": D * keys})[first : first + 4]:
        scores = "K" in epoch["read"]
        parts = [("S = Q K^T", 12.0, NOW), ("softmax", 7.0, OWNED)] if scores else [("O += P V", 13.5, NOW)]
        assert scores == epoch["stored"] and scores != ("V" in epoch["read"])
        width = 0.0
        for words, wide, face in parts:
            page.box(x + width, bands["computed"], wide, tall, face, GREY, 0.9, words=words, size=9)
            width += wide
        for array in "KV":
            band = bands[f"{array} buffer"]
            if array in epoch["read"]:
                page.box(x, band, width, tall, TINT, GREY, words=f"{named(array, epoch['read'][array])} in use", size=9)
            elif array in epoch["copied"]:
                page.box(x, band, width, tall, SAND, GREY, words=f"{named(array, epoch['copied'][array])} arrives", size=9)
        page.line([x, x], [5.4, 19.8], LANE, 2.0, order=6)
        which = "K" if scores else "V"
        page.text(x, 4.4, f"wait for {named(which, epoch['read'][which])}", size=8.5, ha="center", color=LANE)
        x += width
    page.text(12.0, 21.2, "time: to the right", size=8.5, color=GREY)
    page.key(23.6, (LANE, "wait, then barrier"), (TINT, "read by the warps"), (SAND, "written by cp.async"))
    return page


# ---- the order of the FMAs ------------------------------------------------------------------------------------------

TM = TN = 8
def back_and_forth(i):
    return range(TN) if i % 2 == 0 else reversed(range(TN))
ORDERS = {  # of the elements (i, j) of a lane's part of O, for one key
    "four columns at a time,\nall rows": [(i, 4 * t + q) for t in range(TN // 4) for i in range(TM) for q in range(4)],
    "row by row": [(i, j) for i in range(TM) for j in range(TN)],
    "row by row,\ncolumns back and forth": [(i, j) for i in range(TM) for j in back_and_forth(i)],
}


def order(_):
    """What registers do is in no trace: this picture depends on the code of multiply_columns, comments and spaces apart."""
    code = re.sub(r"//[^\n]*", "", (ROOT / "common" / "device" / "device.cuh").read_text(encoding="utf-8"))
    code = re.search(r" multiply_columns\(.*?\n}\n", code, re.DOTALL)[0].split()
    page, cell = Page(36, "O += P V for one key: which FMAs share a factor with the FMA before", depends="".join(code)), 2.5
    for n, (name, visits) in enumerate(ORDERS.items()):
        alone = [at for at, last in zip(visits, [None, *visits]) if last is None or (at[0] != last[0] and at[1] != last[1])]
        O = page.matrix(5.5 + 25.5 * n, 10.2, TM, TN, cell)
        page.text(O.x, 5.4, name)
        page.text(O.right, 8.6, f"{len(alone)} of {len(visits)} share no factor", size=9, ha="right")
        page.text(O.x - 1.4, O.at(TM // 2, 0)[1], "P: row i of the lane" if n == 0 else "", ha="center", rotation=90)
        page.text(O.at(0, TN // 2)[0], O.bottom + 1.3, "V: column j of the lane", ha="center")
        O.fill(sheet.product(range(TM), range(TN)), TINT, order=2)
        O.fill(alone, LANE)
        O.lines(1, 1, "white")
        xs, ys = zip(*(O.at(*at) for at in visits))
        page.line(xs, ys, INK, 1.0, order=6)
        page.line(xs[:1], ys[:1], INK, order=7, marker="o", markersize=5)
        page.line(xs[-1:], ys[-1:], INK, order=7, marker="s", markersize=5)
    page.key(34.4, (TINT, "shares one factor: two registers to read"), (LANE, "shares none: three registers to read"))
    return page


PICTURES = who_owns_what, one_address, banks, timeline, order
