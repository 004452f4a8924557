#!/usr/bin/env python3
"""How good is chapter 14's rule for the number of splits? Times many shapes with the rule's number and with others, on one card.

    time_splits.py --json FILE [--shapes 200] [--seed 1] [--seconds 240] [--most-gb 8] [--dtype bf16|fp16] [--library LIBRARY]
    time_splits.py --regret FILE... [--constants FILL,ALONE,SHARED,ROW_TILE,START,VISIT,PART]
    time_splits.py --fit FILE...

The first form appends a JSON line per shape: the shape, the slots of the card, the rule's number, and the median of the milliseconds of
each number that was tried (powers of two, whole waves of blocks and one block more, neighbours of the rule's). The L2 cache is filled
before each run, as time_decode.py does; the numbers of a shape take turns. It ends with the regret of the rule: its time / the best
time - 1, of the worst shapes, their median, their 95th percentile and their maximum.

The others need no card and no PyTorch. --regret says what constants of splits.cuh, the ones of the file or those that are given, would
choose among the recorded numbers. --fit looks for better constants: it first fits the model's times to the recorded ones, then takes
random steps while they lower the regret. It fits on every second shape and reports the regret of the others, too.

Exit status: 0; 1 a result is wrong or this script's rule is not the library's; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import json
import math
import random
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "steps" / "14_decode" / "splits.cuh"
STEP = "14_decode"
NAMES = ("FILL", "ALONE", "SHARED", "ROW_TILE", "START", "VISIT", "PART")
MOST_SPLITS = 512
Bc, TILE = 64, 16  # keys per tile, rows of a row tile
LEAST_TURNS, MOST_TURNS = 7, 25


# ---- the rule, as splits.cuh and decode.cu have it -------------------------------------------------------------------------


def constants_of_source():
    text = SOURCE.read_text(encoding="utf-8")
    value = lambda name: re.search(rf"\b{name} = ([0-9.f /]+)[,;]", text)[1].replace("f", "")
    return tuple(eval(value(name), {}) for name in NAMES)


def division(shape):
    """Blocks of one split, and the rows of a block that count."""
    rows = shape["heads"] // shape["heads_kv"] * shape["seq"]
    of_block = TILE if rows <= TILE else 2 * TILE if rows <= 2 * TILE else 4 * TILE
    return shape["batch"] * shape["heads_kv"] * math.ceil(rows / of_block), min(rows, of_block)


def per_multiprocessor(shape):
    return 4 if shape["dim"] <= 64 else 2


def model(constants, shape, splits):
    """The time of so many splits, in units of a tile's in each block of a full card."""
    FILL, ALONE, SHARED, ROW_TILE, START, VISIT, PART = constants
    (blocks, rows), slots, per = division(shape), shape["slots"], per_multiprocessor(shape)
    row_tiles = 1 if rows <= TILE else 2 if rows <= 2 * TILE else 4
    computing = lambda n: (ALONE + SHARED * (n - 1) * 2 / per) * (1 + ROW_TILE * (row_tiles - 1))
    full, rest = divmod(blocks * splits, slots)
    last = max(computing(math.ceil(rest * per / slots)), rest / slots) if rest else 0.0
    time = math.ceil(shape["tiles"] / splits) * (full * max(computing(per), 1.0) + last) + FILL * (full + (rest > 0))
    if splits > 1:
        time += START + VISIT * splits + PART * blocks * splits * rows / (slots * Bc)
    return time


def chosen(constants, shape, among):
    return min(among, key=lambda splits: (model(constants, shape, splits), splits))


def every_number(shape):
    return range(1, min(shape["tiles"], MOST_SPLITS) + 1)


# ---- shapes, and what to try ---------------------------------------------------------------------------------------------


