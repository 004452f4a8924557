#!/usr/bin/env bash
# Every step under the four tools of compute-sanitizer. Exit status 77, "skipped", where they cannot run.
set -uo pipefail
programs=$1
shift
skip() {
    echo "SKIPPED sanitizers: $1"
    exit 77
}
nvidia-smi -L >/dev/null 2>&1 || skip "this machine has no CUDA card"
command -v compute-sanitizer >/dev/null || skip "compute-sanitizer of the CUDA toolkit is not on PATH"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

check() { # STEP TOOL PROBLEM: one run; its report goes to a file, so that those of parallel runs do not mix
    local output file="$results/$1 $2 $3"
    # shellcheck disable=SC2086 # a problem is several words
    if output=$(compute-sanitizer --tool "$2" --error-exitcode 9 "$programs/$1" --no-time $3 2>&1); then
        echo "clean   $1 $2 $3" >"$file"
    else
        printf 'FAILED  %s\n%s\n' "$1 $2 $3" "$(tail -n 40 <<<"$output")" >"$file"
    fi
}

for step in "$@"; do
    [[ -x $programs/$step ]] || skip "$programs/$step is not built (cmake --preset cuda && cmake --build --preset cuda)"
    problems=("--heads 2 --seq 113 --seq-kv 203 --dim 59 --causal" "--heads 2 --seq 113 --seq-kv 203 --dim 56 --causal"
        "--heads 2 --seq 256 --dim 64" "--seq 160 --dim 128" "--heads 300 --seq 64 --dim 64"
        "--heads 6 --heads-kv 2 --seq 5 --seq-kv 500 --dim 56 --causal" "--heads 20 --heads-kv 1 --seq 8 --seq-kv 900 --dim 128"
        "--batch 3 --heads 8 --heads-kv 2 --seq 2 --seq-kv 500 --dim 128 --page-size 16 --lengths 500,0,65")
    for variant in '--seq 200 --window 40,10' '--seq 200 --softcap 20 --alibi' '--seq 200 --heads-kv 2' '--lengths 130,0,65' \
        '--seq 200 --dropout 0.3' '--seq 200 --rotary interleaved'; do
        problems+=("--heads 4 --dim 56 $variant" "--heads 4 --dim 128 --causal $variant")
    done
    # What a step does not do, it refuses; a deterministic pass is another kernel.
    for problem in "${problems[@]}" "${problems[@]/%/ --deterministic}"; do
        # shellcheck disable=SC2086
        "$programs/$step" --no-time --no-check $problem >/dev/null 2>&1
        (($? != 2)) || continue
        for tool in memcheck racecheck initcheck synccheck; do
            # racecheck does not follow a __syncwarp() and then the arrival of one lane (chapter 11's appendix).
            # The backward passes of chapter 15 are made of it. Nor does it follow cp.async.bulk, with which 13 copies L2 and D from 13c on
            # (appendix of 13): it accuses at d 128, 13c at d 64 too, and 13x with many tiles of keys. In the other problems it has to be clean.
            [[ "$step $tool $problem" != @(11_tensor_core_bwd|15_variants|15?_*_bwd)" racecheck "*"--dim 128"* ]] || continue
            [[ "$step $tool $problem" != @(13[c-fx]_*|13_hopper_bwd)" racecheck --seq 160 --dim 128"* ]] || continue
            [[ "$step $tool $problem" != @("13c_bulk_copies racecheck --heads 2 --seq 256"|"13x_persistent racecheck --heads 300")* ]] || continue
            while (($(jobs -pr | wc -l) * 2 >= $(getconf _NPROCESSORS_ONLN))); do wait -n; done
            check "$step" "$tool" "$problem" &
        done
    done
done
wait
cat "$results"/*
! grep -q '^FAILED' "$results"/*
