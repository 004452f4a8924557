/* wgmma: products of a warpgroup, 4 warps from a multiple of 4 on (PTX ISA, section "wgmma"). Each warp computes its 16 rows: it
 * reads its rows of A and all of B. 8-bit numbers are K-major, and lie as 16-bit ones of which each is two neighbours in k: k below
 * counts such pairs.
 *
 * A product is under way from its issue to the wait for its group, and is computed there, as late as it may (SIMT_ASYNC=early: at
 * its issue): the accumulators are the kernel's own array, and shared memory is read then. Who touches either before is told so:
 * accumulators.c, async_shadow.c. A descriptor of a matrix in shared memory, from bit 0 on, offsets in units of 16 bytes:
 *
 *     start : 14, 0 : 2, leading offset : 14, 0 : 2, stride offset : 14, 0 : 3, base offset : 3, 0 : 10, swizzle : 2
 *
 * With S the bytes of the swizzle (code 1: 128, 2: 64, 3: 32), element (i, k) of A, or column i and row k of B, lies at
 *
 *     K-major    no swizzle   start + i / 8 stride + k / 8 leading + i % 8 16 + k % 8 2
 *                swizzle      start + i / 8 stride + i % 8 S + 2 k
 *     MN-major   no swizzle   start + i / 8 stride + k / 8 leading + k % 8 16 + i % 8 2
 *                swizzle      start + 2 i / S leading + 2 i % S + k / 8 stride + k % 8 S
 *
 * before the swizzle exchanges units of 16 bytes. */
#include "async_work.h"
#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "hooks.h"
#include "meter.h"
#include "report.h"

enum { WARPGROUP = 4, ROWS = 16, DEPTH = 16, MOST_DEPTH = 32, MOST_COLUMNS = 256 };

struct product {
    uint64_t A, B;
    uint32_t A_registers[WARP_SIZE][4];
    float *C[WARP_SIZE];
    int N;
    enum simt_wgmma_types types;
    bool from_registers, add, negate_A, negate_B, transpose_A, transpose_B;
    unsigned group; /* of the warp in this block, from 0 */
    const void *pc;
};

/* Of one warp, oldest first. */
struct warp_products {
    uint64_t block; /* its serial: what another one has left is forgotten */
    struct product *list;
    unsigned count, room, committed, issued;
    const void *pc; /* of the last */
    uint64_t what;  /* a hash of all that were issued, the same for the warps of a warpgroup */
};

struct operand {
    const struct product *product; /* without what differs by lane */
    float *C;
    struct simt_registers A;
    const uint32_t *A_array; /* or NULL */
};

static struct warp_products *products_of(const struct thread *thread) {
    struct async_work *work = async_work_of(simt_worker);
    if (work->products == NULL) work->products = resize_or_die(NULL, MAX_BLOCK_THREADS / WARP_SIZE * sizeof *work->products);
    struct warp_products *products = &work->products[thread->linear / WARP_SIZE];
    if (products->block != simt_worker->shadow.shared_owner) {
        products->block = simt_worker->shadow.shared_owner;
        products->count = products->committed = products->issued = 0;
        products->what = 0;
    }
    return products;
}

/* ---- descriptors ----------------------------------------------------------------------------------------------------------- */

struct layout {
    uint32_t start, leading, stride, base, span; /* bytes; span: 16 without a swizzle */
    uint32_t pair;                               /* numbers in 16 bits */
    bool transposed;
};

static bool is_fp8(enum simt_wgmma_types types) { return types >= SIMT_E4M3_E4M3; }

static struct layout decode(uint64_t descriptor, enum simt_wgmma_types types, bool transposed) {
    static const uint8_t spans[] = {16, 128, 64, 32};
    return (struct layout){(uint32_t)(descriptor & 0x3fff) * 16,
                           (uint32_t)(descriptor >> 16 & 0x3fff) * 16,
                           (uint32_t)(descriptor >> 32 & 0x3fff) * 16,
                           (uint32_t)(descriptor >> 49 & 7),
                           spans[descriptor >> 62],
                           is_fp8(types) ? 2 : 1,
                           transposed};
}

/* Of the 8 elements from (i, k) on: along k, or along i where the matrix is transposed. */
static uint32_t unit_address(const struct layout *l, uint32_t i, uint32_t k) {
    uint32_t along = l->transposed ? k : i, address = l->start;
    if (l->span == 16) return address + i / 8 * l->stride + k / 8 * l->leading + along % 8 * 16;
    if (l->transposed)
        address += 2 * i / l->span * l->leading + 2 * i % l->span + k / 8 * l->stride + k % 8 * l->span;
    else
        address += i / 8 * l->stride + i % 8 * l->span + 2 * k;
    return address ^ (((address >> 7) - l->base) & (l->span / 16 - 1)) << 4;
}

