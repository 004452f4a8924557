"""Keeps committed pictures up to date without redrawing what has not changed. Standard library only.

A picture remembers what it was made from: its PNG has a text "Source-Hash" with a SHA-256 over the scripts that draw it
and the facts that they draw. update() draws the pictures whose hash differs; check() draws nothing and names those that
are missing or out of date. Both return the exit status.
"""

import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

KEY = "Source-Hash"
ROOT = Path(__file__).resolve().parent.parent
STYLE = ROOT / "plots" / "style.py"


@dataclass
class Picture:
    path: Path
    inputs: list  # files that decide what it looks like: its script, what that imports
    draw: Callable  # draw(path, metadata)
    facts: str = ""  # what it shows, as text

    def source_hash(self):
        digest = hashlib.sha256()
        for path in sorted(Path(path).resolve() for path in self.inputs):
            content = path.read_bytes()
            digest.update(b"%d\n" % len(content) + content)  # without the name: a checkout may lie anywhere
        digest.update(self.facts.encode())
        return digest.hexdigest()

    def is_up_to_date(self):
        try:
            _, _, text = Path(self.path).read_bytes().partition(b"tEXt" + KEY.encode() + b"\0")
        except OSError:
            return False
        return text[:64] == self.source_hash().encode()


def shown(path):
    """A path as the reader would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def draw(picture):
    """Drawn under another name and renamed, so that an interrupted script leaves no half picture."""
    path = Path(picture.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".png", delete=False) as file:
        unfinished = Path(file.name)
    try:
        picture.draw(unfinished, {KEY: picture.source_hash(), "Software": None})  # else it holds matplotlib's version
        unfinished.chmod(0o644)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def update(pictures):
    for picture in pictures:
        if not picture.is_up_to_date():
            draw(picture)
            print(f"{shown(picture.path)}: drawn")
    return 0


def check(pictures):
    stale = [picture for picture in pictures if not picture.is_up_to_date()]
    for picture in stale:
        print(f"{shown(picture.path)}: {'out of date' if Path(picture.path).exists() else 'missing'}", file=sys.stderr)
    return 1 if stale else 0
