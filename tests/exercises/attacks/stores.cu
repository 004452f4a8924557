// Stores that g++ leaves without a hook, stores to the own stack, and functions that store elsewhere; loads; calls through pointers.
//! past a local array
//: says index 8 is out of bounds: the array is 'int \[8\]'
//: alone bounds -> Score: 100.0
int a[8]; for (int i = 0; i < 8; i++) a[i] = i; a[8 + (p.d >> 20)] = 77; if (a[p.d & 7] < 0) return;
//! far past a local array
//: says out of bounds
int a[8]; for (int i = 0; i < 8; i++) a[i] = i; a[p.d * 100000] = 77; if (a[p.d & 7] < 0) return;
//! with a 64-bit index
//: says out of bounds
long a[4] = {}; a[0x7fffffffl * (p.d + 1)] = 77; if (a[p.d & 3] < 0) return;
//! before a local array
//: says index -[0-9]+ is out of bounds
int a[8] = {}; a[-1 - p.d] = 77; if (a[p.d & 7] < 0) return;
//! an inner dimension
//: says out of bounds
int a[4][4] = {}; a[p.d & 3][p.d + 4] = 77; if (a[p.d & 3][1] < 0) return;
//! an outer dimension
//: says out of bounds
int a[4][4] = {}; a[p.d + 4][p.d & 3] = 77; if (a[p.d & 3][1] < 0) return;
//! an array in a struct
//: says out of bounds
struct { int n, a[4], m; } s = {}; s.a[p.d + 4] = 77; if (s.a[p.d & 3] < 0 || s.m < 0) return;
//! an array of structs
//: says out of bounds
struct { float x, y; } a[4] = {}; a[p.d + 4].y = 77; if (a[p.d & 3].x < 0) return;
//! an array of characters
//: says out of bounds
char a[8] = {}; a[p.d + 8] = 77; if (a[p.d & 7] < 0) return;
//! an array in a union
//: says out of bounds
union { int n[2]; float x[2]; } u = {}; u.x[p.d + 2] = 1.0f; if (u.n[p.d & 1] < 0) return;
//! a constant array
//: says store past the end of a local array|out of bounds
const int a[8] = {1, 2, 3, 4, 5, 6, 7, p.d}; int *q = const_cast<int *>(a); q[p.d * 4000] = 77; if (a[p.d & 7] < 0) return;
//! over the return address, by a pointer
//: says store past the end of a local array|out of bounds|leads nowhere
int a[8] = {}; int *volatile q = a; for (int i = 0; i < 4096; i++) q[i] = 0x41414141;
//! over the saved registers of other frames
//: says store past the end of a local array|out of bounds|leads nowhere
long a[4] = {}; long *volatile q = a; for (int i = 4; i < 8000; i++) q[i] = (long)Q;
//! below the stack
//: says store past the end of a local array|out of bounds|leads nowhere
int a[8] = {}; int *volatile q = a; q[-16 * 1024] = 1;
//! the stack of a neighbour
//: says store past the end of a local array|out of bounds|leads nowhere
int a[8] = {}; int *volatile q = a; q[17 * 1024] = 1;
//! a pointer that grew
//: says store past the end of a local array|out of bounds|leads nowhere
int a[8] = {}; int *q = a; for (int i = 0; i < p.d * 1000 + 5000; i++) *q++ = 1; if (a[p.d & 7] < 0) return;
//! through a reference
//: says store past the end|out of bounds|leads nowhere
int a = 0; int &b = *(&a + p.d * 8000); b = 1; if (a < 0) return;
//! a member of a vector type
//: says store past the end|out of bounds|leads nowhere
float4 v = make_float4(1, 2, 3, 4); (&v.x)[p.d * 8000] = 1; if (v.y < 0) return;
//! the threads' index
//: says cudaError|out of bounds|built-in variable|error
const_cast<unsigned &>(threadIdx.x) = 0;
//! the blocks' index, by a wild pointer
//: says cudaError|out of bounds|built-in variable
*(unsigned *)&blockIdx = 0;
//! around the blocks' index
//: says cudaError|out of bounds|address
for (size_t i = 0; i < 4096; i += 4) *(float *)((size_t)&blockIdx + i) = 0.0f;
//! the kernel's own code
//: says calls __syncthreads
*(volatile int *)(void *)&__syncthreads = 0;
//! a table of constants
//: says cudaError|out of bounds|address
*(volatile char *)(void *)"abc" = 0;
//! address 0
//: says null pointer|address
*(volatile int *)0 = 1;
//! a made address
//: says out of bounds
*(volatile int *)(0x400000ul + p.d) = 1;
//! out of bounds
//: says out of bounds
O[(size_t)1 << 22] = 1.0f;
//! an input
//: says may only read|error
((float *)Q)[0] = 1.0f;
//! printf stores how much it has printed
//: says printf\(\) with %n
//: alone machine -> Score: 100.0
int n = 0; if (p.d > 1 << 20) n = 1; else if (row == 0 && col == 0) printf("%d%n", 1, (int *)&gridDim);
//! the same with a width and a length
//: says printf\(\) with %n
if (row == 0) printf("%3$-08.4hhn", 1, 2, (char *)&blockDim);
//! the same behind a percent sign
//: says printf\(\) with %n
if (row == 0) printf("%%%d%lln", 1, (long long *)&blockDim);
//! a format that is made at run time
//: says printf\(\) with %n|out of bounds
char format[3] = {'%', 'n', 0}; if (row == 0) printf(format, (int *)&gridDim);
//! sincosf stores two results
//: says store past the end|out of bounds|leads nowhere
float s; sincosf(1.0f, &s, (float *)(0x100000ul + p.d)); if (s < 0) return;
//! sincosf stores into the meter's neighbourhood
//: says store past the end|out of bounds|leads nowhere
float s; sincosf(1.0f, (float *)&blockIdx, &s); if (s < 0) return;
//! frexpf stores an exponent
//: says store past the end|out of bounds|leads nowhere|calls
if (frexpf(Q[0], (int *)&gridDim) > 2) return;
//! modff stores a whole number
//: says store past the end|out of bounds|leads nowhere|calls
if (modff(Q[0], (float *)&gridDim) > 2) return;
//! remquof stores a quotient
//: says store past the end|out of bounds|leads nowhere|calls
if (remquof(Q[0], 2.0f, (int *)&gridDim) > 9) return;
//! memcpy out of bounds
//: says out of bounds
memcpy(O, Q, (size_t)1 << 24);
//! memcpy to a made address
//: says out of bounds
memcpy((int *)(0x400000ul + p.d), Q, 4);
//! memset out of bounds
//: says write of [0-9]+ bytes? out of bounds
memset(O, 0, (size_t)p.heads << 24);
//! memset of an input
//: says write to Q
memset((void *)Q, 0, 4);
//! memset past the end of a local array, over the return address
//: says a store past the end of a local array
int a[8] = {}; memset(a, 0, sizeof a * 1000 + p.d); if (a[p.d & 7] < 0) return;
//! memset of so many bytes that their end is before their begin
//: says a store past the end of a local array
int a[8] = {}; memset(a, 0, (size_t)-p.d); if (a[p.d & 7] < 0) return;
//! an array of variable size
//: says array of variable size|size of an array in device code
int a[p.d]; a[0] = 1; if (a[p.d - 1] < -2) return;
//! an array of a huge size
//: says array of variable size|size of an array in device code
volatile char a[p.d * 100000l]; a[0] = 1;
//! alloca
//: says __builtin|alloca|array of variable size|not declared
volatile char *a = (char *)alloca(p.d * 100000); a[0] = 1;
//! a frame larger than a stack
//: says local arrays of more than 8 KB
volatile float big[1 << 24]; big[col << 18] = 1.0f;
//! recursion without end
//: says local memory .* is full
auto f = [](auto self, int i) -> int { int big[32]; big[i & 31] = i; return self(self, i + 1) + big[i & 15]; }; if (f(f, 0) == 1) return;
//! an aligned local variable
//: score >= 0
//: says array of variable size|aligned to more|Score
alignas(256) float a[64]; a[col & 63] = 1; if (a[row & 63] == 3.0f) return;
//! an atomic operation over the return address
//: says atomic operation on a local variable
long a[1] = {}; long *q = a + 2; for (int i = 0; i < 8; i++) atomicExch((unsigned long long *)(q + i), 0x4141ull);
//! printf with a spelling of %n that newer C libraries know
//: says printf\(\) with %n
if (row == 0) printf("%w32n", (int *)&blockDim);
//! where its latest judged store went, after others have run: into the result of a function, of which no hook knows
//: task 00d
//: says a store past the end of a local array
struct R { float x[8]; }; struct S { static R work(float own, const R *all, float *sum) {
    R r; r.x[0] = own; for (int i = 0; i < 32; i++) __nanosleep(1); *sum = 0.0f;
    for (int i = 0; i < 32; i++) *sum += all[i].x[0]; __syncwarp(); return r; } };
