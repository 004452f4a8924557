"""What all pictures share: colours that colour-blind readers can tell apart, fonts, size, and how a picture is saved.

A picture is 8 inches wide; pages show it about 800 pixels wide, where its 11-point text is as large as the page's.
"""

import re

WIDTH = 8.0
HEIGHT = 4.6
DPI = 200

# Okabe and Ito's palette without its yellow, which is too pale on white, then colours of Paul Tol's: one per step.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#882255", "#999933",
           "#332288", "#44AA99", "#661100", "#AA4499")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h", "*", "<", ">", "p", "d")
INK = "#222222"  # text
GREY = "#8A8A8A"  # what is compared with
PALE = "#E4E4E4"  # grids, empty cells


def step_number(step):
    """2 of "02_tiled_matmul", 6 of "06c_float4": it decides the looks, so that a step looks the same everywhere."""
    digits = re.match(r"\d+", step)
    return int(digits.group()) if digits else 1


def color_of(step):
    return PALETTE[(step_number(step) - 1) % len(PALETTE)]


def marker_of(step):
    return MARKERS[(step_number(step) - 1) % len(MARKERS)]


def figure(height=HEIGHT):
    """A figure with one pair of axes and nothing on it that does not inform. matplotlib is loaded here, not before."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    plt.rcParams.update({name: INK for name in ink} | {"font.family": "DejaVu Sans", "font.size": 11, "grid.color": PALE,
        "axes.titlesize": 12.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 12,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True})  # the font comes with matplotlib
    return plt.subplots(figsize=(WIDTH, height), dpi=DPI, layout="constrained")


def save(fig, path, metadata):
    import matplotlib.pyplot as plt

    fig.savefig(path, format="png", dpi=DPI, metadata=metadata)
    plt.close(fig)
