"""Run the book on a GPU that Modal rents. In the root of the repository:

    modal run docs/hosted/modal_ladder.py --command "./run.sh --steps 06"

GPU=A100 or GPU=T4 before the command asks for another card than an H100. The results come back to build/hosted/results.jsonl.
"""

import os
import subprocess
from pathlib import Path

import modal

RESULTS = Path("build/cuda/results.jsonl")  # below the root of the repository, here and there

image = (
    modal.Image.from_registry("nvidia/cuda:13.0.0-devel-ubuntu24.04", add_python="3.12")
    .apt_install("build-essential", "cmake", "libcjson-dev", "libboost-context-dev", "libcriterion-dev", "libdw-dev", "python3-matplotlib")
    .add_local_dir(".", "/book", ignore=["build", ".git"])
)
app = modal.App("attention", image=image)


@app.function(gpu=os.environ.get("GPU", "H100"), timeout=1800)
def run(command: str) -> tuple[int, bytes]:
    """Run a command in the book's folder; return its exit status and the results that it wrote."""
    status = subprocess.run(command, shell=True, cwd="/book").returncode
    results = Path("/book") / RESULTS
    return status, results.read_bytes() if results.exists() else b""


@app.local_entrypoint()
def main(command: str = "./run.sh") -> None:
    """Run a command there, keep its results here, and end with its exit status."""
    status, results = run.remote(command)
    if results:
        kept = Path("build/hosted") / RESULTS.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(results)
        print(f"Results: {kept}")
    raise SystemExit(status)
