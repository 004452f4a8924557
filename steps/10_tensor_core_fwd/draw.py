"""Draws the pictures of this chapter from traces of two of its rungs; plots/draw.py runs it."""

import sheet
import traces

PLAIN, SWIZZLED = "10c_ldmatrix", "10d_swizzle"


def banks(folder):
    """The first quadrant of the first ldmatrix, of Q: lanes 0 to 7 name its rows."""
    return {program: traces.run(folder, program, "--heads 1 --seq 64 --dim 64")[-1].requests(warp=0, kind="ldmatrix")[0].offsets[:8]
            for program in (PLAIN, SWIZZLED)}


def draw_banks(facts):
    quadrant = lambda program: facts[program] + [None] * 24
    return sheet.panels([("10c: a quadrant, 8 rows of 16 bytes, in a plain tile", quadrant(PLAIN), 16, None, "load"),
                         ("10d: the same quadrant in a swizzled tile", quadrant(SWIZZLED), 16, None, "load")])


PICTURES = {"banks.png": (banks, draw_banks)}
