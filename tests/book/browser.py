#!/usr/bin/env python3
"""browser.py SITE PROGRAMS [--pages GLOB] [--walks STEP,...] [--others NAME,...]: the site in headless Chromium, from file://.

Every page: nothing on the console, no request outside of the site, no scrolling sideways at 360 and 1280 pixels, contrast of at
least 4.5 : 1 in both themes, a name for each control. The explorers: each control is operated and what it shows is compared with a
trace that the program writes again here. Exit status 77 where there is no browser and CI is not set."""

import argparse
import base64
import functools
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

CONTRAST = """
const problems = [], seen = new Set();
const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const luminance = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
                           return .2126 * r + .7152 * g + .0722 * b; };
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    let ground = [255, 255, 255], from = element;
    for (; from; from = from.parentElement) {
        const colour = parse(getComputedStyle(from).backgroundColor);
        if (colour[3] === 1) { ground = colour; break; }
    }
    const key = style.color + ground;
    if (seen.has(key) || element.disabled) continue;
    seen.add(key);
    const [a, b] = [luminance(parse(style.color).slice(0, 3)), luminance(ground.slice(0, 3))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5)
        problems.push(`contrast ${((a + .05) / (b + .05)).toFixed(2)} of "${walker.currentNode.data.trim().slice(0, 30)}" in <${element.tagName} class=${element.className}>`);
}
return problems;
"""
NAMES = """
const problems = [];
for (const control of document.querySelectorAll("button, input, select, a[href], iframe, canvas, summary")) {
    const label = control.labels && control.labels[0];
    const by = document.getElementById(control.getAttribute("aria-labelledby"));
    const name = control.getAttribute("aria-label") || (by && by.textContent) || (control.type === "submit" && control.value) || (label && label.textContent) || control.title || control.textContent || (control.querySelector("img") || {}).alt;
    if (!name || !name.trim()) problems.push(`no name: ${control.outerHTML.slice(0, 80)}`);
}
return problems;
"""
WIDTH = """
const problems = [], wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wide > 0) {
    const far = [...document.querySelectorAll("body *")].find((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide, pre, .math, nav"));
    problems.push(`wider than the window by ${wide} pixels${far ? ": " + far.outerHTML.slice(0, 80) : ""}`);
}
return problems;
"""
NUMBERS = """
return [...document.querySelectorAll(".katex-display .tag")].filter((tag) => {
    const number = tag.getBoundingClientRect(), parts = [...tag.parentElement.querySelectorAll(".base")].map((part) => part.getBoundingClientRect());
    return parts.some((part) => part.right > number.left && part.left < number.right && part.bottom > number.top && part.top < number.bottom);
}).map((tag) => tag.textContent)"""

HIDDEN = """
const folded = [...document.querySelectorAll("main details:not([open])")].map((each) => Object.assign(each, { open: true }));
dispatchEvent(new Event("resize"));
const found = [...document.querySelectorAll("main :is(pre, .wide, .math)")].filter((box) => box.scrollWidth > box.clientWidth + 1 && !box.matches("pre.scrolls[tabindex]")).map((box) => box.textContent.trim().slice(0, 80));
folded.forEach((each) => { each.open = false; });
return found;"""

problems, planted = [], None  # planted: what is to be said of the fault in a copy of the site
ROOT = Path(__file__).resolve().parent.parent.parent
PART = (int(os.environ["TEST_PART"]), 3) if os.environ.get("TEST_PART") else (0, 1)  # in continuous integration a third of what is alike


class Noticed(Exception):
    """A fault was planted, and this is what must notice it."""


def wrong(text):
    problems.append(text)
    if planted is None:
        print(text, flush=True)
    elif planted in text:
        raise Noticed


def same(what, got, expected):
    if got != expected:
        wrong(f"{what}: {str(got)[:300]}, expected {str(expected)[:300]}")


@functools.cache
def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Browser:
    def __init__(self, site):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": (ROOT / "tests/book/state.js").read_text(encoding="utf-8")})
        self.driver.set_script_timeout(900)  # where many share the processors; it only ends what never ends
        self.site, self.size = site, None
        self.width(1280)

    def width(self, width, height=900):
        if (width, height) != self.size:
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.size = width, height

    def motion(self, wanted):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": wanted}]})

    def afresh(self):
        """Without what the pages before have left: a frame, marks and a theme, a width, less motion, words on the console."""
        self.driver.switch_to.default_content()
        if self.driver.current_url.startswith("file:"):
            self.js("localStorage.clear()")
        self.driver.get("about:blank")
        self.motion("no-preference")
        self.size = None
        self.width(1280)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)

    def open(self, path):
        self.driver.get("about:blank")
        self.driver.get(f"file://{self.site}/{path}")

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def until(self, what, code, seconds=60):
        """The condition decides, the time only where it never holds: on a processor that many share, or where a planted fault is to be noticed."""
        end = time.monotonic() + (seconds if planted is None else 5)
        while time.monotonic() < end:
            if value := self.js("try { return " + code + "; } catch (error) { return null; }"):
                return value
            time.sleep(0.05)
        wrong(f"{what} did not happen within {seconds} s")
        return None

    def noise(self, where):
        """What stood on the console since the last call, and what was asked for outside of the site."""
        for entry in self.driver.get_log("browser"):
            wrong(f"{where}: the console says {entry['message']}")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                address = message["params"]["request"]["url"]
                if not unquote(address).startswith((f"file://{self.site}/", "data:", "about:")):
                    wrong(f"{where}: it asks for {address}")

    def address(self):
        """It is written when nothing has changed for 100 ms; timers end in the order of their times."""
        return self.driver.execute_async_script("setTimeout(() => arguments[0](location.href), 150)")

    def element(self, name):
        return self.driver.find_element("id", name)

    def choose(self, name, value):
        from selenium.webdriver.support.ui import Select

        if self.element(name).is_enabled():  # else a list of one
            Select(self.element(name)).select_by_value(value)


def check_look(browser, name, widths=(360, 1280)):
    """A change of the width takes as long as all else: each page begins with the width of the page before."""
    for theme in ("light", "dark"):
        browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
        for problem in browser.js(CONTRAST):
            wrong(f"{name}, {theme}: {problem}")
    for problem in browser.js(NAMES):
        wrong(f"{name}: {problem}")
    for width in widths:
        browser.width(width)
        for problem in browser.js(WIDTH):
            wrong(f"{name}, {width} pixels: {problem}")
        if on := browser.js(NUMBERS):
            wrong(f"{name}, {width} pixels: equation numbers on their formulas: {on}")


def check_note(browser, field, value, wanted):
    """What stands beside a field after a change, and that it goes with the next change. Nothing where the field takes the value."""
    browser.js("const c = document.getElementById(arguments[0]); c.value = arguments[1]; for (const e of ['input', 'change']) c.dispatchEvent(new Event(e))", field, value)
    note = "return [...document.querySelectorAll('.note')].map((note) => [note.textContent, note.parentElement.contains(document.getElementById(arguments[0]))])"
    same(f"what is said beside {field} of {value!r}", browser.js(note, field), [[f"Enter {wanted}.", True]] if wanted else [])
    if wanted:
        check_look(browser, f"a note beside {field}")
        browser.width(1280)


def check_cut(browser, name):
    """Text that is cut off: of fields, of the table of the softmax, and of bars, which have no text where it does not fit."""
    for width in (360, 1280):
        browser.width(width)
        for text in browser.js("""
            const ends = (bar) => { const range = document.createRange(); range.selectNodeContents(bar); return [range, bar].map((each) => each.getBoundingClientRect()); };
            return [...[...document.querySelectorAll("input")].filter((field) => field.scrollWidth > field.clientWidth).map((field) => field.value),
                ...[...document.querySelectorAll("#online td")].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent),
                ...[...document.querySelectorAll(".span")].filter((bar) => { const [text, box] = ends(bar); return text.top < box.bottom - 2 && text.right > box.right + 1; }).map((bar) => bar.textContent)];"""):
            wrong(f"{name}, {width} pixels: the text {text} is cut off")


def check_roles(browser, name):
    """In Chromium's accessibility tree: what the keyboard can reach has a role and a name, and so has each picture a name."""
    for node in browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]:
        role, called = (node.get(field, {}).get("value") for field in ("role", "name"))
        focusable = any(each["name"] == "focusable" and each["value"].get("value") for each in node.get("properties", []))
        if node["ignored"] or role in ("RootWebArea", "main"):
            continue
        if focusable and (role in (None, "generic", "none", "StaticText") or not (called or "").strip()):
            wrong(f"{name}: in the accessibility tree a control of role {role} has the name {called!r}")
        if role in ("image", "Canvas", "SvgRoot") and not (called or "").strip():
            wrong(f"{name}: in the accessibility tree a picture of role {role} has no name")


def check_pages(browser, pattern):
    widths = [1280, 360]
    paths = [path.relative_to(browser.site) for path in sorted(browser.site.glob(pattern))]
    code = [path for path in paths if path.parts[0] == "code"]  # they are made alike
    for name in [path for path in paths if path not in code] + code[PART[0] :: PART[1]]:
        browser.driver.get(f"file://{browser.site}/{name}")
        check_look(browser, name, widths)
        if name not in code:
            browser.width(1280)
            same(f"{name}: boxes that hide a part", browser.js(HIDDEN), [])
            browser.width(widths[-1])
        widths.reverse()
        if name not in code:
            check_roles(browser, name)
        browser.noise(name)


def check_page(browser, _):
    """The theme, the list of pages on a phone, search, hover texts, folded answers, and a frame that hears of its page's theme."""
    browser.width(1280)
    browser.open("steps/06_vectorized/README.html")
    for expected in ("light", "dark", "automatic"):
        browser.element("theme").click()
        same("the button of the theme", browser.element("theme").text, f"Theme: {expected}")
        if expected != "automatic":
            same("the theme", browser.js("return document.documentElement.dataset.theme"), expected)
    browser.element("theme").click()
    browser.element("theme").click()
    browser.js("document.querySelector('iframe.explorer').scrollIntoView()")
    browser.until("the frame's height", "document.querySelector('iframe.explorer').style.height !== ''")
    browser.driver.switch_to.frame(browser.driver.find_element("css selector", "iframe.explorer"))
    browser.until("the page's theme in its frame", "document.documentElement.dataset.theme === 'dark' && window.state().step === '06_vectorized'")
    browser.element("next").click()
    first = browser.js("const [picture, settings] = [document.querySelector('.told'), byId('settings')]; return [picture.getBoundingClientRect().top < 20, settings.open, settings.querySelectorAll('select').length, picture.compareDocumentPosition(settings)]")
    same("a frame begins with its figure, its settings folded", first, [True, False, 4, 4])
    address = browser.address()
    browser.driver.switch_to.default_content()
    same("the link to the full width", browser.js("return document.querySelector('a.full[href*=tile-walk]').href").replace("?from=steps/06_vectorized/README.html", ""), address)
    same("the explorers in the list of pages", sorted(browser.js("return [...document.querySelectorAll('.pages a[href*=\"explorers/\"]')].map((a) => a.href.match(/([\\w-]+)\\.html/)[1])")), sorted(EXPLORERS))
    names = browser.js("return [...document.querySelectorAll('.pages a')].filter((a) => a.checkVisibility()).map((a) => a.textContent)")
    same("names in the list of pages", ["05 FlashAttention-2 forward" in names, [name for name in names if re.match(r"\d\d_", name)]], [True, []])
    check_lines(browser)
    term = browser.js("const a = document.querySelector('a.term'); return [a.textContent, a.title, a.getAttribute('href')]")
    if not term or len(term[1]) < 20 or "glossary.html#" not in term[2]:
        wrong(f"the first term has no hover text or link: {term}")
    terms = browser.js("return [...document.querySelectorAll('a.term')].map((a) => a.hash)")
    same("terms that are linked twice", sorted({term for term in terms if terms.count(term) > 1}), [])
    if browser.js("return document.querySelectorAll('details.rungs table.beside .ins').length") < 10:
        wrong("the rungs of chapter 06 are not shown beside each other")
    if browser.js("return document.querySelectorAll('.katex').length") < 5:
        wrong("no mathematics on the page of chapter 06")
    between = browser.js("return [...[...document.querySelectorAll('.pages details')].find((each) => each.innerText.startsWith('CHAPTERS')).querySelectorAll(':scope > ul > li')].map((li) => [li.matches('.before'), /^\\d/.test(li.textContent)])")
    same("pages between chapters that look like chapters", [len(between) > 16, [both for both in between if both[0] == both[1]]], [True, []])
    browser.width(360)
    browser.open("docs/gpu.html")
    listed = lambda: browser.js("const [menu, list] = [byId('menu'), document.querySelector('.pages')], top = menu.getBoundingClientRect().top; return [top >= 0 && top < 60, menu.ariaExpanded, list.checkVisibility()]".replace("byId", "document.getElementById.bind(document)"))
    browser.js("document.documentElement.style.scrollBehavior = 'auto'; scrollTo(0, 3000)")
    same("the button of the list of pages, far below on a phone", listed(), [True, "false", False])
    browser.element("menu").click()
    same("the list of pages, opened", [*listed(), browser.js("return document.querySelector('.pages .current').getBoundingClientRect().bottom < innerHeight")], [True, "true", True, True])
    browser.driver.switch_to.active_element.send_keys("\ue00c")  # Escape
    same("the list of pages, closed", listed(), [True, "false", False])
    browser.open("steps/05_fa2_fwd/README.html")
    drawn = lambda: browser.js("const picture = document.querySelector('a.picture:not(:has(picture))'); picture.click(); return [picture.querySelector('img').clientWidth > 600, picture.scrollWidth > 600, picture.clientWidth < 360, document.documentElement.scrollWidth]")
    same("a picture that is enlarged on a phone", drawn(), [True, True, True, 360])
    same("a picture that is reduced again", drawn(), [False, False, True, 360])
    browser.width(1280)
    browser.element("theme").click()  # automatic again
    browser.noise("controls of pages")


