#!/usr/bin/env bash
# run.sh COMPILER [JOBS [LINKER]]: compile each program of this folder with COMPILER (simt-nvcc, or nvcc on a machine with a
# card), run it, and compare its output with its first line; do so again with what LINKER, another simt-nvcc, links. Prints what
# differs; exit status 1 when anything does.
set -uo pipefail
compiler=${1:?usage: run.sh COMPILER [JOBS [LINKER]]}
jobs=${2:-2}
linkers=$(printf '%s\n' "$compiler" "${@:3}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

try() { # FILE.cu
    local name=${1##*/} expected got status linker
    name=${name%.cu}
    expected=$(sed -n '1s|^// expect: ||p' "$1")
    [[ $expected ]] || { printf '%s: its first line expects nothing\n' "$name" && return; }
    if ! "$compiler" -std=c++17 -c "$1" -o "$work/$name.o" >"$work/$name.log" 2>&1; then
        printf '%s: does not compile\n' "$name"
        head -n 5 "$work/$name.log"
        return
    fi
    while read -r linker; do
        if ! "$linker" "$work/$name.o" -o "$work/$name" >"$work/$name.log" 2>&1; then
            printf '%s: %s does not link it\n' "$name" "$linker"
            head -n 5 "$work/$name.log"
            return
        fi
        got=$("$work/$name" 2>"$work/$name.err")
        status=$?
        rm -f "$work/$name"
        [[ $got == "$expected" && $status == 0 ]] ||
            printf '%s, linked by %s: "%s" instead of "%s", exit status %d\n%s\n' "$name" "$linker" "$got" "$expected" "$status" \
                "$(head -n 3 "$work/$name.err")"
    done <<<"$linkers"
    rm -f "$work/$name.o"
}
export -f try
export compiler linkers work
files=("$here"/*.cu)
# shellcheck disable=SC2016 # the file's name is bash -c's $0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'try "$0"' >"$work/failures"
cat "$work/failures"
[[ ! -s $work/failures ]] || exit 1
printf '%d programs\n' "${#files[@]}"
