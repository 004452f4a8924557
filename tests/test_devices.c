/* A step whose rows several devices share (chapter 17): each number of devices against the reference, whatever it leaves without
 * rows, and against itself on one device. */
#include "step_test.h"

#include "oracle.h"
#include "../common/simt/include/simulated.h"

#include <math.h>
#include <string.h>

#define step step_under_test

/* For .init: as many devices as `most`, or those of the machine. */
enum { MOST = 8 };
static int devices;
static void needs_devices(void) {
    if (step->most_devices <= 1) cr_skip_test("the step uses one device");
    setenv("SIMT_DEVICES", "8", 1);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) cr_skip_test("needs several devices");
    if (devices > MOST) devices = MOST;
}

static struct problem shared(int heads, int N, int d, bool causal, int count) {
    struct problem problem = problem_for(step, &(struct shape){1, heads, N, N, d, causal, 0.0f});
    problem.devices = count;
    return problem;
}

static void compare(const struct problem *problem, enum input_kind input) {
    struct run run = new_run(step, problem, input);
    forward(&run, step);
    char what[40];
    snprintf(what, sizeof what, "on %d devices", problem->devices);
    if (step->backward != NULL) backward(&run, step, false);
    expect_right(&run, step, step->backward != NULL, what);
    run_destroy(&run);
}

/* N below the number of devices, not divisible by it or by twice it; one tile per device and several. */
Test(devices, shapes, .init = needs_devices) {
    static const struct {
        int devices, N, d;
    } list[] = {{1, 301, 72}, {2, 1, 64},    {2, 129, 72}, {2, 640, 64}, {3, 2, 64},  {3, 301, 128},
                {4, 5, 72},   {4, 131, 128}, {3, 13, 64},  {8, 3, 128},  {8, 260, 72}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i += is_last_rung ? (size_t)every(4) : 3)
        for (int causal = 0; causal < 2 && list[i].devices <= devices; causal++) {
            struct problem problem =
                shared(1 + (list[i].devices == 3), list[i].N, list[i].d, causal != 0, list[i].devices);
            compare(&problem, INPUT_RANDOM);
        }
}

Test(devices, large_logits, .init = needs_devices) {
    for (int causal = 0; causal < 2; causal++)
        for (int count = 2; count <= (devices < 4 ? devices : 4); count++) {
            struct problem problem = shared(1, 150, 64, causal != 0, count);
            compare(&problem, INPUT_LARGE);
        }
}

Test(devices, other_type, .init = needs_devices) {
    for (int causal = 0; causal < 2; causal++) {
        struct problem problem = shared(2, 131, 96, causal != 0, devices < 3 ? devices : 3);
        problem.dtype = FP16, problem.batch = 2;
        compare(&problem, INPUT_RANDOM);
    }
}

static double root_mean_square(const struct run *run, const struct oracle *oracle, enum tensor tensor) {
    double sum = 0.0;
    size_t count = tensor_elements(&run->problem, tensor);
    for (size_t i = 0; i < count; i++) {
        double error = (double)run->host[tensor][i] - oracle->values[tensor][i];
        sum += error * error;
    }
    return sqrt(sum / (double)count);
}

/* The outputs that the step itself makes. */
static bool makes(enum tensor tensor) {
    return is_output(tensor) && (is_backward(tensor) ? step->backward != NULL : step->forward != NULL);
}

/* Sums of parts in fp32 lose nothing: in 16 bits the error would grow with each device. */
Test(devices, error_of_one, .init = needs_devices) {
    LEAVE_TO_CI();
    for (int causal = 0; causal < 2; causal++) {
        double of_one[TENSOR_COUNT] = {0.0};
        for (int count = 1; count <= devices; count *= is_last_rung ? 2 : 8) {
            struct problem problem = shared(1, 200, 64, causal != 0, count);
            struct run run = new_run(step, &problem, INPUT_RANDOM);
            forward(&run, step);
            if (step->backward != NULL) backward(&run, step, false);
            struct oracle oracle = ask_oracle(&run);
            for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
                if (!makes(tensor) || tensor == TENSOR_L) continue;
                double error = root_mean_square(&run, &oracle, tensor);
                if (count == 1) of_one[tensor] = error;
                if (getenv("PRINT_ERRORS") != NULL)
                    fprintf(stderr, "%s, %d devices: %s %.3f of one\n", step->name, count, tensor_table[tensor].name,
                            error / of_one[tensor]);
                cr_expect(error <= 1.05 * of_one[tensor], "%s: the error of %s on %d devices is %.3g, and on one %.3g",
                          step->name, tensor_table[tensor].name, count, error, of_one[tensor]);
            }
            free_oracle(&oracle);
            run_destroy(&run);
        }
    }
}

