#!/usr/bin/env bash
# What does each part of a kernel cost? Each change (common/change) of steps/STEP/knockouts.changes takes a part of its kernel away,
# so that the result is wrong and the time tells. A line `after: NAME` above a change: it is one of the kernel after this other one.
# On a card only. Run it in the book's folder:
#     plots/knockouts.sh STEP >>plots/data/trials/CARD-knockouts.jsonl
set -euo pipefail
step=${1?which step?} folder=steps/$1 number=${1%%_*} pass=${2:-fwd} letters=({k..w}) names=(whole) programs=()
trap 'rm -f "$folder/$number"[k-w]_knockout.cu*' EXIT
knock_out() { # NAME FILE
    local earlier
    common/change header "$folder/knockouts.changes" "$1" | sed -n 's/^after: //p' |
        while IFS= read -r earlier; do knock_out "$earlier" "$2"; done
    common/change apply "$folder/knockouts.changes" "$1" "$2" >"$2.new"
    mv "$2.new" "$2"
}
mapfile -t -O 1 names < <(common/change list "$folder/knockouts.changes")
((${#names[@]} > 1))
for i in "${!names[@]}"; do
    name=$number${letters[i]}_knockout file=$folder/$name.cu
    cp "$folder/${step#*_}.cu" "$file"
    ((i == 0)) || knock_out "${names[i]}" "$file"
    sed -i "s/$step/$name/g" "$file"
    programs+=("$name")
done
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
