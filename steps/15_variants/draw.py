"""Draws the pictures of this chapter: the tiles that a block visits, from traces of 15a and 15d, and what visiting fewer of them
saves, from the recorded times; plots/draw.py runs it."""

import math
import random
import re

import tables
import traces
from provenance import ROOT
from sheet import GREY, LANE, SAND, Page

D, N, BC = 128, 640, 64  # BC: keys per tile
LENGTHS = 200, 130, 0, 310
PAIRS, BOOK = "#9CCBE9", tables.Book(ROOT)
CASES = (("15a, --causal", "15a_window_fwd", "--causal", [N]),
         ("15a, --causal --window 99,0", "15a_window_fwd", "--causal --window 99,0", [N]),
         ("15a, --window 99,200", "15a_window_fwd", "--window 99,200", [N]),
         (f"15d, --lengths {','.join(map(str, LENGTHS))}", "15d_packed_fwd", "", LENGTHS))


def rows_of(launch, block, array):
    """The rows of Q or K that a block copies, in order."""
    return sorted({at // (2 * D) for r in launch.requests(block, array=array, kind="copy") for at in r.offsets if at is not None})


def attended(options, lengths, row):
    """The first key of a row and the one after its last, by the definitions of --causal, --window and --lengths."""
    begin, end = next((sum(lengths[:s]), sum(lengths[: s + 1])) for s in range(len(lengths)) if row < sum(lengths[: s + 1]))
    window = re.search(r"--window (\d+),(\d+)", options)
    left, right = map(int, window.groups()) if window else (N, N)
    return max(begin, row - left), min(end, row + (0 if "--causal" in options else right) + 1)


def visits(folder, program, options, lengths):
    """Of each block of a head: its first row and the one after its last, and the tiles that it visits: (first key, end, masked?)."""
    size = f"--lengths {','.join(map(str, lengths))}" if len(lengths) > 1 else f"--seq {N}"
    launch = traces.run(folder, program, f"--heads 1 {size} --dim {D} --no-time {options}", ",".join(map(str, range(12))))[-1]
    found = []
    for block in launch.blocks:
        rows, keys = rows_of(launch, block, "Q"), rows_of(launch, block, "K")
        if not rows:
            continue  # past the end of its sequence
        sees = [attended(options, lengths, row) for row in rows]
        begin = min(attended("", lengths, rows[0]))
        tiles = traces.grouped(keys, lambda a, b: (a - begin) // BC == (b - begin) // BC)
        some = lambda tile: any(first <= tile[-1] and tile[0] < end for first, end in sees)
        masked = lambda tile: not all(first <= tile[0] and tile[0] + BC <= end for first, end in sees)
        assert all(map(some, tiles)) and keys[0] <= min(first for first, _ in sees) and keys[-1] + 1 >= max(end for _, end in sees)
        found.append((rows[0], rows[-1] + 1, [(tile[0], tile[-1] + 1, masked(tile)) for tile in tiles]))
    assert sorted(row for first, end, _ in found for row in range(first, end)) == list(range(N))
    return found


def tiles(folder):
    page, scale = Page(55.4, f"The tiles that each block of 128 rows visits (d {D}, tiles of {BC} keys)"), 31.0 / N
    for at, (title, program, options, lengths) in enumerate(CASES):
        x, y = (7.4, 48.0)[at % 2], (7.4, 30.6)[at // 2]
        tall = 18.0 / N
        page.text(x - 6.4, y - 2.4, title, weight="bold", size=9.5)
        blocks, count = visits(folder, program, options, lengths), [0, 0]
        for first, end, of in blocks:
            page.text(x - 0.6, y + (first + end) / 2 * tall, f"row {first}", size=8, ha="right")
            for start, stop, masked in of:
                count[masked] += 1
                place = x + start * scale, y + first * tall, (stop - start) * scale, (end - first) * tall
                page.box(*place, SAND, "none", order=2)
                page.box(*place, "none", GREY, 0.7, 4)
        sees = [attended(options, lengths, row) for row in range(N)]
        for row in range(0, N, 2):  # the pairs, two rows at a time
            page.box(x + sees[row][0] * scale, y + row * tall, (sees[row][1] - sees[row][0]) * scale, 2 * tall, PAIRS, "none", order=3)
        page.box(x, y, N * scale, N * tall, "none", GREY, order=6)
        page.text(x + N * scale, y - 2.4, f"{sum(count)} tiles, {count[1]} with a mask", size=9, ha="right")
    page.key(51.6, (PAIRS, "the row attends to the key"), (SAND, "computed, and masked"))
    page.text(1, 54.0, f"{N} rows from top to bottom, {N} keys from left to right; beside each block its first row.", size=9)
    return page


# ---- what it saves ----------------------------------------------------------------------------------------------------


def counted(length, causal, window, block, tile, by_keys):
    """The tiles that all blocks of a head visit: a block owns rows and visits tiles of keys, or the reverse in the backward pass."""
    left, right = window or (length, length)
    right = 0 if causal else right
    if by_keys:
        left, right = right, left
    ends = ((max(0, first - left), min(length, min(first + block, length) + right)) for first in range(0, length, block))
    return sum(math.ceil(end / tile) - start // tile for start, end in ends)


def drawn_lengths():
    """As time_variants.py draws them."""
    text = (ROOT / "tests" / "pytorch" / "time_variants.py").read_text(encoding="utf-8")
    packed, count = map(int, re.search(r"packed_N, count = \d+, (\d+), (\d+)", text).groups())
    draw = random.Random(int(re.search(r"draw = random.Random\((\d+)\)", text)[1]))
    return [draw.randint(1, 2 * packed) for _ in range(count)]


def promised(kind, pass_, d, causal):
    """The quotient of the numbers of tiles: without the variant by with it."""
    shape = (128, 64, True) if pass_ == "bwd" else (128, 128 if d == 64 else 64, False)
    if kind == "window":
        window = (1023, 0) if causal else (512, 511)
        return counted(16384, causal, None, *shape) / counted(16384, causal, window, *shape)
    lengths = drawn_lengths()
    return len(lengths) * counted(max(lengths), causal, None, *shape) / sum(counted(length, causal, None, *shape) for length in lengths)


def savings(_):
    passes, tall, wide, losses = {"fwd": "forward", "bwd": "backward"}, 2.9, 20.5, []
    panels = (("A window of 1024 of 16384 keys", "window", "15a_window", 1.6, 17.5),  # and up to which ratio
              ("16 lengths of 1 to 2048, packed", "drawn", "15d_packed", 41.6, 3.8))
    page = Page(45.6)
    for title, kind, step, x, most in panels:
        page.text(x, 5.2, title, weight="bold", size=11.5)
        y, left = 7.0, x + 12.0
        for pass_, words in passes.items():
            page.text(x, y + 1.2, words, weight="bold", size=10.5)
            y += 2.6
            for d, causal in ((64, True), (128, True), (64, False), (128, False)):
                line = tables.trials.variant_line(BOOK, f"{step}_{pass_}", kind, pass_, str(d), "causal" if causal else "full")
                ratio, quotient = line["ratio"], promised(kind, pass_, d, causal)
                assert ratio < quotient < most
                losses.append(100 * (1 - ratio / quotient))
                page.text(left - 0.8, y + 1.1, f"{'causal, ' if causal else ''}d {d}", size=10.5, ha="right")
                page.box(left, y, ratio / most * wide, 2.2, PAIRS, "none", 0.6, 3)
                page.text(left + 0.6, y + 1.1, f"{ratio:.1f}x", size=10.5, weight="bold")
                page.line([left + quotient / most * wide] * 2, [y - 0.2, y + 2.4], LANE, 2.6, 6)
                page.text(left + quotient / most * wide + 0.7, y + 1.1, f"{quotient:.1f}x", size=10.5, color=LANE)
                y += tall
            y += 1.0
        page.line([left, left], [9.2, y - 1.0], GREY, 0.8)
    page.title(1.6, f"Times follow the tiles: the gain is {min(losses):.0f} to {max(losses):.0f} % below their quotient")
    page.key(40.4, (PAIRS, "measured: times as fast as without the variant"), (LANE, "quotient of the numbers of tiles"))
    page.text(1, 43.6, f"{line['device'].split()[1]}, {line['dtype']}. Left: beside the same kernel without a window. "
              "Right: beside chapters 10 and 11, padded.")
    return page


PICTURES = tiles, savings
