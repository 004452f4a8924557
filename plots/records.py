"""The recorded measurements, as the plots and the tables read them. Standard library only.

A line of plots/data/latency/*.jsonl is one measurement of one pass of one step at one size, on one card.
"""

import functools
import json
import math
import random
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace


class BadRecord(Exception):
    """A line that cannot be used; the message names file and line."""


DASH = "-"  # what has not been recorded
# The best library of each data type, a backend of PyTorch, and its name in a heading.
BEST = {"fp32": ("efficient", "% of PyTorch's fused kernel"), "fp16": ("cudnn", "% of cuDNN"), "bf16": ("cudnn", "% of cuDNN"),
        "fp8": ("cudnn_fp8", "% of cuDNN's FP8")}
# What a chapter is about, where its program names its last rung's idea.
WHOLE = {"10_tensor_core_fwd": "tensor cores: mma.sync on fragments in registers, ldmatrix, swizzle, stages",
         "11_tensor_core_bwd": "five products on tensor cores, swizzle, transposed tiles, vector reductions",
         "12_hopper_fwd": "wgmma on tiles that the TMA copies, a producer warp, ping-pong of two or three warpgroups",
         "13_hopper_bwd": "wgmma and TMA for five products, dQ summed in shared memory",
         "16_fp8_fwd": "eight bits, V transposed by a warpgroup, sums of few bits added in fp32",
         "17_ring": "several devices: K and V go round a ring, O and L merged in fp32, equal work under a mask"}


class BadMarker(Exception):
    """A marker that asks for what there is not."""


def need(condition, message):
    if not condition:
        raise BadMarker(message)


SIZE = re.compile(r"B([1-9]\d*),H([1-9]\d*),N([1-9]\d*),d([1-9]\d*)(?:,M([1-9]\d*))?(,causal)?(?:,(fwd|bwd|det|both))?")


@dataclass(frozen=True)
class Shape:
    batch: int
    heads: int
    seq: int
    seq_kv: int
    dim: int
    causal: bool = False

    def __str__(self):
        lengths = f"N {self.seq}" if self.seq == self.seq_kv else f"N {self.seq} x {self.seq_kv}"
        return f"B {self.batch}, H {self.heads}, {lengths}, d {self.dim}" + (", causal" if self.causal else "")


# The size that the book quotes.
QUOTED = Shape(batch=4, heads=16, seq=4096, seq_kv=4096, dim=64)


def parse_size(text):
    """ "B4,H16,N4096,d64,causal" as a Shape and a pass."""
    match = SIZE.fullmatch(text)
    need(match, f'the size "{text}" is not as B4,H16,N4096,d64,M203,causal,bwd, of which the last three may be left out')
    B, H, N, d, M = map(int, match.group(1, 2, 3, 4, 5 if match[5] else 3))
    return Shape(B, H, N, M, d, bool(match[6])), match[7] or "fwd"


def options_of(size):
    """A G at the end of the size, as in B8,H32,N1,d128,M16384,G8, is the heads of K and V."""
    size, _, heads_kv = size.partition(",G")
    shape, pass_ = parse_size(size)
    keys = f" --heads-kv {heads_kv}" * bool(heads_kv) + f" --seq-kv {shape.seq_kv}" * (shape.seq_kv != shape.seq)
    return (f"--batch {shape.batch} --heads {shape.heads} --seq {shape.seq} --dim {shape.dim}{keys}" + " --causal" * shape.causal
            + " --deterministic" * (pass_ == "det"))


def size_of(options):
    """The shape that a program's options name, in words."""
    options = options.replace("--heads-kv", "--G")
    value = {"batch": 1, **dict(re.findall(r"--(\S+) (\S+)", options))}
    if "seq" not in value:  # packed sequences
        value["seq"] = sum(map(int, value["lengths"].split(",")))
    B, H, N, d = (int(value[name]) for name in ("batch", "heads", "seq", "dim"))
    variants = re.findall(r"--((?:rotary|window|softcap|dropout|lengths|G) \S+|alibi|deterministic)", options)
    return ", ".join([str(Shape(B, H, N, int(value.get("seq-kv", N)), d, "--causal" in options)), *variants])


@functools.cache
def drawn(commit):
    """Ten sizes that nobody chose, as options: they follow from a commit's hash. Tensor cores take the first five."""
    draw, sizes = random.Random(commit), []
    for at in range(10):
        B, H, N, M = draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 500), draw.randint(1, 500)
        d = 8 * draw.randint(1, 16) if at < 5 else draw.randint(1, 128)
        sizes.append(options_of(f"B{B},H{H},N{N},d{d},M{M}" + ",causal" * draw.randint(0, 1)))
    return sizes


def record_of(fields):
    """details is the whole line: date, driver, toolkit, commit, clocks. A pass is fwd, bwd, both, or det: bwd's
    deterministic variant. A number that was not measured is None."""
    return SimpleNamespace(
        step=fields["step"], device=fields["device"], pass_="det" if fields.get("deterministic") else fields["pass"],
        shape=Shape(*(fields[name] for name in ("batch", "heads", "seq", "seq_kv", "dim", "causal"))), details=fields,
        ms=fields.get("ms_median"), p25=fields.get("ms_p25"), p75=fields.get("ms_p75"), tflops=fields.get("tflops"),
        workspace=fields.get("workspace_bytes"))


@functools.cache
def lines(path):
    """Of a file of JSON lines."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def number(value, unit=""):
    """Three significant digits, never an exponent."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0}f}{unit}"


def size_in_bytes(size):
    if size is None:
        return DASH
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return "none" if size == 0 else f"{size:.0f} B" if unit == "B" else number(size, f" {unit}")


def parsed(path, make, what):
    """What make() makes of each line of a file of JSON lines; BadRecord names file and line of one of which it makes nothing."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for at, text in enumerate(file, start=1):
            try:
                if text.strip():
                    yield make(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise BadRecord(f"{path}:{at}: not a {what} ({error!r})") from error


def read(paths):
    """The records of the files, in order. The simulated device's are left out: its time is not a GPU's."""
    return [record for path in paths for record in parsed(path, record_of, "measurement") if record.device != "sim"]


def find(records, step, shape, pass_="fwd"):
    """The last such measurement: a later one replaces an earlier one. None when there is none."""
    return next((line for line in reversed(records) if (line.step, line.shape, line.pass_) == (step, shape, pass_)), None)


def is_chapter(step):
    """A chapter's last rung, not one on the way there."""
    return step[2:3] == "_"


def chapters(root):
    """The programs of the book's chapters, each of a chapter's last rung; from 90 on are the reader's own."""
    folders = sorted(Path(root).glob("steps/[0-8][0-9]_*"))
    return [folder.name for folder in folders if (folder / f"{folder.name[3:]}.cu").exists()]


def rungs(root):
    """All rungs of the chapters that have several, in order."""
    found = []
    for chapter in chapters(root):
        others = sorted(path.stem for path in Path(root).glob(f"steps/{chapter}/{chapter[:2]}[a-z]_*.cu"))
        found += [*others, chapter] if others else []
    return found
