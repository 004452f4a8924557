#!/usr/bin/env bash
# walls.sh GRADER WALLS ATTACKS REFUSE: what stands behind a wall reaches nothing that it must not, as root and as an ordinary user;
# each part of a wall stops an attack that succeeds without it; and a right solution gets full points with each wall and without.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
grader=$(realpath "$1") walls=$(realpath "$2")
unset CI EXERCISES_WALL WITHOUT
work=$(mktemp -d)
refuse=$work/refuse # a path without blanks: it is one word of several in a variable
cp "$4" "$refuse"
chmod 755 "$work"
helpers=()
trap 'kill "${helpers[@]}" 2>/dev/null; rm -rf "$work"' EXIT
failed=0 code=0 number=0
say() { # WHAT, after a command whose success decides
    if (($? == 0)); then ((++number)); else echo "FAILED $1 (exit status $code)" && head -n 12 "$work/log" | cat -v | sed 's/^/    /' && failed=1; fi
}
as_user=()
run() { code=0 && timeout 60 "${as_user[@]}" env "EXERCISES_FOLDER=$folder" "$@" >"$work/log" 2>&1 </dev/null || code=$?; }

# ---- what must not be reached ---------------------------------------------------------------------------------------------
cp "$3" "$work/attacks" && attacks=$work/attacks
mkdir "$work/beside" && chmod 777 "$work/beside"
as_owner() { # the files and the process that the grader's user owns
    folder=$work/cache.$who
    mkdir -p "$folder" && chmod 777 "$folder"
    echo canary >"$work/beside/open" && chmod 666 "$work/beside/open"
    echo canary >"$work/beside/secret" && chmod 600 "$work/beside/secret"
    ((EUID != 0)) || [[ $who == root ]] || chown 65534:65534 "$work/beside/secret"
    "${as_user[@]}" sleep 1000 &
    target=$! && helpers+=("$target")
}
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); time.sleep(1000)' >"$work/port" &
helpers+=($!)
until [[ -s $work/port ]]; do sleep 0.05; done
port=$(<"$work/port")

attack() { # KIND WRITABLE WITHOUT ATTACK [ARGUMENT]
    run env "EXERCISES_WALL=$wall" "WITHOUT=$3" CANARY=canary "$walls" "$1" "$2" "$attacks" -- "$attacks" "${@:4}"
}
refused() { # KIND ATTACK [ARGUMENT]
    attack "$1" "$writable" nothing "${@:2}"
    ((code == 1)) && ! grep -q SUCCEEDED "$work/log"
    say "$wall, $who: $*"
}
stopped_by() { # PARTS KIND ATTACK [ARGUMENT]: refused by the whole wall; not without these parts
    refused "${@:2}"
    attack "$2" "$writable" "$1" "${@:3}"
    ((code == 0))
    say "$wall, $who: ${*:2}: succeeds without $1"
}

all_attacks() {
    local kind file
    as_owner
    for kind in program compiler; do
        writable=-
        [[ $kind == program ]] || writable=$(mktemp -d "$work/own.XXXXXX")
        [[ $writable == - ]] || chmod 777 "$writable"
        for file in "$PWD/exercises/shapes.json" "$(echo "$PWD"/exercises/05a_*/task.json)" "$PWD/steps/05_fa2_fwd/fa2_fwd.cu" /etc/passwd /dev/zero "/proc/$target/environ" \
            "$work/beside/open" "$work/beside/secret"; do
            refused "$kind" read "$file"
        done
        refused "$kind" write "$work/beside/open"
        refused "$kind" create "$work/beside/new"
        refused "$kind" create "$work/new"
        refused "$kind" create /tmp/new
        refused "$kind" remove "$work/beside/open"
        refused "$kind" list "$work/beside"
        for file in socket "connect $port" "kill $target" "ptrace $target" root "mount $work/beside" unshare "chroot $work" keys bpf ring userfault \
            memory_file other_calls "memory 9"; do
            read -ra words <<<"$file"
            refused "$kind" "${words[@]}"
        done
        [[ $(<"$work/beside/open") == canary && ! -e $work/beside/new ]]
        say "$wall, $who: nothing is changed"
    done
    refused program fork
    refused program exec /bin/true
    [[ $wall != landlock ]] || refused program again
    refused compiler read /proc/self/maps
    refused compiler large "$writable/large"
    refused program node "$work/beside/node"
    attack compiler "$writable" nothing create "$writable/mine"
    ((code == 0)) && [[ -e $writable/mine ]]
    say "$wall, $who: the compiler writes to its own folder"
    attack compiler "$writable" nothing fork
    ((code == 0))
    say "$wall, $who: the compiler starts programs"
    refused compiler environment CANARY
}

