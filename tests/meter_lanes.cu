/* What the lanes of a warp do at a time: barriers and shuffles, divergence, memory of their own, asynchronous copies; and which
 * blocks and launches are counted. */
#include "meter_test.h"

#include <cuda_pipeline.h>

/* ---- barriers and shuffles --------------------------------------------------------------------------------------- */

__global__ static void events(int *out) {
    int sum = (int)threadIdx.x;
    for (int k = 0; k < 3; k++) __syncthreads(); // event barrier
    for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit); // event shuffle
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}

static double event_count(const cJSON *kernel, const char *what, const char *mark) {
    const cJSON *event;
    double count = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(kernel, "events")) {
        expect_this_file(event);
        if (says(event, "what", what) && (int)number(event, "line") == line_of(mark)) count += number(event, "count");
    }
    return count;
}

Test(meter, barriers_and_shuffles) {
    int *out = filled_on_device<int>(0, 128);
    start(1);
    events<<<2, 64>>>(out);
    const cJSON *kernel = finish();
    cr_assert_eq(event_count(kernel, "__syncthreads()", "event barrier"), 2 * 3); /* blocks, rounds */
    cr_assert_eq(event_count(kernel, "__shfl_xor_sync()", "event shuffle"), 2 * 2 * 5); /* and warps */
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(kernel, "events")), 2);
    expect_number(kernel, "blocks", 2, "events");
    expect_number(kernel, "barriers", 2 * 3, "events");
    expect_number(kernel, "warp_collectives", 2 * 2 * 5, "events");
    expect_number(kernel, "shared_bytes_per_block", 0, "events");
}

/* ---- divergence -------------------------------------------------------------------------------------------------- */

__global__ static void divergence(const int *in, int *out) {
    int t = (int)threadIdx.x, value = in[t]; // whole
    if (t % 2 == 0) {
        out[t] = value; // evens
    } else {
        out[t] = -value; // odds
    }
    for (int k = 1; k <= t % 4; k++) out[64 * k + t] = k; // loop
    out[256 + t] = value;                                 // together again
}

static void expect_requests(const cJSON *kernel, const char *mark, const char *access, int requests, int partial,
                            int lanes) {
    const cJSON *line = at_line(kernel, mark, "global", access);
    expect_number(line, "requests", requests, mark);
    expect_number(line, "partial_requests", partial, mark);
    expect_number(line, "lanes", lanes, mark);
}

Test(meter, divergence) {
    int *in = filled_on_device<int>(0, 64), *out = filled_on_device<int>(0, 320);
    start(1);
    divergence<<<1, 64>>>(in, out);
    const cJSON *kernel = finish();
    expect_requests(kernel, "whole", "load", 2, 0, 64);
    expect_requests(kernel, "evens", "store", 2, 2, 32);
    expect_requests(kernel, "odds", "store", 2, 2, 32);
    expect_requests(kernel, "loop", "store", 6, 6, 96); /* rounds 1 to 3 with 24, 16 and 8 lanes of a warp */
    expect_requests(kernel, "together again", "store", 2, 0, 64);
}

__global__ static void ragged_rows(const int *in, int *out, int rows, int columns) {
    int lane = (int)threadIdx.x;
    for (int r = 0; r < rows; r++)
        for (int c = lane; c < columns; c += 32) out[64 * r + c] = in[64 * r + c]; // ragged
    out[64 * rows + lane] = lane;                                                  // after the rows
}

/* Lanes that are through with a row wait for those with a column more. */
Test(meter, lanes_wait_at_the_end_of_an_inner_loop) {
    enum { ROWS = 4, COLUMNS = 44 };
    int *in = filled_on_device<int>(0, ROWS * 64), *out = filled_on_device<int>(0, ROWS * 64 + 32);
    start(1);
    ragged_rows<<<1, 32>>>(in, out, ROWS, COLUMNS);
    const cJSON *kernel = finish();
    expect_requests(kernel, "ragged", "load", 2 * ROWS, ROWS, COLUMNS * ROWS);
    expect_requests(kernel, "ragged", "store", 2 * ROWS, ROWS, COLUMNS * ROWS);
    expect_number(at_line(kernel, "ragged", "global", "load"), "sectors", (4 + 2) * ROWS, "ragged");
    expect_number(at_line(kernel, "ragged", "global", "store"), "sectors", (4 + 2) * ROWS, "ragged");
    expect_requests(kernel, "after the rows", "store", 1, 0, 32);
}

