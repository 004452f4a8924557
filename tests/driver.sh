#!/usr/bin/env bash
# driver.sh SIMT_NVCC: the compiler driver takes what nvcc takes, says what it cannot do with the line of source, and its
# programs end with the right status.
set -uo pipefail
nvcc=$(realpath -s "${1:?usage: driver.sh SIMT_NVCC}") root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() { # WHAT STATUS WORDS COMMAND...: the command's exit status, and words in its output
    local what=$1 status=$2 words=$3 got
    shift 3
    "$@" >out 2>&1
    got=$?
    if [[ $got != "$status" ]] || { [[ $words ]] && ! grep -qF -- "$words" out; }; then
        printf '%s: exit status %s instead of %s, or no "%s" in:\n%s\n' "$what" "$got" "$status" "$words" "$(head -n 12 out)"
        failed=1
    fi
}

mkdir include 'a folder'
cat >include/scale.cuh <<'EOF'
#pragma once
__shared__ float kept[64];
__device__ inline float scaled(const float *in) {
    kept[threadIdx.x] = FACTOR * in[threadIdx.x];
    __syncthreads();
    return kept[threadIdx.x];
}
EOF
cat >kernel.cu <<'EOF'
#include "scale.cuh"
__global__ void scale(float *out, const float *in) { out[threadIdx.x] = scaled(in); }
void run(float *out, const float *in, int threads) { scale<<<1, threads>>>(out, in); }
EOF
cat >'a folder/main.cu' <<'EOF'
#include <cstdio>
#include <cstdlib>
void run(float *out, const float *in, int threads);
int main(int argc, char **argv) {
    float host[64], *in, *out;
    for (int i = 0; i < 64; i++) host[i] = i;
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    run(out, in, argc > 1 ? atoi(argv[1]) : 64);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    printf("%g\n", host[2]);
    return argc > 2 ? atoi(argv[2]) : 0;
}
EOF
# shellcheck disable=SC2054
flags=(-O3 -std=c++17 -arch=sm_80 -gencode arch=compute_80,code=sm_80 -lineinfo -Xptxas -v --use_fast_math -Xcompiler -Wall
    -Iinclude -DFACTOR=3)
