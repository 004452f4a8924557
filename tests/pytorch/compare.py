#!/usr/bin/env python3
"""Compares every step with PyTorch's scaled_dot_product_attention, computed in double precision on the same card: O and
L of the forward steps, dQ, dK and dV of the backward steps with what autograd makes of it.

    compare.py [--steps 01,05] [--library FILE] [--random N]

Exit status: 0 all agree; 1 a result is wrong; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import math
import random
import sys
from dataclasses import dataclass

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ModuleNotFoundError as error:
    print(f"compare.py: {error}", file=sys.stderr)
    sys.exit(3)

import attention_steps

EPS = torch.finfo(torch.float32).eps


@dataclass(frozen=True)
class Case:
    batch: int
    heads: int
    N_q: int
    N_kv: int
    d: int
    size: float = 1.0  # of the inputs: 1 is unit variance
    scale: float | None = None
    heads_kv: int | None = None  # None: as many as heads

    def __str__(self):
        more = f", {self.heads_kv} heads of K and V" if self.heads_kv else ""
        more += f", inputs x {self.size:g}" if self.size != 1.0 else ""
        more += f", scale {self.scale}" if self.scale else ""
        return f"B {self.batch}, H {self.heads}, N {self.N_q} x {self.N_kv}, d {self.d}{more}"


CASES = [
    Case(1, 1, 1, 1, 1),
    Case(1, 2, 256, 256, 64),
    Case(4, 16, 512, 512, 64),
    Case(1, 4, 1000, 1000, 128),
    Case(2, 3, 113, 203, 59),
    Case(2, 3, 203, 113, 59),  # causal: the first 90 rows see no key
    Case(1, 2, 1, 300, 64),
    Case(1, 2, 300, 1, 64),
    Case(3, 1, 129, 65, 40),
    Case(1, 5, 31, 33, 8),
    Case(1, 2, 65, 127, 100),
    Case(2, 2, 200, 200, 64, size=4.0),  # scores of 16 on average: softmax picks single keys
    Case(2, 2, 200, 200, 64, scale=0.3),
    Case(2, 8, 1, 700, 64, heads_kv=2),
    Case(1, 6, 5, 300, 128, heads_kv=1),
    Case(2, 6, 8, 129, 40, heads_kv=3),
    Case(1, 8, 8, 5, 64),  # causal: the first 3 rows see no key
    Case(1, 32, 4, 5000, 128, heads_kv=1),
]


def drawn_case(draw):
    return Case(draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 600), draw.randint(1, 600), draw.randint(1, 128))


def report(wrong, what):
    """Of drawn cases only the wrong ones."""
    if wrong or not report.short:
        print(f"{'WRONG  ' if wrong else 'ok     '} {what}" + "".join(f"\n        {line}" for line in wrong))


def make_inputs(case, seed=1):
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def tensor(heads, length):
        shape = (case.batch, heads, length, case.d)
        return case.size * torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32)

    heads_kv = case.heads_kv or case.heads
    return tensor(case.heads, case.N_q), tensor(heads_kv, case.N_kv), tensor(heads_kv, case.N_kv)


def of_each_head(Q, K):
    """K, or V, with one head per head of Q."""
    return K if K.shape[1] == Q.shape[1] else K.repeat_interleave(Q.shape[1] // K.shape[1], dim=1)


def visible_keys(N_q, N_kv, device):
    """(N_q, N_kv): may query i see key j? PyTorch's is_causal aligns to the top left when the lengths differ."""
    i = torch.arange(N_q, device=device)[:, None]
    j = torch.arange(N_kv, device=device)[None, :]
    return j <= i + N_kv - N_q


def reference(Q, K, V, causal, scale):
    """O and L in double precision."""
    Q, K, V = Q.double(), of_each_head(Q, K).double(), of_each_head(Q, V).double()
    scale = attention_steps.chosen_scale(scale, Q.shape[3])
    mask = visible_keys(Q.shape[2], K.shape[2], Q.device) if causal else None
    with sdpa_kernel(SDPBackend.MATH):
        O = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, scale=scale)
    S = scale * (Q @ K.transpose(2, 3))
    if mask is not None:
        S = S.masked_fill(~mask, -math.inf)
        O[:, :, ~mask.any(dim=1)] = 0.0  # rows that see no key: NaN in some versions of PyTorch
    return O, torch.logsumexp(S, dim=3)


