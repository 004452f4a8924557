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
failed=0
for step in "$@"; do
    [[ -x $programs/$step ]] || skip "$programs/$step is not built (cmake --preset cuda && cmake --build --preset cuda)"
    problems=("--heads 2 --seq 113 --seq-kv 203 --dim 59 --causal" "--heads 2 --seq 256 --dim 64" "--seq 160 --dim 128")
    # A step without a deterministic variant refuses it.
    if "$programs/$step" --deterministic --no-time --no-check --seq 1 --dim 1 >/dev/null 2>&1 || (($? != 2)); then
        deterministic=("${problems[@]/%/ --deterministic}")
        problems+=("${deterministic[@]}")
    fi
    for tool in memcheck racecheck initcheck synccheck; do
        for problem in "${problems[@]}"; do
            # shellcheck disable=SC2086 # a problem is several words
            if output=$(compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/$step" --no-time $problem 2>&1); then
                echo "clean   $step $tool $problem"
            else
                echo "FAILED  $step $tool $problem"
                echo "$output" | tail -n 40
                failed=1
            fi
        done
    done
done
exit $failed
