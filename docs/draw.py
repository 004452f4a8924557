"""Draws the pictures of docs/gpu.md; plots/draw.py docs runs it. What they count (sectors, banks, idle cycles) is computed here
from index formulas."""

import itertools
import math

from sheet import BANKS, GREY, INK, LANE as ORANGE, NOW as BLUE, OWNED, PALE, SECTOR, TINT, WARP, WORD, Page


def box(page, x, y, width, height, face="white", edge=GREY, line=0.8, order=1):
    page.box(x, y, width, height, face, edge, line, order)


def entry(page, x, y, face, edge, words):
    """Of a key to the colours."""
    box(page, x, y - 0.6, 1.6, 1.2, face, edge)
    page.text(x + 2.2, y, words)


# ---- grid, block, warp: the launch of `scores` in chapter 01 ----------------------------------------------------------


def grid(_):
    page, chosen = Page(36, "Grid"), (2, 3)
    BLOCK_X, BLOCK_Y = 32, 8  # of `scores`
    blocks_x, blocks_y = 128 // BLOCK_X, 64 // BLOCK_Y  # keys, queries
    page.text(1, 4.2, f"{blocks_x} x {blocks_y} blocks of one head")
    width, height, left, top = 4.6, 2.3, 1.0, 6.4
    for j in range(blocks_y):
        for i in range(blocks_x):
            box(page, left + i * width, top + j * height, width, height, ORANGE if (i, j) == chosen else "white")
    page.text(left, top + blocks_y * height + 1.4, "blockIdx.x = 0 to 3: keys")
    page.text(left, top + blocks_y * height + 3.4, "blockIdx.y = 0 to 7: queries")

    page.title(1.6, "Block", 27)
    page.text(27, 4.2, "blockIdx = (2, 3): 32 x 8 threads, 8 warps")
    cell, block_left = 0.82, 27.0
    for y in range(BLOCK_Y):
        for x in range(BLOCK_X):
            face = BLUE if (x, y) == (5, 2) else TINT if y == 2 else "white"
            box(page, block_left + x * cell, top + y * 1.9, cell, 1.9, face=face, line=0.4)
        page.text(block_left + BLOCK_X * cell + 0.6, top + (y + 0.5) * 1.9, f"warp {y}")
    x0, y0 = left + (chosen[0] + 1) * width, top + chosen[1] * height
    for part, tall in ((0, 0), (height, BLOCK_Y * 1.9)):
        page.line([x0, block_left], [y0 + part, top + tall], ORANGE, 1.0, order=4)
    page.text(block_left, top + BLOCK_Y * 1.9 + 1.4, "threadIdx.x = 0 to 31: lane of the warp")
    page.text(block_left, top + BLOCK_Y * 1.9 + 3.4, "threadIdx.y = 0 to 7: warp of the block")

    page.line([block_left + 5.5 * cell] * 2 + [60, 60.6], [top + 2 * 1.9, 5.7, 5.7, 7.4], BLUE, 1.0, order=4)
    page.title(1.6, "Thread", 61)
    page.text(61, 8.2, "threadIdx = (5, 2)", color=BLUE, weight="bold")
    page.text(61, 14.4, "key = 2 x 32 + 5 = 69\nquery = 3 x 8 + 2 = 26\n\nIt computes S[26][69].")
    page.text(1, 32.0, "One instruction of a warp is executed for its 32 lanes together. Blocks run in any order and do not wait for\n"
         "one another. The picture is drawn for 64 queries, 128 keys and one head.")
    return page


# ---- one SM, and the memories around it ---------------------------------------------------------------------------------


