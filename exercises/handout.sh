#!/usr/bin/env bash
# handout.sh DIR CHAPTER..., which `./run.sh handout` calls: a tree for students. It holds the warm-ups, the tasks of these
# chapters as starters, the kernels of earlier chapters that are not among them, and no tests, solutions or patches. Of the
# chapters' own pages the code is left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
    printf 'run.sh handout: %s\n' "$1" >&2
    exit 2
}

to=${1-}
if (($# < 2)) || [[ $to == -* ]]; then die 'it takes a new folder and chapters, as in ./run.sh handout ../course 01 02 05'; fi
[[ $to == /* ]] || to=${invoked_from:-$PWD}/$to
shift
[[ ! -e $to ]] || die "$to is already there"
for chapter; do
    folders=(steps/"$chapter"_*/)
    if [[ ! $chapter =~ ^[0-9]{2}$ || ! -d ${folders[0]} ]]; then die "there is no chapter \"$chapter\""; fi
done

part=$to.part
rm -rf "$part"
trap 'rm -rf "$part"' EXIT
mkdir -p "$part/exercises" "$part/steps"
cp -r common docs plots run.sh CMakeLists.txt CMakePresets.json LICENSE CITATION.cff README.md .gitignore "$part"
rm -f "$part/docs/teaching.md"
cp exercises/{README.md,CMakeLists.txt,shapes.json,jobs.sh,Dockerfile,run_autograder} exercises/*.[ch] "$part/exercises"

last=$(printf '%s\n' "$@" | sort | tail -n 1)
for folder in steps/[0-9][0-9]_*/; do
    folder=${folder%/} number=$(basename "$folder")
    number=${number:0:2}
    ((10#$number <= 10#$last)) || continue
    if [[ " $* " != *" $number "* ]]; then
        cp -r "$folder" "$part/steps"
        continue
    fi
    mkdir "$part/$folder"
    find "$folder" -maxdepth 1 -name '*.png' -exec cp {} "$part/$folder" \;
    awk '/^```cuda/ { print "*(code: it is yours to write)*"; skip = 1 } !skip { print } /^```$/ && skip { skip = 0 }' \
        "$folder/README.md" >"$part/$folder/README.md"
done

for task in exercises/*/task.json; do
    folder=$(dirname "$task") id=$(basename "$folder")
    id=${id%%_*}
    chapter=$(sed -nE 's/.*"kernel": "steps\/([0-9]{2})_.*/\1/p' "$task")
    [[ $id == 00* || " $* " == *" $chapter "* ]] || continue
    mkdir "$part/$folder"
    cp "$folder/README.md" "$part/$folder"
    compgen -G "steps/${chapter:-none}_*/*.cuh" >/dev/null && cp steps/"$chapter"_*/*.cuh "$part/$folder"
    build/sim/bin/exercise handout "$id" "$part/$folder"
done
mv "$part" "$to"
printf '%s holds:\n' "$to"
printf '  %s\n' "$to"/exercises/*/ "$to"/steps/*/ | sed "s#$to/##"