def check_ways(browser, _):
    """The header that stays, the section that is marked, keys, copies of code, search by its field, and the way back from an explorer."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    press = lambda key: ActionChains(browser.driver).send_keys(key).perform()
    browser.motion("reduce")
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page = "steps/02_tiled_matmul/README.html"
    browser.width(1100)
    browser.open(page)
    heading = browser.js("const all = document.querySelectorAll('main h2'), h = all[4]; h.scrollIntoView(); return h.parentElement.id")
    browser.until("the mark of the section that is read", f"(now => now.hash === '#{heading}' && now.checkVisibility())(document.querySelector('.pages [aria-current=location]'))")
    same("the header, where the page is scrolled", browser.js("return [scrollY > 500, document.querySelector('header').getBoundingClientRect().top]"), [True, 0])
    browser.width(1280)
    copied = lambda kind: browser.driver.execute_async_script(
        "const [kind, done] = arguments, box = document.querySelector(kind); box.querySelector('.copy').click(); setTimeout(() => navigator.clipboard.readText().then(done, done), 200)", kind)
    console = browser.js("return document.querySelector('.highlight-console pre').textContent")
    same("a copy of commands", copied(".highlight-console"), "\n".join(line[2:] for line in console.split("\n") if line.startswith("$ ")))
    same("a copy of code", copied(".highlight-cuda"), browser.js("return document.querySelector('.highlight-cuda pre').textContent.trimEnd()"))
    same("outputs with a button", browser.js("return document.querySelectorAll('.highlight-text .copy, .highlight-default .copy').length"), 0)
    for key, rel in ((Keys.ARROW_RIGHT, "next"), (Keys.ARROW_LEFT, "prev")):
        browser.open(page)
        wanted = browser.js(f"return document.querySelector('a[rel={rel}]').href")
        press(key)
        browser.until(f"the page {rel} by a key", f"location.href === '{wanted}'")
    browser.open(page)
    press("/")
    press("bank" + Keys.ARROW_LEFT + "/")
    same("typed in the field of search", browser.js("return [document.activeElement.value, location.href.endsWith(arguments[0])]", page), ["ban/k", True])
    browser.js("document.activeElement.value = 'bank'; document.activeElement.dispatchEvent(new Event('input'))")
    browser.until("results while typing", "document.querySelectorAll('header #found > li > a').length > 3")
    press(Keys.ARROW_DOWN + Keys.ARROW_DOWN + Keys.ARROW_UP)
    same("the answer by keys", browser.js("return document.activeElement === document.querySelector('header #found a')"), True)
    press(Keys.ESCAPE)
    same("answers after Escape", browser.js("return document.querySelector('header #found').checkVisibility()"), False)
    browser.js("document.querySelector('header [type=search]').focus()")
    browser.width(360)
    same("results while typing, cut off on a phone", browser.js("const { left, right } = document.querySelector('header #found').getBoundingClientRect(); return left < 0 || right > innerWidth"), False)
    browser.width(1280)
    for link in browser.js("return [...document.querySelectorAll('header #found a')].map((a) => decodeURI(a.href.split('#')[0]).replace('file://', ''))"):
        if not Path(link).is_file():
            wrong(f"a result leads to {link}")
    browser.js("document.activeElement.value = 'tensorcore'; document.activeElement.form.requestSubmit()")
    browser.until("results of a search", "document.querySelectorAll('#found > li > a').length > 5 && document.querySelectorAll('#found mark').length > 5 && /q=tensorcore/.test(location.href)")
    check_look(browser, "search")
    browser.width(1280)
    browser.open(page.replace("02_tiled_matmul", "06_vectorized"))
    browser.js("document.querySelector('a.full[href*=tile-walk]').click()")
    browser.until("the way back from an explorer", "document.getElementById('origin').textContent === '← Back to chapter 06'")
    same("the header of an explorer", browser.js("return [...document.querySelectorAll('header > *')].map((each) => each.checkVisibility())"), [True] * 5)
    ways = browser.js("return [...document.querySelectorAll('nav.explorers a')].map((link) => [link.pathname.split('/').at(-1), link.ariaCurrent])")
    same("the links from an explorer to the others", sorted(ways, key=str), [[f"{name}.html", "page" if name == "tile-walk" else None] for name in sorted(EXPLORERS)])
    browser.element("origin").click()
    browser.until("the page that an explorer was opened from", "location.pathname.endsWith('steps/06_vectorized/README.html')")
    same("headers in frames", browser.js("return document.querySelectorAll('header').length"), 1)
    browser.driver.switch_to.frame(browser.driver.find_element("css selector", "iframe.explorer"))
    browser.until("a frame without a header", "!document.querySelector('header').checkVisibility()")
    browser.driver.switch_to.default_content()
    browser.noise("ways through pages")


def check_lines(browser):
    """Each quoted line that is a link: its frame shows the first step in which the line runs, and the page marks the lines of that step."""
    from selenium.webdriver.common.keys import Keys

    browser.motion("reduce")  # a page that scrolls is not yet where the way back leads
    frame, links = browser.driver.find_element("css selector", "iframe[name=tile-walk]"), browser.driver.find_elements("css selector", ".walked")
    if len(links) < 5:
        wrong(f"only {len(links)} lines of chapter 06 lead to the walk")
    for k, link in enumerate(links):
        place, name, quoted = browser.js("const a = arguments[0]; return [a.dataset.line, a.ariaLabel, a.parentElement.textContent.split('\\n')[[...a.parentElement.childNodes].slice(0, "
                                         "[...a.parentElement.childNodes].indexOf(a)).map((each) => each.textContent).join('').split('\\n').length - 1]]", link)
        file, _, line = place.rpartition(":")
        same(f"a quoted line, {name}", [quoted.strip(), name], [(ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip(), f"Watch line {line} run"])
        browser.js("arguments[0].focus()", link)
        before = browser.js("return Math.round(scrollY)")
        link.send_keys(Keys.ENTER)
        browser.until(f"the page marks {place}", f"[...document.querySelectorAll('.walked.now')].some((each) => each.dataset.line === '{place}')")
        browser.driver.switch_to.frame(frame)
        at, first, shown = browser.js("return [window.state().at, launch.steps.findIndex((step) => placesOf(step).includes(arguments[0])), placesOf(launch.steps[at])]", place)
        browser.driver.switch_to.default_content()
        same(f"the first step of {place}", at, first)
        marked = browser.js("return [...document.querySelectorAll('.walked')].filter((each) => each.classList.contains('now') !== arguments[0].includes(each.dataset.line)).length", shown)
        same(f"lines that are wrongly marked at {place}", marked, 0)
    same("the page has moved to the walk", browser.js("return Math.abs(arguments[0].getBoundingClientRect().top) < innerHeight", frame), True)
    browser.driver.back()
    browser.until("the way back to the line", f"Math.abs(scrollY - {before}) < 5")


# ---- the tile walk --------------------------------------------------------------------------------------------------------

WORD, WRITES = 4, ("store", "add", "shared store")
ACTIONS = ["load", "copy", "store", "add", "use", "shared load", "shared store", "bulk load", "multiply"]
BULK = {"bulk load": "bulk load", "bulk store": "store", "bulk add": "add"}


def spans(text):
    return [range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1) for part in text.split(",")]


@functools.lru_cache(12)
def traced(programs, command):
    """By launch the events that access memory: (epoch, site, array, action, warp, words); of shared memory the words of its array.
    And {(space, object, phase): warps} that wait for it, {(mbarrier, phase): {array: words}} that land with it, how many arrive at
    {(mbarrier, phase): ...}, and which words of shared memory are used at all. Of a kernel that has phases the epoch is (barriers of the block, waits of the warp since then)."""
    with tempfile.TemporaryDirectory() as folder:
        words = command.replace("FILE", f"{folder}/trace").split()
        subprocess.run([f"{programs}/{words[0]}", *words[1:]], check=True, capture_output=True)
        launches = json.loads(Path(f"{folder}/trace").read_text(encoding="utf-8"))["launches"]
    made = []
    for launch in launches:
        starts, found = {array["name"]: array["offset"] for array in launch["shared_arrays"]}, []
        launch["arrived"], launch["used"] = defaultdict(int), set()
        launch["waits"], launch["lands"], under_way = defaultdict(set), {}, defaultdict(lambda: defaultdict(set))
        rows, barriers, lanes, closed = launch["blocks"][0]["events"], 0, defaultdict(int), defaultdict(int)
        sites = [launch["sites"][row[0]] for row in rows]
        mbarriers = sorted({row[3][0] for row, site in zip(rows, sites) if site["space"] == "mbarrier"})
        launch["has_phases"] = any(site["kind"] == "phase" for site in sites)
        for site, (number, warp, epoch, *rest) in zip(sites, rows):
            if warp == -2:
                warp = launch["block"][0] * launch["block"][1] * launch["block"][2] // 32
            if site["space"] == "block":
                barriers += 1
                lanes.clear()
            if launch["has_phases"]:
                taking = [lane for lane, at in enumerate(rest[1]) if at is not None] if site["space"] in ("global", "shared") and isinstance(rest[1], list) else range(32)
                epoch = barriers, max(lanes[warp, lane] for lane in taking)
            if site["space"] == "copies":  # of a wait: by lane the number of its first group that may still be under way
                left = rest[1] if isinstance(rest[1], list) else [rest[1]] * 32
                for lane in range(32):
                    closed[warp, lane] += site["kind"] == "commit" and left[lane] is not None
                found.append((epoch, number, None, site["kind"], warp, set(), [None if each is None else closed[warp, lane] - each for lane, each in enumerate(left)]))
                continue
            if len(rest) == 1:
                thing, phase, _, lane = rest[0]
                point = site["space"], mbarriers.index(thing) if site["space"] == "mbarrier" else thing, phase
                if site["kind"] == "wait":
                    launch["waits"][point].add(warp)
                    lanes[warp, lane] += 1
                launch["arrived"][point[1:]] += site["kind"] == "arrive" and site["space"] == "mbarrier"
                if site["kind"] == "phase" and site["space"] == "mbarrier":
                    launch["lands"][point[1:]] = {name: sorted(words) for name, words in under_way.pop(thing, {}).items()}
                continue
            if site["space"] in ("bulk", "operand"):
                array, moves, barrier, lane = rest
                launch["used"] |= {(at + k) // WORD for at, size, _ in zip(*[iter(moves)] * 3) for k in range(0, size, WORD)}
                if array >= 0:
                    epoch, name = (barriers, lanes[warp, lane]), launch["arrays"][array]
                    words = {(at + k) // WORD for _, size, at in zip(*[iter(moves)] * 3) if at is not None for k in range(0, size, WORD)}
                    found.append((epoch, number, name, BULK[site["kind"]], warp, words, None))
                    if site["kind"] == "bulk load":
                        under_way[barrier][name] |= words
                if site["kind"] != "bulk load":
                    places = {(at + k) // WORD for at, size, _ in zip(*[iter(moves)] * 3) for k in range(0, size, WORD)}
                    found.append((epoch, number, "shared", "shared load", warp, places, None))
                continue
            if not rest:
                continue
            array, offsets = launch["arrays"][rest[0]], rest[1] if isinstance(rest[1], list) else [rest[1]]
            is_shared = site["space"] == "shared"
            action = {"atomic": "add", "ldmatrix": "load"}.get(site["kind"], site["kind"])
            start = starts.get(array, 0) if is_shared else 0
            rest.append([closed[warp, lane] for lane in range(32)])
            places = {(start + at) // WORD + k for at in offsets if at is not None for k in range(max(1, site["bytes"] // WORD))}
            launch["used"] |= places if is_shared else {at // WORD + k for at in rest[2] if at is not None for k in range(site["bytes"] // WORD)} if action == "copy" else set()
            found.append((epoch, number, "shared" if is_shared else array, f"shared {action}" if is_shared else action, warp, places, rest))
        made.append((launch, found))
    return made


class Copies:
    """What copies by cp.async bring to shared memory: `held` and `under_way`, {place: (array, word)}, as events pass."""

    def __init__(self, sites):
        self.sites, self.held, self.under_way, self.groups = sites, {}, {}, {}

    def take(self, number, array, action, warp, rest):
        if action == "copy":
            for lane, (offset, to, group) in enumerate(zip(*rest[1:])):
                for word in range(self.sites[number]["bytes"] // WORD) if offset is not None else ():
                    self.held.pop(to // WORD + word, None)
                    self.under_way[to // WORD + word] = array, offset // WORD + word
                    self.groups[to // WORD + word] = warp, lane, group
        elif action == "wait":
            for place, (of, lane, group) in list(self.groups.items()):
                if of == warp and rest[lane] is not None and group < rest[lane]:
                    self.held[place] = self.under_way.pop(place)
                    del self.groups[place]

    def words(self, of):
        found = defaultdict(set)
        for array, word in of.values():
            found[array].add(word)
        return found


NEXT = "document.getElementById('next').click(); return window.state()"  # by the pointer it is clicked in check_walk_controls()


def compare_walk(browser, launch, events, by_copies):
    """Goes through all steps of what is shown; compares with the trace by epoch, sites, array, action and warp."""
    browser.element("first").click()
    shown, before, seen, copies = defaultdict(set), None, set(), Copies(launch["sites"])
    barriers, waits, waited, landed, due = 0, defaultdict(int), defaultdict(set), {}, {}
    for thing, phase in launch["lands"]:  # phases that are over
        due[thing] = max(launch["arrived"][thing, phase], due.get(thing, 0))
    numbers_of = lambda text: [number for span in spans(text) for number in span] if text else []
    state = browser.js("return window.state()")
    compare_phases(browser, state)
    for at in range(state["steps"]):
        state = browser.js(NEXT) if at else state
        what = f"{state['step']}, launch {state['launch']}, step {at + 1}"
        same(f"{what}: its number", state["at"], at)
        numbers = tuple(k for k, site in enumerate(launch["sites"]) if [*(site[name] for name in ("file", "line", "kind", "space")), site.get("caller", "")] in state["sites"])
        called = {int(site[4].rpartition(":")[2]) for site in state["sites"] if site[4]}
        same(f"{what}: the lines that are marked", sorted(set(state["marked"])), sorted({site[1] for site in state["sites"] if site[1]} | called))
        under_way = {array: set(numbers_of(words)) for array, words in state["underWay"].items()}
        for array, action, warps, text in state["touches"]:
            words = numbers_of(text)
            if ACTIONS[action] not in ("use", "multiply"):
                for warp in numbers_of(warps):
                    epoch = (barriers, waits[warp]) if launch["has_phases"] else state["epoch"]
                    shown[epoch, array or "shared", ACTIONS[action], warp].update(words)
            cells = state["cells"][array or "shared"]
            if any(cells[word] < "5" for word in words):
                wrong(f"{what}: words that it touches are not drawn as touched")
            if ACTIONS[action] == "bulk load" and not under_way[array].issuperset(words):
                wrong(f"{what}: a copy by the TMA is not drawn as under way")
        for array, words in under_way.items():
            if any(state["cells"][array][word] not in "356" for word in words):
                wrong(f"{what}: words of {array} that are under way are drawn otherwise")
        same(f"{what}: words of shared memory that no step uses", {k for k, cell in enumerate(state["cells"]["shared"]) if cell == "0"},
             set(range(len(state["cells"]["shared"]))) - launch["used"])
        for kind, space, thing, phase, warps, *_ in state["sync"]:
            if kind == "arrive" and space == "mbarrier" and thing in due and f" of {due[thing]} arrivals" not in state["said"]:
                wrong(f"{what}: how many of {due[thing]} have arrived is not said: {state['said']}")
            if kind == "wait" and space != "copies":
                waited[space, thing, phase].update(numbers_of(warps))
                for warp in numbers_of(warps):
                    waits[warp] += 1
            if kind == "phase" and space == "mbarrier":
                landed[thing, phase] = {name: numbers_of(words) for name, words in state["came"]}
                for name, words in landed[thing, phase].items():
                    if not set(words) <= set(numbers_of(state["held"][name])) or under_way[name] & set(words):
                        wrong(f"{what}: what has arrived is not drawn in shared memory")
        if any(space == "block" for _, _, _, space, _ in state["sites"]):
            barriers += 1
            waits.clear()
        if by_copies and (state["epoch"], numbers) not in seen:  # a loop in several steps: its events are taken with the first
            seen.add((state["epoch"], numbers))
            for epoch, number, array, action, warp, _, rest in events:
                if epoch == state["epoch"] and number in numbers:
                    copies.take(number, array, action, warp, rest)
            same(f"{what}: what is under way", {array: words for array, words in under_way.items() if words}, copies.words(copies.under_way))
        if by_copies and before is not None and state["epoch"] != before["epoch"]:
            for array, words in copies.words(copies.held).items():
                same(f"{what}: what shared memory holds of {array}", set(numbers_of(state["held"][array])), words)
        for words in missing_words(state):
            wrong(f"{what}: {words!r} is not said: {state['said']}")
        before = state
    same(f"{state['step']}: rows that two parts of a loop load", overlapping(browser), [])
    same(f"{state['step']}: who waits for what", waited, launch["waits"])
    same(f"{state['step']}: what lands with which phase", landed, launch["lands"])
    expected = defaultdict(set)
    for epoch, number, array, action, warp, words, _ in events:
        if array:
            expected[epoch, array, action, warp] |= words
    for key in sorted(shown.keys() | expected.keys()):
        if shown[key] != expected[key]:
            odd = sorted(shown[key] ^ expected[key])
            wrong(f"{state['step']}: behind barrier {key[0]}, {key[2]} of {key[1]} by warp {key[3]}: words {odd[:8]} differ from the trace")


def overlapping(browser):
    """Steps that load only some of the rows that the step before them loads by the same lines; not of loops of an odd number of rounds."""
    steps = browser.js("return launch.steps.map(({ epoch, sites, touches }) => [epoch + ' ' + sites, touches.filter(([array, action]) => array && !action).flatMap(([array, , , rectangles]) => rectangles.map(([rows]) => [array, rows]))])")
    rows = [(where, {(array, row) for array, text in loads for span in spans(text) for row in span}) for where, loads in steps]
    return [k for k, ((before, old), (where, new)) in enumerate(zip(rows, rows[1:]), 2) if before == where and old & new and old != new]


def missing_words(state):
    """What the sentence about a step of all warps must have and has not."""
    warps, who = state["warps"], lambda warps: f"warp{'s' if re.search('[-,]', warps) else ''} {warps}"
    wanted = [f"({who(entry[4])})" for entry in state["sync"] if warps and entry[4] != warps]
    wanted += ["The wait sees as arrived"] if state["came"] and not warps else []
    wanted += ["store " for _, action, *_ in state["touches"] if ACTIONS[action] == "shared store"]
    wanted += ["computed values" for array, action, *_ in state["touches"] if not array and ACTIONS[action] in ("use", "multiply")]
    count = sum(map(len, spans(warps))) if warps else 1
    wanted += [f"(all {count} warps together)"] if warps and count > 1 and any(not kind.startswith("wgmma") for kind in state["counts"]) else []
    wgmmas = {kind: times for kind, times in state["counts"].items() if kind.startswith("wgmma")}
    wanted += [f"{times // (count if state['alike'] else 4)} {kind}" for kind, times in wgmmas.items()]
    wanted += ["warpgroups in all"] if wgmmas and not state["alike"] else []
    return [words for words in wanted if words not in state["said"]] + re.findall(r"mbarrier \d|\d+ of \d+-\d+", state["said"])


IN_TURN = {"12_hopper_fwd": ("announce ", "copy K", "multiply K", "multiply V", "mma_async", "arrive at named", "wait_group", "shfl", "store L", "stmatrix", "wait for"),
           "12a_wgmma": ("announce ", "copy K", "any_sync", "wait for")}


def compare_order(browser, step):
    """Where the lines of a step have one order in the kernel's text, so have its sentence's parts."""
    sentences = browser.js("return launch.steps.map((step) => sentence(step))")
    for said in sentences:
        places = [said.find(words) for words in IN_TURN.get(step, ()) if words in said]
        if places != sorted(places):
            wrong(f"{step}: another order than the kernel's: {said}")


def compare_captions(browser, command, launch):
    """A matrix has as many rows and columns as the command says, whatever part of it the block touches; a canvas whole pixels per word."""
    seq, dim = (re.search(rf"--{name} (\d+)", command)[1] for name in ("seq", "dim"))
    for caption in browser.js("return [...document.querySelectorAll('figcaption')].map((each) => each.textContent)"):
        if match := re.match(r"shared memory, (\d+)", caption):
            same(f"{command}: bytes of shared memory", int(match[1]), launch["dynamic_shared_bytes"] + launch["static_shared_bytes"])
        if match := re.fullmatch(r"(d?[QKVO]|L): (.*)", caption):
            same(f"{command}: the caption of {match[1]}", match[2], f"{seq} x {1 if match[1] == 'L' else dim}")
    uneven = "return [...document.querySelectorAll('canvas')].filter(({ height: h, clientHeight: c }) => h > 8 && c % h && Math.abs(h / c - Math.round(h / c)) > .02).map(({ ariaLabel }) => ariaLabel)"
    same(f"{command}: figures with a part of a pixel per row", browser.js(uneven), [])


def compare_phases(browser, state):
    """The time line: each step is in one phase of each of its warps' rows, which does what the step does, at the step's place."""
    steps = browser.js("return launch.steps.map(({ warps, touches, sync, counts }) => [warps, sync.length, Object.keys(counts), touches.map(([array, action]) => [launch.arrays[array][0], action])])")
    drawn = browser.js("return [...document.querySelectorAll('#rows .track')].map((row) => [row.firstChild.textContent, [...row.querySelectorAll('.span:not(.now)')].map((each) => "
                       "[each.classList[1], each.title, parseFloat(each.style.left), parseFloat(each.style.width)])])")
    same(f"{state['step']}: rows of the time line", [name for name, _ in drawn], state["names"])
    cut = "return [...document.querySelectorAll('#rows i')].filter((i) => i.getBoundingClientRect().right > i.parentElement.getBoundingClientRect().right + 1).map((i) => i.textContent)"
    same(f"{state['step']}: labels that are cut off", browser.js(cut), [])
    longer = """return [...document.querySelectorAll("#rows i")].filter((i) => {
        const box = (each) => each.getBoundingClientRect(), its = box(i);
        const bars = [...i.closest("div").querySelectorAll(".span:not(.now, .phase)")].map(box);
        const isOn = bars.some((bar) => its.left > bar.left - 1 && its.right < bar.right + 1);
        const meets = bars.some((bar) => its.left < bar.right - 1 && its.right > bar.left + 1);
        return its.width && its.top < box(i.parentElement).bottom - 2 && meets && !isOn;
    }).map((i) => i.textContent)"""
    same(f"{state['step']}: labels that are longer than their bars", browser.js(longer), [])
    is_forward = not any(name == "dO" for *_, touches in steps for name, _ in touches)
    for k, (warps, synced, counts, touches) in enumerate(steps):
        covers = [(row, *phase[:2]) for row, (_, phases) in enumerate(drawn) for phase in phases if phase[2] - 1e-3 < 100 * k / len(steps) < phase[2] + phase[3] - 1e-3]
        rows = {row for row, name in enumerate(state["names"]) if not warps or {n for span in spans(name.split()[1]) for n in span} & {n for span in spans(warps) for n in span}}
        same(f"{state['step']}, step {k + 1}: rows in which it is", [row for row, *_ in covers], sorted(rows))
        arrays = lambda *actions: {name for name, action in touches if ACTIONS[action] in actions and name}
        does = [("compute", arrays("use", "multiply")), ("store", arrays("store", "add")), ("copy", arrays("copy", "bulk load"))]
        what, of = next(((what, of) for what, of in does if of), (None, set())) if warps else ("phase" if synced else "barrier", set())
        if warps and what == "compute" and of == {"Q"} and any(ACTIONS[action] == "shared store" for _, action in touches):
            what = "scale"
        if warps and not touches and is_forward and counts and all(re.search("shfl|any_sync|all_sync|ballot", kind) for kind in counts):
            what = "softmax"
        for _, kind, title in covers:
            is_copied = not warps or any(ACTIONS[action] in ("copy", "bulk load", "shared store") for _, action in touches)
            if kind == "copy" and not is_copied or what not in (None, kind) or not of <= set(re.findall(r"\w+", title)):
                wrong(f"{state['step']}, step {k + 1}: the time line says {title}, it is {what} of {sorted(of)}")


def check_walk(browser, programs, step):
    from selenium.webdriver.common.keys import Keys

    browser.open(f"explorers/tile-walk.html#step={step}")
    browser.until("the walk", f"window.state().step === '{step}'")
    masks = browser.js("return [...document.querySelectorAll('#mask option')].map((option) => option.value)")
    browser.choose("mask", masks[-1])
    check_walk_controls(browser, step, masks[-1], Keys)  # first, since it takes less time
    browser.choose("warp", "all")
    check_figures(browser, step, Keys)
    compare_order(browser, step)
    if step in ONE_SCREEN:
        check_screen(browser, step)
    for mask in masks:
        browser.choose("mask", mask)
        same("the mask", browser.js("return window.state().mask"), mask)
        launches = traced(programs, browser.element("command").text)
        same(f"{step}: launches", browser.js("return document.querySelectorAll('#launch option').length"), len(launches))
        if mask == masks[-1] and step in BLOCKS:
            same(f"{step}: which rows the block takes", browser.element("block").text, f"This block, (0,0,0), takes the last rows of Q, {BLOCKS[step]}.")
        if mask == "none" and step[:2] == "10" and browser.js("return launch.steps.filter((step) => phaseOf(step).join() === 'compute,K,Q').flatMap(({ touches }) => touches)"
                                                              ".filter(([array, action]) => launch.arrays[array][0] === 'K' && action === 4).length") < 2:
            wrong(f"{step}: without a mask it has one tile")
        for number, (launch, events) in enumerate(launches):
            browser.choose("launch", str(number))
            same("the launch", browser.js("return window.state().launch"), number)
            compare_scores(browser, f"{step}, {mask}")
            compare_walk(browser, launch, events, step in ("06_vectorized", "10_tensor_core_fwd"))
            compare_captions(browser, browser.element("command").text, launch)
    check_address(browser, step)
    browser.noise(step)


def check_address(browser, step):
    """What an address asks for and does not get is said, until the reader goes on."""
    same(f"{step}: what is wrong with the address", browser.element("wrong").text, "")
    browser.open(f"explorers/tile-walk.html#step={step}&at=9999&mask=x")
    browser.until("the walk of a wrong address", "window.state()")
    if not all(words in browser.element("wrong").text for words in ("at=9999", "mask=x")):
        wrong(f"{step}: of a wrong address it says {browser.element('wrong').text!r}")
    browser.element("back").click()
    same(f"{step}: when the reader goes on", browser.element("wrong").text, "")


BLOCKS = {"10_tensor_core_fwd": "128-255", "12_hopper_fwd": "192-383"}
ONE_SCREEN = ("05_fa2_fwd", "06_vectorized", "10_tensor_core_fwd", "12_hopper_fwd")


def check_screen(browser, step):
    """At each step the controls, the figures and a marked source line are within a window of 1280 x 800."""
    browser.width(1280, 800)
    seen = browser.js("""return launch.steps.map((_, k) => {
        go(k);
        const touch = launch.steps[k].sites.map((site) => launch.sites[site]).find(([, , , space]) => ["global", "shared", "bulk", "operand"].includes(space));
        const place = touch ? byId(touch[4]) || byId(`${touch[0]}:${touch[1]}`) : null;
        const box = (id) => byId(id).getBoundingClientRect(), mark = (place || document.querySelector("#source mark")).getBoundingClientRect();
        return [Math.max(...["source", "shared", "figures", "rows", "at"].map((id) => box(id).bottom)), mark.top >= box("source").top && mark.bottom <= box("source").bottom];
    });""")
    same(f"{step}: steps of which a part is below the window", [k for k, (bottom, _) in enumerate(seen) if bottom > 800], [])
    same(f"{step}: steps without the line of a touch in sight", [k for k, (_, is_seen) in enumerate(seen) if not is_seen], [])
    browser.width(720)  # of a chapter's frame
    labels = browser.js("return [...document.querySelectorAll('#rows i')].filter((i) => i.textContent && i.checkVisibility() && i.scrollWidth <= i.clientWidth + 1).length")
    if labels < 10:
        wrong(f"{step}: only {labels} labels are visible in a frame")
    browser.width(1280)


def compare_scores(browser, what):
    """S at each step: a score is multiplied by V behind its product, and at the end each row of Q that was loaded has met each key that was, up to a causal mask's tile."""
    early, missing, odd = browser.js("""
        const loaded = (name) => new Set(launch.steps.flatMap(({ touches }) => touches).filter(([array, action]) => launch.arrays[array][0] === name && [LOAD, COPY, BULK_LOAD].includes(action))
            .flatMap(([, , , lists]) => lists.flatMap(([rows]) => spans(rows).flatMap(([from, to]) => range(to - from + 1).map((k) => from + k)))));
        const drawn = (kinds, now) => new Set(scoresOf().filter(([, , kind, isNow]) => kinds.includes(kind) || now && isNow).flatMap(([rows, keys]) => spans(rows).flatMap(([top, bottom]) => spans(keys).flatMap(([left, right]) =>
            range(bottom - top + 1).flatMap((r) => range(right - left + 1).map((c) => 1000 * (top + r) + left + c))))));
        if (!isForward() || !loaded("Q").size) return [[], [], []];
        const early = launch.steps.map((_, k) => k).filter((k) => { at = k; const made = drawn(["product", "softmax"]); return [...drawn(["touched"])].some((pair) => !made.has(pair)); });
        const [rows, keys, made] = [loaded("Q"), loaded("K"), drawn(["touched"], true)], causal = byId("mask").value === "causal", missing = [];
        for (const r of rows) for (const c of keys) if (!(causal && c > r) && !made.has(1000 * r + c)) missing.push([r, c]);
        go(0);
        return [early, missing.slice(0, 3), [...made].filter((pair) => !rows.has(Math.floor(pair / 1000)) || !keys.has(pair % 1000)).slice(0, 3)];""")
    same(f"{what}: scores that are multiplied by V before they are there, scores that never are, scores of rows and keys that the block has not", (early, missing, odd), ([], [], []))


