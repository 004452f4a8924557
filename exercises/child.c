/* The program around a submission: runs its kernels once on one problem and hands the results over. It has no expected
 * value: the grader, another process, compares. Descriptor 3 receives
 *     a line: "ok" or the CUDA error's name; then each output as floats, in the order of enum tensor; then the meter's JSON.
 * What the simulated device found goes to standard error. Exit status 4: the step refuses the problem, and says why there. */
#include "run.h"
#include "simulated.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METERED = 1, IN_STEP = 2 };

extern const struct step submitted_step; /* which the linker equates with the struct step of the kernel file */

/* child DTYPE BATCH HEADS N_q N_kv d CAUSAL SCALE INPUT SEED BACKWARD HOW, where HOW is METERED, IN_STEP, their sum or 0
 * child: prints what its struct step does as a rule: BACKWARD DTYPE */
int main(int argc, char **argv) {
    if (argc == 1) return printf("%d %d\n", submitted_step.forward == NULL, usual_dtype(&submitted_step)) < 0;
    if (argc != 13) return EXIT_USAGE;
    int values[13];
    for (int i = 1; i < argc; i++) values[i] = atoi(argv[i]);
    struct problem problem = {.dtype = (enum dtype)values[1],
                              .batch = values[2],
                              .heads = values[3],
                              .N_q = values[4],
                              .N_kv = values[5],
                              .d = values[6],
                              .causal = values[7] != 0,
                              .scale = strtof(argv[8], NULL)};
    uint64_t seed = strtoull(argv[10], NULL, 10);
    for (int i = 1; i < argc; i++) memset(argv[i], 0, strlen(argv[i])); /* a kernel has no business with them */
    bool backward = values[11] != 0, meter = (values[12] & METERED) != 0;
    const struct step *step = &submitted_step;
    const char *refused = step_refuses(step, &problem, (struct passes){.forward = !backward, .backward = backward});
    if (refused != NULL) {
        fprintf(stderr, "%s: %s\n", step->name, refused);
        return EXIT_REFUSED;
    }
    FILE *results = fdopen(3, "w");
    if (results == NULL) return EXIT_USAGE;
    struct run run;
    cudaError_t error = run_create(&run, step, &problem, (enum input_kind)values[9], seed);
    if ((values[12] & IN_STEP) != 0) simt_run_in_step();
    if (error == cudaSuccess && meter && !backward) simt_meter_start(1);
    if (error == cudaSuccess) error = run_forward(&run, step);
    if (error == cudaSuccess && backward) {
        if (meter) simt_meter_start(1);
        error = run_backward(&run, step, false);
    }
    simt_meter_stop();
    fprintf(results, "%s\n", error == cudaSuccess ? "ok" : cudaGetErrorName(error));
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++)
        if (is_output(tensor) && (!is_backward(tensor) || backward))
            fwrite(run.host[tensor], sizeof(float), tensor_elements(&problem, tensor), results);
    if (error == cudaSuccess && meter) {
        char *json = simt_meter_json();
        fprintf(results, "{\"workspace_bytes\": %zu, \"kernels\": %s}\n", run.workspace_bytes, json);
        free(json);
    }
    return fclose(results) == 0 ? 0 : 2;
}
