#!/usr/bin/env bash
# The project's commands, thin over cmake, ctest and the programs. See ./run.sh --help.
set -euo pipefail
invoked_from=$PWD && cd -P "$(dirname "${BASH_SOURCE[0]}")"
readonly exit_wrong=1 exit_usage=2 exit_missing=3

usage() { cat common/help.txt; }

say() { printf '%s\n' "$*"; }
die() { # STATUS MESSAGE
    printf 'run.sh: %s\n' "$2" >&2
    exit "$1"
}
have() { command -v "$1" >/dev/null 2>&1; }
# shellcheck source=common/machine.sh disable=SC1091
source common/machine.sh
progress() { # TEXT [keep]: on a terminal in place of the line before; elsewhere only what is to be kept
    if [[ -t 1 && ${TERM:-dumb} != dumb && -z ${CI:-} ]]; then printf '\r%.*s\033[K' "$((${COLUMNS:-80} - 1))" "$1"; elif [[ ${2-} ]]; then say "  $1"; fi
}

unfinished=() # files to remove when the job is interrupted
interrupted() {
    trap '' INT TERM
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

steps=() preset='' quick='' sizes=() python=''
choose_steps() { # LIST: fills `steps` in the ladder's order, each once
    local name wanted found list
    local -A chosen
    IFS=, read -ra list <<<"$1"
    for wanted in "${list[@]}"; do
        found=''
        for name in "${all_steps[@]}"; do
            if [[ $name == "$wanted" || $wanted =~ ^[0-9]{2}[a-z]?$ && $name =~ ^"$wanted"[a-z]?_ ]]; then chosen[$name]=yes found=yes; fi
        done
        [[ $found ]] || die $exit_usage "no step \"$wanted\"; there are: ${all_steps[*]}"
    done
    steps=()
    for name in "${all_steps[@]}"; do [[ ! ${chosen[$name]-} ]] || steps+=("$name"); done
    ((${#steps[@]} > 0)) || die $exit_usage '--steps names no step'
}

step_file() { # NAME
    if [[ $1 == [0-9][0-9][a-z]_* ]]; then echo steps/"${1:0:2}"_*/"$1.cu"; else echo "steps/$1/${1:3}.cu"; fi
}

choose_one() { # NN: of a number, the chapter's last rung
    [[ ${1:--} != -* && $1 != *,* ]] || die $exit_usage "$job takes one step, as 02 or 06b"
    choose_steps "$1"
    steps=("${steps[-1]}")
    [[ -e $(step_file "${steps[0]}") ]] || die $exit_usage "${steps[0]} is here as a program only, without its source"
}

parse_options() {
    local largest
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
        *) die $exit_usage "unknown option \"$1\"; see ./run.sh --help" ;;
        esac
        shift
    done
    [[ $preset =~ ^(sim|cuda|)$ ]] || die $exit_usage "--preset takes sim or cuda, not \"$preset\""
}

failed=() # steps that did not compile, gave a wrong result, or broke off
fail() { # STEP HEADLINE: what it said is read from standard input
    progress ''
    say "$1 FAILED ($2):"
    sed 's/^/    /'
    [[ " ${failed[*]} " == *" $1 "* ]] || failed+=("$1")
}

compile() { # PRESET TARGET...: goes on past errors; all output is in build/PRESET/build.log
    local name=$1 log=build/$1/build.log line keep_going=-k
    mkdir -p "build/$name"
    say "Building: cmake --preset $name && cmake --build --preset $name"
    cmake --preset "$name" >"$log" 2>&1 || die $exit_wrong "cmake failed; it said, in $log: $(tail -n 30 "$log")"
    if grep -q '^CMAKE_GENERATOR:.*=Ninja' "build/$name/CMakeCache.txt"; then keep_going=-k0; fi
    cmake --build --preset "$name" --parallel "$(getconf _NPROCESSORS_ONLN)" --target "${@:2}" -- "$keep_going" 2>&1 |
        tee -a "$log" | while IFS= read -r line; do if [[ $line == \[* ]]; then progress "$line"; fi; done
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
    cuda) printf '%s\n' "$usual --seq "{512,1024,2048,4096} "$usual $ragged" ;;
    simyes | cudayes) printf '%s\n' "$usual" "$usual $ragged" ;;
    *) say "$usual ${sizes[*]}" ;;
    esac
}

few_queries() { # STEP OPTIONS...: where they ask for more queries than the step takes, as many as it takes on as many keys
    local most queries='' keys=''
    most=$("build/$preset/bin/$1" --describe 2>/dev/null | sed -nE 's/.*"most_queries":([1-9][0-9]*).*/\1/p') || true
    while shift && (($# > 0)); do
        case $1 in --seq) queries=$2 ;; --seq-kv) keys=$2 ;; esac
    done
    ((${queries:-0} <= ${most:-1000000000})) || say "--seq $most --seq-kv ${keys:-$queries}"
}

run_once() { # STEP RESULTS OPTIONS...: the JSON line is kept only when the program lived to write all of it
    local step=$1 results=$2 program=build/$preset/bin/$1 line=$2.line log=$2.log status=0
    shift 2
    rm -f "$line" "$log"
    # Braces: when a signal ends the program it is the shell that says so, and that belongs in the log as well.
    { "$program" "$@" --json "$line" </dev/null || status=$?; } >>"$log" 2>&1
    if ((status <= exit_wrong)) && [[ -s $line ]]; then cat "$line" >>"$results"; fi
    if ((status == exit_usage)) && "$program" --help >/dev/null 2>&1; then # a size that this step does not take
        progress ''
        sed 's/^/  refused: /' "$log"
        refused["$step"]=yes
    elif ((status != 0)); then
        fail "$step" "exit status $status" < <(tail -n 20 "$log")
    else
        ran["$step"]=yes
    fi
}

main_job() {
    local results step options status=0 done=0
    local -a size_list option_list table=() wanted
    local -A refused=() ran=()
    parse_options "$@"
    ((${#steps[@]} > 0)) || steps=("${last_rungs[@]}")
    install_missing
    choose_preset
    if [[ $preset == sim && -z $quick ]] && ! in_handout && find_nvcc; then
        say 'A CUDA toolkit is here but no card is used: all is compiled for the card too (--quick leaves this out)'
        wanted=("${steps[@]}") && build cuda "${steps[@]}" && steps=("${wanted[@]}")
    fi
    build "$preset" "${steps[@]}"

    # Written under another name and renamed, so that results.jsonl is always the whole of one run.
    results=build/$preset/results.jsonl
    unfinished=("$results.part" "$results.part.line" "$results.part.log")
    : >"$results.part"
    mapfile -t size_list < <(sizes_to_run)
    say "Running (preset $preset), each result checked against the reference"
    for step in "${steps[@]}"; do
        for options in "${size_list[@]}"; do
            # shellcheck disable=SC2086 # a list of options
            read -ra option_list <<<"$options $(few_queries "$step" $options)"
            progress "[$((++done))/$((${#steps[@]} * ${#size_list[@]}))] $step ${option_list[*]}" keep
            run_once "$step" "$results.part" "${option_list[@]}"
        done
    done
    progress ''
    mv "$results.part" "$results"
    rm -f "${unfinished[@]}"

    for options in plots/data/{latency,rungs}/*.jsonl; do [[ ! -e $options ]] || table+=(--recorded "$options"); done
    for step in "${failed[@]}"; do table+=(--failed "$step"); done
    say ''
    "$python" -B plots/ladder.py "${table[@]}" "$results" || status=$exit_wrong
    say ''
    # What was measured here is the reader's own and stays in build/; without a card the recorded measurements are drawn.
    local -a what=()
    if [[ $preset == cuda ]]; then
        rm -f "build/$preset/pictures"/*.png # not every run has enough sizes for every picture
        what=(--results "$results" --out "build/$preset/pictures")
    fi
    "$python" plots/plot.py "${what[@]}" || status=$exit_wrong
    say "Results: $results"
    for step in "${!refused[@]}"; do [[ ${ran["$step"]-} ]] || { say "REFUSED at each size: $step" && status=$exit_usage; }; done
    ((${#failed[@]} == 0)) || { say "FAILED: ${failed[*]}" && status=$exit_wrong; }
    return "$status"
}

test_job() {
    local name log status=0 summary=() presets=(sim) selected
    (($# == 0)) || die $exit_usage "test takes no options; found \"$1\""
    install_missing
    choose_preset
    [[ $preset == sim ]] || presets+=(cuda)
    for name in "${presets[@]}"; do
        log=build/$name/ctest.log selected=()
        case ${CI:+${TEST_PART:-all}} in
        '') selected=(-L quick) && export TEST_PROGRAMS=quick_programs TEST_FEWER=yes ;;
        [0-2]) selected=(-LE "part_[^$TEST_PART]") && export TEST_PROGRAMS=part_${TEST_PART}_programs ;; # see tests/CMakeLists.txt
        esac
        [[ ! ${TEST_WITHOUT-} ]] || selected+=(-E "$TEST_WITHOUT") # a regular expression of names, for tests/fresh.sh
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
    if ((status == 0)); then say 'Every test that ran here passed.'; else say 'Some tests FAILED.'; fi
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

build_simt_nvcc() { # its time of birth: an edit during the build is newer
    local built=build/sim/simt-nvcc.built
    if [[ -x build/sim/bin/simt-nvcc && -e $built && ! $(find common/simt CMakeLists.txt CMakePresets.json -newer $built -print -quit) ]]; then return; fi
    install_missing >&2
    mkdir -p build/sim && : >$built.part
    compile sim simt simt_rewrite >&2 || die $exit_wrong 'the simulated device does not compile; see build/sim/build.log'
    mv $built.part $built
}

cu_job() { # FILE.cu [-- ARGS]: simt-nvcc takes more
    (($# > 0)) || die $exit_usage 'cu needs a file, as in ./run.sh cu hello.cu -- its arguments'
    build_simt_nvcc
    PATH="$PWD/build/sim/bin:$PATH"
    cd "$invoked_from" && exec simt-nvcc --run "$@"
}

job=main
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
if [[ $job != cu && ${1-} =~ ^(-h|--help)$ ]]; then usage && exit 0; fi
"${job}_job" "$@"
