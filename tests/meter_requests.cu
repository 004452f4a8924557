/* Requests to shared memory and to global memory: banks, sectors, atomics. */
#include "meter_test.h"

#include "ptx.cuh"

/* ---- banks ------------------------------------------------------------------------------------------------------- */

__global__ static void shared_stride(int *out, int stride) {
    __shared__ int words[1024];
    int lane = (int)threadIdx.x;
    words[lane * stride] = lane; // stride store
    __syncwarp();
    out[lane] = words[lane * stride]; // stride load
}

Test(meter, bank_conflicts_of_strides) {
    static const struct {
        int stride, ways;
    } cases[] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}, {3, 1}, {6, 2}, {12, 4}, {31, 1}, {0, 1}};
    int *out = filled_on_device<int>(0, 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int stride = cases[i].stride, ways = cases[i].ways;
        char what[40];
        snprintf(what, sizeof what, "stride %d", stride);
        if (stride == 0) continue; /* all lanes would write one word: a race */
        start(1);
        shared_stride<<<1, 32>>>(out, stride);
        const cJSON *kernel = finish();
        expect_total(kernel, "shared_store_requests", 1, what);
        expect_total(kernel, "shared_store_wavefronts", ways, what);
        expect_total(kernel, "shared_store_conflicts", ways - 1, what);
        expect_total(kernel, "shared_load_requests", 1, what);
        expect_total(kernel, "shared_load_wavefronts", ways, what);
        expect_total(kernel, "shared_load_conflicts", ways - 1, what);
    }
}

__global__ static void shared_pick(const int *pick, int *out) {
    __shared__ int words[1024];
    int lane = (int)threadIdx.x, mine = pick[lane];
    for (int i = lane; i < 1024; i += 32) words[i] = i;
    __syncwarp();
    out[lane] = words[mine];
}

__global__ static void shared_float2(const int *pick, float *out) {
    __shared__ float2 pairs[64];
    int lane = (int)threadIdx.x, mine = pick[lane];
    for (int i = lane; i < 64; i += 32) pairs[i] = make_float2((float)i, 1.0f);
    __syncwarp();
    float2 pair = pairs[mine];
    out[lane] = pair.x + pair.y;
}

__global__ static void shared_float4(const int *pick, float *out) {
    __shared__ float4 fours[560];
    int lane = (int)threadIdx.x, mine = pick[lane];
    for (int i = lane; i < 560; i += 32) fours[i] = make_float4((float)i, 0.0f, 0.0f, 1.0f);
    __syncwarp();
    float4 four = fours[mine];
    out[lane] = four.x + four.w;
}

