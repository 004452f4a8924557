/* How a step behaves on the device: in any order of blocks, on a stream, with less shared memory, at its limits, and beyond what
 * 32 bits count. */
#include "step_test.h"

#include "border.h"
#include "captured.h"
#include "../common/simt/include/simulated.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define step step_under_test

/* The blocks in 20 orders: never accused, always right. */
Test(step, any_order_of_blocks, .init = skip_without_device) {
    static const struct shape list[] = {
        {1, 2, 33, 65, 40, false, 1.0f}, {2, 1, 70, 33, 64, true, 1.0f}, {1, 1, 129, 128, 8, true, 1.0f}};
    if (simt_shuffle_blocks == NULL) cr_skip_test("a card's order cannot be chosen");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct problem problem = problem_for(step, &list[i]);
        if (step_refuses(step, &problem, all_passes()) != NULL) continue;
        struct run run = new_run(step, &problem, INPUT_RANDOM);
        for (unsigned seed = 1; seed <= (!is_last_rung ? 3 : takes_part() ? 3 : 20); seed++) {
            simt_shuffle_blocks(seed);
            forward(&run, step);
            if (step->backward != NULL) backward(&run, step, false);
            expect_right(&run, step, step->backward != NULL, "in another order of blocks");
            if (step->backward_deterministic == NULL) continue;
            backward(&run, step, true);
            expect_right(&run, step, true, "deterministic, in another order of blocks");
        }
        run_destroy(&run);
    }
}

/* A tensor, or a part of it as large as the run's, from the device. */
static void fetch(struct run *run, enum tensor tensor, const void *from) {
    size_t count = tensor_elements(&run->problem, tensor), bytes = count * element_bytes(&run->problem, tensor);
    uint16_t *packed = malloc(bytes);
    bool narrow = element_bytes(&run->problem, tensor) == sizeof *packed;
    cr_assert_eq(cudaMemcpy(narrow ? (void *)packed : run->host[tensor], from, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t i = 0; narrow && i < count; i++) run->host[tensor][i] = unpacked(packed[i], run->problem.dtype);
    free(packed);
}

/* On a stream of the caller's, not only on the default one. */
static void on_a_stream(const struct problem *problem) {
    struct run run = new_run(step, problem, INPUT_RANDOM);
    forward(&run, step);
    cudaStream_t stream = NULL;
    cr_assert_eq(cudaStreamCreate(&stream), cudaSuccess);
    attention_pass *passes[] = {step->forward, step->backward, step->backward_deterministic};
    for (int i = 0; i < 3; i++) {
        if (passes[i] == NULL) continue;
        if (i > 0) backward(&run, step, i == 2);
        enum tensor output = i == 0 ? TENSOR_O : TENSOR_dQ;
        size_t count = tensor_elements(&run.problem, output);
        double *before = keep(&run, output);
        void *pointer = i == 0 ? run.device.O : run.device.dQ;
        cr_assert_eq(cudaMemset(pointer, 0xff, count * element_bytes(&run.problem, output)), cudaSuccess);
        unsigned long uses = simt_default_stream_uses != NULL ? simt_default_stream_uses() : 0;
        unsigned long waits = simt_waits != NULL ? simt_waits() : 0;
        cr_assert_eq(passes[i](&run.problem, &run.device, run.workspace, stream), cudaSuccess);
        if (simt_default_stream_uses != NULL)
            cr_assert_eq(simt_default_stream_uses(), uses, "%s: the default stream was used", describe(problem));
        if (simt_waits != NULL) cr_assert_eq(simt_waits(), waits, "%s: the pass waits for its kernels", describe(problem));
        cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
        fetch(&run, output, pointer);
        cr_assert(check_values(run.host[output], before, count, 1e-6).ok);
        free(before);
    }
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
    run_destroy(&run);
}

static void with_memory(const char *KiB) {
    setenv("SIMT_SHARED_KIB", KiB, 1);
    skip_without_device();
}
/* The least of all cards that the step runs on. */
static void with_least_memory(void) {
    with_memory(step->compute_capability >= 90 ? "227" : step->compute_capability >= 80 ? "99" : "64");
}

/* One problem for each tiling and type. */
static void each_tiling(void (*test)(const struct problem *)) {
    for (int d = 32; d <= MAX_HEAD_DIM; d *= 2)
        for (enum dtype dtype = 0; dtype < DTYPES; dtype++) {
            struct problem problem = problem_for(step, &(struct shape){1, 2, 49, 33, d, true, 1.0f});
            problem.dtype = dtype;
            if (step_refuses(step, &problem, all_passes()) == NULL) test(&problem);
        }
}
Test(step, on_a_stream, .init = skip_without_device) { each_tiling(on_a_stream); }
Test(step, on_a_stream_with_least_memory, .init = with_least_memory) { each_tiling(on_a_stream); }

/* The small tilings. */
Test(step, least_shared_memory, .init = with_least_memory) {
    static const struct shape list[] = {
        {1, 2, 97, 131, 34, true, 0.5f}, {1, 1, 150, 187, 66, true}, {1, 1, 64, 64, 64, false},   {2, 1, 33, 70, 32, true},
        {1, 1, 70, 33, 128, true},       {1, 1, 130, 41, 59, false}, {1, 1, 131, 200, 96, false},
    };
    if (simt_shuffle_blocks == NULL) cr_skip_test("a card's shared memory cannot be chosen");
    for (size_t i = 0; i < sizeof list / sizeof *list; i += is_last_rung && !takes_part() ? 1 : 2) {
        struct problem problem = problem_for(step, &list[i]);
        if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, INPUT_RANDOM);
    }
}

