"""Draws the pictures of this chapter from traces of its program; plots/draw.py runs it."""

import sheet
import traces
from sheet import INK, LANE, NOW, OWNED, PALE, SAND, TINT, Page, cells, matrix, product

TILE, D, SEQ, WARP_SHOWN = 32, 64, 128, 1


run = lambda folder, dim=D: traces.run(folder, "04_fa1_fwd", f"--heads 1 --seq {SEQ} --dim {dim}")[0]


def order_of_visits(folder):
    visits = traces.visits(run(folder), (0, 0, 0), TILE, D)
    order = {(i, j): number for number, (i, j, _, _) in enumerate(visits, start=1)}
    now = 2, 1
    reads, writes = visits[order[now] - 1][2:]
    page = Page(46, "One block per head: all query tiles for one key tile, then the next key tile")
    grid = sheet.visits(page, 1.0, 14.0, 6.0, order, now, kept_rows=False)
    for j in range(4):
        page.text(grid.at(0, j)[0], 12.8, f"{j * TILE} to {j * TILE + TILE - 1}", size=8.5, ha="center")
    page.text(grid.right + 0.8, 12.8, "key", size=8.5)
    named = lambda arrays, color: [("m, l", f"{TILE} each", color) if name == "workspace" else (name, f"{TILE} x d", color) for name in arrays]
    lines = [(f"Visit {order[now]}", "", INK), ("in shared memory:", "", INK), ("K, V", f"{TILE} x d each", INK),
             ("read from global memory:", "", NOW), *named(["Q", *reads], NOW), ("written back:", "", LANE), *named(writes, LANE)]
    for row, (words, shape, color) in enumerate(lines):
        y = grid.y + 1.0 + 2.35 * row
        page.text(grid.right + (6.0 if shape else 3.5), y, words, size=10.5, color=color, weight="normal" if row else "bold")
        page.text(grid.right + 12.0, y, shape, size=10.5, color=color)
    first, last = visits[0], visits[-1]
    assert not first[2] and last[3] == sorted([*writes, "L"])
    page.text(1, 40.9, "At the first key tile O, m and l are not read: they are 0, -inf and 0. At the last key tile L is written.")
    page.key(43.8, (NOW, "this visit"), (PALE, "earlier visits"), (OWNED, "stays in shared memory"), (TINT, "travels at each visit"))
    return page


def shared_memory(folder):
    """Per head dimension: bytes of the launch, and of each array its first word and how many words are written."""
    page = Page(35.5, "A block's shared memory, drawn to scale")
    left, scale = 2.0, 74.0 / (64 << 10)  # 64 KiB are 74 units wide
    faces = {"Q": TINT, "K": OWNED, "V": SAND, "S": "#E8CFE0"}
    for dim, y in ((64, 13.0), (128, 25.0)):
        words, total, tall = {}, run(folder, dim).dynamic_bytes, 5.0
        for request in run(folder, dim).requests(space="shared", kind="store"):
            words.setdefault(request.source(), set()).update(request.elements())
        parts = sorted((min(of), len(of), "S" if name == traces.COMPUTED else name) for name, of in words.items())
        page.text(left, y - 1.8, f"d = {dim}:  {total} bytes", size=11, weight="bold")
        ends = [first for first, _, _ in parts[1:]] + [total // 4]
        for (first, used, name), end in zip(parts, ends):
            x, wide, padding = left + 4 * first * scale, 4 * (end - first) * scale, (end - first - used) // TILE
            page.box(x, y, wide, tall, faces[name], INK, 1.0, order=2)
            page.text(x + wide / 2, y + 1.6, name, size=11, weight="bold", ha="center")
            page.text(x + wide / 2, y + 3.6, f"{4 * (end - first)} B", size=8.5, ha="center")
            page.text(x + 0.4, y + tall + 1.3, f"{TILE} x {f'({used // TILE} + {padding})' if padding else used // TILE}", size=8.5)
    for limit, y, words in ((48, 6.8, "48 KiB: a launch gets no more by default"),
                            (64, 4.4, "64 KiB: every card of compute capability 7.5 or later, on request")):
        at = left + limit * 1024 * scale
        page.line([at, at], [y - 1.0, 31.0], LANE, 1.6, order=8, linestyle="--")
        page.text(at - 0.6, y, words, color=LANE, ha="right")
    page.text(left, 34.0, "+ 1: padding, one float after each row")
    return page


def who_reads_what(folder):
    launch, lane = run(folder), sheet.MARKED
    mine = lambda **wanted: launch.requests(warp=WARP_SHOWN, space="shared", **wanted)
    load = lambda epoch, source: mine(epoch=epoch, source=source, kind="load")
    step = D + 20  # of the loops over the warp's keys and the columns: its second key, column 20
    q, k, scores = load(1, "Q")[step], load(1, "K")[step], mine(epoch=1, kind="store")
    stride = (scores[0].offsets[1] - scores[0].offsets[0]) // 4  # from query row to query row of S
    base = min(min(r.elements()) for r in launch.requests(epoch=1, space="shared", kind="store"))
    in_S = lambda request, lane=None: [list(divmod(word - base, stride)) for word in request.elements(lane)]
    v = load(2, "V")[2 * TILE + 12]  # the warp's second row, its first 32 columns, key 12
    out = launch.requests(warp=WARP_SHOWN, array="O", kind="store", epoch=2)
    p = [r for r in load(2, traces.COMPUTED) if len(set(r.offsets)) == 1][TILE + 12]
    [[key, column]], [[row, now]] = cells(k.held(), D), in_S(p, 0)
    keys = sorted({at[1] for r in scores for at in in_S(r)})
    rows = sorted({at[0] for r in out for at in cells(r.elements(), D)})
    every = f"every {keys[1] - keys[0]}th"
    query, lane_column = cells(q.held(lane), D)[0][0], cells(v.held(lane), D)[0][1]
    tile, square = (TILE, D), (TILE, TILE)
    assert rows == keys
    return sheet.matrix_page(
        ("touched for one FMA", f"the rest of warp {WARP_SHOWN}'s part", f"lane {lane}"),
        (f"S = Q K^T: lane = query row, a warp computes {every} key",
         matrix("Q_smem", "32 queries x 64", tile, f"column {column} of 32 rows:\n32 words in 32 banks, 1 wavefront",
                cells(q.held(), D), lane=[product([query], (0, D - 1))]),
         matrix("K_smem", "32 keys x 64", tile, f"one element of key {key}, for all lanes:\na broadcast, 1 wavefront", [[key, column]]),
         matrix("S_smem", "query x key", square, f"the sums of key {key},\none per lane", in_S(scores[1]),
                sum(map(in_S, scores), []), [in_S(scores[1], lane)])),
        (f"O = P V: a warp computes {every} row, lane = column",
         matrix("S_smem, now P", "query x key", square, f"one element of\nrow {row}: a broadcast", [[row, now]], product(rows, range(TILE))),
         matrix("V_smem", "32 keys x 64", tile, f"key {now}, 32 neighbours:\n32 words in 32 banks, 1 wavefront", cells(v.held(), D),
                lane=[product((0, TILE - 1), [lane_column])]),
         matrix("O, global memory", "32 queries x 64", tile, f"the sums of row {row}, one per lane; stored\nafter the tile's last key",
                cells(out[2].elements(), D), sum((cells(r.elements(), D) for r in out), []), [cells(out[2].elements(lane), D)])))


PICTURES = order_of_visits, shared_memory, who_reads_what
