#!/usr/bin/env python3
"""Draws the chapters' own pictures: who reads what, computed from the index formulas of the kernels. Those that can be
drawn from what the simulated device's meter counted are draw_meter.py's.

    draw_chapters.py            draws steps/*/NAME.png where the picture is missing or this script has changed
    draw_chapters.py --check    draws nothing; are the pictures up to date? (needs no matplotlib)

Each draw_NN_... belongs to the kernel file of chapter NN. Lengths are in tenths of an inch; y grows downwards.
"""

from fractions import Fraction
from pathlib import Path

import provenance

ROOT = Path(__file__).resolve().parent.parent
WARP = 32
SECTOR = 8  # floats in the 32 bytes that a memory request moves at least

# Colours by role, the same in all pictures: set by open_page() from style.py.
NOW = LANE = SECTOR_TINT = OWNED = None

LANE_SHOWN = 5  # the one thread whose elements are outlined
SMALL = 9.5


# ---- a page to draw on ----------------------------------------------------------------------------------------------


def open_page(height):
    """A figure with one pair of axes that has no ticks: 80 wide, `height` high."""
    global NOW, LANE, SECTOR_TINT, OWNED
    import style

    NOW, LANE, SECTOR_TINT, OWNED = style.PALETTE[0], style.PALETTE[3], "#BBDDF3", "#CDE9DF"
    fig, axes = style.figure(height=height / 10)
    fig.set_layout_engine("none")  # one unit is a tenth of an inch both ways
    axes.set_position((0, 0, 1, 1))
    axes.set_xlim(0, 80)
    axes.set_ylim(height, 0)
    axes.axis("off")
    return fig, axes


def close_page(fig, path, metadata):
    """Saves the picture, having made sure that no text is cut off."""
    import style

    page = fig.bbox
    for words in fig.axes[0].texts:
        extent = words.get_window_extent(fig.canvas.get_renderer())
        assert page.x0 <= extent.x0 and extent.x1 <= page.x1 and page.y0 <= extent.y0 and extent.y1 <= page.y1, words
    style.save(fig, path, metadata)


def box(axes, x, y, width, height, face="none", edge="none", line=0.8, order=1):
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=edge, linewidth=line, zorder=order))


def text(axes, x, y, words, size=SMALL, **more):
    more.setdefault("va", "center")
    axes.text(x, y, words, fontsize=size, linespacing=1.35, **more)


def arrow(axes, x0, y0, x1, y1, color=None):
    import style

    shape = {"arrowstyle": "-|>", "color": color or style.INK, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (x1, y1), (x0, y0), arrowprops=shape)


