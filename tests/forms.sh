#!/usr/bin/env bash
# forms.sh STEP-CC ablations|forms [CHAPTER|NAME...]: each change of steps/*/KIND.changes, or of these chapters or names, makes another
# program of its kernel, and one that is right on the simulated device. `d: 64` above a form: for this d only. `only: nvcc` above an
# ablation: here it makes the same program. Exit status 77: a kernel was edited and a change does not apply to it any more.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# shellcheck source=../common/changed.sh
source common/changed.sh
step_cc=$1 kind=$2 status=0 count=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[[ $kind == forms ]] || only_bf16 "$work"

compile() { # FILE STEP OUT: an object file in which each line has the number 1, so that equal code makes equal files
    sed $'s/^/#line 1\\\n/' "$1" >"$work/kernel.cu"
    "$step_cc" "$work/kernel.cu" -o "$3" -c --like "$2" && strip --strip-debug "$3"
}
try() { # NAME: 1 when the change is wrong, 77 when it does not apply
    local d step problems=('--dim 64 --seq 140 --seq-kv 211 --causal' '--dim 128 --seq 140 --seq-kv 70 --causal' '--dim 40 --seq 131' '--dim 32 --seq 67')
    step=$(step_of "$file")
    common/change apply "$changes" "$1" "$file" >"$work/changed.cu" || return 77
    compile "$work/changed.cu" "$step" "$work/changed.o" && "$step_cc" "$work/changed.o" -o "$work/changed" --like "$step" || return 1
    if [[ $kind == forms ]]; then
        problems=()
        for d in $(field d <<<"$header" | grep . || echo 64 128); do
            problems+=("--dim $d --seq 200 --seq-kv 333 --causal" "--dim $((d - 8)) --seq 140 --seq-kv 70 --causal" "--dim $((d / 2)) --seq 99"
                "--dim $d --seq 1 --seq-kv 1" "--dim $d --seq 300 --input large" "--dim $d --seq 257")
            ! grep -q 'dtypes = .*FP16' "$file" || problems+=("--dim $d --seq 130 --dtype fp16")
        done
    else
        [[ -e $work/$step.o ]] || compile "$file" "$step" "$work/$step.o" || return 1
        if [[ $(field only <<<"$header") == nvcc ]]; then # how often it unrolls a loop, how many registers it takes: no matter here
            cmp "$work/changed.o" "$work/$step.o"
            return
        fi
        ! cmp -s "$work/changed.o" "$work/$step.o" || { echo 'changes nothing' && return 1; }
    fi
    run_until_wrong 600 "$work/changed" "${problems[@]/%/ --heads 1}" || { cat "$work/changed.out" && return 1; }
}
for changes in steps/*/"$kind".changes; do
    while IFS= read -r name; do
        chapter=${changes#steps/}
        [[ $# == 2 || "|$(IFS='|' && echo "${*:3}")|" == *"|$name|"* || " ${*:3} " == *" ${chapter:0:2} "* ]] || continue
        header=$(common/change header "$changes" "$name") && file=$(field file <<<"$header") || exit 1
        try "$name"
        case $? in
        0) count=$((count + 1)) ;;
        77) skip "${chapter:0:2}, $name" || status=$((status == 1 ? 1 : $?)) ;;
        *) status=1 && echo "${chapter:0:2}, $name: wrong" ;;
        esac
    done < <(common/change list "$changes")
done
echo "$count $kind are right"
((status > 0 || count > 0)) || status=1
exit "$status"
