/* A barrier or an atomic that is missing: races within a block, a warp and between blocks, and what their messages say. */
#include "faults.h"

/* ---- barriers of a block ----------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void store_then_read_static(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = tile[T - 1 - t]; // here
}
FAULT(store_then_read_static, cudaErrorLaunchFailure, "race on tile[", FIRST(T, in[T - 1 - i]),
      store_then_read_static<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void store_then_read_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x;
    dynamic[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = dynamic[T - 1 - t]; // here
}
FAULT(store_then_read_dynamic, cudaErrorLaunchFailure, "race on byte", FIRST(T, in[T - 1 - i]),
      store_then_read_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void read_then_overwrite_static(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    int mirrored = tile[T - 1 - t]; // here
    if (CORRECT) __syncthreads();
    tile[t] = 2 * mirrored; // here
    __syncthreads();
    out[t] = tile[T - 1 - t];
}
FAULT(read_then_overwrite_static, cudaErrorLaunchFailure, "race on tile[", FIRST(T, 2 * in[i]),
      read_then_overwrite_static<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void read_then_overwrite_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x;
    dynamic[t] = in[t];
    __syncthreads();
    int mirrored = dynamic[T - 1 - t]; // here
    if (CORRECT) __syncthreads();
    dynamic[t] = 2 * mirrored; // here
    __syncthreads();
    out[t] = dynamic[T - 1 - t];
}
FAULT(read_then_overwrite_dynamic, cudaErrorLaunchFailure, "race on byte", FIRST(T, 2 * in[i]),
      read_then_overwrite_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void tile_reused_in_loop_static(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 4; k++) {
        tile[t] = in[k * T + t]; // here
        __syncthreads();
        sum += tile[T - 1 - t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(tile_reused_in_loop_static, cudaErrorLaunchFailure, "race on tile[",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      tile_reused_in_loop_static<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void tile_reused_in_loop_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 4; k++) {
        dynamic[t] = in[k * T + t]; // here
        __syncthreads();
        sum += dynamic[T - 1 - t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(tile_reused_in_loop_dynamic, cudaErrorLaunchFailure, "race on byte",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      tile_reused_in_loop_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void transpose_without_barrier(const int *in, int *out) {
    __shared__ int tile[16][17];
    int x = (int)threadIdx.x, y = (int)threadIdx.y;
    tile[y][x] = in[16 * y + x]; // here
    if (CORRECT) __syncthreads();
    out[16 * y + x] = tile[x][y]; // here
}
FAULT(transpose_without_barrier, cudaErrorLaunchFailure, "race on tile[", FIRST(256, in[i % 16 * 16 + i / 16]),
      transpose_without_barrier<CORRECT><<<1, dim3(16, 16)>>>(in, out))

/* One barrier a round is enough with two tiles, none is not. */
template <bool CORRECT> __global__ void double_buffer_without_barrier(const int *in, int *out) {
    __shared__ int tiles[2][T];
    int t = (int)threadIdx.x, sum = 0;
    tiles[0][t] = in[t];
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        sum += tiles[k % 2][T - 1 - t]; // here
        if (k < 3) tiles[(k + 1) % 2][t] = in[(k + 1) * T + t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(double_buffer_without_barrier, cudaErrorLaunchFailure, "race on tiles[",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      double_buffer_without_barrier<CORRECT><<<1, T>>>(in, out))

/* ---- lanes of one warp ------------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void lanes_store_then_read(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane]; // here
    if (CORRECT) __syncwarp();
    out[lane] = row[31 - lane]; // here
}
FAULT(lanes_store_then_read, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[31 - i]),
      lanes_store_then_read<CORRECT><<<1, 32>>>(in, out))

template <bool CORRECT> __global__ void lanes_read_then_overwrite(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane];
    __syncwarp();
    int next = row[(lane + 1) % 32]; // here
    if (CORRECT) __syncwarp();
    row[lane] = next; // here
    __syncwarp();
    out[lane] = row[(lane + 1) % 32];
}
FAULT(lanes_read_then_overwrite, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[(i + 2) % 32]),
      lanes_read_then_overwrite<CORRECT><<<1, 32>>>(in, out))

template <bool CORRECT> __global__ void lane_broadcast(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x;
    if (t % 32 == 0) of_warp[t / 32] = in[t]; // here
    if (CORRECT) __syncwarp();
    out[t] = of_warp[t / 32]; // here
}
FAULT(lane_broadcast, cudaErrorLaunchFailure, "race on of_warp[", FIRST(T, in[i / 32 * 32]),
      lane_broadcast<CORRECT><<<1, T>>>(in, out))

/* The lower half waits for itself; the upper half's values are not among what it may read. */
template <bool CORRECT> __global__ void half_warp_without_syncwarp(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane]; // here
    __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
    if (CORRECT) __syncwarp();
    out[lane] = row[31 - lane]; // here
}
FAULT(half_warp_without_syncwarp, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[31 - i]),
      half_warp_without_syncwarp<CORRECT><<<1, 32>>>(in, out))

