#!/usr/bin/env python3
"""check_references.py links|names [PAGE.md...]: links: does every link inside the repository lead to a file and, behind a #, to a heading
there? names: do the files that the pages name in backticks exist, and the steps and chapters?"""

import re
import sys
from functools import lru_cache

from pages import ROOT, outside_fences, pages, prose, report, shown

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def without_code(text):
    return [re.sub(r"`[^`]*`", lambda code: " " * len(code[0]), line) for line in outside_fences(text)]


@lru_cache
def anchors(path):
    """As GitHub makes them of headings: lower case, spaces to hyphens, no other signs; a repeated one gets a number."""
    found, seen = set(), {}
    for line in outside_fences(path.read_text(encoding="utf-8")):
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").replace("*", "")
            anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            found.add(f"{anchor}-{count}" if count else anchor)
    return found


def links(page):
    for number, line in enumerate(without_code(page.read_text(encoding="utf-8")), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.is_relative_to(ROOT) and page.is_relative_to(ROOT):
                yield f"{shown(page)}:{number}: {target} leads out of the repository"
            elif not file.exists():
                yield f"{shown(page)}:{number}: {target}: there is no such file"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{shown(page)}:{number}: {target}: {shown(file)} has no such heading"


SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FILE = re.compile(r"(?:steps|common|docs|plots|tests|exercises)/[\w.*/-]*|test_\w+\.\w+")
STEP = re.compile(r"(?<![\w/.-])(?:0\d|1\d)[a-z]?_[a-z]\w+")
PLACEHOLDER = re.compile(r"steps/9\d_|NN_")  # what a reader makes, what stands for any
LIST = r"\d\d(?:(?:,| to| and| or|, and)\s+\d\d)*"
CHAPTERS = re.compile(rf"\b[Cc]hapter(?:\s+\d\d|s\s+{LIST})\b")


def has(*patterns):
    return any(found for pattern in patterns for found in ROOT.glob(pattern.rstrip("/")))


def names(page):
    text = page.read_text(encoding="utf-8")
    for at, line in enumerate(outside_fences(text), 1):
        for span in SPAN.findall(line):
            file = (span.split() or [""])[0]
            if FILE.fullmatch(file) and not PLACEHOLDER.search(file) and not has(file, f"tests/{file}"):
                yield f"{shown(page)}:{at}: there is no {file}"
            for step in [] if "github.com/" in line else STEP.findall(span):  # another project's files have such names too
                if not has(f"steps/{step}", f"steps/*/{step}.cu", f"exercises/{step}", f"tests/**/*{step}*"):
                    yield f"{shown(page)}:{at}: there is no step {step}"
    column = None  # of a table: the one of chapters
    for at, line in enumerate(prose(text).split("\n"), 1):
        cells = line.split("|") if line.startswith("|") else []
        if not cells:
            column = None
        elif column is None:
            column = next((place for place, cell in enumerate(cells) if cell.strip() in ("chapter", "chapters")), -1)
        named = [number for words in CHAPTERS.findall(line) for number in re.findall(r"\d\d", words)]
        if 0 <= (column or -1) < len(cells) and re.fullmatch(rf"\s*{LIST}\s*", cells[column]):
            named += re.findall(r"\d\d", cells[column])
        for number in named:
            if not has(f"steps/{number}_*/README.md") and number < "90":
                yield f"{shown(page)}:{at}: there is no chapter {number}"


def main():
    what, right = {"links": (links, "All links inside the repository lead somewhere."),
                   "names": (names, "All files, steps and chapters that the pages name exist.")}.get("".join(sys.argv[1:2]), (None, None))
    if what is None:
        sys.exit(print(__doc__, file=sys.stderr) or 2)
    return report((problem for page in pages(sys.argv[2:]) for problem in what(page)), right)


if __name__ == "__main__":
    sys.exit(main())
