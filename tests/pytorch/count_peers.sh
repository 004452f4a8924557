#!/usr/bin/env bash
# count_peers.sh FILE.jsonl: which units PyTorch's fp32 kernels multiply with. Nsight Compute counts their instructions on
# this machine's card, of 'efficient' the fused kernels of both passes, of 'math' the two matrix products of the forward
# pass, and a JSON line a kernel is appended, as by plots/counters.sh. Needs PyTorch and ncu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
(($# == 1)) || {
    echo "usage: tests/pytorch/count_peers.sh FILE.jsonl" >&2
    exit 2
}
metrics=gpu__time_duration.sum,launch__registers_per_thread,smsp__inst_executed.sum
metrics+=,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,sm__inst_executed_pipe_tensor_op_hmma.sum
for dim in 64 128; do
    for backend in efficient math; do
        kernels=(--kernel-name regex:fmha)
        [[ $backend == efficient ]] || kernels=(--kernel-name regex:gemm --launch-count 2)
        ncu --clock-control none --profile-from-start off --csv --page raw --print-units base --kernel-name-base demangled \
            "${kernels[@]}" --metrics "$metrics" python3 tests/pytorch/run_peers.py "$backend" 4 16 1024 "$dim" |
            grep '^"' |
            python3 plots/counters.py "pytorch_$backend" "--batch 4 --heads 16 --seq 1024 --dim $dim" >>"$1"
    done
done
