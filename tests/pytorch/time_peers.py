#!/usr/bin/env python3
"""Times our steps and PyTorch's attention side by side, in one process and taking turns, on one card.

    time_peers.py [--dtype fp32|fp16|bf16] [--pass fwd|bwd] [--steps 05,06] [--sizes 4x16x4096x64,...] [--causal both|yes|no] [--repeat 25]
                  [--json FILE]

A size is batch x heads x N x d. In 16 bits PyTorch's backends are 'flash', FlashAttention-2, which ratios are to, and 'cudnn'; beside them
stands FlashAttention-4, `fa4`, where it is installed (the Python package flash-attn-4).
In fp32 PyTorch's backends are 'efficient' (one fused kernel) and 'math' (matrix products with
a softmax between them); TF32 is off for the latter, and the former is exact to fp32 by three TF32 products on tensor
cores for one of fp32. A JSON line has the fields of a step's own lines (--json of its program) and is appended;
plots/data/peers/ is where recorded ones go.

Exit status: 0 all was timed; 1 a result is wrong; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import contextlib
import datetime
import importlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Callable

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ModuleNotFoundError as error:
    print(f"time_peers.py: {error}", file=sys.stderr)
    sys.exit(3)

import compare

ROOT = Path(__file__).resolve().parents[2]
SIZES = ",".join(f"4x16x{N}x{d}" for d in (64, 128) for N in (512, 1024, 2048, 4096))
SIZES_OF_16_BITS = ",".join(f"{16384 // N}x{2048 // d}x{N}x{d}" for d in (64, 128) for N in (512, 1024, 2048, 4096, 8192))
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
FP32_BACKENDS = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
BACKENDS_OF_16_BITS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
BACKENDS = FP32_BACKENDS | BACKENDS_OF_16_BITS
WARMUP = 3
SLOW_MS = 800.0  # a contestant that needs longer than this for all its runs at a size gets fewer,
LEAST_RUNS = 5  # but at least so many
HEAD_START_CYCLES = 2_000_000  # about a millisecond; enqueueing takes a tenth of that on a quiet machine
# Of a head's norm: far over any right kernel's, far under a wrong one's.
LARGEST_ERRORS = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}


@dataclass(frozen=True)
class Size:
    dtype: str
    batch: int
    heads: int
    N: int
    d: int
    causal: bool
    pass_: str = "fwd"

    def __str__(self):
        more = (", causal" if self.causal else "") + (", backward" if self.pass_ == "bwd" else "")
        return f"B {self.batch}, H {self.heads}, N {self.N}, d {self.d}" + more

    def pairs(self):
        """(query, key) that the mask lets through."""
        return self.batch * self.heads * (self.N * (self.N + 1) // 2 if self.causal else self.N * self.N)

    def tflops(self, ms):
        return (4.0 if self.pass_ == "fwd" else 10.0) * self.pairs() * self.d / ms * 1e-9


@dataclass
class Contestant:
    name: str
    idea: str
    toolkit: str
    run: Callable  # one pass into memory that is kept, where the contestant can
    extra_bytes: int  # device memory beyond inputs and outputs
    errors: dict  # of each output's last head, relative to its norm
    runs: int = 0
    samples: list = field(default_factory=list)  # milliseconds

    def quantiles(self):
        """First quartile, median, third quartile."""
        return statistics.quantiles(self.samples, n=4, method="inclusive")


# ---- who takes part --------------------------------------------------------------------------------------------------


def peak_beyond(run):
    """What a call returns, and the bytes of device memory that it needed on top of what it returned."""
    run()  # libraries keep memory of their own from the first call on
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = run()
    torch.cuda.synchronize()
    returned = sum(tensor.numel() * tensor.element_size() for tensor in out)
    return out, max(0, torch.cuda.max_memory_allocated() - before - returned)


def last_head_error(O, O_ref):
    return compare.relative_error(O[-1:, -1:], O_ref)


def last_head_reference(Q, K, V, causal):
    """A head is enough to tell a wrong kernel, and leaves room for the rest."""
    return compare.reference(Q[-1:, -1:], K[-1:, -1:], V[-1:, -1:], causal, None)[0]


def last_gradients_reference(Q, K, V, dO, causal):
    return compare.reference_gradients(Q[-1:, -1:], K[-1:, -1:], V[-1:, -1:], dO[-1:, -1:], causal, None)


def gradient_errors(gradients, refs):
    return {name: last_head_error(out, ref) for name, out, ref in zip(("dq", "dk", "dv"), gradients, refs, strict=True)}


def our_backward(step, Q, K, V, dO, causal, refs):
    O, L = compare.last_forward(step, Q, K).forward(Q, K, V, causal=causal)
    gradients, extra = peak_beyond(partial(step.backward, Q, K, V, O, L, dO, causal=causal))
    workspace = torch.empty(step.workspace_bytes(Q, K, causal), dtype=torch.uint8, device=Q.device)

    def run():
        step.backward(Q, K, V, O, L, dO, causal=causal, gradients=gradients, workspace=workspace)

    errors = gradient_errors(gradients, refs)
    return Contestant(step.name, step.idea, step.library.cuda_version(), run, extra, errors)


def pytorch_backward(backend, Q, K, V, dO, causal, refs):
    inputs = [x.detach().requires_grad_() for x in (Q, K, V)]
    with torch.enable_grad(), sdpa_kernel(BACKENDS[backend]):
        O = F.scaled_dot_product_attention(*inputs, is_causal=causal)

    def run():
        return torch.autograd.grad(O, inputs, dO, retain_graph=True)

    gradients, extra = peak_beyond(run)
    idea = f"PyTorch {torch.__version__}, backend '{backend}'"
    errors = gradient_errors(gradients, refs)
    return Contestant(f"pytorch_{backend}", idea, torch.version.cuda, run, extra, errors)


def our_contestant(step, Q, K, V, causal, O_ref):
    (O, L), extra = peak_beyond(partial(step.forward, Q, K, V, causal=causal))
    workspace = torch.empty(step.workspace_bytes(Q, K, causal), dtype=torch.uint8, device=Q.device)

    def run():
        return step.forward(Q, K, V, causal=causal, O=O, L=L, workspace=workspace)[0]

    toolkit = step.library.cuda_version()
    return Contestant(step.name, step.idea, toolkit, run, extra, {"o": last_head_error(O, O_ref)})


def pytorch_contestant(backend, Q, K, V, causal, O_ref):
    def run():
        with sdpa_kernel(BACKENDS[backend]):
            return F.scaled_dot_product_attention(Q, K, V, is_causal=causal)

    (O,), extra = peak_beyond(lambda: (run(),))
    idea = f"PyTorch {torch.__version__}, backend '{backend}'"
    return Contestant(f"pytorch_{backend}", idea, torch.version.cuda, run, extra, {"o": last_head_error(O, O_ref)})


def flash_attention_4(name="flash_attn_func"):
    """A function of FlashAttention-4, and what it is called in a line. Its tensors are (batch, N, heads, d)."""
    try:
        function = getattr(importlib.import_module("flash_attn.cute.interface"), name)
        return function, f"FlashAttention-4 {importlib.metadata.version('flash-attn-4')}"
    except Exception as error:  # a package of another compiler ends in many ways
        raise NotImplementedError(f"FlashAttention-4 is not there: {error}") from None


def fa4_contestant(Q, K, V, causal, O_ref):
    function, idea = flash_attention_4()
    inputs = [x.transpose(1, 2).contiguous() for x in (Q, K, V)]
    run = lambda: function(*inputs, causal=causal)[0]
    (O,), extra = peak_beyond(lambda: (run(),))
    return Contestant("fa4", idea, torch.version.cuda, run, extra, {"o": last_head_error(O.transpose(1, 2), O_ref)})


def fa4_backward(Q, K, V, dO, causal, refs):
    function, idea = flash_attention_4()
    inputs = [x.transpose(1, 2).contiguous().requires_grad_() for x in (Q, K, V)]
    with torch.enable_grad():
        O = function(*inputs, causal=causal)[0]
    dO = dO.transpose(1, 2).contiguous()
    gradients, extra = peak_beyond(run := lambda: torch.autograd.grad(O, inputs, dO, retain_graph=True))
    errors = gradient_errors([x.transpose(1, 2) for x in gradients], refs)
    return Contestant("fa4", idea, torch.version.cuda, run, extra, errors)


def backends_of(size):
    """The first one is what ratios are to."""
    return list(FP32_BACKENDS if size.dtype == "fp32" else BACKENDS_OF_16_BITS)


def contestants_for(size, steps):
    """PyTorch's first: its time is what the others are compared with."""
    case = compare.Case(size.batch, size.heads, size.N, size.N, size.d)
    dtype = DTYPES[size.dtype]
    Q, K, V = (x.to(dtype) for x in compare.make_inputs(case))
    if size.pass_ == "fwd":
        arguments = Q, K, V, size.causal, last_head_reference(Q, K, V, size.causal)
        theirs, ours = pytorch_contestant, our_contestant
    else:
        dO = compare.make_inputs(case, seed=2)[0].to(dtype)
        arguments = Q, K, V, dO, size.causal, last_gradients_reference(Q, K, V, dO, size.causal)
        theirs, ours = pytorch_backward, our_backward
    makers = {f"pytorch_{backend}": partial(theirs, backend) for backend in backends_of(size)}
    if size.dtype != "fp32":
        makers["fa4"] = fa4_contestant if size.pass_ == "fwd" else fa4_backward
    for step in steps:
        if dtype not in step.dtypes:
            continue
        reason = step.refuses(Q, K, size.causal)
        if reason is None:
            makers[step.name] = partial(ours, step)
        else:
            print(f"  {step.name}: refused: {reason}")
    contestants = []
    for name, make in makers.items():
        try:
            contestants.append(make(*arguments))
        except torch.cuda.OutOfMemoryError:
            print(f"  {name}: left out: it needs more memory than the card has")
            torch.cuda.empty_cache()
        except Exception as error:
            if name != "fa4":
                raise
            print(f"  {name}: left out: {(str(error) or repr(error)).splitlines()[0]}")
    return contestants


