# shellcheck shell=bash disable=SC2154
# ./run.sh new NN_name --from STEP, sourced by jobs.sh: a step of the reader's own, copied from the last rung of a chapter
# (01 or 01_naive) or from any rung (06a). Refuses with one line and exit status 2.
name=${1-}
[[ $name =~ ^[0-9]{2}_[a-z][a-z0-9_]*$ ]] ||
    die "$exit_usage" "\"$name\" is no name for a step: two digits, _, then small letters, digits and _, as in 90_mine"
for taken in {steps,tests/steps}/"${name:0:2}"{,[a-z]}_*; do
    [[ -e $taken ]] || continue
    for free in {90..99} {12..89}; do compgen -G "steps/$free*" || compgen -G "tests/steps/$free*" || break; done >/dev/null
    who="taken, by $(basename "$taken" .cu)" && [[ $taken == steps/* ]] || who='kept for the tests'
    die "$exit_usage" "number ${name:0:2} is $who; $free is free: ./run.sh new ${free}_${name:3} ${*:2}$( (($# > 1)) || echo --from 01)"
done
[[ ${2-} != --from=* ]] || set -- "$name" --from "${2#*=}" "${@:3}"
[[ ${2-} == --from && $# == 3 ]] || die "$exit_usage" "what shall $name be copied from? As in ./run.sh new $name --from 01"
! taken=$(compgen -G "steps/[0-9][0-9]_${name:3}") || die "$exit_usage" "the name ${name:3} is taken, by $taken"
choose_one "$3" "./run.sh new $name --from "
step=${steps[0]}
source=$(step_file "$step")

work=$(mktemp -d)
part=steps/.$name.part # the folder is whole or not there
trap 'rm -rf "$work" "$part"' EXIT
find "$(dirname "$source")" -maxdepth 1 -name '*.cuh' -exec cp {} "$work" \;
# The symbol, .name and .idea; why the copied rung stands beside the chain says nothing about this step.
sed -zE -e "s/\bstep_$step\b/step_$name/g" -e "s/(\.name = )\"[^\"]*\"/\1\"$name\"/" \
    -e "s/(\.idea =)(\s*\"[^\"]*\")+/\1 \"${name:3}, begun as a copy of $step\"/" -e 's/\s*\.beside =(\s*"[^"]*")+,//' \
    "$source" >"$work/${name:3}.cu" || die "$exit_missing" "cannot write $work/${name:3}.cu"
for needed in "step_$name" ".name = \"$name\"" ".idea = \"${name:3}, begun"; do
    grep -qF "$needed" "$work/${name:3}.cu" || die "$exit_usage" "$source has not the form that a step has: no $needed came of it"
done
echo "$step" >"$work/begun_as" # try compares with it
chmod 755 "$work"
{ cp -r "$work" "$part" && mv -T "$part" "steps/$name"; } 2>/dev/null || die "$exit_missing" "cannot write steps/$name"
cat <<TEXT
steps/$name/${name:3}.cu is a copy of $source. Edit the kernels in it. Edit .idea too: the tables print it.
Run it, checked:       ./run.sh --steps ${name:0:2}
Beside where it began: ./run.sh try ${name:0:2}
TEXT
