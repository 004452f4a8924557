#!/usr/bin/env bash
# sizes.sh BUILD_FOLDER: what is written here can be read.
# 1. No file of C, CUDA, shell, Python or CMake outside tests/ has more than 500 lines, no kernel file of steps/ more than 350.
# 2. Outside steps/ and tests/ no function of C, shell or Python has more than 80 lines. Kernels are exempt: they are read whole.
# 3. C and CUDA have the format of .clang-format, but for the files below; clang-format -i FILE gives it.
# Exit status: 0, 1 when a limit is exceeded, 77 where clang-tidy or clang-format is missing and CI is not set.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=$1
readonly most_of_file=500 most_of_kernel=350 most_of_function=80 formatter=14 # another version of clang-format breaks other lines
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0 missing=''
wrong() { echo "$*" && status=1; }

# Version 14 spoils the requires of C++20 in this header of the simulated device.
unformatted='^common/simt/include/simt_device\.h$'

languages=(c python shell cmake)
declare -A files
while IFS= read -r file; do
    [[ -f $file && ! -L $file ]] || continue
    case ${file##*/} in
    *.c | *.h | *.cu | *.cuh) language=c ;;
    *.py) language=python ;;
    *.sh) language=shell ;;
    *.cmake | CMakeLists.txt) language=cmake ;;
    *.*) continue ;;
    *)
        read -r language <"$file"
        case $language in '#!'*sh) language=shell ;; '#!'*python3) language=python ;; *) continue ;; esac
        ;;
    esac
    files[$language]+=$file$'\n'
done < <(git ls-files --cached --others --exclude-standard 2>/dev/null || find . -path ./build -prune -o -type f -printf '%P\n')
of() { grep -vE "$2" <<<"${files[$1]%$'\n'}"; } # LANGUAGE REGEX: the files that it does not match

for language in "${languages[@]}"; do
    ((count = $(of "$language" '^tests/' | wc -l))) || wrong "no file of $language is found"
    echo "$count files of $language outside tests/"
    while read -r lines file; do
        ((lines <= most_of_file)) || [[ $file == total ]] || wrong "$file has $lines lines, more than $most_of_file"
    done < <(of "$language" '^tests/' | xargs -d '\n' wc -l)
done
while read -r lines file; do
    ((lines <= most_of_kernel)) || [[ $file == total ]] || wrong "$file has $lines lines, more than $most_of_kernel"
done < <(grep -E '^steps/.*\.cuh?$' <<<"${files[c]}" | xargs -d '\n' wc -l)

# ---- functions: each command prints FILE:LINE: what is too long ----
of_shell() { # from the line of its name to the brace, or parenthesis, that stands as far to the right
    of shell '^(steps|tests)/' | xargs -d '\n' awk -v most="$most_of_function" '
        FNR == 1 { name = "" }
        name == "" && match($0, /^ *[A-Za-z_][A-Za-z0-9_]* *\(\) *[{(]/) && !/[})]$/ {
            name = $1; start = FNR; match($0, /^ */); end = "^" substr($0, 1, RLENGTH) "[})]"; next
        }
        name != "" && $0 ~ end {
            if (FNR - start + 1 > most) print FILENAME ":" start ": " name " has " FNR - start + 1 " lines"
            name = ""
        }'
}
of_python() {
    of python '^(steps|tests)/' | python3 -B -c '
import ast, sys
for file in sys.stdin.read().split("\n")[:-1]:
    for node in ast.walk(ast.parse(open(file, encoding="utf-8").read())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > int(sys.argv[1]): print(f"{file}:{node.lineno}: {node.name} has {lines} lines")' "$most_of_function"
}
of_c() { # of the database of the build one command for each file, and the headers of the simulated device by themselves
    # _Float16 is a type to gcc but not to each clang; of its size nothing depends here.
    of c '^(steps|tests)/|[^c]$' >"$work/files"
    printf '#include "%s"\n' cuda_runtime.h cublas_v2.h mma.h >"$work/headers.cc"
    python3 -B -c '
import json, os, sys
build, work = sys.argv[1:]
commands = {os.path.relpath(c["file"]): c for c in json.load(open(build + "/compile_commands.json"))}
for file in open(work + "/files").read().split("\n")[:-1]:
    if file not in commands: print(f"{file}:1: the build has no command that compiles it")
headers = work + "/headers.cc"
commands[headers] = dict(directory=os.getcwd(), file=headers, command="c++ -std=gnu++20 -Icommon/simt/include -c " + headers)
json.dump(list(commands.values()), open(work + "/compile_commands.json", "w"))' "$build" "$work"
    # Beyond the lines clang-tidy counts statements, branches and more, with limits of its own: lines alone are judged.
    { cat "$work/files" && echo "$work/headers.cc"; } | xargs -d '\n' -P 2 -n 16 clang-tidy -p "$work" --quiet --header-filter=. \
        --extra-arg=-D_Float16=float --extra-arg=-w --checks=-*,clang-diagnostic-error,readability-function-size --config="{CheckOptions: [
        {key: readability-function-size.LineThreshold, value: '$most_of_function'},
        {key: readability-function-size.StatementThreshold, value: '1000000'}]}" 2>"$work/errors" ||
        { echo 'clang-tidy failed:' && cat "$work/errors"; }
}
refuse_any() { # WHAT COMMAND...
    local said
    said=$("${@:2}")
    [[ ! $said ]] || wrong "$1:"$'\n'"$said"
}
refuse_any "functions of shell over $most_of_function lines" of_shell
refuse_any "functions of Python over $most_of_function lines" of_python
if command -v clang-tidy >/dev/null; then refuse_any "functions of C over $most_of_function lines" of_c; else missing+=' clang-tidy'; fi

# ---- format ----
unlike_format() { of c "^tests/|$unformatted" | xargs -d '\n' clang-format --dry-run -Werror 2>&1 | grep 'error:'; }
if [[ $(clang-format --version 2>/dev/null) == *" version $formatter."* ]]; then
    refuse_any 'not as .clang-format has it' unlike_format
else
    missing+=" clang-format-$formatter"
fi

if [[ $missing ]]; then
    if [[ ${CI-} ]]; then wrong "missing:$missing"; else echo "skipped: missing:$missing"; fi
    ((status)) || status=77
fi
exit "$status"
