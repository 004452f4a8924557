#!/usr/bin/env python3
"""Draws the pictures of this chapter from a trace of its last rung, and writes its worked example: draw.py [--check]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import sheet  # noqa: E402 (its folder comes first)
import traces  # noqa: E402

import worked  # noqa: E402
from sheet import GREY, INK, LANE, NOW, OWNED, PALE, SAND, TINT, Page, cells  # noqa: E402

D, SEQ, SHOWN = 64, 256, 1  # SHOWN: the warp, of a half or of the block


def run(folder, blocks="0,1"):
    return next(launch for launch in traces.run(folder, "09_fa2_bwd_warps", f"--heads 1 --seq {SEQ} --dim {D}", blocks)
                if launch.requests(array="dQ", kind="atomic"))


def stored(folder, array, kind):
    """{warp: {lane: elements (row, col)}} of the block's first tile of an array."""
    found = {}
    requests = run(folder).requests(array=array, kind=kind)
    for request in (r for r in requests if r.epoch == requests[0].epoch):
        for lane in range(32):
            found.setdefault(request.warp, {}).setdefault(lane, []).extend(cells(request.elements(lane), D))
    return found


# ---- the work of a block --------------------------------------------------------------------------------------------


def split_of_work(folder):
    """Per traced block, its key tile and the query tiles in order; sizes of both tiles; sources that each half reads."""
    launch = run(folder)
    keys = 1 + max(row for warp in traces.product(launch, "Q", "K", D).values() for lane in warp for row in lane[1])
    rows = 1 + max(row for warp in traces.product(launch, "Q", "K", D).values() for lane in warp for row in lane[0])
    walk = []
    for block in sorted(launch.blocks):
        copied = lambda array: [r.elements()[0] // D for r in launch.requests(block, array=array, kind="copy", warp=0)]
        walk.append([copied("K")[0] // keys, sorted({row // rows for row in copied("Q")})])
    halves = [[sorted(name for name in half["read"] if name in ("Q", "K", "V", "dO")) for half in epoch]
              for epoch in traces.activity(launch, {}, groups=2)]
    tile = halves[next(i for i, epoch in enumerate(halves) if "K" in epoch[0]) :][:4]
    return {"tile": [rows, keys], "walk": walk, "halves": [epoch for epoch in tile if any(epoch)]}


def draw_split_of_work(facts):
    rows, keys = facts["tile"]
    assert facts["halves"] == [[["K", "Q"], ["V", "dO"]], [["dO"], ["Q"]], [["K"], ["K"]]]
    page = Page(30)
    page.title(1.6, "Each block owns one key tile and walks over the query tiles")
    wide, tall, x, y, tiles = 5.4, 3.2, 12.0, 8.6, SEQ // rows
    own, visited = facts["walk"][1]
    page.text(x - 0.8, y - 1.5, "key", ha="right")
    for j in range(SEQ // keys):
        page.text(x + j * wide + 0.2, y - 1.5, str(keys * j), size=8.5)
        page.text(x + (j + 0.5) * wide, y + tiles * tall + 1.4, f"block {facts['walk'][j][0]}", size=8.5, ha="center")
        for i in range(tiles):
            face = "white" if j != own or i not in visited else NOW if i == 1 else OWNED
            page.box(x + j * wide, y + i * tall, wide, tall, face, GREY, order=2)
    for i in range(tiles):
        page.text(x - 0.8, y + i * tall + 0.8, str(rows * i), size=8.5, ha="right")
    page.text(3.4, y + tiles * tall / 2, "query row", ha="center", rotation=90)
    page.arrow((x + (own + 0.8) * wide, y + 2 * tall), (x + (own + 0.8) * wide, y + tiles * tall - 0.5), GREY)
    left, width = 31.0, 22.5
    page.text(left, 5.0, f"One visit: {rows} query rows x {keys} keys, 8 warps")
    parts = [("S = Q K^T", "dP = dO V^T"), ("P, to shared memory", "dS = scale P (dP - D),\nto shared memory"), ("dV += P^T dO", "dK += dS^T Q")]
    for h, name in enumerate(("first half, warps 0 to 3", "second half, warps 4 to 7")):
        at = left + h * (width + 2.0)
        page.text(at + width / 2, 7.8, name, ha="center", weight="bold")
        for r, words in enumerate(parts):
            page.box(at, 9.4 + 4.2 * r, width, 3.4, OWNED if r == 2 else TINT, GREY, order=2, words=words[h])
    page.arrow((left + width - 1.0, 15.3), (left + width + 2.0, 15.3), LANE)
    page.box(left, 22.0, 2 * width + 2.0, 2.8, SAND, GREY, order=2, words="dQ += dS K, all warps; added to dQ in global memory")
    page.key(28.0, (NOW, "this visit"), (OWNED, "stays in the block's registers"), (SAND, "to global memory at each visit"))
    return page


# ---- who owns what --------------------------------------------------------------------------------------------------


def who_owns_what(folder):
    """Of each matrix: its shape, the frame of each warp, and the elements of one lane."""
    found = {}
    for name, a, b in (("S", "Q", "K"), ("dP", "dO", "V")):
        parts = traces.product(run(folder), a, b, D)
        found[name] = {warp: {lane: [[r, c] for r in of[0] for c in of[1]] for lane, of in enumerate(lanes)} for warp, lanes in parts.items()}
    found |= {"dV": stored(folder, "dV", "store"), "dK": stored(folder, "dK", "store"), "dQ": stored(folder, "dQ", "atomic")}
    facts = {"places": traces.lane_places(traces.product(run(folder), "Q", "K", D)[0])}
    for name, warps in found.items():
        owned = sorted(tuple(at) for lanes in warps.values() for elements in lanes.values() for at in elements)
        assert len(owned) == len(set(owned)), f"{name}: an element has two lanes"
        frames = []
        for warp in sorted(warps):
            rows, cols = zip(*(at for elements in warps[warp].values() for at in elements))
            frames.append([warp, min(rows), min(cols), 1 + max(rows) - min(rows), 1 + max(cols) - min(cols)])
        shown = sorted(warps)[SHOWN]
        facts[name] = {"shape": [owned[-1][0] + 1, max(col for _, col in owned) + 1], "frames": frames, "lane": warps[shown][sheet.MARKED]}
        assert len(owned) == facts[name]["shape"][0] * facts[name]["shape"][1], f"{name}: an element has no lane"
    return facts


def draw_who_owns_what(facts):
    page, cell, top = Page(60), 0.26, 8.6
    page.title(1.6, "What a warp owns, and what one of its lanes owns")
    panels = (("S", "dP", "query rows", "keys", 3.0), ("dV", "dK", "keys", "columns", 40.5), ("dQ", None, "query rows", "columns", 61.5))
    for name, twin, down, across, x in panels:
        of = facts[name]
        rows, cols = of["shape"]
        M = page.matrix(x, top, rows, cols, cell)
        page.text(x, top - 4.6, f"{name}: warps {traces.runs(frame[0] for frame in of['frames'])}", weight="bold", size=10.5)
        page.text(x, top - 2.7, f"{rows} {down} x {cols} {across}", size=9)
        shown = of["frames"][SHOWN]
        for warp, row, col, high, wide in of["frames"]:
            mine = warp == shown[0]
            M.rectangle(row, col, high, wide, INK, 1.1, TINT if mine else "none", 2 if mine else 7)
            if not mine:
                page.text(M.x + (col + wide / 2) * cell, M.y + (row + high / 2) * cell, f"warp {warp}", ha="center")
        M.fill(of["lane"], LANE)
        per_lane = f"{len(of['lane'])} per lane"
        if twin:
            same = all(frame[1:] == other[1:] for frame, other in zip(of["frames"], facts[twin]["frames"]))
            assert same and of["lane"] == facts[twin]["lane"]
            per_lane += f"; {twin}: the same,\nwarps {traces.runs(frame[0] for frame in facts[twin]['frames'])}"
        page.text(x, M.bottom + 1.0, per_lane, va="top")
        for at in (0, cols // 2):
            page.text(x + at * cell + 0.2, top - 0.9, str(at), size=8)
        for at in (0, rows // 2):
            page.text(x - 0.4, M.y + at * cell + 0.7, str(at), size=8, ha="right")
    sheet.lane_pattern(page, 7.0, 39.2, 2.4, facts["places"], "lane_row", "lane_col: bits 3 2 1; lane_row: bits 4 0")
    page.text(7.0, 50.8, "S: rows lane_row + 4 i, keys lane_col + 8 j\ndV: keys 4 lane_row + 16 n + 0 to 3, columns 4 lane_col + 32 c + 0 to 3\n"
              "dQ: rows lane_row + 4 i, columns 4 lane_col + 0 to 3")
    page.key(57.6, (TINT, f"warp {SHOWN}"), (LANE, f"its lane {sheet.MARKED}"))
    return page


# ---- barriers -------------------------------------------------------------------------------------------------------


def barriers(folder):
    """What both halves do in the five stretches from barrier to barrier of one query tile, the second of a block."""
    launch = run(folder)
    epochs = traces.activity(launch, {}, groups=2)
    starts = [i for i, epoch in enumerate(epochs) if "K" in epoch[0]["read"] and "Q" in epoch[0]["read"]]
    tidy = lambda half: [sorted(half["read"]), sorted(half["copied"]), half["stored"], half["added"]]
    return [[tidy(half) for half in epoch] for epoch in epochs[starts[1] : starts[2]]]


def draw_barriers(epochs):
    described = {"K,Q": "S = Q K^T", "V,dO": "dP = dO V^T", "computed,dO": "dV += P^T dO", "Q,computed": "dK += dS^T Q", "K,computed": "dQ += dS K"}
    page = Page(45)
    page.title(1.6, "One query tile, from barrier to barrier (lengths not to scale)")
    x, tall, bands = 13.0, 3.2, {"first half": 8.4, "second half": 13.0, "copies": 17.6}
    for name, y in bands.items():
        page.text(1, y + tall / 2, name, weight="bold")
    edges = [x]
    for number, halves in enumerate(epochs):
        phases = []  # of both halves: what is multiplied, then what is written
        for read, _, stores, _ in halves:
            key = ",".join(name for name in read if name != "workspace")
            words = [(described[key], NOW)] if key in described else []
            phases.append(words + [("writes dS" if "computed" in read else "writes P", OWNED)] * stores)
        wide = {2: 21.0, 1: 13.5, 0: 8.0}[max(len(words) for words in phases)] if number != 1 else 9.0
        for (name, y), words in zip(bands.items(), phases):
            part = wide / 21.0 * 13.0 if len(max(phases, key=len)) == 2 else wide
            at = x
            for text, face in words or [("waits", "#F0F0F0")]:
                size = wide - part if face == OWNED and part < wide else part
                page.box(at, y, size, tall, face, GREY, 0.9, order=2, words=text)
                at += size
            if at < x + wide - 0.01:
                page.box(at, y, x + wide - at, tall, "#F0F0F0", GREY, 0.9, order=2, words="waits")
        arrives = any(copied for _, copied, _, _ in halves)
        reads = any({"Q", "dO"} & set(read) for read, *_ in halves)
        page.box(x, bands["copies"], wide, tall, SAND if arrives else TINT, GREY, 0.9, order=2,
                 words="next Q, dO arrive" if arrives else "Q, dO in use" if reads else "", size=9)
        x += wide
        edges.append(x)
    for n, at in enumerate(edges):
        page.line([at, at], [6.6, 21.8], LANE, 2.2, order=6)
        page.text(at, 5.2, str(n % len(epochs) + 1), ha="center", size=11, weight="bold", color=LANE)
    page.text(1, 24.6, "The data race that each __syncthreads() prevents", size=11, weight="bold")
    reasons = ("after each thread has waited for its own copies:\na thread reads rows of Q, dO, L2, D (at first K, V) before the thread "
               "that copies them is done;\na thread overwrites dS while a warp still multiplies dS with K for dQ",
               "the second half reads P before the first half has written P",
               "a warp reads P or dS for dV, dK and dQ before other warps have written them",
               "copies of the next tile overwrite Q or dO while a warp still reads them for dV or dK")
    assert len(reasons) == len(epochs)
    y = 27.0
    for number, words in enumerate(reasons, start=1):
        page.text(2.0, y, str(number), size=10.5, weight="bold", color=LANE)
        page.text(4.4, y - 0.9, words, va="top")
        y += 1.8 * (words.count("\n") + 1) + 1.2
    page.key(43.4, (LANE, "barrier"), (NOW, "multiplies"), (OWNED, "writes shared memory"), (TINT, "read"), (SAND, "written by cp.async"))
    return page


def additions(folder):
    return run(folder).requests(warp=0, array="dQ", kind="atomic")[0].offsets


def draw_additions(offsets):
    return sheet.panels([("A warp adds to dQ: one request of 16 bytes per lane", offsets, 16, "dQ", "atomic")])


if __name__ == "__main__":
    sheet.main(__file__, {"split_of_work.png": (split_of_work, draw_split_of_work), "who_owns_what.png": (who_owns_what, draw_who_owns_what),
                          "barriers.png": (barriers, draw_barriers), "additions.png": (additions, draw_additions)}, also=worked.update)
