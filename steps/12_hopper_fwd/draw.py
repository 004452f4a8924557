"""Draws the pictures of this chapter; plots/draw.py runs it. TMA copies and mbarriers leave no requests of lanes in a trace, so
that the pictures are computed from the formulas and constants in the kernels' text, and from the recorded marks of
probes/timeline.cu; a trace confirms how many products there are."""

import re
from pathlib import Path

import probes
import sheet
import tables
import traces
from provenance import ROOT
from sheet import GREY, INK, LANE, NOW, OWNED, PALE, SAND, TINT, Page

HERE = Path(__file__).parent
HOPPER, TILES = (path.read_text(encoding="utf-8") for path in (ROOT / "common" / "device" / "hopper.cuh", HERE / "tiles.cuh"))
PRODUCER = "12b_producer"
ELEMENT, UNIT, ROW, WAVE = 2, 16, 128, 8  # bytes of a number, of what the swizzle moves, of a panel's row; rows until it repeats


def text_of(rung):
    return (HERE / f"{rung}.cu").read_text(encoding="utf-8")


def found(pattern, text):
    """What a pattern's groups match in a kernel's text."""
    match = re.search(pattern, text)
    assert match, f"no {pattern}"
    return match.groups() if len(match.groups()) > 1 else match[1]


def evaluated(formula, **names):
    """A formula of a kernel, in whole numbers. C and Python agree on the order of * / % + >> & ^."""
    words = formula.replace("/", "//").replace("<D>", "").replace("sizeof(T)", "ELEMENT")
    words = re.sub(r"(.+) \? (.+) : (.+)", r"(\2) if (\1) else (\3)", words)
    return eval(words, {"__builtins__": {}}, {"ELEMENT": ELEMENT} | names)


def constant(rung, name, **names):
    return evaluated(found(rf"constexpr int {name} = (.*?);", text_of(rung)), **names)


def panel_columns():
    columns = int(found(r"box\[\] = \{(\d+),", HOPPER))
    assert columns * ELEMENT == ROW and "CU_TENSOR_MAP_SWIZZLE_128B" in HOPPER
    return columns


# ---- the swizzle ------------------------------------------------------------------------------------------------------


def swizzled(address):
    """Where the TMA puts 16 bytes, as the simulated device, whose results are compared with a card's, has it."""
    formula = found(r"return (address \^ .*?);", (ROOT / "common/simt/machine/tensor_map.h").read_text(encoding="utf-8"))
    return evaluated(formula, address=address, swizzle=WAVE)


def swizzle(_):
    chosen, units = 2, panel_columns() * ELEMENT // UNIT
    place = {name: {(row, unit): put(row * ROW + unit * UNIT) for row in range(WAVE) for unit in range(units)}
             for name, put in (("plain", lambda address: address), ("swizzled", swizzled))}
    assert all(at == row * ROW + (unit ^ row % WAVE) * UNIT for (row, unit), at in place["swizzled"].items())
    page, wide, tall, y = Page(39.6, "The 128-byte swizzle spreads each column of units over all banks"), 3.95, 2.3, 9.0
    for (name, at), x, words in zip(place.items(), (7, 46.5), ("Plain: unit u of a row at place u",
                                                               f"Swizzled: unit u of row r at place u ^ (r % {WAVE})")):
        turns = sheet.wavefronts([at[row, chosen] for row in range(WAVE)] + [None] * 24, UNIT)
        banks = sorted({bank for turn in turns for bank in turn})
        assert len(turns) == (WAVE if name == "plain" else 1) and len(banks) == (4 if name == "plain" else 32)
        page.text(x - 5, y - 3.6, words, weight="bold", size=9.5)
        for row in range(WAVE):
            page.text(x - 0.6, y + (row + 0.5) * tall, f"row {row}", ha="right", size=8.5)
        for (row, unit), address in at.items():
            page.box(x + address % ROW // UNIT * wide, y + row * tall, wide, tall, LANE if unit == chosen else "white", PALE, 0.8,
                     2 + (unit == chosen), str(unit), size=10)
        page.box(x, y, units * wide, WAVE * tall, edge=GREY, order=6)
        page.text(x - 0.6, y - 1.1, "place", ha="right", size=8, color=GREY)
        page.text(x - 0.6, y + WAVE * tall + 1.2, "banks", ha="right", size=8, color=GREY)
        for unit in range(units):
            page.text(x + (unit + 0.5) * wide, y - 1.1, str(unit), ha="center", size=8, color=GREY)
            first = unit * UNIT // traces.WORD
            page.text(x + (unit + 0.5) * wide, y + WAVE * tall + 1.2, f"{first}-{first + 3}", ha="center", size=8,
                      color=LANE if first in banks else GREY, weight="bold" if first in banks else "normal")
        where = f"banks {banks[0]} to {banks[-1]}" if len(banks) < sheet.BANKS else "all 32 banks"
        page.text(x, y + WAVE * tall + 4.2, f"unit {chosen} of {WAVE} rows: {where},\n{len(turns)} "
                  f"wavefront{'s' * (len(turns) > 1)}", va="center")
    each = UNIT // ELEMENT
    page.text(1, 35.4, f"A row of a panel: {panel_columns()} numbers of 16 bits, {ROW} bytes, {units} units of {UNIT} bytes. "
              f"Rows {WAVE} to {2 * WAVE - 1} repeat the pattern.")
    page.key(38.0, (LANE, f"unit {chosen}: columns {chosen * each} to {chosen * each + each - 1}"),
             ("white", "another unit, with its number in the row"))
    return page


