"""The sheet on which chapters draw: matrices to scale, requests lane by lane, banks, a key to the colours.

One unit is a tenth of an inch both ways; y grows downwards.
"""

import functools
from collections import defaultdict, namedtuple

import style
import traces
from traces import WARP, WORD

NOW, LANE, TINT, OWNED, SAND = style.PALETTE[0], style.PALETTE[3], "#BBDDF3", "#CDE9DF", "#F6DDB0"
INK, GREY, PALE = style.INK, style.GREY, style.PALE
MARKED = 5  # the lane whose part is picked out
SECTOR, BANKS, LINE_WORDS = 32, 32, 32  # bytes; banks; words in a 128-byte line
SMALLEST = 0.8  # side of a single element's mark: 9 pixels on a page
VERBS = {"load": "take them", "store": "store them", "atomic": "add to them", "ldmatrix": "give their addresses"}


def mark(put):
    """A method of Page that is only noted down at first; savefig() carries it out."""
    @functools.wraps(put)
    def note(page, *arguments, **more):
        if page.axes:
            return put(page, *arguments, **more)
        page.marks.append((put.__name__, arguments, more))
    return note


class Page:
    """80 wide, `height` high, with a title, without ticks. Its marks are plain values, which say without matplotlib whether
    a picture has changed. `depends`: what else it must be drawn again for."""

    def __init__(self, height, title="", depends=""):
        self.height, self.marks, self.axes = height, [("height", height, depends)], None
        self.title(1.6, title)

    @mark
    def text(self, x, y, words, size=9.5, **more):
        return self.axes.text(x, y, words, fontsize=size, linespacing=1.35, **{"va": "center", "zorder": 9} | more)

    def title(self, y, words, x=1):
        self.text(x, y, words, size=12.5, weight="bold")

    @mark
    def box(self, x, y, width, height, face="none", edge="none", line=0.8, order=1, words="", **more):
        """A rectangle, with words in its middle."""
        from matplotlib.patches import Rectangle

        self.axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=edge, zorder=order,
                                      linewidth=line if edge != "none" else 0, antialiased=edge != "none"))
        if words:
            more.setdefault("color", "white" if face in (NOW, LANE, INK) else INK)
            self.text(x + width / 2, y + height / 2, words, ha="center", **more)

    @mark
    def line(self, xs, ys, color=GREY, width=0.8, order=5, **more):
        self.axes.plot(xs, ys, color=color, linewidth=width, zorder=order, **more)

    @mark
    def arrow(self, start, end, color=INK):
        shape = {"arrowstyle": "-|>", "color": color, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
        self.axes.annotate("", end, start, arrowprops=shape, zorder=8)

    @mark
    def key(self, y, *entries):
        """What the colours mean, in one row: (face, words), or (None, colour, words) for an outline."""
        x = 1.0
        for *colours, words in entries:
            outline = colours[0] is None
            self.box(x, y - 0.6, 1.6, 1.2, "none" if outline else colours[0], colours[1] if outline else GREY,
                     line=1.6 if outline else 0.6)
            extent = self.text(x + 2.3, y, words).get_window_extent(self.fig.canvas.get_renderer())
            x += 5.6 + extent.width / self.fig.dpi * 10

    def matrix(self, x, y, rows, cols, cell, name="", what="", below=""):
        self.text(x, y - (3.3 if what else 1.4), name, weight="bold")
        self.text(x, y - 1.3, what)
        self.text(x, y + rows * cell + 0.9, below, va="top")
        return Matrix(self, x, y, rows, cols, cell)

    def savefig(self, path, **options):
        """As a Figure's. Makes sure first that no words are cut off, and none lie on others."""
        self.fig, self.axes = style.figure(height=self.height / 10)
        self.fig.set_layout_engine("none")
        self.axes.set(position=(0, 0, 1, 1), xlim=(0, 80), ylim=(self.height, 0))
        self.axes.axis("off")
        for name, arguments, more in self.marks[1:]:
            getattr(self, name)(*arguments, **more)
        page, boxes = self.fig.bbox, []
        for words in (words for words in self.axes.texts if words.get_text()):
            a = words.get_window_extent(self.fig.canvas.get_renderer())
            inside = page.x0 <= a.x0 and a.x1 <= page.x1 and page.y0 <= a.y0 and a.y1 <= page.y1
            assert inside, f"cut off: {words.get_text()!r}"
            for other, b in boxes:
                assert min(a.x1, b.x1) - max(a.x0, b.x0) <= 1 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 4, \
                    f"{words.get_text()!r} lies on {other.get_text()!r}"
            boxes.append((words, a))
        self.fig.savefig(path, **options)


class Matrix:
    """A matrix drawn to scale; element (row, col) is one cell."""

    def __init__(self, page, x, y, rows, cols, cell):
        self.page, self.x, self.y, self.rows, self.cols, self.cell = page, x, y, rows, cols, cell
        self.right, self.bottom = x + cols * cell, y + rows * cell
        page.box(x, y, cols * cell, rows * cell, "white", GREY)
        page.box(x, y, cols * cell, rows * cell, edge=GREY, order=6)

    def at(self, row, col):
        """The middle of an element."""
        return self.x + (col + 0.5) * self.cell, self.y + (row + 0.5) * self.cell

    def fill(self, elements, face, order=3):
        """Colour elements (row, col), those that fill a rectangle at once."""
        runs = traces.grouped(set(map(tuple, elements)), lambda a, b: b == (a[0], a[1] + 1))
        runs = [(run[0][1], len(run), run[0][0]) for run in runs]
        for same in traces.grouped(runs, lambda a, b: b == (*a[:2], a[2] + 1)):
            self.rectangle(same[0][2], same[0][0], len(same), same[0][1], "none", 0, face, order)

    def rectangle(self, row, col, rows, cols, color=LANE, line=1.6, face="none", order=7):
        more = max(0, SMALLEST - self.cell) if rows == cols == 1 else 0
        self.page.box(self.x + col * self.cell - more / 2, self.y + row * self.cell - more / 2, cols * self.cell + more,
                      rows * self.cell + more, face, color, line, order)

    def bounds(self, elements, **more):
        """A frame around all of these elements."""
        rows, cols = [row for row, _ in elements], [col for _, col in elements]
        self.rectangle(min(rows), min(cols), max(rows) - min(rows) + 1, max(cols) - min(cols) + 1, **more)

    def lines(self, rows=None, cols=None, color=GREY, width=0.8):
        """Lines between groups of so many rows or columns."""
        for row in range(rows or self.rows, self.rows, rows or self.rows):
            self.page.line([self.x, self.right], [self.y + row * self.cell] * 2, color, width)
        for col in range(cols or self.cols, self.cols, cols or self.cols):
            self.page.line([self.x + col * self.cell] * 2, [self.y, self.bottom], color, width)

    def numbers(self, words, size=10, white=()):
        """{(row, col): words} into the cells."""
        for (row, col), text in words.items():
            x, y = self.at(row, col)
            self.page.text(x, y, str(text), size=size, ha="center", color="white" if (row, col) in white else INK)


# One matrix of a matrix_page(): the cells that are touched now and those that are owned, a frame around each group of
# one lane's cells, a line after every so many rows.
matrix = namedtuple("matrix", "name what shape below now owned lane every", defaults=((), (), (), None))


def matrix_page(key, *parts):
    """key: words for NOW, OWNED and the marked lane's frames; each part: a title and matrices side by side."""
    cell = min((74 - 3.6 * len(of)) / sum(one.shape[1] for one in of) for _, *of in parts)
    heights = [7.6 + max(one.shape[0] * cell + 1.9 * (1 + one.below.count("\n")) for one in of) for _, *of in parts]
    page, y = Page(2.9 + sum(heights) + 1.9 * len(heights)), 1.6
    for (title, *row), height in zip(parts, heights):
        page.title(y, title)
        x = 3.0
        for one in row:
            M = page.matrix(x, y + 6.6, *one.shape, cell, one.name, one.what, one.below)
            M.fill(one.owned, OWNED, order=2)
            M.fill(one.now, NOW)
            for group in one.lane:
                M.bounds(group, line=1.4)
            M.lines(rows=one.every)
            x = M.right + 3.6
        y += height + 1.9
    page.key(y - 0.6, *zip((NOW, OWNED), key), (None, LANE, key[2]))
    return page


def cells(elements, cols):
    """[row, col] of elements that are numbered row by row."""
    return [list(at) for at in sorted({divmod(element, cols) for element in elements})]


def product(rows, cols):
    return [[row, col] for row in rows for col in cols]


def visits(page, x, y, cell, order, now, kept_rows):
    """The tiles of S with the numbers of their visits, {(query tile, key tile): number}, beside strips of what they need:
    either the rows' or the columns' tiles stay in the block, the others travel. `now`: the visit that is drawn."""
    tiles = max(i for i, _ in order) + 1
    grid = Matrix(page, x + 15.6, y, tiles, tiles, cell)
    done = [at for at, number in order.items() if number < order[now] and (not kept_rows or at[0] == now[0])]
    grid.fill(done, PALE, order=2)
    grid.fill([now], NOW)
    grid.lines(1, 1)
    grid.numbers(order, 11, [now])
    names = [("Q", 0.0, 5.2), ("O", 5.8, 5.2), ("m", 11.6, 1.2), ("l", 13.4, 1.2)]
    for name, at, wide in names:
        page.text(x + at + wide / 2, y - 1.3, name, weight="bold", ha="center")
    for t in range(tiles):
        for name, at, wide in names:
            page.box(x + at, y + t * cell, wide, cell, (OWNED if kept_rows else TINT) if t == now[0] else "white", GREY)
        for row, name in enumerate("KV"):
            page.box(grid.x + t * cell, y - 8.8 + 3.1 * row, cell, 2.4,
                     (TINT if kept_rows else OWNED) if t == now[1] else "white", GREY)
        ends = [(t + 0.36, -0.35), (t + 0.36, tiles - 0.65)]
        page.arrow(*(grid.at(*(end if kept_rows else end[::-1])) for end in ends), GREY)
    for row, name in enumerate("KV"):
        page.text(grid.x - 0.9, y - 7.6 + 3.1 * row, name, weight="bold", ha="right")
    return grid


# ---- requests of a warp ---------------------------------------------------------------------------------------------


def pairs_agree(offsets, bit):
    """Does each lane read the address of the lane whose number differs in `bit`?"""
    return all(None in (offset, offsets[lane ^ bit]) or offsets[lane ^ bit] == offset for lane, offset in enumerate(offsets))


def wavefronts(offsets, size, is_load=True):
    """Who is served when, by the rules of the meter: a list of {bank: lanes}. Within a group of lanes, the words of a bank
    take turns in lane order."""
    group = WARP if size <= 4 else 16 if size == 8 else 8
    if group < WARP and is_load and (pairs_agree(offsets, 1) or pairs_agree(offsets, 2)):
        group *= 2
    turns = []
    for first in range(0, WARP, group):
        turns_of_bank, mine = defaultdict(dict), []
        for lane in range(first, first + group):
            for k in range(0 if offsets[lane] is None else size // WORD):
                word = offsets[lane] // WORD + k
                turn = turns_of_bank[word % BANKS].setdefault(word, len(turns_of_bank[word % BANKS]))
                mine += [{}] if turn == len(mine) else []
                mine[turn].setdefault(word % BANKS, []).append(lane)
        turns += mine
    return turns


def lines_of(offsets, size, array):
    """Global memory: what is moved, and per 128-byte line its name, its words with their lanes, its sectors."""
    pieces = defaultdict(list)
    for lane, offset in enumerate(offsets):
        if offset is not None:
            pieces[offset // WORD].append(lane)
    sectors = {(word * WORD + k) // SECTOR for word in pieces for k in range(0, size, WORD)}
    rows = [(f"{array}[{LINE_WORDS * line}]", [(word % LINE_WORDS, max(1, size // WORD), lanes) for word, lanes in pieces.items()
                                               if word // LINE_WORDS == line], [n % 4 for n in sectors if n // 4 == line])
            for line in sorted({word // LINE_WORDS for word in pieces})]
    asked = size * sum(map(len, pieces.values()))
    return f"{asked} bytes for the lanes, {len(sectors)} sector{'s' * (len(sectors) > 1)} of 32 bytes", rows


def turns_of(offsets, size, kind):
    """Shared memory: the cost, and per wavefront its name and the banks with their lanes. Of many wavefronts that take the
    same banks, the first ones and the last."""
    turns, rows = wavefronts(offsets, size, kind == "load"), []
    for number, turn in enumerate(turns, start=1):  # neighbouring banks that serve the same lanes are one
        runs = traces.grouped(turn.items(), lambda a, b: b == (a[0] + 1, a[1]) and b[0] % 4)
        rows.append((f"wavefront {number}", [(run[0][0], len(run), run[0][1]) for run in runs], []))
    if len(rows) > 8 and all(turn.keys() == turns[0].keys() for turn in turns):
        rows[MARKED + 1 : -1] = [("\u2026", [], [])]
    lanes, cost = sum(offset is not None for offset in offsets), f"{len(turns)} wavefront{'s' * (len(turns) > 1)}"
    return f"{lanes} {'addresses of' if kind == 'ldmatrix' else 'lanes,'} {size} bytes{'' if kind == 'ldmatrix' else ' each'}: {cost}", rows


def panels(requests):
    """A page of requests one below the other: (title, offsets, bytes, array or None for shared memory, kind)."""
    left, wide, tall, pitch = 12.5, 2.05, 1.2, 1.32  # where cells begin, a word's cell, and from row to row
    drawn = [(title, array, *(lines_of(offsets, size, array) if array else turns_of(offsets, size, kind)))
             for title, offsets, size, array, kind in requests]
    page, y, marked, wasted = Page(3.4 + sum(6.2 + 1.3 * (not array) + pitch * len(rows) for _, array, _, rows in drawn)), 1.6, [], []
    for title, array, detail, rows in drawn:
        page.text(1, y, title, size=11.5, weight="bold")
        page.text(1, y + 2.1, detail)
        if not array:
            page.text(left - 0.6, y + 4.4, "bank", size=8, ha="right", color=GREY)
            for bank in range(BANKS):
                page.text(left + (bank + 0.5) * wide, y + 4.4, str(bank), size=7.5, ha="center", color=GREY)
        y += 4.0 if array else 5.3
        for name, words, sectors in rows:
            page.text(left - 0.6, y + tall / 2, name, size=8, ha="right")
            for sector in range(4 if words else 0):
                page.box(left + sector * 8 * wide, y, 8 * wide, tall, TINT if sector in sectors else "white", PALE, 0.6, order=2)
            wasted.append(8 * len(sectors) > sum(count for _, count, _ in words))
            for column, count, lanes in words:  # lanes for which there is no room stand to the right of the word
                x, label, one = left + column * wide, traces.runs(lanes), MARKED in lanes and len(lanes) < WARP // 2
                marked.append(one)
                fits = len(label) <= 2.5 * count
                page.box(x, y, count * wide, tall, LANE if one else NOW, "white", 0.7, 4, label if fits else "", size=7.5)
                page.text(x + count * wide + 0.4, y + tall / 2, "" if fits else f"lanes {label}", size=8)
            y += pitch
        y += 2.2
    kinds = {kind: VERBS.get(kind, VERBS["load"]) for *_, kind in requests}
    page.key(y - 0.2, (NOW, f"words, with the lanes that {' or '.join(dict.fromkeys(kinds.values()))}"),
             *[(LANE, f"lane {MARKED}" + "'s address" * ("ldmatrix" in kinds))] * any(marked),
             *[(TINT, "rest of a 32-byte sector; each row drawn is 128 bytes")] * any(wasted))
    return page
