"""Instructions that a kernel executed on the simulated device, from how often its threads entered each basic block. Standard
library only; needs objdump, and knows the processor x86-64 alone."""

import bisect
import functools
import platform
import re
import shutil
import subprocess

LINE = re.compile(r"\s*([0-9a-f]+):\s+(\w+)(?:.*<([^>+]+)>)?")
FLOATING = re.compile(r"v?(add|sub|mul|div|sqrt|min|max|u?comi)[sp][sd]")
DIVISION = re.compile(r"i?div[bwlq]?")  # of integers; the compiler divides by constants otherwise
NAMES = FLOATING_POINT, CALLS, DIVISIONS = "floating_point_instructions", "function_calls", "integer_divisions"
HOOKS = ("__tsan_", "__sanitizer_", "__ubsan_")


def can_be_counted():
    return platform.machine() == "x86_64" and shutil.which("objdump")


def executed(program, counts):
    """counts: address, times entered, address, times entered, ... How many instructions of those that every compiler makes of a
    source: arithmetic in floating point, calls (of expf() and the like), and divisions of integers by what is no constant."""
    entered = dict(zip(counts[::2], counts[1::2]))
    if not entered or not can_be_counted():
        return {}
    addresses, lines = disassembled(program)
    found, times = dict.fromkeys(NAMES, 0), 0
    for at in range(bisect.bisect_left(addresses, min(entered)), bisect.bisect_left(addresses, max(entered) + 65536)):
        name, target = lines[at]
        times = entered.get(addresses[at], times)
        if FLOATING.fullmatch(name):
            found[FLOATING_POINT] += times
        elif DIVISION.fullmatch(name):
            found[DIVISIONS] += times
        elif name == "call" and not (target or "").startswith(HOOKS):
            found[CALLS] += times
        elif name in ("jmp", "ret") or target == "__sanitizer_cov_trace_pc":  # a block ends, or another begins
            times = 0
    return found


@functools.lru_cache(1)
def disassembled(program):
    """Addresses, and the name and target of the instruction at each."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True)
    found = [match.groups() for line in done.stdout.splitlines() if (match := LINE.match(line))]
    return [int(address, 16) for address, *_ in found], [rest for _, *rest in found]
