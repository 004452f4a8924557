#!/usr/bin/env python3
"""links.py SITE: does each link, picture and script of each page of the site lead to a file in it and, behind a #, to a place there?
Is the site under 20 MB, does each page that the book has appear in it, is each picture given words, does Next lead from the first page through
all others but tasks and model answers, each of which a page on that way lists, what is needed before a chapter before it, does a page's own sentence about the next page name the page that the link below it leads to,
has each chapter one name, does the last one say that it is the last, does a chapter whose
time is not the ladder's say why, and is nothing that was made for the site empty?"""

import re
import sys
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST_BYTES = 21_000_000  # a chapter with its source takes half a megabyte or more
ROOT = Path(__file__).resolve().parent.parent.parent


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.wordless, self.next, self.up = [], set(), [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [(tag, found[name]) for name in ("href", "src") if name in found]
        if found.get("rel") in ("next", "up"):
            setattr(self, found["rel"], found["href"])
        if tag == "img" and not found.get("alt"):
            self.wordless.append(found.get("src"))


@lru_cache(maxsize=None)
def read(path):
    return Page(path.read_text(encoding="utf-8"))


def problems(site):
    for path in sorted(site.glob("**/*.html")):
        page, name = read(path), path.relative_to(site)
        yield from (f"{name}: the picture {source} has no words" for source in page.wordless)
        for tag, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag != "a" and parts.scheme != "data":
                    yield f"{name}: <{tag}> loads {link} from outside"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{name}: {link} leads to no file"
            elif not target.is_relative_to(site):
                yield f"{name}: {link} leads out of the site"
            elif parts.fragment and "=" not in parts.fragment and unquote(parts.fragment) not in read(target).ids:
                yield f"{name}: {link} leads to no such place"
    total = sum(file.stat().st_size for file in site.glob("**/*") if file.is_file())
    if total > MOST_BYTES:
        yield f"the site has {total} bytes, more than {MOST_BYTES}"
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("steps/[0-8]*/*.md"), *ROOT.glob("exercises/**/README.md")]:
        if len(page.suffixes) == 1 and not (site / page.relative_to(ROOT).with_suffix(".html")).exists():  # x.part.md is part of a page
            yield f"{page.relative_to(ROOT)} is not in the site"


EMPTY = re.compile(r"<(h[1-6]|summary|a|li|caption|option)\b((?![^>]*(?:aria-label|\bclass=.headerlink|\bid=))[^>]*)>\s*</\1>|[>\s](?:undefined|None|null)</|"
                   r"(?:Now|Measured|forward|backward)(?:</\w+>)*:?(?:</\w+>)* (?:-|–)(?=[,.<])")
NEXT = re.compile(r'<section id="next">\s*<h2>.*?</h2>(.*?)</section>|<p>(Next\b.*?)</p>', re.DOTALL)
LISTED = re.compile(r"exercises/\w+/README|docs/answers/")  # tasks and model answers
BEFORE = re.compile(r"^\| *\[?(\d\d)(?=[_ ])(.*)", re.MULTILINE)


def order(site):
    """The pages, as the links to the next one lead through them."""
    pages, page = [], site / "index.html"
    while page not in pages:
        pages.append(page)
        target = unquote(urlsplit(read(page).next or "").path)
        page = (page.parent / target).resolve() if target else page
    return [str(page.relative_to(site)) for page in pages]


def rows_of(page):
    return re.findall("(?s)<tr(?=[ >]).*?</tr>", page.read_text(encoding="utf-8"))


def texts_of(row):
    return [re.sub("<[^>]*>", "", cell).strip() for cell in re.findall("(?s)<td.*?</td>", row)] or [""]


def time_of(row):
    """The first time in a row of a table."""
    return next((text for text in texts_of(row) if re.fullmatch(r"[\d.]+ ms", text)), None)


