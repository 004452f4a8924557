#!/usr/bin/env python3
"""check_english.py spelling|words [PAGE.md...]. spelling: hunspell with its British English dictionary and the project's words (words.txt)
over the prose of the pages; exit status 77, "skipped", where hunspell or the dictionary is not installed. words: phrases that the book's
English avoids, in the prose of the pages; and the limits of long pages and of README.md."""

import re
import subprocess
import sys
from pathlib import Path

from pages import pages, prose, shown

WORDS = Path(__file__).with_name("words.txt")
HUNSPELL = ["hunspell", "-d", "en_GB", "-i", "utf-8", "-l"]


def unknown_to_hunspell(words):
    run = subprocess.run(HUNSPELL, input="\n".join(words), capture_output=True, text=True)
    return set(run.stdout.split()) if run.returncode == 0 else None


def spelling(chosen):
    try:
        works = unknown_to_hunspell(["thread", "thraed"]) == {"thraed"}
    except FileNotFoundError:
        works = False
    if not works:
        print("SKIPPED spelling: needs the Debian packages hunspell and hunspell-en-gb")
        return 77
    known = {word for word in WORDS.read_text(encoding="utf-8").split("\n") if word and not word.startswith("#")}
    places = {}
    for page in pages(chosen):
        for number, line in enumerate(prose(page.read_text(encoding="utf-8")).split("\n"), 1):
            # Names with digits, underscores or dots are no words; nor are single letters.
            for token in re.findall(r"[^\s|*\"()\[\]{}/,;:!?+=<>~–…]+", line):
                for word in re.split(r"[-.]", token.strip("'’.")):
                    if re.fullmatch(r"[A-Za-zÀ-ž'’]{2,}", word):
                        places.setdefault(word.removesuffix("'s").removesuffix("’s"), []).append(f"{shown(page)}:{number}")
    wrong = unknown_to_hunspell(sorted(set(places) - known))
    for word in sorted(wrong, key=str.lower):
        if word in places:
            print(f"{places[word][0]}: {word}" + (f" (and {len(places[word]) - 1} more)" if len(places[word]) > 1 else ""))
    wrong &= set(places)
    print(f"{len(wrong)} unknown words; a right one belongs in {shown(WORDS)}" if wrong else "No unknown words.")
    return 1 if wrong else 0


ACTORS = r"(?:threads?|warps?|blocks?|lanes?|rows?|keys?|tiles?|kernels?|query|queries|cards?|caches?|requests?)"
THINGS = r"(?:row|element|block|warp|lane|thread|head|tile|key|query|load|store|request|cycle|second|scheduler|step|kernel|run|page|column|pair|word|line)"
COUNTED = (r"(?:bytes?|floats?|words?|numbers?|elements?|columns?|rows?|keys?|registers?|loads?|stores?|sectors?|wavefronts?|"
           r"threads?|warps?|blocks?|lanes?|barriers?|requests?|shuffles?|FMAs?|multiply-adds?|additions?|instructions?)")
