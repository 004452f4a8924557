/* The transpose of a matrix, by blocks of 32 x 8 threads: counted, and traced. */
#include "meter_test.h"

#include <cuda_pipeline.h>

TestSuite(meter, .init = need_simulated_device, .timeout = 60);

static constexpr int MATRIX = 512, ELEMENTS = MATRIX * MATRIX, REQUESTS = ELEMENTS / 32;
static constexpr int TILE = 32, ROWS = 8;
static const dim3 GRID(MATRIX / TILE, MATRIX / TILE), BLOCK(TILE, ROWS);

__global__ static void transpose_naive(const float *in, float *out) {
    int x = (int)blockIdx.x * TILE + (int)threadIdx.x, y = (int)blockIdx.y * TILE + (int)threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        float value = in[(y + j) * MATRIX + x]; // naive load
        out[x * MATRIX + y + j] = value;        // naive store
    }
}

template <int COLUMNS, bool BARRIER> __device__ static void transpose_by_tile(const float *in, float *out) {
    __shared__ float tile[TILE][COLUMNS];
    int x = (int)threadIdx.x, left = (int)blockIdx.x * TILE, top = (int)blockIdx.y * TILE;
    for (int y = (int)threadIdx.y; y < TILE; y += ROWS) tile[y][x] = in[(top + y) * MATRIX + left + x]; // tile store
    if (BARRIER) __syncthreads();
    for (int y = (int)threadIdx.y; y < TILE; y += ROWS) {
        float value = tile[x][y]; // tile load
        out[(left + y) * MATRIX + top + x] = value;
    }
}

__global__ static void transpose_tile_32(const float *in, float *out) { transpose_by_tile<32, true>(in, out); }
__global__ static void transpose_tile_33(const float *in, float *out) { transpose_by_tile<33, true>(in, out); }
__global__ static void transpose_without_barrier(const float *in, float *out) { transpose_by_tile<33, false>(in, out); }

static const cJSON *transpose(void (*of)(const float *in, float *out)) {
    std::vector<float> values(ELEMENTS), expected(ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)i;
    for (int i = 0; i < ELEMENTS; i++) expected[i] = (float)(i % MATRIX * MATRIX + i / MATRIX);
    float *in = on_device(values.data(), ELEMENTS), *out = filled_on_device<float>(0, ELEMENTS);
    start(1);
    of<<<GRID, BLOCK>>>(in, out);
    const cJSON *kernel = finish();
    expect_values(out, expected.data(), ELEMENTS, "transposed");
    expect_total(kernel, "global_load_requests", REQUESTS, "transpose");
    expect_total(kernel, "global_load_sectors", 4.0 * REQUESTS, "transpose");
    expect_total(kernel, "global_store_requests", REQUESTS, "transpose");
    expect_number(kernel, "different_bytes_read", 4.0 * ELEMENTS, "transpose");
    expect_number(kernel, "different_bytes_written", 4.0 * ELEMENTS, "transpose");
    return kernel;
}

Test(meter, naive_transpose) {
    const cJSON *kernel = transpose(transpose_naive);
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
    const cJSON *kernel = transpose(transpose_tile_32);
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
    const cJSON *kernel = transpose(transpose_tile_33);
    expect_total(kernel, "global_store_sectors", 4.0 * REQUESTS, "tile[32][33]");
    expect_total(kernel, "shared_load_conflicts", 0, "tile[32][33]");
    expect_total(kernel, "shared_store_conflicts", 0, "tile[32][33]");
    expect_total(kernel, "shared_load_wavefronts", REQUESTS, "tile[32][33]");
    expect_number(kernel, "shared_bytes_per_block", 4 * 32 * 33, "tile[32][33]");
    expect_number(kernel, "barriers", number(kernel, "blocks"), "one per block");
}

Test(meter, transpose_without_its_barrier_is_a_race) {
    float *in = filled_on_device<float>(0, ELEMENTS), *out = filled_on_device<float>(0, ELEMENTS);
    char store[60], load[60];
    snprintf(store, sizeof store, "tests/meter_transpose.cu:%d", line_of("tile store"));
    snprintf(load, sizeof load, "tests/meter_transpose.cu:%d", line_of("tile load"));
    for (int metered = 0; metered < 2; metered++) {
        if (metered) start(1);
        capture_stderr();
        transpose_without_barrier<<<GRID, BLOCK>>>(in, out);
        cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
        cr_assert_not_null(strstr(report(), "race on tile["), "%s", report());
        cr_assert_not_null(strstr(report(), store), "%s", report());
        cr_assert_not_null(strstr(report(), load), "%s", report());
        expect_reports();
        end_capture();
        EXPECT_OK(cudaDeviceReset());
        in = filled_on_device<float>(0, ELEMENTS);
        out = filled_on_device<float>(0, ELEMENTS);
    }
    simt_meter_stop();
}

