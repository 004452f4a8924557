"""class.py FROM TASK --all FOLDER --csv FILE [--hidden SEED] [--variant N]: ./run.sh grade for a class, in the project's root.

FOLDER holds one file or one folder per student. FILE is rewritten after each of them, so that a run that was interrupted goes
on where it was. FILE.reports/ holds the reports and pairs.csv: pairs by what their holes share, whatever the names are."""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main(): an import is no place to stop with a traceback
import argparse
import csv
import fcntl
import hashlib
import itertools
import os
import re
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COLUMNS = "student task variant seed score max results faults cost status note sha256".split()
GRAM = 12  # tokens
MARKED, LEAST = 0.3, 15  # share and number of the prints that a marked pair has in common
KEPT = {"for", "if", "while", "return", "float", "int"}
MOST_BYTES = 1 << 20
HOLE = re.compile(r"^[ \t]*// >>> Hole (\d)[^\n]*\n(.*?)(?:^[ \t]*// <<< End of hole \1|\Z)", re.DOTALL | re.MULTILINE)
# Or a literal or a word, which are kept: a comment may seem to begin in '"' and end in "*/".
COMMENT = re.compile(r"(\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|[A-Za-z_]\w*|\d(?:[\w.]|'(?=\w))*)|/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)


def fail(status, message):
    print("run.sh:", message, file=sys.stderr)
    sys.exit(status)


def printable(name):
    """As text; behind an apostrophe where a spreadsheet would take it for a formula."""
    return ("'" if name[:1] in ("=", "+", "-", "@") else "") + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in os.fsencode(name).decode(errors="backslashreplace"))


def submitted(path, task):
    """The bytes of a student's file. OSError says why there are none."""
    if path.is_dir() and not path.is_symlink():
        if path.with_name(path.name + ".cu").exists():
            raise OSError(f"{printable(path.name)}.cu is there, too: one of them is the student's work")
        every = sorted(file for file in path.rglob("*.cu"))
        files = [file for file in every if file.name == f"{task}.cu"] or every
        if len(files) != 1:
            raise OSError(f"the folder holds {len(files)} files that could be meant, not one {task}.cu")
        path = files[0]
    if not stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_size > MOST_BYTES:
        raise OSError(f"{printable(path.name)} is no ordinary file of at most 1 MB")
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(MOST_BYTES)