/* The current device is the second of two, and has less shared memory than the first. */
static void on_second_device(void) {
    setenv("SIMT_DEVICES", "2", 1);
    with_least_memory();
    if (simt_run_part != NULL) cr_assert_eq(cudaSetDevice(1), cudaSuccess);
}

Test(step, current_device, .init = on_second_device) {
    if (simt_run_part == NULL) cr_skip_test("a card's shared memory cannot be chosen");
    for (int d = 32; d <= MAX_HEAD_DIM; d *= 2) {
        struct problem problem = problem_for(step, &(struct shape){1, 1, 33, 40, d, false, 1.0f});
        if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, INPUT_RANDOM);
    }
}

/* Many runs, the blocks in another order each time where the device allows it, and one bit pattern. A sum of three terms depends
 * on their order, so at least three tiles of keys or of rows. */
static void same_bits_in_any_order(const struct problem *problem, unsigned repeats) {
    struct run run = new_run(step, problem, INPUT_RANDOM);
    forward(&run, step);
    backward(&run, step, true);
    double *first[] = {keep(&run, TENSOR_dQ), keep(&run, TENSOR_dK), keep(&run, TENSOR_dV)};
    for (unsigned repeat = 1; repeat < repeats; repeat++) {
        if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(repeat);
        backward(&run, step, true);
        for (int i = 0; i < 3; i++)
            cr_assert(same_bits(&run, TENSOR_dQ + i, first[i]), "%s: %s of run %u", describe(problem), tensor_table[TENSOR_dQ + i].name,
                      repeat);
    }
    for (int i = 0; i < 3; i++) free(first[i]);
    run_destroy(&run);
}

Test(backward, one_bit_pattern, .init = needs_backward) {
    if (step->backward_deterministic == NULL) cr_skip_test("no deterministic pass");
    struct problem problem = problem_for(step, &(struct shape){1, 1, 260, 270, 32, true, 0.0f});
    same_bits_in_any_order(&problem, takes_part() ? 4 : 12);
    if (takes_part()) return;
    problem = problem_for(step, &(struct shape){1, 1, 4, 4200, 32, false, 0.0f});
    same_bits_in_any_order(&problem, 8);
}