/* ---- the trace --------------------------------------------------------------------------------------------------- */

static cJSON *traced; /* what the last trace wrote */

/* Traces run() and gives its only launch. */
static const cJSON *trace_of(void (*run)(), const char *blocks) {
    char *text = nullptr;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    cr_assert(simt_trace_start(file, blocks));
    run();
    EXPECT_OK(cudaDeviceSynchronize());
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
static void expect_request(const cJSON *launch, const cJSON *event, const char *array, const char *kind,
                           const char *mark, int warp, int epoch, double first, double step) {
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
static void run_transpose() { transpose_tile_33<<<GRID, BLOCK>>>(trace_in, trace_out); }

Test(meter, trace_of_two_blocks) {
    trace_in = filled_on_device<float>(0, ELEMENTS);
    trace_out = filled_on_device<float>(0, ELEMENTS);
    simt_name_memory(trace_in, "in", sizeof *trace_in, true);
    const cJSON *launch = trace_of(run_transpose, "35,0");
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

__global__ static void copy_asynchronously(const float *in, float *out) {
    __shared__ __align__(16) float fours[128];
    __shared__ float ones[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&fours[4 * lane], &in[4 * lane], 16);
    __pipeline_commit();
    __pipeline_memcpy_async(&ones[lane], &in[lane], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __pipeline_wait_prior(0);
    out[lane] = fours[4 * lane] + ones[lane];
}
static void run_copies() { copy_asynchronously<<<1, 32>>>(trace_in, trace_out); }

Test(meter, trace_of_copies_says_where_they_go) {
    trace_in = filled_on_device<float>(0, 1024);
    trace_out = filled_on_device<float>(0, 1024);
    const cJSON *launch = trace_of(run_copies, nullptr), *event;
    int copies = 0;
    cJSON_ArrayForEach(event,
                       cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(launch, "blocks"), 0), "events")) {
        if (cJSON_GetArraySize(event) != 6) continue;
        double bytes = copies++ == 0 ? 16 : 4;
        const cJSON *to = cJSON_GetArrayItem(event, 5);
        for (int lane = 1; lane < 32; lane++) cr_assert_eq(entry(to, lane) - entry(to, lane - 1), bytes);
    }
    cr_assert_eq(copies, 2);
}

/* In the order of the program: what is copied, which groups are closed, and until how many are under way it is waited. */
Test(meter, trace_of_copies_says_when_they_arrive) {
    trace_in = filled_on_device<float>(0, 1024);
    trace_out = filled_on_device<float>(0, 1024);
    const cJSON *launch = trace_of(run_copies, nullptr), *sites = cJSON_GetObjectItem(launch, "sites"), *event;
    static const char *const order[] = {"copy", "commit", "copy", "commit", "wait", "wait", "load", "load", "store"};
    int at = 0;
    cJSON_ArrayForEach(event,
                       cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(launch, "blocks"), 0), "events")) {
        const cJSON *site = cJSON_GetArrayItem(sites, (int)entry(event, 0));
        cr_assert_lt(at, 9);
        cr_assert_str_eq(cJSON_GetObjectItem(site, "kind")->valuestring, order[at]);
        if (strcmp(cJSON_GetObjectItem(site, "space")->valuestring, "copies") == 0) {
            cr_assert_eq(entry(event, 3), -1);
            cr_assert_eq(entry(event, 4), at == 4);
        }
        at++;
    }
    cr_assert_eq(at, 9);
}

static void count_transpose() {
    start(1);
    run_transpose();
    simt_meter_stop();
}

/* A trace beside the meter changes no count, and a block that is traced is not therefore metered. */
Test(meter, trace_leaves_the_counts_alone) {
    trace_in = filled_on_device<float>(0, ELEMENTS);
    trace_out = filled_on_device<float>(0, ELEMENTS);
    count_transpose();
    char *alone = simt_meter_json();
    trace_of(count_transpose, "0,1,2");
    char *traced_too = simt_meter_json();
    cr_assert_str_eq(alone, traced_too);
    free(alone);
    free(traced_too);
    start(1);
    simt_meter_stop();
    trace_of(run_transpose, nullptr);
    char *nothing = simt_meter_json();
    cr_assert_str_eq(nothing, "[]");
    free(nothing);
}

Test(meter, lists_of_blocks_that_make_no_sense) {
    static const char *const wrong[] = {"", "x", "1,", ",1", "0,0", "-1", "0 1", "1,2;3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(simt_trace_start(nullptr, wrong[i]), "%s", wrong[i]);
    cr_assert(simt_trace_start(nullptr, "3,0,12"));
}
