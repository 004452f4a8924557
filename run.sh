#!/usr/bin/env bash
# The project's commands, thin over cmake, ctest and the programs. See ./run.sh --help.
set -euo pipefail
invoked_from=$PWD && cd -P "$(dirname "${BASH_SOURCE[0]}")"
readonly exit_wrong=1 exit_usage=2 exit_missing=3
readonly fault_page='docs/simulated-device.md, "How to read a message", explains each fault and how to mend it'

usage() { cat common/help.txt; }

say() { printf '%s\n' "$*"; }
die() { # STATUS MESSAGE
    printf 'run.sh: %s\n' "$2" >&2
    exit "$1"
}
have() { command -v "$1" >/dev/null 2>&1; }
# shellcheck source=common/machine.sh disable=SC1091
source common/machine.sh
# Shows standard input. Lines that count, `[12/45] what`: on a terminal each in place of the one before, elsewhere the last one after 3 s;
# after 4 s without one the count again, with the time. Other lines as they are.
pulse() {
    local line part='' last='' news='' shown=-3 since=$SECONDS status clear=''
    [[ ! -t 1 || ${TERM:-dumb} == dumb || ${CI:-} ]] || clear=$'\r\e[K'
    while status=0 && { IFS= read -r -t 1 line || status=$?; } && ((status == 0 || status > 128)); do
        if ((status)); then part+=$line; else line=$part$line part=''; fi # the second may end in the midst of a line
        if ((status == 0)) && [[ $line != \[* ]]; then say "$clear$line" && continue; fi
        ((status)) || last=$line news=yes since=$SECONDS
        if [[ ! $news ]]; then
            ((SECONDS - shown >= 4)) && [[ $last ]] || continue
            line="${last%%]*}] still at work after $((SECONDS - since)) s"
        elif [[ ! $clear ]] && ((SECONDS - shown < 3)); then
            continue
        else
            line=$last
        fi
        news='' shown=$SECONDS
        if [[ $clear ]]; then printf '%s%.*s' "$clear" "$((${COLUMNS:-80} - 1))" "$line"; else say "  $line"; fi
    done
    printf '%s' "$clear"
}

unfinished=() building='' # files to remove when the job is interrupted; the group of processes of a build
interrupted() {
    trap '' INT TERM
    mapfile -t running < <(jobs -p)
    kill ${building:+-- -"$building"} "${running[@]}" 2>/dev/null || true
    rm -f "${unfinished[@]}"
    printf '\nrun.sh: interrupted\n' >&3
    exit 130
}

# ---- steps: each is a file steps/NN_name/NNx_rung.cu, or NN_name/name.cu, the chapter's last rung ----------------------

all_steps=() last_rungs=()
find_steps() {
    local folder file name
    for folder in steps/[0-9][0-9]_*/; do
        name=$(basename "$folder")
        for file in "$folder${name:0:2}"[a-z]_*.cu "$folder$compiled/${name:0:2}"[a-z]_*.o; do
            [[ -e $file ]] && file=${file##*/} && all_steps+=("${file%.*}")
        done
        [[ -e $folder${name:3}.cu || -e $folder$compiled/$name.o ]] && all_steps+=("$name") last_rungs+=("$name")
    done
    ((${#last_rungs[@]} > 0)) || [[ $job =~ ^(start|grade|handout)$ ]] || die $exit_missing 'no steps in steps/'
}

nearest() { # WORD CANDIDATE...: the one that it is probably a misspelling of
    python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1))' "$@" 2>/dev/null || true
}

near_steps() { # WANTED COMMAND: what it may be a misspelling of, else the rungs of its chapter, else the chapters
    local near rungs
    mapfile -t rungs < <(printf '%s\n' "${all_steps[@]%%_*}" | grep "^${1:0:2}" || printf '%s\n' "${last_rungs[@]%%_*}")
    near=$(nearest "$1" "${all_steps[@]}")
    say "${near:+did you mean $2$near ? }there are ${rungs[*]}, as in $2${rungs[0]}"
}

steps=() preset='' quick='' sizes=() python=''
choose_steps() { # LIST [COMMAND]: fills `steps` in the ladder's order, each once
    local name wanted found list
    local -A chosen
    IFS=, read -ra list <<<"$1"
    for wanted in "${list[@]}"; do
        found='' && [[ ! $wanted =~ ^[0-9][a-z]?$ ]] || wanted=0$wanted
        for name in "${all_steps[@]}"; do
            if [[ $name == "$wanted" || $wanted =~ ^[0-9]{2}[a-z]?$ && $name =~ ^"$wanted"[a-z]?_ ]]; then chosen[$name]=yes found=yes; fi
        done
        [[ $found ]] || die $exit_usage "no step \"$wanted\"; $(near_steps "$wanted" "${2-./run.sh --steps }")"
    done
    steps=()
    for name in "${all_steps[@]}"; do [[ ! ${chosen[$name]-} ]] || steps+=("$name"); done
    ((${#steps[@]} > 0)) || die $exit_usage '--steps names no step'
}

step_file() { # NAME
    if [[ $1 == [0-9][0-9][a-z]_* ]]; then echo steps/"${1:0:2}"_*/"$1.cu"; else echo "steps/$1/${1:3}.cu"; fi
}

choose_one() { # NN [COMMAND]: of a number, the chapter's last rung
    [[ ${1:--} != -* && $1 != *,* ]] || die $exit_usage "$job takes one step, as in ./run.sh $job 02, or 06b"
    choose_steps "$1" "${2-./run.sh $job }"
    steps=("${steps[-1]}")
    [[ -e $(step_file "${steps[0]}") ]] || die $exit_usage "${steps[0]} is here as a program only, without its source"
}

parse_options() {
    local largest near
    while (($# > 0)); do
        [[ $1 != --*=* ]] || set -- "${1%%=*}" "${1#*=}" "${@:2}" # --seq=512 means --seq 512
        case $1 in
        -h | --help) usage && exit 0 ;;
        --quick) quick=yes ;;
        --causal) sizes+=(--causal) ;;
        --preset | --steps | --batch | --heads | --seq | --seq-kv | --dim)
            (($# > 1)) || die $exit_usage "$1 needs a value; see ./run.sh --help"
            case $1 in --batch | --heads) largest=MAX_BATCH_HEADS ;; --dim) largest=MAX_HEAD_DIM ;; *) largest=MAX_LENGTH ;; esac
            largest=$(sed -En "s/.*\<$largest = ([0-9]+).*/\1/p" common/device/attention.h common/harness/problem.h)
            case $1 in
            --preset) preset=$2 ;;
            --steps) choose_steps "$2" ;;
            *) [[ $2 =~ ^[1-9][0-9]{0,8}$ && $2 -le $largest ]] && sizes+=("$1" "$2") ;;
            esac || die $exit_usage "$1 takes a whole number from 1 to $largest, not \"$2\""
            shift
            ;;
        *)
            near=$(nearest "$1" --quick --causal --preset --steps --batch --heads --seq --seq-kv --dim --help)
            die $exit_usage "unknown option \"$1\"; ${near:+did you mean $near, as in ./run.sh $near${2:+ $2} ? }./run.sh --help lists them"
            ;;
        esac
        shift
    done
    [[ $preset =~ ^(sim|cuda|)$ ]] || die $exit_usage "--preset takes sim or cuda, not \"$preset\""
}

