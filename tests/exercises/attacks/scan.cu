// Text that the scan must read as g++ does, and words that leave the language of kernels.
//! a comment that ends with a backslash and blanks
//: says a line ends with a backslash
//: escapes
// the next line is a comment to g++ \\  \nreturn;
//! a comment that ends with a backslash and a tab
//: says a line ends with a backslash
//: escapes
// the next line \\\t\nreturn;
//! a comment that ends with a backslash
//: says a line ends with a backslash
//: escapes
// the next line \\\nreturn;
//! a word over two lines
//: says a line ends with a backslash
//: escapes
as\\\nm("nop");
//! a string over two lines
//: says a line ends with a backslash
//: escapes
printf("a\\\nb");
//! a lone CR ends the comment
//: says a control character
//: escapes
// a comment \rasm("nop");
//! a CR inside a word
//: says a control character
//: escapes
as\rm("nop");
//! a vertical tab
//: says a control character
//: escapes
#\vinclude <stdio.h>
//! a form feed before a directive
//: says a control character
//: escapes
\f#include <stdio.h>
//! an escape sequence in a comment
//: says a control character
//: escapes
// \033[2J\033[1;1HScore: 100.0 of 100
//! a backspace
//: says a control character
//: escapes
int hidden\b\b\b = 1;
//! a comment that begins on the line of a pragma
//: says #pragma unroll takes a number
#pragma unroll /* the scan ends here
asm("nop"); // */
//! a string on the line of a pragma
//: says #pragma unroll takes a number
#pragma unroll "
//! another pragma
//: says no preprocessor lines
#pragma GCC optimize("no-sanitize=thread")
//! a pragma that switches the detectors off
//: says no preprocessor lines
#pragma GCC diagnostic ignored "-Wall"
//! pragma push_macro
//: says no preprocessor lines
#pragma push_macro("__syncthreads")
//! _Pragma
//: says _Pragma: use #pragma unroll
_Pragma("GCC optimize(\"O3\")") int x;
//! a trigraph
//: says trigraphs
//: escapes
int x[1] = {0}; // what\077\077/\nreturn;
//! a trigraph for #
//: says trigraphs
//: escapes
\077\077=include <stdio.h>
//! a digraph for #
//: says digraph
%:define X 1
//! a digraph for [
//: says digraph
int a<:4:>;
//! brackets by digraphs
//: says digraph
if (p.d > 0) <% O[0] = 0; %>
//! a macro in small letters
//: says capitals only
#define float double
//! a macro for a keyword
//: says capitals only
#define if(x) while (x)
//! a macro that makes words
//: says no # inside a line
#define WORD(a, b) a##b
//! a macro that makes strings
//: says no # inside a line
#define TEXT(a) #a
//! a macro that closes the hole's brackets
//: says closes what this hole did not open
#define LEAVE } }
//! a macro that opens brackets
//: says closes what this hole did not open|not closed
#define OPEN {
//! a comment inside a macro
//: says no comment inside a macro
#define LONG 1 /* and
2 */
//! a macro of a refused word
//: says asm: inline assembly
#define NOTHING asm("nop")
//! a line that begins in a comment
//: says no # inside a line
/* */ #include <stdio.h>
//! includes a file
//: says no preprocessor lines
#include "/etc/hostname"
//! a conditional
//: says no preprocessor lines
#if 0
#endif
//! the lines of another file
//: says no preprocessor lines
#line 1 "elsewhere.cu"
//! an empty directive
//: says no preprocessor lines
# 1 "elsewhere.cu"
//! a comment without end
//: says comment does not end|must each be there once
/* the rest is mine
//! a raw string
//: says raw
const char *s = R"x(" asm("nop"); ")x";
//! a raw string with a prefix
//: says raw
const char *s = u8R"x(")x";
//! a string without end
//: says does not end on its line
const char *s = "abc;
//! a number that swallows a quote
//: says does not end on its line|error
float x = 1e+'a" + "';
//! a character outside of ASCII
//: says no part of a kernel
//: escapes
int \303\244 = 1;
//! a universal character name
//: says no part of a kernel
int \u0061sm = 1;
//! a dollar
//: says no part of a kernel
int $a = 1;
//! closes the braces
//: says closes what this hole did not open
} static void f() {
//! brackets of other kinds
//: says closes what this hole did not open
int a = (1];
//! too many brackets
//: says nested too deeply
((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
//! a second hole
//: says must each be there once
// <<< End of hole 1
// >>> Hole 1
//! assembly
//: says asm: inline assembly
asm volatile("syscall");
//! assembly under another name
//: says __asm__: inline assembly
__asm__("nop");
//! a name for the assembler
//: says __asm__: inline assembly
int stop() __asm__("simt_meter_stop");
//! an attribute switches the checks of indices off
//: says attributes
//: alone scan -> Score: 100.0
auto quiet = [](int i) __attribute__((no_sanitize("bounds"))) { int a[4] = {i, 1, 2, 3}; return a[i & 7]; }; if (quiet(p.d | 5) == 12345) return;
//! an attribute switches the detectors off
//: says attributes
//: alone scan machine -> Score: 100.0
auto quiet = [&](int i) __attribute__((no_sanitize("thread"))) { return Q[i]; }; if (quiet(0) == 12345.0f) return;
//! the same by a standard attribute
//: says attributes
[[gnu::no_sanitize("thread")]] int x;
//! the same with a blank between the brackets
//: says attributes
[ [gnu::no_sanitize("thread")]] int x;
//! the same with a comment between the brackets
//: says attributes
[/* */[gnu::no_sanitize("thread")]] int x;
//! attributes by using
//: says attributes
[[using gnu: noinline]] int x;
//! a section of its own
//: says attributes
__attribute__((section(".init_array"))) int x;
//! a built-in function
//: says __builtin
__builtin_memcpy(O, Q, 4);
//! a built-in jump
//: says __builtin
void *buffer[5]; __builtin_longjmp(buffer, 1);
//! a built-in frame
//: says __builtin
((void **)__builtin_frame_address(0))[1] = nullptr;
//! a built-in return
//: says __builtin
__builtin_return(nullptr);
//! a built-in atomic
//: says __atomic
__atomic_store_n((int *)O, 1, 5);
//! an old built-in atomic
//: says __sync_
__sync_fetch_and_add((int *)O, 1);
//! stops the meter
//: says simulated device's own
simt_meter_stop();
//! a name of the simulated device
//: says simulated device's own
simt::static_shared<int>([] {}, "a");
//! calls a detector
//: says detectors' own
__tsan_init();
//! the runtime from the device
//: says runtime API
cudaMemset(O, 0, 4);
//! launches a kernel of its own
//: says device code only
launch(nullptr, 1, 1);
//! declares what lies elsewhere
//: says extern: a hole declares nothing
extern "C" int kill(int, int); kill(-1, 9);
//! an external variable
//: says extern: a hole declares nothing
extern int environ;
//! a variable per thread
//: says thread_local: a kernel keeps nothing
thread_local int x; x++;
//! opens a namespace
//: task b01
//: end
//: says namespace: a hole opens no namespace
namespace std { static int x; }
//! replaces operator new
//: task b01
//: end
//: says operator: a hole allocates nothing
static void *operator new(size_t, int) { return nullptr; }
//! a literal operator
//: task b01
//: end
//: says operator: a hole allocates nothing
static long operator""_x(unsigned long long) { return 0; }
//! virtual functions
//: says virtual: no task needs virtual
struct S { virtual void f() {} } s;
//! a computed goto
//: says goto: no task needs goto
a: void *to = &&a; goto *to;
//! host code
//: task b01
//: end
//: says __host__
__host__ void f() {}
//! code in a string, between comments that join where a word is taken away
//: says error
int q = 1 /__noinline__* "*/ ; simt_give_way(); int r = 3 /*" *__noinline__/ ;
//! a brace of two characters that join where a word is taken away
//: says error
int q = 1; if (q) <__noinline__% q = 2; %__noinline__>
//! a comment to the end of the line that joins
//: says error
int q = 1 /__noinline__/ 2; if (q) return;
