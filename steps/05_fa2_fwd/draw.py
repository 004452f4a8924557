"""Draws the pictures of this chapter from traces of its program, and of chapter 04's beside it; plots/draw.py runs it."""

import functools
import re
import textwrap
from html import escape

import sheet
import traces
from sheet import GREY, INK, LANE, NOW, OWNED, PALE, SAND, TINT, Matrix, Page, cells, matrix, product

TILE, D, SEQ, WARP_SHOWN, WARPS = 32, 64, 128, 1, 4


def run(folder, options=f"--seq {SEQ}", blocks="0"):
    return traces.run(folder, "05_fa2_fwd", f"--heads 1 --dim {D} {options}", blocks)[0]


def loops_exchanged(folder):
    before = traces.visits(traces.run(folder, "04_fa1_fwd", f"--heads 1 --seq {SEQ} --dim {D}")[0], (0, 0, 0), TILE, D)
    after = run(folder, blocks="0,1,2,3")
    after = [traces.visits(after, block, TILE, D) for block in sorted(after.blocks)]
    page = Page(51, "04: one block per head")
    y, cell = 18.0, 4.9
    first = {(i, j): number for number, (i, j, _, _) in enumerate(before, start=1)}
    grid = sheet.visits(page, 1.0, y, cell, first, (2, 1), kept_rows=False)
    page.text(1, 4.4, "outer loop: key tiles; inner loop: query tiles")
    reads, writes = before[first[2, 1] - 1][2:]
    named = lambda arrays: ", ".join(arrays).replace("workspace", "m, l")
    page.text(1, grid.bottom + 2.0, f"each visit: Q, {named(reads)} read; {named(writes)} written\neach key tile: K, V read once\n"
              "at each visit O is divided by l", va="top")
    own = {(i, j): number for visits in after for number, (i, j, _, _) in enumerate(visits, start=1)}
    x = 40.6
    grid = sheet.visits(page, x, y, cell, own, (1, 2), kept_rows=True)
    page.title(1.6, "05: one block per query tile", x)
    page.text(x, 4.4, "blocks: query tiles; loop: key tiles")
    reads, writes = after[1][-1][2:]
    page.text(x, grid.bottom + 2.0, f"each visit: K, V read\neach query tile: Q read once, {' and '.join([*reads, *writes])} written once\n"
              "at the end O is divided by l", va="top")
    page.text(grid.right + 0.4, y - 1.4, "block", size=8.5, ha="left")
    for block in range(4):
        page.text(grid.right + 1.0, grid.at(block, 0)[1], str(block), weight="bold" if block == 1 else "normal")
    page.key(48.6, (NOW, "this visit"), (PALE, "this block's earlier visits"), (OWNED, "stays in the block"), (TINT, "travels at each visit"))
    return page


