#!/usr/bin/env bash
# Other forms of a kernel: each change (common/change) of steps/*/forms.changes is one. Above it may stand:
#     after: NAME    it is a form of this other form
#     d: 64          it is for this d only; without the line for 64 and 128
#     kernel: REGEX  whose spills are reported, by its mangled name
#     last: KERNEL   above the first one: all are compared with this kernel in place of its own
# A form may be of another kernel file than the first change of its file; the kernels that forms begin from are timed, too.
# plots/forms.sh OUT.jsonl [STEP]   builds all, or a chapter's, for compute capability 9.0, checks them on the card, and times them, the
#                                   kernels themselves and PyTorch's in turns: needs nvcc, a card and PyTorch
# tests/forms.sh checks them on the simulated device.
set -euo pipefail
(($# == 1 || $# == 2)) || { echo "plots/forms.sh OUT.jsonl [STEP]" >&2 && exit 2; }
out=$(realpath -m "$1") chapter=${2-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../common/changed.sh
source common/changed.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work

# shellcheck disable=SC2317 # xargs calls it
build() { # STEM STEP FOLDER FUNCTION: a library with two functions for time_forms.py
    cat >>"$1.cu" <<END
extern "C" int trial(const problem *p, const tensors *t, void *workspace, void *stream) {
    return (int)step_$2.$4(p, t, workspace, (cudaStream_t)stream);
}
extern "C" size_t trial_workspace(const problem *p) { return step_$2.workspace_bytes ? step_$2.workspace_bytes(p) : 0; }
END
    nvcc -shared -Xcompiler -fPIC -std=c++20 -O3 -DNDEBUG -Xptxas -v -gencode arch=compute_90a,code=sm_90a -Icommon/device "-I$3" \
        "$1.cu" -o "$1.so" >"$1.log" 2>&1 || { echo "$(basename "$1"): does not compile" && grep -m 3 error "$1.log"; }
}
export -f build

for changes in steps/"$chapter"*/forms.changes; do
    mapfile -t files < <(sed -nE 's/^(last|file): //p' "$changes" | awk '!seen[$0]++')
    last=$(step_of "${files[0]}") names=()
    for file in "${files[@]}"; do names+=("$(step_of "$file")"); done
    mapfile -t -O "${#names[@]}" names < <(common/change list "$changes")
    for i in "${!names[@]}"; do
        name=${names[i]} stem=${names[i]} what="rung ${names[i]}" dims='' kernel='' file=${files[i]-}
        if ((i == 0)); then
            what="the chapter's last rung" && [[ $last != 10x_tf32 ]] || what='10x_tf32 itself'
        elif [[ ! $file ]]; then
            stem=${last%%_*}_${name//[^a-zA-Z0-9]/_} what=$name header=$(common/change header "$changes" "$name")
            dims=$(field d <<<"$header") kernel=$(field kernel <<<"$header") file=$(field file <<<"$header")
        fi
        step=$(step_of "$file")
        if ((i < ${#files[@]})); then cp "$file" "$work/$stem.cu"; else common/change apply "$changes" "$name" "$file" >"$work/$stem.cu" || exit 77; fi
        pass=fwd function=forward most=tiling type=fp32
        ! grep -q 'dtypes = .*BF16' "$file" || type=bf16
        grep -q tiling "$file" || most=forward_kernel
        ! grep -q '\.backward = ' "$file" || { pass=bwd function=backward most='backward_(?!kernel.*Lb1)[kt].*bfloat16'; }
        echo "$work/$stem" "$step" "$(dirname "$file")" "$function" >>"$work/libraries"
        for d in ${dims:-64 128}; do
            echo "$pass|$type|$last|$last|${kernel:-$most}|$stem|$d|$what" >>"$work/$pass-$type.txt"
            for kind in so log; do ln -s "$stem.$kind" "$work/${stem}_$d.$kind"; done
        done
    done
done
# shellcheck disable=SC2016 # $@ is the inner shell's
xargs -n 4 -P "$(nproc)" bash -c 'build "$@"' build <"$work/libraries"
for group in fwd-fp32 fwd-bf16 bwd-bf16; do # one process per pass and type
    [[ ! -e $work/$group.txt ]] || { mv "$work/$group.txt" "$work/forms.txt" && python3 -B plots/time_forms.py "$work" "$out"; }
done
