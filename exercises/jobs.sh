# shellcheck shell=bash
# ./run.sh try, start, grade, handout and new. Sourced by run.sh, which defines die, choose_one, install_missing and the steps.
# shellcheck disable=SC2154,SC2034,SC1091

abilities() { # NAME: what two steps must share to be compared
    grep -oE '\.(for|back)ward =|\.dtypes' "$(step_file "$1")"
}

build_grader() {
    install_missing >&2
    compile sim exercise >&2 || die "$exit_wrong" 'the grader does not compile; see build/sim/build.log'
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

# Which mutants, forms and ablations a chapter's edited kernel has left without the text that they change: six lines at most.
say_stale_changes() { # KERNEL
    local stale
    [[ $1 != steps/9* ]] || return 0
    stale=$(shopt -s nullglob && common/change check -- "$1" "${1%/*}"/*.cuh) || true
    [[ $stale ]] || return 0
    say "  if you keep this edit: recorded changes that do not apply to this kernel any more: $(wc -l <<<"$stale"); common/change check lists them with the text that is missing"
    head -n 4 <<<"$stale" | sed -E 's/: steps[^:]*: not there( once)?: .*//; s/^/    /'
    (($(wc -l <<<"$stale") < 5)) || say '    ...'
}

try_job() { # STEP [--against STEP] [--watch] [--view] [OPTIONS]
    local near step other='' watch='' view='' file other_file label name base before='' seen='' changed status alone=0
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
        --causal | --alibi | --alibi-released | --deterministic) options+=("$1") ;;
        --against | --batch | --heads | --heads-kv | --seq | --seq-kv | --dim | --dtype | --pass | --window | --softcap | --dropout | --rotary | --lengths | --page-size)
            (($# > 1)) || die "$exit_usage" "$1 needs a value"
            if [[ $1 == --against ]]; then choose_one "$2" "./run.sh try $step --against " && other=${steps[0]}; else options+=("$1" "$2"); fi
            shift
            ;;
        *)
            near=$(nearest "$1" --watch --view --against --causal --batch --heads --heads-kv --seq --seq-kv --dim --dtype --deterministic --pass --window --softcap --dropout --rotary)
            die "$exit_usage" "try takes a step, --against STEP, --watch, --view, sizes and variants, not \"$1\"${near:+; did you mean $near?}"
            ;;
        esac
        shift
    done
    other_file=$(step_file "$other") label=$other
    if [[ -z $other ]]; then # the committed version, where that is another one; what it was copied from; or the rung before with the same pass
        rm -rf build/committed && mkdir -p build/committed
        mapfile -t theirs < <(sed -n 's|^#include "\.\./\([^/]*\)/.*|steps/\1|p' "${file%/*}"/*.cuh 2>/dev/null | sort -u) # headers of other chapters
        changed=0 && git diff --quiet HEAD -- "$file" "${file%/*}/*.cuh" "${theirs[@]/%//*.cuh}" 2>/dev/null || changed=$?
        if ((changed == 1)) && git archive HEAD "${file%/*}" "${theirs[@]}" 2>/dev/null | tar -x -C build/committed 2>/dev/null && [[ -e build/committed/$file ]]; then
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
            ((status != 0)) || say_stale_changes "$file" # of an edit that may be kept
            case $status$view in
            0) [[ ! -e book/walk.py ]] || say "Next: ./run.sh try $step --view shows both kernels step by step" ;;
            "$exit_wrong"*) say "Next: mend $file; docs/debugging.md shows how to look into a kernel$([[ $label != committed ]] || echo "; git checkout $file takes the edit back")" ;;
            "$exit_missing"*) say "Next: $fault_page" ;;
            esac
        fi
        [[ $watch ]] || return "$status"
        sleep 0.5
    done
}

known_task() { # WORD: sets `task`, or dies before anything is built
    local near tasks=(exercises/[0-9bc][0-9]*_*)
    tasks=("${tasks[@]#exercises/}") task=${1#work/} task=${task%.cu}
    [[ ! $task =~ ^[0-9][a-z]$ ]] || task=0$task
    [[ ! $task =~ ^[a-z0-9_]+$ || " ${tasks[*]} " != *" $task"[_\ ]* ]] || return 0
    near=$(printf '%s\n' "${tasks[@]%%_*}" | grep -m 1 "^${task:0:2}" || nearest "$task" "${tasks[@]%%_*}")
    die "$exit_usage" "there is no task \"$1\"; ${near:+did you mean ./run.sh $job $near ? }./run.sh start lists them"
}
start_job() {
    [[ ${1--} == -* ]] || { known_task "$1" && set -- "$task" "${@:2}"; }
    build_grader && exec build/sim/bin/exercise start "$@"
}
grade_job() {
    local begun tool
    begun=$(find work -maxdepth 1 -name '[0-9bc][0-9][0-9a-z].cu' -printf '%T@ %f\n' 2>/dev/null | sort -rn | sed -n '1s/.* \(.*\)\.cu/\1/p') || true
    (($# > 0)) || die "$exit_usage" "grade needs a task; did you mean ./run.sh grade ${begun:-00a} ? ./run.sh start lists them"
    [[ $1 == -* ]] || { known_task "$1" && set -- "$task" "${@:2}"; }
    [[ $# != 1 || -e work/$1.cu || $1 == *[-_]* ]] || die "$exit_usage" "work/$1.cu is not there; ./run.sh start $1 writes it"
    build_grader
    [[ " $* " == *' --all '* || " $* " == *' --csv '* ]] || exec build/sim/bin/exercise grade "$@"
    for tool in python3 setpriv; do have $tool || die "$exit_missing" "grade --all needs $tool"; done
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
