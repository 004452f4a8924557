#!/usr/bin/env bash
# ./run.sh grade TASK --all FOLDER --csv FILE: a class of odd files and names, interrupted and resumed, its CSV and its pairs.
# In the checkout, whose grader is built.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 class=$work/class csv="$work/the grades.csv"
check() { # WHAT, after a command whose success decides
    if (($? == 0)); then echo "ok      $1"; else echo "FAILED  $1" && tail -n 40 "$work/out" "$work/err" | sed 's/^/    /' && failed=1; fi
}
grade() { status=0 && ./run.sh grade 05a --all "$class" --csv "$csv" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?; }
refused() { # STATUS ARGUMENTS...
    status=0 && ./run.sh grade "${@:2}" >"$work/out" 2>"$work/err" </dev/null || status=$?
    ((status == $1)) && [[ $(wc -l <"$work/err") == 1 && ! -s $work/out && ! -e $csv && ! -e $csv.reports ]]
    check "grade ${*:2}: exit status $status, one line"
}
look() { # PYTHON: with rows by student, and marked, a set of pairs
    python3 - "$csv" "$1" >"$work/out" 2>&1 <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8")))
print(*rows, sep="\n")
rows = {row["student"]: row for row in rows}
pairs = list(csv.DictReader(open(sys.argv[1] + ".reports/pairs.csv", newline="", encoding="utf-8")))
print(*pairs, sep="\n")
marked = {tuple(sorted((pair["student"], pair["other"]))) for pair in pairs if pair["marked"] == "yes"}
assert eval(sys.argv[2]), sys.argv[2]
PY
    check "$1"
}
fill() { # FILLING FILE: the starter with this in its hole
    python3 - "$work/task/starter.cu" "$1" "$2" <<'PY'
import re, sys
starter, filling = (open(name).read() for name in sys.argv[1:3])
open(sys.argv[3], "w").write(re.sub(r"(// >>> Hole 1:[^\n]*\n).*?([ \t]*// <<< End)", lambda hole: hole[1] + filling + hole[2], starter, flags=re.DOTALL))
PY
}

mkdir "$work/task" "$class"
build/sim/bin/exercise starter 05a >"$work/task/starter.cu" || exit 1
refused 2 05a --all "$class"
refused 2 05a --csv "$csv"
refused 2 05a --all "$class" --csv "$csv"
refused 2 05a --all "$class" --csv "$csv" --bogus
refused 2 05a --all "$class" --csv "$csv" --hidden x
refused 2 99z --all "$class" --csv "$csv"
refused 3 05a --all "$work/none" --csv "$csv"
refused 3 05a --all "$class/" --csv "$work/none/grades.csv" --all "$work/none"

for style in $(sed -n 's/^## 05a_//p' tests/exercises/correct.holes); do
    sed -n "/^## 05a_$style\$/,/^## /p" tests/exercises/correct.holes | sed '/^## /d; /^\/\/ ----/d' >"$work/filling" && fill "$work/filling" "$class/$style.cu"
