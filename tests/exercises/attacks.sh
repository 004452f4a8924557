#!/usr/bin/env bash
# attacks.sh GRADER [all|COUNT] [WORD]: hostile submissions get what they earned, a message that says why,
# and leave no trace. COUNT of them are drawn by the commit, or by SEED; WORD: only those whose names hold it. With JOBS at
# once (2). Then each protection is switched off in turn, and the attack that it alone stops must succeed. As root those of which a
# program was made, or whose compiler had to be stopped, run once more, as a user without rights.
#
# Each file of attacks/ is a table of submissions. The code of each is put into the hole of a task's solution and graded:
#
#     //! what it does
#     //: task 00b        the task, 00b where nothing else is named; its solution is what the code is put into
#     //: change          the file `changes` has a change of the solution by the attack's name (common/change)
#     //: end             at the hole's end, rather than at its top
#     //: escapes         \r and the like in the code stand for the characters
#     //: score < 60      what the points must fulfil; == 0 where nothing else is named
#     //: options WORDS   for the command
#     //: says REGEX      the report must match it
#     //: alone PROTECTIONS -> REGEX      the proof that a protection stops it: without these, the report matches this
#     the code
#
# The protections are `tokens`, `objects`, `machine` and `bounds` (docs/teaching.md says what each of them is), and `macros`: the macros of
# a hole end with it. All attacks run without `scan`, the words that explain a failed build.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
grader=$1 count=${2-all} word=${3-}
seed=${SEED-$(git rev-parse HEAD 2>/dev/null || echo 1)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
export grader work
as_user=''
export as_user
mkdir -m 777 "$work/cache"
export EXERCISES_FOLDER=$work/cache
# A canary: nothing of it may come back in a report.
canary="canary $RANDOM$RANDOM"
printf '%s\n' "$canary" >"$work/canary.txt"
export canary

say_failed() { # NAME WHY REPORT
    printf 'FAILED %s: %s\n' "$1" "$2"
    head -n 30 "$3" | sed 's/^/    /'
}

# judge NAME FILE TASK POINTS REGEX [OPTIONS]: POINTS is a condition on score, or "refused"; REGEX must match the report.
judge() {
    local what=$1 file=$2 task=$3 points=$4 regex=$5 score code=0 began=$SECONDS report=$2.report
    shift 5
    # shellcheck disable=SC2086 # a command with its options
    timeout 300 $as_user "$grader" grade "$task" "$file" "$@" >"$report" 2>&1 </dev/null || code=$?
    score=$(sed -nE 's/^Score: ([0-9]+)(\.[0-9])? of 100$/\1/p' "$report" | tail -n 1)
    if ((code > 2)); then
        say_failed "$what" "exit status $code" "$report"
    elif ((code == 2)) && [[ $points != refused ]]; then
        say_failed "$what" 'exit status 2' "$report"
    elif ((code != 2)) && ! (eval "((${points//score/${score:-999}}))"); then
        say_failed "$what" "the score is ${score:-missing}" "$report"
    elif ! grep -qE "$regex" "$report"; then
        say_failed "$what" "the report does not say \"$regex\"" "$report"
    elif ((SECONDS - began > 240)); then
        say_failed "$what" "it took $((SECONDS - began)) s" "$report"
    elif (($(stat -c %s "$report") > 100000)); then
        say_failed "$what" 'the report is longer than 100 KB' "$report"
    elif grep -qF "$canary" "$report"; then
        say_failed "$what" 'the report holds the canary' "$report"
    else
        printf 'ok     %s\n' "$what"
    fi
}

# A folder per attack: the members of its head as files, and code.
split_tables() {
    awk -v to="$work/attacks" '
        /^\/\/! / { if (folder) close(folder "/code"); folder = sprintf("%s/%03d", to, ++number); system("mkdir -p " folder)
                    printf "" >(folder "/code"); print substr($0, 5) >(folder "/name"); close(folder "/name"); next }
        /^\/\/: / { file = folder "/" $2; print substr($0, 5 + length($2) + 1) >file; close(file); next }
        folder { print >(folder "/code") }' tests/exercises/attacks/*.cu
}

member() { cat "$1/$2" 2>/dev/null || echo "$3"; } # FOLDER NAME OTHERWISE

# The solution, changed where the head says so, with the attack's code in its first hole.
write_submission() { # FOLDER
    local folder=$1 task code solution report=$1/try.cu.report
    task=$(member "$folder" task 00b)
    solution=$work/$task.cu
    if [[ -e $folder/change ]]; then
        common/change apply tests/exercises/attacks/changes "$(cat "$folder/name")" "$solution" >"$folder/solution.cu" 2>"$report" ||
            { say_failed "$(cat "$folder/name")" 'its change does not apply' "$report" && return 1; }
        solution=$folder/solution.cu
    fi
    code=$(cat "$folder/code")
    [[ ! -e $folder/escapes ]] || code=$(printf %b "$code")
    CODE=$code END=$([[ -e $folder/end ]] && echo 1) awk '
        ENVIRON["END"] && /\/\/ <<< End of hole 1/ { print ENVIRON["CODE"] }
        { print }
        !ENVIRON["END"] && /\/\/ >>> Hole 1/ { print ENVIRON["CODE"] }' \
        "$solution" >"$folder/try.cu"
}

attack() { # FOLDER
    local folder=$1 points
    points="score $(member "$folder" score '== 0')"
    write_submission "$folder" || return
    # shellcheck disable=SC2046 # words
    EXERCISES_WITHOUT=scan judge "$(cat "$folder/name")" "$folder/try.cu" "$(member "$folder" task 00b)" "$points" "$(cat "$folder/says")" \
        $(member "$folder" options '')
}

# With the protections off that its table names, the attack does what it says: so they were what stopped it.
prove_protection() { # FOLDER
    local folder=$1 head
    head=$(cat "$folder/alone")
    write_submission "$folder" || return
    EXERCISES_WITHOUT=${head%% -> *} judge "without ${head%% -> *}: $(cat "$folder/name")" "$folder/try.cu" \
        "$(member "$folder" task 00b)" 'score >= 0' "${head#* -> }"
}
export -f say_failed judge member write_submission attack prove_protection

files() { # what is no kernel file
    head -c 3000000 /dev/zero | tr '\0' 'x' >"$work/large.cu"
    judge 'a file of 3 MB' "$work/large.cu" 05a refused 'large'
    head -c 3000 /dev/urandom >"$work/noise.cu"
    printf '\0' >>"$work/noise.cu"
    judge 'noise' "$work/noise.cu" 05a refused 'zero bytes'
    : >"$work/empty.cu"
    judge 'an empty file' "$work/empty.cu" 05a 'score == 0' 'must each be there once'
    sed '/<<< End of hole 1/d' "$work/05a.cu" >"$work/marker.cu"
    judge 'a marker is gone' "$work/marker.cu" 05a 'score == 0' 'must each be there once'
    sed 's/\.forward = forward/.forward = nullptr/' "$work/05a.cu" >"$work/outside.cu"
    judge 'a change outside the hole' "$work/outside.cu" 05a 'score == 100' 'outside the holes'
    judge 'no such file' "$work/none.cu" 05a refused 'No such file'
    judge 'no such task' "$work/05a.cu" 99z refused 'no task'
}

# What the scan says of a hole that does not build, beside the compiler.
words() {
    local number=0 code says
    while IFS='|' read -r code says; do
        ((++number))
        awk -v code="$code" '{ print } />>> Hole 1/ { print code }' "$work/00b.cu" >"$work/words$number.cu"
        judge "words: $says" "$work/words$number.cu" 00b 'score == 0' "line [0-9]+: $says"
    done <<'END'
asm volatile("nop");|asm: inline assembly
cudaMemset(O, 0, 4);|cudaMemset: a hole holds device code only
} static void f() {|a bracket closes what this hole did not open
if (row < 0) {|a bracket is not closed in this hole
extern "C" int kill(int, int); const char *text = "{ // '"; // {|extern: a hole declares nothing
/* the rest is mine|a comment does not end in its hole
END
}

# The process around a submission has nothing to compare results with.
no_reference() {
    local kernel=exercises/00b_guarded_copy/solution.cu program
    EXERCISES_FOLDER=$work/programs "$grader" try yours "$kernel" book "$kernel" '--seq 8' 1 >"$work/report" 2>&1
    for program in "$work"/programs/*; do
        if ! nm "$program" | grep ' T run_forward$' >"$work/run" || nm "$program" | grep -E ' [tT] (reference_|check_)' >"$work/report"; then
            say_failed 'the reference is not in the process' "$program" "$work/report"
        else
            echo 'ok     the reference is not in the process'
        fi
    done
}

# Stores that g++ makes of no attack here: they may not pass unjudged.
instructions() {
    local line
    if printf 'f:\n\t.cfi_startproc\n\tret\n\t.cfi_endproc\n' | awk -f common/simt/confined/confine.awk >"$work/report" 2>&1; then
        say_failed 'a function without hooks' 'it passes' "$work/report"
    else
        echo 'ok     a function without hooks'
    fi
    for line in 'btsq\t$40, (%rax)' 'btrq\t%rdx, -8(%rbp)' 'btcl\t$31, 8(%rsp,%rax,8)'; do
        if printf '\t%b\n' "$line" | awk -f common/simt/confined/confine.awk >"$work/report" 2>&1; then
            say_failed "the instruction $line" 'it passes' "$work/report"
        else
            echo "ok     the instruction $line"
        fi
    done
}

each() { xargs -r -P "${JOBS-2}" -I{} bash -c "$1 {}"; } # FUNCTION, for each folder of standard input

split_tables
for folder in exercises/*_*/; do task=${folder#*/} && task=${task%%_*} && "$grader" solution "$task" >"$work/$task.cu"; done
list=$(grep -lie "$word" "$work"/attacks/*/name | sed 's,/name$,,')
[[ $count == all ]] || list=$(for folder in $list; do echo "$(printf '%s %s' "$seed" "$(cat "$folder/name")" | cksum) $folder"; done |
    sort | head -n "$count" | sed 's/.* //')
{
    no_reference
    instructions
    files
    words
    each attack <<<"$list"
    if [[ $count == all ]]; then
        for folder in $list; do [[ ! -e $folder/alone ]] || echo "$folder"; done | each prove_protection
    fi
    if [[ ! ${NO_USER-} ]] && ((EUID == 0)) && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$grader" -a -r common/device/attention.h; then
        as_user="setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=$work"
        chmod -R a+rwX "$work"
        chmod 600 "$work/canary.txt"
        echo "as an ordinary user:"
        for folder in $list; do grep -q '^Not accepted' "$folder/try.cu.report" && ! grep -qE 'the compiler (needed|failed)' "$folder/try.cu.report" || echo "$folder"; done | each attack
    fi
} | tee "$work/log"
left=$(find "$work/cache" -mindepth 1 | wc -l)
((left == 0)) || echo "FAILED: $left files are left"
[[ ! -e /tmp/hostile ]] || echo 'FAILED: a submission ran a command or wrote a file'
echo "$(grep -c '^ok\|^FAILED' "$work/log") submissions"
grep '^FAILED' "$work/log" # once more, at the end, where a shortened log still has it
((left == 0)) && [[ ! -e /tmp/hostile ]] && ! grep -q '^FAILED' "$work/log"
