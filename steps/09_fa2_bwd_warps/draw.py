"""Draws the pictures of this chapter from a trace of its last rung; plots/draw.py runs it."""

import sheet
import traces
from sheet import GREY, INK, LANE, NOW, OWNED, SAND, TINT, Page, cells

VISITED = "#e0e0e0"  # tiles of queries that the block visits at another time

D, SEQ, SHOWN = 64, 256, 1  # SHOWN: the warp, of those that own a matrix
IDLE = "#F0F0F0"


def run(folder, program="09_fa2_bwd_warps"):
    return next(launch for launch in traces.run(folder, program, f"--heads 1 --seq {SEQ} --dim {D}", "0,1")
                if launch.requests(array="dQ", kind="atomic"))


def split_of_work(folder):
    """The sizes of a tile; a block's key tile and its query tiles in order; what each half of a block multiplies."""
    launch = run(folder)
    rows, keys = (1 + max(row for lanes in traces.product(launch, "Q", "K", D).values() for lane in lanes for row in lane[axis])
                  for axis in (0, 1))
    copies = lambda array: launch.requests(max(launch.blocks), array=array, kind="copy", warp=0)
    copied = lambda array: [r.elements()[0] // D for r in copies(array)]
    own, visited = copied("K")[0] // keys, sorted({row // rows for row in copied("Q")})
    halves = [[sorted({"Q", "K", "V", "dO"} & set(half["read"])) for half in epoch] for epoch in traces.activity(launch, {}, 2)]
    assert [epoch for epoch in halves if any(epoch)][:3] == [[["K", "Q"], ["V", "dO"]], [["dO"], ["Q"]], [["K"], ["K"]]]
    page, tiles = Page(34.0, "A block keeps its keys and walks over the queries; its halves divide the work"), SEQ // rows
    M = sheet.Matrix(page, 10.0, 8.0, tiles, SEQ // keys, 3.6)
    M.fill([(i, own) for i in visited], VISITED)
    M.fill([(visited[1], own)], NOW, order=4)
    M.lines(1, 1)
    page.text(M.x - 0.8, M.y - 1.4, "key", ha="right")
    for j in range(M.cols):
        page.text(M.x + j * M.cell + 0.2, M.y - 1.4, str(keys * j), size=8.5)
    for i in range(tiles):
        page.text(M.x - 0.8, M.y + i * M.cell + 0.8, str(rows * i), size=8.5, ha="right")
    page.text(M.x - 4.6, M.at(tiles // 2, 0)[1], "query row", ha="center", rotation=90)
    page.text(M.x, M.bottom + 1.4, f"block {own} owns keys\n{keys * own} to {keys * own + keys - 1}", va="top")
    page.arrow((M.right - 0.7, M.at(2, 0)[1] - 1.4), (M.right - 0.7, M.bottom - 0.5), GREY)
    left, width = 31.0, 22.5
    page.text(left, 5.0, f"One visit: {rows} query rows x {keys} keys, 8 warps")
    for h, (name, *parts) in enumerate((
            ("first half, warps 0 to 3", "S = Q K^T", "P = exp(scale S - L),\nto shared memory", "dV += P^T dO"),
            ("second half, warps 4 to 7", "dP = dO V^T", "dS = scale P o (dP - D),\nto shared memory", "dK += dS^T Q"))):
        at = left + h * (width + 2.0)
        page.text(at + width / 2, 7.8, name, ha="center", weight="bold")
        for r, words in enumerate(parts):
            page.box(at, 9.4 + 4.6 * r, width - 3.0 * (h and r == 2), 3.4, OWNED if r == 2 else TINT, GREY, order=2, words=words)
    page.arrow((left + width, 15.7), (left + width + 2.0, 15.7), LANE)
    for at in (left + 4.0, left + width + 6.0):  # P to dV, dS to dK
        page.arrow((at, 17.1), (at, 18.7), LANE)
    page.arrow((left + width + 1.0 + width - 0.6, 17.1), (left + width + 1.0 + width - 0.6, 23.2), LANE)
    page.box(left, 23.2, 2 * width + 2.0, 2.8, SAND, GREY, order=2, words="dQ += dS K, a part for each of the 8 warps; added in global memory")
    page.text(left, 27.6, "o: element by element; D and L: a number per query row", size=9)
    page.key(30.2, (NOW, "this visit"), (VISITED, "other visits"), (TINT, "computed anew at each visit"), (OWNED, "stays in registers"))
    page.key(32.8, (LANE, "arrow: through shared memory, after a barrier"), (SAND, "to global memory at each visit"))
    return page


def who_owns_what(folder):
    """Of each matrix: its shape, the frame of each warp, and the elements of one lane. Every element has one lane."""
    launch, found = run(folder), {}
    for name, a, b in (("S", "Q", "K"), ("dP", "dO", "V")):
        found[name] = {warp: [sheet.product(*of) for of in lanes] for warp, lanes in traces.product(launch, a, b, D).items()}
    for name, kind in (("dV", "store"), ("dK", "store"), ("dQ", "atomic")):
        requests = launch.requests(array=name, kind=kind)
        for request in (r for r in requests if r.epoch == requests[0].epoch):  # the first tile
            lanes = found.setdefault(name, {}).setdefault(request.warp, [[] for _ in range(32)])
            for lane, of in enumerate(lanes):
                of += cells(request.elements(lane), D)
    facts = {}
    for name, warps in found.items():
        owned = sorted(at for lanes in warps.values() for of in lanes for at in of)
        shape = [owned[-1][0] + 1, owned[-1][1] + 1]
        assert owned == sheet.product(range(shape[0]), range(shape[1])), name
        frames = []
        for warp, lanes in sorted(warps.items()):
            rows, cols = zip(*(at for of in lanes for at in of))
            frames.append([warp, min(rows), min(cols), 1 + max(rows) - min(rows), 1 + max(cols) - min(cols)])
        facts[name] = {"shape": shape, "frames": frames, "lane": warps[sorted(warps)[SHOWN]][sheet.MARKED]}
    page = Page(74, "What a warp owns, and what one of its lanes owns")
    drawn = {}
    for name, twin, ys, xs, x, top, cell in (("S", "dP", "query rows", "keys", 3.0, 10.6, 0.34),
                                             ("dV", "dK", "keys", "columns", 3.0, 43.0, 0.21),
                                             ("dQ", None, "query rows", "columns", 41.0, 43.0, 0.36)):
        of = facts[name]
        rows, cols = of["shape"]
        page.text(x, top - 4.9, f"{name}: warps {traces.runs(frame[0] for frame in of['frames'])}", weight="bold", size=10.5)
        page.text(x, top - 2.8, f"{rows} {ys} x {cols} {xs}", size=9)
        M = drawn[name] = sheet.Matrix(page, x, top, rows, cols, cell)
        for n, (warp, row, col, high, wide) in enumerate(of["frames"]):
            M.rectangle(row, col, high, wide, INK, 1.1, TINT if n == SHOWN else "none", 2)
            right, down = {"S": (0.5, None), "dV": (0.42, 0.5), "dQ": (0.75, 0.5)}[name] if n == SHOWN else (0.5, 0.5)
            y = top - 0.9 if down is None else top + (row + down * high) * cell  # beside the lane's elements
            page.text(x + (col + right * wide) * cell, y, f"warp {warp}", ha="center")
        M.fill(of["lane"], LANE)
        for at in (0, cols // 2):
            page.text(x + at * cell + 0.2, top - 0.9, str(at), size=8)
        for at in (0, rows // 2):
            page.text(x - 0.4, top + at * cell + 0.7, str(at), size=8, ha="right")
        first, mine = of["lane"][0], set(map(tuple, of["lane"]))
        high, wide = (next(n for n in range(1, 99) if (first[0] + n * (axis == 0), first[1] + n * (axis == 1)) not in mine) for axis in (0, 1))
        words = f"{len(mine)} elements\nper lane"
        if twin:
            assert of["lane"] == facts[twin]["lane"]
            words += f";\n{twin}: the same,\nwarps {traces.runs(frame[0] for frame in facts[twin]['frames'])}"
        if wide > 1:  # a label beside the last elements
            label = f"{high} x {wide} blocks" if high > 1 else f"{wide} neighbours"
            row, col = max(mine)
            edge, middle = M.x + (col + 1) * cell, top + (row + 1 - high / 2) * cell
            page.line([edge, M.right + 1.2], [middle] * 2, LANE, 1.2, order=8)
            page.text(M.right + 1.6, middle, label, color=LANE)
            page.text(M.right + 1.6, M.bottom - 8.0, words, va="top")
        else:
            page.text(x, M.bottom + 1.5, words.replace("\n", " "))
    # S, enlarged: one score of each lane
    S, (_, row, col, high, wide) = drawn["S"], facts["S"]["frames"][SHOWN]
    places = traces.lane_places(traces.product(launch, "Q", "K", D)[SHOWN])
    down, across = (1 + max(at[axis] for at in places) for axis in (0, 1))
    place = places[sheet.MARKED]
    assert facts["S"]["lane"] == sheet.product(range(row + place[0], row + high, down), range(col + place[1], col + wide, across))
    last = col + wide - across
    S.rectangle(row, last, down, across, INK, 1.4, order=8)
    inset = sheet.Matrix(page, 56.6, S.y, down, across, 2.6)
    inset.fill(sheet.product(range(down), range(across)), TINT, order=2)
    inset.fill([place], LANE)
    inset.lines(1, 1, "white")
    inset.numbers({tuple(place): sheet.MARKED}, white=[tuple(place)])
    for of, at in ((0, S.y), (down, inset.bottom)):
        page.line([S.right, inset.x], [S.y + (row + of) * S.cell, at], INK, 0.8, order=8)
    page.text(inset.x, S.y - 1.5, f"{down} x {across} scores, one per lane")
    page.text(inset.x, inset.bottom + 1.2, f"repeated {high // down} x {wide // across} times;\nthe order of the lanes\nis that of chapter 06", va="top")
    page.key(72.2, (TINT, f"warp {SHOWN}"), (LANE, f"its lane {sheet.MARKED}"))
    return page


# ---- barriers -------------------------------------------------------------------------------------------------------

PRODUCTS = {"K,Q": "S = Q K^T", "V,dO": "dP = dO V^T", "computed,dO": "dV += P^T dO", "Q,computed": "dK += dS^T Q", "K,computed": "dQ += dS K"}
RACES = ("after each thread has waited for its own copies:\na thread reads rows of Q, dO, L2, D (at first K, V) before the thread "
         "that copies them is done;\na thread overwrites dS while a warp still multiplies dS with K for dQ",
         "the second half reads P before the first half has written P",
         "a warp reads P or dS for dV, dK and dQ before other warps have written them",
         "copies of the next tile overwrite Q or dO while a warp still reads them for dV or dK")


def barriers(folder):
    """What both halves do from barrier to barrier of one query tile, the second of a block: the product, what is stored, what
    is read, what is copied."""
    epochs = traces.activity(run(folder), {}, groups=2)
    starts = [i for i, epoch in enumerate(epochs) if {"K", "Q"} <= set(epoch[0]["read"])]
    tidy = lambda half: [PRODUCTS.get(",".join(sorted(set(half["read"]) - {"workspace"}))),
                         ("dS" if traces.COMPUTED in half["read"] else "P") if half["stored"] else None, sorted(half["read"]), sorted(half["copied"])]
    epochs = [[tidy(half) for half in epoch] for epoch in epochs[starts[1] : starts[2]]]
    page, tall, x = Page(45, "One query tile, from barrier to barrier (lengths not to scale)"), 3.2, 13.0
    bands = {"first half": 8.4, "second half": 13.0, "copies": 17.6}
    for name, y in bands.items():
        page.text(1, y + tall / 2, name, weight="bold")
    assert len(epochs) == len(RACES)
    for number in range(len(epochs) + 1):
        page.line([x, x], [6.6, 21.8], LANE, 2.2, order=6)
        page.text(x, 5.2, str(number % len(epochs) + 1), ha="center", size=11, weight="bold", color=LANE)
        if number == len(epochs):
            break
        halves = epochs[number]
        product, write = (13.5 if any(half[i] for half in halves) else 0 for i in (0, 1))
        write *= 0.65
        for (computed, stored, *_), y in zip(halves, bands.values()):
            for at, wide, words, face in ((x, product, computed, NOW), (x + product, write, stored and f"writes {stored}", OWNED)):
                if wide:
                    page.box(at, y, wide, tall, face if words else IDLE, GREY, 0.9, order=2, words=words or "waits")
        arrives, read = any(half[3] for half in halves), any({"Q", "dO"} & set(half[2]) for half in halves)
        page.box(x, bands["copies"], product + write, tall, SAND if arrives else TINT if read else IDLE, GREY, 0.9, order=2, size=9,
                 words="next Q, dO arrive" if arrives else "Q, dO in use" if read else "kept")
        x += product + write
    page.text(1, 24.6, "The data race that each __syncthreads() prevents", size=11, weight="bold")
    y = 27.0
    for number, words in enumerate(RACES, start=1):
        page.text(2.0, y, str(number), size=10.5, weight="bold", color=LANE)
        page.text(4.4, y - 0.9, words, va="top")
        y += 1.8 * (words.count("\n") + 1) + 1.2
    page.key(43.4, (LANE, "barrier"), (NOW, "multiplies"), (OWNED, "writes shared memory"), (TINT, "read"), (SAND, "written by cp.async"))
    return page


def additions(folder):
    """The same additions in the rung before the vector reductions and with them: the first request of each."""
    of = lambda rung: run(folder, rung).requests(warp=0, array="dQ", kind="atomic")
    scalar, vector = of("09h_lane_order"), of("09i_vector_reductions")
    assert len(scalar) == 4 * len(vector)
    return sheet.panels([(f"09h: four requests of {scalar[0].bytes} bytes per lane, the first shown", scalar[0].offsets,
                          scalar[0].bytes, "dQ", "atomic"),
                         (f"09i: one request of {vector[0].bytes} bytes per lane", vector[0].offsets, vector[0].bytes, "dQ", "atomic")])


PICTURES = split_of_work, who_owns_what, barriers, additions
