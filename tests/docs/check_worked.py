"""Chapter 09's worked example: each gradient against the difference of sum(dO o O), whose gradients they are, to both sides of
an element. The text itself is compared by plots/tables.py --check."""

import itertools
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "steps" / "09_fa2_bwd_warps"))
from worked import K, N, Q, SCALE, V, d, dO, dot, example


def loss(q, k, v):
    weights = [[math.exp(SCALE * dot(row, key)) for key in k] for row in q]
    return sum(w / math.fsum(of) * dot(dO[i], v[j]) for i, of in enumerate(weights) for j, w in enumerate(of))


_, gradients = example()
step = 1e-5
for which, i, c in itertools.product(range(3), range(N), range(d)):
    sides = []
    for sign in (1, -1):
        moved = [[row[:] for row in operand] for operand in (Q, K, V)]
        moved[which][i][c] += sign * step
        sides.append(loss(*moved))
    assert abs(gradients[which][i][c] - (sides[0] - sides[1]) / (2 * step)) < 1e-8, (which, i, c)
