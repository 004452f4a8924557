#!/usr/bin/env bash
# removals.sh STEP-CC KERNEL.cu: of a kernel with Hopper's instructions, and of the headers beside it, each barrier, fence,
# wait, commit, arrival and announcement is removed in turn; the simulated device must stop each of the programs, or its result be
# wrong. A line with "redundant:" is left alone: the comment says by which rule of docs/simulated-device-inside.md nothing depends on
# it.
set -euo pipefail
step_cc=$1 kernel=$2
# shellcheck source=../common/changed.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/changed.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
orders='fence_mbarrier_init\(\)|fence_proxy_async\(\)|__syncthreads\(\)|__syncwarp\(\)|mbarrier_(wait|arrive|arrive_expect)\([^;]*\)'
orders+='|named_barrier_(sync|arrive)\([^;]*\)|wgmma_(fence|commit)\(\)|wgmma_wait<[0-9]>\(\)|tma_(commit\(\)|wait(_read)?<[0-9]>\(\))'
orders+='|\brelease\([^;]*\)|semaphore_(wait|raise)\([^;]*\)'
orders+='|cluster_(arrive|wait)\(\)|mbarrier_arrive_remote\([^;]*\)'

problems=('--heads 1 --seq 200 --seq-kv 700 --dim 64' '--heads 1 --seq 200 --seq-kv 900 --dim 128'
    '--heads 2 --seq 113 --seq-kv 600 --dim 56 --causal')
if grep -q 'FP8' "$kernel"; then
    problems=('--heads 1 --seq 200 --seq-kv 700 --dim 64' '--heads 1 --seq 200 --seq-kv 900 --dim 128 --fp8 e5m2 --scales block'
        '--heads 2 --seq 113 --seq-kv 600 --dim 48 --causal')
elif grep -q '\.backward' "$kernel"; then # its blocks own keys, and run through the queries
    problems=('--heads 1 --seq 700 --seq-kv 200 --dim 64' '--heads 1 --seq 350 --seq-kv 300 --dim 128'
        '--heads 2 --seq 600 --seq-kv 130 --dim 56 --causal')
    ! grep -q '\.backward_deterministic' "$kernel" || problems+=("${problems[@]/%/ --deterministic}")
elif grep -q 'atomicAdd(taken' "$kernel"; then # more query tiles than its blocks take at once
    problems+=('--heads 40 --seq 200 --seq-kv 100 --dim 64')
fi

only_bf16 "$folder"
caught() { # FILE <TEXT: the kernel with it, by one of the problems; or it adds in another order from run to run
    local text
    text=$(cat)
    make_program "$step_cc" "$kernel" "$1" "$folder/program" <<<"$text" || exit 1
    run_until_wrong 100 "$folder/program" "${problems[@]/#/--batch 1 }" || return 0
    grep -q '\.backward_deterministic' "$kernel" || return 1
    rm -rf "$folder/tests" && mkdir "$folder/tests" # where tensor.cuh keeps both types
    make_program "$step_cc" "$kernel" "$1" "$folder/tests/tests" --tests <<<"$text" || exit 1
    ! "$folder/tests/tests" --filter 'backward/one_bit_pattern_of_16_bits' >"$folder/program.out" 2>&1
}

called() { # FUNCTION of a header: by the kernel, or by another function there; of a statement in the kernel itself there is none
    [[ ! $1 ]] || grep -q "\b$1\b" "$kernel" || (($(cat "${kernel%/*}"/*.cuh | grep -c "\b$1\b") > 1))
}

if caught "$kernel" < <(cat "$kernel"); then
    printf '%s: with nothing removed it fails\n' "$kernel" && cat "$folder/program.out"
    exit 1
fi
count=0 failed=0
for file in "$kernel" "${kernel%/*}"/*.cuh; do
    [[ $file == "$kernel" ]] || grep -q "\"${file##*/}\"" "$kernel" "${kernel%/*}"/*.cuh || continue # another rung's
    while IFS=: read -r line text; do
        [[ $text != *'redundant: '* ]] || continue
        called "$(sed -nE "1,$line s/^__device__ .*\b(\w+)\(.*/\1/p" "$file" | tail -1)" || continue
        count=$((count + 1))
        caught "$file" < <(sed -E "$line s/$orders/(void)0/" "$file") || { printf '%s:%s: not missed:%s\n' "$file" "$line" "$text" && failed=1; }
        rm -f "$folder/${file##*/}"
    done < <(grep -nE "^[^/]*($orders);" "$file")
done
printf '%d statements removed\n' "$count"
((count > 10 && failed == 0))
