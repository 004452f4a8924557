"""Keeps committed pictures up to date without redrawing what has not changed. Standard library only.

A picture remembers what it was made from: its PNG has a text "Source-Hash", its SVG a comment, with a SHA-256 over the scripts that draw it
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


def update(pictures, check=False):
    """Draws those whose hash differs; with `check` only names them. Returns the exit status."""
    status = 0
    for picture in list(pictures):  # each is known before the first one is drawn
        old, digest = picture.path.read_bytes() if picture.path.exists() else None, picture.source_hash()
        if old and any(KEY.encode() + between + digest.encode() in old for between in (b"\0", b": ")):
            continue
        if check:
            print(f"{os.path.relpath(picture.path)}: {'missing' if old is None else 'out of date'}", file=sys.stderr)
            status = 1
            continue
        image = io.BytesIO()  # an interrupted script leaves no half picture
        metadata = {KEY: digest, "Software": None}  # else it holds matplotlib's version
        picture.figure(picture.facts).savefig(image, format=picture.path.suffix[1:], metadata=metadata)
        picture.path.parent.mkdir(parents=True, exist_ok=True)
        picture.path.write_bytes(image.getvalue())
        print(f"{os.path.relpath(picture.path)}: drawn")
    return status