def rounding_bound(Q, K, scale):
    """As in common/harness/check.c: what the score's terms and the length of the sums allow a correct kernel."""
    terms = abs(attention_steps.chosen_scale(scale, Q.shape[3])) * (Q.abs() @ of_each_head(Q, K).abs().transpose(2, 3)).max().item()
    return EPS * (8.0 + 2.0 * math.sqrt(K.shape[2]) + 2.0 * terms)


def largest_error(out, ref):
    """NaN when anything is NaN: max() hands it on. Infinities are right only where they are equal."""
    out = out.double()
    return torch.where(out == ref, 0.0, (out - ref).abs()).max().item()


def relative_error(out, ref):
    norm = ref.norm().item()
    error = (out.double() - ref).norm().item()
    return error / norm if norm > 0.0 else (0.0 if error == 0.0 else math.inf)


def wrong_values(O, L, O_ref, L_ref, bound):
    """What is wrong, in words; empty when nothing is. Each test is written so that NaN fails it."""
    finite_L = L_ref[torch.isfinite(L_ref)].abs()
    L_size = max(1.0, finite_L.max().item()) if finite_L.numel() else 1.0
    errors = [
        ("O, relative to its norm", relative_error(O, O_ref), bound),
        ("O, largest", largest_error(O, O_ref), 4.0 * bound * O_ref.abs().max().item()),
        ("L, largest", largest_error(L, L_ref), bound * L_size),
    ]
    return [f"{what}: error {error:.2e}, bound {limit:.2e}" for what, error, limit in errors if not error <= limit]


def run_on_nan(step, Q, K, V, causal, scale):
    """The forward pass with outputs and workspace full of NaN, so that what is not written shows."""
    O, L = torch.full_like(Q, math.nan), torch.full_like(Q[..., 0], math.nan, dtype=torch.float32)
    bytes_needed = step.workspace_bytes(Q, K, causal, scale)
    workspace = torch.full((bytes_needed,), 255, dtype=torch.uint8, device=Q.device)
    step.forward(Q, K, V, causal=causal, scale=scale, O=O, L=L, workspace=workspace)
    torch.cuda.synchronize()
    return O, L


def reference_gradients(Q, K, V, dO, causal, scale):
    """dQ, dK and dV in double precision, by autograd through plain products."""
    with torch.enable_grad():
        return gradients_of_products(Q, K, V, dO, causal, scale)


def gradients_of_products(Q, K, V, dO, causal, scale):
    Q, K, V = (x.detach().double().requires_grad_() for x in (Q, K, V))
    S = attention_steps.chosen_scale(scale, Q.shape[3]) * (Q @ of_each_head(Q, K).transpose(2, 3))
    if causal:
        mask = visible_keys(Q.shape[2], K.shape[2], Q.device)
        S = S.masked_fill(~mask, -math.inf)
        S = torch.where(mask.any(dim=1)[:, None], S, 0.0)  # a row that sees no key would make NaN of all
        P = torch.softmax(S, dim=3) * mask
    else:
        P = torch.softmax(S, dim=3)
    return torch.autograd.grad(P @ of_each_head(Q, V), (Q, K, V), dO.double())


def last_forward(step, Q, K, causal=False, variants=None):
    """The last step that makes O and L of these."""
    able = [other for other in step.library.steps() if other.has_forward and Q.dtype in other.dtypes]
    return [other for other in able if other.refuses(Q, K, causal, **(variants or {})) is None][-1]


def gradients_on_nan(step, Q, K, V, O, L, dO, causal, scale, deterministic):
    gradients = [torch.full_like(x, math.nan) for x in (Q, K, V)]
    bytes_needed = step.workspace_bytes(Q, K, causal, scale)
    workspace = torch.full((bytes_needed,), 255, dtype=torch.uint8, device=Q.device)
    step.backward(
        Q, K, V, O, L, dO, causal=causal, scale=scale, gradients=gradients, workspace=workspace,
        deterministic=deterministic,
    )
    torch.cuda.synchronize()
    return gradients


def wrong_gradients(step, Q, K, V, dO, refs, causal, scale, bound, deterministic):
    """What is wrong with a backward step, in words. O and L are those of the last forward step."""
    O, L = last_forward(step, Q, K).forward(Q, K, V, causal=causal, scale=scale)
    gradients = gradients_on_nan(step, Q, K, V, O, L, dO, causal, scale, deterministic)
    wrong = []
    for name, out, ref, size in zip(("dQ", "dK", "dV"), gradients, refs, gradient_sizes(Q, dO, scale), strict=True):
        error = (out.double() - ref).norm().item()
        limit = bound * max(ref.norm().item(), size)
        if not error <= limit:
            wrong.append(f"{name}: error {error:.2e}, bound {limit:.2e}")
    return wrong


