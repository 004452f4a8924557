"""Keeps committed pictures up to date without redrawing what has not changed. Standard library only.

A picture remembers what it was made from: its PNG has a text chunk "Source-Hash" with a SHA-256 over the scripts that
draw it and the data they draw. update() draws the pictures whose hash differs; check() draws nothing and names those
that are missing or out of date. Both return the exit status.
"""

import hashlib
import os
import struct
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

KEY = "Source-Hash"
ROOT = Path(__file__).resolve().parent.parent
STYLE = ROOT / "plots" / "style.py"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass
class Picture:
    path: Path
    inputs: list  # files that decide what it looks like: its script, style.py, its data
    draw: Callable  # draw(path, metadata)
    drawn_data: str = field(default="")  # more that decides it, as text: what was chosen from the data files

    def source_hash(self):
        digest = hashlib.sha256()
        # In one order, whether the caller named them from the root or from elsewhere.
        for path in sorted(Path(path).resolve() for path in self.inputs):
            content = path.read_bytes()
            # The length keeps two files from running into each other; the name is left out, so that moving the
            # checkout or calling the script from elsewhere changes nothing.
            digest.update(b"%d\n" % len(content) + content)
        digest.update(self.drawn_data.encode())
        return digest.hexdigest()


def png_text(path, key):
    """The text chunk `key` of a PNG, or None when it has none, is damaged or is not there."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    if not data.startswith(PNG_SIGNATURE):
        return None
    offset = len(PNG_SIGNATURE)
    while offset + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[offset : offset + 8])
        body = data[offset + 8 : offset + 8 + length]
        checksum = data[offset + 8 + length : offset + 12 + length]
        if checksum != struct.pack(">I", zlib.crc32(kind + body)):
            return None
        name, _, text = body.partition(b"\0")
        if kind == b"tEXt" and name == key.encode("latin-1"):
            return text.decode("latin-1")
        offset += 12 + length
    return None


def up_to_date(picture):
    return png_text(picture.path, KEY) == picture.source_hash()


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
        # "Software" would hold matplotlib's version.
        picture.draw(unfinished, {KEY: picture.source_hash(), "Software": None})
        unfinished.chmod(0o644)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def update(pictures):
    for picture in pictures:
        if up_to_date(picture):
            print(f"{shown(picture.path)}: up to date")
        else:
            draw(picture)
            print(f"{shown(picture.path)}: drawn")
    return 0


def check(pictures):
    stale = [picture for picture in pictures if not up_to_date(picture)]
    for picture in stale:
        state = "out of date" if Path(picture.path).exists() else "missing"
        print(f"{shown(picture.path)}: {state}", file=sys.stderr)
    return 1 if stale else 0
