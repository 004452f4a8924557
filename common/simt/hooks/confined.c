/* What code compiled by simt-nvcc --confined asks before it stores, calls through a pointer or calls the host's functions
 * (confined/confine.awk). It may store what a hook has just judged, and to its own stack frames, less what a return reads;
 * its own frames are those whose code lies in the section simt_confined, up to the simulated device or the program that
 * called it. So it holds for the host's part of a kernel file, too, where no hook judges anything. A kernel may load what a
 * hook has just judged, so counted, and what is no access on a card: the thread's stack and what a launch hands over.
 *
 * These functions keep all registers but the flags, which their caller keeps: a store is no call to the compiler. */
#include "cuda.h"
#include "hooks.h"
#include "report.h"

#include <math.h>

#ifdef __x86_64__
#define GENERAL __attribute__((target("general-regs-only")))
#define KEEPS_REGISTERS GENERAL __attribute__((no_caller_saved_registers))

extern const char __stop_simt_confined[] __attribute__((weak));

GENERAL static inline bool is_confined(uintptr_t code) {
    return code >= (uintptr_t)__start_simt_confined && code < (uintptr_t)__stop_simt_confined;
}

static __attribute__((noinline, cold, force_align_arg_pointer, noreturn)) void refuse(const char *what, const void *pc) {
    char *line = source_line(pc);
    if (simt_self != NULL) simt_fail(NULL, cudaErrorIllegalAddress, "%s: %s", line, what);
    fprintf(stderr, "%s: %s, in host code\n", line, what);
    exit(3);
}

struct frame { /* where a frame pointer points */
    const struct frame *caller;
    uintptr_t return_address;
};

/* `frame`: of the function that stores; it must be the innermost one, of which the stack pointer is `lowest`. */
GENERAL static inline bool is_own_frame(uintptr_t address, size_t bytes, const struct frame *frame, uintptr_t lowest) {
    enum { SAVED_REGISTERS = 5 * 8 }; /* of the outermost frame: they belong to its caller */
    if (address < lowest) return false;
    while ((uintptr_t)frame + sizeof *frame <= address && is_confined(frame->return_address)) frame = frame->caller;
    size_t kept = is_confined(frame->return_address) ? 0 : SAVED_REGISTERS;
    return address + bytes <= (uintptr_t)frame - kept && address + bytes > address;
}

GENERAL static inline void require_store(uintptr_t address, size_t bytes, const struct frame *own) {
    const struct thread *self = simt_self;
    if (self != NULL && address - self->judged < self->judged_bytes && bytes <= self->judged_bytes - (address - self->judged))
        return;
    if (!is_own_frame(address, bytes, own->caller, (uintptr_t)(own + 1)))
        refuse("a store past the end of a local array, or through a pointer that leads nowhere", (void *)own->return_address);
}

#define STORE(bytes)                                                                                                           \
    KEEPS_REGISTERS void simt_confined_store##bytes(uintptr_t address) {                                                       \
        require_store(address, bytes, __builtin_frame_address(0));                                                             \
    }                                                                                                                          \
    KEEPS_REGISTERS void simt_confined_range##bytes(uintptr_t rdi, uintptr_t rsi, uintptr_t rdx, uintptr_t rcx) {              \
        if (rcx > 0) require_store(rdi, rcx > SIZE_MAX / 16 ? SIZE_MAX : rcx * bytes, __builtin_frame_address(0));             \
    }
STORE(1)
STORE(2)
STORE(4)
STORE(8)
STORE(16)

/* What the host's part of a kernel file may load: its own frames and its callers', where the problem and the struct tensors
 * lie. The harness has the inputs elsewhere on the host, where a parameter's constructor could work with them. */
enum { HOST_STACK_BYTES = 1 << 16 };

GENERAL static inline bool lies_in(uintptr_t address, size_t bytes, const void *begin, size_t size) {
    return address - (uintptr_t)begin < size && bytes <= size - (address - (uintptr_t)begin);
}

