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

One thread per query row computes a [sum](other.md#a-heading). A warp is 32 lanes. Chapters 01, 02 and 06 compute, and
`06a_register_tile` of `steps/06_vectorized/` too.

| what | chapter |
|---|---|
| the sum | 01 |

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

expect() { # WANTED-STATUS WHAT CHECK[,WORD] [SED-SCRIPT]
    local status=0 check
    right | sed -E "${4:-}" >"$work/page.md"
    [[ -z ${4:-} ]] || ! cmp -s <(right) "$work/page.md" || { echo "FAILED $2: the page was not changed" && failed=1; }
    IFS=, read -ra check <<<"$3"
    python3 -B "${check[@]}" "$work/page.md" >"$work/said" 2>&1 || status=$?
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
for check in check_references.py,links check_references.py,names check_english.py,spelling check_english.py,words run_commands.py; do expect 0 "$check accepts a right page" "$check"; done

mkdir "$work/tree"
(cd ../.. && tar c steps/*/*.cu steps/*/*.cuh common/device docs/index-arithmetic.md tests/docs/check_indices.py) | tar x -C "$work/tree"
expect 0 'check_indices.py accepts the kernels' "$work/tree/tests/docs/check_indices.py"
sed -i 's/O\[(size_t)row \* p\.d/O[row * p.d/' "$work/tree/steps/04_fa1_fwd/fa1_fwd.cu"
expect 1 'a row times d in 32 bits' "$work/tree/tests/docs/check_indices.py"
expect 1 'a link to a file that is not there' check_references.py,links 's/other\.md/another.md/'
expect 1 'a link to a heading that is not there' check_references.py,links 's/#a-heading/#no-heading/'
expect 1 'a file that is not there' check_references.py,names 's/`steps\/06_vectorized/`steps\/06_scalar/'
expect 1 'a rung that is not there' check_references.py,names 's/06a_register_tile/06q_register_tile/'
expect 1 'a chapter that is not there' check_references.py,names 's/02 and 06/02 and 66/'
expect 1 'a chapter that is not there, in a table' check_references.py,names 's/sum \| 01/sum | 61/'
expect 2 'references of no kind' check_references.py,pictures
expect 1 'a misspelt word' check_english.py,spelling 's/computes/conputes/'
expect 1 'a rejected phrase' check_english.py,words 's/One thread per query row/A thread a row/'
expect 1 'threads that see' check_english.py,words 's/A warp is 32 lanes/The lanes see 32 rows/'
expect 1 'a value at the beginning of a line' check_english.py,words 's/^One thread/<!-- n x -->1<!-- \/n --> thread/'
expect 1 'a cause at the beginning of a line' check_english.py,words 's/^One thread/<!-- why x < 1 y z --> One thread/'
mkdir -p "$work/steps/01_long"
for ((i = 0; i < 800; i++)); do echo 'A line of a page, with words.'; done >"$work/steps/01_long/README.md"
if python3 -B check_english.py words "$work/steps/01_long/README.md" >"$work/said"; then echo 'FAILED  a chapter of 800 lines' && failed=1; fi
front() { # WHAT EDIT: of the book's first page
    mkdir -p "$work/front/docs" && cp ../../docs/README.md "$work/front/docs" && sed -E "$2" ../../README.md >"$work/front/README.md"
    if python3 -B check_english.py words "$work/front/README.md" >"$work/said"; then echo "FAILED  $1" && failed=1; else echo "ok      $1"; fi
}
front 'a first page that is too long' 's/^A book.*/&\n\n&\n\n&/; s/$/ more words than a page has room for/'
front 'a first page with too many lines' '/^## /s/^/\n\n\n\n\n\n/'
front 'a table with seven columns' 's/^\| \[01_naive.*/& x |/'
front 'a sentence of the index' 's/^## Three doors/These pages are what they share.\n\n&/'
expect 1 'a wrong quote' run_commands.py 's/^first$/frist/'
expect 1 'a quote that lacks a line' run_commands.py '/^third$/d'
expect 1 'a quote with a line too many' run_commands.py 's/^three$/three\nfour/'
expect 1 'a command that fails' run_commands.py 's/-lt/-gt/'
expect 1 'a command without its reason' run_commands.py '/not run/d'
expect 1 'commands in a fence without a language' run_commands.py 's/^```sh$/```/; s/there-is-no-such-program/.\/run.sh --quick/'

# The causes that a page gives, against the records: plots/tables.py on a page with one marker.
(cd ../.. && cp -r --parents plots/*.py plots/counters.json plots/data steps/*/*.cu "$work")
weighs() { # WANTED-STATUS WHAT MARKER
    local status=0
    printf '# A page\n\nWarps wait. %s\n' "<!-- why $3 -->" >"$work/README.md"
    python3 -B "$work/plots/tables.py" --check >"$work/said" 2>&1 || status=$?
    if ((status == $1)) && { ((status == 0)) || grep -q "README.md:3: why $3: ${4:-}" "$work/said"; }; then
        echo "ok      $2 (exit status $status)"
    else
        echo "FAILED  $2: exit status $status, expected $1"
        cat "$work/said"
        failed=1
    fi
}
at=B4,H16,N1024,d64
weighs 0 'a cause that the counters bear out' "issue_active < 60 10d_swizzle $at,bf16"
weighs 0 'a quotient of counters' "data_pipe_lsu_wavefronts_mem_shared_op_ld/inst_executed_op_shared_ld < 2 09_fa2_bwd_warps $at"
weighs 0 'the largest stall' "largest_stall = wait 10d_swizzle $at"
weighs 0 'a counter beside that of another step' "inst_executed.sum < 0.7*10f_rows 10g_interior $at"
weighs 0 'a time' 'ms > 09b_tiles_of_S_dP 09c_tiles_of_dV_dK B4,H16,N4096,d64'
weighs 0 'a trial' 'trial halves < 0.8 11_tensor_core_bwd B4,H32,N4096,d64,bf16'
weighs 0 'an ablation' 'ablation divided-as-in-11d > 1.05 11e_stages B4,H16,N4096,d128,bwd'
weighs 1 'an ablation that was faster' 'ablation divided-as-in-11d < 1.05 11e_stages B4,H16,N4096,d128,bwd' 'recorded is'
weighs 1 'a cause that the counters refute' "issue_active > 60 10d_swizzle $at,bf16" 'recorded is'
weighs 1 'another largest stall' "largest_stall = barrier 10d_swizzle $at" 'recorded is wait'
weighs 1 'a time that is shorter' 'ms < 09b_tiles_of_S_dP 09c_tiles_of_dV_dK B4,H16,N4096,d64' 'recorded is'
weighs 1 'a trial that was faster' 'trial halves > 0.8 11_tensor_core_bwd B4,H32,N4096,d64,bf16' 'recorded is'
weighs 1 'a counter that is not recorded' "no_instruction < 1 10d_swizzle $at" '"no_instruction" names no recorded counter'
weighs 1 'a counter that is not named clearly' "inst_executed < 1 10d_swizzle $at" '"inst_executed" names '
weighs 1 'a step that there is not' "issue_active < 60 10q_none $at" 'there is no kernel file'
weighs 1 'a size that is not recorded' 'issue_active < 60 10d_swizzle B4,H16,N77,d64' 'no counters of'
weighs 1 'another data type' "issue_active < 60 10d_swizzle $at,fp16" 'no fp16 of'
weighs 1 'a trial that there is not' 'trial no-such < 1 11_tensor_core_bwd B4,H32,N4096,d64' '0 trials'
weighs 1 'a marker without a step' 'issue_active < 60' 'not COUNTER OP VALUE STEP SIZE'
sed -Ei '/"10d_swizzle"/s/("smsp__issue_active.avg.pct_of_peak_sustained_active":)[0-9.]+/\194.8/' "$work/plots/data/counters/h200-counters.jsonl"
weighs 1 'a record that has changed' "issue_active < 60 10d_swizzle $at,bf16" 'recorded is 94.8'

# What would be empty, since it is not recorded: plots/tables.py on a page with one marker.
empty() { # WANTED-STATUS WHAT LINE...
    local status=0
    printf '# A page\n\n' >"$work/README.md"
    printf '%s\n' "${@:3}" >>"$work/README.md"
    python3 -B "$work/plots/tables.py" >"$work/said" 2>&1 || status=$?
    if ((status == $1)) && { ((status == 0)) || grep -q 'README.md: .*: nothing is recorded' "$work/said"; }; then
        echo "ok      $2 (exit status $status)"
    else
        echo "FAILED  $2: exit status $status, expected $1"
        cat "$work/said"
        failed=1
    fi
}
empty 0 'a value that is recorded' '<!-- n ms:01_naive:B4,H16,N4096,d64 -->-<!-- /n -->'
empty 0 'where a rung of chapter 15 stands' '<!-- n stands:15a_window_fwd -->-<!-- /n -->'
empty 0 'a table with a dash among its cells' '<!-- begin table sizes 12_hopper_fwd -->' '<!-- end table -->'
empty 1 'a value that is not recorded' '<!-- n ms:01_naive:B4,H16,N77,d64 -->-<!-- /n -->'
empty 1 'a table of nothing' '<!-- begin table trials 06_vectorized 99 -->' '<!-- end table -->'
cp "$work/plots/trials.py" "$work/trials.py" && sed -i 's/shown = 4 if .* else 3/shown = 4/' "$work/plots/trials.py"
empty 1 'a table with a column of dashes' '<!-- begin table trials 06_vectorized 64 -->' '<!-- end table -->'
cp "$work/trials.py" "$work/plots/trials.py"

# The counts beside a card's: plots/truth.py with one record changed.
truth() { # WANTED-STATUS WHAT FILE SED-SCRIPT SAID
    local status=0 data=$work/plots/data/counters
    printf '# A page\n\n<!-- begin table apart -->\n<!-- end table -->\n' >"$work/README.md"
    cp ../../plots/data/counters/* "$data"
    sed -Ei "$4" "$data/$3"
    ((!$1)) || ! cmp -s ../../plots/data/counters/"$3" "$data/$3" || { echo "FAILED  $2: nothing was changed" && failed=1; }
    python3 -B "$work/plots/tables.py" >"$work/said" 2>&1 || status=$?
    if ((status == $1)) && grep -q "$5" "$work/said"; then
        echo "ok      $2 (exit status $status)"
    else
        echo "FAILED  $2: exit status $status, expected $1"
        cat "$work/said"
        failed=1
    fi
}
truth 0 'counts that agree or have a cause' meter.jsonl '' 'README.md: rewritten'
truth 1 'a count that differs without a cause' meter.jsonl '1s/"global_load_sectors":[0-9]+/"global_load_sectors":7/' '01_naive .* 7, on the card'
truth 1 'too many counts that differ' meter.jsonl 's/"global_load_sectors":[0-9]+/"global_load_sectors":7/' 'only .* counts agree'
truth 1 'a cause without which the card counts no more' h200-causes.jsonl '/04_fa1/s/(shared_op_st.sum":)[0-9]+/\17/g' '04_fa1_fwd .*shared store wavefronts'
truth 1 'a size that was not drawn' h200-drawn.jsonl '1s/--seq [0-9]+/--seq 64/' 'does not follow from the commit'
if python3 -B -c 'import sys; sys.path.insert(0, "../../plots"); import tables
wavefronts, loads, matrices = (f"{name}.sum" for name in ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld", "smsp__inst_executed_op_shared_ld",
                                                          "smsp__inst_executed_op_ldsm"))
rows = tables.counter_rows([{"kernel": "k", "counters": {wavefronts: 9216, loads: 96, matrices: 2304}}])
sys.exit(["wavefronts per shared load", "3.84"] not in rows)'; then
    echo 'ok      ldmatrix is a shared load'
else
    echo 'FAILED  wavefronts per shared load leave ldmatrix out' && failed=1
fi

# What limits each rung: check_limits.py on chapter 10's page with one thing wrong.
limits() { # WANTED-STATUS WHAT SED-SCRIPT
    local status=0 page=steps/10_tensor_core_fwd/README.md
    sed -E "$3" ../../$page >"$work/$page"
    ((!$1)) || ! cmp -s ../../$page "$work/$page" || { echo "FAILED $2: the page was not changed" && failed=1; }
    python3 -B check_limits.py "$work/$page" >"$work/said" || status=$?
    if ((status == $1)); then echo "ok      $2 (exit status $status)"; else echo "FAILED  $2: exit status $status, expected $1" && failed=1; fi
}
limits 0 'a chapter that says what limits it' ''
limits 1 'a chapter without the section' 's/^## What limits it/## Limits/'
limits 1 'a rung without an entry' 's/^- \*\*10d: /- **/'
limits 1 'a rung without where it stands' 's/n stands:10d_swizzle/n stands:10c_ldmatrix/'
limits 1 'a rung without a prediction' '/^## 10d/,/^## 10e/s/^\*\*Prediction/**Guess/'
limits 1 'a cause without a marker' '/what limits the$/{n; s/<!-- why [^>]*-->//}'
exit "$failed"
