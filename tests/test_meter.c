/* The meter of the simulated device against counts that are known exactly: from the rules of a card's memory system,
 * and from what an H100 was measured to do. Needs the simulated device; a card has its own counters. */
#include "meter_kernels.h"

#include "captured.h"
#include "run.h"
#include "simulated.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need_simulated_device(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 || !device_is_simulated() || simt_meter_start == NULL)
        cr_skip_test("needs the simulated device");
}

TestSuite(meter, .init = need_simulated_device, .timeout = 60);

/* ---- what was counted -------------------------------------------------------------------------------------------- */

static cJSON *counted; /* the JSON of the last measurement */

static void start(unsigned every) {
    cJSON_Delete(counted);
    counted = NULL;
    simt_meter_start(every);
}

/* Ends the measurement and gives its only kernel. */
static const cJSON *finish(void) {
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", simt_last_report());
    simt_meter_stop();
    char *text = simt_meter_json();
    counted = cJSON_Parse(text);
    cr_assert_not_null(counted, "no JSON: %s", text);
    free(text);
    cr_assert_eq(cJSON_GetArraySize(counted), 1);
    return cJSON_GetArrayItem(counted, 0);
}

static double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(object, name);
    cr_assert(cJSON_IsNumber(item), "no number \"%s\"", name);
    return item->valuedouble;
}

static void expect_number(const cJSON *object, const char *name, double expected, const char *what) {
    cr_assert_eq(number(object, name), expected, "%s: %s is %.0f instead of %.0f", what, name, number(object, name),
                 expected);
}

static void expect_total(const cJSON *kernel, const char *name, double expected, const char *what) {
    expect_number(cJSON_GetObjectItem(kernel, "totals"), name, expected, what);
}

/* The number of the line of meter_kernels.cu that ends in "// mark". */
static int line_of(const char *mark) {
    FILE *file = fopen(METER_SOURCE, "r");
    cr_assert_not_null(file, "cannot read %s", METER_SOURCE);
    char text[300], wanted[60];
    snprintf(wanted, sizeof wanted, "// %s\n", mark);
    int number = 0, found = 0;
    while (fgets(text, sizeof text, file) != NULL && found == 0) {
        number++;
        if (strstr(text, wanted) != NULL) found = number;
    }
    fclose(file);
    cr_assert_gt(found, 0, "no line is marked \"%s\"", mark);
    return found;
}

/* What the JSON says of the accesses at a line: the only one of its kind there. */
static const cJSON *at_line(const cJSON *kernel, const char *mark, const char *space, const char *access) {
    const cJSON *line, *found = NULL;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(kernel, "lines")) {
        if ((int)number(line, "line") != line_of(mark)) continue;
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(line, "space")), space) != 0) continue;
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(line, "access")), access) != 0) continue;
        cr_assert_null(found, "two %s %ss at \"%s\"", space, access, mark);
        cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(line, "file")), "tests/meter_kernels.cu");
        found = line;
    }
    cr_assert_not_null(found, "no %s %s at \"%s\"", space, access, mark);
    return found;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static void *on_device(const void *values, size_t bytes) {
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemcpy(memory, values, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return memory;
}

static void *zeros_on_device(size_t bytes) {
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemset(memory, 0, bytes), cudaSuccess);
    return memory;
}

/* ---- the transpose ----------------------------------------------------------------------------------------------- */

enum { ELEMENTS = MATRIX * MATRIX, REQUESTS = ELEMENTS / 32 };

static const cJSON *transpose(enum transpose kind) {
    float *values = malloc(ELEMENTS * sizeof *values), *got = malloc(ELEMENTS * sizeof *got);
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)i;
    float *in = on_device(values, ELEMENTS * sizeof *in), *out = zeros_on_device(ELEMENTS * sizeof *out);
    start(1);
    run_transpose_of(kind, in, out);
    const cJSON *kernel = finish();
    cr_assert_eq(cudaMemcpy(got, out, ELEMENTS * sizeof *got, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < ELEMENTS; i++) cr_assert_eq(got[i], (float)(i % MATRIX * MATRIX + i / MATRIX));
    free(values);
    free(got);
    expect_total(kernel, "global_load_requests", REQUESTS, "transpose");
    expect_total(kernel, "global_load_sectors", 4.0 * REQUESTS, "transpose");
    expect_total(kernel, "global_store_requests", REQUESTS, "transpose");
    expect_number(kernel, "different_bytes_read", 4.0 * ELEMENTS, "transpose");
    expect_number(kernel, "different_bytes_written", 4.0 * ELEMENTS, "transpose");
    return kernel;
}

Test(meter, naive_transpose) {
    const cJSON *kernel = transpose(TRANSPOSE_NAIVE);
    expect_total(kernel, "global_store_sectors", 32.0 * REQUESTS, "naive");
    expect_total(kernel, "shared_load_requests", 0, "naive");
    const cJSON *load = at_line(kernel, "naive load", "global", "load");
    const cJSON *store = at_line(kernel, "naive store", "global", "store");
    expect_number(load, "sectors", 4.0 * number(load, "requests"), "load");
    expect_number(load, "bytes", 4.0 * ELEMENTS, "load");
    expect_number(store, "sectors", 32.0 * number(store, "requests"), "store");
    expect_number(store, "partial_requests", 0, "store");
}