__global__ static void copy_and_sum(const int *in, int *out, int rows, int columns) {
    int lane = (int)threadIdx.x, sum = 0;
    for (int r = 0; r < rows; r++)
        if (lane < 9) out[32 * r + lane] = lane; // nine lanes copy
    for (int k = 0; k < columns; k++)
        for (int i = 0; i < 4; i++)
            if (lane < 28 || i % 2 == 0) sum += in[128 * k + 32 * i + lane]; // all but four in odd rows
    out[32 * rows + lane] = sum;
}

/* Lanes that begin with an access further down the code stay with the others there: what calls the kernel is no loop of it. */
Test(meter, lanes_whose_first_access_lies_behind_a_loop) {
    enum { ROWS = 3, COLUMNS = 5 };
    int *in = filled_on_device<int>(0, COLUMNS * 128), *out = filled_on_device<int>(0, (ROWS + 1) * 32);
    start(1);
    copy_and_sum<<<1, 32>>>(in, out, ROWS, COLUMNS);
    const cJSON *kernel = finish();
    expect_requests(kernel, "nine lanes copy", "store", ROWS, ROWS, 9 * ROWS);
    expect_number(at_line(kernel, "all but four in odd rows", "global", "load"), "requests", 4 * COLUMNS, "rows");
}

__global__ static void trailing_branch(const int *in, int *out, int rounds) {
    int lane = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < rounds; k++) {
        sum += in[32 * k + lane];    // loop body
        if (lane == 0) out[k] = sum; // trailing branch
    }
    out[32 + lane] = sum; // after the loop
}

/* Lanes that skip the last statement of a loop's body wait for the lane that does not. */
Test(meter, lanes_wait_at_the_end_of_a_loops_body) {
    enum { ROUNDS = 4 };
    int *in = filled_on_device<int>(0, ROUNDS * 32), *out = filled_on_device<int>(0, 64);
    start(1);
    trailing_branch<<<1, 32>>>(in, out, ROUNDS);
    const cJSON *kernel = finish();
    expect_requests(kernel, "loop body", "load", ROUNDS, 0, 32 * ROUNDS);
    expect_requests(kernel, "trailing branch", "store", ROUNDS, ROUNDS, ROUNDS);
    expect_requests(kernel, "after the loop", "store", 1, 0, 32);
}

__global__ static void warp_of_ten(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }

Test(meter, warp_with_few_lanes_is_not_divergent) {
    int *in = filled_on_device<int>(0, 10), *out = filled_on_device<int>(0, 10);
    start(1);
    warp_of_ten<<<1, 10>>>(in, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_requests", 1, "ten lanes");
    expect_total(kernel, "global_load_sectors", 2, "ten lanes");
    const cJSON *line;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(kernel, "lines"))
        expect_number(line, "partial_requests", 0, "ten lanes");
}

/* ---- local memory ------------------------------------------------------------------------------------------------ */

__device__ static void leave_16(int *values) { (void)values; }
__device__ static void reverse_16(int *values) {
    for (int i = 0; i < 8; i++) {
        int kept = values[i];
        values[i] = values[15 - i];
        values[15 - i] = kept;
    }
}

__global__ static void local_array(const int *in, int *out) {
    int values[16], t = (int)threadIdx.x;
    for (int i = 0; i < 16; i++) values[i] = in[i] + t;
    (t >= 0 ? reverse_16 : leave_16)(values); /* a call that is not inlined: the array has an address */
    out[t] = values[t % 16];
}

Test(meter, local_memory_of_an_array) {
    int *in = filled_on_device<int>(0, 16), *out = filled_on_device<int>(0, 64);
    start(1);
    local_array<<<1, 64>>>(in, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "local_store_requests", 2 * (16 + 16), "two warps");
    expect_total(kernel, "local_load_requests", 2 * (16 + 1), "two warps");
    expect_total(kernel, "global_load_requests", 2 * 16, "two warps");
    expect_total(kernel, "global_store_requests", 2, "two warps");
}

/* ---- asynchronous copies ----------------------------------------------------------------------------------------- */

