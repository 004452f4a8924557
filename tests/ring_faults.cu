/* The rings of ring.cuh are right, and each call that orders something is needed: without it, the device says so. */
#include "faults.h"

#include <nccl.h>

#include "ring.cuh"

enum { RIGHT = -1 };

static double run(bool with_nccl, int left_out) {
    ring::rank ranks[ring::MOST_RANKS];
    ring::left_out = left_out;
    cudaDeviceReset();
    int count = ring::prepare(ranks);
    cr_assert_eq(count, ring::MOST_RANKS);
    with_nccl ? ring::by_nccl(ranks, count) : ring::by_peer_copies(ranks, count);
    double error = ring::error(ranks, count);
    cudaSetDevice(0);
    return error;
}

static void try_all(bool with_nccl, int of_its_own) {
    double error = run(with_nccl, RIGHT);
    cr_assert_lt(error, 1e-5, "error %g\n%s", error, report());
    int found = 0;
    for (int i = 0; i < ring::orders; i++) {
        error = run(with_nccl, i);
        bool says = strstr(report(), "race between streams on ") != NULL || strstr(report(), "ncclGroup") != NULL;
        found += says && error == 1.0;
        cr_assert(says || error < 1e-5, "without call %d: %s", i, report()); /* one of the other ring */
    }
    cr_assert_eq(found, of_its_own, "%d calls are missed, and not %d", found, of_its_own);
}

Test(faults, ring_of_peer_copies) { try_all(false, 9); }
Test(faults, ring_of_nccl) { try_all(true, 8); }