Test(meter, transpose_by_a_tile_of_32_columns) {
    const cJSON *kernel = transpose(TRANSPOSE_TILE_32);
    expect_total(kernel, "global_store_sectors", 4.0 * REQUESTS, "tile[32][32]");
    expect_total(kernel, "shared_load_conflicts", 253952, "tile[32][32]");
    expect_total(kernel, "shared_store_conflicts", 0, "tile[32][32]");
    const cJSON *load = at_line(kernel, "tile load", "shared", "load");
    expect_number(load, "requests", REQUESTS, "tile load");
    expect_number(load, "wavefronts", 32.0 * REQUESTS, "tile load");
    expect_number(load, "conflicts", 253952, "tile load");
    expect_number(at_line(kernel, "tile store", "shared", "store"), "wavefronts", REQUESTS, "tile store");
}

Test(meter, transpose_by_a_tile_of_33_columns) {
    const cJSON *kernel = transpose(TRANSPOSE_TILE_33);
    expect_total(kernel, "global_store_sectors", 4.0 * REQUESTS, "tile[32][33]");
    expect_total(kernel, "shared_load_conflicts", 0, "tile[32][33]");
    expect_total(kernel, "shared_store_conflicts", 0, "tile[32][33]");
    expect_total(kernel, "shared_load_wavefronts", REQUESTS, "tile[32][33]");
    expect_number(kernel, "shared_bytes_per_block", 4 * 32 * 33, "tile[32][33]");
    expect_number(kernel, "barriers", number(kernel, "blocks"), "one per block");
}

Test(meter, transpose_without_its_barrier_is_a_race) {
    float *in = zeros_on_device(ELEMENTS * sizeof *in), *out = zeros_on_device(ELEMENTS * sizeof *out);
    char store[60], load[60];
    snprintf(store, sizeof store, "tests/meter_kernels.cu:%d", line_of("tile store"));
    snprintf(load, sizeof load, "tests/meter_kernels.cu:%d", line_of("tile load"));
    for (int metered = 0; metered < 2; metered++) {
        if (metered) start(1);
        capture_stderr();
        run_transpose_of(TRANSPOSE_WITHOUT_BARRIER, in, out);
        cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
        cr_assert_not_null(strstr(simt_last_report(), "race on tile["), "%s", simt_last_report());
        cr_assert_not_null(strstr(simt_last_report(), store), "%s", simt_last_report());
        cr_assert_not_null(strstr(simt_last_report(), load), "%s", simt_last_report());
        expect_reports();
        end_capture();
        cr_assert_eq(cudaDeviceReset(), cudaSuccess);
        in = zeros_on_device(ELEMENTS * sizeof *in);
        out = zeros_on_device(ELEMENTS * sizeof *out);
    }
    simt_meter_stop();
}

/* ---- banks ------------------------------------------------------------------------------------------------------- */

Test(meter, bank_conflicts_of_strides) {
    static const struct {
        int stride, ways;
    } cases[] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}, {3, 1}, {6, 2}, {12, 4}, {31, 1}, {0, 1}};
    int *out = zeros_on_device(32 * sizeof *out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int stride = cases[i].stride, ways = cases[i].ways;
        char what[40];
        snprintf(what, sizeof what, "stride %d", stride);
        if (stride == 0) continue; /* all lanes would write one word: a race */
        start(1);
        run_shared_stride(out, stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "shared_store_requests", 1, what);
        expect_total(kernel, "shared_store_wavefronts", ways, what);
        expect_total(kernel, "shared_store_conflicts", ways - 1, what);
        expect_total(kernel, "shared_load_requests", 1, what);
        expect_total(kernel, "shared_load_wavefronts", ways, what);
        expect_total(kernel, "shared_load_conflicts", ways - 1, what);
    }
}

/* `pick` gives the float (or float2, or float4) that each lane reads. */
static void expect_wavefronts(const int *pick, int floats, int wavefronts, int conflicts, const char *what) {
    int *device_pick = on_device(pick, 32 * sizeof *pick);
    float *out = zeros_on_device(32 * sizeof *out);
    start(1);
    switch (floats) {
    case 1: run_shared_pick(device_pick, (int *)out); break;
    case 2: run_shared_float2(device_pick, out); break;
    case 4: run_shared_float4(device_pick, out); break;
    }
    const cJSON *kernel = finish();
    expect_total(kernel, "shared_load_requests", 1, what);
    expect_total(kernel, "shared_load_wavefronts", wavefronts, what);
    if (conflicts >= 0) expect_total(kernel, "shared_load_conflicts", conflicts, what);
    expect_total(kernel, "shared_store_conflicts", 0, what);
    cr_assert_eq(cudaFree(device_pick), cudaSuccess);
    cr_assert_eq(cudaFree(out), cudaSuccess);
}

#define PICK(word)                                                                                                     \
    int pick[32];                                                                                                      \
    for (int l = 0; l < 32; l++) pick[l] = (word)

