#!/usr/bin/env python3
"""check_links.py [PAGE.md...]: does every link inside the repository lead to a file and, behind a #, to a heading there?"""

import re
import sys
from functools import lru_cache
from pathlib import Path

from pages import ROOT, outside_fences, pages, report, shown

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


def problems_of(page):
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


def main():
    return report((problem for page in pages(sys.argv[1:]) for problem in problems_of(page)), "All links inside the repository lead somewhere.")


if __name__ == "__main__":
    sys.exit(main())