/* One of the readers overwrites what it has read; the others may be slower than it. */
template <bool CORRECT> __global__ void reader_of_lanes_overwrites(const int *in, int *out) {
    __shared__ int cell;
    int lane = (int)threadIdx.x;
    if (lane == 0) cell = in[5];
    __syncwarp();
    out[lane] = in[lane] - cell; // here
    if (CORRECT) __syncwarp();
    if (lane == 30) cell = 7; // here
    __syncwarp();
    out[32 + lane] = cell;
}
FAULT(reader_of_lanes_overwrites, cudaErrorLaunchFailure, "race on cell", FIRST(64, i < 32 ? in[i] - in[5] : 7),
      reader_of_lanes_overwrites<CORRECT><<<1, 32>>>(in, out))

/* The same with a single reader in another warp. */
template <bool CORRECT> __global__ void reader_of_warps_overwrites(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 0) cell = in[5];
    __syncthreads();
    if (t == 0 || t == T - 1) out[t] = in[t] - cell; // here
    if (CORRECT) __syncthreads();
    if (t == 0) cell = 7; // here
    __syncthreads();
    out[T + t] = cell;
}
FAULT(reader_of_warps_overwrites, cudaErrorLaunchFailure, "race on cell",
      FIRST(2 * T, i >= T ? 7 : i == 0 || i == T - 1 ? in[i] - in[5] : 0),
      reader_of_warps_overwrites<CORRECT><<<1, T>>>(in, out))

/* The thread that overwrites has read, too, in another line than the others: this line is not theirs. */
template <bool CORRECT> __global__ void reader_overwrites_what_it_read(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 0) cell = in[5];
    __syncthreads();
    if (t == 0) out[0] = in[0] - cell;
    if (t == 0 && !CORRECT) cell = 7; // here
    if (t > 0) out[t] = in[t] - cell; // here
}
FAULT(reader_overwrites_what_it_read, cudaErrorLaunchFailure, "race on cell", FIRST(T, in[i] - in[5]),
      reader_overwrites_what_it_read<CORRECT><<<1, T>>>(in, out))

/* ---- two writers, or a writer and a reader ----------------------------------------------------------------------- */

template <bool CORRECT> __global__ void lanes_write_write(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 3) cell = in[3]; // here
    if (t == (CORRECT ? 3 : 5)) cell = in[5]; // here
    __syncthreads();
    out[t] = cell;
}
FAULT(lanes_write_write, cudaErrorLaunchFailure, "race on cell", FIRST(32, in[5]),
      lanes_write_write<CORRECT><<<1, 32>>>(in, out))

