#!/usr/bin/env python3
"""run_commands.py [--list] [PAGE.md...]: run each fenced command of the book and compare the output that the text quotes.

    ```sh         each command must end with exit status 0; it goes on after a line that ends with \\, && or |
    ```console    each line "$ command" is run; the lines up to the next one are its output. A line "..." stands for any
                  lines, "[...]" within a line for any text

A command that cannot run has a comment before its fence, <!-- not run: the reason -->: at most 15 in the book. Commands for
a card run where there is one. Commands run in the root of the repository, each once, in the order of the pages; build the
sim preset first. --list says which are run, which are not, and why.

A comment before a fence, <!-- by hand: a command -->, does what the page tells the reader to do with an editor.

run_commands.py --handout, with the folder in BOOK_ROOT: of a handout for students. There the commands within the text are
run as well, a listing of a program without its source needs its counts only, and a starter may have its few points.
"""

import re
import shutil
import subprocess
import sys

from pages import ROOT, blocks, pages, shown

MOST_NOT_RUN, SECONDS = 15, 600
HANDOUT = "--handout" in sys.argv
FOR_A_CARD = re.compile(r"build/(?:cuda|debug)\b|--preset cuda|^\s*(?:ncu|nsys|nvcc|cuda-gdb|compute-sanitizer)\b|run\.sh profile|\./memory\b")
COMMAND = re.compile(r"^(?:\$ )?(?:\./run\.sh|cmake |ctest |build/(?:sim|cuda)/|plots/|tests/|python3 plots/|\.ci/run)")
INLINE = re.compile(r"`(?:\$ )?((?:\./run\.sh|cmake |build/sim/|python3 |plots/\w+\.py )[^`]*)`")
# Within the text: for the reader to fill in, or of a size for a card.
FOR_READERS = re.compile(r"--batch 4 --heads 16|\b(?:FILE|DIR|ID|NN|SEED|PROGRAM)\b|\.\.\.|--watch|./run\.sh (?:profile|sanitize)|^cmake --build$|^\./run\.sh$|--install|plots/(?:record|tables)|^build/\S+$|run\.sh (?:try|new|start|grade)?$")
LISTED = re.compile(r"^ *\d+ +[\d.\[\]]+ [sw][ !]*(?:\d+|\[\.\.\.\])")  # the counts of a line of source
SOURCE = re.compile(r"^ {20,}\d+ ")
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->$")
BY_HAND = re.compile(r"<!-- by hand: (.+?) -->$")


def prose_with_code(text):
    """The text with its fenced blocks blanked; line numbers stay."""
    for _, _, lines, _ in blocks(text):
        for line in lines:
            text = text.replace("\n" + line + "\n", "\n" + " " * len(line) + "\n", 1) if line.strip() else text
    return text


def commands_of(language, lines):
    """(command, its quoted output or None) in order."""
    if language == "sh":
        found, command = [], ""
        for line in lines:
            if not line.strip() or (line.lstrip().startswith("#") and not command):
                continue
            command += line + "\n"
            if not line.rstrip().endswith(("\\", "&&", "|")):
                found.append((command.strip(), None))
                command = ""
        return found
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def line_matches(quoted, line):
    if HANDOUT and LISTED.match(quoted):
        quoted = LISTED.match(quoted)[0] + "[...]"
    pattern = ".*".join(re.escape(part) for part in quoted.rstrip().split("[...]"))
    return re.fullmatch(pattern, line.rstrip()) is not None


def matches(quoted, lines):
    """Are these the lines that were quoted?"""
    if not quoted:
        return not lines
    if quoted[0].strip() == "...":
        return any(matches(quoted[1:], lines[at:]) for at in range(len(lines) + 1))
    return bool(lines) and line_matches(quoted[0], lines[0]) and matches(quoted[1:], lines[1:])


def run(command, quoted, where):
    """A problem in words, or None."""
    try:
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"{where}: $ {command}\n    still ran after {SECONDS} seconds"
    tail = "".join("    | " + line + "\n" for line in done.stdout.split("\n")[-25:])
    if quoted is None:
        few_points = HANDOUT and done.returncode == 1 and "run.sh grade" in command and "Score:" in done.stdout
        return None if done.returncode == 0 or few_points else f"{where}: $ {command}\n    exit status {done.returncode}\n{tail}"
    if HANDOUT:
        quoted = [line for line in quoted if not SOURCE.match(line)]
        done.stdout = "\n".join(line for line in done.stdout.split("\n") if not SOURCE.match(line))
    while quoted and not quoted[-1].strip():
        quoted = quoted[:-1]
    if not quoted or matches(quoted, done.stdout.rstrip("\n").split("\n")):
        return None
    return f"{where}: $ {command}\n    the output is not what the page quotes, but\n{tail}"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--list", "--handout")]
    listing = "--list" in sys.argv
    card = shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0
    problems, not_run, no_card, missing, seen = [], [], [], [], set()
    for page in pages(arguments):
        text = page.read_text(encoding="utf-8")
        fenced = {number + i for number, _, lines, _ in blocks(text) for i in range(len(lines) + 2)}
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("    ") and number not in fenced and COMMAND.match(line.strip()):
                problems.append(f"{shown(page)}:{number}: commands stand in a fence marked sh or console")
        within = [(text[: match.start()].count("\n") + 1, "sh", [match[1].replace("\n", " ")], "") for match in INLINE.finditer(prose_with_code(text))] if HANDOUT else []
        within = [found for found in within if not FOR_READERS.search(found[2][0])]
        for number, language, lines, before in sorted(blocks(text) + within, key=lambda found: found[0]):
            where = f"{shown(page)}:{number}"
            if language not in ("sh", "console"):
                if language in ("", "bash", "shell") and any(COMMAND.match(line) for line in lines):
                    problems.append(f"{where}: commands stand in a fence marked sh or console")
                continue
            refused, by_hand = NOT_RUN.search(before), BY_HAND.search(before)
            for command, quoted in ([(by_hand[1], None)] if by_hand and not HANDOUT else []) + commands_of(language, lines):
                if refused:
                    if not not_run or not_run[-1].split(": ")[0] != where:
                        not_run.append(f"{where}: {refused[1]}")
                    continue
                if FOR_A_CARD.search(command) and not card:
                    no_card.append(f"{where}: $ {command}")
                    continue
                program = next((word for word in command.split() if "=" not in word), "")
                if program == "gdb" and not shutil.which(program):
                    missing.append(f"{where}: {program} is not installed")
                    continue
                if listing:
                    print(f"{where}: $ {command}")
                elif (command, tuple(quoted or ())) not in seen or "run.sh new" in command:
                    seen.add((command, tuple(quoted or ())))
                    problem = run(command, quoted, where)
                    print(f"{'FAILED' if problem else 'ok    '} {where}: $ {command}", flush=True)
                    problems += [problem] if problem else []
        for own in (ROOT / "steps").glob("9[0-9]_*") if HANDOUT else []:  # two pages may give their steps one number
            shutil.rmtree(own)
    for title, lines in (("Not run, with a reason:", not_run), ("Not run, needs a card:", no_card), ("Skipped:", missing)):
        if lines:
            print("\n".join([title, *("    " + line for line in lines)]))
    if len(not_run) > MOST_NOT_RUN:
        problems.append(f"{len(not_run)} fences are not run; at most {MOST_NOT_RUN} may be")
    if problems:
        print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
