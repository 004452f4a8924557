#!/usr/bin/env bash
# can_fail.sh BUILD: a mutant that is not there, does not apply, applies in two places, does not compile or is not caught must not
# pass, and each says what is wrong; common/change refuses what is not written in its form.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd) build=$1 status=0
work=$(mktemp -d)
trap 'rm -rf "$work"; rm -rf "$build"/tests/mutants/mutant_01_test_of_can_fail_*.caught' EXIT
unset CI
export MUTANTS=$work
kernel=steps/01_naive/naive.cu
line=$(grep -m 1 'attended_keys(' "$here/../../$kernel")
{
    printf '## 01_test_of_can_fail_%s\ncaught by: wrong result\nfile: %s\n-%s\n+%s\n\n' gone "$kernel" 'no such line' ''
    printf '## 01_test_of_can_fail_%s\ncaught by: wrong result\nfile: %s\n-%s\n+%s\n\n' twice "$kernel" '}' '} '
    printf '## 01_test_of_can_fail_%s\ncaught by: wrong result\nfile: %s\n-%s\n+%s\n\n' not_compiled "$kernel" "$line" "no_such_name;"
    printf '## 01_test_of_can_fail_%s\ncaught by: wrong result\nproblem: --seq 9 --dim 8\nfile: %s\n-%s\n+%s // the same\n\n' uncaught "$kernel" "$line" "$line"
    printf '## 01_test_of_can_fail_%s\nfile: %s\n-%s\n+%s\n' without_reason "$kernel" "$line" "$line"
    printf '@@\n+%s\n\n## two\nfile: x\n\n## two\nfile: x\n*\n' 'no place'
} >"$work/01.changes"
head -n 10 "$work/01.changes" >"$work/stale.changes"
printf '## one\nafter: two\nfile: %s\n-%s\n' "$kernel" "$line" >"$work/orphan.changes"
cd "$here/../.." || exit 1

expect() { # STATUS MESSAGE COMMAND...
    local said found
    said=$("${@:3}" 2>&1)
    found=$?
    [[ $found == "$1" && $said == *"$2"* ]] && return
    printf 'expected exit status %s and "%s", not %s and\n%s\nof: %s\n' "$1" "$2" "$found" "$said" "${*:3}"
    status=1
}
catch=("$here/mutant.sh" catch) change=$here/../../common/change name=mutant_01_test_of_can_fail
expect 77 'place 1 of 1 occurs 0 times' "${catch[@]}" ${name}_gone "$build"
expect 1 'place 1 of 1 occurs 0 times' env CI=true "${catch[@]}" ${name}_gone "$build"
expect 1 "times in $(cd "$here/../.." && pwd)/$kernel, not once" env CI=true "${catch[@]}" ${name}_twice "$build"
expect 77 SKIPPED "${catch[@]}" ${name}_twice "$build"
expect 1 'no_such_name' "${catch[@]}" ${name}_not_compiled "$build"
expect 1 'not caught by any of 1 problems' "${catch[@]}" ${name}_uncaught "$build"
expect 1 'does not say what catches it' "${catch[@]}" ${name}_without_reason "$build"
expect 1 'there is no such change' "${catch[@]}" mutant_01_none "$build"
expect 2 'is no name of a mutant' "${catch[@]}" 01_without_a_wait "$build"
expect 2 'place 2 does not say which lines' "$change" apply "$work/01.changes" 01_test_of_can_fail_without_reason "$here/../../$kernel"
expect 2 'begins with none of' "$change" apply "$work/01.changes" two "$here/../../$kernel"
expect 2 'two changes have this name' "$change" header "$work/01.changes" two
expect 2 'cannot read' "$change" apply "$work/01.changes" two "$work/none"
expect 0 '' "$change" check
expect 1 "stale.changes: 01_test_of_can_fail_gone: $kernel: not there: no such line" "$change" check "$work/stale.changes"
expect 1 "01_test_of_can_fail_twice: $kernel: not there once: }" "$change" check "$work/stale.changes" -- $kernel
expect 0 '' "$change" check "$work/stale.changes" -- steps/02_tiled_matmul/tiled_matmul.cu
expect 2 'is after "two", which there is not' "$change" check "$work/orphan.changes"
expect 2 'begins with none of' "$change" check "$work/01.changes"
expect 2 'change list FILE' "$change" apply "$work/01.changes"
[[ $status == 0 ]] && echo 'each is refused'
exit "$status"