def who_owns_S(folder):
    loads = lambda source: run(folder).requests(warp=WARP_SHOWN, epoch=2, space="shared", source=source)
    q, k = loads("Q"), loads("K")
    columns = [column for _, column in cells(q[80].held(0), D)]  # of one round of the loop over the columns
    now = lambda requests: sum((cells(r.held(), D) for r in requests if {held % D for held in r.held()} <= set(columns)), [])
    rows, key = sorted({row for row, _ in now(q)}), cells(k[0].held(sheet.MARKED), D)[0][0]
    q_requests, k_requests = (round(len(requests) * len(columns) / D) for requests in (q, k))
    both = " and ".join(map(str, columns))
    return sheet.matrix_page(
        ("read now", f"registers of warp {WARP_SHOWN}", f"lane {sheet.MARKED}: one key"),
        (f"S = Q K^T: {len(rows)} query rows per warp, one key per lane",
         matrix("Q_smem", "32 queries x 64", (TILE, D), f"columns {both} of the warp's rows:\n{q_requests} broadcasts of 8 bytes",
                now(q), every=TILE // WARPS),
         matrix("K_smem", "32 keys x 64", (TILE, D), f"columns {both} of 32 keys:\n{k_requests} requests, 32 banks each", now(k),
                lane=[product([key], (0, D - 1))]),
         matrix(f"S_reg[{len(rows)}]", "query x key", (TILE, TILE), f"{q_requests + k_requests} requests\nfor {len(rows) * len(columns)} FMAs",
                owned=product(rows, range(TILE)), lane=[product(rows, [key])], every=TILE // WARPS)))


def who_owns_O(folder):
    launch, key, lane = run(folder), 12, sheet.MARKED
    v = [r for r in launch.requests(warp=WARP_SHOWN, epoch=2, space="shared", source="V") if r.held()[0] // D == key]
    shuffles = sum((e.warp, e.epoch) == (WARP_SHOWN, 2) and e.kind.startswith("__shfl_sync") for e in launch.events()) // TILE
    out = launch.requests(warp=WARP_SHOWN, array="O", kind="store")
    of = lambda lane: sum((cells(r.elements(lane), D) for r in out), [])
    rows, columns = sorted({row for row, _ in of(None)}), sorted({column for _, column in of(lane)})
    return sheet.matrix_page(
        ("read now", f"registers of warp {WARP_SHOWN}", f"lane {lane}: {len(columns)} columns"),
        (f"O += P V: the same {len(rows)} query rows per warp, {len(columns)} columns per lane",
         matrix(f"S_reg[{len(rows)}], now P", "query x key", (TILE, TILE), f"P of key {key}, from\nlane {key} to all lanes:\n{shuffles} shuffles",
                product(rows, [key]), product(rows, range(TILE)), every=TILE // WARPS),
         matrix("V_smem", "32 keys x 64", (TILE, D), f"key {key}, 64 neighbours:\n{len(v)} requests, 32 banks each",
                sum((cells(r.held(), D) for r in v), []), lane=[[[key, column]] for column in columns]),
         matrix(f"O_reg[{len(rows)}][{len(columns)}]", "32 queries x 64", (TILE, D), f"{len(v)} requests and {shuffles} shuffles, which "
                f"the same\nunit serves, for {len(rows) * len(columns)} FMAs", owned=of(None),
                lane=[product(rows, [column]) for column in columns], every=TILE // WARPS)))


# ---- the tiles under a causal mask ----------------------------------------------------------------------------------


def check_painted(M, q, kv):
    """Every pair is painted as hidden exactly where the mask hides it. Read from the boxes on the page, in their order."""
    face, boxes = {}, [(at[7] if len(at) > 7 else more.get("order", 1), at) for name, at, more in M.page.marks[1:]
                       if name == "box" and len(at) > 4 and at[0] >= M.x - 0.01]
    for _, at in sorted(boxes, key=lambda box: box[0]):
        (left, right), (top, bottom) = (sorted(round((at[k] + wide - o) / M.cell) for wide in (0, at[k + 2]))
                                        for k, o in ((0, M.x), (1, M.y)))
        face.update({(row, key): at[4] for row in range(top, bottom) for key in range(left, right)})
    for row in range(q):
        for key in range(M.cols):
            hidden = key >= kv or key > row + kv - q
            right = (PALE, "white") if hidden else (OWNED, TINT)
            assert face[row, key] in right, f"query {row}, key {key} is painted wrongly"


def causal_tiles(folder):
    """The key tiles that each block visits."""
    page, cell, y = Page(49), 0.205, 11.5
    for q, kv, x, title in ((128, 128, 3.8, "As many queries as keys"), (96, 176, 38.0, "Fewer queries than keys")):
        tiles = -(-kv // TILE)
        M, kinds = Matrix(page, x, y, q, TILE * tiles, cell), []
        launch = run(folder, f"--causal --seq {q} --seq-kv {kv}", ",".join(map(str, range(q // TILE))))
        for i, block in enumerate(sorted(launch.blocks)):
            row = [j for _, j, _, _ in traces.visits(launch, block, TILE, D)]
            for j in range(tiles):
                masked = TILE * (j + 1) > min(kv, TILE * i + kv - q + 1)
                kinds.append("skipped" if j not in row else "masked" if masked else "full")
                M.rectangle(TILE * i, TILE * j, TILE, TILE, GREY, 0.8, {"skipped": "white", "masked": OWNED, "full": TINT}[kinds[-1]], 2)
                for r in range(TILE * (kinds[-1] == "masked")):  # the hidden part
                    first = min(TILE * (j + 1), max(TILE * j, min(kv, TILE * i + r + kv - q + 1)))
                    page.box(x + first * cell, y + (TILE * i + r) * cell, (TILE * (j + 1) - first) * cell, cell, PALE, order=3)
            page.text(M.right + 0.9, M.at(TILE * i + 16, 0)[1], str(len(row)))
        M.lines(TILE, TILE)
        check_painted(M, q, kv)
        edges = [(x + (row + kv - q + 1) * cell, y + (row + side) * cell) for row in range(q) for side in (0, 1)]
        page.line(*zip(*edges), LANE, 1.8, order=6)
        page.title(1.6, title, x - 2.8)
        count = lambda kind: f"{kinds.count(kind)} {kind}"
        page.text(x - 2.8, 4.4, f"{q} x {kv}: {count('full')}, {count('masked')}, {count('skipped')} tiles")
        page.text(x - 1.4, M.at(q // 2, 0)[1], "query", ha="center", rotation=90)
        for j in range(tiles):
            page.text(x + TILE * j * cell, 10.3, str(TILE * j), size=8.5)
        page.text(x, 8.2, "key")
        page.text(M.right - 1.2, 8.2, "visits", size=8.5)
    page.text(x, M.bottom + 1.2, "The diagonal passes through the inside of tiles,\nso a block may have two masked tiles. Keys from\n"
              f"{kv} on do not exist.", va="top")
    page.key(41.6, (TINT, "full: no test of the mask"), (OWNED, "masked: each score is tested"), (PALE, "hidden scores, -inf"))
    page.key(44.4, ("white", "skipped: not loaded"), (None, LANE, "a query row attends to the keys left of this line"))
    page.text(1.0, 47.2, "visits: key tiles that the block of these query rows loads.")
    return page


# ---- the walk of one block over the tiles, as a picture that moves -----------------------------------

BLOCK, STILL = 2, "scores 1"  # of the blocks the one that is followed; the beat that the still shows
FADE, DARK = 0.25, "#595959"  # seconds; small print
TRANSPOSED = "\u1d40"  # as a letter: SVG cannot raise a part of a text in every browser


def formula(words):
    """Names of matrices and of a row's numbers as mathematics has them."""
    return re.sub(r"(?<!\w)([QKVSPOml])(?!\w)", r"<tspan>\1</tspan>", words).replace("^T", TRANSPOSED)


class Scene:
    """Shapes in pixels, each with its key frames, (second, opacity, right, down), or none where it always stands as it is.
    savefig() writes an SVG that moves, and shows the still where it cannot. data-steps has the second at which each step is done."""

    suffix = ".svg"

    def __init__(self, width, height, words):
        self.size, self.words, self.shapes, self.stops, self.seconds, self.shown_at, self.begins = (width, height), words, [], [], 0, 0, 0

    @property
    def marks(self):
        return self.drawing("")

    def box(self, x, y, wide, tall, face, edge="none", line=1.2, when=None):
        self.shapes.append(["box", [[x, y], [x + wide, y], [x + wide, y + tall], [x, y + tall]], face, edge, line, when])

    def shape(self, corners, face="none", edge="none", line=1.2, when=None):
        self.shapes.append(["box", corners, face, edge, line, when])

    def text(self, x, y, words, size=15, anchor="start", color=INK, weight="normal", when=None):
        self.shapes.append(["text", [x, y], words, size, anchor, color, weight, when])

    def savefig(self, file, metadata, **_):
        file.write(self.drawing(" ".join(f"{key}: {value}" for key, value in metadata.items() if value)).encode())

    def drawing(self, comment):
        names, body, (wide, tall) = {}, [], self.size
        for kind, *of, when in self.shapes:
            opacity, *moved = moment(when, self.shown_at)
            name = f' class="k{names.setdefault(tuple(when), len(names))}" opacity="{opacity:g}"' if when else ""
            name += f' transform="translate({moved[0]:g} {moved[1]:g})"' * any(moved)
            if kind == "box":
                corners, face, edge, line = of
                body.append(f'<path{name} d="M{"L".join(f"{x:g} {y:g}" for x, y in corners)}Z" fill="{face}" stroke="{edge}" stroke-width="{line}"/>')
            else:
                (x, y), words, size, anchor, color, weight = of
                body.append(f'<text{name} x="{x:g}" y="{y + 0.36 * size:g}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
                            f'font-weight="{weight}">{formula(escape(words))}</text>')
        style = "".join(f"@keyframes k{k}{{{self.frames(when)}}}.k{k}{{animation-name:k{k}}}" for when, k in names.items())
        return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" role="img" data-steps="{" ".join(f"{second:g}" for second in self.stops)}"
font-family="'DejaVu Sans',Verdana,sans-serif"><title>{escape(self.words)}</title><!-- {comment} -->
<style>tspan{{font-family:'Times New Roman','Liberation Serif',serif;font-style:italic;font-size:1.15em}}[class]{{animation:{self.seconds:g}s linear {-self.begins:g}s infinite}}{style}
@media (prefers-reduced-motion:reduce){{[class]{{animation-delay:{-self.shown_at:g}s;animation-play-state:paused}}}}@media print{{[class]{{animation:none}}}}</style>
<rect x="1" y="1" width="{wide - 2}" height="{tall - 2}" rx="8" fill="#fff" stroke="{GREY}"/>
""" + "\n".join(body) + "\n</svg>\n"

    def frames(self, when):
        moves = any(of[2:] != (0, 0) for of in when)
        frame = lambda opacity, right, down: f"opacity:{opacity:g}" + f";transform:translate({right:g}px,{down:g}px)" * moves
        ends = [(0, *when[0][1:]), *when, (self.seconds, *when[-1][1:])]
        return "".join(f"{100 * second / self.seconds:.2f}%{{{frame(*of)}}}" for second, *of in ends)


class Moved:
    """Draws on a scene, with everything moved."""

    def __init__(self, scene, right, down):
        self.scene, self.right, self.down = scene, right, down

    def box(self, x, y, *rest, **more):
        self.scene.box(x + self.right, y + self.down, *rest, **more)

    def text(self, x, y, *rest, **more):
        self.scene.text(x + self.right, y + self.down, *rest, **more)

    def shape(self, corners, *rest, **more):
        self.scene.shape([[x + self.right, y + self.down] for x, y in corners], *rest, **more)


def moment(when, second):
    """Opacity and place between two key frames."""
    before = max((of for of in when or [(0, 1, 0, 0)] if of[0] <= second), default=(when or [(0,)])[0])
    after = next((of for of in when or () if of[0] > second), before)
    part = (second - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
    return [a + part * (b - a) for a, b in zip(before[1:], after[1:])]


def shown(start, end):
    return [(start, 0, 0, 0), (start + FADE, 1, 0, 0), (end, 1, 0, 0), (end + FADE, 0, 0, 0)]


def flies(start, right, down):
    return [(start, 0, 0, 0), (start + 0.1, 1, 0, 0), (start + 0.7, 1, right, down), (start + 0.9, 0, right, down)]


def beats_of(launch, block):
    """What each warp of a block does, in order: "load K 1", "scores 1", "softmax 1", "values 1", "store O 2"; the number is the tile's."""
    beats = [[] for _ in range(launch.warps)]
    for event in (event for event in launch.events(block) if event.warp >= 0):
        tile = lambda elements: elements[0] // D // TILE
        mine, last = beats[event.warp], beats[event.warp][-1] if beats[event.warp] else ""
        if event.space == "global":
            beat = f"{event.kind} {event.array} {tile(event.elements()) if event.array != 'L' else ''}".strip()
        elif event.kind == "load":
            beat = {"Q": last, "K": "scores {}", "V": "values {}"}[event.source()].format(tile(event.held()))
        elif event.kind.startswith("__shfl_xor_sync") and last.startswith("scores"):
            beat = last.replace("scores", "softmax")
        else:
            continue
        if beat not in (last, *mine[-2:-1]):  # O and L take turns at the end
            mine.append(beat)
    assert all(mine == beats[0] for mine in beats)
    return beats[0]


@functools.lru_cache(maxsize=None)
def walk(folder, is_narrow=False):
    launch, tiles = run(folder, f"--causal --seq {SEQ}", ",".join(map(str, range(SEQ // TILE)))), SEQ // TILE
    beats = beats_of(launch, (BLOCK, 0, 0))
    visits = [int(beat.split()[1]) for beat in beats if beat.startswith("scores")]
    assert visits == [j for j in range(tiles) if TILE * j < TILE * (BLOCK + 1)], "it skips the tiles that the mask hides, and no other"
    assert beats == [f"load Q {BLOCK}", *(f"{what} {j}" for j in visits for what in ("load K", "load V", "scores", "softmax", "values")),
                     f"store O {BLOCK}", "store L"], f"another walk: {beats}"
    return drawn_walk(beats, visits, tiles, is_narrow)


def drawn_walk(beats, visits, tiles, is_narrow):
    """Memory beside the block or, for a phone, above it."""
    words = f"Block {BLOCK} keeps its tile of Q in shared memory and walks over the tiles of K and V; hidden tiles are skipped"
    scene, right, down, foot = (Scene(428, 880, words), -392, 370, 834) if is_narrow else (Scene(800, 484, words), 0, 0, 446)
    block = Moved(scene, right, down)
    x, y, cell, slots, rows = 120, 176, 58, {"Q": 450, "K": 558, "V": 666}, {"scores": 244, "softmax": 294, "values": 344}
    matrices = {"Q": lambda i: (84, y + i * cell, 24, cell), "O": lambda i: (x + tiles * cell + 12, y + i * cell, 24, cell),
                "K": lambda j: (x + j * cell, 98, cell, 24), "V": lambda j: (x + j * cell, 128, cell, 24)}
    time, start = 0.2, {}  # of each beat its first second
    lengths = {"load Q": 1.7, "load K": 0.0, "load V": 1.2, "scores": 1.4, "softmax": 1.4, "values": 1.4, "skip": 2.1, "store O": 2.1, "store L": 0.6}
    hidden = [j for j in range(tiles) if j not in visits]
    for beat in [*beats[:-2], *(f"skip {j}" for j in hidden), *beats[-2:]]:
        start[beat] = time
        what = beat if beat == "store L" else beat.rpartition(" ")[0]
        time += lengths[what] * ({visits[0]: 1.4}.get(int(beat[-1]), 0.8) if what in ("load V", *rows) else 1)
    scene.seconds, end = round(time, 2), round(time - 2 * FADE, 2)
    scene.shown_at = round(start[STILL] + 0.6, 2)
    scene.begins = round(start[f"scores {visits[0]}"] + 0.5, 2)  # with the first tile in its place, and its scores

    lines = lambda words, width: textwrap.wrap(words, width) if is_narrow else [words]
    for k, line in enumerate(lines("Attention, tile by tile: Q stays, K and V go by", 32)):
        scene.text(24, 26 + 24 * k if is_narrow else 32, line, 21, weight="bold")
    if not is_narrow:
        scene.text(24, 58, "Each query gives every key a weight; its output is the mean of the values, by these weights", 14, color=DARK)
    drawn_memory(scene, matrices, x, y, cell, tiles)
    drawn_block(block, slots, {name: start[f"load {name} {BLOCK if name == 'Q' else visits[0]}"] for name in slots})

    def caption(words, since, until):
        scene.stops.append(round(until - 2 * FADE, 2))
        for k, line in enumerate(lines(words, 36)):
            scene.text(24, foot + 22 * k - 11 * is_narrow, line, 18, weight="bold", when=shown(since, until - FADE))

    for beat, since in start.items():
        if beat.split()[0] in rows:
            block.box(446, rows[beat.split()[0]] - 3, 320, 48, SAND, "none", when=shown(since, since + 1.0))
    for beat, since in start.items():
        what, _, number = beat.rpartition(" ")
        j, later = int(number) if number.isdigit() else 0, [t for t in start.values() if t > since] + [end]
        until = later[0]
        if what.startswith("load"):
            name = what[-1]
            place, gone = matrices[name](j), start.get(f"load {name} {j + 1}", end) if name != "Q" else end
            face, edge = (OWNED, "#009E73") if name == "Q" else (TINT, NOW)
            scene.box(*place, face, edge, 2, shown(since, gone if name == "Q" else until if name == "V" else start[f"load V {j}"] + 1.0))
            scene.box(*place, face, edge, 2, flies(since, slots[name] + 48 + right - place[0] - place[2] / 2, 164 + down - place[1] - place[3] / 2))
            block.box(slots[name], 138, 96, 52, face, edge, 2, shown(since + 0.6, gone))
            block.text(slots[name] + 48, 164, f"{name} tile {j}", 15, "middle", weight="bold", when=shown(since + 0.6, gone))
            words = f"Load tile {j} of K and of V." if j == visits[0] else f"Tile {j} of K and V takes the place of tile {j - 1}."
            if name != "K":
                caption(words if name == "V" else f"Block {BLOCK} loads its {TILE} queries once. They stay in shared memory.", since, until)
        elif what in rows:
            part, gone = (x + j * cell, y + BLOCK * cell, cell, cell), start.get(f"load V {j + 1}", end)
            if what == "scores":
                left, top, bottom = x + j * cell, y + BLOCK * cell, y + (BLOCK + 1) * cell
                for warp in range(WARPS):  # each its rows, at the same time
                    scene.shape([[left, top + warp * cell / WARPS], [left + cell, top + warp * cell / WARPS], [left + cell, top + (warp + 1) * cell / WARPS - 2],
                                 [left, top + (warp + 1) * cell / WARPS - 2]], NOW, when=shown(since + 0.2, until + 1.2))
                    block.box(450, rows[what] + warp * 42 / WARPS, 52, 42 / WARPS - 1, NOW, "none", when=shown(since + 0.2, gone))
                seen = [[left, top], *[[left + cell, top]] * (j < BLOCK), [left + cell, bottom], [left, bottom]]
                scene.shape(seen, TINT, when=shown(until + 1.2, end))
                scene.text(part[0] + 20, part[1] + 38, str(visits.index(j) + 1), 17, "middle", weight="bold", when=shown(until + 1.2, end))
                block.text(476, rows[what] + 21, "S", 17, "middle", "white", "bold", when=shown(since + 0.2, until + 0.4))
                block.text(476, rows[what] + 21, "P", 17, "middle", "white", "bold", when=shown(until + 0.6, gone))
            caption({"scores": "S = Q K^T: one tile of scores. It is never stored to global memory." if j != visits[-1] else
                     "On the diagonal, scores that the mask hides become -inf.",
                     "softmax": "Softmax so far: new maximum m, new sum l; S becomes P; O is rescaled.",
                     "values": f"O += P V: now m, l and O cover keys 0 to {TILE * (j + 1) - 1}."}[what], since, until)
            if what == "softmax":
                for left in (450, 476):
                    block.box(left, rows[what], 26, 42, "#F0C878", "none", when=shown(since + 0.4, end if j == visits[-1] else start[f"softmax {j + 1}"]))
            if what == "values":
                block.text(760, 231, f"seen: keys 0 to {TILE * (j + 1) - 1}", 14, "end", NOW, "bold", shown(since, start.get(f"values {j + 1}", end)))
                block.box(450, rows[what], 52 * (visits.index(j) + 1) / len(visits), 42, "#9BD3C0", "none", when=shown(since + 0.4, end))
        elif what == "skip":
            for corners in [matrices[name](j) for name in "KV"] + [(x + j * cell, y + BLOCK * cell, cell, cell)]:
                left, top, wide, tall = corners
                scene.shape([[left, top], [left + wide, top + tall], [left + wide, top], [left, top + tall]], "none", LANE, 2.5, shown(since, until))
            caption(f"The mask hides all of tile {j} from these queries: not even loaded.", since, until)
        elif what == "store O":
            place = matrices["O"](j)
            block.box(450, rows["values"], 24, 42, "#9BD3C0", "#009E73", 2, flies(since, place[0] - 450 - right, place[1] + 8 - rows["values"] - down))
            scene.box(*place, "#9BD3C0", "#009E73", 2, shown(since + 0.7, end))
            caption(f"O / l: {TILE} rows of the output are done, and stored once.", since, end)
    scene.box(x, y + BLOCK * cell, tiles * cell, cell, "none", LANE, 3)
    for row, words in (("scores", "S = Q K^T, then P = exp(S - m)"), ("softmax", "m: maximum so far, l: sum"), ("values", "O: rescaled, then O += P V")):
        block.text(514, rows[row] + 21, words, 15)  # over what lights up
        block.box(450, rows[row], 52, 42, "none", GREY)
    for words, at, row in (("m", 463, "softmax"), ("l", 489, "softmax"), ("O", 476, "values")):
        block.text(at, rows[row] + 21, words, 17, "middle", weight="bold")
    block.shape([[476, rows["softmax"]], [476, rows["softmax"] + 42]], "none", GREY)
    wide, bar = scene.size[0] - 48, scene.size[1] - 16
    scene.box(24, bar, wide, 3, PALE)
    scene.box(24, bar - 2, 16, 7, GREY, when=[(0, 1, 0, 0), (scene.seconds, 1, wide - 16, 0)])
    return scene


def drawn_memory(scene, matrices, x, y, cell, tiles):
    scene.text(24, 84, "global memory", 15, weight="bold")
    for name, words, left, top in (("K", "keys K", 112, 110), ("V", "values V", 112, 140), ("Q", "queries Q", 84, 164),
                                   ("O", "output O", x + tiles * cell + 24, 164)):
        scene.text(left, top, words, 14, "end" if name in "KV" else "middle")
        for i in range(tiles):
            scene.box(*matrices[name](i), "white", GREY)
    for i in range(tiles):
        for j in range(tiles):
            left, top = x + j * cell, y + i * cell
            scene.box(left, top, cell, cell, "white" if j <= i else PALE, GREY)
            if i == j:
                scene.shape([[left, top], [left + cell, top], [left + cell, top + cell]], PALE)
    scene.box(x + 1.2 * cell, y + 10, 2.7 * cell, 20, PALE)
    scene.text(x + 2.55 * cell, y + 20, "hidden by the mask", 14, "middle", DARK)
    scene.text(x + tiles * cell / 2, y + tiles * cell + 15, f"scores S = Q K^T, {SEQ} x {SEQ}", 14, "middle")


def drawn_block(scene, slots, filled):
    scene.box(428, 76, 356, 348, "#F5F5F5", LANE, 2)
    scene.text(440, 94, f"block {BLOCK}, on one multiprocessor", 15, weight="bold")
    scene.box(440, 108, 332, 92, "white", GREY)
    scene.text(450, 124, "shared memory", 14)
    for name, left in slots.items():
        scene.box(left, 138, 96, 52, "white", GREY)
        scene.text(left + 48, 164, name, 15, "middle", GREY, when=[(filled[name], 1, 0, 0), (filled[name] + 0.6, 0, 0, 0)])
    scene.box(440, 212, 332, 200, "white", GREY)
    scene.text(450, 231, f"registers of {WARPS} warps", 14)

def tile_walk(folder):
    return walk(folder)


def tile_walk_narrow(folder):
    return walk(folder, True)


PICTURES = loops_exchanged, who_owns_S, who_owns_O, causal_tiles, tile_walk, tile_walk_narrow
