#!/usr/bin/env bash
# A mutant's name: mutant_NAME, of a section of NN.changes; or barrier_STEP_[HEADER_]LINE, STEP without the barrier of that line
# of its kernels, or of a header beside them.
# mutant.sh tests DEVICE: for ctest (tests.cmake), a line for each mutant that can be caught there: its name, and `quick` or nothing.
# mutant.sh make NAME [BUILD]: its program, build/sim/tests/mutants/NAME (or of another build), and what it is made of.
# mutant.sh catch NAME BUILD: make it in a folder of its own and run it over a few problems; succeed, and remove the folder, when
# one of them catches it in the way that the change's header names, several joined by " or ":
#     caught by: wrong result | race | race between streams | another device | unwritten | out of bounds | misaligned | copy under way | barrier | asynchronous | deadlock
# or when it is right and yet its traffic is not the recorded one:
#     caught by: traffic
# or, where the program is that of tests/test_step.c with the broken kernels, when this test of it fails:
#     caught by: test NAME
# A line "problem: OPTIONS..." there names the only problem to run; SIMT_SHARED_KIB=N may stand among the options.
# mutant.sh spare PROGRAM: the same problems on a step that is not broken, which must pass them all.
# Exit status 77, "skipped": the kernel was edited and the change does not apply to it any more; with CI=true that fails.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=../../common/changed.sh
source "$root/common/changed.sh"
changes=${MUTANTS:-$root/tests/mutants} # another folder: for can_fail.sh
barriers='^[^/]*__sync(threads|warp)\('

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
    "--seq 330 --seq-kv 280 --dim 24 --causal"           # the same below d 64
    "--heads 2 --seq 130 --seq-kv 270 --dim 80 --causal" # multiples of 16
    # For steps that take grouped heads, and few queries.
    "--batch 2 --heads 6 --heads-kv 2 --seq 5 --seq-kv 270 --dim 72 --causal"
    "--heads 8 --heads-kv 1 --seq 8 --seq-kv 67 --dim 64 --causal"
    "--heads 4 --heads-kv 2 --seq 1 --seq-kv 1000 --dim 128 --input large"
    "--heads 16 --heads-kv 1 --seq 6 --seq-kv 450 --dim 40 --causal --scale 0.3"
    "--heads 3 --heads-kv 1 --seq 8 --seq-kv 5 --dim 128 --causal"
    # For steps with both passes and variants.
    "--pass both --heads 2 --seq 270 --seq-kv 130 --dim 128 --rotary halved"
    "--pass bwd --heads 2 --seq 130 --seq-kv 270 --dim 72 --causal"
    "--pass both --heads 4 --heads-kv 2 --seq 150 --seq-kv 187 --dim 64 --causal --rotary interleaved"
    "--pass bwd --seq 1 --seq-kv 300 --dim 128 --window 3,0" # keys that no query attends to
)

source_of() { # STEP, or the number that its name begins with; [MUTANT]: 15a_fwd_NAME is of 15a's file for the forward pass
    local path pass=''
    [[ ! ${2-} =~ ^[^_]+(_fwd|_bwd)_ ]] || pass=${BASH_REMATCH[1]}
    for path in "$root"/steps/"${1:0:2}"_*/; do
        if [[ $1 =~ ^[0-9]{2}[a-z] ]]; then path=$(compgen -G "$path$1*$pass.cu"); else path+=$(basename "${path:0:-1}" | cut -c 4-).cu; fi
    done
    echo "$path"
}

