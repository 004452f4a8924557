#!/usr/bin/env bash
# ./run.sh try, start and grade, as a student and a teacher type them, and what handout refuses: in a copy of the checkout, with a build
# folder of its own.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # WHAT, after a command whose success decides
    if (($? == 0)); then echo "ok      $1"; else echo "FAILED  $1" && sed 's/^/    /' "$work/out" "$work/err" | head -n 40 && failed=1; fi
}
status=0
run() { status=0 && ./run.sh "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?; }
refused() { # STATUS ARGUMENTS...: one line on standard error
    run "${@:2}"
    ((status == $1)) && [[ $(wc -l <"$work/err") == 1 && ! -s $work/out ]]
    check "./run.sh ${*:2}: exit status $status, one line"
}
python() { python3 - "$work/out" "$@"; }

mkdir "$work/copy"
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$work/copy"
cd "$work/copy" || exit 1
git init -q . && git add -A >/dev/null 2>&1 && git -c user.name=t -c user.email=t@t commit -qm all || exit 1

run --steps 1 --quick
edit=$(tail -n 1 "$work/out" | sed -n "s/^Next: break it: \(sed -i '[^']*' steps.01_naive.naive.cu\); .*/\1/p")
((status == 0)) && [[ $edit ]] && eval "$edit" && [[ $(git diff --numstat | cut -f 1,2) == 1$'\t'1 ]]
check '--steps 1 --quick: its last line names an edit that breaks chapter 01'
run try 01
((status == 1)) && grep -qE 'result +right +WRONG' "$work/out" && tail -n 1 "$work/out" | grep -q '^Next: mend steps/01_naive/naive.cu'
check "try 01 finds it; exit status $status"
git checkout -q steps

run start
((status == 0)) && grep -q '^05a ' "$work/out" && [[ $(wc -l <"$work/out") == $(($(find exercises -name task.json | wc -l) + 1)) ]] &&
    [[ $(tail -n 1 "$work/out") == 'Next: ./run.sh start 00a' ]]
check 'start lists all tasks, and the first one to do'
BOOK_ROOT=$PWD python3 -B tests/docs/run_commands.py docs/first.md >"$work/out" 2>"$work/err" </dev/null
check 'docs/first.md as it is written, to full points'
for arguments in 'start 99z' 'start 05a now' 'start 05a --variant 9' 'start 05a --variant x' 'start ../05a' 'grade' 'grade 99z' \
    'grade 05a none.cu' 'grade 05a --hidden' 'grade 05a --hidden -1' 'grade 05a --hint 4' 'grade 05a --bogus' 'grade 05a a b' \
    'try' 'try 77' 'try 05 --against 77' 'try 05 --seq x' 'try 05 stray' 'try --view' 'try 05 --view stray' 'try 05 --view=yes' 'try 10 --dim 33' 'try 06 --window 64,0' 'try 15a --window 5' 'try 15a --pass both' 'try 15a --rotary halved' 'try 01 --deterministic' 'try 01 --dtype fp16' 'try 10 --dtype f' \
    'try 14 --lengths 40,33' 'try 14 --seq 9' 'try 14 --page-size 8' 'try 01 --page-size 16' 'try 01 --seq 9999999' 'try 01 --softcap' 'try 01 --print' 'handout' "handout $work/none" "handout $work/none 77" \
    "handout $work/none b01" "handout $work/none 01 x" "handout $work/copy 01"; do
    read -ra words <<<"$arguments"
    refused 2 "${words[@]}"
done
[[ ! -e $work/none && ! -e $work/none.part ]]
check 'a refused handout leaves nothing'

run start 05a
((status == 0)) && [[ -s work/05a.cu ]]
check 'start 05a'
run start 05a
((status == 0))
check 'again, before an edit'
run grade 05a
((status == 1)) && grep -q '^Score: 0.0 of 100' "$work/out"
check "grade 05a on the starter; exit status $status"
echo '// mine' >>work/05a.cu
cp work/05a.cu "$work/mine.cu"
refused 2 start 05a
cmp -s work/05a.cu "$work/mine.cu"
check 'start never writes over an edited file'
run start 05a --variant 2
((status == 0)) && ! cmp -s work/05a.2.cu work/05a.cu
check 'start 05a --variant 2'
run grade 05a --hint 3
((status == 0)) && grep -q '^Hole 1' "$work/out"
check 'grade 05a --hint 3'

sed '/>>> Hole 1/a float x = ;' "$work/mine.cu" >"$work/broken.cu"
run grade 05a "$work/broken.cu"
((status == 1)) && grep -q '^Not accepted' "$work/out" && ! grep -qE '^(Right results|No faults|Cost)' "$work/out"
check 'a file that does not compile: no heading without a judgement'

build/sim/bin/exercise solution 05a >work/05a.cu
run grade 05a --hidden 7 --json - --gradescope "$work/results.json" --exercism "$work/exercism.json"
((status == 0)) && python "$work/results.json" "$work/exercism.json" <<'PY'
import json, sys
plain, scope, exercism = (json.load(open(name)) for name in sys.argv[1:])
assert plain["score"] == plain["max_score"] == 100 and plain["task"] == "05a", plain
number, text = (int, float), str
assert isinstance(scope["score"], number) and isinstance(scope["output"], text) and scope["visibility"] == "visible", scope
assert len(scope["tests"]) > 5
for test in scope["tests"]:
    assert set(test) == {"name", "score", "max_score", "output", "visibility"}, test
    assert isinstance(test["name"], text) and isinstance(test["output"], text) and 0 <= test["score"] <= test["max_score"]
assert abs(sum(test["score"] for test in scope["tests"]) - scope["score"]) < 0.1
assert exercism["version"] == 2 and exercism["status"] == "pass"
assert all(test["status"] == "pass" for test in exercism["tests"])
PY
check "the solution of 05a: exit status $status, results.json has Gradescope's fields"
for pair in 00a:00b:docs/gpu.md 05b:06a:steps/06_vectorized/README.md 15b:b01:exercises/b01_stops_unless_32_divides_d/README.md; do
    IFS=: read -r id next page <<<"$pair"
    build/sim/bin/exercise solution "$id" >"$work/full.cu"
    run grade "$id" "$work/full.cu"
    ((status == 0)) && tail -n 1 "$work/out" | grep -qx "Next: ./run.sh start $next, after $page" && [[ -e $page ]]
    check "full points in $id: the next task and its page"
done
build/sim/bin/exercise starter b01 >"$work/fault.cu"
run grade b01 "$work/fault.cu"
((status == 1)) && grep -q 'docs/simulated-device.md, "How to read a message"' "$work/out"
check 'a fault: the page that explains it'

run try 05
((status == 0)) && grep -q '04_fa1_fwd' "$work/out" && grep -qE 'result +right +right' "$work/out" && tail -n 1 "$work/out" | grep -q '^Next: ./run.sh try 05_fa2_fwd --view'
check 'try 05: beside the rung before'
script -qec 'stty cols 60; ./run.sh try 05 --seq 64' "$work/typed" </dev/null >"$work/out" 2>"$work/err"
! tr -d '\r' <"$work/typed" | sed -n '/^ .* yours/,/^Next/p' | grep -qE '^ .{60}' && grep -qE '^  global sectors +[0-9]+ +[0-9]+ ' "$work/typed"
check 'on a terminal of 60 columns no row of its table is broken'
sed -i 's/constexpr int PAD = 1; /constexpr int PAD = 0; /' steps/05_fa2_fwd/fa2_fwd.cu
SECONDS=0
run try 05
((status == 0)) && grep -q 'committed' "$work/out" && grep -qE 'of bank conflicts +0 +[0-9]+' "$work/out"
check "try 05 after an edit: bank conflicts, in $SECONDS s"
grep -A 1 'do not apply to this kernel any more: 1;' "$work/out" | grep -q '^    tests/mutants/05.changes: 05_rows_not_padded$'
check 'try 05 after an edit: the mutant that has lost its text'
# shellcheck disable=SC2016 # of the script that is written
mkdir "$work/desktop" && printf '#!/bin/sh\necho "$*" >%q\n' "$work/opened" >"$work/desktop/xdg-open" && chmod +x "$work/desktop/xdg-open"
shows() { # what it has printed and made: both kernels, each with a walk of its own
    ((status == $1)) && grep -q 'step by step: file:///.*/build/try/beside.html$' "$work/out" && grep -q '"committed".*"yours"' build/try/data/steps.js &&
        grep -q '"kernel":"fa2_forward<64>"' build/try/data/committed.js && grep -q '"kernel":"fa2_forward<64>"' build/try/data/yours.js &&
        ! cmp -s build/try/data/committed.js build/try/data/yours.js
}
DISPLAY='' WAYLAND_DISPLAY='' PATH="$work/desktop:$PATH" run try 05 --view
shows 0 && grep -qE 'of bank conflicts +0 +[0-9]+' "$work/out" && [[ ! -e $work/opened ]]
check 'try 05 --view: a page of both kernels, its path where there is no desktop'
DISPLAY=:0 PATH="$work/desktop:$PATH" run try 05 --view --seq 64
shows 0 && [[ $(cat "$work/opened") == build/try/beside.html ]] && grep -q '^yours .* --seq 64 ' build/try/yours.command
check 'try 05 --view --seq 64: it is opened on a desktop'
sed -i '0,/__syncthreads();/s//(void)0;/' steps/05_fa2_fwd/fa2_fwd.cu
run try 05
((status == 3)) && grep -qi 'race' "$work/out" && tail -n 1 "$work/out" | grep -q '^Next: docs/simulated-device.md, "How to read a message"'
check "try 05 with a barrier removed: a race; exit status $status"
run try 05 --view
shows 3 && grep -q 'ends where it failed: yours' "$work/out"
check 'try 05 --view with a race: up to the race'
sed -i 's/float m_new = /float m_new = = /' steps/05_fa2_fwd/fa2_fwd.cu
run try 05
((status == 1)) && grep -qE 'fa2_fwd.cu:[0-9]+:.*error' "$work/out" && [[ $(wc -l <"$work/out") -lt 20 ]]
check "try 05 with a wrong edit: the error and its line; exit status $status"
run try 05 --view
((status == 1)) && grep -q 'no page, since this kernel does not compile: yours' "$work/out" && [[ ! -e build/try/beside.html ]]
check 'try 05 --view with a wrong edit: no page, and it says why'
sed -i 's/softmax(S_reg/softmaks(S_reg/' steps/14_decode/decode.cu
run try 14
((status == 1)) && grep -qE '^ *result +right +no build$' "$work/out" && grep -q softmaks "$work/out"
check "try 14, of 16 bits, with a typing error: the committed kernel is right; exit status $status"
git checkout -q steps

run try 15a_window_fwd --window=64,0 --causal
((status == 0)) && grep -q '^15a_window_fwd, forward: .*, causal, window 64,0' "$work/out" && grep -qE 'result +.* right$' "$work/out"
check "try with a window; exit status $status"
find build/sim/submissions -type f -exec touch -d '1 hour ago' {} +
run try 15a_window_fwd --seq 100 --against 12_hopper_fwd
((status == 0)) && grep -qE 'result +right +right' "$work/out"
check "try with a program that was made long ago: it is not forgotten before it runs; exit status $status"
run try 15a_window_fwd --window 64,0
((status == 0)) && grep -qF '10_tensor_core_fwd does not take this problem' "$work/out"
check "try beside the kernel that it is a variant of; exit status $status"
run try 14 --page-size 16 --lengths 40,0,33 --heads 4 --heads-kv 2
((status == 0)) && grep -q '^14_decode, forward: batch 3, 4 heads on 2, 8 x 40, .*, pages of 16' "$work/out" && grep -qE 'result +refused +right' "$work/out"
check "try with pages, beside a step without them; exit status $status"
# Mistakes that no plain problem shows: plain try finds each, also in a header, and names the options that show it.
mistake() { # STEP FILE FROM TO OPTION STATUS: in one line of the step or of a header beside it
    sed -i "s|$3|$4|" "steps/$2" && ! git diff --quiet
    check "the mistake in $2 applies"
    run try "$1" --heads 2
    ((status == $6)) && grep -qE 'committed +yours' "$work/out" && grep -qE 'result +right +(WRONG|FAULT)( elsewhere)?$' "$work/out" && grep -qE "^With .* $5 " "$work/out"
    check "try $1 finds it; exit status $status"
    git checkout -q steps
}
mistake 15a_window_fwd 15_variants/15a_window_fwd.cu 'int first = first_key(p, all, row0)' 'int first = first_key(p, all, last_row)' --window 1
mistake 15f 15_variants/rotary_fwd.cuh 'b\[i\] \* cosine\[i\] + a' 'b[i] * cosine[i] - a' --rotary 1
mistake 14 14_decode/decode.cu '((p.N_kv + p.page_size - 1) / p.page_size)' '(p.N_kv / p.page_size)' --page-size 3
mistake 14b 14_decode/14b_split.cu 'share = ceil_div(tiles, splits)' 'share = tiles / splits' '--seq-kv 897' 1
mistake 14 14_decode/splits.cuh 'any = l != 0.0f' 'any = true' '--lengths 890,0' 1
mistake 15 15_variants/backward_all.cuh 'if (tile > 1) read.wait(tile - 2);' '' '--dim 120' 3
mistake 11 11_tensor_core_bwd/tensor_core_bwd.cu 'if (tile > 1) read.wait(tile - 2);' '' '--dim 120' 3
mistake 16 16_fp8_fwd/fp8_fwd.cu 'wgmma_wait<0>(); // the part is there, too' 'wgmma_wait<1>();' '--dim 48' 3
mistake 12 12_hopper_fwd/hopper_fwd.cu 'V_full + last, (i - 1) / STAGES' 'V_full + last, i / STAGES' 'and --seq 300 .*--dim 120' 3
mistake 13 13_hopper_bwd/hopper_bwd.cu 'member, members));' 'member, members) + (key_tile > 1));' '--pass bwd --deterministic' 3
mistake 10 10_tensor_core_fwd/tensor_core_fwd.cu 'pack_A<T>(' 'pack_A<__nv_bfloat16>(' '--dtype fp16' 1
run try 09 --deterministic
((status == 0)) && grep -q '^09_fa2_bwd_warps, backward, deterministic: ' "$work/out" && grep -qE 'result +right +right$' "$work/out"
check "try 09 --deterministic; exit status $status"
sed -i 's,^// Costs,// Costs:,' steps/16_fp8_fwd/16y_hadamard.cu
run try 16y
((status == 0)) && grep -qE 'result +right +right$' "$work/out"
check "try 16y, which rounds Q and K itself, with another comment: right; exit status $status"
git checkout -q steps

run new 90_mine --from 01
run try 90
((status == 0)) && grep -q '01_naive' "$work/out" && grep -q 'same$' "$work/out" && ! grep -q '%$' "$work/out"
check 'try 90: beside the step that it is a copy of'
sed -i 's/ || col >= p.N_kv) return/) return/' steps/90_mine/mine.cu
run try 90
((status == 3)) && grep -qE 'result +right +FAULT elsewhere$' "$work/out" && grep -q '^With --seq 113 --seq-kv 75 .* it stops:$' "$work/out"
check "try 90 without a bounds check: a size that no block divides finds it; exit status $status"
run try 90 --seq 128
((status == 0)) && grep -qE 'result +right +right' "$work/out"
check 'try 90 --seq 128: that size only'

git checkout -q . && git clean -qfd steps

# The elements that are wrong, as the program itself prints them.
run new 91_wrong --from 03
sed -i 's/expf(m - m_new)/1.0f/' steps/91_wrong/wrong.cu
run try 91 --seq 64
((status == 1)) && grep -qE 'result +right +WRONG$' "$work/out" && sed '1,/^$/d; /^Next: /d' "$work/out" >"$work/elements" &&
    cmake --preset sim >"$work/err" && cmake --build --preset sim --target 91_wrong >>"$work/err" 2>&1 &&
    [[ $(grep -c ' at (batch 0, head 0, row [0-9]*, column [0-9]*): got [^ ]*, expected' "$work/elements") == 6 ]] &&
    { build/sim/bin/91_wrong --seq 64 --no-time || [[ $? == 1 ]]; } | sed 1d | diff - "$work/elements" >>"$work/err"
check "try with a wrong result: the first wrong elements; exit status $status"
run try 91 --seq 1
((status == 0)) && ! grep -q ' at (batch ' "$work/out"
check 'try with a right one: none'

# A kernel with another header is another kernel, and no time that was recorded for the older one is its own.
before=$(<build/sim/fingerprints/91_wrong.c) && echo 'constexpr int of_another_kernel = 1;' >>common/device/mask.cuh &&
    cmake --build --preset sim --target 91_wrong >"$work/err" 2>&1 && [[ $(<build/sim/fingerprints/91_wrong.c) != "$before" ]]
check 'a step built again with a changed header: another fingerprint'
git checkout -q common/device/mask.cuh

# Chapter 01, Swap queries and keys: right at the size of the table, as the page says, and a fault where N_q is not N_kv.
run new 98_swapped --from 01
sed -i '26s/int col/int row/; 27s/int row/int col/' steps/98_swapped/swapped.cu
run try 98
((status == 3)) && grep -qE 'result +right +FAULT elsewhere$' "$work/out" && grep -q '^With --seq 113 --seq-kv 75 .* it stops:$' "$work/out"
check "try 98, the first experiment of chapter 01; exit status $status"
run try 98 --seq 256
((status == 0)) && grep -qE 'result +right +right$' "$work/out"
check 'try 98 --seq 256: right, as the page says'
exit "$failed"
