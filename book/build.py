#!/usr/bin/env python3
"""build.py --bin PROGRAMS --out FOLDER [STEP...]: the book as a site, with an explorer of these steps' traces. The pages stay plain
Markdown: what Sphinx and MyST need beside them (an order, pages of linked files, differences between rungs, frames of
explorers) is made here of what the pages already have."""

import argparse
import difflib
import html
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from PIL import Image
from pygments.formatters import HtmlFormatter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "plots"))
import plot  # noqa: E402: the cards' ceilings
import tables  # noqa: E402: of the rungs, their order
import walk  # noqa: E402

FENCED = re.compile(r"^ *(```+|~~~+)[ \t]*([\w-]*)[ \t]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*([^)\s]+)\s*\)")
LEXERS = {".cu": "cuda", ".cuh": "cuda", ".c": "c", ".h": "c", ".py": "python", ".sh": "bash", ".changes": "text"}
UNCOLOURED = re.compile(r'<span class="(p|n|w|o|m[ifh]?)">([^<]*)</span>')  # of code, what has the colour of text, and numbers: half of a page
CHAPTER = re.compile(r"\d\d_\w+")  # a folder's name; a page calls it by title_of
UNSTYLED = re.compile(r' class="(?:reference (?:in|ex)ternal|toctree-l\d|(?:doc )?std std-doc|docutils (?:literal notranslate|align-default)|pre|row-\w+|head|simple|caption-text)"| reference internal(?=")|(?<=")head (?=text-)')
LINE_NUMBER = re.compile(r'<span class="linenos">( *(\d+))</span>')
UNUSED = ("jquery.js", "underscore.js", "_sphinx_javascript_frameworks_compat.js", "basic.css", "pygments.css", "file.png", "plus.png", "minus.png", "doctools.js",
          "documentation_options.js", "language_data.js", "searchtools.js", "sphinx_highlight.js")
START = ("docs/first.md", "docs/gpu.md", "docs/math/attention.md", "docs/math/costs.md", "exercises/00*/README.md")
EXPLORERS = [  # page, explorer and its state, the section behind which it stands, its heading; a sentence where the explorer's own is too general
    ("docs/measurements.md", "ladder", "Pictures", "Look it up: all measured times", ""),
    ("docs/gpu.md", "warp-map", "Banks", "Try it: one request of a warp", ""),
    ("docs/math/online-softmax.md", "example", "Row 3 of the example, key by key", "Try it: your own numbers", ""),
    ("docs/math/backward.md", "example#pass=backward&at=dS 3 0", "", "Try it: your own numbers", ""),
    ("steps/10_tensor_core_fwd/README.md", "fragments#what=C&row=3&column=2", "10b: fragments in registers", "Try it: who holds which element", "Choose A, B or C."),
    ("steps/10_tensor_core_fwd/README.md", "fragments#what=ldmatrix.x4&row=3", "10d: XOR swizzle", "Try it: ldmatrix and the swizzle",
     "Choose the swizzle of 10d, or another number of bytes from row to row, and see the wavefronts change. Then choose another piece of the tile."),
    ("steps/11_tensor_core_bwd/README.md", "fragments#what=C&swizzle=xor&pitch=256", "11c: swizzle", "Try it: how P and dS are stored",
     "The C fragments are rounded to 16 bits and stored by 4 bytes per lane. Take the swizzle away, and see the conflicts."),
    ("steps/12_hopper_fwd/README.md", "fragments#what=wgmma", "What Hopper adds", "Try it: a descriptor, bit by bit",
     "Change the fields, and see which bytes wgmma reads. Choose V to see a matrix that is MN-major."),
    ("steps/06_vectorized/README.md", "pipeline#kernel=06_vectorized", "06e: copy while the FMAs run", "Try it: who waits for which copy", ""),
    ("steps/10_tensor_core_fwd/README.md", "pipeline#kernel=10_tensor_core_fwd&latency=30", "10e: two stages", "Try it: one stage, two stages, three",
     "A copy takes 30 units here. Choose 1, 2 and 3 stages. Then set the latency to 10: how many stages are enough?"),
    ("steps/12_hopper_fwd/README.md", "pipeline#kernel=12b_producer", "12b: a producer", "Try it: full and empty", ""),
    ("docs/debugging.md", "pipeline#kernel=06_vectorized&fault=early&skew=5", "Without a card: the simulated device", "Try it: which read meets which write",
     "Choose a fault in the order of copies and reads, and see what the simulated device says of it.")]
