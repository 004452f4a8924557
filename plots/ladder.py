#!/usr/bin/env python3
"""The tables that end the main job.

    ladder.py [--recorded FILE]... [--failed STEP]... [--metered FILE] RESULTS.jsonl

First what this run found, of all steps: check and error from RESULTS, the JSON lines of the programs that ran here, and counts from
the file of metered runs. Apart from it, by pass and data type, latency, speedup, TFLOP/s and memory: from RESULTS when it was
measured on a card. After a run on the simulated device, whose wall time says nothing about a GPU, they come from the recorded
files, and only for steps whose kernel is the one that was recorded: the fingerprints of the two must agree.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # an import is no place to stop with a traceback

import argparse
import math
import os
import shutil
import sys
import textwrap

import records as rec

WIDTH = max(40, min(140, shutil.get_terminal_size((110, 24)).columns))  # of a terminal; elsewhere 110
PASSES = {"fwd": "forward pass, ", "bwd": "backward pass, ", "both": "both passes, ", "det": "deterministic "}


def worst(values):
    """The largest; NaN where one of them is."""
    values = [math.nan if value is None else value for value in values]
    return math.nan if any(map(math.isnan, values)) else max(values)


def result_of(fields):
    line = rec.record_of(fields)
    line.table = line.pass_, fields["dtype"]  # what is compared among itself
    errors = fields.get("err_rel") or {}
    line.error = worst(errors.get(name) for name in (("dq", "dk", "dv") if errors.get("dq") is not None else "o"))
    line.ok = fields.get("ok")
    sizes = [value for name, value in vars(line.shape).items() if name != "causal"]
    if not (all(isinstance(text, str) for text in (line.step, line.device, *line.table))
            and all(isinstance(size, int) and 1 <= size < 2**31 for size in sizes) and line.ok in (None, True, False)
            and all(value is None or isinstance(value, (int, float)) for value in (line.ms, line.tflops, line.workspace))):
        raise ValueError("a field is of another type")
    return line


def read(path):
    return list(rec.parsed(path, result_of, "line of results"))


def taken(lines, table, kernels):
    """Where a table's numbers come from: of lines that were taken on one device, at one size, one that has a time; the first step's, by
    name, with which all others are compared; and by step the last whose kernel is the one that ran here."""
    sizes, best = {}, ((), None, None, {})
    for line in lines:
        if line.table == table:
            sizes.setdefault((line.device, line.shape), []).append(line)
    for (_, shape), mine in sizes.items():  # the size that most steps have; among those the one that the book quotes; else the largest
        like = next((line for line in mine if line.ms is not None), None)
        here = {line.step: line for line in mine if line.details.get("kernel") is not None and line.details["kernel"] == kernels.get(line.step)}
        rank = len(here), shape == rec.QUOTED, shape.batch * shape.heads * shape.seq * shape.seq_kv * shape.dim
        if like and here and rank > best[0]:
            best = rank, like, min(reversed(mine), key=lambda line: line.step), here
    return best[1:]


def say(text=""):
    print("\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) if len(line) > WIDTH else line for line in text.split("\n")))


def print_rows(rows, left):
    """These columns are set to the left. An idea stands last: it is the only text that can be broken into lines. Columns for which a
    terminal is too narrow stand below the others, beside the first column again."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    last, parts, room = len(widths) - 1, [], 0
    for column in range(1, len(widths)):
        needed = 2 + (min(widths[column], 22) if column == last else widths[column])
        if not parts or needed > room:
            parts.append([0])
            room = WIDTH - widths[0]
        parts[-1].append(column)
        room -= needed
    for part in parts:
        for row in rows:
            cells = [f"{row[column]:{'<' if column in left else '>'}{widths[column]}}" for column in part if column != last]
            print(textwrap.fill("  ".join([*cells, *row[last if last in part else last + 1:]]), WIDTH, break_long_words=False, break_on_hyphens=False,
                                subsequent_indent=" " * sum(len(cell) + 2 for cell in cells)))
        if part is not parts[-1]:
            print()


def counts_of(line):
    """Of a metered run: sectors per request of global memory as it is and at least, bank conflicts, barriers. The least: each request's
    bytes side by side, or one sector where all lanes read the same. What the TMA unit copies is no request."""
    requests = sectors = least = conflicts = barriers = 0
    for kernel in line["meter"]:
        barriers += kernel["barriers"]
        conflicts += sum(count for name, count in kernel["totals"].items() if name.endswith("_conflicts"))
        for site in kernel["lines"]:
            if site["space"] == "global":
                requests, sectors = requests + site["requests"], sectors + site["sectors"]
                least += min(site["sectors"], max(site["requests"], site["bytes"] / 32))
    shown = [f"{count / requests:.1f}" if requests else "none" for count in (sectors, least)]
    return line["step"], [*shown, f"{conflicts:.0f}", f"{barriers:.0f}"]