# ---- time ------------------------------------------------------------------------------------------------------------


class Stopwatch:
    """Milliseconds of a call on the card, with nothing of its inputs in the L2 cache."""

    def __init__(self):
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(2 * l2_bytes, dtype=torch.uint8, device="cuda")

    def fill_cache(self):
        self.flush.zero_()

    def time(self, run):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.fill_cache()
        # The card spins until all that is timed is enqueued: Python's own time must not count as a short kernel's.
        torch.cuda._sleep(HEAD_START_CYCLES)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)


def plan_runs(contestants, stopwatch, repeat):
    """Warms up, and gives slow contestants fewer runs."""
    for contestant in contestants:
        ms = stopwatch.time(contestant.run)
        for _ in range(WARMUP - 1 if ms < SLOW_MS / repeat else 0):
            ms = stopwatch.time(contestant.run)
        contestant.runs = max(min(LEAST_RUNS, repeat), min(repeat, int(SLOW_MS / ms)))


def race(contestants, stopwatch, repeat):
    """Each round lets everyone run once, another one first; those with fewer runs sit out rounds, evenly spread."""
    plan_runs(contestants, stopwatch, repeat)
    for turn in range(repeat):
        first = turn % max(1, len(contestants))
        for contestant in contestants[first:] + contestants[:first]:
            if (turn + 1) * contestant.runs // repeat > turn * contestant.runs // repeat:
                contestant.samples.append(stopwatch.time(contestant.run))


