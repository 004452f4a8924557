/* Kernels with one planted fault each, their correct twins, and correct kernels that look suspicious.
 *
 * All read `in` and write `out`, two arrays of ELEMENTS ints on the device; `out` starts as zeros.
 */
#ifndef FAULT_KERNELS_H
#define FAULT_KERNELS_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ELEMENTS = 1000 };
#define FAULT_OF_HOST ((cudaError_t)-1)
#define SIGNAL_OF_HOST ((cudaError_t)-2) /* the program ends by a signal, after a message */

struct fault {
    const char *name;  /* of the kernel; in fault_kernels.cu the lines to be named end in "// here" */
    cudaError_t error; /* that the faulty kernel must give; FAULT_OF_HOST: the program ends at the fault, status 3 */
    const char *says;  /* words of the report */
    /* Launch the faulty kernel, or its twin; neither waits. */
    void (*launch)(const int *in, int *out);
    void (*launch_twin)(const int *in, int *out);
    int (*expected)(const int *in, int i); /* what the twin leaves in out[i] */
};

#define FOR_EACH_FAULT(X)                                                                                              \
    X(store_then_read_static)                                                                                          \
    X(store_then_read_dynamic)                                                                                         \
    X(read_then_overwrite_static)                                                                                      \
    X(read_then_overwrite_dynamic)                                                                                     \
    X(tile_reused_in_loop_static)                                                                                      \
    X(tile_reused_in_loop_dynamic)                                                                                     \
    X(transpose_without_barrier)                                                                                       \
    X(double_buffer_without_barrier)                                                                                   \
    X(lanes_store_then_read)                                                                                           \
    X(lanes_read_then_overwrite)                                                                                       \
    X(lane_broadcast)                                                                                                  \
    X(half_warp_without_syncwarp)                                                                                      \
    X(reader_of_lanes_overwrites)                                                                                      \
    X(reader_of_warps_overwrites)                                                                                      \
    X(reader_overwrites_what_it_read)                                                                                  \
    X(lanes_write_write)                                                                                               \
    X(warps_write_write)                                                                                               \
    X(warps_write_read_global)                                                                                         \
    X(warps_read_write_global)                                                                                         \
    X(blocks_write_write)                                                                                              \
    X(blocks_write_read)                                                                                               \
    X(blocks_read_write)                                                                                               \
    X(count_without_atomic_shared)                                                                                     \
    X(count_without_atomic_global)                                                                                     \
    X(atomic_against_plain_read)                                                                                       \
    X(atomic_against_plain_store)                                                                                      \
    X(tree_reduction_without_barrier)                                                                                  \
    X(reduction_without_first_barrier)                                                                                 \
    X(reduction_without_second_barrier)                                                                                \
    X(flag_without_barrier)                                                                                            \
    X(flag_of_last_thread_without_barrier)                                                                             \
    X(stencil_without_barrier)                                                                                         \
    X(tail_read_global)                                                                                                \
    X(tail_write_global)                                                                                               \
    X(tail_read_shared)                                                                                                \
    X(tail_write_shared)                                                                                               \
    X(tail_read_dynamic)                                                                                               \
    X(negative_index_global)                                                                                           \
    X(negative_index_shared)                                                                                           \
    X(wrong_row_stride)                                                                                                \
    X(atomic_past_the_end)                                                                                             \
    X(shorts_past_the_end)                                                                                             \
    X(named_shorts_past_the_end)                                                                                       \
    X(named_shorts_before_the_start)                                                                                   \
    X(race_on_named_short)                                                                                             \
    X(pointer_past_a_tile)                                                                                             \
    X(pointer_before_a_tile)                                                                                           \
    X(dynamic_beside_static)                                                                                           \
    X(cube_without_barrier)                                                                                            \
    X(misaligned_float4_load)                                                                                          \
    X(misaligned_float4_store)                                                                                         \
    X(misaligned_float4_shared)                                                                                        \
    X(misaligned_float4_add)                                                                                           \
    X(misaligned_long_add)                                                                                             \
    X(cached_read_of_written)                                                                                          \
    X(cached_read_of_written_bytes)                                                                                    \
    X(misaligned_float2_load)                                                                                          \
    X(misaligned_float2_shared)                                                                                        \
    X(unwritten_global)                                                                                                \
    X(partly_written_global)                                                                                           \
    X(unwritten_shared_tail)                                                                                           \
    X(unwritten_index)                                                                                                 \
    X(unwritten_sum)                                                                                                   \
    X(barrier_in_branch)                                                                                               \
    X(barrier_in_unequal_loops)                                                                                        \
    X(return_before_barrier)                                                                                           \
    X(shuffle_from_absent_lane)                                                                                        \
    X(shuffle_in_branch)                                                                                               \
    X(async_read_before_wait)                                                                                          \
    X(async_read_without_barrier)                                                                                      \
    X(async_waits_for_too_few)                                                                                         \
    X(async_commit_forgotten)                                                                                          \
    X(async_buffer_overwritten)                                                                                        \
    X(write_to_input)                                                                                                  \
    X(use_after_free)                                                                                                  \
    X(host_pointer)                                                                                                    \
    X(returned_struct_past_the_end)                                                                                    \
    X(returned_struct_to_shared)                                                                                       \
    X(volatile_reduction)                                                                                              \
    X(volatile_neighbour)                                                                                              \
    X(bytes_store_then_read)                                                                                           \
    X(bytes_read_then_overwrite)                                                                                       \
    X(bytes_between_warps)                                                                                             \
    X(bytes_of_blocks)                                                                                                 \
    X(halves_store_then_read)                                                                                          \
    X(word_over_bytes)                                                                                                 \
    X(host_reads_device)                                                                                               \
    X(host_writes_device)                                                                                              \
    X(host_copies_device)                                                                                              \
    X(host_calls_kernel)                                                                                               \
    X(host_divides_by_zero)                                                                                            \
    X(assertion_fails)                                                                                                 \
    X(row_without_bounds_check)

