"""Draws the pictures of this chapter; plots/draw.py runs it. Copies by the TMA, `wgmma` and semaphores leave no requests of lanes in a
trace, so that the pictures are computed from the calls and formulas in the kernels' text; the meter confirms the wavefronts of the products."""

import re
import subprocess
from pathlib import Path

from sheet import GREY, INK, LANE, NOW, OWNED, PALE, SAND, TINT, Page

HERE = Path(__file__).parent
KEYS, CONSUMERS = 128, 2  # of a block


def text_of(rung):
    return (HERE / f"{rung}.cu").read_text(encoding="utf-8")


def found(pattern, text):
    """What a pattern's groups match in a kernel's text."""
    match = re.search(pattern, text)
    assert match, f"no {pattern}"
    return match[1]


def visit_of(rung):
    """What a consumer does with one tile."""
    return found(r"auto visit = \[&\]\(int i, bool masked\) \{(?s:(.*?))\n    \};", text_of(rung))


# ---- who computes what, and where each operand lies ----------------------------------------------------------------------

QUERIES, COLUMNS = 64, 128  # of a tile at d 128
SIZE = {"q": QUERIES, "k": KEYS, "c": COLUMNS}
STORED = {"Q": "qc", "dO": "qc", "K": "kc", "V": "kc", "P": "qk", "dS": "qk"}  # row and column of each operand: query, key, column of d
FORMS = {  # of a function of tiles.cuh: which index of A is m and which the sum's, which index of B is n; is A in shared memory?
    "multiply_rows": (0, 1, 0, True), "multiply_transposed": (1, 0, 1, True), "multiply_registers": (1, 0, 1, False),
    "multiply_tiles": (0, 1, 1, True)}


def products_of(rung):
    """Of each product: name, [m, n, sum], names of A and B, is A in shared memory, the index that divides it among the consumers."""
    text, found_products = text_of(rung), []
    visit = visit_of(rung)
    for call, C, A, B in re.findall(r"(multiply_\w+)<[^>]*>\((\w+)_reg, ([^,]+), ([^,]+?)\);", visit):
        name = lambda words: re.sub(r"^my_|_(tile|smem|reg|part)\b.*", "", words)
        (m, k, n, shared), A_name, B_name = FORMS[call], name(A), name(B)
        index = STORED[A_name][m], STORED[B_name][n], STORED[A_name][k]
        alone = re.search(r"if \(consumer == 0\) \{\s*multiply_\w+<[^>]*>\(" + C + "_reg", visit) is not None
        divided = "" if alone else "k" if "k" in index[:2] else "c"
        assert index[2] in STORED[B_name] and (divided != "c" or re.search(r"K_part = .*consumer.* \* Bc \* 64", text))
        found_products.append((C, index, A_name, B_name, shared, divided))
    return found_products


def wavefronts(index, shared, divided):
    """Of one product: a wgmma reads 64 x 16 numbers of A and 16 x N of B, 64 numbers per wavefront."""
    m, n, k = (SIZE[each] for each in index)
    N = n // CONSUMERS if divided == index[1] else n
    return SIZE[index[2]] // 16 * ((16 if shared else 0) + N // 4) * (m // 64 if divided != index[1] else CONSUMERS)


def metered(folder, rung):
    """The wavefronts of all products of one tile, as the simulated device counts them."""
    options = f"--heads 1 --seq {2 * KEYS} --dim {COLUMNS} --no-check --no-time --meter"
    done = subprocess.run([str(Path(folder) / rung), *options.split()], capture_output=True, text=True, check=True)
    return int(found(r"products of warpgroups: \d+, (\d+) wavefronts", done.stdout)) // (2 * KEYS // QUERIES * 2)


def drawn_matrix(page, x, y, rows, cols, name, face, by=""):
    """To scale; `by`: rows or cols, by which the consumers share it. Returns its width."""
    unit = 6.4 / 128
    width, height = cols * unit, rows * unit
    for c in range(CONSUMERS if by else 1):
        part = (x + c * width / 2 * (by == "cols"), y + c * height / 2 * (by == "rows"), width / (1 + (by == "cols")), height / (1 + (by == "rows")))
        page.box(*part, face[c] if isinstance(face, tuple) else face, GREY, 0.8, 3)
        if by and not isinstance(face, tuple):  # whose half it is: a stripe
            page.box(*part[:2], part[2] if by == "cols" else 0.55, 0.55 if by == "cols" else part[3], (OWNED, TINT)[c], GREY, 0.8, 4)
    striped = 0.28 * (by != "" and not isinstance(face, tuple))
    page.text(x + width / (4 if by == "cols" else 2) + striped * (by == "rows"), y + height / (4 if by == "rows" else 2) + striped * (by == "cols"), name,
              ha="center", size=8 if len(name) < 4 else 7)
    return width


