#!/usr/bin/env python3
"""Times the rungs of chapter 15 in turns with the kernel that each is made of, in one process, on one card.

    time_variants.py [--what plain,window,packed,options] [--dims 64,128] [--repeat 20] [--json FILE] [--library FILE]

plain: each rung without its variant, beside chapter 10's or 11's kernel (B N 16384, H d 2048, N 8192). window: 16384 keys with windows
of 1024, beside none. packed: 16 sequences of 1024, and of drawn lengths, packed, beside a batch of 16 and beside padding. options: what
each variant costs beside the same kernel without it. A JSON line per time is appended: step, what, pass, dim, causal, seq, batch, heads,
ms_median and quartiles, `beside`, the step and its `what` that it is compared with, and `ratio`, that one's time divided by this time.
FlashAttention-4, `fa4`, stands beside what it can do, compared with the last rung; what it refuses is left out with its message.

Exit status: 0 all was timed; 1 a time or a result is missing or not finite; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import json
import random
import sys
from functools import partial
from pathlib import Path

import attention_steps
import time_peers as peers  # ends the program where there is no PyTorch
import torch

import compare

RUNGS = ("15a_window", "15b_scores", "15c_groups", "15d_packed", "15e_dropout", "15f_rotary")
BASES = {"fwd": "10_tensor_core_fwd", "bwd": "11_tensor_core_bwd"}
ALL = "15_variants"


class Runner:
    """The pass of a step at one size, with its tensors made; what it times is the kernels alone."""

    def __init__(self, library, name, pass_, batch, heads, N, d, causal, heads_kv=None, **variants):
        self.step, self.idea = library.step(name), None
        generator = torch.Generator(device="cuda").manual_seed(1)
        tensor = lambda H: torch.randn(batch, H, N, d, generator=generator, device="cuda").to(torch.bfloat16)
        Q, dO, K, V = tensor(heads), tensor(heads), tensor(heads_kv or heads), tensor(heads_kv or heads)
        forward = self.step if self.step.has_forward else compare.last_forward(self.step, Q, K, causal, variants)
        O, L = forward.forward(Q, K, V, causal=causal, **variants)
        tensors = dict(Q=Q, K=K, V=V, O=O, L=L)
        if pass_ == "bwd":
            tensors |= dict(dO=dO, dQ=torch.empty_like(Q), dK=torch.empty_like(K), dV=torch.empty_like(V))
        kind = attention_steps.BACKWARD if pass_ == "bwd" else attention_steps.FORWARD
        self.run = self.step.prepared(kind, tensors, causal, None, None, variants)
        self.run()
        self.finite = all(bool(torch.isfinite(tensors[name]).all()) for name in (("dQ", "dK", "dV") if pass_ == "bwd" else ("O",)))


class Peer:
    """FlashAttention-4 in a Runner's place."""

    def __init__(self, pass_, batch, heads, N, d, causal, heads_kv=None, window=None, softcap=0.0, starts=None, **others):
        if others:
            raise NotImplementedError(f"FlashAttention-4 has no {next(iter(others))}")
        function, self.idea = peers.flash_attention_4("flash_attn_func" if starts is None else "flash_attn_varlen_func")
        shape = (batch, N) if starts is None else (N,)
        tensor = lambda H: torch.randn(*shape, H, d, device="cuda").to(torch.bfloat16).requires_grad_(pass_ == "bwd")
        inputs, more = [tensor(H) for H in (heads, heads_kv or heads, heads_kv or heads)], {}
        if starts is not None:
            longest = int(starts.diff().max())
            more = dict(cu_seqlens_q=starts, cu_seqlens_k=starts, max_seqlen_q=longest, max_seqlen_k=longest)
        forward = lambda: function(*inputs, causal=causal, window_size=window or (None, None), softcap=softcap, **more)[0]
        self.run = forward
        if pass_ == "bwd":
            with torch.enable_grad():
                O = forward()
            dO = torch.randn_like(O)
            self.run = lambda: torch.autograd.grad(O, inputs, dO, retain_graph=True)
        out = self.run()
        self.finite = all(bool(torch.isfinite(x).all()) for x in (out if pass_ == "bwd" else (out,)))


def race(group, repeat):
    """(label, maker, label that it is compared with) taking turns; yields (label, quartiles, beside, ratio, finite, idea)."""
    contestants, of = [], {}
    for label, make, beside in group:
        try:
            runner = make()
        except Exception as error:
            if label[0] != "fa4" and not isinstance(error, (RuntimeError, ValueError, NotImplementedError)):
                raise
            print(f"  {label}: left out: {(str(error) or repr(error)).splitlines()[0]}", flush=True)
            continue
        contestants.append(peers.Contestant(str(label), "", torch.version.cuda, runner.run, 0, {}))
        of[str(label)] = label, beside, runner
    peers.race(contestants, peers.Stopwatch(), repeat)
    medians = {contestant.name: contestant.quantiles()[1] for contestant in contestants}
    for contestant in contestants:
        label, beside, runner = of[contestant.name]
        base = medians.get(str(beside))
        yield label, contestant.quantiles(), beside, base / medians[contestant.name] if base else None, runner.finite, runner.idea


