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
    page, tall, wide = Page(36.4, "What fewer tiles save: 15a with a window, 15d with packed sequences"), 2.9, 20.0
    panels = (("A window of 1024 keys, N 16384", "window", "15a_window", 1.6, 16),
              ("16 lengths of 1 to 2048, beside padding", "drawn", "15d_packed", 41.6, 4))  # and up to which ratio
    cases = [(pass_, d, causal) for pass_ in ("fwd", "bwd") for causal in (True, False) for d in (64, 128)]
    for title, kind, step, x, most in panels:
        page.text(x, 4.8, title, weight="bold", size=9.5)
        left = x + 14.6
        for row, (pass_, d, causal) in enumerate(cases):
            line = tables.trials.variant_line(BOOK, f"{step}_{pass_}", kind, pass_, str(d), "causal" if causal else "full")
            y, ratio, quotient = 7.0 + row * tall, line["ratio"], promised(kind, pass_, d, causal)
            assert ratio < most and quotient < most
            words = f"{'forward' if pass_ == 'fwd' else 'backward'}{', causal' if causal else ''}, d {d}"
            page.text(left - 0.6, y + 0.9, words, size=8.5, ha="right")
            page.box(left, y, ratio / most * wide, 1.8, PAIRS, GREY, 0.6, 3)
            page.text(left + 0.5, y + 0.9, f"{ratio:.1f}", size=8.5)
            page.line([left + quotient / most * wide] * 2, [y - 0.3, y + 2.1], LANE, 2.2, 6)
        page.line([left, left], [6.4, 7.0 + len(cases) * tall], GREY, 0.8)
    page.key(32.4, (PAIRS, "time without the variant / time with it, measured"), (LANE, "quotient of the numbers of tiles"))
    page.text(1, 35.0, f"{line['device'].split()[1]}, {line['dtype']}. Left: beside the same kernel without a window; "
              "right: beside chapters 10 and 11, padded to the longest.", size=9)
    return page


PICTURES = tiles, savings
