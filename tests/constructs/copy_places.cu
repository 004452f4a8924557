// expect: 0 of 675 are wrong
#include "construct.h"
#include <cstring>

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

int main() {
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
}