FAULTS = [  # that the explorer of pipelines shows: a kernel, how the explorer breaks it, a mutant of tests/mutants that does so, its words
    ("06_vectorized", "unwaited", "06_wait_for_K_left_out", "no wait for K in the loop"),
    ("06_vectorized", "early", "06_V_copied_before_the_barrier", "V copied before the barrier"),
    ("10_tensor_core_fwd", "unwaited", "10_wait_for_stage_off_by_one", "waits for one copy too few"),
    ("10_tensor_core_fwd", "early", "10_next_tile_copied_before_the_barrier", "next copy before the barrier"),
    ("12b_producer", "parity", "12b_full_parity_never_turns", "waits for K by parity 0 always"),
    ("12b_producer", "released", "12b_K_released_before_its_product_is_done", "K released before its product")]
PRODUCER = re.compile(r"mbarrier_(wait)\(([KV])_(full|empty) \+|(load)_tile<D>\(([KV])_|(multiply)_[QP]([KV])|(release)\(([KV])_|(new_maxima)\(S")
SHOWN = {"10_tensor_core_fwd": "&mask=causal"}  # what shows a chapter's idea
LICENCES = {"The book and its explorers": ROOT / "LICENSE"} | {
    name: Path("/usr/share/doc") / package / "copyright"
    for name, package in {"KaTeX": "katex", "KaTeX's fonts": "fonts-katex", "Lunr: search": "libjs-lunr",
                          "Pygments: the colours of code": "python3-pygments"}.items()}


def boxes(text):
    """A mermaid block as boxes: of a flowchart its nodes in their order, of a class diagram the classes."""
    if text.startswith("flowchart"):
        found = [label.split("<br>") for label in re.findall(r'\["([^"]*)"\]', text)]
        arrow = "<span aria-hidden=true>↓</span>"
    elif text.startswith("classDiagram\n"):
        found = [[name, *lines.strip().split("\n")] for name, lines in re.findall(r"class (\w+) \{\n(.*?)\n *\}", text, re.DOTALL)]
        arrow = "<span>is extended by ↓</span>"
    else:
        sys.exit(f"build.py: a mermaid block of a kind that is not known: {text.splitlines()[0]}")
    made = (f"<div><strong>{first}</strong>" + "".join(f"<br>{html.escape(html.unescape(line.strip()))}" for line in rest) + "</div>" for first, *rest in found)
    return f'<div class="boxes">{arrow.join(made)}</div>'


def first_steps(text):
    """The start page with links to what moves, below its first paragraph, and then the picture, above the fold."""
    links = (("docs/first.html", "Begin: ten minutes"), ("explorers/tile-walk.html#step=05_fa2_fwd", "Watch FlashAttention-2 run"),
             ("explorers/example.html", "Attention by hand"), ("explorers/warp-map.html#lanes=4&stride=16", "Remove bank conflicts"))
    if repository := os.environ.get("GITHUB_REPOSITORY"):  # where a workflow builds the site
        links = (links[0], (f"{os.environ['GITHUB_SERVER_URL']}/{repository}", "Get the code"), *links[1:3])
    title, first, whom, picture, rest = text.split("\n\n", 4)
    cards = "".join(f'<a href="{to.replace(".html", ".html?from=index.html") if to.startswith("explorers/") else to}">{said}</a>' for to, said in links)
    return f'{title}\n\n{first}\n\n<nav class="cards" aria-label="To begin with">{cards}</nav>\n\n{picture}\n\n{whom}\n\n{rest}'


