#!/usr/bin/env bash
# The project's commands: `./run.sh` is the main job, `./run.sh test` the tests, `./run.sh profile NN` a look at the
# counters of one step. They are thin over cmake, ctest and ncu.
# See ./run.sh --help.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"

readonly exit_wrong=1 exit_usage=2 exit_missing=3

# What the options say. Empty means: not given.
job=main
preset=''
wanted_steps=''
quick=''
sizes=() # --batch and so on, as the steps' programs take them

steps=()        # the folders' names, in order
failed_steps=() # those among them whose program failed
python=''       # a python3 that has matplotlib
unfinished=()   # files to remove when the job is interrupted

usage() {
    cat <<'TEXT'
Usage: ./run.sh [options]    build and run every step, check it, show a table and draw the plots
       ./run.sh test         build and run the tests
       ./run.sh profile NN   what Nsight Compute counts in step NN on a card; --batch to --causal set its size
       ./run.sh --help       this text

Options of the main job:
  --preset sim|cuda   where to run: the simulated device or the card (default: the card when there is one)
  --steps 01,03       only these steps, by number or by name
  --quick             one small size a step, and nothing compiled that does not run
  --batch B  --heads H  --seq N  --seq-kv M  --dim D  --causal
                      run this one size instead of the usual ones; what is left out keeps its usual value

What is missing is installed through apt, as root or with sudo.
Everything built goes to build/; the results are in build/<preset>/results.jsonl.
Exit status: 0 all is well; 1 a step or a test failed; 2 bad usage; 3 something needed is not there; 130 interrupted.
TEXT
}

say() { printf '%s\n' "$*"; }

die() { # STATUS MESSAGE
    printf 'run.sh: %s\n' "$2" >&2
    exit "$1"
}

on_terminal() { [[ -t 1 && ${TERM:-dumb} != dumb && -z ${CI:-} ]]; }

interrupted() {
    trap '' INT TERM
    rm -f "${unfinished[@]}"
    if [[ -t 3 ]]; then printf '\n' >&3; fi
    printf 'run.sh: interrupted\n' >&3
    exit 130
}

# ---- options ----------------------------------------------------------------------------------------------------

need_value() { # OPTION NUMBER-OF-ARGUMENTS-LEFT
    (($2 >= 2)) || die $exit_usage "$1 needs a value; see ./run.sh --help"
}

need_size() { # OPTION VALUE LARGEST
    if ! [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || (($2 > $3)); then
        die $exit_usage "$1 takes a whole number from 1 to $3, not \"$2\""
    fi
}

add_size() { # LARGEST OPTION VALUE...
    need_value "$2" $(($# - 1))
    need_size "$2" "$3" "$1"
    sizes+=("$2" "$3")
}

parse_options() {
    if [[ ${1:-} == test ]]; then
        job=tests
        shift
        (($# == 0)) || [[ $1 == --help ]] || die $exit_usage "test takes no options; found \"$1\""
    elif [[ ${1:-} == profile ]]; then
        job=profile
        shift
        if [[ ${1:-} != -h && ${1:-} != --help ]]; then
            [[ ${1:--} != -* ]] || die $exit_usage 'profile needs a step, as in ./run.sh profile 02'
            wanted_steps=$1
            shift
        fi
    fi
    while (($# > 0)); do
        if [[ $job == profile && $1 =~ ^--(preset|steps|quick)(=|$) ]]; then
            die $exit_usage "profile takes a step and sizes, not ${1%%=*}"
        fi
        case $1 in
        -h | --help) usage && exit 0 ;;
        --*=*) # --seq=512 means --seq 512
            set -- "${1%%=*}" "${1#*=}" "${@:2}"
            continue
            ;;
        --preset) need_value "$1" $# && preset=$2 && shift ;;
        --steps) need_value "$1" $# && wanted_steps=$2 && shift ;;
        --quick) quick=yes ;;
        --causal) sizes+=(--causal) ;;
        --batch | --heads) add_size 65535 "$@" && shift ;;
        --seq | --seq-kv) add_size 99999999 "$@" && shift ;;
        --dim) add_size 128 "$@" && shift ;;
        *) die $exit_usage "unknown option \"$1\"; see ./run.sh --help" ;;
        esac
        shift
    done
    case $preset in
    '' | sim | cuda) ;;
    *) die $exit_usage "--preset takes sim or cuda, not \"$preset\"" ;;
    esac
}