/* What 16 bits round away hides most orders of a sum: many sums of many tiles. */
Test(backward, one_bit_pattern_of_16_bits, .init = needs_backward) {
    if (step->backward_deterministic == NULL) cr_skip_test("no deterministic pass");
    if (!(step->dtypes & 1 << FP16)) cr_skip_test("in fp32 only");
    LEAVE_TO_CI();
    for (int causal = 0; causal < 2; causal++) {
        struct problem problem = problem_for(step, &(struct shape){1, 1, 66, 1100, 128, causal, 0.0f});
        problem.dtype = FP16;
        same_bits_in_any_order(&problem, 4);
    }
}

/* Each tiling: every width of it, every type, every size of shared memory. */
static void one_bit_pattern_of_each_tiling(void) {
    static const struct shape list[] = {{1, 1, 40, 270, 0, true, 0.0f}, {1, 1, 270, 40, 0, false, 0.0f}};
    if (step->backward_deterministic == NULL) cr_skip_test("no deterministic pass");
    if (simt_shuffle_blocks == NULL) cr_skip_test("a card's shared memory cannot be chosen");
    LEAVE_TO_CI();
    for (int d = 32; d <= MAX_HEAD_DIM; d *= 2)
        for (enum dtype dtype = 0; dtype < DTYPES; dtype++)
            for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
                struct shape shape = list[i];
                shape.d = d;
                struct problem problem = problem_for(step, &shape);
                problem.dtype = dtype;
                if (step_refuses(step, &problem, all_passes()) == NULL) same_bits_in_any_order(&problem, 4);
            }
}
static void with_less_than_hopper(const char *KiB) {
    if (step->compute_capability >= 90) cr_skip_test("227 KiB are the least");
    with_memory(KiB);
}
static void with_99_KiB(void) { with_less_than_hopper("99"); }
static void with_163_KiB(void) { with_less_than_hopper("163"); }
Test(backward, one_bit_pattern_of_each_tiling, .init = needs_backward) { one_bit_pattern_of_each_tiling(); }
Test(backward, one_bit_pattern_with_163_KiB, .init = with_163_KiB) { one_bit_pattern_of_each_tiling(); }
Test(backward, one_bit_pattern_with_99_KiB, .init = with_99_KiB) { one_bit_pattern_of_each_tiling(); }
Test(backward, one_bit_pattern_with_least_memory, .init = with_least_memory) {
    if (step->compute_capability >= 80) cr_skip_test("99 KiB are the least");
    one_bit_pattern_of_each_tiling();
}

/* ---- limits, and what cannot be run whole: on the simulated device only ----------------------------------------------- */

/* What the launches of a pass say to a problem; no block runs, and no pointer is used. */
static cudaError_t judge(attention_pass *pass, const struct problem *problem) {
    simt_run_part(0, 0);
    cudaError_t error = pass(problem, &(struct tensors){0}, NULL, NULL);
    simt_run_part(1, 0);
    cudaGetLastError();
    return error;
}

static bool launches(const struct problem *problem) {
    attention_pass *passes[] = {step->forward, step->backward, step->backward_deterministic};
    for (int i = 0; i < 3; i++)
        if (passes[i] != NULL && judge(passes[i], problem) != cudaSuccess) return false;
    return true;
}

/* What a step takes it can launch; what it refuses for its length it could not, and it names the limit. */
static void take_up_to_limit(const char *what, struct problem *problem, int *size, int unit, int largest, bool is_length) {
    int taken = 0, refused = largest / unit + 1; /* in units */
    while (refused - taken > 1) {
        int middle = taken + (refused - taken) / 2;
        *size = middle * unit;
        if (step_refuses(step, problem, all_passes()) == NULL)
            taken = middle;
        else
            refused = middle;
    }
    *size = taken * unit;
    cr_expect(launches(problem), "%s: %s does not refuse it, but cannot launch it", describe(problem), step->name);
    *size = refused * unit;
    if (*size > largest) return;
    char number[16];
    snprintf(number, sizeof number, "%d", taken * unit);
    const char *reason = step_refuses(step, problem, all_passes());
    cr_expect_not_null(strstr(reason, number), "%s takes %s %s, and refuses more by \"%s\"", step->name, number, what,
                       reason);
    if (!is_length || taken == step->most_queries) return; /* few queries are what the step is for, and not what it can launch */
    capture_stderr();
    cr_expect_not(launches(problem), "%s could launch %s, which it refuses", step->name, describe(problem));
    expect_reports();
    end_capture();
}