# For NAME: its `kernels`, the `file` of them that is broken and the `header` that says how it is caught.
look_up() {
    local section=${1#*_}
    [[ $1 =~ ^(mutant_[0-9]{2}|barrier_[0-9]{2}_.*_[0-9]+$) ]] || { echo "mutant.sh: \"$1\" is no name of a mutant" >&2 && exit 2; } # sed gets the number
    if [[ $1 == mutant_* ]]; then
        header=$("$root/common/change" header "$changes/${section:0:2}.changes" "$section") || exit 1
        kernels=$(source_of "${section%%_*}" "$section") file=$root/$(field file <<<"$header")
    else
        local beside
        header='caught by: race or copy under way or not initialised' line=${1##*_} section=${section%_*}
        kernels=$(source_of "${section:0:2}") beside=${kernels%/*} file=$kernels
        [[ $section == "${beside##*/}" ]] || file=$beside/${section#"${beside##*/}_"}.cuh
    fi
}

after_change() { # NAME: the text on standard output; exit status 1 where the change does not apply
    case $1 in
    mutant_*) "$root/common/change" apply "$changes/${1:7:2}.changes" "${1#mutant_}" "$file" ;;
    *) sed -n "${line}p" "$file" | grep -qE "$barriers" && sed -E "${line}s/__sync(threads|warp)\([^)]*\)/(void)0/" "$file" ;;
    esac
}

make_mutant() { # NAME BUILD FOLDER: into the folder; exit status 77 where the change does not apply
    local tests=() text
    mkdir -p "$3"
    text=$(after_change "$1") || { skip "$1" || exit; }
    case $header in
    *'caught by: test '*) tests=(--tests) ;;
    *'--dtype fp16'*) ;;
    *) only_bf16 "$3" ;;
    esac
    make_program "$2/bin/step-cc" "$kernels" "$file" "$3/$1" "${tests[@]}" <<<"$text" || exit 1
}