failed=() # steps that did not compile, gave a wrong result, or broke off
fail() { # STEP HEADLINE: what it said is read from standard input
    say "$1 FAILED ($2):"
    sed 's/^/    /'
    [[ " ${failed[*]} " == *" $1 "* ]] || failed+=("$1")
}

configure() { # PRESET: once, since cmake sees for itself when its files change; tests ask again for what was not installed
    local folder=build/$1 made
    for made in "$folder"/{build.ninja,Makefile}; do [[ $job == test || ! $made -nt CMakePresets.json ]] || return 0; done
    mkdir -p "$folder"
    # Make builds one target after another; a folder that it has built stays its own.
    [[ -e $folder/CMakeCache.txt ]] || ! have ninja || export CMAKE_GENERATOR="${CMAKE_GENERATOR-Ninja}"
    cmake --preset "$1" >"$folder/build.log" 2>&1 || die $exit_wrong "cmake failed; it said, in $folder/build.log: $(tail -n 30 "$folder/build.log")"
}

# Which targets are not there or older than a source, and how many seconds of one processor they take, roughly.
stale=() work=0
find_stale() { # PRESET TARGET...; `common` is what all programs are linked with
    local target seconds from stamp
    stale=() work=0
    for target in common "${@:2}"; do
        seconds=4 from="common/device steps/${target:0:2}_*" stamp=build/$1/built/$target
        case $1:$target in
        *:common) seconds=18 from='common/simt common/harness CMakeLists.txt CMakePresets.json' ;;
        *:*_programs) seconds=400 from='exercises tests steps' ;;
        *:exercise) seconds=8 from=exercises ;;
        *:simt* | *:step_cc*) continue ;;
        cuda:*) seconds=25 ;;
        esac
        # shellcheck disable=SC2086 # a list of folders
        [[ -e $stamp && ! $(find $from -newer "$stamp" ! -name '*.md' -print -quit 2>/dev/null) ]] || { stale+=("$target") && work=$((work + seconds)); }
    done
}

