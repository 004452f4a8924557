#!/usr/bin/env python3
"""no_leak.py EXERCISE HANDOUT: no file of a handout shows the solution of a task that is handed out.

EXERCISE is the grader of the whole book, called in its root: it prints the solutions. A line is compared without comments
and blanks. Lines that the task's own starter shows do not count, neither in the solution nor in the file. Of what is left,
no three lines that follow each other in the solution of a hole may follow each other in a file. Hints must not stand there
in clear text, nor may paths of the book's own machine.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

HOLE = re.compile(r"// >>> Hole \d+:[^\n]*\n(.*?)// <<< End", re.DOTALL)
# In front of a line of source in a listing of the meter or in a diff.
MARGIN = re.compile(r"^(?:[-+|>]|\s*(?:\d+\s+[\d.]+ (?:[sw]|bytes)?)?\s*!?\s*\d+\s\s)")


def lines_of(text):
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    lines = (re.sub(r"\s+", "", re.sub(r"//.*", "", MARGIN.sub("", line))) for line in text.split("\n"))
    return [line for line in lines if line]


def shows(line, wanted):
    return line == wanted or (len(wanted) > 7 and wanted in line)


def leaks(holes, own, lines):
    """Three lines in a row of a hole that stand in a row among the lines, or None; those of `own` do not count."""
    lines = [line for line in lines if line not in own]
    whole = "\n".join(lines)
    for hole in holes:
        for at in range(len(hole) - 2):
            if any(hole[at + i] not in whole for i in range(3)):
                continue
            for first in range(len(lines) - 2):
                if all(shows(lines[first + i], hole[at + i]) for i in range(3)):
                    return hole[at : at + 3]
    return None


def main():
    exercise, handout = sys.argv[1], Path(sys.argv[2])
    tasks, problems = sorted(handout.glob("exercises/*/starter.cu")), []
    secrets = []
    for starter in tasks:
        task = starter.parent.name.split("_")[0]
        solution = subprocess.run([exercise, "solution", task], capture_output=True, text=True, check=True).stdout
        own = set(lines_of(starter.read_text()))
        holes = [[line for line in lines_of(hole) if line not in own] for hole in HOLE.findall(solution)]
        assert holes, task
        hints = [hint for hole in json.loads(Path("exercises", starter.parent.name, "task.json").read_text())["holes"] for hint in hole.get("hints", [])]
        secrets.append((task, holes, own, hints))
    for path in sorted(handout.rglob("*")):
        if not path.is_file() or path.suffix in (".png", ".svg", ".o") or "build" in path.relative_to(handout).parts[:1]:
            continue
        text = path.read_text(errors="replace")
        name, lines = path.relative_to(handout), lines_of(text)
        for task, holes, own, hints in secrets:
            found = leaks(holes, own, lines)
            if found:
                problems.append(f"{name} shows a part of the solution of {task}: {' | '.join(found)}")
            problems += [f"{name} shows a hint of {task}: {hint[:60]}" for hint in hints if hint in text]
        if str(Path.cwd()) in text:
            problems.append(f"{name} names the folder of the book")
    for path in handout.rglob("*.o"):
        if str(Path.cwd()).encode() in path.read_bytes():
            problems.append(f"{path.relative_to(handout)} names the folder of the book")
    print("\n".join(problems) or f"{len(tasks)} tasks, no leak")
    return 1 if problems or not tasks else 0


if __name__ == "__main__":
    sys.exit(main())
