/* One problem on the device: inputs made and copied, outputs poisoned, a pass run or timed, results fetched and judged. The harness
 * and the tests drive a step through this. */
#pragma once

#include "check.h"
#include "inputs.h"

#include <stdio.h>

/* A device buffer between two guard bands, which no kernel may change. The simulated device checks each access itself, so
 * the bands are left out there: they would only hide an access past the end. */
struct guarded_buffer {
    const char *name;
    unsigned char *base;
    size_t bytes;
};

enum table { TABLE_STARTS, TABLE_LENGTHS, TABLE_PAGES, TABLES };
struct run {
    struct problem problem; /* its pointers are the host's */
    enum input_kind input;
    bool backward;  /* the tensors of the backward pass are there, too */
    bool simulated; /* the device is the simulated one */
    float *host
        [TENSOR_COUNT]; /* inputs, not yet rounded to FP8, and the outputs that were fetched last; NULL where there is none */
    struct tensors device;
    void *workspace;
    size_t workspace_bytes;
    void *tables[TABLES];                                         /* on the device; NULL where the problem has none */
    int *own_pages;                                               /* the host's block table; NULL where there is none */
    struct guarded_buffer buffers[TENSOR_COUNT + 1 + TABLES + 3]; /* of the tensors, the workspace, the tables, the scales */
};

bool device_is_simulated(void);

/* Make inputs and device buffers for a step; for a step with a backward pass, those of both passes. On failure everything
 * is released again. */
cudaError_t run_create(struct run *run, const struct step *step, const struct problem *problem, enum input_kind kind,
                       uint64_t seed);
void run_destroy(struct run *run);

/* The problem as a step sees it: its tables are on the device. */
struct problem device_problem(const struct run *run);

/* Copy the inputs to the device again, after a change on the host. */
cudaError_t run_upload(const struct run *run);

/* The forward pass of a step: its own, or for a step that has none the harness's, which makes O and L for its backward
 * pass. */
attention_pass *forward_pass(const struct step *step);

/* Fill the pass's outputs and the workspace with NaN, run the pass once, wait for it, fetch its outputs. */
cudaError_t run_forward(struct run *run, const struct step *step);

/* The same for the backward pass, on the O and L that a forward pass has left. */
cudaError_t run_backward(struct run *run, const struct step *step, bool deterministic);

/* Around the passes of a problem on several devices: the inputs to each of them, and their outputs to the run's tensors. `*memory` is
 * the workspace of the pass; with one device it is the run's, and nothing is copied. gather_run() returns `error` where that is one. */
cudaError_t spread_run(struct run *run, const struct step *step, void **memory);
cudaError_t gather_run(struct run *run, const struct step *step, void *memory, cudaError_t error);

/* How long a pass takes on a card: CUDA events, L2 flushed before each run, median and quartiles of many. */
struct timing {
    double median, p25, p75; /* milliseconds; median 0: nothing was timed */
};

/* Time these passes of a step, one after the other, `repeat` times after `warmup` untimed ones. */
cudaError_t time_passes(struct run *run, const struct step *step, struct passes passes, int warmup, int repeat,
                        struct timing *timing);

/* The name of a buffer whose guard band was overwritten, or NULL. */
cudaError_t find_broken_guard(const struct run *run, const char **name);

/* The fetched outputs against the reference. */
struct verdict {
    struct check checks[TENSOR_COUNT];     /* of the outputs */
    size_t checked_queries, checked_keys;  /* rows compared; no keys without a backward pass */
    size_t *queries, *keys;                /* which; owned */
    size_t first_not_finite[TENSOR_COUNT]; /* index of the first NaN or infinity, or tensor_elements() */
    double total_error;                    /* FP8: of O's norm, against the inputs before they were rounded; else 0 */
    bool ok;
};

/* Compare all rows when that costs at most `budget` multiply-adds, else a sample spread over all rows, the last one
 * included; elements outside of the sample must still be finite. A sampled backward pass starts from the step's own O and
 * L, since the gradient of one key needs those of all rows; otherwise everything is computed from the inputs alone. */
struct verdict check_run(const struct run *run, bool backward, double budget);
void free_verdict(struct verdict *verdict);
/* A line of each output; of a wrong one also where its first wrong elements lie, and what stands there. */
void print_verdict(FILE *to, const struct run *run, bool backward, const struct verdict *verdict);
