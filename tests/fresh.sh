#!/usr/bin/env bash
# Both commands of the README on a machine that nobody prepared.
# fresh.sh: in a copy of the files, in a folder whose path has blanks and an umlaut, with a PATH on which there is no git,
#     no sudo and a bwrap that fails; then once more as an ordinary user, with the build of the first. Of the tests those that may
#     ask something of the user, of the path or of the machine (the label fresh in CMakeLists.txt). --all runs what a reader runs.
# fresh.sh --root FOLDER [COMMAND]: ./run.sh and ./run.sh test in an empty Debian root that debootstrap makes in FOLDER, three
#     times: as root, who installs what is missing; as an ordinary user; and with a bwrap that fails. With a COMMAND, as
#     './run.sh book', that one once, as root. SUITE (default: bookworm), MIRROR and SECTIONS (main) choose the root; Ubuntu's:
#     SUITE=noble MIRROR=http://archive.ubuntu.com/ubuntu SECTIONS=main,universe.
# Exit status: 0 when both commands pass each time, 1 when one fails, 77 where it cannot run.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly ordinary=65534
as_ordinary=(setpriv "--reuid=$ordinary" "--regid=$ordinary" --clear-groups)
skip() {
    echo "SKIPPED fresh: $1"
    exit 77
}

copy_files() { # FOLDER: what git tracks; all but what was built where there is no git
    mkdir -p "$1"
    { git -C "$here" ls-files -z 2>/dev/null || (cd "$here" && find . -path ./build -prune -o -path ./.git -prune -o ! -type d -print0); } |
        tar -C "$here" --null --files-from=- --ignore-failed-read -c | tar -C "$1" -x
}

failing() { # FILE: a program that only fails
    printf '#!/bin/sh\necho "bwrap: no permissions to create a new namespace" >&2\nexit 1\n' >"$1"
    chmod 755 "$1"
}

# The environment of a login that has nothing but a PATH. In the folder $project, behind the words of the array `enter`.
failed=0 selection=fresh commands=('./run.sh --quick' './run.sh test')
both_commands() { # WHAT
    local command log seconds
    for command in "${commands[@]}"; do
        log=$work/${1// /_}.${command##*[ -/]}.log seconds=$SECONDS
        if "${enter[@]}" env -i "PATH=$path" "HOME=$home" LC_ALL=C.UTF-8 "TEST_SELECTION=$selection" sh -c "cd \"\$1\" && $command" sh "$project" >"$log" 2>&1 </dev/null; then
            echo "ok      $1: $command, $((SECONDS - seconds)) s"
        else
            echo "FAILED  $1: $command, $((SECONDS - seconds)) s; the end of what it said:"
            { grep -E '\*\*\*(Failed|Timeout|Not Run|Exception)|FAILED|\[----\]|\[FAIL\]' "$log"; tail -n 20 "$log"; } | sed 's/^/    /'
            failed=1
        fi
    done
}

in_copies() {
    local folder program name
    work=$(mktemp -d) && chmod 755 "$work"
    trap 'rm -rf --one-file-system "$work"' EXIT
    project="$work/ein Weg mit Büchern" path=$work/path home=$work/home enter=()
    copy_files "$project"
    [[ ! ${1-} ]] || selection=quick
    mkdir "$path" "$home"
    for folder in /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do
        for program in "$folder"/*; do
            name=${program##*/}
            [[ ! -x $program || -e $path/$name || $name =~ ^(git.*|sudo|bwrap)$ ]] || ln -s "$program" "$path/$name"
        done
    done
    failing "$path/bwrap"
    both_commands 'without git and sandbox'
    if ((EUID == 0)); then
        chown -R "$ordinary:$ordinary" "$project" "$home"
        enter=("${as_ordinary[@]}")
        both_commands 'as an ordinary user'
    else
        echo 'as an ordinary user: this was one'
    fi
}

# In namespaces of its own, so that nothing stays mounted.
in_root() { # ROOT [COMMAND]
    local root=$1
    if [[ ! ${FRESH_NAMESPACE-} ]]; then
        ((EUID == 0)) || skip "debootstrap and chroot need root's rights"
        command -v debootstrap >/dev/null || skip 'debootstrap is missing'
        mkdir -p "$root"
        [[ -z $(ls -A "$root") ]] || { echo "fresh.sh: $root is not empty" >&2 && exit 2; }
        debootstrap --variant=minbase --components="${SECTIONS:-main}" "${SUITE:-bookworm}" "$root" ${MIRROR:+"$MIRROR"} >"$root.log" 2>&1 ||
            skip "debootstrap failed; see $root.log"
        FRESH_NAMESPACE=yes exec unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" --root "$@"
    fi
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    (cd "$root/dev" && mknod -m 666 null c 1 3 && mknod -m 666 zero c 1 5 && mknod -m 666 full c 1 7 && mknod -m 666 random c 1 8 &&
        mknod -m 666 urandom c 1 9 && mknod -m 666 tty c 5 0 && mkdir -m 1777 shm && ln -s /proc/self/fd fd &&
        ln -s fd/0 stdin && ln -s fd/1 stdout && ln -s fd/2 stderr) || skip 'no device nodes can be made here'
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    [[ ${MIRROR-} || ! -e /etc/apt/sources.list.d/debian.sources ]] ||
        { sed "s/bookworm/${SUITE:-bookworm}/g" /etc/apt/sources.list.d/debian.sources >"$root/etc/apt/sources.list.d/debian.sources" && : >"$root/etc/apt/sources.list"; }

    work=$root.logs path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin home=/root project=/book selection=quick enter=(chroot "$root") commands=("${2:-./run.sh}")
    mkdir -p "$work"
    copy_files "$root/book"
    [[ ${2-} ]] || commands+=('./run.sh test')
    both_commands 'an empty Debian'
    [[ ! ${2-} ]] || return 0
    project=/home/book home=/home/book enter=(chroot "--userspec=$ordinary:$ordinary" "$root")
    copy_files "$root/home/book"
    chown -R "$ordinary:$ordinary" "$root/home/book"
    both_commands 'its ordinary user'
    project=/book home=/root enter=(chroot "$root")
    failing "$root/usr/local/bin/bwrap" && cp "$root/usr/local/bin/bwrap" "$root/usr/bin/bwrap"
    both_commands 'a bwrap that fails'
    echo "The logs are in $work"
}

case $#${1-} in
0 | 1--all) in_copies "$@" ;;
[23]--root) in_root "${@:2}" ;;
*) echo 'usage: fresh.sh [--all | --root FOLDER [COMMAND]]' >&2 && exit 2 ;;
esac
exit "$failed"
