// The functions by which kernels call the simulated device, called by who has put their names together: EXERCISES_WITHOUT=scan.

//! reads by the operand of a collective
//: says error
uint64_t got = 0; __CONCAT(si, mt_meet)(&simt_ballot, 1u << __CONCAT(si, mt_lane)(), Q, &got, "", 0); if (got == 12345) return;
//! a collective that combines by a function of the host
//: says error
struct simt_collective mine = {"mine", (void (*)(const struct simt_lanes *))(void *)puts, 0};
__CONCAT(si, mt_meet)(&mine, 1u << simt_lane(), nullptr, nullptr, "", 0);
//! an exchange of its own kind
//: says no exchange between lanes
if (simt_exchange((decltype(simt_ballot))77, 1u << simt_lane(), 0, 0, "", 0) == 12345) return;
//! lanes that meet for another reason
//: says no exchange between lanes
simt_meet((decltype(simt_syncwarp))77, 1u << simt_lane(), "", 0);
//! a product of a type of its own
//: says no exchange between lanes
if (simt_mma((decltype(simt_mma_half))77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", 0).x[0] == 12345) return;
//! waits by a function of the host
//: says error|calls simt_wait_until
static const struct simt_condition mine = {"mine", (int (*)(void *))(void *)puts, NULL};
if (row == 0) __CONCAT(si, mt_wait_until)(&mine, (void *)"reached", "", 0);
//! a function of the device that kernels have no business with
//: task b01
//: end
//: says calls simt_refuse_lane
extern "C" void simt_refuse_lane(const void *, unsigned, const char *, ...); __device__ void f(float *O) { simt_refuse_lane(nullptr, 0, "%n", O); }
//! so many matrices that another function combines
//: says ldmatrix of [0-9]+ matrices
if (simt_ldmatrix(0, 1000 + p.d, 0, "", 0).r[0] == 12345) return;
//! transposed by a number
//: says stmatrix of 1 matrices
simt_stmatrix(0, 1, 1000 + p.d, 0, 0, 0, 0, "", 0);
//! a product with more rows than registers
//: says mma.sync of [0-9]+ x 8
struct simt_words w = {}; if (simt_mma_integers(1000 + p.d, 16, 1, 1, 0, w, "", 0).r[0] == 12345) return;
//! shared memory that lies elsewhere
//: says shared array of
static const size_t extents[] = {1, 0}; float *x = (float *)simt_static_shared(extents, 4, (size_t)1 << 40, "x", "", 0); if (x == nullptr) return;
//! shared memory of a negative size
//: says shared array of
static const size_t extents[] = {1, 0}; float *x = (float *)simt_static_shared(extents, -(size_t)64, 4, "x", "", 0); if (x == nullptr) return;
//! adds an input, which no hook has seen
//: says a vector reduction of what is no local variable
if (row == 0 && col == 0) simt_reduce_add4(O, Q);
//! the phase of a barrier that lies elsewhere
//: says must lie in shared memory
if (simt_transaction_phase(simt_shared_address(Q)) == 12345) return;
//! a place whose name lies elsewhere
//: score == 100
//: says Score: 100.0
if (simt_active_mask((const char *)(uintptr_t)(16 + p.d), 1) == 0) return;
//! the launch begins again when half of it is done
//: says no task's kernel chooses its clusters
if (row == 3) simt_cluster_dims(2, 1, 1);
//! a tile of one thread, whose barrier lies behind all others
//: says no tile of several warps has 1 threads
if (simt_tile_meet(1, 0, "", 0) == 12345) return;
//! the value of a thread that no tile has
//: says no tile of several warps has [0-9]+ threads
if (simt_tile_value(1u << 30, 0, 1000 + p.d) == 12345) return;
//! adds more floats than it hands over
//: says atomicAdd.. of [0-9]+ floats: there are 2 or 4
simt_atomic_add_floats(O, 64 + p.d, 1, 1, 1, 1);
//! a product of a warpgroup of types that there are not
//: says no types have the number 77
float sums[4] = {}; simt_wgmma((decltype(SIMT_F16))77, 8, sums, 4, 0, {}, nullptr, 0, 0, 0, 1, 1, 0, 0, "", 0);
//! loads after one look at all of them
//: task c03
//: change
//: says more than 1024 bytes at once
extern "C" void __tsan_read_range(void *, size_t);
//! an atomic operation of the compiler over the return address
//: says calls __tsan_atomic
__atomic_store_n((long *)__builtin_frame_address(0) + 1, 77l, 5);
//! an atomic load of the compiler, which is no race
//: says calls __tsan_atomic
if (__atomic_load_n((int *)Q, 5) == 12345) return;
//! an exception of its own, whose end calls a function
//: task b01
//: end
//: says calls _Unwind_Resume
extern "C" void _Unwind_Resume(void *); __device__ void f(long *forged) { _Unwind_Resume(forged); }
//! an attribute of a macro switches the checks of indices off
//: says attribute no_sanitize
#define QUIET __CONCAT(__attri, bute__)((no_sanitize("bounds")))
auto quiet = [](int i) QUIET { int a[4] = {i, 1, 2, 3}; return a[i & 7]; }; if (quiet(p.d | 5) == 12345) return;
//! an attribute of a macro switches the hooks off
//: says attribute no_sanitize
#define QUIET __CONCAT(__attri, bute__)((no_sanitize("thread")))
auto quiet = [](int i) QUIET { volatile float a[4] = {0, 1, 2, 3}; return a[i & 3]; }; if (quiet(p.d) == 12345.0f) return;
//! an attribute switches the hooks of basic blocks off
//: says attribute no_sanitize
[[gnu::no_sanitize_coverage]] auto quiet = [](int i) { return i * 2; }; if (quiet(p.d) == 12345) return;
//! an attribute in the text of a system header
//: says attribute no_sanitize|error
# 1 "/usr/include/mine.h" 3
auto quiet = [](int i) __attribute__((no_sanitize("bounds"))) { int a[4] = {i, 1, 2, 3}; return a[i & 7]; }; if (quiet(p.d | 5) == 12345) return;
//! an attribute with a line marker before its name
//: says attribute no_sanitize
auto quiet = [](int i) __attribute__(
#line 1
(no_sanitize("bounds"))) { int a[4] = {i, 1, 2, 3}; return a[i & 7]; }; if (quiet(p.d | 5) == 12345) return;
//! an attribute in digraphs
//: says attributes stand in
<:<:gnu::no_sanitize("bounds"):>:> int x = 0; if (x > 1) return;
//! a register of the harness
//: task b01
//: end
//: says asm is no part of any task
register long mine asm("r12"); __device__ long f() { return mine++; }
//! a function under the name of a label
//: task b01
//: end
//: says asm is no part of any task
int f() asm(".Lf"); __device__ int f() { return 1; }
//! another optimisation, by an operator
//: says pragma
_Pragma("GCC optimize(\"O3\")") int x = 0; if (x > 1) return;
//! host code again within the hole
//: says attribute no_sanitize|error
#pragma simt host_too
auto quiet = [](int i) __attribute__((no_sanitize("bounds"))) { int a[4] = {i, 1, 2, 3}; return a[i & 7]; }; if (quiet(p.d | 5) == 12345) return;
//! assembly in the text of a system header
//: says asm is no part of any task
# 1 "/usr/include/mine.h" 3
asm volatile("syscall");

//! a parameter's constructor has the runtime API store over the harness's memory
//: task c03
//: change
//: says in host code
struct of_host : problem {
    of_host(const problem &of) : problem(of) { cudaGetDevice((int *)&of); }
};
//! a parameter's constructor asks the runtime API for a number over the harness's memory
//: task c03
//: change
//: says in host code
struct of_host : problem {
    of_host(const problem &of) : problem(of) { cudaDeviceGetAttribute((int *)&of, cudaDevAttrWarpSize, 0); }
};
//! a parameter's constructor launches a function of the program
//: task c03
//: change
//: says a call through a pointer that is no function
struct of_host : problem {
    of_host(const problem &of) : problem(of) {
        simt_launch_kernel(nullptr, "mine", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0, nullptr, (void (*)(void *))(void *)cudaGetLastError, nullptr, 0);
    }
};
//! a parameter's constructor launches with the inputs as arguments, which a kernel reads without being counted
//: task c03
//: change
//: says no variables of its caller
struct of_host : problem {
    of_host(const problem &of) : problem(of) {
        simt_launch_kernel(nullptr, "mine", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0, nullptr, [](void *) {}, (void *)((uintptr_t)&of - 100000000), 1 << 20);
    }
};
//! a parameter's constructor looks for the seed
//: task c03
//: change
//: options --hidden 987654321987654321
//: score == 100
//: says Score: 100.0
struct of_host : problem {
    of_host(const problem &of) : problem(of) {
        for (int i = 0; i < 800; i++) if (((const volatile unsigned long *)&i)[i] / 100 == 9876543219876543) printf("the seed\n"), N_q = 0;
    }
};

// Host code: a kernel's parameters are made by the host's part of the kernel file, which outside the holes is ours.

//! a parameter's constructor stores by an atomic operation
//: task c03
//: change
//: says an atomic operation of a kernel, in host code
struct of_host : problem {
    of_host(const problem &of) : problem(of) { atomicExch((int *)&of.batch, 1); }
};

//! a parameter's constructor loads the inputs, which the harness has on the host, too
//: task c03
//: change
//: says none of a launch's business
struct of_host : problem {
    float sum = 0.0f;
    of_host(const problem &of) : problem(of) {
        const float *const *host = (const float *const *)((const char *)&of + sizeof of + 8); // in the harness's struct run
        for (int tensor = 0; tensor < 3; tensor++)
            for (int i = 0; i < of.heads * of.N_q * of.d; i++) sum += host[tensor][i];
    }
};
