#!/usr/bin/env bash
# mutant.sh make KERNELS FILE CHANGE BROKEN: copy KERNELS to BROKEN with a change in FILE: KERNELS itself, or a header,
# whose broken copy goes beside BROKEN. CHANGE: a patch, or barrier:LINE, a barrier to take out. Where the patch does not
# apply the copy does not compile, and the test says why.
# mutant.sh catch BUILD_FOLDER NAME PROGRAM STEP FILE CHANGE: run the broken program over a few problems; succeed when one
# of them catches it in the way that the patch names in its first line, several joined by " or ":
#     caught by: wrong result | race | unwritten | out of bounds | misaligned | copy under way | barrier
# or when it is right and yet its traffic is not the recorded one:
#     caught by: traffic
# or, where PROGRAM is the program of tests/test_step.c with the broken kernels, when this test of it fails:
#     caught by: test NAME
# A line "problem: OPTIONS..." after the first names the only problem to run; SIMT_SHARED_KIB=N may stand among the options.
# mutant.sh spare PROGRAM: the same problems on a step that is not broken, which must pass them all.
# Exit status 77, "skipped": the kernel was edited and the patch does not apply to it any more; with CI=true that fails.
set -uo pipefail

problems=(
    "--seq 33 --dim 40"
    "--batch 2 --heads 3 --seq 113 --seq-kv 203 --dim 59 --causal"
    "--seq 70 --seq-kv 33 --dim 64 --causal"
    "--seq 65 --dim 64 --input large"
    "--seq 257 --dim 128"
    "--seq 300 --seq-kv 2 --dim 64 --scale 50" # large |L|: what a masked pair lets through is not small
    "--heads 3 --seq 150 --seq-kv 187 --dim 34 --causal --scale 0.3"
    "--seq 200 --seq-kv 231 --dim 66 --causal"
    "--seq 130 --seq-kv 270 --dim 78"
    "--seq 640 --seq-kv 90 --dim 33"
    "--heads 2 --seq 130 --seq-kv 270 --dim 72 --causal" # several tiles for steps that take multiples of 8 only
)

applies() { # FILE CHANGE
    case $2 in
    barrier:*) sed -n "${2#barrier:}p" "$1" | grep -qE '__sync(threads|warp)\(' ;;
    *) patch --quiet --dry-run --force --output /dev/null "$1" "$2" >/dev/null 2>&1 ;;
    esac
}

make_broken() { # KERNELS FILE CHANGE BROKEN
    if [[ $1 != "$2" ]]; then
        cp "$1" "$4"
        set -- "" "$2" "$3" "${4%/*}/${2##*/}"
    fi
    shift
    if ! applies "$1" "$2"; then
        echo "#error ${2##*/} does not apply" >"$3"
    elif [[ $2 == barrier:* ]]; then
        sed -E "${2#barrier:}s/__sync(threads|warp)\([^)]*\)/(void)0/" "$1" >"$3"
    else
        patch --quiet --force --output "$3" "$1" "$2"
    fi
}

# What the device says when it is this detector that stopped the kernel.
message_of() { # DETECTOR
    case $1 in
    race) echo 'race on .*\.cuh?:[0-9]+; .*\.cuh?:[0-9]+' ;;
    'copy under way') echo '\.cuh?:[0-9]+: access to .* asynchronous copy into it, issued at .*\.cuh?:[0-9]+, is under way' ;;
    unwritten) echo '\.cuh?:[0-9]+: read of .* which nobody has written' ;;
    'out of bounds') echo '\.cuh?:[0-9]+: .* out of bounds|input that kernels may only read' ;;
    misaligned) echo '\.cuh?:[0-9]+: .* multiple of (8|16)|isaligned' ;;
    barrier) echo 'barrier' ;;
    esac
}

run_one() { # PROGRAM WORD...: words with = are variables of its environment
    local program=$1 word words=()
    shift
    for word; do
        if [[ $word == *=* ]]; then export "${word?}"; else words+=("$word"); fi
    done
    "$program" "${words[@]}" --no-time
}

