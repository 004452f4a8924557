#!/usr/bin/env python3
"""Trains a two-layer attention model twice, with PyTorch's attention and with the steps', and compares the loss curves.

    train.py [--backward 07,08,09] [--updates 200] [--library FILE]

The task: a sequence of random tokens is to be repeated backwards; the model must attend by position. Both models start
from the same weights and see the same data. Exit status: 0 the curves agree to 1e-4 at every update and the loss has
fallen; 1 they do not; 2 bad usage; 3 PyTorch, a card or the library is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import argparse
import math
import sys

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ModuleNotFoundError as error:
    print(f"train.py: {error}", file=sys.stderr)
    sys.exit(3)

import compare
from autograd_function import attention

TOKENS, LENGTH, BATCH, WIDTH, HEADS, LAYERS = 16, 48, 16, 64, 2, 2
# How far the loss may be from PyTorch's, in attention of each type: 5e-7 and 8e-6 were measured.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 1e-4}
RATE = 1e-3


class Layer(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.norm, self.norm_after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        split = self.project(self.norm(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        Q, K, V = split.permute(2, 0, 3, 1, 4)
        O = self.attend(Q, K, V).transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + self.out(O)
        return x + self.mix(self.norm_after(x))


class Model(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.token, self.position = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(*(Layer(attend) for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):
        return self.head(self.layers(self.token(tokens) + self.position.weight))


def pytorch_attention(Q, K, V):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(Q, K, V)


def in_type(attend, dtype):
    """Attention computed in a type, in a model that is float32 elsewhere."""
    return lambda Q, K, V: attend(Q.to(dtype), K.to(dtype), V.to(dtype)).to(Q.dtype)


def losses(attend, updates):
    """The loss before each update."""
    torch.manual_seed(1)
    model = Model(attend).cuda()
    # Plain gradient descent with momentum: Adam divides by the size of a gradient and would blow up rounding where one
    # is nearly 0.
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE * 30, momentum=0.9)
    generator = torch.Generator().manual_seed(2)
    curve = []
    for _ in range(updates):
        tokens = torch.randint(TOKENS, (BATCH, LENGTH), generator=generator).cuda()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


def main():
    parser = argparse.ArgumentParser(description="Compares the loss curves of a small model.")
    parser.add_argument("--backward", help="names or numbers, separated by commas (default: all backward steps)")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--library", help="default: build/cuda/lib/libattention_steps.so")
    arguments = parser.parse_args()
    if arguments.updates < 2:
        parser.error("--updates: at least 2")
    library, steps = compare.prepare(parser.prog, arguments.library, arguments.backward)
    steps = [step for step in steps if step.has_backward]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    curves = {dtype: losses(in_type(pytorch_attention, dtype), arguments.updates) for dtype in TOLERANCES}
    status = 0
    for step, dtype in ((step, dtype) for step in steps for dtype in TOLERANCES if dtype in step.dtypes):
        expected, tolerance = curves[dtype], TOLERANCES[dtype]
        forward = [other for other in library.steps() if other.has_forward and dtype in other.dtypes][-1]
        ours = in_type(lambda Q, K, V: attention(Q, K, V, forward, backward=step), dtype)
        got = losses(ours, arguments.updates)
        apart = max(abs(a - b) if math.isfinite(a) else math.inf for a, b in zip(got, expected, strict=True))
        ok = apart <= tolerance and got[-1] < 0.9 * got[0]
        print(f"{'ok   ' if ok else 'WRONG'} {forward.name} and {step.name}, {dtype}: loss {got[0]:.4f} to {got[-1]:.4f} in "
              f"{arguments.updates} updates, PyTorch's to {expected[-1]:.4f}; {apart:.1e} apart at most")
        status |= not ok
    sys.exit(status if steps else 1)


if __name__ == "__main__":
    main()
