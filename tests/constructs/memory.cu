#include "construct.h"
#include <cstring>

namespace cached_store {
__global__ void k(int *out) { __stcg(&out[threadIdx.x], 5); }
CONSTRUCT(cached_store, "5 5 5 5") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace cached_store

namespace constant_array {
__constant__ int table[4] = {1, 2, 3, 4};
__global__ void k(int *out) { out[threadIdx.x] = table[3 - threadIdx.x]; }
CONSTRUCT(constant_array, "4 3 2 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace constant_array

namespace constant_copied_to_symbol {
__constant__ int table[4];
__global__ void k(int *out) { out[threadIdx.x] = table[threadIdx.x]; }
CONSTRUCT(constant_copied_to_symbol, "1 4 9 16") { return show<int>(4, [&](int *out) { int h[4] = {1, 4, 9, 16}; cudaMemcpyToSymbol(table, h, sizeof h); k<<<1, 4>>>(out); }); }
} // namespace constant_copied_to_symbol

namespace copied_from_symbol {
__device__ int result;
__global__ void k() { result = 7; }
CONSTRUCT(copied_from_symbol, "7") {
    int host = 0;
    k<<<1, 1>>>();
    must(cudaMemcpyFromSymbol(&host, result, sizeof host), "cudaMemcpyFromSymbol");
    printf("%d\n", host);
    return 0;
}
} // namespace copied_from_symbol

namespace copy_async_default_stream {
CONSTRUCT(copy_async_default_stream, "4 3 2 1") { return show<int>(4, [&](int *out) { int h[4] = {4, 3, 2, 1}; cudaMemcpyAsync(out, h, 16, cudaMemcpyHostToDevice); }); }
} // namespace copy_async_default_stream

namespace copy_places {
/* Each kind of copy from each kind of memory to each. "What CUDA documents": a copy whose direction fits its two sides is
 * made, and one with cudaMemcpyDefault finds its direction itself; a direction that fits them not is undefined. Of the
 * latter an H100 refuses those that would have the device access the host's pageable memory, with cudaErrorInvalidValue,
 * and makes the others; the simulated device refuses all. So, where a card makes a copy although its direction says
 * "host" for device memory, this program accepts that; it accepts nothing else that is not documented. */
enum place { PAGEABLE, TABLE, ON_DEVICE, VARIABLE_OF_DEVICE, IN_CONSTANT, PAGE_LOCKED_HOST, IN_MANAGED, MANAGED_VARIABLE, PLACES };
enum { N = 4, BYTES = N * sizeof(int) };

__device__ int variables[2][N], counter[N];
__constant__ int constants[2][N];
__device__ __managed__ int managed[2][N];
static int pageable[2][N];
static const int table[N] = {3, 1, 4, 1};
static void *address[2][PLACES];
static bool simulated;
static int wrong, counted;

static bool host_has(int place) { return place == PAGEABLE || place == TABLE || place >= PAGE_LOCKED_HOST; }
static bool device_has(int place) { return place != PAGEABLE && place != TABLE; }

static void expect(bool right, const char *what, int kind, int to, int from, cudaError_t got) {
    cudaGetLastError();
    counted++;
    if (right) return;
    printf("%s, kind %d, to %d, from %d: %s\n", what, kind, to, from, cudaGetErrorName(got));
    wrong++;
}

static void make_places() {
    for (int i = 0; i < 2; i++) {
        void *symbols[3];
        must(cudaGetSymbolAddress(&symbols[0], variables), "variables");
        must(cudaGetSymbolAddress(&symbols[1], constants), "constants");
        must(cudaGetSymbolAddress(&symbols[2], managed), "managed");
        address[i][PAGEABLE] = pageable[i];
        address[i][TABLE] = (void *)table;
        must(cudaMalloc(&address[i][ON_DEVICE], BYTES), "cudaMalloc");
        address[i][VARIABLE_OF_DEVICE] = (char *)symbols[0] + i * BYTES;
        address[i][IN_CONSTANT] = (char *)symbols[1] + i * BYTES;
        must(cudaMallocHost(&address[i][PAGE_LOCKED_HOST], BYTES), "cudaMallocHost");
        must(cudaMallocManaged(&address[i][IN_MANAGED], BYTES), "cudaMallocManaged");
        address[i][MANAGED_VARIABLE] = (char *)symbols[2] + i * BYTES;
    }
}

/* The right values are there. */
static bool holds(int to, const int *values) {
    int got[N] = {0};
    must(cudaMemcpy(got, address[0][to], BYTES, cudaMemcpyDefault), "reading");
    return memcmp(got, values, BYTES) == 0;
}

static const int *prepare(int to, int from) {
    static int values[N];
    static int round;
    int old[N] = {-1, -1, -1, -1};
    for (int i = 0; i < N; i++) values[i] = from == TABLE ? table[i] : 10 * ++round + i;
    must(cudaMemcpy(address[0][to], old, BYTES, cudaMemcpyDefault), "writing");
    if (from != TABLE) must(cudaMemcpy(address[1][from], values, BYTES, cudaMemcpyDefault), "writing");
    return values;
}

static void copy_each(bool async) {
    for (int kind = 0; kind < 4 + 1; kind++)
        for (int to = 0; to < PLACES; to++)
            for (int from = 0; from < PLACES; from++) {
                if (to == TABLE) continue;
                const int *values = prepare(to, from);
                cudaError_t error = async ? cudaMemcpyAsync(address[0][to], address[1][from], BYTES, (cudaMemcpyKind)kind)
                                          : cudaMemcpy(address[0][to], address[1][from], BYTES, (cudaMemcpyKind)kind);
                cudaDeviceSynchronize();
                bool to_device = kind == 1 || kind == 3, from_device = kind == 2 || kind == 3;
                bool fits = kind == cudaMemcpyDefault || ((to_device ? device_has(to) : host_has(to)) &&
                                                          (from_device ? device_has(from) : host_has(from)));
                bool refused_by_card = (to_device && !device_has(to)) || (from_device && !device_has(from));
                bool right = fits ? error == cudaSuccess && holds(to, values)
                             : refused_by_card || simulated
                                 ? error == cudaErrorInvalidValue && !holds(to, values)
                                 : error == cudaErrorInvalidValue || error == cudaSuccess;
                expect(right, async ? "cudaMemcpyAsync" : "cudaMemcpy", kind, to, from, error);
            }
}

/* Of a symbol's copy the direction must be one of its own, or the default; the other side is then found. */
static void copy_symbols() {
    int *variable;
    must(cudaGetSymbolAddress((void **)&variable, counter), "counter");
    for (int kind = 0; kind < 5; kind++)
        for (int other = 0; other < PLACES; other++) {
            int values[N] = {7 + other, kind, 5, 3}, got[N];
            bool wanted = kind != cudaMemcpyDeviceToDevice || device_has(other);
            cudaError_t expected = wanted ? cudaSuccess : cudaErrorInvalidValue;
            if (other == TABLE) memcpy(values, table, BYTES);
            else must(cudaMemcpy(address[0][other], values, BYTES, cudaMemcpyDefault), "writing");
            cudaError_t error = cudaMemcpyToSymbol(counter, address[0][other], BYTES, 0, (cudaMemcpyKind)kind);
            bool own = kind == cudaMemcpyHostToDevice || kind >= cudaMemcpyDeviceToDevice;
            must(cudaMemcpy(got, variable, BYTES, cudaMemcpyDefault), "reading");
            expect(error == (own ? expected : cudaErrorInvalidMemcpyDirection) &&
                       (error != cudaSuccess || memcmp(got, values, BYTES) == 0), "cudaMemcpyToSymbol", kind, 0, other, error);
            if (other == TABLE) continue;
            values[0] = 100 + other;
            must(cudaMemcpy(variable, values, BYTES, cudaMemcpyDefault), "writing");
            error = cudaMemcpyFromSymbol(address[0][other], counter, BYTES, 0, (cudaMemcpyKind)kind);
            own = kind >= cudaMemcpyDeviceToHost;
            expect(error == (own ? expected : cudaErrorInvalidMemcpyDirection) && (error != cudaSuccess || holds(other, values)),
                   "cudaMemcpyFromSymbol", kind, other, 0, error);
        }
}

/* What else takes an address, each with all kinds of memory. */
static void ask_each() {
    static const cudaMemoryType types[PLACES] = {cudaMemoryTypeUnregistered, cudaMemoryTypeUnregistered, cudaMemoryTypeDevice,
                                                 cudaMemoryTypeDevice, cudaMemoryTypeDevice, cudaMemoryTypeHost,
                                                 cudaMemoryTypeManaged, cudaMemoryTypeManaged};
    const cudaError_t no = cudaErrorInvalidValue;
    for (int i = 0; i < PLACES; i++) {
        cudaPointerAttributes of;
        void *pointer = address[0][i], *back;
        const int zeros[N] = {0, 0, 0, 0};
        cudaError_t error = cudaPointerGetAttributes(&of, pointer);
        expect(error == cudaSuccess && of.type == types[i] && (of.devicePointer != nullptr) == device_has(i) &&
                   (of.hostPointer != nullptr) == host_has(i), "cudaPointerGetAttributes", 0, i, 0, error);
        error = cudaHostGetDevicePointer(&back, pointer, 0);
        expect(error == (i == PAGE_LOCKED_HOST ? cudaSuccess : no), "cudaHostGetDevicePointer", 0, i, 0, error);
        if (i != TABLE) error = cudaMemset(pointer, 0, BYTES);
        if (i != TABLE) expect(error == (device_has(i) ? cudaSuccess : no) && (error != cudaSuccess || holds(i, zeros)), "cudaMemset", 0, i, 0, error);
    }
    static char large[1 << 22];
    for (int i = 0; i < PLACES; i++) {
        bool to_free = i == ON_DEVICE || i == IN_MANAGED, to_free_host = i == PAGE_LOCKED_HOST;
        if (to_free || to_free_host) {
            cudaError_t error = cudaMemcpy(address[0][i], large, sizeof large, cudaMemcpyDefault);
            expect(error == no, "too long", 4, i, 0, error);
        }
        cudaError_t error = to_free ? cudaFreeHost(address[0][i]) : cudaFree(address[0][i]);
        expect(error == no, "the wrong one of cudaFree and cudaFreeHost", 0, i, 0, error);
        if (!to_free && !to_free_host) continue;
        error = to_free ? cudaFree(address[0][i]) : cudaFreeHost(address[0][i]);
        expect(error == cudaSuccess, "free", 0, i, 0, error);
        error = to_free ? cudaFree(address[0][i]) : cudaFreeHost(address[0][i]);
        expect(error == no, "free again", 0, i, 0, error);
    }
}
CONSTRUCT(copy_places, "0 of 675 are wrong") {
    cudaDeviceProp properties;
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    simulated = strcmp(properties.name, "sim") == 0;
    make_places();
    copy_each(false);
    copy_each(true);
    copy_symbols();
    ask_each();
    printf("%d of %d are wrong\n", wrong, counted);
    return wrong > 0;
    return 0;
}
} // namespace copy_places

namespace copy_two_dimensions {
CONSTRUCT(copy_two_dimensions, "1 2 3 4") { return show<int>(4, [&](int *out) { int h[2][3] = {{1, 2, 0}, {3, 4, 0}}; cudaMemcpy2D(out, 8, h, 12, 8, 2, cudaMemcpyHostToDevice); }); }
} // namespace copy_two_dimensions

namespace device_array {
__device__ int table[4] = {1, 2, 3, 4};
__global__ void k(int *out) { out[threadIdx.x] = table[3 - threadIdx.x]; }
CONSTRUCT(device_array, "4 3 2 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace device_array

namespace device_const {
__device__ const float HALF = 0.5f;
__global__ void k(float *out) { out[threadIdx.x] = HALF; }
CONSTRUCT(device_const, "0.5 0.5 0.5 0.5") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace device_const

namespace device_constexpr {
__device__ constexpr int TWELVE = 12;
__global__ void k(int *out) { out[threadIdx.x] = TWELVE; }
CONSTRUCT(device_constexpr, "12 12 12 12") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace device_constexpr

namespace device_pointer_variable {
__device__ int *where;
__global__ void set(int *p) { where = p; }
__global__ void k() { where[threadIdx.x] = 3; }
CONSTRUCT(device_pointer_variable, "3 3 3 3") { return show<int>(4, [&](int *out) { set<<<1, 1>>>(out); k<<<1, 4>>>(); }); }
} // namespace device_pointer_variable

namespace device_variable {
__device__ int counter = 5;
__global__ void k(int *out) { out[blockIdx.x] = atomicAdd(&counter, 1); }
CONSTRUCT(device_variable, "5 6 0 0") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); k<<<1, 1>>>(out + 1); }); }
} // namespace device_variable

namespace ldg_load {
__global__ void k(int *out, const int *in) { out[threadIdx.x] = __ldg(&in[threadIdx.x]); }
CONSTRUCT(ldg_load, "0 1 2 3") { return show<int>(4, [&](int *out) { int h[4] = {0, 1, 2, 3}, *in; cudaMalloc((void **)&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, in); cudaFree(in); }); }
} // namespace ldg_load

namespace managed_memory {
__global__ void k(int *x) { x[threadIdx.x] *= 2; }
CONSTRUCT(managed_memory, "2 4 6 8") {
    int *x;
    must(cudaMallocManaged(&x, 16), "cudaMallocManaged");
    for (int i = 0; i < 4; i++) x[i] = i + 1;
    k<<<1, 4>>>(x);
    must(cudaDeviceSynchronize(), "k");
    printf("%d %d %d %d\n", x[0], x[1], x[2], x[3]);
    cudaFree(x);
    return 0;
}
} // namespace managed_memory

namespace managed_variable {
__device__ __managed__ int shared_by_both;
__global__ void k() { shared_by_both += 1; }
CONSTRUCT(managed_variable, "11") {
    shared_by_both = 10;
    k<<<1, 1>>>();
    must(cudaDeviceSynchronize(), "k");
    printf("%d\n", shared_by_both);
    return 0;
}
} // namespace managed_variable

namespace memset_bytes {
CONSTRUCT(memset_bytes, "16843009 16843009 16843009 16843009") { return show<int>(4, [&](int *out) { cudaMemset(out, 1, 16); }); }
} // namespace memset_bytes

namespace pinned_memory {
CONSTRUCT(pinned_memory, "1 2 3 4") { return show<int>(4, [&](int *out) { int *h; cudaMallocHost(&h, 16); for (int i = 0; i < 4; i++) h[i] = i + 1; cudaMemcpy(out, h, 16, cudaMemcpyHostToDevice); cudaFreeHost(h); }); }
} // namespace pinned_memory

namespace pitched_memory {
__global__ void k(int *out, const char *rows, size_t pitch) { out[threadIdx.x] = ((const int *)(rows + (threadIdx.x / 2) * pitch))[threadIdx.x % 2]; }
CONSTRUCT(pitched_memory, "5 5 5 5") { return show<int>(4, [&](int *out) { char *rows; size_t pitch; cudaMallocPitch(&rows, &pitch, 8, 2); int h[4] = {5, 5, 5, 5}; cudaMemcpy2D(rows, pitch, h, 8, 8, 2, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, rows, pitch); cudaFree(rows); }); }
} // namespace pitched_memory

namespace symbol_address {
__device__ int four[4];
__global__ void fill(int *x) { x[threadIdx.x] = 8; }
__global__ void k(int *out) { out[threadIdx.x] = four[threadIdx.x]; }
CONSTRUCT(symbol_address, "8 8 8 8") { return show<int>(4, [&](int *out) { int *x; cudaGetSymbolAddress((void **)&x, four); fill<<<1, 4>>>(x); k<<<1, 4>>>(out); }); }
} // namespace symbol_address

namespace three_dimensions {
__global__ void k(cudaPitchedPtr all) { /* row 1 of slice 2 */
    ((float *)((char *)all.ptr + (2 * all.ysize + 1) * all.pitch))[threadIdx.x] = (float)threadIdx.x;
}
CONSTRUCT(three_dimensions, "0 24 0 2") {
    cudaExtent extent = make_cudaExtent(100, 5, 3);
    cudaPitchedPtr all;
    float host[3][5][25];
    must(cudaMalloc3D(&all, extent), "cudaMalloc3D");
    must(cudaMemset3D(all, 0, extent), "cudaMemset3D");
    k<<<1, 25>>>(all);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = all, copy.dstPtr = make_cudaPitchedPtr(host, 100, 100, 5), copy.extent = extent,
    copy.kind = cudaMemcpyDeviceToHost;
    must(cudaMemcpy3D(&copy), "cudaMemcpy3D");
    copy.srcPos = make_cudaPos(8, 1, 2), copy.dstPos = make_cudaPos(0, 0, 0), copy.extent = make_cudaExtent(4, 1, 1);
    float before = host[0][0][0];
    must(cudaMemcpy3D(&copy), "cudaMemcpy3D");
    printf("%g %g %g %g\n", before, host[2][1][24], host[2][2][24], host[0][0][0]);
    return 0;
}
} // namespace three_dimensions

namespace default_pool {
__global__ void k(int *out) { out[threadIdx.x] = 5; }
CONSTRUCT(default_pool, "5 4096") {
    cudaMemPool_t pool;
    unsigned long long bytes = 4096, kept = 0;
    int *memory = nullptr, host[4];
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes), "cudaMemPoolSetAttribute");
    must(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept), "cudaMemPoolGetAttribute");
    must(cudaMallocFromPoolAsync((void **)&memory, sizeof host, pool, 0), "cudaMallocFromPoolAsync");
    k<<<1, 4>>>(memory);
    must(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFreeAsync(memory, 0), "cudaFreeAsync");
    printf("%d %llu\n", host[3], kept);
    return 0;
}
} // namespace default_pool
