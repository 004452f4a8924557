#!/usr/bin/env bash
# profile.sh STEP OPTIONS...: what Nsight Compute counts while a step runs once, as the table that the chapters show, a
# column a kernel. The cuda preset must be built. Exit status 3 where ncu, a card or the right to read its counters is
# missing; a program that refuses its options, or fails, ends this with its own status.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
step=$1
shift

missing() {
    echo "profile: $1" >&2
    exit 3
}

program=build/cuda/bin/$step
[[ -x $program ]] || missing "$program is not built (cmake --preset cuda && cmake --build --preset cuda)"
# Once without ncu, which would hide what the program has to say about its options.
"$program" --no-time --no-check "$@"

counted=$(mktemp)
trap 'rm -f "$counted"' EXIT
if ! plots/counters.sh "$counted" "$step" "$@" 2>/dev/null || [[ ! -s $counted ]]; then
    # Most often ERR_NVGPUCTRPERM: this user may not read the card's counters.
    missing "ncu counted nothing; to see why: ncu $program --no-time --no-check $*"
fi

python3 -B - "$counted" <<'PYTHON'
import json
import sys

sys.path.insert(0, "plots")
from tables import COUNTER_ROWS, DASH, main_stall, number

with open(sys.argv[1], encoding="utf-8") as file:
    kernels = [json.loads(line) for line in file]
rows = [[label, *(number(value(kernel["counters"])) for kernel in kernels)] for label, value in COUNTER_ROWS]
rows = [row for row in rows if any(cell not in (DASH, "0") for cell in row[1:])]
names = [kernel["kernel"].removeprefix("void ") for kernel in kernels]
rows.insert(0, ["", *names])
widths = [max(len(cell) for cell in column) for column in zip(*rows)]
print()
for label, *cells in rows:
    print("  ".join([label.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:]))]).rstrip())
for name, kernel in zip(names, kernels):
    print(f"A warp of {name} waits most for {main_stall(kernel['counters'])}.")
PYTHON
