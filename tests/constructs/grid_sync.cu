// expect: 3 2 1 0 7 6 5 4
#include "construct.h"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *out) { // blocks exchange what they have written, twice
    cg::grid_group grid = cg::this_grid();
    unsigned i = grid.thread_rank(), last = grid.size() - 1;
    out[i] = grid.is_valid() ? (int)i : -1;
    grid.sync();
    int mirrored = out[last - i];
    grid.sync();
    out[i] = mirrored ^ 4;
}

int main() { return show<int>(8, [&](int *out) { void *arguments[] = {&out}; must(cudaLaunchCooperativeKernel((void *)k, dim3(4), dim3(2), arguments, 0, 0), "launch"); }); }