/* Passes one after the other, with nothing between them that waits: one may not begin to fill buffers that the one before still reads.
 * And none uses the default stream, or waits for what it starts. */
Test(devices, several_runs, .init = needs_devices) {
    struct problem problem = shared(1, 150, 64, true, devices < 4 ? devices : 4);
    attention_pass *pass = step->forward != NULL ? step->forward : step->backward;
    struct run run = new_run(step, &problem, INPUT_RANDOM);
    double *kept[TENSOR_COUNT] = {NULL};
    for (int again = 0; again < 2; again++) {
        forward(&run, step);
        if (step->backward != NULL) backward(&run, step, false);
        for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
            if (!makes(tensor) || tensor == TENSOR_dQ) continue; /* blocks add to dQ in any order */
            if (again == 0)
                kept[tensor] = keep(&run, tensor);
            else
                cr_expect(same_bits(&run, tensor, kept[tensor]), "%s: other bits in another run", step->name);
        }
    }
    cudaStream_t stream = NULL;
    void *shards = NULL;
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(step->distribute(&problem, &run.device, &shards), cudaSuccess);
    unsigned long uses = simt_default_stream_uses != NULL ? simt_default_stream_uses() : 0;
    unsigned long waits = simt_waits != NULL ? simt_waits() : 0;
    for (int i = 0; i < 3; i++) cr_assert_eq(pass(&problem, &run.device, shards, stream), cudaSuccess);
    if (simt_default_stream_uses != NULL) cr_assert_eq(simt_default_stream_uses(), uses, "the default stream was used");
    if (simt_waits != NULL) cr_assert_eq(simt_waits(), waits, "the pass waits for its kernels");
    int current = -1;
    cr_assert_eq(cudaGetDevice(&current), cudaSuccess);
    cr_assert_eq(current, 0, "device %d is current after a pass", current);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess); /* is enough: the pass has joined it */
    cr_assert_eq(step->collect(&problem, &run.device, shards), cudaSuccess);
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) free(kept[tensor]);
    run_destroy(&run);
}

/* Keys whose scores are -infinity weigh nothing. Here they are all but the first quarter, so a device with none of that merges parts
 * of which none has a weight. */
Test(devices, keys_without_weight, .init = needs_devices) {
    if (step->forward == NULL) cr_skip_test("no forward pass");
    struct problem problem = shared(1, 120, 64, false, devices < 4 ? devices : 4);
    struct run run = new_run(step, &problem, INPUT_RANDOM);
    size_t d = (size_t)problem.d, rows = (size_t)problem.N_q;
    for (size_t i = 0; i < rows; i++) {
        run.host[TENSOR_Q][i * d] = 1.0f;
        if (i >= rows / 4) run.host[TENSOR_K][i * d] = -INFINITY; /* its product with the 1 */
    }
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    struct oracle oracle = ask_oracle(&run);
    for (size_t i = 0; i < rows * d; i++) {
        double got = (double)run.host[TENSOR_O][i], expected = oracle.values[TENSOR_O][i];
        if (!(fabs(got - expected) <= 0.02 + 0.02 * fabs(expected))) {
            cr_expect(false, "%s: O[%zu] is %g instead of %g", step->name, i, got, expected);
            break;
        }
    }
    free_oracle(&oracle);
    run_destroy(&run);
}

Test(devices, refused, .init = needs_devices) {
    struct problem problem = shared(1, 64, 64, false, 2);
    struct passes passes = {.forward = step->forward != NULL, .backward = step->forward == NULL};
    cr_expect_null(step_refuses(step, &problem, passes));
    problem.N_kv = 65;
    cr_expect_not_null(step_refuses(step, &problem, passes), "other keys than queries are refused");
    problem.N_kv = 64, problem.devices = step->most_devices + 1;
    cr_expect_not_null(step_refuses(step, &problem, passes), "more devices than the step takes are refused");
    problem.devices = -1;
    cr_expect_not_null(step_refuses(step, &problem, passes), "no devices are refused");
}