def sm(_):
    page = Page(44, "One SM of 132")
    box(page, 1, 3.2, 52, 27.2, face="#F4F4F4")
    for i in range(4):
        x = 2.5 + i * 12.6
        box(page, x, 4.6, 11.4, 14.6)
        page.text(x + 5.7, 6.2, f"scheduler {i}", ha="center", weight="bold")
        page.text(x + 5.7, 8.6, "up to 16 warps", ha="center")
        box(page, x + 0.8, 10.2, 9.8, 3.4, face=TINT, edge=BLUE)
        page.text(x + 5.7, 11.9, "registers\n64 KiB", ha="center", size=9)
        box(page, x + 0.8, 14.6, 9.8, 3.6, face=OWNED, edge="#009E73")
        page.text(x + 5.7, 16.4, "32 FMA units,\ntensor core", ha="center", size=9)
    box(page, 2.5, 20.6, 49.2, 8.2, face=TINT, edge=BLUE)
    page.text(27.1, 23.0, "L1 cache and shared memory: 256 KiB together", ha="center", weight="bold")
    page.text(27.1, 26.2, "shared memory: 228 KiB at most, 32 banks, 128 bytes per cycle", ha="center")
    for y, words in ((32.0, "L2 cache, one for all SMs: 50 MB (H100) or 60 MiB (H200)"), (38.2, "device memory: 80 GB (H100) or 141 GB (H200)")):
        box(page, 1, y, 52, 4.6, face=TINT, edge=BLUE)
        page.text(27, y + 2.3, words, ha="center", weight="bold")
    page.text(55, 7.4, "Who can use it", size=12, weight="bold")
    for y, name, words in ((12.0, "registers:", "one thread"), (21.6, "shared memory:", "the threads of one block"),
                           (26.9, "L1 cache:", "the blocks of one SM"), (34.3, "L2, device memory:", "all threads")):
        page.text(55, y - 0.8, name, weight="bold")
        page.text(55, y + 1.2, words)
    return page


# ---- latency hiding -----------------------------------------------------------------------------------------------------

LATENCY, WORK, LOADS = 20, 4, 3  # cycles a load takes; instructions that need it; loads of each warp


def schedule(warps):
    """One scheduler: each cycle it issues for the first ready warp. Returns {cycle: (warp, kind)} and the length."""
    ready, slots, cycle = [0] * warps, {}, 0
    todo = [(["load"] + ["work"] * WORK) * LOADS for _ in range(warps)]
    while any(todo):
        warp = next((warp for warp in range(warps) if todo[warp] and ready[warp] <= cycle), None)
        if warp is not None:
            slots[cycle] = warp, todo[warp].pop(0)
            ready[warp] = cycle + (LATENCY if slots[cycle][1] == "load" else 1)
        cycle += 1
    return slots, cycle


def latency(_):
    page = Page(37, "One scheduler, one instruction per cycle at most")
    page.text(1, 4.4, "One cell is one cycle, one row is one warp.")
    y, scale = 7.0, 66.0 / 88
    for warps in (1, 2, 4):
        slots, length = schedule(warps)
        assert length <= 88
        page.text(1, y + 1.0, f"{warps} warp{'s' if warps > 1 else ''}", weight="bold", size=11)
        for warp in range(warps):
            for cycle in range(length):
                face = {(warp, "load"): ORANGE, (warp, "work"): BLUE}.get(slots.get(cycle), "white")
                box(page, 12 + cycle * scale, y + warp * 1.5, scale, 1.5, face=face, edge=PALE, line=0.4)
        used = 100 * len(slots) / length
        page.text(12, y + warps * 1.5 + 1.3, f"{len(slots)} instructions in {length} cycles: {used:.0f} % of the issue slots used")
        y += warps * 1.5 + 5.0
    entry(page, 1, 35.0, ORANGE, ORANGE, f"load, its data arrive {LATENCY} cycles later")
    entry(page, 33, 35.0, BLUE, BLUE, f"FMA that needs the data ({WORK} per load)")
    return page


# ---- a reduction over the lanes of a warp ------------------------------------------------------------------------------


