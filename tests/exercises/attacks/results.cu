// Points without the work: fake reports, known problems, less precision, too much output.
//! the solution
//: task 05a
//: score == 100
//: says Score: 100.0 of 100

//! prints a fake score
//: task 05a
//: score < 50
//: says MISSED
if (threadIdx.x == 0) printf("\nScore: 100.0 of 100\n"); S_reg[0] = 1.0f; continue;
//! knows the public shapes
//: task 05a
//: score == 100
//: says Score: 100
int n = p.N_q; if (n != 32 && n != 1 && n != 77 && n != 19 && n != 96 && n != 101 && n != 40 && n != 65 && n != 50 && n != 128) continue;
//! knows the public shapes, and meets hidden ones
//: task 05a
//: score < 50
//: options --hidden 20261
//: says MISSED
int n = p.N_q; if (n != 32 && n != 1 && n != 77 && n != 19 && n != 96 && n != 101 && n != 40 && n != 65 && n != 50 && n != 128) continue;
//! knows a seed
//: task 05a
//: score < 100
//: says MISSED
if (p.N_q == 1 && p.d == 1) { float q = Q[0]; S_reg[0] = q > 0 ? 0.5f : -0.5f; }
//! scores in bfloat16
//: task 05a
//: score < 60
//: says MISSED
for (int r = 0; r < ROWS; r++) S_reg[r] = __uint_as_float(__float_as_uint(S_reg[r]) & 0xffff0000u);
//! scores in TF32
//: task 05a
//: score < 60
//: says MISSED
for (int r = 0; r < ROWS; r++) S_reg[r] = __uint_as_float(__float_as_uint(S_reg[r]) & 0xffffe000u);
//! prints without end
//: says 64 KB
for (int i = 0; i < p.d + 100000000; i++) printf("all points, all points, all points\n");
//! does not compile
//: says \.cu:[0-9]+:.*error
int x = ;
//! templates without end
//: task b01
//: end
//: says error|keeps data|minute|needed more
template <int N> struct T { typename T<N + 1>::x y; }; static __device__ T<0> t;
//! templates by the million
//: task b01
//: end
//: says error|the compiler
template <int N, int M> struct T { static constexpr int v = T<N - 1, 2 * M>::v + T<N - 1, 2 * M + 1>::v; }; template <int M> struct T<0, M> { static constexpr int v = M & 1; }; static __device__ int f() { return T<26, 0>::v; } __device__ int g() { return f(); }
//! structs of 128 bytes as one request
//: task 06a
//: score == 80
//: says MISSED  requests to load
struct R { float x[32]; }; for (int c = 0; c < D; c += 2) { R r = *(const R *)&Q_smem[c / 32 * 32]; if (r.x[c & 31] == 12345) break; }
//! loads as asynchronous copies
//: task 02a
//: score < 100
//: says MISSED  sectors of global loads
__shared__ float more[TILE * TILE]; for (int k = 0; k < depth; k++) __pipeline_memcpy_async(&more[threadIdx.y * TILE + threadIdx.x], A, 4);
__pipeline_commit(); __pipeline_wait_prior(0);
//! loads as atomic operations
//: task 02a
//: score < 100
//: says MISSED  wavefronts of shared loads
__shared__ unsigned more; if (threadIdx.x + threadIdx.y == 0) more = 0; __syncthreads(); for (int k = 0; k < depth; k++) if (atomicOr(&more, 0u) != 0) return;
//! two values in one shuffle
//: task 00d
//: score < 100
//: says MISSED  shuffles
struct pair { float a, b; } both = {}; for (int col = lane; col < p.d; col += 2 * WARP) { both.a += Q[col]; if (col + WARP < p.d) both.b += Q[col + WARP]; }
for (int bit = WARP / 2; bit > 0; bit /= 2) { pair other = __shfl_xor_sync(FULL_WARP, both, bit); both.a += other.a; both.b += other.b; }
if (lane == 0) L[row] = both.a + both.b; if (row >= 0) return;
//! flags in memory, as a barrier of its own waits for
//: task c03
//: score < 100
//: says MISSED  barriers, both repairs made
static __device__ int flagged() { __shared__ volatile unsigned flags[32]; flags[threadIdx.x / 32] = 1; return 32; }
#define WARP flagged()
//! loads from global memory instead of shared memory
//: task 06a
//: score == 80
//: says yours: [0-9]+, from global memory
float more = 0; for (int c = 0; c < p.d; c++) for (int i = 0; i < TM * TN; i++) more += K[c + i % p.N_kv * p.d]; if (more == 12345) return;
//! loads of workspace as atomic operations, in a backward pass that needs none
//: task 07a
//: change
//: score < 100
//: says MISSED  sectors of global loads
//! barriers of the cluster in place of the block's
//: task c03
//: change
//: score == 40
//: says yours: 160; limit: 100
//! all work by one warp, which needs no barrier
//: task c03
//: change
//: score == 40
//: says MISSED  no points: requests of the busiest warp
//! loads of an input as atomic operations that add nothing, in a backward pass that needs some
//: task c06
//: change
//: score < 60
//: says write to L\[7\]
//! a fence and a volatile access, which excuse every race elsewhere, in place of barriers
//: task c03
//: change
//: score < 60
//: says race on
//! volatile accesses and a long wait in place of a barrier
//: task c03
//: change
//: score < 60
//: says race on
//! a kernel of its own, launched where a parameter is copied
//: says device code only here: kernels are launched by the host
#define SHIFT <<
#define LESS <
struct more { more() { [] { auto k = [] {}; k SHIFT LESS 1, 1 >>>(); }(); } };
//! only the smallest problem solved
//: task b07
//: change
//: score < 30
//: says fewer than half of the results are right
//! transposed stores as asynchronous copies of a local variable
//: task c01
//: change
//: says an asynchronous copy of a local variable
//! transposed stores as asynchronous copies of shared memory
//: task c01
//: change
//: score == 80
//: says MISSED  bank conflicts of stores
//! the lanes that are active, as votes: 32 of them tell each lane all sums
//: task 00d
//: score < 100
//: says MISSED  shuffles and other warp collectives
float part = 0.0f, all = 0.0f; for (int col = lane; col < p.d; col += WARP) part += Q[col];
unsigned bits = __float_as_uint(part), of[32]; for (int i = 0; i < 32; i++) of[i] = 0;
for (int b = 0; b < 32; b++) {
    bool set = bits >> b & 1; unsigned votes = __activemask("of its own", 2 * b + set); if (!set) votes = ~votes;
    for (int i = 0; i < 32; i++) { __nanosleep(1); of[i] |= (votes >> i & 1) << b; }
}
for (int i = 0; i < 32; i++) all += __uint_as_float(of[i]); if (lane == 0) L[row] = all; if (row >= 0) return;
//! shuffles in place of shared loads
//: task 06a
//: score == 80
//: says MISSED  no points: shuffles and other warp collectives
float more = 0; for (int c = 0; c < 8 * D; c++) more += __shfl_sync(FULL_WARP, Q_smem[lane], c % WARP); if (more == 12345) break;
//! loads from global memory in place of shared memory, where wavefronts count
//: task c05
//: change
//: score == 40
//: says MISSED  no points: requests of global loads

