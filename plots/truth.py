"""The simulated device's counts beside Nsight Compute's: the tables that show whether they agree, and why not. Standard library only."""

import re
from types import SimpleNamespace

import records as rec
from causes import COUNTED
from records import DASH, need, options_of

COMPARED = COUNTED["compared"]
LEAST_RATIO, MOST_RATIO, LEAST_SHARE, SMALL_SHARE = 0.95, 1.05, 0.98, 1e-3
DIFFERS = "the card's own count differs from run to run"  # a cause


def plain_kernel(name):
    """Nsight Compute writes `void matmul<1>` for what the source calls `matmul<true>`."""
    name = re.sub(r"\((?:bool|int|unsigned int|unsigned)\)|\s", "", name.removeprefix("void "))
    return re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", name))


def card_count(lines, run, kernel, names):
    """Nsight Compute's count in the launches of a kernel of a run; None where it was not taken."""
    launches = [line["counters"] for line in lines if (line["step"], line["options"]) == (run["step"], run["options"])
                and plain_kernel(line["kernel"]) == plain_kernel(kernel["kernel"])][-kernel["launches"] :]
    taken = len(launches) == kernel["launches"] and all(name in launch for launch in launches for name in names)
    return sum(launch[name] for launch in launches for name in names) if taken else None


def comparisons(book):
    """Each kernel's counts beside the card's, where both were taken. agree is True, the reason why they agree in truth, or
    False. Then cause is what counters.json names. Where the card also counted the kernel without the cause, changed as
    counters.json says, cause is None if the meter's count does not agree with that count, `without`."""
    rows, on_card, changed = [], book.on_card(), book.lines("counters", "causes")
    for run in book.meters:
        lines, without = ([line for line in all_ if line["step"] == run["step"]] for all_ in (on_card, changed))
        for kernel in run["meter"]:
            for what, totals, requests, names, others in COMPARED:
                row = SimpleNamespace(run=run, kernel=kernel["kernel"], what=what, ours=sum(kernel["totals"].get(name, 0) for name in totals),
                                      theirs=card_count(lines, run, kernel, names), without=card_count(without, run, kernel, names))
                if row.theirs is None or not kernel["totals"].get(requests, 0) and not row.theirs:
                    continue
                small = SMALL_SHARE * kernel["totals"].get(requests, 0)
                agrees = lambda card: card is not None and (LEAST_RATIO * card <= row.ours <= MOST_RATIO * card
                                                            or not (row.ours and card) and abs(row.ours - card) <= small)
                row.agree, row.cause = agrees(row.theirs), None
                by_others = min((card_count(lines, run, kernel, [name]) or 0 for name in others), default=0)
                if not row.agree and LEAST_RATIO * (row.theirs - by_others) <= row.ours <= row.theirs:
                    row.agree = COUNTED["by_others"]
                if not row.agree and (row.without is None or agrees(row.without)):
                    row.cause = next((cause for cause, place in COUNTED["causes"] if re.fullmatch(place, f"{run['step']} {run['options']} {row.kernel} {what}")), None)
                rows.append(row)
    return rows


def truth_rows(book):
    """The comparisons; too few that agree, or one that does not and has no cause, is an error."""
    for line in book.lines("counters", "drawn"):
        need(line["options"] in rec.drawn(line["commit"]), f"truth: {line['options']} does not follow from the commit {line['commit']}")
    rows = comparisons(book)
    repeatable = [row for row in rows if not (row.cause or "").startswith(DIFFERS)] # with the others nothing can agree
    agree = sum(bool(row.agree) for row in repeatable)
    need(agree >= LEAST_SHARE * len(repeatable), f"truth: only {agree} of {len(repeatable)} counts agree")
    for row in rows:
        need(row.agree or row.cause, f"truth: {row.run['step']} {row.run['options']}, {row.kernel}: {row.what} {row.ours}, on the card "
             f"{row.theirs}{'' if row.without is None else f', without what counters.json names {row.without}'}; no cause is known")
    return rows


def both_counts(row):
    return [row.what, str(row.ours), str(row.theirs), f"{row.ours / row.theirs:.3f}" if row.theirs else DASH]


def with_notes(headings, alignments, rows):
    """A table of (cells, a reason or None): the reasons stand below it, and their numbers in its last column."""
    numbers = {reason: at for at, reason in enumerate(dict.fromkeys(reason for _, reason in rows if reason), start=1)}
    return (headings, alignments, [[*cells, f"({numbers[reason]})" if reason else ""] for cells, reason in rows],
            *(f"\n({at}) {reason}.\n" for reason, at in numbers.items()))


def truth(book, page, size):
    """The simulated device's counts beside Nsight Compute's."""
    rows, before = [], None
    for row in truth_rows(book):
        step = row.run["step"]
        if row.run["options"] == options_of(size) and rec.is_chapter(step) and (row.ours or row.theirs):
            cell = f"{step[:2]} `{row.kernel}`"
            rows.append(([cell if cell != before else "", *both_counts(row)], row.cause or (row.agree if row.agree is not True else None)))
            before = cell
    return with_notes(["kernel", "counter", "simulated", "card", "ratio", "cause"], "llrrrl", rows)


def agreement(book, page):
    """How many counts of each rung agree, over all sizes."""
    steps = {}
    for row in truth_rows(book):
        steps.setdefault(row.run["step"], []).append(row)
    rows = [[f"`{step}`", str(len({row.run["options"] for row in rows})), str(len(rows)), str(sum(row.ours == row.theirs for row in rows)),
             str(sum(bool(row.agree) for row in rows)), str(sum(not row.agree for row in rows))] for step, rows in sorted(steps.items())]
    return ["", "sizes", "counts", "equal", "within 5 %", "apart, with a cause"], "lrrrrr", rows


def apart(book, page):
    """The counts that do not agree, and what the card counts without the cause."""
    rows = [([f"`{row.run['step']}`", rec.size_of(row.run["options"]), f"`{row.kernel}`", *both_counts(row),
              DASH if row.without is None else str(row.without)], row.cause)
            for row in sorted(truth_rows(book), key=lambda row: (row.run["step"], row.run["options"])) if not row.agree]
    return with_notes(["", "size", "kernel", "counter", "simulated", "card", "ratio", "card, without the cause", "cause"], "llllrrrrl", rows)