class Clocks:
    """The SM clock as nvidia-smi tells it while the program runs; it only reads.

    One nvidia-smi for all sizes: while it starts, calls of the CUDA driver take longer.
    """

    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile(mode="w")
        self.reader = open(self.log.name, encoding="ascii")
        command = ["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-i", "0", "-lms", "50"]
        self.sampler = None
        with contextlib.suppress(OSError):
            self.sampler = subprocess.Popen(command, stdout=self.log, stderr=subprocess.DEVNULL)
            time.sleep(1.0)
        return self

    def __exit__(self, *_):
        if self.sampler is not None:
            self.sampler.terminate()
            self.sampler.wait()
        self.reader.close()
        self.log.close()

    def forget(self):
        self.reader.read()

    def highest(self):
        """Since forget()."""
        time.sleep(0.1)  # a short race ends before the next sample
        clocks = [int(line) for line in self.reader.read().split() if line.isdigit()]
        return f"SM {max(clocks)} MHz at most" if clocks else "unknown"


# ---- report ----------------------------------------------------------------------------------------------------------


def output_of(*command):
    """The first line that a program prints."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.split("\n")[0].strip()


def stamps():
    """What is the same on every line of a run."""
    return {
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "commit": os.environ.get("COMMIT") or output_of("git", "rev-parse", "--short", "HEAD"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "torch": torch.__version__,
    }


def ratio_to_baseline(contestant, contestants):
    """Over 1: faster than PyTorch's first backend. None where that did not run."""
    first = contestants[0]
    return first.quantiles()[1] / contestant.quantiles()[1] if first.name.startswith("pytorch") else None


