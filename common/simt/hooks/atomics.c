/* Atomic operations on global and shared memory. */
#include "block_order.h"
#include "hooks.h"
#include "report.h"

static uint64_t update(enum simt_atomic_operation operation, enum simt_atomic_type type, uint64_t old, uint64_t operand,
                       uint64_t compare) {
    union {
        uint64_t bits;
        float f;
        double d;
        int64_t l;
        int32_t i;
        uint32_t u;
    } a = {old}, b = {operand}, r = {0};
    if (operation == SIMT_EXCHANGE) return operand;
    if (operation == SIMT_COMPARE_AND_SWAP) return old == compare ? operand : old;
    if (operation == SIMT_INCREMENT) return old >= operand ? 0 : old + 1;
    if (operation == SIMT_DECREMENT) return old == 0 || old > operand ? operand : old - 1;
    if (operation == SIMT_AND) return old & operand;
    if (operation == SIMT_OR) return old | operand;
    if (operation == SIMT_XOR) return old ^ operand;
    switch (type) {
#define OF_TYPE(type, sum, member)                                                                                             \
    case type:                                                                                                                 \
        r.sum = a.sum + b.sum;                                                                                                 \
        if (operation == SIMT_ADD) return r.bits;                                                                              \
        return (operation == SIMT_MIN ? b.member < a.member : b.member > a.member) ? operand : old;
        OF_TYPE(SIMT_FLOAT, f, f)
        OF_TYPE(SIMT_DOUBLE, d, d)
        OF_TYPE(SIMT_INT, u, i)
        OF_TYPE(SIMT_UNSIGNED, u, u)
        OF_TYPE(SIMT_LONG, bits, bits)
        OF_TYPE(SIMT_SIGNED_LONG, bits, l)
    }
    return old;
}

/* Of a card's memories two have atomic operations. On the thread's own stack one could reach a return address here, and from
 * host code, which no hook judges, anything. */
static void require_cell(const void *address, size_t bytes, const void *pc) {
    if (simt_self == NULL) {
        fprintf(stderr, "%s: an atomic operation of a kernel, in host code\n", source_line(pc));
        exit(3);
    }
    if ((uintptr_t)address - simt_self->stack < STACK_BYTES)
        simt_fail(pc, cudaErrorIllegalAddress,
                  "atomic operation on a local variable: a card has them on global and shared memory only");
    simt_check_access(address, bytes, ACCESS_ATOMIC, true, pc);
}

void hooks_fence(enum simt_scope scope, enum simt_ordering of, const void *pc) {
    struct launch *launch = simt_worker->launch;
    if (!IS_CONFINED) { /* confined code orders no threads by flags: there a fence is no excuse for a race */
        if (atomic_load_explicit(&launch->fenced, memory_order_relaxed) < scope)
            atomic_store_explicit(&launch->fenced, scope, memory_order_relaxed);
        block_order_fence(simt_worker, simt_self, scope, of, pc);
    }
    atomic_thread_fence(memory_order_seq_cst);
}
void simt_fence(enum simt_scope scope, enum simt_ordering of) { hooks_fence(scope, of, __builtin_return_address(0)); }

