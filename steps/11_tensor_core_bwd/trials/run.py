#!/usr/bin/env python3
"""Checks and times the forms that run.sh built, beside the last rung and PyTorch. run.py BUILD OUT.jsonl"""
import ctypes
import json
import math
import re
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BUILD, OUT = Path(sys.argv[1]), Path(sys.argv[2])
LIMIT = 150.0  # seconds
START = time.time()
GUARD = 4096  # elements after each output, which must stay as they are
FORMS = [line.split("|") for line in (Path(__file__).parent / "forms.txt").read_text().splitlines() if line[0] != "#"]
WHAT = {(name, int(d)): what for name, d, _, what in FORMS} | {(name, d): words for d in (64, 128) for name, words in (("flash", "FlashAttention-2, PyTorch"), ("cudnn", "cuDNN, PyTorch"))}
RUNGS = {name for name, _, tiling, _ in FORMS if not tiling}
NAMES = "Q", "K", "V", "O", "L", "dO", "dQ", "dK", "dV"


class Problem(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("batch", ctypes.c_int), ("heads", ctypes.c_int), ("N_q", ctypes.c_int), ("N_kv", ctypes.c_int),
                ("d", ctypes.c_int), ("causal", ctypes.c_bool), ("scale", ctypes.c_float)]


class Tensors(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in NAMES]


def inputs(batch, heads, N_q, N_kv, d, seed=1):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    def tensor(N):
        return torch.randn((batch, heads, N, d), generator=generator, device="cuda", dtype=torch.float32).to(torch.bfloat16)
    return tensor(N_q), tensor(N_kv), tensor(N_kv), tensor(N_q)


def reference(Q, K, V, dO, causal):
    """O, L, dQ, dK, dV in double precision."""
    Q, K, V, dO = (x.double() for x in (Q, K, V, dO))
    scale, N_q, N_kv = Q.shape[3] ** -0.5, Q.shape[2], K.shape[2]
    S = scale * (Q @ K.transpose(2, 3))
    if causal:
        seen = torch.arange(N_kv, device="cuda")[None] <= torch.arange(N_q, device="cuda")[:, None] + N_kv - N_q
        S = S.masked_fill(~seen, -math.inf)
    L = torch.logsumexp(S, dim=3)
    P = torch.where(torch.isinf(L)[..., None], 0.0, torch.exp(S - L[..., None]))
    O = P @ V
    D = (dO * O).sum(3, keepdim=True)
    dS = P * (dO @ V.transpose(2, 3) - D)
    return O, L, scale * dS @ K, scale * dS.transpose(2, 3) @ Q, P.transpose(2, 3) @ dO


