#!/usr/bin/env python3
"""links.py SITE: does each link, picture and script of each page of the site lead to a file in it and, behind a #, to a place there?
Is the site under 20 MB, does each page that the book has appear in it, and is each picture given words?"""

import sys
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST_BYTES = 20_000_000
ROOT = Path(__file__).resolve().parent.parent.parent


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.wordless = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [(tag, found[name]) for name in ("href", "src") if name in found]
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


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "Every link of the site leads somewhere.")
    sys.exit(bool(found))