how_long() { # WHAT SECONDS: as it took here the last time, by build/took, else of so many seconds of one processor
    local took
    took=$(sed -n "s/^$1: //p" build/took 2>/dev/null) || true
    say "about ${took:-$(($2 / $(getconf _NPROCESSORS_ONLN) + 2))} s${took:+, as the last time}"
}
note_time() { { grep -v "^$1: " build/took 2>/dev/null || true; echo "$1: $2"; } >build/took.new && mv build/took.new build/took; } # WHAT SECONDS

compile() { # PRESET TARGET...: goes on past errors; all output is in build/PRESET/build.log
    local name=$1 log=build/$1/build.log keep_going=-k begun=$SECONDS target started about='' what=$2 pulse_id status=0
    (($# == 2)) || what="$(($# - 1)) targets"
    find_stale "$@"
    ((work <= 10)) || about=", $(how_long "$name ${stale[*]}" "$work")"
    ((${#stale[@]} == 0)) || say "Building $what$about: cmake --preset $name && cmake --build --preset $name"
    configure "$name"
    started=build/$name/started && : >"$started"
    [[ ! -e build/$name/build.ninja ]] || keep_going=-k0
    exec 5> >(pulse) && pulse_id=$!
    set -m # a group of its own, and waited for: the shell hears a signal at once, and the compilers end with it
    { cmake --build --preset "$name" --parallel "$(getconf _NPROCESSORS_ONLN)" --target "${@:2}" -- "$keep_going" 2>&1 | tee -a "$log" |
        sed -unE '/^\[0\/|\] Built target /d; s,^(\[[^]]*\] +[A-Z][a-z]+ ).*[/ ],\1,p' >&5; } &
    building=$!
    set +m
    wait "$building" || status=1
    exec 5>&-
    wait "$pulse_id" || true
    building='' && ((status == 0)) || return 1
    mkdir -p "build/$name/built"
    for target in common "${@:2}"; do # another user's stamp cannot be touched, and a second run.sh must not miss it for a moment
        touch -r "$started" "build/$name/built/$target.$$" 2>/dev/null && mv -f "build/$name/built/$target"{".$$",} 2>/dev/null || true
    done
    ((SECONDS - begun <= 10 || ${#stale[@]} == 0)) || note_time "$name ${stale[*]}" "$((SECONDS - begun))"
}

# After an error each target is tried by itself. What does not compile is taken out of `steps`, so that no program of an
# earlier build runs in its place.
build() { # PRESET TARGET...
    local name=$1 target output
    local -a built=()
    shift
    if compile "$name" "$@"; then return; fi
    for target; do
        if output=$(cmake --build --preset "$name" --target "$target" 2>&1); then
            built+=("$target")
        elif [[ " ${steps[*]} " == *" $target "* ]]; then
            fail "$target" "it does not compile; see build/$name/build.log" < <(grep -m 8 error <<<"$output" || tail -n 8 <<<"$output")
        else
            die $exit_wrong "$target does not compile; see build/$name/build.log: $(tail -n 30 <<<"$output")"
        fi
    done
    for target in "${!steps[@]}"; do [[ " ${built[*]} " == *" ${steps[$target]} "* ]] || unset "steps[$target]"; done
}

readonly metered_size='--batch 1 --heads 2 --seq 64 --dim 64 --no-time --meter'
sizes_to_run() { # a line of options for each size; what the user gave replaces all of ours but fills up its options
    local usual ragged='--seq 113 --seq-kv 75 --dim 56 --causal --no-time' # rows without keys; no multiple of a tile
    case $preset$quick in # the simulated device's time is not a GPU's: it is not taken
    sim) usual='--batch 1 --heads 2 --seq 256 --dim 64 --no-time' ;;
    simyes) usual='--batch 1 --heads 2 --seq 64 --dim 64 --no-time' ;;
    cuda) usual='--batch 4 --heads 16 --seq 1024 --dim 64' ;;
    *) usual='--batch 1 --heads 4 --seq 512 --dim 64 --warmup 1 --repeat 5' ;;
    esac
    case $preset$quick${sizes[*]} in
    sim) printf '%s\n' "$usual" "$usual --seq 113 --seq-kv 203 --dim 59 --causal" "$usual $ragged" ;;
    cuda) printf '%s\n' "$usual --seq 4096" "$usual $ragged" ;; # what the table shows; the rest comes after it
    simyes | cudayes) printf '%s\n' "$usual" "$usual $ragged" ;;
    *) say "$usual ${sizes[*]}" ;;
    esac
}

