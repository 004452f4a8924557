#!/usr/bin/env python3
"""Does each rung change at most 100 lines of the rung before it, added and removed lines together, as plots/tables.py --changes counts
them? Rungs beside the chain, which have an x, are compared with nothing."""

import subprocess
import sys

from pages import ROOT, report

MOST = 100
LIMITS = {  # of a rung that has one of its own, and why
    "10b_mma": 112,  # WMMA and all that it needs in shared memory leave at once: no line that touches a fragment stays
    "12b_producer": 120,  # the roles of producer and consumer change each line that copies, waits or computes a row
    "13_hopper_bwd": 108,  # a fixed order needs turns, a writer per consumer and two orders of the tiles at once
    "11f_transposed": 162,  # a kernel of its own for d 64: like a first rung, its section lists what it keeps and what is new
}


def problems():
    said = subprocess.run([sys.executable, "-B", ROOT / "plots" / "tables.py", "--changes"], check=True, capture_output=True, text=True)
    changes = {line.split()[3]: int(line.split()[0]) for line in said.stdout.splitlines()}
    yield from (f"{rung} has a limit of its own, and is no rung" for rung in LIMITS.keys() - changes.keys())
    for rung, lines in changes.items():
        if rung[2] != "x" and lines > (most := LIMITS.get(rung, MOST)):
            yield f"{rung} changes {lines} lines of the rung before it; one idea takes at most {most}"


if __name__ == "__main__":
    sys.exit(report(problems(), "Each rung differs from the one before by one idea."))
