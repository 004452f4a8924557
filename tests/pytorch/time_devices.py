#!/usr/bin/env python3
"""Times chapter 17 beside PyTorch's context parallelism, on all cards of a machine.

    time_devices.py [--lengths 32768,65536] [--rounds 2] [--repeat 7] [--json FILE]

B 1, H 16, d 128, bf16, causal: without a mask PyTorch refuses. A process per card times torch.distributed's `context_parallel` with cuDNN's
kernels, by both of its methods, from a barrier of the processes until the last card has ended; gradients alone, as ours. Then the
programs of the cuda preset run, 17_ring and 17x_backward. Both alternate `rounds` times. A JSON line per pass and length has the
fields of a program's own lines, and is appended.

Exit status: 0 all was timed; 1 something failed; 2 bad usage; 3 PyTorch, two cards or a program is not there.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import set_rotate_method
    from torch.nn.attention import SDPBackend, sdpa_kernel
except (ImportError, ModuleNotFoundError) as error:
    print(f"time_devices.py: {error}", file=sys.stderr)
    sys.exit(3)

from time_peers import stamps

BIN = Path(__file__).resolve().parents[2] / "build" / "cuda" / "bin"
HEADS, D = 16, 128
METHODS = "allgather", "alltoall"
OURS = {"fwd": "17_ring", "bwd": "17x_backward"}
WARMUP = 2


def milliseconds(run, repeat):
    """Of each run, from a barrier until the last card has ended."""
    samples = []
    for turn in range(WARMUP + repeat):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        elapsed = torch.tensor([1e3 * (time.perf_counter() - start)], device="cuda")
        dist.all_reduce(elapsed, op=dist.ReduceOp.MAX)
        samples += [elapsed.item()] * (turn >= WARMUP)
    return samples


def worker(rank, cards, store, lengths, repeat, out):
    """A process of PyTorch's: its samples, by pass, length and method, go to a file."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=cards)
    mesh, found = init_device_mesh("cuda", (cards,)), []
    for N in lengths:
        for method in METHODS:
            set_rotate_method(method)
            torch.manual_seed(1)
            Q, K, V = (torch.randn(1, HEADS, N, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION), context_parallel(
                mesh, buffers=[Q, K, V], buffer_seq_dims=[2, 2, 2], no_restore_buffers={Q, K, V}
            ):
                inputs = [x.detach().requires_grad_() for x in (Q, K, V)]
                with torch.no_grad():
                    found.append(["fwd", N, method, milliseconds(lambda: F.scaled_dot_product_attention(*inputs, is_causal=True), repeat)])
                out_rows = F.scaled_dot_product_attention(*inputs, is_causal=True)
                gradient = torch.randn_like(out_rows)
                backward = lambda: torch.autograd.grad(out_rows, inputs, gradient, retain_graph=True)
                found.append(["bwd", N, method, milliseconds(backward, repeat)])
    if rank == 0:
        Path(out).write_text(json.dumps(found), encoding="ascii")
    dist.destroy_process_group()


def theirs(cards, lengths, repeat):
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(worker, (cards, f"{folder}/store", lengths, repeat, f"{folder}/out"), nprocs=cards)
        return json.loads(Path(folder, "out").read_text(encoding="ascii"))


def ours(pass_, N, cards, repeat):
    """Our program's own line."""
    command = [BIN / OURS[pass_], "--devices", cards, "--batch", 1, "--heads", HEADS, "--seq", N, "--dim", D, "--causal", "--dtype", "bf16",
               "--no-check", "--repeat", repeat, "--json", "-"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="32768,65536")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        lengths = [int(word) for word in options.lengths.split(",")]
    except ValueError:
        parser.error(f"--lengths is not a list of numbers: {options.lengths}")
    if min(lengths) < 1 or options.rounds < 1 or options.repeat < 2:
        parser.error("--lengths and --rounds are at least 1, --repeat at least 2")
    cards = torch.cuda.device_count()
    missing = "needs two cards" if cards < 2 else next((f"{BIN / name} is not built" for name in OURS.values() if not (BIN / name).exists()), None)
    if missing:
        print(f"time_devices.py: {missing}", file=sys.stderr)
        return 3
    samples, lines = {}, {}
    for _ in range(options.rounds):
        for pass_, N, method, times in theirs(cards, lengths, options.repeat):
            samples.setdefault((pass_, N, method), []).extend(times)
        for N in lengths:
            for pass_ in OURS:
                line = lines[pass_, N] = ours(pass_, N, cards, options.repeat)
                samples.setdefault((pass_, N, "ours"), []).append(line["ms_median"])
    same = stamps()
    for (pass_, N), line in lines.items():
        method = min(METHODS, key=lambda one: statistics.median(samples[pass_, N, one]))
        mine, other = statistics.median(samples[pass_, N, "ours"]), samples[pass_, N, method]
        quartiles = statistics.quantiles(other, n=4, method="inclusive")
        print(f"{pass_} N {N}: {OURS[pass_]} {mine:.3f} ms; context_parallel {quartiles[1]:.3f} ms ({method}), {quartiles[1] / mine:.2f} of it")
        shape = {key: line[key] for key in ("device", "dtype", "pass", "batch", "heads", "seq", "seq_kv", "dim", "causal", "devices")}
        its_line = {"step": "context_parallel", "idea": f"PyTorch {torch.__version__}, cuDNN, {method}", **shape, "repeat": len(other),
                    "ms_p25": quartiles[0], "ms_median": quartiles[1], "ms_p75": quartiles[2],
                    "tflops": line["tflops"] * line["ms_median"] / quartiles[1], **same}
        if options.json:
            with open(options.json, "a", encoding="ascii") as file:
                for one in (line | {"ms_median": mine, "tflops": line["tflops"] * line["ms_median"] / mine} | same, its_line):
                    file.write(json.dumps(one) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"time_devices.py: {error}\n{error.stderr}")
