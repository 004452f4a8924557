"""Keeps committed pictures up to date without redrawing what has not changed. Standard library only.

A picture remembers what it was made from: its PNG has a text "Source-Hash" with a SHA-256 over the scripts that draw it
and the facts that they draw.
"""

import hashlib
import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

KEY = "Source-Hash"
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Picture:
    path: Path
    inputs: list  # scripts that decide what it looks like
    facts: object  # what it shows
    figure: Callable  # from the facts: anything with a Figure's savefig()

    def source_hash(self):
        digest = hashlib.sha256()
        for path in sorted(map(Path, [*self.inputs, ROOT / "plots" / "style.py"])):
            content = path.read_bytes()
            digest.update(b"%d\n" % len(content) + content)  # without the name: a checkout may lie anywhere
        digest.update(json.dumps(self.facts).encode())
        return digest.hexdigest()

    def is_up_to_date(self):
        _, _, text = (self.path.read_bytes() if self.path.exists() else b"").partition(b"tEXt" + KEY.encode() + b"\0")
        return text[:64] == self.source_hash().encode()

    def draw(self):
        """Written at once when it is complete: an interrupted script leaves no half picture."""
        image = io.BytesIO()
        metadata = {KEY: self.source_hash(), "Software": None}  # else it holds matplotlib's version
        self.figure(self.facts).savefig(image, format="png", metadata=metadata)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(image.getvalue())


def update(pictures, check=False):
    """Draws those whose hash differs; with `check` only names them. Returns the exit status."""
    stale = [picture for picture in pictures if not picture.is_up_to_date()]
    for picture in stale:
        found = "out of date" if picture.path.exists() else "missing"
        if not check:
            picture.draw()
        print(f"{os.path.relpath(picture.path)}: {found if check else 'drawn'}", file=sys.stderr if check else sys.stdout)
    return 1 if check and stale else 0
