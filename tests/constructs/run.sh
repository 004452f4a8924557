#!/usr/bin/env bash
# run.sh COMPILER [JOBS [LINKER]]: compile each program of this folder with COMPILER (simt-nvcc, or nvcc on a machine with a
# card), run each construct in it by itself, and compare its output with what it lists; do so again with what LINKER, another
# simt-nvcc, links. Prints what differs; exit status 1 when anything does.
set -uo pipefail
compiler=${1:?usage: run.sh COMPILER [JOBS [LINKER]]}
jobs=${2:-2}
linkers=$(printf '%s\n' "$compiler" "${@:3}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

try() { # FILE.cu
    local theme=${1##*/} listed name expected got status linker
    theme=${theme%.cu}
    if ! "$compiler" -std=c++17 -c "$1" -o "$work/$theme.o" >"$work/$theme.log" 2>&1; then
        printf '%s: does not compile\n' "$theme"
        head -n 5 "$work/$theme.log"
        return
    fi
    while read -r linker; do
        if ! "$linker" "$work/$theme.o" -o "$work/$theme" >"$work/$theme.log" 2>&1; then
            printf '%s: %s does not link it\n' "$theme" "$linker"
            head -n 5 "$work/$theme.log"
            return
        fi
        listed=$("$work/$theme") && [[ $listed ]] || printf '%s: lists no construct\n' "$theme"
        while IFS=$'\t' read -r name expected; do
            echo "$name" >>"$work/$theme.names"
            got=$("$work/$theme" "$name" 2>"$work/$theme.err" </dev/null)
            status=$?
            [[ $got == "$expected" && $status == 0 ]] ||
                printf '%s: %s, linked by %s: "%s" instead of "%s", exit status %d\n%s\n' "$theme" "$name" "$linker" "$got" "$expected" \
                    "$status" "$(head -n 3 "$work/$theme.err")"
        done <<<"$listed"
        rm -f "$work/$theme"
    done <<<"$linkers"
    rm -f "$work/$theme.o"
}
export -f try
export compiler linkers work
files=("$here"/*.cu)
# shellcheck disable=SC2016 # the file's name is bash -c's $0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'try "$0"' >"$work/failures"
cat "$work/failures"
[[ ! -s $work/failures ]] || exit 1
printf '%d constructs in %d programs\n' "$(sort -u "$work"/*.names | wc -l)" "${#files[@]}"
