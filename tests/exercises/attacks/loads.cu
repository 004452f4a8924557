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
