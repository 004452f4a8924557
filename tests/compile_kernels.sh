#!/usr/bin/env bash
# Compiles every kernel file with nvcc for each target that it supports, where there is an nvcc, and compares what ptxas says of the
# steps' kernels on sm_90a (registers, spills, shared memory) with plots/data/machine_code/registers.txt, where the nvcc is the one
# that wrote it. A file whose tokens, with those of what it includes from here, are the ones that this nvcc compiled for the record is not
# compiled again, unless --all is given. With --record it writes the record. Exit status 1: one does not compile, or differs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
recorded=plots/data/machine_code/registers.txt

# The T4 of free notebooks, the A100 and the H100. 90a and not 90: wgmma and setmaxnreg exist only there. A kernel file that
# says compute_capability = 80, in its `struct step` or in a comment, is left out for older cards.
# shellcheck disable=SC2317 # called by xargs
compile_kernel() { # FILE FOLDER: for all targets that it supports; what ptxas says of a step goes to the folder
    local file=$1 log=$2/${1//\//,} needed target older=() most=16 quick=(-Xcicc -O1 -Xptxas -O1) status=0
    local nvcc=(nvcc -std=c++20 -O3 -Icommon/device -Icommon/harness -Itests -Werror all-warnings -c "$file" -o "$log.o")
    needed=$(sed -nE 's/.*compute_capability = ([0-9]+).*/\1/p' "$file")
    for target in 75 80; do
        ((target < ${needed:-0})) || older+=(-gencode "arch=compute_$target,code=sm_$target")
    done
    # Tensor-core kernels hold their tiles in registers, so spills are a defect of them, but for a few bytes: backward_transposed of
    # chapter 11 has two blocks on an SM and so 255 registers at most. What it spills on sm_90a does not keep it from being the fastest
    # form of its chapter. Of the
    # other kernels it is asked whether they compile for older cards, with little optimisation, in a third of the time; so it is of chapter
    # 15, whose variants are added to tilings of chapters 10 and 11 that take all 255 registers: its spills on sm_90a are recorded.
    [[ $file != steps/* || $file == steps/15_variants/* ]] || ((${needed:-0} < 80)) || quick=(-Xptxas -v)
    if [[ $file == steps/* && $file != */probes/* ]]; then
        "${nvcc[@]}" -gencode arch=compute_90a,code=sm_90a -Xptxas -v >"$log.ptxas" 2>&1 || { status=1 && cat "$log.ptxas"; }
    else
        older+=(-gencode "arch=compute_90a,code=sm_90a")
    fi
    : >"$log.log" # a file for 90a alone leaves it empty
    ((${#older[@]} == 0)) || "${nvcc[@]}" "${older[@]}" "${quick[@]}" >"$log.log" 2>&1 || status=1
    sed -i '/^ptxas info/d; / 0 bytes spill stores/d' "$log.log"
    ! awk -v most="$most" '/bytes spill stores/ && $5 > most { found = 1 } END { exit !found }' "$log.log" || status=1
    ((status == 0)) && echo "ok      $file" || echo "FAILED  $file"
    cat "$log.log"
    return "$status"
}
export -f compile_kernel

tokens() { # FILE...: for each, its name as in the record, and a hash of its tokens and of what it includes from here
    python3 -B - "$@" <<'END'
import hashlib, re, sys
from pathlib import Path

def texts(path, seen):
    """The file without comments and layout, then what it includes; a string that holds // ends there, in all versions alike."""
    text = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S))
    yield " ".join(text.split())
    for name in re.findall(r'^\s*#\s*include "([^"]+)"', text, re.M):
        for folder in (path.parent, *map(Path, ("common/device", "common/harness", "tests"))):
            found = (folder / name).resolve()
            if found.is_file():
                if found not in seen:
                    seen.add(found)
                    yield from texts(found, seen)
                break

how = Path("tests/compile_kernels.sh").read_text().split("compile_kernel() {")[1].split("\n}")[0]
for file in sys.argv[1:]:
    whole = "\n".join([how, *texts(Path(file), set())])
    print(file.removeprefix("steps/").replace("/", ",").removesuffix(".cu"), "compiled as", hashlib.sha256(whole.encode()).hexdigest()[:16])
END
}

resources() { # FOLDER: a line for each kernel of the steps that were compiled
    for log in "$1"/*.ptxas; do
        [[ -e $log ]] || return 0
        awk -v file="$(basename "$log" .cu.ptxas)" '
            /Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
            /spill stores/ { spills = $5 " and " $9 } # stored and loaded
            /Used [0-9]+ registers/ {
                shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
                print file, kernel ": " $5 " registers, spills of " spills " bytes, " shared " bytes of shared memory"
            }' "$log" | c++filt | sed -E 's/^steps,//; s/\([^()]*\): /: /; s/ void / /'
    done
}

status=0 changed=()
PATH="$PATH:/usr/local/cuda/bin"
summary='nvcc: skipped (compiling each kernel for sm_75, sm_80 and sm_90a): there is no nvcc here'
if command -v nvcc >/dev/null; then
    nvcc --version | tail -n 2
    work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
    files=(steps/*/*.cu steps/*/probes/*.cu docs/probes/*.cu tests/*.cu tests/steps/*.cu)
    { nvcc --version | tail -n 1 && tokens "${files[@]}"; } >"$work/tokens"
    cmp -s <(head -n 1 "$work/tokens") <(head -n 1 "$recorded") && same=yes || same=''
    for file in "${files[@]}"; do
        name=${file#steps/} && name=${name//\//,} && name=${name%.cu}
        [[ $same && ${1-} != --all ]] && grep -qxFf <(grep "^$name compiled as " "$work/tokens") "$recorded" || changed+=("$file")
    done
    # shellcheck disable=SC2016 # $1 is of the inner shell
    if ((${#changed[@]} == 0)) || printf '%s\n' "${changed[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} bash -c 'compile_kernel "$1" "$2"' _ {} "$work"; then
        summary="nvcc: ${#changed[@]} of ${#files[@]} kernel files compiled, the others have the tokens that it compiled for $recorded"
    else
        status=1 summary='nvcc: a kernel file does NOT compile'
    fi
    { # what was compiled now, and the record of the rest
        cat "$work/tokens"
        resources "$work"
        grep -vE '^Build| compiled as ' "$recorded" | while IFS= read -r line; do
            [[ -e $work/steps,${line%% *}.cu.ptxas || ! -e steps/$(tr , / <<<"${line%% *}").cu ]] || printf '%s\n' "$line"
        done
    } | { IFS= read -r line && printf '%s\n' "$line" && LC_ALL=C sort; } >"$work/registers"
    if [[ ${1-} == --record ]]; then
        ((status)) || cp "$work/registers" "$recorded"
    elif [[ ! $same ]]; then
        summary+=", registers not compared: $recorded is of another nvcc"
    elif ! diff <(grep -v ' compiled as ' "$recorded") <(grep -v ' compiled as ' "$work/registers"); then
        status=1 summary+="; their registers, spills or shared memory are NOT those of $recorded (tests/compile_kernels.sh --record)"
    fi
fi
printf '%s\n' "$summary"
exit "$status"