static void keep_limits(void) {
    if (simt_run_part == NULL) cr_skip_test("a card runs what it launches");
    int unit = step->d_multiple > 1 ? step->d_multiple : 1;
    struct problem one = problem_for(step, &(struct shape){1, 1, 1, 1, unit, false, 1.0f}), problem = one;
    take_up_to_limit("queries", &problem, &problem.N_q, 1, 1 << 24, true);
    problem = one;
    take_up_to_limit("keys", &problem, &problem.N_kv, 1, 1 << 24, true);
    problem = one;
    take_up_to_limit("heads", &problem, &problem.heads, 1, MAX_BATCH_HEADS, true);
    problem = one;
    take_up_to_limit("columns", &problem, &problem.d, unit, MAX_HEAD_DIM, false);
    for (problem = one; problem.d <= MAX_HEAD_DIM; problem.d += unit)
        cr_expect(step_refuses(step, &problem, all_passes()) != NULL || launches(&problem), "d %d", problem.d);
}
Test(step, limits, .init = skip_without_device) { keep_limits(); }
Test(step, limits_with_least_memory, .init = with_least_memory) { keep_limits(); }
Test(step, limits_with_99_KiB, .init = with_99_KiB) { keep_limits(); }
Test(step, limits_with_163_KiB, .init = with_163_KiB) { keep_limits(); }

/* The workspace of many heads is as many times that of one, and that of twice the length at least twice as large, but for padding
 * of 1 %: also beyond what 32 bits hold. */
Test(step, workspace_of_large_problems, .init = skip_without_device) {
    struct problem problem = problem_for(step, &(struct shape){1, 1, 50000, 50000, MAX_HEAD_DIM, false, 1.0f});
    if (step->most_queries > 0) cr_skip_test("a step for few queries splits its keys the more, the fewer heads there are");
    if (step_refuses(step, &problem, all_passes()) != NULL) problem.d = 64;
    size_t before = workspace_bytes_of(step, &problem);
    for (; problem.N_q <= 800000 && step_refuses(step, &problem, all_passes()) == NULL; problem.N_kv = problem.N_q *= 2) {
        size_t one_head = workspace_bytes_of(step, &problem);
        if (problem.N_q > 50000) cr_expect_geq(one_head, before / 100 * 199, "%s: %zu bytes", describe(&problem), one_head);
        before = one_head;
        for (problem.batch = 16; problem.batch <= 4096; problem.batch *= 256) {
            size_t bytes = workspace_bytes_of(step, &problem), least = (size_t)problem.batch * (one_head / 100 * 99);
            if (step_refuses(step, &problem, all_passes()) == NULL)
                cr_expect_geq(bytes, least, "%s: %zu bytes, and %zu for one head", describe(&problem), bytes, one_head);
        }
        problem.batch = 1;
    }
}

/* Each call of a pass fails once, and the pass says so. */
static void expect_each_error(const struct problem *problem) {
    attention_pass *passes[] = {step->forward, step->backward, step->backward_deterministic};
    struct problem empty = *problem;
    empty.batch = 0; /* a grid of 0 blocks: an error on a card, too */
    for (int i = 0; i < 3; i++) {
        if (passes[i] == NULL) continue;
        capture_stderr();
        cr_expect_neq(passes[i](&empty, &(struct tensors){0}, NULL, NULL), cudaSuccess, "%s: a grid of 0 blocks", describe(problem));
        expect_reports();
        end_capture();
        cudaGetLastError();
        for (unsigned number = 1; simt_fail_call != NULL; number++) {
            simt_fail_call(number);
            cudaError_t error = judge(passes[i], problem);
            if (simt_fail_call(0) > 0) {
                cr_assert_gt(number, 1, "the pass makes no call");
                break;
            }
            cr_expect_neq(error, cudaSuccess, "%s, %s: its call number %u failed, and the pass does not say so", step->name,
                          describe(problem), number);
        }
    }
}
Test(step, launch_that_fails, .init = skip_without_device) { each_tiling(expect_each_error); }
Test(step, launch_that_fails_with_least_memory, .init = with_least_memory) { each_tiling(expect_each_error); }

