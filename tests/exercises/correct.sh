#!/usr/bin/env bash
# Correct solutions in other styles than the book's earn full points. correct/<task>_<style>.txt holds the text of a task's
# holes, each after a line "// ---- hole N"; correct/<task>_<style>.sed edits the holes of a starter that is a whole kernel.
# The first line says the style. A file with a line "needs: CONSTRUCT" may still be refused by the scan.
#     correct.sh EXERCISE [NAME...]      NAME: 05a, or 05a_lambda; all of them without
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
exercise=$(realpath "$1")
here=$PWD/tests/exercises/correct
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The starter of task $1, in a folder of the test's own: work/ here is the reader's.
starter() {
    local folder=$work/$1.folder
    mkdir "$folder" && ln -s "$PWD"/{exercises,steps,tests,common} "$folder" &&
        (cd "$folder" && "$exercise" start "$1" >/dev/null) && mv "$folder/work/$1.cu" "$work/$1.cu"
}
# FILE into the holes of STARTER
fill() {
    awk 'FNR == NR { if (/^\/\/ ---- hole [1-9]$/) hole = $4; else if (hole) text[hole] = text[hole] $0 "\n"; next }
         /^ *\/\/ <<< End of hole/ { inside = 0 }
         !inside { print }
         /^ *\/\/ >>> Hole/ { inside = 1; printf "%s", text[$4 + 0] }' "$1" "$2"
}
judge() { # FILE
    local name task status=0
    name=$(basename "$1") && name=${name%.*} && task=${name%%_*}
    if [[ $1 == *.sed ]]; then
        sed -E -f "$1" "$work/$task.cu" >"$work/$name.cu"
        cmp -s "$work/$task.cu" "$work/$name.cu" && echo "FAILED  $name changes nothing" && return 1
    else
        fill "$1" "$work/$task.cu" >"$work/$name.cu"
    fi
    "$exercise" grade "$task" "$work/$name.cu" >"$work/$name.out" 2>&1 || status=$?
    if ((status == 0)); then
        echo "ok      $name"
    elif ((status == 1)) && grep -q '^Not accepted' "$work/$name.out" && grep -q 'needs: ' "$1"; then
        echo "waits   $name: $(sed -n 's/.*needs: //p' "$1")"
    else
        echo "FAILED  $name" && grep -v '^ *ok ' "$work/$name.out" | sed 's/^/    /' | head -n 16
        return 1
    fi
}

files=()
for file in "$here"/*; do
    name=$(basename "$file")
    (($# == 1)) && files+=("$file")
    for wanted in "${@:2}"; do [[ $name == "$wanted"[_.]* ]] && files+=("$file"); done
done
if (($# == 1)); then
    for task in exercises/*/task.json; do
        task=${task#exercises/} && task=${task%%_*}
        compgen -G "$here/${task}_*" >/dev/null || { echo "FAILED  no solution of $task" && exit 1; }
    done
fi
((${#files[@]} > 0)) || exit 1
for task in $(printf '%s\n' "${files[@]##*/}" | sed 's/_.*//' | sort -u); do starter "$task" || exit 1; done
export -f judge fill
export exercise work
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P 2 bash -c 'judge "$1"' judge
