#!/usr/bin/env python3
"""Checks and times forms of kernels that a script built, in turns with PyTorch's kernels, in one process.

    time_forms.py BUILD OUT.jsonl

BUILD/forms.txt has one line per form, PASS|TYPE|STEP|LAST|KERNEL|NAME|d|WHAT, of one pass and type. LAST is the name of
the form to which the others of its step are compared. BUILD/NAME_d.so is its library, BUILD/NAME_d.log what the compiler
reported, also of kernels that do not match KERNEL.
"""
import ctypes
import json
import math
import re
import sys
import time
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/pytorch"))
import compare  # noqa: E402
from time_peers import Contestant, Size, Stopwatch, contestants_for, pytorch_contestant, race  # noqa: E402

BUILD, OUT = Path(sys.argv[1]), Path(sys.argv[2])
START = time.time()
GUARD = 4096  # elements after each output, which must stay as they are
FORMS = [line.split("|") for line in (BUILD / "forms.txt").read_text().splitlines()]
PASS, TYPE = FORMS[0][:2]
BACKWARD, BF16 = PASS == "bwd", TYPE == "bf16"
# What differs between the types: the number of the type in common/device/attention.h, sizes, largest error of a norm and of an element.
DTYPE, TYPE_NUMBER = (torch.bfloat16, 2) if BF16 else (torch.float32, 0)
BATCH, SEQ = (2, 8192) if BF16 else (4, 4096)
HEADS = {64: 32, 128: 16} if BF16 else {64: 16, 128: 16}
BOUND, BOUND_ELEMENT = (2e-2, 5e-2) if BF16 else (1e-5, 5e-5)
PEERS = {"efficient": "'efficient', PyTorch", "math": "separate kernels, PyTorch", "flash": "FlashAttention-2, PyTorch", "cudnn": "cuDNN, PyTorch"}
PEER = "flash" if BF16 else "efficient"  # the one to which all are compared, as in time_peers.py


class Problem(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("batch", ctypes.c_int), ("heads", ctypes.c_int), ("N_q", ctypes.c_int), ("N_kv", ctypes.c_int),
                ("d", ctypes.c_int), ("causal", ctypes.c_bool), ("scale", ctypes.c_float), ("variants", ctypes.c_byte * 512)]


class Tensors(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("Q", "K", "V", "O", "L", "dO", "dQ", "dK", "dV")] + [("scales", ctypes.c_void_p * 8)]


def inputs(*sizes):
    """Q, K, V and dO, as time_peers.py has them."""
    case = compare.Case(*sizes)
    return [x.to(DTYPE) for x in (*compare.make_inputs(case), compare.make_inputs(case, seed=2)[0])]


