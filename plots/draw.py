#!/usr/bin/env python3
"""Draws the chapters' pictures from traces of their programs on the simulated device.

    draw.py                     all of them, where one is missing or its script or its kernel's behaviour has changed
    draw.py 06_vectorized       one chapter's; docs: those of docs/gpu.md
    draw.py --check [CHAPTER]   draws nothing; are they up to date? (needs no matplotlib)
    draw.py --trace FILE --line tiled_matmul.cu:46 --out x.png
                                the requests of one source line of a run of your own, which wrote FILE by --trace

A chapter's draw.py has PICTURES, functions of the folder of the programs. Each returns a sheet.Page, mostly from a
trace, and its name is the picture's. The marks on the page are part of the hash that a picture remembers, so a kernel
that does something else makes --check fail until the picture is drawn again.
"""

import argparse
import runpy
import sys

import provenance
import sheet
import traces
from provenance import ROOT


def pictures_of(script, programs):
    for make in runpy.run_path(str(script))["PICTURES"]:
        try:
            page = make(programs)
        except (AssertionError, LookupError, StopIteration, ValueError) as error:
            sys.exit(f"{script.parent.name}: {make.__name__}() cannot draw what this kernel does: {error!r}")
        path = script.parent / ("pictures" if script.parent.name == "docs" else "") / f"{make.__name__}{getattr(page, 'suffix', '.png')}"
        yield provenance.Picture(path, [sheet.__file__], page.marks, lambda _, page=page: page)


def draw_line(trace, line, out):
    """The first request of each access at a source line, in its first launch."""
    for launch in traces.read(trace):
        first = {}
        for request in launch.requests():
            if request.place.endswith(line):
                first.setdefault((request.kind, request.array), request)
        if first:
            kernel = launch.kernel.partition("<")[0]  # with its folder and its template arguments a title may not fit
            return sheet.panels([(f"{request.place.rpartition('/')[2]} in {kernel}: {kind} of {array}", request.offsets, request.bytes,
                                  array if request.space == "global" else None, kind)
                                 for (kind, array), request in first.items()]).savefig(out, format="png")
    sys.exit(f"draw.py: {trace} holds no request of {line}")


def main():
    scripts = {script.parent.name: script for script in sorted([*ROOT.glob("steps/*/draw.py"), ROOT / "docs" / "draw.py"])}
    parser = argparse.ArgumentParser(description="Draws the chapters' pictures.")
    parser.add_argument("chapter", nargs="*", choices=[[], *scripts], help="as 06_vectorized; default: all, and docs")
    parser.add_argument("--check", action="store_true", help="draw nothing; name pictures missing or out of date")
    parser.add_argument("--bin", default=ROOT / "build" / "sim" / "bin", help="where the programs are")
    for option, words in (("trace", "a run of your own"), ("line", "FILE:LINE of its kernel"), ("out", "the picture to write")):
        parser.add_argument(f"--{option}", help=words)
    arguments = parser.parse_args()
    of_a_line = arguments.trace, arguments.line, arguments.out
    if any(of_a_line):
        return draw_line(*of_a_line) if all(of_a_line) else parser.error("--trace, --line and --out go together")
    chosen = [scripts[name] for name in arguments.chapter or scripts]
    return max(provenance.update(pictures_of(script, arguments.bin), arguments.check) for script in chosen)


if __name__ == "__main__":
    sys.exit(main())