check 'several files' 0 '' "$nvcc" "${flags[@]}" kernel.cu 'a folder/main.cu' -o program
check 'its program' 0 6 ./program
cat >threads.cu <<'EOF'
#include <thread>
__global__ void set(int *x, int value) { *x = value; }
int main() {
    int *x;
    cudaMalloc(&x, sizeof *x);
    for (int i = 0; i < 2; i++) std::thread([=] { set<<<1, 1>>>(x, i); }).join();
    cudaDeviceSynchronize();
}
EOF
check 'one default stream' 0 '' "$nvcc" --run --default-stream legacy threads.cu
check 'one default stream per thread' 3 'race between streams on x[0]' "$nvcc" --run --default-stream=per-thread threads.cu
check 'objects' 0 '' "$nvcc" "${flags[@]}" -c kernel.cu -o kernel.o
check 'objects, linked' 0 '' "$nvcc" kernel.o 'a folder/main.cu' -o linked -lcudart
check 'their program' 0 6 ./linked
check 'the exit status of the program' 9 6 ./program 64 9
check 'a fault that the program ignores' 3 'include/scale.cuh:4, called at kernel.cu:2: read of 4 bytes out of bounds' ./program 96
check 'a launch that fails, ignored' 3 'kernel.cu:3: launch of scale: 2048 threads per block, at most 1024' ./program 2048
check '--run' 7 6 "$nvcc" --run "${flags[@]}" kernel.cu 'a folder/main.cu' -- 64 7
check 'the meter' 0 'shared store' env SIMT_METER=1 ./program
check 'the meter beside the source' 0 'kept[threadIdx.x] = FACTOR' env SIMT_METER=source ./program
check 'the meter as JSON' 0 6 env SIMT_METER=meter.json ./program
check 'the JSON' 0 'scale.cuh' grep -o 'include/scale.cuh' meter.json
check 'a trace' 0 6 env SIMT_TRACE=trace.json ./program
check 'its shared array' 0 '"kept"' grep -o '"kept"' trace.json
check 'its block' 0 '"index":[0,0,0]' grep -o '"index":.0,0,0.' trace.json
check 'a trace of other blocks' 0 6 env SIMT_TRACE=trace.json SIMT_TRACE_BLOCKS=7,9 ./program
check 'which did not run' 0 '"blocks":[]' grep -o '"blocks":..' trace.json
check 'a trace in spite of a fault' 3 'out of bounds' env SIMT_TRACE=trace.json ./program 96
check 'that is whole' 0 ']}' tail -n 1 trace.json
check 'blocks without a trace' 2 'SIMT_TRACE_BLOCKS=0: it must be' env SIMT_TRACE_BLOCKS=0 ./program
check 'a list with no end' 2 'SIMT_TRACE_BLOCKS=0,: it must be' env SIMT_TRACE=trace.json SIMT_TRACE_BLOCKS=0, ./program
check 'a trace that cannot be written' 2 'SIMT_TRACE=none/trace.json cannot be written' env SIMT_TRACE=none/trace.json ./program
# A trace of what Hopper's instructions do: exactly these bytes, phases and threads, at the kernel's own lines.
cat >hopper.cu <<'EOF'
#include "hopper.cuh"
__global__ void k(const float *x, float *y) {
    __shared__ alignas(1024) __half tile[64 * 64];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) mbarrier_init(&full, 1);
    if (threadIdx.x == 0) fence_mbarrier_init();
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, 8192);
        bulk_load(tile, x + 64, 8192, &full);
    }
    mbarrier_wait(&full, 0);
    float C[64 / 8][4] = {};
    wgmma_fence();
    wgmma<true>(__half(), C, swizzled_tile(tile, 0), swizzled_tile(tile, 0), true);
    wgmma_commit();
    wgmma_wait<0>();
    named_barrier_sync(3, 128);
    if (threadIdx.x == 70) {
        bulk_reduce_add(y + 4, (float *)tile + 32, 256);
        tma_commit();
        tma_wait_read<0>();
    }
}
int main() {
    float *x, *y;
    cudaMalloc(&x, 9000);
    cudaMalloc(&y, 1024);
    cudaMemset(x, 0, 9000);
    cudaMemset(y, 0, 1024);
    k<<<1, 128>>>(x, y);
    return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
check 'Hopper' 0 '' "$nvcc" -std=c++20 "-I$root/common/device" hopper.cu -o hopper
check 'its trace' 0 '' env SIMT_TRACE=hopper.json ./hopper
tile=$(sed -nE 's/.*"name":"tile","bytes":8192,"offset":([0-9]+).*/\1/p' hopper.json) full=$(sed -nE 's/.*"name":"full","bytes":8,"offset":([0-9]+).*/\1/p' hopper.json)
check 'a bulk load, its place and its barrier' 0 ",0,1,0,[$tile,8192,256],$full,0]" cat hopper.json
check 'a bulk reduction of lane 6' 0 ",2,3,1,[$((tile + 128)),256,16],0,6]" cat hopper.json
check 'an arrival with bytes' 0 ",0,1,[$full,0,8192,0]]" cat hopper.json
check 'a phase' 0 ",-1,1,[$full,0,0,0]]" cat hopper.json
check 'a round of a named barrier' 0 ',-1,2,[3,0,0,0]]' cat hopper.json
check '128 waits at each' 0 256 grep -cE ",[0-3],[12],.($full|3),0,0,[0-9]+..,?$" hopper.json
for line in '10,"space":"bulk","kind":"bulk load"' '20,"space":"bulk","kind":"bulk add"' '9,"space":"mbarrier","kind":"arrive"' \
    '12,"space":"mbarrier","kind":"wait"' '15,"space":"operand","kind":"wgmma"' '18,"space":"named","kind":"wait"'; do
    check "line $line" 0 "{\"file\":\"hopper.cu\",\"line\":$line" cat hopper.json
done
# A line of a header stands with the kernel's line that calls it.
cat >called.cuh <<'EOF'
static __device__ float of_header(const float *x) { return __shfl_sync(~0u, x[threadIdx.x], 0); }
EOF
cat >called.cu <<'EOF'
#include "called.cuh"
__global__ void k(float *x) {
    float a = of_header(x);
    x[threadIdx.x] = a + of_header(x + 32); }
int main() {
    float *x;
    cudaMalloc(&x, 256);
    cudaMemset(x, 0, 256);
    k<<<1, 32>>>(x);
    return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
check 'a header' 0 '' "$nvcc" called.cu -o called
check 'its calls' 0 '' env SIMT_TRACE=called.json ./called
for what in 'global","kind":"load","bytes":4' 'warp","kind":"__shfl_sync()","bytes":0'; do
    for line in 3 4; do
        check "$what, called at $line" 0 "{\"file\":\"called.cuh\",\"line\":1,\"space\":\"$what,\"caller\":\"called.cu:$line\"}" cat called.json
    done
done
check 'a line that no header calls' 0 '{"file":"called.cu","line":4,"space":"global","kind":"store","bytes":4}' cat called.json
check 'a wrong seed' 2 'SIMT_SHUFFLE_SEED=x' env SIMT_SHUFFLE_SEED=x ./program
check 'a wrong number of devices' 2 'SIMT_DEVICES is "2x"' env SIMT_DEVICES=2x ./program
for number in SIMT_DEVICES=0 SIMT_DEVICES=1.5 SIMT_THREADS=0 SIMT_THREADS=-1 SIMT_THREADS=9999999999 SIMT_THREADS=nan SIMT_WATCHDOG_SECONDS=-3; do
    check "$number" 2 "${number%=*} is \"${number#*=}\": it must be" env "$number" ./program
done
cat >rows.cu <<'EOF'
__global__ void k(const float *x, float *y, int stride, int step) { y[threadIdx.x] = x[stride * blockIdx.x + step * threadIdx.x]; }
int main(int argc, char **) { // 64 rows that begin within a sector; with an argument a column of them
    float *x, *y;
    cudaMalloc(&x, 65 * 300 * 4);
    cudaMalloc(&y, 65 * 300 * 4);
    cudaMemset(x, 0, 65 * 300 * 4);
    for (int row = 0; row < 64; row++) k<<<1, 300>>>(x + (argc > 1 ? 0 : 300 * row), y, 300, argc > 1 ? 60 : 1);
}
EOF
check 'rows' 0 '' "$nvcc" rows.cu -o rows
check 'a small part is no waste' 1 '' sh -c 'SIMT_METER=1 ./rows 2>&1 | grep "most waste"'
check 'a column is' 0 'most waste' env SIMT_METER=1 ./rows column
check 'a meter that cannot be written' 3 'none/meter.json' env SIMT_METER=none/meter.json ./program
cat >cub.cu <<'EOF'
#include <cub/cub.cuh>
typedef cub::BlockReduce<int, 64> Reduce;
__global__ void k(int *out, bool waits) { // CUB's rule: a barrier before its storage is used again
    __shared__ Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(1);
    if (waits) __syncthreads();
    int other = Reduce(storage).Sum(2);
    if (threadIdx.x == 0) *out = sum + other;
}
int main(int argc, char **) {
    int *out;
    cudaMallocManaged(&out, 4);
    k<<<1, 64>>>(out, argc > 1);
    return cudaDeviceSynchronize() == cudaSuccess && *out == 192 ? 0 : 1;
}
EOF
check "CUB's storage used twice" 3 'cub.cu:7, and nothing orders' "$nvcc" --run cub.cu
check "CUB's storage used twice, with a barrier" 0 '' "$nvcc" --run cub.cu -- waits
cat >old.cu <<'EOF'
__global__ void k(int *out) { // as before CUDA 9
    int sum = threadIdx.x;
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down(sum, by);
    if (__any(threadIdx.x == 5) && !__all(sum == 3) && threadIdx.x == 0) *out = sum + (int)(__ballot(1) & 1);
}
int main() {
    int *out;
    cudaMallocManaged(&out, 4);
    k<<<1, 32>>>(out);
    return cudaDeviceSynchronize() == cudaSuccess && *out == 497 ? 0 : 1;
}
EOF
check 'shuffles without a mask' 0 '' "$nvcc" --run old.cu
check 'a file that is not there' 2 'none.cu: no such file' "$nvcc" none.cu
check 'an option that needs a value' 2 '-o needs a value' "$nvcc" kernel.cu -o
check 'no file' 2 'usage' "$nvcc" -c

refused() { # WORDS LINE: a program whose second line is refused
    printf '#include <cstdio>\n%s\nint main() { return 0; }\n' "$2" >refused.cu
    check "$2" 1 "refused.cu:2: error: $1" "$nvcc" refused.cu -o refused
}
refused 'PTX' '__device__ unsigned f(unsigned x) { asm("isspacep.global %0, %1;" : "=r"(x) : "r"(x)); return x; }'
refused 'PTX instruction tcgen05.wait::ld.sync.aligned: it is Blackwell' '__device__ void f() { asm("tcgen05.wait::ld.sync.aligned;"); }'
refused 'PTX instruction exit: the simulated device does not have it' '__device__ void f() { asm("exit;"); }'
refused 'PTX instruction wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3: 8-bit operands are K-major only' \
    '__device__ void f(float *C, size_t A) { asm("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 1;" : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3]) : "l"(A)); }'
refused 'inline PTX: a branch to OUT, which is no label' '__device__ void f() { asm("{ .reg .pred p; @p bra OUT; }"); }'
refused '<<< without >>>' 'void f() { g<<<1, 2; }'
refused 'the __shared__ variable x cannot have an initial value' '__global__ void k() { __shared__ int x = 1; }'
refused 'k is a kernel, which is launched: write k<<<blocks, threads>>>' '__global__ void k(int *x) {} void f(int *x) { k(x); }'
refused 'k is a kernel' 'template <class T> __global__ void k(T *x) {} __global__ void l(int *x) { k(x); }'
refused 'the host calls f(), a function of the device' '__device__ int f(int x) { return x; } int g() { return f(1); }'
refused 'a __global__ function takes no rvalue reference' '__global__ void k(int &&x) {}'
refused 'the size of an array in device code must be a constant, and n is known' '__device__ void f(int n) { float x[n]; x[0] = 1; }'
refused 'the size of an array in device code' '__host__ __device__ void f(int n) { if (n > 1) { const int m = n; int x[2][m + 1]; x[0][0] = 1; } }'
printf '__global__ void k(float *x, int i) {\n    float a = x[1] + i\n    x[i] = a;\n}\nint main() {}\n' >refused.cu
check 'no array, but a statement without its ;' 1 'refused.cu:3:5: error: expected' "$nvcc" refused.cu
printf '#include <vector>\n__global__ void k(std::vector<int> v, int *x) { *x = v[0]; }\nint main() {}\n' >refused.cu
check 'a vector as a parameter' 1 'refused.cu:2: error: device code uses v, a std::vector' "$nvcc" refused.cu
constant='the size of a __shared__ array must be a constant, and'
refused "$constant n is known" '__global__ void k(int n) { __shared__ int x[n]; x[0] = 1; }'
refused "$constant n is known" '__global__ void k() { int n = 4; if (n > 1) { __shared__ int x[2][n + 1]; x[0][0] = 1; } }'
refused "$constant l is known" '__global__ void k(int n) { const int l = n; __shared__ int x[l]; x[0] = 1; }'
refused "$constant blockDim is known" '__global__ void k() { __shared__ int x[blockDim.x]; x[0] = 1; }'
refused 'expected ; after the __shared__ variable x' '__global__ void k() { __shared__ int x[9]
int t = threadIdx.x; x[t] = t; }'

refused 'a __global__ function returns nothing' '__global__ int k() { return 1; }'
refused 'a __global__ function returns nothing' 'template <typename T> __global__ T *k(T *x) { return x; }'
host='square(), a function of the host: write __device__ before it, at refused.cu:2'
refused "device code calls $host" 'float square(float x) { return x * x; } __global__ void k(float *x) { x[0] = 2 * square(x[1]); }'
refused "device code calls $host" 'static float square(float x) { return x * x; } struct s { __device__ float f() { return square(1); } };'
refused 'k is no kernel' 'void k(int *x) { *x = 1; } void f() { k<<<1, 1>>>(nullptr); }'
refused 'k is no kernel' '__device__ void k(int *x) { *x = 1; } void f() { k<<<1, 1>>>(nullptr); }'

cat >sizes.cu <<'EOF'
#include <cstdio>
constexpr int n = 4;
template <int m> __device__ int part(int k) {
    const int l = m + 1;
    __shared__ int x[m][l], y[n];
    return x[0][0] = y[0] = k * n;
}
__global__ void f(int k) { int i = k * n; { int n = i; i = n; } for (int n = 0; n < k; n++) i += n; __shared__ int x[n]; x[0] = i; }
__global__ void g(int n) { { constexpr int m = 3; __shared__ int x[m]; x[0] = n; } printf("%d\n", part<2>(n)); }
int main() { f<<<1, 1>>>(1); g<<<1, 1>>>(2); return cudaDeviceSynchronize(); }
EOF
check 'sizes that are constants' 0 '8' "$nvcc" --run sizes.cu

cat >syntax.cu <<'EOF'
__global__ void k(int *out) { out[0] = 1; }
int main() {
    float *x = nullptr;
    k<<<1, 1>>>(x);
}
EOF
check 'a wrong argument' 1 'syntax.cu:4' "$nvcc" syntax.cu -o syntax
echo '__device__ inline float taken(const float *x, int i) { return x[i]; }' >helper.cuh
cat >calls.cu <<'EOF'
#include "helper.cuh"
__global__ void k(float *x, int step, int first) {
    x[threadIdx.x] = taken(x, first + step * (int)threadIdx.x);
}
int main(int argc, char **argv) { // BYTES STEP FIRST [LOWER]: of two arrays beside each other
    const int bytes = atoi(argv[1]), step = atoi(argv[2]), first = atoi(argv[3]);
    float *x, *y;
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMemset(x, 0, bytes);
    cudaMemset(y, 0, bytes);
    k<<<1, 3>>>((x > y) == (argc == 4) ? x : y, step, first);
}
EOF
sed -i '1i #include <cstdlib>' calls.cu
check 'calls' 0 '' "$nvcc" calls.cu -o calls
check 'a helper in a header' 3 'helper.cuh:1, called at calls.cu:4: read' ./calls 8000 1 1998
cat >outer.cuh <<'EOF'
#include "helper.cuh"
__device__ inline float doubled(const float *x, int i) {
    if (i < 0) __syncthreads();
    return 2 * taken(x, i);
}
EOF
cat >nested.cu <<'EOF'
#include <cstdlib>
#include "outer.cuh"
__global__ void k(float *x, int i) {
    x[threadIdx.x] = doubled(x, threadIdx.x == 0 ? i : 1);
}
int main(int argc, char **argv) {
    float *x;
    cudaMalloc(&x, 400);
    cudaMemset(x, 0, 400);
    k<<<1, 2>>>(x, atoi(argv[1]));
    return cudaDeviceSynchronize();
}
EOF
check 'nested helpers' 0 '' "$nvcc" nested.cu -o nested
check 'a helper in a header that another one calls' 3 'helper.cuh:1, called at outer.cuh:4, called at nested.cu:4: read' ./nested 1000
check 'a barrier in a helper' 3 '__syncthreads() in outer.cuh:3, called at nested.cu:4, thread' env SIMT_STRICT=1 ./nested -1
check 'before an array' 3 '4104 bytes before the start of x (cudaMalloc, calls.cu:9), which' ./calls 8000 0 -1026
check 'before an array, accessed before' 3 '4120 bytes before the start of x (cudaMalloc, calls.cu:9), which' ./calls 8192 -1030 1030
check 'between two arrays' 3 'which has 8000 bytes, or 4104 bytes before' ./calls 8000 0 -1026
check 'past an array' 3 'byte 12096 of y (cudaMalloc, calls.cu:10), which' ./calls 8000 0 3024 lower
check 'past an array, accessed before' 3 'byte 12312 of y (cudaMalloc, calls.cu:10), which' ./calls 8192 1539 0 lower
far='which is no device memory (2420130816 bytes past the start of x (cudaMalloc, calls.cu:9): an index that overflowed'
check 'an index that overflowed' 3 "$far" ./calls 8000 0 605032704
check 'an index that overflowed below 0' 3 'an index that is negative or overflowed, a host pointer' ./calls 8000 0 -605032704
# What a message calls memory: the variable and the line, as far as they are known.
cat >allocations.cuh <<'EOF'
template <typename T> T *made(int n) { T *memory; cudaMalloc(&memory, n * sizeof(T)); return memory; }
extern "C" int *made_in_c(int n);
EOF
cat >made_in_c.c <<'EOF'
#include <cuda_runtime.h>
int *made_in_c(int n) { void *memory; cudaMalloc(&memory, 4 * n); return memory; }
EOF
cat >allocations.cu <<'EOF'
#include <cstdio>
#include <cstdlib>
#include "allocations.cuh"
#define CHECKED(call) do { if ((call) != cudaSuccess) exit(1); } while (0)
struct buffers { int *data, *rows[2]; void make(int n) { cudaMalloc(&data, 4 * n); CHECKED(cudaMalloc((void **)&this->rows[n & 1],
    4 * n)); } };
__global__ void past(int *x, int i) { x[i] = 1; }
int main(int argc, char **argv) {
    int n = 100, *a, *b, *m, *h, *t;
    buffers both;
    both.make(n);
    CHECKED(cudaMalloc(&a, 4 * n)); CHECKED(cudaMalloc(reinterpret_cast<void **>(&b), 4 * n));
    cudaMallocManaged(&m, 4 * n);
    cudaMallocHost(&h, 4 * n);
    cudaMalloc<int>(&t, 4 * n);
    int *c = made<int>(n),
        *d = made<int>(n), *e = made_in_c(n), *all[] = {both.data, both.rows[0], a, b, m, h, t, c, d, e};
    past<<<1, 1>>>(all[atoi(argv[1])], n - (argc > 2));
    return cudaDeviceSynchronize();
}
EOF
check 'allocations' 0 '' "$nvcc" allocations.cu made_in_c.c -o allocations
number=0
for words in 'data (cudaMalloc, allocations.cu:5)' 'this->rows[n & 1] (cudaMalloc, allocations.cu:' 'a (cudaMalloc, allocations.cu:12)' \
    'b (cudaMalloc, allocations.cu:12)' 'm (cudaMallocManaged, allocations.cu:13)' 'h (cudaMallocHost, allocations.cu:14)' \
    'device allocation (cudaMalloc, allocations.cu:15)' 'memory (cudaMalloc, allocations.cuh:1, called at allocations.cu:16)' \
    'memory (cudaMalloc, allocations.cuh:1, called at allocations.cu:17)' "device allocation (cudaMalloc, $work/made_in_c.c:2)"; do
    check "memory $words" 3 "byte 400 of $words" ./allocations $number
    check "inside of it" 0 '' ./allocations $((number++)) inside
done
rm allocations.cu*
check 'memory without its source' 3 'byte 400 of b (cudaMalloc, allocations.cu:12)' ./allocations 3
cp allocations stripped && strip --strip-debug stripped
check 'memory without debug information' 3 'byte 400 of b, which has' ./stripped 3
check 'memory of which nothing is known' 3 'byte 400 of device allocation 10, which has' ./stripped 9
# Lines are broken for a terminal only, at its width.
script -qec 'stty cols 60; ./calls 8000 0 3024 lower' /dev/null >narrow 2>&1
COLUMNS=90 script -qec './calls 8000 0 3024 lower' /dev/null >wide 2>&1
if [[ $(wc -l <narrow) -le 4 ]] || grep -q '.\{62\}' narrow || ! grep -q 'calls.cu:10' narrow || ! grep -q '.\{70\}' wide || grep -q '.\{92\}' wide; then
    echo 'lines on terminals of 60 and 90 columns:' && cat narrow wide && failed=1
fi
check 'lines that are redirected' 3 'helper.cuh:1, called at calls.cu:4: read of 4 bytes out of bounds: byte 12096 of y (cudaMalloc, calls.cu:10), which has 8000 bytes: element' \
    env COLUMNS=60 ./calls 8000 0 3024 lower
cat >after.cu <<'EOF'
#include <cstdio>
__global__ void k(int *x) { x[threadIdx.x + 1] = 1; }
int main(int argc, char **argv) { // with an argument the fault comes first
    int *x, *host = nullptr;
    cudaMalloc(&x, 4);
    if (argc > 1) k<<<1, 1>>>(x);
    printf("%d\n", *host);
}
EOF
check 'a crash of the host' 0 '' "$nvcc" after.cu -o after
check 'a crash of the host alone' 139 'after.cu:7: access to memory that is not there on the host' sh -c './after; exit $?'
check 'a crash of the host after a fault' 3 'after.cu:2: write of 4 bytes out of bounds' ./after x
check 'which is all that is told' 1 '' sh -c './after x 2>&1 | grep after.cu:7'
cat >uninitialised.cu <<'EOF'
__global__ void k(int *x) {
    int sum;
    for (int i = 0; i < 4; i++) sum += i;
    x[threadIdx.x] = sum;
}
EOF
check 'a sum without a beginning' 0 'uninitialised.cu:2' "$nvcc" -c uninitialised.cu
check 'is a warning' 0 'Wuninitialized' "$nvcc" -c uninitialised.cu
check 'unless it is not wanted' 1 '' sh -c "'$nvcc' -w -c uninitialised.cu 2>&1 | grep uninit"
cat >nested.cu <<'EOF'
__global__ void inner() {}
__global__ void outer() { inner<<<1, 1>>>(); }
int main() { outer<<<1, 1>>>(); }
EOF
check 'a launch in a kernel' 3 'no dynamic parallelism' "$nvcc" --run nested.cu
cat >constant.cu <<'EOF'
__constant__ int given[4];
__global__ void k(int *to) { to[threadIdx.x] = given[threadIdx.x]; }
int main(int argc, char **argv) {
    int *to;
    if (argc > 1) cudaGetSymbolAddress((void **)&to, given);
    else cudaMalloc(&to, sizeof given);
    k<<<1, 4>>>(to);
    return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
check 'a read of __constant__ memory' 0 '' "$nvcc" --run constant.cu
check 'a write to __constant__ memory' 3 'constant.cu:2: write of 4 bytes to a __constant__ variable' "$nvcc" --run constant.cu -- x
cat >peers.cu <<'EOF'
#include <cstdio>
int main() {
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 1);
    int can = 0, host = 8, *a, *b;
    cudaDeviceCanAccessPeer(&can, 0, 1);
    printf("%d %d", can, p.deviceOverlap == 1 && p.clockRate > 0 && p.memoryClockRate > 0 && p.memoryBusWidth > 0);
    for (int i = 0; i < 2; i++) printf(" %d", cudaDeviceEnablePeerAccess(1, 0));
    for (int i = 0; i < 2; i++) printf(" %d", cudaDeviceDisablePeerAccess(1));
    cudaMalloc(&a, 4);
    cudaMemcpy(a, &host, 4, cudaMemcpyHostToDevice);
    cudaSetDevice(1);
    cudaMalloc(&b, 4);
    printf(" %d", cudaMemcpyPeer(b, 1, a, 0, 4));
    cudaPointerAttributes of[2];
    cudaPointerGetAttributes(&of[0], a);
    cudaPointerGetAttributes(&of[1], b);
    cudaMemcpy(&host, b, 4, cudaMemcpyDeviceToHost);
    int multiprocessors;
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 1);
    printf(" %d %d %d %d\n", of[0].device, of[1].device, host, multiprocessors);
}
EOF
cat >waits.cu <<'EOF'
#include <cstdio>
__global__ void all_wait(int *come) { // one block of each multiprocessor's shared memory
    int seen;
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(come) : "memory");
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(come) : "memory");
    while (seen != (int)gridDim.x);
}
int main() {
    int *come, bytes = 200 << 10;
    cudaMalloc(&come, sizeof *come);
    cudaMemset(come, 0, sizeof *come);
    cudaFuncSetAttribute(all_wait, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    all_wait<<<4, 1, bytes>>>(come);
    printf("%d\n", cudaDeviceSynchronize());
}
EOF
check 'blocks that wait for one another' 0 0 "$nvcc" --run waits.cu
check 'as many multiprocessors as blocks' 0 0 env SIMT_MULTIPROCESSORS=4 "$nvcc" --run waits.cu
check 'blocks that cannot have begun' 3 '1 blocks have not begun: no more than 3 of them run at once' env SIMT_MULTIPROCESSORS=3 "$nvcc" --run waits.cu
cat >names.cu <<'EOF'
namespace of { enum class mode : char { A, B = 4 }; }
template <int N, of::mode M, class T> __global__ void of_mode(T *y) { y[N] = (int)M; }
extern "C" __global__ void plain(float *y) { y[64] = 1; }
int main(int argc, char **) {
    float *y;
    cudaMalloc(&y, 256);
    void *arguments[] = {&y};
    if (argc > 1) cudaLaunchKernel((void *)plain, dim3(1), dim3(1), arguments, 0, 0);
    else of_mode<64, of::mode::B, float><<<1, 1>>>(y);
    return cudaDeviceSynchronize() == cudaSuccess;
}
EOF
check 'the name of an enumerator' 3 'in kernel of_mode<64, B, float>, block' "$nvcc" --run names.cu
check 'the name of a kernel of C' 3 'in kernel plain, block' "$nvcc" --run names.cu -- 1
mkdir -p toolkit
echo 'struct fp8 {};' >toolkit/cuda_fp99.h
printf '#include <cuda_fp99.h>\n__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n' >fp99.cu
check "a toolkit's header" 1 'fp99.cu:1: error: #include <cuda_fp99.h>: the simulated device does not have it' "$nvcc" -isystem toolkit fp99.cu -o fp99
check 'two devices' 0 '1 1 0 704 0 705 0 0 1 8 132' env SIMT_DEVICES=2 SIMT_MULTIPROCESSORS=132 "$nvcc" --run peers.cu
check 'no multiprocessor' 2 'SIMT_MULTIPROCESSORS is "0": it must be' env SIMT_DEVICES=2 SIMT_MULTIPROCESSORS=0 "$nvcc" --run peers.cu
cat >pair.cu <<'EOF'
#include <cstdio>
#include <nccl.h>
int main(int count, char **) {
    ncclComm_t comm[2];
    cudaStream_t stream[2];
    float *data[2], got = 0;
    if (ncclCommInitAll(comm, 2, nullptr) != ncclSuccess) return 1;
    for (int rank = 0; rank < 2; rank++) {
        float one = rank + 1;
        cudaSetDevice(rank);
        cudaStreamCreate(&stream[rank]);
        cudaMalloc(&data[rank], 4);
        cudaMemcpy(data[rank], &one, 4, cudaMemcpyHostToDevice);
    }
    ncclGroupStart();
    ncclSend(data[0], 1, ncclFloat, 1, comm[0], stream[0]);
    if (count < 3) ncclRecv(data[1], 1, ncclFloat, 0, comm[1], stream[1]);
    if (count != 2) ncclGroupEnd();
    if (count == 1) cudaStreamSynchronize(stream[1]), cudaMemcpy(&got, data[1], 4, cudaMemcpyDeviceToHost);
    printf("got %g\n", got);
    for (int rank = 0; rank < 2 && count == 1; rank++) ncclCommDestroy(comm[rank]);
}
EOF
check 'a copy without peer access' 0 'note: peers.cu:14: copy from device 0 to device 1, neither of which has access' env SIMT_DEVICES=2 "$nvcc" --run peers.cu
check 'NCCL' 0 'got 1' env SIMT_DEVICES=2 "$nvcc" --run pair.cu -lnccl
check 'a group without end' 3 'at the end of the program: the group that began at pair.cu:15 has not ended' env SIMT_DEVICES=2 "$nvcc" --run pair.cu -lnccl -- x
check 'a send without receive' 3 'at the end of the program: there is the ncclSend() of rank 0 to rank 1 at pair.cu:16, which no ncclRecv() of rank 1' \
    env SIMT_DEVICES=2 "$nvcc" --run pair.cu -lnccl -- x x
check 'NCCL for more devices than there are' 1 'there is no device 1: there are 1 (SIMT_DEVICES)' "$nvcc" --run pair.cu -lnccl
echo '__global__ void roles() { asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); }
int main() { roles<<<1, 128>>>(); return cudaDeviceSynchronize(); }' >roles.cu
check 'setmaxnreg that ptxas ignores' 0 'note: roles.cu:1: setmaxnreg without a number of blocks in __launch_bounds__' "$nvcc" --run roles.cu
check 'a wrong order of streams' 2 'SIMT_STREAMS is "soon": it must be late' env SIMT_STREAMS=soon "$nvcc" --run peers.cu
check 'a wrong base of shared memory' 2 'SIMT_SHARED_BASE is "here": it must be least or most' env SIMT_SHARED_BASE=here "$nvcc" --run roles.cu

mkdir -p toolkit/thrust
echo '#error "the toolkit'"'"'s own"' >toolkit/cuda_runtime.h
echo 'int vector;' >toolkit/thrust/vector.h
for option in -I -isystem --include-path; do check "$option of a CUDA toolkit" 0 '' "$nvcc" $option toolkit -c peers.cu -o peers.o; done
check '-I of a CUDA toolkit' 0 '' "$nvcc" -Itoolkit -c peers.cu -o peers.o
for line in 1 2 3 9; do # with headers, nothing and lines before it
    { ((line == 1)) || echo '#include <cstdio>'; for ((i = 2; i < line; i++)); do echo; done; } >refused.cu
    echo '#include <thrust/vector.h>' >>refused.cu
    check "a refused include in line $line" 1 "refused.cu:$line: error: #include <thrust/vector.h>" "$nvcc" -Itoolkit -c refused.cu
done

# The Debian package, unpacked: it needs nothing of the folder that it was built in.
if command -v cpack >/dev/null && command -v dpkg-deb >/dev/null; then
    check 'a Debian package' 0 'generated' cpack --config "$(dirname "$nvcc")/../CPackConfig.cmake" -B package
    dpkg-deb -x package/*.deb unpacked
    dpkg-deb -e package/*.deb unpacked/control
    check "the package's commands" 0 '/usr/bin/simt-nvcc simt-nvcc /usr/lib/simt-nvcc-' grep -h alternatives unpacked/control/postinst unpacked/control/prerm
    mv unpacked/usr/lib/simt-nvcc-* packed
    check 'a program by the package' 3 'cub.cu:7, and nothing orders' packed/bin/simt-nvcc --run cub.cu
    check "the package's toolkit" 0 '' packed/lib/simt/toolkit/bin/nvcc --run cub.cu -- waits
fi

# Builds as authors build: by a Makefile that names nvcc, by CMake's own CUDA, and by its older FindCUDA.
toolkit=$(dirname "$nvcc")/../lib/simt/toolkit
mkdir built old
sed 's/scale.cuh/twice.cuh/; s/scaled(in)/twice(in[threadIdx.x])/' kernel.cu >built/a.cu
echo '__device__ float twice(float x);' >built/twice.cuh
printf '#include "twice.cuh"\n__device__ float twice(float x) { return 2 * x; }\n' >built/b.cu
{ echo '#include <cuda_runtime.h>' && cat 'a folder/main.cu'; } >built/main.cpp
echo '"-DMORE=a b" -I.' >built/more.txt
cp built/*.cu* built/main.cpp old
cat >built/Makefile <<'EOF'
NVCC = nvcc
FLAGS = -ccbin g++ -m64 -gencode arch=compute_70,code=sm_70 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] --ptxas-options=-v \
    -Xcompiler "-Wall,-fPIC" -Xcompiler=-fno-strict-aliasing --expt-relaxed-constexpr --extended-lambda -t 4 --threads=2 -maxrregcount=32 \
    -diag-suppress=177 -Xcudafe "--display_error_number --diag_suppress=177" -Wno-deprecated-gpu-targets -Werror all-warnings -std=c++11 \
    --fmad=false -fmad false -use_fast_math -default-stream per-thread -rdc=true -cudart=static --generate-line-info -restrict -O3 -G -g \
    --keep-dir . --source-in-ptx -Werror=cross-execution-space-call -D=LIMIT=4 -isystem=. --options-file more.txt
app: obj/a.o obj/b.o obj/main.o
	$(NVCC) -dlink $^ -o obj/link.o
	$(NVCC) -lib -o libboth.a obj/a.o obj/b.o
	g++ obj/main.o obj/link.o -o $@ -L. -lboth -L"$(TOOLKIT)/lib64" -lcudadevrt -lcudart
obj/main.o: main.cpp
	$(NVCC) -x cu -std=c++17 -c $< -o $@
obj/%.o: %.cu
	mkdir -p obj
	$(NVCC) $(FLAGS) -MD -MP -dc $< -odir obj
-include $(wildcard obj/*.d)
EOF
cat >built/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.18)
project(course LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
add_library(both STATIC a.cu b.cu)
set_target_properties(both PROPERTIES CUDA_SEPARABLE_COMPILATION ON POSITION_INDEPENDENT_CODE ON)
target_compile_features(both PUBLIC cuda_std_14)
add_executable(app main.cpp)
target_link_libraries(app both CUDA::cudart CUDA::cublas CUDA::cuda_driver)
EOF
cat >old/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.10)
project(course)
find_package(CUDA REQUIRED)
set(CUDA_SEPARABLE_COMPILATION ON)
list(APPEND CUDA_NVCC_FLAGS "-arch=sm_60;-O3;-std=c++11")
cuda_add_library(both STATIC a.cu b.cu)
cuda_add_executable(app main.cpp)
target_link_libraries(app both ${CUDA_CUBLAS_LIBRARIES})
EOF
check 'make' 0 '' env PATH="$toolkit/bin:$PATH" make -C built TOOLKIT="$toolkit"
check 'its program' 9 4 built/app 64 9
check 'its dependencies' 0 '-odir obj' make -C built -n -W twice.cuh
check 'CMake' 0 12.8.0 env PATH="$toolkit/bin:$PATH" cmake -G Ninja -S built -B built/cmake -DCMAKE_CUDA_ARCHITECTURES=native
check 'its build' 0 '' cmake --build built/cmake
check 'its program' 9 4 built/cmake/app 64 9
touch built/twice.cuh
check 'its dependencies' 0 'b.cu.o' cmake --build built/cmake -v
check 'FindCUDA' 0 12.8 env PATH="$toolkit/bin:$PATH" cmake -Wno-dev -G 'Unix Makefiles' -S old -B old/cmake
check 'its build' 0 '' cmake --build old/cmake
check 'its program' 9 4 old/cmake/app 64 9
# Kernels in a shared library, with what they know only by its addresses; beside kernels of the program they are refused by name.
cat >library.cu <<'EOF'
__device__ int counter;
__constant__ int table[2] = {5, 6};
static const int literal[4] = {1, 2, 3, 4};
__global__ void k(int *x) { x[threadIdx.x] = atomicAdd(&counter, 1) * 0 + table[threadIdx.x % 2] + literal[threadIdx.x % 4]; }
extern "C" int run(int threads) {
    int *x, host[4];
    cudaMalloc(&x, sizeof host);
    k<<<1, threads>>>(x);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    return host[3];
}
EOF
printf 'extern "C" int run(int);\nint main(int count, char **) { return run(3 + count); }\n' >user.cpp
printf '__global__ void own() {}\nextern "C" int run(int);\nint main() { own<<<1, 1>>>(); return run(4); }\n' >mixed.cu
check 'a shared library' 0 '' "$nvcc" -shared library.cu -o libkernels.so
check 'its user' 0 '' g++ user.cpp -L. -lkernels -Wl,-rpath,. -o user
check 'which runs' 10 '' ./user
check 'a fault in it' 3 'library.cu:4: write of 4 bytes out of bounds: byte 16 of x (cudaMalloc, library.cu:7)' ./user more
check 'its user by simt-nvcc' 0 '' "$nvcc" mixed.cu -L. -lkernels -Xlinker -rpath,. -o mixed
check 'kernels here and there' 3 'launch of own: its code is in ./mixed, and the simulated device runs in ./libkernels.so' ./mixed
check 'whose nvcc it is' 0 "this is not NVIDIA's" "$toolkit/bin/nvcc" --version
check 'whose nvidia-smi it is' 0 'No GPU and no driver' "$toolkit/bin/nvidia-smi"
check 'what it is asked' 0 'sim, 9.0, [N/A]' "$toolkit/bin/nvidia-smi" --query-gpu=name,compute_cap,power.draw --format=csv,noheader
check 'preprocessing' 0 'return 2 * x' "$nvcc" -E built/b.cu
check 'dependencies of a name with a blank' 0 'a\ b.o: library.cu' sh -c '"$1" -MD -MF blank.d -c library.cu -o "a b.o" && cat blank.d' sh "$nvcc"
check 'options of the environment' 0 'b.o: built/b.cu' env NVCC_PREPEND_FLAGS='-MM -Ibuilt' "$nvcc" built/b.cu
check 'no file of options' 2 'none.txt: no such file' "$nvcc" --options-file none.txt kernel.cu
check 'device code' 2 '-ptx is not supported' "$nvcc" -ptx kernel.cu

# A program may call its macros as it likes, and its host files are as old as C++11 and C.
cp -rL "$(dirname "$nvcc")/../lib/simt/include" headers
(cd headers && find . -type f ! -name cupti.h ! -name nvml.h -printf '#include <%P>\n' | sort) >headers.cu
mapfile -t words < <({ grep -ohwrE '[A-Z][A-Z0-9_]*' headers && printf '%s\n' {A..Z} BLOCK BLOCK_SIZE TILE TILE_SIZE WARP THREADS HEIGHT ROWS COLS DIM MAX; } |
    grep -vE '^(SIMT_|CU|NVTX|BLOCK_(REDUCE|SCAN|LOAD|STORE)_|NULL$|FILE$|M_PI)' | sed 's/$/=@/' | sort -u)
check 'macros of any name' 0 '' "$nvcc" "${words[@]/#/-D}" -c headers.cu
cat >host.cpp <<'EOF'
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
__global__ void kernel(float *x);
int main() {
    float *x, host = 2;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, &host, sizeof host, cudaMemcpyHostToDevice);
    return cudaFree(x) + (int)__half2float(__float2half(0));
}
EOF
for standard in c++11 c++14 c++17 c++20; do check "a host's file in $standard" 0 '' g++ -std=$standard -Wall -Werror -DN=@ -isystem headers -c host.cpp -o "$standard.o"; done
check 'its program' 0 '' "$nvcc" c++11.o -o host
check 'which runs' 0 '' ./host
printf '#include <cuda.h>\nint main(void) { return cuInit(0); }\n' >host.c
check "a host's file in C" 0 '' "$nvcc" --run host.c
for header in cupti nvml; do
    printf '#include <%s.h>\n' $header >refused.cu
    check $header 1 'refused.cu:1:' "$nvcc" -c refused.cu
done

# An error whose call drops it is told with its line, unless the program asks for it.
ignored() { # STATEMENT STATUS WORDS [STRICT]
    printf 'int main() {\n    int h[4] = {0}, *d, *e;\n    cudaMalloc(&d, sizeof h);\n    %s\n    (void)e;\n}\n' "$1" >ignored.cu
    check "$1" "$2" "$3" env SIMT_STRICT="${4:-0}" "$nvcc" --run ignored.cu
    [[ $3 ]] || ! grep -q . out || check "$1: silent" 0 'not silent' cat out
}
ignored 'cudaMemcpy(d, h, sizeof h, cudaMemcpyDeviceToHost);' 0 'ignored.cu:4: cudaMemcpy() failed with cudaErrorInvalidValue'
ignored 'cudaMemcpy(d, h, sizeof h, cudaMemcpyDeviceToHost);' 3 'ignored.cu:4: cudaMemcpy()' 1
cat >direction.cu <<'EOF'
__global__ void twice(float *x) { x[0] *= 2; }
int main() {
    float *x, host = 1;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, &host, sizeof host, cudaMemcpyDeviceToHost);
    twice<<<1, 1>>>(x);
}
EOF
check 'a wrong direction, told first' 0 \
    'direction.cu:5: nothing is copied: with cudaMemcpyDeviceToHost, the target is device memory and the source no device memory' \
    sh -c "'$nvcc' --run direction.cu 2>&1 | head -n 1"
ignored 'cudaMemcpy(d, h, 2 * sizeof h, cudaMemcpyHostToDevice);' 0 'ignored.cu:4: cudaMemcpy() failed with cudaErrorInvalidValue'
ignored 'cudaFree(d); cudaFree(d);' 0 'ignored.cu:4: cudaFree() failed with cudaErrorInvalidValue'
ignored '{ cudaMalloc(&e, (size_t)1 << 60); }' 0 'ignored.cu:4: cudaMalloc() failed with cudaErrorMemoryAllocation'
ignored 'cudaFree(h); cudaSetDevice(7); return cudaGetLastError() != cudaErrorInvalidDevice;' 0 'ignored.cu:4: cudaFree() failed'
ignored 'cudaFree(h); cudaGetLastError();' 0 ''
ignored 'return cudaFree(h) == cudaSuccess;' 0 ''
ignored '(void)cudaFree(h);' 0 ''
ignored 'cudaMemset(d, 0, sizeof h); cudaFree(d);' 0 ''

cat >map.cu <<'EOF'
#include <cuda.h>
__global__ void load(const CUtensorMap *map, float *y) {
    __shared__ alignas(128) float tile[64];
    __shared__ unsigned long long bar;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile), full = (unsigned)__cvta_generic_to_shared(&bar);
#ifdef FIX
    asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map) : "memory");
#endif
    asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(full));
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to),
                 "l"(map), "r"(0), "r"(full));
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}" ::"r"(full));
    y[0] = tile[63];
}
int main() {
    float h[64] = {}, *x, *y;
    CUtensorMap m, *g;
    cuuint64_t size[] = {64}, stride[] = {0};
    cuuint32_t box[] = {64}, one[] = {1};
    cudaMalloc(&x, sizeof h), cudaMalloc(&y, 4), cudaMalloc(&g, sizeof m);
    cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
    cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, x, size, stride, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    cudaMemcpy(g, &m, sizeof m, cudaMemcpyHostToDevice);
    load<<<1, 1>>>(g, y);
    return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
check 'a tensor map in global memory' 3 'its tensor map lies in global memory, and no thread of the block has executed' "$nvcc" --run map.cu
check 'with its fence' 0 '' "$nvcc" -DFIX --run map.cu

# The meter names all kernels and all barriers, however many.
{
    for ((i = 0; i < 70; i++)); do echo "__global__ void k$i() { __syncthreads(); }"; done
    echo '__global__ void barriers() {'
    for ((i = 0; i < 70; i++)); do echo '    __syncthreads();'; done
    printf '}\nint main() {\n    barriers<<<1, 1>>>();\n'
    for ((i = 0; i < 70; i++)); do echo "    k$i<<<1, 1>>>();"; done
    echo '}'
} >many.cu
check '71 kernels' 0 '' env SIMT_METER=many.json "$nvcc" --run many.cu
check 'the 71st kernel' 0 '"k69"' grep -o '"k69"' many.json
check 'the 70th barrier of a kernel' 0 '"line":141' grep -o '"line":141' many.json
[[ $failed == 0 ]] && echo 'driver: all as it should be'
exit "$failed"
