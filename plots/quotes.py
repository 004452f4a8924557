"""What the pages quote: functions, whole files and what scripts print. Standard library only."""

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


def whole_file(book, page, file):
    return fenced("", lines_of(book, file))


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
