#!/usr/bin/env python3
"""Draws what the simulated device's meter counted: which lane reads which address, which bank serves which lane, and
how much each step asks for.

    draw_meter.py            draws the book's own pictures where one is missing or its script or data have changed
    draw_meter.py --check    draws nothing; are they up to date? (needs no matplotlib)
    draw_meter.py --json FILE --line steps/02_tiled_matmul/tiled_matmul.cu:38 --out x.png [--kernel NAME]
                             draws one source line of a run of your own; FILE was written by
                             build/sim/bin/02_tiled_matmul --meter --json FILE

The book's pictures are drawn from plots/data/counters/meter.jsonl, which plots/record_meter.sh records.
"""

import argparse
import json
import sys
from pathlib import Path

import draw_chapters as sheet
import provenance

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "plots" / "data" / "counters" / "meter.jsonl"
QUOTED = "--batch 1 --heads 2 --seq 256 --dim 64"
WORD, SECTOR, LINE, BANKS = 4, 32, 128, 32
LEFT, WIDE, TALL = 12.5, 2.05, 1.2  # where cells begin, and a word's cell
MARKED = 5  # the lane that is drawn in another colour, so that the eye can follow one


# ---- what to draw ---------------------------------------------------------------------------------------------------


def read_runs(path):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, filter(str.strip, lines)) if "meter" in line]


def array_of(access):
    return access["sample"]["lowest"].split("[")[0] if "sample" in access else ""


def pick(step, kernel, array, kind, holds=lambda access: True):
    """The access of a recorded kernel that loads from or stores to an array and for which `holds` is true."""
    for run in read_runs(RECORDED):
        if run["step"] != step or run["options"] != QUOTED:
            continue
        for metered in run["meter"]:
            for access in metered["lines"]:
                named = metered["kernel"] == kernel and array_of(access) == array and access["access"] == kind
                if named and holds(access):
                    return {**access, "kernel": kernel}
    sys.exit(f"draw_meter.py: {RECORDED.name} holds no {kind} of {array} in {kernel} of {step}")


def place_of(access):
    return f'{Path(access["file"]).name}:{access["line"]}'


def spans(access):
    """Pieces of memory in words, each with the lanes that ask for it: {(first word, words): [lanes]}."""
    found = {}
    for lane, address in enumerate(access["sample"]["addresses"]):
        if address is not None:
            first = address // WORD
            last = (address + access["bytes_a_lane"] - 1) // WORD
            found.setdefault((first, last - first + 1), []).append(lane)
    return found


def lanes_in_words(lanes):
    """0, 1, 2, 7 as "0-2,7"."""
    parts = []
    for lane in lanes:
        if parts and parts[-1][1] == lane - 1:
            parts[-1][1] = lane
        else:
            parts.append([lane, lane])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


# ---- wavefronts, by the rules of common/simt/meter.c ----------------------------------------------------------------


def pairs_agree(addresses, bit):
    return all(
        address is None or addresses[lane ^ bit] is None or addresses[lane ^ bit] == address
        for lane, address in enumerate(addresses)
    )


