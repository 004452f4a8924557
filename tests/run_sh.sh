#!/usr/bin/env bash
# What run.sh refuses; a reader's own step; and that a wrong edit of one step leaves the others running. In a copy of the
# checkout, of which only a few steps are built.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export CI=true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # WHAT, after a command whose success decides
    if (($? == 0)); then echo "ok      $1"; else echo "FAILED  $1" && sed 's/^/    /' "$work/out" "$work/err" && failed=1; fi
}
run() { ./run.sh "$@" >"$work/out" 2>"$work/err" </dev/null; }
refused() { # STATUS ARGUMENTS...: one line on standard error
    local wanted=$1 status=0
    shift
    run "$@" || status=$?
    ((status == wanted)) && [[ $(wc -l <"$work/err") == 1 && ! -s $work/out ]]
    check "./run.sh $*: exit status $status, one line"
}

mkdir "$work/copy" && tar -c --exclude=./build --exclude=./.git . | tar -x -C "$work/copy" && cd "$work/copy" || exit 1
rm -rf steps/9[0-9]_* # a reader's own

# A toolkit without a card: nothing calls its compiler.
mkdir "$work/toolkit" && printf '#!/bin/sh\ntouch %q\nexit 1\n' "$work/nvcc_was_called" >"$work/toolkit/nvcc" && chmod +x "$work/toolkit/nvcc"
PATH="$work/toolkit:$PATH"

answered() { # ARGUMENTS ANSWER: at once, with a command that can be copied
    local words
    read -ra words <<<"$1"
    refused 2 "${words[@]}"
    grep -qF -- "$2" "$work/err" && [[ ! -e build ]]
    check "    and it says: $2"
}
answered 01 './run.sh --steps 01 '
answered '1 --quick' './run.sh --steps 01 --quick '
answered 06b_swizzled_registers './run.sh --steps 06b_'
answered 00a './run.sh start 00a '
answered b07 './run.sh start b07 '
answered hello.cu './run.sh cu hello.cu '
answered tset './run.sh test '
answered 'grde 05a' './run.sh grade 05a '
answered xyzzy './run.sh --help'
answered '--step 01' './run.sh --steps 01 '
answered '--quik' './run.sh --quick '
answered '--steps 99' 'there are 01 02'
answered '--steps 06z' 'there are 06a 06b'
answered '--steps 05_fa2' './run.sh --steps 05_fa2_fwd '
answered 'try 05_fa2' './run.sh try 05_fa2_fwd '
answered grade './run.sh grade 00a '
answered 'grade 5b' './run.sh start 05b '
answered 'grade 05z' './run.sh grade 05'
answered 'start 00z' './run.sh start 00'
answered 'new 97_x' './run.sh new 90_x --from 01'
! grep -q both_passes "$work/err"
check 'no name of a step of the tests is shown'
answered 'new 90_x' './run.sh new 90_x --from 01'
answered 'new 90_x --from 02_tiled' './run.sh new 90_x --from 02_tiled_matmul '
answered 'cu none.cu' 'none.cu: no such file'
answered 'cu README.md' 'the name of a CUDA program ends in .cu'
answered 'try 01 --veiw' 'did you mean --view?'
run help && grep -q -- '--from 01' "$work/out"
check './run.sh help'
run cu --help && grep -q 'simt-nvcc --run' "$work/out" && [[ ! -e build ]]
check './run.sh cu --help: at once'

# Lines that count: at least one in 5 s, and of those that come thick and fast one in 3 s.
eval "$(sed -n '/^say() /p; /^pulse() {/,/^}/p; /^how_long() {/,/^}/p; /^note_time() /p' run.sh)"
{ for i in 1 2 3; do echo "[$i/4] work" && echo "found $i"; done; sleep 2; printf "[4/"; sleep 1.5; echo '4] last'; sleep 9.5; } | pulse | while IFS= read -r line; do echo "$SECONDS $line"; done >"$work/out"
awk '{ if ($1 - at > 5) late = 1; at = $1 } NR == 1 && !/\[1\/4\] work/ || late { exit 1 } /found/ { n++ } /\[4\/4\] last/ { last = 1 } /\[4\/4\] still at work after [4-9] s/ { still++ }
    END { exit late || n != 3 || !last || still < 1 }' at="$(sed 's/ .*//;q' "$work/out")" "$work/out"