def made(site):
    """What is wrong with the order of the pages, and with what build.py and the generated parts of the text put into them."""
    pages = order(site)
    for path in sorted(site.glob("**/*.html")):
        name = str(path.relative_to(site))
        if LISTED.match(name) and name not in pages:
            above = (path.parent / unquote(read(path).up or "")).resolve()
            links = [(above.parent / unquote(urlsplit(link).path)).resolve() for _, link in read(above).links] if above.is_file() else []
            if path not in links or not (LISTED.match(str(above.relative_to(site))) or str(above.relative_to(site)) in pages):
                yield f"{name}: no page of the reading order lists it"
        elif LISTED.match(name) and not name.startswith("exercises/00"):
            yield f"{name} stands in the reading order"
        elif not name.startswith(("code/", "explorers/", "search.html")) and name not in pages:
            yield f"{name}: no link to the next page leads there"
        for empty in EMPTY.finditer(re.sub("(?s)<pre.*?</pre>|<code.*?</code>|<script.*?</script>", "", path.read_text(encoding="utf-8"))):
            yield f"{name}: empty: {empty[0]}"
        yield from (f"{name}: a page by its file: {said}" for said in re.findall(r"<a [^>]*>([\w/-]+\.md)</a>", path.read_text(encoding="utf-8")) if not name.startswith("code/"))
    start = ["index", "docs/first", "docs/gpu", "docs/math/attention", "docs/math/costs"]
    if pages[:5] != [f"{name}.html" for name in start] or not all(page.startswith("exercises/00") for page in pages[5:9]):
        yield f"the book begins with {', '.join(pages[:9])}"
    last = max(site.glob("steps/[0-8]*/README.html"))
    if "The chapters end here" not in last.read_text(encoding="utf-8"):
        yield f"{last.parent.name}: nothing says that it is the last chapter"
    chapters = {}
    for name in pages:
        text = (site / name).read_text(encoding="utf-8")
        for after in NEXT.finditer(text):
            link = re.search(r'<a (?:class="(?!term)[^"]*" )?href="([^"#:]+)', after[1] or after[2])
            if not link or (site / name).parent.joinpath(unquote(link[1])).resolve() != (site / name).parent.joinpath(unquote(read(site / name).next)).resolve():
                yield f"{name}: of the next page the text says {link and link[1]}, the link below it leads to {read(site / name).next}"
        for title in re.findall(r'(?:<h1>|rel="(?:prev|next)"[^>]*>(?:← )?<span>)(\d\d [^<:]+)[:<]', text.replace("&#8288;", "")):
            chapters.setdefault(title[:2], set()).add(title)
        for number, title in re.findall(r'<a [^>]*href="[^"]*steps/(\d\d)_\w+/README\.html"[^>]*>(\d\d[ _][^<:]+)', text):
            chapters.setdefault(number, set()).add(title)
    yield from (f"chapter {number} has the names {', '.join(sorted(names))}" for number, names in chapters.items() if len(names) > 1)
    for row in rows_of(site / "index.html"):
        name, time = re.search(r'href="steps/(\w+)/README.html"', row), time_of(row)
        page = site / f"steps/{name[1]}/README.html" if name and time else None
        rows = rows_of(page) if page else []
        others = [time_of(each) for each in rows if texts_of(each)[0] == name[1] and time_of(each)]
        text = page.read_text(encoding="utf-8") if page else ""
        is_said = any("another run" in part and '#the-ladder"' in part for part in re.findall("(?s)<p>.*?</p>", text))
        if others and others[0] != time and not is_said:
            yield f"{name[1]} takes {others[0]} on its page and {time} in the ladder, and nothing says why"
    for page in (ROOT / "README.md", ROOT / "docs/README.md"):
        for number, row in BEFORE.findall(page.read_text(encoding="utf-8")):
            chapter = next((k for k, name in enumerate(pages) if name.startswith(f"steps/{number}_")), 0)
            for needed in re.findall(r"\]\(([^)#:]*(?<!README)\.md)", row):
                name = str((page.parent / needed).resolve().relative_to(ROOT).with_suffix(".html"))
                if name not in pages[:chapter]:
                    yield f"{name}, needed before chapter {number}, stands behind it"


if __name__ == "__main__":
    found = [*problems(Path(sys.argv[1]).resolve()), *made(Path(sys.argv[1]).resolve())]
    print("\n".join(found) or "Every link of the site leads somewhere.")
    sys.exit(bool(found))
