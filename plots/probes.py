"""Tables of what the probes measured, and the card's constants, which every prediction quotes. Standard library only.

A probe is a small program beside a page (**/probes/*.cu) that measures one property of a card; record.py probes runs them all.
"""

import os
import re

from records import need, number

SMS, SCHEDULERS, LANES = 132, 4, 32  # of an H100 and of an H200
MEMORY, OPERANDS, RATES = "docs/probes/memory.cu", "steps/06_vectorized/probes/operands.cu", "docs/probes/rates.cu"


def last(book, name):
    return (book.lines("probes", name) or [{}])[-1]


def operands(book, page):
    """Cycles of an FMA, from probes/operands.cu of chapter 06."""
    rows = [[kept, f"{cycles:.2f}"] for kept, cycles in last(book, "operands").get("cycles", {}).items()]
    return ["factors still at hand from the FMA before", "cycles of a scheduler"], "lr", rows


def memory(book, page):
    """What docs/probes/memory.cu measured."""
    levels = {"shared": "shared memory", "l1": "L1 cache", "l2": "L2 cache", "dram": "device memory"}
    line = last(book, "memory")
    rows = [[f"{levels[level]}, latency in cycles", number(cycles)] for level, cycles in line["latency_cycles"].items()]
    rows += [[f"{levels[level]}, TB/s read by all SMs", number(rate / 1e12)] for level, rate in line["bytes_per_second"].items()]
    return ["measured", ""], "lr", rows


def machine_code(book, page):
    """What plots/machine_code.py read in the loops of chapter 06's two products, as compiled for sm_90a."""
    rows = [[line["form"] or "the chapter's", str(line["dim"]), name, str(loop["multiply_adds"]), str(loop["instructions"] - loop["multiply_adds"]),
             f"{loop['three_registers'] / loop['multiply_adds'] * 100:.0f} %", f"{max(loop['reads']) / loop['multiply_adds']:.2f}"]
            for line in book.lines("machine_code") for name, loop in zip(("S", "O"), line["products"])]
    return ["kernel", "d", "product", "FMAs in a turn", "other instructions", "read three registers", "reads of the busier bank, per FMA"], "lrlrrrr", rows


def of_card(book):
    """NAME: its words, its value or None, and who measured it."""
    clocks = [re.search(r"\d+", line.details.get("clocks", "")) for line in book.records()]
    clock = max((int(found[0]) for found in clocks if found), default=0) / 1000
    cycles, latency = last(book, "operands").get("cycles", {}), last(book, "memory").get("latency_cycles", {})
    rates, loops = last(book, "rates"), last(book, "rates").get("loops", {})
    moved = last(book, "memory").get("bytes_per_second", {}) | rates.get("bytes_per_second", {})
    loop = lambda name, what, unit=1.0: loops[name][what] / unit if name in loops else None
    tera = lambda name: moved[name] / 1e12 if name in moved else None
    fma = SMS * SCHEDULERS * LANES * 2 * clock / 1000
    return {
        "clock": ("highest clock of the SMs in the timed runs, GHz", clock, "plots/record.py"),
        "clock_fma": ("their clock while they execute FMAs, GHz", loop("fma", "ghz"), RATES),
        "clock_mma": ("their clock while they execute `mma.sync`, GHz", loop("mma", "ghz"), RATES),
        "peak": ("FMAs at the highest clock, one per cycle and scheduler, 1e12 FLOP/s", fma, "plots/record.py"),
        "fma": ("FMAs that share one factor with the FMA before, 1e12 FLOP/s", fma / cycles["one"] if cycles else None, OPERANDS),
        "fma_loop": ("the same, timed as a whole", loop("fma", "flops", 1e12), RATES),
        "mma": ("`mma.sync` m16n8k16 in bf16, 1e12 FLOP/s", loop("mma", "flops", 1e12), RATES),
        "mma_cycles": ("the same, cycles of an SM for each", loop("mma", "cycles"), RATES),
        "mma_ex2_d64": ("with the exponentials of a forward pass at d 64, 1e12 FLOP/s", loop("mma_ex2_d64", "flops", 1e12), RATES),
        "mma_ex2_d128": ("the same at d 128", loop("mma_ex2_d128", "flops", 1e12), RATES),
        **{name: (f"latency of {words}, cycles", latency.get(name), MEMORY) for name, words in (
            ("shared", "shared memory"), ("l1", "the L1 cache"), ("l2", "the L2 cache"), ("dram", "device memory"))},
        "read": ("device memory, read, TB/s", tera("dram"), MEMORY),
        "copy": ("device memory, copied (read and written), TB/s", tera("copy"), RATES),
        "read_l2": ("L2 cache, read, TB/s", tera("l2"), MEMORY),
        "red": ("added by `red` of 4 bytes per lane in the L2 cache, TB/s", tera("red"), RATES),
        "red_v4": ("the same, 16 bytes per lane", tera("red_v4"), RATES),
        "l2_size": ("size of the L2 cache, MiB", rates["l2_bytes"] / 2**20 if rates else None, RATES),
    }


def constants(book, page):
    """The card's constants, which the predictions of the chapters quote."""
    link = lambda file: f"[{os.path.basename(file)}]({os.path.relpath(book.root / file, page.parent)})"
    return ["constant", "", "measured by"], "lrl", [[words, number(value), link(file)] for words, value, file in of_card(book).values()]


def constant(book, name):
    found = of_card(book)
    need(name in found, f'there is no constant "{name}"; there are: {", ".join(found)}')
    return number(found[name][1])
