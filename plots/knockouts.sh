#!/usr/bin/env bash
# What does each part of a kernel cost? A line `NAME: SED SCRIPT` of steps/STEP/knockouts.txt takes parts of its kernel away, so
# that the result is wrong and the time tells. On a card only. Run it in the book's folder:
#     plots/knockouts.sh STEP >>plots/data/trials/CARD-knockouts.jsonl
set -euo pipefail
step=${1?which step?} folder=steps/$1 number=${1%%_*} pass=${2:-fwd} letters=({k..w}) names=() programs=()
trap 'rm -f "$folder/$number"[k-w]_knockout.cu' EXIT
while IFS= read -r line; do
    [[ $line == *:* && $line != '#'* ]] || continue
    name=$number${letters[${#names[@]}]}_knockout edit=${line#*:}
    sed -E "$edit; s/$step/$name/g" "$folder/${step#*_}.cu" >"$folder/$name.cu"
    [[ ! ${names[0]-} ]] || ! cmp -s <(sed "s/$step/x/g" "$folder/${step#*_}.cu") <(sed "s/$name/x/g" "$folder/$name.cu") ||
        { echo "${line%%:*}: changes nothing" >&2 && exit 1; }
    names+=("${line%%:*}") programs+=("$name")
done <"$folder/knockouts.txt"
{ cmake --preset cuda && cmake --build --preset cuda --parallel "$(getconf _NPROCESSORS_ONLN)" --target "${programs[@]}"; } >&2
for dim in 64 128; do
    for _ in 1 2 3; do # in turns: the best of three medians counts
        for i in "${!names[@]}"; do
            "build/cuda/bin/${programs[i]}" --batch 4 --heads 16 --seq 4096 --dim "$dim" --pass "$pass" --no-check --json - |
                sed -nE "s/.*\"device\": ?\"([^\"]*)\".*\"ms_median\": ?([0-9.]+).*/$dim $i \2 \1/p"
        done
    done
done | sort -k1,1n -k2,2n -k3,3n | awk '!seen[$1, $2]++' | while read -r dim i ms device; do
    printf '{"step": "%s", "device": "%s", "batch": 4, "heads": 16, "seq": 4096, "dim": %s, "pass": "%s", "what": "%s", "ms": %.4f}\n' "$step" "$device" "$dim" "$pass" "${names[i]}" "$ms"
done