def print_found(results, counts, failed):
    """What this run found, one row per step, pass and data type."""
    rows = [["step", "check", "error", *(["sectors", "at least", "conflicts", "barriers"] if counts else []), "pass", "idea"]]
    by_step = {}
    for line in results:
        by_step.setdefault((line.step, line.table), []).append(line)
    for (step, table), own in sorted(by_step.items()):
        checked = [line for line in own if line.ok is not None]
        bad = step in failed or not all(line.ok for line in checked)
        rows.append([step, "FAILED" if bad else "ok" if checked else "unchecked",
                     f"{worst(line.error for line in checked):.1e}" if checked else "unchecked",
                     *(counts.get(step, ["not run"] * 4) if counts else []), f"{table[0]} {table[1]}", own[0].details.get("idea") or "none given"])
    print_rows(rows, left=(0, 1, len(rows[0]) - 2))
    say("\nerror: the largest relative error over all sizes that ran here.\n" + (
        "Metered at B 1, H 2, N 64, d 64 on the simulated device:\nsectors: of 32 bytes, per request of a warp to global memory; "
              "at least: if its bytes lay side by side; none: no request.\nconflicts: wavefronts that bank conflicts add; "
              "barriers: those that all blocks reach, in sum; not run: this size failed or was refused.\n" if counts else ""))


def print_times(results, recorded, table):
    """Apart from it: the times of a pass and data type, with their card."""
    kernels = {line.step: line.details.get("kernel") for line in reversed(results) if line.table == table}
    on_card, name = recorded is None, PASSES[table[0]] + table[1]
    timed, first, times = taken(results if on_card else recorded, table, kernels)
    if not timed:
        say(f"{name}: {'nothing was timed here' if on_card else 'not recorded on a card with this version of these kernels; docs/measurements.md has the recorded times'}.\n")
        return
    origin = [f"{word}{timed.details[key]}" for key, word in (("date", ""), ("toolkit", "toolkit "), ("driver", "driver ")) if timed.details.get(key)]
    say(f"{'Measured here, on' if on_card else 'Recorded, not measured here, on'} {', '.join([timed.device, *origin])}:\n"
          f"{name}, {timed.shape}; memory beyond inputs and outputs")
    rows = [["step", "latency", f"over {first.step[:2]}", "TFLOP/s", "memory", ""]]
    for step, line in sorted(times.items()):
        ratio = first.ms / line.ms if first.ms and line.ms else None
        values = rec.number(line.ms, " ms"), rec.number(ratio, "x"), rec.number(line.tflops), rec.size_in_bytes(line.workspace)
        rows.append([step, *("not recorded" if value == rec.DASH else value for value in values), ""])
    print_rows(rows, left=(0,))
    without = ", ".join(sorted(set(kernels) - set(times)))
    say(f"{'Not timed' if on_card else 'Not recorded with this kernel'} at that size: {without}\n" if without else "")


def main():
    parser = argparse.ArgumentParser(description="Prints a table of the steps whose JSON lines RESULTS.jsonl holds.", allow_abbrev=False)
    parser.add_argument("--recorded", metavar="FILE", action="append", default=[],
                        help="measurements recorded on a card, shown when nothing was timed here")
    parser.add_argument("--failed", metavar="STEP", action="append", default=[],
                        help="a step whose program failed, with or without a line in RESULTS.jsonl")
    parser.add_argument("--metered", metavar="FILE", help="JSON lines of metered runs on the simulated device")
    parser.add_argument("results", metavar="RESULTS.jsonl")
    args = parser.parse_args()
    try:
        results = read(args.results)
        recorded = [line for path in args.recorded for line in read(path)]
        counts = dict(rec.parsed(args.metered, counts_of, "line of a metered run") if args.metered else [])
    except (OSError, rec.BadRecord) as error:
        parser.error(str(error))
    on_card = any(line.device != "sim" for line in results)
    if results:
        print_found(results, counts, args.failed)
    for table in dict.fromkeys(line.table for line in results):
        print_times(results, None if on_card else recorded, table)
    if not results:
        print("No step ran: nothing to show.")
    for step in args.failed:
        if all(line.step != step for line in results):
            print(f"FAILED, without a result: {step}")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except OSError as error:  # a full disk, a closed pipe
        print(f"ladder.py: {error}", file=sys.stderr)
        os._exit(1)  # the interpreter would try to write once more