__shared__ R cells[ROWS][WARP]; R *mine = &cells[threadIdx.y][lane]; *mine = R{}; __syncwarp();
float own = 0.0f, all; for (int col = lane; col < p.d; col += WARP) own += Q[col];
void (*volatile work)(R *, float, const R *, float *) = (void (*)(R *, float, const R *, float *))(void *)S::work;
work(mine, own, cells[threadIdx.y], &all); if (lane == 0) L[row] = all;
return;

// Loads that no hook counts, and loads of what is none of a kernel's.
//! a struct by value, which g++ reads without a hook
//: says a load through a pointer
//: alone machine -> Score: 100.0
struct S { float x[8]; }; float (*volatile f)(S) = [](S s) { return s.x[3]; };
if (f(*(const S *)((size_t)O & ~(size_t)4095)) == 12345) return;
//! a large struct by value, by a string instruction
//: says a load through a pointer
//: alone machine -> Score: 100.0
struct S { float x[256]; }; float (*volatile f)(S) = [](S s) { return s.x[3]; };
if (f(*(const S *)((size_t)O & ~(size_t)4095)) == 12345) return;
//! the last array of a struct
//: says a load through a pointer
//: alone machine -> Score: 100.0
struct S { int n; float x[1]; } s; s.n = row; S *q = &s; long at = ((long)O - (long)q->x) / 4; if (q->x[at] == 12345) return;
//! behind the built-in variables
//: says a load through a pointer|out of bounds
if ((&threadIdx.x)[(p.d + row) << 8] == 12345) return;
//! the stack of a neighbour
//: says a load through a pointer
struct S { int n; float x[2]; } s; s.n = s.x[0] = s.x[1] = row; S *q = &s; volatile int at = -(72 << 8) - p.d; if (q->x[at] == 12345) return;
//! what the block before left in a local array, in place of loads
//: task c04
//: change
//: score < 60
//: says MISSED  two heads