most_queries() { "build/$preset/bin/$1" --describe 2>/dev/null | sed -nE 's/.*"most_queries":([1-9][0-9]*).*/\1/p' || true; } # STEP
few_queries() { # MOST OPTIONS...: where they ask for more queries than the step takes, MOST, as many as it takes on as many keys
    local most=$1 queries='' keys=''
    while shift && (($# > 0)); do
        case $1 in --seq) queries=$2 ;; --seq-kv) keys=$2 ;; esac
    done
    ((${queries:-0} <= ${most:-1000000000})) || say " --seq $most --seq-kv ${keys:-$queries}"
}

judge_run() { # STATUS FILES STEP OPTIONS...: the JSON line is kept only when the program lived to write all of it
    local status=$1 line=$2.line log=$2.log step=$3 to=$results.part
    [[ " $* " != *' --meter '* ]] || to=$metered
    ((status <= 128)) || say "ended by SIG$(kill -l "$status")" >>"$log"
    if ((status <= exit_wrong)) && [[ -s $line ]]; then cat "$line" >>"$to"; fi
    if ((status == exit_usage)) && "build/$preset/bin/$step" --help >/dev/null 2>&1; then # a size that this step does not take
        sed 's/^/  refused: /' "$log"
        refused["$step"]=yes
    elif ((status == 0)); then
        [[ $to == "$metered" ]] || ran["$step"]=yes
    elif [[ $to != "$metered" || " ${failed[*]} " != *" $step "* ]]; then
        ((status != exit_missing)) || faulted=$fault_page
        fail "$step" "exit status $status" < <(tail -n 20 "$log")
    fi
    rm -f "$line" "$log"
}

