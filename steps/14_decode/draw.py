"""Draws the pictures of this chapter: where a block finds its keys, from a trace of the last rung, and the rule for the number of
splits beside what was measured; plots/draw.py runs it."""

import math

import tables
import traces
from provenance import ROOT
from sheet import GREY, INK, LANE, PALE, Page

D, HEADS, SIZE, CAPACITY, LENGTHS = 128, 4, 128, 1024, (1000, 300)  # heads of Q, which share one of K and V; keys per page
OPTIONS = (f"--heads {HEADS} --heads-kv 1 --seq 1 --seq-kv {CAPACITY} --page-size {SIZE} --lengths {','.join(map(str, LENGTHS))} "
           f"--dim {D} --no-time")
TABLE, KEYS = CAPACITY // SIZE, 64  # entries per sequence; keys per tile
FACES = "#9CCBE9", "#F6DDB0", "#A9DCC6", "#E8C5DA"  # of the splits
GOOD, WITHIN = "#9CCBE9", 1.05


# ---- from a block table to O ------------------------------------------------------------------------------------------


def offsets(launch, block, **wanted):
    """In the order of the requests, each once."""
    return list(dict.fromkeys(at for r in launch.requests(block, **wanted) for at in r.offsets if at is not None))


def reads_of(launch, block):
    """{entry of the table that a block looks up: its page}, and {page: keys that it copies}."""
    entries = [at // traces.WORD for at in offsets(launch, block, array="pages", kind="load")]
    keys = [at // (2 * D) for at in offsets(launch, block, array="K", kind="copy")]
    copied = list(dict.fromkeys(key // SIZE for key in keys))
    assert len(entries) == len(copied)
    return dict(zip(entries, copied)), {page: sorted({key % SIZE for key in keys if key // SIZE == page}) for page in copied}


def traced(folder):
    """{entry: page}, {page: [sequence, split, its first key and the one after its last]}, {(sequence, split): number of keys}."""
    S, rows = len(FACES), HEADS * len(LENGTHS)
    decode, combine = traces.run(folder, "14_decode", OPTIONS, ",".join(map(str, range(len(LENGTHS) * S))))
    assert max(decode.blocks) == (len(LENGTHS) - 1, S - 1, 0)
    table, parts, keys = {}, {}, {}
    for sequence, split, _ in sorted(decode.blocks):
        entries, copied = reads_of(decode, (sequence, split, 0))
        assert all(table.get(entry, page) == page for entry, page in entries.items())
        table |= entries
        keys[sequence, split] = sum(map(len, copied.values()))
        for page, of in copied.items():
            assert of == list(range(of[0], of[-1] + 1))
            parts.setdefault(page, []).append((sequence, split, of[0], of[-1] + 1))
    assert all(sum(keys[sequence, split] for split in range(S)) == length for sequence, length in enumerate(LENGTHS))
    for block in combine.blocks:  # every row reads a part of each split, idle or not
        read = {at // traces.WORD for at in offsets(combine, block, array="workspace", kind="load", bytes=4)}
        assert read == {S * rows * D + split * rows + block[0] for split in range(S)}
    return table, parts, keys


def heading(page, y, words, more):
    page.text(1, y, words, weight="bold", size=11)
    page.text(79, y, more, size=10, ha="right")


def drawn_table(page, table, parts):
    left, wide, tall = 20.0, 7.35, 3.0
    heading(page, 5.2, "The block table", f"one entry per {SIZE} keys: the number of their page")
    for sequence, length in enumerate(LENGTHS):
        y = 7.0 + 3.8 * sequence
        page.text(1, y + tall / 2, f"sequence {sequence}: {length} keys", size=10)
        for entry in range(TABLE):
            number, x = table.get(sequence * TABLE + entry), left + entry * wide
            who = sorted({split for _, split, *_ in parts.get(number, [])})
            for i, split in enumerate(who):
                page.box(x, y + tall / len(who) * i, wide, tall / len(who), FACES[split], "none", order=2)
            page.box(x, y, wide, tall, "none", GREY, order=3, words="" if number is None else str(number), size=12, weight="bold")


def drawn_pages(page, parts):
    heading(page, 18.0, "The pages in memory", "in any order, full as far as they are coloured")
    top, tall, wide = 21.6, 5.0, 78 / (max(parts) + 1)
    for number in range(max(parts) + 1):
        x, here = 1 + number * wide, parts.get(number, [])
        page.text(x + wide / 2, top - 1.3, str(number), size=11, ha="center", weight="bold")
        for _, split, start, end in here:
            page.box(x, top + start / SIZE * tall, wide, (end - start) / SIZE * tall, FACES[split], "none", order=2)
        page.box(x, top, wide, tall, "none", GREY, order=4)
        page.text(x + wide / 2, top + tall + 1.4, f"seq. {here[0][0]}" if here else "free", size=9.5, ha="center", color=INK if here else GREY)


def drawn_kernels(page, keys):
    y, wide, below = 35.0, 8.9, 46.2
    at = lambda sequence, i: 1 + sequence * 40.4 + i * (wide + 0.7)
    heading(page, 33.0, "First kernel", "one block per split: it reads its pages, and stores a part of O")
    for (sequence, split), number in keys.items():
        tiles = math.ceil(number / KEYS)
        words = f"split {split}\n{number} keys\n{tiles} tile{'s' * (tiles != 1)}" if number else f"split {split}\nno key"
        page.box(at(sequence, split), y, wide, 7.2, FACES[split], GREY, order=3, words=words, size=10.5)
        page.arrow((at(sequence, split) + wide / 2, y + 7.2), (at(sequence, split) + wide / 2, below), GREY)
    heading(page, 52.6, "Second kernel", f"one block per row of O: it adds {len(FACES)} parts, weighted by their logsumexp")
    for sequence in range(len(LENGTHS)):
        page.box(at(sequence, 0), below, at(sequence, 3) + wide - at(sequence, 0), 4.6, PALE, GREY, order=3,
                 words=f"O of sequence {sequence}: {HEADS} rows, one per head", size=10.5)


def pages(folder):
    table, parts, keys = traced(folder)
    page = Page(57.6, f"Paged decoding: {len(FACES)} splits find their keys by a block table")
    drawn_table(page, table, parts)
    drawn_pages(page, parts)
    drawn_kernels(page, keys)
    page.text(1, 55.8, f"{HEADS} heads of Q on one of K and V, one query, d {D}. One colour per split.", size=10)
    return page


# ---- the rule and the measured times -----------------------------------------------------------------------------------


def splits(_):
    order = lambda line: (line["rule"], line["tiles"], line["batch"] * line["heads_kv"])
    lines = sorted(tables.Book(ROOT).lines("trials", "splits"), key=order)
    left, top, wide, tall = 8.0, 6.0, 71.0, 3.3
    steps = math.ceil(math.log2(max(int(number) for line in lines for number in line["ms"])))
    bottom, unit = top + steps * tall, wide / len(lines)
    page = Page(bottom + 10.9, f"The rule's number of splits beside the measured times of {len(lines)} shapes")
    level = lambda number: bottom - math.log2(number) * tall
    page.text(1, 4.2, "splits", size=9)
    for step in range(steps + 1):
        page.line([left, left + wide], [level(2**step)] * 2, PALE, 0.6, 1)
        page.text(left - 0.8, level(2**step), str(2**step), size=9, ha="right")
    inside = 0
    for at, line in enumerate(lines):
        x, times = left + at * unit, {int(number): ms for number, ms in line["ms"].items()}
        good = lambda number: times[number] <= WITHIN * min(times.values())
        for number, following in zip(sorted(times), sorted(times)[1:] + [None]):
            end = following if following and good(following) else number
            if good(number):
                page.box(x, level(end) - 0.15, unit, level(number) - level(end) + 0.3, GOOD, "none", order=2)
        fits = good(line["rule"])
        inside += fits
        page.box(x - 0.1, level(line["rule"]) - 0.28, unit + 0.2, 0.56, INK if fits else LANE, "none", order=5 + (not fits))
    page.text(left, bottom + 2.0, "one column per shape, in the order of the rule's number", size=9)
    page.key(bottom + 4.8, (GOOD, f"tried, at most {100 * WITHIN - 100:.0f} % slower than the best"),
             (INK, f"the rule's number: {inside} shapes within this range"))
    page.key(bottom + 7.2, (LANE, f"the rule's number: {len(lines) - inside} shapes outside of it"))
    page.text(1, bottom + 9.8, f"{lines[0]['device']}, {lines[0]['dtype']}, 1 to 64 sequences, 64 to 262144 keys. "
              "A bar joins numbers between which no other was tried.", size=9)
    return page


PICTURES = pages, splits
