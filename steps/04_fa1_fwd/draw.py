#!/usr/bin/env python3
"""Draws the pictures of this chapter from traces of its program: draw.py [--check]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import sheet  # noqa: E402 (its folder comes first)
import traces  # noqa: E402
from sheet import INK, LANE, NOW, OWNED, PALE, SAND, TINT, Page, cells  # noqa: E402

TILE, D, SEQ, WARP_SHOWN = 32, 64, 128, 1


def run(folder, dim=D):
    return traces.run(folder, "04_fa1_fwd", f"--heads 1 --seq {SEQ} --dim {dim}")[0]


# ---- the order of the visits ----------------------------------------------------------------------------------------


def order_of_visits(folder):
    return traces.visits(run(folder), (0, 0, 0), TILE, D)


def draw_order_of_visits(visits):
    order = {(i, j): number for number, (i, j, _, _) in enumerate(visits, start=1)}
    now = 2, 1
    reads, writes = visits[order[now] - 1][2:]
    page = Page(46)
    page.title(1.6, "One block per head: all query tiles for one key tile, then the next key tile")
    grid = sheet.visits(page, 1.0, 14.0, 6.0, order, now, kept_rows=False, arrows=True)
    for j in range(4):
        page.text(grid.at(0, j)[0], 12.8, f"{j * TILE} to {j * TILE + TILE - 1}", size=8.5, ha="center")
    page.text(grid.right + 0.8, 12.8, "key", size=8.5)
    shapes = {"Q": f"{TILE} x d", "O": f"{TILE} x d", "workspace": f"{TILE} each"}
    lines = [(f"Visit {order[now]}", "", INK), ("in shared memory:", "", INK), ("K, V", f"{TILE} x d each", INK), ("read from global memory:", "", NOW)]
    lines += [("m, l" if name == "workspace" else name, shapes[name], NOW) for name in ["Q", *reads]]
    lines += [("written back:", "", LANE)]
    lines += [("m, l" if name == "workspace" else name, shapes[name], LANE) for name in writes]
    for row, (words, shape, color) in enumerate(lines):
        y = grid.y + 1.0 + 2.35 * row
        page.text(grid.right + (6.0 if shape else 3.5), y, words, size=10.5, color=color, weight="normal" if row else "bold")
        page.text(grid.right + 12.0, y, shape, size=10.5, color=color)
    first, last = visits[0], visits[-1]
    assert not first[2] and last[3] == sorted([*writes, "L"])
    page.text(1, 40.9, "At the first key tile O, m and l are not read: they are 0, -inf and 0. At the last key tile L is written.")
    page.key(43.8, (NOW, "this visit"), (PALE, "earlier visits"), (OWNED, "stays in shared memory"), (TINT, "travels at each visit"))
    return page


# ---- how shared memory is divided -----------------------------------------------------------------------------------


def shared_memory(folder):
    """Per head dimension: bytes of the launch, and of each array its first word and how many words are written."""
    found = {}
    for dim in (64, 128):
        words = {}
        for request in run(folder, dim).requests(space="shared", kind="store"):
            words.setdefault(request.source(), set()).update(request.elements())
        parts = sorted([min(of), len(of), "S" if name == traces.COMPUTED else name] for name, of in words.items())
        found[dim] = [run(folder, dim).dynamic_bytes, parts]
    return found


def draw_shared_memory(facts):
    page = Page(37)
    page.title(1.6, "A block's shared memory, drawn to scale")
    left, scale = 2.0, 74.0 / (64 << 10)  # 64 KiB are 74 units wide
    faces = {"Q": TINT, "K": OWNED, "V": SAND, "S": "#E8CFE0"}
    for row, (dim, (total, parts)) in enumerate(facts.items()):
        y, tall = 8.6 + 12.6 * row, 5.0
        page.text(left, y - 2.0, f"d = {dim}:  {total} bytes", size=11, weight="bold")
        ends = [first for first, _, _ in parts[1:]] + [total // 4]
        for (first, used, name), end in zip(parts, ends):
            x, wide, padding = left + 4 * first * scale, 4 * (end - first) * scale, 4 * (end - first - used) * scale
            page.box(x, y, wide, tall, faces[name], INK, 1.0, order=2)
            page.box(x + wide - padding, y, padding, tall, INK, order=3)
            page.text(x + (wide - padding) / 2, y + 1.6, name, size=11, weight="bold", ha="center")
            page.text(x + (wide - padding) / 2, y + 3.6, f"{4 * (end - first)} B", size=8.5, ha="center")
            rows = TILE
            shape = f"{rows} x {used // rows}" if padding == 0 else f"{rows} x ({used // rows} + {(end - first - used) // rows})"
            page.text(x + 0.4, y + tall + 1.3, shape, size=8.5)
    for limit, low, words, side in ((48, 28.6, "48 KiB: a launch gets no more by default", "center"),
                                    (64, 31.0, "64 KiB: every card since 7.5 gives as much on request", "right")):
        at = left + limit * 1024 * scale
        page.line([at, at], [4.8, low], LANE, 1.4, order=1, linestyle="--")
        page.text(at, low + 1.4, words, color=LANE, ha=side)
    page.key(35.2, (INK, "padding: one float after each row (drawn together, at the end)"))
    return page


# ---- who reads what -------------------------------------------------------------------------------------------------


def who_reads_what(folder):
    launch = run(folder)
    mine = lambda **wanted: launch.requests(warp=WARP_SHOWN, space="shared", **wanted)
    load = lambda epoch, source: mine(epoch=epoch, source=source, kind="load")
    step = D + 20  # of the loops over the warp's keys and the columns: its second key, column 20
    q, k = load(1, "Q")[step], load(1, "K")[step]
    scores = mine(epoch=1, kind="store")
    stride = (scores[0].offsets[1] - scores[0].offsets[0]) // 4  # from query row to query row of S
    base = min(launch.requests(epoch=1, space="shared", kind="store"), key=lambda r: r.offsets[0]).offsets[0] // 4
    in_S = lambda request, lane=None: [list(divmod(word - base, stride)) for word in request.elements(lane)]
    v = load(2, "V")[2 * TILE + 12]  # the warp's second row, its first 32 columns, key 12
    outputs = launch.requests(warp=WARP_SHOWN, array="O", kind="store", epoch=2)
    p = [r for r in load(2, traces.COMPUTED) if len(set(r.offsets)) == 1][TILE + 12]
    lane = sheet.MARKED
    return {
        "Q": [cells(q.held(), D), cells(q.held(lane), D)], "K": cells(k.held(), D),
        "S": [in_S(scores[1]), in_S(scores[1], lane), sum(map(in_S, scores), [])],
        "P": [in_S(p), [[row, key] for row in sorted({r for o in outputs for r, _ in cells(o.elements(), D)}) for key in range(TILE)]],
        "V": [cells(v.held(), D), cells(v.held(lane), D)],
        "O": [cells(outputs[2].elements(), D), cells(outputs[2].elements(lane), D), sum((cells(o.elements(), D) for o in outputs), [])],
    }


def draw_who_reads_what(facts):
    tile, square = (TILE, D), (TILE, TILE)
    keys = sorted({key for _, key in facts["S"][2]})
    rows = sorted({row for row, _ in facts["O"][2]})
    (_, column), *_ = facts["Q"][0]
    (key, _), *_ = facts["K"]
    (row, now), *_ = facts["P"][0]
    every = f"every {keys[1] - keys[0]}th"
    page = Page(60)
    sheet.row_of_matrices(page, 1.6, f"S = Q K^T: lane = query row, a warp computes {every} key", [
        {"name": "Q_smem", "what": "32 queries x 64", "shape": tile, "now": facts["Q"][0], "lane": [[[facts["Q"][1][0][0], 0], [facts["Q"][1][0][0], D - 1]]],
         "below": f"column {column} of 32 rows:\n32 words in 32 banks, 1 wavefront"},
        {"name": "K_smem", "what": "32 keys x 64", "shape": tile, "now": facts["K"],
         "below": f"one element of key {key}, for all lanes:\na broadcast, 1 wavefront"},
        {"name": "S_smem", "what": "query x key", "shape": square, "now": facts["S"][0], "lane": [facts["S"][1]], "owned": facts["S"][2],
         "below": f"the sums of key {key},\none per lane"}])
    sheet.row_of_matrices(page, 29.0, f"O = P V: a warp computes {every} row, lane = column", [
        {"name": "S_smem, now P", "what": "query x key", "shape": square, "now": facts["P"][0], "owned": facts["P"][1],
         "below": f"one element of\nrow {row}: a broadcast"},
        {"name": "V_smem", "what": "32 keys x 64", "shape": tile, "now": facts["V"][0],
         "lane": [[[0, facts["V"][1][0][1]], [TILE - 1, facts["V"][1][0][1]]]],
         "below": f"key {now}, 32 neighbours:\n32 words in 32 banks, 1 wavefront"},
        {"name": "O, global memory", "what": "32 queries x 64", "shape": tile, "now": facts["O"][0], "lane": [facts["O"][1]],
         "owned": facts["O"][2], "below": f"the sums of row {row}, one per lane; stored\nafter the tile's last key"}])
    page.key(57.8, (NOW, "touched for one FMA"), (OWNED, f"the rest of warp {WARP_SHOWN}'s part"), (None, LANE, f"lane {sheet.MARKED}"))
    assert rows == keys
    return page


if __name__ == "__main__":
    sheet.main(__file__, {"order_of_visits.png": (order_of_visits, draw_order_of_visits),
                          "shared_memory.png": (shared_memory, draw_shared_memory),
                          "who_reads_what.png": (who_reads_what, draw_who_reads_what)})
