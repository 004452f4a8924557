/* What a launch may look like, and what it passes on: vectors, template arguments, parameters. */
#include "device_test.h"

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

__global__ void vectors(const float *__restrict__ in, float *__restrict__ out, int n) {
    int i = global_thread();
    if (i >= n / 4) return;
    float4 v = reinterpret_cast<const float4 *>(in)[i];
    reinterpret_cast<float4 *>(out)[i] = make_float4(v.w, v.z, v.y, v.x);
}

Test(simt_features, float4_loads_and_stores) {
    enum { N = 400 };
    float in[N], expected[N], *out = filled_on_device<float>(0xff, N);
    for (int i = 0; i < N; i++) in[i] = (float)scrambled(i);
    for (int i = 0; i < N; i++) expected[i] = in[i / 4 * 4 + 3 - i % 4];
    vectors<<<(N / 4 + 31) / 32, 32>>>(on_device(in), out, N);
    expect_values(out, expected, N, "reversed within each four");
}

__global__ void vector_parts(float *out) {
    float4 a = {1.0f, 2.0f, 3.0f, 4.0f}, zero = {}, copy;
    copy = a;
    copy.y += 10.0f;
    float2 b = make_float2(5.0f, 6.0f), c{7.0f, 8.0f};
    int4 d = make_int4(9, 10, 11, 12), e{13, 14, 15, 16};
    d.x += e.w;
    int2 f = make_int2(17, 18);
    uint4 g = make_uint4(19u, 20u, 21u, 22u);
    float4 list[2] = {a, float4{0.5f, 1.5f, 2.5f, 3.5f}};
    const float4 &second = list[1];
    *(float4 *)out = a;
    ((float4 *)out)[1] = copy;
    ((float4 *)out)[2] = zero;
    ((float4 *)out)[3] = second;
    ((float2 *)out)[8] = b;
    ((float2 *)out)[9] = c;
    ((int4 *)out)[5] = d;
    ((int4 *)out)[6] = e;
    ((int2 *)out)[14] = f;
    ((uint2 *)out)[15] = make_uint2(g.x, g.w);
}

Test(simt_features, vectors_in_braces_and_made) {
    struct {
        float floats[20];
        int ints[12];
    } expected = {{1, 2, 3, 4, 1, 12, 3, 4, 0, 0, 0, 0, 0.5f, 1.5f, 2.5f, 3.5f, 5, 6, 7, 8},
                  {25, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22}};
    float *out = filled_on_device<float>(0xff, 32);
    vector_parts<<<1, 1>>>(out);
    int bits[32];
    memcpy(bits, &expected, sizeof bits);
    expect_values((int *)out, bits, 32, "bits of the parts");
}

/* ---- templates and arguments ------------------------------------------------------------------------------------- */

template <int N> __global__ void one_argument(int *out) { *out = N; }
template <typename T, int N> __global__ void two_arguments(int *out, T value) { *out = (int)(value * (T)N); }
template <int N = 5, bool NEGATIVE = false> __global__ void with_defaults(int *out) { *out = NEGATIVE ? -N : N; }
template <bool FLAG> __global__ void with_flag(int *out) { *out = FLAG ? 1 : 2; }

/* Spaces around <<< are part of the test. */
// clang-format off
Test(simt_features, kernels_with_template_arguments) {
    int expected[8] = {1, 26, 4, 2, 5, 6, -7, 1}, *out = filled_on_device<int>(0xff, 8);
    one_argument<1><<<1, 1>>>(out);
    one_argument<100 / 4 + 1><<<1, 1>>>(out + 1);
    two_arguments<float, 3><<<1, 1>>>(out + 2, 1.5f);
    two_arguments<double, 8> <<<1, 1>>> (out + 3, 0.25);
    with_defaults<><<<1, 1>>>(out + 4);
    with_defaults<6><<<1, 1>>>(out + 5);
    with_defaults<7, true><<<1, 1>>>(out + 6);
    with_flag<(sizeof(int) == 4)><<<1, 1>>>(out + 7);
    expect_values(out, expected, 8, "template");
}
// clang-format on

struct parameters {
    int numbers[40];
    double factor;
    const int *in;
    char tag;
};

/* A thread that changes its parameters changes only its own. */
__global__ void use_parameters(parameters p, int *out) {
    int t = (int)threadIdx.x;
    out[t] = (int)(p.factor * p.numbers[t % 40]) + p.in[t] + p.tag;
    p.numbers[(t + 1) % 40] = -1;
    p.factor = 0;
    __syncthreads();
    out[blockDim.x + t] = p.numbers[t % 40];
}

Test(simt_features, struct_passed_by_value) {
    enum { N = 70 };
    int in[N], expected[2 * N], *out = filled_on_device<int>(0xff, 2 * N);
    parameters p = {{}, 2.5, nullptr, 'x'};
    for (int i = 0; i < 40; i++) p.numbers[i] = 2 * i;
    for (int i = 0; i < N; i++) {
        in[i] = scrambled(i);
        expected[i] = 5 * (i % 40) + in[i] + 'x';
        expected[N + i] = 2 * (i % 40);
    }
    p.in = on_device(in);
    use_parameters<<<1, N>>>(p, out);
    expect_values(out, expected, 2 * N, "parameters");
}

__global__ void conversions(double *out, float a, unsigned char b, double c, const int *d) {
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d == nullptr;
}

Test(simt_features, arguments_convert) {
    double expected[4] = {3, 2, 4.5, 1}, *out = filled_on_device<double>(0xff, 4);
    conversions<<<1, 1>>>(out, 3, 258 - 256, 4.5f, nullptr);
    expect_values(out, expected, 4, "argument");
}