# ---- what a descriptor names ------------------------------------------------------------------------------------------


def descriptors(D, Bc):
    """Of the products with K and with V: (start, leading offset, stride offset, bytes that are read) for each k, in bytes."""
    K_formula, K_panel = found(r"swizzled_tile\(K_tile \+ (.*?), (.*?)\), k", TILES)
    V_formula, V_panel = found(r"swizzled_tile\(V_tile \+ (.*?), (.*?)\), true", TILES)
    stride = int(found(r"stride = (\d+) / 16", HOPPER))
    K, V = [], []
    for k in range(D // 16):  # K-major: column i of B is a key
        start, leading = ELEMENT * evaluated(K_formula, k=k, Bc=Bc), evaluated(K_panel, Bc=Bc)
        K.append((start, leading, stride, {start + i // 8 * stride + i % 8 * ROW + 2 * n: (i, 16 * k + n)
                                           for i in range(Bc) for n in range(16)}))
    for k in range(Bc // 16):  # MN-major: column i of B is a column of V
        start, leading = ELEMENT * evaluated(V_formula, k=k, Bc=Bc), evaluated(V_panel, Bc=Bc)
        V.append((start, leading, stride, {start + 2 * i // ROW * leading + 2 * i % ROW + n // 8 * stride + n % 8 * ROW: (16 * k + n, i)
                                           for i in range(D) for n in range(16)}))
    for products in (K, V):  # all of them together read each number of the tile once, at the place where it lies
        read = {address: at for *_, numbers in products for address, at in numbers.items()}
        assert len(read) == sum(len(numbers) for *_, numbers in products) == D * Bc
        assert all(address == col // 64 * Bc * ROW + row * ROW + col % 64 * ELEMENT for address, (row, col) in read.items())
    return K, V


def drawn_tile(page, x, y, products, chosen, Bc):
    """The two panels of a tile, with the parts that the products read; the chosen one's are marked. Returns the height of 8 rows,
    the panels' left sides, their right sides, and the last of the marked parts."""
    tall, unit, columns = 1.75, 1.5, panel_columns()
    lefts, marked = [x, x + 8 * unit + 2.4], None
    for panel, left in enumerate(lefts):
        page.text(left + 4 * unit, y - 4.2, f"columns {panel * columns}-{(panel + 1) * columns - 1}\nbyte {panel * Bc * ROW} on",
                  ha="center", size=9.5)
        for k, (*_, numbers) in enumerate(products):
            mine = {(row // 8, col % columns * ELEMENT // UNIT) for row, col in numbers.values() if col // columns == panel}
            if mine:
                (top, bottom), (first, last) = ((min(of), max(of) + 1) for of in zip(*mine))
                assert (bottom - top) * (last - first) == len(mine)
                part = left + first * unit, y + top * tall, (last - first) * unit, (bottom - top) * tall
                page.box(*part, LANE if k == chosen else "white", GREY, 0.8, 4)
                marked = part if k == chosen else marked
                upright = part[3] > part[2]
                page.text(part[0] + part[2] / 2, y - 1.1 if upright else part[1] + tall / 2, f"k {k}", ha="center", size=9.5,
                          color=INK if k != chosen else LANE if upright else "white", weight="bold" if k == chosen else "normal")
        for group in range(1, Bc // 8):
            page.line([left, left + 8 * unit], [y + group * tall] * 2, PALE, 0.6)
        page.box(left, y, 8 * unit, Bc // 8 * tall, edge=INK, order=6)
    for row in range(0, Bc, 32):
        page.text(x - 0.5, y + row / 8 * tall + 0.9, f"key {row}", ha="right", size=9.5)
    return tall, lefts, [left + 8 * unit for left in lefts], marked


def measured(page, start, end, words, x, y, ha="left"):
    """A line with ends between two places, and its length."""
    across = start[1] == end[1]
    page.line([start[0], end[0]], [start[1], end[1]], LANE, 1.6, 8)
    for px, py in (start, end):
        page.line([px, px] if across else [px - 0.5, px + 0.5], [py - 0.5, py + 0.5] if across else [py, py], LANE, 1.6, 8)
    page.text(x, y, words, color=LANE, size=10, ha=ha, weight="bold")


def descriptor(folder):
    D, Bc, picked = 128, constant(PRODUCER, "Bc"), (5, 2)
    K, V = descriptors(D, Bc)
    launch = traces.run(folder, PRODUCER, f"--heads 1 --seq {Bc} --dim {D}")[-1]
    issued = [event for event in launch.events() if event.warp == 4 and event.kind == "wgmma.mma_async"]
    assert len(issued) == len(K) + len(V)  # one tile
    page, y = Page(62.0, "One wgmma reads a stripe of a tile; its descriptor says where"), 15.2
    for name, products, chosen, x in (("K", K, picked[0], 6.4), ("V", V, picked[1], 46.8)):
        start, leading, stride, numbers = products[chosen]
        rows, cols = ({at[axis] for at in numbers.values()} for axis in (0, 1))
        tall, lefts, rights, marked = drawn_tile(page, x, y, products, chosen, Bc)
        what = ("S += Q K^T", "all keys", f"columns {min(cols)} to {max(cols)}") if name == "K" else (
            "O += P V", f"keys {min(rows)} to {max(rows)}", "all columns")
        assert (len(rows), len(cols)) == ((Bc, 16) if name == "K" else (16, D)) and numbers[start] == (min(rows), min(cols))
        page.text(x - 5.4, 5.0, f"{what[0]}, product k {chosen} of {len(products)}:", weight="bold", size=11)
        page.text(x - 5.4, 7.0, f"{what[1]}, {what[2]} of {name}", size=10.5)
        assert numbers[start + stride] == (min(rows) + 8, min(cols))
        edge, under = rights[1] + 1.0, y + Bc // 8 * tall + 1.2
        measured(page, (edge, marked[1]), (edge, marked[1] + tall), "SBO", edge + 0.9, marked[1] + tall / 2)
        if leading:
            assert numbers[start + leading] == (min(rows), min(cols) + panel_columns())
            measured(page, (lefts[0], under), (lefts[1], under), "LBO", (lefts[0] + lefts[1]) / 2, under + 1.4, "center")
        begin = lefts[start // (Bc * ROW)], marked[1]
        page.box((marked if name == "K" else begin)[0], marked[1], 0.8, 0.8, INK, order=8)
        inside = start % (Bc * ROW)
        row = y + Bc // 8 * tall + 5.0
        sum_of = f"{start - inside} + {inside}" if start > inside else f"{min(rows)} x {ROW}"
        for at, (field, words) in enumerate((("start", f"byte {start} = {sum_of}"),
                                             ("SBO", f"{stride} bytes: to the next 8 keys"),
                                             ("LBO", f"{leading} bytes: to the next panel" if leading else "not used: the stripe has one panel"))):
            page.text(x - 5.4, row + 2.2 * at, field, weight="bold", size=10.5, color=LANE if at else INK)
            page.text(x + 0.6, row + 2.2 * at, words, size=10.5)
    page.key(56.6, (LANE, "read by this wgmma"), (INK, "its start address"))
    page.text(1, 59.6, f"bf16, d {D}, {Bc} keys per tile, in two panels of {panel_columns()} columns, {ROW} bytes per row.\n"
              "Not shown: the swizzle within 8 rows.", size=9.5)
    return page


# ---- the phases of two mbarriers --------------------------------------------------------------------------------------


class Barrier:
    """An mbarrier: a phase ends when its arrivals and all announced bytes came. `states`: [time, phase, arrivals, bytes due]."""

    def __init__(self, count):
        self.count, self.phase, self.due, self.bytes, self.states = count, 0, count, 0, []
        self.note(0)

    def note(self, time):
        self.states.append([time, self.phase, self.due, self.bytes])

    def arrive(self, time, arrivals=1, expected=0):
        assert 0 < arrivals <= self.due
        self.due, self.bytes = self.due - arrivals, self.bytes + expected
        self.completed(time)

    def complete(self, time, arrived):
        self.bytes -= arrived
        self.completed(time)

    def completed(self, time):
        if self.due == 0 and self.bytes == 0:
            self.phase, self.due = self.phase + 1, self.count
        self.note(time)

    def lets_pass(self, parity):
        """Is the phase of this parity over?"""
        return self.phase % 2 != parity


def two_rounds(D):
    """K's first stage of 12b in two rounds: lanes of [from, to, words, colour], the two barriers, the bytes. The times are chosen;
    the counts, bytes and parities are the kernel's, and a wait ends when its barrier lets it pass."""
    text, stages, consumers = text_of(PRODUCER), constant(PRODUCER, "STAGES"), constant(PRODUCER, "CONSUMERS", D=D)
    arrivals = evaluated(found(r"mbarrier_init\(K_empty \+ i, (.*?)\)", text), CONSUMERS=consumers)
    full, empty = Barrier(int(found(r"mbarrier_init\(full, (\d+)\)", text))), Barrier(arrivals)
    size = evaluated(found(r"mbarrier_arrive_expect\(full, (.*?)\);", TILES), rows=constant(PRODUCER, "Bc"), D=D)
    to_fill, to_read = found(r"mbarrier_wait\(K_empty \+ stage, (.*?)\);", text), found(r"parity = (.*?);", text)
    warps = int(found(r"constexpr int WARPGROUP = (\d+);", HOPPER)) // traces.WARP
    assert found(r"if \((.*?)\) mbarrier_arrive\(empty\);", text) == "lane == 0"  # each warp once
    guard = found(r"if \((.*?)\) mbarrier_wait\(K_empty", text)
    lanes = {"producer": [[0, 1, "init", NOW]], "TMA": []} | {f"consumer {c}": [] for c in range(consumers)}
    time, free = 1.0, [1.0] * consumers
    for round_ in range(2):
        i = round_ * stages
        if evaluated(guard, round=round_):
            parity = evaluated(to_fill, round=round_)
            assert empty.lets_pass(parity) and refused == parity  # now, and not before the last arrival
            lanes["producer"].append([asked, time, f"waits: empty,\nparity {parity}", SAND])
        full.arrive(time, expected=size)
        asked, there = time + 3.0, time + 2.8
        lanes["producer"] += [[time, time + 1.4, "arrive.\nexpect_tx", NOW], [time + 1.4, asked, "other\ntiles", PALE]]
        lanes["TMA"].append([time + 0.7, there, f"copies\nK, tile {i}", NOW])
        parity = evaluated(to_read, i=i, STAGES=stages)
        assert not full.lets_pass(parity)
        full.complete(there, size)
        assert full.lets_pass(parity)
        done = sorted((there + 1.5 + 0.9 * (consumers - 1 - c), c) for c in range(consumers))
        for end, c in done:
            lanes[f"consumer {c}"] += [[free[c], there, f"waits: full,\nparity {parity}", SAND], [there, end, f"S, tile {i}", NOW]]
            refused = next(parity for parity in (0, 1) if not empty.lets_pass(parity))
            empty.arrive(end, warps)
            free[c] = end + 1.4
            lanes[f"consumer {c}"].append([end, free[c], "", PALE])
        time = done[-1][0]
    return lanes, full, empty, size, arrivals, time


def phases(_):
    D = 64
    lanes, full, empty, size, arrivals, end = two_rounds(D)
    assert (full.phase, empty.phase) == (2, 2)
    page, left, end = Page(49.0, f"Two barriers guard one stage: K's stage 0 in two rounds (12b, d {D})"), 11.0, end + 1.5
    scale, rows, y, tall, last = (79 - left) / end, {}, 4.4, 3.0, end - 1.5
    at = lambda time: left + time * scale
    for name in ("producer", "TMA", "full", *(name for name in lanes if name.startswith("consumer")), "empty"):
        rows[name], y = y, y + (7.2 if name == "full" else 4.4 if name == "TMA" else 3.8)
    rows["empty"] += 0.6
    for name, y in rows.items():
        page.text(1, y + (2.3 if name in ("full", "empty") else 1.5), f"{name}\nbarrier" if name in ("full", "empty") else name,
                  weight="bold", size=9.5)
        for start, stop, words, face in lanes.get(name, []):
            page.box(at(start), y, (stop - start) * scale, tall, face, GREY, 0.6, 3, words, size=8)
            if name.startswith("consumer") and face == PALE:
                page.arrow((at(start), y + tall), (at(start), rows["empty"]), GREY)
    for name, barrier in (("full", full), ("empty", empty)):
        y, begun = rows[name], 0
        for (start, phase, due, bytes_due), (stop, next_phase, *_) in zip(barrier.states, barrier.states[1:] + [[end, -1]]):
            words = f"{bytes_due}\nbytes due" if bytes_due else f"{due} arrival{'s' * (due > 1)}\ndue" if stop - start > 1.2 else f"{due}\ndue"
            page.box(at(start), y + 1.8, (stop - start) * scale, tall, "white", GREY, 0.6, 3, words, size=8)
            if phase != next_phase:
                page.box(at(begun), y, (stop - begun) * scale, 1.8, OWNED if phase % 2 else TINT, GREY, 0.6, 3)
                page.text(at(begun) + 0.6, y + 0.9, f"phase {phase}", size=8)
                begun = stop
            if phase != next_phase and next_phase > 0:
                resumed = [lane for lane, parts in lanes.items() for part in parts if part[3] == SAND and part[1] == stop]
                assert resumed or stop == last
                to = rows[resumed[-1]] + tall * (name == "full") if resumed else y
                page.line([at(stop)] * 2, [y + 4.8 * (name == "empty"), to], LANE, 1.8, 7, linestyle=":")
    consumers = len(lanes) - 2
    page.text(1, 39.8, f"The full barrier waits for one arrival and {size} bytes ({constant(PRODUCER, 'Bc')} keys x {D} columns x {ELEMENT} bytes); "
              f"the empty\nbarrier for {arrivals} arrivals (one per warp, {arrivals // consumers} per consumer). "
              "A wait names its phase by the parity, phase % 2.", size=9)
    page.text(1, 43.4, "Dotted: a phase ends, and those that waited for it go on. Arrows: a consumer's arrivals. Tiles have numbers\nin the order of their visits. The times are chosen for the drawing.", size=9)
    page.key(47.2, (NOW, "works on this stage"), (SAND, "waits"), (PALE, "other stages, softmax"))
    return page


# ---- who computes what when, measured ---------------------------------------------------------------------------------


PARTS = {"softmax": NOW, "products": LANE, "turn": SAND, "copies": GREY}  # what a consumer does or waits for
CALLS = {"multiply_QK": "products", "multiply_PV": "products", "wgmma_wait": "products", "new_maxima": "softmax", "softmax": "softmax",
         "round_P": "softmax", "my_turn": "turn", "mbarrier_wait": "copies"}


def calls_of(rung):
    """The calls of a visit that note a mark, in order: [name, argument in < > or ( )]."""
    visit = found(r"auto visit = (\[&\](?s:.*?)\n    \});", text_of(rung))
    return [[name, of] for name, of in re.findall(rf"\b({'|'.join(CALLS)})(?:<|\()(\w*)", visit)]


def tiles_of(rung, marks):
    """The marks of a consumer, tile by tile, where they repeat the calls of a visit: [name, argument, from, to]."""
    calls, noted = calls_of(rung), {"new_maxima": "softmax", "round_P": "round", "my_turn": "turn", "mbarrier_wait": "wait", "wgmma_wait": "wait"}
    names = [noted.get(name, CALLS[name]) for name, _ in calls]
    first = next(at for at in range(len(marks)) if [name for name, _ in marks[at : at + 2 * len(names)]] == 2 * names)
    tiles = []
    for at in range(first, len(marks) - len(names), len(names)):
        here = marks[at : at + len(names) + 1]
        if [name for name, _ in here[:-1]] != names:
            break
        tiles.append([[*call, start, end] for call, (_, start), (_, end) in zip(calls, here, here[1:])])
    assert len(tiles) > 20
    return tiles


def under_way(tiles):
    """Of the products of all these tiles: from their issue to the end of the wait for them. wgmma_wait<1> leaves the newest."""
    spans, open_ = [], []
    for name, of, start, end in sum(tiles, []):
        if name.startswith("multiply"):
            open_.append(start)
        elif name == "wgmma_wait":
            pending = int(of)
            done, open_ = open_[: len(open_) - pending], open_[len(open_) - pending :]
            assert done
            spans += [[start, end] for start in done]
    return spans


def joined(spans, start, end):
    """The union of spans, within a window."""
    merged = []
    for a, b in sorted([max(a, start), min(b, end)] for a, b in spans if b > start and a < end):
        if merged and a <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], b)
        else:
            merged.append([a, b])
    return merged


def timeline(_):
    D, cycles, left, shares, least = 64, 16000, 12.5, {}, 16000
    recorded = probes.last(tables.Book(ROOT), "timeline")
    scale, y = (79 - left) / cycles, 5.2
    page = Page(63.2, f"Who computes what when: three consumers, measured ({recorded['device']}, d {D})")
    for rung, words in ((PRODUCER, "each when it can"), ("12c_pingpong", "Q K^T in turns"), ("12d_overlap", "P V beside the softmax")):
        consumers = [tiles_of(rung, marks) for marks in next(
            one for one in recorded["of"] if (one["rung"], one["dim"]) == (rung, D))["consumers"]]
        assert len(consumers) == constant(rung, "CONSUMERS", D=D)
        steady = max(tiles[4][0][2] for tiles in consumers), min(tiles[-4][0][2] for tiles in consumers)
        spans = [under_way(tiles) for tiles in consumers]
        shares[rung] = sum(b - a for a, b in joined(sum(spans, []), *steady)) / (steady[1] - steady[0])
        least = min([least] + [end - start for tiles in consumers for *_, start, end in sum(tiles, [])])
        begin = consumers[0][len(consumers[0]) // 2][0][2]
        page.text(1, y, f"{rung[:3]}: {words}", weight="bold")
        page.text(79, y, f"products of some consumer are under way {100 * shares[rung]:.0f} % of the time", ha="right", size=9)
        y += 1.6
        for number, (tiles, products) in enumerate(zip(consumers, spans)):
            page.text(1, y + 1.3, f"consumer {number}", size=9)
            for name, _, start, end in sum(tiles, []):
                if end > begin and start < begin + cycles:
                    start, end = max(start - begin, 0), min(end - begin, cycles)
                    page.box(left + start * scale, y, (end - start) * scale, 1.8, PARTS[CALLS[name]], "none")
            for start, end in joined(products, begin, begin + cycles):
                page.box(left + (start - begin) * scale, y + 2.0, (end - start) * scale, 0.6, INK)
            y += 4.0
        y += 2.4
    assert shares[PRODUCER] < shares["12c_pingpong"] < shares["12d_overlap"]
    y -= 2.4
    page.line([left, 79], [y] * 2, GREY)
    for at in range(0, cycles + 1, 4000):
        page.line([left + at * scale] * 2, [y, y + 0.5], GREY)
        page.text(left + at * scale, y + 1.6, f"{at} cycles" if at == 0 else str(at), size=8.5, ha="center" if at < cycles else "right", color=GREY)
    page.key(y + 4.4, (NOW, "softmax"), (LANE, "issues products, or waits for them"), (SAND, "waits for its turn"), (GREY, "waits for a copy"))
    page.key(y + 6.8, (INK, "its products are under way: from their issue to the end of the wait for them"))
    page.text(1, y + 9.6, f"The products may be done before the wait for them ends. Each part includes the time to note when it begins:\n"
              f"the shortest part takes {least} cycles.", size=9)
    return page


PICTURES = swizzle, descriptor, phases, timeline