Test(meter, broadcasts_cost_nothing) {
    {
        PICK(17 + 0 * l);
        expect_wavefronts(pick, 1, 1, 0, "one word for all");
    }
    {
        PICK(l / 8);
        expect_wavefronts(pick, 1, 1, 0, "four words, eight lanes each");
    }
    {
        PICK(l / 16 * 32);
        expect_wavefronts(pick, 1, 2, 1, "two words of one bank, sixteen lanes each");
    }
    {
        PICK(31 - l);
        expect_wavefronts(pick, 1, 1, 0, "backwards");
    }
    {
        PICK((l * 11 + 5) % 32 + l % 2 * 64);
        expect_wavefronts(pick, 1, 1, 0, "every bank once, in any order and rows");
    }
    {
        PICK(l % 4 * 32);
        expect_wavefronts(pick, 1, 4, 3, "four words of one bank");
    }
}

Test(meter, eight_byte_accesses_go_by_half_warps) {
    static const struct {
        int stride, wavefronts, conflicts;
    } cases[] = {{1, 2, 0}, {2, 4, 2}, {4, 8, 6}, {3, 2, 0}};
    float *out = zeros_on_device(32 * sizeof *out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[40];
        snprintf(what, sizeof what, "float2, stride %d", cases[i].stride);
        start(1);
        run_shared_wide(out, cases[i].stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "shared_load_wavefronts", cases[i].wavefronts, what);
        expect_total(kernel, "shared_load_conflicts", cases[i].conflicts, what);
        expect_total(kernel, "shared_store_wavefronts", cases[i].wavefronts, what);
        expect_total(kernel, "shared_store_conflicts", cases[i].conflicts, what);
    }
}

/* Measured on an H100: a warp's 8-byte loads take 2 wavefronts at least, or 1 where every lane agrees with its neighbour
 * or with the lane two further. */