/* Does the matrix of `count` rows (columns of B) lie in a tile as its descriptor says? */
static void judge_tile(const uint32_t *row, const struct layout *l, uint32_t count, char name, const void *pc) {
    uint32_t origin = unit_address(l, 0, 0), depth = DEPTH;
    if (l->stride == 8 * l->span && tile_has_rows(row, origin, l->span / 16)) depth = 1; /* the rest follows from it */
    if (depth == 1 && (!l->transposed || 2 * count <= l->span)) return;
    for (uint32_t i = 0; i < count; i += l->transposed ? 8 : 1)
        for (uint32_t k = 0; k < depth; k += l->transposed ? 1 : 8) {
            struct unit unit = {unit_address(l, i, k),
                                l->span / 16,
                                l->pair,
                                name,
                                name == 'A' ? i : k * l->pair,
                                name == 'A' ? k * l->pair : i,
                                pc};
            tile_judge(row, &unit, origin, l->transposed ? i : k, l->transposed ? k : i);
        }
}

/* The units of `count` rows (columns of B) from `first` on. */
static void judge_matrix(const struct thread *first_lane, const struct layout *l, uint32_t first, uint32_t count, char name,
                         const void *pc) {
    const uint32_t *row = simt_worker->async.shadow->scratch;
    unsigned reader = first_lane->linear / WARP_SIZE;
    judge_tile(row, l, name == 'A' ? WARPGROUP * ROWS : count, name, pc);
    for (uint32_t i = first; i < first + count; i += l->transposed ? 8 : 1)
        for (uint32_t k = 0; k < DEPTH; k += l->transposed ? 1 : 8) {
            uint32_t address = unit_address(l, i, k);
            if (address >= SHARED_BYTES_MAX || !shared_contains(simt_worker, address, UNIT))
                simt_fail(pc, cudaErrorIllegalAddress,
                          "wgmma: by its descriptor element (%u,%u) of %c lies at %#x of shared memory, in no array: are its "
                          "offsets (leading %u, stride %u bytes) in units of 16 bytes?%s",
                          name == 'A' ? i : k * l->pair, name == 'A' ? k * l->pair : i, name, address, l->leading, l->stride,
                          describe_promise(address).text);
            event_unit(address, 0, 0xffff);
            async_judge_read(row, address, reader, l->span / 16, name == 'A' ? PRODUCT_A : PRODUCT_B, pc);
        }
}

static void judge_descriptor(uint64_t descriptor, char name, const void *pc) {
    if ((descriptor & 0x3ff1c000c000c000u) != 0)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "wgmma: the descriptor of %c, %#lx, has bits outside of its fields: addresses and offsets are 14 bits in "
                  "units of 16 bytes",
                  name, (unsigned long)descriptor);
}

/* ---- the product ------------------------------------------------------------------------------------------------------------ */

static void gather(const struct layout *l, uint32_t first, uint32_t count, uint16_t sign, uint32_t (*elements)[MOST_DEPTH]) {
    for (uint32_t i = 0; i < count; i += l->transposed ? 8 : 1)
        for (uint32_t k = 0; k < DEPTH; k += l->transposed ? 1 : 8) {
            uint16_t unit[8];
            memcpy(unit, simt_worker->shared.start + unit_address(l, first + i, k), sizeof unit);
            for (uint32_t e = 0; e < 8; e++)
                elements[l->transposed ? i + e : i][l->transposed ? k : k + e] = (uint16_t)(unit[e] ^ sign);
        }
}

/* Of pairs of 8-bit numbers, each by itself. */
static void split_pairs(uint32_t (*elements)[MOST_DEPTH], uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (int k = DEPTH - 1; k >= 0; k--)
            elements[i][2 * k + 1] = elements[i][k] >> 8, elements[i][2 * k] = elements[i][k] & 0xff;
}

