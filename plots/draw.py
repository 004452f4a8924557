#!/usr/bin/env python3
"""Draws the chapters' pictures from traces of their programs on the simulated device.

    draw.py                     all of them, where one is missing or its script or its kernel's behaviour has changed
    draw.py 06_vectorized       one chapter's; docs: those of docs/gpu.md
    draw.py --check [CHAPTER]   draws nothing; are they up to date? (needs no matplotlib)
    draw.py --trace FILE --line tiled_matmul.cu:46 --out x.png
                                the requests of one source line of a run of your own, which wrote FILE by --trace

A chapter's draw.py has PICTURES = {name of the picture: (facts, draw)}: facts(folder of the programs) computes, mostly from
a trace, what the picture shows, as JSON values; draw(facts) puts it on a sheet.Page. The facts are part of the hash that a
picture remembers, so a kernel that does something else makes --check fail until the picture is drawn again.
"""

import argparse
import json
import runpy
import sys
from pathlib import Path

import provenance
import sheet
import traces

ROOT = provenance.ROOT


def pictures_of(script, bin_folder):
    sys.path.insert(0, str(script.parent))
    chapter = runpy.run_path(str(script))
    sys.path.pop(0)
    pictures = []
    for name, (facts_of, draw) in chapter["PICTURES"].items():
        text = json.dumps(facts_of(bin_folder), sort_keys=True)
        pictures.append(provenance.Picture(
            script.parent / name, [script, sheet.__file__, provenance.STYLE],
            lambda path, metadata, draw=draw, text=text: draw(json.loads(text)).save(path, metadata), text))
    return pictures, chapter.get("also")


def draw_line(trace, line, out):
    """The first request of each access at a source line, in its first launch."""
    for launch in traces.read(trace):
        first = {}
        for request in launch.requests():
            if request.place.endswith(line):
                first.setdefault((request.kind, request.array), request)
        if first:
            return sheet.panels([(f"{request.place} in {launch.kernel}: {kind} of {array}", request.offsets, request.bytes,
                                  array if request.space == "global" else None, kind)
                                 for (kind, array), request in first.items()]).save(out, {})
    sys.exit(f"draw.py: {trace} holds no request of {line}")


def main():
    parser = argparse.ArgumentParser(description="Draws the chapters' pictures.")
    parser.add_argument("chapter", nargs="*", help="as 06_vectorized; default: all, and docs")
    parser.add_argument("--check", action="store_true", help="draw nothing; name pictures missing or out of date")
    parser.add_argument("--bin", default=str(ROOT / "build" / "sim" / "bin"), help="where the programs are")
    for option, words in (("trace", "a run of your own"), ("line", "FILE:LINE of its kernel"), ("out", "the picture to write")):
        parser.add_argument(f"--{option}", help=words)
    arguments = parser.parse_args()
    if arguments.trace or arguments.line or arguments.out:
        if not (arguments.trace and arguments.line and arguments.out):
            parser.error("--trace, --line and --out go together")
        return draw_line(arguments.trace, arguments.line, arguments.out)
    scripts = {script.parent.name: script for script in sorted([*ROOT.glob("steps/*/draw.py"), ROOT / "docs" / "draw.py"])}
    status = 0
    for name in arguments.chapter or scripts:
        if name not in scripts:
            parser.error(f"{name} has no pictures; these have: {', '.join(scripts)}")
        pictures, also = pictures_of(scripts[name], arguments.bin)
        status |= provenance.check(pictures) if arguments.check else provenance.update(pictures)
        status |= also(arguments.check) if also else 0
    return status


if __name__ == "__main__":
    sys.exit(main())
