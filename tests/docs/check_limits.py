#!/usr/bin/env python3
"""check_limits.py [CHAPTER/README.md...]: has each chapter a section "What limits it" with an entry for each of its rungs,
does each sentence of it that gives a cause, a bound or a rate carry a marker <!-- why ... -->, and has each rung a section of its
own with a prediction, a measurement and where it stands?"""

import re
import sys

from pages import ROOT, outside_fences, report, shown

SECTION = re.compile(r"^## What limits it\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CAUSE = re.compile(r"\b(?:because|limits?|limited|bounds?|bounded|faster|slower|milliseconds|ceiling|TFLOP/s|FLOP per)\b", re.IGNORECASE)
GENERATED = re.compile(r"^<!-- begin .*?^<!-- end \w+ -->$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
TABLE = re.compile(r"^\|.*$", re.MULTILINE)
END = re.compile(r"([.:;](?:\*\*)?(?:\s+<!--.*?-->)*)\s+", re.DOTALL)  # of a part of a sentence: its markers belong to it
# A prediction, the list that follows it, and what the page calls unknown need no record.
EXPECTED = re.compile(r"\b(?:expect|predicts?|prediction|would)\b", re.IGNORECASE)
FREE = re.compile(r"^\*\*(?:Prediction|What is not known)\b.*?(?:\n\n(?!- )|\Z)", re.MULTILINE | re.DOTALL)


PARTS = {"prediction": r"\*\*Prediction", "measurement": r"\*\*(?:Measured|Time)"}


def problems_of_rungs(page, text):
    """Each rung in the chain of a chapter that has several has a section, which says where it stands."""
    rungs = [rung.stem for rung in sorted(page.parent.glob(f"{page.parent.name[:2]}[a-w]_*.cu"))]
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    for rung in [*rungs, page.parent.name] if rungs else []:
        mine = [section for section in sections if f"<!-- n stands:{rung} -->" in section]
        if len(mine) != 1:
            yield f"{shown(page)}: {len(mine)} sections say where {rung} stands"
        yield from (f"{shown(page)}: the section of {rung} has no {what}" for what, begin in PARTS.items()
                    for section in mine if not re.search("^" + begin, section, re.MULTILINE))


def named(words):
    """The rungs that the words name, also as in "10a to 10c"."""
    ranges = re.findall(r"\b(\d\d)([a-z]) to \1([a-z])\b", words)
    return {f"{number}{chr(letter)}" for number, first, last in ranges for letter in range(ord(first), ord(last) + 1)} | set(
        re.findall(r"\b\d\d[a-z](?=\b|_)", words))


def problems_of(page):
    text = "\n".join(outside_fences(page.read_text(encoding="utf-8")))
    yield from problems_of_rungs(page, text)
    section = SECTION.search(text)
    if not section:
        yield f'{shown(page)}: there is no section "What limits it"'
        return
    prose = GENERATED.sub("", section[1])
    for rung in sorted(page.parent.glob(f"{page.parent.name[:2]}[a-w]_*.cu")):  # those beside the chain have an x or y
        if rung.stem[:3] not in named(COMMENT.sub("", prose)):
            yield f'{shown(page)}: the section "What limits it" has no entry for {rung.stem}'
    for sentence in re.sub(END, "\\1\n\n", TABLE.sub("", FREE.sub("", prose))).split("\n\n"):
        plain = re.sub(r"\]\([^)]*\)", "", COMMENT.sub("", sentence))
        if CAUSE.search(plain) and not EXPECTED.search(plain) and "<!-- why " not in sentence:
            yield f'{shown(page)}: no marker beside "{" ".join(plain.split())}"'


def main():
    pages = [ROOT / name for name in sys.argv[1:]] or sorted(ROOT.glob("steps/[0-8][0-9]_*/README.md"))
    return report((problem for page in pages for problem in problems_of(page)), "Each chapter says what limits it.")


if __name__ == "__main__":
    sys.exit(main())
