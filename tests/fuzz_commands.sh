#!/usr/bin/env bash
# fuzz_commands.sh SEED COUNT: commands of run.sh, exercise, ladder.py, simt-nvcc, simt_rewrite and a step with right and wrong
# arguments and files; some are interrupted, killed, run twice at once, or find a full disk or a checkout that they cannot write
# to. Each must end in time with a known exit status, never by a signal, say one line when the usage is wrong, and leave nothing
# half-written and no process. In a copy of the checkout, with the programs that are built; SEED repeats a run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
[[ ${1-} =~ ^[0-9]+$ && ${2-} =~ ^[0-9]+$ ]] || { echo 'usage: fuzz_commands.sh SEED COUNT' >&2 && exit 2; }
book=$PWD count=$2 failed=0 work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
RANDOM=$1
readonly SECONDS_EACH=90

# The copy has the checkout's programs. Nothing is built there: what is tested are the commands around the build.
mkdir -p "$work/copy/build/sim" "$work/bin" "$work/submissions" "$work/home"
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$work/copy"
for part in bin lib CMakeFiles fingerprints Makefile build.ninja; do [[ ! -e $book/build/sim/$part ]] || ln -s "$book/build/sim/$part" "$work/copy/build/sim/$part"; done
mkdir "$work/copy/build/sim/built" && touch "$work/copy/build/sim/built/"{common,exercise} # none of them is older than a source
printf '#!/bin/sh\nexit 0\n' >"$work/bin/cmake" && chmod 755 "$work/bin/cmake"
cd "$work/copy" || exit 1
build/sim/bin/exercise solution 00a >"$work/right.cu"
sed 's/<<< End/<<< Fin/' "$work/right.cu" >"$work/marker.cu"
head -c 3000 /dev/urandom >"$work/random.cu"
head -c 2000000 /dev/zero | tr '\0' x >"$work/large.cu"
: >"$work/empty.cu"
printf 'int main() { return 0; }\n' >"$work/plain.cu"
printf '__global__ void k() {\n' >"$work/open.cu"
mkdir -p "$work/class/b" && cp "$work/right.cu" "$work/class/a.cu"
printf '{"step": "01_naive"\n' >"$work/broken.jsonl"
chmod -R a+rwX "$work"

tasks=(00a 05a 99z '' ../05a -x 'ä' 00a.cu '%s%n' b01 "$(printf 'x%.0s' {1..300})")
files=("$work"/{right,marker,random,large,empty,plain,open,none}.cu "$work/class" "$work/broken.jsonl" /dev/null '' 'a b')
values=(0 1 2 7 -1 x 99999999999999999999 '' 1e9 '1 2' 0x10 ' 3')
steps=(01 05 06b 77 01_naive 01,02 , '' ../01 ä)
sizes=(--seq --dim --heads --batch --seq-kv --scale --seed --bogus --causal --meter --no-check --no-time --print --json --dtype --trace)

one() { local -n list=$1; picked=${list[RANDOM % ${#list[@]}]}; }
add() { local name; for name; do one "$name" && command+=("$picked"); done; }
choose() { # fills `command`
    command=(./run.sh)
    local i
    case $((RANDOM % 16)) in
    0) command+=(start) && add tasks ;;
    1) command+=(start) && add tasks && command+=(--variant) && add values ;;
    2) command+=(grade) && add tasks files ;;
    3) command+=(grade 00a "$work/right.cu" --hidden) && add values ;;
    4) command+=(grade 00a "$work/right.cu" --json "$work/out.json") ;;
    5) command+=(grade) && add tasks && command+=(--hint) && add values ;;
    6) command+=(grade) && add tasks && command+=(--all "$work/class" --csv "$work/grades.csv" --hidden) && add values ;;
    7) command+=(handout "$work/handout") && add steps steps ;;
    8) command+=(new 9$((RANDOM % 10))_mine --from) && add steps ;;
    9) command+=(try) && add steps && command+=(--seq) && add values ;;
    10) command+=(--steps) && add steps values ;;
    11) command+=(cu) && add files ;;
    12) command=(build/sim/bin/exercise) && one tasks && command+=("$(shuf -n 1 -e start grade solution starter prove counts bogus --random-source=<(yes $RANDOM))" "$picked" "$work/none") ;;
    13) command=(env PATH=/usr/local/bin:/usr/bin:/bin python3 -B plots/ladder.py) && for i in 1 2; do add values files; done ;;
    14) command=(build/sim/bin/simt-nvcc) && add files && command+=(-o "$work/program") ;;
    *) command=(build/sim/bin/01_naive --seq $((RANDOM % 40))) && for i in 1 2; do add sizes values; done ;;
    esac
    if ((RANDOM % 12 == 0)); then command=(build/sim/lib/simt/simt_rewrite) && add files files; fi
}

