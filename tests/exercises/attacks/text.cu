// What the text of a hole may hide from who reads it. Nothing rests on that: what is refused here is refused of what the compiler makes of it.
//! a word over two lines
//: says error
//: escapes
as\\\nm("nop");
//! a CR inside a word
//: says error
//: escapes
as\rm("nop");
//! another pragma
//: says of the pragmas, use
#pragma GCC optimize("no-sanitize=thread")
//! a comment without end
//: says unterminated comment|must each be there once
/* the rest is mine
//! a string without end
//: says error
const char *s = "abc;
//! closes the braces
//: says error
} static void f() {
//! brackets of other kinds
//: says error
int a = (1];
//! too many brackets
//: says error|compiler
((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
//! a second hole
//: says must each be there once
// <<< End of hole 1
// >>> Hole 1
//! assembly
//: says asm is no part of any task
asm volatile("syscall");
//! assembly under another name
//: says __asm__ is no part of any task
__asm__("nop");
//! an attribute switches the checks of indices off
//: says attribute no_sanitize is not allowed
//: alone tokens -> Score: 100.0
auto quiet = [](int i) __attribute__((no_sanitize("bounds"))) { int a[4] = {i, 1, 2, 3}; return a[i & 7]; }; if (quiet(p.d | 5) == 12345) return;
//! an attribute switches the detectors off
//: says attribute no_sanitize is not allowed
//: alone tokens machine -> Score: 100.0
auto quiet = [&](int i) __attribute__((no_sanitize("thread"))) { return Q[i]; }; if (quiet(0) == 12345.0f) return;
//! the same by a standard attribute
//: says attribute no_sanitize is not allowed
[[gnu::no_sanitize("thread")]] int x;
//! the same with a blank between the brackets
//: says attribute no_sanitize is not allowed
[ [gnu::no_sanitize("thread")]] int x;
//! the same with a comment between the brackets
//: says attribute no_sanitize is not allowed
[/* */[gnu::no_sanitize("thread")]] int x;
//! a section of its own
//: says attribute section is not allowed
__attribute__((section(".init_array"))) int x;
//! a built-in function
//: score < 60
//: says race
__builtin_memcpy(O, Q, 4);
//! a built-in jump
//: says variable size
void *buffer[5]; __builtin_longjmp(buffer, 1);
//! a built-in frame
//: says store past
((void **)__builtin_frame_address(0))[1] = nullptr;
//! a built-in return
//: says fault
__builtin_return(nullptr);
//! a built-in atomic
//: says calls __tsan_atomic
__atomic_store_n((int *)O, 1, 5);
//! an old built-in atomic
//: says calls __tsan_atomic
__sync_fetch_and_add((int *)O, 1);
//! stops the meter
//: says calls simt_meter_stop|not declared
simt_meter_stop();
//! calls a detector
//: says not declared
__tsan_init();
//! the runtime from the device
//: says calls cudaMemset
cudaMemset(O, 0, 4);
//! launches a kernel of its own
//: says error
launch(nullptr, 1, 1);
//! declares what lies elsewhere
//: says error
extern "C" int kill(int, int); kill(-1, 9);
//! an external variable
//: says calls environ
extern int environ; if (environ == 12345) return;
//! a variable per thread
//: says built-in variable|keeps data
thread_local int x; x++;
//! virtual functions
//: says calls vtable
struct S { virtual int f() { return p_d; } int p_d; } s; s.p_d = p.d; S *volatile q = &s; if (q->f() == 12345) return;
//! a computed goto
//: says jumps through a pointer
static void *const marks[] = {&&one, &&two}; volatile int n = 1; goto *marks[n]; one: n = 3; two: if (n == 3) return;
//! code in a string, between comments that join where a word is taken away
//: says error
int q = 1 /__noinline__* "*/ ; simt_give_way(); int r = 3 /*" *__noinline__/ ;
//! a brace of two characters that join where a word is taken away
//: says error
int q = 1; if (q) <__noinline__% q = 2; %__noinline__>
//! a comment to the end of the line that joins
//: says error
int q = 1 /__noinline__/ 2; if (q) return;
//! a name for the assembler
//: task b01
//: end
//: says no part of any task
int stop() __asm__("simt_meter_stop"); __device__ int f() { return stop(); }
