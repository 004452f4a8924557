"""Keeps committed pictures up to date without redrawing what has not changed. Standard library only.

A picture remembers what it was made from: its PNG has a text "Source-Hash" with a SHA-256 over the scripts that draw it
and the facts that they draw. update() draws the pictures whose hash differs; check() draws nothing and names those that
are missing or out of date. Both return the exit status.
"""

import hashlib
import io
import os
import sys
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
    draw: Callable  # draw(file, metadata)
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
            _, _, text = self.path.read_bytes().partition(b"tEXt" + KEY.encode() + b"\0")
        except OSError:
            return False
        return text[:64] == self.source_hash().encode()


def draw(picture):
    """Written at once when it is complete: an interrupted script leaves no half picture."""
    image = io.BytesIO()
    picture.draw(image, {KEY: picture.source_hash(), "Software": None})  # else it holds matplotlib's version
    picture.path.parent.mkdir(parents=True, exist_ok=True)
    picture.path.write_bytes(image.getvalue())


def update(pictures):
    for picture in (picture for picture in pictures if not picture.is_up_to_date()):
        draw(picture)
        print(f"{os.path.relpath(picture.path)}: drawn")
    return 0


def check(pictures):
    stale = [picture for picture in pictures if not picture.is_up_to_date()]
    for picture in stale:
        print(f"{os.path.relpath(picture.path)}: {'out of date' if picture.path.exists() else 'missing'}", file=sys.stderr)
    return 1 if stale else 0
