#!/usr/bin/env python3
"""weight.py [--record] [FOLDER]: files and lines of each room of the project (of the checkout FOLDER), beside the table in CONTRIBUTING.md.

--record writes what is counted into the table. Exit status: 0; 1 when a room differs from the table by more than the table allows;
2 bad usage, or no table. Standard library only; git is not asked.
"""

import os
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"
ROOMS = ("steps", "tests", "common/simt", "common/harness", "common/device", "exercises", "book", "plots", "docs", "rest")
COUNTED = (".cu", ".cuh", ".c", ".h", ".py", ".sh", ".js", ".css", ".html", ".cmake", "CMakeLists.txt")
NOT_OURS = {".git", "build", "work", "__pycache__"}
ROW = re.compile(r"^\| (?:`([\w/]+)/`|rest) \| (\d+) \| (\d+) \|$", re.MULTILINE)
ALLOWED = re.compile(r"by more than (\d+) files or (\d+) lines")


def count(root):
    """{room: [files, lines of code]}"""
    counts = {room: [0, 0] for room in ROOMS}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        for path in (Path(folder, name) for name in names if name not in NOT_OURS):
            place = f"{path.relative_to(root).parent.as_posix()}/"
            room = counts[next((room for room in ROOMS if place.startswith(f"{room}/")), "rest")]
            room[0] += 1
            if path.name.endswith(COUNTED):
                room[1] += path.read_bytes().count(b"\n")
    return counts


def main():
    words = [word for word in sys.argv[1:] if word != "--record"]
    root = Path(words[0] if words else PAGE.parent).resolve()
    if len(words) > 1 or not root.is_dir() or (words and "--record" in sys.argv):
        sys.exit(print(__doc__, file=sys.stderr) or 2)
    page = PAGE.read_text(encoding="utf-8")
    table, allowed = {name or "rest": [int(files), int(lines)] for name, files, lines in ROW.findall(page)}, ALLOWED.search(page)
    if list(table) != list(ROOMS) or not allowed:
        sys.exit(print(f"weight.py: {PAGE.name} has no table of {', '.join(ROOMS)}, or does not say what it allows", file=sys.stderr) or 2)
    counts, heavier = count(root), []
    kinds = {"steps": ["steps"], "tests": ["tests"], "everything else": ROOMS[2:], "all": ROOMS}
    sums = [{kind: [sum(of[room][at] for room in rooms) for at in (0, 1)] for kind, rooms in kinds.items()} for of in (counts, table)]
    print(f"{'room':16}{'files':>7}{'change':>8}{'lines':>8}{'change':>8}")
    for room in (*ROOMS, "everything else", "all"):
        now, then = ({**of, **total}[room] for of, total in zip((counts, table), sums))
        print(f"{room:16}{now[0]:7}{now[0] - then[0]:+8}{now[1]:8}{now[1] - then[1]:+8}")
        heavier += [room] * (room in ROOMS and any(abs(a - b) > int(most) for a, b, most in zip(now, then, allowed.groups())))
    if "--record" in sys.argv:
        row = lambda match: f"{match[0].rsplit('|', 3)[0]}| {' | '.join(map(str, counts[match[1] or 'rest']))} |"
        PAGE.write_text(ROW.sub(row, page), encoding="utf-8")
    elif heavier:
        print(f"\nnot as the table in {PAGE.name} says: {', '.join(heavier)}; tests/weight.py --record updates it, and the commit names growth")
        sys.exit(1)


if __name__ == "__main__":
    main()