#define EIGHT_BYTES(pair, wavefronts, conflicts)                                                                       \
    do {                                                                                                               \
        PICK(pair);                                                                                                    \
        expect_wavefronts(pick, 2, wavefronts, conflicts, "float2 number " #pair);                                     \
    } while (0)

Test(meter, eight_byte_loads_as_measured) {
    EIGHT_BYTES(l, 2, 0);
    EIGHT_BYTES(0 * l, 1, 0);
    EIGHT_BYTES(l >> 1, 1, 0);
    EIGHT_BYTES(l & 1, 1, 0);
    EIGHT_BYTES(l & 15, 2, 0);
    EIGHT_BYTES(2 * l, 4, 2);
}

/* No pair rule for stores: 8 bytes take 2 wavefronts and 16 bytes 4, measured as well. */
Test(meter, wide_stores_as_measured) {
    PICK(0 * l);
    int *device_pick = on_device(pick, sizeof pick);
    float *out = zeros_on_device(32 * sizeof *out);
    start(1);
    run_shared_float2(device_pick, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "shared_store_requests", 64 / 32, "float2");
    expect_total(kernel, "shared_store_wavefronts", 2 * 64 / 32, "float2");
    start(1);
    run_shared_float4(device_pick, out);
    kernel = finish();
    expect_total(kernel, "shared_store_requests", 18, "float4");
    expect_total(kernel, "shared_store_wavefronts", 4 * 560 / 32, "float4"); /* the last request is half a warp's */
}

/* Measured on an H100: 4 wavefronts, or 2 where every lane agrees with its neighbour or with the lane two further. */
#define SIXTEEN_BYTES(row, stride, wavefronts, conflicts)                                                              \
    do {                                                                                                               \
        PICK((row) * (stride));                                                                                        \
        expect_wavefronts(pick, 4, wavefronts, conflicts, "row " #row " of " #stride " float4");                       \
    } while (0)

Test(meter, sixteen_byte_loads_as_measured) {
    SIXTEEN_BYTES(l, 1, 4, 0);
    SIXTEEN_BYTES(l, 17, 4, 0);
    SIXTEEN_BYTES(0 * l, 17, 2, 0);
    SIXTEEN_BYTES(l >> 1, 17, 2, 0);
    SIXTEEN_BYTES(l >> 2, 17, 2, 0);
    SIXTEEN_BYTES(l >> 3, 17, 2, 0);
    SIXTEEN_BYTES(l >> 4, 17, 2, 0);
    SIXTEEN_BYTES(l & 1, 17, 2, 0);
    SIXTEEN_BYTES(l / 8, 17, 2, 0);
    SIXTEEN_BYTES(l / 4, 17, 2, 0);
    SIXTEEN_BYTES(l / 2, 17, 2, 0);
    SIXTEEN_BYTES(l / 8, 16, 4, 2);
    SIXTEEN_BYTES((l >> 1) & 7, 17, 2, 0);
    SIXTEEN_BYTES((l & 1) | (l >> 4) << 1, 17, 2, 0);
    SIXTEEN_BYTES((l & 1) | (l >> 2 & 3) << 1, 17, 2, 0);
    SIXTEEN_BYTES((l & 1) | (l >> 3 & 3) << 1, 17, 2, 0);
    SIXTEEN_BYTES(l & 15, 17, 4, 0);
    SIXTEEN_BYTES(l & 7, 17, 4, 0);
    SIXTEEN_BYTES(l & 3, 17, 4, 0);
    SIXTEEN_BYTES(l % 16, 17, 4, 0);
    SIXTEEN_BYTES(l % 8, 17, 4, 0);
    SIXTEEN_BYTES(l % 4, 17, 4, 0);
    SIXTEEN_BYTES(l % 8, 16, 32, 28);
}

/* The same lanes, float4 side by side instead of in rows. */
Test(meter, sixteen_byte_loads_side_by_side) {
    SIXTEEN_BYTES(l >> 1, 1, 2, 0);
    SIXTEEN_BYTES(l >> 2, 1, 2, 0);
    SIXTEEN_BYTES(l >> 3, 1, 2, 0);
    SIXTEEN_BYTES(l & 1, 1, 2, 0);
    SIXTEEN_BYTES(l & 15, 1, 4, 0);
    SIXTEEN_BYTES(l & 7, 1, 4, 0);
    SIXTEEN_BYTES(l & 3, 1, 4, 0);
}

/* ---- sectors ----------------------------------------------------------------------------------------------------- */

Test(meter, sectors_of_a_request) {
    static const struct {
        int stride, offset, sectors;
        const char *what;
    } cases[] = {{1, 0, 4, "coalesced"},  {1, 1, 5, "misaligned by one"}, {1, 8, 4, "a sector further"},
                 {2, 0, 8, "stride 2"},   {4, 0, 16, "stride 4"},         {8, 0, 32, "stride 8"},
                 {8, 3, 32, "stride 8+"}, {16, 0, 32, "stride 16"},       {-1, 31, 4, "backwards"}};
    enum { ROOM = 32 * 16 };
    int *in = zeros_on_device(ROOM * sizeof *in), *out = zeros_on_device(ROOM * sizeof *out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(1);
        run_global_load(in, out, cases[i].stride, cases[i].offset);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_load_requests", 1, cases[i].what);
        expect_total(kernel, "global_load_sectors", cases[i].sectors, cases[i].what);
        expect_total(kernel, "global_store_sectors", 4, cases[i].what);
        expect_number(kernel, "different_bytes_read", 128, cases[i].what);
        start(1);
        run_global_store(in, out, cases[i].stride, cases[i].offset);
        kernel = finish();
        expect_total(kernel, "global_store_requests", 1, cases[i].what);
        expect_total(kernel, "global_store_sectors", cases[i].sectors, cases[i].what);
        expect_total(kernel, "global_load_sectors", 4, cases[i].what);
        expect_number(kernel, "different_bytes_written", 128, cases[i].what);
    }
    start(1);
    run_global_load(in, out, 0, 5);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_sectors", 1, "one address for all");
    expect_number(kernel, "different_bytes_read", 4, "one address for all");
}

Test(meter, float4_takes_sixteen_sectors) {
    float *in = zeros_on_device(128 * sizeof *in), *out = zeros_on_device(128 * sizeof *out);
    start(1);
    run_global_float4(in, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_requests", 1, "float4");
    expect_total(kernel, "global_load_sectors", 16, "float4");
    expect_total(kernel, "global_store_requests", 1, "float4");
    expect_total(kernel, "global_store_sectors", 16, "float4");
    expect_number(kernel, "different_bytes_read", 512, "float4");
    expect_number(kernel, "different_bytes_written", 512, "float4");
}

/* A sector that several lanes want counts once, wherever in the warp they are. */
Test(meter, float4_sectors_over_the_whole_warp) {
    static const struct {
        int shift, mask, sectors;
    } cases[] = {{0, 31, 16}, {1, 31, 8}, {5, 31, 1}, {0, 15, 8}, {0, 1, 1}};
    float *in = zeros_on_device(128 * sizeof *in), *out = zeros_on_device(32 * sizeof *out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[40];
        snprintf(what, sizeof what, "l >> %d & %d", cases[i].shift, cases[i].mask);
        PICK(l >> cases[i].shift & cases[i].mask);
        start(1);
        run_global_float4_pick(on_device(pick, sizeof pick), in, out);
        expect_number(at_line(finish(), "picked", "global", "load"), "sectors", cases[i].sectors, what);
    }
}

Test(meter, atomics) {
    for (int same = 0; same < 2; same++) {
        int *cells = zeros_on_device(32 * sizeof *cells);
        start(1);
        run_atomics_on(cells, same);
        const cJSON *kernel = finish();
        const char *what = same ? "one word for all" : "a word for each lane";
        expect_total(kernel, "global_atomic_requests", 1, what);
        expect_total(kernel, "global_atomic_sectors", same ? 1 : 4, what);
        expect_total(kernel, "shared_atomic_requests", 1, what);
        expect_total(kernel, "global_load_requests", 0, what);
        expect_total(kernel, "global_store_requests", 0, what);
    }
}

/* One request of 16 bytes a lane, where four atomicAdd() would be four of 4 bytes, each touching all sectors. */
Test(meter, vector_atomics) {
    float *sums = zeros_on_device(128 * sizeof *sums), got[128];
    start(1);
    run_vector_atomics(sums);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_atomic_requests", 2, "two warps");
    expect_total(kernel, "global_atomic_sectors", 32, "two warps");
    cr_assert_eq(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 128; i++) cr_assert_eq(got[i], 2.0f * (float)(i % 4 + 1));
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static double event_count(const cJSON *kernel, const char *what, const char *mark) {
    const cJSON *event;
    double count = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(kernel, "events")) {
        cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(event, "file")), "tests/meter_kernels.cu");
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(event, "what")), what) != 0) continue;
        if ((int)number(event, "line") == line_of(mark)) count += number(event, "count");
    }
    return count;
}

