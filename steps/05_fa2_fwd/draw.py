"""Draws the pictures of this chapter from traces of its program, and of chapter 04's beside it; plots/draw.py runs it."""

import sheet
import traces
from sheet import GREY, INK, LANE, NOW, OWNED, PALE, TINT, Matrix, Page, cells, matrix, product

TILE, D, SEQ, WARP_SHOWN, WARPS = 32, 64, 128, 1, 4


def run(folder, options=f"--seq {SEQ}", blocks="0"):
    return traces.run(folder, "05_fa2_fwd", f"--heads 1 --dim {D} {options}", blocks)[0]


def loops_exchanged(folder):
    before = traces.visits(traces.run(folder, "04_fa1_fwd", f"--heads 1 --seq {SEQ} --dim {D}")[0], (0, 0, 0), TILE, D)
    after = run(folder, blocks="0,1,2,3")
    after = [traces.visits(after, block, TILE, D) for block in sorted(after.blocks)]
    page = Page(51, "04: one block per head")
    y, cell = 18.0, 4.9
    first = {(i, j): number for number, (i, j, _, _) in enumerate(before, start=1)}
    grid = sheet.visits(page, 1.0, y, cell, first, (2, 1), kept_rows=False)
    page.text(1, 4.4, "outer loop: key tiles; inner loop: query tiles")
    reads, writes = before[first[2, 1] - 1][2:]
    named = lambda arrays: ", ".join(arrays).replace("workspace", "m, l")
    page.text(1, grid.bottom + 2.0, f"each visit: Q, {named(reads)} read; {named(writes)} written\neach key tile: K, V read once\n"
              "at each visit O is divided by l", va="top")
    own = {(i, j): number for visits in after for number, (i, j, _, _) in enumerate(visits, start=1)}
    x = 40.6
    grid = sheet.visits(page, x, y, cell, own, (1, 2), kept_rows=True)
    page.title(1.6, "05: one block per query tile", x)
    page.text(x, 4.4, "blocks: query tiles; loop: key tiles")
    reads, writes = after[1][-1][2:]
    page.text(x, grid.bottom + 2.0, f"each visit: K, V read\neach query tile: Q read once, {' and '.join([*reads, *writes])} written once\n"
              "at the end O is divided by l", va="top")
    page.text(grid.right + 0.4, y - 1.4, "block", size=8.5, ha="left")
    for block in range(4):
        page.text(grid.right + 1.0, grid.at(block, 0)[1], str(block), weight="bold" if block == 1 else "normal")
    page.key(48.6, (NOW, "this visit"), (PALE, "this block's earlier visits"), (OWNED, "stays in the block"), (TINT, "travels at each visit"))
    return page


