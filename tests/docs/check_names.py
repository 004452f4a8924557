#!/usr/bin/env python3
"""check_names.py [PAGE.md...]: do the files that the pages name in backticks exist, and the steps and chapters?"""

import re
import sys

from pages import ROOT, outside_fences, pages, prose, report, shown

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FILE = re.compile(r"(?:steps|common|docs|plots|tests|exercises)/[\w.*/-]*|test_\w+\.\w+")
STEP = re.compile(r"(?<![\w/.-])(?:0\d|1\d)[a-z]?_[a-z]\w+")
PLACEHOLDER = re.compile(r"steps/9\d_|NN_")  # what a reader makes, what stands for any
LIST = r"\d\d(?:(?:,| to| and| or|, and)\s+\d\d)*"
CHAPTERS = re.compile(rf"\b[Cc]hapter(?:\s+\d\d|s\s+{LIST})\b")


def has(*patterns):
    return any(found for pattern in patterns for found in ROOT.glob(pattern.rstrip("/")))


def problems_of(page):
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
    return report((problem for page in pages(sys.argv[1:]) for problem in problems_of(page)), "All files, steps and chapters that the pages name exist.")


if __name__ == "__main__":
    sys.exit(main())