Test(meter, barriers_and_shuffles) {
    int *out = zeros_on_device(128 * sizeof *out);
    start(1);
    run_events(out);
    const cJSON *kernel = finish();
    cr_assert_eq(event_count(kernel, "__syncthreads()", "event barrier"), 2 * 3); /* blocks, rounds */
    cr_assert_eq(event_count(kernel, "__shfl_xor_sync()", "event shuffle"), 2 * 2 * 5); /* and warps */
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(kernel, "events")), 2);
    expect_number(kernel, "blocks", 2, "events");
    expect_number(kernel, "barriers", 2 * 3, "events");
    expect_number(kernel, "warp_collectives", 2 * 2 * 5, "events");
    expect_number(kernel, "shared_bytes_per_block", 0, "events");
}

static void expect_requests(const cJSON *kernel, const char *mark, const char *access, int requests, int partial,
                            int lanes) {
    const cJSON *line = at_line(kernel, mark, "global", access);
    expect_number(line, "requests", requests, mark);
    expect_number(line, "partial_requests", partial, mark);
    expect_number(line, "lanes", lanes, mark);
}

Test(meter, divergence) {
    int *in = zeros_on_device(64 * sizeof *in), *out = zeros_on_device(320 * sizeof *out);
    start(1);
    run_divergence(in, out);
    const cJSON *kernel = finish();
    expect_requests(kernel, "whole", "load", 2, 0, 64);
    expect_requests(kernel, "evens", "store", 2, 2, 32);
    expect_requests(kernel, "odds", "store", 2, 2, 32);
    expect_requests(kernel, "loop", "store", 6, 6, 96); /* rounds 1 to 3 with 24, 16 and 8 lanes of a warp */
    expect_requests(kernel, "together again", "store", 2, 0, 64);
}

/* Lanes that are through with a row wait for those with a column more. */
Test(meter, lanes_wait_at_the_end_of_an_inner_loop) {
    enum { ROWS = 4, COLUMNS = 44 };
    int *in = zeros_on_device(ROWS * 64 * sizeof *in), *out = zeros_on_device((ROWS * 64 + 32) * sizeof *out);
    start(1);
    run_ragged_rows(in, out, ROWS, COLUMNS);
    const cJSON *kernel = finish();
    expect_requests(kernel, "ragged", "load", 2 * ROWS, ROWS, COLUMNS * ROWS);
    expect_requests(kernel, "ragged", "store", 2 * ROWS, ROWS, COLUMNS * ROWS);
    expect_number(at_line(kernel, "ragged", "global", "load"), "sectors", (4 + 2) * ROWS, "ragged");
    expect_number(at_line(kernel, "ragged", "global", "store"), "sectors", (4 + 2) * ROWS, "ragged");
    expect_requests(kernel, "after the rows", "store", 1, 0, 32);
}

/* Lanes that skip the last statement of a loop's body wait for the lane that does not. */
Test(meter, lanes_wait_at_the_end_of_a_loops_body) {
    enum { ROUNDS = 4 };
    int *in = zeros_on_device(ROUNDS * 32 * sizeof *in), *out = zeros_on_device(64 * sizeof *out);
    start(1);
    run_trailing_branch(in, out, ROUNDS);
    const cJSON *kernel = finish();
    expect_requests(kernel, "loop body", "load", ROUNDS, 0, 32 * ROUNDS);
    expect_requests(kernel, "trailing branch", "store", ROUNDS, ROUNDS, ROUNDS);
    expect_requests(kernel, "after the loop", "store", 1, 0, 32);
}

Test(meter, warp_with_few_lanes_is_not_divergent) {
    int *in = zeros_on_device(10 * sizeof *in), *out = zeros_on_device(10 * sizeof *out);
    start(1);
    run_warp_of_ten(in, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_requests", 1, "ten lanes");
    expect_total(kernel, "global_load_sectors", 2, "ten lanes");
    const cJSON *line;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(kernel, "lines"))
        expect_number(line, "partial_requests", 0, "ten lanes");
}

Test(meter, local_memory_of_an_array) {
    int *in = zeros_on_device(16 * sizeof *in), *out = zeros_on_device(64 * sizeof *out);
    start(1);
    run_local_array(in, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "local_store_requests", 2 * (16 + 16), "two warps");
    expect_total(kernel, "local_load_requests", 2 * (16 + 1), "two warps");
    expect_total(kernel, "global_load_requests", 2 * 16, "two warps");
    expect_total(kernel, "global_store_requests", 2, "two warps");
}

