"""Sphinx's configuration of the web edition. build.py writes the source folder; here are the two things that need Sphinx's tree:
mathematics, rendered by KaTeX while the site is built, and links to the glossary at the first use of a term on each page."""

import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

BOOK = Path(os.environ["BOOK_FOLDER"])
project = html_title = "Attention, step by step"
author = "the authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_labels = False
myst_heading_anchors = 6  # as GitHub makes them
root_doc, html_theme, html_theme_path = "index", "site", ["theme"]
html_static_path = ["static"]
html_math_renderer = "katex"
html_copy_source = html_show_sourcelink = html_use_index = False
html_additional_pages = {"search": "search.html"}
EXPLORERS = {"example": "attention of 4 queries, each number by hand", "warp-map": "which bytes 32 threads ask for at once, and which of them wait: coalescing, and bank conflicts to remove",
             "tile-walk": "one block of a kernel at work, step by step", "pipeline": "copies, waits and products on one time line, with stages of a pipeline to change",
             "fragments": "which thread of a warp holds which number for the tensor cores", "ladder": "the times of all chapters, sizes and libraries"}  # as a reader meets them: what one sees
html_context = {"explorers": [(f"{name}.html", *re.search(r"<title>(.*?) - (?:.|\n)*<h1>(.*?)</h1>", (BOOK / f"explorers/{name}.html").read_text(encoding="utf-8")).groups(), seen)
                              for name, seen in EXPLORERS.items()]}
suppress_warnings = ["misc.highlighting_failure"]  # a quoted output is no program
highlight_language = "text"

log = logging.getLogger(__name__)


@functools.cache
def katex(_):  # by process: Sphinx forks
    environment = os.environ | {"NODE_PATH": "/usr/share/nodejs"}
    return subprocess.Popen(["node", BOOK / "katex.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def visit_math(displayed):
    def visit(self, node):
        process = katex(os.getpid())
        process.stdin.write(json.dumps([node.astext(), displayed]) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        if isinstance(answer, dict):
            log.warning("KaTeX: %s in %s", answer["error"], node.astext(), location=node)
        else:
            self.body.append(f'<div class="math">{answer}</div>' if displayed else answer)
        raise nodes.SkipNode

    return visit


# ---- the explorers ------------------------------------------------------------------------------------------------------------


def list_explorers(app, page, source):
    """On the page that lists the pages; an explorer is none. As a block of HTML, since the glossary links no word in that."""
    if page == "docs/README":
        items = "".join(f'<li><a href="../explorers/{file}?from={page}.html">{name}</a>: {seen}.</li>' for file, name, _, seen in html_context["explorers"])
        source[0] += f"\n## The explorers\n\n<ul>{items}</ul>\n"


# ---- the glossary -----------------------------------------------------------------------------------------------------------

GLOSSARY = "docs/glossary"
ORDINARY = {"page", "pair", "value", "bound", "step", "scale", "reference"}  # of the pages' English, far more often than the term
terms = {}  # in lower case: anchor and hover text


@functools.cache
def read_glossary(env):
    for section in env.get_doctree(GLOSSARY).findall(nodes.section):
        title, text = section.next_node(nodes.title).astext(), section.next_node(nodes.paragraph)
        if section.parent and isinstance(section.parent, nodes.section):
            said = "".join(child.astext() for child in text.children if not isinstance(child, nodes.reference) and "addnodes" not in str(type(child)))
            for term in title.split(", "):
                if len(term) > 1 and term not in ORDINARY:  # d and D, l and L would be confused
                    terms[term.lower()] = section["ids"][0], re.sub(r"\s+", " ", said).strip(" ,")
    words = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
    return re.compile(rf"(?<![\w.`-])({words})(e?s)?(?![\w-]|\.\w)", re.IGNORECASE)


NOT_IN = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.raw, nodes.math, nodes.math_block, nodes.comment)


def link_terms(app, doctree, page):
    if page == GLOSSARY or page.startswith("code/") or page == "licences":
        return
    pattern, seen, glossary = read_glossary(app.env), set(), app.builder.get_relative_uri(page, GLOSSARY)
    left_out = {id(text) for node in doctree.findall(lambda node: isinstance(node, NOT_IN)) for text in node.findall(nodes.Text)}
    for text in [text for text in doctree.findall(nodes.Text) if id(text) not in left_out]:
        parts, at = [], 0
        for match in pattern.finditer(text.astext()):
            anchor, said = terms[match[1].lower()]
            if anchor in seen:
                continue
            seen.add(anchor)
            parts += [nodes.Text(text[at : match.start()]), nodes.reference("", match[0], internal=True, refuri=f"{glossary}#{anchor}", classes=["term"],
                                                                            reftitle=said)]
            at = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[at:])])


# ---- search -------------------------------------------------------------------------------------------------------------------

