"""Draws the picture of this chapter: how many tiles each rank computes in each step under a causal mask, from traces of 17b and of the
last rung; plots/draw.py runs it."""

import traces
from sheet import GREY, INK, PALE, Page

RANKS, N, TILE = 3, 2304, 128  # keys per tile at d 64
OPTIONS = f"--heads 1 --seq {N} --dim 64 --devices {RANKS} --causal --no-time"
FACES = "#9CCBE9", "#F6DDB0", "#A9DCC6", "#E8C5DA"  # of the steps


def tiles_of(launch):
    """How many tiles of keys its blocks load, all together. A block loads its rows of Q first, then K and V tile by tile."""
    blocks = launch.fields["grid"][0]
    assert len(launch.blocks) == blocks
    loads = [sum(event.kind == "bulk load" for event in launch.events(block)) for block in launch.blocks]
    assert all(number % 2 == 1 for number in loads)
    return sum(number // 2 for number in loads)


def steps_of(folder, program, first):
    """Per rank, the tiles of each step. `first`: so many launches are its step 0."""
    ranks = {}  # by the array that the first load of a launch reads: the rank's Q
    for launch in traces.run(folder, program, OPTIONS, ",".join(map(str, range(2 * N // RANKS // TILE)))):
        Q = next(event.array for event in launch.events() if event.kind == "bulk load")
        ranks.setdefault(Q, []).append(tiles_of(launch))
    assert len(ranks) == RANKS
    return [[sum(tiles[:first]), *tiles[first:]] for tiles in ranks.values()]


def bars(page, y, words, more, ranks, unit):
    page.text(1, y, words, weight="bold", size=11)
    page.text(79, y, more, size=10, ha="right")
    for rank, steps in enumerate(ranks):
        x, top = 8.0, y + 1.8 + 3.4 * rank
        page.text(1, top + 1.3, f"rank {rank}", size=10)
        for step, tiles in enumerate(steps):
            page.box(x, top, tiles * unit, 2.6, FACES[step], GREY, order=3, words=str(tiles), size=10)
            x += tiles * unit
        page.text(x + 0.8, top + 1.3, str(sum(steps)), size=10, weight="bold", color=INK)


def balance(folder):
    chain, zigzag = steps_of(folder, "17b_ring", 1), steps_of(folder, "17_ring", 2)
    most = max(map(sum, chain))
    unit, both = 64 / most, [sum(map(sum, ranks)) for ranks in (chain, zigzag)]
    page = Page(36.8, f"Tiles of keys that each of {RANKS} ranks multiplies, step by step, under a causal mask")
    bars(page, 4.6, "17b: neighbouring rows", f"{both[0]} tiles; the longest rank has {most}", chain, unit)
    bars(page, 18.6, "The last rung: chunks r and 2 P - 1 - r", f"{both[1]} tiles; the longest rank has {max(map(sum, zigzag))}", zigzag, unit)
    page.line([1, 79], [16.5, 16.5], PALE, 0.8, 1)
    page.key(32.4, *((face, f"step {step}") for step, face in enumerate(FACES[:RANKS])))
    page.text(1, 35.0, f"One head, N {N}, d 64. A tile: up to 192 rows and {TILE} keys; tiles on the diagonal count as whole ones.", size=10)
    return page


PICTURES = (balance,)