/* Correct kernels that must not be accused; launch and launch_twin are the same. */
#define FOR_EACH_PATTERN(X)                                                                                            \
    X(shuffle_reduction)                                                                                               \
    X(warp_reduction_in_shared)                                                                                        \
    X(double_buffering)                                                                                                \
    X(padded_transpose)                                                                                                \
    X(histogram)                                                                                                       \
    X(last_block_adds_up)                                                                                              \
    X(spin_lock_around_plain_data)                                                                                     \
    X(flag_between_warps)                                                                                              \
    X(volatile_flag)                                                                                                   \
    X(broadcast_read)                                                                                                  \
    X(readers_then_writer)                                                                                             \
    X(half_warps_apart)                                                                                                \
    X(shuffle_orders_lanes)                                                                                            \
    X(ballot_orders_lanes)                                                                                             \
    X(groups_of_eight)                                                                                                 \
    X(compaction_by_tickets)                                                                                           \
    X(bytes_side_by_side)                                                                                              \
    X(tile_of_two_types)                                                                                               \
    X(two_launches)                                                                                                    \
    X(float4_tile_product)                                                                                             \
    X(async_double_buffer)                                                                                             \
    X(returned_lanes)                                                                                                  \
    X(returned_structs)                                                                                                \
    X(volatile_flag_between_lanes)                                                                                     \
    X(volatile_flags_of_warps)                                                                                         \
    X(bytes_of_all_blocks)                                                                                             \
    X(bytes_then_words)

/* In barrier_faults.cu. */
#define FOR_EACH_BARRIER_FAULT(X)                                                      \
    X(mbarrier_without_wait)                                                                                           \
    X(mbarrier_used_before_init)                                                                                       \
    X(mbarrier_never_initialised)                                                                                      \
    X(mbarrier_expects_too_many)                                                                                       \
    X(mbarrier_expects_too_few)                                                                                        \
    X(mbarrier_write_before_wait)                                                                                      \
    X(mbarrier_copy_not_awaited)                                                                                       \
    X(pipeline_without_consumer_wait)                                                                                  \
    X(pipeline_without_barrier)                                                                                        \
    X(pipeline_released_too_early)                                                                                     \
    X(group_copy_without_wait)                                                                                         \
    X(grid_without_sync)                                                                                               \
    X(grid_sync_left_out_by_a_block)                                                                                   \
    X(grid_sync_in_plain_launch)

/* In tensor_faults.cu; these need compute capability 8.0. */
#define FOR_EACH_TENSOR_FAULT(X)                                                                                       \
    X(ldmatrix_misaligned_row)                                                                                         \
    X(ldmatrix_before_barrier)                                                                                         \
    X(ldmatrix_of_lanes_halves)                                                                                        \
    X(ldmatrix_then_overwrite)                                                                                         \
    X(ldmatrix_of_unwritten_row)                                                                                       \
    X(ldmatrix_under_copy)                                                                                             \
    X(ldmatrix_out_of_bounds)                                                                                          \
    X(ldmatrix_from_global)                                                                                            \
    X(ldmatrix_without_a_lane)                                                                                         \
    X(mma_of_half_a_warp)                                                                                              \
    X(mma_in_branch)                                                                                                   \
    X(mma_orders_nothing)                                                                                              \
    X(stmatrix_then_read)                                                                                              \
    X(stmatrix_rows_collide)                                                                                           \
    X(stmatrix_out_of_bounds)                                                                                          \
    X(wmma_load_before_stores)                                                                                         \
    X(wmma_store_then_read)                                                                                            \
    X(wmma_misaligned)                                                                                                 \
    X(wmma_odd_stride)

#define FOR_EACH_TENSOR_PATTERN(X)                                                                                     \
    X(ldmatrix_shared_rows)                                                                                            \
    X(ldmatrix_then_reuse)                                                                                             \
    X(mma_by_one_warp)

/* out[i] = in[i] in a block of so many threads, then out[i] += out[i] in one of 128: only when the first has run is there
 * something to add. */
void launch_copy_then_double(int threads, const int *in, int *out);

#define DECLARE_FAULT(name) extern const struct fault fault_##name;
FOR_EACH_FAULT(DECLARE_FAULT)
FOR_EACH_PATTERN(DECLARE_FAULT)
FOR_EACH_BARRIER_FAULT(DECLARE_FAULT)
FOR_EACH_TENSOR_FAULT(DECLARE_FAULT)
FOR_EACH_TENSOR_PATTERN(DECLARE_FAULT)

#ifdef __cplusplus
}

/* ---- for the files of kernels ---- */

/* What element i < count must be; beyond, out keeps its zeros. */
#define FIRST(count, expression)                                                                                       \
    [](const int *in, int i) {                                                                                         \
        (void)in;                                                                                                      \
        return i < (count) ? (expression) : 0;                                                                         \
    }

#define FAULT(name, error, says, expected, ...)                                                                        \
    template <bool CORRECT> static void launch_##name(const int *in, int *out) { __VA_ARGS__; }                        \
    const struct fault fault_##name = {#name, error, says, launch_##name<false>, launch_##name<true>, expected};
#define PATTERN(name, expected, ...)                                                                                   \
    static void launch_##name(const int *in, int *out) { __VA_ARGS__; }                                                \
    const struct fault fault_##name = {#name, cudaSuccess, "", launch_##name, launch_##name, expected};

#endif

#endif
