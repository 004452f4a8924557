#!/usr/bin/env bash
# removals.sh STEP-CC KERNEL.cu STEP [drawn]: of a kernel with Hopper's instructions, and of the headers beside it, each barrier, fence,
# wait, commit, arrival and announcement is removed in turn; the simulated device must stop each of the programs, or its result be
# wrong. A line with "redundant:" is left alone: the comment says by which rule of docs/simulated-device-inside.md nothing depends on
# it. drawn: where TEST_THIRD is 0, 1 or 2, as .ci/run has it, this third of the statements only.
set -euo pipefail
step_cc=$1 kernel=$2 step=$3 third=${4:+${TEST_THIRD-}}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
orders='fence_mbarrier_init\(\)|fence_proxy_async\(\)|__syncthreads\(\)|__syncwarp\(\)|mbarrier_(wait|arrive|arrive_expect)\([^;]*\)'
orders+='|named_barrier_(sync|arrive)\([^;]*\)|wgmma_(fence|commit)\(\)|wgmma_wait<[0-9]>\(\)|tma_(commit\(\)|wait(_read)?<[0-9]>\(\))'
orders+='|\brelease\([^;]*\)|semaphore_(wait|raise)\([^;]*\)'
orders+='|cluster_(arrive|wait)\(\)|mbarrier_arrive_remote\([^;]*\)'

problems=('--heads 1 --seq 200 --seq-kv 700 --dim 64' '--heads 1 --seq 200 --seq-kv 900 --dim 128 --dtype fp16'
    '--heads 2 --seq 113 --seq-kv 600 --dim 56 --causal')
if grep -q '\.backward' "$kernel"; then # its blocks own keys, and run through the queries
    problems=('--heads 1 --seq 700 --seq-kv 200 --dim 64' '--heads 1 --seq 350 --seq-kv 300 --dim 128 --dtype fp16'
        '--heads 2 --seq 600 --seq-kv 130 --dim 56 --causal')
    ! grep -q '\.backward_deterministic' "$kernel" || problems+=("${problems[@]/%/ --deterministic}")
fi

caught() { # KERNEL: its program, by one of the problems, with a status that is not 0; or it adds in another order from run to run
    local problem
    build "$1" "$folder/program"
    for problem in "${problems[@]}"; do
        # shellcheck disable=SC2086 # options
        timeout 100 "$folder/program" --batch 1 $problem --no-time >"$folder/output" 2>&1 || return 0
    done
    grep -q '\.backward_deterministic' "$1" || return 1
    build "$1" "$folder/tests" --tests
    ! "$folder/tests" --filter 'backward/one_bit_pattern_of_16_bits' >"$folder/output" 2>&1
}

called() { # FUNCTION of a header: by the kernel, or by another function there; of a statement in the kernel itself there is none
    [[ ! $1 ]] || grep -q "\b$1\b" "$kernel" || (($(cat "${kernel%/*}"/*.cuh | grep -c "\b$1\b") > 1))
}

build() { # KERNEL PROGRAM OPTION...: with warnings, since a parameter may be unused then
    "$step_cc" "$1" -o "$2" --like "$step" "${@:3}" -- -Wno-error 2>"$folder/compiler" || { cat "$folder/compiler" && exit 1; }
}

if caught "$kernel"; then
    printf '%s: with nothing removed it fails\n' "$kernel" && cat "$folder/output"
    exit 1
fi
seen=0 count=0 failed=0
for file in "$kernel" "${kernel%/*}"/*.cuh; do
    while IFS=: read -r line text; do
        [[ $text != *'redundant: '* ]] || continue
        called "$(sed -nE "1,$line s/^__device__ .*\b(\w+)\(.*/\1/p" "$file" | tail -1)" || continue
        seen=$((seen + 1))
        [[ ! $third ]] || ((seen % 3 == third)) || continue
        cp "$kernel" "$folder/${kernel##*/}"
        sed -E "$line s/$orders/(void)0/" "$file" >"$folder/${file##*/}"
        count=$((count + 1))
        caught "$folder/${kernel##*/}" || { printf '%s:%s: not missed:%s\n' "$file" "$line" "$text" && failed=1; }
        rm "$folder/${file##*/}"
    done < <(grep -nE "^[^/]*($orders);" "$file")
done
printf '%d of %d statements removed\n' "$count" "$seen"
((seen > 10 && count >= seen / 3 && failed == 0))
