#!/usr/bin/env bash
# peer_kernels.sh FILE.jsonl: what PyTorch's fp32 kernels are made of. Nsight Compute counts their instructions on this
# machine's card, of 'efficient' the fused kernels of both passes, of 'math' the two matrix products of the forward pass,
# and a JSON line a kernel is appended. Needs PyTorch and ncu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# == 1)) || {
    echo "usage: plots/peer_kernels.sh FILE.jsonl" >&2
    exit 2
}
ffma=smsp__sass_thread_inst_executed_op_ffma_pred_on.sum
tensor=sm__inst_executed_pipe_tensor_op_hmma.sum
for dim in 64 128; do
    for backend in efficient math; do
        kernels=(--kernel-name regex:fmha)
        [[ $backend == efficient ]] || kernels=(--kernel-name regex:gemm --launch-count 2)
        ncu --clock-control none --profile-from-start off --csv --page raw --print-units base --kernel-name-base demangled \
            "${kernels[@]}" --metrics "gpu__time_duration.sum,smsp__inst_executed.sum,$ffma,$tensor" \
            python3 tests/pytorch/run_peers.py "$backend" 4 16 1024 "$dim" | grep '^"' |
            python3 -c '
import csv, json, sys
backend, dim, ffma, tensor = sys.argv[1:]
names, _, *kernels = csv.reader(sys.stdin)
for kernel in kernels:
    fields = dict(zip(names, kernel))
    count = lambda name: int(fields[name].replace(",", ""))
    name = fields["Kernel Name"].removeprefix("void ").split("(")[0].split("<")[0]
    print(json.dumps({"backend": backend, "kernel": name, "pass": "bwd" if "cutlassB" in name else "fwd",
                      "batch": 4, "heads": 16, "seq": 1024, "dim": int(dim), "microseconds": count("gpu__time_duration.sum") / 1e3,
                      "instructions": count("smsp__inst_executed.sum"), "ffma": count(ffma), "tensor": count(tensor)}))
' "$backend" "$dim" "$ffma" "$tensor" >>"$1"
    done
done
