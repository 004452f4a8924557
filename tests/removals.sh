#!/usr/bin/env bash
# removals.sh STEP-CC KERNEL.cu STEP: of a kernel with Hopper's instructions, and of the headers beside it, each barrier, fence, wait,
# commit, arrival and announcement is removed in turn; the simulated device must stop each of the programs, or its result be wrong. A
# line with "redundant:" is left alone: the comment says by which rule of docs/simulated-device-inside.md nothing depends on it.
set -euo pipefail
step_cc=$1 kernel=$2 step=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
orders='fence_mbarrier_init\(\)|fence_proxy_async\(\)|__syncthreads\(\)|__syncwarp\(\)|mbarrier_(wait|arrive|arrive_expect)\([^;]*\)'
orders+='|named_barrier_(sync|arrive)\([^;]*\)|wgmma_(fence|commit)\(\)|wgmma_wait<[0-9]>\(\)|tma_(commit\(\)|wait_read<[0-9]>\(\))'
orders+='|cluster_(arrive|wait)\(\)|mbarrier_arrive_remote\([^;]*\)'
orders+='|\brelease\([^;]*\)'

caught() { # PROGRAM: by one of the problems, with a status that is not 0
    local problem
    for problem in '--heads 1 --seq 200 --seq-kv 700 --dim 64' '--heads 1 --seq 200 --seq-kv 900 --dim 128 --dtype fp16' \
        '--heads 2 --seq 113 --seq-kv 600 --dim 56 --causal'; do
        # shellcheck disable=SC2086 # options
        timeout 100 "$1" --batch 1 $problem --no-time >"$folder/output" 2>&1 || return 0
    done
    return 1
}

"$step_cc" "$kernel" -o "$folder/whole" --like "$step"
if caught "$folder/whole"; then
    printf '%s: with nothing removed it fails\n' "$kernel" && cat "$folder/output"
    exit 1
fi
count=0 failed=0
for file in "$kernel" "${kernel%/*}"/*.cuh; do
    while IFS=: read -r line text; do
        [[ $text != *'redundant: '* ]] || continue
        cp "$kernel" "$folder/${kernel##*/}"
        sed -E "$line s/$orders/(void)0/" "$file" >"$folder/${file##*/}"
        "$step_cc" "$folder/${kernel##*/}" -o "$folder/removed" --like "$step" -- -Wno-error 2>"$folder/compiler" || { cat "$folder/compiler" && exit 1; }
        count=$((count + 1))
        caught "$folder/removed" || { printf '%s:%s: not missed:%s\n' "$file" "$line" "$text" && failed=1; }
        rm "$folder/${file##*/}"
    done < <(grep -nE "^[^/]*($orders);" "$file")
done
printf '%d statements removed\n' "$count"
((count > 10 && failed == 0))