def played(browser, still=True):
    """Plays the whole story, 200 times as fast: where the figure has been, and where it should have been."""
    browser.js("story.move(story.captions.at(-1).at); window.been = []; const move = story.move; story.move = (to) => { been.push(to); move(to); }; byId('speed').append(new Option('', 200)); byId('speed').value = 200; byId('play').click()")
    browser.until("the end of the story", "story.timer === null")
    places = browser.js("byId('speed').value = 1; return story.captions.map(({ at }) => at)")
    return browser.js("return window.been"), places if still else list(range(places[0], places[-1] + 1))


def check_story(browser, name):
    """Play, pause, the caption before and the next, by buttons and by keys, the keys of all explorers; what is said beside the figure."""
    from selenium.webdriver.common.keys import Keys

    browser.motion("no-preference")
    browser.width(1280)
    count, body = browser.js("return story.captions.length"), browser.driver.find_element("tag name", "body")
    if not 6 <= count <= 10:
        wrong(f"{name}: a story of {count} captions")
    same(f"{name}: where it opens", browser.js("return [story.place() === story.captions[0].at, byId('play').textContent]"), [True, "Play"])
    browser.element("play").click()
    same(f"{name}: where Play begins", browser.js("const says = byId('play').textContent; play(false); return [captionNow(), says]"), [0, "Pause"])
    same(f"{name}: where the story has been", *played(browser, still=False))
    if name.startswith(("tile-walk", "pipeline")):  # between two captions the one before is pale
        browser.js("story.move(story.captions.at(-1).at - 1)")
        same(f"{name}: a caption whose place is passed", browser.js("return [byId('caption').className, story.captions.some(({ at }) => at === story.place())]"), ["passed", False])
    now = lambda: browser.js("return [captionNow(), story.place() === story.captions[captionNow()]?.at, story.timer !== null]")
    for press in (lambda key: browser.element({"n": "later", "b": "earlier", "p": "play"}[key]).click(), lambda key: (browser.js("document.activeElement.blur()"), body.send_keys(key))):
        browser.driver.find_element("css selector", "#captions :nth-child(3)").click()
        same(f"{name}: the third caption", now(), [2, True, False])
        for key, expected in (("n", 3), ("b", 2), ("b", 1)):
            press(key)
            same(f"{name}: the caption after {key}", now(), [expected, True, False])
        press("p")
        same(f"{name}: it plays", [now()[2], browser.element("play").text], [True, "Pause"])
        press("p")
        same(f"{name}: it pauses", [now()[2], browser.element("play").text], [False, "Play"])
    place, last = lambda: browser.js("return story.place()"), browser.js("return lastStep()")
    for key, expected in ((Keys.HOME, 0), (Keys.ARROW_RIGHT, 1), (Keys.ARROW_RIGHT, 2), (Keys.ARROW_LEFT, 1), (Keys.END, last), (Keys.ARROW_RIGHT, last), (Keys.HOME, 0)):
        browser.js("document.activeElement.blur()")
        body.send_keys(key)
        same(f"{name}: the place after a key", place(), expected)
    same(f"{name}: keys that Play's row has", browser.js("return byId('controls').querySelector('.keys').textContent"), "Space plays \u2190 \u2192 one step all keysHome End first, last b n caption before, next s settings w large Esc not large ")
    for key, expected in ((Keys.SPACE, True), (Keys.SPACE, False)):
        body.send_keys(key)
        same(f"{name}: it plays after Space", now()[2], expected)
    body.send_keys("s")
    browser.until(f"{name}: the settings by a key", "document.activeElement.closest('body > .bar') !== null")
    if browser.js("return document.activeElement.matches('select')"):
        browser.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        same(f"{name}: the place after s and an arrow", place(), 1)
    browser.js("document.activeElement.blur()")
    for k, (title, text) in enumerate(browser.js("return story.captions.map(({ at, title, text }) => { story.move(at); return [title, byId('caption').textContent]; })")):
        words = text.removeprefix(title)
        if not text.startswith(title) or not 5 <= len(re.sub(r"^ (step|steps|unit) [\d-]+", "", words).split()) <= 25 or re.search(r"undefined|NaN|null|#", words):
            wrong(f"{name}, caption {k + 1}: {text}")


def check_events(browser, step, mask):
    """Of each caption of a walk: the trace has its event at its place, and where it is a first one no step before has it."""
    steps = browser.js("""return launch.steps.map(({ warps, touches, counts, sync, came, gone, content }) => ({ warps, kinds: Object.keys(counts).join(" "), sync,
        touches: touches.map(([array, action, warps, rectangles]) => [launch.arrays[array][0], action, warps, runs(rectangles.flatMap(([rows]) => spans(rows).flatMap(([a, b]) => range(b - a + 1).map((k) => a + k)))), [...words(rectangles, launch.arrays[array][2])].length]),
        came: came.map(([array]) => launch.arrays[array][0]), gone: gone.map(([array]) => launch.arrays[array][0]), makes: content.some(([array]) => array === -1) }))""")
    captions, names = browser.js("return [story.captions, launch.mbarriers]"), None
    captions, names = captions
    forward = not any(touch[0] == "dO" for each in steps for touch in each["touches"])
    of = lambda k, *actions: {touch[0] for touch in steps[k]["touches"] if ACTIONS[touch[1]] in actions and touch[0]}
    rows = lambda k, array, warp=None: {row for name, action, warps, text, _ in steps[k]["touches"] if name == array and (warp is None or any(warp in span for span in spans(warps)))
                                        for span in spans(text) for row in span}
    loads, uses = ("load", "copy", "bulk load"), lambda k: of(k, "use", "multiply")
    made = lambda k: any(not name and ACTIONS[action] in ("use", "multiply") for name, action, *_ in steps[k]["touches"])
    is_barrier = lambda k: not steps[k]["warps"] and not steps[k]["sync"]
    later = lambda k: next((j for j in range(k + 1, len(steps)) if is_barrier(j)), len(steps))
    earlier = lambda k: next((j for j in range(k - 1, -1, -1) if is_barrier(j)), -1)
    ends = {tuple(each["sync"][0][1:4]): set(each["came"]) for each in steps if not each["warps"] and each["sync"]}
    waits = lambda k, space: [tuple(sync[1:4]) for sync in steps[k]["sync"] if sync[0] == "wait" and sync[1] == space and not sync[5]]
    votes, tile = lambda k: forward and re.search("shfl_xor|any_sync", steps[k]["kinds"]), lambda k: {"Q", "K"} <= uses(k)

    exchanges = lambda k: "shfl" in steps[k]["kinds"] or bool(is_softmax(k) and k + 1 < len(steps) and is_softmax(k + 1) and exchanges(k + 1))
    is_softmax = lambda k: votes(k) and not steps[k]["touches"]
    adds = lambda k, is_one: [touch for touch in steps[k]["touches"] if ACTIONS[touch[1]] == "add" and (touch[4] == 1) == is_one]

    def fresh(k, *actions):
        return of(k, *actions) - {name for j in range(k) for name in of(j, *actions)}

    def guards(k, text):
        reader, writer, name = re.match(r"Warp (\d+) waits here because warp (\d+) may .* of (\w+)\.", text).groups()
        return is_barrier(k) and any(name in of(i, "load", "copy") and name in of(j, "use") and rows(i, name, int(writer)) & rows(j, name, int(reader)) for i in range(earlier(k) + 1, k) for j in range(k, len(steps)))

    def under_way(k):
        copied = {name: j for j in range(k + 1) for name in of(j, "copy", "bulk load")}
        return {name for name, j in copied.items() if not any(name in steps[i]["came"] for i in range(j + 1, k + 1))} | ({"?"} if any(name in steps[k]["came"] for name in copied) else set())

    first = {  # at no step before
        "product": tile, "softmax": lambda k: votes(k), "overwrite": lambda k: steps[k]["gone"] and steps[k]["warps"], "add": lambda k: adds(k, False), "count": lambda k: adds(k, True), "made": lambda k: steps[k]["makes"],
        "full": lambda k: any(ends.get(each) for each in waits(k, "mbarrier")), "empty": lambda k: any(each in ends and not ends[each] for each in waits(k, "mbarrier")),
        "turn": lambda k: waits(k, "named"), "own": lambda k: waits(k, "copies"), "landed": lambda k: not steps[k]["warps"] and steps[k]["came"], "back": lambda k: not forward and "K" in uses(k) and made(k),
        "reuse": lambda k: is_barrier(k) and any(name in uses(j) for i in range(k, later(k)) for name in steps[i]["gone"] for j in range(earlier(k) + 1, k))}
    product = next((k for k in range(len(steps)) if tile(k)), 0)
    then = {"end": lambda k, text: k == max(j for j in range(len(steps)) if steps[j]["warps"]), "load": lambda k, text: fresh(k, *loads) and of(k, *loads) == titled, "store": lambda k, text: fresh(k, "store") and of(k, "store") == titled, "barrier": guards, "overlap": lambda k, text: uses(k) and under_way(k),
            "second": lambda k, text: k >= product and ("V" in uses(k) if forward else {"Q", "dO"} <= uses(k) and made(k)), "rise": lambda k, text: votes(k) and not of(k, "store") and any(tile(j) and not rows(j, "K") & rows(product, "K") for j in range(k + 1)) and exchanges(k) == ("nothing is rescaled" not in text),
            "masked": lambda k, text: mask == "causal" and tile(k) and max(rows(k, "K")) > min(rows(k, "Q")), "phase": lambda k, text: steps[k]["warps"]}
    for caption in captions:
        k, event, text = caption["at"], caption["event"], caption["text"]
        titled = set(re.split(", | and ", caption["title"].split(":")[0]))
        holds = k < len(steps) and (first[event](k) and not any(first[event](j) for j in range(k)) if event in first else then[event](k, text))
        if not caption["title"] or not 5 <= len(text.split()) <= 25 or re.search("undefined|NaN|null", text):
            wrong(f"{step}, {mask}, step {k + 1}: a caption of {len(text.split())} words: {text}")
        if odd := re.search(r"without memory|new values|\b(rows .*|\w+( and \w+)*) by \1\b|numbers by (?!.*shfl)", text):
            wrong(f"{step}, {mask}, step {k + 1}: a caption says nothing, or what is not so: {odd[0]}")
        if not holds:
            wrong(f"{step}, {mask}, step {k + 1}: a caption is bound to no event: {event}: {text}")
        for name in () if not holds else re.findall(r"rows? [\d ,and-]+ of (\w+)", text):
            if not any(name in steps[j]["gone"] or rows(j, name) for j in range(k, caption["end"])):
                wrong(f"{step}, {mask}, steps {k + 1}-{caption['end']}: a caption names {name}, which is not touched: {text}")
        for first_row, last_row, name in () if not holds else re.findall(r"rows (\d+)-(\d+) of (\w+)", text):
            told, gone = range(k, caption["end"]), event == "overwrite"
            if gone and not any(name in steps[j]["gone"] for j in told) or not gone and not {int(first_row), int(last_row)} <= set().union(*(rows(j, name) for j in told)):
                wrong(f"{step}, {mask}, steps {k + 1}-{caption['end']}: a caption names rows of {name} that these steps do not touch: {text}")
        if mbarrier := holds and re.search(r"mbarrier (\S+?)[, :]", text):
            if mbarrier[1] not in [names[sync[2]] for sync in steps[k]["sync"] if sync[1] == "mbarrier"]:
                wrong(f"{step}, {mask}, step {k + 1}: a caption names another mbarrier: {text}")
    if captions[-1]["event"] != "end":
        wrong(f"{step}, {mask}: the story ends with {captions[-1]['event']}")
    if len(captions) < min(6, sum(bool(each["warps"]) for each in steps)) or len({caption["at"] for caption in captions}) < len(captions):
        wrong(f"{step}, {mask}: {len(captions)} captions at {[caption['at'] for caption in captions]}")
    same(f"{step}, {mask}: captions with mathematics as plain text", [each for caption in captions for each in (caption["title"], caption["text"]) if "^" in each], [])


