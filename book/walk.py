"""What a step's program did on the simulated device, condensed for the explorer *Tile walk*: from its --trace, per traced block a list
of steps. A step is what the warps of a block do between two barriers at source lines that take turns: one loop, or a part of
one; where they wait at mbarriers, what the warps of a role do from one wait to the next. Standard library only.

    walk.py FOLDER SOURCES NAME...  a page FOLDER/beside.html with the explorer of each FOLDER/NAME.trace; the first's NAME.json says
                                    the sizes; its source is in the book or in SOURCES
    walk.read(trace.json, shape)    {"launches": [{"kernel", "grid", "block", "index", "arrays", "mbarriers", "sites", "steps"}], "sources"}

Without a shape, which a trace does not hold, an array has lines of 64 words. An array is [name, rows, columns in words of 4 bytes,
elements per word], the first, of no name, shared memory; what is used of it are computed values. It has "bytes". Of mbarriers their names. Of a
step: "epoch", "sites" and "warps"; "touches", [array, action, warps, [[rows, columns], ...]] with rows and columns as "0-3,8";
"content", what lies in shared memory from then on, [array or -1 (computed) or -1 - array (a copy is under way), places]; "came" and
"gone", which words of the arrays have arrived there and which were overwritten; "counts" by collective; "alike", whether each warp executes
as many wgmma; "sync", [what, space, object, phase, warps, bytes, arrivals and bytes announced by then]: who arrives, waits, and has waited for the phase that is over; of "copies" the
object is how many groups may still be under way; "order", the action, collective or (-1 - its number) sync that occurs first, then the others.
A site is [file, line, kind, space, the kernel's "file:line" that calls it, or ""]. A warp behind the block's last is another block's.
"""

import base64
import gzip
import json
import re
import shutil
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "plots"))
import traces  # noqa: E402

ACTIONS = ["load", "copy", "store", "add", "use", "shared load", "shared store", "bulk load", "multiply"]
UNDER_WAY = "under way: "  # before the name of the array that is copied
MOST_STEPS, MOST_SLICES, BANKS, AROUND = 160, 8, 32, 6
MATRICES = {"Q": "rows", "O": "rows", "dO": "rows", "dQ": "rows", "K": "keys", "V": "keys", "dK": "keys", "dV": "keys", "L": "rows", "D": "rows"}

HEAD = """<!DOCTYPE html>
<html lang="en-GB">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="explorer.css">
<script src="explorer.js"></script>
"""
BESIDE = """<title>Two kernels beside each other - Attention, step by step</title>
<h1>Two kernels beside each other</h1>
<div class="beside">%s</div>
<script>addEventListener("message", ({ source, data }) => document.querySelectorAll("iframe").forEach((frame) => {
    if (frame.contentWindow === source && data.height) frame.style.height = `${data.height}px`;
}));</script>
"""