/* `pick` gives the float (or float2, or float4) that each lane reads. */
static void expect_wavefronts(const int *pick, int floats, int wavefronts, int conflicts, const char *what) {
    int *device_pick = on_device(pick, 32);
    float *out = filled_on_device<float>(0, 32);
    start(1);
    switch (floats) {
    case 1: shared_pick<<<1, 32>>>(device_pick, (int *)out); break;
    case 2: shared_float2<<<1, 32>>>(device_pick, out); break;
    case 4: shared_float4<<<1, 32>>>(device_pick, out); break;
    }
    const cJSON *kernel = finish();
    expect_total(kernel, "shared_load_requests", 1, what);
    expect_total(kernel, "shared_load_wavefronts", wavefronts, what);
    if (conflicts >= 0) expect_total(kernel, "shared_load_conflicts", conflicts, what);
    expect_total(kernel, "shared_store_conflicts", 0, what);
    EXPECT_OK(cudaFree(device_pick));
    EXPECT_OK(cudaFree(out));
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

__global__ static void shared_wide(float *out, int stride) {
    __shared__ float2 pairs[256];
    int lane = (int)threadIdx.x;
    pairs[lane * stride] = make_float2((float)lane, 0.5f);
    __syncwarp();
    float2 pair = pairs[lane * stride];
    out[lane] = pair.x + pair.y;
}

Test(meter, eight_byte_accesses_go_by_half_warps) {
    static const struct {
        int stride, wavefronts, conflicts;
    } cases[] = {{1, 2, 0}, {2, 4, 2}, {4, 8, 6}, {3, 2, 0}};
    float *out = filled_on_device<float>(0, 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[40];
        snprintf(what, sizeof what, "float2, stride %d", cases[i].stride);
        start(1);
        shared_wide<<<1, 32>>>(out, cases[i].stride);
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
    int *device_pick = on_device(pick);
    float *out = filled_on_device<float>(0, 32);
    start(1);
    shared_float2<<<1, 32>>>(device_pick, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "shared_store_requests", 64 / 32, "float2");
    expect_total(kernel, "shared_store_wavefronts", 2 * 64 / 32, "float2");
    start(1);
    shared_float4<<<1, 32>>>(device_pick, out);
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

__global__ static void global_load(const int *in, int *out, int stride, int offset) {
    int lane = (int)threadIdx.x;
    out[lane] = in[lane * stride + offset];
}

__global__ static void global_store(const int *in, int *out, int stride, int offset) {
    int lane = (int)threadIdx.x;
    out[lane * stride + offset] = in[lane];
}

Test(meter, sectors_of_a_request) {
    static const struct {
        int stride, offset, sectors;
        const char *what;
    } cases[] = {{1, 0, 4, "coalesced"},  {1, 1, 5, "misaligned by one"}, {1, 8, 4, "a sector further"},
                 {2, 0, 8, "stride 2"},   {4, 0, 16, "stride 4"},         {8, 0, 32, "stride 8"},
                 {8, 3, 32, "stride 8+"}, {16, 0, 32, "stride 16"},       {-1, 31, 4, "backwards"}};
    enum { ROOM = 32 * 16 };
    int *in = filled_on_device<int>(0, ROOM), *out = filled_on_device<int>(0, ROOM);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(1);
        global_load<<<1, 32>>>(in, out, cases[i].stride, cases[i].offset);
        const cJSON *kernel = finish();
        expect_total(kernel, "global_load_requests", 1, cases[i].what);
        expect_total(kernel, "global_load_sectors", cases[i].sectors, cases[i].what);
        expect_total(kernel, "global_store_sectors", 4, cases[i].what);
        expect_number(kernel, "different_bytes_read", 128, cases[i].what);
        start(1);
        global_store<<<1, 32>>>(in, out, cases[i].stride, cases[i].offset);
        kernel = finish();
        expect_total(kernel, "global_store_requests", 1, cases[i].what);
        expect_total(kernel, "global_store_sectors", cases[i].sectors, cases[i].what);
        expect_total(kernel, "global_load_sectors", 4, cases[i].what);
        expect_number(kernel, "different_bytes_written", 128, cases[i].what);
    }
    start(1);
    global_load<<<1, 32>>>(in, out, 0, 5);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_sectors", 1, "one address for all");
    expect_number(kernel, "different_bytes_read", 4, "one address for all");
}

__global__ static void global_float4(const float4 *in, float4 *out) { out[threadIdx.x] = in[threadIdx.x]; }

Test(meter, float4_takes_sixteen_sectors) {
    float *in = filled_on_device<float>(0, 128), *out = filled_on_device<float>(0, 128);
    start(1);
    global_float4<<<1, 32>>>((const float4 *)in, (float4 *)out);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_requests", 1, "float4");
    expect_total(kernel, "global_load_sectors", 16, "float4");
    expect_total(kernel, "global_store_requests", 1, "float4");
    expect_total(kernel, "global_store_sectors", 16, "float4");
    expect_number(kernel, "different_bytes_read", 512, "float4");
    expect_number(kernel, "different_bytes_written", 512, "float4");
}

__global__ static void global_float4_pick(const int *pick, const float4 *in, float *out) {
    int lane = (int)threadIdx.x, mine = pick[lane];
    float4 four = in[mine]; // picked
    out[lane] = four.x + four.w;
}

/* A sector that several lanes want counts once, wherever in the warp they are. */
Test(meter, float4_sectors_over_the_whole_warp) {
    static const struct {
        int shift, mask, sectors;
    } cases[] = {{0, 31, 16}, {1, 31, 8}, {5, 31, 1}, {0, 15, 8}, {0, 1, 1}};
    float *in = filled_on_device<float>(0, 128), *out = filled_on_device<float>(0, 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[40];
        snprintf(what, sizeof what, "l >> %d & %d", cases[i].shift, cases[i].mask);
        PICK(l >> cases[i].shift & cases[i].mask);
        start(1);
        global_float4_pick<<<1, 32>>>(on_device(pick), (const float4 *)in, out);
        expect_number(at_line(finish(), "picked", "global", "load"), "sectors", cases[i].sectors, what);
    }
}

__global__ static void load_or_zeros(const float4 *in, float4 *out, int count) {
    int lane = (int)threadIdx.x;
    float4 zeros = {};
    out[lane] = lane < count ? in[lane] : zeros;
}

/* g++ lets all lanes load: from global memory, or from a variable on their own stack. Measured on an H200, in 10a to 10d. */
Test(meter, lanes_that_load_a_local_variable_instead) {
    float *in = filled_on_device<float>(0, 128), *out = filled_on_device<float>(0, 128);
    start(1);
    load_or_zeros<<<1, 32>>>((const float4 *)in, (float4 *)out, 20);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_load_requests", 1, "20 lanes");
    expect_total(kernel, "global_load_sectors", 10, "20 lanes");
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

__global__ static void atomics_on(int *global, bool same) {
    __shared__ int bins[32];
    int lane = (int)threadIdx.x;
    bins[lane] = 0;
    __syncwarp();
    atomicAdd(&bins[same ? 0 : lane], lane);
    atomicAdd(&global[same ? 0 : lane], lane);
}

Test(meter, atomics) {
    for (int same = 0; same < 2; same++) {
        int *cells = filled_on_device<int>(0, 32);
        start(1);
        atomics_on<<<1, 32>>>(cells, same);
        const cJSON *kernel = finish();
        const char *what = same ? "one word for all" : "a word for each lane";
        expect_total(kernel, "global_atomic_requests", 1, what);
        expect_total(kernel, "global_atomic_sectors", same ? 1 : 4, what);
        expect_total(kernel, "shared_atomic_requests", 1, what);
        expect_total(kernel, "global_load_requests", 0, what);
        expect_total(kernel, "global_store_requests", 0, what);
    }
}

// A warp adds four floats a lane to 128 floats that lie side by side.
__global__ static void vector_atomics(float *sums) {
    reduce_add4(sums + 4 * threadIdx.x, make_float4(1.0f, 2.0f, 3.0f, 4.0f));
}

/* One request of 16 bytes a lane, where four atomicAdd() would be four of 4 bytes, each touching all sectors. */
Test(meter, vector_atomics) {
    float *sums = filled_on_device<float>(0, 128), got[128];
    start(1);
    vector_atomics<<<2, 32>>>(sums);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_atomic_requests", 2, "two warps");
    expect_total(kernel, "global_atomic_sectors", 32, "two warps");
    EXPECT_OK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 128; i++) cr_assert_eq(got[i], 2.0f * (float)(i % 4 + 1));
}
