"""The book's pages, for the checks beside this file. Standard library only."""

import os
import re
from pathlib import Path

ROOT = Path(os.environ.get("BOOK_ROOT") or Path(__file__).resolve().parent.parent.parent).resolve()  # BOOK_ROOT: a handout
FENCE = re.compile(r"^( *)(```+|~~~+)\s*([\w-]*)\s*$")


def pages(arguments=()):
    """The files that the command line names, else all pages."""
    if arguments:
        return [Path(name).resolve() for name in arguments]
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "steps", "exercises", "tests"):
        found += sorted((ROOT / folder).glob("**/*.md"))
    return [page for page in found if page.exists()]


def shown(page):
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else str(page)


def blocks(text):
    """(line number, language, lines, the text line before the fence) of each fenced block; the fence's indent is removed."""
    lines, found, at = text.split("\n"), [], 0
    while at < len(lines):
        match = FENCE.match(lines[at])
        if not match:
            at += 1
            continue
        indent, mark = match[1], match[2]
        end = at + 1
        while end < len(lines) and lines[end].strip() != mark:
            end += 1
        body = [line.removeprefix(indent) for line in lines[at + 1 : end]]
        before = next((line.strip() for line in reversed(lines[:at]) if line.strip()), "")
        found.append((at + 1, match[3], body, before))
        at = end + 1
    return found


def outside_fences(text):
    """The lines of a page, those of fenced blocks empty."""
    lines, inside = [], None
    for line in text.split("\n"):
        match = FENCE.match(line)
        if inside is None and not match:
            lines.append(line)
            continue
        inside = match[2] if inside is None else None if line.strip() == inside else inside
        lines.append("")
    return lines


def prose(text):
    """The text with everything blanked that is not prose; line numbers stay."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = "\n".join(outside_fences(text))
    for pattern in (r"<!-- begin (?:diff|code|file).*?<!-- end \w+ -->", r"<!--.*?-->", r"\$\$.*?\$\$", r"``[^`].*?``", r"`[^`\n]*(?:\n[^`\n]+)?`",
                    r"\$[^$\n]+\$", r"^    .*$", r"\]\([^)\n]*\)", r"https?://\S+", r"<[^>\n]*>"):
        text = re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE if ".*?" in pattern else re.MULTILINE)
    return text


def report(problems, all_well):
    """Print the problems, or that there are none; the exit status."""
    problems = list(problems)
    print("\n".join(problems) if problems else all_well)
    return 1 if problems else 0