def rectangles(words, columns):
    """A set of words as [rows, columns] with the same columns in each row, written as "0-3,8"."""
    rows, alike = defaultdict(list), defaultdict(list)
    for word in sorted(words):
        rows[word // columns].append(word % columns)
    for row, found in rows.items():
        alike[tuple(found)].append(row)
    return [[traces.runs(those), traces.runs(found)] for found, those in alike.items()]


def order(events):
    """Sets the epoch of each event by what its thread waits for, not by when it ran: it is 1 higher behind each wait, and higher than
    the one in which the phase that was waited for is over. Of each event also that phase, `after`."""
    clock, over, arrived, waits, after = [0] * 32 * (2 + max(event.warp for event in events)), {}, defaultdict(int), {}, {}
    for event in events:
        space, thing, phase = [*event.sync, "", 0, 0][:3]
        first = 32 * event.warp
        threads = [first + lane for lane in range(32) if event.lane in (None, lane) and (not event.offsets or event.offsets[lane] is not None)]
        if event.warp == -1:
            threads = [] if event.sync else range(len(clock))
        for thread in threads:
            if thread in waits:
                after[thread] = waits.pop(thread)
                clock[thread] = max(clock[thread], over.get(after[thread], 0)) + 1
        event.after = after.get(threads[0]) if threads else None
        if event.warp == -1 and event.sync:
            event.epoch = over[space, thing, phase] = arrived.pop((space, thing), 0)
            continue
        event.epoch = max(clock[thread] for thread in threads)
        if event.lane is not None and event.is_remote:  # another block's waits are not in this trace
            event.epoch = max([event.epoch, *(end + 1 for end in over.values())])
        if event.sync and (event.kind != "wait" or space == "named"):
            event.epoch = max(event.epoch, over.get((space, thing, phase - 1), -1) + 1)
        for thread in threads:
            clock[thread] = event.epoch + (event.warp == -1)
        to = ("mbarrier", event.under) if event.kind == "bulk load" else (space, thing)
        arrived[to] = max(arrived[to], event.epoch)
        if event.kind == "wait" and space != "bulk":
            waits[threads[0]] = space, thing, phase


def merged(sets):
    """The sets, those with a common element as one."""
    found = []
    for each in sets:
        alike = [other for other in found if other & each]
        found = [other for other in found if other not in alike] + [each.union(*alike)]
    return found


def roles(numbers, events):
    """Numbers of events by role: two warps have one role if they were at the same line after the same wait, or if each shares a role
    with a third."""
    found = merged({(events[k].after, events[k].site), events[k].warp} for k in numbers)
    return [[k for k in numbers if events[k].warp in role] for role in found]


def steps_of(events):
    """The events of a block in steps: lists of their numbers."""
    has_phases = any(event.kind == "phase" for event in events)
    if has_phases:
        order(events)
    by_epoch = defaultdict(list)
    for k, event in enumerate(events):
        by_epoch[event.epoch].append(k)
    groups = []
    for _, numbers in sorted(by_epoch.items()):
        barriers = [k for k in numbers if events[k].warp == -1]
        groups += (roles if has_phases else loops)([k for k in numbers if events[k].warp != -1], events) + [[k] for k in barriers]
    slices = 1 if has_phases else max(1, min(MOST_SLICES, MOST_STEPS // len(groups)))
    return [part for group in groups for part in sliced(group, events, slices)]


def loops(numbers, events):
    """Numbers of events by sites that take turns: in some warp one of them comes again after the other."""
    spans, count = {}, defaultdict(int)
    for k in numbers:  # by warp and site, its first and last place in the warp's order
        warp = events[k].warp
        spans.setdefault((warp, events[k].site), [count[warp], 0])[1] = count[warp]
        count[warp] += 1
    together = [{site} for _, site in spans]
    for warp in count:
        end, holder = -1, None
        for first, last, site in sorted((first, last, site) for (of, site), (first, last) in spans.items() if of == warp):
            if first < end:
                together.append({site, holder})
            if last > end:
                end, holder = last, site
    groups = [[k for k in numbers if events[k].site in sites] for sites in merged(together)]
    return sorted(groups, key=lambda group: group[0])


def sliced(group, events, slices):
    """A loop in at most so many parts, cut where a warp begins another round: where its first site comes again after others."""
    first, before, rounds, number = {}, {}, defaultdict(int), {}
    for k in group:
        warp, site = events[k].warp, events[k].site
        first.setdefault(warp, site)
        rounds[warp] += site == first[warp] and before.get(warp) != site
        before[warp], number[k] = site, rounds[warp]
    most = max(rounds.values())
    slices = next((k for k in range(min(slices, most), slices // 2, -1) if most % k == 0), min(slices, most))  # of as many rounds each, if that can be
    parts = defaultdict(list)
    for k in group:
        parts[(number[k] - 1) * slices // most].append(k)
    return [parts[part] for part in sorted(parts)]


def follow_moves(event, touched, launch):
    """Notes what a copy by the TMA or a product touches; of shared memory what lies there now, [(place, held), ...]."""
    if event.kind in ("phase", "wait of groups") or not event.moves:
        return event.moves
    places = {place for place, _ in event.moves}
    words = defaultdict(set)
    for _, held in event.moves:
        if held and held[0] in launch.arrays:
            words[held[0]].add(held[1])
    action = {"bulk store": "store", "bulk add": "add", "wgmma": "multiply"}.get(event.kind, event.kind)
    for name, found in words.items():
        touched[name, action, event.warp] |= found
    if event.kind == "bulk load":
        return [(place, (UNDER_WAY + event.array, 0)) for place in places]
    touched["", "shared load", event.warp] |= places
    if event.kind == "wgmma" and len(places) > sum(map(len, words.values())):
        touched["", "multiply", event.warp] |= {place for place, held in event.moves if not held or held[0] not in launch.arrays}
    return []


def by_array(holds):
    """Of what the lanes find in shared memory, (array, its first word) or None each: the words by array."""
    found = defaultdict(set)
    for name, word in {*holds} - {None}:
        found[name].add(word)
    return found


def all_words(first, wide):
    """The words of accesses that are so wide, from the first word of each."""
    return first if wide == 1 else {word + more for word in first for more in range(wide)}


def step_of(events, numbers, launch, content):
    done, changed, gone = defaultdict(set), {}, defaultdict(set)  # done: words by (array, action, warp), warps by sync, events by collective

    def change(place, new):
        old = changed.get(place, content.get(place))
        if old is not None and old != new and old[0] in launch.arrays:
            gone[old[0]].add(old[1])
        changed[place] = new
        (launch.under_way.add if new[0].startswith(UNDER_WAY) else launch.under_way.discard)(place)

    busy = Counter(warp for warp, _ in {(events[k].warp, events[k].site) for k in numbers})  # by the number of lines: the others do a part of them
    for k in sorted(numbers, key=lambda k: -busy[events[k].warp]):
        event = events[k]
        if not event.space:
            if event.kind == "wait of groups":
                done["wait", "copies", event.under, 0, 0].add(event.warp)
            elif event.sync:
                space, number, phase, size = event.sync
                point = space, launch.mbarriers.index(number) if space == "mbarrier" else number, phase
                if event.kind == "wait" and space != "bulk":
                    size = int(launch.waiting.setdefault(point, set()) is None)
                    if not size:
                        launch.waiting[point].add(event.warp)
                done[event.kind, *point, size] |= {event.warp} if event.warp != -1 else launch.waiting.get(point) or set()
                launch.come[point] += event.kind == "arrive"
                launch.announced[point] += size * (event.kind in ("arrive", "expect"))
                if event.kind == "phase":
                    launch.waiting[point] = None
            elif not event.moves:
                done[event.kind].add(k)
            for place, new in follow_moves(event, done, launch):
                change(place, new)
            continue
        wide = max(1, event.bytes // traces.WORD)
        is_read = event.space == "shared" and event.kind != "store"
        if event.space == "global":
            done[event.array, "add" if event.kind == "atomic" else event.kind, event.warp].update(event.elements())
            places = [None if to is None else to // traces.WORD for to in event.to] if event.kind == "copy" else []
        else:
            start = launch.starts.get(event.array, 0)
            places = [None if offset is None else (start + offset) // traces.WORD for offset in event.offsets]
            inside = all_words({*places} - {None}, wide)
            done["", "shared store" if event.kind == "store" else "shared load", event.warp] |= inside
        if is_read:
            for name, words in by_array(event.holds).items():
                if name in launch.arrays or name == traces.COMPUTED:
                    done["" if name == traces.COMPUTED else name, "use", event.warp] |= all_words(words, wide)
            if inside.isdisjoint(launch.under_way):
                continue
        for place, held in zip(places, event.holds):
            for word in range(place, place + wide) if place is not None and held is not None else ():
                if not is_read or word in launch.under_way:  # what is read has arrived with a phase of an mbarrier, which a trace does not tell
                    change(word, (UNDER_WAY * (event.kind == "copy") + held[0], held[1] + word - place))
    content.update(changed)
    now, came = defaultdict(set), defaultdict(set)
    for place, (name, word) in changed.items():
        now[name].add(place)
        if name in launch.arrays:
            came[name].add(word)
    touched, sync = ({key: done[key] for key in done if isinstance(key, tuple) and len(key) == fields} for fields in (3, 5))
    together = defaultdict(list)  # what several warps touch alike is kept once
    for (name, action, warp), words in sorted(touched.items()):
        together[name, action, frozenset(words)].append(warp)
    number = {name: k for k, (name, *_) in enumerate(launch.shapes)} | {UNDER_WAY + name: -1 - k for k, (name, *_) in enumerate(launch.shapes)}
    columns = {name: wide for name, _, wide, _ in launch.shapes}
    in_turn = sorted(done, key=lambda key: key[0] == "wait" and key[1] in ("mbarrier", "named", "cluster"))  # a thread's part of a step ends there
    order = [-1 - [*sync].index(key) if key in sync else ACTIONS.index(key[1]) if key in touched else key for key in in_turn]
    warps, collectives = {events[k].warp for k in numbers} - {-1}, {kind: found for kind, found in done.items() if isinstance(kind, str)}
    of_each = [Counter(events[k].warp for k in found) for kind, found in collectives.items() if kind.startswith("wgmma")]
    return {"epoch": events[numbers[0]].epoch, "sites": sorted({events[k].site for k in numbers}), "warps": traces.runs(warps),
            "counts": {kind: len(found) for kind, found in collectives.items()}, "alike": all({*map(times.get, warps)} == {max(times.values())} for times in of_each),
            "touches": [[number[name], ACTIONS.index(action), traces.runs(warps), rectangles(words, columns[name])]
                        for (name, action, words), warps in together.items()],
            "content": [[number.get(name, -1), rectangles(places, BANKS)] for name, places in sorted(now.items())],
            "came": [[number[name], rectangles(words, columns[name])] for name, words in sorted(came.items())],
            "gone": [[number[name], rectangles(words, columns[name])] for name, words in sorted(gone.items())],
            "order": list(dict.fromkeys(order)), "sync": [[*key[:4], traces.runs(warps), key[4], launch.come[key[1:4]], launch.announced[key[1:4]]] for key, warps in sync.items()]}


def shapes_of(launch, shape):
    """[name, rows, columns in words, elements per word] of what the launch touches; the first, without a name, is shared memory by banks."""
    last, raw, shape = defaultdict(int), launch.fields, shape or {"dim": 64, "bytes": 4}
    for event in launch.events():
        if event.space == "global":
            last[event.array] = max([last[event.array], *(offset for offset in event.offsets if offset is not None)])
        elif event.array and event.moves:
            last[event.array] = max([last[event.array], *(traces.WORD * held[1] for _, held in event.moves if held[0] == event.array)])
    end = max([raw["dynamic_shared_bytes"] + raw["static_shared_bytes"], *(array["offset"] + array["bytes"] for array in raw["shared_arrays"])])
    found = [["", -(-end // (BANKS * traces.WORD)), BANKS, 1]]
    for name in last:
        elements = 1 if name in ("L", "D") else traces.WORD // shape["bytes"]
        row = 1 if name in ("L", "D") else shape["dim"] // elements
        rows = shape.get({"rows": "seq", "keys": "seq_kv"}.get(MATRICES.get(name)))
        if not rows or last[name] >= rows * row * traces.WORD:  # memory whose order is the kernel's own affair, or no shape
            row, elements = 1 if name in ("L", "D") else 64, 1
            rows = last[name] // traces.WORD // row + 1
        found.append([name, rows, row, elements])
    return found


def mbarriers_of(events, lines, text):
    """The name of each mbarrier by its address: NAME of a line with mbarrier_wait(NAME ..., and its place in an array. One that is not
    waited for lies in the array of one with which it shares a place of the program, or in the array BEFORE where the kernel's text has
    NAME = BEFORE + ... for the one behind it. Without a name: its number. lines: of each site."""
    places, names = defaultdict(set), {}
    for event in events:
        if event.sync and event.sync[0] == "mbarrier":
            places[event.sync[1]].add(event.place_number)
            if wait := re.search(r"mbarrier_wait\((\w+)", lines[event.site]):
                names[event.sync[1]] = wait[1]
    found = [names.get(address) or next((names[other] for other in names if places[other] & places[address]), "") for address in sorted(places)]
    for k in range(len(found) - 2, -1, -1):
        before = re.search(rf"\b{found[k + 1]} = (\w+) \+ ", text) if found[k + 1] and not found[k] else None
        found[k] = before[1] if before else found[k]
    return [f"{name}[{found[:k].count(name)}]" if name and found.count(name) > 1 else name or str(k) for k, name in enumerate(found)]


def read(path, shape, folder=ROOT):
    made, sources = [], defaultdict(dict)
    for launch in traces.read(path):
        raw = launch.fields
        if not raw["blocks"] or not raw["blocks"][0]["events"]:
            continue
        events, blocks = launch.events(), raw["blocks"]
        found = [(site["file"], site["line"], site["kind"], site["space"], site.get("caller", "")) for site in raw["sites"]]
        sites = list(dict.fromkeys(found))
        for event, row in zip(events, blocks[0]["events"]):
            event.place_number, event.site = row[0], sites.index(found[row[0]])
            event.is_remote = event.warp == -2
            event.warp = launch.warps if event.is_remote else event.warp
        events = [event for event in events if event.kind != "commit of groups"]
        launch.mbarriers, launch.waiting = sorted({event.sync[1] for event in events if event.sync and event.sync[0] == "mbarrier"}), {}
        launch.under_way, launch.arrays, launch.starts = set(), set(raw["arrays"]), {array["name"]: array["offset"] for array in raw["shared_arrays"]}
        launch.shapes, launch.come, launch.announced, content = shapes_of(launch, shape), defaultdict(int), defaultdict(int), {}
        for file, line in sorted({site[:2] for site in sites} | {(file, int(line)) for file, _, line in (site[4].rpartition(":") for site in sites) if file}):
            source = next((place for place in (ROOT / file, folder / file) if place.is_file()), None)
            lines = source.read_text(encoding="utf-8").splitlines() if source else []
            for k in range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1):
                sources[file][k] = lines[k - 1]
        lines = ["".join(sources[file].get(int(line), "") for file, line in (site[:2], site[4].rpartition(":")[::2]) if file) for site in sites]
        made.append({"kernel": raw["kernel"], "grid": raw["grid"], "block": raw["block"], "index": blocks[0]["index"], "arrays": launch.shapes, "sites": sites,
                     "mbarriers": mbarriers_of(events, lines, "\n".join(line for shown in sources.values() for line in shown.values())), "steps": [step_of(events, numbers, launch, content) for numbers in steps_of(events)],
                     "bytes": raw["dynamic_shared_bytes"] + raw["static_shared_bytes"]})
    return {"launches": made, "sources": sources}


def stages(path):
    """Of the tiles of K and V that a block copies to shared memory: which it reads between two barriers, turn by turn, numbered in the
    order of their copies, and in how many stages they lie. ValueError where its turns are not alike."""
    copies, reads = {}, defaultdict(set)  # copies: by array and epoch words and places; reads: by epoch which copies
    for event in traces.read(path)[-1].events():
        source = event.array if event.kind == "copy" else event.source() if event.space == "shared" else ""
        if source in ("K", "V") and event.kind == "copy":
            words, places = copies.setdefault((source, event.epoch), (set(), set()))
            words.update(event.elements())
            places.update({*event.to} - {None})
        elif source in ("K", "V"):
            reads[event.epoch] |= {copy for copy, (words, _) in copies.items() if copy[0] == source and event.held()[0] in words}
    tiles = {(array, epoch): (array, sum(a == array and e < epoch for a, e in copies)) for array, epoch in copies}
    place, epochs = {tiles[copy]: min(places) for copy, (_, places) in copies.items()}, sorted(reads)
    turns = [sorted(tiles[copy] for copy in reads[epoch]) for epoch in epochs]
    ahead = {k - epochs.index(issued) for k, epoch in enumerate(epochs) for _, issued in reads[epoch] if issued in reads}
    count = 1 + max(ahead, default=0)
    if len(ahead) > 1 or any(place[a] != place[b] for turn, later in zip(turns, turns[count:]) for a, b in zip(turn, later)):
        raise ValueError(f"{path}: its copies are {sorted(ahead)} turns ahead")
    return {"turns": turns, "stages": count}


def write(file, page, masks):
    """Each list of rectangles is kept once in "rectangles", a line "rows:columns;..." each, packed, and named by its number: loops repeat
    themselves. All runs have the same sources."""
    numbers, sources = {}, defaultdict(dict)
    for run in masks.values():
        for step in (step for launch in run["launches"] for step in launch["steps"]):
            for found in (found for kind in ("touches", "content", "came", "gone") for found in step[kind]):
                found[-1] = numbers.setdefault(";".join(map(":".join, found[-1])), len(numbers))
        for name, lines in run.pop("sources").items():
            sources[name].update(lines)
    packed = base64.b64encode(gzip.compress("\n".join(numbers).encode(), mtime=0)).decode()
    data = {"page": page, "masks": masks, "sources": sources, "rectangles": packed}
    file.write_text("window.WALK = " + json.dumps(data, separators=(",", ":")) + ";\n", encoding="utf-8")


def shape_of(path):
    """Of a run, from what its --json has written."""
    said = json.loads(Path(path).read_text(encoding="utf-8").splitlines()[-1])
    return {"seq": said["seq"], "seq_kv": said["seq_kv"], "dim": said["dim"], "bytes": 4 if said["dtype"] == "fp32" else 2}


def install(folder):
    """Writes the explorers to a folder; their pages have one head, and end with the script of the same name."""
    shutil.copytree(ROOT / "book/explorers", folder, dirs_exist_ok=True)
    for page in (ROOT / "book/explorers").glob("*.html"):
        (folder / page.name).write_text(f'{HEAD}{page.read_text(encoding="utf-8")}<script src="{page.stem}.js"></script>\n', encoding="utf-8")


def main(folder, sources, *names):
    install(folder)
    (folder / "data").mkdir(exist_ok=True)
    for name in names:
        found = read(folder / f"{name}.trace", shape_of(folder / f"{names[0]}.json"), sources)
        if not found["launches"]:
            sys.exit(f"walk.py: the trace of {name} is empty")
        write(folder / f"data/{name}.js", f"{folder.name}/beside.html", {"none": {"command": (folder / f"{name}.command").read_text(encoding="utf-8").strip()} | found})
    frames = (f'<iframe title="{name}" src="tile-walk.html#step={name}"></iframe>' for name in names)
    (folder / "beside.html").write_text(HEAD + BESIDE % "".join(frames), encoding="utf-8")
    (folder / "data/steps.js").write_text(f"window.STEPS = {json.dumps([[name, 'your kernel' if name == 'yours' else name, 'beside each other'] for name in names])};\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
