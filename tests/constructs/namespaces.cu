// Names that several namespaces have, and what looks like a call of a function that runs elsewhere.
#include "construct.h"

namespace first {
__shared__ float kept[4];
__global__ void k(float *out, const float *in, int n) {
    kept[threadIdx.x] = in == nullptr ? n : 0;
    out[threadIdx.x] = kept[threadIdx.x];
}
} // namespace first
namespace second {
__shared__ int kept[2];
__global__ void k(float *out, int n) {
    kept[threadIdx.x] = n + 1;
    out[threadIdx.x] = kept[threadIdx.x];
}
} // namespace second

namespace shared_in_namespaces {
CONSTRUCT(shared_in_namespaces, "3 3 4 4") {
    return show<float>(4, [&](float *out) {
        first::k<<<1, 2>>>(out, 0, 3);
        second::k<<<1, 2>>>(out + 2, 3);
    });
}
} // namespace shared_in_namespaces

namespace first {
CONSTRUCT(overloads_in_namespaces, "5 5") {
    return show<float>(2, [&](float *out) { k<<<1, 2>>>(out, 0, 5); });
}
} // namespace first

namespace using_a_namespace {
using namespace first;
CONSTRUCT(using_a_namespace, "6 6") {
    return show<float>(2, [&](float *out) { k<<<1, 2>>>(out, (const float *)nullptr, 6); });
}
} // namespace using_a_namespace

namespace host_or_device {
__device__ int twice(int x) { return 2 * x; }
__host__ __device__ int both(int x) {
    return x == 1 ? 2 : x;
}
struct thing {
    int size() { return 2; }
    static int twice(int x) { return x; }
};
__global__ void k(int *out) {
    const int n = 2;
    int table[n] = {1, 2}, more[n + 1];
    more[n] = twice(both(table[threadIdx.x]) / 2);
    out[threadIdx.x] = more[n];
}
CONSTRUCT(host_or_device, "2 2") {
    int n = thing().size(), table[n];
    table[0] = thing::twice(both(n));
    return show<int>(table[0], [&](int *out) { k<<<1, 2>>>(out); });
}
} // namespace host_or_device
