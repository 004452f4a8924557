#!/usr/bin/env python3
"""The table that ends the main job: one per pass and data type, one row per step.

    ladder.py [--recorded FILE]... [--failed STEP]... RESULTS.jsonl

RESULTS holds the JSON lines of the programs that ran here. Error and check always come from it. Latency, speedup, TFLOP/s
and memory come from it too when it was measured on a card. After a run on the simulated device, whose wall time says nothing
about a GPU, they come from the recorded files, and only in the rows whose kernel is the one that was recorded: the
fingerprints of the two must agree.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # an import is no place to stop with a traceback

import argparse
import math
import os
import sys
import textwrap

import records as rec

WIDTH = 110
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


def taken(lines, table, kernels, timed):
    """Where a table's numbers come from: of lines that were taken on one device, at one size, one that has a time (unless none need be
    timed); the first step's, by name, with which all others are compared; and by step the last whose kernel is the one that ran here."""
    sizes, best = {}, ((), None, None, {})
    for line in lines:
        if line.table == table:
            sizes.setdefault((line.device, line.shape), []).append(line)
    for (_, shape), mine in sizes.items():  # the size that most steps have; among those the one that the book quotes; else the largest
        like = next((line for line in mine if line.ms is not None or not timed), None)
        here = {line.step: line for line in mine if line.details.get("kernel") is not None and line.details["kernel"] == kernels.get(line.step)}
        rank = len(here), shape == rec.QUOTED, shape.batch * shape.heads * shape.seq * shape.seq_kv * shape.dim
        if like and here and rank > best[0]:
            best = rank, like, min(reversed(mine), key=lambda line: line.step), here
    return best[1:]


def size_in_words(table, shape):
    return f"{PASSES[table[0]]}{table[1]}, {shape}"


def print_rows(rows):
    """The idea stands last: it is the only text that can be broken into lines."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for step, *numbers, check, idea in rows:
        cells = [f"{step:{widths[0]}}", *map(str.rjust, numbers, widths[1:]), f"{check:{widths[-2]}}"]
        print(textwrap.fill("  ".join([*cells, idea]), WIDTH, subsequent_indent=" " * (sum(widths[:-1]) + 2 * len(cells)),
                            break_long_words=False, break_on_hyphens=False))


def print_table(results, recorded, table, failed):
    here = [line for line in results if line.table == table]
    first_lines = {line.step: line for line in reversed(here)}
    kernels = {step: first_lines[step].details.get("kernel") for step in sorted(first_lines)}
    on_card = recorded is None
    timed, first, times = taken(results if on_card else recorded, table, kernels, timed=True)
    sized, _, sizes = (timed, first, times) if timed else taken(results, table, kernels, timed=False)
    rows = [["step", "latency", f"over {first.step[:2]}" if first else "speedup", "TFLOP/s", "memory", "error", "check", "idea"]]
    without = 0
    for step in kernels:
        time, size, own = times.get(step), sizes.get(step), [line for line in here if line.step == step]
        checked = [line for line in own if line.ok is not None]
        bad = step in failed or not all(line.ok for line in checked)
        rows.append([step, rec.number(time and time.ms, " ms"), rec.number(first.ms / time.ms if time else None, "x"),
                     rec.number(time and time.tflops), rec.size_in_bytes(size and size.workspace),
                     f"{worst(line.error for line in checked):.1e}" if checked else "-",
                     "FAILED" if bad else "ok" if checked else "-", first_lines[step].details.get("idea") or ""])
        without += time is None
    print_rows(rows)
    print()
    if timed:
        origin = [f"{'measured here, on' if on_card else 'recorded on'} {timed.device}"]
        origin += [f"{word}{timed.details[name]}" for name, word in (("date", ""), ("toolkit", "toolkit "), ("driver", "driver "))
                   if timed.details.get(name)]
        print(f"Latency, speedup, TFLOP/s, memory: {', '.join(origin)};\n  {size_in_words(table, timed.shape)}.")
        if not on_card and without:
            print("A dash: the kernel that ran here is not one that was recorded at that size.")
    else:
        print("Nothing was timed here." if on_card else "No latencies: none of these kernels is one that was recorded on a card.")
        if sized:
            print(f"Memory: {size_in_words(table, sized.shape)}, as run here.")
    print("Memory: of the device, beyond inputs and outputs.\nError and check: the largest relative error over all sizes that ran "
          f"here{'' if on_card else ', on the simulated device'}.\n")


def main():
    parser = argparse.ArgumentParser(description="Prints a table of the steps whose JSON lines RESULTS.jsonl holds.", allow_abbrev=False)
    parser.add_argument("--recorded", metavar="FILE", action="append", default=[],
                        help="measurements recorded on a card, shown when nothing was timed here")
    parser.add_argument("--failed", metavar="STEP", action="append", default=[],
                        help="a step whose program failed, with or without a line in RESULTS.jsonl")
    parser.add_argument("results", metavar="RESULTS.jsonl")
    args = parser.parse_args()
    try:
        results = read(args.results)
        recorded = [line for path in args.recorded for line in read(path)]
    except (OSError, rec.BadRecord) as error:
        parser.error(str(error))
    on_card = any(line.device != "sim" for line in results)
    for table in dict.fromkeys(line.table for line in results):
        print_table(results, None if on_card else recorded, table, args.failed)
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
