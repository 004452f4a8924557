# shellcheck shell=bash
# ./run.sh try, start, grade, handout and new. Sourced by run.sh, which defines die, choose_one, install_missing and the steps.
# shellcheck disable=SC2154,SC1091

abilities() { # NAME: what two steps must share to be compared
    grep -oE '\.(for|back)ward =|\.dtypes' "$(step_file "$1")"
}

build_grader() { # configured only once: cmake sees for itself when its files change
    install_missing >&2
    mkdir -p build/sim
    [[ -e build/sim/bin/exercise ]] || echo 'Building the grader, once: about half a minute' >&2
    [[ -e build/sim/Makefile || -e build/sim/build.ninja ]] || cmake --preset sim >build/sim/grader.log 2>&1 ||
        die "$exit_wrong" 'cmake failed; see build/sim/grader.log'
    cmake --build --preset sim --parallel "$(getconf _NPROCESSORS_ONLN)" --target exercise >build/sim/grader.log 2>&1 ||
        die "$exit_wrong" 'the grader does not compile; see build/sim/grader.log'
}

show_on_card() { # LABEL STEP SIZES...: its time and registers
    local line registers
    compile cuda "$2" >/dev/null && line=$("build/cuda/bin/$2" "${@:3}" --no-check --json - 2>/dev/null | grep ms_median | tail -n 1) || line=''
    registers=$(cuobjdump --dump-resource-usage build/cuda/CMakeFiles/"kernels_$2.dir/$(step_file "$2")".o 2>/dev/null | grep -oE 'REG:[0-9]+' | sort -t: -k2 -rnu | cut -d: -f2 | paste -sd ' ')
    [[ ! $line =~ \"device\":\ *\"([^\"]*)\".*\"ms_median\":\ *([0-9.e-]+) ]] ||
        printf '  %s, %s: %.4g ms, registers per thread of its kernels: %s\n' "${BASH_REMATCH[1]}" "$1" "${BASH_REMATCH[2]}" "${registers:-not known}"
}

try_job() { # STEP [--against STEP] [--watch] [SIZES]
    local step other='' watch='' file other_file label name before='' seen='' origin='' status heads=2 seq=128 seq_kv='' dim=64 causal=0 ragged=1 most
    choose_one "${1-}"
    step=${steps[0]} file=$(step_file "$step")
    shift
    while (($# > 0)); do
        case $1 in
        --watch) watch=yes ;;
        --causal) causal=1 ;;
        --against | --heads | --seq | --seq-kv | --dim)
            (($# > 1)) || die "$exit_usage" "$1 needs a value"
            name=${1#--} && name=${name/-/_}
            [[ $1 == --against || ($2 =~ ^[1-9][0-9]{0,3}$ && ($1 != --dim || $2 -le 128)) ]] ||
                die "$exit_usage" "$1 takes a whole number, not \"$2\""
            [[ ! $1 =~ seq|dim ]] || ragged=0 # who asks for a size gets that size only
            if [[ $1 == --against ]]; then choose_one "$2" && other=${steps[0]}; else printf -v "$name" %s "$2"; fi
            shift
            ;;
        *) die "$exit_usage" "try takes a step, --against STEP, --watch and sizes, not \"$1\"" ;;
        esac
        shift
    done
    most=$(sed -nE 's/.*\.most_queries = ([0-9]+).*/\1/p' "$file")
    ((seq <= ${most:-$seq})) || seq_kv=${seq_kv:-$seq} seq=$most ragged=0 # a step for few queries takes as many keys
    other_file=$(step_file "$other") label=$other
    if [[ -z $other ]]; then # the committed version, where that is another one; what it was copied from; or the rung before with the same pass
        other_file=build/committed.cu label=committed
        mkdir -p build
        if ! git show "HEAD:./$file" >"$other_file" 2>/dev/null || cmp -s "$other_file" "$file"; then
            name=$(cat "${file%/*}/begun_as" 2>/dev/null) || name=''
            if [[ -e $(step_file "${name:-none}") ]]; then
                before=$name
            else
                for name in "${all_steps[@]}"; do
                    [[ $name != "$step" ]] || break
                    [[ -e $(step_file "$name") ]] || continue
                    ! grep -q '\.beside =' "$(step_file "$name")" || continue
                    if [[ $(abilities "$name") == "$(abilities "$step")" ]]; then before=$name; fi
                done
            fi
            label=${before:-$step} other_file=$(step_file "$label")
        fi
    fi
    local -a on_card=(--batch 1 --heads "$heads" --seq "$seq" --seq-kv "${seq_kv:-$seq}" --dim "$dim")
    ((causal == 0)) || on_card+=(--causal)
    build_grader
    while :; do
        if [[ $(stat -c %y "$file") != "$seen" ]]; then
            seen=$(stat -c %y "$file") status=0
            if [[ $label == committed ]]; then origin=$file; else origin=$other_file; fi
            build/sim/bin/exercise try "$step" "$file" "$file" "$file" "$label" "$origin" "$other_file" "$origin" \
                "$heads" "$seq" "${seq_kv:-$seq}" "$dim" "$causal" "$ragged" || status=$?
            if find_nvcc && have_card; then
                [[ $label == committed ]] || show_on_card "$label" "$label" "${on_card[@]}"
                show_on_card yours "$step" "${on_card[@]}"
            fi
        fi
        [[ $watch ]] || return "$status"
        sleep 0.5
    done
}

start_job() { build_grader && exec build/sim/bin/exercise start "$@"; }
grade_job() {
    build_grader
    [[ " $* " == *' --all '* || " $* " == *' --csv '* ]] || exec build/sim/bin/exercise grade "$@"
    have python3 || die "$exit_missing" 'grade --all needs python3'
    trap '' INT # while Python starts; its script asks for the signal again
    exec python3 -B exercises/class.py "$invoked_from" "$@"
}

handout_job() {
    have python3 || die "$exit_missing" 'handout needs python3'
    [[ -e exercises/handout.py ]] || die "$exit_missing" 'a handout cannot make another: exercises/handout.py is not here'
    (trap '' INT && exec python3 -B exercises/handout.py --check "$invoked_from" "$@")
    build_grader
    compile sim "${all_steps[@]}" >&2 || die "$exit_wrong" 'a step does not compile; see build/sim/build.log'
    trap '' INT
    exec python3 -B exercises/handout.py "$invoked_from" "$@"
}
new_job() { source steps/new.sh; }
