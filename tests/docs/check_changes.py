#!/usr/bin/env python3
"""Does each rung change at most 100 lines of the rung before it, added and removed lines together, as plots/tables.py --changes counts
them: a line that is only indented anew does not count. Rungs beside the chain that have an x are compared with nothing.

A rung of VARIANTS changes the last rung of another chapter. What it shares with that rung stands in headers, word for word: such
functions are taken out of the other chapter's text before the two are compared. Lines that only name headers do not count. The rung
has at most 350 lines."""

import re
import subprocess
import sys

from pages import ROOT, report

sys.path.insert(0, str(ROOT / "plots"))
from quotes import included, without  # noqa: E402

MOST = 100
LIMITS = {  # of a rung that has one of its own, and why
    "10b_mma": 114,  # WMMA and all that it needs in shared memory, its alignment too, leave at once: no line that touches a fragment stays
    "12b_producer": 120,  # the roles of producer and consumer change each line that copies, waits or computes a row
    "12f_persistent": 120,  # the loop over query tiles changes who waits for what at the beginning and at the end of each
    "13_hopper_bwd": 108,  # a fixed order needs turns, a writer per consumer and two orders of the tiles at once
    "16b_in_shared": 121,  # as 12b: the roles of producer and consumer, and O in another order of its columns
    "16_fp8_fwd": 137,  # what three rungs of chapter 12 add (12c, 12d, the order of the blocks), and one scale for a head
    "16y_hadamard": 120,  # beside the chain, with a kernel before that of the chapter: the rest is not changed
    "11f_transposed": 158,  # a kernel of its own for d 64: like a first rung, its section lists what it keeps and what is new
}

MOST_LINES = 350
VARIANTS = {  # a rung's folder and the end of its name: what it changes
    ("15_variants", "_fwd"): "10_tensor_core_fwd/tensor_core_fwd.cu",
    ("15_variants", "_bwd"): "11_tensor_core_bwd/tensor_core_bwd.cu",
}
DETERMINISTIC = (  # chapter 11's other pass, which no variant has
    (r", bool ADD_DQ>", ">"),
    (r"template <bool ADD_DQ> ", ""),
    (r", ADD_DQ>", ">"),
    (r" && ADD_DQ", ""),
    (r" *if constexpr \(!ADD_DQ\) return;\n", ""),
    (r"if constexpr \(ADD_DQ\) ", ""),
    (r"template fitting<true>", "fitting"),
    (r"dispatch\(p,\n +", "dispatch(p, "),
    (r"\{\n *(return shared_memory_fits.*;)\n *\}", r"{ \1 }"),
    (r" when ADD_DQ,", ":"),
    (r" when ADD_DQ", ""),
    (r'\n#include "deterministic.cuh"\n|.*deterministic.*\n', ""),
)


def variants():
    """Each rung of VARIANTS, how many lines it has, and how many it changes."""
    for (folder, end), other in VARIANTS.items():
        for rung in sorted((ROOT / "steps" / folder).glob(f"{folder[:2]}[a-wyz]_*{end}.cu")):
            text = rung.read_text(encoding="utf-8")
            base = (ROOT / "steps" / other).read_text(encoding="utf-8")
            for pattern, replacement in DETERMINISTIC:
                base = re.sub(pattern, replacement, base)
            headers = included(rung)
            for header in included(ROOT / "steps" / other):  # of which the rung has a version of its own
                if header not in headers and f'"{header.name}"' in base:
                    body = re.search(r"\n#\w+ [^\n]*\n\n(//.*)#endif$", header.read_text(encoding="utf-8").rstrip(), re.S)[1]
                    base = re.sub(rf'#include "{header.name}"\n((#include.*\n)*\n)', lambda names: names[1] + body, base)
            base = without(base, headers, text)
            said = subprocess.run(["diff", "-", rung], input=base, capture_output=True, text=True)
            if said.returncode > 1:
                sys.exit(said.stderr)
            yield rung.stem, len(text.splitlines()), sum(bool(re.match(r"[<>] (?!#include|using )", line)) for line in said.stdout.splitlines())


def problems():
    other = dict.fromkeys(name for name, _, _ in variants())
    said = subprocess.run([sys.executable, "-B", ROOT / "plots" / "tables.py", "--changes"], check=True, capture_output=True, text=True)
    changes = {line.split()[3]: int(line.split()[0]) for line in said.stdout.splitlines()}
    yield from (f"{rung} has a limit of its own, and is no rung" for rung in LIMITS.keys() - changes.keys())
    for rung, lines in changes.items():
        if rung[2] != "x" and rung not in other and lines > (most := LIMITS.get(rung, MOST)):
            yield f"{rung} changes {lines} lines of the rung before it; one idea takes at most {most}"
    for rung, lines, changed in variants():
        if changed > MOST:
            yield f"{rung} changes {changed} lines of the chapter that it varies; one idea takes at most {MOST}"
        if lines > MOST_LINES:
            yield f"{rung} has {lines} lines; at most {MOST_LINES}"


if __name__ == "__main__":
    sys.exit(report(problems(), "Each rung differs from the one before by one idea."))
