#!/usr/bin/env bash
# What does each part of chapter 10's kernel cost? Each line below takes one part away, so that the result is wrong and the time
# tells. On a card only; prints JSON lines for plots/data/trials/<card>-knockouts.jsonl. Run it in the book's folder.
set -euo pipefail
kernel=steps/10_tensor_core_fwd/tensor_core_fwd.cu step=10_tensor_core_fwd
exponentials='/l_reg\[t\]\[i\] \+= s/!s/(s\[[01]\]) = exp2_approx\((.*)\);/\1 = \2;/'
maxima='s/float factor = lazy_softmax\(.*/float factor = p.scale * LOG2_E;/'
barriers='s/__syncthreads\(\); +\/\/ every thread.s part.*//' copies='s/if \(tile > 0\) \{/if (tile > (1 << 20)) {/'
softmax='s/s\[[01]\] = exp2_approx\(.*\);//; s/l_reg\[t\]\[i\] \+= s\[0\] \+ s\[1\];//'
names=(whole 'without exponentials' 'without maxima and masks' 'without exponentials, maxima and masks'
    'without barriers' 'without copies'
    'P V independent of P' 'ldmatrix, products and rounding alone')
edits=('' "$exponentials" "$maxima" "$exponentials;$maxima" "$barriers" "$copies"
    's/(mma_m16n8k16<T>\(O_reg.*), P_reg\[t\],/\1, P_other[t],/; s/float O_reg\[TILES\].*/uint32_t P_other[TILES][4]; for (auto \&tile : P_other) for (auto \&x : tile) x = threadIdx.x * 3;\n    &/'
    "$softmax;$maxima;$barriers;$copies")
letters=(k l m n o p q r) programs=()
trap 'rm -f steps/10_tensor_core_fwd/10[k-r]_knockout.cu' EXIT
for i in "${!names[@]}"; do
    name=10${letters[i]}_knockout file=steps/10_tensor_core_fwd/10${letters[i]}_knockout.cu
    sed -E "${edits[i]}; s/$step/$name/g" "$kernel" >"$file"
    [[ $i == 0 ]] || ! cmp -s <(sed "s/$step/x/g" "$kernel") <(sed "s/$name/x/g" "$file") || { echo "${names[i]}: changes nothing" >&2 && exit 1; }
    programs+=("$name")
done
{ cmake --preset cuda && cmake --build --preset cuda --parallel "$(getconf _NPROCESSORS_ONLN)" --target "${programs[@]}"; } >&2
for dim in 64 128; do
    for _ in 1 2 3; do # in turns: the best of three medians counts
        for i in "${!names[@]}"; do
            "build/cuda/bin/${programs[i]}" --batch 4 --heads 16 --seq 4096 --dim "$dim" --no-check --json - |
                sed -nE "s/.*\"device\": ?\"([^\"]*)\".*\"ms_median\": ?([0-9.]+).*/$dim $i \2 \1/p"
        done
    done
done | sort -k1,1n -k2,2n -k3,3n | awk '!seen[$1, $2]++' | while read -r dim i ms device; do
    printf '{"step": "%s", "device": "%s", "batch": 4, "heads": 16, "seq": 4096, "dim": %s, "what": "%s", "ms": %s}\n' "$step" "$device" "$dim" "${names[i]}" "$ms"
done
