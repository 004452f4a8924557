#!/usr/bin/env bash
# catch_mutant.sh PROGRAM [LINE]: run a broken step over a few problems; succeed when one of them catches it. With LINE, a
# barrier is missing there, and what catches it must be a race told with source lines.
set -uo pipefail
program=$1
line=${2:-}
race='race on .*\.cuh?:[0-9]+; thread .*\.cuh?:[0-9]+, and nothing orders'
race+='|\.cuh?:[0-9]+: access to .* asynchronous copy into it, issued at .*\.cuh?:[0-9]+, is under way'
problems=(
    "--seq 33 --dim 40"
    "--batch 2 --heads 3 --seq 113 --seq-kv 203 --dim 59 --causal"
    "--seq 70 --seq-kv 33 --dim 64 --causal"
    "--seq 65 --dim 64 --input large"
    "--seq 257 --dim 128"
    "--seq 300 --seq-kv 2 --dim 64 --scale 50" # large |L|: what a masked pair lets through is not small
)
# What only the deterministic variant of a step does is seen only there.
if "$program" --deterministic --no-time --no-check --seq 1 --dim 1 >/dev/null 2>&1 || (($? != 2)); then
    deterministic=("${problems[@]/%/ --deterministic}")
    problems+=("${deterministic[@]}")
fi
for problem in "${problems[@]}"; do
    # shellcheck disable=SC2086 # a problem is several words
    output=$("$program" $problem --no-time 2>&1)
    status=$?
    case $status in
    0) ;;
    1 | 3)
        if [[ $line ]] && ! grep -qE "$race" <<<"$output"; then
            echo "the missing barrier of line $line was not reported as a race: $output"
            exit 1
        fi
        echo "caught by: $problem (exit status $status)"
        echo "$output"
        exit 0
        ;;
    *)
        echo "exit status $status is neither a wrong result nor a failed device: $output"
        exit 1
        ;;
    esac
done
echo "not caught by any of ${#problems[@]} problems"
exit 1
