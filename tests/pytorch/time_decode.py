#!/usr/bin/env python3
"""Times decoding beside a copy of the same bytes and beside PyTorch's attention, in one process and taking turns, on one card.

    time_decode.py [--dtype fp16|bf16] [--steps 14a_one_block,14b_split,14c_group,14_decode] [--batch 8,32] [--heads 32]
                   [--heads-kv 32,8,1] [--queries 1,2,4,8] [--keys 4096,16384,65536] [--dim 128] [--pages 16,64,256]
                   [--sizes B8,H32,G8,N1,M65536,P64 ...] [--most-gb 40] [--repeat 25] [--json FILE]

Each combination is a size, or the ones that --sizes names are. With --pages, or a P in a size, the last rung reads the same keys from
pages, too, in an order drawn by lot, as contestants 14_decode,P16 and so on, beside the rungs on contiguous keys. Left out are sizes whose K and V have more than --most-gb gigabytes together (with pages there is one more copy of them). `copy` copies a tensor of the size
of K: it reads and writes as many bytes as K and V have. GB/s are, of the copy, what it reads and writes, and of the others Q, K, V, O
and L. Between runs the L2 cache is filled by reads. No mask: PyTorch's is aligned to the top left. A JSON line has the fields of a
step's own lines (--json of its program), and is appended: gb_per_s, share_of_copy, and ratio_to_flash and ratio_to_cudnn, the time of
PyTorch's backend divided by this time.

Exit status: 0 all was timed; 1 a result is wrong; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import ctypes
import itertools
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import time_peers as peers  # ends the program where there is no PyTorch
import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

import compare

STEPS = "14a_one_block,14b_split,14c_group,14_decode"


@dataclass(frozen=True)
class Size:
    dtype: str
    batch: int
    heads: int
    heads_kv: int
    N_q: int
    N_kv: int
    d: int
    pages: tuple = ()  # sizes of pages to time, too

    def __str__(self):
        return f"B {self.batch}, H {self.heads} on {self.heads_kv}, {self.N_q} queries, {self.N_kv} keys, d {self.d}, {self.dtype}"

    def bytes_of_K(self):
        return 2 * self.batch * self.heads_kv * self.N_kv * self.d

    def bytes(self):
        rows = self.batch * self.heads * self.N_q
        return 2 * self.bytes_of_K() + rows * (2 * 2 * self.d + 4)


class Stopwatch(peers.Stopwatch):
    """With lines in the L2 cache that need not be written back while the next kernel runs."""

    def __init__(self):
        super().__init__()
        self.flush.zero_()

    def fill_cache(self):
        self.flush.view(torch.int32).sum()


# ---- who takes part --------------------------------------------------------------------------------------------------


def our_contestant(step, Q, K, V, O_ref):
    (O, L), extra = peers.peak_beyond(partial(step.forward, Q, K, V))
    workspace = torch.empty(step.workspace_bytes(Q, K), dtype=torch.uint8, device=Q.device)

    def run():
        return step.forward(Q, K, V, O=O, L=L, workspace=workspace)

    return peers.Contestant(step.name, step.idea, step.library.cuda_version(), run, extra, {"o": peers.last_head_error(O, O_ref)})


def in_pages(K, V, page_size):
    """K and V (batch, heads_kv, N_kv, d) as pages in an order drawn by lot, and the block table."""
    batch, heads_kv, N_kv, d = K.shape
    each = -(-N_kv // page_size)
    table = torch.randperm(batch * each, device=K.device).view(batch, each)
    paged = []
    for x in (K, V):
        pool = x.new_zeros((batch * each, heads_kv, page_size, d))
        for b in range(batch):
            rows = F.pad(x[b], (0, 0, 0, each * page_size - N_kv)).view(heads_kv, each, page_size, d)
            pool[table[b]] = rows.transpose(0, 1)
        paged.append(pool)
    lengths = torch.full((batch,), N_kv, dtype=torch.int32, device=K.device)
    return *paged, {"pages": table.to(torch.int32), "lengths": lengths}


def paged_contestant(step, page_size, Q, K, V, O_ref):
    K, V, tables = in_pages(K, V, page_size)
    (O, L), extra = peers.peak_beyond(partial(step.forward, Q, K, V, **tables))
    workspace = torch.empty(step.workspace_bytes(Q, K, **tables), dtype=torch.uint8, device=Q.device)
    # forward() reads the tables to check them, and waits for that: here the call is made once, and then only run.
    tensors = {"Q": Q, "K": K, "V": V, "O": O, "L": L, "workspace": workspace}
    pointers = {name: tensor.data_ptr() for name, tensor in tensors.items()} | {"stream": torch.cuda.current_stream().cuda_stream}
    call = step.call(Q, K, False, None, tables, pointers=pointers)

    def run(keep=(tensors, tables)):
        step.library.check(step.library.functions.attention_run(ctypes.byref(call)), step.name)

    errors = {"o": peers.last_head_error(O, O_ref)}
    return peers.Contestant(f"{step.name},P{page_size}", step.idea, step.library.cuda_version(), run, extra, errors)


def pytorch_contestant(backend, Q, K, V, O_ref):
    def run():
        with sdpa_kernel(peers.BACKENDS[backend]):
            return F.scaled_dot_product_attention(Q, K, V, enable_gqa=K.shape[1] != Q.shape[1])

    (O,), extra = peers.peak_beyond(lambda: (run(),))
    idea = f"PyTorch {torch.__version__}, backend '{backend}'"
    return peers.Contestant(f"pytorch_{backend}", idea, torch.version.cuda, run, extra, {"o": peers.last_head_error(O, O_ref)})


def copy_contestant(K):
    to = torch.empty_like(K)
    return peers.Contestant("copy", "a copy of as many bytes", torch.version.cuda, lambda: to.copy_(K), 0, {})


def contestants_for(size, steps):
    generator = torch.Generator(device="cuda").manual_seed(1)

    def tensor(heads, N):
        shape = (size.batch, heads, N, size.d)
        return torch.randn(shape, generator=generator, device="cuda", dtype=peers.DTYPES[size.dtype])

    Q, K, V = tensor(size.heads, size.N_q), tensor(size.heads_kv, size.N_kv), tensor(size.heads_kv, size.N_kv)
    O_ref = peers.last_head_reference(Q, K, V, False)
    makers = {"copy": lambda: copy_contestant(K)}
    makers |= {f"pytorch_{backend}": partial(pytorch_contestant, backend, Q, K, V, O_ref) for backend in peers.BACKENDS_OF_16_BITS}
    makers |= {step.name: partial(our_contestant, step, Q, K, V, O_ref) for step in steps}
    makers |= {f"{steps[-1].name},P{page_size}": partial(paged_contestant, steps[-1], page_size, Q, K, V, O_ref) for page_size in size.pages}
    contestants = []
    for name, make in makers.items():
        try:
            contestants.append(make())
        except (torch.cuda.OutOfMemoryError, RuntimeError, ValueError) as error:
            print(f"  {name}: left out: {str(error).splitlines()[0]}", flush=True)
            torch.cuda.empty_cache()
    return contestants


# ---- report ----------------------------------------------------------------------------------------------------------


def json_line(contestant, contestants, size, clocks, same):
    p25, median, p75 = contestant.quantiles()
    medians = {other.name: other.quantiles()[1] for other in contestants}
    rate = lambda name, ms: (2 * size.bytes_of_K() if name == "copy" else size.bytes()) / ms * 1e-6
    ratio = lambda name: medians[name] / median if name in medians else None
    copied = rate("copy", medians["copy"]) if "copy" in medians else None
    own = rate(contestant.name, median)
    return {
        "step": contestant.name.partition(",")[0], "page_size": int(contestant.name.partition(",P")[2] or 0), "idea": contestant.idea, "device": torch.cuda.get_device_name(), "dtype": size.dtype, "pass": "fwd",
        "batch": size.batch, "heads": size.heads, "heads_kv": size.heads_kv, "seq": size.N_q, "seq_kv": size.N_kv, "dim": size.d,
        "causal": False, "scale": size.d**-0.5, "seed": 1, "input": "random", "repeat": len(contestant.samples), "ms_median": median,
        "ms_p25": p25, "ms_p75": p75, "tflops": 4.0 * size.batch * size.heads * size.N_q * size.N_kv * size.d / median * 1e-9,
        "bytes": size.bytes(), "gb_per_s": own, "share_of_copy": own / copied if copied else None,
        "ratio_to_flash": ratio("pytorch_flash"), "ratio_to_cudnn": ratio("pytorch_cudnn"), "err_rel": contestant.errors,
        "ok": all(error <= peers.LARGEST_ERRORS[peers.DTYPES[size.dtype]] for error in contestant.errors.values()),
        "workspace_bytes": contestant.extra_bytes, "toolkit": contestant.toolkit, **same, "clocks": clocks,
    }


def print_line(line):
    part = lambda key: f"{line[key]:.3f}" if line[key] else "-"
    wrong = "" if line["ok"] else f"  WRONG: errors {line['err_rel']}"
    name = line["step"] + (f",P{line['page_size']}" if line["page_size"] else "")
    print(f"  {name:16} {line['ms_median']:9.4f} ms ({line['ms_p25']:.4f} to {line['ms_p75']:.4f}) {line['gb_per_s']:7.0f} GB/s  "
          f"of copy {part('share_of_copy')}  flash {part('ratio_to_flash')}  cudnn {part('ratio_to_cudnn')}{wrong}", flush=True)


def time_size(size, steps, repeat, clocks, same):
    """The lines of a size. All its memory is free again when this returns."""
    print(size, flush=True)
    contestants = contestants_for(size, steps)
    stopwatch = Stopwatch()
    clocks.forget()
    peers.race(contestants, stopwatch, repeat)
    highest = clocks.highest()
    lines = [json_line(contestant, contestants, size, highest, same) for contestant in contestants]
    for line in lines:
        print_line(line)
    return lines


# ---- the command -----------------------------------------------------------------------------------------------------


def numbers(text):
    values = [int(word) for word in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values


def named_size(text, dtype, d):
    """B8,H32,G8,N1,M65536, with P16,P64 for pages."""
    if not re.fullmatch(r"B\d+,H\d+,G\d+,N\d+,M\d+(,P\d+)*", text):
        raise ValueError
    B, H, G, N_q, N_kv, *pages = numbers(re.sub(r"[A-Z]", "", text))
    return Size(dtype, B, H, G, N_q, N_kv, d, tuple(pages))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times decoding beside a copy and beside PyTorch.")
    parser.add_argument("--dtype", choices=("fp16", "bf16"), default="bf16")
    parser.add_argument("--steps", default=STEPS, help=f"names or numbers, separated by commas (default: {STEPS})")
    for name, default in (("batch", "8,32"), ("heads-kv", "32,8,1"), ("queries", "1,2,4,8"), ("keys", "4096,16384,65536")):
        parser.add_argument(f"--{name}", type=numbers, default=numbers(default), help=f"default: {default}")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--pages", type=numbers, default=[], help="sizes of pages, of every size (default: none)")
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", help="as B8,H32,G8,N1,M65536,P16,P64; in place of all combinations")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--most-gb", type=float, default=40.0, help="of K and V together (default: 40)")
    parser.add_argument("--repeat", type=int, default=25, help="timed runs of each, fewer of slow ones (default: 25)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append JSON lines to FILE")
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    arguments = parser.parse_args()
    if arguments.repeat < 2:
        parser.error("--repeat: quartiles need at least 2")
    crossed = itertools.product(arguments.batch, arguments.heads_kv, arguments.keys, arguments.queries)
    pages = tuple(arguments.pages)
    sizes = [Size(arguments.dtype, B, arguments.heads, G, N_q, N_kv, arguments.dim, pages) for B, G, N_kv, N_q in crossed]
    if arguments.sizes:
        try:
            sizes = [named_size(text, arguments.dtype, arguments.dim) for text in arguments.sizes]
        except ValueError:
            parser.error("--sizes: a size is like B8,H32,G8,N1,M65536 or B8,H32,G8,N1,M65536,P16,P64")
    arguments.sizes = [size for size in sizes if 2 * size.bytes_of_K() <= arguments.most_gb * 1e9]
    return arguments


def main():
    arguments = parse_arguments()
    _, steps = compare.prepare("time_decode.py", arguments.library, arguments.steps)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; flash, cudnn: time of PyTorch's backend / time")
    peers.time_all(time_size, steps, arguments)


if __name__ == "__main__":
    main()
