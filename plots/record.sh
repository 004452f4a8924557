#!/usr/bin/env bash
# record.sh FILE.jsonl [STEP...]: measure the steps on this machine's card, at the sizes that the book quotes, and write
# one JSON line a run. Build the cuda preset first. COMMIT names the commit where git cannot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# == 0)); then
    echo "usage: plots/record.sh FILE.jsonl [STEP...]" >&2
    exit 2
fi
output=$1
shift
steps=("$@")
if ((${#steps[@]} == 0)); then
    for folder in steps/[0-9][0-9]_*/; do steps+=("$(basename "$folder")"); done
fi
commit=${COMMIT:-$(git rev-parse --short HEAD)}
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
date=$(date -u +%F)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The SM clock that the card reached while the program ran is part of its result; nothing is set here, only read.
measure() { # STEP OPTIONS...
    local step=$1 sampler clock
    shift
    nvidia-smi --query-gpu=clocks.sm --format=csv,noheader,nounits -lms 50 >"$work/clocks" &
    sampler=$!
    build/cuda/bin/"$step" "$@" --json "$work/line" \
        --stamp "driver=$driver" --stamp "commit=$commit" --stamp "date=$date" || echo "$step $* FAILED" >&2
    kill "$sampler" 2>/dev/null || true
    wait "$sampler" 2>/dev/null || true
    clock=$(sort -n "$work/clocks" | tail -n 1)
    sed "s/}\$/,\"clocks\":\"SM ${clock:-unknown} MHz at most\"}/" "$work/line" >>"$work/all"
    rm -f "$work/line"
}

for step in "${steps[@]}"; do
    for seq in 512 1024 2048 4096; do
        measure "$step" --batch 4 --heads 16 --seq "$seq" --dim 64
    done
    # The quick chapters, where they are made to be quick.
    if [[ $step == 05* || $step == 06* || $step == 09* ]]; then
        measure "$step" --batch 4 --heads 16 --seq 8192 --dim 64
        for seq in 512 1024 2048 4096 8192; do
            measure "$step" --batch 4 --heads 16 --seq "$seq" --dim 64 --causal
            measure "$step" --batch 4 --heads 16 --seq "$seq" --dim 128
            measure "$step" --batch 4 --heads 16 --seq "$seq" --dim 128 --causal
        done
    fi
    # Memory where a matrix of N x N would take 16 GiB a head.
    case $step in 04* | 05* | 06* | 08* | 09*) measure "$step" --batch 1 --heads 1 --seq 65536 --dim 64 --repeat 3 --warmup 1 ;; esac
    measure "$step" --batch 1 --heads 1 --seq 128 --dim 32
    measure "$step" --batch 1 --heads 1 --seq 4096 --dim 64
    measure "$step" --batch 1 --heads 1 --seq 16384 --dim 64 --repeat 5 --warmup 1
done
# What bit-identical gradients cost; forward and backward together.
if [[ " ${steps[*]} " == *" 09_fa2_bwd_warps "* ]]; then
    for dim in 64 128; do
        measure 09_fa2_bwd_warps --batch 4 --heads 16 --seq 4096 --dim "$dim" --deterministic
        measure 09_fa2_bwd_warps --batch 4 --heads 16 --seq 4096 --dim "$dim" --pass both
    done
    measure 09_fa2_bwd_warps --batch 1 --heads 1 --seq 128 --dim 32 --pass both
fi
mv "$work/all" "$output"