done
independent=$(find "$class" -name '*.cu' | wc -l)
sed -e 's/\bscaled\b/x1/g; s/\bbefore\b/x2/g; s/\bshrink\b/x3/g; s/\bcolumn\b/x4/g' -e 's/ = /  =  /' "$class/one_row_at_a_time.cu" >"$class/copied.cu"
# Names of the starter's are others in it, too; the order, the form of statements and the blanks are.
{
    echo 'auto &x1 = S_reg; auto &x2 = m_reg; auto &x3 = l_reg; auto &x4 = O_reg; const int x5 = warp_row0, x6 = key0, x7 = lane;'
    sed '/^## 05a_one_row_at_a_time$/,/^## /!d; /^\/\/ /d; /^## /d; s/\bS_reg\b/x1/g; s/\bm_reg\b/x2/g; s/\bl_reg\b/x3/g; s/\bO_reg\b/x4/g; s/\bwarp_row0\b/x5/g
        s/\bkey0\b/x6/g; s/\blane\b/x7/g; s/\br\b/row/g; s/\bcolumn\b/key/g; s/++\([a-z]*\))/\1++)/; s/x1.row. = 0.0f;$/ x1[row]=0.0f ;/
        /float before/d; /float shrink/ { s/expf(.*)/expf(less)/; s/^/    float less = before - x2[row];\n/ }
        /float scaled/s/^/    float before = x2[row];\n/' tests/exercises/correct.holes
} >"$work/filling" && fill "$work/filling" "$class/disguised.cu"
build/sim/bin/exercise solution 05a >"$class/the book.cu"
cp "$class/the book.cu" "$class/Jörg \"the\" O'Neil.cu"
cp "$work/task/starter.cu" "$class/"$'two\nlines.cu'
mkdir "$class/nothing" "$class/two" "$class/Zoë, B"
cp "$work/task/starter.cu" "$class/Zoë, B/05a.cu"
cp "$work/task/starter.cu" "$class/two/a.cu" && cp "$work/task/starter.cu" "$class/two/b.cu"
ln -s "$work/task/starter.cu" "$class/link.cu"
mkfifo "$class/fifo.cu"
head -c 2000000 /dev/zero >"$class/large.cu"
printf 'x\0y' >"$class/zero.cu"
: >"$class/empty.cu"
: >"$class/=1+2.cu"
cp "$class/the book.cu" "$class/..anna.cu" && cp "$class/the book.cu" "$class/shouted.CU"
# What costs a comparison or a walk through folders too much, hides a copy, or has more bytes than letters.
sed "s,^ *// >>> Hole 1.*,&\n    // <<< Endless loops\n    // <<< End of hole 2\n    char q = '\"'; const char *begin = \"/*\";,
    s,^ *// <<< End of hole 1,    q = '\"'; const char *end = \"*/\";\n&," "$class/copied.cu" >"$class/hidden.cu"
cp "$work/task/starter.cu" "$class/$(printf '\u5b57%.0s' {1..80}).cu"
{ printf '// >>> Hole ' && head -c 900000 /dev/zero | tr '\0' 1; } >"$class/digits.cu"
{ printf '// >>> Hole 1\n"' && printf '\\"%.0s' {1..400000}; } >"$class/quotes.cu"
{ printf '// >>> Hole 1\n' && printf '/* %.0s' {1..300000}; } >"$class/comments.cu"
printf '// >>> Hole 1\n%.0s' {1..70000} >"$class/holes.cu"
(cd "$class" && mkdir deep && cd deep && for ((i = 0; i < 1100; i++)); do mkdir a && cd -P a || exit; done)