def draw_shapes(count, seed, most_bytes):
    """Batch, heads, groups, queries, keys and d, evenly in the logarithm of the batch and of the keys."""
    shapes, dice = [], random.Random(seed)
    while len(shapes) < count:
        batch, heads_kv = round(2 ** dice.uniform(0, 6)), dice.choice((1, 2, 4, 8, 16, 32))
        group, d, N_q = dice.choice((1, 4, 8)), dice.choice((64, 128)), dice.choice((1, 1, 1, 2, 4, 8))
        N_kv = round(2 ** dice.uniform(6, 18))
        if 4 * batch * heads_kv * N_kv * d <= most_bytes:
            shapes.append({"batch": batch, "heads": heads_kv * group, "heads_kv": heads_kv, "seq": N_q, "seq_kv": N_kv, "dim": d,
                           "tiles": math.ceil(N_kv / Bc)})
    return shapes


def numbers_to_try(shape, rule):
    """At most about 20: those that a good rule might take, and a few that none should."""
    blocks, slots, most = division(shape)[0], shape["slots"], min(shape["tiles"], MOST_SPLITS)
    tries = {1, rule, most, *(round(rule * factor) for factor in (0.5, 0.71, 0.84, 1.19, 1.41, 2.0))}
    tries |= {2**i for i in range(10)}
    for waves in (0.25, 1 / 3, 0.5, 1, 2, 3, 4):
        tries |= {int(waves * slots / blocks), int(waves * slots / blocks) + 1}
    # Numbers that give the same tiles to a split as a smaller one leave splits idle: the smaller one stands for them.
    smallest = lambda splits: math.ceil(shape["tiles"] / math.ceil(shape["tiles"] / splits))
    tries = sorted({smallest(splits) for splits in tries if 1 <= splits <= most} | {rule})
    far = [splits for splits in tries if blocks * splits > 8 * slots and splits not in (1, rule)]
    return [splits for splits in tries if splits not in far[1:]]


# ---- on a card -----------------------------------------------------------------------------------------------------------