def products(folder):
    page, columns = Page(67.8, f"Who computes what, from where: {QUERIES} queries, {KEYS} keys, d {COLUMNS}"), (
        ("13a_products", "13a"), ("13c_bulk_copies", "13b and 13c"), ("13d_shared_dQ", "13d"))
    faces = OWNED, TINT
    assert products_of("13b_transposed") == products_of("13c_bulk_copies")
    for column, (rung, title) in enumerate(columns):
        x, y, total = 1 + 27 * column, 7.0, 0
        page.text(x, 4.6, title, weight="bold", size=11)
        order = {"S": 0, "dP": 1, "dV": 2, "dK": 3, "dQ": 4}
        for C, index, A, B, shared, divided in sorted(products_of(rung), key=lambda product: order[product[0]]):
            m, n, k = index
            count = wavefronts(index, shared, divided)
            total += count
            turned = "^T" if C in ("S", "dP") and m == "k" else ""
            A_name = A + ("^T" if STORED[A] != m + k else "")
            B_name = B + ("^T" if STORED[B] != k + n else "")
            page.text(x, y + 0.4, f"{C}{turned} {'+=' if C in ('dV', 'dK') else '='} {A_name} {B_name}", size=9, weight="bold")
            page.text(x + 24.6, y + 0.4, f"{count} wavefronts", size=8.5, ha="right", color=GREY)
            top = y + 2.0
            cut = lambda first, second: "rows" if divided and divided == first else "cols" if divided and divided == second else ""
            own = lambda first, second: faces if divided in (first, second) and divided else faces[0]
            at = x + drawn_matrix(page, x, top, SIZE[m], SIZE[n], f"{C}{turned}", own(m, n), cut(m, n)) + 0.6
            page.text(at + 0.6, top + 1.5, "=" if C not in ("dV", "dK") else "+=", ha="center", size=9)
            at += 2.0
            at += drawn_matrix(page, at, top, SIZE[m], SIZE[k], A_name, SAND if shared else own(m, k), cut(m, "")) + 0.8
            drawn_matrix(page, at, top, SIZE[k], SIZE[n], B_name, SAND, cut("", n))
            y += 9.9
        assert total == metered(folder, rung), (total, metered(folder, rung))
        page.text(x, y + 1.0, f"all five: {total} wavefronts", weight="bold", size=9.5)
        assert any(C in ("dV", "dK") and shared for C, _, _, _, shared, _ in products_of(rung)) == (rung == "13a_products")
    page.text(1, y + 4.6, "Results lie in registers. A consumer reads the halves that have its colour or a stripe of it, and all of a matrix without halves;\n"
              "dQ of 13a to 13c is the first consumer's alone. Sizes are to scale.", size=9)
    page.key(y + 8.0, (OWNED, "registers of consumer 0"), (TINT, "registers of consumer 1"), (SAND, "shared memory"))
    return page


# ---- one round ---------------------------------------------------------------------------------------------------------------

PRODUCTS = "S", "dP", "dV", "dQ", "dK"
STEPS = (  # what to find in a visit, what to say of it, with whom it is
    (r"mbarrier_wait\((\w+_full)", "wait: {}", "from producer"), (r"wgmma_wait<(\d)>", "wgmma_wait<{}>", ""), (r"multiply_\w+<[^>]*>\((\w+)_reg", "start {}", ""),
    (r"exp2_approx(\()", "P = 2^(S - L2), 0 where masked", ""), (r"pack_A<T>\((P)_reg", "P to 16 bits", ""),
    (r"dP_reg\[n\]\[e\] = (S)_reg", "dS = P o (dP - D)", ""), (r"pack_A<T>\((dS)_reg", "dS to 16 bits", ""), (r"(stmatrix)_x4_trans", "store dS", ""),
    (r"(fence)_proxy_async", "proxy fence", ""), (r"named_barrier_sync\((dS_STORED)", "sync: {}", "both"),
    (r"if \(IN_ORDER\) named_barrier_sync\((dQ_EMPTY)", "sync: {}", "from writer"), (r"named_barrier_arrive\((dQ_FULL)", "arrive: {}", "to writer"),
    (r"release\((\w+_empty)", "release: {}", "to producer"), (r"\*\(float4 \*\)\((part)", "store dQ", ""), (r"(start_S)\(", "wait: Q_full of the next tile", "from producer"))