def compare_backward(steps, case, causal):
    """Runs all backward steps on one problem; returns how many are wrong."""
    failures = 0
    Q, K, V = make_inputs(case)
    dO = make_inputs(case, seed=2)[0] / case.size
    refs = reference_gradients(Q, K, V, dO, causal, case.scale)
    bound = 4.0 * rounding_bound(Q, K, case.scale)
    for step in steps:
        if step.refuses(Q, K, causal, case.scale) is not None:
            continue
        for deterministic in (False, True) if step.has_deterministic_backward else (False,):
            what = f"{step.name:20} {case}{', causal' if causal else ''}{', deterministic' if deterministic else ''}"
            wrong = wrong_gradients(step, Q, K, V, dO, refs, causal, case.scale, bound, deterministic)
            failures += bool(wrong)
            report(wrong, what)
    return failures


def compare_case(steps, case, causal):
    """Runs all steps on one problem; returns how many are wrong."""
    failures = compare_backward([step for step in steps if step.has_backward], case, causal)
    Q, K, V = make_inputs(case)
    O_ref, L_ref = reference(Q, K, V, causal, case.scale)
    bound = rounding_bound(Q, K, case.scale)
    for step in steps:
        if not step.has_forward:
            continue
        what = f"{step.name:20} {case}{', causal' if causal else ''}"
        reason = step.refuses(Q, K, causal, case.scale)
        if reason is not None:
            report.short or print(f"refused {what}: {reason}")
            continue
        O, L = run_on_nan(step, Q, K, V, causal, case.scale)
        wrong = wrong_values(O, L, O_ref, L_ref, bound)
        failures += bool(wrong)
        report(wrong, what)
    return failures


# ---- 16-bit types: Flash-Attention's own rule, at most 2 times (gradients: 3 times) the error of 16-bit math attention; of drawn
# cases 2 times for both. With very few keys math attention happens to be nearly exact, where every fused kernel, PyTorch's too, takes
# D from the rounded O: so what exceeds the limit is compared with PyTorch's fused attention as well. ----

FLOOR = 1e-5  # of the size of the terms: where math attention happens to be exact


def math_attention(Q, K, V, causal, scale):
    """Every product and the softmax rounded to the inputs' type."""
    K, V = of_each_head(Q, K), of_each_head(Q, V)
    S = attention_steps.chosen_scale(scale, Q.shape[3]) * (Q @ K.transpose(2, 3))
    if not causal:
        return torch.softmax(S, dim=3) @ V
    mask = visible_keys(Q.shape[2], K.shape[2], Q.device)
    P = torch.softmax(S.masked_fill(~mask, -math.inf), dim=3)
    return torch.where(mask.any(dim=1)[:, None], P, 0.0) @ V


def fused_attention(Q, K, V, causal, scale):
    """PyTorch's fused kernel, where there is one for these: cuDNN's or 'efficient'."""
    mask = None
    if causal:
        seen = visible_keys(Q.shape[2], K.shape[2], Q.device)
        mask = torch.where(seen, 0.0, -math.inf).to(Q.dtype).expand(Q.shape[0], Q.shape[1], -1, -1)
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
        return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, scale=attention_steps.chosen_scale(scale, Q.shape[3]))


def results_of(attention, Q, K, V, dO, causal, scale):
    """O, and dQ, dK and dV by autograd; rows that see no key are 0."""
    leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
    O = attention(*leaves, causal, scale)
    return [torch.nan_to_num(x.detach()) for x in (O, *torch.autograd.grad(O, leaves, dO))]


def wrong_beside(what, outputs, refs, rivals, sizes, times, floor=FLOOR):
    """What is further from the reference than `times` the rival's distance, in words; NaN fails."""
    wrong = []
    for name, out, ref, rival, size in zip(what, outputs, refs, rivals, sizes, strict=True):
        distance = lambda values: (values.double() - ref).norm().item()
        error, limit = distance(out), times * distance(rival) + floor * max(ref.norm().item(), size)
        if not error <= limit:
            wrong.append(f"{name}: error {error:.2e}, limit {limit:.2e}")
    return wrong


