#!/usr/bin/env bash
# fingerprint.sh PROGRAM: the fingerprint of a kernel changes with the last of 40 headers, and not with a comment in it.
set -euo pipefail
fingerprint=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for ((i = 1; i <= 40; i++)); do
    echo "#include \"h$i.cuh\"" >>kernel.cu
    echo "int x$i;" >"h$i.cuh"
done
print() { "$fingerprint" kernel.cu out.c && cat out.c; }
first=$(print)
echo '// a comment' >>h40.cuh
[[ $(print) == "$first" ]] || { echo 'a comment changes the fingerprint' && exit 1; }
echo 'int y;' >>h40.cuh
[[ $(print) != "$first" ]] || { echo 'the 40th header is not part of the fingerprint' && exit 1; }