def steps_of(rung):
    """(what is found, words, with whom) of a visit, in order."""
    visit, steps = visit_of(rung), []
    for pattern, words, party in STEPS:
        steps += [(match.start(), pattern, match[1], words.format(match[1]), party) for match in re.finditer(pattern, visit)]
    ordered = [step[1:] for step in sorted(steps)]
    at = next(i for i, step in enumerate(ordered) if step[1] == "start_S")
    start = found(r"auto start_S = \[&\]\(int i\) \{(?s:(.*?))\n    \};", text_of(rung))
    assert start.index("mbarrier_wait(Q_full") < start.index("multiply_rows") and ordered[0][1] == "dO_full"
    return ordered[: at + 1] + [("multiply", "S", "start S of the next tile", "")] + ordered[at + 1 :]


def spans_of(steps):
    """From which step to which each product is under way: groups end in the order of their start."""
    open_, spans = [("S", -1)], []
    for row, (pattern, what, *_) in enumerate(steps):
        if pattern.startswith("multiply"):
            open_.append((what, row))
        elif pattern.startswith("wgmma"):
            while len(open_) > int(what):
                spans.append((*open_.pop(0), row))
    return spans + [(*left, len(steps)) for left in open_]


def round(_):
    rung, tall, top = "hopper_bwd", 1.95, 8.6
    steps, page = steps_of(rung), None
    spans = spans_of(steps)
    assert {name for name, *_ in spans} == set(PRODUCTS) and spans[-1][0] == "S" and len(spans) == 6
    end = top + tall * len(steps)
    page = Page(end + 11.4, "One round of a consumer, dQ in a fixed order: its steps, and whom it meets")
    bars, lanes = {name: 28.6 + 3.9 * at for at, name in enumerate(PRODUCTS)}, {"producer": 60, "other\nconsumer": 68, "writer": 76}
    mine = 52.0
    page.text(1, top - 2.2, "steps, from top to bottom", weight="bold", size=9.5)
    page.text(28.2, top - 3.8, "products under way", weight="bold", size=9.5)
    for name, x in bars.items():
        page.text(x + 1.5, top - 1.5, name, ha="center", size=9)
    page.text(mine, top - 2.4, "this\nconsumer", ha="center", weight="bold", size=9)
    for name, x in lanes.items():
        page.text(x, top - 2.4, name, ha="center", weight="bold", size=9)
    for x in (mine, *lanes.values()):
        page.line([x, x], [top, end], GREY, 1.0, 2)
    for row, (pattern, what, words, party) in enumerate(steps):
        y = top + tall * row
        page.box(1, y + 0.1, 26.2, tall - 0.2, SAND if party.startswith("from") or party == "both" or pattern.startswith("wgmma") else
                 NOW if words.startswith("start") else TINT if party.startswith("to") else PALE, "none", order=2)
        page.text(1.6, y + tall / 2, words, size=8.8, color="white" if words.startswith("start") else INK)
        who = {"producer": "producer", "writer": "writer"}.get(party.split()[-1] if party else "", "other\nconsumer" if party == "both" else "")
        if who:
            to = (mine, y + tall / 2), (lanes[who], y + tall / 2)
            if party.startswith("from") or party == "both":
                page.arrow(to[1], to[0], LANE)
            if party.startswith("to") or party == "both":
                page.arrow(to[0], to[1], LANE)
    for name, start, stop in spans:
        first, last = top + tall * (start + 0.5 if start >= 0 else 0), top + tall * (stop + 0.5 if stop < len(steps) else stop)
        page.box(bars[name], first, 3.0, last - first, NOW, "none", order=3)
    row_of = {what: at for at, (_, what, *_) in enumerate(steps)}
    x, writer = lanes["writer"], found(r"a writer per consumer: adds(?s:(.*?))return;", text_of(rung))
    order = [writer.index(name) for name in ("named_barrier_arrive(dQ_EMPTY", "named_barrier_sync(dQ_FULL", "semaphore_wait", "bulk_reduce_add", "tma_wait<0>", "semaphore_raise")]
    assert order == sorted(order)
    for first, last, words in ((0, row_of["dQ_EMPTY"] + 0.5, "its turn; adds dQ of the tile before"), (row_of["dQ_FULL"] + 0.5, len(steps), "its turn")):
        page.box(x - 1.0, top + tall * first, 2.0, tall * (last - first), OWNED, GREY, 0.6, 4)
        page.text(x, top + tall * (first + last) / 2, words, ha="center", size=8.5, rotation=90)
    page.text(1, end + 3.2, "Time runs downwards, not to scale. A product is under way from its start to the wait that says that it is done: groups\n"
              "end in the order of their start, and wgmma_wait<n> leaves the newest n. S was started in the round before.\n"
              "In any order of additions there is no writer: the consumer adds dQ from its registers where it stores it here.", size=9)
    page.key(end + 7.2, (NOW, "starts a product; under way"), (SAND, "waits"), (TINT, "announces"), (PALE, "computes, stores"), (OWNED, "writer"))
    page.key(end + 9.5, (LANE, "a barrier: from the one who arrives to the one who waits; the other consumer and this one do both"))
    return page


