#!/usr/bin/env bash
# Other forms of a kernel: each change (common/change) of steps/*/forms.changes is one. Above it may stand:
#     after: NAME    it is a form of this other form
#     d: 64          it is for this d only; without the line for 64 and 128
#     kernel: REGEX  whose spills are reported, by its mangled name
# A form may be of another kernel file than the first change of its file.
# plots/forms.sh sim [NAME...]           checks all forms, or those that are named (a chapter's number names all of its), on the simulated
#                                        device at a few sizes; exit status 77: a kernel was edited, and a form does not begin from it
# plots/forms.sh card OUT.jsonl [STEP]   builds all, or a chapter's, for compute capability 9.0, checks them on the card, and times them, the
#                                        kernels themselves and PyTorch's in turns: needs nvcc, a card and PyTorch
set -euo pipefail
usage="plots/forms.sh sim [NAME...] or plots/forms.sh card OUT.jsonl [STEP]" mode=${1?$usage} chapter=''
[[ $mode == sim || ($mode == card && $# -ge 2 && $# -le 3) ]] || { echo "$usage" >&2 && exit 2; }
out=$(realpath -m "${2-.}")
[[ $mode == sim ]] || chapter=${3-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work

step_of() { # FILE
    case $(basename "$1") in [0-9]*) basename "$1" .cu ;; *) basename "$(dirname "$1")" ;; esac
}
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
status=0
check() { # STEM STEP FOLDER D...: on the simulated device
    local wrong=0 d problem
    build/sim/bin/step-cc "$1.cu" -o "$1" --like "$2" -- "-I$3"
    for d in "${@:4}"; do
        for problem in "--dim $d --seq 200 --seq-kv 333 --causal" "--dim $((d - 8)) --seq 140 --seq-kv 70 --causal" "--dim $((d / 2)) --seq 99" \
            "--dim $d --seq 1 --seq-kv 1" "--dim $d --seq 300 --input large" "--dim $d --seq 257"; do
            # shellcheck disable=SC2086 # options
            "$1" $problem --heads 1 --no-time >"$1.out" 2>&1 || { echo "$1: $problem: $?" && cat "$1.out" && wrong=1; }
        done
    done
    [[ $wrong == 0 ]] && echo "$(basename "$1"): checked" || status=1
}

for changes in steps/"$chapter"*/forms.changes; do
    first=$(sed -n 's/^file: //p' "$changes" | head -n 1)
    last=$(step_of "$first")
    while IFS= read -r name; do
        [[ $mode == card || $# == 1 || " ${*:2} " == *" $name "* || " ${*:2} " == *" ${last%%[!0-9]*} "* ]] || continue
        stem=$last what="the chapter's last rung" dims='64 128' file=$first kernel=''
        [[ $stem != 10x_tf32 ]] || what='10x_tf32 itself'
        if [[ $name != "$last" ]]; then
            stem=${last%%_*}_${name//[^a-zA-Z0-9]/_} what=$name header=$(common/change header "$changes" "$name")
            dims=$(sed -n 's/^d: //p' <<<"$header") kernel=$(sed -n 's/^kernel: //p' <<<"$header") file=$(sed -n 's/^file: //p' <<<"$header")
        fi
        step=$(step_of "$file")
        if [[ $name == "$last" ]]; then cp "$file" "$work/$stem.cu"; else common/change apply "$changes" "$name" "$file" >"$work/$stem.cu" || exit 77; fi
        if [[ $mode == sim ]]; then
            # shellcheck disable=SC2086 # words
            check "$work/$stem" "$step" "$(dirname "$file")" ${dims:-64 128}
            continue
        fi
        pass=fwd function=forward most=tiling
        grep -q tiling "$file" || most=forward_kernel
        ! grep -q '\.backward = ' "$file" || { pass=bwd function=backward most='backward_(?!kernel.*Lb1)[kt].*bfloat16'; }
        echo "$work/$stem" "$step" "$(dirname "$file")" "$function" >>"$work/libraries"
        for d in ${dims:-64 128}; do
            echo "$pass|$last|$last|${kernel:-$most}|$stem|$d|$what" >>"$work/$pass.txt"
            for kind in so log; do ln -s "$stem.$kind" "$work/${stem}_$d.$kind"; done
        done
    done < <(echo "$last" && common/change list "$changes")
done
if [[ $mode == card ]]; then
    # shellcheck disable=SC2016 # $@ is the inner shell's
    xargs -n 4 -P "$(nproc)" bash -c 'build "$@"' build <"$work/libraries"
    for pass in fwd bwd; do # one process per pass
        [[ ! -e $work/$pass.txt ]] || { mv "$work/$pass.txt" "$work/forms.txt" && python3 -B plots/time_forms.py "$work" "$out"; }
    done
fi
exit "$status"
