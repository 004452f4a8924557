#!/usr/bin/env bash
# report.sh FOLDER STEP...: run each step of the folder once, and have `report` tabulate that beside the recorded
# measurements, as the main job does. Each step must have its row, checked; an unreadable line must be refused.
set -euo pipefail
bin=$1
shift
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../plots/data" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for step; do
    "$bin/$step" --seq 33 --dim 16 --no-time --json "$work/results.jsonl" >"$work/log" || {
        cat "$work/log"
        exit 1
    }
done
recorded=()
for file in "$data"/*.jsonl; do recorded+=(--recorded "$file"); done
"$bin/report" "${recorded[@]}" "$work/results.jsonl" | tee "$work/table"
for step; do
    grep -qE "$step.* ok" "$work/table" || {
        echo "$step has no row that says ok"
        exit 1
    }
done
echo '{"step": "01_naive"}' >>"$work/results.jsonl"
if "$bin/report" "${recorded[@]}" "$work/results.jsonl" 2>"$work/log"; then
    echo 'a line without a size was accepted'
    exit 1
fi
grep -q 'results.jsonl' "$work/log"
