#!/usr/bin/env python3
"""One forward and one backward of PyTorch's fp32 attention, for a profiler: plots/record.py calls it.

    run_peers.py efficient|math BATCH HEADS N D

What is not to be measured happens before cudaProfilerStart.

Exit status: 2 bad usage; 3 PyTorch or a card is not there.
"""

# flake8: noqa: E741
# O is the papers' letter.

import sys

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ModuleNotFoundError as error:
    print(f"run_peers.py: {error}", file=sys.stderr)
    sys.exit(3)

BACKENDS = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}

if len(sys.argv) != 6 or sys.argv[1] not in BACKENDS or not all(word.isdigit() for word in sys.argv[2:]):
    print(__doc__, file=sys.stderr)
    sys.exit(2)
if not torch.cuda.is_available():
    print("run_peers.py: there is no card", file=sys.stderr)
    sys.exit(3)
torch.backends.cuda.matmul.allow_tf32 = False
shape = tuple(map(int, sys.argv[2:]))
Q, K, V, dO = (torch.randn(shape, device="cuda", requires_grad=True) for _ in range(4))
with sdpa_kernel(BACKENDS[sys.argv[1]]):
    for measured in (False, True):
        torch.cuda.synchronize()
        if measured:
            torch.cuda.profiler.start()
        O = F.scaled_dot_product_attention(Q, K, V)
        torch.autograd.grad(O, (Q, K, V), dO.detach())
        torch.cuda.synchronize()
torch.cuda.profiler.stop()
