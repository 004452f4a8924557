/* The program around a submission: runs its kernels once on one problem and hands the results over. It has no expected
 * value, and no seed: the grader, another process, compares. Descriptor 3 holds a struct request and each input as floats, and
 * receives, behind them, a struct reply, each output as floats, in the order of enum tensor, and the meter's JSON. What the simulated device found goes to standard
 * error. Exit status 4: the step refuses the problem, and says why there. Without a request: prints what it does as a rule. */
#include "submission.h"

#include "../../common/simt/include/simulated.h"
#include "status.h"

#include <stdio.h>
#include <unistd.h>

extern const struct step submitted_step; /* which the linker equates with the struct step of the kernel file */

int main(void) {
    const struct step *step = &submitted_step;
    struct request request;
    FILE *results = fdopen(3, "r+");
    if (results == NULL || fread(&request, sizeof request, 1, results) != 1)
        return printf("%d %d %d %u %u %u %u %d %d %d\n", step->forward != NULL, step->backward != NULL,
                      step->backward_deterministic != NULL, usual_dtype(step), step->dtypes, step->variants,
                      step->grouped_heads, step->most_queries, step->d_multiple, step->hadamard) < 0;
    if (request.problem.starts != NULL) request.problem.starts = request.numbers;
    if (request.problem.lengths != NULL) request.problem.lengths = request.numbers;
    bool backward = request.backward, meter = (request.how & METERED) != 0;
    const char *refused = step_refuses(step, &request.problem, (struct passes){.forward = !backward, .backward = backward});
    if (refused != NULL) {
        fprintf(stderr, "%s: %s\n", step->name, refused);
        return EXIT_REFUSED;
    }
    struct run run;
    cudaError_t error = run_create(&run, step, &request.problem, INPUT_IDENTITY, 0);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++) {
        if (is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        size_t elements = tensor_elements(&request.problem, tensor);
        if (fread(run.host[tensor], sizeof(float), elements, results) != elements) return EXIT_USAGE;
    }
    if (error == cudaSuccess) error = run_upload(&run);
    if (fseek(results, 0, SEEK_CUR) != 0) return EXIT_USAGE; /* to write what follows */
    if ((request.how & IN_STEP) != 0) simt_run_in_step();
    if (error == cudaSuccess && meter && !backward) simt_meter_start(1);
    if (error == cudaSuccess) error = run_forward(&run, step);
    if (error == cudaSuccess && backward) {
        if (meter) simt_meter_start(1);
        error = run_backward(&run, step, (request.how & DETERMINISTIC) != 0);
    }
    simt_meter_stop();
    struct reply reply = {error == cudaSuccess, run.workspace_bytes};
    fwrite(&reply, sizeof reply, 1, results);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && reply.ok; tensor++)
        if (is_output(tensor) && (!is_backward(tensor) || backward))
            fwrite(run.host[tensor], sizeof(float), tensor_elements(&request.problem, tensor), results);
    if (reply.ok && meter) fputs(simt_meter_json(), results);
    return fclose(results) == 0 ? 0 : 2;
}
