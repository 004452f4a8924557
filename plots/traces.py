"""What a program did on the simulated device, read from its --trace (common/simt/trace/trace.c says what that holds). Standard
library only.

    launch = traces.run(folder, "06_vectorized", "--heads 1 --seq 128 --dim 64")[-1]
    for request in launch.requests(): ...

A request's `holds` says what lies in the shared memory that it reads or writes: copies, and loads that are followed by a
store, are followed from global memory. So the pictures know Q's rows in shared memory without knowing a kernel's strides.
"""

import functools
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

WORD, WARP = 4, 32
COMPUTED = "computed"  # what holds() says of a word that was stored and not copied


@dataclass
class Request:
    warp: int
    epoch: int  # barriers of the block before it
    kind: str  # load, store, atomic, copy; of a barrier (warp -1) or a warp collective, which has no more than these, its name
    space: str = ""
    bytes: int = 0  # of one lane
    array: str = ""
    offsets: list = ()  # of the 32 lanes, in bytes from the array's start; None: a lane that takes no part
    to: list = ()  # of a copy: where the bytes go, from the start of shared memory
    place: str = ""  # file:line
    holds: list = ()  # of shared memory and of copies: per lane (array, element) of its first word
    moves: list = ()  # of a copy by the TMA, a product, or that with which copies arrive: (word of shared memory, (array, element))
    lane: int = None  # of what one thread does
    under: int = 0  # of a copy by the TMA: the place of its mbarrier; of a wait for groups of copies: so many may be under way
    sync: list = ()  # space, object, phase and bytes of what is no request and waits, arrives or is waited for

    def elements(self, lane=None):
        """The 4-byte elements of the array that a lane, or all of them, take, in lane order."""
        offsets = self.offsets if lane is None else [self.offsets[lane]]
        return [at // WORD + k for at in offsets if at is not None for k in range(max(1, self.bytes // WORD))]

    def held(self, lane=None):
        """The same, of what shared memory holds there: elements of the array that the bytes came from."""
        holds = self.holds if lane is None else [self.holds[lane]]
        return [held[1] + k for held in holds if held is not None for k in range(self.bytes // WORD)]

    def source(self):
        """The array whose numbers a shared request reads or writes."""
        return next((held[0] for held in self.holds if held is not None), None)


class Launch:
    def __init__(self, fields):
        self.fields, self.kernel, self.block, self.dynamic_bytes = fields, fields["kernel"], fields["block"], fields["dynamic_shared_bytes"]
        self.warps = -(-self.block[0] * self.block[1] * self.block[2] // WARP)
        self.blocks = {tuple(block["index"]): _events(fields, block["events"]) for block in fields["blocks"]}

    def events(self, block=None):
        """Of a block, the first that was traced unless it is named."""
        return self.blocks[block or next(iter(self.blocks))]

    def requests(self, block=None, source=None, **wanted):
        """The requests of a block whose fields are as wanted; `source` is of what shared memory holds."""
        return [event for event in self.events(block) if event.space and source in (None, event.source())
                and all(getattr(event, name) == value for name, value in wanted.items())]


def _events(fields, rows):
    starts = {array["name"]: array["offset"] for array in fields["shared_arrays"]}
    found, content, previous, under_way, groups = [], {}, {}, {}, {}
    for number, warp, epoch, *rest in rows:
        site = fields["sites"][number]
        event = Request(warp, epoch, site["kind"])
        found.append(event)
        lanes = [each if isinstance(each, list) else [each] * WARP for each in rest[1:]]
        if rest and site["space"] == "copies":
            event.kind += " of groups"
            _follow_groups(event, lanes[0], groups)
        elif rest and site["space"] not in ("global", "shared"):
            _follow_others(event, site["space"], rest, fields["arrays"], content, under_way)
        elif rest:
            event.space, event.bytes, event.array = site["space"], site["bytes"], fields["arrays"][rest[0]]
            event.offsets, event.to, event.place = lanes[0], lanes[-1], f'{site["file"]}:{site["line"]}'
            _follow(event, previous.get(warp), content, starts.get(event.array, 0))
            if event.kind == "copy":
                _issue(event, groups)
            previous[warp] = event
    return found


def _follow(request, previous, content, start):
    """Keep `content`, {byte of shared memory: (array, element)}, and say in request.holds what the lanes find there."""
    word = lambda array, offset: None if offset is None else (array, offset // WORD)
    if request.kind == "copy":
        request.holds, places = [word(request.array, offset) for offset in request.offsets], request.to
    elif request.space == "shared":
        places = [None if offset is None else start + offset for offset in request.offsets]
        if request.kind in ("load", "ldmatrix"):
            request.holds = [content.get(place) for place in places]
            return
        request.holds = [word(COMPUTED, place) for place in places]
        if previous and previous.kind == "load" and previous.space == "global" and previous.bytes >= request.bytes:  # by registers
            request.holds = [None if place is None else word(previous.array, offset) or ("zero", 0)
                             for place, offset in zip(places, previous.offsets)]
        elif previous and previous.kind == "load" and previous.offsets == request.offsets:
            request.holds = previous.holds  # changed in place
    else:
        return
    for place, held in zip(places, request.holds):
        for k in range(max(1, request.bytes // WORD) if held is not None else 0):
            content[place + WORD * k] = held[0], held[1] + k * (held[0] != "zero")


def _issue(copy, groups):
    for lane, (place, held) in enumerate(zip(copy.to, copy.holds)):
        if held is not None:
            closed, under_way = groups.setdefault((copy.warp, lane), [0, []])
            under_way += [(closed, (place // WORD + k, (held[0], held[1] + k))) for k in range(copy.bytes // WORD)]


def _follow_groups(event, lanes, groups):
    """Of a "commit of groups" or a "wait of groups" by these lanes: which of the copies by cp.async have arrived behind it, event.moves.
    Of `groups`, by thread: how many are closed, and what is under way, [(group, move), ...]."""
    event.moves, event.under = [], max(left for left in lanes if left is not None)
    for lane, left in enumerate(lanes):
        mine = groups.setdefault((event.warp, lane), [0, []])
        if left is not None and event.kind.startswith("commit"):
            mine[0] += 1
        elif left is not None:
            event.moves += [move for group, move in mine[1] if group < mine[0] - left]
            mine[1] = [(group, move) for group, move in mine[1] if group >= mine[0] - left]


def _follow_others(event, space, rest, arrays, content, under_way):
    """The same of copies by the TMA, which land with a phase of their barrier, of products and of what is waited for."""
    if len(rest) == 1:
        *event.sync, event.lane = [space, *rest[0]]
        if event.kind == "phase" and space == "mbarrier":
            event.moves = under_way.pop(rest[0][0], [])
            content.update((WORD * place, held) for place, held in event.moves)
        return
    array, flat, event.under, lane = rest
    event.lane = lane if space == "bulk" else None
    event.array = arrays[array] if array >= 0 else ""
    event.moves = [((at + k) // WORD, content.get(at + k) if array < 0 else ("zero", 0) if offset is None else (event.array, (offset + k) // WORD))
                   for at, size, offset in zip(flat[::3], flat[1::3], flat[2::3]) for k in range(0, size, WORD)]
    if event.kind == "bulk load":
        under_way.setdefault(event.under, []).extend(event.moves)


@functools.lru_cache(maxsize=None)
def run(folder, program, options, blocks="0"):
    """The launches of a run of build/sim/bin/PROGRAM, in order."""
    path = Path(folder) / program
    if not path.exists():
        sys.exit(f"{path} is not there: build it first (cmake --preset sim && cmake --build --preset sim)")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [str(path), *options.split(), "--no-check", "--trace", file.name, "--trace-blocks", blocks]
        done = subprocess.run(words, capture_output=True, text=True)
        return sys.exit(f"{' '.join(words)} failed: {done.stderr.strip()}") if done.returncode else read(file.name)


def read(path):
    return [Launch(launch) for launch in json.loads(Path(path).read_text(encoding="utf-8"))["launches"]]


def visits(launch, block, tile, cols):
    """The pairs of a query tile and a key tile in the order in which a block computes on them: [query tile, key tile, arrays
    of global memory that it reads meanwhile, arrays that it writes]."""
    found, at, fresh = [], {}, False
    for request in launch.requests(block, warp=0):
        if request.space == "global" and request.array in ("Q", "K") and request.kind in ("load", "copy"):
            at[request.array] = request.elements()[0] // cols // tile
            fresh = True
        elif request.space == "shared" and request.kind == "load" and fresh:
            found.append([at["Q"], at["K"], set(), set()])
            fresh = False
        elif request.space == "global" and found and request.array not in ("Q", "K", "V"):
            found[-1][2 if request.kind == "load" else 3].add(request.array)
    return [[i, j, sorted(reads), sorted(writes)] for i, j, reads, writes in found]


def epoch_of(launch, *sources):
    """The first epoch in which a block reads all of these from shared memory: where it multiplies them."""
    read = [{r.epoch for r in launch.requests(space="shared", kind="load", bytes=16, source=name)} for name in sources]
    return min(set.intersection(*read))


def product(launch, a, b, cols):
    """Who computes what of A B^T, from the rows of both operands that each lane reads: {warp: [[rows, rows] per lane]}."""
    epoch, found = epoch_of(launch, a, b), {}
    for which, source in enumerate((a, b)):
        for request in launch.requests(space="shared", kind="load", epoch=epoch, bytes=16, source=source):
            lanes = found.setdefault(request.warp, [[set(), set()] for _ in range(WARP)])
            for lane, held in enumerate(request.holds):
                lanes[lane][which].add(held[1] // cols)
    return {warp: [[sorted(rows) for rows in lane] for lane in lanes] for warp, lanes in found.items()}


def lane_places(lanes):
    """Of one warp of a product: each lane's place among its 32, [row, col]."""
    first = [[rows[0] for rows in lane] for lane in lanes]
    order = [sorted({place[axis] for place in first}) for axis in (0, 1)]
    return [[order[axis].index(place[axis]) for axis in (0, 1)] for place in first]


def activity(launch, unit, groups=1):
    """What a block does between barriers: per epoch and group of warps, {"read": {source: tile}, "copied": {array: tile},
    "stored": bool}; `unit` gives the elements of a tile of each array."""
    epochs = [[{"read": {}, "copied": {}, "stored": False} for _ in range(groups)]
              for _ in range(1 + max(event.epoch for event in launch.events()))]
    for request in launch.requests():
        now, source = epochs[request.epoch][request.warp * groups // launch.warps], request.source()
        tile = lambda: request.held()[0] // unit.get(source, 1 << 60)
        if request.kind == "copy":
            now["copied"][request.array] = tile()
        elif request.space == "shared" and request.kind == "load":
            now["read"][source] = tile()
        elif request.space == "shared" and source == COMPUTED:
            now["stored"] = True
    return epochs


def grouped(items, follows):
    """The items in order, as lists of those that follow on each other."""
    found = []
    for item in sorted(items):
        if found and follows(found[-1][-1], item):
            found[-1].append(item)
        else:
            found.append([item])
    return found


def runs(numbers):
    """0, 1, 2, 7 as "0-2,7"."""
    found = grouped(set(numbers), lambda a, b: b == a + 1)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)
