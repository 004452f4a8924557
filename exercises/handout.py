"""handout.py FROM DIR CHAPTER|TASK...: ./run.sh handout, in the book's root, after all steps are built. A tree for students:
the starters of the warm-ups, of these chapters' first exercises and of the named tasks. It holds no tests, solutions or
changes. The kernels of earlier chapters are there, unless they show a part of a solution; the other programs are there
compiled, to be run and metered, and on the pages nothing is left that needs what is not there."""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main(): an import is no place to stop with a traceback
import codecs
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

COPIED = "common docs plots run.sh CMakeLists.txt CMakePresets.json LICENSE CITATION.cff README.md .gitignore".split()
GRADER = "README.md shapes.json jobs.sh class.py Dockerfile run_autograder".split()
SECRET = "kernel broken left_out from before starter replace".split() # of task.json: they lead to the solution
LEFT_OUT = "*(in the full book)*" # a command that needs what the handout leaves out
FENCE = re.compile(r"^( *)```+([\w-]*)\s*\n(.*?)^\1```+[ \t]*$\n?", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:\./run\.sh|cmake|ctest|build/|diff |sed |grep |\.ci/)[^`]*)`")
MARGIN = re.compile(r"[-+]?(?:\s*(?:\d+ +[\d.]+ [sw])?[ !]*\d+  )?")
COMMAND = re.compile(r"run\.sh|build/|ctest|cmake|steps/|tests/")


def fail(message):
    print("run.sh:", message, file=sys.stderr)
    sys.exit(2)


def code_lines(text):
    """Without comments, blanks and what a listing of the meter or a diff has before a line: (number of the line, code)."""
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.split("\n")):
        line = re.sub(r"//.*|\s+", "", MARGIN.sub("", line, count=1))
        if line:
            yield number, line