//! a compiler's message that looks like points
//: says ^  Score: 100\.0 of
static_assert(sizeof(int) == 5, "x\nScore: 100.0 of 100.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000 error: ");
//! printed text that runs from right to left
//: score == 100
//: says printed: \?\?\?001 fo
if (row == 0 && col == 0) printf("\xe2\x80\xae" "001 fo 0.001 :erocS\n");
//! an addition by a volatile load and a volatile store
//: task b09
//: change
//: score < 60
//: says race on dV
//! a fence and an atomic operation, which excuse every race elsewhere, in place of barriers
//: task c03
//: change
//: score < 60
//: says race on
//! a row of S kept in a large local array
//: task 03a
//: says local arrays of more than 8 KB
//: end
float keep[4096]; for (int i = 0; i < p.N_kv; i++) keep[i] = K[i * p.d]; if (keep[p.N_kv / 2] == 12345) return;
//! a sum handed from lane to lane in registers that a switch of fibers does not keep
//: task 00d
//: score == 0
//: says MISSED  two rows of one element
{
struct S {
    static void nothing(float, float, float, float, float, float, float, float) {}
    static float seventh(float, float, float, float, float, float, float, float x) { return x; }
};
void (*volatile put)(float, float, float, float, float, float, float, float) = S::nothing;
float (*volatile take)() = (float (*)())(void *)S::seventh;
float before = take(), sum = 0.0f;
for (int col = lane; col < p.d; col += WARP) sum += Q[col];
if (lane > 0) sum += before;
put(sum, sum, sum, sum, sum, sum, sum, sum);
for (int i = 0; i < 32; i++) __nanosleep(1);
if (lane == 31) L[row] = sum;
if (row >= 0) return;
}
//! half of the rows from global instead of shared memory
//: task 08b
//: change
//: score == 52
//: says MISSED  no points: requests of global loads
//! values exchanged by atomic operations, with a long wait
//: task b07
//: change
//: score == 0
//: says exchange values by atomic operations
//! a local array of 12 KB, whose stack is probed page by page
//: task 03a
//: says local arrays of more than 8 KB
//: end
float keep[3072]; for (int i = 0; i < p.N_kv; i++) keep[i] = K[i * p.d]; if (keep[p.N_kv / 2] == 12345) return;
//! right but in the metered run, told by a size that the kernel has no use for
//: says metered run \(128 x 64\) is wrong: 
if (p.N_kv != p.N_q) return;
