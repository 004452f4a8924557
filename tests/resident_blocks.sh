#!/usr/bin/env bash
# resident_blocks.sh BIN: chapter 13's fixed order of additions where the device lets fewer blocks run at once than it has multiprocessors,
# as a card does when another kernel holds some. Under a mask one block at a time is enough. Without one, the blocks of a group wait for
# each other: all of them must run at once, and the device says so where they cannot.
set -euo pipefail
program=$1/13_hopper_bwd
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

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