def asked(job, *arguments):
    """What the grader of the whole book answers."""
    return subprocess.run(["build/sim/bin/exercise", job, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


class Secrets:
    """The lines of the solutions that the starters do not show."""

    def __init__(self, tasks):
        self.holes = []
        for task, folder in tasks.items():
            own = {line for _, line in code_lines((folder / "starter.cu").read_text())}
            for hole in re.findall(r"// >>> Hole \d+:[^\n]*\n(.*?)// <<< End", asked("solution", task), re.DOTALL):
                self.holes.append((own, [line for _, line in code_lines(hole) if line not in own]))

    def shown(self, text):
        """The numbers of the lines of `text` that show three lines in a row of a hole."""
        found, all_lines = set(), list(code_lines(text))
        for own, hole in self.holes:
            lines = [(number, line) for number, line in all_lines if line not in own]
            places = {line: at for at, line in enumerate(hole)}
            for i in range(len(lines) - 2):
                at = places.get(lines[i][1], -1)
                if at >= 0 and [line for _, line in lines[i : i + 3]] == hole[at : at + 3]:
                    found.update(number for number, _ in lines[i : i + 3])
        return found


class Pages:
    """Pages with what the handout can do."""

    def __init__(self, part, tasks, secrets):
        self.part, self.tasks, self.secrets, self.made = part, tasks, secrets, set()
        self.sources = {path.parent.name[:2] if path.stem == path.parent.name[3:] else path.stem.split("_")[0] for path in part.glob("steps/*/*.cu")}

    def runs(self, command):
        if re.search(r"run\.sh (?:test|handout)\b|\bctest\b|\.ci/|\btests/|--target \w*test_|bin/exercise\b|^build/\w+$", command):
            return False
        steps = re.findall(r"(?:--from|--against|try|profile|sanitize|build/cuda/bin/\D*?) ?(\d\d[a-z]?)\b", command.replace("_", " "))
        if "cuda" in command:
            steps += re.findall(r"\b(\d\d[a-z]?)_[a-z]", command)
        own = set(re.findall(r"\b(9\d)(?:_[a-z]|$|,|\s)", command)) - set(re.findall(r"run\.sh new (9\d)", command))
        tasks = re.findall(r"run\.sh (?:start|grade) (\w+)", command) + re.findall(r"\bwork/(\w+)", command)
        files = re.findall(r"(?<![\w/.])(?:steps|tests|docs|exercises|plots)/[\w.-]+/?[\w./-]*", command)
        return (all(step in self.sources or step in self.made for step in steps) and own <= self.made and all(task in self.tasks for task in tasks)
                and all((self.part / file).exists() or file[6:8] in self.made | set(re.findall(r"run\.sh new (9\d)", command)) for file in files))

    def fence(self, match):
        """The commands that run, each with its output; and no code of a kernel that is not here."""
        indent, language, body = match.groups()
        if self.withheld and language in ("cuda", "diff"):
            return "*(code: left out here)*\n"
        if language not in ("sh", "console"):
            return match[0]
        kept, had = "", False
        for command in re.split(r"^(?= *\$ )" if language == "console" else r"(?<=[^\\|&]\n)", body, flags=re.MULTILINE):
            line = command.split("\n")[0] if language == "console" else command
            if not COMMAND.search(line) or self.runs(line):
                kept, had = kept + command, had or bool(COMMAND.search(line))
                self.made.update(re.findall(r"run\.sh new (9\d)", line))
        return f"{indent}```{language}\n{kept}{indent}```\n" if had or kept == body else f"{indent}{LEFT_OUT}\n"

    def inline(self, match):
        return match[0] if not COMMAND.search(match[1]) or self.runs(match[1]) else LEFT_OUT

    def write(self, page):
        self.made, self.withheld = set(), page.parent.parent.name == "steps" and page.parent.name[:2] not in self.sources
        text = page.read_text(encoding="utf-8")
        if page.parent.name == "exercises":
            text = text[: text.index("\n## How a task is made")] + "\n"
        text = "\n".join(line for line in text.split("\n") if not (row := re.match(r"\| \[(\w\d\d?\w?)\]\(.*exercises|\| \[(\w\d\d?\w?)\]\(\w+/README", line)) or (row[1] or row[2]) in self.tasks)
        text = INLINE.sub(self.inline, FENCE.sub(self.fence, text))
        text = re.sub(r"^\|.*" + re.escape(LEFT_OUT) + r".*\n", "", text, flags=re.MULTILINE)
        text = re.sub(re.escape(LEFT_OUT) + r"(?:\s*" + re.escape(LEFT_OUT) + ")+", LEFT_OUT, text)
        if self.withheld: # a section whose commands are all gone
            text = re.sub(r"(?<=\n)(##+ [^\n]*\n)((?:(?!\n##+ |\n```(?:sh|console)).)*?\n" + re.escape(LEFT_OUT) + r"\n(?:(?!\n##+ |\n```(?:sh|console)).)*)(?=\n##+ )",
                          r"\1\n" + LEFT_OUT + "\n", text, flags=re.DOTALL)
        hidden = self.secrets.shown(text)
        text = "\n".join((MARGIN.match(line)[0] or "...") if number in hidden else line for number, line in enumerate(text.split("\n")))
        # A link to what is not handed out becomes its text.
        text = re.sub(r"!?\[([^][]*)\]\(([^():#]+)(#[^)]*)?\)", lambda link: link[0] if (page.parent / link[2]).exists() else link[1], text)
        page.write_text(text, encoding="utf-8")


def chosen(arguments):
    """The chapters' numbers and the tasks."""
    chapters, tasks = [], []
    for wanted in arguments:
        if re.fullmatch(r"\d\d", wanted) and list(Path("steps").glob(wanted + "_*/")):
            chapters.append(wanted), tasks.append(wanted + "a")
        elif re.fullmatch(r"[0-9bc]\d+[a-z]?", wanted) and list(Path("exercises").glob(wanted + "_*/")):
            tasks.append(wanted)
        else:
            fail(f'there is no chapter or task "{wanted}"')
    if not chapters:
        fail("handout takes one chapter at least, as in ./run.sh handout ../course 01 02 05")
    return chapters, tasks


def handed_out(part):
    """An object of task.json, without what gives the answer away; nobody reads a hint by accident."""
    shown = {name: value for name, value in part.items() if name not in SECRET}
    if "hints" in shown:
        shown["hints_rot13"] = [codecs.encode(hint, "rot13") for hint in shown.pop("hints")]
    return shown


def copy_tasks(part, wanted):
    """Folder by task; and the numbers of the chapters whose kernels they are."""
    tasks, kernels = {}, set()
    for folder in sorted(Path("exercises").glob("*_*/")):
        task = folder.name.split("_")[0]
        if task in wanted or task.startswith("00"):
            tasks[task] = part / folder
            tasks[task].mkdir()
            shutil.copy2(folder / "README.md", tasks[task])
            text = (folder / "task.json").read_text()
            kernel = re.search(r'"kernel": "steps/((\d\d)_\w+)', text)
            given = json.loads(text, object_hook=handed_out)
            (tasks[task] / "task.json").write_text(json.dumps(given, indent=2))
            (tasks[task] / "starter.cu").write_text(asked("starter", task))
            for variant in range(1, len(given.get("variants", [])) + 1):
                (tasks[task] / f"starter.{variant}.cu").write_text(asked("starter", task, str(variant)))
            if kernel:
                kernels.add(kernel[2])
                copy_headers(tasks[task] / "starter.cu", Path("steps", kernel[1]), tasks[task], part)
    return tasks, kernels


def copy_headers(file, beside, to, part):
    """What a file includes of the headers beside a kernel goes to a folder; those of another chapter stay that chapter's."""
    for name in re.findall(r'#include "((?:\.\./\w+/)?\w+\.cuh)"', file.read_text()):
        header = beside / name
        if header.exists():
            folder = part / "steps" / header.parent.name if "/" in name else to
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(header, folder)
            copy_headers(header, header.parent, folder, part)


def copy_steps(part, last, kernels, secrets):
    for folder in sorted(Path("steps").glob("[0-9][0-9]_*/")):
        number, texts = folder.name[:2], [path.read_text() for path in folder.rglob("*.cu*")]
        if number >= "90": # a reader's own
            continue
        if number <= last and number not in kernels and not any(map(secrets.shown, texts)):
            shutil.copytree(folder, part / folder, dirs_exist_ok=True)
            continue
        programs = part / folder / f"compiled-{platform.machine()}"
        programs.mkdir(parents=True)
        for kernel in folder.glob("*.cu"):
            name = folder.name if kernel.stem == folder.name[3:] else kernel.stem
            built = [*Path("build/sim/CMakeFiles", f"kernels_{name}.dir").rglob("*.o")]
            if not built:
                raise OSError(f"{name} is not built")
            # The compiler's tables of arrays' bounds name files by their paths: the book's folder becomes slashes, as many bytes.
            root = f"{Path.cwd()}/".encode()
            (programs / f"{name}.o").write_bytes(built[0].read_bytes().replace(root, b"." + b"/" * (len(root) - 1)))
            shutil.copy2(f"build/sim/fingerprints/{name}.c", programs)
        for page in [*folder.glob("*.png"), *folder.glob("*.md")] if number <= last else []:
            shutil.copy2(page, part / folder)


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    check = sys.argv[1] == "--check" # the arguments only
    start, *arguments = sys.argv[1 + check :]
    if len(arguments) < 2 or arguments[0].startswith("-"):
        fail("handout takes a new folder and chapters, as in ./run.sh handout ../course 01 02 05")
    to = Path(start, arguments[0])
    if os.path.lexists(to):
        fail(f"{to} is already there")
    chapters, wanted = chosen(arguments[1:])
    if check:
        return
    part = Path(f"{to}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        (part / "exercises").mkdir(parents=True)
        (part / "steps").mkdir()
        shutil.copy2("steps/new.sh", part / "steps")
        for name in COPIED:
            shutil.copytree(name, part / name, ignore=shutil.ignore_patterns("teaching.md", "answers", "__pycache__")) if Path(name).is_dir() else shutil.copy2(name, part)
        shutil.copytree("exercises/grader", part / "exercises/grader")
        for name in GRADER:
            shutil.copy2(Path("exercises") / name, part / "exercises")
        tasks, kernels = copy_tasks(part, wanted)
        secrets = Secrets(tasks)
        copy_steps(part, max(chapters), kernels | set(chapters), secrets)
        pages = Pages(part, tasks, secrets)
        for page in sorted(part.rglob("*.md")):
            pages.write(page)
        part.rename(to)
    except (OSError, subprocess.CalledProcessError, KeyboardInterrupt) as problem:
        interrupted = isinstance(problem, KeyboardInterrupt)
        print("run.sh: interrupted" if interrupted else f"run.sh: cannot make the handout: {problem}", file=sys.stderr)
        sys.exit(130 if interrupted else 3)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print(f"{to} holds:", *(f"  {folder.relative_to(to)}" for kind in ("exercises", "steps") for folder in sorted(to.glob(f"{kind}/*/"))), sep="\n")


if __name__ == "__main__":
    main()
