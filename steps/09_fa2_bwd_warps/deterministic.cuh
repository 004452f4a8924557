/* The backward pass of 09_fa2_bwd_warps with the same bits in every run (--deterministic).
 *
 * Atomic additions happen in another order in each run, and a floating-point sum depends on the order. Here no addition
 * is atomic: backward_keys leaves dQ out, and a second kernel computes dQ, one block per query tile. A thread adds up
 * each of its elements of dQ in registers, key tile after key tile. The second kernel computes S and dP once more: 7
 * products instead of 5.
 *
 * The last part of fa2_bwd_warps.cu, which includes this file. */

// dQ of a block's query rows. No other block writes to them.
template <class T>
static __global__ __launch_bounds__(THREADS) void backward_queries(tensors t,
                                                                   const float *L2, // (heads, N_q)
                                                                   const float *D,  // (heads, N_q)
                                                                   problem p) {
    tiles<T> tile;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int half = warp / HALF_WARPS, half_warp = warp % HALF_WARPS;
    int row0 = (gridDim.x - 1 - blockIdx.x) * T::Br; // under a causal mask the longest blocks start first
    select_head(t, L2, D, p, blockIdx.y);
    int q_row = warp / T::Q_COL_WARPS * T::Q_ROWS + lane_row(lane);
    int q_col = warp % T::Q_COL_WARPS * T::Q_COLS + 4 * lane_col(lane);
    float dQ_reg[T::QM][4] = {};

    int end = attended_keys(p, row0 + T::Br - 1); // keys that the tile's last row attends to
    copy_rows(tile, t, L2, D, p, row0);
    for (int key0 = 0; key0 < end; key0 += T::Bc) {
        copy_keys(tile, t, p, key0);
        __pipeline_wait_prior(0);
        __syncthreads(); // all threads' copies have arrived
        make_P_and_dS(tile, p, half, half_warp, lane, row0, key0);
        multiply_columns<T::Bc, T::UNROLL>(dQ_reg, tile.dS + q_row * T::P_STRIDE, T::P_STRIDE, tile.K + q_col,
                                           T::STRIDE);
        __syncthreads(); // no thread still reads K, V and dS, so the next tile may overwrite them
    }
    __pipeline_wait_prior(0); // a tile that attends to no key has its copies under way
#pragma unroll
    for (int i = 0; i < T::QM; i++) {
        int row = row0 + q_row + LANE_ROWS * i;
        if (row < p.N_q) store_columns(t.dQ + (size_t)row * p.d, q_col, p.d, dQ_reg[i]);
    }
}

// ---- on the host

// TK is the tiling of backward_keys, TQ of backward_queries.
template <class TK, class TQ>
static cudaError_t run_deterministic(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *L2 = (float *)workspace, *D = L2 + query_rows(p);
    unsigned heads = p->batch * p->heads;
    dim3 row_blocks(ceil_div(p->N_q, WARPS), heads), key_blocks(ceil_div(p->N_kv, TK::Bc), heads);
    dim3 query_blocks(ceil_div(p->N_q, TQ::Br), heads);
    cudaError_t error = launch(preprocess, row_blocks, THREADS, 0, stream, *t, L2, D, *p);
    if (error == cudaSuccess)
        error = launch(backward_keys<TK, false>, key_blocks, THREADS, TK::BYTES, stream, *t, L2, D, *p);
    if (error != cudaSuccess) return error;
    return launch(backward_queries<TQ>, query_blocks, THREADS, TQ::BYTES, stream, *t, L2, D, *p);
}

template <class LargeK, class LargeQ, class Small> static attention_pass *fitting_deterministic() {
    bool fits = shared_memory_fits(LargeK::BYTES) && shared_memory_fits(LargeQ::BYTES);
    return fits ? run_deterministic<LargeK, LargeQ> : run_deterministic<Small, Small>;
}

static cudaError_t backward_deterministic(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    attention_pass *pass = p->d <= 32   ? fitting_deterministic<tiling_32, tiling<32, 128, 64>, tiling_32_small>()
                           : p->d <= 64 ? fitting_deterministic<tiling_64, tiling<64, 128, 64>, tiling_64_small>()
                                        : fitting_deterministic<tiling_128, tiling_128, tiling_128_small>();
    return pass(p, t, workspace, stream);
}