check 'a line that counts at least every 5 s, while many come and while none does'
(cd "$work" && mkdir build && how_long site 60 && note_time site 77 && how_long site 60 && note_time site 78 && how_long site 60) >"$work/out"
grep -q '^about [0-9]* s$' "$work/out" && grep -q 'about 77 s, as the last time' "$work/out" && tail -n 1 "$work/out" | grep -q 'about 78 s'
check 'how long a build takes: what it took the last time'

for arguments in --bogus --seq '--seq 0' '--seq 1x' '--dim 129' '--batch 99999999999' '--preset gpu' '--steps' '--steps 77' \
    '--steps 06z' '--steps ,' 'test now' 'profile' 'profile 77' 'profile 02 --steps 01' 'sanitize' 'sanitize 02 now' 'cu' \
    'try' 'stray' 'new' 'new 90_mine' 'new mine --from 01' 'new 90_Mine --from 01' 'new 01_mine --from 01' \
    'new 90_naive --from 01' 'new 90_mine --from 77' 'new 96_mine --from 01'; do
    read -ra words <<<"$arguments"
    refused 2 "${words[@]}"
done
if ! nvidia-smi -L >/dev/null 2>&1; then
    for arguments in 'profile 02' 'sanitize 02' '--preset cuda'; do
        read -ra words <<<"$arguments"
        refused 3 "${words[@]}"
    done
fi
for job in '' test profile sanitize new; do
    run $job --help && grep -q -- '--from 01' "$work/out"
    check "./run.sh $job --help"
done

run new 90_mine --from 01 && grep -q 'steps/90_mine/mine.cu' "$work/out"
check 'new 90_mine --from 01'
run new 91_twin --from 06b
check 'new 91_twin --from 06b'
refused 2 new 90_other --from 02
grep -q '90_mine; 92 is free: ./run.sh new 92_other --from 02$' "$work/err"
check 'which number is free'
grep -q '.name = "90_mine"' steps/90_mine/mine.cu && ! grep -q 'step_01_naive' steps/90_mine/mine.cu
check 'no name of the step that was copied is left'
grep -q '\.beside = ' steps/05_fa2_fwd/05x_split_k.cu && run new 92_beside --from 05x && ! grep -q '\.beside' steps/92_beside/beside.cu
check 'a copy of a rung beside the chain is a step of the chain'

cat >"$work/own.cu" <<'CUDA'
#include <cstdio>
#include <cstdlib>
__global__ void twice(int *x) { x[threadIdx.x] *= 2; }
int main(int argc, char **argv) {
    int value = atoi(argv[1]), *x;
    cudaMalloc(&x, sizeof value);
    cudaMemcpy(x, &value, sizeof value, cudaMemcpyHostToDevice);
    twice<<<1, argc - 1>>>(x);
    cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost);
    printf("twice is %d\n", value);
    return value;
}
CUDA
export CMAKE_GENERATOR='Unix Makefiles' # of an existing build folder
status=0
run cu "$work/own.cu" -- 21 || status=$?
unset CMAKE_GENERATOR
((status == 42)) && grep -q 'twice is 42' "$work/out"
check "one's own .cu runs with its argument; exit status $status"
status=0
run cu "$work/own.cu" -- 21 22 || status=$?
((status == 3)) && grep -q 'own.cu' "$work/err" && tail -n 1 "$work/err" | grep -q '^Next: docs/simulated-device.md, "How to read a message"'
check "and is stopped where it reaches past its array; exit status $status"
! grep -q '^Building' "$work/err"
check 'the second time without a build'
touch common/simt/scheduler/workers.c
run cu "$work/own.cu" -- 21 || true
grep -q '^Building' "$work/err" && [[ -e build/sim/Makefile && ! -e build/sim/build.ninja ]]
check 'after an edit of the device with one, by the generator that the folder has'

