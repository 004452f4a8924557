# shellcheck shell=bash
# ./run.sh try, start, grade, handout and new. Sourced by run.sh, which defines die, choose_one, install_missing and the steps.
# shellcheck disable=SC2154,SC2034,SC1091

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

show_on_card() { # LABEL STEP OPTIONS...: its time and registers
    local line='' registers preset=cuda few
    if compile cuda "$2" >/dev/null; then
        read -ra few < <(few_queries "${@:2}") || true
        line=$("build/cuda/bin/$2" "${@:3}" "${few[@]}" --no-check --json - 2>/dev/null | grep ms_median | tail -n 1) || line=''
    fi
    registers=$(cuobjdump --dump-resource-usage build/cuda/CMakeFiles/"kernels_$2.dir/$(step_file "$2")".o 2>/dev/null | grep -oE 'REG:[0-9]+' | sort -t: -k2 -rnu | cut -d: -f2 | paste -sd ' ')
    [[ ! $line =~ \"device\":\ *\"([^\"]*)\".*\"ms_median\":\ *([0-9.e-]+) ]] ||
        printf '  %s, %s: %.4g ms, registers per thread of its kernels: %s\n' "${BASH_REMATCH[1]}" "$1" "${BASH_REMATCH[2]}" "${registers:-not known}"
}

# A page with the explorer of both kernels, from traces of their first blocks. The programs are step-cc's: of any kernel file.
view_both() { # STEP FILE LABEL OTHER_FILE OPTIONS...
    local folder=build/try name most command=(--batch 1 --heads 2 --dim 64 "${@:5}" --no-check --no-time)
    most=$(sed -nE 's/.*\.most_queries = ([0-9]+).*/\1/p' "$2")
    [[ ! $most ]] || command=(--seq-kv 128 "${command[@]}" --seq "$most") # of a step for few queries
    local -A files=([yours]=$2 ["$3"]=$4)
    rm -rf $folder && mkdir -p $folder
    for name in "$3" yours; do
        if ! build/sim/bin/step-cc "${files["$name"]}" -o "$folder/$name" >$folder/log 2>&1; then
            say "  --view: no page, since this kernel does not compile: $name" && return
        fi
        say "$name ${command[*]}" >"$folder/$name.command"
        "$folder/$name" "${command[@]}" --trace "$folder/$name.trace" --json "$folder/$name.json" >$folder/log 2>&1 ||
            say "  --view: the page of this kernel ends where it failed: $name"
    done
    python3 -B book/walk.py $folder "${4%/*}" "$3" yours || { say '  --view: no page can be made of these traces' && return; }
    say "  both step by step: file://$PWD/$folder/beside.html"
    [[ ! ${DISPLAY-}${WAYLAND_DISPLAY-} ]] || ! have xdg-open || xdg-open "$folder/beside.html" >/dev/null 2>&1 || true
}

try_job() { # STEP [--against STEP] [--watch] [--view] [OPTIONS]
    local step other='' watch='' view='' file other_file label name base before='' seen='' changed status alone=0
    local -a options=(--seq 128)
    choose_one "${1-}"
    step=${steps[0]} file=$(step_file "$step")
    shift
    [[ " $*" != *' --lengths'* || " $*" == *' --page-size'* ]] || options=() # lengths without pages are the size
    while (($# > 0)); do
        [[ $1 != --*=* ]] || set -- "${1%%=*}" "${1#*=}" "${@:2}"
        [[ $1 =~ ^--(watch|view|against|causal|batch|heads|pass)$ ]] || alone=1 # who asks for a size or a variant gets that problem only
        case $1 in
        --watch) watch=yes ;;
        --view)
            [[ -e book/walk.py ]] || die "$exit_usage" '--view: a handout has no explorer, it is of the whole book'
            have python3 || die "$exit_missing" '--view needs python3'
            view=yes
            ;;
        --causal | --alibi) options+=("$1") ;;
        --against | --batch | --heads | --heads-kv | --seq | --seq-kv | --dim | --pass | --window | --softcap | --dropout | --rotary | --lengths | --page-size)
            (($# > 1)) || die "$exit_usage" "$1 needs a value"
            if [[ $1 == --against ]]; then choose_one "$2" && other=${steps[0]}; else options+=("$1" "$2"); fi
            shift
            ;;
        *) die "$exit_usage" "try takes a step, --against STEP, --watch, --view, sizes and variants, not \"$1\"" ;;
        esac
        shift
    done
    other_file=$(step_file "$other") label=$other
    if [[ -z $other ]]; then # the committed version, where that is another one; what it was copied from; or the rung before with the same pass
        rm -rf build/committed && mkdir -p build/committed
        changed=0 && git diff --quiet HEAD -- "$file" "${file%/*}/*.cuh" 2>/dev/null || changed=$?
        if ((changed == 1)) && git archive HEAD "${file%/*}" 2>/dev/null | tar -x -C build/committed 2>/dev/null && [[ -e build/committed/$file ]]; then
            label=committed other_file=build/committed/$file
        else
            name=$(cat "${file%/*}/begun_as" 2>/dev/null) || name=''
            if [[ -e $(step_file "${name:-none}") ]]; then
                before=$name
            else
                base=$(sed -n 's/.*\.beside = ".*chapter \([0-9]*\).*/\1/p' "$file") # of which chapter's kernel it is a variant
                for name in "${all_steps[@]}"; do
                    [[ $name != "$step" ]] || break
                    [[ ! $base || $name == "${base}_"* ]] || continue
                    [[ -e $(step_file "$name") ]] || continue
                    ! grep -q '\.beside =' "$(step_file "$name")" || continue
                    grep -q '\.most_queries =' "$file" || ! grep -q '\.most_queries =' "$(step_file "$name")" || continue
                    if [[ $(abilities "$name") == "$(abilities "$step")" ]]; then before=$name; fi
                done
            fi
            label=${before:-$step} other_file=$(step_file "${before:-$step}")
            ((changed)) || label=${before:-committed} # git says that it is
        fi
    fi
    build_grader
    while :; do
        changed=$(stat -c %y "${file%/*}"/*.cu*)
        if [[ $changed != "$seen" ]]; then
            seen=$changed status=0
            build/sim/bin/exercise try "$step" "$file" "$label" "$other_file" "${options[*]}" "$alone" || status=$?
            if find_nvcc && have_card; then
                [[ $label == committed ]] || show_on_card "$label" "$label" "${options[@]}"
                show_on_card yours "$step" "${options[@]}"
            fi
            [[ ! $view || $status == "$exit_usage" ]] || view_both "$step" "$file" "$label" "$other_file" "${options[@]}"
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