class Site:
    def __init__(self, source, walked):
        self.source, self.walked = source, walked  # walked: the steps that the explorer has traces of
        self.pages, self.files, self.book = [ROOT / "README.md", ROOT / "docs/first.md"], [], tables.Book(ROOT)  # both lists grow as links are found
        self.above = {}  # of pages that the reading order leaves out: the page that lists them

    def name_of(self, path):
        """Of a page or a file of the repository, its Markdown in the source folder."""
        if path.suffix == ".md":
            return self.source / ("index.md" if path == ROOT / "README.md" else path.relative_to(ROOT))
        return self.source / "code" / (str(path.relative_to(ROOT)) + ("/index" if path.is_dir() else "") + ".md")

    def target(self, page, written):
        """What a link of a page leads to, from the page's place in the source folder."""
        path, _, anchor = written.partition("#")
        if re.match(r"[a-z]+:", written) or not path:
            return written
        file = (page.parent / path).resolve()
        if not file.exists() or not file.is_relative_to(ROOT):
            sys.exit(f"build.py: {page.relative_to(ROOT)}: {written} leads nowhere")
        if file.is_dir() and (file / "README.md").exists():
            file = file / "README.md"
        if file.suffix in (".png", ".svg"):
            to = self.source / file.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            for name in (file.name, f"{file.stem}_narrow{file.suffix}"):  # for a phone, where there is one
                if file.with_name(name).exists():
                    shutil.copyfile(file.with_name(name), to.with_name(name))
        else:
            found = self.pages if file.suffix == ".md" else self.files
            found += [] if file in found else [file]
            to = self.name_of(file)
        return os.path.relpath(to, self.name_of(page).parent) + ("#" + anchor if anchor else "")

    def translate(self, page):
        """A page as MyST reads it: links lead to pages of the site; comments, which hold markers, are left out."""
        def link(match):
            words = title_of(match[2]) if re.fullmatch(rf"(.*/)?{CHAPTER.pattern}/README\.md", match[3]) and CHAPTER.fullmatch(match[2]) else LINK.sub(link, match[2])
            words = words if not re.fullmatch(r"[\w/-]+\.md", words) else (page.parent / match[3].partition("#")[0]).read_text(encoding="utf-8").partition("\n")[0][2:]
            return f"{match[1]}[{words}]({self.target(page, match[3])})"

        def keep(code):
            kept.append(code)
            return f"\0{len(kept) - 1}\0"

        def left_out(output):  # the first on the page says what it is
            nonlocal said
            first, said = not said and output[2] in ("console", "text") and "[...]" in output[3], said or "[...]" in output[3]
            return f"\n\n{re.match(' *', output[0])[0]}`[...]` stands for text that differs from run to run, or that is left out here.\n" if first else ""

        kept, text = [], page.read_text(encoding="utf-8")
        said = "`[...]`" in text
        text = FENCED.sub(lambda block: keep(boxes(block[3]) if block[2] == "mermaid" else block[0]) + left_out(block), text)
        text = re.sub("(?sm) *(?:<!--(?:(?!-->).)*--> *)+$|<!--.*?-->", "", text).replace("<details>\n<summary>Checkpoint", '<details class="questions">\n<summary>Checkpoint')
        text = re.sub(rf"\A# ({CHAPTER.pattern}):", lambda at: f"# {title_of(at[1])}:", text)
        text = re.sub(r"(?m)^( *)%", r"\1\\%", text)  # a line that begins with % is a comment of MyST's
        text = LINK.sub(link, re.sub("`[^`]*`", lambda code: keep(code[0]), text))
        return re.sub(r"\0(\d+)\0", lambda at: kept[int(at[1])], text)

    def rungs(self, page, text):
        """The page, a chapter's with its rungs, each beside the one before; not appendices, and where rungs follow other chapters' kernels."""
        chain, beside = self.book.chain(page.parent.name) if page.name == "README.md" and page.parent.name in tables.rec.rungs(ROOT) else ([], [])
        beside = beside if len(chain) > 1 else []
        made = []
        for old, new in [*zip(chain, chain[1:]), *((chain[-1], rung) for rung in beside)]:
            number = new.split("_")[0]
            text = re.sub(rf"(?m)^## {number}: .*$", rf'\g<0>\n\n<a href="#lines-{number}">All lines that change from {old.split("_")[0]} to {number}</a>', text)
            made.append(f"<details class=\"rungs\" id=\"lines-{number}\"><summary>{old} → {new}: {html.escape(self.book.says(new, 'idea'))}"
                        f"</summary>\n{beside_each_other(*map(self.book.kernel_file, (old, new)))}</details>\n")
        return text + ("\n## The rungs beside each other\n\nEach shows the lines that change, and three around them.\n\n" + "\n".join(made) if made else "")

    def frames(self, page, text):
        """The page with its explorers, each behind the section of a heading; without that heading at the end."""
        chapter = page.parent.name
        wanted = [(*name.partition("#")[::2], *rest) for where, name, *rest in EXPLORERS if page == ROOT / where]
        if chapter in self.walked and page == ROOT / "steps" / chapter / "README.md":
            wanted.append(("tile-walk", f"step={chapter}{SHOWN.get(chapter, '')}", "Run it", f"Watch chapter {chapter[:2]} run",
                           "The explorer replays what one block of the kernel did on the simulated device. A ▸ before a line of code on this page shows the first "
                           "step in which that line runs."))
        for name, state, behind, title, words in wanted:
            address, state = f"{os.path.relpath(ROOT, page.parent)}/explorers/{name}.html", html.escape("#" * bool(state) + state).replace(" ", "%20")
            back = f"?from={self.name_of(page).relative_to(self.source).with_suffix('.html')}"
            made = (f"## {title}\n\n{words}{' ' * bool(words)}<a class=\"full\" href=\"{address}{back}{state}\">Open it at full width</a>.\n\n"
                    f"<iframe class=\"explorer\" name=\"{name}\" title=\"{title}\" loading=\"lazy\" src=\"{address}{state}\"></iframe>\n\n")
            head, heading, rest = text.partition(f"\n## {behind}\n")
            before, after = re.split(r"\n(?=## )|\Z", rest, maxsplit=1)
            text = f"{head}{heading}{before}\n\n{made}{after}" if heading else f"{text}\n\n{made}"
        return text

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def write_pages(self):
        """All pages that README.md leads to; then the files that they link to."""
        texts = {page: self.translate(page) for page in self.pages}
        texts[ROOT / "README.md"] = first_steps(texts[ROOT / "README.md"])
        groups = self.order()
        for page, text in texts.items():
            above = self.above.get(page)
            head = f"---\norphan: true\nabove: {self.name_of(above).relative_to(self.source).with_suffix('')}\n---\n" if above else ""
            self.write(self.name_of(page), head + self.rungs(page, self.frames(page, text)) + self.contents(page, groups))
        for file in self.files:
            self.write(self.name_of(file), self.file_page(file))
        licences = "".join(f"## {name}\n\n```text\n{path.read_text(encoding='utf-8').strip()}\n```\n\n" for name, path in LICENCES.items())
        self.write(self.source / "licences.md", "# Licences of what this site contains\n\n" + licences)

    def file_page(self, file):
        name = file.relative_to(ROOT)
        head = f"---\norphan: true\n---\n# `{name}`\n\n"
        if file.is_dir():
            inside = [path for path in sorted(file.iterdir()) if path.is_file() and path.suffix not in (".png", ".svg", ".pyc")]
            self.files += [path for path in inside if path.suffix != ".md" and path not in self.files]
            return head + "".join(f"- [{path.name}]({os.path.relpath(self.name_of(path), self.name_of(file).parent)})\n" for path in inside)
        if (page := file.parent / "README.md") in self.pages:
            head += f"[{title_of(file.parent.name) if CHAPTER.fullmatch(file.parent.name) else f'The page of {name.parent}/'}]({os.path.relpath(self.name_of(page), self.name_of(file).parent)})\n\n"
        text = file.read_text(encoding="utf-8")
        lexer = LEXERS.get(file.suffix) or ("bash" if text.startswith("#!") else "text")
        return f"{head}``````{{code-block}} {lexer}\n:linenos:\n\n{text.rstrip()}\n``````\n"

    def order(self):
        """The reading order: (page, caption, pages) of each list. Before a chapter stand the pages that README.md and docs/README.md want read first."""
        placed, before = {ROOT / "README.md"}, defaultdict(list)
        for page in (ROOT / "README.md", ROOT / "docs/README.md"):
            for number, row in re.findall(r"(?m)^\| *\[?(\d\d)(?=[_ ])(.*)", page.read_text(encoding="utf-8")):
                before[number] += [str((page.parent / to).resolve().relative_to(ROOT)) for to in re.findall(r"\]\(((?!\.\./steps/|steps/)[^)#:]+\.md)", row)]

        def take(*patterns):
            found = dict.fromkeys(path for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path in self.pages and path not in placed)
            placed.update(found)
            return list(found)

        docs = lambda *names: [f"docs/{name}.md" for name in names]
        index, chapters, start = ROOT / "README.md", sorted(path.name for path in ROOT.glob("steps/[0-8]*")), take(*START)
        for above, inside in (("docs/teaching.md", "docs/answers/README.md"), ("docs/answers/README.md", "docs/answers/*.md"), ("exercises/README.md", "exercises/*/README.md")):
            self.above |= dict.fromkeys(take(inside), ROOT / above)
        return [(index, "Start here", start), (index, "Chapters", take(*(page for name in chapters for page in (*before[name[:2]], f"steps/{name}/README.md")))),
                (index, "Practice", take("exercises/README.md", *docs("study-plan", "implementation", "teaching"))),
                (index, "Debugging and devices", take(*docs("debugging", "your-programs", "hosted-gpu", "simulated-device", "simulated-device-inside"), "common/**/*.md", "tests/**/*.md")),
                (index, "Mathematics", take(*docs("math", "math/*", "index-arithmetic"))), (index, "Appendices of chapters", take("steps/[0-8]*/*.md")),
                (index, "Reference", [*take(*docs("README", "commands", "measurements", "gallery", "reading-code", "unsupported", "glossary", "references", "*")), *(page for page in self.pages if page not in placed)])]

    def contents(self, page, groups):
        """The lists of a page, which only the site's sidebar shows; there a chapter has its short name."""
        made = ""
        for caption, paths in ((caption, paths) for where, caption, paths in groups if where == page and paths):
            names = [os.path.relpath(self.name_of(path), self.name_of(page).parent) for path in paths] + ["licences.md"] * (caption == "Reference")
            names = [re.sub(r"^steps/(\w+)/README.md", lambda at: f"{title_of(at[1])} <{at[0]}>", name) for name in names]
            made += "\n\n```{toctree}\n:hidden:\n:titlesonly:" + f"\n:caption: {caption}" * bool(caption) + "\n\n" + "\n".join(names) + "\n```\n"
        return made