# What each part stops by itself; where more than one stop an attack, all are named.
bubblewrap_parts() {
    writable=-
    stopped_by files program read "$work/beside/open"
    stopped_by files program read "$work/beside/secret"
    stopped_by files program write "$work/beside/open"
    stopped_by seccomp program socket
    stopped_by seccomp program fork
    stopped_by namespaces,seccomp program kill "$target"
    stopped_by namespaces,seccomp program connect "$port"
    stopped_by environment program environment CANARY
    [[ $who != root ]] || stopped_by user program root
    [[ $who != root ]] || stopped_by capabilities,seccomp,user program mount /tmp
}
landlock_parts() {
    writable=-
    stopped_by landlock program read "$work/beside/open"
    stopped_by landlock program write "$work/beside/open"
    stopped_by seccomp program socket
    stopped_by seccomp program fork
    stopped_by landlock,seccomp program connect "$port"
    stopped_by environment compiler environment CANARY
    stopped_by seccomp,landlock program exec /bin/true
    if [[ $who != root ]]; then
        stopped_by landlock program read "$work/beside/secret"
        stopped_by landlock,seccomp program kill "$target"
        stopped_by landlock,seccomp program ptrace "$target"
        return
    fi
    stopped_by landlock,user program read "$work/beside/secret"
    stopped_by landlock,seccomp,user program kill "$target"
    stopped_by landlock,seccomp,user program ptrace "$target"
    stopped_by user program root
    stopped_by landlock,seccomp,user program mount "$work/beside" && umount "$work/beside" 2>/dev/null
    stopped_by number program again
    stopped_by number compiler forks 100
    mkdir -p "$work/setuid" && cp "$attacks" "$work/setuid/root" && chmod 4755 "$work/setuid/root"
    stopped_by landlock,seccomp,privileges program exec "$work/setuid/root"
}

