#!/usr/bin/env bash
# launch_arguments.sh SIMT_NVCC: a launch whose arguments do not fit the kernel's parameters is one error that says so at the
# launch's line, and nothing else; arguments that convert are none.
set -euo pipefail
simt_nvcc=$(cd "$(dirname "$1")" && pwd)/${1##*/} # no realpath: it finds its parts beside this name
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

compile() { # LAUNCH...: prints the compiler's errors
    printf '__global__ void scale(float *x, int n, float by) { if ((int)threadIdx.x < n) x[threadIdx.x] *= by; }\n' >launch.cu
    printf 'void launch(double *d, float *x) {\n    (void)d, (void)x;\n    %s\n}\n' "$1" >>launch.cu
    "$simt_nvcc" -c launch.cu -o launch.o 2>&1 | grep 'error:' || true
}
expect() { # LAUNCH WORDS
    local errors
    errors=$(compile "$1")
    if [[ $(grep -c . <<<"$errors") != 1 || $errors != launch.cu:4:*"$2"* ]]; then
        printf '%s: expected one error with "%s", got:\n%s\n' "$1" "$2" "$errors" >&2
        exit 1
    fi
}

expect 'scale<<<1, 32>>>(d, 32, 2.0f);' "an argument of this launch has another type than the kernel's parameter"
expect 'int zero = 0; scale<<<1, 32>>>(zero, 32, 2.0f);' "an argument of this launch has another type than the kernel's parameter"
expect 'scale<<<1, 32>>>(x, 32);' 'this launch passes more or fewer arguments than the kernel takes'
expect 'scale<<<1, 32>>>(x, 32, 2.0f, x);' 'this launch passes more or fewer arguments than the kernel takes'
errors=$(compile 'scale<<<1, 32>>>(x, 32u, 2); scale<<<1, 32>>>(nullptr, {}, {}); scale<<<1, 32>>>(0, 32, 2);')
[[ -z $errors && -s launch.o ]] || { printf 'a launch that is right:\n%s\n' "$errors" >&2 && exit 1; }
