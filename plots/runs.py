"""The runs that are recorded: their sizes, and how one is made and written down. Standard library only."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "cuda" / "bin"
DATA = ROOT / "plots" / "data"
REFUSED = 2  # a program's exit status
failures = []


def options(B, H, N, d, more=""):
    return f"--batch {B} --heads {H} --seq {N} --dim {d} {more}".strip()


# What is counted by the simulated device, and on the card for the table that compares the two.
TRUTH = [options(1, 2, 256, 64), options(1, 2, 200, 40), options(1, 3, 320, 48, "--seq-kv 192 --causal"),
         options(1, 2, 160, 128), options(1, 2, 130, 59)]
TRUTH += [f"{size} --deterministic" for size in TRUTH[:2]]
# Of steps for few queries, with groups of heads: one split and many, every number of row tiles, pages.
DECODED = [options(1, 8, 1, 128, "--heads-kv 2 --seq-kv 1000"), options(2, 6, 5, 72, "--heads-kv 2 --seq-kv 2500 --causal"),
           options(1, 4, 8, 64, "--heads-kv 1 --seq-kv 3000 --dtype fp16"), options(1, 24, 4, 128, "--heads-kv 1 --seq-kv 200 --causal"),
           options(4, 16, 2, 64, "--heads-kv 8 --seq-kv 130"),
           options(3, 8, 2, 128, "--heads-kv 2 --seq-kv 2000 --page-size 16 --lengths 2000,0,65"),
           options(1, 4, 4, 64, "--heads-kv 2 --seq-kv 300 --page-size 64 --lengths 200 --causal")]
# On both devices: at the last four, the number of splits depends on the number of multiprocessors, which is the H100's and the H200's.
SPLITS = [DECODED[i] for i in (3, 4, 6)] + [f"SIMT_MULTIPROCESSORS=132 {DECODED[i]}" for i in (0, 1, 2, 5)]
# Of steps that have variants of attention, each one in both passes and both tilings; a step refuses those that it lacks.
VARIED = [f"--heads 4 --dim {d} {variant} --pass {pass_}" for pass_ in ("fwd", "bwd") for d in (64, 128) for variant in (
    "--seq 200 --window 40,10", "--seq 200 --softcap 20 --alibi", "--seq 200 --heads-kv 2", "--lengths 130,0,65,5",
    "--seq 200 --dropout 0.3", "--seq 200 --rotary interleaved")]
# By the simulated device alone: tilings of other d, a mask whose corner lies on no tile's.
METERED = TRUTH + [*(options(1, 1, 130, d) for d in (24, 32, 36, 96)), options(1, 2, 330, 128, "--seq-kv 250 --causal"),
                   *(f"{size} --deterministic" for size in TRUTH[2:4]), options(1, 1, 130, 64, "--dtype fp16"),
                   *(f"SIMT_SHARED_KIB=99 {options(1, 1, 130, d, more)}" for d in (64, 128) for more in ("", "--deterministic")),
                   *DECODED, *SPLITS[3:], *VARIED]
# Of rungs as well: all counts, without the lines, and the work, which depends on the compiler a little.
# The last widths of tilings, causal and not, for much and for little shared memory.
WORKED = [TRUTH[1], TRUTH[2], TRUTH[3], f"{TRUTH[1]} --deterministic", options(1, 1, 97, 64), options(1, 1, 97, 64, "--causal"),
          options(1, 1, 70, 32), options(1, 1, 97, 64, "--deterministic"), options(1, 1, 70, 32, "--deterministic"),
          *(f"SIMT_SHARED_KIB={KiB} {options(1, 1, 65, d)}" for KiB, d in ((99, 64), (99, 128), (99, 32), (163, 64), (163, 128))),
          *(f"SIMT_SHARED_KIB={KiB} {options(1, 1, 65, d)} --deterministic" for KiB, d in ((99, 32), (163, 64), (163, 128))),
          options(1, 1, 97, 128, "--dtype fp16"),
          # One block, the first: under a mask it should be one of the longest.
          *(options(1, 1, 300, 64, f"--causal --meter-blocks 1000{more}") for more in ("", " --deterministic")), *DECODED, *VARIED]
LONG = [options(8, 32, queries, 128, "--heads-kv 8 --seq-kv 16384") for queries in (1, 8)]  # 537 MB of K and V
COUNTED = [options(4, 16, 1024, 64), options(4, 16, 1024, 128)]

# The errors of chapter 16, on the simulated device: each way with each kind of input. The first way's inputs are numbers of 16 bits.
WAYS = {"bf16": "12_hopper_fwd --dtype bf16", "tensor": "16_fp8_fwd --scales tensor", "head": "16_fp8_fwd --scales head",
        "block": "16_fp8_fwd --scales block", "hadamard": "16y_hadamard --scales tensor",
        "hadamard-block": "16y_hadamard --scales block", "one-accumulator": "16x_one_accumulator --scales tensor"}
INPUTS = {"random": options(1, 2, 64, 128, "--seq-kv 4096"), "outliers": options(1, 2, 64, 128, "--seq-kv 4096"),
          "sink": options(1, 2, 64, 128, "--seq-kv 4096"), "flat": options(1, 1, 16, 64, "--seq-kv 32768")}


def fail(what):
    failures.append(what)
    print(f"FAILED: {what}", file=sys.stderr, flush=True)


def run(command, more=dict, wrong=0):
    """The JSON line of a program with the fields that more() gives; None when it refused or failed. wrong=1: also of a wrong result."""
    with tempfile.NamedTemporaryFile("r") as line:
        done = subprocess.run([*command, "--json", line.name], capture_output=True, text=True)
        if done.returncode not in (0, REFUSED, wrong):
            fail(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return None if done.returncode not in (0, wrong) else {**json.load(line), **more()}


def write(file, *lines):
    for line in filter(None, lines):
        print(json.dumps(line, separators=(",", ":")), file=file, flush=True)