GENERAL static inline void require_load(uintptr_t address, size_t bytes, const struct frame *own) {
    const struct thread *self = simt_self;
    if (self != NULL && lies_in(address, bytes, (void *)self->seen, self->seen_bytes)) return;
    if (lies_in(address, bytes, __ehdr_start, (size_t)(_end - __ehdr_start))) return;
    if (self == NULL && lies_in(address, bytes, own, HOST_STACK_BYTES)) return;
    if (self == NULL) refuse("a load of memory that is none of a launch's business", (void *)own->return_address);
    if (lies_in(address, bytes, (void *)self->stack, STACK_BYTES)) return;
    const struct launch *launch = simt_worker->launch;
    if (lies_in(address, bytes, launch->arguments, launch->arguments_bytes)) return;
    const struct uint3 *const built_in[] = {&threadIdx, &blockIdx, &blockDim, &gridDim};
    for (int i = 0; i < 4; i++)
        if (lies_in(address, bytes, built_in[i], sizeof *built_in[i])) return;
    refuse("a load through a pointer that leads nowhere, or that the meter cannot see", (void *)own->return_address);
}

KEEPS_REGISTERS void simt_confined_load(uintptr_t address) { require_load(address, 1, __builtin_frame_address(0)); }
#define FROM(bytes)                                                                                                            \
    KEEPS_REGISTERS void simt_confined_from##bytes(uintptr_t rdi, uintptr_t rsi, uintptr_t rdx, uintptr_t rcx) {               \
        if (rcx > 0) require_load(rsi, rcx > SIZE_MAX / 16 ? SIZE_MAX : rcx * bytes, __builtin_frame_address(0));              \
    }
FROM(1)
FROM(2)
FROM(4)
FROM(8)

static __typeof__(cuTensorMapEncodeTiled) encode_tensor_map;

/* A function whose address is taken begins with endbr64. */
GENERAL static void require_function(uintptr_t code, const struct frame *own) {
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    bool begins = is_confined(code);
    for (size_t i = 0; i < sizeof endbr64; i++) begins = begins && ((const unsigned char *)code)[i] == endbr64[i];
    if (!begins) refuse("a call through a pointer that is no function of this file", (void *)own->return_address);
}

/* The host's part may call one more. */
KEEPS_REGISTERS void simt_confined_call(uintptr_t code) {
    if (simt_self == NULL && code == (uintptr_t)encode_tensor_map) return;
    require_function(code, __builtin_frame_address(0));
}

void confined_launch(uintptr_t run, const void *arguments, size_t bytes, const void *own) {
    const struct frame *of = own, *outermost = of->caller;
    if (!IS_CONFINED || !is_confined(of->return_address)) return; /* the harness has kernels, too */
    uintptr_t first = (uintptr_t)arguments;
    require_function(run, own);
    while (is_confined(outermost->return_address)) outermost = outermost->caller;
    if (first < (uintptr_t)(of + 1) || first > (uintptr_t)outermost || bytes > (uintptr_t)outermost - first)
        refuse("a launch with arguments that are no variables of its caller", (void *)of->return_address);
}

KEEPS_REGISTERS void simt_confined_host(void) {
    const struct frame *own = __builtin_frame_address(0);
    if (simt_self != NULL) refuse("device code calls the runtime API", (void *)own->return_address);
}

/* ---- tensor maps: the driver's function, as the host's part finds it. It stores through a pointer and loads through four. ---- */

static CUresult encode_tensor_map(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                  const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                  const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                  CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    const struct frame *own = __builtin_frame_address(0);
    require_store((uintptr_t)map, sizeof *map, own);
    for (cuuint32_t d = 0; d < rank && d < 5; d++) {
        require_load((uintptr_t)(sizes + d), sizeof *sizes, own);
        require_load((uintptr_t)(box + d), sizeof *box, own);
        require_load((uintptr_t)(element_strides + d), sizeof *element_strides, own);
        if (d > 0) require_load((uintptr_t)(strides + d - 1), sizeof *strides, own);
    }
    return cuTensorMapEncodeTiled(map, type, rank, address, sizes, strides, box, element_strides, interleave, swizzle,
                                  promotion, fill);
}