def gradient_sizes(Q, dO, scale):
    """Of the terms of dQ, dK and dV: what is left of dP - D may be far smaller (with one key it is 0)."""
    size = abs(attention_steps.chosen_scale(scale, Q.shape[3])) * math.sqrt(Q.shape[3]) * dO.double().norm().item()
    return size, size, dO.double().norm().item()


def compare_half(steps, case, causal, dtype):
    """Every step that takes the 16-bit type, on one problem; returns how many are wrong."""
    steps = [step for step in steps if dtype in step.dtypes]
    if not steps:
        return 0
    failures = 0
    d = -(-case.d // 8) * 8
    case = type(case)(**{**vars(case), "d": d})
    Q, K, V = (x.to(dtype) for x in make_inputs(case))
    dO = (make_inputs(case, seed=2)[0] / case.size).to(dtype)
    O_ref, L_ref = reference(Q, K, V, causal, case.scale)
    grad_refs = reference_gradients(Q, K, V, dO, causal, case.scale)
    O_math, *grad_math = results_of(math_attention, Q, K, V, dO, causal, case.scale)
    sizes = gradient_sizes(Q, dO, case.scale)

    def wrong_gradients_of(got):
        rule = lambda rivals: wrong_beside(("dQ", "dK", "dV"), got, grad_refs, rivals, sizes, 2.0 if report.short else 3.0)
        return rule(grad_math) and rule(results_of(fused_attention, Q, K, V, dO, causal, case.scale)[1:])

    for step in steps:
        wrong, what = [], f"{step.name:20} {case}{', causal' if causal else ''}, {dtype}"
        reason = step.refuses(Q, K, causal, case.scale)
        if reason is not None:
            report.short or print(f"refused {what}: {reason}")
            continue
        if step.has_forward:
            O, L = run_on_nan(step, Q, K, V, causal, case.scale)
            wrong += wrong_beside(("O",), (O,), (O_ref,), (O_math,), (0.0,), 2.0)
            if not largest_error(L, L_ref) <= 1e-3 * max(1.0, torch.nan_to_num(L_ref, neginf=0.0).abs().max().item()):
                wrong.append(f"L: largest error {largest_error(L, L_ref):.2e}")
        if step.has_backward:
            O, L = last_forward(step, Q, K).forward(Q, K, V, causal=causal, scale=case.scale)
            for deterministic in (False, True) if step.has_deterministic_backward else (False,):
                got = gradients_on_nan(step, Q, K, V, O, L, dO, causal, case.scale, deterministic)
                wrong += wrong_gradients_of(got)
        failures += bool(wrong)
        report(wrong, what)
    return failures


def choose_steps(library, wanted):
    """All steps, or those that `wanted` names, separated by commas."""
    return [library.step(name) for name in wanted.split(",")] if wanted else library.steps()


def prepare(program, path, wanted):
    """The library and the steps; ends the program where something is missing or no such step is there."""
    if not torch.cuda.is_available():
        print(f"{program}: PyTorch {torch.__version__} finds no CUDA card", file=sys.stderr)
        sys.exit(3)
    try:
        library = attention_steps.load(path)
    except attention_steps.LibraryMissing as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(3)
    try:
        return library, choose_steps(library, wanted)
    except ValueError as error:
        print(f"{program}: --steps: {error}", file=sys.stderr)
        sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description="Compares every step with PyTorch.")
    parser.add_argument("--steps", help="names or numbers, separated by commas (default: all)")
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    parser.add_argument("--random", type=int, metavar="N", help="N drawn sizes, of one type each, in place of the listed ones")
    arguments = parser.parse_args()
    report.short = arguments.random is not None
    _, steps = prepare(parser.prog, arguments.library, arguments.steps)
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}, steps: {', '.join(s.name for s in steps)}")
    of_fp32 = [step for step in steps if torch.float32 in step.dtypes]
    types = [dtype for dtype in (torch.float32, torch.float16, torch.bfloat16) if any(dtype in step.dtypes for step in steps)]
    compare = lambda case, causal, dtype: (compare_case(of_fp32, case, causal) if dtype == torch.float32 else compare_half(steps, case, causal, dtype))
    draw = random.Random(arguments.random)
    if report.short:
        failures = sum(compare(drawn_case(draw), draw.random() < 0.5, draw.choice(types)) for _ in range(arguments.random))
    else:
        failures = sum(compare(case, causal, dtype) for dtype in types for case in CASES for causal in (False, True))
    print(f"{failures} wrong" if failures else "all agree")
    sys.exit(1 if failures or not steps else 0)


if __name__ == "__main__":
    main()
