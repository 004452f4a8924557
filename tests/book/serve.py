#!/usr/bin/env python3
"""serve.py SITE PROGRAMS [SED]: does `./run.sh book --trace FILE --serve PORT` show the site, and the trace in it, until it is interrupted?
In a copy of the project, in which the sed command SED has edited book/job.sh."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def ask(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return None, ""


def main(site, programs, edit=""):
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for path in ROOT.iterdir():
            if path.name not in ("build", "book", ".git"):
                (copy / path.name).symlink_to(path)
        shutil.copytree(ROOT / "book", copy / "book")
        shutil.copytree(site, copy / "build/book")
        subprocess.run(["sed", "-i", edit, str(copy / "book/job.sh")], check=True)
        subprocess.run([f"{programs}/06_vectorized", *"--heads 1 --seq 64 --no-check --no-time --trace".split(), f"{folder}/trace.json"], check=True, capture_output=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address, began = f"http://127.0.0.1:{port}", time.monotonic()
        job = subprocess.Popen([copy / "run.sh", "book", "--trace", "trace.json", "--serve", str(port)], cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=os.environ | {"PYTHONUNBUFFERED": "1"}, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # where this test runs in the background
        try:
            while ask(f"{address}/")[0] is None and job.poll() is None and time.monotonic() < began + 60:
                time.sleep(0.1)
            answers = {name: ask(f"{address}/{name}") for name in ("index.html", "explorers/data/steps.js", "nothing.html", "../run.sh")}
            os.killpg(job.pid, signal.SIGINT)  # as Ctrl-C does
            said, _ = job.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            return "it does not end when it is interrupted"
        if [answer[0] for answer in answers.values()] != [200, 200, 404, 404] or "Attention, step by step" not in answers["index.html"][1]:
            return f"it answers {json.dumps({name: answer[0] for name, answer in answers.items()})} and says {said}"
        if "your_trace" not in answers["explorers/data/steps.js"][1]:
            return "the trace is not among the walks"
        return f"it ends with status {job.returncode} and says {said}" if job.returncode not in (0, 130) or "Traceback" in said else None


if __name__ == "__main__":
    problem = main(*sys.argv[1:])
    print(f"serving the site: {problem}" if problem else "The site is served until it is interrupted.")
    sys.exit(bool(problem))