/* A problem too large to run whole: one part of its blocks runs, which computes some rows of its last head. The oracle is asked
 * about these rows alone. All other memory is reserved and never touched. */
struct part {
    struct problem problem;
    unsigned parts, part;
    bool first; /* the head's first rows, else its last */
    struct run rows;
    struct tensors tensors;
    char *memory[TENSOR_COUNT]; /* of the rows */
    size_t bytes[TENSOR_COUNT]; /* of the rows */
    void *workspace;
};

static char *start_of(const struct part *part, enum tensor tensor) {
    return *(char **)(void *)((char *)(uintptr_t)&part->tensors + tensor_table[tensor].offset);
}

/* The rows' values of a tensor. A small problem has them in all its rows: what is computed there is not 0. */
enum { SMALL = 1 << 19 };
static void place_rows(const struct part *part, enum tensor tensor, const void *from) {
    size_t bytes = part->bytes[tensor], all = tensor_elements(&part->problem, tensor) * element_bytes(&part->problem, tensor);
    cr_assert_eq(cudaMemcpy(part->memory[tensor], from, bytes, cudaMemcpyDeviceToDevice), cudaSuccess);
    for (size_t at = 0; at + bytes <= all && all <= SMALL; at += bytes)
        cr_assert_eq(cudaMemcpy(start_of(part, tensor) + at, from, bytes, cudaMemcpyDeviceToDevice), cudaSuccess);
}

/* NaN in reserved memory, so that what a pass adds to but has not zeroed shows. All pieces of it are pages of one file, of which a
 * kernel gets a copy when it writes: they take no memory. A process may have 65530 pieces. */
static void fill_with_nan(char *memory, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), piece = (bytes / 16384 / page + 256) * page;
    int file = memfd_create("NaN", 0);
    cr_assert(file >= 0 && ftruncate(file, (off_t)piece) == 0);
    void *filled = mmap(NULL, piece, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    cr_assert_neq(filled, MAP_FAILED);
    memset(filled, 0xff, piece);
    munmap(filled, piece);
    for (size_t at = 0; at < bytes; at += piece) {
        size_t rest = (bytes - at + page - 1) / page * page;
        void *mapped = mmap(memory + at, rest < piece ? rest : piece, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0);
        cr_assert_eq(mapped, memory + at);
    }
    close(file);
}

/* FP8: the rows' scales, where their rows lie, or for all rows of a small problem. */
static bool reserve_scales(struct part *part, const struct problem *rows) {
    const float **to[] = {&part->tensors.Q_scales, &part->tensors.K_scales, &part->tensors.V_scales};
    const float *from[] = {part->rows.device.Q_scales, part->rows.device.K_scales, part->rows.device.V_scales};
    for (enum tensor tensor = TENSOR_Q; tensor <= TENSOR_V && rows->dtype == FP8; tensor++) {
        if (from[tensor] == NULL) continue; /* the step makes them itself */
        size_t count = scale_count(rows, tensor), all = scale_count(&part->problem, tensor);
        float *memory = simt_reserve(all * sizeof *memory);
        if (memory == NULL) return false;
        *to[tensor] = memory;
        size_t heads = (size_t)part->problem.batch * tensor_heads(&part->problem, tensor);
        size_t at = part->first ? all / heads * (heads - 1) : all - count;
        bool small = all <= SMALL / SCALE_ROWS;
        for (at = small ? at % count : at; at + count <= all; at += small ? count : all)
            cr_assert_eq(cudaMemcpy(memory + at, from[tensor], count * sizeof *memory, cudaMemcpyDeviceToDevice), cudaSuccess);
    }
    return true;
}

