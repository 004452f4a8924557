#!/usr/bin/env python3
"""What the compiler made of chapter 06's loops, from its machine code for an H100. Needs the CUDA toolkit, but no card.

    machine_code.py FILE.jsonl        writes a JSON line for each of the two large tilings of the kernel, and of a form of it

Of the loops of the two products: instructions, multiply-adds, and multiply-adds that read three registers, because no
factor is kept from the one before (marked .reuse in the listing). How many registers with even and with odd numbers the
multiply-adds read. And the instructions of the loop in which copy_tile
checks the bounds of each piece.
"""

import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "steps" / "06_vectorized" / "vectorized.cu"
FORMS = SOURCE.with_name("forms.changes")
FORM = "Q and P transposed"
TILINGS = {64: (64, 8, 64, 4, 1, 2), 128: (128, 8, 64, 4, 2, 4)}
MANY = 100  # multiply-adds: the loop of a product


def disassemble(form):
    with tempfile.TemporaryDirectory() as folder:
        code, source = Path(folder) / "code", SOURCE
        if form:
            source = Path(folder) / "form.cu"
            source.write_bytes(subprocess.run([ROOT / "common" / "change", "apply", FORMS, form, SOURCE], check=True, capture_output=True).stdout)
        subprocess.run(["nvcc", "-std=c++20", "-O3", "-gencode", "arch=compute_90a,code=sm_90a", "-cubin", "-o", code,
                        "-I", ROOT / "common" / "device", "-I", ROOT / "common" / "cuda", source], check=True)
        return subprocess.run(["nvdisasm", code], check=True, capture_output=True, text=True).stdout


def innermost_loops(listing, tiling):
    """The instructions of each loop that holds no other, in order."""
    mangled = "".join(f"Li{number}E" for number in tiling)
    section = next(part for part in listing.split("\n.text.")[1:] if mangled in part.split(":", 1)[0])
    instructions, labels = [], {}
    for line in section.split("\n"):
        if label := re.match(r"\.(L_x_\d+):", line):
            labels[label[1]] = len(instructions)
        elif code := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*?);", line):
            instructions.append(code[1].strip())
        elif line.startswith("//-----"):
            break
    jumps = ((labels.get(target[1], len(instructions)), at) for at, code in enumerate(instructions)
             if (target := re.search(r"BRA.*\(\.(L_x_\d+)\)", code)))
    loops = sorted((first, last) for first, last in jumps if first < last)
    return [instructions[first:last + 1] for first, last in loops
            if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in loops)]


def reads(multiply_adds):
    """How many of them find no factor kept, and how many registers with even and with odd numbers they read."""
    count, banks, kept = 0, [0, 0], [None] * 3
    for code in multiply_adds:
        operands = re.sub(r"^@!?U?P\w+\s+", "", code).split(None, 1)[1]
        sources = re.split(r"\s*,\s*", operands)[1:4]  # without the one that it writes
        registers = [re.match(r"-?(R\d+)", source)[1] for source in sources]
        read = {r for r, last in zip(registers, kept) if r != last}
        count += len(read) == 3
        for register in read:
            banks[int(register[1:]) % 2] += 1
        kept = [r if source.endswith(".reuse") else None for r, source in zip(registers, sources)]
    return count, banks


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines = ""
    for form, (dim, tiling) in itertools.product(("", FORM), TILINGS.items()):
        listing = disassemble(form)
        loops = innermost_loops(listing, tiling)
        multiply_adds = [(loop, [code for code in loop if code.startswith("FFMA")]) for loop in loops]
        products = [{"instructions": len(loop), "multiply_adds": len(mine), **dict(zip(("three_registers", "reads"), reads(mine)))}
                    for loop, mine in multiply_adds if len(mine) >= MANY]
        assert len(products) == 2, "S and O"
        asked = max(len(loop) for loop in loops if any("LDGSTS.E.BYPASS.128" in code for code in loop))
        line = {"step": "06_vectorized", "architecture": "sm_90a", "dim": dim, "form": form, "products": products,
                "instructions_to_ask": asked}
        lines += json.dumps(line) + "\n"
    Path(sys.argv[1]).write_text(lines, encoding="utf-8")


main()