Test(meter, asynchronous_copies) {
    float *in = zeros_on_device(128 * sizeof *in), *out = zeros_on_device(32 * sizeof *out);
    start(1);
    run_async(in, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_copy_requests", 2, "copies");
    expect_total(kernel, "global_copy_sectors", 16 + 4, "copies");
    const cJSON *wide = at_line(kernel, "async 16", "global", "copy");
    const cJSON *narrow = at_line(kernel, "async 4", "global", "copy");
    expect_number(wide, "bytes", 512, "16 bytes a lane");
    expect_number(wide, "bytes_a_lane", 16, "16 bytes a lane");
    expect_number(wide, "sectors", 16, "16 bytes a lane");
    expect_number(narrow, "bytes", 128, "4 bytes a lane");
    expect_number(narrow, "sectors", 4, "4 bytes a lane");
    expect_total(kernel, "global_load_requests", 0, "copies");
    expect_number(kernel, "different_bytes_read", 512, "copies");
}

/* Two rows of 256 bytes take 16 sectors; where the second one is shifted by 16 bytes, two more: one for each of the
 * 128-byte lines that it comes from. Measured on an H100, in chapter 06. */
Test(meter, asynchronous_copies_to_padded_rows) {
    static const struct {
        int stride, sectors;
    } cases[] = {{64, 16}, {68, 18}, {72, 16}};
    float *in = zeros_on_device(128 * sizeof *in), *out = zeros_on_device(32 * sizeof *out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[40];
        snprintf(what, sizeof what, "rows of %d floats", cases[i].stride);
        start(1);
        run_async_rows(in, out, cases[i].stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_copy_requests", 1, what);
        expect_total(kernel, "global_copy_sectors", cases[i].sectors, what);
    }
}

/* Copies of 4 bytes count as loads do, wherever they go. Measured on an H200, in chapters 06 and 09 with d 59. */
Test(meter, asynchronous_copies_of_words) {
    static const struct {
        int from, shift, sectors;
    } cases[] = {{0, 0, 4}, {0, 4, 4}, {0, 3, 4}, {3, 0, 5}, {3, 3, 5}};
    float *in = zeros_on_device(128 * sizeof *in), *out = zeros_on_device(32 * sizeof *out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[60];
        snprintf(what, sizeof what, "from element %d to element %d", cases[i].from, cases[i].shift);
        start(1);
        run_async_words(in + cases[i].from, out, cases[i].shift);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_copy_requests", 1, what);
        expect_total(kernel, "global_copy_sectors", cases[i].sectors, what);
    }
}

/* What a copy writes to shared memory takes wavefronts as a store does; where it passes L1 by, it takes none. Measured on an
 * H200: l1tex__data_pipe_lsu_wavefronts_mem_shared. */
Test(meter, wavefronts_of_asynchronous_copies) {
    static const struct {
        int bytes, stride, wavefronts, conflicts;
    } cases[] = {{4, 4, 1, 0},  {4, 8, 2, 1},    {4, 128, 32, 31}, {4, 132, 1, 0},  {8, 8, 2, 0},
                 {8, 16, 4, 2}, {8, 128, 32, 30}, {16, 16, 0, 0},   {16, 128, 0, 0}};
    char *in = zeros_on_device(512), *out = zeros_on_device(32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[60];
        snprintf(what, sizeof what, "%d bytes, %d apart", cases[i].bytes, cases[i].stride);
        start(1);
        run_async_strided(in, out, cases[i].bytes, cases[i].stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "shared_copy_wavefronts", cases[i].wavefronts, what);
        expect_total(kernel, "shared_copy_conflicts", cases[i].conflicts, what);
        expect_total(kernel, "shared_store_wavefronts", 0, what);
    }
}

/* nvcc makes two instructions of a copy that writes zeros in some lanes. Measured on an H200, in chapters 06 and 09 with d 59. */
Test(meter, wavefronts_of_zeros_that_copies_write) {
    float *in = zeros_on_device(32 * sizeof *in), *out = zeros_on_device(32 * sizeof *out);
    for (int count = 0; count <= 32; count += 16) {
        char what[40];
        snprintf(what, sizeof what, "%d lanes copy", count);
        start(1);
        run_async_words_or_zeros(in, out, count);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_copy_requests", count > 0, what);
        expect_total(kernel, "shared_copy_wavefronts", (count > 0) + (count < 32), what);
    }
}

/* g++ lets all lanes load: from global memory, or from a variable on their own stack. Measured on an H200, in 10a to 10d. */
Test(meter, lanes_that_load_a_local_variable_instead) {
    float *in = zeros_on_device(128 * sizeof *in), *out = zeros_on_device(128 * sizeof *out);
    start(1);
    run_load_or_zeros(in, out, 20);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_requests", 1, "20 lanes");
    expect_total(kernel, "global_load_sectors", 10, "20 lanes");
}

enum { BLOCKS = 16 };

Test(meter, a_quarter_of_the_blocks) {
    int *in = zeros_on_device(BLOCKS * 64 * sizeof *in), *out = zeros_on_device(BLOCKS * 64 * sizeof *out);
    for (unsigned every = 1; every <= 4; every *= 4) {
        start(every);
        run_add(in, out, BLOCKS);
        const cJSON *kernel = finish();
        expect_number(kernel, "blocks", BLOCKS, "sampled");
        expect_number(kernel, "metered_blocks", BLOCKS / every, "sampled");
        expect_total(kernel, "global_load_requests", 2 * 2 * BLOCKS / every, "sampled");
        expect_total(kernel, "global_load_sectors", 4 * 2 * 2 * BLOCKS / every, "sampled");
        expect_total(kernel, "global_store_requests", 2 * BLOCKS / every, "sampled");
        char *text = NULL;
        size_t bytes = 0;
        for (int with_source = 0; with_source < 2; with_source++) {
            FILE *file = open_memstream(&text, &bytes);
            simt_meter_print(file, with_source);
            fclose(file);
            cr_assert_not_null(strstr(text, every == 1 ? "all 16 blocks" : "4 of its 16 blocks"), "%s", text);
            cr_assert_not_null(strstr(text, "meter_kernels.cu"), "%s", text);
            if (with_source) cr_assert_not_null(strstr(text, "out[i] += in[i];"), "%s", text);
            free(text);
        }
    }
}

Test(meter, launches_add_up) {
    int *in = zeros_on_device(BLOCKS * 64 * sizeof *in), *out = zeros_on_device(BLOCKS * 64 * sizeof *out);
    start(1);
    for (int i = 0; i < 3; i++) run_add(in, out, 2);
    const cJSON *kernel = finish();
    expect_number(kernel, "launches", 3, "three launches");
    expect_number(kernel, "blocks", 6, "three launches");
    expect_total(kernel, "global_load_requests", 3 * 2 * 2 * 2, "three launches");
}

Test(meter, nothing_is_counted_while_it_is_off) {
    int *in = zeros_on_device(64 * sizeof *in), *out = zeros_on_device(64 * sizeof *out);
    run_add(in, out, 1);
    start(1);
    run_add(in, out, 1);
    simt_meter_stop();
    run_add(in, out, 1);
    const cJSON *kernel = finish();
    expect_number(kernel, "launches", 1, "one of three");
    expect_total(kernel, "global_store_requests", 2, "one of three");
}

/* The meter changes how lanes take turns; what they compute must stay. */
Test(meter, results_stay_the_same) {
    enum { N = BLOCKS * 64 };
    int values[N], got[2][N];
    for (int i = 0; i < N; i++) values[i] = i * i % 1009;
    int *in = on_device(values, sizeof values);
    for (int metered = 0; metered < 2; metered++) {
        int *out = on_device(values, sizeof values);
        if (metered) start(1);
        run_add(in, out, BLOCKS);
        run_events(out);
        run_divergence(in, out + 256);
        run_local_array(in, out + 576);
        run_async((float *)in, (float *)out + 640);
        cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", simt_last_report());
        cr_assert_eq(cudaMemcpy(got[metered], out, sizeof values, cudaMemcpyDeviceToHost), cudaSuccess);
    }
    simt_meter_stop();
    cr_assert_arr_eq(got[0], got[1], sizeof values);
}

/* ---- the trace --------------------------------------------------------------------------------------------------- */

static cJSON *traced; /* what the last trace wrote */

/* Traces run() and gives its only launch. */
static const cJSON *trace_of(void (*run)(void), const char *blocks) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    cr_assert(simt_trace_start(file, blocks));
    run();
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", simt_last_report());
    simt_trace_stop();
    fclose(file);
    cJSON_Delete(traced);
    traced = cJSON_Parse(text);
    cr_assert_not_null(traced, "no JSON: %s", text);
    free(text);
    const cJSON *launches = cJSON_GetObjectItem(traced, "launches");
    cr_assert_eq(cJSON_GetArraySize(launches), 1);
    return cJSON_GetArrayItem(launches, 0);
}

static double entry(const cJSON *list, int i) {
    const cJSON *item = cJSON_GetArrayItem(list, i);
    cr_assert(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void expect_list(const cJSON *list, double a, double b, double c) {
    cr_assert(entry(list, 0) == a && entry(list, 1) == b && entry(list, 2) == c, "[%g,%g,%g] instead of [%g,%g,%g]",
              entry(list, 0), entry(list, 1), entry(list, 2), a, b, c);
}

/* [site, warp, epoch, array, offsets]: `step` bytes from lane to lane. */
static void expect_request(const cJSON *launch, const cJSON *event, const char *array, const char *kind, const char *mark,
                           int warp, int epoch, double first, double step) {
    const cJSON *site = cJSON_GetArrayItem(cJSON_GetObjectItem(launch, "sites"), (int)entry(event, 0));
    const cJSON *name = cJSON_GetArrayItem(cJSON_GetObjectItem(launch, "arrays"), (int)entry(event, 3));
    cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(site, "kind")), kind);
    cr_assert_eq((int)number(site, "line"), line_of(mark), "%s", mark);
    cr_assert_str_eq(cJSON_GetStringValue(name), array);
    cr_assert(entry(event, 1) == warp && entry(event, 2) == epoch);
    const cJSON *offsets = cJSON_GetArrayItem(event, 4);
    cr_assert_eq(cJSON_GetArraySize(offsets), 32);
    for (int lane = 0; lane < 32; lane++)
        cr_assert_eq(entry(offsets, lane), first + step * lane, "%s: lane %d at byte %g instead of %g", mark, lane,
                     entry(offsets, lane), first + step * lane);
}

static float *trace_in, *trace_out;
static void transpose_by_tile(void) { run_transpose_of(TRANSPOSE_TILE_33, trace_in, trace_out); }

Test(meter, trace_of_two_blocks) {
    trace_in = zeros_on_device(ELEMENTS * sizeof *trace_in);
    trace_out = zeros_on_device(ELEMENTS * sizeof *trace_out);
    simt_name_memory(trace_in, "in", sizeof *trace_in, true);
    const cJSON *launch = trace_of(transpose_by_tile, "35,0");
    expect_list(cJSON_GetObjectItem(launch, "grid"), 16, 16, 1);
    expect_list(cJSON_GetObjectItem(launch, "block"), 32, 8, 1);
    expect_number(launch, "static_shared_bytes", 32 * 33 * 4, "tile");
    expect_number(launch, "dynamic_shared_bytes", 0, "none");
    const cJSON *blocks = cJSON_GetObjectItem(launch, "blocks"), *block = cJSON_GetArrayItem(blocks, 0);
    cr_assert_eq(cJSON_GetArraySize(blocks), 2);
    expect_list(cJSON_GetObjectItem(block, "index"), 3, 2, 0);
    expect_list(cJSON_GetObjectItem(cJSON_GetArrayItem(blocks, 1), "index"), 0, 0, 0);

    /* 8 warps: 4 loads and 4 stores each, the barrier, and as many again. */
    const cJSON *events = cJSON_GetObjectItem(block, "events");
    cr_assert_eq(cJSON_GetArraySize(events), 8 * 8 + 1 + 8 * 8);
    for (int warp = 0; warp < 8; warp++)
        for (int j = 0; j < 4; j++) {
            const cJSON *before = cJSON_GetArrayItem(events, warp * 8 + 2 * j);
            int y = warp + 8 * j;
            expect_request(launch, before, "in", "load", "tile store", warp, 0, 4 * ((64 + y) * MATRIX + 96), 4);
            expect_request(launch, before->next, "tile", "store", "tile store", warp, 0, 4 * 33 * y, 4);
            const cJSON *after = cJSON_GetArrayItem(events, 65 + warp * 8 + 2 * j);
            expect_request(launch, after, "tile", "load", "tile load", warp, 1, 4 * y, 4 * 33);
        }
    const cJSON *barrier = cJSON_GetArrayItem(events, 64);
    const cJSON *site = cJSON_GetArrayItem(cJSON_GetObjectItem(launch, "sites"), (int)entry(barrier, 0));
    cr_assert_eq(cJSON_GetArraySize(barrier), 3);
    cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(site, "kind")), "__syncthreads()");
    cr_assert(entry(barrier, 1) == -1 && entry(barrier, 2) == 0);
}