rm -r build/sim
run --quick --steps 90,2
check 'a step of the reader runs, and 2 is 02'
grep -qE '^  \[[0-9]+/[0-9]+\] (Building|Linking|Generating|still)' "$work/out" && grep -qE '^  \[1/6\] 02_tiled_matmul ' "$work/out"
check 'lines count'
! command -v ninja >/dev/null || [[ -e build/sim/build.ninja ]]
check 'a new folder is built by Ninja where there is one'
grep -qE '^02_tiled_matmul +ok +[0-9.e-]+ +3\.9 +3\.9 +0 +64 +fwd fp32 ' "$work/out"
check 'its row says what the metered run counted'
tail -n 1 "$work/out" | grep -q '^Next: ./run.sh start 00a'
check 'and the last line what to do next'
grep -qE '^90_mine .* ok ' "$work/out" && grep -qE '^02_tiled_matmul .* ok ' "$work/out" && (($(wc -l <build/sim/results.jsonl) == 4))
check 'and has its row'
run --quick --steps 90,02 && (($(wc -l <build/sim/results.jsonl) == 4))
check 'results.jsonl is of one run'
printf '#!/bin/bash\necho "$2" >>%q\nexec %q "$@"\n' "$work/asked" "$(command -v python3)" >"$work/toolkit/python3" && chmod +x "$work/toolkit/python3"
run --quick --steps 2 && [[ $(grep -c find_spec "$work/asked") == 1 ]] && ! grep -q 'import matplotlib' "$work/asked"
check 'python3 is asked once for its modules, and imports none for the answer'
rm "$work/toolkit/python3"
cp steps/90_mine/mine.cu "$work/mine.cu"
sed -i '/if (attended_keys(p, row) == 0)/,/^    }/d' steps/90_mine/mine.cu
! run --quick --steps 90 && grep -qE '^90_mine .* FAILED ' "$work/out" && grep -q 'got NaN' "$work/out"
check 'a row without keys is checked, too'
cp "$work/mine.cu" steps/90_mine/mine.cu
run --quick --steps 90,02

sed -i 's/p\.scale \* sum/p.scale * summ/' steps/90_mine/mine.cu
sed -i 's/p\.scale \* /1.5f * p.scale * /' steps/91_twin/twin.cu
! run --quick --steps 90,91,02
check 'a syntax error in 90 and a wrong result in 91 end in failure'
grep -q '^90_mine FAILED' "$work/out" && grep -q "mine.cu:.*summ" "$work/out" && grep -q '^FAILED, without a result: 90_mine' "$work/out"
check 'the first errors of 90 are shown'
grep -qE '^91_twin .* FAILED ' "$work/out" && grep -qE '^02_tiled_matmul .* ok ' "$work/out"
check '91 is wrong, 02 runs as before'
tail -n 1 "$work/out" | grep -q '^Next: mend it, then ./run.sh try 90_mine'
check 'and what to do next'
! grep -q 90_mine build/sim/results.jsonl
check 'no program of an earlier build ran for 90'

status=0
timeout --preserve-status -s INT 2 ./run.sh --steps 02 --seq 3000 >"$work/out" 2>"$work/err" || status=$?
((status == 130)) && ! compgen -G 'build/sim/*.part*' >"$work/out"
check "interrupted: exit status $status, nothing unfinished left"
(($(wc -l <build/sim/results.jsonl) == 4))
check 'and the results of the run before it are whole'
touch common/simt/*/*.[ch]
status=0 began=$SECONDS
timeout --foreground --preserve-status -s INT 3 ./run.sh --steps 02 --quick >"$work/out" 2>"$work/err" || status=$?
((status == 130 && SECONDS - began < 10)) && [[ $(grep . "$work/err") == 'run.sh: interrupted' ]]
check "a build that is interrupted ends at once with one line: exit status $status after $((SECONDS - began)) s"
nvidia-smi -L >/dev/null 2>&1 || [[ ! -e $work/nvcc_was_called ]]
check 'without a card nothing is compiled for one'
exit $failed
