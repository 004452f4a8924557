"""What the pages quote: functions, whole files and what scripts print; and which headers a kernel file is made of. Standard library only."""

import difflib
import re
import subprocess
import sys
from pathlib import Path

from records import need


def fenced(language, lines):
    return f"```{language}\n" + "".join(line + "\n" for line in lines) + "```\n"


def lines_of(book, file):
    need((book.root / file).is_file(), f"there is no {file}")
    return (book.root / file).read_text(encoding="utf-8").splitlines()


def whole_file(book, page, file, section=None):
    """Or what stands under `## SECTION` in it."""
    lines = lines_of(book, file)
    if section:
        need(f"## {section}" in lines, f"{file} has no section {section}")
        lines = "\n".join(lines).partition(f"## {section}\n")[2].partition("\n\n## ")[0].split("\n")
    return fenced("cuda" if file.endswith(".cu") else "", lines)


def output(book, page, script):
    need((book.root / script).is_file(), f"there is no {script}")
    return subprocess.run([sys.executable, "-B", script], cwd=book.root, stdout=subprocess.PIPE, text=True, check=True).stdout


# Before a function: comments, which may hold empty lines, and the rest of its declaration.
BELONGING = re.compile(r"^(?:/\*(?:(?!\*/)[\s\S])*\*/\n|//.*\n|(?!.*[;}]\s*\n)[^#}\n].*\n)*\Z", re.MULTILINE)


def code(book, page, file, name):
    """One function or struct, from the comment before it to its closing brace."""
    lines = lines_of(book, file)
    # The line that holds `name(` and whose statement goes on to a brace rather than to a semicolon.
    starts = [at for at, line in enumerate(lines) if re.match(rf"(?![\s/#*}}]).*\b{re.escape(name)}\(", line)
              and re.match(r"[^;{]*\{", re.sub(r"//.*", "", "\n".join(lines[at : at + 20])))]
    need(starts, f"{file} does not define {name}")
    start = starts[0] - BELONGING.search("".join(line + "\n" for line in lines[: starts[0]]))[0].count("\n")
    end = next(at for at in range(starts[0], len(lines)) if lines[at].startswith("}"))
    return fenced({".cu": "cuda", ".cuh": "cuda", ".py": "python", ".sh": "bash"}.get(Path(file).suffix, "c"), lines[start : end + 1])


def included(file):
    """The headers (.cuh) of steps/ that a file includes, and those that they include, each once."""
    found = []
    for name in re.findall(r'^#include "(.*\.cuh)"$', file.read_text(encoding="utf-8"), re.M):
        header = (file.parent / name).resolve()
        found += [each for each in [header, *(included(header) if header.exists() else [])] if each.exists() and each not in found]
    return found


def without(text, headers, new):
    """The lines of a text less what stands, five lines or more in a row, in one of the headers and not in the text `new`."""
    lines = text.splitlines()
    for header in headers:
        matcher = difflib.SequenceMatcher(None, lines, header.read_text(encoding="utf-8").splitlines(), autojunk=False)
        for at, _, size in reversed(matcher.get_matching_blocks()):
            if size >= 5 and "\n".join(lines[at : at + size]) not in new:
                del lines[at : at + size]
    return "".join(line + "\n" for line in lines)
