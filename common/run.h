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

size_t key_rows(const struct problem *problem);

/* Bytes of device memory for inputs and outputs, of the backward pass or of the forward pass alone. */
double tensor_bytes(const struct problem *problem, bool backward);

/* Why no step can do this problem, or NULL: limits shared by all. */
const char *attention_limits(const struct problem *problem);

bool device_is_simulated(void);

/* Make inputs and device buffers for a step: for a step with a backward pass, those of both passes. On failure everything
 * is released again. */
cudaError_t run_create(struct run *run, const struct step *step, const struct problem *problem, enum input_kind kind,
                       uint64_t seed);
void run_destroy(struct run *run);

/* Copy Q, K, V and dO to the device again, after a change to the host's. */
cudaError_t run_upload(const struct run *run);

/* Fill outputs and workspace with NaN, run the pass once, wait for it. The step may be another one than the run was made
 * for, if that one's workspace is enough for it. */
cudaError_t run_forward(struct run *run, const struct step *step);

/* The same for the backward pass, on the O and L that a forward pass has left. */
cudaError_t run_backward(struct run *run, const struct step *step, bool deterministic);

/* Copy O and L to the host. */
cudaError_t fetch_forward(const struct run *run, float *O, float *L);

/* Copy dQ, dK and dV to the host. */
cudaError_t fetch_backward(const struct run *run, float *dQ, float *dK, float *dV);

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

/* dQ, dK and dV against the reference. When all rows cost at most `budget` multiply-adds, it starts from the inputs alone.
 * Else dQ is compared on a sample of the queries, dK and dV on one of the keys, each spread over all and with the last
 * one; the reference takes O and L as the step did, since the gradient of one key needs those of all rows. Elements
 * outside the sample must still be finite. */
struct backward_check {
    struct check dQ, dK, dV;
    size_t checked_rows, checked_keys;
    size_t *rows, *keys; /* which; owned */
    bool ok, finite;
};
struct backward_check check_backward(const struct run *run, const float *O, const float *L, const float *dQ,
                                     const float *dK, const float *dV, double budget);
void free_backward_check(struct backward_check *check);

#endif
