#!/usr/bin/env python3
"""check_indices.py [--list]: each product of indices in a kernel that can exceed 31 bits is computed in 64, or docs/index-arithmetic.md has it.

How large a number can be stands in that page's first table; names that it does not have are sizes of tiles, below 2^8. A product is
wide from its first operand of type size_t on. Sums are not looked at: none has an operand above 2^27. --list prints every product.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "index-arithmetic.md"
OPERAND = r"(?:\(\w+\))?(?:\((?:[^()]|\([^()]*\))*\)|[A-Za-z_][\w.]*(?:->\w+)*(?:<[^<>()]*>)?(?:\[[^\]]*\])?(?:\((?:[^()]|\([^()]*\))*\))?|\d+)"
CHAIN = re.compile(rf"(?<![\w.>)])({OPERAND}(?: [*/%] {OPERAND})+)")
ROWS_OF_A_TILE = {"row", "key", "r", "col"}  # rows of a tile where the factor is a constant; else rows of a head


def bounds():
    """The number of bits of each name in the page's first table, and the products in its second."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.read_text().split("\n") if line.startswith("| `")]
    bits = {name: int(cells[1]) for cells in rows if cells[1].isdigit() for name in re.findall(r"`([^`]+)`", cells[0])}
    return bits, {cells[0].strip("`"): cells[1] for cells in rows if not cells[1].isdigit()}


class File:
    def __init__(self, path, bits):
        self.text = re.sub(r"//.*|/\*.*?\*/", lambda c: "\n" * c[0].count("\n"), path.read_text(), flags=re.S if path.suffix == ".h" else 0)
        self.bits = bits
        self.wide = set(re.findall(r"size_t (\w+) = ", self.text)) | set(re.findall(r"size_t (\w+)[,)]", self.text))
        for names in re.findall(r"size_t (\w+ = [^;{}]*);", self.text):
            self.wide |= set(re.findall(r"(?:^|, )(\w+) = ", names))
        self.found = []  # (product, wide)

    def operand(self, text, constant):
        """(bits, wide) of one operand."""
        wide = re.match(r"\((?:size_t|float|double)\)|.*\d\.\d", text) is not None
        text = re.sub(r"^\((?:size_t|int|unsigned)\)", "", text)
        if re.search(r"^sizeof\b", text):
            return 3, True
        if re.search(r"_element|scale|dropout|softcap|^exp|^d[PSVK]_reg|^[PS]_reg", text):
            return 0, True  # no index
        if text.isdigit():
            return int(text).bit_length(), wide
        if call := re.match(r"\w+(?:<[^<>()]*>)?(?=\(.)", text):  # as large as its largest argument
            text = text[call.end():]
        if text.startswith("("):
            inner = [self.chain(c) for c in CHAIN.findall(text[1:-1])]
            names = [self.operand(n, constant) for n in re.findall(r"(?:p\.|p->|own\.|of\.)?\b[A-Za-z_]\w*(?:\.[xyz]\b)?", text)]
            every = inner + names
            return max((b for b, _ in every), default=8), wide or any(w for _, w in every)
        name = re.sub(r"^(?:p\.|p->|own\.|of\.)", "", text)
        if name in ROWS_OF_A_TILE and constant:
            return 8, wide
        return self.bits.get(name, 7 if name == "d" else 8), wide or name in self.wide

    def chain(self, text):
        parts = re.split(r" ([*/%]) ", text)
        if re.search(r"\(.* [*/%] .*\)", text):  # an operator within a parenthesis is not the chain's
            parts, depth, at = [""], 0, 0
            while at < len(text):
                depth += (text[at] == "(") - (text[at] == ")")
                if depth == 0 and text[at:at + 3] in (" * ", " / ", " % "):
                    parts += [text[at + 1], ""]
                    at += 3
                else:
                    parts[-1] += text[at]
                    at += 1
        constants = [re.fullmatch(r"\d+|[A-Z][A-Z_]*\w*(?:<\w+>)?|::\w+", part) is not None for part in parts[::2]]
        bits, wide = self.operand(parts[0], any(constants))
        divisors = {part for operator, part in zip(parts[1::2], parts[2::2]) if operator == "/"}
        for operator, part in zip(parts[1::2], parts[2::2]):
            if operator == "*" and part in divisors:  # x / n * n is no larger than x
                continue
            more, also_wide = self.operand(part, any(constants))
            wide = wide or also_wide
            if operator == "*":
                bits += more
                if bits >= 31:
                    self.found.append((text, wide))
            elif operator == "%":
                bits = more
            else:
                bits = max(0, bits - (more - 1 if part.isdigit() else 0))
        return bits, wide

    def products(self):
        text = re.sub(r"p->batch \* p->heads\b", "batch_heads", self.text)
        while subscript := re.search(r"\[([^\[\]]*)\]", text):  # by itself: an element is no index
            text = text[:subscript.start()] + "_element" + text[subscript.end():] + f"\n({subscript[1]});"
        for chain in CHAIN.findall(text):
            self.chain(chain)
        return self.found


def main():
    bits, allowed = bounds()
    used, status = set(), 0
    paths = sorted([*ROOT.glob("steps/*/*.cu"), *ROOT.glob("steps/*/*.cuh"), *ROOT.glob("common/device/*.cuh")])
    count = 0
    for path in paths:
        for product, wide in dict.fromkeys(File(path, bits).products()):
            count += 1
            if "--list" in sys.argv:
                print(f"{path.relative_to(ROOT)}: {product}: {'wide' if wide else 'narrow'}")
            if wide:
                continue
            used.add(product)
            if product not in allowed:
                print(f"{path.relative_to(ROOT)}: {product} can exceed 31 bits: compute it in size_t, or say in {PAGE.name} why it cannot")
                status = 1
    for product in sorted(set(allowed) - used):
        print(f"{PAGE.name}: no kernel has {product}")
        status = 1
    if count < 100:
        print(f"only {count} products were found")
        status = 1
    if not status:
        print(f"{count} products above 31 bits are wide or bounded.")
    return status


sys.exit(main())