/* False where the address space is too small. cudaDeviceReset() releases all. */
static bool reserve(struct part *part, const struct problem *rows) {
    const struct problem *problem = &part->problem;
    part->rows = new_run(step, rows, INPUT_RANDOM);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (is_backward(tensor) && step->backward == NULL) continue;
        size_t bytes = tensor_elements(rows, tensor) * element_bytes(rows, tensor);
        size_t all = tensor_elements(problem, tensor) * element_bytes(problem, tensor);
        char *memory = simt_reserve(all);
        if (memory == NULL) return false;
        *(void **)(void *)((char *)&part->tensors + tensor_table[tensor].offset) = memory;
        size_t heads = (size_t)problem->batch * (size_t)problem->heads;
        part->memory[tensor] = memory + (part->first ? all / heads * (heads - 1) : all - bytes);
        part->bytes[tensor] = bytes;
        const void *from = *(void **)(void *)((char *)&part->rows.device + tensor_table[tensor].offset);
        if (is_output(tensor)) /* NaN, so that what is added to an element that was not zeroed shows */
            cr_assert_eq(cudaMemset(part->memory[tensor], 0xff, bytes), cudaSuccess);
        else
            place_rows(part, tensor, from);
    }
    if (!reserve_scales(part, rows)) return false;
    size_t workspace_bytes = workspace_bytes_of(step, problem);
    part->workspace = workspace_bytes > 0 ? simt_reserve(workspace_bytes) : NULL;
    if (part->workspace != NULL) fill_with_nan(part->workspace, workspace_bytes);
    return workspace_bytes == 0 || part->workspace != NULL;
}

/* Run the part and fetch what it computed of the rows. A backward pass reads their O and L. */
static cudaError_t run_part(struct part *part, attention_pass *pass, bool backward) {
    if (backward) {
        forward(&part->rows, step);
        place_rows(part, TENSOR_O, part->rows.device.O);
        place_rows(part, TENSOR_L, part->rows.device.L);
    }
    simt_run_part(part->parts, part->part);
    cudaError_t error = pass(&part->problem, &part->tensors, part->workspace, NULL);
    simt_run_part(1, 0);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++)
        if (is_output(tensor) && is_backward(tensor) == backward) fetch(&part->rows, tensor, part->memory[tensor]);
    return error;
}

static bool part_is_right(const struct part *part, bool backward) {
    struct verdict verdict = check_run(&part->rows, backward, 1e15);
    bool ok = verdict.ok;
    free_verdict(&verdict);
    return ok;
}

