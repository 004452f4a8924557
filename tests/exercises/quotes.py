#!/usr/bin/env python3
"""quotes.py GRADER: the reports that the tasks' pages quote (blocks marked "text" with a missed line) are what grading the starter prints."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
from pages import ROOT, blocks  # noqa: E402
from run_commands import matches  # noqa: E402

grader, wrong, quoted = str(Path(sys.argv[1]).resolve()), 0, 0
with tempfile.TemporaryDirectory() as folder:
    for name in ("common", "exercises", "steps", "tests"):
        os.symlink(ROOT / name, Path(folder) / name)
    for page in sorted((ROOT / "exercises").glob("*/README.md")):
        task = page.parent.name.split("_")[0]
        texts = [lines for _, language, lines, _ in blocks(page.read_text()) if language == "text" and "MISSED" in str(lines)]
        if not texts:
            continue
        subprocess.run([grader, "start", task], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        report = subprocess.run([grader, "grade", task], cwd=folder, stdout=subprocess.PIPE, text=True).stdout
        for lines in texts:
            quoted += 1
            if not matches(["...", *lines, "..."], report.rstrip("\n").split("\n")):
                print(f"{page.relative_to(ROOT)}: the report is not what the page quotes, but\n{report}")
                wrong += 1
print(f"{quoted} quoted reports, {wrong} out of date")
sys.exit(wrong > 0 or quoted < 10)