run_all() { # OPTIONS...: each step with each of these sizes, in order; on the simulated device two programs at a time
    local step options most at=0 started=0 at_once=1 status pulse_id part id
    local -a runs=() ids=() words
    local -A live=() ended=()
    [[ $preset != sim ]] || { at_once=2 && export OMP_WAIT_POLICY=passive; } # threads that wait must not take the other program's time
    for step in "${steps[@]}"; do
        most=$(most_queries "$step")
        # shellcheck disable=SC2086 # a list of options
        for options; do runs+=("$step $options$(few_queries "$most" $options)"); done
    done
    exec 4> >(pulse) && pulse_id=$!
    while ((at < ${#runs[@]})); do
        for (( ; started < ${#runs[@]} && ${#live[@]} < at_once; started++)); do
            read -ra words <<<"${runs[started]}"
            part=$results.part.$started && unfinished+=("$part".{line,log}) && rm -f "$part".{line,log}
            (exec "build/$preset/bin/${words[0]}" "${words[@]:1}" --json "$part.line" </dev/null >"$part.log" 2>&1) &
            ids+=($!) && live[$!]=yes
        done
        status=0 && wait -n -p id "${!live[@]}" || status=$?
        ended[$id]=$status && unset "live[$id]"
        for (( ; at < started; at++)); do # they are told in order, whichever ends first
            [[ ${ended[${ids[at]}]-} ]] || break
            say "[$((at + 1))/${#runs[@]}] ${runs[at]}" >&4
            read -ra words <<<"${runs[at]}"
            judge_run "${ended[${ids[at]}]}" "$results.part.$at" "${words[@]}" >&4
        done
    done
    exec 4>&-
    wait "$pulse_id"
}

next_of_main() {
    local next='./run.sh start 00a (write a kernel), or ./run.sh cu FILE.cu (check a kernel of your own)' file edit='s/p.scale \* sum/p.scale + sum/'
    if ((${#steps[@]} == 1)) && file=$(step_file "${steps[0]}") && [[ -e $file ]]; then
        next="edit $file, then ./run.sh try ${steps[0]:0:2}"
        [[ $file != steps/01_* ]] || ! grep -q 'p.scale \* sum' "$file" || next="break it: sed -i '$edit' $file; ./run.sh try 01"
    fi
    ((${#failed[@]} == 0)) || next="mend it, then ./run.sh try ${failed[0]}"
    say "Next: ${faulted:-$next}"
}

main_job() {
    local results metered options step status=0 faulted=''
    local -a size_list table=()
    local -A refused=() ran=()
    parse_options "$@"
    ((${#steps[@]} > 0)) || steps=("${last_rungs[@]}")
    install_missing
    choose_preset
    build "$preset" "${steps[@]}"

    # Written under another name and renamed, so that results.jsonl is always the whole of one run.
    results=build/$preset/results.jsonl metered=build/$preset/metered.jsonl
    unfinished=("$results.part" "$metered")
    : >"$results.part" && : >"$metered"
    mapfile -t size_list < <(sizes_to_run)
    [[ $preset == cuda ]] || size_list+=("$metered_size")
    say "Running (preset $preset), each result checked against the reference"
    # What was measured here is the reader's own and stays in build/; without a card the recorded measurements are drawn, meanwhile.
    local -a what=()
    local pictures=build/$preset/pictures drawing=''
    if [[ $preset == cuda ]]; then
        rm -f "$pictures"/*.png # not every run has enough sizes for every picture
        what=(--results "$results" --out "$pictures")
    else
        "$python" plots/plot.py >"$pictures.log" 2>&1 & drawing=$!
    fi
    run_all "${size_list[@]}"
    for options in plots/data/{latency,rungs}/*.jsonl; do [[ ! -e $options ]] || table+=(--recorded "$options"); done
    for step in "${failed[@]}"; do table+=(--failed "$step"); done
    say ''
    "$python" -B plots/ladder.py "${table[@]}" --metered "$metered" "$results.part" || status=$exit_wrong
    if [[ $preset$quick${sizes[*]} == cuda ]]; then # the other lengths, for the pictures
        say 'Running the lengths that only the pictures show'
        run_all '--batch 4 --heads 16 --dim 64 --seq '{512,1024,2048}
    fi
    mv "$results.part" "$results"
    say ''
    if [[ $drawing ]]; then wait "$drawing" || status=$exit_wrong; cat "$pictures.log"; else "$python" plots/plot.py "${what[@]}" || status=$exit_wrong; fi
    say "Results: $results"
    for step in "${!refused[@]}"; do [[ ${ran["$step"]-} ]] || { say "REFUSED at each size: $step" && status=$exit_usage; }; done
    ((${#failed[@]} == 0)) || { say "FAILED: ${failed[*]}" && status=$exit_wrong; }
    next_of_main
    return "$status"
}

test_job() {
    local name log status=0 summary=() presets=(sim) selected selection=quick
    [[ ! ${CI-} ]] || selection=${TEST_PART:+part_$TEST_PART}
    selection=${TEST_SELECTION-$selection} # fresh: of tests/fresh.sh
    (($# == 0)) || die $exit_usage "test takes no options; found \"$1\""
    install_missing
    choose_preset
    [[ $preset == sim ]] || presets+=(cuda)
    for name in "${presets[@]}"; do
        log=build/$name/ctest.log selected=()
        case $selection in # labels of tests/CMakeLists.txt
        part_*) selected=(-LE "part_[^$TEST_PART]|full") && export TEST_PROGRAMS=${selection}_programs ;;
        ?*) selected=(-L "^$selection\$") && export TEST_PROGRAMS=${selection}_programs TEST_FEWER=yes ;;
        esac
        compile "$name" "${TEST_PROGRAMS:-test_programs}" || true # what does not compile fails its own tests
        ctest --preset "$name" "${selected[@]}" --no-tests=error --parallel 2 2>&1 | tee "$log" || status=$exit_wrong
        summary+=("ctest, $name: $(grep -E 'tests passed|No tests' "$log" | tail -n 1)")
        # Criterion ends each program's output with a line that counts; ctest keeps all output in a log.
        summary+=("Criterion, $name: $(sed 's/\x1b\[[0-9;]*m//g' "build/$name/Testing/Temporary/LastTest.log" |
            awk -F '[^0-9]+' '/Synthesis: Tested:/ { for (i = 2; i <= 5; i++) n[i] += $i }
                END { print n[2] + 0 " tested, " n[3] + 0 " passed, " n[4] + 0 " failing, " n[5] + 0 " crashing" }')")
        mapfile -t -O "${#summary[@]}" summary < <(sed -nE 's/^.* - (.*) \((Skipped|Disabled|Not Run)\).*/  \2: \1/p' "$log")
    done
    [[ $preset == cuda ]] || summary+=('On a card: skipped, there is no card with a CUDA toolkit here')
    printf '%s\n' '' "${summary[@]}"
    if ((status == 0)); then say 'Every test that ran here passed.' && say 'Next: ./run.sh start 00a'; else say 'Some tests FAILED.'; fi
    return "$status"
}

build_for_card() { # TOOL
    need_card "$job" "$1"
    install_missing
    build cuda "${steps[@]}"
    ((${#failed[@]} == 0)) || exit $exit_wrong
}

profile_job() { # STEP [SIZES]
    choose_one "${1-}" && shift
    [[ ! "$*" =~ --(preset|steps|quick) ]] || die $exit_usage "profile takes a step and sizes, not ${BASH_REMATCH[0]}"
    parse_options "$@"
    build_for_card ncu
    exec python3 -B plots/record.py profile "${steps[0]}" --batch 4 --heads 16 --seq 1024 --dim 64 "${sizes[@]}"
}

sanitize_job() { # STEP
    choose_one "${1-}"
    (($# == 1)) || die $exit_usage "sanitize takes one step and no options; found \"$2\""
    build_for_card compute-sanitizer
    exec tests/sanitize.sh build/cuda/bin "${steps[0]}"
}

cu_job() { # FILE.cu [-- ARGS]: simt-nvcc takes more
    local word status=0
    (($# > 0)) || die $exit_usage 'cu needs a file, as in ./run.sh cu hello.cu -- its arguments'
    [[ ! $1 =~ ^(-h|--help)$ ]] || { cat common/simt/help.txt && exit 0; }
    for word; do # before the device is built
        [[ $word != -- ]] || break
        [[ $word != *.cu ]] || (cd "$invoked_from" && [[ -f $word ]]) || die $exit_usage "cu: $word: no such file"
    done
    [[ $1 == -* || " $* " == *' -x '* || $1 =~ \.(cu|c|cc|cpp|cxx|o|a|so)$ ]] || die $exit_usage "cu: $1: the name of a CUDA program ends in .cu"
    find_stale sim common
    if ((${#stale[@]} > 0)) || [[ ! -x build/sim/bin/simt-nvcc ]]; then
        install_missing >&2
        compile sim simt simt_rewrite >&2 || die $exit_wrong 'the simulated device does not compile; see build/sim/build.log'
    fi
    PATH="$PWD/build/sim/bin:$PATH"
    cd "$invoked_from" && simt-nvcc --run "$@" || status=$?
    ((status != exit_missing)) || printf 'Next: %s\n' "$fault_page" >&2
    exit "$status"
}

meant() { # WORD...: a full command that begins so
    local word=$1 near
    [[ ! $word =~ ^[0-9][a-z]?$ ]] || word=0$word
    if [[ $word =~ ^[0-9]{2} && " ${all_steps[*]}" == *" ${word%%_*}"[a-z_]* ]]; then
        say "./run.sh --steps $word${2:+ ${*:2}}"
    elif compgen -G "exercises/${word}_*" >/dev/null; then
        say "./run.sh start $word"
    else
        near=cu && [[ $word == *.cu ]] && set -- '' "$@" || near=$(nearest "$word" "${jobs[@]}" help)
        say "${near:+./run.sh $near${2:+ ${*:2}}}"
    fi
}

job=main jobs=(test profile sanitize new try start grade handout book cu)
# shellcheck source=exercises/jobs.sh source=book/job.sh disable=SC1091
case ${1-} in
test | profile | sanitize | cu) job=$1 && shift ;;
book)
    [[ -e book/job.sh ]] || die $exit_usage 'book: a handout has no site, it is built from the whole book'
    job=$1 && shift && source book/job.sh
    ;;
try | start | grade | handout | new) job=$1 && shift && source exercises/jobs.sh ;;
esac
exec 3>&2 # for `interrupted`, which may be called while standard error goes to a log
trap interrupted INT TERM
shopt -s checkwinsize && (:) # COLUMNS follows the terminal's width once a command has run
find_steps
if [[ $job != cu && ${1-} =~ ^(-h|--help|help)$ ]]; then usage && exit 0; fi
if [[ $job == main && ${1--} != -* ]]; then
    answer=$(meant "$@")
    die $exit_usage "there is no command \"$1\"; ${answer:+did you mean $answer ? }./run.sh --help lists them"
fi
"${job}_job" "$@"