/* Zeros, as all memory that was reserved? */
static bool is_zero(const char *memory, size_t bytes) {
    char *there = malloc(bytes);
    cr_assert_eq(cudaMemcpy(there, memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    bool zeros = there[0] == 0 && memcmp(there, there + 1, bytes - 1) == 0;
    free(there);
    return zeros;
}

static bool leaves_first_head(const struct part *part, bool backward) {
    size_t heads = (size_t)part->problem.batch * (size_t)part->problem.heads;
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        size_t all = tensor_elements(&part->problem, tensor) * element_bytes(&part->problem, tensor);
        if (is_output(tensor) && is_backward(tensor) == backward && !is_zero(start_of(part, tensor), all / heads)) return false;
    }
    return true;
}

/* The last `rows` queries (0: all) of the last head, computed by the last of `parts` parts of the blocks. Which block computes
 * what is the step's choice: it may draw its tiles from a counter. So `few`, a small problem, is asked first whether its last
 * part computes these rows right and leaves the first head alone, and if it does not, whether the first part does. */
static void compare_last(const struct problem *problem, unsigned parts, const struct problem *few, unsigned few_parts, int rows,
                         const char *what) {
    cr_assert_null(step_refuses(step, problem, all_passes()));
    struct problem last = *problem, few_last = *few;
    last.heads = few_last.heads = 1;
    if (rows > 0) last.N_q = few_last.N_q = rows;
    attention_pass *passes[] = {forward_pass(step), step->backward, step->backward_deterministic};
    int left_out = 0;
    for (int i = 0; i < 3; i++) {
        bool found = passes[i] == NULL;
        for (int in_first = 0; in_first < 2 && !found; in_first++) {
            struct part small = {.problem = *few, .parts = few_parts, .part = in_first != 0 ? 0 : few_parts - 1};
            cr_assert(reserve(&small, &few_last));
            found = run_part(&small, passes[i], i > 0) == cudaSuccess && part_is_right(&small, i > 0) &&
                    leaves_first_head(&small, i > 0);
            cudaDeviceReset();
            if (!found) continue;
            struct part part = {.problem = *problem, .parts = parts, .part = in_first != 0 ? 0 : parts - 1};
            cr_assert(reserve(&part, &last));
            cr_assert_eq(run_part(&part, passes[i], i > 0), cudaSuccess);
            expect_right(&part.rows, step, i > 0, what);
            cudaDeviceReset();
        }
        left_out += !found;
    }
    if (left_out > 0) cr_skip_test("no part of the blocks computes the last head and nothing else");
}

/* Products of sizes past 2^32, where both an int and an unsigned wrap round. An int that is wrong from 2^31 on is wrong there, too. */
#define PAST (1ll << 32)

/* Elements of each tensor, in many heads: of Q, O and dQ by many queries on few keys, and of the others by many keys, which takes a
 * tenth of the time of both at once. Of last rungs at d 64 too, which may have a kernel of its own. */
Test(step, elements_past_32_bits, .init = skip_without_device) {
    if (simt_reserve == NULL) cr_skip_test("a card runs all blocks");
    LEAVE_TO_CI();
    enum { FEW = 20 };
    for (int d = MAX_HEAD_DIM; d >= (is_last_rung ? 64 : MAX_HEAD_DIM); d /= 2)
        for (int many_keys = step->most_queries > 0; many_keys < 2; many_keys++) {
            struct problem problem = problem_for(step, &(struct shape){1, MAX_BATCH_HEADS, 1, 1, d, many_keys != 0, 1.0f});
            while (problem.d > 16 && step_refuses(step, &problem, all_passes()) != NULL) problem.d /= 2;
            /* More than one tile per head. A cluster of chapter 12 takes up to 384 rows; of the other kernels this many take minutes. */
            int most = (int)(PAST / MAX_BATCH_HEADS / problem.d) + 1;
            int few_most = step->compute_capability == 90 && step->forward != NULL ? 520 : 160;
            struct problem few = problem;
            problem.N_q = many_keys ? FEW : most, problem.N_kv = many_keys ? most : FEW;
            few.heads = 4, few.N_q = many_keys ? FEW : few_most, few.N_kv = many_keys ? few_most : FEW;
            lower_queries(step, &problem);
            lower_queries(step, &few);
            compare_last(&problem, MAX_BATCH_HEADS, &few, 4, 0, "past element 2^32");
        }
}

/* Rows, and so elements of L. Under a mask three of them have keys, and the others an L of -infinity: all with keys would take a backward
 * pass minutes. Hopper's forward passes order their blocks by the mask: the last head would not be one part of them. */
Test(step, rows_past_32_bits, .init = skip_without_device) {
    if (simt_reserve == NULL) cr_skip_test("a card runs all blocks");
    LEAVE_TO_CI();
    int rows = (int)(PAST / MAX_BATCH_HEADS) + 2;
    bool causal = step->compute_capability != 90 || step->forward == NULL;
    struct problem problem = problem_for(step, &(struct shape){1, MAX_BATCH_HEADS, rows, 3, 1, causal, 1.0f});
    if (problem.N_q != rows) cr_skip_test("the step takes fewer queries");
    struct problem few = problem;
    few.heads = 4, few.N_q = 1000;
    compare_last(&problem, MAX_BATCH_HEADS, &few, 4, 0, "past row 2^32");
}

/* Pairs of a query and a key in one head, for steps that keep something of each. Only the last query is compared. */
Test(forward, pairs_past_32_bits, .init = needs_forward) {
    if (simt_reserve == NULL) cr_skip_test("a card runs all blocks");
    struct problem problem = problem_for(step, &(struct shape){1, 2, 1 << 20, (int)(PAST >> 20) + 1, 1, false, 1.0f});
    while (problem.N_q > 1 << 17 && step_refuses(step, &problem, all_passes()) != NULL) problem.N_q /= 2, problem.N_kv *= 2;
    if (workspace_bytes_of(step, &problem) < 4 * (uint64_t)PAST) cr_skip_test("the step keeps nothing of each pair");
    struct problem few = problem;
    few.N_q = 256, few.N_kv = 100;
    compare_last(&problem, (unsigned)problem.N_q / 64, &few, 4, 1, "past pair 2^32");
}

/* Two heads of 2^31 elements each. Under the mask the first queries see few keys and the last keys are seen by few queries:
 * where a block's work is a tile of these, one part of the blocks is enough. */
enum { PART_ROWS = 128 };
static cudaError_t compute_part(struct part *part, bool head_begins_it, attention_pass *pass, bool backward) {
    struct problem rows = part->problem;
    rows.heads = 1, rows.N_q = rows.N_kv = PART_ROWS;
    part->parts = 2 * (unsigned)(part->problem.N_q / PART_ROWS);
    part->part = head_begins_it ? part->parts / 2 : part->parts - 1;
    return reserve(part, &rows) ? run_part(part, pass, backward) : cudaErrorMemoryAllocation;
}

/* The head's rows at its other end. */
static bool leaves_other_rows(const struct part *part, bool backward) {
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || is_backward(tensor) != backward) continue;
        size_t bytes = part->bytes[tensor], rest = bytes / PART_ROWS * (size_t)part->problem.N_q - bytes;
        if (!is_zero(part->memory[tensor] + (part->first ? rest : -rest), bytes)) return false;
    }
    return true;
}

