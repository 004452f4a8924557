#!/usr/bin/env bash
# Each check of this folder accepts a right page and refuses a page with one thing wrong.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

right() {
    cat <<'PAGE'
# A page

One thread per query row computes a [sum](other.md#a-heading). A warp is 32 lanes.

```console
$ printf 'first\nsecond 123\nthird\n'
first
second [...]
third
$ printf 'one\ntwo\nthree\n'
...
three
```

```sh
test 1 -lt 2 &&
    true
```

<!-- not run: there is no such program -->
```sh
there-is-no-such-program
```
PAGE
}

expect() { # WANTED-STATUS WHAT CHECK [SED-SCRIPT]
    local status=0
    right | sed -E "${4:-}" >"$work/page.md"
    [[ -z ${4:-} ]] || ! cmp -s <(right) "$work/page.md" || { echo "FAILED $2: the page was not changed" && failed=1; }
    python3 -B "$3" "$work/page.md" >"$work/said" 2>&1 || status=$?
    if ((status == 77)); then
        echo "skipped $2: $(cat "$work/said")"
    elif ((status == $1)); then
        echo "ok      $2 (exit status $status)"
    else
        echo "FAILED  $2: exit status $status, expected $1"
        cat "$work/said"
        failed=1
    fi
}

printf '# Other\n\n## A heading\n' >"$work/other.md"
for check in check_links.py check_spelling.py check_words.py run_commands.py; do expect 0 "$check accepts a right page" "$check"; done
expect 1 'a link to a file that is not there' check_links.py 's/other\.md/another.md/'
expect 1 'a link to a heading that is not there' check_links.py 's/#a-heading/#no-heading/'
expect 1 'a misspelt word' check_spelling.py 's/computes/conputes/'
expect 1 'a rejected phrase' check_words.py 's/One thread per query row/A thread a row/'
expect 1 'threads that see' check_words.py 's/A warp is 32 lanes/The lanes see 32 rows/'
expect 1 'a value at the beginning of a line' check_words.py 's/^One thread/<!-- n x -->1<!-- \/n --> thread/'
mkdir -p "$work/steps/01_long"
for ((i = 0; i < 800; i++)); do echo 'A line of a page, with words.'; done >"$work/steps/01_long/README.md"
if python3 -B check_words.py "$work/steps/01_long/README.md" >"$work/said"; then echo 'FAILED  a chapter of 800 lines' && failed=1; fi
expect 1 'a wrong quote' run_commands.py 's/^first$/frist/'
expect 1 'a quote that lacks a line' run_commands.py '/^third$/d'
expect 1 'a quote with a line too many' run_commands.py 's/^three$/three\nfour/'
expect 1 'a command that fails' run_commands.py 's/-lt/-gt/'
expect 1 'a command without its reason' run_commands.py '/not run/d'
expect 1 'commands in a fence without a language' run_commands.py 's/^```sh$/```/; s/there-is-no-such-program/.\/run.sh --quick/'
exit "$failed"