__global__ static void async(const float *in, float *out) {
    __shared__ __align__(16) float fours[128];
    __shared__ float ones[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&fours[4 * lane], &in[4 * lane], 16); // async 16
    __pipeline_memcpy_async(&ones[lane], &in[lane], 4);           // async 4
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = fours[4 * lane] + ones[lane];
}

Test(meter, asynchronous_copies) {
    float *in = filled_on_device<float>(0, 128), *out = filled_on_device<float>(0, 32);
    start(1);
    async<<<1, 32>>>(in, out);
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

__global__ static void async_rows(const float *in, float *out, int stride) {
    __shared__ __align__(128) float tile[144];
    int lane = (int)threadIdx.x, row = lane / 16, col = lane % 16 * 4;
    __pipeline_memcpy_async(&tile[row * stride + col], &in[row * 64 + col], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = tile[row * stride + col];
}

/* Two rows of 256 bytes take 16 sectors; where the second one is shifted by 16 bytes, two more: one for each of the
 * 128-byte lines that it comes from. Measured on an H100, in chapter 06. */
Test(meter, asynchronous_copies_to_padded_rows) {
    static const struct {
        int stride, sectors;
    } cases[] = {{64, 16}, {68, 18}, {72, 16}};
    float *in = filled_on_device<float>(0, 128), *out = filled_on_device<float>(0, 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[40];
        snprintf(what, sizeof what, "rows of %d floats", cases[i].stride);
        start(1);
        async_rows<<<1, 32>>>(in, out, cases[i].stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_copy_requests", 1, what);
        expect_total(kernel, "global_copy_sectors", cases[i].sectors, what);
    }
}

__global__ static void async_words(const float *in, float *out, int shift) {
    __shared__ __align__(128) float tile[64];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[shift + lane], &in[lane], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = tile[shift + lane];
}

/* Copies of 4 bytes count as loads do, wherever they go. Measured on an H200, in chapters 06 and 09 with d 59. */
Test(meter, asynchronous_copies_of_words) {
    static const struct {
        int from, shift, sectors;
    } cases[] = {{0, 0, 4}, {0, 4, 4}, {0, 3, 4}, {3, 0, 5}, {3, 3, 5}};
    float *in = filled_on_device<float>(0, 128), *out = filled_on_device<float>(0, 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[60];
        snprintf(what, sizeof what, "from element %d to element %d", cases[i].from, cases[i].shift);
        start(1);
        async_words<<<1, 32>>>(in + cases[i].from, out, cases[i].shift);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_copy_requests", 1, what);
        expect_total(kernel, "global_copy_sectors", cases[i].sectors, what);
    }
}

template <int BYTES> __global__ void async_strided(const char *in, char *out, int stride) {
    extern __shared__ __align__(128) char rows[];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(rows + lane * stride, in + lane * BYTES, BYTES);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = rows[lane * stride];
}

/* What a copy writes to shared memory takes wavefronts as a store does; where it passes L1 by, it takes none. Measured on an
 * H200: l1tex__data_pipe_lsu_wavefronts_mem_shared. */
Test(meter, wavefronts_of_asynchronous_copies) {
    static const struct {
        int bytes, stride, wavefronts, conflicts;
    } cases[] = {{4, 4, 1, 0},  {4, 8, 2, 1},    {4, 128, 32, 31}, {4, 132, 1, 0},  {8, 8, 2, 0},
                 {8, 16, 4, 2}, {8, 128, 32, 30}, {16, 16, 0, 0},   {16, 128, 0, 0}};
    char *in = filled_on_device<char>(0, 512), *out = filled_on_device<char>(0, 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[60];
        snprintf(what, sizeof what, "%d bytes, %d apart", cases[i].bytes, cases[i].stride);
        start(1);
        auto kernel_of = cases[i].bytes == 4 ? async_strided<4> : cases[i].bytes == 8 ? async_strided<8> : async_strided<16>;
        kernel_of<<<1, 32, 32 * 132>>>(in, out, cases[i].stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "shared_copy_wavefronts", cases[i].wavefronts, what);
        expect_total(kernel, "shared_copy_conflicts", cases[i].conflicts, what);
        expect_total(kernel, "shared_store_wavefronts", 0, what);
    }
}

__global__ static void async_words_or_zeros(const float *in, float *out, int count) {
    __shared__ float tile[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[lane], &in[lane], 4, lane < count ? 0 : 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = tile[lane];
}

/* nvcc makes two instructions of a copy that writes zeros in some lanes. Measured on an H200, in chapters 06 and 09, d 59. */
Test(meter, wavefronts_of_zeros_that_copies_write) {
    float *in = filled_on_device<float>(0, 32), *out = filled_on_device<float>(0, 32);
    for (int count = 0; count <= 32; count += 16) {
        char what[40];
        snprintf(what, sizeof what, "%d lanes copy", count);
        start(1);
        async_words_or_zeros<<<1, 32>>>(in, out, count);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_copy_requests", count > 0, what);
        expect_total(kernel, "shared_copy_wavefronts", (count > 0) + (count < 32), what);
    }
}

/* ---- blocks and launches ----------------------------------------------------------------------------------------- */

__global__ static void add(const int *in, int *out) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    out[i] += in[i];
}

enum { BLOCKS = 16 };

Test(meter, a_quarter_of_the_blocks) {
    int *in = filled_on_device<int>(0, BLOCKS * 64), *out = filled_on_device<int>(0, BLOCKS * 64);
    for (unsigned every = 1; every <= 4; every *= 4) {
        start(every);
        add<<<BLOCKS, 64>>>(in, out);
        const cJSON *kernel = finish();
        expect_number(kernel, "blocks", BLOCKS, "sampled");
        expect_number(kernel, "metered_blocks", BLOCKS / every, "sampled");
        expect_total(kernel, "global_load_requests", 2 * 2 * BLOCKS / every, "sampled");
        expect_total(kernel, "global_load_sectors", 4 * 2 * 2 * BLOCKS / every, "sampled");
        expect_total(kernel, "global_store_requests", 2 * BLOCKS / every, "sampled");
        char *text = nullptr;
        size_t bytes = 0;
        for (int with_source = 0; with_source < 2; with_source++) {
            FILE *file = open_memstream(&text, &bytes);
            simt_meter_print(file, with_source);
            fclose(file);
            cr_assert_not_null(strstr(text, every == 1 ? "all 16 blocks" : "4 of its 16 blocks"), "%s", text);
            cr_assert_not_null(strstr(text, "meter_lanes.cu"), "%s", text);
            if (with_source) cr_assert_not_null(strstr(text, "out[i] += in[i];"), "%s", text);
            free(text);
        }
    }
}

Test(meter, launches_add_up) {
    int *in = filled_on_device<int>(0, BLOCKS * 64), *out = filled_on_device<int>(0, BLOCKS * 64);
    start(1);
    for (int i = 0; i < 3; i++) add<<<2, 64>>>(in, out);
    const cJSON *kernel = finish();
    expect_number(kernel, "launches", 3, "three launches");
    expect_number(kernel, "blocks", 6, "three launches");
    expect_total(kernel, "global_load_requests", 3 * 2 * 2 * 2, "three launches");
}

Test(meter, nothing_is_counted_while_it_is_off) {
    int *in = filled_on_device<int>(0, 64), *out = filled_on_device<int>(0, 64);
    add<<<1, 64>>>(in, out);
    start(1);
    add<<<1, 64>>>(in, out);
    simt_meter_stop();
    add<<<1, 64>>>(in, out);
    const cJSON *kernel = finish();
    expect_number(kernel, "launches", 1, "one of three");
    expect_total(kernel, "global_store_requests", 2, "one of three");
}

/* The meter changes how lanes take turns; what they compute must stay. */
Test(meter, results_stay_the_same) {
    enum { N = BLOCKS * 64 };
    int values[N], got[2][N];
    for (int i = 0; i < N; i++) values[i] = i * i % 1009;
    int *in = on_device(values);
    for (int metered = 0; metered < 2; metered++) {
        int *out = on_device(values);
        if (metered) start(1);
        add<<<BLOCKS, 64>>>(in, out);
        events<<<2, 64>>>(out);
        divergence<<<1, 64>>>(in, out + 256);
        local_array<<<1, 64>>>(in, out + 576);
        async<<<1, 32>>>((float *)in, (float *)out + 640);
        EXPECT_OK(cudaDeviceSynchronize());
        EXPECT_OK(cudaMemcpy(got[metered], out, sizeof values, cudaMemcpyDeviceToHost));
    }
    simt_meter_stop();
    cr_assert_arr_eq(got[0], got[1], sizeof values);
}
