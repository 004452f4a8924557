#!/usr/bin/env python3
"""check_spelling.py [PAGE.md...]: hunspell with its British English dictionary and the project's words (words.txt) over the
prose of the pages. Exit status 77, "skipped", where hunspell or the dictionary is not installed."""

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


def main():
    try:
        works = unknown_to_hunspell(["thread", "thraed"]) == {"thraed"}
    except FileNotFoundError:
        works = False
    if not works:
        print("SKIPPED spelling: needs the Debian packages hunspell and hunspell-en-gb")
        return 77
    known = {word for word in WORDS.read_text(encoding="utf-8").split("\n") if word and not word.startswith("#")}
    places = {}
    for page in pages(sys.argv[1:]):
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


if __name__ == "__main__":
    sys.exit(main())
