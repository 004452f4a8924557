/* The C interface, as a program without this project's other headers uses it: libattention_test_steps.so holds 01, 09 and
 * the two steps that live in tests/ only. */
#include "interface.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <math.h>
#include <string.h>

static const float Q[16] = {0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 2, 1, 1, 0};
static const float K[16] = {0, 0, 1, 0, 0, 2, 0, 0, -1, 0, 2, 1, 1, 1, 0, 0};
static const float V[16] = {1, 0, 2, 0, 0, 3, 0, 1, 4, 0, 0, -2, 0, 1, -1, 5};
static const float O_row_0[4] = {2.25f, 0.5f, 0.375f, -0.25f}; /* docs/math.md: (2, 1, 4, 1) / 8 of the rows of V */

static void need_device(void) {
    int count = 0;
    if (attention_device_count(&count) != 0 || count == 0) cr_skip_test("no CUDA device");
}

static void *device(const float *values, size_t bytes) {
    void *pointer = NULL;
    cr_assert_eq(cudaMalloc(&pointer, bytes), cudaSuccess);
    if (values != NULL) cr_assert_eq(cudaMemcpy(pointer, values, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return pointer;
}

/* The 4 x 4 example for a step. */
static struct attention_call example(const char *step, int pass) {
    struct attention_call call = {.bytes = sizeof call, .step = attention_step_find(step), .pass = pass};
    call.batch = call.heads = 1;
    call.N_q = call.N_kv = call.d = 4;
    call.scale = 0.693147180559945309f;
    cr_assert_geq(call.step, 0, "%s", step);
    return call;
}

Test(interface, fields_describe_the_struct) {
    size_t end = 0;
    int count = 0;
    for (const struct attention_field *f = attention_fields(); f->name != NULL; f++, count++) {
        size_t bytes = strcmp(f->type, "int") == 0 || strcmp(f->type, "float") == 0 ? 4 : 8;
        cr_assert_geq(f->offset, end, "%s", f->name);
        end = f->offset + bytes;
    }
    cr_assert_eq(count, 38);
    cr_assert_leq(end, attention_call_bytes());
    cr_assert_eq(attention_call_bytes(), sizeof(struct attention_call));
}

Test(interface, steps_are_found_by_name_and_by_number) {
    cr_assert_eq(attention_step_count(), 5);
    cr_assert_str_eq(attention_step_name(0), "01_naive");
    cr_assert_eq(attention_step_find("01"), 0);
    cr_assert_eq(attention_step_find("97_both_passes"), 3);
    cr_assert_eq(attention_step_find("0"), -1);
    cr_assert_eq(attention_step_find(""), -1);
    cr_assert_eq(attention_step_find(NULL), -1);
    cr_assert_null(attention_step_name(5));
    cr_assert_null(attention_step_name(-1));
    cr_assert(attention_step_has(3, ATTENTION_FORWARD) && attention_step_has(3, ATTENTION_BACKWARD));
    cr_assert(!attention_step_has(0, ATTENTION_BACKWARD) && !attention_step_has(1, ATTENTION_FORWARD));
    cr_assert(!attention_step_has(0, 7) && !attention_step_has(9, 0));
}

Test(interface, what_a_step_does_not_do_is_refused_with_a_reason) {
    struct attention_call call = example("96", ATTENTION_FORWARD);
    cr_assert_not_null(strstr(attention_refuses(&call), "multiple of 16"));
    call.d = 32;
    cr_assert_null(attention_refuses(&call));
    call.pass = ATTENTION_BACKWARD;
    cr_assert_not_null(strstr(attention_refuses(&call), "pass"));
    call = example("01", ATTENTION_FORWARD);
    call.d = 129;
    cr_assert_not_null(strstr(attention_refuses(&call), "129"));
    call.d = 4;
    call.batch = 70000;
    cr_assert_not_null(strstr(attention_refuses(&call), "70000"));
    cr_assert_eq(attention_run(&call), cudaErrorNotSupported);
    cr_assert_eq(attention_workspace_bytes(&call), 0);
    call.batch = 1;
    cr_assert_eq(attention_workspace_bytes(&call), 2 * 16 * sizeof(float));
    call.heads = 6, call.heads_kv = 2;
    cr_assert_not_null(strstr(attention_refuses(&call), "grouped heads"));
    call = example("14", ATTENTION_FORWARD);
    call.dtype = 2, call.d = 8, call.heads = 6;
    cr_assert_null(attention_refuses(&call));
    call.heads_kv = 2;
    cr_assert_null(attention_refuses(&call));
    call.heads_kv = 4;
    cr_assert_not_null(strstr(attention_refuses(&call), "4 heads of K and V"));
    call.heads_kv = -1;
    cr_assert_not_null(attention_refuses(&call));
}

Test(interface, another_layout_is_refused) {
    struct attention_call call = example("97", ATTENTION_FORWARD);
    call.bytes -= 8;
    cr_assert_not_null(strstr(attention_refuses(&call), "layout"));
    cr_assert_eq(attention_run(&call), cudaErrorInvalidValue);
}

Test(interface, forward_and_backward_of_the_example, .init = need_device) {
    struct attention_call call = example("97", ATTENTION_FORWARD);
    call.Q = device(Q, sizeof Q);
    call.K = device(K, sizeof K);
    call.V = device(V, sizeof V);
    cr_assert_eq(attention_run(&call), cudaErrorInvalidValue, "O is NULL");
    float *O = device(NULL, sizeof Q + 4), *L = device(NULL, 4 * sizeof(float));
    call.L = L;
    call.O = O + 1;
    cr_assert_eq(attention_run(&call), cudaErrorMisalignedAddress);
    call.O = O;
    cr_assert_eq(attention_run(&call), cudaSuccess);
    float got[16];
    cr_assert_eq(cudaMemcpy(got, O, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int c = 0; c < 4; c++) cr_assert_float_eq(got[c], O_row_0[c], 1e-6f);
    /* dO = O: the sum of dV over keys is the sum of dO over rows. */
    call.pass = ATTENTION_BACKWARD;
    call.dO = O;
    call.dQ = device(NULL, sizeof Q);
    call.dK = device(NULL, sizeof K);
    call.dV = device(NULL, sizeof V);
    cr_assert_eq(attention_run(&call), cudaSuccess);
    float dV[16];
    cr_assert_eq(cudaMemcpy(dV, call.dV, sizeof dV, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int c = 0; c < 4; c++)
        cr_assert_float_eq(dV[c] + dV[4 + c] + dV[8 + c] + dV[12 + c], got[c] + got[4 + c] + got[8 + c] + got[12 + c],
                           1e-5f);
}