cudaError_t simt_confined_cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                                           unsigned long long flags,
                                                           enum cudaDriverEntryPointQueryResult *found) {
    const struct frame *own = __builtin_frame_address(0);
    require_store((uintptr_t)function, sizeof *function, own);
    require_store((uintptr_t)found, sizeof *found, own);
    cudaError_t error = cudaGetDriverEntryPointByVersion(symbol, function, version, flags, found);
    if (error == cudaSuccess && *function != NULL) *function = (void *)(uintptr_t)encode_tensor_map; /* there is no other */
    return error;
}

/* ---- functions of the C library that store through pointers ---- */

/* An instruction writes them later than its call: asked again when it does. */
void confined_registers(const void *registers, size_t bytes, const void *own) {
    if (IS_CONFINED) require_store((uintptr_t)registers, bytes, own);
}

static void check_result(void *pointer, size_t bytes, const struct frame *own) {
    uintptr_t address = (uintptr_t)pointer;
    if (simt_self != NULL && address - simt_self->stack >= STACK_BYTES)
        simt_check_access(pointer, bytes, ACCESS_WRITE, false, (void *)own->return_address);
    else
        require_store(address, bytes, own);
}

#define WITH_RESULT(type, name, parameter, result_type, ...)                                                                   \
    type simt_confined_##name(parameter, result_type *result) {                                                                \
        check_result(result, sizeof *result, __builtin_frame_address(0));                                                      \
        return name(__VA_ARGS__, result);                                                                                      \
    }
#define COMMA ,
WITH_RESULT(float, frexpf, float x, int, x)
WITH_RESULT(double, frexp, double x, int, x)
WITH_RESULT(float, modff, float x, float, x)
WITH_RESULT(double, modf, double x, double, x)
WITH_RESULT(float, remquof, float x COMMA float y, int, x, y)
WITH_RESULT(double, remquo, double x COMMA double y, int, x, y)

#define SINCOS(type, suffix)                                                                                                   \
    void simt_confined_sincos##suffix(type x, type *sine, type *cosine) {                                                      \
        check_result(sine, sizeof *sine, __builtin_frame_address(0));                                                          \
        check_result(cosine, sizeof *cosine, __builtin_frame_address(0));                                                      \
        *sine = sin##suffix(x), *cosine = cos##suffix(x);                                                                      \
    }
SINCOS(float, f)
SINCOS(double, )

/* As the widest stores that address and size allow. */
void *simt_confined_memset(void *to, int value, size_t bytes) {
    uintptr_t address = (uintptr_t)to, any = address | bytes | 16;
    if (bytes == 0) return to;
    if (simt_self == NULL || address - simt_self->stack < STACK_BYTES)
        require_store(address, bytes, __builtin_frame_address(0));
    else
        for (size_t at = 0; at < bytes; at += any & -any)
            simt_check_access((char *)to + at, any & -any, ACCESS_WRITE, false, __builtin_return_address(0));
    return memset(to, value, bytes);
}

__attribute__((format(printf, 1, 2))) int simt_confined_printf(const char *format, ...) {
    char text[1024]; /* a copy, which vprintf() cannot write over while it reads */
    size_t length = strnlen(format, sizeof text);
    if (length == sizeof text) refuse("printf() with a format of more than 1023 characters", __builtin_return_address(0));
    memcpy(text, format, length);
    text[length] = '\0';
    for (const char *at = text; (at = strchr(at, '%')) != NULL; at++) {
        at += 1 + strspn(at + 1, "-+ #0'*.123456789hlLqjzt");
        if (*at == '\0') break;
        if (strchr("diouxXeEfFgGaAcsp%", *at) == NULL) /* %n too, of which the C library knows several spellings */
            refuse("printf() with %n or another conversion that a card does not have", __builtin_return_address(0));
    }
    va_list arguments;
    va_start(arguments, format);
    int written = vprintf(text, arguments);
    va_end(arguments);
    return written;
}
#else
void confined_registers(const void *registers, size_t bytes, const void *own) {}
void confined_launch(uintptr_t run, const void *arguments, size_t bytes, const void *own) {}
#endif
