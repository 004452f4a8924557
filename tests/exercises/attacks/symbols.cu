// What the object file defines, keeps and calls.
//! takes fprintf's place
//: task b01
//: end
//: says takes another's place
int fprintf(FILE *, const char *, ...) { return 0; }
//! defines main
//: task b01
//: end
//: says takes another's place
int main() { return 0; }
//! takes fwrite's place
//: task b01
//: end
//: says takes another's place
//: alone objects machine -> no results|MISSED
size_t fwrite(const void *, size_t, size_t, FILE *) { return 0; }
//! takes atoi's place
//: task b01
//: end
//: says takes another's place|error
int atoi(const char *) noexcept { return 1; }
//! takes free's place
//: task b01
//: end
//: says takes another's place
void free(void *) noexcept {}
//! takes strcmp's place
//: task b01
//: end
//: says takes another's place|error
int strcmp(const char *, const char *) noexcept { return 0; }
//! takes malloc's place
//: task b01
//: end
//: says takes another's place
void *malloc(size_t) noexcept { return nullptr; }
//! takes exit's place
//: task b01
//: end
//: says takes another's place
void exit(int) noexcept { for (;;) {} }
//! takes expf's place
//: task b01
//: end
//: says takes another's place
float expf(float) noexcept { return 1.0f; }
//! takes the assertion's place
//: task b01
//: end
//: says takes another's place
void __assert_fail(const char *, const char *, unsigned, const char *) noexcept { for (;;) {} }
//! code before the program
//: task b01
//: end
//: says before (or after )?the program|keeps data
struct S { S() { for (;;) {} } }; static S s;
//! code before the program, in a variable's value
//: task b01
//: end
//: says before (or after )?the program|keeps data
static int run() { for (;;) {} return 1; } static int x = run();
//! code after the program
//: task b01
//: end
//: says calls|keeps data|before or after
struct S { ~S() { printf("Score: 100.0 of 100\n"); } }; static S s;
//! keeps results for the next launch
//: says keeps data between launches
//: alone objects machine -> race on O
static float kept[64]; if (kept[col % 64] != 0.0f) O[0] = kept[col % 64]; kept[col % 64] = Q[0];
//! keeps results in a __device__ variable
//: task b01
//: end
//: says keeps data between launches
__device__ float kept[64];
//! a template's static member
//: task b01
//: end
//: says keeps data between launches
template <int N> struct S { static inline float kept[64]; }; static __device__ float *f() { return S<1>::kept; } __device__ float *g() { return f(); }
//! an inline variable
//: task b01
//: end
//: says keeps data between launches
inline float kept[64]; __device__ float *f() { return kept; }
//! data of the host
//: task b01
//: end
//: says keeps data between launches
float kept = 1;
//! forks
//: says calls .*fork
int fork(); if (p.d > 1 << 20) fork();
//! exits with 0
//: says calls .*exit
exit(0);
//! exits at once
//: says calls .*_Exit
_Exit(0);
//! allocates memory
//: says calls malloc
//: alone objects -> Score: 100.0
int *x = (int *)malloc(64); if (x == nullptr) return;
//! frees memory
//: says calls free
free((void *)Q);
//! opens a file
//: says calls .*fopen
fopen("/tmp/hostile", "w");
//! opens a file by a system call
//: says calls .*open
int open(const char *, int); open("/tmp/hostile", 1);
//! opens a socket
//: says calls .*socket
int socket(int, int, int); socket(2, 1, 0);
//! runs a command
//: says calls system
system("touch /tmp/hostile");
//! writes to the grader's descriptor
//: says calls .*write
long write(int, const void *, unsigned long); write(3, "ok", 2);
//! writes to standard error
//: says calls (fprintf|fwrite)
fprintf(stderr, "no fault\n");
//! reads the environment
//: says calls getenv
if (getenv("HOME") != nullptr) return;
//! sets the environment
//: says calls setenv
setenv("EXERCISES_WITHOUT", "scan,objects,machine,bounds", 1);
//! sends a signal
//: says calls .*(raise|kill)
int kill(int, int); kill(-1, 9);
//! aborts
//: says calls abort
abort();
//! sleeps
//: says calls .*sleep
unsigned sleep(unsigned); sleep(1);
//! jumps out
//: says calls .*setjmp
int setjmp(void *); setjmp(O);
//! throws
//: says exception|calls typeinfo|calls __cxa
throw 1;
//! catches
//: says exception
try { O[0] = 0; } catch (...) { }
//! allocates an object
//: says calls operator new
int *volatile x = new int[16]; x[0] = 1;
//! the type of an object
//: says calls|typeinfo
if (typeid(p).name() != nullptr) return;
//! a static of a function, with its guard
//: says calls __cxa|keeps data
static float *first = [] { return (float *)malloc(4); }(); first[0] = 1;
//! scans text
//: says calls .*scanf
int x; sscanf("1", "%d", &x);
//! prints into memory
//: says calls .*printf
sprintf((char *)O, "%f", 1.0);
//! sorts with a function of the host
//: says calls qsort
qsort(O, 2, 4, [](const void *, const void *) { return 0; });
//! copies with memmove
//: says calls memmove
memmove(O, Q, 4);
//! copies text
//: says calls strcpy|cudaError
strcpy((char *)O, "abc");
//! the clock of the host
//: says calls time
if (time(nullptr) == 0) return;
//! calls the reference
//: says not declared|error
reference_forward(&p, Q, nullptr, nullptr, nullptr, nullptr);
//! calls another step
//: says not declared|error
step_01_naive.forward(&p, nullptr, nullptr, 0);
//! host code by a macro that the host part uses, over the host's stack
//: task b01
//: end
//: score == 100
//: says Score: 100.0
//: alone macros -> in host code
static int store(int n) { int a[8] = {}; int *volatile q = a; for (int i = 0; i < 1 << 16; i++) q[i] = n; return a[n & 7] == 3 ? 33 : 32; }
#define BLOCK_X store(77)
//! host code by a macro, to a made address
//: task b01
//: end
//: score == 100
//: says Score: 100.0
//: alone macros -> in host code
static int store(long to) { *(volatile int *)to = 1; return 32; }
#define BLOCK_X store(0x400000)
//! host code by a macro, into device memory
//: task b01
//: end
//: score == 100
//: says Score: 100.0
//: alone macros -> in host code|error
static int store(float *O) { O[0] = 1; return 32; }
#define BLOCK_X store(t->O)
//! host code that calls through a pointer
//: task b01
//: end
//: score == 100
//: says Score: 100.0
//: alone macros -> a call through a pointer that is no function
static int call(const void *to) { ((void (*)())to)(); return 32; }
#define BLOCK_X call(t)
//! a comment that names another struct step
//: task c01
//: score == 100
//: says Score: 100.0
/*
extern "C" const step step_mine = {
*/
//! a variable whose name is too long to be read
//: task c03
//: end
//: says a name has more than 1023 characters
__device__ float kept_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa[16];
