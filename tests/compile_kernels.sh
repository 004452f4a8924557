#!/usr/bin/env bash
# Compiles every kernel file with nvcc for each target that it supports, where there is an nvcc. Exit status 1: one does not compile.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# The T4 of free notebooks, the A100 and the H100. 90a and not 90: wgmma and setmaxnreg exist only there. A kernel file that
# says compute_capability = 80, in its `struct step` or in a comment, is left out for older cards.
# shellcheck disable=SC2317 # called by xargs
compile_kernel() { # FILE: for all targets that it supports
    local file=$1 needed target targets=() log status=0
    needed=$(sed -nE 's/.*compute_capability = ([0-9]+).*/\1/p' "$file")
    for target in 75 80 90a; do
        ((${target%a} < ${needed:-0})) || targets+=(-gencode "arch=compute_$target,code=sm_$target")
    done
    log=$(mktemp)
    # Tensor-core kernels hold their tiles in registers, so a spill is a defect of them: ptxas reports it, and here it is an error.
    # Of the others it is asked whether they compile, which takes a third of the time with little optimisation.
    if [[ $file == steps/* ]] && ((${needed:-0} >= 80)); then targets+=(-Xptxas --warn-on-spills); else targets+=(-Xcicc -O1 -Xptxas -O1); fi
    nvcc -std=c++20 -O3 -Icommon -Icommon/cuda -Itests -Werror all-warnings "${targets[@]}" -c -o "$log.o" "$file" >"$log" 2>&1 || status=1
    ! grep -qi spill "$log" || status=1
    ((status == 0)) && echo "ok      $file" || echo "FAILED  $file"
    cat "$log"
    rm -f "$log" "$log.o"
    return "$status"
}
export -f compile_kernel

status=0
PATH="$PATH:/usr/local/cuda/bin"
summary='nvcc: skipped (compiling each kernel for sm_75, sm_80 and sm_90a): there is no nvcc here'
if command -v nvcc >/dev/null; then
    nvcc --version | tail -n 2
    files=(steps/*/*.cu steps/*/probes/*.cu docs/probes/*.cu tests/*.cu tests/steps/*.cu)
    # shellcheck disable=SC2016 # $1 is of the inner shell
    if printf '%s\n' "${files[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} bash -c 'compile_kernel "$1"' _ {}; then
        summary="nvcc: ${#files[@]} kernel files compiled"
    else
        status=1 summary='nvcc: a kernel file does NOT compile'
    fi
fi
printf '%s\n' "$summary"
exit "$status"
