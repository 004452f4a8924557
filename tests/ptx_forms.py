#!/usr/bin/env python3
"""ptx_forms.py SIMT_NVCC: forms of PTX instructions, of which each line of ptx_forms.txt says whether an assembler takes it (+), or
refuses it (-), and whether the simulated device lacks one that it takes (~). The simulated device must agree; what it takes must
compile; and where ptxas is, ptxas must agree. Prints what differs; exit status 1 when anything does."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LETTERS = {"b8": "h", "u8": "h", "s8": "h", "pred": "p", "f32": "f", "f64": "d", "f16x2": "r", "bf16x2": "r", "u16x2": "r", "s16x2": "r"}
REGISTERS = ".reg .b16 h<9>; .reg .b32 r<9>; .reg .b64 l<9>; .reg .f32 f<9>; .reg .f64 d<9>; .reg .pred p<9>; "


def letter_of(kind):
    return LETTERS.get(kind) or {"16": "h", "32": "r", "64": "l"}[kind[-2:]]


def expand(line):
    """add.(s32 u32) #, # is two forms; # is a register of the last type named, @ one of the first, $ one twice as wide."""
    parts = re.split(r"\(([^()]*)\)", line)
    for choice in itertools.product(*[part.split() if i % 2 else [part] for i, part in enumerate(parts)]):
        form = "".join(choice).replace("._", "")
        kinds = re.findall(r"\.((?:[busf]|bf)(?:8|16x2|16|32|64)|pred)\b", form.split()[0])
        if kinds:
            form = form.replace("#", letter_of(kinds[-1])).replace("@", letter_of(kinds[0]))
            form = form.replace("$", {"h": "r", "r": "l"}.get(letter_of(kinds[-1]), "l"))
        numbers = itertools.count(1)
        yield re.sub(r"\b([hrlfdp])(?=[-+,\]}|]|$)", lambda found: f"{found[1]}{next(numbers) % 9}", form) + ";"


PTXAS = shutil.which("ptxas", path=os.environ["PATH"] + ":/usr/local/cuda/bin")


def ptxas_refuses(forms, folder):
    """The forms that ptxas does not take; it stops at an error of the syntax, so each form has a run of the rest."""
    refused, left = set(), list(range(len(forms)))
    while left:
        text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n" + REGISTERS + "\n"
        lines = text.count("\n")
        with open(f"{folder}/forms.ptx", "w", encoding="utf-8") as file:
            file.write(text + "".join("{ " + forms[i] + " }\n" for i in left) + "ret;\n}\n")
        run = subprocess.run([PTXAS, "-arch=sm_90a", f"{folder}/forms.ptx", "-o", f"{folder}/forms.cubin"], capture_output=True, text=True, check=False)
        if run.returncode == 0:
            break
        found = {left[int(number) - lines - 1] for number in re.findall(r"(?:forms.ptx, line |on line ')(\d+)", run.stderr) if int(number) - lines <= len(left)}
        if not found:
            sys.exit("ptxas: " + run.stderr)
        refused |= found
        left = [i for i in left if i not in found]
    return refused


def main():
    compiler = sys.argv[1]
    rewriter = os.path.join(os.path.dirname(compiler), "..", "lib", "simt", "simt_rewrite")
    forms, expected = [], []
    with open(os.path.join(HERE, "ptx_forms.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and line[0] != "#":
                added = [form for part in line[1:].split(";") for form in expand(part.strip())]
                forms += added
                expected += [line[0]] * len(added)
    wrong, taken = [], []
    with tempfile.TemporaryDirectory() as folder:
        for form, sign in zip(forms, expected):
            with open(f"{folder}/form.ii", "w", encoding="utf-8") as file:
                file.write('void f() {\n    asm volatile("' + REGISTERS + form + '");\n}\n')
            run = subprocess.run([rewriter, f"{folder}/form.ii", f"{folder}/out.ii"], capture_output=True, text=True, check=False)
            if (run.returncode == 0) != (sign == "+"):
                wrong.append(f"{sign} {form} the simulated device {'takes it' if run.returncode == 0 else 'says ' + run.stderr.strip()}")
            elif run.returncode == 0:
                taken.append(form)
        with open(f"{folder}/all.cu", "w", encoding="utf-8") as file:
            file.write("__global__ void k() {\n" + "".join(f'    asm volatile("{REGISTERS}{form}");\n' for form in taken) + "}\n")
        run = subprocess.run([compiler, "-std=c++17", "-c", f"{folder}/all.cu", "-o", f"{folder}/all.o"], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            wrong += [line[:300] for line in run.stderr.splitlines() if "error" in line or "all.cu:" in line][:20]
        if PTXAS:
            refused = ptxas_refuses(forms, folder)
            wrong += [f"{sign} {form} ptxas {'refuses' if i in refused else 'takes'} it" for i, (form, sign) in enumerate(zip(forms, expected)) if (i in refused) != (sign == "-")]
    print("\n".join(wrong) or f"{len(forms)} forms of instructions: {expected.count('+')} taken, {expected.count('-')} refused, {expected.count('~')} lacking"
          + ("" if PTXAS else "; no ptxas to compare with"))
    sys.exit(1 if wrong else 0)


main()