def title_of(step):
    """05_fa2_fwd as "05 FlashAttention-2 forward", 06a_register_tile as "06a Register tile"."""
    number, *words = step.split("_")
    words = " ".join({"fwd": "forward", "bwd": "backward", "fa1": "FlashAttention-1", "fa2": "FlashAttention-2", "fp8": "FP8", "tf32": "TF32", "wmma": "WMMA"}.get(word, word) for word in words)
    return f"{number} {words if words in ('mma', 'wgmma', 'ldmatrix') else words[0].upper() + words[1:]}"


def heading_of(step, book):
    """05_fa2_fwd as "05 FlashAttention-2 forward: one block per query tile, rows split over warps"; of a rung its number and its idea."""
    title, idea = title_of(step) if CHAPTER.fullmatch(step) else step.split("_")[0], tables.rec.WHOLE.get(step, book.says(step, "idea"))
    first, _, rest = idea.partition(": ")
    return f"{title}: {rest if rest and first.lower() in title.lower() else idea}"  # no words twice


def beside_each_other(*files):
    """Two files as a table of four columns: line number and line, left and right; lines that are equal only near a change."""
    old, new = (file.read_text(encoding="utf-8").splitlines() for file in files)

    def cells(text, at, end, k, kind):
        number = at + k if at + k < end else None
        return f"<td>{number + 1}</td><td{kind}>{html.escape(text[number])}</td>" if number is not None else "<td></td><td></td>"

    rows, gap = ["<col class=number><col><col class=number><col><tr>" + "".join(f"<th colspan=2>{file.name}</th>" for file in files) + "</tr>"], ""
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        rows.append(gap)
        gap = "<tr><td colspan=4>…</td></tr>"
        for kind, a, a_end, b, b_end in group:
            left, right = ("", "") if kind == "equal" else (" class=del", " class=ins")
            rows += [f"<tr>{cells(old, a, a_end, k, left)}{cells(new, b, b_end, k, right)}</tr>" for k in range(max(a_end - a, b_end - b))]
    return '<div class="wide"><table class="beside">' + "".join(rows) + "</table></div>"