# A machine without nm: the student is not graded, and will be.
mkdir "$work/some" "$work/programs" && cp "$class/copied.cu" "$work/some" && ln -s /usr/bin/* "$work/programs" && rm -f "$work/programs/nm"
python=$(command -v python3)
some() { status=0 && "$@" -B exercises/class.py "$PWD" 05a --all "$work/some" --csv "$work/some.csv" >"$work/out" 2>"$work/err" </dev/null || status=$?; }
some env PATH="$work/programs" "$python"
((status == 3)) && [[ $(wc -l <"$work/err") == 1 ]] && grep -q ' nm: No such file' "$work/err" && grep -q 'not graded,.* nm: No such file' "$work/some.csv"
check "a machine without nm; exit status $status"
some "$python"
((status == 0)) && grep -q ',100.0,.*,graded,' "$work/some.csv"
check 'goes on where it lacks nothing'

# Killed in the middle, then interrupted in the middle, then resumed.
mkdir "$work/own"
EXERCISES_FOLDER=$work/own setsid ./run.sh grade 05a --all "$class" --csv "$csv" --hidden 7 >"$work/out" 2>"$work/err" </dev/null &
for ((i = 0; i < 600; i++)); do [[ -e $csv && $(wc -l <"$csv") -ge 3 ]] && break; sleep 0.1; done
until [[ -n $(ls "$work/own") ]]; do sleep 0.1; done
kill -KILL "$(pgrep -f "class.py .* $csv --hidden 7\$")"
wait "$!" 2>/dev/null
for ((i = 0; i < 50; i++)); do [[ -n $(ls "$work/own") || -n $(pgrep -f "$work/own") ]] || break; sleep 0.1; done
[[ -z $(ls "$work/own") && -z $(pgrep -f "$work/own") && -z $(find "$csv.reports" -name '.*' -type f) ]]
check 'a killed run leaves no process and no copy'
python3 -c 'import csv, sys; rows = list(csv.reader(open(sys.argv[1], newline=""))); assert len(rows) > 1 and len(set(map(len, rows))) == 1' "$csv"
check 'a killed run leaves a whole CSV'
cp "$csv" "$work/killed.csv"
ls "$csv".reports/*.txt >"$work/before"
touch -d '2001-01-01' "$csv".reports/*.txt
setsid env --default-signal=INT ./run.sh grade 05a --all "$class" --csv "$csv" --hidden 7 >"$work/out" 2>"$work/err" </dev/null &
for ((i = 0; i < 600; i++)); do cmp -s "$csv" "$work/killed.csv" || break; sleep 0.1; done
kill -INT -- -"$!"
wait "$!" 2>/dev/null
[[ $(grep -c interrupted "$work/err") == 1 && $(grep -c . "$work/err") == 1 ]]
check 'an interrupted run says so'
grade --hidden 7
((status == 0)) && [[ $(wc -l <"$work/out") == 1 ]]
check "goes on; exit status $status, one line"
mapfile -t before <"$work/before"
((${#before[@]} > 0)) && [[ -z $(find "${before[@]}" -newermt 2002-01-01) ]]
check 'what had been graded is not graded again'

look 'len(rows) == '"$((independent + 23))"
look 'all(row["score"] == "100.0" and row["results"] == "60.0" and row["faults"] == row["cost"] == "20.0" for name, row in rows.items() if name.split(".")[0] in ("one_row_at_a_time", "helper_function", "copied", "hidden", "disguised", "the book"))'
look 'rows["Jörg \"the\" O'"'"'Neil"]["score"] == "100.0" and rows["Zoë, B"]["score"] == rows["two\\x0alines"]["score"] == "0.0"'
look 'all(rows[name]["status"] == "not graded" and rows[name]["note"] for name in ("nothing", "two", "link", "fifo", "large", "zero", "deep", "..anna.cu", "shouted.CU"))'
look 'rows["empty"]["status"] == "graded" and "Hole 1" in rows["empty"]["note"]'
look "\"'=1+2\" in rows and \"=1+2\" not in rows" # no formula
look 'rows["\u5b57" * 80]["status"] == "graded"'
look 'len(marked) == 6 and {name for pair in marked for name in pair} == {"copied", "disguised", "hidden", "one_row_at_a_time"}'
reports=("$csv".reports/*.txt)
((${#reports[@]} == independent + 14)) && [[ -z $(find "$csv.reports" -name '.*' -type f) ]]
check 'one report per student, and nothing else'

touch -d '2001-01-01' "$csv".reports/*.txt
echo '// a later version' >>"$class/copied.cu"
grade --hidden 7
[[ $(find "$csv.reports" -name '*.txt' -newermt 2002-01-01 | wc -l) == 1 ]]
check 'a changed file is graded again, and only that'
echo 'other,columns' >"$csv" && grade --hidden 7
((status == 2)) && [[ $(cat "$csv") == 'other,columns' && $(wc -l <"$work/err") == 1 ]]
check "a CSV of something else stays as it is; exit status $status"
exit "$failed"