def who_owns_S(folder):
    loads = lambda source: run(folder).requests(warp=WARP_SHOWN, epoch=2, space="shared", source=source)
    q, k = loads("Q"), loads("K")
    columns = [column for _, column in cells(q[80].held(0), D)]  # of one round of the loop over the columns
    now = lambda requests: sum((cells(r.held(), D) for r in requests if {held % D for held in r.held()} <= set(columns)), [])
    rows, key = sorted({row for row, _ in now(q)}), cells(k[0].held(sheet.MARKED), D)[0][0]
    q_requests, k_requests = (round(len(requests) * len(columns) / D) for requests in (q, k))
    both = " and ".join(map(str, columns))
    return sheet.matrix_page(
        ("read now", f"registers of warp {WARP_SHOWN}", f"lane {sheet.MARKED}: one key"),
        (f"S = Q K^T: {len(rows)} query rows per warp, one key per lane",
         matrix("Q_smem", "32 queries x 64", (TILE, D), f"columns {both} of the warp's rows:\n{q_requests} broadcasts of 8 bytes",
                now(q), every=TILE // WARPS),
         matrix("K_smem", "32 keys x 64", (TILE, D), f"columns {both} of 32 keys:\n{k_requests} requests, 32 banks each", now(k),
                lane=[product([key], (0, D - 1))]),
         matrix(f"S_reg[{len(rows)}]", "query x key", (TILE, TILE), f"{q_requests + k_requests} requests\nfor {len(rows) * len(columns)} FMAs",
                owned=product(rows, range(TILE)), lane=[product(rows, [key])], every=TILE // WARPS)))


def who_owns_O(folder):
    launch, key, lane = run(folder), 12, sheet.MARKED
    v = [r for r in launch.requests(warp=WARP_SHOWN, epoch=2, space="shared", source="V") if r.held()[0] // D == key]
    shuffles = sum((e.warp, e.epoch) == (WARP_SHOWN, 2) and e.kind.startswith("__shfl_sync") for e in launch.events()) // TILE
    out = launch.requests(warp=WARP_SHOWN, array="O", kind="store")
    of = lambda lane: sum((cells(r.elements(lane), D) for r in out), [])
    rows, columns = sorted({row for row, _ in of(None)}), sorted({column for _, column in of(lane)})
    return sheet.matrix_page(
        ("read now", f"registers of warp {WARP_SHOWN}", f"lane {lane}: {len(columns)} columns"),
        (f"O += P V: the same {len(rows)} query rows per warp, {len(columns)} columns per lane",
         matrix(f"S_reg[{len(rows)}], now P", "query x key", (TILE, TILE), f"P of key {key}, from\nlane {key} to all lanes:\n{shuffles} shuffles",
                product(rows, [key]), product(rows, range(TILE)), every=TILE // WARPS),
         matrix("V_smem", "32 keys x 64", (TILE, D), f"key {key}, 64 neighbours:\n{len(v)} requests, 32 banks each",
                sum((cells(r.held(), D) for r in v), []), lane=[[[key, column]] for column in columns]),
         matrix(f"O_reg[{len(rows)}][{len(columns)}]", "32 queries x 64", (TILE, D), f"{len(v)} requests and {shuffles} shuffles, which "
                f"the same\nunit serves, for {len(rows) * len(columns)} FMAs", owned=of(None),
                lane=[product(rows, [column]) for column in columns], every=TILE // WARPS)))


# ---- the tiles under a causal mask ----------------------------------------------------------------------------------


def check_painted(M, q, kv):
    """Every pair is painted as hidden exactly where the mask hides it. Read from the boxes on the page, in their order."""
    face, boxes = {}, [(at[7] if len(at) > 7 else more.get("order", 1), at) for name, at, more in M.page.marks[1:]
                       if name == "box" and len(at) > 4 and at[0] >= M.x - 0.01]
    for _, at in sorted(boxes, key=lambda box: box[0]):
        (left, right), (top, bottom) = (sorted(round((at[k] + wide - o) / M.cell) for wide in (0, at[k + 2]))
                                        for k, o in ((0, M.x), (1, M.y)))
        face.update({(row, key): at[4] for row in range(top, bottom) for key in range(left, right)})
    for row in range(q):
        for key in range(M.cols):
            hidden = key >= kv or key > row + kv - q
            right = (PALE, "white") if hidden else (OWNED, TINT)
            assert face[row, key] in right, f"query {row}, key {key} is painted wrongly"


def causal_tiles(folder):
    """The key tiles that each block visits."""
    page, cell, y = Page(49), 0.205, 11.5
    for q, kv, x, title in ((128, 128, 3.8, "As many queries as keys"), (96, 176, 38.0, "Fewer queries than keys")):
        tiles = -(-kv // TILE)
        M, kinds = Matrix(page, x, y, q, TILE * tiles, cell), []
        launch = run(folder, f"--causal --seq {q} --seq-kv {kv}", ",".join(map(str, range(q // TILE))))
        for i, block in enumerate(sorted(launch.blocks)):
            row = [j for _, j, _, _ in traces.visits(launch, block, TILE, D)]
            for j in range(tiles):
                masked = TILE * (j + 1) > min(kv, TILE * i + kv - q + 1)
                kinds.append("skipped" if j not in row else "masked" if masked else "full")
                M.rectangle(TILE * i, TILE * j, TILE, TILE, GREY, 0.8, {"skipped": "white", "masked": OWNED, "full": TINT}[kinds[-1]], 2)
                for r in range(TILE * (kinds[-1] == "masked")):  # the hidden part
                    first = min(TILE * (j + 1), max(TILE * j, min(kv, TILE * i + r + kv - q + 1)))
                    page.box(x + first * cell, y + (TILE * i + r) * cell, (TILE * (j + 1) - first) * cell, cell, PALE, order=3)
            page.text(M.right + 0.9, M.at(TILE * i + 16, 0)[1], str(len(row)))
        M.lines(TILE, TILE)
        check_painted(M, q, kv)
        edges = [(x + (row + kv - q + 1) * cell, y + (row + side) * cell) for row in range(q) for side in (0, 1)]
        page.line(*zip(*edges), LANE, 1.8, order=6)
        page.title(1.6, title, x - 2.8)
        count = lambda kind: f"{kinds.count(kind)} {kind}"
        page.text(x - 2.8, 4.4, f"{q} x {kv}: {count('full')}, {count('masked')}, {count('skipped')} tiles")
        page.text(x - 1.4, M.at(q // 2, 0)[1], "query", ha="center", rotation=90)
        for j in range(tiles):
            page.text(x + TILE * j * cell, 10.3, str(TILE * j), size=8.5)
        page.text(x, 8.2, "key")
        page.text(M.right - 1.2, 8.2, "visits", size=8.5)
    page.text(x, M.bottom + 1.2, "The diagonal passes through the inside of tiles,\nso a block may have two masked tiles. Keys from\n"
              f"{kv} on do not exist.", va="top")
    page.key(41.6, (TINT, "full: no test of the mask"), (OWNED, "masked: each score is tested"), (PALE, "hidden scores, -inf"))
    page.key(44.4, ("white", "skipped: not loaded"), (None, LANE, "a query row attends to the keys left of this line"))
    page.text(1.0, 47.2, "visits: key tiles that the block of these query rows loads.")
    return page


PICTURES = loops_exchanged, who_owns_S, who_owns_O, causal_tiles