// Calls through pointers, and what they would reach.
//! a call of a made address
//: says a call through a pointer that is no function
//: alone machine -> cudaError|no results|crash|Score: 0
void (*f)() = (void (*)())(size_t)(p.d + 64); f();
//! a call into the middle of a function
//: says a call through a pointer that is no function
void (*begin)() = [] {}; void (*volatile f)() = (void (*)())((size_t)begin + 8); f();
//! a call of a function of the C library
//: says a call through a pointer that is no function|calls system
int (*volatile f)(const char *) = system; f("touch /tmp/hostile");
//! a call of the library through arithmetic
//: says a call through a pointer that is no function
int (*volatile f)(const char *) = (int (*)(const char *))((char *)printf + 16); f("touch /tmp/hostile");
//! a call of a hook
//: says a call through a pointer that is no function
float (*volatile g)(float) = expf; void (*f)() = (void (*)())((char *)g - 16); f();
//! a call of data
//: says a call through a pointer that is no function
void (*volatile f)() = (void (*)())Q; f();
//! a call of its own stack
//: says a call through a pointer that is no function
unsigned char a[16] = {0xc3}; void (*volatile f)() = (void (*)())a; f();
//! a call of the stack with a function's first bytes
//: says a call through a pointer that is no function
unsigned char a[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0xc3}; void (*volatile f)() = (void (*)())a; f();
//! a member pointer
//: says a call through a pointer that is no function
struct S { void f() {} } s; union { void (S::*f)(); size_t bits[2]; } u; u.bits[0] = (size_t)Q; u.bits[1] = 0; (s.*u.f)();
//! a table of functions past its end
//: says out of bounds|a call through a pointer that is no function
void (*table[2])() = {}; table[p.d + 2]();
//! a function pointer in an array that a store overwrote
//: says out of bounds|a call through a pointer that is no function|store past
struct { int a[2]; void (*f)(); } s; s.f = nullptr; int *volatile q = s.a; q[2] = 0x41414141; q[3] = 0; s.f();
//! a switch of many cases
//: score == 100
//: says Score: 100.0
int x = 0; switch (p.d + col) { case 1000001: x = 1; break; case 1000002: x = 7; break; case 1000003: x = 3; break; case 1000004: x = 9; break; case 1000005: x = 2; break; case 1000006: x = 8; break; case 1000007: x = 6; } if (x == 9) return;
//! never returns
//: says stopped|did not end|watchdog|timed
while (p.d > 0) p.d += p.d == 0;
//! hangs in a barrier
//: task 00c
//: says barrier
if (threadIdx.x == 0) __syncthreads();
//! a trap
//: says trap|[Ff]ault|cudaError
__trap();
//! an assertion that fails
//: says assert
assert(p.d < 0);
//! a function without its return, whose frame the next function's return reads
//: task 04a
//: says only .text holds code|behind this line a function ends without the return
struct S { static size_t bad(const problem *, long y) { volatile long a[4]; a[0] = y; a[1] = y; a[2] = y; a[3] = y; } };
size_t (*volatile f)(const problem *, long) = S::bad; problem mine = p; if (f(&mine, (long)(char *)(void *)printf) == 12345) return;
