# style: a device function around the barrier, before the epilogue
# needs: __host__ __device__
s/^static __global__ __launch_bounds__/__host__ __device__ static inline bool is_leader(int lane) { return lane % LANE_COLS == 0; }\n\n&/
s/^        if \(lane % LANE_COLS == 0\) warp_smem\[warp \* Br \+ row\] = l;/        if (is_leader(lane)) warp_smem[warp * Br + row] = l;/
s/^        if \(warp == 0 && lane % LANE_COLS == 0\) row_smem\[row\] = m_reg\[r\];/        if (r == 0) __syncthreads(); \/\/ all warps have read the factors\n        if (warp == 0 \&\& is_leader(lane)) row_smem[row] = m_reg[r];/