def wavefronts(access):
    """Who is served when: a list of {bank: lanes}. Within a group of lanes, a bank's words take turns in lane order."""
    addresses, size = access["sample"]["addresses"], access["bytes_a_lane"]
    group = 32 if size <= 4 else 16 if size == 8 else 8
    if group < 32 and access["access"] == "load" and (pairs_agree(addresses, 1) or pairs_agree(addresses, 2)):
        group *= 2
    turns = []
    for first in range(0, 32, group):
        words_of_bank, mine = [[] for _ in range(BANKS)], []
        for lane in range(first, first + group):
            if addresses[lane] is None:
                continue
            for word in range(addresses[lane] // WORD, (addresses[lane] + size - 1) // WORD + 1):
                words = words_of_bank[word % BANKS]
                if word not in words:
                    words.append(word)
                turn = words.index(word)
                while len(mine) <= turn:
                    mine.append({})
                mine[turn].setdefault(word % BANKS, []).append(lane)
        turns += mine
    return turns


# ---- panels: one access each, from y downwards; they return where they end ------------------------------------------


def heading(axes, y, words, detail):
    sheet.text(axes, 1, y, words, size=11.5, weight="bold")
    sheet.text(axes, 1, y + 2.1, detail)
    return y + 4.4


def cell(axes, column, y, words, lanes):
    """The words that some lanes ask for. Returns what has no room in it, to be written beside."""
    x = LEFT + column * WIDE
    face = sheet.LANE if lanes == [MARKED] else sheet.NOW
    sheet.box(axes, x, y, words * WIDE, TALL, face=face, edge="white", line=0.7, order=4)
    label = lanes_in_words(lanes)
    if len(label) <= 2.5 * words:
        sheet.text(axes, x + words * WIDE / 2, y + TALL / 2, label, size=7.5, ha="center", color="white", zorder=5)
    return label if len(label) > 2.5 * words else ""


def access_panel(axes, y, access):
    """The 128-byte lines that a request touches, one below the other, with its sectors shaded."""
    import style

    pieces = spans(access)
    per_request = access["sectors"] / access["requests"]
    sample_sectors = {word * WORD // SECTOR for first, words in pieces for word in range(first, first + words)}
    lanes = sum(len(lanes) for lanes in pieces.values())
    y = heading(
        axes,
        y,
        f'{place_of(access)} in {access["kernel"]}: {access["access"]} of {array_of(access)}, global memory',
        f'{lanes} lanes ask for {lanes * access["bytes_a_lane"]} bytes in {len(sample_sectors)} '
        f'sector{"s" * (len(sample_sectors) > 1)}; {access["requests"]} such requests, '
        f"{per_request:.2f} sectors on average",
    )
    name, _, index = access["sample"]["lowest"].partition("[")
    index = index.rstrip("]")
    lowest = min(first for first, _ in pieces)
    for line in sorted({first * WORD // LINE for first, _ in pieces}):
        start = line * LINE // WORD
        label = f"{name}[{int(index) - lowest + start}]" if index.isdigit() else f"+{line * LINE}"
        sheet.text(axes, LEFT - 0.6, y + TALL / 2, label, size=8, ha="right")
        for sector in range(LINE // SECTOR):
            x = LEFT + sector * (SECTOR // WORD) * WIDE
            touched = line * LINE // SECTOR + sector in sample_sectors
            sheet.box(axes, x, y, SECTOR // WORD * WIDE, TALL, face=sheet.SECTOR_TINT if touched else "white",
                      edge=style.PALE, line=0.6, order=2)
        beside = ""
        for (first, words), who in pieces.items():
            if first * WORD // LINE == line:
                beside = cell(axes, first - start, y, words, who) or beside
                if beside:
                    at = first - start + words
        if beside:
            sheet.text(axes, LEFT + at * WIDE + 0.4, y + TALL / 2, f"lanes {beside}", size=8, zorder=6)
        y += TALL + 0.12
    return y


def runs_of_banks(served):
    """Neighbouring banks that serve the same lanes, as (first bank, banks, lanes)."""
    runs = []
    for bank, lanes in sorted(served.items()):
        if runs and runs[-1][2] == lanes and runs[-1][0] + runs[-1][1] == bank and bank % 4:
            runs[-1][1] += 1
        else:
            runs.append([bank, 1, lanes])
    return runs


def bank_panel(axes, y, access, words=None):
    """A row a wavefront, a column a bank: which lane is served when."""
    import style

    turns = wavefronts(access)
    lanes = sum(address is not None for address in access["sample"]["addresses"])
    y = heading(
        axes,
        y,
        words or f'{place_of(access)} in {access["kernel"]}: {access["access"]} of {array_of(access)}, shared memory',
        f'{lanes} lanes, {access["bytes_a_lane"]} bytes each: {len(turns)} wavefront{"s" * (len(turns) > 1)} a request',
    )
    for bank in range(0, BANKS):
        sheet.text(axes, LEFT + (bank + 0.5) * WIDE, y, str(bank), size=7.5, ha="center", color=style.GREY)
    sheet.text(axes, LEFT - 0.6, y, "bank", size=8, ha="right", color=style.GREY)
    y += 0.9
    for number, served in enumerate(turns, start=1):
        sheet.text(axes, LEFT - 0.6, y + TALL / 2, f"wavefront {number}", size=8, ha="right")
        for bank in range(BANKS):
            sheet.box(axes, LEFT + bank * WIDE, y, WIDE, TALL, face="white", edge=style.PALE, line=0.6, order=2)
        beside, at = "", 0
        for bank, banks, who in runs_of_banks(served):
            beside = cell(axes, bank, y, banks, who) or beside
            at = max(at, bank + banks) if beside else at
        if beside and at < BANKS - 8:
            sheet.text(axes, LEFT + at * WIDE + 0.4, y + TALL / 2, f"lanes {beside}", size=8, zorder=6)
        y += TALL + 0.12
    return y


def height_of(access):
    if access["space"] == "shared":
        return 5.3 + len(wavefronts(access)) * (TALL + 0.12)
    return 4.4 + len({first * WORD // LINE for first, _ in spans(access)}) * (TALL + 0.12)


GAP = 2.4


def draw_accesses(accesses, path, metadata, titles=None):
    """The panels of several accesses below one another, and what the colours mean."""
    shared = all(access["space"] == "shared" for access in accesses)
    height = 1.4 + sum(height_of(access) + GAP for access in accesses) + 1.6
    fig, axes = sheet.open_page(height)
    y = 1.4
    for number, access in enumerate(accesses):
        panel = bank_panel if access["space"] == "shared" else access_panel
        more = (titles[number],) if titles and panel is bank_panel else ()
        y = panel(axes, y, access, *more) + GAP
    entries = [(sheet.NOW, sheet.NOW, "asked for, with the lane's number", 29)]
    entries += [(sheet.LANE, sheet.LANE, f"by lane {MARKED}", 11)]
    if not shared:
        entries += [(sheet.SECTOR_TINT, sheet.SECTOR_TINT, "the rest of the 32-byte sector; a row is 128 bytes", 30)]
    sheet.key_to_colours(axes, y - 0.4, entries)
    sheet.close_page(fig, path, metadata)


# ---- the book's pictures --------------------------------------------------------------------------------------------


def unpadded(access, columns):
    """The same store to an array whose rows have no padding: element (row, col) at row * (columns - 1) + col."""
    addresses = access["sample"]["addresses"]
    words = [(address - addresses[0]) // WORD for address in addresses]
    moved = [word // columns * (columns - 1) + word % columns for word in words]
    start = addresses[0] // LINE * LINE
    return {**access, "sample": {**access["sample"], "addresses": [start + WORD * word for word in moved]}}


def naive_accesses():
    return [pick("01_naive", "scores", "Q", "load"), pick("01_naive", "scores", "K", "load"),
            pick("01_naive", "output", "V", "load")]


def banks_accesses():
    padded = pick("02_tiled_matmul", "matmul<true>", "B_smem", "store")
    return [padded, unpadded(padded, 33)]


KEY_STRIDE = (64 + 4) * WORD  # of a row of K in chapter 06, bytes


def keys_accesses():
    """A load of K in chapter 06, which belongs to lane_col; the same with other lanes; the same without padding."""

    def of_K(access):
        addresses = access.get("sample", {}).get("addresses", [None] * 32)
        return access["bytes_a_lane"] == 16 and addresses[0] == addresses[1] and addresses[2] == addresses[0] + KEY_STRIDE

    kernel = "vectorized<tiling<64, 8, 64, 4, 1, 2> >"
    mine = pick("06_vectorized", kernel, "byte", "load", of_K)
    first = mine["sample"]["addresses"][0]
    column = [(address - first) // KEY_STRIDE for address in mine["sample"]["addresses"]]
    assert sorted(column) == [col for col in range(8) for _ in range(4)]
    plain = [first + lane % 8 * KEY_STRIDE for lane in range(32)]
    unpadded_ = [first // LINE * LINE + lane % 8 * (KEY_STRIDE - 4 * WORD) for lane in range(32)]
    return [mine, *({**mine, "sample": {**mine["sample"], "addresses": moved}} for moved in (plain, unpadded_))]


def draw_keys(accesses, path, metadata):
    titles = [f"{place_of(accesses[0])}: a warp loads 16 bytes of 8 rows of K, lanes as in this chapter",
              "The same load with lane_col = lane % 8", "That load again, were the rows of K 64 floats without padding"]
    draw_accesses(accesses, path, metadata, titles)


def additions_accesses():
    return [pick("09_fa2_bwd_warps", "backward_keys<tiling<64, 64, 128>, true>", "dQ", "atomic")]


def draw_banks(accesses, path, metadata):
    place = place_of(accesses[0])
    titles = [f"{place}: a warp stores a column of B_smem[32][32 + 1]", "The same store, were it B_smem[32][32]"]
    draw_accesses(accesses, path, metadata, titles)


def ideal_bytes(step, options):
    """Each input read once and each output written once: Q, K, V, O and L, or with dO, dQ, dK and dV as well."""
    words = options.split()
    b, h, n, d = (int(words[words.index(name) + 1]) for name in ("--batch", "--heads", "--seq", "--dim"))
    return 4 * b * h * ((8 if "_bwd" in step else 4) * n * d + n)


def traffic():
    """Of each step: bytes in the sectors that were asked for, and different bytes, both summed over its kernels."""
    rows = {}
    for run in read_runs(RECORDED):
        if run["options"] != QUOTED:
            continue
        asked = sum(32 * line.get("sectors", 0) for kernel in run["meter"] for line in kernel["lines"])
        different = sum(k["different_bytes_read"] + k["different_bytes_written"] for k in run["meter"])
        rows[run["step"]] = (asked, different)
    return [(step, *values) for step, values in sorted(rows.items())]


def in_words(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.3g} {unit}"
        count /= 1024


def draw_traffic(rows, path, metadata):
    import style

    fig, axes = style.figure(height=1.5 + 0.62 * len(rows))
    tall = 0.36
    for row, (step, asked, different) in enumerate(rows):
        for offset, value, color in ((-tall / 2, asked, style.PALETTE[0]), (tall / 2, different, style.PALETTE[4])):
            axes.barh(row + offset, value, height=tall, color=color)
            axes.annotate(in_words(value), (value, row + offset), xytext=(4, 0), textcoords="offset points",
                          va="center", fontsize=9.5, zorder=5)
        ideal = ideal_bytes(step, QUOTED)
        axes.plot([ideal, ideal], [row - 0.47, row + 0.47], color=style.PALETTE[3], linewidth=1.8, linestyle="--")
    ideal = min(ideal_bytes(step, QUOTED) for step, _, _ in rows)
    axes.set_xscale("log", base=2)
    axes.set_xlim(ideal / 4, max(asked for _, asked, _ in rows) * 6)
    ticks = [2**power for power in range(18, 40, 3) if ideal / 4 <= 2**power <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [in_words(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(rows)), [step for step, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title("Global memory at B 1, H 2, N 256, d 64")
    axes.grid(axis="x")
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    axes.legend(
        handles=[Patch(color=style.PALETTE[0], label="in the sectors that its requests ask for"),
                 Patch(color=style.PALETTE[4], label="different bytes touched"),
                 Line2D([], [], color=style.PALETTE[3], linestyle="--", label="inputs once, outputs once")],
        loc="upper center",
        bbox_to_anchor=(0.38, -0.29 / (0.3 + 0.62 * len(rows))), ncol=3, frameon=False, fontsize=9.5,
        handlelength=1.4, columnspacing=1.4,
    )
    style.save(fig, path, metadata)


PICTURES = {
    "steps/01_naive/who_reads_what.png": (naive_accesses, draw_accesses),
    "steps/02_tiled_matmul/banks.png": (banks_accesses, draw_banks),
    "steps/06_vectorized/banks.png": (keys_accesses, draw_keys),
    "steps/09_fa2_bwd_warps/additions.png": (additions_accesses, draw_accesses),
    "plots/pictures/traffic_by_step.png": (traffic, draw_traffic),
}


def book_pictures():
    scripts = [Path(__file__), Path(sheet.__file__), provenance.STYLE]
    for name, (choose, draw) in PICTURES.items():
        chosen = choose()
        yield provenance.Picture(ROOT / name, scripts, lambda path, metadata, d=draw, c=chosen: d(c, path, metadata),
                                 drawn_data=json.dumps(chosen))


# ---- a reader's own run ---------------------------------------------------------------------------------------------


def draw_line_of_run(arguments):
    runs = read_runs(arguments.json)
    if not runs:
        sys.exit(f"draw_meter.py: {arguments.json} holds no run with --meter")
    file, _, number = arguments.line.rpartition(":")
    accesses = [
        {**access, "kernel": kernel["kernel"]}
        for kernel in runs[-1]["meter"]
        for access in kernel["lines"]
        if access["file"].endswith(file) and str(access["line"]) == number and "sample" in access
        and arguments.kernel in (None, kernel["kernel"])
    ]
    if not accesses:
        places = sorted({f'{line["file"]}:{line["line"]}' for kernel in runs[-1]["meter"] for line in kernel["lines"]})
        sys.exit(f"draw_meter.py: nothing was counted at {arguments.line}; there is:\n  " + "\n  ".join(places))
    draw_accesses(accesses, arguments.out, {})
    print(f"{arguments.out}: drawn")


def main():
    parser = argparse.ArgumentParser(description="Draws what the simulated device's meter counted.")
    parser.add_argument("--check", action="store_true", help="draw nothing; name pictures missing or out of date")
    parser.add_argument("--json", help="a run of your own: what --meter --json FILE wrote (its last line counts)")
    parser.add_argument("--line", help="FILE:LINE of a kernel's source, as --meter names it")
    parser.add_argument("--kernel", help="only this kernel's accesses, for a line that several kernels share")
    parser.add_argument("--out", help="the picture to write")
    arguments = parser.parse_args()
    if arguments.json or arguments.line or arguments.out:
        if not (arguments.json and arguments.line and arguments.out):
            parser.error("--json, --line and --out go together")
        draw_line_of_run(arguments)
    else:
        pictures = list(book_pictures())
        sys.exit(provenance.check(pictures) if arguments.check else provenance.update(pictures))


if __name__ == "__main__":
    main()
