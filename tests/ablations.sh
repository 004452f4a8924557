#!/usr/bin/env bash
# ablations.sh STEP_CC [CHAPTER]: each change of steps/*/ablations.changes (plots/knockouts.sh) makes another program of its rung, and
# one that is right on the simulated device. `only: nvcc` above a change: here it makes the same program. Exit status 77, "skipped":
# a kernel was edited and a change does not apply to it any more; with CI=true that fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
step_cc=$1 status=0 count=0
problems=('--dim 64 --seq 140 --seq-kv 211 --causal' '--dim 128 --seq 140 --seq-kv 70 --causal' '--dim 40 --seq 131' '--dim 32 --seq 67')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/, __half>/, __nv_bfloat16>/' common/device/tensor.cuh >"$work/tensor.cuh" # one data type: half of the compiler's time

compile() { # FILE STEP OUT: an object file in which each line has the number 1, so that equal code makes equal files
    sed $'s/^/#line 1\\\n/' "$1" >"$work/kernel.cu"
    "$step_cc" "$work/kernel.cu" -o "$3" -c --like "$2" && strip --strip-debug "$3"
}
try() { # CHANGES NAME FILE STEP: 1 when the change is wrong, 77 when it does not apply
    local problem
    common/change apply "$1" "$2" "$3" >"$work/changed.cu" || return 77
    compile "$work/changed.cu" "$4" "$work/changed.o" && "$step_cc" "$work/changed.o" -o "$work/changed" --like "$4" || return 1
    if common/change header "$1" "$2" | grep -q '^only: nvcc$'; then
        cmp "$work/changed.o" "$work/$4.o" # how often nvcc unrolls a loop, how many registers it takes: no matter here
        return
    fi
    ! cmp -s "$work/changed.o" "$work/$4.o" || { echo 'changes nothing' && return 1; }
    for problem in "${problems[@]}"; do
        # shellcheck disable=SC2086 # options
        "$work/changed" $problem --heads 1 --no-time >"$work/log" 2>&1 || { echo "$problem: $?" && cat "$work/log" && return 1; }
    done
}
for changes in "steps/${2-}"*/ablations.changes; do
    while IFS= read -r name; do
        file=$(common/change header "$changes" "$name" | sed -n 's/^file: //p') step=$(basename "$file" .cu)
        [[ $step == [0-9]* ]] || step=$(basename "${file%/*}")
        [[ -e $work/$step.o ]] || compile "$file" "$step" "$work/$step.o" || exit 1
        try "$changes" "$name" "$file" "$step"
        case $?,${CI-} in
        0,*) count=$((count + 1)) ;;
        77,true | 1,*) status=1 && echo "$step, $name: wrong" ;;
        *) status=$((status == 1 ? 1 : 77)) && echo "$step, $name: SKIPPED" ;;
        esac
    done < <(common/change list "$changes")
done
echo "$count ablations are right"
((status > 0 || count > 0)) || status=1
exit "$status"
