"""Draws the picture of this chapter, the flow of one visit, from a trace of rung 11e; plots/draw.py runs it."""

import traces
from sheet import GREY, LANE, NOW, OWNED, SAND, TINT, Page

D, SEQ, TILE = 64, 256, 128
RESULTS = {("Q", "K"): "S = Q K^T", ("dO", "V"): "dP = dO V^T", ("P", "dO"): "dV += P^T dO", ("dS", "Q"): "dK += dS^T Q",
           ("dS", "K"): "dQ = dS K"}


def visit(folder):
    """What warp 0 does in the two parts of the first visit, which barriers end: [(product, transposed operands)] each, the
    arrays that are copied meanwhile and the arrays that are added to. The B of a product is what mma follows on."""
    launch = next(launch for launch in traces.run(folder, "11e_stages", f"--heads 1 --seq {SEQ} --dim {D}")
                  if launch.requests(kind="atomic"))
    mine = [event for event in launch.events() if event.warp == 0]
    stores = [r for r in mine if (r.space, r.kind) == ("shared", "store")]
    starts = {place: min(min(r.offsets) for r in stores if r.place == place) for place in {r.place for r in stores}}
    assert len(starts) == 2  # P lies before dS

    def source(request):
        at = min(request.offsets)
        return request.source() if request.source() != traces.COMPUTED else "dS" if at >= max(starts.values()) else "P"

    parts, operands = {}, []
    for event in mine:
        part = parts.setdefault(event.epoch, {"products": [], "copied": set(), "added": set(), "stored": False})
        if event.kind == "ldmatrix":
            operands.append([source(event), ""])
        elif event.kind.startswith("ldmatrix"):
            operands[-1][1] = " transposed" * event.kind.endswith("trans")
        elif event.kind.startswith("mma") and operands:
            A, B = next(each for each in reversed(operands) if each[0] != operands[-1][0]), operands[-1]
            product = [RESULTS[A[0], B[0]], [name for name, transposed in (A, B) if transposed]]
            part["products"] += [product] if product not in part["products"] else []
        elif event.kind == "copy":
            part["copied"].add(event.array)
        elif event.kind == "atomic":
            part["added"].add(event.array)
        elif event in stores:
            part["stored"] = True
    return parts[1], parts[2]


def flow(folder):
    first, second = visit(folder)
    assert [product for product, _ in first["products"]] == ["S = Q K^T", "dP = dO V^T"] and first["stored"]
    assert {"Q", "dO"} <= first["copied"] and not first["added"] and second["added"] and not second["copied"]
    transposed = {product: " and ".join(names) for product, names in second["products"]}
    assert list(transposed) == ["dV += P^T dO", "dK += dS^T Q", "dQ = dS K"]
    page = Page(57, f"One visit: a block with its {TILE} keys at a tile of {TILE} query rows, d {D}")

    def box(x, y, words, face, width=12.0, height=3.2, **more):
        page.box(x, y, width, height, face, GREY, order=2, words=words, **more)
        return x + width / 2

    down = lambda x, y, to_x, to_y: page.arrow((x, y), (to_x, to_y), GREY)
    for y, words in ((5.6, "shared\nmemory"), (12.6, "tensor cores"), (19.6, "registers"), (26.4, "shared\nmemory"),
                     (38.2, "tensor cores"), (46.0, "result")):
        page.text(1, y, words, color=GREY, size=9)
    operands = {name: box(x, 4.0, name, face)
                for name, x, face in (("Q", 12, TINT), ("K", 26, OWNED), ("dO", 46, TINT), ("V", 60, OWNED))}
    S, dP = box(16, 11.0, "S = Q K^T", NOW, 18), box(50, 11.0, "dP = dO V^T", NOW, 18)
    for name, to in (("Q", S - 3), ("K", S + 3), ("dO", dP - 3), ("V", dP + 3)):
        down(operands[name], 7.2, to, 11.0)
    P, dS = box(16, 18.0, "P = exp(S - L)", "white", 18), box(50, 18.0, "dS = P o (dP - D)", "white", 18)
    down(S, 14.2, P, 18.0), down(dP, 14.2, dS, 18.0)
    page.arrow((34, 19.6), (50, 19.6), GREY)
    P, dS = box(19, 25.0, "P, 16 bits", TINT), box(53, 25.0, "dS, 16 bits", TINT)
    down(P, 21.2, P, 25.0), down(dS, 21.2, dS, 25.0)
    page.line([10, 79], [30.4] * 2, LANE, 2.2)
    page.text(42, 26.6, "__syncthreads(): a warp needs\nP and dS of other warps", color=LANE, ha="center", size=9)
    at = {}
    for product, x in zip(transposed, (12, 35, 58)):
        at[product] = box(x, 36.6, product, NOW, 19)
        page.text(at[product], 41.2, f"ldmatrix.trans: {transposed[product]}", ha="center", size=8.5)
    down(P, 28.2, at["dV += P^T dO"], 36.6)
    down(dS, 28.2, at["dK += dS^T Q"], 36.6), down(dS, 28.2, at["dQ = dS K"], 36.6)
    for product, words, face in (("dV += P^T dO", "dV stays in registers", OWNED),
                                 ("dK += dS^T Q", "dK stays in registers", OWNED),
                                 ("dQ = dS K", "added to dQ_sum, fp32", SAND)):
        box(at[product] - 9.5, 44.4, words, face, 19)
        down(at[product], 42.4, at[product], 44.4)
    page.text(1, 51.0, "Meanwhile cp.async copies the next tile of Q and dO. The other operands are the dO, Q and K above.\n"
              "o: the product of two matrices, element by element.")
    page.key(54.8, (NOW, "product"), (OWNED, "stays in the block"), (TINT, "new at each visit"),
             (SAND, "leaves at each visit"))
    return page


PICTURES = (flow,)