static void compute(const struct product *p, unsigned warp) {
    uint32_t A[ROWS][MOST_DEPTH], B[8][MOST_DEPTH];
    float *C[WARP_SIZE];
    struct layout layout_A = decode(p->A, p->types, p->transpose_A), layout_B = decode(p->B, p->types, p->transpose_B);
    uint16_t sign = is_fp8(p->types) ? 0x8080 : 0x8000, sign_A = p->negate_A ? sign : 0, sign_B = p->negate_B ? sign : 0;
    if (!p->from_registers) gather(&layout_A, warp % WARPGROUP * ROWS, ROWS, sign_A, A);
    for (int lane = 0; p->from_registers && lane < WARP_SIZE; lane++)
        for (int e = 0; e < 8; e++) {
            int row = lane / 4 + e / 2 % 2 * 8, k = lane % 4 * 2 + e % 2 + e / 4 * 8;
            A[row][k] = (uint16_t)(p->A_registers[lane][e / 2] >> e % 2 * 16 ^ sign_A);
        }
    if (is_fp8(p->types)) split_pairs(A, ROWS);
    struct mma_rows rows;
    mma_read_rows(p->types, A, &rows);
    for (int n = 0; n < p->N; n += 8) {
        gather(&layout_B, (uint32_t)n, 8, sign_B, B);
        if (is_fp8(p->types)) split_pairs(B, 8);
        for (int lane = 0; lane < WARP_SIZE; lane++) C[lane] = p->C[lane] + n / 2;
        mma_warp(p->types, &rows, B, p->add, C);
    }
}

static void issue(const struct simt_lanes *lanes) {
    struct thread *first = lanes->first_lane;
    const struct operand *operand = lanes->operand[0];
    struct product product = *operand->product;
    struct warp_products *products = products_of(first);
    if ((first->linear / WARP_SIZE / WARPGROUP + 1) * WARPGROUP * WARP_SIZE > simt_worker->launch->threads) {
        simt_refuse_lane(lanes, 0, "is of a warpgroup that is not whole: a block has 128 threads for each");
        return;
    }
    for (unsigned lane = 0; lane < WARP_SIZE; lane++) {
        const struct operand *other = lanes->operand[lane];
        product.C[lane] = other->C;
        memcpy(product.A_registers[lane], other->A.r, sizeof other->A.r);
        if (other->product->A != product.A || other->product->B != product.B || other->product->add != product.add) {
            simt_refuse_lane(lanes, lane, "names other matrices than lane 0: descriptors must be the same in all lanes");
            return;
        }
        accumulators_issue(&first[lane], other->C, (size_t)product.N / 2 * sizeof(float), products->committed, product.pc);
        meter_registers(&first[lane], other->C, (size_t)product.N / 2 * sizeof(float));
        if (other->A_array != NULL) meter_registers(&first[lane], other->A_array, sizeof other->A.r);
        if (other->A_array != NULL) registers_of_A_issue(&first[lane], other->A_array, products->committed, product.pc);
    }
    struct layout A = decode(product.A, product.types, product.transpose_A);
    struct layout B = decode(product.B, product.types, product.transpose_B);
    unsigned warp = first->linear / WARP_SIZE;
    async_row_of_warp(simt_worker, first);
    if (!product.from_registers) judge_matrix(first, &A, warp % WARPGROUP * ROWS, ROWS, 'A', product.pc);
    judge_matrix(first, &B, 0, (uint32_t)product.N, 'B', product.pc);
    /* A warpgroup reads 128 bytes of a matrix in each wavefront: 64 rows of A, N columns of B, of 32 bytes each. */
    event_product(warp % WARPGROUP == 0 ? (product.from_registers ? 0 : 16) + (unsigned)product.N / 4 : 0, first, product.pc);
    product.group = products->committed;
    products->issued++;
    products->pc = product.pc;
    products->what = (products->what ^ product.A ^ product.B * 3 ^ (uint64_t)product.N << 56) * 0x100000001b3u;
    if (async_is_early()) {
        compute(&product, warp);
        return;
    }
    APPEND(products->list, products->count, products->room) = product;
}