# ---- the order of additions --------------------------------------------------------------------------------------------------

BLOCKS = 6  # of a head, and as many row tiles


def evaluated(formula, **names):
    """A formula of the kernel in whole numbers, none of them negative."""
    words = re.sub(r"(.+) \? (.+) : (.+)", r"(\2) if (\1) else (\3)", formula.replace("/", "//"))
    return eval(words, {"__builtins__": {}}, names)


def kernel_order(causal):
    """Of each block its row tiles in order, and the turn of (row tile, block), by the kernel's formulas, all blocks in one group."""
    text, tile = text_of("hopper_bwd"), KEYS
    names = {"p": None, "Br": tile, "Bc": tile, "row_tiles": BLOCKS, "members": BLOCKS, "attended_keys": lambda _, row: row + 1,
             "ceil_div": lambda a, b: -(-a // b)}
    masked, first, unmasked = (found(pattern, text) for pattern in (
        r"if \(p\.causal\) return (.*);", r"int first = (ceil_div\(\(row_tile.*);", r"\n    return (key_tile - member.*);"))
    shift, steps = found(r"int shift = IN_ORDER && !p\.causal \? (.*) : 0;", text), found(r"auto row_tile = .*\{ return (.*); \};", text)
    visits = []
    for block in range(BLOCKS):
        here = {"first_tile": block if causal else 0, "tiles": BLOCKS - block if causal else BLOCKS,
                "shift": 0 if causal else evaluated(shift, **names, member=block)}
        visits.append([evaluated(steps, **here, i=i) for i in range(here["tiles"])])

    def turn(row_tile, block):
        here = names | {"row_tile": row_tile, "key_tile": block, "member": block}
        return evaluated(masked, **here) if causal else evaluated(unmasked, **here, first=evaluated(first, **here))

    return visits, turn


def played(visits, turn):
    """[block][time]: the row tile to which it adds, or None where it waits for its turn. A block adds once per unit of time."""
    semaphore, done, shown = [0] * BLOCKS, [0] * BLOCKS, [[] for _ in visits]
    while any(at < len(tiles) for at, tiles in zip(done, visits)):
        now = list(semaphore)
        for block, tiles in enumerate(visits):
            if done[block] < len(tiles):
                tile = tiles[done[block]]
                mine = now[tile] == turn(tile, block)
                shown[block].append(tile if mine else None)
                done[block] += mine
                semaphore[tile] += mine
        assert now != semaphore  # no deadlock
    return shown


def schedule(_):
    cell, chosen, panels = 2.75, 2, []
    for causal, words in ((False, "no mask"), (True, "causal mask")):
        visits, turn = kernel_order(causal)
        plain = [sorted(tiles) for tiles in visits]
        panels.append((f"First keys first, {words}", played(plain, lambda tile, block: block)))
        panels.append((("The kernel: shifted starts, " if not causal else "The kernel: last keys first, ") + words, played(visits, turn)))
    assert all(None in row for _, shown in panels[::2] for row in shown[1:]) and not any(None in row for _, shown in panels[1::2] for row in shown)
    page = Page(55.2, "Who adds to which tile of dQ when: six blocks, six tiles of query rows")
    for at, (title, shown) in enumerate(panels):
        x, y = (6.4, 48.0)[at % 2], (6.6, 29.8)[at // 2]
        page.text(x - 5, y - 1.5, title, weight="bold", size=9.5)
        for block, row in enumerate(shown):
            page.text(x - 0.5, y + (block + 0.5) * cell, f"block {block}", ha="right", size=8.5)
            for time, tile in enumerate(row):
                page.box(x + time * cell, y + block * cell, cell, cell, SAND if tile is None else LANE if tile == chosen else "white", GREY, 0.7, 3,
                         "" if tile is None else str(tile), size=9)
        longest, waits = max(map(len, shown)), sum(tile is None for row in shown for tile in row)
        page.text(x - 5, y + BLOCKS * cell + 1.3, f"{longest} units of time; {waits} waits", size=9)
    page.text(1, 50.6, "Block b owns key tile b. Time runs to the right: one addition per unit and block. The number in a cell is the row tile.", size=9)
    page.key(53.4, (LANE, f"additions to row tile {chosen}"), ("white", "to another one"), (SAND, "waits for its turn"))
    return page


PICTURES = products, round, schedule
