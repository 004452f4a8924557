#include "construct.h"
#include <cmath>

/* Functions without __device__ whose names mean something else in device code, or which only the host calls. */
constexpr int five() { return 5; }
static int twice(float x) { return (int)x; }
__device__ int twice(int x) { return 2 * x; }
namespace reference {
static int seven() { return 8; }
} // namespace reference
__device__ static int seven() { return 7; }
static int abs(const char *text) { return text == nullptr; }
static int nine(int x) { return x; }
static int four(int x) { return x; }
static float (*chosen(int))(float) { return nullptr; }
static int (one)(int x) { return x; }
static int measured(int x) { return x / 2; }
static int halved(int x) { return x / 2; }
struct numbers {
    __host__ int of_host() { return ::halved(40); }
    __device__ int of_device() { return halved(10); }
    __device__ static int halved(int x) { return 2 * x; }
};
struct multiplier {
    int by;
    __device__ multiplier(int by) : by(by) {}
    __device__ int operator()(int x) { return by * x; }
};
static void store(int *out, int value) { *out = value; }
__host__ __device__ int on_both(int *out) {
    return out == nullptr ? measured(2) : 33; // a warning of nvcc
}
__global__ void count(int *out) {
    constexpr int constant = five();
    auto nine = [](int x) { return x + 8; };
    multiplier four(4);
    static_assert(sizeof(measured(1)) == sizeof(int), "not called");
    out[0] = constant;
    out[1] = twice(constant);
    out[2] = seven();
    out[3] = abs(-3);
    out[4] = nine(1);
    out[5] = numbers().of_device();
    out[6] = on_both(out);
    out[7] = four(int(float(2)));
}

/* Pointers to a kernel, with names of functions. */
static void kernel() {}
static void launch(void (*store)(int *), int *out) { store<<<1, 1>>>(out); }
CONSTRUCT(host_function_names, "5 10 7 3 9 20 33 8") {
    int sum = twice(1.0f) + reference::seven() + abs("") + nine(1) + four(1) + one(1) + measured(2) + halved(2);
    if (sum + numbers().of_host() == 0 || chosen(1) != nullptr) kernel();
    return show<int>(8, [&](int *out) {
        auto kernel = count;
        kernel<<<1, 1>>>(out);
        launch(kernel, out);
    });
}
