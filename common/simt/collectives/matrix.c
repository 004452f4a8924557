/* Tensor cores, the memory side: ldmatrix, stmatrix and movmatrix, which move 8 x 8 matrices of 16-bit elements between rows
 * of 16 bytes in shared memory and registers.
 *
 * Each row is an access of the lane that names it: a load before the lanes meet, a store after they have met. So what
 * orders it against other lanes' accesses must be there besides the instruction itself.
 */
#include "collectives.h"

#include "device_memory.h"
#include "hooks.h"
#include "report.h"

enum { ROW_BYTES = 16 };

struct matrices {
    int count;
    bool transposed;
    unsigned char *row; /* that the lane names */
    struct simt_registers registers;
};

static void require_row(const void *row, enum access_kind kind, const char *name, const void *pc) {
    if ((uintptr_t)row % ROW_BYTES != 0)
        simt_fail(pc, cudaErrorMisalignedAddress, "%s: the row at address %#lx does not begin at a multiple of 16 bytes%s",
                  name, (unsigned long)(uintptr_t)row, describe_promise(shared_offset_of(simt_worker, (uintptr_t)row)).text);
    if (shared_offset_of(simt_worker, (uintptr_t)row) >= SHARED_BYTES_MAX)
        simt_fail(pc, cudaErrorIllegalAddress, "%s: address %#lx is not in shared memory", name, (unsigned long)(uintptr_t)row);
    simt_check_access(row, ROW_BYTES, kind, false, pc);
}

/* Element `col` of row `row` of matrix i lies in half col % 2 of register i of lane 4 row + col / 2. */
static void from_rows(const struct simt_lanes *lanes) {
    const struct matrices *first = lanes->operand[0];
    bool transposed = first->transposed;
    for (int i = 0; i < first->count; i++) {
        uint16_t element[8][8];
        for (int row = 0; row < 8; row++)
            memcpy(element[row], ((const struct matrices *)lanes->operand[8 * i + row])->row, ROW_BYTES);
        for (int lane = 0; lane < WARP_SIZE; lane++) {
            int row = lane / 4, col = lane % 4 * 2;
            uint16_t low = transposed ? element[col][row] : element[row][col];
            uint16_t high = transposed ? element[col + 1][row] : element[row][col + 1];
            ((struct simt_registers *)lanes->result[lane])->r[i] = (uint32_t)high << 16 | low;
        }
    }
}

/* As above, out of the registers. */
static uint16_t element_of(const struct simt_lanes *lanes, int i, int row, int col) {
    return (uint16_t)(((const struct matrices *)lanes->operand[4 * row + col / 2])->registers.r[i] >> 16 * (col % 2));
}

/* Into the 16 bytes that each lane will store. */
static void to_rows(const struct simt_lanes *lanes) {
    const struct matrices *first = lanes->operand[0];
    for (int e = 0; e < 64 * first->count; e++) {
        int i = e / 64, row = e / 8 % 8, col = e % 8;
        uint16_t *to = lanes->result[8 * i + row];
        to[col] = first->transposed ? element_of(lanes, i, col, row) : element_of(lanes, i, row, col);
    }
}

static void transpose(const struct simt_lanes *lanes) {
    for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < WARP_SIZE; lane++) {
            int row = lane / 4, col = lane % 4 * 2;
            uint32_t high = element_of(lanes, i, col + 1, row);
            ((struct simt_registers *)lanes->result[lane])->r[i] = high << 16 | element_of(lanes, i, col, row);
        }
}

/* By their number of matrices, and whether they transpose. */
#define FORMS(name, combine)                                                                                                   \
    static const struct simt_collective name[5][2] = {                                                                         \
        [1] = {{#name ".x1", combine, SIMT_ALL_LANES}, {#name ".x1.trans", combine, SIMT_ALL_LANES}},                          \
        [2] = {{#name ".x2", combine, SIMT_ALL_LANES}, {#name ".x2.trans", combine, SIMT_ALL_LANES}},                          \
        [4] = {{#name ".x4", combine, SIMT_ALL_LANES}, {#name ".x4.trans", combine, SIMT_ALL_LANES}},                          \
    };
FORMS(ldmatrix, from_rows)
FORMS(stmatrix, to_rows)

static const struct simt_collective *form_of(const struct simt_collective forms[5][2], const char *name, int matrices,
                                             int transposed, const void *pc) {
    if ((matrices != 1 && matrices != 2 && matrices != 4) || (transposed & ~1) != 0)
        simt_fail(pc, cudaErrorIllegalInstruction, "%s of %d matrices, transposed %d: there is none", name, matrices,
                  transposed);
    return &forms[matrices][transposed];
}

struct simt_registers simt_ldmatrix(size_t address, int matrices, int transposed, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    const struct simt_collective *instruction = form_of(ldmatrix, "ldmatrix", matrices, transposed, pc);
    void *row = simt_shared_pointer(address);
    struct matrices operand = {.count = matrices, .transposed = transposed, .row = row};
    struct simt_registers result = {{0}};
    if ((int)(simt_self->linear % WARP_SIZE) < 8 * matrices) require_row(row, ACCESS_LDMATRIX, instruction->name, pc);
    collective_meet(instruction, 0xffffffffu, &operand, &result, file, line, pc);
    return result;
}

void simt_stmatrix(size_t address, int matrices, int transposed, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3,
                   const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    const struct simt_collective *instruction = form_of(stmatrix, "stmatrix", matrices, transposed, pc);
    struct matrices operand = {.count = matrices, .transposed = transposed, .registers = {{r0, r1, r2, r3}}};
    uint16_t elements[8];
    void *row = simt_shared_pointer(address);
    collective_meet(instruction, 0xffffffffu, &operand, elements, file, line, pc);
    if ((int)(simt_self->linear % WARP_SIZE) >= 8 * matrices) return;
    require_row(row, ACCESS_WRITE, instruction->name, pc);
    memcpy(row, elements, ROW_BYTES);
}

struct simt_registers simt_movmatrix(uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3, const char *file, int line) {
    static const struct simt_collective instruction = {"movmatrix", transpose, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
    struct matrices operand = {.registers = {{r0, r1, r2, r3}}};
    struct simt_registers result;
    collective_meet(&instruction, 0xffffffffu, &operand, &result, file, line, __builtin_return_address(0));
    return result;
}

/* ---- WMMA: its loads and stores are 4- and 8-byte accesses of the kernel's own (mma.h) ----------------------------------- */

void simt_wmma_check(const void *matrix, size_t row_bytes) {
    const void *pc = __builtin_return_address(0);
    if ((uintptr_t)matrix % 32 != 0)
        simt_fail(pc, cudaErrorMisalignedAddress, "a WMMA matrix at address %#lx: it must begin at a multiple of 32 bytes%s",
                  (unsigned long)(uintptr_t)matrix, describe_promise(shared_offset_of(simt_worker, (uintptr_t)matrix)).text);
    if (row_bytes % ROW_BYTES != 0)
        simt_fail(pc, cudaErrorMisalignedAddress,
                  "the rows of a WMMA matrix are %zu bytes apart: they must be a multiple of 16 bytes apart", row_bytes);
}