def json_line(contestant, contestants, size, clocks, same):
    p25, median, p75 = contestant.quantiles()
    return {
        "step": contestant.name,
        "idea": contestant.idea,
        "device": torch.cuda.get_device_name(),
        "dtype": size.dtype,
        "pass": size.pass_,
        "batch": size.batch,
        "heads": size.heads,
        "seq": size.N,
        "seq_kv": size.N,
        "dim": size.d,
        "causal": size.causal,
        "scale": size.d**-0.5,
        "seed": 1,
        "input": "random",
        "repeat": len(contestant.samples),
        "ms_median": median,
        "ms_p25": p25,
        "ms_p75": p75,
        "tflops": size.tflops(median),
        f"ratio_to_{backends_of(size)[0]}": ratio_to_baseline(contestant, contestants),
        "err_rel": contestant.errors,
        "ok": all(error <= LARGEST_ERRORS[DTYPES[size.dtype]] for error in contestant.errors.values()),
        "workspace_bytes": contestant.extra_bytes,
        "toolkit": contestant.toolkit,
        **same,
        "clocks": clocks,
    }


def print_line(line):
    ratio = line.get("ratio_to_efficient") or line.get("ratio_to_flash")
    ratio = f"{ratio:.3f}" if ratio else "-"
    spread = f"{line['ms_p25']:.4f} to {line['ms_p75']:.4f}, {line['repeat']} runs"
    wrong = "" if line["ok"] else f"  WRONG: errors {line['err_rel']}"
    speed = f"{line['ms_median']:10.4f} ms {line['tflops']:8.3f} TFLOP/s"
    print(f"  {line['step']:20} {speed}  ratio {ratio}  ({spread}){wrong}")


def time_size(size, steps, repeat, clocks, same):
    """The lines of a size. All its memory is free again when this returns."""
    print(size)
    contestants = contestants_for(size, steps)
    stopwatch = Stopwatch()
    clocks.forget()
    race(contestants, stopwatch, repeat)
    highest = clocks.highest()
    lines = [json_line(contestant, contestants, size, highest, same) for contestant in contestants]
    for line in lines:
        print_line(line)
    return lines


# ---- the command -----------------------------------------------------------------------------------------------------


def parse_sizes(text, dtype, causal, pass_):
    sizes = []
    for word in text.split(","):
        try:
            numbers = [int(part) for part in word.split("x")]
        except ValueError:
            numbers = []
        if len(numbers) != 4 or min(numbers) < 1:
            raise argparse.ArgumentTypeError(f'"{word}" is not batch x heads x N x d, as in 4x16x1024x64')
        sizes += [Size(dtype, *numbers, causal=masked, pass_=pass_) for masked in causal]
    return sizes


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times our steps and PyTorch's side by side.")
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="fp32")
    parser.add_argument("--pass", dest="pass_", choices=("fwd", "bwd"), default="fwd")
    parser.add_argument("--steps", help="names or numbers, separated by commas (default: all)")
    parser.add_argument("--sizes", help="batch x heads x N x d, as 4x16x1024x64, separated by commas")
    parser.add_argument("--causal", choices=("both", "yes", "no"), default="both")
    parser.add_argument("--repeat", type=int, default=25, help="timed runs of each, fewer of slow ones (default: 25)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append JSON lines to FILE")
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    arguments = parser.parse_args()
    if arguments.repeat < 2:
        parser.error("--repeat: quartiles need at least 2")
    causal = {"both": (False, True), "yes": (True,), "no": (False,)}[arguments.causal]
    try:
        usual = SIZES if arguments.dtype == "fp32" else SIZES_OF_16_BITS
        arguments.sizes = parse_sizes(arguments.sizes or usual, arguments.dtype, causal, arguments.pass_)
    except argparse.ArgumentTypeError as error:
        parser.error(f"--sizes: {error}")
    return arguments


def time_all(time_size, steps, arguments):
    """Times and reports each size. Ends the program: 1 when a result is wrong."""
    same, wrong = stamps(), []
    with contextlib.ExitStack() as stack, torch.no_grad():
        if arguments.json:
            arguments.json.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(arguments.json.open("a", encoding="utf-8"))
        clocks = stack.enter_context(Clocks())
        for size in arguments.sizes:
            lines = time_size(size, steps, arguments.repeat, clocks, same)
            torch.cuda.empty_cache()
            wrong += [f"{line['step']} at {size}" for line in lines if not line["ok"]]
            if arguments.json:
                file.write("".join(json.dumps(line) + "\n" for line in lines))
                file.flush()
    for what in wrong:
        print(f"WRONG: {what}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def main():
    arguments = parse_arguments()
    _, steps = compare.prepare("time_peers.py", arguments.library, arguments.steps)
    ability = "has_forward" if arguments.pass_ == "fwd" else "has_backward"
    steps = [step for step in steps if getattr(step, ability) and DTYPES[arguments.dtype] in step.dtypes]
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; ratio: time of PyTorch's first backend / time")
    time_all(time_size, steps, arguments)


if __name__ == "__main__":
    main()
