#!/usr/bin/env bash
# counters.sh OUTPUT.jsonl STEP OPTIONS...: append what Nsight Compute's counters say of each kernel of a step, a JSON line
# a kernel. The cuda preset must be built.
set -euo pipefail
output=$1 step=$2
shift 2
metrics=(
    gpu__time_duration.sum
    launch__registers_per_thread
    l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
    l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
    l1tex__t_requests_pipe_lsu_mem_global_op_st.sum
    l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum
    l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum
    l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum
    l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct
    smsp__inst_executed_op_shared_ld.sum
    smsp__inst_executed_op_shared_st.sum
    l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
    l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum
    l1tex__data_pipe_lsu_wavefronts.sum.pct_of_peak_sustained_elapsed
    l1tex__lsuin_requests.sum
    smsp__inst_executed.sum
    smsp__sass_thread_inst_executed_op_ffma_pred_on.sum
    smsp__issue_active.avg.pct_of_peak_sustained_active
    sm__warps_active.avg.pct_of_peak_sustained_active
    smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio
    smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio
    smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio
    smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio
    smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio
    smsp__average_warps_issue_stalled_wait_per_issue_active.ratio
    smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio
    smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio
    lts__t_sectors_op_read.sum
    lts__t_sectors_op_write.sum
    dram__bytes_read.sum
    dram__bytes_write.sum
    smsp__inst_executed_op_local_ld.sum
    smsp__inst_executed_op_local_st.sum
)
ncu --clock-control none --csv --page raw --print-units base --metrics "$(IFS=,; echo "${metrics[*]}")" \
    --kernel-name-base demangled build/cuda/bin/"$step" --no-time --no-check "$@" 2>/dev/null | grep '^"' |
    python3 "$(dirname "$0")/counters.py" "$step" "$*" >>"$output"
