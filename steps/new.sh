#!/usr/bin/env bash
# new.sh NN_name --from STEP, which `./run.sh new` calls: a step of the reader's own, copied from the last rung of a chapter
# (01 or 01_naive) or from any rung (06a). Refuses with one line and exit status 2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

die() {
    printf 'run.sh new: %s\n' "$1" >&2
    exit 2
}

name=${1-} from=${3-}
if [[ $name == -h || $name == --help ]]; then exec ../run.sh --help; fi
[[ ${2-} == --from=* ]] && from=${2#*=}
(($# >= 1)) || die 'it needs a name and what to copy, as in ./run.sh new 90_mine --from 01'
[[ $name =~ ^[0-9]{2}_[a-z][a-z0-9_]*$ ]] ||
    die "\"$name\" is no name for a step: two digits, _, then small letters, digits and _, as in 90_mine"
[[ (${2-} == --from && $# == 3) || (${2-} == --from=?* && $# == 2) ]] || die "what shall $name be copied from? As in --from 01"
for taken in "${name:0:2}"_* "${name:0:2}"[a-z]_* ../tests/steps/"${name:0:2}"_*; do
    [[ ! -e $taken ]] || die "number ${name:0:2} is taken, by $(basename "$taken" .cu)"
done
for taken in [0-9][0-9]_*/; do
    [[ ${taken:3} != "${name:3}/" ]] || die "the name ${name:3} is taken, by steps/${taken%/}"
done

shopt -s nullglob
files=()
if [[ $from =~ ^[0-9]{2}[a-z] ]]; then
    files=("${from:0:2}"_*/"$from".cu "${from:0:2}"_*/"$from"_*.cu)
else
    for folder in "$from" "$from"_*; do [[ -e $folder/${folder:3}.cu ]] && files=("$folder/${folder:3}.cu"); done
fi
[[ ${#files[@]} == 1 ]] || die "there is no step \"$from\" to copy"
source=${files[0]}
step=$(basename "$source" .cu)
[[ $step == [0-9][0-9][a-z]_* ]] || step=$(dirname "$source")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=("$(dirname "$source")"/*.cuh)
[[ ${#headers[@]} == 0 ]] || cp "${headers[@]}" "$work"
# The symbol, .name and .idea; why the copied rung stands beside the chain says nothing about this step.
sed -zE -e "s/\bstep_$step\b/step_$name/g" -e "s/(\.name = )\"[^\"]*\"/\1\"$name\"/" \
    -e "s/(\.idea =)(\s*\"[^\"]*\")+/\1 \"${name:3}, begun as a copy of $step\"/" -e 's/\s*\.beside =(\s*"[^"]*")+,//' \
    "$source" >"$work/${name:3}.cu"
for needed in "step_$name" ".name = \"$name\"" ".idea = \"${name:3}, begun"; do
    grep -qF "$needed" "$work/${name:3}.cu" || die "steps/$source has not the form that a step has: no $needed came of it"
done
chmod 755 "$work"
cp -r "$work" "$name"
cat <<TEXT
steps/$name/${name:3}.cu is a copy of steps/$source. To edit: the kernels in it, and .idea, which tables show.
Run it, checked:       ./run.sh --steps ${name:0:2}
Beside where it began: ./run.sh --steps ${name:0:2},$step
TEXT