# The mutants of the barriers are of the last rungs. On a card a missing barrier shows or does not, as the warps happen to run; the
# simulated device decides by order. Nor has a card the meter, the other detectors and the SIMT_ switches.
list_tests() { # DEVICE
    local chapter file name line quick python=''
    command -v python3 >/dev/null && python=yes
    cd "$root" || exit 1
    awk -v device="$1" -v python="$python" '
        /^## / { name = substr($0, 4); caught = switches = quick = "" }
        /^caught by: / { caught = $0 }
        /^quick$/ { quick = $0 }
        /^problem: .*SIMT_/ { switches = 1 }
        /^file: / && (device == "sim" || !switches && caught ~ /wrong result|misaligned/) && (python || caught !~ /traffic/) {
            print "mutant_" name, quick
        }' "$changes"/*.changes
    [[ $1 == sim ]] || return 0
    for chapter in steps/[0-9][0-9]_*; do
        quick=quick # the first of the chapter; one of 15 takes 20 s
        [[ $chapter != steps/15_* ]] || quick=''
        for file in "$chapter/${chapter:9}.cu" "$chapter"/*.cuh; do
            name=${chapter#steps/}
            [[ $file == *.cu ]] || grep -q "\"${file##*/}\"" "$chapter/${chapter:9}.cu" "$chapter"/*.cuh || continue # of a rung below
            [[ $file == *.cu ]] || name+=_$(basename "$file" .cuh)
            while IFS=: read -r line _; do
                echo "barrier_${name}_$line $quick" && quick=''
            done < <(grep -nE "$barriers" "$file" 2>/dev/null | grep -v 'redundant: ')
        done
    done
}

# What the device says when it is this detector that stopped the kernel.
message_of() { # DETECTOR
    case $1 in
    race) echo 'race on .*\.cuh?:[0-9]+; .*\.cuh?:[0-9]+' ;;
    'race between streams') echo 'race between streams on .*\.cuh?:[0-9]+' ;;
    'another device') echo 'device [0-9]+ .*, while device [0-9]+ is current|which lies on device' ;;
    'copy under way') echo '\.cuh?:[0-9]+: access to .* asynchronous copy into it, issued at .*\.cuh?:[0-9]+, is under way' ;;
    'not initialised') echo 'at a barrier that no thread has initialised' ;;
    unwritten) echo '\.cuh?:[0-9]+: read of .* which nobody has written' ;;
    'out of bounds') echo '\.cuh?:[0-9]+: .* out of bounds|input that kernels may only read' ;;
    misaligned) echo '\.cuh?:[0-9]+: .* multiple of (8|16)|isaligned' ;;
    barrier) echo 'barrier' ;;
    asynchronous) echo 'asynchronous|async proxy|wgmma|(copy|store) of a tensor|mbarrier|tensor map|bar\.sync|cp\.async\.bulk' ;;
    deadlock) echo 'deadlock: no thread can go on' ;;
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
    [[ $program != *deterministic* ]] || options=("${options[-1]}" "${options[@]::${#options[@]}-1}") # by its name it is seen there
    for option in "${options[@]}"; do
        for problem in "${problems[@]}"; do
            # shellcheck disable=SC2086 # a problem is several words
            output=$(run_one "$program" $problem $option 2>&1)
            status=$?
            # A size that the step does not take says nothing, nor does one at which rounding may be as large as the result: eight bits.
            ((status == 2)) || [[ $output == *UNPROVEN* && $output != *WRONG* ]] || { "$@" "$status" "$output" "$problem $option" && return 0; }
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
    local folder found=1 output queries=(--seq 113)
    ! "$1" --describe | grep -q '"most_queries":[1-9]' || queries=(--seq 5 --heads-kv 1)
    output=$("$1" --heads 2 "${queries[@]}" --seq-kv 203 --dim 56 --causal --no-time 2>&1) || {
        printf 'not right, or stopped:\n%s\n' "$output"
        return 1
    }
    folder=$(mktemp -d)
    ln -s "$(realpath "$1")" "$folder/$2"
    # None: of a kernel that was not launched. One difference is enough, and ends the program that looks for more.
    grep -E -m 1 ': recorded ([0-9]+|None), now ([0-9]+|None)$' \
        < <(exec env -u TEST_FEWER python3 -B "$root/plots/record.py" meter --check "$folder" "$2" 2>&1) && found=0
    rm -r "$folder"
    return "$found"
}

fails_test() { # PROGRAM TEST
    local output
    output=$(env -u TEST_FEWER "$1" --filter "*$2" 2>&1) # the whole test, where it is left to .ci/run, too
    grep -E "\[(FAIL|CRASH)\].*::$2:?( |$)" <<<"$output" || {
        tail -n 3 <<<"$output"
        return 1
    }
}

is_wrong() { # STATUS OUTPUT PROBLEM
    (($1 != 0)) && printf '%s: exit status %d\n%s\n' "$3" "$1" "$2"
}

case $1 in
tests) list_tests "$2" ;;
make)
    build=${3:-$root/build/sim}
    look_up "$2"
    cmake --build "$build" --target step_cc_parts >"$build/mutant.log" 2>&1 || {
        tail "$build/mutant.log"
        exit 1
    }
    make_mutant "$2" "$build" "$build/tests/mutants/$2.made"
    mv "$build/tests/mutants/$2.made/$2" "$build/tests/mutants/$2"
    ;;
catch)
    look_up "$2"
    folder=$3/tests/mutants/$2.caught program=$folder/$2
    detectors=$(field 'caught by' <<<"$header" | sed 's/ or /\n/g')
    [[ $detectors ]] || {
        echo "$2 does not say what catches it"
        exit 1
    }
    make_mutant "$2" "$3" "$folder"
    case $detectors in
    traffic)
        has_other_traffic "$program" "$(step_of "$kernels")" || {
            echo 'its traffic is the recorded one, or it is not right'
            exit 1
        }
        ;;
    'test '*)
        fails_test "$program" "${detectors#test }" || {
            echo "not caught by the $detectors"
            exit 1
        }
        ;;
    *)
        if [[ $header == *$'\n'problem:* ]]; then mapfile -t problems < <(field problem <<<"$header"); fi
        run_problems "$program" is_caught "$detectors" || {
            echo "not caught by any of ${#problems[@]} problems"
            exit 1
        }
        ;;
    esac
    rm -r "$folder"
    ;;
spare) ! run_problems "$2" is_wrong ;;
esac
