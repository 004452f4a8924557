#!/usr/bin/env bash
# files.sh GRADER STEP: submissions that are odd files, reports to odd places, and tasks that are damaged: one clear line and the
# right exit status, and nothing else. Devices are the test's own, in a folder of its own.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
grader=$(realpath "$1") step=$(realpath "$2")
book=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CI
export EXERCISES_FOLDER=$work/cache
failed=0 code=0
check() { # WHAT, after a command whose success decides
    if (($? == 0)); then echo "ok     $1"; else echo "FAILED $1 (exit status $code)" && head -n 12 "$work/log" | cat -v | sed 's/^/    /' && failed=1; fi
}
run() { code=0 && timeout 60 "$@" >"$work/log" 2>&1 </dev/null || code=$?; }
one_line() { [[ $(wc -l <"$work/log") == 1 ]] && ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$work/log"; }
json() { python3 -c 'import json, sys; json.loads(open(sys.argv[1], "rb").read().decode().replace("what was here\n", ""))' "$1"; }

# ---- what is handed in --------------------------------------------------------------------------------------------------
cd "$book" || exit 1
"$grader" solution 00a >"$work/right.cu"
mkfifo "$work/fifo"
mkdir "$work/folder"
ln -s "$work/right.cu" "$work/link"
ln -s circle "$work/circle"
truncate -s 5G "$work/large"
printf 'a\0b' >"$work/zero"
files=(fifo folder link circle large zero none $'none\e[31m\n\xff')
if mknod "$work/device" c 1 5 2>/dev/null && { head -c 1 "$work/device" >/dev/null 2>&1; }; then files+=(device); else echo 'no devices can be made here'; fi
for file in "${files[@]}"; do
    rm -f "$work/none.json"
    run "$grader" grade 00a "$work/$file" --json "$work/none.json"
    printf -v name 'handed in: %q' "$file"
    ((code == 2)) && one_line && [[ ! -e $work/none.json ]]
    check "$name"
done
: >"$work/empty"
head -c 30000 /dev/urandom | tr -d '\0' >"$work/noise"
# In the hole: ESC, an 8-bit CSI, bytes that are no UTF-8, and a kernel that prints them.
{ printf '// \xe9 \x9b31m \xc3\n' && printf 'int x\x1b[31m = "\xff\xc2\x9b";\n'; } >"$work/part1"
printf 'if (threadIdx.x == 0) printf("\\x1b]0;title\\x07\\xff\\xc2\\x9b" "31m\\n");\n' >"$work/part2"
for part in part1 part2; do
    awk -v part="$work/$part" '{ print } /\/\/ >>> Hole 1/ { while ((getline line <part) > 0) print line }' "$work/right.cu" >"$work/$part.cu"
done
for file in empty noise part1.cu part2.cu; do
    run "$grader" grade 00a "$work/$file" --gradescope "$work/results.json" --exercism "$work/exercism.json" --json "$work/plain.json"
    ((code <= 1)) && ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$work/log" && iconv -f UTF-8 -t UTF-8 "$work/log" >/dev/null &&
        ! grep -q $'\xc2\x9b' "$work/log" "$work/results.json" && json "$work/results.json" && json "$work/exercism.json" && json "$work/plain.json"
    check "$file: nothing raw in the report, and results.json is UTF-8"
done
grep -q 'it printed: ?]0;title????31m' "$work/log"
check 'what a kernel prints is shown cleaned'
# shellcheck disable=SC1003 # a name that would end the string of #line
cp "$work/part1.cu" "$work/"$'a"\n#error NAME\\.cu'
run "$grader" grade 00a "$work/"$'a"\n#error NAME\\.cu'
((code == 1)) && ! grep -q 'error: #error' "$work/log"
check 'a name does not become a line of the program'

# ---- a machine that lacks something: no points, and what it is ------------------------------------------------------------------
lacks() { # WHAT REGEX COMMAND...
    run "${@:3}"
    ((code == 3)) && [[ $(grep -c '^run.sh: ' "$work/log") == $(wc -l <"$work/log") ]] && tail -n 1 "$work/log" | grep -qE "$2" && [[ ! -e $work/none.json ]]
    check "lacks $1"
}
right=("$grader" grade 00a "$work/right.cu" --json "$work/none.json")
lacks nm 'lacks something.* nm: No such file' env PATH="$work/none" "${right[@]}"
lacks 'the right to read what it writes' 'own-' bash -c 'umask 777 && exec "$@"' umask "${right[@]}"
mkdir "$work/small"
if mount -t tmpfs -o size=32k tmpfs "$work/small" 2>/dev/null; then
    lacks space 'lacks something.* No space left' env EXERCISES_FOLDER="$work/small" "${right[@]}"
    umount "$work/small"
else
    echo 'no file system can be mounted here'
fi
(until kill -KILL "$(pgrep -f "^$work/cache/own-[^/]*/submission|^bwrap.*$work/cache/own-[^/]*/submission\$" | head -n 1)"; do :; done) 2>/dev/null &
"$grader" solution 05a >"$work/05a.cu"
lacks memory 'little memory' "$grader" grade 05a "$work/05a.cu" --json "$work/none.json"
kill $! 2>/dev/null
mkdir -p "$work/autograder/results"
run env PATH="$work/none" AUTOGRADER="$work/autograder" COURSE="$book" /bin/sh exercises/run_autograder
((code == 3)) && [[ -z $(ls "$work/autograder/results") ]]
check 'an autograder that lacks programs'

# ---- reports ------------------------------------------------------------------------------------------------------------
places() { # WHAT OPTION COMMAND...: the command writes JSON to the value of the option
    local what=$1 option=$2 place
    shift 2
    echo 'what was here' >"$work/target.json"
    rm -f "$work/out.link" && ln -s target.json "$work/out.link"
    run "$@" "$option" "$work/out.link"
    ((code == 0)) && [[ -L $work/out.link ]] && json "$work/target.json"
    check "$what: through a link"
    rm -f "$work/out.fifo" && mkfifo "$work/out.fifo"
    cat "$work/out.fifo" >"$work/read" &
    run "$@" "$option" "$work/out.fifo"
    wait $!
    ((code == 0)) && [[ -p $work/out.fifo ]] && json "$work/read"
    check "$what: to a FIFO"
    for place in null full; do
        [[ " ${files[*]} " == *' device '* ]] || continue
        rm -f "$work/out.$place" && mknod "$work/out.$place" c 1 "$([[ $place == null ]] && echo 3 || echo 7)"
        run "$@" "$option" "$work/out.$place"
        [[ -c $work/out.$place ]] && if [[ $place == null ]]; then ((code == 0)); else ((code == 3)) && grep -q 'out.full.*No space left' "$work/log"; fi
        check "$what: to a device, $place"
    done
    code=0
    { sleep 0.3 && "$@" "$option" - 2>"$work/log"; } | : # the reader is gone
    code=${PIPESTATUS[0]}
    ((code == 3)) && grep -q 'Broken pipe' "$work/log"
    check "$what: to a closed pipe"
    [[ -z $(find "$work" -name '*.part*') ]]
    check "$what: nothing half-written"
}
places 'grade --json' --json "$grader" grade 00a "$work/right.cu"
places 'grade --gradescope' --gradescope "$grader" grade 00a "$work/right.cu"
places 'a step, --json' --json "$step" --seq 16 --dim 8 --heads 1 --no-time
places 'a step, --trace' --trace "$step" --seq 16 --dim 8 --heads 1 --no-time
echo 'what was here' >"$work/kept.json"
(ulimit -f 1 && trap '' XFSZ && run "$step" --seq 64 --dim 8 --heads 1 --no-time --trace "$work/kept.json"; exit "$code")
code=$?
((code == 3)) && grep -q 'kept.json.*File too large' "$work/log" && [[ $(cat "$work/kept.json") == 'what was here' ]]
check 'a trace that does not fit leaves the file as it was'

# ---- tasks --------------------------------------------------------------------------------------------------------------
mkdir -p "$work/book/exercises"
cp -r exercises/00b_* exercises/05a_* exercises/shapes.json "$work/book/exercises"
ln -s "$book/steps" "$book/common" "$work/book"
cd "$work/book" || exit 1
cat >"$work/damage.py" <<'PY'
"""damage.py ORIGINAL COPY: for each member of the JSON, one copy without it and copies with another type; prints the path."""
import copy, json, subprocess, sys
original, target, grader, name = sys.argv[1:]
whole = json.load(open(original))
def places(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(key, str) or key < 2:
            yield path + (key,)
            yield from places(inner, path + (key,))
bad = count = 0
for path in places(whole):
    for what in ["absent", None, -1, "text", [], {}, [None], [[None, None]], 1e300]:
        broken = copy.deepcopy(whole)
        parent = broken
        for key in path[:-1]:
            parent = parent[key]
        if what == "absent":
            del parent[path[-1]]
        else:
            parent[path[-1]] = what
        json.dump(broken, open(target, "w"))
        result = subprocess.run([grader, "grade", "05a", "--hint", "1"], capture_output=True, text=True, timeout=20)
        count += 1
        lines = result.stderr.count("\n")
        named = name in result.stderr and ("expected" in result.stderr or "no longer has" in result.stderr or "does not apply" in result.stderr
                                           or "go together" in result.stderr or "no such" in result.stderr.lower() or "not there once" in result.stderr)
        if not (result.returncode == 0 and lines == 0 or result.returncode == 3 and lines == 1 and named):
            print("FAILED", path, what, result.returncode, result.stderr[:200])
            bad += 1
print(f"{count} damaged copies of {name}")
sys.exit(bad > 0)
PY
for file in task.json shapes.json; do
    path=exercises/$file
    [[ $file == shapes.json ]] || path=$(echo exercises/05a_*/task.json)
    cp "$book/$path" "$work/original.json"
    # shapes.json: what is needed of it by 05a; names of the file stand in the message
    run python3 "$work/damage.py" "$work/original.json" "$path" "$grader" "$([[ $file == task.json ]] && echo 05a_ || echo shapes.json)"
    name="damaged copies of $file are refused by file and member: $(tail -n 1 "$work/log")"
    ((code == 0))
    check "$name"
    cp "$work/original.json" "$path"
done
path=$(echo exercises/05a_*/task.json)
jq_free() { python3 -c 'import json, sys; t = json.load(open(sys.argv[1])); exec(sys.argv[2]); json.dump(t, open(sys.argv[3], "w"))' "$work/task" "$1" "$path"; }
cp "$path" "$work/task"
says() { # CHANGE REGEX
    jq_free "$1"
    run "$grader" grade 05a --hint 1
    ((code == 3)) && one_line && grep -qE "$2" "$work/log"
    check "task.json, $1"
}
says 't["holes"][0]["hints"][1] = None' '05a_.*/task.json: holes\[0\].hints: a list of at most 3 strings is expected'
says 'del t["holes"][0]["what"]' '05a_.*/task.json: holes\[0\].what: a string is expected'
says 't["points"] = [1, 2]' '05a_.*/task.json: points: a list of 3 numbers'
printf '{' >"$path"
run "$grader" grade 05a --hint 1
((code == 3)) && one_line && grep -q 'task.json: JSON is expected' "$work/log"
check 'task.json that is no JSON'

# ---- changes ------------------------------------------------------------------------------------------------------------
changes=exercises/warm_ups.changes solution=$(echo exercises/00b_*/solution.cu)
change() { # NAME REGEX: `exercise solution` with this change reports REGEX
    run "$grader" solution 00b "$1"
    ((code == 3)) && grep -qE "$2" "$work/log"
    check "a change $1: $2"
}
printf '%s\n' '## 00b stale' 'loses: cost' 'says: x' 'file: solution.cu' '-    if (row > p.N) return;' '' \
    '## 00b twice' 'loses: cost' 'says: x' 'file: solution.cu' ' }' '+//' '' '## 00b harmless' 'loses: results' 'says: wrong' 'file: solution.cu' '-    if (row >= p.N_q || col >= p.d) return;' '+    if (col >= p.d || row >= p.N_q) return;' >"$changes"
printf '}\n' >>"$solution"
change stale 'place 1 of 1 occurs 0 times in .*solution.cu'
change twice 'place 1 of 1 occurs [2-9] times in .*solution.cu'
change none 'none: there is no such change'
change nowhere.changes:none 'cannot read nowhere.changes'
cp "$book/$solution" "$solution"
sed -i '1,/^## 00b harmless/{/^## 00b harmless/!d}' "$changes"
run "$grader" prove 00b
((code == 1)) && grep -q '^FAILED 00b harmless: it scored full points' "$work/log"
check 'prove: a wrong filling that earns full points'
for edit in 's/^loses: .*/loses: time/' 's/^loses: .*/loses: cost/; s/^says: .*//' 's/^loses: .*//'; do
    sed -i "$edit" "$changes"
    run "$grader" prove 00b
    ((code == 3)) && one_line && grep -q 'warm_ups.changes: 00b harmless: .* is expected' "$work/log"
    check "changes after $edit"
done
exit "$failed"
