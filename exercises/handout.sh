# shellcheck shell=bash disable=SC2154
# ./run.sh handout DIR CHAPTER|TASK..., sourced by jobs.sh: a tree for students. It holds the starters of the warm-ups,
# of these chapters' first exercises and of the named tasks; the kernels of earlier chapters that are not among them; and no
# tests, solutions or patches. Of the chapters' own pages the code is left out. Other tasks on a kernel show its first
# exercise's solution (05b shows that of 05a), so they are there only when they are named.
to=${1-}
[[ $# -ge 2 && $to != -* ]] || die "$exit_usage" 'handout takes a new folder and chapters, as in ./run.sh handout ../course 01 02 05'
[[ $to == /* ]] || to=$invoked_from/$to
shift
[[ ! -e $to ]] || die "$exit_usage" "$to is already there"
chapters=() tasks=()
for wanted; do
    found=(exercises/"$wanted"_*/ steps/"$wanted"_*/)
    if [[ $wanted =~ ^[0-9]{2}$ && -d ${found[1]} ]]; then
        chapters+=("$wanted") tasks+=("${wanted}a")
    elif [[ $wanted =~ ^[0-9bc][0-9]+[a-z]?$ && -d ${found[0]} ]]; then
        tasks+=("$wanted")
    else
        die "$exit_usage" "there is no chapter or task \"$wanted\""
    fi
done
((${#chapters[@]} > 0)) || die "$exit_usage" 'handout takes one chapter at least, as in ./run.sh handout ../course 01 02 05'

part=$to.part
rm -rf "$part"
trap 'rm -rf "$part"' EXIT
mkdir -p "$part/exercises" "$part/steps"
cp -r common docs plots run.sh CMakeLists.txt CMakePresets.json LICENSE CITATION.cff README.md .gitignore "$part"
rm -f "$part/docs/teaching.md"
cp exercises/{README.md,CMakeLists.txt,shapes.json,jobs.sh,Dockerfile,run_autograder} exercises/*.[ch] "$part/exercises"

last=$(printf '%s\n' "${chapters[@]}" | sort | tail -n 1)
for folder in steps/[0-9][0-9]_*/; do
    folder=${folder%/} number=$(basename "$folder")
    number=${number:0:2}
    ((10#$number <= 10#$last)) || continue
    if [[ " ${chapters[*]} " != *" $number "* ]]; then
        cp -r "$folder" "$part/steps"
        continue
    fi
    mkdir "$part/$folder"
    find "$folder" -maxdepth 1 -name '*.png' -exec cp {} "$part/$folder" \;
    awk '/^```cuda/ { print "*(code: left out here)*"; skip = 1 } !skip { print } /^```$/ && skip { skip = 0 }' \
        "$folder/README.md" >"$part/$folder/README.md"
done

for folder in exercises/*_*/; do
    folder=${folder%/} id=$(basename "$folder")
    id=${id%%_*}
    if [[ $id != 00* && " ${tasks[*]} " != *" $id "* ]]; then # not handed out, so not listed
        sed -i "/^| \[$id\](/d" "$part/exercises/README.md" "$part"/steps/*/README.md
        continue
    fi
    mkdir "$part/$folder"
    cp "$folder/README.md" "$part/$folder"
    chapter=$(sed -nE 's/.*"kernel": "steps\/([0-9]{2})_.*/\1/p' "$folder/task.json")
    headers=(steps/"${chapter:-none}"_*/*.cuh)
    [[ ! -e ${headers[0]} ]] || cp "${headers[@]}" "$part/$folder"
    build/sim/bin/exercise handout "$id" "$part/$folder"
done
# A link to what is not handed out becomes its text.
find "$part" -name '*.md' | while IFS= read -r page; do
    { grep -oE '\]\([^():]+\.[a-z]+(#[^)]*)?\)' "$page" || true; } | sed -E 's/^..(.*).$/\1/' | sort -u | while IFS= read -r target; do
        [[ -e $(dirname "$page")/${target%#*} ]] || sed -i -zE "s@!?\[([^][]*)\]\(${target//./\\.}\)@\1@g" "$page"
    done
done
mv "$part" "$to"
printf '%s holds:\n' "$to"
printf '  %s\n' "$to"/exercises/*/ "$to"/steps/*/ | sed "s#$to/##"
