"""The recorded measurements, as the plots and the tables read them. Standard library only.

A line of plots/data/*.jsonl is one measurement of one pass of one step at one size, on one card.
"""

import json
from collections import Counter
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


def parse(line):
    fields = json.loads(line)
    shape = Shape(fields["batch"], fields["heads"], fields["seq"], fields["seq_kv"], fields["dim"], fields["causal"])
    return Record(
        step=fields["step"],
        idea=fields.get("idea", ""),
        device=fields["device"],
        pass_="det" if fields.get("deterministic") else fields["pass"],
        shape=shape,
        ms=fields.get("ms_median"),
        p25=fields.get("ms_p25"),
        p75=fields.get("ms_p75"),
        tflops=fields.get("tflops"),
        workspace=fields.get("workspace_bytes"),
        details=fields,
    )


def read(paths):
    """The records of the files, in order. The simulated device's are left out: its time is not a GPU's."""
    records = []
    for path in paths:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                record = parse(line)
            except (ValueError, KeyError, TypeError) as error:
                raise BadRecord(f"{path}:{number}: not a measurement ({error!r})") from error
            if record.device != "sim":
                records.append(record)
    return records


def data_files(folder):
    return sorted(Path(folder).glob("*.jsonl"))


def of_main_card(records):
    """The lines of the card with the most of them: numbers of two cards do not belong in one table or picture."""
    if not records:
        return []
    card = Counter(record.device for record in records).most_common(1)[0][0]
    return [record for record in records if record.device == card]


def find(records, step, shape, pass_="fwd"):
    """The last such measurement: a later one replaces an earlier one. None when there is none."""
    for record in reversed(records):
        if record.step == step and record.shape == shape and record.pass_ == pass_:
            return record
    return None


def steps_of(records, pass_):
    return sorted({record.step for record in records if record.pass_ == pass_})
