#!/usr/bin/env bash
# repeat.sh NAME COUNT: run the test NAME of the preset sim COUNT times while every core is busy with something else. What
# fails once in many runs fails here sooner. NAME may be a regular expression, as for ctest -R. Exit status: 0 when each
# run passes, 1 when one fails (its output is shown), 2 for wrong use.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
[[ $# == 2 && $2 =~ ^[1-9][0-9]{0,4}$ ]] || { echo 'usage: repeat.sh NAME COUNT' >&2 && exit 2; }
[[ -e build/sim/CTestTestfile.cmake ]] || { echo 'repeat.sh: nothing is built; ./run.sh test builds it' >&2 && exit 2; }

run() { ctest --preset sim -R "^($name)\$" -FA . --no-tests=error --output-on-failure "${@}" >"$log" 2>&1 || { cat "$log" && exit 1; }; }
name=$1 log=$(mktemp) all_built=build/sim/all_tests_are_built busy=()
trap 'kill "${busy[@]}" 2>/dev/null; rm -f "$log" "$all_built"' EXIT
rm -f "$all_built" && run # builds what the test runs; then that is not asked again
touch "$all_built"
for ((core = 0; core < $(getconf _NPROCESSORS_ONLN); core++)); do
    (while :; do :; done) &
    busy+=("$!")
done
run --repeat "until-fail:$2"
echo "ok      $1: $2 runs in $SECONDS s"
