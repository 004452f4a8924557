#!/usr/bin/env bash
# built.sh BUILD_FOLDER TARGET... -- COMMAND...: build the targets, then run the command: a test that does not compile fails,
# rather than run what was built before.
# built.sh --all BUILD_FOLDER: build all that the tests need, going on past errors, which fail the tests that they concern.
# TEST_PROGRAMS=quick_programs, or part_0_programs: only what the tests that run need.
set -uo pipefail
export OMP_WAIT_POLICY=passive # threads of the reference that wait must not take the time of other tests

if [[ $1 == --all ]]; then
    all_built=$2/all_tests_are_built
    rm -f "$all_built"
    keep_going=-k && [[ ! -e $2/build.ninja ]] || keep_going=-k0
    cmake --build "$2" --target "${TEST_PROGRAMS:-test_programs}" --parallel "$(getconf _NPROCESSORS_ONLN)" -- "$keep_going" && touch "$all_built"
    exit 0
fi
folder=$1
shift
targets=()
while [[ $1 != -- ]]; do
    targets+=("$1")
    shift
done
shift
# Asking make costs a quarter of a second for each test, so only after an error.
if [[ ! -e $folder/all_tests_are_built ]] && ((${#targets[@]} > 0)); then
    output=$(flock "$folder" cmake --build "$folder" --target "${targets[@]}" 2>&1) || {
        echo "does not compile:"
        grep -E 'error|Error' <<<"$output" | head -n 20
        exit 1
    }
fi
exec "$@"
