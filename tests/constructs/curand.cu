#include "construct.h"
#include <curand_kernel.h>

/* What cuRAND 13's own header computes, compiled for the host. */
namespace words_of_generators {
template <typename State> __device__ void words(double *out) {
    State state;
    curand_init(0xdeadbeefcafe1234ull, 12345678901ull, 98765432109ull, &state);
    for (int i = 0; i < 3; i++) out[i] = curand(&state) % 999999937;
    skipahead(1234567ull, &state);
    skipahead_sequence(77ull, &state);
    out[3] = curand(&state) % 999999937;
}
__global__ void k(double *out) {
    words<curandState>(out);
    words<curandStatePhilox4_32_10_t>(out + 4);
}
CONSTRUCT(words_of_generators,
          "918272577 608429083 439327203 392141468 622194584 369587075 592316814 96438351") {
    return show<double>(8, [&](double *out) { k<<<1, 1>>>(out); });
}
} // namespace words_of_generators

namespace numbers_of_generators {
template <typename State> __device__ void numbers(float *out) {
    State state;
    curand_init(1234, 5, 3, &state);
    out[0] = curand_uniform(&state);
    out[1] = (float)curand_uniform_double(&state);
    out[2] = curand_normal(&state);
    out[3] = curand_normal(&state);
    out[4] = (float)curand_normal_double(&state);
    out[5] = curand_log_normal(&state, 0.5f, 0.25f);
    for (int i = 0; i < 6; i++) out[i] = rintf(1e5f * out[i]); /* a card's sine differs in the last bits */
}
__global__ void k(float *out) {
    numbers<curandStateXORWOW_t>(out);
    numbers<curandStatePhilox4_32_10_t>(out + 6);
    curandStatePhilox4_32_10_t state;
    curand_init(1234, 5, 3, &state);
    float4 four = curand_uniform4(&state);
    out[12] = rintf(1e5f * four.x), out[13] = rintf(1e5f * four.w);
}
CONSTRUCT(numbers_of_generators,
          "38029 62933 -84876 16344 182920 202171 74057 36079 157628 54376 40547 140860 74057 19713") {
    return show<float>(14, [&](float *out) { k<<<1, 1>>>(out); });
}
} // namespace numbers_of_generators
