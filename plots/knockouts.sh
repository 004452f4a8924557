#!/usr/bin/env bash
# What does each part of a kernel cost, and what is each idea worth? Each change (common/change) of steps/STEP/knockouts.changes takes
# a part of a kernel away, so that the result is wrong and the time tells. Each change of steps/STEP/ablations.changes takes one idea
# out of a rung; its result must be right. A line `after: NAME` above a change: it is one of the kernel after this other one.
# On a card only. Run it in the book's folder:
#     plots/knockouts.sh STEP knockouts|ablations [PASS] >>plots/data/trials/CARD-knockouts.jsonl, or CARD-ablations.jsonl
set -euo pipefail
step=${1?which step?} kind=${2?knockouts or ablations?} pass=${3:-fwd} changes=steps/$1/$2.changes
names=() rungs=() compilers=() last=''
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
knock_out() { # NAME FILE
    local earlier
    common/change header "$changes" "$1" | sed -n 's/^after: //p' |
        while IFS= read -r earlier; do knock_out "$earlier" "$2"; done
    common/change apply "$changes" "$1" "$2" >"$2.new"
    mv "$2.new" "$2"
}
add() { # NAME FILE RUNG: compile a program, the next one
    local kernel=$work/${#names[@]}.cu
    cp "$2" "$kernel"
    [[ $1 == whole ]] || knock_out "$1" "$kernel"
    names+=("$1") rungs+=("$3")
    build/cuda/bin/step-cc "$kernel" -o "${kernel%.cu}" --like "$3" >&2 &
    compilers+=($!)
}
{ cmake --preset cuda && cmake --build --preset cuda --parallel --target step_cc_parts; } >&2
while IFS= read -r name; do
    file=$(common/change header "$changes" "$name" | sed -n 's/^file: //p') rung=$(basename "$file" .cu)
    [[ $rung == [0-9]* ]] || rung=$step
    [[ $rung == "$last" ]] || add whole "$file" "$rung"
    add "$name" "$file" "$rung"
    last=$rung
done < <(common/change list "$changes")
for compiler in "${compilers[@]}"; do wait "$compiler"; done
if [[ $kind == ablations ]]; then
    for i in "${!names[@]}"; do
        for dim in 64 128; do "$work/$i" --seq 333 --dim "$dim" --causal --pass "$pass" --no-time >&2; done
    done
fi
for dim in 64 128; do
    for _ in 1 2 3; do # in turns: the best of three medians counts
        for i in "${!names[@]}"; do
            "$work/$i" --batch 4 --heads 16 --seq 4096 --dim "$dim" --pass "$pass" --no-check --json - |
                sed -nE "s/.*\"device\": ?\"([^\"]*)\".*\"ms_median\": ?([0-9.]+).*/$dim $i \2 \1/p"
        done
    done
done | sort -k1,1n -k2,2n -k3,3n | awk '!seen[$1, $2]++' | while read -r dim i ms device; do
    printf '{"step": "%s", "rung": "%s", "device": "%s", "batch": 4, "heads": 16, "seq": 4096, "dim": %s, "pass": "%s", "what": "%s", "ms": %.4f}\n' "$step" "${rungs[i]}" "$device" "$dim" "$pass" "${names[i]}" "$ms"
done
