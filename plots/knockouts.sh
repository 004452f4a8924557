#!/usr/bin/env bash
# What does each part of a kernel cost, and what is each idea worth? Each change (common/change) of steps/STEP/knockouts.changes takes
# a part of a kernel away, so that the result is wrong and the time tells. Each change of steps/STEP/ablations.changes takes one idea
# out of a rung; its result must be right. Above a change may stand: `after: NAME`, it is one of the kernel after this other one;
# `dims: D`, at which d it is timed, where these are not 64 and 128.
# On a card only. Run it in the book's folder; with RUNGs it times these only, each beside its ablations, ROUNDS (3) times REPEAT (20) runs,
# at N 4096, or at SEQ with 16384 / SEQ batches, as RUNG@SEQ; with MASK=causal as RUNG@SEQ,causal:
#     plots/knockouts.sh STEP knockouts|ablations [PASS [RUNG...]] >>plots/data/trials/CARD-knockouts.jsonl, or CARD-ablations.jsonl
set -euo pipefail
# shellcheck source=../common/changed.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/changed.sh"
step=${1?which step?} kind=${2?knockouts or ablations?} pass=${3:-fwd} changes=steps/$1/$2.changes rounds=${ROUNDS:-3} repeat=${REPEAT:-20}
seq=${SEQ:-4096} at=${SEQ:+@$SEQ${MASK:+,$MASK}} size="--batch $((16384 / ${SEQ:-4096})) --heads 16 --seq ${SEQ:-4096} ${MASK:+--$MASK}"
wanted=("${@:4}") names=() rungs=() dims=() compilers=() last='' whole=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
add() { # NAME FILE DIMS: compile a program, the next one
    local program=$work/${#names[@]}
    names+=("$1") rungs+=("$(step_of "$2")") dims+=("$3")
    if [[ $1 == whole ]]; then cat "$2"; else common/change apply "$changes" "$1" "$2"; fi | make_program build/cuda/bin/step-cc "$2" "$2" "$program" >&2 &
    compilers+=($!)
}
{ cmake --preset cuda && cmake --build --preset cuda --parallel --target step_cc_parts; } >&2
while IFS= read -r name; do
    header=$(common/change header "$changes" "$name")
    file=$(field file <<<"$header") wide=$(field dims <<<"$header") rung=$(step_of "$file")
    ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $rung "* ]] || continue
    [[ $rung == "$last" ]] || { whole=${#names[@]} && add whole "$file" ''; }
    dims[whole]+=" ${wide:-64 128}"
    add "$name" "$file" "${wide:-64 128}"
    last=$rung
done < <(common/change list "$changes")
((${#names[@]} > 0)) || { echo "knockouts.sh: $changes has no change of ${wanted[*]}" >&2 && exit 2; }
for compiler in "${compilers[@]}"; do wait "$compiler"; done
of_dim() { # DIM: the numbers of the programs that are timed at it
    local i
    for i in "${!names[@]}"; do [[ " ${dims[i]} " != *" $1 "* ]] || echo "$i"; done
}
all_dims=$(tr ' ' '\n' <<<"${dims[*]}" | sed '/^$/d' | sort -nu)
if [[ $kind == ablations ]]; then
    for dim in $all_dims; do
        checkers=()
        for i in $(of_dim "$dim"); do "$work/$i" --seq 333 --dim "$dim" --causal --pass "$pass" --no-time >&2 & checkers+=($!); done
        for checker in "${checkers[@]}"; do wait "$checker"; done
    done
fi
for dim in $all_dims; do
    for ((round = 0; round < rounds; round++)); do # in turns: the best of the medians counts
        for i in $(of_dim "$dim"); do
            # shellcheck disable=SC2086 # several words
            "$work/$i" $size --dim "$dim" --pass "$pass" --repeat "$repeat" --no-check --json - |
                sed -nE "s/.*\"device\": ?\"([^\"]*)\".*\"ms_median\": ?([0-9.]+).*/$dim $i \2 \1/p"
        done
    done
done | sort -k1,1n -k2,2n -k3,3n | awk '!seen[$1, $2]++' | while read -r dim i ms device; do
    printf '{"step": "%s", "rung": "%s", "device": "%s", "batch": %s, "heads": 16, "seq": %s, "size": "%s", "dim": %s, "pass": "%s", "what": "%s", "ms": %.4f}\n' \
        "$step" "${rungs[i]}$at" "$device" $((16384 / seq)) "$seq" "B $((16384 / seq)), H 16, N $seq${MASK:+, $MASK}" "$dim" "$pass" "${names[i]}" "$ms"
done
