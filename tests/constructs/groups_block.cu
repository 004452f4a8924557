// expect: 3 2 1 0
#include "construct.h"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    __shared__ int tile[4];
    cg::thread_block block = cg::this_thread_block();
    tile[block.thread_rank()] = block.thread_rank();
    block.sync();
    out[block.thread_rank()] = tile[block.size() - 1 - block.thread_rank()];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
