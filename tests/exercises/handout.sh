#!/usr/bin/env bash
# handout.sh [--commands] [TASKS]...: ./run.sh handout, for each list of chapters and tasks. In the folder no file shows a
# solution, and the starters and solutions are graded; with --commands, which takes minutes, every command of the pages
# runs. Without lists those of continuous integration;
# the others are '01', '03' and '06 09'. Runs in the checkout, whose steps are built; the handouts share one build folder.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
book=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
every='' && [[ ${1-} != --commands ]] || { every=yes && shift; }
(($# > 0)) || set -- '01 02 05' '10 11'
failed=0 course=$work/course
check() { # WHAT, after a command whose success decides
    if (($? == 0)); then echo "ok      $1"; else echo "FAILED  $1" && tail -n 60 "$work/log" | sed 's/^/    /' && failed=1; fi
}
commands() { BOOK_ROOT=$course python3 -B "$book/tests/docs/run_commands.py" --handout "$@"; }

for list; do
    read -ra wanted <<<"$list"
    rm -rf "$work/build" && mv "$course/build" "$work/build" 2>"$work/log"
    rm -rf "$course"
    ./run.sh handout "$course" "${wanted[@]}" >"$work/log" 2>&1
    check "handout $list"
    python3 -B tests/exercises/no_leak.py build/sim/bin/exercise "$course" >"$work/log"
    check "$list: no file shows a solution or a hint"
    find "$course" -name '*.md' -print0 | xargs -0 python3 -B tests/docs/check_references.py links >"$work/log" 2>&1
    check "$list: no link leads to what is not handed out"
    [[ ! -e $course/tests && ! -e $course/docs/teaching.md && ! -e $course/docs/answers ]] && ! compgen -G "$course/exercises/*changes" >"$work/log"
    check "$list: no tests, changes, answers"
    for task in "$course"/exercises/*_*/; do
        id=$(basename "$task") && id=${id%%_*}
        build/sim/bin/exercise solution "$id" >"$work/$id.cu"
    done

    mv "$work/build" "$course/build" 2>"$work/log"
    cd "$course" || exit 1
    for number in "${wanted[@]}"; do
        ! ./run.sh try "$number" >"$work/log" 2>&1 && grep -q 'without its source' "$work/log"
        check "$list: try $number says that there is no source"
    done
    { cmake --preset sim && cmake --build --preset sim --parallel "$(nproc)"; } >"$work/log" 2>&1
    check "$list: every program builds"
    if [[ $every ]]; then
        status=0 && commands >"$work/log" || status=$?
        count=$(grep -c '^ok' "$work/log")
        ((status == 0))
        check "$list: the $count commands of the pages"
    fi
    for task in exercises/*_*/; do
        id=$(basename "$task") && id=${id%%_*}
        ./run.sh grade "$id" "$work/$id.cu" >"$work/log" 2>&1 # builds the handout's own grader the first time
        check "$list: full points for the solution of $id"
        [[ $id == 00? ]] || { ./run.sh grade "$id" "$task/starter.cu" >"$work/log" 2>&1; (($? == 1)); }
        check "$list: fewer for its starter"
    done
    [[ $(./run.sh start | grep -vc '^Next: ') == $(find exercises -name task.json | wc -l) ]] && ./run.sh grade "$id" --hint 1 >"$work/log" &&
        diff "$work/log" <(cd "$book" && build/sim/bin/exercise grade "$id" --hint 1)
    check "$list: a hint can be read"
    cd "$book" || exit 1
done

# The checks can fail.
printf '%s\n' '```cuda' "$(sed -n '/>>> Hole/,/<<< End of hole/p' "$work/$id.cu" | grep -v '>>> Hole\|<<< End')" '```' >"$course/docs/planted.md"
! python3 -B tests/exercises/no_leak.py build/sim/bin/exercise "$course" >"$work/log"
check "a planted solution of $id is found"
python3 -c 'import glob, json, sys; print(json.load(open(glob.glob(sys.argv[1])[0]))["holes"][0]["hints"][0])' "exercises/${id}_*/task.json" >"$course/docs/planted.md"
! python3 -B tests/exercises/no_leak.py build/sim/bin/exercise "$course" >"$work/log"
check 'a planted hint is found'
# shellcheck disable=SC2016
for page in 'See `./run.sh --steps 99`.' '```sh
./run.sh try '"${wanted[0]}"'
```' '```console
$ build/sim/bin/'"$(basename "$course/steps/${wanted[0]}"_*)"' --seq 32 --no-time
other output
```'; do
    printf '%s\n' "$page" >"$course/docs/planted.md"
    ! commands "$course/docs/planted.md" >"$work/log"
    check 'a planted command that does not run is found'
done
exit "$failed"
