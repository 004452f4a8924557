#!/usr/bin/env bash
# small.sh fingerprint PROGRAM: the fingerprint of a kernel changes with the last of 40 headers, and not with a comment in it.
# small.sh launch_arguments SIMT_NVCC: a launch whose arguments do not fit the kernel's parameters is one error that says so at the
# launch's line, and nothing else; arguments that convert are none.
# small.sh resident_blocks BIN: chapter 13's fixed order of additions where the device lets fewer blocks run at once than it has multiprocessors,
# as a card does when another kernel holds some. Under a mask one block at a time is enough. Without one, the blocks of a group wait for
# each other: all of them must run at once, and the device says so where they cannot.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

case ${1-} in
fingerprint)
    fingerprint=$(realpath "$2")
    cd "$folder"
    for ((i = 1; i <= 40; i++)); do
        echo "#include \"h$i.cuh\"" >>kernel.cu
        echo "int x$i;" >"h$i.cuh"
    done
    print() { "$fingerprint" kernel.cu out.c && cat out.c; }
    first=$(print)
    echo '// a comment' >>h40.cuh
    [[ $(print) == "$first" ]] || { echo 'a comment changes the fingerprint' && exit 1; }
    echo 'int y;' >>h40.cuh
    [[ $(print) != "$first" ]] || { echo 'the 40th header is not part of the fingerprint' && exit 1; }
    ;;
launch_arguments)
    simt_nvcc=$(cd "$(dirname "$2")" && pwd)/${2##*/} # no realpath: it finds its parts beside this name
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
    ;;
resident_blocks)
    program=$2/13_hopper_bwd

    run() { # STATUS MULTIPROCESSORS RESIDENT [OPTION]...: 5 blocks of keys
        local status=0
        SIMT_MULTIPROCESSORS=$2 SIMT_RESIDENT_BLOCKS=$3 "$program" --batch 1 --heads 1 --seq 200 --seq-kv 600 --dim 64 --deterministic --no-time \
            "${@:4}" >"$folder/output" 2>&1 || status=$?
        ((status == $1)) && return
        echo "status $status instead of $1 with $2 multiprocessors, $3 resident blocks, options: ${*:4}"
        cat "$folder/output"
        exit 1
    }
    run 0 4 1 --causal
    run 0 4 4
    run 0 1 1
    run 3 4 3
    grep -q 'deadlock: no thread can go on: .*hopper_bwd.cu:[0-9]* for another value of the semaphore' "$folder/output"
    SIMT_THREADS=1 run 0 4 4
    ;;
*) echo 'usage: small.sh fingerprint|launch_arguments|resident_blocks PROGRAM' >&2 && exit 2 ;;
esac
