#!/usr/bin/env bash
# arm64.sh [ROOT]: build the simulated device in a 64-bit Arm Debian root and run its tests there, test_simt, test_faults and
# test_meter. On a machine of another kind the root's programs run under qemu-user. ROOT (default: build/arm64) is made
# where it is missing, by debootstrap, and kept. Needs root's rights, and the packages debootstrap and qemu-user-static.
# Where the kernel does not start arm64 programs by qemu yet, it is told to until the script ends.
# SUITE (default: bookworm) and MIRROR choose what debootstrap installs. Exit status: 0 when all tests pass, 1 when one
# fails, 77 where it cannot run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=${1:-$here/build/arm64}
suite=${SUITE:-bookworm}
mirror=${MIRROR:-http://deb.debian.org/debian}
packages=build-essential,cmake,libboost-context-dev,libcjson-dev,libdw-dev,libseccomp-dev,libcriterion-dev,python3

skip() {
    echo "SKIPPED arm64: $1"
    exit 77
}

# binfmt_misc (the kernel's documentation, admin-guide/binfmt-misc): the registration is the kernel's, the place where it is
# mounted is this script's own. F: the kernel opens qemu now, so that a program in the root, where there is no qemu, starts by it.
formats='' registered=attention-arm64-$$
start_by_qemu() {
    local elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    formats=$(mktemp -d)
    mount -t binfmt_misc "$registered" "$formats" || { rmdir "$formats" && formats='' && skip 'binfmt_misc cannot be mounted'; }
    printf '%s' ":$registered:M::$elf:$mask:$(command -v qemu-aarch64-static):F" >"$formats/register" ||
        skip 'binfmt_misc takes no registration'
}
clean_up() {
    mountpoint -q "$root/proc" && umount "$root/proc"
    [[ $formats ]] || return 0
    [[ ! -e $formats/$registered ]] || echo -1 >"$formats/$registered"
    umount "$formats" && rmdir "$formats"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
((EUID == 0)) || skip "debootstrap and chroot need root's rights"
if [[ $(uname -m) != aarch64 ]]; then
    command -v qemu-aarch64-static >/dev/null || skip "qemu-aarch64-static is missing (qemu-user-static)"
    [[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]] || start_by_qemu
fi

if [[ ! -e $root/made ]]; then
    command -v debootstrap >/dev/null || skip "debootstrap is missing"
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    debootstrap --arch=arm64 --variant=minbase --include="$packages" "$suite" "$root" "$mirror"
    touch "$root/made"
fi

# What git knows of, and nothing that was built here.
rm -rf --one-file-system "$root/project"
mkdir "$root/project"
git -C "$here" ls-files -z --cached --others --exclude-standard |
    tar -C "$here" --null --files-from=- --ignore-failed-read -c | tar -C "$root/project" -x

mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
chroot "$root" /bin/sh -c '
    set -e
    cd /project
    cmake --preset sim >/dev/null
    cmake --build --preset sim --parallel "$(nproc)" --target test_simt test_faults test_meter
    failed=0
    for test in test_simt test_faults test_meter; do
        build/sim/tests/$test --jobs "$(nproc)" --timeout 300 2>"$test.log" | tail -n 3 || true
        grep -E "FAIL|Synthesis" "$test.log" || true
        grep -q "Failing: 0 | Crashing: 0" "$test.log" || failed=1
    done
    exit $failed'