void simt_wgmma(enum simt_wgmma_types types, int N, float *C, int count, uint64_t A, struct simt_registers A_registers,
                const uint32_t *A_array, int from_registers, uint64_t B, int add, int scale_A, int scale_B, int transpose_A,
                int transpose_B, const char *file, int line) {
    static const struct simt_collective wgmma = {"wgmma.mma_async", issue, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
    const void *pc = __builtin_return_address(0);
    if (N < 8 || N > MOST_COLUMNS || N % 8 != 0 || (uintptr_t)C - simt_self->stack > STACK_BYTES - (size_t)N / 2 * sizeof *C)
        simt_fail(pc, cudaErrorIllegalAddress, "wgmma: its accumulators are no local variables: they must be registers");
    confined_registers(C, (size_t)N / 2 * sizeof *C, __builtin_frame_address(0));
    if ((unsigned)types > SIMT_E5M2_E5M2)
        simt_fail(pc, cudaErrorLaunchFailure, "wgmma: no types have the number %u", (unsigned)types);
    if (count != N / 2)
        simt_fail(pc, cudaErrorNotSupported, "wgmma: its accumulators must be one array, in order, for the simulated device");
    if ((scale_A != 1 && scale_A != -1) || (scale_B != 1 && scale_B != -1))
        simt_fail(pc, cudaErrorLaunchFailure, "wgmma: it multiplies A and B by 1 or by -1");
    if ((uintptr_t)A_array - simt_self->stack > STACK_BYTES - sizeof A_registers.r) A_array = NULL; /* loaded from memory */
    if (!from_registers) judge_descriptor(A, 'A', pc);
    judge_descriptor(B, 'B', pc);
    struct product product = {.A = A,
                              .B = B,
                              .N = N,
                              .types = types,
                              .from_registers = from_registers,
                              .add = add,
                              .pc = pc,
                              .negate_A = scale_A < 0,
                              .negate_B = scale_B < 0,
                              .transpose_A = transpose_A,
                              .transpose_B = transpose_B};
    struct operand operand = {&product, C, A_registers, A_array};
    collective_meet(&wgmma, 0xffffffffu, &operand, NULL, file, line, pc);
}

/* ---- groups ----------------------------------------------------------------------------------------------------------------- */

void simt_wgmma_fence(void) {
    async_work_of(simt_worker);
    accumulators_fence(simt_self);
}

static void commit(const struct simt_lanes *lanes) {
    const struct thread *first = lanes->first_lane;
    products_of(first)->committed++;
    simt_worker->async.shadow->groups[first->linear / WARP_SIZE]++;
}

void simt_wgmma_commit(const char *file, int line) {
    static const struct simt_collective instruction = {"wgmma.commit_group", commit, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
    collective_meet(&instruction, 0xffffffffu, NULL, NULL, file, line, __builtin_return_address(0));
}

static void finish(const struct simt_lanes *lanes) {
    struct thread *first = lanes->first_lane;
    unsigned warp = first->linear / WARP_SIZE, pending = *(const unsigned *)lanes->operand[0], kept = 0;
    struct warp_products *products = products_of(first);
    unsigned done = pending < products->committed ? products->committed - pending : 0;
    for (unsigned i = 0; i < products->count; i++) {
        if (products->list[i].group < done)
            compute(&products->list[i], warp);
        else
            products->list[kept++] = products->list[i];
    }
    products->count = kept;
    for (unsigned lane = 0; lane < WARP_SIZE; lane++) {
        async_learn_read(&first[lane], warp, products->committed - done);
        accumulators_done(&first[lane], done);
    }
}

void simt_wgmma_wait(unsigned groups, const char *file, int line) {
    static const struct simt_collective instruction = {"wgmma.wait_group", finish, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
    const struct warp_products *products = products_of(simt_self);
    for (unsigned i = 0; i < products->count; i++) /* their function may have returned */
        confined_registers(products->list[i].C[simt_lane()], (size_t)products->list[i].N / 2 * sizeof(float),
                           __builtin_frame_address(0));
    collective_meet(&instruction, 0xffffffffu, &groups, NULL, file, line, __builtin_return_address(0));
}

void wgmma_end_block(struct worker *worker) {
    const struct async_work *work = worker->async.work;
    if (work->products == NULL) return;
    for (unsigned first = 0; (first + WARPGROUP) * WARP_SIZE <= worker->launch->threads; first += WARPGROUP)
        for (unsigned w = first + 1; w < first + WARPGROUP; w++) {
            const struct warp_products *a = &work->products[first], *b = &work->products[w];
            uint64_t block = worker->shadow.shared_owner;
            unsigned issued_a = a->block == block ? a->issued : 0, issued_b = b->block == block ? b->issued : 0;
            if (issued_a == issued_b && (issued_a == 0 || a->what == b->what)) continue;
            simt_fail_at(
                &worker->threads[w * WARP_SIZE], NULL, cudaErrorLaunchFailure,
                "wgmma is an instruction of a warpgroup: of the warps %u to %u all must execute the same ones, but warp %u "
                "has executed %u and warp %u %u, or with other descriptors; the last is at %s",
                first, first + WARPGROUP - 1, first, issued_a, w, issued_b, source_line(issued_a > 0 ? a->pc : b->pc));
            return;
        }
}