# ---- points ---------------------------------------------------------------------------------------------------------------
"$grader" solution 00a >"$work/00a.cu" && "$grader" solution 05a >"$work/05a.cu"
chmod 644 "$work"/*.cu
graded() { # POINTS COMMAND...
    run "${@:2}"
    if [[ $1 == refused ]]; then
        ((code == 3)) && [[ $(wc -l <"$work/log") == 1 ]] && grep -q 'bubblewrap: .*Landlock: ' "$work/log" && [[ ! -e $folder/results.json ]]
    else
        ((code == 0)) && [[ -s $folder/results.json || "${*:2}" != *results.json* ]] && { [[ "${*:2}" == *results.json* ]] || grep -q "^Score: $1" "$work/log"; }
    fi
    say "$who: $1: ${*:2}"
    rm -f "$folder/results.json"
}
points() {
    local with report
    folder=$work/cache.$who
    for with in bubblewrap landlock none; do
        graded 100.0 env EXERCISES_WALL=$with "$grader" grade 05a "$work/05a.cu"
        graded 100.0 env EXERCISES_WALL=$with "$grader" grade 00a "$work/00a.cu" --json "$folder/results.json"
    done
    [[ $(grep -c 'PROTECTION MISSING' "$work/log") == 1 ]]
    say 'one warning where there is no wall'
    for with in "env PATH=$work/no_bwrap" "env PATH=$work/bad_bwrap:$PATH" "$refuse namespaces" "$refuse landlock"; do
        read -ra words <<<"$with"
        graded 100.0 "${words[@]}" "$grader" grade 00a "$work/00a.cu"
        ! grep -q 'PROTECTION MISSING' "$work/log"
        say "a wall stands with $with"
    done
    graded 100.0 "${words[@]}" "$grader" grade 00a "$work/00a.cu" --gradescope "$folder/results.json"
    for with in "landlock,namespaces" "seccomp"; do
        graded 100.0 "$refuse" $with "$grader" grade 00a "$work/00a.cu"
        grep -q 'PROTECTION MISSING' "$work/log"
        say "without a wall, $with refused: a warning"
        for report in --gradescope --exercism; do graded refused "$refuse" $with "$grader" grade 00a "$work/00a.cu" $report "$folder/results.json"; done
        graded refused env CI=true "$refuse" $with "$grader" grade 00a "$work/00a.cu"
        graded refused env AUTOGRADER="$work/autograder" COURSE="$work/course" TASK=00a "$refuse" $with "$work/course/run_autograder"
        [[ ! -e $work/autograder/results/results.json ]]
        say 'the autograder gives no points'
    done
    run env AUTOGRADER="$work/autograder" COURSE="$work/course" TASK=00a "$work/course/run_autograder"
    ((code == 0)) && grep -q '"score":[[:space:]]*100' "$work/autograder/results/results.json"
    say 'the autograder'
    rm -rf "$work/autograder/results"
}
mkdir "$work/no_bwrap" "$work/bad_bwrap" "$work/course" "$work/autograder" "$work/autograder/submission"
ln -s /usr/bin/* "$work/no_bwrap" && rm -f "$work/no_bwrap/bwrap"
printf '#!/bin/sh\necho "bwrap: no namespaces" >&2\nexit 1\n' >"$work/bad_bwrap/bwrap" && chmod 755 "$work/bad_bwrap/bwrap"
cp exercises/run_autograder "$work/course" && cp "$work/00a.cu" "$work/autograder/submission/00a.cu"
printf '#!/bin/sh\nshift\ncd %q && exec %q grade "$@"\n' "$PWD" "$grader" >"$work/course/run.sh" && chmod 755 "$work/course/run.sh"
chmod 777 "$work/autograder"

# The compiler itself: a kernel file that includes what the wall keeps away, in a book of its own.
includes() {
    local with
    mkdir -p "$work/book/exercises" && cp -r exercises/00a_* exercises/shapes.json "$work/book/exercises"
    ln -sfn "$PWD/common" "$work/book/common"
    echo 'canary_of_the_grader;' >"$work/book/exercises/answers" && chmod -R a+rX "$work/book"
    for with in bubblewrap landlock none; do
        for file in exercises/answers "$work/beside/open" /etc/passwd; do
            for kernel in "$work"/book/exercises/00a_*/*.cu; do
                cp "exercises/00a_"*/"$(basename "$kernel")" "$kernel" && sed -i "1i #include \"$([[ $file == /* ]] || echo "$work/book/")$file\"" "$kernel"
            done
            (cd "$work/book" && run env EXERCISES_WALL=$with "$grader" grade 00a "$work/00a.cu" && exit "$code")
            code=$?
            case $with in
            none) grep -qE 'canary|root:|does not name a type' "$work/log" ;;
            *) grep -qE 'No such file|Permission denied' "$work/log" && ! grep -qE 'canary_of|canary$|root:' "$work/log" ;;
            esac
            say "$with: the compiler includes $file"
        done
    done
}

# ---- the grader's end -------------------------------------------------------------------------------------------------------
ends() {
    local with signal after grading
    folder=$work/cache.$who
    for with in bubblewrap landlock none; do
        for signal in KILL INT; do
            for after in 0.2 0.9; do
                EXERCISES_FOLDER=$folder EXERCISES_WALL=$with "${as_user[@]}" "$grader" grade 05a "$work/05a.cu" >/dev/null 2>&1 </dev/null &
                grading=$!
                sleep "$after"
                kill -"$signal" "$grading" 2>/dev/null
                wait "$grading" 2>/dev/null
                code=0
                for _ in {1..50}; do
                    [[ -n $(ls "$folder") || -n $(pgrep -f "$folder") ]] || break
                    sleep 0.1
                done
                { ls "$folder" && pgrep -af "$folder"; } >"$work/log"
                [[ ! -s $work/log ]]
                say "$with, $who: after SIG$signal neither a folder nor a process is left"
            done
        done
    done
}

users=(root)
((EUID == 0)) || users=(self)
((EUID != 0)) || ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$grader" || users+=(nobody)
for who in "${users[@]}"; do
    as_user=()
    [[ $who != nobody ]] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    for wall in bubblewrap landlock; do
        all_attacks
        if [[ $wall == bubblewrap ]]; then bubblewrap_parts; else landlock_parts; fi
    done
    points
    ends
    [[ -z $(ls "$work/cache.$who") ]]
    say "$who: no folder is left"
done
who=${users[0]} as_user=() folder=$work/cache.${users[0]}
includes
echo "$number checks of the walls succeeded"
exit "$failed"
