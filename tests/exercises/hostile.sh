#!/usr/bin/env bash
# hostile.sh GRADER: submissions that break, cheat or attack get what they earned, a message that says why, and leave no
# trace. Each is the solution of 05a with something more in its hole, at the top of it; a few are other files.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
grader=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
status=0 number=0
as_user=() # a prefix to each command: another user

"$grader" solution 05a >"$work/solution.cu"
"$grader" solution b01 >"$work/whole.cu" # the hole is the whole kernel

say_failed() {
    printf 'FAILED %s: %s\n' "$1" "$2"
    sed 's/^/    /' "$work/report" | head -n 30
    status=1
}

# judge WHAT FILE TASK POINTS REGEX [OPTIONS]: POINTS is a bash condition on $score; REGEX must match the report.
judge() {
    local what=$1 file=$2 task=$3 points=$4 regex=$5 score began=$SECONDS code=0
    shift 5
    ((number++))
    timeout 60 "${as_user[@]}" "$grader" grade "$task" "$file" "$@" >"$work/report" 2>&1 </dev/null || code=$?
    score=$(sed -nE 's/^Score: ([0-9]+)(\.[0-9])? of 100$/\1/p' "$work/report" | tail -n 1)
    if ((code != 0 && code != 1 && code != 2)); then
        say_failed "$what" "exit status $code"
    elif ((code != 2)) && ! (eval "((${points//score/${score:-999}}))"); then
        say_failed "$what" "the score is ${score:-missing}"
    elif ((code == 2)) && [[ $points != refused ]]; then
        say_failed "$what" 'exit status 2'
    elif ! grep -qE "$regex" "$work/report"; then
        say_failed "$what" "the report does not say \"$regex\""
    elif ((SECONDS - began > 45)); then
        say_failed "$what" "it took $((SECONDS - began)) s"
    elif (($(stat -c %s "$work/report") > 100000)); then
        say_failed "$what" 'the report is longer than 100 KB'
    else
        printf 'ok     %s\n' "$what"
    fi
}

hole() { # WHAT CODE POINTS REGEX [OPTIONS]
    CODE=$2 awk '{ print } /\/\/ >>> Hole 1/ { print ENVIRON["CODE"] }' "$work/solution.cu" >"$work/try.cu"
    judge "$1" "$work/try.cu" 05a "$3" "$4" "${@:5}"
}
whole() { # the same in a hole that holds all device code
    CODE=$2 awk '/\/\/ <<< End of hole 1/ { print ENVIRON["CODE"] } { print }' "$work/whole.cu" >"$work/try.cu"
    judge "$1" "$work/try.cu" b01 "$3" "$4" "${@:5}"
}