def groups(library, what, dims):
    """What is timed together: (fields of the size, [(label, maker, label of the base)]); a label is (step, words)."""
    N, packed_N, count = 8192, 1024, 16
    draw = random.Random(15)
    drawn = [draw.randint(1, 2 * packed_N) for _ in range(count)]
    sums = lambda lengths: torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32, device="cuda")
    for d in dims:
        H = 2048 // d
        for pass_, base in BASES.items():
            for causal in (False, True):
                size = dict(dim=d, causal=causal, **{"pass": pass_})
                maker = lambda name, batch, N, heads=H, heads_kv=None, causal=causal, **variants: (
                    lambda: (Peer if name == "fa4" else partial(Runner, library, name))(pass_, batch, heads, N, d, causal, heads_kv, **variants))
                rungs = [f"{rung}_{pass_}" for rung in RUNGS]
                if what == "plain":
                    plain = [((base, "plain"), maker(base, 2, N), None), (("fa4", "plain"), maker("fa4", 2, N), (ALL, "plain"))]
                    yield size | dict(seq=N, batch=2), plain + [((name, "plain"), maker(name, 2, N), (base, "plain")) for name in (*rungs, ALL)]
                if what == "window" and causal:
                    for window, is_causal in (((1023, 0), True), ((512, 511), False)):
                        group = []
                        for name in (rungs[0], ALL):
                            group.append(((name, "no window"), maker(name, 1, 16384, causal=is_causal), None))
                            group.append(((name, "window of 1024"), maker(name, 1, 16384, causal=is_causal, window=window), (name, "no window")))
                        group.append((("fa4", "window of 1024"), maker("fa4", 1, 16384, causal=is_causal, window=window), (ALL, "window of 1024")))
                        yield size | dict(seq=16384, batch=1, causal=is_causal), group
                if what == "packed":
                    group, same = [((base, "batch of 16"), maker(base, count, packed_N), None)], [packed_N] * count
                    group.append(((base, "padded to the longest"), maker(base, count, max(drawn)), None))
                    for name in (rungs[3], ALL):
                        group.append(((name, "packed, 16 of 1024"), maker(name, 1, sum(same), starts=sums(same)), (base, "batch of 16")))
                        group.append(((name, "packed, drawn lengths"), maker(name, 1, sum(drawn), starts=sums(drawn)),
                                      (base, "padded to the longest")))
                    for words, lengths in (("packed, 16 of 1024", same), ("packed, drawn lengths", drawn)):
                        group.append((("fa4", words), maker("fa4", 1, sum(lengths), starts=sums(lengths)), (ALL, words)))
                    yield size | dict(seq=packed_N, batch=count), group
                if what == "options":
                    options = {"softcap 30": dict(softcap=30.0), "ALiBi": dict(alibi=True), "dropout 0.1": dict(dropout=0.1, dropout_seed=1),
                               "rotary interleaved": dict(rotary="interleaved"), "rotary halved": dict(rotary="halved"),
                               "8 heads per group": dict(heads_kv=H // 8)}
                    group = [((ALL, "plain"), maker(ALL, 2, N), None)]
                    group += [((ALL, words), maker(ALL, 2, N, **more), (ALL, "plain")) for words, more in options.items()]
                    own = {"softcap 30": 1, "ALiBi": 1, "8 heads per group": 2, "dropout 0.1": 4, "rotary interleaved": 5, "rotary halved": 5}
                    group += [((rungs[own[words]], words), maker(rungs[own[words]], 2, N, **more), (ALL, "plain")) for words, more in options.items()]
                    group += [(("fa4", words), maker("fa4", 2, N, **more), (ALL, words)) for words, more in options.items()]
                    yield size | dict(seq=N, batch=2), group


def main():
    parser = argparse.ArgumentParser(description="Times the rungs of chapter 15.")
    kinds = ("plain", "window", "packed", "options")
    parser.add_argument("--what", default=",".join(kinds))
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    arguments = parser.parse_args()
    wanted, dims = arguments.what.split(","), [int(d) for d in arguments.dims.split(",")]
    if not set(wanted) <= set(kinds) or not set(dims) <= {64, 128} or arguments.repeat < 2:
        parser.error("--what is of plain,window,packed,options, --dims of 64,128, --repeat at least 2")
    library, _ = compare.prepare(parser.prog, arguments.library, ALL)
    same, wrong = peers.stamps(), 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; ratio: time of what it is compared with / time")
    with torch.no_grad(), peers.Clocks() as clocks:
        for what in wanted:
            for size, group in groups(library, what, dims):
                print(what, size, flush=True)
                clocks.forget()
                times = list(race(group, arguments.repeat))
                wrong += sum(label[0] != "fa4" for label, *_ in times) < sum(label[0] != "fa4" for label, *_ in group)
                for (name, words), (p25, median, p75), beside, ratio, finite, idea in times:
                    wrong += not finite
                    text = f"  of {' '.join(beside)}: {ratio:.3f}" if ratio else ""
                    print(f"  {name:20} {words:24} {median:8.4f} ms{text}{'' if finite else '  NOT FINITE'}", flush=True)
                    if arguments.json:
                        line = dict(step=name, what=words, **size, heads=2048 // size["dim"], dtype="bf16", device=torch.cuda.get_device_name(),
                                    ms_median=median, ms_p25=p25, ms_p75=p75, repeat=arguments.repeat, beside=beside, ratio=ratio, idea=idea, **same,
                                    clocks=clocks.highest())
                        arguments.json.open("a", encoding="utf-8").write(json.dumps(line) + "\n")
                torch.cuda.empty_cache()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