def write_csv(path, columns, rows):
    """Whole or not at all."""
    with open(f"{path}.part", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    os.replace(f"{path}.part", path)


def prints(text):
    """The grams of the code in the holes. A name, whosever it is, counts by where its gram uses it first: so neither another name
    changes a print, nor what was added or moved elsewhere."""
    code = COMMENT.sub(lambda found: found[1] or " ", "\n".join(hole[2] for hole in HOLE.finditer(text)))
    tokens = re.findall(r"[A-Za-z_]\w*|[\d.]+\w*|[^\w\s]", code)
    names = {token for token in tokens if re.match("[A-Za-z_]", token)} - KEPT
    grams = (tokens[at : at + GRAM] for at in range(len(tokens) - GRAM + 1))
    return {hash(tuple(gram.index(token) if token in names else token for token in gram)) for gram in grams}


class Grading:
    def __init__(self, given, file, options):
        self.task, self.file, self.options = given.task, file, options
        self.given = {"task": given.task, "variant": given.variant or "", "seed": given.hidden or ""}
        self.reports = Path(f"{file}.reports")
        self.rows, self.texts, self.lacking, self.lock = {}, {}, "", threading.Lock()
        self.reports.mkdir(parents=True, exist_ok=True)
        self.folder = os.open(self.reports, os.O_RDONLY)
        try:
            fcntl.flock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fail(2, f"another run writes {file}")
        rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines()) if file.exists() else []
        if file.exists() and rows.fieldnames != COLUMNS:
            fail(2, f"{file} is there and is no result of grade --all: it stays as it is")
        self.earlier = {row["student"]: row for row in rows if row["status"] == "graded"}

    def one(self, path):
        """Grade a student, unless this file has been graded with this seed."""
        odd = path.name.startswith(".") or not (path.is_dir() or path.suffix == ".cu")
        student = printable(path.name if odd or path.is_dir() else path.stem)
        row = dict.fromkeys(COLUMNS, "") | self.given | {"student": student, "status": "not graded"}
        mark = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]
        report = self.reports / (re.sub(r"[^\w.+-]", "_", student, flags=re.ASCII)[:80].lstrip(".") + f".{mark}.txt")
        try:
            if odd:
                raise OSError("a student's file ends in .cu and does not begin with a dot: rename it")
            content = submitted(path, self.task)
            row["sha256"] = hashlib.sha256(content).hexdigest()
            earlier = self.earlier.get(student, {})
            if report.exists() and all(earlier.get(name) == row[name] for name in (*self.given, "sha256")):
                row = earlier
            else:
                with os.fdopen(os.memfd_create("submission"), "w+b") as file:  # nothing that a kill could leave
                    file.write(content)
                    file.seek(0)
                    done = subprocess.run(["setpriv", "--pdeathsig", "TERM", "build/sim/bin/exercise", "grade", self.task, "-", *self.options],
                                          stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
                self.read_report(row, done.returncode, (done.stderr + done.stdout).replace("standard_input.cu", student), report)
            if row["status"] == "graded":
                self.texts[path.name] = content.decode(errors="replace")
        except (OSError, RecursionError) as problem:  # the latter: of folders in folders
            row["note"] = getattr(problem, "strerror", None) or str(problem)
        with self.lock:
            self.rows[path.name] = row
            write_csv(self.file, COLUMNS, ([one[name] for name in COLUMNS] for _, one in sorted(self.rows.items())))

    def read_report(self, row, status, text, report):
        score = re.search(r"^Score: ([\d.]+) of ([\d.]+)$", text, re.MULTILINE)
        reasons = re.findall(r"^Not accepted:\n  .*|^  note: .*|^run\.sh: (?!PROTECTION).*", text, re.MULTILINE)
        row["note"] = " ".join(reasons[0].split()) if reasons else ""
        if status > 1 or not score:
            row["note"] = row["note"] or f"the grader ended with status {status}"
            self.lacking = self.lacking or status > 2 and row["note"]
            return
        report.write_text(text, encoding="utf-8")
        row["score"], row["max"] = score.groups()
        for column, heading in (("results", "Right results"), ("faults", "No faults"), ("cost", "Cost")):
            row[column] = "".join(re.findall(rf"^{heading} +([\d.]+) of", text, re.MULTILINE)[:1])
        row["status"] = "graded"

    def rank_pairs(self):
        """Of the prints that neither the starter nor the book's solution has, how many do two students share?"""
        starter, solution = (subprocess.run(["build/sim/bin/exercise", job, self.task], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
                             for job in ("starter", "solution"))  # a handout has no solution
        known, pairs = prints(starter) | prints(solution), []
        found = {student: prints(text) - known for student, text in self.texts.items()}
        for a, b in itertools.combinations(sorted(found), 2):
            shared = len(found[a] & found[b])
            share = shared / max(1, min(len(found[a]), len(found[b])))
            pairs.append([self.rows[a]["student"], self.rows[b]["student"], shared, f"{share:.2f}", "yes" if shared >= LEAST and share >= MARKED else "no"])
        pairs.sort(key=lambda pair: (pair[4], pair[3], pair[2]), reverse=True)
        write_csv(self.reports / "pairs.csv", ["student", "other", "shared", "share", "marked"], pairs)
        return sum(pair[4] == "yes" for pair in pairs)


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = lambda message: fail(2, f"grade --all: {message}; as in ./run.sh grade 05a --all homework --csv grades.csv --hidden 4711")
    parser.add_argument("task")
    parser.add_argument("--all", required=True)
    parser.add_argument("--csv", required=True)
    for option in ("--hidden", "--variant"):
        parser.add_argument(option)
    given = parser.parse_args(sys.argv[2:])
    options = [word for name in ("hidden", "variant") if getattr(given, name) is not None for word in ("--" + name, getattr(given, name))]
    folder, file = Path(sys.argv[1], given.all), Path(sys.argv[1], given.csv)
    hint = subprocess.run(["build/sim/bin/exercise", "grade", given.task, "--hint", "1", *options], stdout=subprocess.DEVNULL)
    if hint.returncode != 0:  # it has said what is wrong with the task, the seed or the variant
        sys.exit(hint.returncode)
    if not folder.is_dir():
        fail(3, f"{folder} is no folder")
    students = sorted(path for path in folder.iterdir() if path not in (file, Path(f"{file}.reports")))
    students = [path for path in students if path.name.lower().endswith(".cu") or path.is_dir() and not path.name.startswith(".")]
    if not students:
        fail(2, f"{folder} holds no student's file or folder")
    try:
        grading = Grading(given, file, options)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(grading.one, students))
        marked = grading.rank_pairs()
    except OSError as problem:
        fail(3, f"cannot write the results: {problem}")
    missing = sum(row["status"] != "graded" for row in grading.rows.values())
    print(f"{len(students)} students, {missing} not graded; {file} has the points, {grading.reports} the reports and pairs.csv ({marked} pairs marked)")
    if grading.lacking:
        fail(3, grading.lacking.removeprefix("run.sh: "))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        os.write(2, b"run.sh: interrupted; the same command goes on\n")
        os._exit(130)  # waits for no student