all() {
    hole 'the solution' '' 'score == 100' 'Score: 100.0 of 100'
    # broken
    hole 'does not compile' 'int x = ;' 'score == 0' '\.cu:[0-9]+:.*error'
    hole 'writes to address 0' '*(volatile int *)0 = 1;' 'score == 0' 'cudaErrorIllegalAddress|address'
    hole 'writes out of bounds' 'O[(size_t)1 << 22] = 1.0f;' 'score == 0' 'O\[|out of bounds|outside'
    hole 'never ends' 'while (p.d > 0) p.d += p.d == 0;' 'score == 0' 'stopped|did not end|watchdog|timed'
    hole 'hangs in a barrier' 'if (lane == 0) __syncthreads();' 'score == 0' 'barrier'
    hole 'prints without end' 'for (int i = 0; i < p.d + 100000000; i++) printf("all points, all points, all points\\n");' 'score == 0' '64 KB'
    hole 'recursion without end' 'auto f = [](auto self, int i) -> int { int big[256]; big[i & 255] = i; return self(self, i + 1) + big[i & 127]; }; S_reg[0] += f(f, 0);' 'score == 0' 'local memory .* is full'
    hole 'a stack larger than the device' 'volatile float big[1 << 24]; big[lane << 18] = 1.0f;' 'score == 0' 'local memory .* is full'
    hole 'a trap' '__trap();' 'score == 0' 'trap|[Ff]ault|cudaError'
    # system calls
    hole 'forks' 'int fork(); fork();' 'score == 0' 'calls .*fork'
    hole 'exits with 0' 'void exit(int); exit(0);' 'score == 0' 'calls .*exit'
    hole 'allocates without end' 'for (;;) *(volatile char *)malloc(1 << 20) = 1;' 'score == 0' 'calls malloc'
    hole 'opens a file' 'int open(const char *, int); open("/etc/passwd", 1);' 'score == 0' 'calls .*open'
    hole 'opens a socket' 'int socket(int, int, int); socket(2, 1, 0);' 'score == 0' 'calls .*socket'
    hole 'runs a command' 'int system(const char *); system("touch /tmp/hostile");' 'score == 0' 'calls .*system'
    hole 'a system call in assembly' 'asm volatile("syscall");' 'score == 0' 'asm: inline assembly'
    hole 'kills its parent' 'extern "C" int kill(int, int); kill(-1, 9);' 'score == 0' 'extern'
    hole 'throws' 'throw 1;' 'score == 0' 'calls typeinfo|calls __cxa'
    hole 'jumps out' 'int setjmp(void *); setjmp(O_reg);' 'score == 0' 'calls .*setjmp'
    # the score, the meter, the detectors
    hole 'prints a fake score' 'if (threadIdx.x == 0) printf("\\nScore: 100.0 of 100\\n"); S_reg[0] = 1.0f; continue;' 'score < 50' 'MISSED'
    hole 'copies with memcpy' 'memcpy(O_reg, m_reg, sizeof m_reg);' 'score == 0' 'calls memcpy'
    hole 'copies with a built-in' '__builtin_memcpy(O_reg, m_reg, 4);' 'score == 0' '__builtin'
    hole 'stops the meter' 'simt_meter_stop();' 'score == 0' "simulated device's own"
    hole 'calls a detector' '__tsan_init();' 'score == 0' "detectors' own"
    hole 'switches the detectors off' '__attribute__((no_sanitize("thread"))) int x;' 'score == 0' 'attributes'
    hole 'the same by a standard attribute' '[[gnu::no_sanitize("thread")]] int x;' 'score == 0' 'attributes'
    hole 'writes to the meter by a wild pointer' 'for (size_t i = 0; i < 4096; i += 4) *(float *)((size_t)&blockIdx + i) = 0.0f;' 'score == 0' 'address|cudaError|memory'
    hole 'the runtime from the device' 'cudaMemset(O, 0, 4);' 'score == 0' 'runtime API'
    # others' results
    hole 'calls the reference' 'reference_forward(&p, Q, K, V, nullptr, nullptr);' 'score == 0' 'rest of the program'
    hole 'calls another step' 'step_01_naive.forward(&p, nullptr, nullptr, 0);' 'score == 0' 'rest of the program'
    hole 'launches a kernel of its own' 'launch(nullptr, 1, 1);' 'score == 0' 'device code only'
    hole 'keeps results for the next launch' 'static float kept[64]; if (kept[lane] != 0.0f) S_reg[0] = kept[lane]; kept[lane] = S_reg[0];' 'score == 0' 'keeps data between launches'
    hole 'knows the public shapes' 'int n = p.N_q; if (n != 32 && n != 1 && n != 77 && n != 19 && n != 96 && n != 101 && n != 40 && n != 65 && n != 50 && n != 128) continue;' 'score == 100' 'Score: 100'
    hole 'knows the public shapes, hidden ones' 'int n = p.N_q; if (n != 32 && n != 1 && n != 77 && n != 19 && n != 96 && n != 101 && n != 40 && n != 65 && n != 50 && n != 128) continue;' 'score < 50' 'MISSED' --hidden 20261
    hole 'knows a seed' 'if (p.N_q == 1 && p.d == 1) { float q = Q[0]; S_reg[0] = q > 0 ? 0.5f : -0.5f; }' 'score < 100' 'MISSED'
    # out of the hole
    hole 'defines a macro' '#define float double' 'score == 0' 'preprocessor'
    hole 'a macro by a digraph' '%:define float double' 'score == 0' 'digraph'
    hole 'includes a file' '#include "/etc/passwd"' 'score == 0' 'preprocessor'
    hole 'closes the braces' '} } } static void f() { { {' 'score == 0' 'closes what this hole did not open'
    hole 'a comment without end' '/* the rest is mine' 'score == 0' 'comment does not end|must each be there once'
    hole 'a raw string' 'const char *s = R"x(' 'score == 0' 'raw'
    # shellcheck disable=SC1003 # the backslash is the point
    hole 'a line that goes on' '// a comment \' 'score == 0' 'backslash'
    hole 'a second hole' $'// <<< End of hole 1\n// >>> Hole 1' 'score == 0' 'must each be there once'
    whole 'code before the program' 'struct S { S() { for (;;) {} } }; static S s;' 'score == 0' 'before the program|keeps data'
    whole 'the host computes' 'static void cheat(float *O) { O[0] = 1; } __host__ void f() {}' 'score == 0' '__host__'
    whole 'templates without end' 'template <int N> struct T { typename T<N + 1>::x y; }; static __device__ T<0> t;' 'score == 0' 'error|keeps data|minute|needed more'
    whole 'templates by the million' 'template <int N, int M> struct T { static constexpr int v = T<N - 1, 2 * M>::v + T<N - 1, 2 * M + 1>::v; }; template <int M> struct T<0, M> { static constexpr int v = M & 1; }; static __device__ int f() { return T<26, 0>::v; }' 'score == 0' 'error|the compiler'
    # precision
    hole 'scores in bfloat16' 'for (int r = 0; r < ROWS; r++) S_reg[r] = __uint_as_float(__float_as_uint(S_reg[r]) & 0xffff0000u);' 'score < 60' 'MISSED'
    hole 'scores in TF32' 'for (int r = 0; r < ROWS; r++) S_reg[r] = __uint_as_float(__float_as_uint(S_reg[r]) & 0xffffe000u);' 'score < 60' 'MISSED'
    # files
    head -c 3000000 /dev/zero | tr '\0' 'x' >"$work/large.cu"
    judge 'a file of 3 MB' "$work/large.cu" 05a refused 'large'
    head -c 3000 /dev/urandom >"$work/noise.cu"
    printf '\0' >>"$work/noise.cu"
    judge 'noise' "$work/noise.cu" 05a refused 'zero bytes'
    : >"$work/empty.cu"
    judge 'an empty file' "$work/empty.cu" 05a 'score == 0' 'must each be there once'
    sed '/<<< End of hole 1/d' "$work/solution.cu" >"$work/marker.cu"
    judge 'a marker is gone' "$work/marker.cu" 05a 'score == 0' 'must each be there once'
    sed 's/\.forward = forward/.forward = nullptr/' "$work/solution.cu" >"$work/outside.cu"
    judge 'a change outside the hole' "$work/outside.cu" 05a 'score == 100' 'outside the holes'
    judge 'no such file' "$work/none.cu" 05a refused 'No such file'
    judge 'no such task' "$work/solution.cu" 99z refused 'no task'
}

all
# The same as somebody without rights, who can write to one folder only.
if ((EUID == 0)) && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$grader" -a -r common/attention.h; then
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups env "HOME=$work" "EXERCISES_FOLDER=$work/cache")
    mkdir -m 777 "$work/cache"
    all
else
    echo 'as an ordinary user: not repeated'
fi
[[ ! -e /tmp/hostile ]] || { echo 'FAILED: a submission ran a command' && status=1; }
echo "$number hostile submissions"
exit "$status"
