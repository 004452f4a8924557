// CUDA that no protection may refuse: each gets full points.
//! names that begin like the harness's
//: score == 100
//: says Score: 100.0
int step_k = p.d, reference_row = row; if (step_k < reference_row - (1 << 20)) return;
//! attributes that only inform
//: score == 100
//: says Score: 100.0
[[maybe_unused]] int unused = 3; if (row < 0) [[unlikely]] return;
//! an assumption
//: score == 100
//: says Score: 100.0
__builtin_assume(p.d > 0);
//! an assertion
//: score == 100
//: says Score: 100.0
assert(p.d > 0);
//! an operator in a struct, and a lambda
//: score == 100
//: says Score: 100.0
struct add { int n; __device__ int operator()(int x) const { return x + n; } int operator+(int x) const { return n + x; } }; auto f = [=](int x) { return add{2}(x) + (add{1} + x); }; if (f(p.d) < 0) return;
//! a __host__ __device__ helper, a __constant__ table and a template
//: task b01
//: end
//: score == 100
//: says Score: 100.0
__constant__ float table[4] = {1, 2, 3, 4};
template <int N> __host__ __device__ inline float entry(int i) { return table[i % N]; }
__device__ float *first() { return (float *)&table[(int)entry<4>(1)]; }
//! macros in capitals
//: score == 100
//: says Score: 100.0
#define AT(row, col) ((size_t)(row) * p.d + (col)) // a comment
if (AT(row, col) > (size_t)1 << 40) return;
#undef AT
//! cooperative groups
//: score == 100
//: says Score: 100.0
namespace cg = cooperative_groups; cg::thread_block block = cg::this_thread_block(); block.sync();
//! memcpy to and from local arrays
//: score == 100
//: says Score: 100.0
float a[4] = {1, 2, 3, 4}, b[4]; memcpy(b, a, sizeof b); if (b[p.d & 3] < 0) return;
//! memset of a local array and of shared memory
//: score == 100
//: says Score: 100.0
int a[8]; memset(a, 0, sizeof a); __shared__ float b[9]; if (threadIdx.x + threadIdx.y == 0) memset(b, 0, sizeof b); __syncthreads(); if (a[p.d & 7] != 0 || b[p.d & 7] != 0.0f) return;
//! local arrays, vectors and a pointer to them
//: score == 100
//: says Score: 100.0
float a[2][4] = {}; float4 v = make_float4(1, 2, 3, 4); float *x = &a[1][0]; for (int i = 0; i < 4; i++) x[i] = (&v.x)[i]; if (a[1][p.d & 3] < 0) return;
//! sincosf, frexpf, printf with a percent sign
//: score == 100
//: says Score: 100.0
float s, c; sincosf(1.0f, &s, &c); if (s * s + c * c < 0.5f) return; if (row == 0 && col == 0) printf("%d %% %s\n", p.d, "n");
//! an early return, a loop with a label of switch
//: score == 100
//: says Score: 100.0
for (int i = 0; i < 3; i++) switch (i) { case 0: continue; case 1: break; default: i++; }
//! recursion that ends, and a function pointer to a function of its own
//: score == 100
//: says Score: 100.0
auto f = [](auto self, int i) -> int { int own[4] = {i, 1, 2, 3}; return i == 0 ? own[0] : self(self, i - 1) + own[i & 3]; }; int (*g)(int) = [](int x) { return x + 1; }; if (g(f(f, 5)) < 0) return;
//! a kernel with extern  __shared__ memory
//: score == 100
//: says Score: 100.0
extern  __shared__ float dynamic[]; if (dynamic == nullptr) return;
//! structs by value, tables and arrays with values
//: score == 100
//: says Score: 100.0
struct S { float x[8]; int n; }; static const float table[4] = {1, 2, 3, 4}; S s = {{1, 2, 3, 4, 5, 6, 7, 8}, p.d};
float (*volatile f)(S, const float *) = [](S s, const float *t) { return s.x[s.n & 7] + t[s.n & 3]; }; int a[40] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
if (f(s, table) + a[p.d % 40] < 0) return;
//! functions of the mathematical library, and a table of lambdas
//: score == 100
//: says Score: 100.0
typedef float (*op)(float, float); op table[2] = {[](float a, float b) { return a + b; }, [](float a, float b) { return a * b; }};
float s = 0; for (int i = 0; i < 4; i++) s = table[(i + p.d) & 1](s, 1.0f); if (s > 1e30f) return;
double dd = sqrt((double)p.d) + pow(2.0, p.d % 3) + __expf(s) + erff(s) + rsqrtf(2.0f) + __fdividef(1.0f, 3.0f) + log1pf(s) + cbrtf(8.0f) + fmodf(3.f, 2.f) + ldexpf(1.f, 2) + roundf(s) + truncf(s);
int e; float fr = frexpf(3.0f, &e); long long ll = llrintf(s) + __float2int_rn(s) + lroundf(2.5f) + __clz(p.d) + __ffs(p.d) + __brev(7u) + __popc(p.d) + abs(p.d) + max(p.d, 3) + (int)isnan(s) + (int)isinf(s) + signbit(s);
if (dd + fr + ll == 12345.678) return;
//! an asynchronous copy of shared memory that ends with zeros
//: task 06a
//: score == 100
//: says Score: 100.0
__shared__ __align__(16) float some[4], filled[4]; __syncthreads();
if (threadIdx.x == 0) { for (int i = 0; i < 4; i++) some[i] = 1.0f; __pipeline_memcpy_async(filled, some, 16, 8); __pipeline_commit(); __pipeline_wait_prior(0); }
__syncthreads(); if (filled[1] != 1.0f || filled[2] != 0.0f) break;
//! a hole that begins with shared memory
//: score == 100
//: says Score: 100.0
static __shared__ float first[4]; if (threadIdx.x + threadIdx.y == 0) first[0] = 1.0f;
