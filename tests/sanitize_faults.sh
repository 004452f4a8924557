#!/usr/bin/env bash
# sanitize_faults.sh [FOLDER]: every planted fault, its correct twin and every correct pattern under the four tools of
# compute-sanitizer, on a machine with a card. FOLDER holds fault_runner (default: build/cuda/tests). Prints a line of
# JSON for each, sorted by name:
#
#     {"fault": "tail_read_global", "twin": false, "alone": "error", "memcheck": "found", "racecheck": "clean", ...}
#
# alone: how the program ends without a tool: clean, error (the device reports one), wrong (a twin's result), hang,
# crash (the host did what it must not).
# A tool says clean, found, hang (20 seconds were not enough) or failed (the tool itself could not run).
# Exit status 0; 77, "skipped", where it cannot run; 1 when a correct kernel does not hold by itself.
set -uo pipefail

if [[ ${1-} == --one ]]; then
    runner=$2 name=$3 twin=$4
    arguments=("$name")
    [[ $twin == true ]] && arguments+=(--twin)
    result="{\"fault\": \"$name\", \"twin\": $twin"
    timeout --kill-after=2 20 "$runner" "${arguments[@]}" >/dev/null 2>&1
    status=$?
    case $status in
    0) verdict=clean ;;
    1) verdict=error ;;
    3) verdict=wrong ;;
    124 | 137) verdict=hang ;;
    136 | 139) verdict=crash ;;
    *) verdict=failed ;;
    esac
    result+=", \"alone\": \"$verdict\""
    for tool in memcheck racecheck initcheck synccheck; do
        options=(--tool "$tool" --error-exitcode 9)
        # Errors and warnings of racecheck both count; an error of the CUDA API is the kernel's, told by memcheck.
        [[ $tool == racecheck ]] && options+=(--racecheck-report all)
        output=$(timeout --kill-after=2 20 compute-sanitizer "${options[@]}" "$runner" "${arguments[@]}" 2>&1)
        status=$?
        if ((status == 124 || status == 137)); then
            verdict=hang
        elif ((status == 9)); then
            verdict=found
        elif grep -qE "(ERROR|RACECHECK) SUMMARY: [1-9]" <<<"$output"; then
            verdict=found
        elif grep -qE "(ERROR|RACECHECK) SUMMARY: 0 " <<<"$output"; then
            verdict=clean
        else
            verdict=failed
        fi
        result+=", \"$tool\": \"$verdict\""
    done
    echo "$result}" # one write: lines of parallel runs stay whole
    exit 0
fi

folder=${1:-$(dirname "$0")/../build/cuda/tests}
runner=$folder/fault_runner
skip() {
    echo "SKIPPED sanitize_faults: $1"
    exit 77
}
nvidia-smi -L >/dev/null 2>&1 || skip "this machine has no CUDA card"
command -v compute-sanitizer >/dev/null || skip "compute-sanitizer of the CUDA toolkit is not on PATH"
[[ -x $runner ]] || skip "$runner is not built (cmake --preset cuda && cmake --build --preset cuda)"

lines=$({
    "$runner" --list | sed 's/$/ false/'
    "$runner" --list | sed 's/$/ true/'
    "$runner" --list-patterns | sed 's/$/ true/'
} | xargs -P "${JOBS:-8}" -L 1 "$0" --one "$runner" | sort)
echo "$lines"
# A kernel that is right must run clean by itself. A tool may warn of a race that is meant: told, not counted.
bad=$(grep '"twin": true' <<<"$lines" | grep -v '"alone": "clean"')
if [[ -n $bad ]]; then
    echo "correct kernels that do not hold:" >&2
    echo "$bad" >&2
    exit 1
fi
