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
    ran=0
    for problem in "--batch 2 --heads 3 --seq 113 --seq-kv 203 --dim 59 --causal" "--heads 3 --seq 113 --seq-kv 203 --dim 56 --causal" \
        "--heads 4 --seq 1000 --dim 128 --input large" "--heads 4 --seq 1000 --dim 128 --deterministic" \
        "--heads 6 --heads-kv 2 --seq 5 --seq-kv 1000 --dim 56 --causal" "--heads 40 --heads-kv 2 --seq 8 --seq-kv 5000 --dim 128"; do
        status=0
        # shellcheck disable=SC2086 # a problem is several words
        "$programs/$step" --no-time $problem || status=$?
        ((status == 0 || status == 2)) || exit 1 # 2: the step refuses this size, or has no deterministic pass
        ((status == 2)) || ran=$((ran + 1))
    done
    ((ran >= 2))
done
