#!/usr/bin/env bash
# Correct solutions in other styles than the book's earn full points. A section `## TASK_STYLE` of correct.holes holds the text of
# the task's holes, each after a line "// ---- hole N"; one of correct.changes changes a starter that is a whole kernel (common/change).
#     correct.sh EXERCISE [NAME...]      NAME: 05a, or 05a_lambda; all of them without
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
exercise=$(realpath "$1")
here=$PWD/tests/exercises
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The starter of task $1, in a folder of the test's own: work/ here is the reader's.
starter() {
    local folder=$work/$1.folder
    mkdir "$folder" && ln -s "$PWD"/{exercises,steps,tests,common} "$folder" &&
        (cd "$folder" && "$exercise" start "$1" >/dev/null) && mv "$folder/work/$1.cu" "$work/$1.cu"
}
# The section NAME of correct.holes into the holes of STARTER
fill() {
    awk -v name="$1" 'FNR == NR { if (/^## /) { here = $2 == name; hole = 0 }
                                   if (!here || /^$/) next
                                   if (/^\/\/ ---- hole [1-9]$/) hole = $4; else if (hole) text[hole] = text[hole] $0 "\n"; next }
         /^ *\/\/ <<< End of hole/ { inside = 0 }
         !inside { print }
         /^ *\/\/ >>> Hole/ { inside = 1; printf "%s", text[$4 + 0] }' "$here/correct.holes" "$2"
}
judge() { # TASK_STYLE
    local name=$1 task=${1%%_*} status=0
    if grep -qx "## $name" "$here/correct.holes"; then
        fill "$name" "$work/$task.cu" >"$work/$name.cu"
    else
        common/change apply "$here/correct.changes" "$name" "$work/$task.cu" >"$work/$name.cu" || { echo "FAILED  $name" && return 1; }
    fi
    "$exercise" grade "$task" "$work/$name.cu" >"$work/$name.out" 2>&1 || status=$?
    if ((status == 0)); then
        echo "ok      $name"
    else
        echo "FAILED  $name" && grep -v '^ *ok ' "$work/$name.out" | sed 's/^/    /' | head -n 16
        return 1
    fi
}

mapfile -t solutions < <(common/change list "$here"/correct.{holes,changes})
names=()
for folder in exercises/*_*/; do
    task=${folder#*/} && task=${task%%_*}
    mapfile -t styles < <(printf '%s\n' "${solutions[@]}" | grep "^${task}_")
    ((${#styles[@]} > 0)) || { echo "FAILED  no solution of $task" && exit 1; }
    chosen=()
    for style in "${styles[@]}"; do
        (($# == 1)) && chosen+=("$style")
        for wanted in "${@:2}"; do [[ $wanted == "$task" || $wanted == "$style" ]] && chosen+=("$style"); done
    done
    ((${#chosen[@]} == 0)) || { starter "$task" && names+=("${chosen[@]}"); } || exit 1
done
((${#names[@]} > 0)) || exit 1
export -f judge fill
export exercise here work
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P 2 bash -c 'judge "$1"' judge