def butterfly(_):
    """The loop of warp_reduce_max (common/device/device.cuh) for 8 lanes."""
    x, lanes, left, wide, tall = [3, 1, 4, 2, 8, 5, 7, 6], 8, 27.0, 6.6, 3.0
    page = Page(40, "The maximum of 8 lanes in 3 shuffles")
    middle = lambda lane: left + (lane + 0.5) * wide
    for lane in range(lanes):
        page.text(middle(lane), 4.6, f"lane {lane}", ha="center")
    y, bit, largest = 6.2, lanes // 2, max(x)
    page.text(1, y + tall / 2, "x before", weight="bold")
    while True:
        for lane, value in enumerate(x):
            box(page, left + lane * wide + 0.9, y, wide - 1.8, tall, ORANGE if value == largest else TINT)
            color = "white" if value == largest else INK
            page.text(middle(lane), y + tall / 2, str(value), ha="center", size=11, color=color)
        if bit == 0:
            break
        for lane in range(lanes):
            for other, color in ((lane, GREY), (lane ^ bit, BLUE)):
                page.arrow((middle(other), y + tall), (middle(lane), y + 7.6), color)
        x = [max(x[lane], x[lane ^ bit]) for lane in range(lanes)]
        y += 7.6
        page.text(1, y + tall / 2, f"x = max(x, x of lane ^ {bit})", weight="bold")
        bit //= 2
    assert set(x) == {largest}
    page.text(1, y + 6.0, "The blue arrows of a round are one shuffle of the warp. "
              "32 lanes need 5 rounds: bits 16, 8, 4, 2 and 1.")
    entry(page, 1, y + 9.0, BLUE, BLUE, "x of the lane whose number differs in one bit")
    entry(page, 38, y + 9.0, GREY, GREY, "its own x")
    entry(page, 52, y + 9.0, ORANGE, ORANGE, "has the maximum of all 8 lanes")
    return page


# ---- sectors ------------------------------------------------------------------------------------------------------------