class Timer:
    """Times a shape with forced numbers of splits. K and V are parts of one random matrix, made once."""

    def __init__(self, library, dtype, most_bytes):
        import ctypes

        import time_decode  # ends the program where there is no PyTorch
        import torch

        self.torch, self.peers = torch, time_decode.peers
        _, (self.step,) = time_decode.compare.prepare("time_splits.py", library, STEP)
        self.forced = ctypes.c_int.in_dll(self.step.library.functions, "decode_splits")
        self.dtype = self.peers.DTYPES[dtype]
        self.stopwatch = time_decode.Stopwatch()
        self.pool = torch.empty(int(most_bytes) // 2, dtype=self.dtype, device="cuda")
        for part in self.pool.split(2**28):
            part.normal_()
        self.multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def tensors(self, shape):
        count = shape["batch"] * shape["heads_kv"] * shape["seq_kv"] * shape["dim"]
        like_K = (shape["batch"], shape["heads_kv"], shape["seq_kv"], shape["dim"])
        K, V = (self.pool[i * count:(i + 1) * count].view(like_K) for i in range(2))
        Q = self.torch.randn((shape["batch"], shape["heads"], shape["seq"], shape["dim"]), device="cuda").to(self.dtype)
        return Q, K, V

    def splits_of(self, Q, K):
        """What the library takes: its workspace has a row of O and of L per split."""
        row = Q[..., 0].numel() * (Q.shape[-1] + 1) * 4
        return max(1, self.step.workspace_bytes(Q, K) // row)

    def measure(self, shape, seconds):
        """The shape with the times of each number; ["ok"] says whether the results agree."""
        Q, K, V = self.tensors(shape)
        self.forced.value = 0
        shape = {**shape, "slots": self.multiprocessors * per_multiprocessor(shape), "rule": self.splits_of(Q, K)}
        O_ref = self.peers.last_head_reference(Q, K, V, False)
        runs, ok = {}, True
        for splits in numbers_to_try(shape, shape["rule"]):
            self.forced.value = splits
            workspace = self.torch.empty(self.step.workspace_bytes(Q, K), dtype=self.torch.uint8, device="cuda")
            O, L = self.step.forward(Q, K, V, workspace=workspace)
            ok &= self.splits_of(Q, K) == splits and self.peers.last_head_error(O, O_ref) <= self.peers.LARGEST_ERRORS[self.dtype]

            def run(splits=splits, O=O, L=L, workspace=workspace):
                self.forced.value = splits
                self.step.forward(Q, K, V, O=O, L=L, workspace=workspace)

            runs[splits] = run
            self.stopwatch.time(run)
        samples = {splits: [] for splits in runs}
        started, order = time.monotonic(), list(runs)
        for turn in range(MOST_TURNS):
            for splits in order[turn % len(order):] + order[:turn % len(order)]:
                samples[splits].append(self.stopwatch.time(runs[splits]))
            if turn + 1 >= LEAST_TURNS and time.monotonic() - started > seconds:
                break
        self.forced.value = 0
        return {**shape, "ms": {str(splits): statistics.median(times) for splits, times in samples.items()}, "turns": turn + 1, "ok": ok}


def measure_all(arguments):
    timer = Timer(arguments.library, arguments.dtype, arguments.most_gb * 1e9)
    same = {"step": STEP, "device": timer.torch.cuda.get_device_name(), "dtype": arguments.dtype, "seed": arguments.seed, **timer.peers.stamps(),
            "toolkit": timer.step.library.cuda_version()}
    started, records = time.monotonic(), []
    shapes = draw_shapes(arguments.shapes, arguments.seed, arguments.most_gb * 1e9)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    with arguments.json.open("a", encoding="utf-8") as file, timer.torch.no_grad():
        for i, shape in enumerate(shapes):
            left = arguments.seconds - (time.monotonic() - started)
            if left <= 0:
                print(f"the {arguments.seconds} s are over after {i} shapes", file=sys.stderr)
                break
            records.append({**same, **timer.measure(shape, 0.6 * left / (len(shapes) - i))})
            file.write(json.dumps(records[-1]) + "\n")
            file.flush()
    print(f"{len(records)} shapes in {time.monotonic() - started:.0f} s on {same['device']}")
    report("the rule of the library", [(record, record["rule"]) for record in records], worst=12)
    wrong = [record for record in records if not record["ok"]]
    other = [record for record in records if chosen(constants_of_source(), record, every_number(record)) != record["rule"]]
    for record in wrong:
        print(f"WRONG result: {text_of(record)}", file=sys.stderr)
    for record in other:
        print(f"the library takes {record['rule']} splits, this script's rule another number: {text_of(record)}", file=sys.stderr)
    return 1 if wrong or other else 0


# ---- regret and fit --------------------------------------------------------------------------------------------------------


def read(files):
    records = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    for record in records:
        record["ms"] = {int(splits): ms for splits, ms in record["ms"].items()}
        record["best"] = min(record["ms"].values())
    return records


def text_of(record):
    return (f"B {record['batch']}, H {record['heads']} on {record['heads_kv']}, {record['seq']} queries, {record['seq_kv']} keys, "
            f"d {record['dim']}")


def regret_of(record, splits):
    times = record["ms"]
    return (times[splits] if splits in times else times[str(splits)]) / min(times.values()) - 1.0


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def report(what, choices, worst=0):
    regrets = [regret_of(record, splits) for record, splits in choices]
    print(f"{what}: regret over {len(regrets)} shapes: mean {100 * statistics.fmean(regrets):.1f} %, median {100 * statistics.median(regrets):.1f} %, "
          f"95th percentile {100 * percentile(regrets, 0.95):.1f} %, maximum {100 * max(regrets):.1f} %, "
          f"at most 5 % for {sum(regret <= 0.05 for regret in regrets)}")
    for regret, i in sorted(((regret, i) for i, regret in enumerate(regrets)), reverse=True)[:worst]:
        record, splits = choices[i]
        times = {int(key): ms for key, ms in record["ms"].items()}
        best = min(times, key=times.get)
        print(f"  {100 * regret:6.1f} %  {text_of(record)}: {splits} splits {times[splits]:.4f} ms, {best} {times[best]:.4f} ms, 1 {times[1]:.4f} ms")


def choices_of(constants, records):
    return [(record, chosen(constants, record, record["ms"])) for record in records]


def loss(constants, records):
    """Mean and tail: the tail is what a reader notices, the mean keeps the search moving."""
    regrets = [regret_of(record, splits) for record, splits in choices_of(constants, records)]
    return statistics.fmean(regrets) + 0.5 * percentile(regrets, 0.95) + 0.25 * max(regrets)


def misfit(constants, records):
    """How far the model's times are from the recorded ones, in logarithms; each shape has a unit of its own. The last constant is the
    time that no number of splits changes: the first launch."""
    *constants, launch = constants
    total = 0.0
    for record in records:
        logs = [math.log(ms / (launch + model(constants, record, splits))) for splits, ms in record["ms"].items()]
        total += statistics.pvariance(logs)
    return total / len(records)


def search(goal, start, rounds, dice):
    best, least = start, goal(start)
    for i in range(rounds):
        width = 0.7 * (1 - i / rounds) + 0.05
        trial = tuple(value * math.exp(dice.gauss(0, width)) if dice.random() < 0.5 else value for value in best)
        value = goal(trial)
        if value < least:
            best, least = trial, value
    return best


def fit(records):
    fitted_on, kept_back, dice = records[::2], records[1::2] or records, random.Random(1)
    constants = constants_of_source()
    tell = lambda values: ", ".join(f"{name} {value:.3g}" for name, value in zip(NAMES, values, strict=True))
    for title, values in (("of splits.cuh", constants),
                          ("by the times", by_times := search(lambda c: misfit(c, fitted_on), (*constants, 1.0), 1500, dice)[:-1]),
                          ("by the regret", min((search(lambda c: loss(c, fitted_on), start, 1500, dice) for start in (by_times, constants)),
                                                key=lambda c: loss(c, fitted_on)))):
        print(f"constants {title}: {tell(values)}")
        report("  fitted shapes", choices_of(values, fitted_on))
        report("  the other shapes", choices_of(values, kept_back))
    report("the last constants, all shapes", choices_of(values, records), worst=12)


# ---- the command -------------------------------------------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times the rule for the number of splits beside other numbers.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="measure, and append JSON lines to FILE")
    parser.add_argument("--regret", type=Path, nargs="+", metavar="FILE", help="of the constants, over recorded shapes")
    parser.add_argument("--fit", type=Path, nargs="+", metavar="FILE", help="look for better constants")
    parser.add_argument("--constants", help=f"{','.join(NAMES)}; default: those of splits.cuh")
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=240.0, help="for all shapes (default: 240)")
    parser.add_argument("--most-gb", type=float, default=8.0, help="of K and V together (default: 8)")
    parser.add_argument("--dtype", choices=("fp16", "bf16"), default="bf16")
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    arguments = parser.parse_args()
    if sum(map(bool, (arguments.json, arguments.regret, arguments.fit))) != 1:
        parser.error("one of --json, --regret and --fit is needed")
    for file in (arguments.regret or []) + (arguments.fit or []):
        if not file.is_file() or not file.stat().st_size:
            parser.error(f"{file} holds no records")
    if arguments.constants:
        try:
            arguments.constants = tuple(float(word) for word in arguments.constants.split(","))
        except ValueError:
            parser.error(f"--constants: {arguments.constants} are not numbers")
        if len(arguments.constants) != len(NAMES) or min(arguments.constants) <= 0:
            parser.error(f"--constants: {len(NAMES)} numbers over 0 are needed")
    if arguments.shapes < 1 or arguments.seconds <= 0 or arguments.most_gb <= 0:
        parser.error("--shapes, --seconds and --most-gb must be over 0")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.json:
        sys.exit(measure_all(arguments))
    records = read(arguments.regret or arguments.fit)
    if arguments.regret:
        report("the constants", choices_of(arguments.constants or constants_of_source(), records), worst=12)
    else:
        fit(records)


if __name__ == "__main__":
    main()
