#!/usr/bin/env bash
# record_meter.sh BIN_DIR [STEP...]: run every step, or those named, on the simulated device under its meter, at the
# sizes of docs/simulated-device.md's table, and write what was counted to plots/data/counters/meter.jsonl, a JSON line
# a run; lines of steps not named stay. BIN_DIR holds the programs of the sim preset (build/sim/bin).
# record_meter.sh --check BIN_DIR [STEP...]: run the same and compare with that file; exit status 1, and a diff, when
# they differ.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

check=no
if [[ ${1-} == --check ]]; then
    check=yes
    shift
fi
if (($# == 0)); then
    echo "usage: plots/record_meter.sh [--check] BIN_DIR [STEP...]" >&2
    exit 2
fi
programs=$1
steps=("${@:2}")
if ((${#steps[@]} == 0)); then
    for folder in "$here"/../steps/[0-9][0-9]_*/; do steps+=("$(basename "$folder")"); done
fi
recorded=$here/data/counters/meter.jsonl
sizes=("--batch 1 --heads 2 --seq 256 --dim 64" "--batch 1 --heads 2 --seq 200 --dim 40")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Counts do not depend on the run. Which request is kept as a line's example does, when blocks run side by side: so one
# worker.
export SIMT_THREADS=1
touch "$work/all"
for step in "${steps[@]}"; do
    for size in "${sizes[@]}"; do
        read -ra options <<<"$size"
        rm -f "$work/line"
        # A step that refuses a size (exit status 2) has no counts there.
        "$programs/$step" "${options[@]}" --meter --no-check --no-time --json "$work/line" >"$work/output" 2>&1 || {
            status=$?
            cat "$work/output" >&2
            ((status == 2)) || exit 1
            continue
        }
        python3 -c '
import json, re, sys
step, options, file = sys.argv[1:]
def plain(name):  # the path in the project, wherever the build folder lies
    return re.sub(r"^.*?(?=(steps|common|tests)/)", "", name)
for line in open(file, encoding="utf-8"):
    meter = json.loads(line)["meter"]
    for kernel in meter:
        for place in kernel["lines"] + kernel["events"]:
            place["file"] = plain(place["file"])
        # A request that reaches into two arrays: how far apart they lie differs from run to run.
        for place in kernel["lines"]:
            ends = {place["sample"][end].split("[")[0] for end in ("lowest", "highest")} if "sample" in place else {""}
            if len(ends) > 1:
                del place["sample"]
        # Not in the order in which the compiler happened to lay out the code.
        kernel["lines"].sort(key=lambda l: (l["file"], l["line"], l["space"], l["access"],
                                            l.get("sample", {}).get("lowest", "")))
        kernel["events"].sort(key=lambda e: (e["file"], e["line"], e["what"]))
    print(json.dumps({"step": step, "options": options, "meter": meter}, separators=(",", ":")))
' "$step" "$size" "$work/line" >>"$work/all"
    done
done

# The recorded lines of the steps that were run, and the others.
printf '"step":"%s"\n' "${steps[@]}" >"$work/names"
touch "$recorded"
if [[ $check == no ]]; then
    (($# > 1)) && { grep -vFf "$work/names" "$recorded" || true; } >>"$work/all"
    LC_ALL=C sort -s -t, -k1,1 "$work/all" >"$recorded"
    exit
fi
{ if (($# > 1)); then grep -Ff "$work/names" "$recorded" || true; else cat "$recorded"; fi; } >"$work/recorded"
# A compiler of another version may place an access on a neighbouring line, so the sums of each kernel are compared.
sums() {
    python3 -c '
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    run = json.loads(line)
    for kernel in run["meter"]:
        del kernel["lines"], kernel["events"]
        print(run["step"], run["options"], json.dumps(kernel, indent=1))
' "$1"
}
sums "$work/recorded" >"$work/recorded_sums"
sums "$work/all" >"$work/sums"
if ! cmp -s "$work/recorded_sums" "$work/sums"; then
    echo "$recorded is not what the meter counts now; plots/record_meter.sh BIN_DIR records it anew:" >&2
    diff "$work/recorded_sums" "$work/sums" | head -n 60 >&2 || true
    exit 1
fi
