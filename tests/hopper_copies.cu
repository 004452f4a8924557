/* cp.async.bulk.tensor against plain C: boxes of 1 to 5 dimensions, swizzled and at the edges; what cuTensorMapEncodeTiled()
 * refuses; and cp.async.bulk and cp.reduce.async.bulk of bytes in a row. For cards of compute_capability = 90. */
#include "device_test.h"

#include <stdint.h>

#include "hopper.cuh"

static void need_hopper() {
    need_device();
    cudaDeviceProp device;
    EXPECT_OK(cudaGetDeviceProperties(&device, 0));
    if (device.major != 9) cr_skip_test("needs compute capability 9.0");
}

TestSuite(tensor_maps, .init = need_hopper, .timeout = 60);
TestSuite(bulk_copies, .init = need_hopper, .timeout = 60);
TestSuite(tensor_copies, .init = need_hopper, .timeout = 60);

typedef decltype(&cuTensorMapEncodeTiled) encoder;
static encoder find_encoder() {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    EXPECT_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    cr_assert_eq(found, cudaDriverEntryPointSuccess);
    return (encoder)function;
}

/* What a test changes of a map that is right. */
struct request {
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
    cuuint32_t rank = 3;
    uintptr_t misaligned = 0;
    cuuint64_t sizes[5] = {72, 30, 3, 2, 2}, strides[4] = {160, 160 * 30, 160 * 90, 160 * 180};
    cuuint32_t box[5] = {64, 8, 1, 1, 1}, every[5] = {1, 1, 1, 1, 1};
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
};

static CUresult encode(CUtensorMap *map, const void *memory, const request &r) {
    return find_encoder()(map, r.type, r.rank, (char *)memory + r.misaligned, r.sizes, r.strides, r.box, r.every,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, r.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

Test(tensor_maps, refused) {
    CUtensorMap map;
    void *memory = filled_on_device<char>(0, 1 << 20);
    capture_stderr();
    cr_assert_eq(encode(&map, memory, {}), CUDA_SUCCESS);
    cr_assert_eq(encode(&map, memory, {.misaligned = 8}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.rank = 0}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.rank = 6}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.sizes = {72, 0, 3}}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.strides = {152, 160 * 30}}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.strides = {160, (cuuint64_t)1 << 40}}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.box = {64, 257, 1}}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.box = {64, 0, 1}}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.box = {72, 8, 1}}), CUDA_ERROR_INVALID_VALUE); /* wider than the swizzle */
    cr_assert_eq(encode(&map, memory, {.box = {60, 8, 1}}), CUDA_ERROR_INVALID_VALUE); /* 120 bytes */
    cr_assert_eq(encode(&map, memory, {.every = {1, 9, 1}}), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode(&map, memory, {.box = {64, 8, 1}, .swizzle = CU_TENSOR_MAP_SWIZZLE_64B}),
                 CUDA_ERROR_INVALID_VALUE);
    cudaFree(memory);
}

Test(tensor_maps, entry_points) {
    void *function = &function;
    cudaDriverEntryPointQueryResult found;
    EXPECT_OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &found));
    cr_assert_eq(found, cudaDriverEntryPointSymbolNotFound);
    cr_assert_null(function);
}

/* ---- loads and stores: the box as shared memory holds it, byte by byte; and back to another place ---- */

extern __shared__ __align__(1024) unsigned char bytes[];

struct place {
    int at[5];
};

template <int RANK> __device__ static void load_box(const CUtensorMap *map, place p, uint64_t *full) {
    uint32_t to = shared_address(bytes), barrier = shared_address(full);
    if constexpr (RANK == 1)
        asm volatile(
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(
                to),
            "l"(map), "r"(p.at[0]), "r"(barrier)
            : "memory");
    if constexpr (RANK == 2)
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
                "r"(to),
            "l"(map), "r"(p.at[0]), "r"(p.at[1]), "r"(barrier)
            : "memory");
    if constexpr (RANK == 3) tma_load(bytes, map, p.at[0], p.at[1], p.at[2], full);
    if constexpr (RANK == 4)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                     "%4, %5}], [%6];" ::"r"(to),
                     "l"(map), "r"(p.at[0]), "r"(p.at[1]), "r"(p.at[2]), "r"(p.at[3]), "r"(barrier)
                     : "memory");
    if constexpr (RANK == 5)
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                     "%4, %5, %6}], [%7];" ::"r"(to),
                     "l"(map), "r"(p.at[0]), "r"(p.at[1]), "r"(p.at[2]), "r"(p.at[3]), "r"(p.at[4]), "r"(barrier)
                     : "memory");
}

template <int RANK>
__global__ static void copy_box(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap to,
                                place p, int count, unsigned char *seen) {
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&full, count);
        load_box<RANK>(&map, p, &full);
    }
    __syncthreads();
    mbarrier_wait(&full, 0);
    for (int i = threadIdx.x; i < count; i += blockDim.x) seen[i] = bytes[i];
    if (RANK != 3 || threadIdx.x != 0 || p.at[0] < 0 || p.at[1] < 0 || p.at[2] < 0) return;
    tma_store(&to, p.at[0], p.at[1], p.at[2], bytes);
    tma_commit();
    tma_wait_read<0>();
}