run() { # in a session of its own, as an ordinary user where this one is root
    local -a as=()
    ((EUID != 0)) || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    PATH="$work/bin:$PATH" EXERCISES_FOLDER="$work/submissions" HOME="$work/home" SIMT_WATCHDOG_SECONDS=20 \
        setsid --wait timeout -k 5 "$SECONDS_EACH" "${as[@]}" "$@" </dev/null
}
bad() { # WHAT
    failed=$((failed + 1))
    printf 'FAILED  %s (%s): exit status %s, %s\n' "$(printf '%q ' "${command[@]}")" "$mode" "$status" "$1"
    head -c 1500 "$work/err" | head -n 8 | sed 's/^/    /'
}

for ((at = 0; at < count; at++)); do
    choose
    mode=plain status=0
    rm -rf "$work"/{out.json,grades.csv,grades.csv.reports,handout,handout.part,program} steps/9?_* work
    case $((RANDOM % 9)) in
    0) mode=interrupted ;;
    1) mode=killed ;;
    2) mode=full ;;
    3) mode=read-only ;;
    4) mode=twice ;;
    esac
    delay=0.$((RANDOM % 9))$((RANDOM % 10))
    case $mode in
    interrupted | killed)
        signal=INT && [[ $mode == interrupted ]] || signal=KILL
        run timeout --preserve-status -s "$signal" "$delay" "${command[@]}" >"$work/out" 2>"$work/err" || status=$?
        ;;
    full) (ulimit -f 1 && trap '' XFSZ && run "${command[@]}" >"$work/out" 2>"$work/err") || status=$? ;;
    read-only)
        chmod a-w . exercises steps build build/sim
        run "${command[@]}" >"$work/out" 2>"$work/err" || status=$?
        chmod a+w . exercises steps build build/sim
        ;;
    twice)
        run "${command[@]}" >"$work/out.2" 2>&1 &
        run "${command[@]}" >"$work/out" 2>"$work/err" || status=$?
        wait "$!"
        ;;
    *) run "${command[@]}" >"$work/out" 2>"$work/err" || status=$? ;;
    esac

    case $mode in
    interrupted) ((status <= 3 || status == 130 || status == 143)) || bad 'after SIGINT' ;;
    killed) ((status <= 3 || status == 137)) || bad 'after SIGKILL' ;;
    *)
        if ((status == 124 || status == 137)); then
            bad "it still ran after $SECONDS_EACH s"
        elif ((status > 3)) && [[ ${command[0]} != *simt-nvcc && ${command[1]-} != cu ]]; then
            bad 'which is none of 0 to 3'
        elif ((status == 1)) && [[ ${command[1]-} =~ ^(start|new|handout)$ ]]; then
            bad 'which is for points and results'
        elif ((status == 2)) && [[ ${command[0]} == ./run.sh && ${command[1]} != cu && $(wc -l <"$work/err") != 1 ]]; then
            bad "$(wc -l <"$work/err") lines, not one"
        elif ((status == 3)) && [[ ! -s $work/err && ! -s $work/out ]]; then
            bad 'without a word'
        fi
        left=$(find "$work" \( -name '*.part' -o -name '*.part.*' \) -not -path "$work/submissions/*" 2>/dev/null)
        [[ -z $left ]] || bad "it left $left"
        [[ ! -e $work/out.json || $mode == full ]] || python3 -m json.tool "$work/out.json" >/dev/null 2>&1 || bad 'the JSON is broken'
        ;;
    esac
    ! grep -qE 'Traceback|Segmentation|core dumped|AddressSanitizer|unbound variable|syntax error near' "$work/err" || bad 'it crashed'
    for file in work/*.cu steps/9?_*/*.cu; do
        [[ ! -e $file || $mode == killed ]] || tail -c 1 "$file" | od -c | grep -q '\\n' || bad "$file is half-written"
    done
done
echo "$count commands, $failed failed"
((failed == 0))
