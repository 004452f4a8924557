/* fault_runner: list the planted faults, or launch one of them or its correct twin, once. For tools that watch a
 * program from outside (sanitize_faults.sh). Exit status 0 when the device reports no error, 1 when it does, 2 for a
 * wrong name, 3 when a twin's result is wrong. */
#include "faults.h"

extern const struct fault *const __start_faults[], *const __stop_faults[]; /* by the linker: the section of faults.h */

static const struct fault *find(const char *name) {
    for (const struct fault *const *fault = __start_faults; fault < __stop_faults; fault++)
        if (strcmp((*fault)->name, name) == 0) return *fault;
    return NULL;
}

int main(int argc, char **argv) {
    static int host_in[ELEMENTS], got[ELEMENTS];
    int list_patterns = argc == 2 && strcmp(argv[1], "--list-patterns") == 0;
    if (list_patterns || (argc == 2 && strcmp(argv[1], "--list") == 0)) {
        for (const struct fault *const *fault = __start_faults; fault < __stop_faults; fault++)
            if (((*fault)->error == cudaSuccess) == list_patterns) printf("%s\n", (*fault)->name);
        return 0;
    }
    int is_twin = argc == 3 && strcmp(argv[2], "--twin") == 0;
    const struct fault *fault = argc == 2 || is_twin ? find(argv[1]) : NULL;
    if (fault == NULL) {
        fprintf(stderr, "usage: %s --list | --list-patterns | NAME [--twin]\n", argv[0]);
        return 2;
    }
    is_twin |= fault->error == cudaSuccess;

    int *in = NULL, *out = NULL;
    for (int i = 0; i < ELEMENTS; i++) host_in[i] = (int)((unsigned)i * 2654435761u >> 22) - 512;
    cudaError_t error = cudaMalloc((void **)&in, sizeof host_in);
    if (error == cudaSuccess) error = cudaMalloc((void **)&out, sizeof host_in);
    if (error == cudaSuccess) error = cudaMemcpy(in, host_in, sizeof host_in, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) error = cudaMemset(out, 0, sizeof host_in);
    if (error == cudaSuccess) {
        (is_twin ? fault->launch_twin : fault->launch)(in, out);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error == cudaSuccess) error = cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", fault->name, cudaGetErrorName(error));
        return 1;
    }
    for (int i = 0; is_twin && i < ELEMENTS; i++) {
        if (got[i] == fault->expected(host_in, i)) continue;
        fprintf(stderr, "%s: element %d is %d instead of %d\n", fault->name, i, got[i], fault->expected(host_in, i));
        return 3;
    }
    cudaFree(in);
    cudaFree(out);
    return 0;
}
