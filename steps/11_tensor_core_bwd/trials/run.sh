#!/usr/bin/env bash
# run.sh [NAME...]: checks each form of forms.txt on the simulated device at a few sizes, or those that are named.
# run.sh --card OUT.jsonl: builds all forms for compute capability 9.0, checks each on the card, and times them, the rungs
# from 11e on and PyTorch's backward passes in turns. Needs nvcc, a card and PyTorch.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export here root work

source_of() { # NAME D TILING: the kernel file of a form; without a tiling the rung of that name
    if [[ $3 ]]; then
        printf '#define FORM %s\n#include "bwd.cuh"\n' "$3"
    else
        printf '#define step_%s step_11_tensor_core_bwd\n#include "%s/steps/11_tensor_core_bwd/%s.cu"\n' "$1" "$root" "$1"
    fi >"$work/$1_$2.cu"
}
build() { # NAME|D|TILING|WHAT: a library with two functions for run.py
    local name d tiling what stem
    IFS='|' read -r name d tiling what <<<"$1"
    source_of "$name" "$d" "$tiling"
    stem=$work/${name}_$d
    cat >>"$stem.cu" <<'END'
extern "C" int trial(const problem *p, const tensors *t, void *workspace, void *stream) {
    return (int)step_11_tensor_core_bwd.backward(p, t, workspace, (cudaStream_t)stream);
}
extern "C" size_t trial_workspace(const problem *p) { return step_11_tensor_core_bwd.workspace_bytes(p); }
END
    nvcc -shared -Xcompiler -fPIC -std=c++20 -O3 -DNDEBUG -Xptxas -v -gencode arch=compute_90a,code=sm_90a "-I$here" "-I$here/.." \
        "-I$root/common/device" "$stem.cu" -o "$stem.so" >"$stem.log" 2>&1 || { echo "$name, d $d: does not compile" && grep -m 3 error "$stem.log"; }
}
export -f build source_of

if [[ ${1-} == --card ]]; then
    # shellcheck disable=SC2016 # $1 is the inner shell's
    grep -v '^#' "$here/forms.txt" | tr '\n' '\0' | xargs -0 -P "$(nproc)" -I{} bash -c 'build "$1"' _ {}
    while IFS='|' read -r name d tiling what; do
        kernel='(?=.*backward_[ktn])(?=.*bfloat16)' # a form's file has rung 11e's kernels, too
        [[ $tiling ]] && kernel+='(?=.*8[nt]_tiling)' || kernel+='(?!.*8[nt]_tiling)'
        echo "bwd|11_tensor_core_bwd|tensor_core_bwd|$kernel|$name|$d|$what"
    done < <(grep -v '^#' "$here/forms.txt") >"$work/forms.txt"
    python3 -B "$root/plots/time_forms.py" "$work" "${2:?run.sh --card OUT.jsonl}"
    exit
fi
status=0
while IFS='|' read -r name d tiling what; do
    [[ $name != \#* && $tiling && (-z $* || " $* " == *" $name "*) ]] || continue
    source_of "$name" "$d" "$tiling"
    "$root/build/sim/bin/step-cc" "$work/${name}_$d.cu" -o "$work/program" --like 11_tensor_core_bwd -- "-I$here"
    for problem in '--seq 200 --seq-kv 333 --heads 1 --causal' '--seq 140 --seq-kv 70 --causal --heads 1' '--seq 1 --seq-kv 1' '--seq 130 --dtype fp16 --heads 1'; do
        # shellcheck disable=SC2086 # options
        "$work/program" --dim "$d" $problem --no-time >"$work/log" 2>&1 || { echo "$name, d $d, $problem: $?" && cat "$work/log" && status=1; }
    done
    echo "$name, d $d: $what: checked"
done <"$here/forms.txt"
exit "$status"
