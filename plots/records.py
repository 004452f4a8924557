"""The recorded measurements, as the plots and the tables read them. Standard library only.

A line of plots/data/latency/*.jsonl is one measurement of one pass of one step at one size, on one card.
"""

import json
from dataclasses import dataclass
from pathlib import Path


class BadRecord(Exception):
    """A line that cannot be used; the message names file and line."""


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

    def work(self):
        return self.batch * self.heads * self.seq * self.seq_kv * self.dim


# The size that the book quotes.
QUOTED = Shape(batch=4, heads=16, seq=4096, seq_kv=4096, dim=64)


@dataclass(frozen=True)
class Record:
    step: str
    idea: str
    device: str
    pass_: str  # fwd, bwd, both, or det: the deterministic variant of bwd
    shape: Shape
    ms: float | None
    p25: float | None
    p75: float | None
    tflops: float | None
    workspace: int | None
    details: dict  # the whole line: date, driver, toolkit, commit, clocks


def record_of(fields):
    shape = Shape(*(fields[name] for name in ("batch", "heads", "seq", "seq_kv", "dim", "causal")))
    numbers = (fields.get(name) for name in ("ms_median", "ms_p25", "ms_p75", "tflops", "workspace_bytes"))
    pass_ = "det" if fields.get("deterministic") else fields["pass"]
    return Record(fields["step"], fields.get("idea", ""), fields["device"], pass_, shape, *numbers, fields)


def read(paths):
    """The records of the files, in order. The simulated device's are left out: its time is not a GPU's."""
    records = []
    for path in paths:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
            try:
                record = record_of(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise BadRecord(f"{path}:{number}: not a measurement ({error!r})") from error
            if record.device != "sim":
                records.append(record)
    return records


def data_files(folder):
    """Of the recorded latencies, the files of the card that the book shows: H200's where there are any."""
    files = sorted(Path(folder).glob("latency/*.jsonl"))
    return [file for file in files if file.name.startswith("h200-")] or files


def find(records, step, shape, pass_="fwd"):
    """The last such measurement: a later one replaces an earlier one. None when there is none."""
    for record in reversed(records):
        if record.step == step and record.shape == shape and record.pass_ == pass_:
            return record
    return None


def steps_of(records, pass_):
    return sorted({record.step for record in records if record.pass_ == pass_})


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
