/* One problem on the device: inputs made and copied, outputs poisoned, a pass run, results fetched. The harness and the
 * tests drive a step through this. */
#ifndef RUN_H
#define RUN_H

#include "check.h"
#include "inputs.h"

enum { MAX_BUFFERS = 12 };

/* A device buffer between two guard bands, which no kernel may change. The simulated device watches each access itself,
 * so the bands are left out there: they would only hide an access past the end. */
struct guarded_buffer {
    const char *name;
    unsigned char *base;
    size_t bytes;
};

struct run {
    struct problem problem;
    bool simulated;        /* the device is the simulated one */
    float *Q, *K, *V, *dO; /* on the host; shapes as in struct tensors */
    struct tensors device;
    void *workspace;
    size_t workspace_bytes;
    struct guarded_buffer buffers[MAX_BUFFERS];
    int buffer_count;
};

/* Elements of Q (and O), of K, and rows of Q, over all heads. */
size_t query_elements(const struct problem *problem);
size_t key_elements(const struct problem *problem);
size_t query_rows(const struct problem *problem);

/* Pairs (query, key) that the mask lets through, over all heads. */
double unmasked_pairs(const struct problem *problem);

/* Bytes of device memory for inputs and outputs of the forward pass. */
double tensor_bytes(const struct problem *problem);

/* Why no step can do this problem, or NULL: limits shared by all. */
const char *attention_limits(const struct problem *problem);

bool device_is_simulated(void);

/* Make inputs and device buffers for a step. On failure everything is released again. */
cudaError_t run_create(struct run *run, const struct step *step, const struct problem *problem, enum input_kind kind,
                       uint64_t seed);
void run_destroy(struct run *run);

/* Copy Q, K and V to the device again, after a change to the host's. */
cudaError_t run_upload(const struct run *run);

/* Fill outputs and workspace with NaN, run the pass once, wait for it. */
cudaError_t run_forward(struct run *run, const struct step *step);

/* Copy O and L to the host. */
cudaError_t fetch_forward(const struct run *run, float *O, float *L);

/* The name of a buffer whose guard band was overwritten, or NULL. */
cudaError_t find_broken_guard(const struct run *run, const char **name);

/* O and L against the reference, on all rows when that costs at most `budget` multiply-adds, else on a sample spread
 * over all rows, the last one included; rows outside the sample must still be finite. */
struct forward_check {
    struct check O, L;
    size_t checked_rows;
    size_t *rows; /* which; owned */
    bool ok;
    size_t not_finite; /* index into O, or query_elements() */
};
struct forward_check check_forward(const struct run *run, const float *O, const float *L, double budget);
void free_forward_check(struct forward_check *check);

#endif