class Trial:
    def __init__(self, step, last, kernel, name, d, what):
        self.step, self.name, self.last, self.what = step, name, last, what
        path = BUILD / f"{name}_{d}.so"
        self.library = ctypes.CDLL(str(path))
        self.library.trial_workspace.restype = ctypes.c_size_t
        found = re.findall(r"Compiling entry function '(\S*)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
                           path.with_suffix(".log").read_text(), re.S)
        mine = [line for line in found if re.search(kernel, line[0]) and f"ILi{d}E" in line[0]]
        # a rung has tiles for less shared memory, too, and kernels of the backward pass without dQ
        _, stores, _, regs = max(mine, key=lambda line: ([int(n) for n in re.findall(r"Li(\d+)E", line[0])][1:3], "Lb0" not in line[0]))
        self.ptxas = [f"{regs} registers, spills {stores}"]

    def prepare(self, Q, K, V, O, L, dO, causal, guarded=False):
        """O and L: what the forward pass gave; a trial of the forward pass has its own."""
        self.problem = Problem(TYPE_NUMBER, Q.shape[0], Q.shape[1], Q.shape[2], K.shape[2], Q.shape[3], causal, Q.shape[3] ** -0.5)
        shapes = [(x.shape, x.dtype) for x in ((Q, K, V) if BACKWARD else (Q, L))]
        self.flat = [torch.full((shape.numel() + (GUARD if guarded else 0),), math.nan, dtype=dtype, device="cuda") for shape, dtype in shapes]
        self.results = [flat[: shape.numel()].view(shape) for flat, (shape, _) in zip(self.flat, shapes)]
        self.workspace = torch.full((self.library.trial_workspace(ctypes.byref(self.problem)) // 4,), math.nan, device="cuda")
        given = (Q, K, V, O, L, dO, *self.results) if BACKWARD else (Q, K, V, *self.results)
        self.kept, self.tensors = given, Tensors(*(x.data_ptr() for x in given))

    def run(self):
        error = self.library.trial(ctypes.byref(self.problem), ctypes.byref(self.tensors), ctypes.c_void_p(self.workspace.data_ptr()),
                                   ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise RuntimeError(f"CUDA error {error}")


def errors_of(out, ref):
    """Of the norm, and of one element, which hides in a norm. Where a reference is infinite, the result must be the same."""
    infinite, out, ref = torch.isinf(ref), out.double(), ref.double()
    finite = torch.where(infinite, 0.0, ref)
    return (compare.relative_error(torch.where(infinite, 0.0, out), finite),
            compare.largest_error(out, ref) / max(finite.abs().max().item(), 1e-3))


CHECKS = [(1, 2, 256, 256, 0), (2, 3, 200, 333, 0), (2, 3, 333, 200, 0), (1, 1, 1, 40, 0), (1, 2, 1024, 1024, 0), (2, 2, 777, 1000, -8),
          (1, 2, 256, 256, 0, True), (2, 3, 200, 333, 0, True), (2, 3, 333, 200, -8, True), (1, 2, 1024, 1024, 0, True), (2, 2, 1000, 777, 0, True),
          (1, 1, 65, 129, -24, True)]


def check(trials, d):
    """Takes out of `trials` what is wrong. The largest error of each, and in the forward pass of PyTorch's kernel."""
    found = {trial.name: [] for trial in trials} | {PEER: []}
    for batch, heads, N_q, N_kv, less, *causal in CHECKS:
        causal = bool(causal)
        Q, K, V, dO = inputs(batch, heads, N_q, N_kv, d + less)
        O, L = compare.reference(Q, K, V, causal, None)
        refs = compare.reference_gradients(Q, K, V, dO, causal, None) if BACKWARD else [O, L]
        O, L = O.to(DTYPE), L.float()
        if not BACKWARD and (not causal or N_q == N_kv):  # PyTorch aligns its mask elsewhere
            found[PEER].append(pytorch_contestant(PEER, Q, K, V, causal, refs[0][-1:, -1:]).errors["o"])
        for trial in list(trials):
            try:
                trial.prepare(Q, K, V, O, L, dO, causal, guarded=True)
                trial.run()
                torch.cuda.synchronize()
            except RuntimeError as error:
                print(f"{trial.name} d {d} {N_q}x{N_kv} causal {causal}: {error}", flush=True)
                trials.remove(trial)
                continue
            errors, largest = zip(*(errors_of(x, ref) for x, ref in zip(trial.results, refs)))
            whole = all(torch.isnan(flat[-GUARD:]).all().item() for flat in trial.flat)
            found[trial.name].append(max(errors))
            if not (all(e <= BOUND for e in errors) and all(e <= BOUND_ELEMENT for e in largest) and whole):
                print(f"WRONG {trial.name} d {d}, {batch}x{heads}x{N_q}x{N_kv} causal {causal}: errors {errors}, largest {max(largest):.2g}, guards {whole}",
                      flush=True)
                trials.remove(trial)
    return found


def prepared(trials, size, stopwatch):
    """What to time, PyTorch's kernels first."""
    contestants = contestants_for(size, [])
    for contestant in contestants:
        contestant.name = contestant.name.removeprefix("pytorch_")
        contestant.idea = PEERS.get(contestant.name, contestant.idea)  # FlashAttention-4 names its version
    Q, K, V, dO = inputs(BATCH, size.heads, SEQ, SEQ, size.d)
    O, L = None, torch.empty(Q.shape[:3], dtype=torch.float32, device="cuda")
    if BACKWARD:
        O, L, *_ = torch.ops.aten._scaled_dot_product_flash_attention(Q, K, V, 0.0, size.causal)
        L = L.float().contiguous()
    for trial in trials:
        try:
            trial.prepare(Q, K, V, O, L, dO, size.causal)
            stopwatch.time(trial.run)
            contestants.append(Contestant(trial.name, trial.what, torch.version.cuda, trial.run, 0, {}))
        except RuntimeError as error:
            print(f"  {trial.name} d {size.d}: {error}")
    return contestants


def report(trials, contestants, size, file, checked):
    """A line per form on the screen and in `file`. Each form is compared with the last rung, at this size, too."""
    by_name = {trial.name: trial for trial in trials}
    median = {contestant.name: contestant.quantiles()[1] for contestant in contestants}
    print(f"d {size.d} {'causal' if size.causal else 'full'}: {'':60} TFLOP/s  x {PEER}  x last   ms (p25 p75)")
    for contestant in sorted(contestants, key=lambda contestant: median[contestant.name]):
        name, (p25, ms, p75) = contestant.name, contestant.quantiles()
        trial = by_name.get(name)
        last = by_name.get(trial.last) if trial else None
        line = {"name": name, "what": contestant.idea, "dim": size.d, "pass": PASS,
                "dtype": TYPE, "causal": size.causal, "ms_median": ms, "ms_p25": p25, "ms_p75": p75, "runs": len(contestant.samples),
                "tflops": size.tflops(ms), f"ratio_to_{PEER}": median.get(PEER, math.nan) / ms,
                "ratio_to_last": median[last.name] / ms if last else None, "ptxas": trial.ptxas if trial else None,
                "largest_error": max(checked.get(name) or [0]), "device": torch.cuda.get_device_name(), "torch": torch.__version__, "batch": BATCH,
                "heads": size.heads, "seq": SEQ}
        if last and trial is not last:
            line["difference_to_last"] = max(errors_of(x, y)[0] for x, y in zip(trial.results, last.results))
            if not line["difference_to_last"] <= BOUND:
                print(f"  WRONG at N {SEQ}: {name}, {line['difference_to_last']}")
        for step in [trial.step] if trial else sorted({form[2] for form in FORMS}):  # PyTorch's kernels stand beside each step
            file.write(json.dumps({"step": step, **line}) + "\n")
        print(f"  {line['what']:70} {line['tflops']:8.1f} {line[f'ratio_to_{PEER}']:8.3f} {line['ratio_to_last'] or 0:8.3f} {ms:8.3f} ({p25:.3f} {p75:.3f})"
              f"  err {line['largest_error']:.1e} {(trial.ptxas or [''])[0] if trial else ''}", flush=True)
    file.flush()


def main():
    with OUT.open("a") as file:
        for d in (64, 128):
            trials = [Trial(step, last, kernel, name, d, what) for _, _, step, last, kernel, name, width, what in FORMS
                      if int(width) == d and (BUILD / f"{name}_{d}.so").exists()]
            checked = check(trials, d)
            print(f"d {d}: {len(trials)} of {len(checked) - 1} right, {time.time() - START:.0f} s; {PEER}'s largest error {max(checked[PEER] or [0]):.1e}", flush=True)
            for causal in (False, True):
                size, stopwatch = Size(TYPE, BATCH, HEADS[d], SEQ, d, causal, PASS), Stopwatch()
                contestants = prepared(trials, size, stopwatch)
                race(contestants, stopwatch, 15)
                report(trials, contestants, size, file, checked)
    print(f"{time.time() - START:.0f} s")


main()
