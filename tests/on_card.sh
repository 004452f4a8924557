#!/usr/bin/env bash
# Every step on the card of this machine, a few shapes each. Exit status 77, "skipped", where there is no card.
set -euo pipefail
programs=$1
shift
if ! nvidia-smi -L >/dev/null 2>&1; then
    echo "SKIPPED on_card: this machine has no CUDA card"
    exit 77
fi
for step in "$@"; do
    if [[ ! -x $programs/$step ]]; then
        echo "SKIPPED on_card: $programs/$step is not built (cmake --preset cuda && cmake --build --preset cuda)"
        exit 77
    fi
    "$programs/$step" --no-time --batch 2 --heads 3 --seq 113 --seq-kv 203 --dim 59 --causal
    "$programs/$step" --no-time --heads 4 --seq 1000 --dim 128 --input large
    # A step without a deterministic variant refuses it, with exit status 2.
    "$programs/$step" --no-time --heads 4 --seq 1000 --dim 128 --deterministic || (($? == 2))
done