run_problems() { # PROGRAM COMMAND...: calls COMMAND STATUS OUTPUT PROBLEM until it says 0
    local program=$1 problem output status options=('')
    shift
    # What only the deterministic pass of a step does is seen only there.
    "$program" --deterministic --no-time --no-check --seq 1 --dim 16 >/dev/null 2>&1 || (($? != 2)) && options+=(--deterministic)
    for option in "${options[@]}"; do
        for problem in "${problems[@]}"; do
            # shellcheck disable=SC2086 # a problem is several words
            output=$(run_one "$program" $problem $option 2>&1)
            status=$?
            # A size that the step does not take says nothing.
            ((status == 2)) || { "$@" "$status" "$output" "$problem $option" && return 0; }
        done
    done
    return 1
}

is_caught() { # DETECTORS STATUS OUTPUT PROBLEM
    local detector
    (($2 != 0)) || return 1
    while read -r detector; do
        if [[ $detector == 'wrong result' ]]; then
            (($2 == 1)) || continue
        else
            (($2 == 3)) && grep -qE "$(message_of "$detector")" <<<"$3" || continue
        fi
        printf 'caught, by %s: %s (exit status %d)\n%s\n' "$detector" "$4" "$2" "$3"
        return 0
    done <<<"$1"
    printf 'exit status %d in %s, but not by %s:\n%s\n' "$2" "$4" "${1//$'\n'/ or }" "$3"
    return 1
}

# Right results, and other counts than the recorded ones of the step.
has_other_traffic() { # PROGRAM STEP
    local folder found=1 output root
    root=$(cd "$(dirname "$0")/../.." && pwd)
    output=$("$1" --heads 2 --seq 113 --seq-kv 203 --dim 56 --causal --no-time 2>&1) || {
        printf 'not right, or stopped:\n%s\n' "$output"
        return 1
    }
    folder=$(mktemp -d)
    ln -s "$1" "$folder/$2"
    # None: of a kernel that was not launched. One difference is enough, and ends the program that looks for more.
    grep -E -m 1 ': recorded ([0-9]+|None), now ([0-9]+|None)$' \
        < <(exec python3 -B "$root/plots/record.py" meter --check "$folder" "$2" 2>&1) && found=0
    rm -r "$folder"
    return "$found"
}

fails_test() { # PROGRAM TEST
    local output
    output=$("$1" --filter "*$2" 2>&1)
    grep -E "\[(FAIL|CRASH)\].*::$2:?( |$)" <<<"$output" || {
        tail -n 3 <<<"$output"
        return 1
    }
}

is_wrong() { # STATUS OUTPUT PROBLEM
    (($1 != 0)) && printf '%s: exit status %d\n%s\n' "$3" "$1" "$2"
}

case $1 in
make) make_broken "$2" "$3" "$4" "$5" ;;
catch)
    folder=$2 name=$3 program=$4 step=$5 original=$6 change=$7
    if ! applies "$original" "$change"; then
        echo "SKIPPED $name: the kernel was edited, and ${change##*/} does not apply to it any more"
        [[ ${CI:-} == true ]] && exit 1
        exit 77
    fi
    detectors=$'race\ncopy under way'
    [[ $change == barrier:* ]] || detectors=$(sed -n 's/^caught by: //p; q' "$change" | sed 's/ or /\n/g')
    [[ $detectors ]] || {
        echo "${change##*/} does not say in its first line what catches it"
        exit 1
    }
    "$(dirname "$0")/../built.sh" "$folder" "$name" -- true || exit 1
    case $detectors in
    traffic)
        has_other_traffic "$program" "$step" || {
            echo 'its traffic is the recorded one, or it is not right'
            exit 1
        }
        exit 0
        ;;
    'test '*)
        fails_test "$program" "${detectors#test }" && exit 0
        echo "not caught by the $detectors"
        exit 1
        ;;
    esac
    if [[ $change != barrier:* ]] && grep -q '^problem: ' "$change"; then
        mapfile -t problems < <(sed -n 's/^problem: //p' "$change")
    fi
    run_problems "$program" is_caught "$detectors" || {
        echo "not caught by any of ${#problems[@]} problems"
        exit 1
    }
    ;;
spare) ! run_problems "$2" is_wrong ;;
esac