SIGNS = dict(zip("cdot infty times sum le ge lt gt approx in pm partial sqrt dots lceil rceil lvert rvert lVert rVert top circ phi varepsilon Theta square".split(), "·∞×Σ≤≥<>≈∈±∂√…⌈⌉||‖‖T∘φεΘ□"))


def plain(tex):
    """A formula within a line as a line of text has it: N_{kv} as N_kv, e^{x - m} as e^(x - m)."""
    tex = re.sub(r"\\frac(?:\{([^{}]*)\}\{([^{}]*)\}|(\d)(\d))", r"\1\3/\2\4", re.sub(r"\\(?:mathrm|mathbb|text|tilde|hat)(?:\{([^{}]*)\}|(?![a-z]) ?)", r"\1", tex))
    tex = re.sub(r"\\([A-Za-z]+)", lambda name: SIGNS.get(name[1], name[1]), tex)
    while re.search(inner := r"(?<=[\^_/√])\{([^{}]*)\}", tex):
        tex = re.sub(inner, lambda part: f"({part[1]})" if " " in part[1] else part[1], tex)
    return re.sub(r"[{}\\]|(?<=[⌈√]) | (?=⌉)", "", tex)


def text_of(node):
    """What a reader can search: a line per paragraph and, behind a `, per line of code."""
    if isinstance(node, (nodes.raw, nodes.comment, nodes.math_block, nodes.section, nodes.title)):
        return ""
    if isinstance(node, nodes.literal_block):
        return re.sub(r"(?m)^\s*", "\n`", node.astext()) + "\n"
    if isinstance(node, nodes.math):
        return plain(node.astext())
    if isinstance(node, nodes.Text):
        return re.sub(r"\s+", " ", node.astext())
    return ("" if isinstance(node, nodes.TextElement) else "\n").join(map(text_of, node.children))


def write_search(app, error):
    """A script with an entry per section, [address, page, heading, text], of a file of code its name alone, and Lunr's index of them."""
    if error:
        return
    entries = [[f"explorers/{file}", name, "Explorer", f"{said}. Shown: {seen}."] for file, name, said, seen in html_context["explorers"]]
    for page in sorted(app.env.found_docs - {"licences"}):
        title, tree = app.env.titles[page].astext(), app.env.get_doctree(page)
        for section in tree.findall(nodes.section) if not page.startswith("code/") else ():
            heading = section.next_node(nodes.title).astext()
            text = re.sub(r"\n\s*", "\n", "\n".join(map(text_of, section.children))).strip()
            entries.append([f"{page}.html" + f"#{section['ids'][0]}" * (heading != title), title, heading if heading != title else "", text])
        if page.startswith("code/"):
            entries.append([f"{page}.html", title, "", ""])
    script = Path(app.outdir) / "_static/search.js"
    done = subprocess.run(["node", script], input=json.dumps(entries), check=True, capture_output=True, text=True, env=os.environ | {"NODE_PATH": "/usr/share/nodejs"})
    script.with_name("search-index.js").write_text(done.stdout, encoding="utf-8")


class Translator(HTML5Translator):
    def visit_image(self, node):  # a picture leads to its file, where a phone can enlarge it
        drawn = Path(self.builder.srcdir, node["uri"])
        super().visit_image(node)
        source = re.search(r'src="([^"]+)"', self.body[-1])
        if source and not isinstance(node.parent, nodes.reference):
            narrow = drawn.with_name(f"{drawn.stem}_narrow.svg")
            if narrow.exists():
                to = Path(self.builder.outdir, self.builder.imagedir, narrow.name)
                to.parent.mkdir(exist_ok=True)
                shutil.copyfile(narrow, to)
                self.body[-1] = f'<picture><source media="(max-width: 40rem)" srcset="{os.path.dirname(source[1])}/{narrow.name}">{self.body[-1]}</picture>'
            self.body[-1] = f'<a class="picture" href="{source[1]}">{self.body[-1]}</a>'
            if drawn.suffix == ".svg" and " infinite}" in drawn.read_text(encoding="utf-8"):  # one that moves stands in the page, which stops it and moves it by steps; its styles are its own
                forms = ((kind, file.read_text(encoding="utf-8")) for kind, file in (("broad", drawn), ("narrow", narrow)))
                self.body[-1] = '<span class="moves">' + "".join(f'<span class="{kind}"><template shadowrootmode="open"><style>svg{{display:block;width:100%;height:auto}}</style>{text}</template></span>' for kind, text in forms) + "</span>"

    def visit_table(self, node):  # wider than a phone, it scrolls by itself
        self.body.append('<div class="wide">')
        super().visit_table(node)

    def depart_table(self, node):
        super().depart_table(node)
        self.body.append("</div>\n")


def setup(app):
    app.add_html_math_renderer("katex", (visit_math(False), None), (visit_math(True), None))
    app.set_translator("html", Translator)
    app.connect("source-read", list_explorers)
    app.connect("doctree-resolved", link_terms)
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))  # Sphinx's own
    app.connect("build-finished", write_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