# Fills `steps` with the folders of steps/ that --steps asks for: all of them when it was not given.
choose_steps() {
    local folder name wanted matched
    local -a all=() wanted_list=()
    for folder in steps/[0-9][0-9]_*/; do
        [[ -d $folder ]] && name=${folder#steps/} && all+=("${name%/}")
    done
    ((${#all[@]} > 0)) || die $exit_missing "no steps in steps/"
    if [[ -z $wanted_steps ]]; then
        steps=("${all[@]}")
        return
    fi
    IFS=, read -ra wanted_list <<<"$wanted_steps"
    for wanted in "${wanted_list[@]}"; do
        matched=''
        for name in "${all[@]}"; do
            [[ $name == "$wanted" || ${name%%_*} == "$wanted" ]] && matched=yes
        done
        [[ $matched ]] || die $exit_usage "no step \"$wanted\"; there are: ${all[*]}"
    done
    for name in "${all[@]}"; do # in the ladder's order, each once
        [[ ,$wanted_steps, == *",$name,"* || ,$wanted_steps, == *",${name%%_*},"* ]] && steps+=("$name")
    done
    ((${#steps[@]} > 0)) || die $exit_usage "--steps names no step"
}

# ---- what must be installed -------------------------------------------------------------------------------------

have() { command -v "$1" >/dev/null 2>&1; }

have_package() { # PACKAGE
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# A library counts as there when the compiler finds it, wherever it came from.
have_library() { # PACKAGE FILE
    have_package "$1" || { have gcc && [[ $(gcc -print-file-name="$2") == /* ]]; }
}

# The first python3 that can import matplotlib: the one on PATH may not be the one that apt installs for.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3 /usr/local/bin/python3; do
        if have "$candidate" && "$candidate" -c 'import matplotlib' 2>/dev/null; then
            python=$candidate
            return 0
        fi
    done
    return 1
}

missing_packages() {
    { have gcc && have g++ && have make; } || say build-essential
    have cmake || say cmake
    have objcopy || say binutils
    have patch || say patch
    have_library libcjson-dev libcjson.so || say libcjson-dev
    [[ $job != profile ]] || return 0 # it neither builds the simulated device or the tests, nor draws
    have_library libboost-context-dev libboost_context.so || say libboost-context-dev
    have_library libdw-dev libdw.so || say libdw-dev
    have_library libcriterion-dev libcriterion.so || say libcriterion-dev
    [[ $python ]] || say python3-matplotlib
}

apt_install() { # LOG COMMAND-PREFIX... -- PACKAGE...
    local log=$1 prefix=()
    shift
    while [[ $1 != -- ]]; do
        prefix+=("$1")
        shift
    done
    shift
    # A failed update is not the end: the lists that are there may do.
    "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 update >"$log" 2>&1 || true
    "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
        install --no-install-recommends "$@" >>"$log" 2>&1
}

install_missing() {
    local -a packages prefix=()
    local log=build/apt.log advice
    find_python || true
    mapfile -t packages < <(missing_packages)
    if ((${#packages[@]} > 0)); then
        advice="apt-get update && apt-get install --no-install-recommends ${packages[*]}"
        have apt-get || die $exit_missing "these are missing, by their Debian names: ${packages[*]}"
        if ((EUID != 0)); then
            have sudo || die $exit_missing "please run, as root: $advice"
            prefix=(sudo)
            [[ -t 0 ]] || prefix+=(-n) # nobody is there to type a password
        fi
        mkdir -p build
        say "Installing: ${packages[*]}"
        if ! apt_install "$log" "${prefix[@]}" -- "${packages[@]}"; then
            tail -n 5 "$log" >&2
            die $exit_missing "apt failed (all of it is in $log); please run, as root: $advice"
        fi
    fi
    [[ $job == profile || $python ]] || find_python || die $exit_missing "no python3 here can import matplotlib, though python3-matplotlib is installed"
}

# ---- which device -----------------------------------------------------------------------------------------------

# The toolkit's own installer does not add itself to PATH.
find_nvcc() {
    have nvcc && return
    [[ -x /usr/local/cuda/bin/nvcc ]] && export PATH="$PATH:/usr/local/cuda/bin"
}

have_card() {
    if have nvidia-smi; then
        [[ $(nvidia-smi -L 2>/dev/null) == GPU* ]]
    else
        [[ -e /dev/nvidia0 ]]
    fi
}

choose_preset() {
    local nvcc='' card=''
    find_nvcc && nvcc=yes
    have_card && card=yes
    if [[ $preset == cuda ]]; then
        [[ $nvcc ]] || die $exit_missing "--preset cuda needs nvcc of the CUDA toolkit, on PATH or in /usr/local/cuda/bin"
        [[ $card ]] || die $exit_missing "--preset cuda needs a card, and none is visible here"
    elif [[ -z $preset ]]; then
        preset=sim
        [[ $nvcc && $card ]] && preset=cuda
    fi
    also_compile_cuda=''
    [[ $nvcc && $preset == sim && -z $quick ]] && also_compile_cuda=yes
    return 0
}

# ---- building ---------------------------------------------------------------------------------------------------

draw_bar() { # PERCENT TEXT
    local filled=$(($1 * 24 / 100)) room=$((${COLUMNS:-80} - 34)) hashes dots
    printf -v hashes '%*s' "$filled" ''
    printf -v dots '%*s' "$((24 - filled))" ''
    printf '\r[%s%s] %3d%% %.*s\033[K' "${hashes// /#}" "${dots// /.}" "$1" "$((room > 10 ? room : 10))" "$2"
}

clear_bar() { if on_terminal; then printf '\r\033[K'; fi; }

# Reads cmake's output, in which make writes "[ 42%] ..." and ninja "[3/8] ...", and shows how far it is.
show_build_progress() { # WHAT
    local line percent shown=-25
    while IFS= read -r line; do
        if [[ $line =~ ^\[\ *([0-9]+)%\] ]]; then
            percent=${BASH_REMATCH[1]}
        elif [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
            percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))
        else
            continue
        fi
        if on_terminal; then
            draw_bar "$percent" "building $1"
        elif ((percent >= shown + 25)); then
            say "  $percent% built"
            shown=$percent
        fi
    done
    clear_bar
}

build() { # PRESET [cmake --build's arguments]
    local name=$1 log=build/$1/build.log cores
    shift
    cores=$(getconf _NPROCESSORS_ONLN)
    mkdir -p "build/$name"
    say "Building: cmake --preset $name && cmake --build --preset $name"
    if ! cmake --preset "$name" >"$log" 2>&1 ||
        ! cmake --build --preset "$name" --parallel "$cores" "$@" 2>&1 | tee -a "$log" | show_build_progress "$name"; then
        tail -n 30 "$log" >&2
        die $exit_wrong "the build failed; all of its output is in $log"
    fi
}

# ---- running the steps ------------------------------------------------------------------------------------------

# Prints a line of program options for each size to run. Sizes given by the user replace all of ours but fill up theirs.
sizes_to_run() {
    local usual seq
    if [[ $preset == cuda ]]; then
        usual='--batch 4 --heads 16 --seq 1024 --dim 64'
        [[ $quick ]] && usual='--batch 1 --heads 4 --seq 512 --dim 64 --warmup 1 --repeat 5'
    else
        # The simulated device's time is not a GPU's: it is not taken.
        usual='--batch 1 --heads 2 --seq 256 --dim 64 --no-time'
        [[ $quick ]] && usual='--batch 1 --heads 2 --seq 64 --dim 64 --no-time'
    fi
    if ((${#sizes[@]} > 0)); then
        say "$usual ${sizes[*]}"
    elif [[ $quick ]]; then
        say "$usual"
    elif [[ $preset == sim ]]; then
        say "$usual"
        say '--batch 1 --heads 2 --seq 113 --seq-kv 203 --dim 59 --causal --no-time' # no size is a multiple of a tile
    else
        for seq in 512 1024 2048 4096; do
            say "--batch 4 --heads 16 --seq $seq --dim 64"
        done
    fi
}

# A later option overrides an earlier one, as it does for the program.
describe_size() { # OPTIONS...
    local batch='' heads='' seq='' seq_kv='' dim='' causal=''
    while (($# > 0)); do
        case $1 in
        --batch) batch=$2 ;;
        --heads) heads=$2 ;;
        --seq) seq=$2 ;;
        --seq-kv) seq_kv=$2 ;;
        --dim) dim=$2 ;;
        --causal) causal=', causal' ;;
        esac
        shift
    done
    say "B $batch, H $heads, N $seq${seq_kv:+ x $seq_kv}, d $dim$causal"
}

# Runs one program once. Its JSON line is kept only when the program lived to write all of it.
run_once() { # STEP RESULTS OPTIONS...
    local step=$1 results=$2 program=build/$preset/bin/$1 line=$2.line log=$2.log status=0
    shift 2
    rm -f "$line" "$log"
    # Braces: when a signal ends the program it is the shell that says so, and that belongs in the log as well.
    { "$program" "$@" --json "$line" </dev/null || status=$?; } >>"$log" 2>&1
    if ((status <= exit_wrong)) && [[ -s $line ]]; then
        cat "$line" >>"$results"
    elif ((status == 0)); then
        say "wrote no result" >>"$log"
        status=$exit_wrong
    fi
    return "$status"
}

show_failure() { # STEP STATUS LOG
    clear_bar
    say "$1 FAILED (exit status $2). It said:"
    tail -n 20 "$3" | sed 's/^/    /'
}

run_steps() { # RESULTS
    local results=$1 where='the card' step options what status total done=0
    local -a size_list option_list
    mapfile -t size_list < <(sizes_to_run)
    total=$((${#steps[@]} * ${#size_list[@]}))
    [[ $preset == sim ]] && where='the simulated device'
    say "Running on $where, each result checked against the reference"
    for step in "${steps[@]}"; do
        for options in "${size_list[@]}"; do
            read -ra option_list <<<"$options"
            what="$step  $(describe_size "${option_list[@]}")"
            if on_terminal; then
                draw_bar $((100 * done / total)) "$what"
            else
                say "  [$((done + 1))/$total] $what"
            fi
            status=0
            run_once "$step" "$results" "${option_list[@]}" || status=$?
            if ((status != 0)); then
                show_failure "$step" "$status" "$results.log"
                [[ ${failed_steps[*]: -1} == "$step" ]] || failed_steps+=("$step")
            fi
            done=$((done + 1))
        done
    done
    clear_bar
}

# ---- the end of the main job ------------------------------------------------------------------------------------

show_table() { # RESULTS
    local file step
    local -a options=()
    for file in plots/data/*.jsonl; do
        [[ -e $file ]] && options+=(--recorded "$file")
    done
    for step in "${failed_steps[@]}"; do
        options+=(--failed "$step")
    done
    say ''
    "build/$preset/bin/report" "${options[@]}" "$1"
    say ''
}

# What was measured here is the reader's own and stays in build/; without a card the recorded measurements are drawn.
draw_plots() { # RESULTS
    if [[ $preset == cuda ]]; then
        rm -f "build/$preset/pictures"/*.png # not every run has enough sizes for every picture
        "$python" plots/plot.py --results "$1" --out "build/$preset/pictures"
    else
        "$python" plots/plot.py --recorded plots/data --out plots/pictures
    fi
}

main_job() {
    local results status=0
    choose_steps
    install_missing
    choose_preset
    results=build/$preset/results.jsonl
    build "$preset" --target "${steps[@]}" report
    if [[ $also_compile_cuda ]]; then
        say 'A CUDA toolkit is here but no card is used: everything is compiled for the card too (--quick leaves this out)'
        build cuda --target "${steps[@]}" attention_steps
    fi

    # Written under another name and renamed, so that results.jsonl is always the whole of one run.
    unfinished=("$results.part" "$results.part.line" "$results.part.log")
    : >"$results.part"
    run_steps "$results.part"
    mv "$results.part" "$results"
    rm -f "${unfinished[@]}"

    show_table "$results" || status=$exit_wrong
    draw_plots "$results" || status=$exit_wrong
    say "Results: $results"
    if ((${#failed_steps[@]} > 0)); then
        say "FAILED: ${failed_steps[*]}"
        status=$exit_wrong
    fi
    return "$status"
}

# ---- the tests --------------------------------------------------------------------------------------------------

# Criterion ends each test program's output with a line that counts; ctest keeps all output in a log.
count_criterion() { # PRESET
    local log=build/$1/Testing/Temporary/LastTest.log
    [[ -e $log ]] || return 0
    sed 's/\x1b\[[0-9;]*m//g' "$log" | awk -v preset="$1" '
        /Synthesis: Tested:/ {
            programs++
            gsub(/[^0-9]+/, " ")
            split($0, counts, " ")
            for (i = 1; i <= 4; i++) sum[i] += counts[i]
        }
        END {
            printf "Criterion, %s: %d tested, %d passed, %d failing, %d crashing, in %d programs\n",
                preset, sum[1], sum[2], sum[3], sum[4], programs
        }'
}

run_tests_of() { # PRESET
    local log=build/$1/ctest.log status=0
    build "$1"
    ctest --preset "$1" --output-on-failure --no-tests=error --parallel 2 2>&1 | tee "$log" || status=$?
    summary+=("ctest, $1: $(grep -E 'tests passed|No tests' "$log" | tail -n 1)" "$(count_criterion "$1")")
    mapfile -t -O "${#summary[@]}" summary < <(sed -nE 's/^.* - (.*) \((Skipped|Disabled|Not Run)\).*/  \2: \1/p' "$log")
    return "$status"
}

tests_job() {
    local status=0
    summary=()
    install_missing
    choose_preset
    run_tests_of sim || status=$?
    if [[ $preset == cuda ]]; then
        run_tests_of cuda || status=$?
    else
        summary+=('On a card: skipped, there is no card with a CUDA toolkit here')
    fi
    say ''
    printf '%s\n' "${summary[@]}"
    if ((status == 0)); then say 'Every test that ran here passed.'; else say 'Some tests FAILED.'; fi
    return "$status"
}

# ---- the counters of a step -------------------------------------------------------------------------------------

profile_job() {
    choose_steps
    ((${#steps[@]} == 1)) || die $exit_usage "profile takes one step, not \"$wanted_steps\""
    find_nvcc || die $exit_missing 'profile needs nvcc of the CUDA toolkit, on PATH or in /usr/local/cuda/bin'
    have ncu || die $exit_missing 'profile needs ncu of Nsight Compute, which comes with the CUDA toolkit, on PATH'
    have_card || die $exit_missing 'profile needs a CUDA card, and this machine has none'
    install_missing
    build cuda --target "${steps[0]}"
    plots/profile.sh "${steps[0]}" --batch 4 --heads 16 --seq 1024 --dim 64 "${sizes[@]}"
}

parse_options "$@"
exec 3>&2 # for `interrupted`, which may be called while standard error goes to a log
trap interrupted INT TERM
shopt -s checkwinsize # COLUMNS follows the terminal's width,
(:)                   # once a command has run
case $job in
tests) tests_job ;;
profile) profile_job ;;
*) main_job ;;
esac