enum { ELEMENTS = 80 * 30 * 3 * 2 * 2 }; /* of 16 bits; rows of 72 are 80 apart */

template <int RANK> static void check_box(CUtensorMapSwizzle swizzle, place p, const cuuint32_t (&box)[5]) {
    static uint16_t values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) values[i] = (uint16_t)(i * 40503u + 7);
    uint16_t *memory = on_device(values), *target = filled_on_device<uint16_t>(0, ELEMENTS);
    request r = {.rank = RANK, .swizzle = swizzle};
    memcpy(r.box, box, sizeof r.box);
    int count = 2;
    for (int d = 0; d < RANK; d++) count *= (int)box[d];
    CUtensorMap map, to;
    cr_assert_eq(encode(&map, memory, r), CUDA_SUCCESS);
    cr_assert_eq(encode(&to, target, r), CUDA_SUCCESS);
    unsigned char *seen = filled_on_device<unsigned char>(0xff, (size_t)count);
    copy_box<RANK><<<1, 64, count>>>(map, to, p, count, seen);
    std::vector<unsigned char> got = take_back(seen, (size_t)count);
    std::vector<uint16_t> stored = take_back(target, ELEMENTS), wanted(ELEMENTS);
    cuuint64_t strides[5] = {2, 160, 160 * 30, 160 * 90, 160 * 180};
    int mask = swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? 7
               : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 3
                                                      : swizzle == CU_TENSOR_MAP_SWIZZLE_32B;
    for (int i = 0; i < count / 2; i++) {
        int rest = i, address = 2 * i;
        long offset = 0;
        bool inside = true;
        for (int d = 0; d < RANK; rest /= (int)box[d++]) {
            long index = p.at[d] + rest % (int)box[d];
            inside = inside && index >= 0 && index < (long)r.sizes[d];
            offset += index * (long)strides[d];
        }
        address ^= (address >> 7 & mask) << 4;
        uint16_t value;
        memcpy(&value, &got[(size_t)address], 2);
        cr_assert_eq(value, inside ? values[offset / 2] : 0, "rank %d, swizzle %d, element %d", RANK, (int)swizzle, i);
        if (inside && RANK == 3 && p.at[0] >= 0 && p.at[1] >= 0 && p.at[2] >= 0)
            wanted[(size_t)offset / 2] = values[offset / 2];
    }
    for (int i = 0; i < ELEMENTS; i++) cr_assert_eq(stored[i], wanted[i], "stored element %d", i);
    EXPECT_OK(cudaFree(memory));
}

Test(tensor_copies, swizzles_and_edges) {
    static const place places[] = {{{0, 0, 0}},   {{8, 5, 1}},  {{64, 27, 2}},
                                   {{-8, -2, 0}}, {{16, 0, 2}}, {{40, 29, -1}}};
    for (const place &p : places) {
        check_box<3>(CU_TENSOR_MAP_SWIZZLE_128B, p, {64, 16, 1, 1, 1});
        check_box<3>(CU_TENSOR_MAP_SWIZZLE_64B, p, {32, 16, 2, 1, 1});
        check_box<3>(CU_TENSOR_MAP_SWIZZLE_32B, p, {16, 8, 3, 1, 1});
        check_box<3>(CU_TENSOR_MAP_SWIZZLE_NONE, p, {72, 9, 1, 1, 1});
    }
}

Test(tensor_copies, dimensions) {
    for (int at = -1; at < 2; at++) {
        check_box<1>(CU_TENSOR_MAP_SWIZZLE_NONE, {{at * 24}}, {64, 1, 1, 1, 1});
        check_box<2>(CU_TENSOR_MAP_SWIZZLE_128B, {{at * 24, at}}, {64, 8, 1, 1, 1});
        check_box<4>(CU_TENSOR_MAP_SWIZZLE_64B, {{at * 24, at, 1, at}}, {32, 4, 2, 2, 1});
        check_box<5>(CU_TENSOR_MAP_SWIZZLE_NONE, {{at * 24, at, 1, at, 1}}, {16, 4, 2, 2, 2});
    }
}

/* ---- bytes in a row ---- */

/* To shared memory by one copy, back to global memory by two in one group. */
__global__ static void copy_bytes(const unsigned char *from, unsigned char *to, int place, int count, int first_part) {
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&full, count);
        bulk_load(bytes + place, from, count, &full);
    }
    __syncthreads();
    mbarrier_wait(&full, 0);
    if (threadIdx.x != 0) return;
    bulk_store(to, bytes + place, first_part);
    bulk_store(to + first_part, bytes + place + first_part, count - first_part);
    tma_commit();
    tma_wait_read<0>();
}

