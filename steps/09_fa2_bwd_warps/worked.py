"""Prints the worked example of this chapter, which plots/tables.py writes into its page: the 4 x 4 case of
docs/math/attention.md through the block loop, in double precision."""

import itertools
import math

# The case of docs/math/attention.md, "A 4 x 4 example, by hand", and a dO.
Q = [[0, 0, 1, 0], [0, 0, 1, 1], [1, 0, 0, 0], [2, 1, 1, 0]]
K = [[0, 0, 1, 0], [0, 2, 0, 0], [-1, 0, 2, 1], [1, 1, 0, 0]]
V = [[1, 0, 2, 0], [0, 3, 0, 1], [4, 0, 0, -2], [0, 1, -1, 5]]
dO = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]]
SCALE = math.log(2)
N = d = 4
Br = Bc = 2


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def forward():
    """O and L, as the forward pass leaves them."""
    S = [[SCALE * dot(q, k) for k in K] for q in Q]
    L = [math.log(math.fsum(map(math.exp, row))) for row in S]
    return [[math.fsum(math.exp(s - l) * v[c] for s, v in zip(row, V)) for c in range(d)] for row, l in zip(S, L)], L


def decimal(x):
    text = f"{x:.4f}"
    return "0" if float(text) == 0 else text.rstrip("0").rstrip(".") if float(text) == round(x, 12) else text


def vector(row):
    return f"({', '.join(map(decimal, row))})"


def table(headings, rows, right=()):
    marks = ["---:" if c in right else "---" for c in range(len(headings))]
    return "".join("| " + " | ".join(line) + " |\n" for line in [headings, marks, *rows])


def example():
    """Its text, and dQ, dK and dV."""
    O, L = forward()
    D = [dot(dO[i], O[i]) for i in range(N)]
    out = "The preprocess kernel leaves, one line per query row:\n\n"
    out += table(["query", "dO", "O", "D", "L", "L2 = L log2 e"],
                 [[str(i), vector(dO[i]), vector(O[i]), decimal(D[i]), decimal(L[i]), decimal(L[i] / math.log(2))]
                  for i in range(N)], right=(3, 4, 5))
    dQ, dK, dV = ([[0.0] * d for _ in range(N)] for _ in range(3))
    for key0 in range(0, N, Bc):
        for row0 in range(0, N, Br):
            rows, keys = range(row0, row0 + Br), range(key0, key0 + Bc)
            P = {(i, j): math.exp(SCALE * dot(Q[i], K[j]) - L[i]) for i in rows for j in keys}
            dP = {(i, j): dot(dO[i], V[j]) for i in rows for j in keys}
            dS = {at: SCALE * P[at] * (dP[at] - D[at[0]]) for at in P}
            out += f"\n**Block {key0 // Bc}, keys {key0} and {key0 + 1}; query rows {row0} and {row0 + 1}.**\n\n"
            columns = [f"{name}, key {j}" for name in ("P", "dP", "dS") for j in keys]
            out += table(["", *columns], [[f"query {i}", *(decimal(part[i, j]) for part in (P, dP, dS) for j in keys)]
                                          for i in rows], right=range(1, 7))
            lines = []
            for name, total, targets, terms, where in (
                    ("dV, key", dV, keys, lambda j: [(P[i, j], dO[i]) for i in rows], "in registers"),
                    ("dK, key", dK, keys, lambda j: [(dS[i, j], Q[i]) for i in rows], "in registers"),
                    ("dQ, query", dQ, rows, lambda i: [(dS[i, j], K[j]) for j in keys], "in global memory")):
                for at in targets:
                    before = total[at]
                    for factor, row in terms(at):
                        total[at] = [x + factor * y for x, y in zip(total[at], row)]
                    lines.append([f"{name} {at}", vector([a - b for a, b in zip(total[at], before)]), vector(total[at]), where])
            out += "\n" + table(["", "added", "sum so far", "which is"], lines)
        out += f"\nBlock {key0 // Bc} writes dV and dK of its keys, and is done.\n"
    sums = [[math.fsum(m[j][c] for j in range(N)) for c in range(d)] for m in (dK, dV, dO)]
    assert max(map(abs, sums[0])) < 1e-14 and max(abs(a - b) for a, b in zip(sums[1], sums[2])) < 1e-14
    out += f"\nOver all keys dK adds up to {vector(sums[0])}, and dV to {vector(sums[1])}, the sum of the rows of dO.\n"
    return out, (dQ, dK, dV)


def check():
    """Each gradient against the difference of sum(dO o O), whose gradients they are, to both sides of an element."""

    def loss(q, k, v):
        weights = [[math.exp(SCALE * dot(row, key)) for key in k] for row in q]
        return sum(w / math.fsum(of) * dot(dO[i], v[j]) for i, of in enumerate(weights) for j, w in enumerate(of))

    gradients, step = example()[1], 1e-5
    for which, i, c in itertools.product(range(3), range(N), range(d)):
        sides = []
        for sign in (1, -1):
            moved = [[row[:] for row in operand] for operand in (Q, K, V)]
            moved[which][i][c] += sign * step
            sides.append(loss(*moved))
        assert abs(gradients[which][i][c] - (sides[0] - sides[1]) / (2 * step)) < 1e-8, (which, i, c)


if __name__ == "__main__":
    check()
    print(example()[0], end="")
