#!/usr/bin/env python3
"""Compares the steps that take variants (windows, softcap, ALiBi, dropout, rotary embedding, packed sequences, pages, grouped heads)
with attention written down in plain products on the same card: in double precision, and in the step's own type. A step's error may be
twice that of the products in its type: by autograd, or by FlashAttention's formula, which takes D from the rounded O. With one key, or
one weight near 1, dP and D cancel, in autograd exactly, and no fused kernel can do that.

    compare_variants.py [--steps 15] [--library FILE] [--random N] [--seed S]

N (default 200) drawn problems, which take turns among the steps. One in ten has a NaN in Q or K: the rows that attend to it are NaN, and
L with them; all others are as if it were not there. (V must hold numbers.) One in fifty has up to 2^18 queries or keys.

Exit status: 0 all agree; 1 a result is wrong; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import math
import random
import sys
from dataclasses import dataclass, field

from compare import attention_steps, gradient_sizes, largest_error, last_forward, of_each_head, prepare, torch, wrong_beside


@dataclass
class Problem:
    batch: int
    heads: int
    heads_kv: int
    N_q: int
    N_kv: int
    d: int
    causal: bool
    dtype: object
    variants: dict = field(default_factory=dict)  # as the binding takes them; lengths and starts as lists
    page_size: int = 0
    nan_in: str = ""  # Q or K

    def __str__(self):
        more = "".join(f", {name} {value}" for name, value in self.variants.items())
        more += f", pages of {self.page_size}" if self.page_size else ""
        more += f", NaN in {self.nan_in}" if self.nan_in else ""
        return (f"B {self.batch}, H {self.heads} on {self.heads_kv}, N {self.N_q} x {self.N_kv}, d {self.d}"
                f"{', causal' if self.causal else ''}{more}, {self.dtype}")


def drawn(draw, step):
    takes = sorted(step.variants)  # a set's order differs from run to run
    want = {name for name in takes if draw.random() < 0.3} | ({draw.choice(takes)} if takes else set())
    heads_kv = draw.randint(1, 2)
    group = draw.choice((1, 2, 3, 8)) if "grouped_heads" in want else 1
    p = Problem(draw.randint(1, 2), heads_kv * group, heads_kv, draw.choice((1, 64, *[draw.randint(1, 300)] * 3)),
                draw.choice((1, 128, *[draw.randint(1, 300)] * 3)), 8 * draw.randint(1, 16), draw.random() < 0.5, draw.choice(step.dtypes))
    if draw.random() < 0.02:
        p.batch, p.heads, p.heads_kv, p.d = 1, 1, 1, 8
        p.N_q, p.N_kv = draw.sample((draw.randint(1, 4), draw.randint(1 << 16, 1 << 18)), 2)
    if "pages" in takes:
        p.N_q = draw.randint(1, 8)
    if "starts" in want:
        rows = [draw.choice((0, 1, 64, draw.randint(0, 200))) for _ in range(draw.randint(1, 6))]
        p.variants["starts"] = [sum(rows[:i]) for i in range(len(rows) + 1)] if sum(rows) else [0, 1]
        p.batch, p.N_q = 1, p.variants["starts"][-1]
        p.N_kv = p.N_q
    elif "pages" in want:
        p.page_size = 16 << draw.randint(0, 4)
        p.variants["lengths"] = [draw.choice((0, p.page_size, draw.randint(0, 1000))) for _ in range(p.batch)]
        p.N_kv = max(1, *p.variants["lengths"], 1)
    if "window" in want:
        p.variants["window"] = tuple(draw.choice((0, 1, 64, None, draw.randint(0, 300))) for _ in range(2))
    if "softcap" in want:
        p.variants["softcap"] = draw.choice((0.01, 0.5, 1.0, 5.0, 30.0, 1e6, 3e38))
    if "alibi" in want:
        p.variants["alibi"] = draw.choice((True, "released"))
    if "dropout" in want:
        p.variants |= dict(dropout=draw.choice((0.01, 0.25, 0.5, 0.95)), dropout_seed=draw.getrandbits(64))
    if "rotary" in want:
        p.variants["rotary"] = draw.choice(("interleaved", "halved"))
    if draw.random() < 0.1:
        p.nan_in = draw.choice(("Q", "K"))
    return p


# ---- the problem as masks and factors ----


def philox(counter, key):
    """Philox 4x32-10 on int64 tensors that hold 32-bit words."""
    mask = 0xFFFFFFFF
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        wide = [(c[0], 0xD2511F53), (c[2], 0xCD9E8D57)]
        high, low = [], []
        for x, m in wide:  # 32 x 32 bits in parts, since a product of 64 bits would not fit
            low_part, high_part = x * (m & 0xFFFF), x * (m >> 16)
            total = low_part + ((high_part & 0xFFFF) << 16)
            low.append(total & mask)
            high.append((high_part >> 16) + (total >> 32))
        c = [high[1] ^ c[1] ^ k0, low[1], high[0] ^ c[3] ^ k1, low[0]]
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c


class Plan:
    """What a problem does to scores and weights: tensors that broadcast to (batch, heads, N_q, N_kv)."""

    def __init__(self, p):
        of = p.variants
        row, col = (torch.arange(n, device="cuda") for n in (p.N_q, p.N_kv))
        batch = torch.arange(p.batch, device="cuda").view(-1, 1, 1, 1)
        sequence, i, j = torch.zeros(p.N_q, dtype=torch.int64, device="cuda"), row, col
        keys = torch.full((p.batch, 1, 1, 1), p.N_kv, device="cuda")
        shift, alike = keys - p.N_q, torch.ones(1, 1, 1, 1, dtype=torch.bool, device="cuda")
        if "starts" in of:
            starts = torch.tensor(of["starts"], device="cuda")
            sequence = torch.bucketize(row, starts[1:], right=True)
            i = row - starts[sequence]
            j, shift, alike = i, torch.zeros_like(keys), sequence[:, None] == sequence[None, :]
        elif "lengths" in of:
            keys = torch.tensor(of["lengths"], device="cuda").view(-1, 1, 1, 1)
            shift = keys - p.N_q
        distance = j[None, None, None, :] - (i[None, None, :, None] + shift)  # key minus the query's position
        self.seen = alike & (col[None, None, None, :] < keys)
        if p.causal:
            self.seen = self.seen & (distance <= 0)
        if "window" in of:
            left, right = of["window"]
            self.seen = self.seen & (distance >= -left if left is not None else True) & (distance <= right if right is not None else True)
        head = torch.arange(p.heads, device="cuda").view(1, -1, 1, 1)
        slopes = [2 ** (-8 * (h + 1) / p.heads) for h in range(p.heads)]
        if of.get("alibi") == "released":
            power = 1 << p.heads.bit_length() - 1
            slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)] + [2 ** (-4 * h / power) for h in range(1, 2 * power, 2)]
        slopes = torch.tensor(slopes[: p.heads], dtype=torch.float64, device="cuda").view(1, -1, 1, 1)
        self.bias = -slopes * distance.abs() if "alibi" in of else None
        self.softcap = of.get("softcap")
        self.kept = None
        if "dropout" in of:
            seed = of["dropout_seed"]
            group = lambda x: x // 16 * 8 + x % 8
            shape = (p.batch, p.heads, p.N_q, p.N_kv)
            counter = [x.expand(shape) for x in (group(i).view(1, 1, -1, 1), group(j).view(1, 1, 1, -1), batch * p.heads + head,
                                                 sequence.view(1, 1, -1, 1))]
            words = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))
            which = (i // 8 % 2 * 2).view(1, 1, -1, 1) + (j // 8 % 2).view(1, 1, 1, -1)
            word = torch.stack(words).gather(0, which.expand(shape)[None])[0]
            dropout = torch.tensor(of["dropout"], dtype=torch.float32).item()  # as the kernel gets it
            self.factor = 1.0 / (1.0 - dropout)
            self.kept = (word >= int(dropout * 2**32)).double() * self.factor
        self.rotary, self.positions = of.get("rotary"), ((i + shift[..., 0]), j)

    def poison(self, p, tensors, draw):
        """A NaN in column 0 of a row of Q or K. Returns the rows, (batch, heads, N_q), that attend to it."""
        X = tensors[p.nan_in]
        b, head, row = (draw.randrange(n) for n in X.shape[:3])
        X[b, head, row, 0] = math.nan
        seen, group = self.seen.expand(p.batch, -1, p.N_q, p.N_kv), p.heads // p.heads_kv
        rows = torch.zeros(p.batch, p.heads, p.N_q, dtype=torch.bool, device="cuda")
        if p.nan_in == "Q":
            rows[b, head, row] = seen[b, 0, row].any()
        else:
            rows[b, head * group : head * group + group] = seen[b, 0, :, row]
        return rows

    def rotate(self, X, positions, back=False):
        """X (batch, heads, N, d), in double precision, by its positions or by the opposite angles."""
        if self.rotary is None:
            return X
        pairs = X.shape[3] // 2
        angles = positions[..., None].double() * 10000.0 ** (-torch.arange(pairs, device="cuda").double() / pairs)
        sine, cosine = torch.sin(-angles if back else angles), torch.cos(angles)
        a, b = (X[..., :pairs], X[..., pairs:]) if self.rotary == "halved" else (X[..., 0::2], X[..., 1::2])
        turned = a * cosine - b * sine, a * sine + b * cosine
        return torch.cat(turned, dim=3) if self.rotary == "halved" else torch.stack(turned, dim=4).flatten(3)

    def results(self, Q, K, V, dO, dtype):
        """O, dQ, dK and dV with every product and the softmax in dtype, and L."""
        turned = [self.rotate(X.double(), positions).to(X.dtype) for X, positions in zip((Q, K), self.positions)]
        with torch.enable_grad():
            leaves = [x.to(dtype).requires_grad_() for x in (*turned, V)]
            Q_leaf, K_leaf, V_leaf = leaves
            S = attention_steps.chosen_scale(None, Q.shape[3]) * (Q_leaf @ of_each_head(Q, K_leaf).transpose(2, 3))
            if self.softcap:
                S = self.softcap * torch.tanh(S / self.softcap)
            if self.bias is not None:
                S = S + self.bias.to(dtype)
            S = S.masked_fill(~self.seen, -math.inf)
            L = torch.logsumexp(S.detach().double(), dim=3)
            any_key = self.seen.any(dim=3, keepdim=True)
            P = torch.softmax(torch.where(any_key, S, 0.0), dim=3) * self.seen
            O = (P if self.kept is None else P * self.kept.to(dtype)) @ of_each_head(Q, V_leaf)
            gradients = torch.autograd.grad(O, leaves, dO.to(dtype))
            fused = self.fused_gradients(leaves, S.detach(), P.detach(), O.detach(), dO.to(dtype))
        back = lambda three: [self.rotate(X.double(), at, back=True).to(dtype) for X, at in zip(three, self.positions)] + [three[2]]
        return O.detach(), L, back(gradients), back(fused)

    def fused_gradients(self, leaves, S, P, O, dO):
        """dQ, dK and dV by FlashAttention's formula: D from O as it is stored; P and dS are rounded before the products. Dropout's factor is
        applied to the sum in O: a factor in 16 bits would round O another way, and where dP and D cancel, only this rounding is left."""
        Q, K, V = (x.detach() for x in leaves)
        if self.kept is not None:
            O = (self.factor * ((P * (self.kept > 0)).double() @ of_each_head(Q, V).double())).to(O.dtype)
        group = Q.shape[1] // K.shape[1]
        kept = 1.0 if self.kept is None else self.kept
        D = (dO.double() * O.double()).sum(dim=3, keepdim=True)
        dS = P.double() * (kept * (dO.double() @ of_each_head(Q, V).double().transpose(2, 3)) - D)
        if self.softcap:
            capped = (S if self.bias is None else S - self.bias.to(S.dtype)) / self.softcap
            dS = dS * torch.where(self.seen, 1.0 - capped.double() ** 2, 0.0)
        dS, P = dS.to(Q.dtype), (P.double() * kept).to(Q.dtype)
        scale = attention_steps.chosen_scale(None, Q.shape[3])
        of_group = lambda X: X.unflatten(1, (-1, group)).sum(dim=2)
        return scale * (dS @ of_each_head(Q, K)), scale * of_group(dS.transpose(2, 3) @ Q), of_group(P.transpose(2, 3) @ dO)


# ---- a step on it ----


def in_pages(p, K, V, draw):
    """K and V in pages of a pool with NaN where no key lies, and the table."""
    each = -(-p.N_kv // p.page_size)
    used = [-(-length // p.page_size) for length in p.variants["lengths"]]
    order = list(range(sum(used) + 3))
    draw.shuffle(order)
    table = torch.full((p.batch, each), -1, dtype=torch.int32)
    pools = [torch.full((len(order), p.heads_kv, p.page_size, p.d), math.nan, dtype=p.dtype, device="cuda") for _ in range(2)]
    for b in range(p.batch):
        for i in range(used[b]):
            table[b, i] = page = order.pop()
            keys = slice(i * p.page_size, min((i + 1) * p.page_size, p.variants["lengths"][b]))
            for pool, values in zip(pools, (K, V)):
                pool[page, :, : keys.stop - keys.start] = values[b, :, keys]
    return (*pools, table.cuda())


def compare(step, p, draw):
    """How many passes were run, and what is wrong, in words."""
    generator = torch.Generator(device="cuda").manual_seed(draw.getrandbits(31))
    tensor = lambda heads, N: torch.randn(p.batch, heads, N, p.d, generator=generator, device="cuda").to(p.dtype)
    Q, dO, K, V = tensor(p.heads, p.N_q), tensor(p.heads, p.N_q), tensor(p.heads_kv, p.N_kv), tensor(p.heads_kv, p.N_kv)
    arguments = {name: value for name, value in p.variants.items() if name not in ("starts", "lengths")}
    for name in ("starts", "lengths"):
        if name in p.variants:
            arguments[name] = torch.tensor(p.variants[name], dtype=torch.int32, device="cuda")
    plan = Plan(p)
    poisoned = plan.poison(p, dict(Q=Q, K=K), draw) if p.nan_in else None
    ours = K, V
    if p.page_size:
        *ours, arguments["pages"] = in_pages(p, K, V, draw)
    reason = step.refuses(Q, ours[0], p.causal, **arguments)
    if reason is not None:
        return 0, []
    clean = [torch.nan_to_num(x) for x in (Q, K, V)]
    O_ref, L_ref, grad_refs, _ = plan.results(*clean, dO, torch.float64)
    O_own, _, *grads_own = plan.results(*clean, dO, p.dtype)
    forward = step if step.has_forward else last_forward(step, Q, ours[0], p.causal, arguments)
    O, L = (torch.full_like(x, math.nan) for x in (Q, L_ref.float()))
    forward.forward(Q, *ours, causal=p.causal, O=O, L=L, **arguments)
    wrong = []
    if poisoned is not None:  # these are NaN; what is compared below are the others
        for name, x in (("O", O), ("L", L)):
            wrong += [f"{name}: no NaN of a row that attends to NaN"] * (not bool(x[poisoned].isnan().all()))
        O, O_ref, O_own = (torch.where(poisoned[..., None], 0.0, x) for x in (O, O_ref, O_own))
        L, L_ref = (torch.where(poisoned, 0.0, x) for x in (L, L_ref))
    # Of the size of the terms: where terms cancel, chance decides which is nearer, and for few rows, since a row's weights round once.
    noise = 0.25 * (1.0 + 4.0 / math.sqrt(p.batch * p.heads * max(1, p.N_q))) * torch.finfo(p.dtype).eps / 2
    wrong += wrong_beside(("O",), (O,), (O_ref,), (O_own,), (0.0,), 2.0, noise)
    L_size = 1e-3 * max(1.0, torch.nan_to_num(L_ref, neginf=0.0).abs().max().item())
    if "rotary" in p.variants:  # where a rotated element lies between two numbers of the type, a step may round it to the other one
        scale = attention_steps.chosen_scale(None, p.d)
        L_size += scale * torch.finfo(p.dtype).eps * clean[0].abs().max().item() * clean[1].abs().max().item()
    if not largest_error(L, L_ref) <= L_size:
        wrong.append(f"L: largest error {largest_error(L, L_ref):.2e}")
    if not step.has_backward or poisoned is not None:
        return 1, wrong
    got = [torch.full_like(x, math.nan) for x in (Q, K, V)]
    step.backward(Q, K, V, O, L, dO, causal=p.causal, gradients=got, **arguments)
    kept = 1.0 / (1.0 - p.variants.get("dropout", 0.0))
    sizes = [kept * size for size in gradient_sizes(Q, dO, None)]
    beside = [wrong_beside(("dQ", "dK", "dV"), got, grad_refs, own, sizes, 2.0, noise) for own in grads_own]
    return 2, wrong + (beside[0] and beside[1])


def main():
    parser = argparse.ArgumentParser(description="Compares steps that take variants with attention in plain products.")
    parser.add_argument("--steps", help="names or numbers, separated by commas (default: all that take a variant)")
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    parser.add_argument("--random", type=int, default=200, metavar="N", help="drawn problems (200)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    _, steps = prepare(parser.prog, arguments.library, arguments.steps)
    steps = [step for step in steps if step.variants and step.dtypes]  # of 16 bits
    if not steps or arguments.random < 1:
        parser.error("no step that takes a variant, or no problem")
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}, steps: {', '.join(s.name for s in steps)}")
    draw, passes, failures = random.Random(arguments.seed), 0, 0
    for number in range(arguments.random):
        step = steps[number % len(steps)]
        p = drawn(draw, step)
        ran, wrong = compare(step, p, draw)
        passes += ran
        failures += bool(wrong)
        if wrong:
            print(f"WRONG   {step.name:20} {p}" + "".join(f"\n        {line}" for line in wrong), flush=True)
    print(f"{passes} passes of {arguments.random} problems, {failures} wrong" if failures else f"{passes} passes of {arguments.random} problems, all agree")
    sys.exit(1 if failures or passes == 0 else 0)


if __name__ == "__main__":
    main()
