#!/usr/bin/env bash
# same_answers.sh OLD NEW: what the programs of two build folders say of the same problems is identical but for paths, line
# numbers and times: the JSON of every chapter and rung with the meter's counts, a trace, and the message of each planted fault.
# For a change of what stands around the kernels: build the commit before it elsewhere, with the target fault_runner, and
# compare. Prints each difference; exit status 0 when there is none, 1 when there is one, 2 where a folder lacks the programs.
set -uo pipefail
usage() { sed -n '2,5s/^# //p' "$0" >&2 && exit 2; }
(($# == 2)) && [[ -x $1/tests/fault_runner && -x $2/tests/fault_runner ]] || usage
readonly old=$1 new=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SIMT_THREADS=1 # the order in which blocks run decides whom a message names

without_places() { # paths, lines, times, and what a build says of itself
    sed -E 's#[A-Za-z_0-9/.-]+[.](cuh?|c|h)\b(:[0-9]+)?#FILE#g; s#"(line|ms[a-z_0-9]*|tflops|host_seconds)": ?[0-9.e+-]+#"\1":N#g
        s#"(commit|date|fingerprint|file)": ?"[^"]*"#"\1":""#g; s#\(?lines? [0-9]+#line N#g; s# +# #g
        s#"basic_block_counts":\[[0-9,]*\]#"basic_block_counts":[]#g' # of addresses in the code
}

answers() { # BUILD RESULTS
    local program size name json
    mkdir -p "$2"
    for program in "$1"/bin/[0-9][0-9]*; do
        name=${program##*/} json=$folder/line
        [[ -x $old/bin/$name && -x $new/bin/$name ]] || continue
        for size in '--seq 96 --dim 64' '--heads 2 --seq 113 --seq-kv 75 --dim 56 --causal'; do
            rm -f "$json"
            # shellcheck disable=SC2086 # a problem is several words
            "$program" $size --no-time --meter --json "$json" >"$2/$name$size" 2>&1
            echo "exit status $?" >>"$2/$name$size"
            cat "$json" >>"$2/$name$size" 2>&1
        done
        "$program" --seq 40 --dim 32 --no-time --trace "$2/$name trace" >"$folder/log" 2>&1
    done
    for name in $("$old/tests/fault_runner" --list); do
        { timeout 60 "$1/tests/fault_runner" "$name" >"$2/fault $name" 2>&1; } 2>"$folder/log" # the shell tells of signals
        echo "exit status $?" >>"$2/fault $name"
    done
    for name in "$2"/*; do without_places <"$name" >"$folder/text" && mv "$folder/text" "$name"; done
}

answers "$1" "$folder/old"
answers "$2" "$folder/new"
diff -r "$folder/old" "$folder/new" && echo "identical: $(find "$folder/old" -type f | wc -l) answers"