static void copy_asynchronously(void) { run_async(trace_in, trace_out); }

Test(meter, trace_of_copies_says_where_they_go) {
    trace_in = zeros_on_device(1024 * sizeof *trace_in);
    trace_out = zeros_on_device(1024 * sizeof *trace_out);
    const cJSON *launch = trace_of(copy_asynchronously, NULL), *event;
    int copies = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(launch, "blocks"), 0), "events")) {
        if (cJSON_GetArraySize(event) != 6) continue;
        double bytes = copies++ == 0 ? 16 : 4;
        const cJSON *to = cJSON_GetArrayItem(event, 5);
        for (int lane = 1; lane < 32; lane++) cr_assert_eq(entry(to, lane) - entry(to, lane - 1), bytes);
    }
    cr_assert_eq(copies, 2);
}

static void count_transpose(void) {
    start(1);
    transpose_by_tile();
    simt_meter_stop();
}

/* A trace beside the meter changes no count, and a block that is traced is not therefore metered. */
Test(meter, trace_leaves_the_counts_alone) {
    trace_in = zeros_on_device(ELEMENTS * sizeof *trace_in);
    trace_out = zeros_on_device(ELEMENTS * sizeof *trace_out);
    count_transpose();
    char *alone = simt_meter_json();
    trace_of(count_transpose, "0,1,2");
    char *traced_too = simt_meter_json();
    cr_assert_str_eq(alone, traced_too);
    free(alone);
    free(traced_too);
    start(1);
    simt_meter_stop();
    trace_of(transpose_by_tile, NULL);
    char *nothing = simt_meter_json();
    cr_assert_str_eq(nothing, "[]");
    free(nothing);
}

Test(meter, lists_of_blocks_that_make_no_sense) {
    static const char *const wrong[] = {"", "x", "1,", ",1", "0,0", "-1", "0 1", "1,2;3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) cr_assert_not(simt_trace_start(NULL, wrong[i]), "%s", wrong[i]);
    cr_assert(simt_trace_start(NULL, "3,0,12"));
}
