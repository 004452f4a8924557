#!/usr/bin/env bash
# corruptions.sh GRADER CORRUPTIONS COUNT: damaged solutions never hang or kill the grader: it ends with status 0, 1 or 2, in
# time, and says a score or one line that refuses.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export grader=$1 corruptions=$2 work
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$grader" solution 01a >"$work/solution.cu"

# shellcheck disable=SC2317 # called by xargs
grade_one() {
    local code=0
    "$corruptions" "$work/solution.cu" "$1" >"$work/$1.cu"
    timeout 60 "$grader" grade 01a "$work/$1.cu" --hidden "$1" >"$work/$1.log" 2>&1 </dev/null || code=$?
    if ((code == 0 || code == 1)) && grep -qE '^Score: [0-9.]+ of 100$' "$work/$1.log"; then
        sed -nE 's/^Score: (.*) of 100$/\1/p' "$work/$1.log" >>"$work/scores"
    elif ((code != 2)) || [[ $(wc -l <"$work/$1.log") != 1 ]]; then
        printf 'FAILED corruption %s: exit status %s\n' "$1" "$code"
        head -n 20 "$work/$1.log"
        return 1
    fi
    rm -f "$work/$1.cu" "$work/$1.log"
}
export -f grade_one
status=0
# shellcheck disable=SC2016 # $1 is of the inner shell
seq 1 "$3" | xargs -P 2 -I{} bash -c 'grade_one "$1"' _ {} || status=1
printf '%s graded: %s with full points, %s with none\n' "$3" "$(grep -c '^100' "$work/scores")" "$(grep -cE '^0(\.0)?$' "$work/scores")"
exit "$status"
