/* What the tests of steps and of variants share. */
#ifndef STEP_TEST_H
#define STEP_TEST_H

#include <criterion/criterion.h>
#include <cuda_runtime.h>

#include <stdlib.h>

/* For .init of a test that runs kernels. */
static inline void skip_without_device(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
}

/* Memory of the caller's, never NULL. */
static inline float *floats(size_t count) {
    float *values = malloc(count * sizeof *values);
    cr_assert_not_null(values);
    return values;
}

#endif