Test(bulk_copies, there_and_back) {
    enum { MOST = 48000 };
    static unsigned char values[MOST];
    for (int i = 0; i < MOST; i++) values[i] = (unsigned char)(i * 40503u >> 7);
    unsigned char *memory = on_device(values);
    for (int count : {16, 48, 512, 4112, 30000 / 16 * 16})
        for (int offset : {0, 16, 272}) {
            unsigned char *target = filled_on_device<unsigned char>(0xab, MOST);
            copy_bytes<<<1, 64, offset + count>>>(memory + offset, target + 2 * offset, offset, count,
                                                  count / 3 / 16 * 16);
            std::vector<unsigned char> got = take_back(target, MOST);
            for (int i = 0; i < MOST; i++) {
                bool inside = i >= 2 * offset && i < 2 * offset + count;
                cr_assert_eq(got[(size_t)i], inside ? values[i - offset] : 0xab, "%d bytes from %d, byte %d", count,
                             offset, i);
            }
        }
    EXPECT_OK(cudaFree(memory));
}

enum { SLAB = 320, SLABS = 3, BLOCKS = 6 };

/* Each block adds its slabs to those of the others: two buffers in turns, and a slab is written again when it has been read. */
__global__ static void add_slabs(float *sums) {
    float *slabs = (float *)bytes;
    int t = threadIdx.x;
    for (int s = 0; s < SLABS; s++) {
        float *slab = slabs + s % 2 * SLAB;
        if (s >= 2) {
            if (t == 0) tma_wait_read<1>();
            __syncthreads();
        }
        for (int i = t; i < SLAB; i += blockDim.x) slab[i] = (float)(i + 1000 * s + 7 * blockIdx.x);
        fence_proxy_async();
        __syncthreads();
        if (t == 0) {
            bulk_reduce_add(sums + s * SLAB, slab, SLAB * sizeof *slab);
            tma_commit();
        }
    }
    if (t == 0) tma_wait_read<0>();
}

Test(bulk_copies, sums_of_blocks) {
    static float wanted[SLAB * SLABS + 8];
    for (int i = 0; i < SLAB * SLABS; i++) {
        wanted[i] = 5.0f;
        for (int b = 0; b < BLOCKS; b++) wanted[i] += (float)(i % SLAB + 1000 * (i / SLAB) + 7 * b);
    }
    static float start[SLAB * SLABS + 8];
    for (int i = 0; i < SLAB * SLABS; i++) start[i] = 5.0f;
    float *sums = on_device(start);
    add_slabs<<<BLOCKS, 96, 2 * SLAB * sizeof(float)>>>(sums);
    expect_values(sums, wanted, SLAB * SLABS + 8, "sum");
}

/* After .read the source may change; after the whole wait the destination is there for the thread, and past a barrier for others. */
__global__ static void read_then_landed(float *to, float *seen) {
    float *slab = (float *)bytes;
    int t = threadIdx.x;
    slab[t] = (float)t;
    fence_proxy_async();
    __syncthreads();
    if (t == 0) {
        bulk_store(to, slab, 64 * sizeof *slab);
        tma_commit();
        tma_wait_read<0>();
    }
    __syncthreads();
    slab[t] = 500.0f;
    if (t == 0) {
        tma_wait<0>();
        seen[64] = to[63];
    }
    __syncthreads();
    seen[t] = to[63 - t] + slab[t];
}

Test(bulk_copies, read_then_landed) {
    static float wanted[65];
    for (int i = 0; i < 64; i++) wanted[i] = 563.0f - (float)i;
    wanted[64] = 63.0f;
    float *to = filled_on_device<float>(0, 64), *seen = filled_on_device<float>(0, 65);
    read_then_landed<<<1, 64, 64 * sizeof(float)>>>(to, seen);
    expect_values(seen, wanted, 65, "seen");
    EXPECT_OK(cudaFree(to));
}

/* Blocks add in turns, each after the ones before it: to the last bit as one loop adds. */
__global__ static void add_in_turns(float *sums, const float *values, int *semaphore) {
    float *slab = (float *)bytes;
    int t = threadIdx.x, block = blockIdx.x;
    slab[t] = values[block * 64 + t];
    fence_proxy_async();
    __syncthreads();
    if (t != 0) return;
    semaphore_wait(semaphore, block);
    bulk_reduce_add(sums, slab, 64 * sizeof *slab);
    tma_commit();
    tma_wait<0>();
    semaphore_raise(semaphore);
}

Test(bulk_copies, sums_in_turns) {
    enum { TURNS = 24 };
    static float values[TURNS * 64], wanted[64], backwards[64];
    for (int i = 0; i < TURNS * 64; i++) values[i] = (float)(i * 40503u % 1009) / 97.0f * (i % 3 == 0 ? 1000.0f : 1.0f);
    bool order_matters = false;
    for (int t = 0; t < 64; t++) {
        for (int b = 0; b < TURNS; b++)
            wanted[t] += values[b * 64 + t], backwards[t] += values[(TURNS - 1 - b) * 64 + t];
        order_matters |= wanted[t] != backwards[t];
    }
    cr_assert(order_matters);
    float *memory = on_device(values), *sums = filled_on_device<float>(0, 64);
    int *semaphore = filled_on_device<int>(0, 1);
    add_in_turns<<<TURNS, 64, 64 * sizeof(float)>>>(sums, memory, semaphore);
    expect_values(sums, wanted, 64, "sum");
    EXPECT_OK(cudaFree(memory));
    EXPECT_OK(cudaFree(semaphore));
}
