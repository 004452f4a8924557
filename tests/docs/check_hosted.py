#!/usr/bin/env python3
"""check_hosted.py [NOTEBOOK]: what docs/hosted-gpu.md offers, on a machine without a card.

The cells of the notebook are run in their order, as they are, in a folder where `book` leads to this checkout: those that begin with
%%bash by bash, the others as Python with what IPython.display offers replaced. Each must end without an error, and the table must
name each step. The script for Modal is parsed and, where mypy is installed (with CI=true it must be), its types are checked; Modal
itself is not there."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOSTED = ROOT / "docs/hosted"
STEPS = "03"  # the notebook has all that a T4 can run

notebook = json.loads((Path(sys.argv[1]) if len(sys.argv) > 1 else HOSTED / "ladder.ipynb").read_text())
wrong = [f"cell {number} keeps an output" for number, cell in enumerate(notebook["cells"]) if cell.get("outputs") or cell.get("execution_count")]
os.environ["STEPS"] = STEPS
shown = types.ModuleType("IPython.display")
shown.Image, shown.display = lambda path: path, print
sys.modules |= {"IPython": types.ModuleType("IPython"), "IPython.display": shown}
variables, printed = {}, ""
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    Path("book").symlink_to(ROOT)
    for number, cell in enumerate(notebook["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if text.startswith("%%bash\n"):
            done = subprocess.run(["bash", "-c", text.split("\n", 1)[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            printed += done.stdout
            if done.returncode:
                wrong.append(f"cell {number} ends with exit status {done.returncode}:\n{done.stdout[-2000:]}")
        else:
            exec(compile(text, f"cell {number}", "exec"), variables)
    os.chdir(ROOT)
wrong += [f"the notebook prints no line of step {step}" for step in STEPS.split(",") if f"\n{step}_" not in printed]

script = HOSTED / "modal_ladder.py"
compile(script.read_text(), script, "exec")
if shutil.which("mypy"):
    mypy = ["mypy", "--ignore-missing-imports", "--disallow-untyped-defs", "--cache-dir=/dev/null", str(script)]
    done = subprocess.run(mypy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wrong += [done.stdout] if done.returncode else []
elif os.environ.get("CI"):
    wrong.append("mypy is missing")
else:
    print("mypy is missing: the types of the script for Modal are not checked")
print("\n".join(wrong) or "The notebook runs.")
sys.exit(bool(wrong))
