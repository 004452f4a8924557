# shellcheck shell=bash
# Programs of kernels with something changed. Sourced by tests/mutants/mutant.sh, tests/forms.sh, tests/removals.sh, plots/forms.sh
# and plots/knockouts.sh.

step_of() { # KERNEL.cu: the name of its step
    local name=${1##*/} folder=${1%/*}
    [[ $name == [0-9][0-9]* ]] || name=${folder##*/}
    echo "${name%.cu}"
}

field() { sed -n "s/^$1: //p"; } # NAME <HEADER: its values in what stands above a change

# make_program STEP-CC KERNEL FILE PROGRAM [OPTION...] <TEXT: of KERNEL with TEXT in place of FILE, the kernel or a header beside it.
# What it is made of stays beside PROGRAM, where a header is found before the right one. Status 1, with what the compiler said: of none.
make_program() {
    local broken=$4.cu
    [[ $3 == "$2" ]] || { cp "$2" "$broken" && broken=${4%/*}/${3##*/}; }
    cat >"$broken"
    # With ATTENTION_WERROR too: a change that leaves a parameter unused is a mistake like another.
    "$1" "$4.cu" -o "$4" --like "$(step_of "$2")" "${@:5}" -- -Xcompiler -Wno-error >"$4.log" 2>&1 || {
        echo 'does not compile:'
        grep -m 20 -E 'error|Error' "$4.log" || tail "$4.log"
        return 1
    }
}

# only_bf16 FOLDER: what make_program makes there takes every type of 16 bits for bf16: half of the compiler's time.
only_bf16() { sed 's/, __half>/, __nv_bfloat16>/' "${BASH_SOURCE[0]%/*}/device/tensor.cuh" >"$1/tensor.cuh"; }

# run_until_wrong SECONDS PROGRAM PROBLEM...: the exit status at the first problem that PROGRAM does not solve within them, or 0; what
# it said is in PROGRAM.out.
run_until_wrong() {
    local problem status=0
    for problem in "${@:3}"; do
        # shellcheck disable=SC2086 # options
        timeout "$1" "$2" $problem --no-time >"$2.out" 2>&1 || { status=$? && echo "exit status $status of $problem" >>"$2.out" && return "$status"; }
    done
}

# skip NAME: a kernel was edited, and a change does not apply to it any more; with CI=true that fails
skip() {
    echo "SKIPPED $1: the kernel was edited, and the change does not apply to it any more"
    [[ ${CI-} != true ]] || return 1
    return 77
}