class Trial:
    def __init__(self, name, path):
        self.name = name
        self.library = ctypes.CDLL(str(path))
        self.library.trial_workspace.restype = ctypes.c_size_t
        log = path.with_suffix(".log").read_text()
        d = re.search(r"_(\d+)\.so", path.name)[1]
        found = re.findall(r"Compiling entry function '(\S*backward_[ktn]\S*bfloat16\S*)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
                           log, re.S)
        # A form's file has rung 11e's kernels, too; a rung has tiles for less shared memory and the kernel without dQ.
        mine = [line for line in found if f"ILi{d}E" in line[0] and bool(re.search("8[nt]_tiling", line[0])) == (name not in RUNGS)]
        _, stores, _, regs = max(mine, key=lambda line: ([int(n) for n in re.findall(r"Li(\d+)E", line[0])][1:3], "Lb0" not in line[0]))
        self.ptxas = [f"{regs} registers, spills {stores}"]

    def prepare(self, Q, K, V, O, L, dO, causal, guarded=False):
        self.problem = Problem(2, Q.shape[0], Q.shape[1], Q.shape[2], K.shape[2], Q.shape[3], causal, Q.shape[3] ** -0.5)
        extra = GUARD if guarded else 0
        self.flat = [torch.full((x.numel() + extra,), math.nan, dtype=x.dtype, device="cuda") for x in (Q, K, V)]
        self.gradients = [flat[: x.numel()].view(x.shape) for flat, x in zip(self.flat, (Q, K, V))]
        self.workspace = torch.full((self.library.trial_workspace(ctypes.byref(self.problem)) // 4,), math.nan, device="cuda")
        self.kept = (Q, K, V, O, L, dO, *self.gradients)
        self.tensors = Tensors(*(x.data_ptr() for x in self.kept))

    def run(self):
        error = self.library.trial_backward(ctypes.byref(self.problem), ctypes.byref(self.tensors), ctypes.c_void_p(self.workspace.data_ptr()),
                                            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise RuntimeError(f"CUDA error {error}")

    def release(self):
        self.problem = self.flat = self.gradients = self.workspace = self.kept = self.tensors = None


def error_of(out, ref):
    norm = ref.norm().item()
    error = (out.double() - ref).norm().item()
    return error / norm if norm > 0 else (0.0 if error == 0 else math.inf)


CHECKS = [(1, 2, 256, 256, 0), (2, 3, 200, 333, 0), (2, 3, 333, 200, 0), (1, 1, 1, 40, 0), (1, 2, 1024, 1024, 0), (2, 2, 777, 1000, -8),
          (1, 2, 256, 256, 0, True), (2, 3, 200, 333, 0, True), (2, 3, 333, 200, -8, True), (1, 2, 1024, 1024, 0, True), (2, 2, 1000, 777, 0, True),
          (1, 1, 65, 129, -24, True)]


def check(trials, d):
    """Takes out of `trials` what is wrong."""
    ok = {trial.name: [] for trial in trials}
    for batch, heads, N_q, N_kv, less, *causal in CHECKS:
        causal = bool(causal)
        Q, K, V, dO = inputs(batch, heads, N_q, N_kv, d + less)
        O, L, *refs = reference(Q, K, V, dO, causal)
        O, L = O.to(torch.bfloat16), L.float()
        for trial in list(trials):
            try:
                trial.prepare(Q, K, V, O, L, dO, causal, guarded=True)
                trial.run()
                torch.cuda.synchronize()
            except RuntimeError as error:
                print(f"{trial.name} d {d} {N_q}x{N_kv} causal {causal}: {error}", flush=True)
                trials.remove(trial)
                continue
            errors = [error_of(x, ref) for x, ref in zip(trial.gradients, refs)]
            whole = all(torch.isnan(flat[-GUARD:]).all().item() for flat in trial.flat)
            # one element that is far off hides in a norm; where a reference is all 0, so must be the result
            largest = max((x.double() - ref).abs().max().item() / max(ref.abs().max().item(), 1e-3) for x, ref in zip(trial.gradients, refs))
            good = all(e <= 2e-2 for e in errors) and largest <= 5e-2 and whole
            ok[trial.name].append(max(errors))
            if not good:
                print(f"WRONG {trial.name} d {d}, {batch}x{heads}x{N_q}x{N_kv} causal {causal}: errors {errors}, largest {largest:.2g}, guards {whole}",
                      flush=True)
                trials.remove(trial)
            trial.release()
    return ok


def timed(run, flush):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    torch.cuda._sleep(2_000_000)
    start.record()
    run()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop)


def peer(backend, Q, K, V, dO, causal):
    leaves = [x.detach().requires_grad_() for x in (Q, K, V)]
    with sdpa_kernel(backend):
        O = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    return lambda: torch.autograd.grad(O, leaves, dO, retain_graph=True)


def time_all(trials, d, causal, rounds, file, checked):
    batch, N = 2, 8192
    heads = 2048 // d
    Q, K, V, dO = inputs(batch, heads, N, N, d)
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        O, L, *_ = torch.ops.aten._scaled_dot_product_flash_attention(Q, K, V, 0.0, causal)
    L = L.float().contiguous()
    runs = {}
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
        try:
            runs[name] = peer(backend, Q, K, V, dO, causal)
        except RuntimeError as error:
            print(f"  {name} d {d}: {error}")
    for trial in trials:
        trial.prepare(Q, K, V, O, L, dO, causal)
        runs[trial.name] = trial.run
    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda")
    samples = {name: [] for name in runs}
    for name, run in list(runs.items()):
        try:
            timed(run, flush)
            timed(run, flush)
        except RuntimeError as error:
            print(f"  {name} d {d}: {error}")
            del runs[name], samples[name]
    for turn in range(rounds):
        if time.time() - START > LIMIT and turn >= 5:
            break
        names = list(runs)
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            samples[name].append(timed(runs[name], flush))
    # All trials against the last rung, at this size too.
    last = next((trial for trial in trials if trial.name == "tensor_core_bwd"), None)
    pairs = batch * heads * (N * (N + 1) // 2 if causal else N * N)
    median = {name: statistics.median(ms) for name, ms in samples.items() if ms}
    flash = median.get("flash", math.nan)
    print(f"d {d} {'causal' if causal else 'full'}: {'':14} TFLOP/s  x flash  x last   ms (p25 p75)")
    for name, ms in sorted(median.items(), key=lambda item: item[1]):
        quartiles = statistics.quantiles(samples[name], n=4, method="inclusive")
        trial = next((trial for trial in trials if trial.name == name), None)
        line = {"step": "11_tensor_core_bwd", "name": name, "what": WHAT[name, d], "dim": d, "pass": "bwd", "dtype": "bf16", "causal": causal, "ms_median": ms, "ms_p25": quartiles[0], "ms_p75": quartiles[2], "runs": len(samples[name]),
                "tflops": 10 * pairs * d / ms * 1e-9, "ratio_to_flash": flash / ms, "ratio_to_last": median["tensor_core_bwd"] / ms if "tensor_core_bwd" in median else None,
                "ptxas": trial.ptxas if trial else None, "largest_error": max(checked.get(name) or [0]), "device": torch.cuda.get_device_name(),
                "torch": torch.__version__, "batch": batch, "heads": heads, "seq": N}
        if trial and last and trial is not last:
            line["difference_to_last"] = max(error_of(x, y.double()) for x, y in zip(trial.gradients, last.gradients))
            if not line["difference_to_last"] <= 2e-2:
                print(f"  WRONG at N 8192: {name}, {line['difference_to_last']}")
        file.write(json.dumps(line) + "\n")
        print(f"  {name:20} {line['tflops']:8.1f} {line['ratio_to_flash']:8.3f} {line['ratio_to_last'] or 0:8.3f} {ms:8.3f} ({quartiles[0]:.3f} {quartiles[2]:.3f})"
              f"  err {line['largest_error']:.1e} {(trial.ptxas or [''])[0] if trial else ''}", flush=True)
    file.flush()
    for trial in trials:
        trial.release()


def main():
    with OUT.open("a") as file:
        for d in (64, 128):
            trials = [Trial(path.stem.rsplit("_", 1)[0], path) for path in sorted(BUILD.glob(f"*_{d}.so"))]
            checked = check(trials, d)
            print(f"d {d}: {len(trials)} of {len(checked)} right, {time.time() - START:.0f} s", flush=True)
            for causal in (False, True):
                time_all(trials, d, causal, 15, file, checked)
    print(f"{time.time() - START:.0f} s")


main()
