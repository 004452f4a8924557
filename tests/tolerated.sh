#!/usr/bin/env bash
# tolerated.sh SIMT_NVCC: what a card tolerates is told with its lines and counted, is an error when strict, and its twin is
# silent; a fault that looks like it stays one, though the program ignores all errors, and though it is compiled with -DNDEBUG.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -DNDEBUG "$here/tolerated.cu" -o "$work/tolerated" || exit 1
failed=0

line_of() { # KERNEL WHICH: the line number of its WHICH-th "// here"
    awk -v kernel="void $1(" -v left="$2" '/__global__|^static void/ { on = index($0, kernel) } on && /\/\/ here$/ && left-- > 0 { print NR }' \
        "$here/tolerated.cu"
}

expect() { # STRICT NAME STATUS WORDS...: each of the words must be in standard error; none: it must be empty
    local strict=$1 name=$2 status=$3 got word
    shift 3
    SIMT_STRICT=$strict "$work/tolerated" "$name" >/dev/null 2>"$work/err"
    got=$?
    if [[ $got != "$status" ]]; then
        printf '%s, strict %s: exit status %s instead of %s\n' "$name" "$strict" "$got" "$status"
        failed=1
    fi
    for word in "$@"; do
        if ! grep -qF -- "$word" "$work/err"; then
            printf '%s, strict %s: no "%s" in:\n%s\n' "$name" "$strict" "$word" "$(cat "$work/err")"
            failed=1
        fi
    done
    if (($# == 0)) && [[ -s $work/err ]]; then
        printf '%s, strict %s: not silent:\n%s\n' "$name" "$strict" "$(cat "$work/err")"
        failed=1
    fi
}

names=(same_value same_byte unwritten early_return two_lines cas_double cas_max early_exit labels read_before in_rounds same_bits flag_of_search)
for name in "${names[@]}"; do
    mapfile -t lines < <(line_of "$name" 9)
    expect 0 "$name" 0 "warning in kernel $name" "${lines[@]/#/tolerated.cu:}" 'SIMT_STRICT=1 makes it an error'
    expect 1 "$name" 3 "in kernel $name" "tolerated.cu:${lines[0]}"
    expect 0 "${name}_twin" 0
    expect 1 "${name}_twin" 0
done
# In each order of the blocks, and each number of CPU threads: what is tolerated never depends on them.
faults=0
mapfile -t fault_names < <(sed -n 's/^__global__ void \([a-z_]*_fault\)(.*/\1/p' "$here/tolerated.cu")
for name in "${fault_names[@]}"; do
    [[ $name != two_lines_fault ]] || continue
    mapfile -t lines < <(line_of "$name" 9)
    for seed in 0 1 2 3; do
        export SIMT_SHUFFLE_SEED=$seed SIMT_THREADS=$((seed % 2 + 1))
        expect 0 "$name" 3 'race on' "${lines[@]/#/tolerated.cu:}"
    done
    faults=$((faults + 1))
done
for seed in {1..20}; do
    for name in cas_double cas_max early_exit labels flag_of_search; do
        export SIMT_SHUFFLE_SEED=$seed SIMT_THREADS=$((seed % 3 + 1))
        expect 0 "$name" 0 "warning in kernel $name"
        expect 1 "$name" 3 'race on'
    done
done
unset SIMT_SHUFFLE_SEED SIMT_THREADS

hosts=(tail copied_tail padding managed managed_write copy first_copy other_stream old_event refilled host_function)
written=$(grep -n '// written$' "$here/tolerated.cu")
for name in "${hosts[@]}"; do
    line=$(line_of "$name" 1)
    expect 0 "$name" 0 "warning tests/tolerated.cu:$line: " "1 time tests/tolerated.cu:$line: "
    expect 1 "$name" 3 "simulated device: tests/tolerated.cu:$line: "
    expect 0 "${name}_twin" 0
    expect 1 "${name}_twin" 0
done
expect 0 tail 0 'nobody has written 4 of the 64 elements, the first is device[60] (cudaMalloc, tests/tolerated.cu:'$(($(line_of tail 1) - 2))'), counted in 4-byte elements' \
    "; the rest was written at tests/tolerated.cu:${written%%:*}"
for name in tail root_of_tail; do
    [[ $(SIMT_STRICT=0 "$work/tolerated" "$name" 2>/dev/null) == wrong ]] || { echo "$name: the usual check passes what nobody has written"; failed=1; }
done
expect 0 other_stream 0 ' in stream 1 (made at tests/tolerated.cu:'
expect 0 refilled 0 'nothing has waited for the asynchronous copy out of it'
expect 0 host_function 0 'nothing has waited for the host function that writes it'
mapfile -t lines < <(line_of race_between_streams_fault 9)
expect 0 race_between_streams_fault 3 'race between streams on data[0]' "${lines[@]/#/tolerated.cu:}" # no error of the device is asked for
expect 1 race_between_streams_fault_twin 0
expect 0 update_fault 3 '+=` reads and writes: use atomicAdd,'
expect 0 same_bits 0 '|=` reads and writes: use atomicOr,'
# An explanation is given once: for a second place, and at the end, only what happened there.
expect 0 two_reads 0 "tolerated.cu:$(line_of two_reads 1)" '; as above'
[[ $(grep -c 'all stores to it so far store one value' "$work/err") == 1 && $(grep -c 'nothing orders the two' "$work/err") == 4 ]] || { echo 'two_reads: the explanation is repeated:' && cat "$work/err" && failed=1; }
expect 0 two_lines_fault 3 'divergent barrier' "tolerated.cu:$(line_of two_lines_fault 1)"
[[ $failed == 0 ]] && echo "tolerated: $((${#names[@]} + ${#hosts[@]})) warnings and their twins, and $((faults + 1)) faults"
exit "$failed"