template <bool CORRECT> __global__ void warps_write_write(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 3) cell = in[3]; // here
    if (t == (CORRECT ? 3 : 37)) cell = in[5]; // here
    __syncthreads();
    out[t] = cell;
}
FAULT(warps_write_write, cudaErrorLaunchFailure, "a __syncthreads() is missing", FIRST(T, in[5]),
      warps_write_write<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void store_and_barrier_in_branch(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (CORRECT || t < T - 32) {
        tile[t] = in[t]; // here
        __syncthreads();
    }
    out[t] = tile[T - 1 - t]; // here
}
FAULT(store_and_barrier_in_branch, cudaErrorLaunchFailure, "race on tile[", FIRST(T, in[T - 1 - i]),
      store_and_barrier_in_branch<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void warps_write_read_global(const int *in, int *out) {
    int t = (int)threadIdx.x;
    out[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[T + t] = out[(t + 32) % T]; // here
}
FAULT(warps_write_read_global, cudaErrorLaunchFailure, "a __syncthreads() is missing",
      FIRST(2 * T, i < T ? in[i] : in[(i - T + 32) % T]), warps_write_read_global<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void warps_read_write_global(const int *in, int *out) {
    int t = (int)threadIdx.x;
    int other = out[(t + 32) % T]; // here
    if (CORRECT) __syncthreads();
    out[t] = other + in[t]; // here
}
FAULT(warps_read_write_global, cudaErrorLaunchFailure, "a __syncthreads() is missing", FIRST(T, in[i]),
      warps_read_write_global<CORRECT><<<1, T>>>(in, out))

/* Blocks of 64 threads whose parts overlap by one element. */
template <bool CORRECT> __global__ void blocks_write_write(const int *in, int *out) {
    int i = (int)blockIdx.x * (CORRECT ? 64 : 63) + (int)threadIdx.x;
    out[i] = in[i]; // here
}
FAULT(blocks_write_write, cudaErrorLaunchFailure, "blocks run in any order", FIRST(256, in[i]),
      blocks_write_write<CORRECT><<<4, 64>>>(in, out))

/* Two phases in one launch; the twin takes two launches. */
template <bool CORRECT> __global__ void blocks_write_read(const int *in, int *out, bool first, bool second) {
    int i = global_thread();
    if (first) out[i] = in[i]; // here
    if (second) out[256 + i] = out[(i + 64) % 256]; // here
}
FAULT(blocks_write_read, cudaErrorLaunchFailure, "blocks run in any order",
      FIRST(512, i < 256 ? in[i] : in[(i - 256 + 64) % 256]),
      if (CORRECT) blocks_write_read<CORRECT><<<4, 64>>>(in, out, true, false);
      blocks_write_read<CORRECT><<<4, 64>>>(in, out, !CORRECT, true))

/* Moves all elements down by one: in place, a block overwrites what the block before it is to read. */
template <bool CORRECT> __global__ void blocks_read_write(int *values, int *moved) {
    int i = global_thread();
    int next = values[i + 1]; // here
    __syncthreads();
    (CORRECT ? moved : values)[i] = next; // here
}
FAULT(blocks_read_write, cudaErrorLaunchFailure, "blocks run in any order", FIRST(256, in[i + 1]),
      blocks_read_write<CORRECT><<<4, 64>>>(const_cast<int *>(in), out))

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void count_without_atomic_shared(const int *in, int *out) {
    __shared__ int bins[8];
    int t = (int)threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    if (CORRECT) atomicAdd(&bins[in[t] & 7], 1);
    else bins[in[t] & 7]++; // here
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
FAULT(count_without_atomic_shared, cudaErrorLaunchFailure, "`++` reads and writes: use atomicAdd,", FIRST(8, count_of(in, i, T)),
      count_without_atomic_shared<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void count_without_atomic_global(const int *in, int *out) {
    int i = global_thread();
    if (CORRECT) atomicAdd(&out[in[i] & 7], 1);
    else out[in[i] & 7] = out[in[i] & 7] + 1; // here
}
FAULT(count_without_atomic_global, cudaErrorLaunchFailure, "`x = x + y` reads and writes: use atomicAdd,", FIRST(8, count_of(in, i, 16)),
      count_without_atomic_global<CORRECT><<<16, 1>>>(in, out))

template <bool CORRECT> __global__ void atomic_against_plain_read(const int *in, int *out) {
    __shared__ int total;
    int t = (int)threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, in[t]); // here
    if (CORRECT) __syncthreads();
    out[t] = total; // here
}
FAULT(atomic_against_plain_read, cudaErrorLaunchFailure, "race on total", FIRST(T, sum_of(in, T)),
      atomic_against_plain_read<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void atomic_against_plain_store(const int *in, int *out) {
    __shared__ int total;
    int t = (int)threadIdx.x;
    if (t == 0) total = 0; // here
    if (CORRECT) __syncthreads();
    atomicAdd(&total, in[t]); // here
    __syncthreads();
    out[t] = total;
}
FAULT(atomic_against_plain_store, cudaErrorLaunchFailure, "race on total", FIRST(T, sum_of(in, T)),
      atomic_against_plain_store<CORRECT><<<1, T>>>(in, out))

/* ---- updates in one line: of which one is lost, and what is no update ----------------------------------------------- */

template <bool CORRECT> __global__ void lanes_update_floats(const int *in, int *out) {
    __shared__ float bins[8];
    int t = (int)threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncwarp();
    if (CORRECT) atomicAdd(&bins[in[t] & 7], -1.0f);
    else bins[in[t] & 7] -= 1.0f; // here
    __syncwarp();
    if (t < 8) out[t] = (int)bins[t];
}
FAULT(lanes_update_floats, cudaErrorLaunchFailure,
      "`-=` reads and writes: use atomicSub (for floating point atomicAdd of the negative value),", FIRST(8, -count_of(in, i, 32)),
      lanes_update_floats<CORRECT><<<1, 32>>>(in, out))

/* One thread of each warp; of a type that is a template's. */
template <typename Number, bool CORRECT> __global__ void warps_update(const int *in, int *out) {
    __shared__ Number total;
    int t = (int)threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    if (t % 32 == 0 && CORRECT) atomicAdd(&total, (Number)(in[t] & 7));
    if (t % 32 == 0 && !CORRECT) total += (Number)(in[t] & 7); // here
    __syncthreads();
    if (t == 0) out[0] = (int)total;
}
FAULT(warps_update, cudaErrorLaunchFailure, "`+=` reads and writes: use atomicAdd,",
      FIRST(1, (in[0] & 7) + (in[32] & 7) + (in[64] & 7) + (in[96] & 7)), warps_update<unsigned, CORRECT><<<1, T>>>(in, out))

static int bits_of(const int *in, int parity) {
    int bits = 0;
    for (int t = 0; t < T; t++) bits ^= (in[t] & 1) == parity ? 1 << (t & 3) : 0;
    return bits;
}
template <bool CORRECT> __global__ void update_by_pointer(const int *in, int *out) {
    int *p = out + (in[threadIdx.x] & 1);
    if (CORRECT) atomicXor(p, 1 << (threadIdx.x & 3));
    else *p ^= 1 << (threadIdx.x & 3); // here
}
FAULT(update_by_pointer, cudaErrorLaunchFailure, "`^=` reads and writes: use atomicXor,", FIRST(2, bits_of(in, i)),
      update_by_pointer<CORRECT><<<1, T>>>(in, out))

static int most_of(const int *in, int count) {
    int most = 0;
    for (int t = 0; t < count; t++) most = in[t] > most ? in[t] : most;
    return most;
}
template <bool CORRECT> __global__ void maximum_of_blocks(const int *in, int *out) {
    int value = in[global_thread()];
    if (CORRECT) atomicMax(&out[0], value);
    else out[0] = max(out[0], value); // here
}
FAULT(maximum_of_blocks, cudaErrorLaunchFailure, "`=` reads and writes: use atomicMax", FIRST(1, most_of(in, 64)),
      maximum_of_blocks<CORRECT><<<64, 1>>>(in, out))

template <bool CORRECT> __global__ void scale_of_blocks(const int *in, int *out) {
    if (CORRECT ? blockIdx.x == 0 : true) out[0] *= in[0]; // here
}
FAULT(scale_of_blocks, cudaErrorLaunchFailure, "`*=` reads and writes: use a loop around atomicCAS,", FIRST(0, 0),
      scale_of_blocks<CORRECT><<<2, 1>>>(in, out))

/* The line does not show what the macro does. */
#define ADD_ONE_TO(element) (element) += 1
template <bool CORRECT> __global__ void update_by_macro(const int *in, int *out) {
    __shared__ int bins[8];
    int t = (int)threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    if (CORRECT) atomicAdd(&bins[in[t] & 7], 1);
    else ADD_ONE_TO(bins[in[t] & 7]); // here
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
FAULT(update_by_macro, cudaErrorLaunchFailure,
      "if this line updates the element, as += does, use an atomic operation (atomicAdd); if not: ", FIRST(8, count_of(in, i, T)),
      update_by_macro<CORRECT><<<1, T>>>(in, out))

/* No updates: a barrier is missing. In the last one, thread 0 stores what it has read itself. */
template <bool CORRECT> __global__ void shift_in_one_line(const int *in, int *out) {
    __shared__ int row[2][T + 1];
    int t = (int)threadIdx.x;
    row[0][t] = in[t];
    if (t == 0) row[0][T] = 0;
    __syncthreads();
    row[CORRECT][t] = row[0][t + 1]; // here
    __syncthreads();
    out[t] = row[CORRECT][t];
}
FAULT(shift_in_one_line, cudaErrorLaunchFailure, "put a __syncthreads() between the two|a __syncthreads() is missing between the two",
      FIRST(T, i < T - 1 ? in[i + 1] : 0), shift_in_one_line<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void all_of_the_first(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x;
    row[t] = in[t];
    __syncthreads();
    if (CORRECT ? t > 0 : true) row[t] = row[CORRECT ? 0 : t & 64]; // here
    out[t] = row[t];
}
FAULT(all_of_the_first, cudaErrorLaunchFailure, "put a __syncthreads() between the two|a __syncthreads() is missing between the two",
      FIRST(T, in[0]), all_of_the_first<CORRECT><<<1, T>>>(in, out))

/* The line has two elements of the array: it does not tell which of them the race is about. */
template <bool CORRECT> __global__ void add_the_first(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x;
    row[t] = in[t];
    __syncthreads();
    int first = row[0];
    __syncthreads();
    if (CORRECT) row[t] += first;
    else row[t] += row[0]; // here
    out[t] = row[t];
}
FAULT(add_the_first, cudaErrorLaunchFailure, "put a __syncthreads() between the two|a __syncthreads() is missing between the two",
      FIRST(T, in[i] + in[0]), add_the_first<CORRECT><<<1, T>>>(in, out))

/* ---- reductions, flags, stencils --------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void tree_reduction_without_barrier(const int *in, int *out) {
    __shared__ int sums[T];
    int t = (int)threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    for (int stride = T / 2; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride]; // here
        if (CORRECT) __syncthreads();
    }
    if (t == 0) out[0] = sums[0];
}
FAULT(tree_reduction_without_barrier, cudaErrorLaunchFailure, "race on sums[", FIRST(1, sum_of(in, T)),
      tree_reduction_without_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void reduction_without_first_barrier(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x, sum = warp_sum(in[t]), total = 0;
    if (t % 32 == 0) of_warp[t / 32] = sum; // here
    if (CORRECT) __syncthreads();
    for (int w = 0; w < T / 32; w++) total += of_warp[w]; // here
    out[t] = total;
}
FAULT(reduction_without_first_barrier, cudaErrorLaunchFailure, "race on of_warp[", FIRST(T, sum_of(in, T)),
      reduction_without_first_barrier<CORRECT><<<1, T>>>(in, out))

/* The next sum overwrites what a slow warp of the last one has still to read. */
template <bool CORRECT> __global__ void reduction_without_second_barrier(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x;
    for (int k = 0; k < 2; k++) {
        int sum = warp_sum(in[k * T + t]), total = 0;
        if (t % 32 == 0) of_warp[t / 32] = sum; // here
        __syncthreads();
        for (int w = 0; w < T / 32; w++) total += of_warp[w]; // here
        if (CORRECT) __syncthreads();
        out[k * T + t] = total;
    }
}
FAULT(reduction_without_second_barrier, cudaErrorLaunchFailure, "race on of_warp[",
      FIRST(2 * T, sum_of(in + i / T * T, T)), reduction_without_second_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void flag_without_barrier(const int *in, int *out) {
    __shared__ int pivot;
    int t = (int)threadIdx.x;
    if (t == 0) pivot = in[5]; // here
    if (CORRECT) __syncthreads();
    out[t] = in[t] - pivot; // here
}
FAULT(flag_without_barrier, cudaErrorLaunchFailure, "race on pivot", FIRST(T, in[i] - in[5]),
      flag_without_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void flag_of_last_thread_without_barrier(const int *in, int *out) {
    __shared__ int pivot;
    int t = (int)threadIdx.x;
    if (t == T - 1) pivot = in[5]; // here
    if (CORRECT) __syncthreads();
    out[t] = in[t] - pivot; // here
}
FAULT(flag_of_last_thread_without_barrier, cudaErrorLaunchFailure, "race on pivot", FIRST(T, in[i] - in[5]),
      flag_of_last_thread_without_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void stencil_without_barrier(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x, left = t > 0 ? t - 1 : 0, right = t < T - 1 ? t + 1 : T - 1;
    row[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = row[left] + 2 * row[t] + row[right]; // here
}
FAULT(stencil_without_barrier, cudaErrorLaunchFailure, "race on row[",
      FIRST(T, in[i > 0 ? i - 1 : 0] + 2 * in[i] + in[i < T - 1 ? i + 1 : T - 1]),
      stencil_without_barrier<CORRECT><<<1, T>>>(in, out))

/* ---- past a fault -------------------------------------------------------------------------------------------------- */

/* In step, a barrier that is missing does no harm; a race between blocks stays a fault. */
Test(faults, run_past_in_step) {
    static const struct fault *const past[] = {
        &fault_store_then_read_static,  &fault_store_then_read_dynamic,      &fault_read_then_overwrite_static,
        &fault_tile_reused_in_loop_static, &fault_transpose_without_barrier, &fault_tree_reduction_without_barrier,
        &fault_stencil_without_barrier, &fault_half_warp_without_syncwarp};
    simt_run_in_step();
    for (size_t k = 0; k < sizeof past / sizeof *past; k++) {
        struct arrays arrays;
        int got[ELEMENTS];
        make_arrays(&arrays);
        past[k]->launch(arrays.in, arrays.out);
        cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s\n%s", past[k]->name, report());
        cr_assert_eq(cudaMemcpy(got, arrays.out, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
        for (int i = 0; i < ELEMENTS; i++)
            cr_assert_eq(got[i], past[k]->expected(arrays.host_in, i), "%s: element %d", past[k]->name, i);
    }
    struct arrays arrays;
    make_arrays(&arrays);
    fault_blocks_write_read.launch(arrays.in, arrays.out);
    cr_assert_eq(cudaDeviceSynchronize(), fault_blocks_write_read.error);
}

/* ---- what messages say ------------------------------------------------------------------------------------------- */

Test(messages, race_across_two_rounds) {
    launch_fault(&fault_tile_reused_in_loop_static);
    report_says("__syncthreads() in line");
    report_says("stands between the two lines, but not between the two accesses");
    report_says("round 1 of the loop");
    report_says("round 2 already");
    report_does_not_say("put a __syncthreads() between");
    report_does_not_say("is missing between");
}

Test(messages, race_within_a_round) {
    launch_fault(&fault_store_then_read_static);
    report_does_not_say("round");
    report_says("a __syncthreads() is missing between the two");
}

Test(messages, race_past_a_barrier_in_a_branch) {
    launch_fault(&fault_store_and_barrier_in_branch);
    report_says("stands between the two lines, but thread (");
    report_says("has left it out: is it in a branch that only some threads take?");
    report_does_not_say("is missing between");
}

Test(messages, update_that_is_none) {
    static const struct fault *const faults[] = {&fault_tree_reduction_without_barrier, &fault_shift_in_one_line, &fault_all_of_the_first};
    for (int i = 0; i < 3; i++) {
        launch_fault(faults[i]);
        report_says("__syncthreads()");
        report_does_not_say("atomic");
    }
    launch_fault(&fault_add_the_first);
    report_does_not_say("reads and writes");
}

/* Of which nobody can read the text. */
#line 7 "absent.cu"
__global__ static void in_an_absent_file(const int *in, int *out) { out[in[threadIdx.x] & 7] += 1; }
static const struct fault fault_in_an_absent_file = {
    "in_an_absent_file", "absent.cu", cudaErrorLaunchFailure, "", [](const int *in, int *out) { in_an_absent_file<<<1, T>>>(in, out); }, NULL, NULL};

Test(messages, update_in_an_absent_file) {
    launch_fault(&fault_in_an_absent_file);
    report_says("absent.cu:7");
    report_says("if this line updates the element, as += does, use an atomic operation (atomicAdd); if not: ");
}

Test(messages, race_within_a_warp) {
    launch_fault(&fault_half_warp_without_syncwarp);
    report_says("put a __syncthreads() between the two accesses (the two threads are of one warp: a __syncwarp() is enough if no "
                "other warp uses the data)");
}

/* Of several readers the last is known, and it may be the one that writes. */
Test(messages, nobody_races_with_itself) {
    static const struct fault *const faults[] = {&fault_reader_of_lanes_overwrites, &fault_reader_of_warps_overwrites};
    for (int i = 0; i < 2; i++) {
        launch_fault(faults[i]);
        const char *self = strstr(report(), "thread (");
        cr_assert_not_null(self);
        size_t length = strcspn(self, ")") + 1;
        char name[60];
        snprintf(name, sizeof name, "%.*s", (int)length, self);
        cr_assert_null(strstr(self + length, name), "%s twice in\n%s", name, report());
    }
}
