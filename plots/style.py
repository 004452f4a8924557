"""What all pictures share: colours that colour-blind readers can tell apart, fonts, size.

A picture is 8 inches wide; pages show it about 800 pixels wide, where its 11-point text is as large as the page's.
"""

import re

# Okabe and Ito's palette without its yellow, which is too pale on white, then colours of Paul Tol's: one per step.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#882255", "#999933",
           "#332288", "#44AA99", "#661100", "#AA4499")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h", "*", "p", "d", "8", "H")
INK = "#222222"  # text
GREY = "#8A8A8A"  # what is compared with
PALE = "#E4E4E4"  # grids, empty cells


def looks(step):
    """Of 02_tiled_matmul, of 06c_float4: by the number, so that a step looks the same everywhere."""
    number = int(re.match(r"\d*", step)[0] or 1) - 1
    return {"color": PALETTE[number % len(PALETTE)], "marker": MARKERS[number % len(MARKERS)]}


def figure(height=4.6):
    """A figure with one pair of axes and nothing on it that does not inform. matplotlib is loaded here, not before."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    matplotlib.rcParams.update({name: INK for name in ink} | {"font.family": "DejaVu Sans", "font.size": 11, "grid.color": PALE,
        "axes.titlesize": 12.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 12,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True})  # the font comes with matplotlib
    fig = Figure(figsize=(8.0, height), dpi=200, layout="constrained")
    FigureCanvasAgg(fig)
    return fig, fig.subplots()