def check_stories(browser, _):
    """The story of every walk, by its trace."""
    browser.width(1280)
    browser.open("explorers/tile-walk.html")
    browser.until("the first walk", "window.state()")
    same("the names of the walks", browser.js("return [byId('rung').selectedOptions[0].text, document.querySelector('h1').textContent.slice(0, 28)]"), ["05 FlashAttention-2 forward", "05 FlashAttention-2 forward:"])
    names = browser.js("return STEPS.map(([name, title, chapter]) => [name, title, called([name, title, chapter])])")
    same("names of programs in the list of walks", [label for name, _, label in names if "_" in label or not label.startswith(name.split("_")[0])], [])
    same("headings that say something twice", [title for _, title, _ in names if len(parts := title.lower().split(": ")) > 2 and parts[1] in parts[0]], [])
    chapters = browser.js("return [...document.querySelectorAll('#rung optgroup')].map((group) => group.label.slice(0, 2))")
    same("the order of the list of walks", chapters, sorted(chapters))
    for step in (0, 40):
        parts = browser.js("go(arguments[0]); const box = byId('source'), line = box.querySelector('mark').getBoundingClientRect().height; return [box.clientHeight / line, box.scrollTop / line].map((lines) => Math.abs(lines - Math.round(lines)) < 0.06)", step)
        same(f"the source at step {step + 1}: parts of lines", parts, [True, True])
    behind = browser.js("const k = story.captions.findIndex(({ end }, k) => end < story.captions[k + 1]?.at); go(story.captions[k].end); return [k >= 0, document.querySelectorAll('#captions [aria-pressed=true]').length]")
    same("a step behind those of a caption: numbers of captions that are marked", behind, [True, 0])
    part = """const { at, end } = story.captions.find(({ at, end }) => end > at + 2);
        go(at + 1);
        const said = getComputedStyle(byId("said"), "::before").content;
        go(end);
        return [said, `"Step ${at + 2} of steps ${at + 1}-${end}. "`, byId("said").dataset.part];"""
    said, expected, later = browser.js(part)
    same("a step of a caption of several: whose rows the sentence has", [said, later], [expected, ""])
    browser.width(1920, 1080)
    browser.js("dispatchEvent(new Event('themed'))")
    browser.until("matrices that fill a window of 1920", "document.querySelector('#figures canvas').clientHeight > 300")
    browser.width(1280)
    steps = browser.js("return STEPS.map(([name]) => name)")
    for step in steps[PART[0] :: PART[1]] if planted is None else steps[::-1]:  # the last kernels have most kinds of captions
        browser.js("chooseRung(arguments[0])", step)
        browser.until(f"the walk of {step}", f"byId('rung').value === '{step}' && walk.page.length")
        for mask in browser.js("return Object.keys(walk.masks)"):
            for launch in range(browser.js("chooseMask(arguments[0]); return run.launches.length", mask)):
                browser.js("chooseLaunch(arguments[0])", launch)
                check_events(browser, step, mask)
    browser.noise("stories")


def check_play(browser, _):
    browser.open("explorers/tile-walk.html")
    browser.until("the walk", "story.captions.length > 0")
    browser.element("at").send_keys("p")
    same("playing by a key on the slider", browser.js("return story.timer !== null"), True)
    for page in ("tile-walk.html", "tile-walk.html#step=12_hopper_fwd", "pipeline.html", "pipeline.html#kernel=12b_producer", "pipeline.html#kernel=10_tensor_core_fwd", "example.html", "warp-map.html", "fragments.html", "ladder.html"):
        browser.open(f"explorers/{page}")
        browser.until(f"the story of {page}", "story.captions.length > 0")
        check_story(browser, page)
    browser.noise("playing")


def check_figures(browser, step, keys):
    """What is said of a word of a figure, by a pointer and by keys; the first and last rows; the legend; the lines of the source."""
    figure, (name, rows, columns, elements) = browser.driver.find_elements("css selector", "canvas")[1], browser.js("return launch.arrays[1]")
    browser.js("arguments[0].focus()", figure)
    for key, row, column in ((keys.ARROW_RIGHT, 0, 1), (keys.ARROW_DOWN, 1, 1), (keys.ARROW_DOWN, 2, 1), (keys.ARROW_LEFT, 2, 0), (keys.ARROW_LEFT, 2, 0)):
        figure.send_keys(key)
        expected = f"{name} row {row}, column" + (f"s {2 * column}-{2 * column + 1}" if elements > 1 else f" {column}") + f"; byte {4 * (row * columns + column)}: "
        same(f"{step}: the word of a figure", browser.element("picked").text[: len(expected)], expected)
    browser.js("const box = arguments[0].getBoundingClientRect(); arguments[0].dispatchEvent(new PointerEvent('pointermove', { clientX: box.right - 2, clientY: box.bottom - 2 }))", figure)
    same(f"{step}: the last row by pointer", int(re.match(r"\w+ row (\d+)", browser.element("picked").text)[1]) >= rows - 3, True)  # a pixel may be 2 rows
    same(f"{step}: rows beside a figure", browser.js("return [...arguments[0].parentElement.querySelectorAll('small')].map((side) => side.textContent)", figure), ["0", str(rows - 1)])
    legend = browser.js("""const words = [...byId("key").children].map((each) => each.textContent);
        const first = words.indexOf("written in this step");
        const kinds = (parts) => [...new Set([...parts].map((each) => each.classList[1]))].sort().join();
        return [kinds([...document.querySelectorAll("#key .swatch")].slice(0, first)),
            kinds(document.querySelectorAll("#rows .span:not(.now, [hidden])")),
            document.querySelectorAll(".told .key:not(#scored):has(.swatch)").length];""")
    same(f"{step}: what the legend begins with, before what is written", legend[0], legend[1])
    same(f"{step}: legends", legend[2], 1)
    same(f"{step}: the names of the lists", browser.js("return [...document.querySelectorAll('label')].map((label) => label.firstChild.data.trim())"), ["Program", "Mask", "Launch", "Show"])
    same(f"{step}: lists of one that can be operated", browser.js("return [...document.querySelectorAll('select')].filter((list) => !list.disabled && list.options.length === 1).length"), 0)
    browser.js("go(launch.steps.reduce((best, { sites }, k) => sites.length > launch.steps[best].sites.length ? k : best, 0))")
    unseen = browser.js("""return [...document.querySelectorAll("#where button")].filter((button) => {
        button.click();
        const [mark, box] = [byId(button.title.slice(5)), byId("source")].map((each) => each?.getBoundingClientRect());
        return !mark || mark.top < box.top || mark.bottom > box.bottom;
    }).map((button) => button.title)""")
    same(f"{step}: lines that their link does not show", unseen, [])


def check_walk_controls(browser, step, mask, keys):
    state = lambda: browser.js("return window.state()")
    at = lambda: state()["at"]
    last = state()["steps"] - 1
    for control, expected in (("first", 0), ("next", 1), ("next", 2), ("back", 1), ("last", last)):
        browser.element(control).click()
        same(f"{step}: after the button {control}", at(), expected)
    browser.element("first").click()
    browser.element("at").send_keys(keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_RIGHT)
    same(f"{step}: after three arrows on the slider", at(), min(3, last))
    browser.element("first").click()
    everybody = state()
    # A step in which warps do not all touch the same: one warp's part is less than all, and only this warp's.
    number = max(0, browser.js("return launch.steps.findIndex(({ touches }) => new Set(touches.map(([, , warps]) => warps)).size > 1)"))
    everybody = go(browser, number) and state()
    one = str(spans(everybody["touches"][-1][2])[0][0])
    browser.choose("warp", one)
    alone = state()
    if not all(any(int(one) in span for span in spans(touch[2])) for touch in alone["touches"]) or len(alone["touches"]) >= len(everybody["touches"]):
        wrong(f"{step}: the choice of warp {one} has no effect")
    if alone["said"].split(":")[0] != f"Warp {one}":
        wrong(f"{step}: the sentence does not name warp {one}: {alone['said']}")
    if idle := browser.js("return launch.steps.findIndex(({ warps }) => warps && !among(warps, arguments[0])) + 1", int(one)):
        go(browser, idle - 1)
        if not re.fullmatch(rf"Warp {one} takes no part in this step; (warps \d\S* do|warp \d+ does|another block of the cluster does)\.", state()["said"]):
            wrong(f"{step}: of a warp that takes no part it says {state()['said']}")
        go(browser, number)
    browser.choose("warp", "all")
    same(f"{step}: all warps again", state()["touches"], everybody["touches"])
    if browser.js("return document.querySelectorAll('#table tbody tr').length") < len(everybody["touches"]):
        wrong(f"{step}: the table has fewer rows than the figure has parts")
    go(browser, last)
    touches = state()["touches"]
    browser.choose("warp", "1")
    cells = state()["cells"]
    untouched = {array for array, _, _, text in touches for span in spans(text) if array and {cells[array][word] for word in span} & {"0", "1"}}
    same(f"{step}: what other warps touch and is drawn as untouched", untouched, set())
    address = browser.address()
    browser.driver.get("about:blank")
    browser.driver.get(address)
    browser.until("the state of the address", f"window.state().step === '{step}'")
    after = state()
    same(f"{step}: the state of its address", [after[name] for name in ("mask", "launch", "warp", "at")], [mask, everybody["launch"], "1", last])


# ---- the warp map ---------------------------------------------------------------------------------------------------------

