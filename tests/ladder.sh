#!/usr/bin/env bash
# ladder.sh FOLDER STEP...: run each step of the folder once, and have plots/ladder.py tabulate that beside recorded measurements,
# as the main job does; dynamic shared memory begins at the least multiple that a declaration promises. Each step must have its row, checked; a recorded latency stands only beside the kernel that was
# recorded; an unreadable line is refused.
set -euo pipefail
bin=$1 ladder=(python3 -B "$(dirname "$0")/../plots/ladder.py")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$1"
    exit 1
}
of_size=0 # steps that run at the size of which latencies are shown
for step; do
    size=(--seq 33 --dim 16)
    if "$bin/$step" --describe | grep -q '"most_queries":[1-9]'; then size+=(--seq 1 --seq-kv 33); else of_size=$((of_size + 1)); fi
    SIMT_SHARED_BASE=least "$bin/$step" "${size[@]}" --no-time --json "$work/results.jsonl" >"$work/log" || {
        cat "$work/log"
        exit 1
    }
done
"${ladder[@]}" --failed 98_silent "$work/results.jsonl" | tee "$work/table"
for step; do
    grep -qE "^$step .* ok " "$work/table" || fail "$step has no row that says ok"
done
grep -q 'FAILED, without a result: 98_silent' "$work/table" || fail 'a program without a line is not listed'
"${ladder[@]}" --failed "$1" "$work/results.jsonl" >"$work/table"
grep -qE "^$1 .* FAILED " "$work/table" || fail "a row does not say that its program failed"

if grep -q '"device":"sim"' "$work/results.jsonl"; then
    # As if a card had recorded them; the last one with another kernel.
    sed -E 's/"device":"sim"/"device":"A card"/; s/"ms_median":null/"ms_median":12.5/; s/"tflops":null/"tflops":1/' \
        "$work/results.jsonl" >"$work/recorded.jsonl"
    last=${*: -1}
    sed -E "/\"step\":\"$last\"/s/\"kernel\":\"[0-9a-f]*\"/\"kernel\":\"another\"/" "$work/recorded.jsonl" >"$work/other.jsonl"
    "${ladder[@]}" --recorded "$work/recorded.jsonl" "$work/results.jsonl" >"$work/table"
    [[ $(grep -c ' 12\.5 ms ' "$work/table") == "$of_size" ]] || fail 'a recorded latency is missing'
    grep -q 'Recorded, not measured here, on A card' "$work/table" || fail 'the card is not named'
    "${ladder[@]}" --recorded "$work/other.jsonl" "$work/results.jsonl" >"$work/table"
    if grep -qE "^$last .* 12\.5 ms" "$work/table"; then fail 'a recorded latency stands beside another kernel'; fi
    [[ $(grep -c ' 12\.5 ms ' "$work/table") == $((of_size - 1)) ]] || fail 'a recorded latency is missing beside its own kernel'
    sed -E 's/"kernel":"[0-9a-f]*",//' "$work/recorded.jsonl" >"$work/old.jsonl"
    "${ladder[@]}" --recorded "$work/old.jsonl" "$work/results.jsonl" >"$work/table"
    if grep -q '12\.5 ms' "$work/table"; then fail 'a latency of an unknown kernel is shown'; fi
fi

# Counts of a metered run; a step without them says so.
echo '{"step":"'"$1"'","meter":[{"barriers":3,"totals":{"shared_load_conflicts":5,"shared_load_wavefronts":9},"lines":[
    {"space":"global","requests":2,"sectors":64,"bytes":256},{"space":"global","requests":2,"sectors":2,"bytes":256},{"space":"shared","requests":7}]}]}' |
    tr -d '\n' >"$work/metered.jsonl"
"${ladder[@]}" --metered "$work/metered.jsonl" "$work/results.jsonl" >"$work/table"
grep -qE "^$1 +ok +[0-9.e-]+ +16\.5 +2\.5 +5 +3 " "$work/table" || fail 'the counts of a metered run are not those in its line'
[[ $# == 1 ]] || grep -qE "^${*: -1} +ok .*( not run){4} " <(tr -s ' ' <"$work/table") || fail 'a step that was not metered does not say so'
if grep -qE '^[0-9]{2}[a-z]?_.* - ' "$work/table"; then fail 'a cell holds a dash'; fi
COLUMNS=60 "${ladder[@]}" --metered "$work/metered.jsonl" "$work/results.jsonl" >"$work/narrow"
! grep -qE '.{61}' "$work/narrow" && grep -qE "^$1 +ok +[0-9.e-]+ +16\.5 " "$work/narrow" && grep -qE "^$1 +5 +3 " "$work/narrow" || fail 'a table is broken on a terminal of 60 columns'
echo '{"step":"01_naive","meter":[{}]}' >"$work/metered.jsonl"
status=0 && "${ladder[@]}" --metered "$work/metered.jsonl" "$work/results.jsonl" >"$work/table" 2>"$work/log" || status=$?
if ((status != 2)) || ! grep -q 'metered.jsonl:1' "$work/log"; then fail 'a metered line without counts was accepted'; fi

echo '{"step": "01_naive"}' >>"$work/results.jsonl"
if "${ladder[@]}" "$work/results.jsonl" 2>"$work/log"; then fail 'a line without a size was accepted'; fi
grep -q 'results.jsonl' "$work/log"