class Matrix:
    """A matrix drawn to scale; element (row, col) is one cell."""

    def __init__(self, axes, x, y, rows, cols, cell, face="white"):
        import style

        self.axes, self.x, self.y, self.rows, self.cols, self.cell = axes, x, y, rows, cols, cell
        self.face = face
        box(axes, x, y, cols * cell, rows * cell, face=face, edge=style.GREY, line=0.8)

    @property
    def right(self):
        return self.x + self.cols * self.cell

    @property
    def bottom(self):
        return self.y + self.rows * self.cell

    def fill(self, row, col, face, rows=1, cols=1, order=3):
        box(self.axes, self.x + col * self.cell, self.y + row * self.cell, cols * self.cell, rows * self.cell, face, order=order)

    def outline(self, row, col, rows, cols, color, line=1.6):
        x, y = self.x + col * self.cell, self.y + row * self.cell
        box(self.axes, x, y, cols * self.cell, rows * self.cell, edge=color, line=line, order=6)

    def grid(self):
        import style

        for row in range(1, self.rows):
            y = self.y + row * self.cell
            self.axes.plot([self.x, self.right], [y, y], color=style.PALE, linewidth=0.7, zorder=5)
        for col in range(1, self.cols):
            x = self.x + col * self.cell
            self.axes.plot([x, x], [self.y, self.bottom], color=style.PALE, linewidth=0.7, zorder=5)

    def request(self, elements):
        """What one request of a warp touches: the elements dark, their 32-byte sectors shaded. Returns both counts."""
        elements = set(elements)
        sectors = {(row * self.cols + col) // SECTOR for row, col in elements}
        for sector in sectors:
            row, col = divmod(sector * SECTOR, self.cols)
            self.fill(row, col, SECTOR_TINT, cols=SECTOR, order=3)
        for row, col in elements:
            self.fill(row, col, NOW, order=4)
        for sector in sectors:
            row, col = divmod(sector * SECTOR, self.cols)
            if col > 0 and sector - 1 in sectors:  # a gap between the two
                x, y = self.x + col * self.cell, self.y + row * self.cell
                self.axes.plot([x, x], [y, y + self.cell], color="white", linewidth=1.2, zorder=5)
        return len(elements), len(sectors)


def counted(counts):
    elements, sectors = counts
    return f"{elements} element{'s' if elements > 1 else ''}, {sectors} sector{'s' if sectors > 1 else ''}"


def key_to_colours(axes, y, entries, x=1.0):
    """The legend: a row of samples, each followed by its words. `entries`: (face, edge, words, width)."""
    for face, edge, words, width in entries:
        box(axes, x, y - 0.6, 1.6, 1.2, face=face, edge=edge, line=1.6 if face == "none" else 0.6)
        text(axes, x + 2.3, y, words)
        x += width


# ---- 02: tiles ---------------------- ------------------------------------------------------------------------------

TOY = 8  # stands for TILE, WARP and the number of banks, which are all 32


def tile(axes, x, y, name, rows_label, cols_label, cell=1.75, cols=TOY):
    text(axes, x + cols * cell / 2, y - 3.4, name, weight="bold", ha="center")
    text(axes, x + cols * cell / 2, y - 1.2, cols_label, ha="center")
    text(axes, x - 1.1, y + TOY * cell / 2, rows_label, ha="center", rotation=90)
    return Matrix(axes, x, y, TOY, cols, cell)


def draw_02_who_reads_what(path, metadata):
    import style

    y_shown = 2  # threadIdx.y of the warp that is drawn
    k_shown = 5
    lanes = range(TOY)
    fig, axes = open_page(52.5)

    text(axes, 1, 1.4, "Loading: a warp moves one row of each tile", size=12.5, weight="bold")
    top = 9.0
    Q = tile(axes, 3, top, "Q, global", "query", "c")
    A = tile(axes, 22.5, top, "A_smem[y][x]", "query", "c")
    K = tile(axes, 43, top, "K, global", "key", "c")
    B = tile(axes, 62.5, top, "B_smem[x][y]", "c", "key")
    for x in lanes:
        Q.fill(y_shown, x, NOW)
        A.fill(y_shown, x, NOW)
        K.fill(y_shown, x, NOW)
        B.fill(x, y_shown, NOW)
    for matrix, element in ((Q, (y_shown, LANE_SHOWN)), (A, (y_shown, LANE_SHOWN)), (K, (y_shown, LANE_SHOWN)), (B, (LANE_SHOWN, y_shown))):
        matrix.grid()
        matrix.outline(*element, 1, 1, LANE, line=2.2)
    arrow(axes, Q.right + 0.5, Q.y + (y_shown + 0.5) * Q.cell, A.x - 2.2, A.y + (y_shown + 0.5) * A.cell)
    arrow(axes, K.right + 0.5, K.y + (y_shown + 0.5) * K.cell, B.x - 2.2, B.y + (y_shown + 0.5) * B.cell)
    text(axes, 3, A.bottom + 1.6, f"warp y = {y_shown}: lane x reads Q[row][k0 + x],\nneighbours, and keeps the order", va="top")
    text(axes, 43, A.bottom + 1.6, f"warp y = {y_shown}: lane x reads K[key][k0 + x], neighbours,\nand writes them down a column of the tile", va="top")

    text(axes, 1, 30.6, f"Multiplying, iteration k = {k_shown}: a warp reads one element of A and one row of B", size=12.5, weight="bold")
    top = 37.4
    A = tile(axes, 3, top, "A_smem[y][k]", "query", "c (k)", cell=1.5)
    B = tile(axes, 22.5, top, "B_smem[k][x]", "c (k)", "key", cell=1.5)
    S = tile(axes, 43, top, "C = S, global", "query", "key", cell=1.5)
    A.fill(y_shown, k_shown, NOW)
    for x in lanes:
        B.fill(k_shown, x, NOW)
        S.fill(y_shown, x, OWNED)
    for matrix in (A, B, S):
        matrix.grid()
    A.outline(y_shown, 0, 1, TOY, LANE, line=2.0)
    B.outline(0, LANE_SHOWN, TOY, 1, LANE, line=2.0)
    S.outline(y_shown, LANE_SHOWN, 1, 1, LANE, line=2.2)
    text(axes, (A.right + B.x) / 2 - 0.9, A.y + TOY * A.cell / 2, "×", size=14, ha="center")
    text(axes, (B.right + S.x) / 2 - 0.9, A.y + TOY * A.cell / 2, "=", size=14, ha="center")
    x = S.right + 2.5
    entries = [
        (NOW, NOW, "what warp y = 2 touches\nin this step"),
        (OWNED, OWNED, "the sums it owns, one a lane,\nwritten after the last tile"),
        ("none", LANE, f"thread x = {LANE_SHOWN}, y = {y_shown}"),
    ]
    for row, (face, edge, words) in enumerate(entries):
        y = S.y + 1.0 + 4.6 * row
        box(axes, x, y - 0.6, 1.6, 1.2, face=face, edge=edge, line=1.8 if face == "none" else 0.6)
        text(axes, x + 2.4, y, words)
    text(axes, 1, 51.2, "Drawn with tiles of 8 x 8 and warps of 8 lanes; the kernel's are 32 x 32 and 32.", color=style.INK)
    close_page(fig, path, metadata)


# ---- 03: a thread a row ------------------------------------------------------------------------------------------------


def draw_03_who_reads_what(path, metadata):
    import style

    d, keys = 64, 32
    key, c = 12, 20  # the moment that is drawn
    cell = 0.5
    fig, axes = open_page(55.5)

    def block(x, y, name, words, rows, face="white"):
        text(axes, x, y - 1.4, name, weight="bold")
        text(axes, x + 2.4, y - 1.4, words)
        return Matrix(axes, x, y, rows, d, cell, face)

    left, right, top, below = 1.0, 46.0, 6.4, 30.2
    text(axes, left, 1.4, "Registers: row i belongs to lane i", size=12.5, weight="bold")
    text(axes, right, 1.4, "Global memory: one row for all", size=12.5, weight="bold")
    Q = block(left, top, "Q", "32 queries, Q_reg[64] a lane", WARP, OWNED)
    O = block(left, below, "O", "so far, O_reg[64] a lane", WARP, OWNED)
    m = Matrix(axes, Q.right + 2.2, below, WARP, 2, cell, OWNED)
    l = Matrix(axes, Q.right + 5.2, below, WARP, 2, cell, OWNED)
    text(axes, m.x + cell, below - 1.4, "m", weight="bold", ha="center")
    text(axes, l.x + cell, below - 1.4, "l", weight="bold", ha="center")
    K = block(right, top, "K", f"key {key}, element c = {c}", keys)
    V = block(right, below, "V", f"key {key}, element c = {c}", keys)
    # K[key * d + c] and V[key * d + c]: no index of the thread in it.
    k_counts = K.request((key, c) for lane in range(WARP))
    v_counts = V.request((key, c) for lane in range(WARP))
    for matrix in (K, V):
        matrix.fill(0, 0, style.PALE, rows=key, cols=d, order=2)
        matrix.outline(key, 0, 1, d, style.INK, line=1.0)
    for matrix in (Q, O):
        matrix.outline(LANE_SHOWN, 0, 1, d, LANE)
        matrix.fill(0, c, NOW, rows=WARP)
    for matrix in (m, l):
        matrix.outline(LANE_SHOWN, 0, 1, 2, LANE)
    arrow(axes, K.x - 0.6, K.y + (key + 0.5) * cell, Q.right + 0.8, K.y + (key + 0.5) * cell, NOW)
    arrow(axes, V.x - 0.6, V.y + (key + 0.5) * cell, l.right + 0.8, V.y + (key + 0.5) * cell, NOW)
    text(axes, left, Q.bottom + 1.3, "first: s += Q_reg[c] * K[c] for all c")
    text(axes, right, K.bottom + 1.3, "read K[c]: " + counted(k_counts) + ", 32 multiply-adds")
    text(axes, left, O.bottom + 1.3, "then: O_reg[c] * rescale + weight * V[c] for all c")
    text(axes, right, V.bottom + 1.3, "read V[c]: " + counted(v_counts) + ", 32 multiply-adds")
    key_to_colours(
        axes,
        52.6,
        [
            (NOW, NOW, "touched now", 14.5),
            (OWNED, style.GREY, "in registers", 14.5),
            (style.PALE, style.GREY, "keys done", 13),
            (SECTOR_TINT, SECTOR_TINT, "rest of the sector", 18),
            ("none", LANE, f"lane {LANE_SHOWN}", 10),
        ],
    )
    close_page(fig, path, metadata)


# Query 3 of the 4 x 4 example in docs/math.md; scale = ln 2, so exp(S) = 2^(Q K^T).
QUERY_3 = (2, 1, 1, 0)
KEYS = ((0, 0, 1, 0), (0, 2, 0, 0), (-1, 0, 2, 1), (1, 1, 0, 0))
VALUES = ((1, 0, 2, 0), (0, 3, 0, 1), (4, 0, 0, -2), (0, 1, -1, 5))


def walk_over_keys():
    """Eq. 10 to 12, key by key, in exact fractions. Yields what is known after each key."""
    scores, m, l, o = [], None, Fraction(0), (Fraction(0),) * 4
    for k, v in zip(KEYS, VALUES):
        s = sum(a * b for a, b in zip(QUERY_3, k))
        m_new = s if m is None else max(m, s)
        rescale = Fraction(0) if m is None else Fraction(2) ** (m - m_new)
        weight = Fraction(2) ** (s - m_new)
        before = [Fraction(2) ** (score - m) for score in scores] if scores else []
        l = l * rescale + weight
        o = tuple(a * rescale + weight * b for a, b in zip(o, v))
        m = m_new
        scores.append(s)
        after = [Fraction(2) ** (score - m) for score in scores]
        yield {"s": s, "m": m, "rescale": rescale, "weight": weight, "l": l, "o": o, "before": before, "after": after}


def draw_03_key_by_key(path, metadata):
    import style

    steps = list(walk_over_keys())
    last = steps[-1]
    assert sum(last["after"]) == last["l"] == Fraction(15, 8)
    fig, axes = open_page(46)
    left, width, bar, tall = 14.0, 16.6, 2.5, 11.0
    foot = 19.0
    text(axes, 1, 1.4, "Query 3 of the 4 x 4 example: what its thread knows after each key", size=12.5, weight="bold")
    text(axes, 1, foot - tall / 2, "exp(S - m)\nof the keys\nseen so far")
    rows = [("s / ln 2", "s"), ("m / ln 2", "m"), ("rescale", "rescale"), ("weight", "weight"), ("l", "l")]
    line = lambda row: foot + 5.0 + 2.9 * row
    for row, (name, _) in enumerate(rows):
        text(axes, 1, line(row), name, size=11, weight="bold")
    text(axes, 1, line(5), "O, undivided", size=11, weight="bold")

    for index, step in enumerate(steps):
        x = left + index * width
        text(axes, x, 4.6, f"after key {index}", size=11, weight="bold")
        axes.plot([x, x + 4 * (bar + 0.6) - 0.6], [foot, foot], color=style.INK, linewidth=1.0)
        for j, value in enumerate(step["after"]):
            height = float(value) * tall
            at, label = x + j * (bar + 0.6), height
            if j < index and step["before"][j] != value:
                old = float(step["before"][j]) * tall
                box(axes, at, foot - old, bar, old, face="white", edge=style.GREY, line=1.0, order=1)
                if old - height < 2:
                    label = old  # between the two heights there is no room for it
            box(axes, at, foot - height, bar, height, face=NOW if j == index else SECTOR_TINT, edge=NOW, line=0.8, order=2)
            text(axes, at + bar / 2, foot - label - 0.9, str(value), ha="center", zorder=5)
            text(axes, at + bar / 2, foot + 1.3, str(j), ha="center", color=style.GREY)
        for row, (_, field) in enumerate(rows):
            changed = field == "rescale" and step["rescale"] not in (0, 1)
            text(axes, x, line(row), str(step[field]), size=11, color=LANE if changed else style.INK, weight="bold" if changed else "normal")
        text(axes, x, line(5), "(" + ", ".join(str(value) for value in step["o"]) + ")", size=10)
    key_to_colours(
        axes,
        line(6) + 0.6,
        [
            (NOW, NOW, "the new key: its height is weight", 26),
            (SECTOR_TINT, NOW, "keys before", 13.5),
            ("white", style.GREY, "their height before the rescale", 24),
        ],
    )
    result = ", ".join(str(value / last["l"]) for value in last["o"])
    text(axes, 1, line(7) + 0.9, f"At the end: O = ({', '.join(str(v) for v in last['o'])}) / l = ({result})", size=11)
    close_page(fig, path, metadata)


PICTURES = {
    "02_tiled_matmul/who_reads_what.png": draw_02_who_reads_what,
    "03_online_softmax/who_reads_what.png": draw_03_who_reads_what,
    "03_online_softmax/key_by_key.png": draw_03_key_by_key,
}

if __name__ == "__main__":
    inputs = [Path(__file__), provenance.STYLE]
    provenance.main([provenance.Picture(ROOT / "steps" / name, inputs, draw) for name, draw in PICTURES.items()])
