#!/usr/bin/env bash
# record_variants.sh FILE.jsonl [NN...]: measure the variants of these chapters (05 06 08 09) and the chapters' own kernels
# on this machine's card, one JSON line a run; then chapters 06 and 09 and their variants with other tile sizes, of which
# the book's tables quote the best. Build the cuda preset with its tests first. COMMIT names the commit where git cannot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# >= 1)) || {
    echo "usage: plots/record_variants.sh FILE.jsonl [NN...]" >&2
    exit 2
}
output=$1
shift
chapters=" ${*:-05 06 08 09} "
asked_for() { [[ $chapters == *" ${1:0:2} "* ]]; } # PROGRAM
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stamps=(--stamp "commit=${COMMIT:-$(git rev-parse --short HEAD)}" --stamp "date=$(date -u +%F)"
    --stamp "driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)")

measure() { # PROGRAM DIM OPTIONS...
    local program=$1 dim=$2
    shift 2
    "$program" --batch 4 --heads 16 --seq 4096 --dim "$dim" --json "$work/all" "${stamps[@]}" "$@" >"$work/log" 2>&1 || {
        (($? == 2)) || { # 2: refused
            echo "$program --dim $dim $* FAILED" >&2
            tail -n 3 "$work/log" >&2
        }
    }
}

for program in build/cuda/bin/0[5689]_* build/cuda/bin/variants/*; do
    asked_for "$(basename "$program")" || continue
    for dim in 64 128; do measure "$program" "$dim"; done
done

# ---- other tile sizes: the same sources with one template argument list exchanged ------------------------------------

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
[[ $capability == 90 ]] && capability=90a
compile() { # SOURCE STEP DIM OLD NEW
    local folder cjson
    cjson=$(sed -n "s/^CJSON_LIBRARY:FILEPATH=//p" build/cuda/CMakeCache.txt)
    folder="$work/$2:$3:$5"
    mkdir -p "$folder"
    cp "$(dirname "$1")"/*.cu* "$folder/"
    grep -qF "tiling<$4>" "$1" || {
        echo "$1 has no tiling<$4>" >&2
        return 1
    }
    sed -i "0,/tiling<$4>/s//tiling<$5>/" "$folder/$(basename "$1")"
    nvcc -std=c++20 -O3 -Icommon -Icommon/cuda -gencode "arch=compute_$capability,code=sm_$capability" \
        -DSTEP="step_$2" -DFORWARD="step_${2/#09*/06_vectorized}" -o "$folder/program" "$folder/$(basename "$1")" \
        common/main.c build/cuda/common/libharness.a "${@:6}" "$cjson" -lgomp -lm >"$folder/log" 2>&1 ||
        {
            echo "$2 tiling<$5> does not compile" >&2
            grep -m 2 error "$folder/log" >&2
        }
}

source_of() { # NAME
    case $1 in
    06_vectorized) echo steps/06_vectorized/vectorized.cu ;;
    09_fa2_bwd_warps) echo steps/09_fa2_bwd_warps/fa2_bwd_warps.cu ;;
    06_*) echo "build/cuda/variants/$1/vectorized.cu" ;;
    09_*) echo "build/cuda/variants/$1/fa2_bwd_warps.cu" ;;
    esac
}

tilings_06=('64, 8, 64, 4, 1, 1' '64, 8, 64, 4, 1, 4' '64, 8, 32, 4, 1, 2' '64, 8, 64, 2, 2, 2' '64, 4, 64, 4, 1, 2'
    '64, 4, 64, 8, 1, 2' '64, 4, 32, 8, 1, 2' '64, 4, 32, 4, 1, 4')
tilings_09=('64, 64, 64' '64, 32, 128' '64, 32, 64' '64, 128, 64')
forward=$(find build/cuda -path '*kernels_06_vectorized.dir*' -name '*.o' | head -n 1)
cores=$(getconf _NPROCESSORS_ONLN)
for name in 06_vectorized 06_checked_copies 06_not_overlapped 06_plain_lanes 06_not_padded 06_scalar_loads; do
    asked_for "$name" || continue
    for tiling in "${tilings_06[@]}"; do
        while (($(jobs -pr | wc -l) >= cores)); do sleep 0.1; done
        compile "$(source_of "$name")" "$name" 64 '64, 8, 64, 4, 1, 2' "$tiling" &
    done
done
for name in 09_fa2_bwd_warps 09_checked_copies 09_not_split 09_scalar_atomics 09_plain_lanes 09_not_padded 09_scalar_loads; do
    asked_for "$name" || continue
    for tiling in "${tilings_09[@]}"; do
        while (($(jobs -pr | wc -l) >= cores)); do sleep 0.1; done
        compile "$(source_of "$name")" "$name" 64 '64, 64, 128' "$tiling" "$forward" &
    done
done
wait
for program in "$work"/*:*/program; do
    [[ -e $program ]] || continue
    folder=$(dirname "$program")
    measure "$program" 64 --stamp "tiling=${folder##*:}"
done
mv "$work/all" "$output"