# ---- the explorers' data, and pictures ---------------------------------------------------------------------------------------

def trace(step, programs, out):
    """Writes the data of one step's walk; its title, or what went wrong."""
    book, masks = tables.Book(ROOT), {}
    chapter = book.kernel_file(step).parent.name
    runs = {"none": {"10": "--seq 256", "12": "--seq 384", "13": "--seq 384"}.get(chapter[:2], "--seq 128")}  # two tiles or more
    if chapter[:2] in ("05", "06", "10"):
        runs["causal"] = "--seq 256 --causal"
    for mask, size in runs.items():
        with tempfile.TemporaryDirectory() as folder:
            options = f"--batch 1 --heads 1 {size} --dim 64 --no-check --no-time"
            command = [str(Path(programs) / step), *options.split(), "--trace", f"{folder}/trace", "--trace-blocks", "0", "--json", f"{folder}/json"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                return step, None, f"{' '.join(command)} failed: {done.stderr.strip()}"
            shape = walk.shape_of(f"{folder}/json")
            masks[mask] = {"command": f"{step} {options} --trace FILE --trace-blocks 0"} | walk.read(f"{folder}/trace", shape)
    walk.write(out / f"{step}.js", f"steps/{chapter}/README.html", masks)
    print(f"traced {step}", flush=True)  # book/job.sh counts them
    return step, (heading_of(step, book), title_of(chapter)), None


def show_trace(path, out, sources):
    """Adds a trace of the reader's own to a site that is there."""
    try:
        found = walk.read(path, None, sources)
        if not found["launches"]:
            raise ValueError("no block of it did anything")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(f"build.py: {path} is no trace of the simulated device, as a step's --trace FILE writes it: {error}", file=sys.stderr)
        sys.exit(2)
    data = out / "explorers/data"
    walk.write(data / "your_trace.js", "index.html", {"none": {"command": path.name} | found})
    steps = [["your_trace", f"Your trace: {path.name}", "Your trace"], *(step for step in read_js(data / "steps.js") if step[0] != "your_trace")]
    (data / "steps.js").write_text(f"window.STEPS = {json.dumps(steps)};\n", encoding="utf-8")
    print(f"Your trace: file://{out}/explorers/tile-walk.html#step=your_trace")


def bind(text, step, data):
    """A chapter's page with a link at each quoted line that the walk of its kernel has: to the first step at which that line runs."""
    found, places = read_js(data / f"{step}.js"), defaultdict(set)
    for site in (site for run in found["masks"].values() for launch in run["launches"] for site in launch["sites"]):
        for file, _, line in (f"{site[0]}:{site[1]}".rpartition(":"), site[4].rpartition(":")):
            places[found["sources"].get(file, {}).get(line, "").strip()].add(f"{file}:{line}")
    places.pop("", None)

    def link(line):
        place = places.get(html.unescape(re.sub("<[^>]*>", "", line)).strip(), ())
        return f'<a class="walked" data-line="{[*place][0]}" aria-label="Watch line {[*place][0].rpartition(":")[2]} run" ' \
               f'href="../../explorers/tile-walk.html#step={step}&amp;line={[*place][0]}"></a>{line}' if len(place) == 1 else line

    return re.sub(r'(highlight-cuda.*?<pre>)(.*?)(?=</pre>)', lambda block: block[1] + "\n".join(map(link, block[2].split("\n"))), text, flags=re.DOTALL)


def read_js(file):
    """The data of an explorer: what its script assigns."""
    return json.loads(file.read_text(encoding="utf-8").partition(" = ")[2].rstrip(";\n"))


def write_example(data):
    """The inputs of the 4 x 4 example, as the programs have them."""
    text = (ROOT / "common/harness/inputs.c").read_text(encoding="utf-8")
    body = text[text.index("example[TENSOR_COUNT]") :].partition(";")[0]
    example = {name: json.loads(rows.translate(str.maketrans("{}", "[]"))) for name, rows in re.findall(r"\[TENSOR_(\w+)\] = (\{\{.*?\}\})", body)}
    example["scale"] = float(re.search(r"\.scale = ([\d.]+)", text)[1])
    (data / "example.js").write_text(f"window.EXAMPLE = {json.dumps(example)};\n", encoding="utf-8")


def bound_of(record):
    """The least ms in which the card can do a pass: [for its arithmetic, for its bytes], by the ceilings of the rooflines. None where
    fp32 is multiplied on tensor cores, whose rate for it is not among them."""
    shape, backward, bits = record.shape, record.pass_ != "fwd", {"fp32": 32, "fp8": 8}.get(record.details["dtype"], 16)
    if shape.seq != shape.seq_kv or bits == 32 and record.step in ("10x_tf32", "pytorch_efficient"):
        return None
    least = plot.least_bytes(shape.batch, shape.heads, shape.seq, shape.dim, backward, bits // 8)
    return [record.ms * record.tflops / plot.PEAKS[bits][1], least / plot.CARDS[record.device] * 1e-9]


def write_ladder(data):
    """The recorded times: of each program at a size the last record; beside it the bound, and the programs of PyTorch that took turns."""
    found = {}
    for source in ("latency", "rungs", "peers"):
        for record in tables.rec.read(sorted((ROOT / "plots/data" / source).glob("*.jsonl"))):
            fields, name = record.details, record.details["device"].replace(" 80GB HBM3", "")
            if record.ms and record.tflops and record.pass_ != "both":  # its forward pass is the harness's own
                ratios = {key.removeprefix("ratio_to_"): value for key, value in fields.items() if key.startswith("ratio_to_")}
                found[source, name, record.pass_, str(record.shape), record.step, fields["dtype"]] = [record.ms, record.tflops, ratios, bound_of(record)]
    for (*where, step, dtype), (ms, _, ratios, _) in found.items():
        for backend in tables.PEERS[dtype] if where[0] == "peers" else ():
            if theirs := found.get((*where, f"pytorch_{backend}", dtype)):
                ratios.setdefault(backend, theirs[0] / ms)
    rows = sorted(([*key, *values] for key, values in found.items()),  # a chapter after its rungs
                  key=lambda row: (row[:3], int(re.search(r"N ?(\d+)", row[3])[1]), row[3], row[4].replace("_", "~", 1), row[5]))
    book = tables.Book(ROOT)
    ideas = {step: tables.rec.WHOLE.get(step, book.says(step, "idea")) for step in dict.fromkeys(row[4] for row in rows) if step[:1].isdigit()}
    (data / "ladder.js").write_text(f"window.LADDER = {json.dumps(rows, separators=(',', ':'))};\nwindow.IDEAS = {json.dumps(ideas)};\n"
                                    f"window.TITLES = {json.dumps({step: title_of(step) for step in ideas})};\n", encoding="utf-8")


def fault(build, kernel, kind, mutant, words):
    """Breaks a kernel by a mutant and runs it: how the explorer draws it, its words, the change, and what the simulated device says."""
    with tempfile.TemporaryDirectory() as folder:  # where a test of this mutant that runs meanwhile does not make its own
        for part in build.iterdir():
            if part.name != "tests":
                (Path(folder) / part.name).symlink_to(part)
        done = subprocess.run([ROOT / "tests/mutants/mutant.sh", "catch", f"mutant_{mutant}", folder], capture_output=True, text=True,
                              env=os.environ | {"SIMT_THREADS": "1"})
    if done.returncode:
        raise ValueError(f"{mutant}: {done.stdout}{done.stderr}")
    section = (ROOT / f"tests/mutants/{mutant[:2]}.changes").read_text(encoding="utf-8").partition(f"## {mutant}\n")[2].partition("\n## ")[0]
    file, change = re.search(r"^file: (.*)\n((?:.*\n?)*)", section, re.MULTILINE).groups()
    return {"kernel": kernel, "kind": kind, "words": words, "file": file, "change": change.rstrip(), "says": "\n".join(done.stdout.split("\n")[1:3])}


def turns(programs, step):
    with tempfile.NamedTemporaryFile() as file:
        command = [programs / step, *"--batch 1 --heads 1 --seq 1024 --dim 64 --no-check --no-time --trace-blocks 0 --trace".split(), file.name]
        subprocess.run(command, capture_output=True, check=True)
        return {"page": f"steps/{step}/README.html", "Q": step[:2] == "10"} | walk.stages(file.name)


def producer(step):
    """What the producer and a consumer do per tile, in the order of the kernel's text: mbarriers leave no events in a trace."""
    text = tables.Book(ROOT).kernel_file(step).read_text(encoding="utf-8")
    order = [[part for part in found if part] for found in PRODUCER.findall(text[text.index("for (int tile") : text.index("\n    int tile = tiles")])]
    at = order.index(["wait", "K", "full"])
    return {"page": "steps/12_hopper_fwd/README.html", "producer": order[:at], "consumer": order[at:], "stages": int(re.search(r"STAGES = (\d+)", text)[1])}


def write_pipeline(data, programs, steps):
    """The kernels and the faults of the explorer of pipelines. A kernel that the reader has edited may have none of them."""
    def unless_edited(make, *arguments):
        try:
            yield make(*arguments)
        except (ValueError, subprocess.CalledProcessError) as error:
            if os.environ.get("CI"):
                raise
            print(f"build.py: the explorer of pipelines does without this: {error}")

    kernels = {name: made for name in dict.fromkeys(kernel for kernel, *_ in FAULTS) for made in (
        unless_edited(producer, name) if name[:2] == "12" else unless_edited(turns, programs, name) if name in steps else [])}
    for name, made in kernels.items():
        made["title"] = heading_of(name, tables.Book(ROOT))
    faults = [made for each in FAULTS if each[0] in kernels for made in unless_edited(fault, programs.resolve().parent, *each)]
    (data / "pipeline.js").write_text("window.PIPELINE = " + json.dumps({"kernels": kernels, "faults": faults}, separators=(",", ":")) + ";\n", encoding="utf-8")


def fewer_colours(picture):
    """A picture of at most 128 colours takes a third of the bytes."""
    Image.open(picture).convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(picture, "PNG", optimize=True)


def write_static(static):
    """What every page of the site loads: KaTeX's style and fonts, the colours of code."""
    katex = Path("/usr/share/javascript/katex")
    shutil.copytree(HERE / "static", static)
    (static / "katex/fonts").mkdir(parents=True)
    css = (katex / "katex.min.css").read_text(encoding="utf-8")
    (static / "katex/katex.min.css").write_text(re.sub(r",url\(fonts/[^)]*\.(?:woff|ttf)\) format\(\"?\w+\"?\)", "", css), encoding="utf-8")
    for font in (katex / "fonts").glob("*.woff2"):
        shutil.copyfile(font, static / "katex/fonts" / font.name)
    styles = (HtmlFormatter(style=style).get_style_defs(f"[data-theme={theme}] .highlight") for theme, style in (("light", "vs"), ("dark", "native")))
    colours = (re.sub(r"^.*(line-height|linenos).*\n|background(-color)?: #\w+;?", "", style, flags=re.MULTILINE) for style in styles)
    shutil.copyfile("/usr/share/javascript/lunr/lunr.min.js", static / "lunr.min.js")
    (static / "code.css").write_text("\n".join(colours), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Builds the book as a site.")
    parser.add_argument("--bin", type=Path, help="where the programs are")
    parser.add_argument("--trace", type=Path, help="instead: add this trace to the site that is there")
    parser.add_argument("--sources", type=Path, default=ROOT, help="the folder in which its program was compiled")
    parser.add_argument("--out", type=Path, required=True, help="the site's folder; what is there is replaced")
    parser.add_argument("steps", nargs="*", help="whose traces to show")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    if arguments.trace:
        return show_trace(arguments.trace, out, arguments.sources)
    work = out.with_name(out.name + ".work")
    shutil.rmtree(work, ignore_errors=True)
    source, site, data = work / "source", work / "site", work / "data"
    write_static(source / "static")
    shutil.copyfile(HERE / "conf.py", source / "conf.py")
    shutil.copytree(HERE / "theme", source / "theme/site")
    Site(source, arguments.steps).write_pages()
    data.mkdir()
    write_example(data)
    write_ladder(data)
    command = [sys.executable, "-B", "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-d", str(work / "trees"), str(source), str(site)]
    with multiprocessing.Pool(max(1, min(4, os.cpu_count() - 1))) as pool:  # Sphinx takes one processor, the traces the others
        pool.map(fewer_colours, list(source.glob("**/*.png")), chunksize=4)
        traced = pool.starmap_async(trace, [(step, arguments.bin, data) for step in arguments.steps], chunksize=1)
        pipeline = pool.apply_async(write_pipeline, (data, arguments.bin, arguments.steps))
        if subprocess.run(command, env=os.environ | {"BOOK_FOLDER": str(HERE), "SOURCE_DATE_EPOCH": "0"}).returncode:
            sys.exit("build.py: Sphinx has warnings; see above")
        traced, _ = traced.get(), pipeline.get()
    if wrong := [error for _, _, error in traced if error]:
        sys.exit("\n".join(wrong))
    (data / "steps.js").write_text("window.STEPS = " + json.dumps([[step, *said] for step, said, _ in traced]) + ";\n", encoding="utf-8")
    for name in (".buildinfo", "objects.inv", *(f"_static/{name}" for name in UNUSED)):
        (site / name).unlink(missing_ok=True)
    for page in site.glob("**/*.html"):
        text = UNSTYLED.sub("", UNCOLOURED.sub(r"\2", page.read_text(encoding="utf-8")))
        if page.name == "README.html" and page.parent.name in arguments.steps:
            text = bind(text, page.parent.name, data)
        text = LINE_NUMBER.sub(r'<a id="L\2" href="#L\2">\1</a>', re.sub(r"(<h1>.*?FlashAttention-)(?=\d)", "\\1&#8288;", text))  # no end of a line behind the hyphen
        page.write_text(re.sub(">[^<]*", lambda words: words[0].replace("&quot;", '"'), text), encoding="utf-8")
    walk.install(site / "explorers")
    for page in (site / "explorers").glob("*.html"):
        page.write_text(page.read_text(encoding="utf-8").replace("<h1>", (HERE / "theme/explorer.html").read_text(encoding="utf-8") + "<h1>", 1), encoding="utf-8")
    data.rename(site / "explorers/data")
    shutil.rmtree(out, ignore_errors=True)
    site.rename(out)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