def check_warp_map(browser, programs):
    from selenium.webdriver.common.keys import Keys

    state = lambda: browser.js("return window.state()")
    browser.open("explorers/warp-map.html")
    browser.until("the warp map", "window.state().wavefronts === 1")
    task = browser.driver.find_element("css selector", ".try em").text
    browser.choose("example", task)
    change = lambda control, value: browser.js("const c = document.getElementById(arguments[0]); c.value = arguments[1]; c.dispatchEvent(new Event('change'))", control, value)
    for control, *trials in (("stride", (15, 8), (17, 8), (16, 16)), ("padding", (1, 2), (4, 4), (0, 16)), ("swizzle", (2, 8), (4, 4), (1, 16)), ("stride", (15, 8)), ("padding", (4, 1))):
        for value, expected in trials:
            change(control, value)
            same(f"warp map: {task}, wavefronts after {control} {value}", state()["wavefronts"], expected)
    check_note(browser, "padding", 99, "a whole number from 0 to 32")
    same("warp map: a padding too large", state()["padding"], 32)
    browser.choose("example", "neighbouring words")
    patterns = json.loads(said_by(f"{programs}/../tests/request_patterns", "7", "10000"))
    same("patterns", len(patterns), 10000)
    counted = browser.js("return arguments[0].map(([addresses, bytes, access]) => window.count(addresses, bytes, access))", [p[:3] for p in patterns])
    odd = [(pattern, count) for pattern, count in zip(patterns, counted) if pattern[3:] != count]
    if odd:
        wrong(f"warp map: {len(odd)} of 10000 patterns differ from the meter; the first, with sectors and wavefronts: {odd[0][0]}, the map says {odd[0][1]}")
    # What a control does, against the address as the page's words define it.
    for control, value, expected in (("lanes", 1, [256 * k for k in range(32)]), ("padding", 1, [260 * k for k in range(32)]), ("columns", 32, [132 * k for k in range(32)]),
                                     ("padding", 0, [128 * k for k in range(32)]), ("start", 64, [64 + 128 * k for k in range(32)]),
                                     ("lanes", 32, [64 + 4 * k for k in range(32)]), ("stride", 3, [64 + 12 * k for k in range(32)])):
        change(control, value)
        same(f"warp map: addresses after {control} {value}", state()["addresses"], expected)
    for example, wavefronts, sectors in (("a column of a matrix", 32, 32), ("a column, rows padded by one word", 1, 32), ("16 bytes of each row", 32, 32),
                                         ("16 bytes of each row, padded by four words", 4, 32), ("16 bytes of each row, swizzled", 4, 32), ("one address", 1, 1)):
        browser.choose("example", example)
        same(f"warp map: {example}", [state()["wavefronts"], len(state()["sectors"])], [wavefronts, sectors])
        same(f"warp map: rows of the table for {example}", browser.js("return document.querySelectorAll('#banks tbody tr').length"), wavefronts)
        drawn = browser.js("return [document.querySelectorAll('#banks .read').length, [...document.querySelectorAll('#banks td:not(:first-child)')].filter((cell) => cell.textContent && !cell.matches('.mine')).length]")
        same(f"warp map: banks that are drawn as read for {example}", drawn[0], drawn[1])
    browser.choose("example", "every second word")
    same("warp map: the part of each sector that lanes need", browser.js("return [...byId('sectors').children].map((each) => each.style.getPropertyValue('--part'))"), ["0.5"] * 8)
    same("warp map: the lanes of the wavefront", browser.js("return [...document.querySelectorAll('#lanesMap .mine')].map((each) => +each.textContent)"), [*range(16)])
    browser.choose("example", "one address")
    if not browser.element("said").text.endswith("In shared memory 1 wavefront; 32 different addresses take at least 1."):
        wrong(f"warp map: of one address it says {browser.element('said').text}")
    units = browser.js("return [...byId('banks').tHead.rows[0].cells].slice(1).flatMap((cell) => Array(cell.colSpan).fill(+cell.textContent))")
    same("warp map: the 16-byte unit of each bank", units, [bank // 4 for bank in range(32)])
    browser.choose("example", "16 bytes of each row, swizzled")
    browser.driver.find_element("css selector", "#lanesMap [aria-label^='lane 5,']").click()
    same("warp map: the units in which a lane is served", {units[bank] for bank in browser.js("return [...document.querySelectorAll('#banks .mine')].map((cell) => cell.cellIndex - 1)")},
         {state()["addresses"][5] // 16 % 8})
    browser.choose("example", "16 bytes of each row, swizzled")
    browser.choose("swizzle", "1")
    same("warp map: without the swizzle", state()["wavefronts"], 32)
    browser.choose("bytes", "4")
    same("warp map: 4 bytes", state()["bytes"], 4)
    browser.choose("access", "store")
    same("warp map: a store", state()["access"], "store")
    browser.driver.find_element("css selector", "#lanesMap [aria-label^='lane 0,']").click()
    for key, lane in ((Keys.ARROW_RIGHT, 1), (Keys.ARROW_DOWN, 9), (Keys.ARROW_LEFT, 8), (Keys.ARROW_UP, 0)):
        browser.driver.switch_to.active_element.send_keys(key)
        same("warp map: the lane after a key", state()["lane"], lane)
    browser.driver.find_element("css selector", "#lanesMap [aria-label^='lane 5,']").click()
    if "Lane 5: bytes 640 to 643, sector 20, bank 0, wavefront 6" not in browser.element("lane").text:
        wrong(f"warp map: of lane 5 it says {browser.element('lane').text}")
    before, address = state(), browser.address()
    browser.driver.get("about:blank")
    browser.driver.get(address)
    same("warp map: the state of its address", state(), before)
    browser.noise("warp map")


# ---- the example ----------------------------------------------------------------------------------------------------------

def check_example(browser, programs):
    """The book's 4 x 4 example beside the corner that the programs print of it, then each control."""
    state = lambda: browser.js("return window.state()")
    change = lambda name, value: browser.js("const c = document.getElementById(arguments[0]); c[c.type === 'checkbox' ? 'checked' : 'value'] = arguments[1];"
                                            "for (const e of ['input', 'change']) c.dispatchEvent(new Event(e))", name, value)
    browser.open("explorers/example.html")
    browser.until("the example", "window.state().O.length === 4")
    for causal in ("", "--causal"):
        change("causal", bool(causal))
        for step, names in (("03_online_softmax", ("O",)), ("07_naive_bwd", ("dQ", "dK", "dV"))):
            said = said_by(f"{programs}/{step}", *f"--input example --no-time --print {causal}".split())
            for name in names:
                corner = re.search(rf"^\s*{name}\b[^\n]*\n((?:[^\n]*\n){{3}})", said, re.MULTILINE)
                expected = corner and [[float(x) for x in line.split()[:3]] for line in corner[1].strip().split("\n")]
                if not expected or any(abs(expected[i][j] - state()[name][i][j]) > 1e-4 for i in range(3) for j in range(3)):
                    wrong(f"the example, {step} {causal}: {name} is {state()[name]}, the program prints {said}")
    change("causal", False)
    same("the example: L of query 3", round(state()["L"][3][0], 9), round(math.log(15), 9))
    for keys, l in ((1, 1), (2, 1.5), (3, 1.75), (4, 1.875)):  # docs/math/online-softmax.md
        change("keys", keys)
        same(f"the example: l after {keys} keys", round(state()["online"]["rows"][-1]["l"], 9), l)
        same("the example: rows key by key", browser.js("return [...document.querySelectorAll('#online tbody tr')].map((row) => row.textContent.length > 1)"), [key < keys for key in range(4)])
    change("keys", 2)
    same("the example: the query and its last key", browser.js("return [...document.querySelectorAll('.turn')].map((cell) => cell.id)"), [f"{name}{row}{column}" for name, row in (("Q", 3), ("K", 1), ("V", 1)) for column in range(4)] + ["S31", "P31"])
    same("the example: a weight as a bar", browser.js("return ['P33', 'O33'].map((id) => +byId(id).style.getPropertyValue('--part'))"), [state()["P"][3][3], 0])
    change("keys", 4)
    change("forget", True)
    same("the example without the rescale", round(state()["online"]["rows"][-1]["l"], 9), 3.25)
    cells = browser.js("return [...document.querySelectorAll('#online tbody tr:last-child td')].map((cell) => cell.textContent)")
    same("the example without the rescale: beside what is right", cells[3:], ["1 (right: 0.5)", "1", "3.25 (right: 1.875)", "2, 4, 1, 5.5 (right: 0.75, 2.5, -0.5, 5.25)"])
    said = "The end: O = (0.6154, 1.2308, 0.3077, 1.6923), L = 3.2581. Right is O = (0.4, 1.3333, -0.2667, 2.8), L = 2.7081."
    same("the example without the rescale: the end", browser.element("said").text.partition(" omitted. ")[2], said)
    check_cut(browser, "the example")
    change("forget", False)
    change("row", "0")
    same("the example: query 0", [round(x, 6) for x in state()["online"]["o"]], [round(x, 6) for x in state()["O"][0]])
    change("scale", 0)
    same("the example: scale 0 weighs all alike", state()["P"][2], [0.25] * 4)
    check_note(browser, "V00", "", "a number: an empty field counts as 0")
    change("V00", 9)
    same("the example: an input of the reader's", state()["V"][0][0], 9)
    browser.choose("pass", "backward")
    same("the example: pictures of the backward pass", browser.js("return [...document.querySelectorAll('#outputs figure')].filter((f) => !f.hidden).map((f) => f.querySelector('strong').textContent)"),
         ["P", "dP", "D", "dS", "dQ", "dK", "dV"])
    same("the example: an element of the pass", state()["chosen"], ["dS", 3, 0])
    browser.element("dS21").click()
    same("the example: the element", state()["chosen"], ["dS", 2, 1])
    if not browser.element("element").text.startswith("dS[2][1] = P[2][1] (dP[2][1] - D[2]) = "):
        wrong(f"the example says of dS: {browser.element('element').text}")
    before, address = state(), browser.address()
    browser.driver.get("about:blank")
    browser.driver.get(address)
    same("the example: the state of its address", state(), before)
    check_note(browser, "K12", "", "a number: an empty field counts as 0")
    browser.element("reset").click()
    same("the example: notes after the reset", browser.js("return document.querySelectorAll('.note').length"), 0)
    same("the example: reset", [state()["V"][0][0], len(state()["online"]["rows"]), browser.js("return byId('scale').value")], [1, 0, "ln 2"])
    browser.noise("the example")


# ---- the fragments --------------------------------------------------------------------------------------------------------


def holder(what, row, column, order):
    """Lane, register and half of an element, by the drawings of common/device/tensor.cuh and ptx.cuh."""
    if what == "A":
        return [row % 8 * 4 + column % 8 // 2, column // 8 * 2 + row // 8, column % 2]
    if what == "B":
        return [column * 4 + row % 8 // 2, row // 8, row % 2]
    if what == "C":
        return [row % 8 * 4 + column // 2, row // 8 * 2 + column % 2, 0]
    matrix = row // 8 + column // 8 * 2 if order == "k" else row // 8 * 2 + column // 8
    r, c = (column % 8, row % 8) if what.endswith("trans") else (row % 8, column % 8)
    return [4 * r + c // 2, matrix, c % 2]


@functools.cache
def held(programs):
    """Who holds which element, as a program on the simulated device finds it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{programs}/simt-nvcc", "-std=c++20", "-I", ROOT / "common/device", ROOT / "tests/book/fragments.cu", "-o", f"{folder}/fragments"], check=True)
        return json.loads(subprocess.run(f"{folder}/fragments", check=True, capture_output=True, text=True).stdout)


def check_holders(browser):
    """Each element of each operand (a third of them in a part), moved to: its lane, register and half; what its lane's cell says; and the table behind it."""
    tables = browser.js("return FRAGMENTS")
    for what, order in [(name, order) for name in tables for order in "kn"[: 1 + (len(name) > 1)]]:
        browser.choose("what", what)
        browser.js("const c = document.getElementById('order'); c.value = arguments[0]; c.dispatchEvent(new Event('change'))", order)
        shown = browser.js("""return [...document.querySelectorAll('#elements button')].filter((_, k) => k % arguments[1] === arguments[0]).map((button) => {
            button.focus();
            const { row, column, lane, register, half } = window.state();
            return [row, column, lane, register, half, +button.textContent, document.querySelector('#lanes [aria-pressed=true]').textContent,
                    document.querySelectorAll('#elements .mine').length];
        });""", *PART)
        matrices = tables[what]["rows"] // 8 if len(what) > 1 else 0
        shape = {0: (16, 16 if what == "A" else 8), 1: (8, 8), 2: (16, 8) if order == "k" else (8, 16), 4: (16, 16)}[matrices]
        same(f"fragments, {what}: its elements", [at[:2] for at in shown], [[row, column] for row in range(shape[0]) for column in range(shape[1])][PART[0] :: PART[1]])
        for row, column, *rest in shown:
            lane, register, half = holder(what, row, column, order)
            same(f"fragments, {what}, row {row}, column {column}: lane, register, half, the cells of element and lane, elements of the lane", rest,
                 [lane, register, half, lane, str(lane), shape[0] * shape[1] // 32])


def check_places(browser, programs):
    """Places in shared memory beside the code of the simulated device, the text of the rungs, and what the rungs access."""
    matrices, tiles = json.loads(said_by(f"{programs}/../tests/layouts", "7", "10000"))
    same("matrices and tiles", [len(matrices), len(tiles)], [10000, 10000])
    places = browser.js("""return [arguments[0].map(([text, major, i, k]) => { descriptor = BigInt("0x" + text); set.major = major; return byteOf(i, k); }),
        arguments[1].map(([row, column, pitch, span]) => place(row, column, pitch, String(span)))];""", matrices, tiles)
    for what, inputs, found in (("wgmma", matrices, places[0]), ("TMA", tiles, places[1])):
        if odd := [(given, place) for given, place in zip(inputs, found) if given[-1] != place]:
            wrong(f"fragments, {what}: {len(odd)} of 10000 places differ from the simulated device; the first: {odd[0][0]}, the page says {odd[0][1]}")
    for rung in ("10_tensor_core_fwd/10d_swizzle", "11_tensor_core_bwd/11c_swizzle"):
        width, formula = re.search(r"int place\(int row, int col\) \{.*?return row \* (\w+) (\+ .*?);", (ROOT / f"steps/{rung}.cu").read_text(encoding="utf-8"), re.DOTALL).groups()
        inputs = [[row, col, D] for D in (64, 128) for row in range(64) for col in range(D)]
        found = browser.js("return arguments[0].map(([row, column, D]) => place(row, column, 2 * D, 'xor'))", inputs)
        expected = [2 * eval(f"row * {width} {formula}", {"__builtins__": {}}, {"row": row, "col": col, width: D}) for row, col, D in inputs]
        same(f"fragments: the places of {rung}", [at for at in zip(inputs, found, expected) if at[1] != at[2]][:1], [])
    for rung, what, order, swizzle, pitch, kind, first, pieces in (
            ("10b_mma", "A", "k", "16", 128, "load", 0, [(0, 0, 0, 0), (0, 0, 8, 0), (0, 0, 0, 8), (0, 0, 8, 8), (0, 16, 0, 0)]),
            ("10c_ldmatrix", "ldmatrix.x4", "k", "16", 128, "ldmatrix", 0, [(0, 16 * k, 0, 0) for k in range(4)]),
            ("10d_swizzle", "ldmatrix.x4", "k", "xor", 128, "ldmatrix", 0, [(0, 16 * k, 0, 0) for k in range(4)]),
            ("10d_swizzle", "ldmatrix.x4", "n", "xor", 128, "ldmatrix", 8192, [(16 * n, 0, 0, 0) for n in range(4)]),
            ("10d_swizzle", "ldmatrix.x4.trans", "k", "xor", 128, "ldmatrix", 16384, [(0, 16 * n, 0, 0) for n in range(4)]),
            ("11c_swizzle", "C", "k", "xor", 256, "store", 65536, [(0, 8 * n, 0, 0) for n in range(4)])):
        command = f"{rung} --batch 1 --heads 1 --seq 64 --dim 64 --no-check --no-time --trace FILE --trace-blocks 0"
        launch, events = max(traced(programs, command), key=lambda found: len(found[1]))
        bytes_each = 16 if kind == "ldmatrix" else 4
        accesses = [rest[1] for _, number, array, _, warp, _, rest in events if warp == 0 and array == "shared" and first <= rest[1][0] < first + 8192 and
                    (launch["sites"][number]["kind"], launch["sites"][number]["bytes"]) == (kind, bytes_each)]
        for access, (top, left, row, column) in zip(accesses, pieces):
            found = browser.js("show({ ...set, ...arguments[0] }); return window.state().addresses", {"what": what, "order": order, "swizzle": swizzle,
                               "pitch": pitch, "top": top, "left": left, "row": row, "column": column})
            same(f"fragments: what {rung} accesses of the piece at row {top}, column {left}", [at + first for at in found], access)
        if len(accesses) < len(pieces):
            wrong(f"fragments: {rung} has {len(accesses)} accesses only")


UNLINKED = """
const pressed = (id) => document.querySelector(`#${id} [aria-pressed=true]`), found = [];
const fifth = (id) => [...document.querySelectorAll(`#${id} button`)].filter((_, k) => k % 5 === 0); // of all columns
for (const id of ["elements", "lanes", "bank"]) for (const button of fifth(id)) {
    button.focus();
    const { row, column, lane, byte } = window.state(), bank = (byte >> 2) % 32;
    if (pressed(id) !== button || +pressed("lanes").textContent !== lane || +pressed("bank").textContent !== bank ||
        !pressed("elements").ariaLabel.startsWith(`row ${row}, column ${column}:`)) found.push(button.ariaLabel);
}
return found;"""


def check_links(browser):
    """Does a move to an element, a lane or a bank mark the other two, are all captions above the
    fold, and does the list keep the accumulator apart from the operands?"""
    browser.width(1280, 800)
    for state in ("A", "B", "C&swizzle=xor&pitch=256", "ldmatrix.x4&swizzle=xor", "ldmatrix.x2.trans"):
        chosen = dict(part.split("=") for part in f"what={state}".split("&"))
        browser.js("show({ ...DEFAULTS, ...arguments[0] }); scrollTo(0, 0)", chosen)
        low = browser.js("return ['caption', 'said', 'elementsSaid', 'memorySaid', 'bank']"
                         ".filter((id) => document.getElementById(id).getBoundingClientRect().bottom > innerHeight)")
        same(f"fragments, {state}: captions below the fold", low, [])
        same(f"fragments, {state}: parts that do not mark the others", browser.js(UNLINKED), [])
    groups = browser.js("return [...document.querySelectorAll('#what optgroup')]"
                        ".map((group) => [group.label, [...group.children].map(({ value }) => value)])")
    expected = [["Operands of the product", ["A", "B"]], ["Accumulator of the product", ["C"]]]
    same("fragments: operands apart from the accumulator", groups[:2], expected)
    said = [browser.choose("what", what) or browser.element("elementsSaid").text.split(":")[0] for what in "ABC"]
    same("fragments: what each is called", said, ["The operand A", "The operand B", "The accumulator C"])
    browser.width(1280)
    browser.address()  # it is written before the next page is opened


def check_fragments(browser, programs):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    state = lambda *names: [browser.js("return window.state()")[name] for name in names]
    change = lambda name, value: browser.js("const c = document.getElementById(arguments[0]); c.value = arguments[1]; c.dispatchEvent(new Event('change'))", name, value)
    said = lambda name, text: text in browser.element(name).text or wrong(f"fragments: {name} says {browser.element(name).text}, not {text}")
    button = lambda name, text: browser.driver.find_element("xpath", f"//*[@id='{name}']//button[starts-with(@aria-label, '{text}')]")
    browser.open("explorers/fragments.html")
    same("fragments: the tables", browser.js("return FRAGMENTS"), held(programs))
    browser.until("the fragments", "window.state().lane === 0")
    check_links(browser)
    browser.open("explorers/fragments.html")
    check_holders(browser)
    check_places(browser, programs)
    # What each control of a tile does: byte of element (3, 10) of the piece, wavefronts.
    browser.open("explorers/fragments.html#what=ldmatrix.x4&row=3&column=10")
    for control, value, expected in (("swizzle", "xor", [3 * 128 + (20 ^ 48), 4]), ("swizzle", "128", [3 * 128 + (20 ^ 48), 4]), ("swizzle", "64", [3 * 128 + (20 ^ 48), 8]),
                                     ("swizzle", "32", [3 * 128 + (20 ^ 16), 16]), ("swizzle", "16", [3 * 128 + 20, 32]), ("pitch", 144, [3 * 144 + 20, 4]),
                                     ("pitch", 256, [3 * 256 + 20, 32]), ("pitch", 128, [3 * 128 + 20, 32]), ("top", 5, [8 * 128 + 20, 32]), ("left", 16, [8 * 128 + 52, 32])):
        change(control, value)
        same(f"fragments: byte and wavefronts after {control} {value}", state("byte", "wavefronts"), expected)
        said("cost", f": {expected[1]} wavefronts. Without bank conflicts: 4.")
        rows = browser.js("return [...document.querySelectorAll('#table tbody tr')].map((row) => [+row.cells[1].textContent, +row.cells[3].textContent])")
        if (caption := browser.element("caption").text).startswith("ldmatrix with"):
            same(f"fragments: what the caption says after {control} {value}", [f": {expected[1]} wavefronts, " in caption, "no bank conflict" in caption], [True, expected[1] == 4])
        same("fragments: bytes in the table", [row[0] for row in rows], state("addresses")[0])
        same("fragments: wavefronts in the table", max(row[1] for row in rows), expected[1])
        heads = browser.js("return [...document.querySelectorAll('#memory > i')].slice(1, 9).map((head) => head.textContent)")
        same("fragments: the columns of shared memory", heads, [f"unit {k}\n{4 * k}-{4 * k + 3}" for k in range(8)])
        units = browser.js("return [...document.querySelectorAll('#memory button')].map((b) => b.ariaLabel.split(',')[0])")
        unit = "return [...document.querySelectorAll('#memory button')].map((b) => [+b.ariaLabel.match(/lanes (\\d+)/)[1], +getComputedStyle(b).getPropertyValue('--unit')])"
        left = int(browser.element("left").get_attribute("value"))
        same("fragments: the colours of the units", sorted(browser.js(unit)), [[lane, left // 8 + lane // 16] for lane in range(32)])
        same("fragments: units of shared memory", sorted(units), sorted(f"byte {at}: lanes {lane}" for lane, at in enumerate(state("addresses")[0])))
    same("fragments: quadrants of an A, lane 8", state("addresses")[0][8], 13 * 128 + 32)
    change("order", "n")
    same("fragments: quadrants of K, lane 8", state("addresses")[0][8], 5 * 128 + 48)
    change("swizzle", "64")
    said("cost", "The TMA refuses rows wider than 64 bytes")
    change("swizzle", "xor")
    change("pitch", 144)
    said("cost", "needs rows of 128 bytes")
    said("caption", "does not fit these rows")
    # The keys and the pointer.
    browser.open("explorers/fragments.html#what=A&row=3&column=2")
    said("said", "Row 3, column 2 of A: lane 13 holds it in A0, the lower half. In memory: byte 388, in the 16-byte unit 24, bank 1.")
    said("said", "Lane 13 holds A0: (3, 2) (3, 3); A1: (11, 2) (11, 3); A2: (3, 10) (3, 11); A3: (11, 10) (11, 11).")
    around = Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_UP
    for name, start, keys, moves in (("elements", "row 3, column 2:", around, ([3, 3, 13], [4, 3, 17], [4, 2, 17], [3, 2, 13])),
                                     ("lanes", "lane 13", around, ([3, 4, 14], [5, 4, 22], [5, 2, 21], [3, 2, 13])),
                                     ("memory", "byte 384", around[1::2], ([4, 0, 16], [3, 0, 12]))):
        button(name, start).click()
        for key, expected in zip(keys, moves):
            browser.driver.switch_to.active_element.send_keys(key)
            same(f"fragments: {name} after a key", state("row", "column", "lane"), expected)
    ActionChains(browser.driver).move_to_element(button("lanes", "lane 30")).perform()
    same("fragments: the pointer while the choice is pinned", [state("row", "column", "lane"), len(browser.driver.find_elements("css selector", ".pinned"))], [[3, 0, 12], 1])
    button("lanes", "lane 12").send_keys(Keys.ENTER)
    for name, text, expected in (("elements", "row 9, column 12:", [9, 12, 6]), ("lanes", "lane 30", [15, 12, 30]), ("memory", "byte 1168", [9, 8, 4])):
        ActionChains(browser.driver).move_to_element(button(name, text)).perform()
        same(f"fragments: the pointer over {text}", state("row", "column", "lane"), expected)
    check_descriptor(browser, state, change, said, button, Keys)
    for what in ("A", "C&swizzle=xor&pitch=16", "ldmatrix.x4&pitch=512", "wgmma", "wgmma&major=MN&count=256&d=ffffffffffffffff"):
        browser.open(f"explorers/fragments.html#what={what}")
        browser.js("document.querySelector('details').open = true")
        check_look(browser, f"fragments, {what}")
        check_cut(browser, f"fragments, {what}")
        for width in (360, 1280):
            browser.width(width)
            cut = browser.js("""const right = (cell) => { const range = document.createRange(); range.selectNodeContents(cell); return range.getBoundingClientRect().right; };
                return [...document.querySelectorAll("#bits td")].filter((cell) => right(cell) > Math.min(innerWidth, cell.getBoundingClientRect().right) - 3).map((cell) => cell.textContent)""")
            same(f"fragments, {what}, {width} pixels: fields that touch the next column or the edge", cut, [])
        if what[0] == "w" and not browser.js("return byId('memory').getBoundingClientRect().top < byId('cores').getBoundingClientRect().bottom"):
            wrong(f"fragments, {what}: shared memory is not beside the core matrices")
    for path in ("what=B&row=9&column=3&pitch=64&swizzle=64&top=2&left=8", "what=wgmma&major=MN&count=64&d=4000004004000010&row=33&column=9"):
        browser.open(f"explorers/fragments.html#{path}")
        before, address = browser.js("return window.state()"), browser.address()
        same("fragments: what its address chooses", [str(before[part.split("=")[0]]) for part in path.split("&")], [part.split("=")[1] for part in path.split("&")])
        browser.driver.get("about:blank")
        browser.driver.get(address)
        same("fragments: the state of its address", browser.js("return window.state()"), before)
    browser.js("location.hash = 'what=ldmatrix.x2&order=n&row=4&column=11'")
    browser.until("the address that is edited", "window.state().what === 'ldmatrix.x2' && window.state().lane === 17")
    browser.open("explorers/fragments.html#what=x&order=x&pitch=x&swizzle=x&top=-1&left=x&major=x&count=x&d=x&row=x&column=999")
    same("fragments: an address of nonsense", state("what", "order", "pitch", "top", "count", "row", "column"), ["A", "k", 16, 0, 8, 0, 15])
    browser.noise("fragments")


def check_descriptor(browser, state, change, said, button, keys):
    browser.open("explorers/fragments.html")
    browser.choose("what", "wgmma")
    same("fragments: K of chapter 12", [browser.element("example").get_attribute("value"), *state("d", "byte", "core", "groups")],
         ["K of 12a to 12d, all 128 keys", "4000004000000000", 0, 0, 8])
    for control, value, text in (("start", 32, "01 0000000000 000 000 00000001000000 00 00000000000000 00 00000000000010"),
                                 ("leading", 16384, "01 0000000000 000 000 00000001000000 00 00010000000000 00 00000000000010"),
                                 ("stride", 512, "01 0000000000 000 000 00000000100000 00 00010000000000 00 00000000000010"),
                                 ("base", 5, "01 0000000000 101 000 00000000100000 00 00010000000000 00 00000000000010"),
                                 ("mode", "2", "10 0000000000 101 000 00000000100000 00 00010000000000 00 00000000000010"),
                                 ("descriptor", "0x4000004004000010", "01 0000000000 000 000 00000001000000 00 00010000000000 00 00000000010000")):
        change(control, value)
        same(f"fragments: the bits after {control} {value}", state("bits")[0], text)
        same("fragments: the bits in hexadecimal", browser.element("descriptor").get_attribute("value"), hex(int(text.replace(" ", ""), 2)))
        fields = browser.js("return [...document.querySelectorAll('#bits tbody tr')].map((row) => [row.cells[2].textContent, row.cells[3].textContent])")
        same("fragments: the table of fields", fields, [[digits, str(int(digits, 2))] for digits in text.split()])
    fields = [browser.element(name).get_attribute("value") for name in ("start", "leading", "stride", "base", "mode")]
    same("fragments: the fields of these bits", fields, ["256", "16384", "1024", "0", "1"])
    change("major", "MN")  # V, the keys from 2 on: 16 keys of 128 columns in two panels
    said("cost", "LBO: from 64 rows of A, or columns of B, to the next 64. SBO: from 8 k to the next 8 k.")
    for number, k, byte in ((0, 0, 256 + (0 ^ 32)), (16, 0, 16384 + 256 + 32), (17, 8, 16384 + 256 + 1024 + 32), (2, 0, 256 + (16 ^ 32))):
        button("cores", f"core matrix {number}:").click()
        same(f"fragments: core matrix {number} of V", state("core", "column", "byte"), [number, k, byte])
    for key, expected in ((keys.ARROW_RIGHT, [3, 8, 8]), (keys.ARROW_DOWN, [5, 16, 8]), (keys.ARROW_LEFT, [4, 16, 0]), (keys.ARROW_UP, [2, 8, 0])):
        browser.driver.switch_to.active_element.send_keys(key)
        same("fragments: core matrices after a key", state("core", "row", "column"), expected)
    button("elements", "row 10, k 3:").click()
    same("fragments: an element of a core matrix", state("row", "column", "byte"), [10, 3, 3 * 128 + 256 + ((16 ^ 80) + 4)])
    change("count", 8)
    same("fragments: 8 columns have two core matrices", [browser.js("return document.querySelectorAll('#cores button').length"), len(state("units")[0])], [2, 16])
    check_note(browser, "stride", 8, "a whole number from 0 to 262128, a multiple of 16")
    check_note(browser, "stride", 0, "")
    said("cost", "The offsets overlap: of 16 units 8 differ.")
    change("descriptor", "0x5000004000000000")
    said("cost", "Bits outside of the fields must be 0.")
    check_note(browser, "descriptor", "nonsense", "1 to 16 hexadecimal digits, as 0x4000004000000000")
    same("fragments: a descriptor of nonsense changes nothing", state("d"), ["5000004000000000"])
    change("start", 262128)
    said("cost", "past the 227 KiB")
    for example, expected in (("V of 12a to 12d, 128 columns", ["MN", 128, "4000004004000000"]), ("V of 12e, 176 keys", ["MN", 128, "4000004005800000"]), ("no swizzle, MN-major", ["MN", 64, "0000001000080000"]),
                              ("64-byte swizzle, K-major", ["K", 64, "8000002000000000"])):
        browser.choose("example", example)
        same(f"fragments: {example}", state("major", "count", "d"), expected)
        same(f"fragments: rows of the table for {example}", browser.js("return document.querySelectorAll('#table tbody tr').length"), expected[1] // 4)


# ---- the ladder -----------------------------------------------------------------------------------------------------------

def predicted(plot, step, dtype, pass_, B, H, N, d, causal, card):
    """ms for the arithmetic and for the bytes of a pass, by docs/math/costs.md, eq. 22, 23, 29 and 54, and the ceilings of the rooflines."""
    if dtype == "fp32" and step in ("10x_tf32", "pytorch_efficient"):
        return None
    flops = (4 if pass_ == "fwd" else 10) * B * H * d * (N * (N + 1) // 2 if causal else N * N)
    numbers, size = (4 if pass_ == "fwd" else 8) * N * d, {"fp32": 4, "fp8": 1}.get(dtype, 2)
    more = N * d if dtype == "fp8" else 0  # O has 16 bits there
    return [flops / plot.PEAKS[8 * size][1] * 1e-9, B * H * (numbers * size + more + 4 * N) / plot.CARDS[card] * 1e-9]


LIBRARIES = {"fa4": "FlashAttention-4", "pytorch_cudnn": "cuDNN", "pytorch_flash": "FlashAttention-2"}


def check_ladder(browser, _):
    """Every choice of every list, what it shows beside the records."""
    sys.path.insert(0, str(ROOT / "plots"))
    import plot

    records = {source: [json.loads(line) for path in sorted((ROOT / "plots/data" / source).glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
               for source in ("latency", "rungs", "peers")}
    state = lambda: browser.js("return window.state()")
    browser.open("explorers/ladder.html")
    same("the ladder: lists of records", browser.js("return [...document.getElementById('source').options].map((option) => option.value).sort()"), sorted(records))
    shown = sum((browser.js("""
        const lists = ["source", "card", "pass", "size", "metric"], found = [];
        byId("source").value = arguments[0];
        byId("source").dispatchEvent(new Event("change"));
        const each = (k) => {
            const list = document.getElementById(lists[k]);
            if (!list) return found.push(window.state());
            for (const value of [...list.options].map((option) => option.value)) {
                list.value = value;
                list.dispatchEvent(new Event("change"));
                each(k + 1);
            }
        };
        each(1);
        return found;""", source) for source in (sorted(records) if planted is None else ["latency"])), [])
    chapters = browser.js("return TITLES")
    same("the ladder: passes, without both in turn, whose forward pass is no chapter's", {now["pass"] for now in shown}, {"fwd", "bwd", "det"})
    for now in shown:
        source, card, pass_, size, metric = (now[name] for name in ("source", "card", "pass", "size", "metric"))
        B, H, N, d = (int(re.search(rf"\b{letter} ?(\d+)", size)[1]) for letter in "BHNd")
        keys = int(found[1]) if (found := re.search(r" x (\d+)", size)) else N
        here = [r for r in records[source] if r["device"].startswith(card) and (r["batch"], r["heads"], r["seq"], r["seq_kv"], r["dim"], r["causal"]) ==
                (B, H, N, keys, d, "causal" in size) and ("det" if r.get("deterministic") else r["pass"]) == pass_ and r.get("ms_median")]
        what, last = f"the ladder, {source}, {card}, {pass_}, {size}, {metric}", {(r["step"], r["dtype"]): r for r in here if r.get("tflops")}
        rounded = lambda value: value if value is None else float(f"{value:.5g}")
        bounds = {key: predicted(plot, *key, pass_, B, H, N, d, "causal" in size, r["device"]) for key, r in last.items()}
        if source != "peers":  # by themselves, beside the fastest libraries
            last |= {(r["step"], r["dtype"]): r for r in records["peers"] if r["step"] in ("pytorch_cudnn", "pytorch_flash", "fa4") and r["device"].startswith(card) and r["pass"] == pass_ and
                     (r["batch"], r["heads"], r["seq"], r["seq_kv"], r["dim"], r["causal"]) == (B, H, N, keys, d, "causal" in size) and r.get("tflops")}
            bounds |= {key: predicted(plot, *key, pass_, B, H, N, d, "causal" in size, r["device"]) for key, r in last.items()}
        same(f"{what}: bounds", {(step, dtype): rounded(value) for step, dtype, _, value in now["rows"]},
             {key: rounded(value and max(value)) for key, value in bounds.items()})
        theirs = lambda dtype: last.get((f"pytorch_{metric}", dtype), {}).get("ms_median")
        expected = {}
        for key, r in last.items():
            share = bounds[key] and 100 * max(bounds[key]) / r["ms_median"]
            expected[key] = {"ms": r["ms_median"], "tflops": r["tflops"], "bound": share}.get(metric) if metric in ("ms", "tflops", "bound") else \
                100 * r[f"ratio_to_{metric}"] if f"ratio_to_{metric}" in r else theirs(key[1]) and 100 * theirs(key[1]) / r["ms_median"]
            if share and share > 100:
                wrong(f"{what}: {key[0]} is faster than its bound")
        same(what, {(step, dtype): rounded(value) for step, dtype, value, _ in now["rows"]}, {key: rounded(value) for key, value in expected.items()})
        for (step, dtype, _, bound), columns in zip(now["rows"], now["cells"]):
            cells = dict(columns)
            ms, least, by = cells.get("ms", cells.get("milliseconds")), cells["bound, ms"], cells["bound by"]
            if len(columns) != 8 - (metric in ("ms", "bound")):
                wrong(f"{what}: columns {[head for head, _ in columns]}")
            two = bounds[step, dtype]
            if by != ("-" if not two else "bytes" if two[1] > two[0] else "arithmetic") or bound and (abs(float(least) / bound - 1) > 0.006 or
                                                                                                abs(float(ms) / last[step, dtype]["ms_median"] - 1) > 0.006):
                wrong(f"{what}: the table says of {step} {ms} ms, {least} ms, {by}, and the bounds are {two}")
        limits = [max(two) if metric == "ms" else last[key]["tflops"] * last[key]["ms_median"] / max(two) for key in map(tuple, (row[:2] for row in now["rows"])) if (two := bounds[key]) and metric in ("ms", "tflops")]
        values = [value for value in [*expected.values(), *limits] if value]
        most, least = 100 if metric == "bound" else max(values), 10 ** math.floor(math.log10(min(values)) - 1e-9)
        if metric == "bound":
            (best, dtype), highest = max(expected.items(), key=lambda each: each[1] or 0)
            found = re.search(r"The highest: (.+), ([\d.]+) % of its (\w+) bound\.$", now["said"])
            if highest and (not found or (found[1], found[3]) != (LIBRARIES.get(best, chapters.get(best, best)), dtype) or abs(float(found[2]) - highest) > 0.06):
                wrong(f"{what}: of the highest it says {now['said']}")
        places = [[row[2] if metric == "bound" else 100 * math.log(row[2] / least) / math.log(most / least), row[0] in LIBRARIES or row[0].startswith("pytorch_")] for row in now["rows"] if row[2]]
        if len(places) != len(now["dots"]) or any(abs(at - to) > 0.05 or is_library != peer for (at, is_library), (to, peer) in zip(places, now["dots"])):
            wrong(f"{what}: dots are not where the values or their logarithms are, or have another's colour")
        if len(limits) != len(now["limits"]) or any(abs(100 * math.log(limit / least) / math.log(most / least) - to) > 0.05 for limit, to in zip(limits, now["limits"])):
            wrong(f"{what}: bars are not where the bounds are")
    browser.open("explorers/ladder.html")
    if (room := browser.js("return document.querySelector('td .axis').clientWidth")) < 256:
        wrong(f"the ladder: the axis has {room} pixels instead of 16 rem")
    theirs = lambda: sorted({row[0] for row in state()["rows"] if row[0] in LIBRARIES})
    ticks = [float(text) for text in browser.js("return [...document.querySelectorAll('.tick')].map((each) => each.textContent)")]
    same("the ladder: as it opens", [theirs(), ticks], [["fa4", "pytorch_cudnn", "pytorch_flash"], [0.1, 1, 10, 100, 1000]])
    named = browser.js("return [...document.querySelectorAll('#table tbody tr')].map((row) => row.cells[0].textContent)")
    same("the ladder: names of libraries", sorted(set(named) & set(LIBRARIES.values())), sorted(LIBRARIES.values()))
    same("the ladder: names of chapters", ["05 FlashAttention-2 forward" in named, [name for name in named if "_" in name]], [True, []])
    marked = browser.js("toCaption(story.captions.length - 1); return [...document.querySelectorAll('#table tr.mine')].map((row) => row.cells[0].textContent)")
    same("the ladder: rows of the caption of the libraries", [sorted(marked), all(name in browser.element("caption").text for name in marked)], [sorted(LIBRARIES.values()), True])
    browser.choose("metric", "bound")
    same("the ladder: ticks of a percentage", browser.js("return [...document.querySelectorAll('.tick')].map((each) => each.textContent)"), ["0", "25", "50", "75", "100"])
    same("the ladder: the caption in the unit that is shown", browser.element("caption").text.split("TFLOP")[1:], [])
    browser.choose("metric", "tflops")
    browser.width(390)
    ends = browser.js("return [...document.querySelectorAll('.tick')].filter((each) => each.checkVisibility({ visibilityProperty: true })).map((each) => each.getBoundingClientRect()).map(({ left, right }) => [left, right])")
    same("the ladder: ticks on a phone that overlap", [k for k in range(1, len(ends)) if ends[k][0] < ends[k - 1][1]], [])
    browser.width(1280)
    browser.choose("card", "NVIDIA H100")
    browser.choose("pass", "bwd")
    same("the ladder: where no library was recorded", browser.js("return [byId('theirs').disabled, byId('none').checkVisibility()]"), [True, True])
    browser.choose("card", "NVIDIA H200")
    browser.choose("pass", "fwd")
    same("the ladder: where libraries were", browser.js("return [byId('theirs').disabled, byId('none').checkVisibility()]"), [False, False])
    browser.element("theirs").click()
    same("the ladder: without cuDNN and FlashAttention", theirs(), [])
    browser.choose("source", "peers")
    same("the ladder: records chosen by hand", state()["source"], "peers")
    if len(shown) < 60 and planted is None:
        wrong(f"the ladder shows {len(shown)} selections only")
    before, address = state(), browser.address()
    browser.driver.get("about:blank")
    browser.driver.get(address)
    same("the ladder: the state of its address", state(), before)
    browser.noise("the ladder")


# ---- the pipeline ----------------------------------------------------------------------------------------------------------

def turns_of(programs, step):
    """The tiles of K and V that a block reads between two barriers, turn by turn; in how many places they lie; whether no barrier is between
    the copy of Q and the first turn but the turn's own."""
    (launch, events), = traced(programs, f"{step} --batch 1 --heads 1 --seq 1024 --dim 64 --no-check --no-time --trace-blocks 0 --trace FILE")
    tile_at, places, counts, last, reads = {}, {}, defaultdict(int), {}, defaultdict(set)
    for epoch, number, array, action, _, words, rest in events:
        if action == "copy" and array in "KV":
            if last.get(array) != epoch:
                last[array], counts[array] = epoch, counts[array] + 1
            tile = array, counts[array] - 1
            for place in filter(lambda to: to is not None, rest[2]):
                places[tile] = min(place, places.get(tile, place))
                tile_at.update(dict.fromkeys(range(place // WORD, (place + launch["sites"][number]["bytes"]) // WORD), tile))
        elif action == "shared load":
            reads[epoch] |= {tile_at[place] for place in words if place in tile_at}
    turns = [sorted(map(list, reads[epoch])) for epoch in sorted(reads) if reads[epoch]]
    return turns, len({places[tuple(turn[0])] for turn in turns}), min(epoch for epoch in reads if reads[epoch]) - min(last for last, _, array, action, *_ in events if (action, array) == ("copy", "Q")) == 1


def overlaps(items):
    """Where a read meets a write: of [name, stage, issued, arrives, read from, read to]."""
    found = []
    for k, (name, stage, _, ready, start, end) in enumerate(items):
        later = next((item for item in items[k + 1:] if item[1] == stage), None)
        found += [[name, name, start, min(ready, end)]] * (start < ready)
        found += [[name, later[0], later[2], end]] if later and later[2] < end else []
    return found


def cp_async(turns, s, Q):
    """Waits of chapters 06 and 10: before turn k a warp waits for the turn's copies, then all meet; then copy k + stages - 1 starts."""
    fast, slow, waits, items = 0, 0, {"fastest warp": [0, 0], "slowest warp": [0, 0]}, [[None] * 6 for _ in turns]
    issue = lambda k, at, first: items[k].__setitem__(slice(2, 4), [first, at + s["latency"] + s["moved"][k]]) if k < len(turns) else None
    for k in range(s["stages"] - 1):
        issue(k, 0, 0)
    for k, turn in enumerate(turns):
        broken = s["fault"] if turn[0][0] == "K" else ""
        if s["stages"] == 1:
            issue(k, max(fast, slow), min(fast, slow) if broken == "early" else max(fast, slow))
            waits["fastest warp"][1] += max(slow - fast, 0)
            waits["slowest warp"][1] += max(fast - slow, 0)
            fast = slow = max(fast, slow)
        there = [at if broken == "unwaited" and (k or Q) else max(at, items[k][3]) for at in (fast, slow)]
        for who, at, then in zip(waits.values(), (fast, slow), there):
            who[0] += then - at
            who[1] += max(there) - then
        start, length = max(there), [s["product"] + s["softmax"] * (array == "K") for array, _ in turn]
        if s["stages"] > 1:
            issue(k + s["stages"] - 1, start, min(there) if broken == "early" else start)
        fast, slow = start + sum(length), start + sum(length) + s["skew"]
        items[k][:2], items[k][4:] = [(k == 0 and Q) * "Q, " + " and ".join(f"{array}{tile}" for array, tile in turn), k % s["stages"]], [start, slow - s["softmax"] * (turn[-1][0] == "K")]
    return waits, overlaps(items)


def full_and_empty(s, tiles=5):
    """Waits of 12b_producer.cu: its producer takes K and V of each tile, a consumer S, the release of K, the softmax, O, the release of V."""
    at, waits = {"producer": 0} | {f"consumer {c}": c * s["skew"] for c in range(s["consumers"])}, defaultdict(lambda: [0, 0])
    issued, there, free, start, end = {}, {}, defaultdict(int), defaultdict(lambda: 1 << 30), defaultdict(int)

    def wait(who, until):
        waits[who][0] += max(0, until - at[who])
        at[who] = max(at[who], until)

    for tile in range(tiles):
        for k, array in enumerate("KV"):
            wait("producer", free[array, tile - s["stages"]])
            issued[array, tile] = at["producer"]
            there[array, tile] = at["producer"] + s["latency"] + s["moved"][2 * tile + k]
        for who in list(at)[1:]:
            for array in "KV":
                me, broken = (array, tile), s["fault"] if array == "K" else ""
                wait(who, 0 if broken == "parity" and tile // s["stages"] % 2 else there[me])
                start[me], at[who] = min(start[me], at[who]), at[who] + s["product"]
                end[me] = max(end[me], at[who])
                free[me] = max(free[me], at[who] - s["product"] * (broken == "released"))
                at[who] += s["softmax"] * (array == "K")
    items = [[f"{me[0]}{me[1]}", (me[0], me[1] % s["stages"]), issued[me], there[me], start[me], end[me]] for me in issued]
    return {who: waits[who] for who in at}, overlaps(items)


def check_pipeline(browser, programs):
    """The order beside the trace, the times beside those of Python over many settings, each control, and a fault's message."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    state = lambda: browser.js("return window.state()")
    browser.open("explorers/pipeline.html")
    browser.until("the pipeline", "window.state().end > 0")
    kernels = browser.js("return PIPELINE.kernels")
    same("the pipeline: kernels", sorted(kernels), ["06_vectorized", "10_tensor_core_fwd", "12b_producer"])
    listed = browser.js("return [...byId('kernel').options].map((option) => option.text.split(/:? /)[0] + option.text.match(/_|: /))")
    same("the pipeline: kernels by number and idea", listed, ["06: ", "10: ", "12b: "])
    sys.path.insert(0, str(ROOT / "plots"))
    import tables

    draw, met, files = random.Random(12), defaultdict(int), tables.Book(ROOT)
    for kernel, data in kernels.items():
        if "turns" in data:
            same(f"the pipeline: turns of {kernel}", [data["turns"], data["stages"], data["Q"]], list(turns_of(programs, kernel)))
        faults = browser.js("return PIPELINE.faults.filter((fault) => fault.kernel === arguments[0]).map((fault) => fault.kind)", kernel)
        settings = []
        for _ in range(120):
            s = {"stages": draw.randint(1, 4), "latency": draw.randint(0, 40), "product": draw.randint(1, 20), "softmax": draw.randint(0, 10), "skew": draw.randint(0, 9),
                 "consumers": draw.randint(1, 3), "fault": draw.choice(["", *faults])}
            settings.append(s | {"moved": [draw.choice([0, 0, draw.randint(-s["latency"], 30)]) for _ in range(8 if "turns" in data else 10)]})
        got = browser.js("return arguments[1].map((s) => { const { waits, hazards } = window.simulate(arguments[0], { ...s, moved: s.moved.join() }); return [waits, hazards]; })",
                         kernel, settings)
        for s, found in zip(settings, got):
            waits, hazards = cp_async(data["turns"][:8], s, data["Q"]) if "turns" in data else full_and_empty(s)
            same(f"the pipeline, {kernel}, {s}: waits", found[0], waits)
            same(f"the pipeline, {kernel}, {s}: where a read meets a write", found[1], hazards)
            met[s["fault"]] += len(hazards)
    if met[""] or any(met[kind] < 5 for kind in ("unwaited", "early", "parity", "released")):
        wrong(f"the pipeline: reads that meet writes, by fault: {dict(met)}")
    for kernel, data in kernels.items():
        browser.choose("kernel", kernel)
        same(f"the pipeline: as in {kernel}", [state()["kernel"], state()["stages"], set(state()["moved"])], [kernel, data["stages"], {0}])
        for field in ("stages", "latency", "product", "softmax", "skew", *(["consumers"] if "producer" in data else [])):
            before = state()
            browser.element(field).send_keys(Keys.ARROW_DOWN if field in ("stages", "consumers") else Keys.ARROW_UP, Keys.TAB)
            after = state()
            same(f"the pipeline: {field} of {kernel}", after[field], before[field] + (-1 if field in ("stages", "consumers") else 1))
            if [after["waits"], after["end"]] == [before["waits"], before["end"]]:
                wrong(f"the pipeline: {field} of {kernel} has no effect")
        check_cut(browser, f"the pipeline, {kernel}")
        check_axis(browser, kernel)
        check_bars(browser, kernel)
        check_note(browser, "stages", 9, "a whole number from 1 to 4")
        check_note(browser, "stages", data["stages"], "")
        for fault in browser.js("return PIPELINE.faults.filter((fault) => fault.kernel === arguments[0])", kernel):
            browser.choose("fault", fault["kind"])
            check_key(browser, f"the pipeline, {kernel}, {fault['words']}")
            check_bars(browser, f"{kernel}, {fault['words']}")
            if fault["kind"] == "unwaited" and not data["Q"]:
                same(f"the pipeline, {kernel}: what is said of the wait that is left", browser.js("return story.captions.filter(({ event }) => event === 'wait').map(({ title }) => title)"), ["The wait before the loop"])
            if state()["stages"] != data["stages"] or not state()["meets"].startswith("The read of ") or not browser.js("return document.querySelector('.span.hazard')"):
                wrong(f"the pipeline: {fault['words']}, as it is chosen, of {state()['stages']} stages: {state()['meets']}")
            browser.element("stages").send_keys(Keys.ARROW_UP, Keys.TAB)
            same(f"the pipeline: whose message it is, of {fault['words']}", [state()["stages"], browser.element("own").text], [data["stages"] + 1, str(data["stages"])])
            same(f"the pipeline: the file of {fault['words']}", ROOT / browser.element("file").text, files.kernel_file(kernel))
            same(f"the pipeline: the message of {fault['words']}", [browser.element("says").text.split(), browser.element("change").is_displayed()], [fault["says"].split(), True])
        browser.element("reset").click()
        same(f"the pipeline: reset of {kernel}", [state()["fault"], state()["stages"], browser.element("broken").is_displayed()], ["", data["stages"], False])
    check_arrivals(browser, state, ActionChains, Keys)
    environment = os.environ | {"SIMT_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for part in Path(programs).resolve().parent.iterdir():
            if part.name != "tests":
                (Path(folder) / part.name).symlink_to(part)
        said = subprocess.run([ROOT / "tests/mutants/mutant.sh", "catch", "mutant_06_V_copied_before_the_barrier", folder], capture_output=True, text=True, env=environment).stdout
    shown = browser.js("return PIPELINE.faults.find((fault) => fault.kernel === '06_vectorized' && fault.kind === 'early').says")
    if not shown.startswith("simulated device: ") or shown not in said:
        wrong(f"the pipeline: the message of a fault is not the program's: {shown}, the program says {said}")
    browser.noise("the pipeline")


def check_axis(browser, name):
    """The ticks of the axis and the bars have one scale, which another setting keeps."""
    found, scale = browser.js("""const left = (each) => each.getBoundingClientRect().left, [zero, one] = [...document.querySelectorAll(".unit")], each = (left(one) - left(zero)) / Number(one.textContent);
        return [[...document.querySelectorAll("#line .span:not(.hazard), .unit")].map((bar) => Math.abs(left(zero) + each * Number((bar.title || ": " + bar.textContent).split(": ").at(-1).split(" to ")[0]) - left(bar))), scale]""")
    if max(found) > 1.5:
        wrong(f"the pipeline, {name}: a bar is {max(found):.1f} pixels from its place by the ticks of the axis")
    kept = browser.js("byId('product').stepDown(); show(); byId('product').stepUp(); const smaller = scale; show(); return smaller")
    same(f"the pipeline, {name}: the scale of the axis after another setting", kept, scale)


def check_bars(browser, name):
    """Each caption is bound to a bar of the time line: of its kind the first, and at its place."""
    captions, lanes = browser.js("return [story.captions, shown.lanes]")
    bars = [bar | {"lane": lane} for lane, those in lanes.items() for bar in those]
    for caption in captions:
        bar = {key: caption["bar"][key] for key in ("kind", "words", "from", "to", "lane")}
        kind = {"hidden": "product", "end": bar["kind"]}.get(caption["event"], caption["event"])
        alike = [each["from"] for each in bars if each["kind"] == kind and (caption["event"] != "hidden" or any(
            copy["kind"] == "copy" and copy["from"] < each["to"] and copy["to"] > each["from"] for copy in bars))]
        if bar not in bars or not (caption["at"] == bar["to"] if caption["event"] == "end" else bar["from"] <= caption["at"] < bar["to"]) or bar["kind"] != kind or bar["from"] != min(alike) and caption["event"] != "end" or not 5 <= len(caption["text"].split()) <= 25:
            wrong(f"the pipeline, {name}: a caption is bound to no bar: {caption}")
        early = caption["event"] == "hazard" and any(other["event"] == "product" and other["bar"]["from"] <= bar["from"] and other["at"] > caption["at"] for other in captions)
        if early or re.search(r" and \w+ is read|waits \d", caption["text"]):
            wrong(f"the pipeline, {name}: a fault is told before the product that it meets, or its words are wrong: {caption}")
    if not 6 <= len(captions) <= 10 or caption["event"] != "end" or bar["to"] != max(each["to"] for each in bars):
        wrong(f"the pipeline, {name}: {len(captions)} captions, the last of {caption['event']}")


def check_key(browser, name):
    """The kinds of bars that the time line has are those of its key, and have different colours and names."""
    kinds = browser.js("""return ["#line .span", "#key .swatch"].map((which) => [...new Set([...document.querySelectorAll(which)].map((each) => each.className.split(" ")[1]))].sort())""")
    same(f"{name}: kinds in the key", kinds[1], kinds[0])
    named = defaultdict(set)
    for kind, words in browser.js("return [...document.querySelectorAll('#line .span')].map((bar) => [bar.className, bar.title.split(':')[0]])"):
        named[words].add(kind)
    same(f"{name}: names of more than one kind of bar", {words: kinds for words, kinds in named.items() if len(kinds) > 1}, {})
    for theme in ("light", "dark"):
        browser.js("setTheme(arguments[0])", theme)
        colours = browser.js("return [...document.querySelectorAll('#key .swatch:not(.hazard)')].map((each) => [each.className, getComputedStyle(each).backgroundColor.match(/\\d+/g).map(Number)])")
        for k, (one, colour) in enumerate(colours):
            for other, another in colours[:k]:
                if math.dist(colour, another) < 40:
                    wrong(f"{name}, {theme}: {one} and {other} have nearly the same colour")


def check_arrivals(browser, state, chains, keys):
    """An arrival moved by keys and by a pointer, the table, and the state of the address."""
    browser.choose("kernel", "10_tensor_core_fwd")
    arrival = browser.element("arrival3")
    arrival.send_keys(keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_LEFT)
    same("the pipeline: an arrival moved by keys", [state()["moved"], browser.js("return document.activeElement.id")], [[0, 0, 0, 2, 0, 0, 0, 0], "arrival3"])
    same("the pipeline: a slider's name", arrival.accessible_name, "arrival of K3 and V3")
    apart = browser.js("""return window.state().items.map(({ k, ready }) => {
        const input = byId(`arrival${k}`).getBoundingClientRect(), ends = [...byId(`arrival${k}`).parentElement.querySelectorAll(".copy")].map((bar) => bar.getBoundingClientRect().right);
        return Math.min(...ends.map((end) => Math.abs(input.left + 7.2 + (input.width - 14.4) * ready / byId(`arrival${k}`).max - end)));
    })""")
    if max(apart) > 1.5:
        wrong(f"the pipeline: a handle is {max(apart):.1f} pixels from the end of its copy")
    said = browser.js("const bar = document.querySelector('.span.product'), before = byId('bar').textContent; bar.dispatchEvent(new PointerEvent('pointerover', { bubbles: true })); return [before.includes('touch it'), byId('bar').textContent, bar.title]")
    same("the pipeline: what is said of a bar that is touched", said, [True, said[2], "Q K0\u1d40: S0 = Q K0\u1d40: 10 to 18"])
    framed = re.search(r'pipeline.html#kernel=10_tensor_core_fwd([^"]*)"', (browser.site / "steps/10_tensor_core_fwd/README.html").read_text(encoding="utf-8"))[1]
    browser.js("choose(...arguments)", "10_tensor_core_fwd", dict(re.findall(r"(\w+)=(\d+)", framed)))
    ends = [(browser.js("byId('stages').value = arguments[0]; show()", stages), state()["end"])[1] for stages in (1, 2, 3)]
    if not ends[0] > ends[1] > ends[2]:
        wrong(f"the pipeline: the frame of chapter 10 takes {ends} with 1, 2 and 3 stages")
    browser.element("reset").click()
    arrival = browser.element("arrival3")
    arrival.send_keys(keys.ARROW_RIGHT, keys.ARROW_RIGHT)
    place = browser.js("const a = arguments[0], r = a.getBoundingClientRect(), w = 14.4; return [w / 2 + (r.width - w) * (a.value / a.max - .5) - w / 2, (r.width - w) / a.max]", arrival)
    chains(browser.driver).move_to_element_with_offset(arrival, round(place[0]), 0).click_and_hold().move_by_offset(round(9 * place[1]), 0).release().perform()
    if not 9 <= state()["moved"][3] <= 13 or sum(map(abs, state()["moved"])) != state()["moved"][3]:
        wrong(f"the pipeline: dragged by 9 units from 2 an arrival is {state()['moved']}")
    bars = browser.js("return document.querySelectorAll('.span').length")
    same("the pipeline: rows of the table", state()["rows"], bars)
    browser.choose("fault", "early")
    browser.element("arrival3").send_keys(keys.ARROW_RIGHT)
    before, address = state(), browser.address()
    browser.driver.get("about:blank")
    browser.driver.get(address)
    same("the pipeline: the state of its address", state(), before)


# ---- keyboard, motion, paper ------------------------------------------------------------------------------------------------

EXPLORERS = ["warp-map", "fragments", "example", "ladder", "pipeline", "tile-walk"]
STOP = """
const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
if (at === document.body) return null;
return [[...document.body.querySelectorAll("*")].indexOf(at), at.outerHTML.slice(0, 60), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    at.tagName === "IFRAME" || box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth];"""
REACHED = """
return [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter((each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility({ visibilityProperty: true })).length"""


def tab_through(browser, name):
    """By the key Tab through a page: each stop is later in the document, can be seen, and shows that it has the focus."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.open(name)
    browser.until(f"{name}, loaded", "document.readyState === 'complete'")
    browser.js("document.querySelectorAll('iframe').forEach((frame) => frame.remove())")  # their pages are gone through by themselves
    expected, stops = browser.js(REACHED), []
    while len(stops) <= expected + 10:
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        if (stop := browser.js(STOP)) is None or stops and stop[0] == stops[0][0]:
            break
        stops.append(stop)
    for before, (at, what, outlined, visible) in zip([[-1], *stops], stops):
        if at <= before[0]:
            wrong(f"{name}: the focus goes back to {what}")
        if not outlined or not visible:
            wrong(f"{name}: {'the focus cannot be seen' if visible else 'the focus leaves the window'} at {what}")
    same(f"{name}: stops of the key Tab", len(stops), expected)


def check_focus(browser, _):
    browser.motion("reduce")  # a page that scrolls is not yet where the focus is
    browser.width(1280)
    for name in [*(f"explorers/{name}.html" for name in EXPLORERS), "docs/counters.html", "steps/06_vectorized/README.html"]:
        tab_through(browser, name)


def check_keys(browser, _):
    """Each control of each explorer by the keyboard alone."""
    from selenium.webdriver.common.keys import Keys

    browser.width(1280)
    for name in EXPLORERS:
        browser.open(f"explorers/{name}.html" + {"pipeline": "#fault=early", "example": "#keys=4"}.get(name, ""))
        browser.until(f"{name}, loaded", "window.state()")
        if not browser.js("return [...document.querySelectorAll('table')].some((table) => table.rows.length > 1)"):
            wrong(f"{name}: there is no table beside the figure")
        state = lambda: browser.js("return JSON.stringify([window.state(), byId('speed')?.value, wall]) + document.body.innerText")
        controls = browser.js("return [...document.querySelectorAll('button, input, select')].filter((each) => each.id && each.checkVisibility() && !each.closest('figure:nth-of-type(n + 2), #lanesMap')).map((each) => each.id)")
        for control in sorted(controls, key=lambda control: (control in ("pass", "kernel", "rung"), control in ("reset", "play", "last", *(["earlier"] if name == "ladder" else [])), control == "lecture")):  # which show other controls
            keys = {"SELECT": (Keys.ARROW_DOWN, Keys.ARROW_UP), "BUTTON": (Keys.ENTER, Keys.SPACE), "TEXT": ("7",)}.get(browser.js("const c = document.getElementById(arguments[0]); return c.type === 'text' ? 'TEXT' : c.tagName", control),
                                                                                                    (Keys.ARROW_UP, Keys.ARROW_DOWN, Keys.SPACE))
            before, tried = state(), []
            if browser.js("return !document.getElementById(arguments[0]).matches(':enabled') || document.getElementById(arguments[0]).options?.length === 1", control):
                continue
            while state() == before and len(tried) < len(keys):
                browser.element(control).send_keys(keys[len(tried)])
                browser.js("document.activeElement.blur()")  # a number counts when it is left
                tried.append(1)
            if state() == before:
                wrong(f"{name}: no key operates {control}")
    browser.noise("the keyboard")


SMALL = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
while (walker.nextNode()) {
    const at = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() && at.checkVisibility() && !["SCRIPT", "STYLE"].includes(at.tagName) && parseFloat(getComputedStyle(at).fontSize) < 20) found.push(walker.currentNode.data.trim().slice(0, 40));
}
return found.slice(0, 5);"""


def check_wall(browser, _):
    """For a lecture: every label has 20 pixels and none is cut off; the figure and its story are on one screen. The colours of all explorers."""
    from selenium.webdriver.common.keys import Keys

    meanings = re.findall(r"--([a-z-]+): #", (browser.site / "explorers/explorer.css").read_text(encoding="utf-8").split("[data-theme")[0])
    meanings = meanings[meanings.index("loaded"):]
    for name, state in [*((name, "") for name in EXPLORERS), ("tile-walk", "step=12_hopper_fwd&"), ("tile-walk", "step=09_fa2_bwd_warps&"), ("pipeline", "kernel=12b_producer&"), ("fragments", "what=ldmatrix.x4&"), ("fragments", "what=wgmma&"),
                        ("warp-map", "lanes=1&stride=1&")]:
        browser.width(1920, 1080)
        browser.open(f"explorers/{name}.html#{state}wall")
        browser.until(f"{name}, loaded", "window.state()")
        where = f"{name} {state}on a wall"
        same(f"{where}: labels of less than 20 pixels", browser.js(SMALL), [])
        same(f"{where}: wider than the wall", browser.js(WIDTH), [])
        if name != "ladder":
            low = browser.js("return [...document.querySelectorAll('.told figure, .told table, .told #caption, .told #rows, .told #line, .told .key')].map((each) => each.getBoundingClientRect()).filter(({ bottom, right }) => bottom > 1080 || right > 1920).length")
            same(f"{where}: parts below the wall", low, 0)
            cut = browser.js("return [...document.querySelectorAll('#rows i, .sides small, #line .span')].filter((i) => { const box = i.getBoundingClientRect(); return i.textContent && box.width > 9 && box.height < 20; }).map((i) => i.textContent)")
            same(f"{where}: labels that are cut off", cut, [])
        same(f"{where}: where the page begins", browser.js("return scrollY"), 0)
        same(f"{where}: lists out of sight", browser.js("return [...document.querySelectorAll('.bar select')].filter((list) => !list.checkVisibility() && !list.closest('[hidden]')).length"), 0)
        same(f"{where}: its address", "wall" in browser.address(), True)
        browser.driver.find_element("tag name", "body").send_keys(Keys.ESCAPE)
        same(f"{where}: after Esc", [browser.js("return document.documentElement.matches('.wall')"), "wall" in browser.address()], [False, False])
    browser.width(1280, 800)
    for name, state in [*((name, "lanes=4&stride=16&" if name == "warp-map" else "") for name in EXPLORERS), ("tile-walk", "step=12_hopper_fwd&at=58&"), ("tile-walk", "step=08_fused_bwd&")]:
        browser.open(f"explorers/{name}.html#{state}wall")
        browser.until(f"{name}, loaded", "window.state()")
        found = browser.js("return [parseFloat(getComputedStyle(byId('play')).fontSize) * document.documentElement.style.zoom >= 15.2, [...byId('captions').children].every((each) => each.offsetHeight < 40), [...document.querySelectorAll('.sides small')].every((each) => each.scrollWidth <= each.clientWidth)]")
        same(f"{name}, large in a window of 1280: text no smaller than before, numbers on one line, labels that have room", found, [True] * 3)
        for width, height in ((1600, 1000), (1280, 800)):
            browser.width(width, height)
            browser.until(f"{name}, large: a figure as high as a window of {width}", "(bottom => bottom > 0.9 * innerHeight && bottom <= innerHeight)(Math.max(...[...document.querySelectorAll('.told > :not(#story), #outputs')].map((each) => each.getBoundingClientRect().bottom)))")
        same(f"{name}, large in a window of 1280: wider than it", browser.js(WIDTH), [])
        same(f"{name}, large in a window of 1280: figures that scroll sideways", browser.js("return [...document.querySelectorAll('.told .wide')].filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.ariaLabel)"), [])
        same(f"{name}, large in a window of 1280: under the caption", browser.js("const box = byId('caption').getBoundingClientRect(); return [...document.querySelectorAll('.told :is(figure, table, canvas)')].filter((each) => { const its = each.getBoundingClientRect(); return its.width && its.right > box.left + 1 && its.left < box.right && its.bottom > box.top && its.top < box.bottom; }).length"), 0)
    for name in EXPLORERS:
        browser.open(f"explorers/{name}.html")
        browser.until(f"{name}, loaded", "window.state()")
        same(f"{name}: figures below a window of 1280 x 800", browser.js("return [...document.querySelectorAll('.told :is(figure, table, #line, #sectors), #outputs')].filter((each) => each.getBoundingClientRect().bottom > 800).map((each) => each.id || each.innerText.slice(0, 40))"), [])
    for theme in ("light", "dark"):
        browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
        found = browser.js("const style = getComputedStyle(document.documentElement); return arguments[0].map((name) => style.getPropertyValue('--' + name).trim().replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3').match(/\\w\\w/g).map((x) => parseInt(x, 16)))", ["text", "ground", *meanings])
        (text, ground), colours = found[:2], dict(zip(meanings, found[2:]))
        light = lambda colour: sum(share * (v / 3294.6 if v <= 10 else ((v / 255 + .055) / 1.055) ** 2.4) for share, v in zip((.2126, .7152, .0722), colour)) + .05
        for k, (name, colour) in enumerate(colours.items()):
            ratio = light(ground if name in ("read", "written") else text) / light(colour)
            if max(ratio, 1 / ratio) < 4.5:
                wrong(f"colours, {theme}: text on {name} has a contrast of {max(ratio, 1 / ratio):.2f}")
            for other, another in list(colours.items())[:k]:
                if math.dist(colour, another) < 40:
                    wrong(f"colours, {theme}: {name} and {other} have nearly the same colour")
    for name in EXPLORERS:
        for part in (f"{name}.js", f"{name}.html"):
            if odd := re.findall(r"#[0-9a-fA-F]{6}\b|\brgb\(|hsl\(", (browser.site / "explorers" / part).read_text(encoding="utf-8")):
                wrong(f"colours: {part} has its own: {odd}")
    browser.noise("the wall")


def check_phone(browser, _):
    """On 390 pixels, and on 360 in an explorer, no table, figure or picture is cut off, and the first picture is drawn for them, and in its midst from the beginning."""
    browser.motion("no-preference")
    browser.width(390, 844)
    browser.open("index.html")
    pictures = browser.js("return [...document.querySelectorAll('main img')].map((img) => [img.currentSrc.split('/').pop(), img.getBoundingClientRect().right, img.closest('a.picture').scrollWidth])")
    drawn = browser.js("return [...document.querySelectorAll('.moves > :is(.broad, .narrow)')].filter((each) => each.checkVisibility()).map((each) => [each.className, each.getBoundingClientRect().right <= 390])")
    same("the first picture on a phone", drawn, [["narrow", True]])
    same("pictures that are cut off on a phone", [name for name, right, inside in pictures if right > 390 or inside > 390], [])
    same("tables of the first page that scroll on a phone", browser.js("return [...document.querySelectorAll('.wide')].filter((each) => each.scrollWidth > each.clientWidth + 1).length"), 0)
    browser.open("steps/05_fa2_fwd/README.html")
    same("the pages before and after on a phone", browser.js("return [...document.querySelectorAll('main > .turn:first-child a')].map((a) => [a.textContent, a.lastElementChild.scrollWidth > a.lastElementChild.clientWidth])"),
         [["← 04 FlashAttention-1 forward", False], ["What the rows of the counter tables mean →", False]])
    same("pictures of a chapter that are wider than a phone", browser.js("return [...document.querySelectorAll('a.picture img')].map((img) => img.getBoundingClientRect()).filter(({ width, right }) => right > 390 || width < 200).length"), 0)
    for page in ("docs/gpu.html", "steps/01_naive/README.html", "steps/02_tiled_matmul/README.html"):
        browser.open(page)
        browser.width(360, 740)
        same(f"{page}: tables without a number on a phone", browser.js("return [...document.querySelectorAll('td + .text-right')].filter((cell) => cell.cellIndex === 1).filter((cell) => { const range = document.createRange(); "
             "range.selectNodeContents(cell); return range.getBoundingClientRect().right > 360; }).map((cell) => cell.parentElement.textContent.slice(0, 60))"), [])
    browser.width(390, 844)
    for name in ("tile_walk", "tile_walk_narrow"):
        browser.open(f"_images/{name}.svg")
        seen = browser.js("document.getAnimations().forEach((each) => { each.pause(); each.currentTime = 0; }); return [...document.querySelectorAll('text')].filter((each) => getComputedStyle(each).opacity > .5).map((each) => each.textContent)")
        same(f"{name}: mathematics as plain text", browser.js("return [...document.querySelectorAll('text')].map((each) => each.textContent).filter((text) => text.includes('^'))"), [])
        if not {"S", "K tile 0", "V tile 0"} <= set(seen):
            wrong(f"{name}: as it begins it has nothing yet: {seen}")
    for name, state in [*((name, "") for name in EXPLORERS), ("example", "#keys=4"), ("tile-walk", "#step=12_hopper_fwd"), ("pipeline", "#kernel=12b_producer"), ("fragments", "#what=wgmma")]:
        browser.open(f"explorers/{name}.html{state}")
        browser.until(f"{name}, loaded", "window.state()")
        browser.width(360, 740)
        same(f"{name}: links to the explorers on a phone", browser.js("return [...document.querySelectorAll('header .explorers > *')].filter((each) => each.checkVisibility() && each.getBoundingClientRect().left >= 0 && each.getBoundingClientRect().right <= 360).length"), len(EXPLORERS))
        same(f"{name}{state}: cut off on a phone", browser.js("return [...document.querySelectorAll('.wide, figure, canvas')].filter((each) => each.checkVisibility() && (each.scrollWidth > each.clientWidth + 1 || "
             "each.getBoundingClientRect().right > 361)).map((each) => each.ariaLabel || each.innerText.slice(0, 40))"), [])
    browser.open("explorers/pipeline.html")
    same("labels of the pipeline on a phone", {"K0", "V0", "K3", "V3"} <= set(browser.js("return [...document.querySelectorAll('#line .span')].map((bar) => bar.textContent)")), True)
    browser.width(1280)
    browser.noise("a phone")


def check_motion(browser, _):
    """What moves where the reader wants less motion: a walk plays slowly, a page does not move."""
    browser.motion("reduce")
    for page in ("tile-walk.html#step=06_vectorized", "pipeline.html"):
        browser.open(f"explorers/{page}")
        browser.until("the story", "story.captions.length > 0")
        same(f"less motion, {page}: where the story has been", *played(browser))
    browser.open("docs/gpu.html")
    moving = "const s = [...document.querySelectorAll('*')].map((each) => getComputedStyle(each)); return s.filter((s) => s.scrollBehavior === 'smooth' || s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0).length"
    same("less motion: what moves on a page", browser.js(moving), 0)
    browser.motion("no-preference")
    same("with motion: what moves on a page", browser.js(moving), 1)
    check_moving_picture(browser)


def check_moving_picture(browser):
    """The picture that moves stands still where the reader wants less motion; its buttons and keys stop it and move it to the end of a step."""
    from selenium.webdriver.common.keys import Keys

    states = "[...document.querySelectorAll('.moves > .broad')].map((each) => each.shadowRoot.querySelector('svg').getAnimations({ subtree: true })[0])[0]"
    at = lambda: browser.js(f"return [document.querySelector('.steps output').textContent, document.querySelector('.steps button:nth-of-type(2)').textContent, {states}.playState]")
    press = lambda k: browser.js("document.querySelectorAll('.steps button')[arguments[0]].click()", k)
    browser.width(1280, 800)
    browser.motion("reduce")
    browser.open("index.html")
    same("less motion: the moving picture", at(), ["7 / 15", "Play", "paused"])
    for button, number in ((2, 8), (2, 9), (0, 8)):
        press(button)
        same(f"the moving picture: after button {button}", at(), [f"{number} / 15", "Play", "paused"])
    browser.driver.find_element("css selector", ".steps button").send_keys(Keys.ARROW_RIGHT)
    same("the moving picture: after a key", [at(), browser.address().endswith("/index.html")], [["9 / 15", "Play", "paused"], True])
    same("the moving picture: above the fold", browser.js("return document.querySelector('.moves').getBoundingClientRect().bottom <= innerHeight"), True)
    browser.motion("no-preference")
    browser.open("index.html")
    browser.until("the moving picture, moving", f"{states}.playState === 'running' && {states}.currentTime > 0")
    same("the moving picture: its button", at()[1:], ["Pause", "running"])
    press(1)
    same("the moving picture: paused", at()[1:], ["Play", "paused"])
    number = int(at()[0].split()[0])
    press(2)
    browser.until("the moving picture, at the end of its step", f"{states}.playState === 'paused'")
    same("the moving picture: after a step", at(), [f"{number} / 15", "Play", "paused"])


def check_paper(browser, _):
    """A page as PDF: its text and its folded answers; no control, no frame, no list of pages."""
    for name, inside, folded in (("docs/math/online-softmax.html", "Row 3 of the example, key by key", "Answers"), ("steps/06_vectorized/README.html", "What limits it", "Lane 13 at d = 64")):
        browser.open(name)
        answer = browser.js("return document.querySelector('details:not(.rungs):not(.pages) > ol > li').textContent.split(/\\s+/).slice(0, 6).join(' ')")
        frames = browser.js("return [...document.querySelectorAll('iframe')].map((frame) => frame.title)")
        with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
            file.write(base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", {"displayHeaderFooter": False})["data"]))
            file.flush()
            text = re.sub(r"\s+", " ", subprocess.run(["pdftotext", file.name, "-"], check=True, capture_output=True, text=True).stdout)
        for words in (inside, folded, answer):
            if words not in text:
                wrong(f"{name} on paper: {words!r} is missing")
        for words in ("I knew it", "Clear the marks", "Theme:", "Skip to the text", "Glossary Counters", "Open it at full width", *frames):
            if words in text:
                wrong(f"{name} on paper: it has {words!r}")
        same(f"{name}: folded again after the printing", browser.js("return document.querySelectorAll('main details[open]').length"), 0)


# ---- the questions --------------------------------------------------------------------------------------------------------

def asked(text):
    """How many questions a page's Markdown has: the list under Check yourself, and the lists that are folded as a checkpoint."""
    parts = re.findall(r"^## Check yourself\n(.*?)^<details>", text, re.MULTILINE | re.DOTALL)
    parts += re.findall(r"^<summary>Checkpoint</summary>\n(.*?)^</details>", text, re.MULTILINE | re.DOTALL)
    return len(re.findall(r"^\d+\. ", "\n".join(parts), re.MULTILINE))


def check_questions(browser, _):
    """Every page's questions have marks; marks are kept, counted, taken back and cleared, each page's by themselves."""
    from selenium.webdriver.common.keys import Keys

    said = lambda: browser.js("return document.querySelector('.marks [role=status]').textContent")
    pressed = lambda: browser.js("return [...document.querySelectorAll('.marks [aria-pressed=true]')].map((button) => button.ariaLabel)")
    button = lambda words, number: browser.driver.find_element("css selector", f"[aria-label='{words}: question {number}']")
    page, other = "docs/gpu.html", "docs/counters.html"
    browser.motion("reduce")  # a page that scrolls while it is clicked is clicked elsewhere
    browser.open(page)
    browser.js("localStorage.clear()")
    browser.open(page)
    same("questions: at first", [said(), pressed()], ["0 of 5 questions done.", []])
    button("I knew it", 1).click()
    button("Look again", 2).send_keys(Keys.SPACE)
    button("Look again", 3).send_keys(Keys.ENTER)
    button("I knew it", 3).click()  # in place of the mark before
    button("I knew it", 4).click()
    button("I knew it", 4).click()  # taken back
    marked = ["3 of 5 questions done: 2 known, 1 to look at again.", ["I knew it: question 1", "Look again: question 2", "I knew it: question 3"]]
    same("questions: marked", [said(), pressed()], marked)
    browser.open(other)
    same("questions: of another page", [said(), pressed()], ["0 of 3 questions done.", []])
    button("I knew it", 2).click()
    browser.open(page)
    same("questions: kept", [said(), pressed()], marked)
    browser.element("clear").click()
    same("questions: cleared", [said(), pressed()], ["0 of 5 questions done.", []])
    browser.open(page)
    same("questions: cleared for good", pressed(), [])
    browser.open(other)
    same("questions: another page's after that", pressed(), ["I knew it: question 2"])
    browser.js("localStorage.setItem('questions of docs/gpu', '{')")
    browser.open(page)
    same("questions: beside something else in the browser's memory", said(), "0 of 5 questions done.")
    browser.js("localStorage.clear(); Storage.prototype.setItem = () => { throw 'full'; }")
    button("I knew it", 1).click()
    same("questions: in a browser that keeps nothing", said(), "1 of 5 questions done: 1 known, 0 to look at again. This browser does not keep the marks.")
    count_questions(browser)
    browser.noise("questions")


def count_questions(browser):
    pages = 0
    for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("steps/*/README.md")]:
        if count := asked(path.read_text(encoding="utf-8")):
            pages += 1
            page = path.relative_to(ROOT).with_suffix(".html")
            browser.driver.get(f"file://{browser.site}/{page}")
            same(f"{page}: questions with marks", browser.js("return document.querySelectorAll('li > .marks').length"), count)
    if pages < 20:
        wrong(f"only {pages} pages have questions")


def go(browser, at):
    browser.js("const s = document.getElementById('at'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", at)
    return browser.js("return window.state().at") == at


CHECKS = {"page": check_page, "ways": check_ways, "stories": check_stories, "play": check_play, "wall": check_wall, "phone": check_phone, "warp-map": check_warp_map, "fragments": check_fragments,
          "example": check_example, "ladder": check_ladder, "questions": check_questions, "pipeline": check_pipeline, "focus": check_focus, "keys": check_keys,
          "motion": check_motion, "paper": check_paper}


def check_site(browser, programs, pages, others, walks):
    if pages:
        check_pages(browser, pages)
    for name in filter(None, others.split(",")):
        CHECKS[name](browser, programs)
    for step in filter(None, walks.split(",")):
        check_walk(browser, programs, step)


def check_fault(browser, programs, site, what, said, file, edit, *asked):
    """Whether a check notices what a sed command breaks in a copy of the site, in which a file by another name is no file of the browser's cache."""
    global planted
    with tempfile.TemporaryDirectory(dir=site.parent) as folder:
        browser.site, planted = Path(folder) / "site", said
        subprocess.run(["cp", "-rl", site, browser.site], check=True)
        subprocess.run(["sed", "-i", "-E", edit, browser.site / file], check=True)  # it writes another file
        if (site / file).read_bytes() == (browser.site / file).read_bytes():
            return f"{what}: the edit changes nothing"
        browser.afresh()
        del problems[:]
        try:
            check_site(browser, programs, *asked)
        except Noticed:
            return None
        except Exception as error:  # of the page or of the driver
            problems.append(f"{type(error).__name__}: {error}")
        finally:
            planted = None
    return f"{what}: not for this reason: {problems[:9]}" if problems else f"{what} is not noticed"


def check_faults(browser, programs, site, file):
    missed = []
    for fault in sorted((line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()), key=lambda fault: fault[4:]):  # alike checks side by side
        begun, wrong = time.monotonic(), check_fault(browser, programs, site, *fault)
        print(wrong or f"noticed: {fault[0]}", f"({time.monotonic() - begun:.1f} s)", flush=True)
        missed += [wrong] if wrong else []
    problems[:] = missed


def main():
    parser = argparse.ArgumentParser(description="The site in a browser.")
    parser.add_argument("site", type=Path)
    parser.add_argument("programs")
    parser.add_argument("--pages", default="**/*.html")
    parser.add_argument("--walks", default="05_fa2_fwd,06_vectorized,09_fa2_bwd_warps,10_tensor_core_fwd,12a_wgmma,12c_pingpong,12x_cluster,"
                        "12_hopper_fwd,13a_products,13_hopper_bwd")
    parser.add_argument("--others", default=",".join(CHECKS))
    parser.add_argument("--faults", type=Path, help="instead: a line for each fault, WHAT, SAID, FILE, SED, PAGES, OTHERS and WALKS between tabs; each must be noticed")
    arguments = parser.parse_args()
    missing = [path for path in ("/usr/bin/chromium", "/usr/bin/chromedriver", "/usr/bin/pdftotext") if not os.path.exists(path)]
    try:
        import selenium  # noqa: F401
    except ImportError:
        missing.append("python3-selenium")
    if missing:
        print(f"{'wrong' if os.environ.get('CI') else 'skipped'}: missing: {' '.join(missing)}")
        return 1 if os.environ.get("CI") else 77
    site = arguments.site.resolve()
    browser = Browser(site)
    try:
        if arguments.faults:
            check_faults(browser, arguments.programs, site, arguments.faults)
        else:
            check_site(browser, arguments.programs, arguments.pages, arguments.others, arguments.walks)
    finally:
        browser.driver.quit()
    print(f"{len(problems)} problems" if problems else "The site is as it should be in a browser.")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