SPACE = r"(?: +| *\n *)"  # a line may end between two words, a paragraph may not
REJECTED = (  # pattern, what to write
    (rf"\b{ACTORS} (?:who |that )?(?:all )?(?:asks?|wants?|sees?|knows?|likes?|tells?)\b",
     "load, store, compute, wait, need; a query attends to a key"),
    (rf"\b(?:asked|asks?|asking) for (?:by|each|every|them|the same|it|\w+ (?:bytes|sectors|elements))", "requested, loaded"),
    (rf"\bbytes asked for\b", "bytes requested"),
    (rf"\b(?:one|two|three|four|five|eight|a|an) (?:\w+ )?{THINGS}s? an? {THINGS}\b", "one X per Y"),
    (rf"\b(?:\d+|one|two|three|four|eight) (?:\w+ )?{COUNTED} an? {THINGS}\b", "X per Y"),
    (r"\bthat of\b", "repeat the noun"),
    (r"\bthose of\b", "repeat the noun"),
    (r"\bforth and back\b", "back and forth"),
    (r"\b(?:nobody|somebody|someone|anyone|everyone|everybody) (?:reads?|writes?|adds?|wrote|has read|has written|can|may)\b",
     "no thread reads, every thread has read"),
    (r"\b(?:pass|passes|passing) by\b", "the block loops over"),
    (r"\bcan be had\b|\bfor nothing\b", "is free"),
    (r"\bis not told\b|\bare not told\b", "is not reported"),
    (r"\b(?:walks?|walked|walking) (?:over|along|through) (?:the |all )?(?:keys|rows|tiles|queries)", "loops over"),
    (r"\bthe first form of this (?:chapter|page|kernel)\b|\bused to be\b|\bformerly\b|\bin an earlier version\b",
     "the present version only"),
    (r"\b(?:obviously|trivially|needless to say|blazing\w*|amazing\w*|state[- ]of[- ]the[- ]art)\b", "say what the data show"),
    (r"[\U0001F300-\U0001FAFF\u2600-\u27BF]", "no emoji"),
)

MOST_WORDS, MOST_LINES = 7000, 750  # of a chapter's README
FRONT_WORDS, FRONT_LINES, FRONT_COLUMNS = 900, 120, 6  # of the book's


def sentences(page):
    """Of its prose, those that say something: five words or more."""
    text = " ".join(prose(page.read_text(encoding="utf-8")).split())
    return {sentence for sentence in re.split(r"(?<=[.:?!]) ", text) if len(sentence.split()) >= 5}


def problems_of_front(page, index):
    """The book's README is one page, and says nothing that the index of docs/ says too."""
    raw = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    words, lines = sum(bool(re.search(r"\w", word)) for word in raw.split()), raw.count("\n")
    columns = max((row.count("|") - 1 for row in raw.split("\n") if row.startswith("|")), default=0)
    if words > FRONT_WORDS or lines > FRONT_LINES or columns > FRONT_COLUMNS:
        yield 0, (f"{shown(page)}: {words} words, {lines} lines, {columns} columns in a table: at most {FRONT_WORDS}, {FRONT_LINES} and "
                  f"{FRONT_COLUMNS}; a page of docs/ takes the rest")
    for sentence in sorted(sentences(page) & sentences(index)):
        yield 0, f"{shown(page)}: {shown(index)} says this, too: {sentence}"


def problems_of(page):
    raw = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^<!-- (?:n|why) ", raw, re.MULTILINE):  # Markdown takes the line for a block of HTML
        line = raw.count("\n", 0, match.start()) + 1
        yield line, f"{shown(page)}:{line}: a marker at the beginning of a line ends its paragraph: put a word before it"
    words = len(re.sub(r"<!--.*?-->", "", raw, flags=re.DOTALL).split())
    if page.match("steps/*/README.md") and (words > MOST_WORDS or raw.count("\n") > MOST_LINES):
        yield 0, (f"{shown(page)}: {words} words in {raw.count(chr(10))} lines: a chapter has at most {MOST_WORDS} and {MOST_LINES}; "
                  "an appendix takes the rest")
    if page.name == "README.md" and (page.parent / "docs" / "README.md").exists():
        yield from problems_of_front(page, page.parent / "docs" / "README.md")
    text = prose(raw)
    for pattern, instead in REJECTED:
        for match in re.finditer(pattern.replace(" ", SPACE), text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            words = " ".join(match[0].split())
            yield line, f'{shown(page)}:{line}: "{words}": {instead}'


def words(chosen):
    problems = [problem for page in pages(chosen) for _, problem in sorted(problems_of(page))]
    print("\n".join(problems) if problems else "No rejected phrase.")
    return 1 if problems else 0


def main():
    what = {"spelling": spelling, "words": words}.get("".join(sys.argv[1:2]))
    return what(sys.argv[2:]) if what else print(__doc__, file=sys.stderr) or 2


if __name__ == "__main__":
    sys.exit(main())