/* ---- launches: each adds its threads to a count of its own ------------------------------------------------------- */

__global__ void tally(int *threads_of, int which) { atomicAdd(&threads_of[which], 1); }
template <int WHICH> __global__ void tally_fixed(int *threads_of) { atomicAdd(&threads_of[WHICH], 1); }

namespace outer {
namespace inner {
__global__ void tally_inside(int *threads_of, int which) { atomicAdd(&threads_of[which], 1); }
template <typename T> __global__ void tally_template(T *threads_of, int which) { atomicAdd(&threads_of[which], 1); }
} // namespace inner
} // namespace outer

static int two(int a, int b) { return a + b; }

static const char *text_with_launch() { return "__shared__ int x; tally<<<1, 1>>>(0) // \""; }

/* Spaces again, and launches over several lines. */
// clang-format off
#define TALLY(grid, block, which) tally<<<grid, block>>>(threads_of, which)
#define IN_ORDER(...) __VA_ARGS__

Test(simt_features, every_form_of_launch) {
    int expected[] = {6, 6 * 120, 128, 3 * 64, 2 * 8, 10, 11, 6 * 12, 2 * 13, 14, 15, 16, 17, 18, 3 * 19, 20};
    int *threads_of = filled_on_device<int>(0, 16), n = 65, zero = 0;
    const dim3 grid(2, 3), block(4, 5, 6);
    cudaStream_t stream = nullptr;
    tally<<<2, 3>>>(threads_of, 0);
    tally<<<grid, block>>>(threads_of, 1);
    tally<<<dim3(2, 2), dim3(8, 4)>>>(threads_of, 2);
    tally<<<two(1, 2), (n > 64 ? 64 : n)>>>(threads_of, 3);
    tally<<<n > 64 ? (n + 63) / 64 : 1, n >> 3>>>(threads_of, 4);
    tally<<<1, 10, 256>>>(threads_of, 5);
    tally<<<1, 11, 0, stream>>>(threads_of, 6);
    tally<<<dim3(1, 2, 3),
            12>>>(threads_of,
                  7);
    TALLY(2, 13, 8);
    IN_ORDER(tally<<<1, 14>>>(threads_of, 9); tally<<<1, 15>>>(threads_of, 10));
    outer::inner::tally_inside<<<1, 16>>>(threads_of, 11);
    outer::inner::tally_template<int><<<1, 17>>>(threads_of, 12);
    if (zero == 0) tally_fixed<13><<<1, 18>>>(threads_of);
    else tally_fixed<0><<<1, 1>>>(threads_of);
    for (int i = 0; i < 3; i++) tally <<< 1, 19 >>> (threads_of, 14);
    // A comment is no launch: tally<<<1, 1>>>(threads_of, 0);
    /* Nor is this one: tally<<<1, 1>>>(threads_of, 0); */
    ::tally<<<1u, (size_t)20>>>(threads_of, 15);
    expect_values(threads_of, expected, 16, "threads of launch");
    cr_assert_str_eq(text_with_launch(), "__shared__ int x; tally<<<1, 1>>>(0) // \"");
}

/* What a report calls line 100 must be line 100 of the source, which the build rewrites: after the preprocessor, which replaces
 * __LINE__, and before the compiler. */
Test(simt_features, source_lines_are_kept) {
    tally<<<1,
            1>>>(filled_on_device<int>(0, 1),
                 0);
    int compiled = __builtin_LINE(), written = __LINE__;
    cr_assert_eq(compiled, written, "line %d is called %d", written, compiled);
    EXPECT_OK(cudaDeviceSynchronize());
}
// clang-format on

/* ---- variables outside kernels, and arithmetic on bits ----------------------------------------------------------- */

__constant__ int odd_numbers[4] = {1, 3, 5, 7};
__device__ const int squares_of[4] = {0, 1, 4, 9};
__device__ int calls[64];
static constexpr int OFFSET = 1000;

__device__ __noinline__ int count_call(int i) { return ++calls[i]; }
__device__ __forceinline__ int look_up(int i) { return odd_numbers[i % 4] + 10 * squares_of[i % 4]; }

__global__ void __launch_bounds__(64) globals(int *out) {
    int t = (int)threadIdx.x, first_count = count_call(t);
    out[t] = OFFSET * (count_call(t) - first_count) + look_up(t);
}

Test(simt_features, device_functions_and_variables) {
    int expected[64], *out = filled_on_device<int>(0xff, 64);
    for (int i = 0; i < 64; i++) expected[i] = 1000 + 2 * (i % 4) + 1 + 10 * (i % 4) * (i % 4);
    globals<<<1, 64>>>(out);
    expect_values(out, expected, 64, "globals");
}

__global__ void bits(const unsigned *in, int *out, int n) {
    int i = global_thread();
    if (i >= n) return;
    out[3 * i] = __popc(in[i]);
    out[3 * i + 1] = __clz((int)in[i]);
    out[3 * i + 2] = __ffs((int)in[i]);
}

Test(simt_features, bit_intrinsics) {
    const unsigned in[5] = {0, 1, 0x80000000u, 0x00f00u, 0xffffffffu};
    const int expected[15] = {0, 32, 0, 1, 31, 1, 1, 0, 32, 4, 20, 9, 32, 0, 1};
    int *out = filled_on_device<int>(0xff, 15);
    bits<<<1, 32>>>(on_device(in), out, 5);
    expect_values(out, expected, 15, "popc, clz, ffs");
}
