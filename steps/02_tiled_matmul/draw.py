"""Draws the pictures of this chapter from a trace of its program; plots/draw.py runs it."""

import sheet
import traces
from sheet import cells, matrix

TILE, D, WARP_SHOWN, PADDED = 32, 64, 2, 33


def scores(folder):
    return traces.run(folder, "02_tiled_matmul", "--heads 1 --seq 64 --dim 64")[0]  # the launch of S = Q K^T


def who_reads_what(folder):
    mine = lambda **wanted: scores(folder).requests(warp=WARP_SHOWN, **wanted)
    a = mine(array="A_smem", kind="load", epoch=1)[1]  # of the second round of the loop over k
    fmas = a.elements(0)
    b = [r for r in mine(array="B_smem", kind="load", epoch=1) if r.elements(0)[0] // PADDED in [of % TILE for of in fmas]]
    all_of = lambda requests, cols, lane=None: sum((cells(r.elements(lane), cols) for r in requests), [])

    def touched(name, what, cols, below, requests, shown=TILE):
        return matrix(name, what, (TILE, shown), below, all_of(requests, cols), lane=[all_of(requests, cols, sheet.MARKED)])

    S = mine(array="workspace", kind="store")[:1]
    return sheet.matrix_page(
        ("touched now", f"sums of warp {WARP_SHOWN}", f"lane {sheet.MARKED}"),
        (f"Loading: warp {WARP_SHOWN} copies one row of each tile",
         touched("Q, global", "query x column", D, "lane x loads column x\nof a query row,", mine(array="Q")[:1]),
         touched("A_smem[y][x]", "query x column", TILE, "and stores it\nalong a row", mine(array="A_smem", kind="store")[:1]),
         touched("K, global", "key x column", D, "lane x loads column x\nof a key,", mine(array="K")[:1]),
         touched("B_smem[x][y]", "column x key, + 1", PADDED, "and stores it\ndown a column",
                 mine(array="B_smem", kind="store")[:1], PADDED)),
        (f"Multiplying: {1 + len(b)} requests of the warp for {len(fmas)} FMAs per thread",
         touched("A_smem", "query x column", TILE, f"1 request of {a.bytes} bytes,\none address for all lanes", [a]),
         touched("B_smem", "column x key", PADDED, f"{len(b)} requests of {b[0].bytes} bytes,\n32 neighbours each", b, PADDED),
         matrix("S: the block's tile", "query x key", (TILE, TILE), "one sum per lane, stored\nafter the last tile", (),
                all_of(S, D), [all_of(S, D, sheet.MARKED)])))


def banks(folder):
    offsets = scores(folder).requests(warp=0, array="B_smem", kind="store")[0].offsets
    words = [offset // 4 for offset in offsets]
    unpadded = [4 * (word // PADDED * TILE + word % PADDED) for word in words]
    return sheet.panels([("A warp stores a column of B_smem[32][32 + 1]", offsets, 4, None, "store"),
                         ("The same store to B_smem[32][32], without padding", unpadded, 4, None, "store")])


PICTURES = who_reads_what, banks