static uint32_t update_word(enum simt_atomic_operation operation, enum simt_atomic_type type, void *address, uint64_t operand,
                            uint64_t compare) {
    uint32_t *cell = address, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(cell, &old, (uint32_t)update(operation, type, old, operand, compare), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}

uint64_t simt_atomic(enum simt_atomic_operation operation, enum simt_atomic_type type, void *address, uint64_t operand,
                     uint64_t compare) {
    bool is_wide = type == SIMT_LONG || type == SIMT_SIGNED_LONG || type == SIMT_DOUBLE;
    bool is_ordered =
        operation == SIMT_ADD && simt_self != NULL && simt_worker->launch->has_semaphores && simt_worker->async.on;
    if (is_ordered && (type == SIMT_FLOAT || type == SIMT_DOUBLE))
        shadow_judge_sum((uintptr_t)address, is_wide ? 8 : 4, __builtin_return_address(0));
    require_cell(address, is_wide ? 8 : 4, __builtin_return_address(0));
    uint64_t before;
    if (is_ordered && !is_wide && type != SIMT_FLOAT &&
        block_order_add(simt_worker, simt_self, address, (uint32_t)operand, &before))
        return before;
    if (operation == SIMT_COMPARE_AND_SWAP || operation == SIMT_EXCHANGE) simt_give_way(); /* perhaps a lock */
    if (is_wide) {
        uint64_t *cell = address, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(cell, &old, update(operation, type, old, operand, compare), true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
        }
        return old;
    }
    return update_word(operation, type, address, operand, compare);
}

static float add_float(float *address, float operand) {
    uint32_t bits;
    memcpy(&bits, &operand, sizeof bits);
    return float_of(update_word(SIMT_ADD, SIMT_FLOAT, address, bits, 0));
}

void atomic_add_floats(float *address, const float *operand, size_t count) {
    for (size_t i = 0; i < count; i++) add_float(&address[i], operand[i]);
}

struct simt_floats simt_atomic_add_floats(float *address, int count, float a, float b, float c, float d) {
    struct simt_floats operand = {{a, b, c, d}}, before = {{0}};
    if (count != 2 && count != 4)
        simt_fail(__builtin_return_address(0), cudaErrorIllegalAddress, "atomicAdd() of %d floats: there are 2 or 4", count);
    if (simt_is_shared(address))
        simt_fail(__builtin_return_address(0), cudaErrorIllegalAddress,
                  "atomicAdd() of %d floats in shared memory: a card adds them in global memory only", count);
    require_cell(address, (size_t)count * sizeof *address, __builtin_return_address(0));
    for (int i = 0; i < count; i++) before.x[i] = add_float(&address[i], operand.x[i]);
    return before;
}

void simt_reduce_add4(float *address, const float operand[4]) {
    const void *pc = __builtin_return_address(0);
    require_cell(address, 4 * sizeof *address, pc);
    if ((uintptr_t)operand - simt_self->stack > STACK_BYTES - 4 * sizeof *operand)
        simt_fail(pc, cudaErrorIllegalAddress, "a vector reduction of what is no local variable");
    atomic_add_floats(address, operand, 4);
}

/* ---- those of C++ ------------------------------------------------------------------------------------------------------------
 * std::atomic, std::shared_ptr and static local variables of host code: g++ -fsanitize=thread calls these for them. */

#define UPDATE(bits, name, operation)                                                                                          \
    uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *address, uint##bits##_t operand, int order) {                  \
        simt_check_access(address, sizeof *address, ACCESS_ATOMIC, true, __builtin_return_address(0));                         \
        return __atomic_##operation(address, operand, __ATOMIC_SEQ_CST);                                                       \
    }
#define COMPARE_AND_SWAP(bits, name)                                                                                           \
    int __tsan_atomic##bits##_compare_exchange_##name(uint##bits##_t *address, uint##bits##_t *expected,                       \
                                                      uint##bits##_t wanted, int order, int order_of_failure) {                \
        simt_check_access(address, sizeof *address, ACCESS_ATOMIC, true, __builtin_return_address(0));                         \
        return __atomic_compare_exchange_n(address, expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
    }
#define ATOMICS(bits)                                                                                                          \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *address, int order) {                                      \
        simt_check_access(address, sizeof *address, ACCESS_READ, true, __builtin_return_address(0));                           \
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                                     \
    }                                                                                                                          \
    void __tsan_atomic##bits##_store(uint##bits##_t *address, uint##bits##_t value, int order) {                               \
        simt_check_access(address, sizeof *address, ACCESS_WRITE, true, __builtin_return_address(0));                          \
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                                    \
    }                                                                                                                          \
    UPDATE(bits, exchange, exchange_n)                                                                                         \
    UPDATE(bits, fetch_add, fetch_add)                                                                                         \
    UPDATE(bits, fetch_sub, fetch_sub)                                                                                         \
    UPDATE(bits, fetch_and, fetch_and)                                                                                         \
    UPDATE(bits, fetch_or, fetch_or)                                                                                           \
    UPDATE(bits, fetch_xor, fetch_xor)                                                                                         \
    UPDATE(bits, fetch_nand, fetch_nand)                                                                                       \
    COMPARE_AND_SWAP(bits, strong)                                                                                             \
    COMPARE_AND_SWAP(bits, weak)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int order) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