static void long_heads(attention_pass *pass, bool backward) {
    if (simt_reserve == NULL) cr_skip_test("a card runs all blocks");
    struct problem problem = problem_for(step, &(struct shape){1, 2, 1 << 24, 1 << 24, MAX_HEAD_DIM, true, 1.0f});
    if (step_refuses(step, &problem, all_passes()) != NULL || problem.N_q < 1 << 24) cr_skip_test("refused");
    setenv("SIMT_WATCHDOG_SECONDS", "2", 1); /* a step that visits what the mask hides would take hours */
    for (int ascending = 1; ascending >= 0; ascending--) { /* tiles of a head in the order of the blocks, or in the other */
        bool head_begins_it = backward ? !ascending : ascending;
        struct part few = {.problem = problem, .first = !backward};
        few.problem.N_q = few.problem.N_kv = 8 * PART_ROWS; /* more tiles than multiprocessors: a block that takes several is no part */
        bool alone = compute_part(&few, head_begins_it, pass, backward) == cudaSuccess && part_is_right(&few, backward) &&
                     leaves_other_rows(&few, backward);
        cudaDeviceReset();
        if (!alone) continue;
        struct part part = {.problem = problem, .first = !backward};
        cudaError_t error = compute_part(&part, head_begins_it, pass, backward);
        if (error == cudaErrorLaunchTimeout) cr_skip_test("the step visits what the mask hides");
        cr_assert_eq(error, cudaSuccess, "%s: %s", describe(&problem), cudaGetErrorName(error));
        cr_expect(part_is_right(&part, backward), "%s: not right in head 1 of %s", step->name, describe(&problem));
        cudaDeviceReset();
        return;
    }
    cr_skip_test("no part of the blocks computes just a few rows");
}
Test(forward, heads_past_32_bits, .init = needs_forward) { long_heads(step->forward, false); }
Test(backward, heads_past_32_bits, .init = needs_backward) { long_heads(step->backward, true); }
