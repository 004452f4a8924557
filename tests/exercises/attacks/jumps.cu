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