def sectors(_):
    page = Page(37, "Four loads of a warp, and the 32-byte sectors that they touch")
    y, cell, words_shown = 6.4, 0.92, 72
    for name, first, step in (("neighbours: x[lane]", 0, 1), ("one address: x[7]", 7, 0),
                              ("every second: x[2 * lane]", 0, 2), ("a row apart: x[64 * lane]", 0, 64)):
        words = {first + step * lane for lane in range(WARP)}
        touched = {word * WORD // SECTOR for word in words}
        useful = 100 * len(words) * WORD / (len(touched) * SECTOR)
        page.text(1, y - 1.8, name, weight="bold")
        page.text(30, y - 1.8, f"{len(touched)} sector{'s' if len(touched) > 1 else ''}, "
                  f"{len(touched) * SECTOR} bytes moved, {useful:.3g} % of them used")
        for sector in range(words_shown * WORD // SECTOR):
            box(page, 1 + sector * 8 * cell, y, 8 * cell, 2.2, TINT if sector in touched else "white", line=0.7)
        for word in sorted(word for word in words if word < words_shown):
            box(page, 1 + word * cell, y, cell, 2.2, face=BLUE, edge="white", line=0.3, order=2)
        if max(words) >= words_shown:
            page.text(1 + words_shown * cell + 0.8, y + 1.1, "and so on\n(30 more)", size=8.5)
        y += 7.2
    entry(page, 1, 35.0, BLUE, BLUE, "a word that a lane loads")
    entry(page, 27, 35.0, TINT, GREY, "the rest of its sector: moved, not used")
    return page


# ---- banks --------------------------------------------------------------------------------------------------------------

def banks(_):
    page = Page(41.6, "Four loads of a warp: different words in each of the 32 banks")
    cell, tall = 1.06, 8.0
    names = {1: "s[lane]", 2: "s[2 * lane]", 32: "s[32 * lane], a column of s[32][32]",
             33: "s[33 * lane], a column of s[32][33]"}
    for number, (step, name) in enumerate(names.items()):
        x, foot = 2.5 + (number % 2) * 40, 17.6 + (number // 2) * 17.4
        words = {step * lane for lane in range(WARP)}
        counts = [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]
        most = max(counts)  # a load takes as many wavefronts
        page.text(x, foot - tall - 4.0, name, weight="bold")
        page.text(x, foot - tall - 1.9, f"{most} wavefront{'s' if most > 1 else ''}" + (": no conflict" if most == 1 else ""))
        for bank, count in enumerate(counts):
            box(page, x + bank * cell, foot - tall, cell, tall, edge=PALE, line=0.5)
            if count:
                height = tall * math.log2(2 * count) / 6
                box(page, x + bank * cell, foot - height, cell, height, face=ORANGE if most > 1 else BLUE, edge="white", line=0.4, order=2)
        for bank in (0, 8, 16, 24, 31):
            page.text(x + (bank + 0.5) * cell, foot + 1.2, str(bank), ha="center", size=8.5)
        for count in (1, 2, 4, 8, 16, 32):
            page.text(x - 0.4, foot - tall * math.log2(2 * count) / 6 + 0.3, str(count), ha="right", size=8)
    page.text(1, 39.4, "Horizontal: bank number, (word address) mod 32. Vertical: words that the bank must deliver;\n"
              "each tick is twice the tick below it.")
    return page


# ---- a race -------------------------------------------------------------------------------------------------------------


def slots_of(order, barrier):
    """Two warps run "store own half of s; [barrier;] load the other's half". `order`: which warp is to go on, slot by slot.
    Returns [(slot, warp, what, word loaded or None)]; a warp at the barrier goes on when both have come."""
    program, at, memory, found = ["store", *["barrier"] * barrier, "load"], [0, 0], ["old", "old"], []
    for slot, warp in enumerate(order):
        if at[warp] == len(program):
            continue
        if program[at[warp]] == "barrier":
            if min(at) < 1:
                found.append((slot, warp, "wait", None))
                continue
            at[warp] += 1
        what, loaded = program[at[warp]], None
        if what == "store":
            memory[warp] = "new"
        else:
            loaded = memory[1 - warp]
        at[warp] += 1
        found.append((slot, warp, what, loaded))
    return found


def race(_):
    page = Page(50, "A race: the order of two warps decides what is loaded")
    every = itertools.product((0, 1), repeat=8)  # the claim "in any order"; a warp that has ended lets slots pass
    assert all(loaded != "old" for order in every for *_, loaded in slots_of(order, True))
    page.text(1, 4.4, "Each warp stores its half of s, then loads the half of the other warp. Time runs to the right.")
    y, left, wide, tall = 9.4, 10.0, 9.6, 3.0
    for title, order, barrier in (("no barrier, a lucky order", (0, 1, 0, 1), False),
                                  ("no barrier, another order", (0, 0, 1, 1), False),
                                  ("__syncthreads() between store and load, the same order", (0, 0, 1, 1, 0), True)):
        slots = slots_of(order, barrier)
        page.text(1, y - 1.7, title, weight="bold", size=11)
        for warp in (0, 1):
            page.text(1, y + (warp + 0.5) * (tall + 0.4), f"warp {warp}")
        for slot, warp, what, loaded in slots:
            face = {"store": OWNED, "wait": "#F0F0F0"}.get(what, ORANGE if loaded == "old" else BLUE)
            slots_long = 1 + (what == "wait") * (max(at for at, _, done, _ in slots if done == "store") - slot)
            page.box(left + slot * wide, y + warp * (tall + 0.4), slots_long * wide, tall, face, GREY, order=2,
                     words={"store": "stores", "wait": "waits"}.get(what, f"loads {loaded}"))
        if barrier:
            at = left + (1 + max(slot for slot, _, what, _ in slots if what == "store")) * wide
            page.line([at, at], [y, y + 2 * tall + 1.2], ORANGE, 2.2)
            page.text(at + 0.5, y + 2 * tall + 2.0, "both warps have arrived", size=9, color=ORANGE)
        wrong = [warp for _, warp, _, loaded in slots if loaded == "old"]
        result = f"warp {wrong[0]} computes with\nwhat lay there before" if wrong else \
            "right in any order" if barrier else "right, by chance"
        page.text(left + 5 * wide + 1.6, y + tall + 0.2, result, weight="bold", color=ORANGE if wrong else INK)
        y += 12.6
    entry(page, 1, 48.2, OWNED, GREY, "stores its half")
    entry(page, 20, 48.2, BLUE, BLUE, "loads what the other warp stored")
    entry(page, 52, 48.2, ORANGE, ORANGE, "loads too early")
    return page


PICTURES = grid, sm, latency, butterfly, sectors, banks, race
