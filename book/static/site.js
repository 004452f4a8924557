// Of each page, the explorers' own among them: the theme, the way around, wide tables, copies of code, and the frames of explorers. A
// classic script, loaded in the head, so that a dark page is never light first.
"use strict";
const newElement = (kind, properties, ...inside) => { const made = Object.assign(document.createElement(kind), properties); made.append(...inside); return made; };
(function () {
    const HERE = document.currentScript.src.replace("site.js", ""), NAMES = ["automatic", "light", "dark"], root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
    const stored = (name, value) => { // a browser may refuse to store anything of a file
        try {
            if (value !== undefined) localStorage.setItem(name, value);
            return localStorage.getItem(name);
        } catch (error) { return null; }
    };
    let theme = NAMES.includes(stored("theme")) ? stored("theme") : "automatic";
    const aimed = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const unfold = () => { if (aimed() && aimed().tagName === "DETAILS") aimed().open = true; };
    addEventListener("hashchange", unfold);
    const frames = () => document.querySelectorAll("iframe.explorer");
    function show() {
        root.dataset.theme = theme === "automatic" ? (dark.matches ? "dark" : "light") : theme;
        const button = document.getElementById("theme");
        if (button) button.textContent = "Theme: " + theme;
        dispatchEvent(new Event("themed")); // an explorer's figures are drawn again
        for (const frame of frames()) frame.contentWindow.postMessage({ theme: root.dataset.theme }, "*");
    }
    show();
    root.classList.add("scripted");
    dark.addEventListener("change", show);
    addEventListener("message", ({ source, data }) => { // a frame says how high it is, once it can hear
        const frame = [...frames()].find(({ contentWindow }) => contentWindow === source);
        if (frame && data?.lines) // of the tile walk's step
            for (const each of document.querySelectorAll(".walked")) each.classList.toggle("now", data.lines.includes(each.dataset.line));
        if (frame && data?.hash) frame.parentElement.querySelector("a.full").hash = data.hash;
        if (!(frame && data?.height > 0)) return;
        frame.style.height = Math.min(data.height, 4000) + "px";
        if (performance.now() < 5000 && aimed()) aimed().scrollIntoView(); // the frame above it grew after the jump
        source.postMessage({ theme: root.dataset.theme }, "*");
    });
    // What is wider than its column becomes smaller; a table that is still too wide wraps, all else scrolls, by the keyboard too.
    function fit() {
        for (const cell of document.querySelectorAll("td.text-right")) if (/\p{L}{3}.* .*\p{L}{3}/u.test(cell.textContent)) cell.style.whiteSpace = "normal"; // words in a column of numbers
        for (const wide of document.querySelectorAll("main :is(pre, .wide, .math)")) {
            const scrolls = () => wide.scrollWidth > wide.clientWidth + 1;
            wide.classList.remove("tight", "wraps");
            for (const way of wide.matches("pre") ? ["tight"] : ["tight", "wraps"]) if (scrolls()) wide.classList.add(way);
            wide.classList.toggle("scrolls", scrolls());
            for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", "scrolls sideways"]])
                if (scrolls()) wide.setAttribute(name, value); else wide.removeAttribute(name);
        }
    }
    // A button that copies a box: its commands without the prompt; an output has none.
    function copies() {
        for (const box of document.querySelectorAll("main .highlight:not(.highlight-text *, .highlight-default *, .highlight-none *)")) {
            const commands = box.parentElement.matches(".highlight-console"), name = commands ? "Copy the commands" : "Copy the code";
            box.append(newElement("button", { type: "button", className: "copy", ariaLabel: name, onclick: async ({ target }) => {
                const code = box.querySelector("pre").cloneNode(true);
                code.querySelectorAll("a[id]").forEach((number) => number.remove());
                const lines = code.textContent.trimEnd().split("\n");
                const typed = (k) => lines[k - 1]?.endsWith("\\") ? typed(k - 1) : lines[k].startsWith("$ ");
                await navigator.clipboard.writeText(lines.filter((_, k) => !commands || typed(k)).map((line) => commands ? line.replace(/^\$ /, "") : line).join("\n"));
                target.textContent = "Copied";
                setTimeout(() => { target.textContent = "Copy"; }, 1500);
            } }, "Copy"));
        }
    }
    // The contents of the page below its name in the list of pages, and in them the section that is read.
    function follow() {
        const pages = document.querySelector(".pages"), contents = document.querySelector(".here > nav"), current = pages?.querySelector("a.current");
        if (!contents || matchMedia("(max-width: 56rem)").matches) return;
        if (current) current.after(contents); else pages.prepend(contents);
        const links = [...contents.querySelectorAll(":scope > ul > li > ul > li > a")];
        const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
        let last = null;
        const mark = () => {
            const now = links[places.findLastIndex((place) => place && place.getBoundingClientRect().top < 90)];
            if (now === last) return;
            last?.removeAttribute("aria-current");
            now?.setAttribute("aria-current", "location");
            if (now) pages.scrollTop = now.offsetTop - pages.clientHeight / 2;
            last = now;
        };
        addEventListener("scroll", mark, { passive: true });
        if (links.length) mark();
    }
    // A picture that moves: a button stops it, two others move it to the end of a step. It stands still where the reader wants less motion.
    function steps(picture) {
        const still = matchMedia("(prefers-reduced-motion: reduce)"), drawings = [...picture.children].map((each) => {
            const kept = each.querySelector("template"); // of a browser that does not know shadowrootmode
            if (kept) each.attachShadow({ mode: "open" }).append(kept.content);
            return each.shadowRoot.firstElementChild.nextElementSibling;
        });
        const ends = drawings[0].dataset.steps.split(" ").map((end) => 1000 * end), moves = () => drawings.flatMap((each) => each.getAnimations({ subtree: true })), count = newElement("output", {});
        let timer = null, plays = false, aim = null; // aim: the step to whose end it moves
        const now = () => moves().slice(0, 1).map(({ currentTime, effect }) => (currentTime - effect.getTiming().delay) % effect.getTiming().duration)[0] ?? 0;
        const at = () => (ends.findIndex((end) => now() < end + 1) + ends.length) % ends.length, stands = (k) => Math.abs(now() - ends[k]) < 100;
        const say = () => {
            count.textContent = `${at() + 1} / ${ends.length}`;
            count.ariaLabel = `Step ${at() + 1} of ${ends.length}`;
        };
        const run = (on) => {
            clearTimeout(timer);
            [plays, aim] = [on, null];
            for (const each of moves()) if (on) each.play(); else each.pause();
            toggle.textContent = on ? "Pause" : "Play";
            say();
        };
        const hold = (k) => {
            run(false);
            for (const each of moves()) each.currentTime = ends[k] + each.effect.getTiming().delay;
            say();
        };
        const step = (by) => { // on to the end of the step that is under way, or of the next; back at once
            if (aim !== null) hold(aim);
            const k = (at() + (by < 0 || stands(at()) ? by : 0) + ends.length) % ends.length, way = ends[k] - now();
            if (by < 0 || way < 0 || still.matches) return hold(k);
            run(true);
            toggle.textContent = "Play";
            timer = setTimeout(hold, way, aim = k);
        };
        const button = (text, ariaLabel, onclick) => newElement("button", { type: "button", ariaLabel, title: ariaLabel, onclick }, text);
        const toggle = newElement("button", { type: "button", onclick: () => run(toggle.textContent === "Play") });
        const keys = { ArrowLeft: -1, ArrowRight: 1 };
        picture.prepend(newElement("span", { className: "steps", role: "group", ariaLabel: "The picture, step by step", onkeydown: (event) => {
            if (!keys[event.key]) return;
            event.stopPropagation(); // else they turn the page
            step(keys[event.key]);
        } }, button("\u25c2", "Step before", () => step(-1)), toggle, button("\u25b8", "Next step", () => step(1)), count));
        setInterval(() => plays && say(), 200);
        addEventListener("resize", () => plays || hold(at())); // the other drawing may be seen now
        run(!still.matches);
    }
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") document.querySelector("#menu[aria-expanded=true]")?.click();
        if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.target.closest?.("input, select, textarea, .scrolls")) return;
        const link = root.dataset.page && document.querySelector({ ArrowLeft: "a[rel=prev]", ArrowRight: "a[rel=next]" }[event.key] || "nothing");
        if (link) link.click();
        if (event.key !== "/") return;
        event.preventDefault();
        document.querySelector("header [type=search]").focus();
    });
    // The reader's marks of a page's questions, kept in this browser by a question's text: one that changes loses its mark.
    function questions() {
        const lists = [...document.querySelectorAll("#check-yourself > ol, details.questions > ol")], name = "questions of " + root.dataset.page;
        if (!lists.length) return;
        let marks = {};
        try { Object.assign(marks, JSON.parse(stored(name))); } catch (error) { /* not written by this page */ }
        const texts = [], buttons = [], said = newElement("span", { role: "status" });
        const clear = newElement("button", { type: "button", id: "clear", onclick: () => { marks = {}; kept(); } }, "Clear the marks");
        function kept() {
            const refused = stored(name, JSON.stringify(marks)) === null, count = (mark) => texts.filter((text) => mark ? marks[text] === mark : marks[text]).length;
            for (const [button, text, mark] of buttons) button.setAttribute("aria-pressed", String(marks[text] === mark));
            said.textContent = `${count()} of ${texts.length} questions done` + (count() ? `: ${count("knew")} known, ${count("again")} to look at again.` : ".") +
                (refused ? " This browser does not keep the marks." : "");
        }
        for (const question of lists.flatMap((list) => [...list.children])) {
            const text = question.textContent.trim(), number = texts.push(text), group = newElement("div", { className: "marks" });
            for (const [mark, words] of [["knew", "I knew it"], ["again", "Look again"]]) {
                const press = () => { marks[text] = marks[text] === mark ? undefined : mark; kept(); };
                buttons.push([newElement("button", { type: "button", ariaLabel: `${words}: question ${number}`, onclick: press }, words), text, mark]);
                group.append(buttons.at(-1)[0]);
            }
            question.append(group);
        }
        (lists[0].closest("details.questions") || lists[0]).before(newElement("p", { className: "marks" }, said, clear));
        kept();
    }
    addEventListener("DOMContentLoaded", () => {
        show();
        questions();
        copies();
        follow();
        fit();
        unfold();
        addEventListener("resize", fit);
        document.addEventListener("toggle", fit, true);
        const back = document.getElementById("origin"), from = new URLSearchParams(location.search).get("from") || "";
        if (back && /^[\w/-]+\.html$/.test(from) && from !== "index.html") {
            back.href = "../" + from;
            back.textContent = "← Back to " + from.replace(/(\/README)?\.html$/, "").split("/").pop().replace(/^(\d\d)_.*/, "chapter $1");
        }
        document.getElementById("theme").addEventListener("click", () => {
            theme = NAMES[(NAMES.indexOf(theme) + 1) % NAMES.length];
            stored("theme", theme);
            show();
        });
        for (const each of document.querySelectorAll(".walked")) each.addEventListener("click", (event) => {
            const walk = document.querySelector("iframe[name=tile-walk]");
            event.preventDefault();
            history.pushState(null, ""); // Back returns to the line
            walk.contentWindow.location.replace(each.href);
            walk.scrollIntoView();
        });
        const list = document.querySelector(".pages"), menu = document.getElementById("menu"); // the list lies over the page on a phone
        const unroll = (on) => {
            list.classList.toggle("shown", on);
            menu.ariaExpanded = String(on);
            list.scrollTop = list.querySelector(".current")?.offsetTop - 200;
        };
        menu?.addEventListener("click", () => unroll(!list.matches(".shown")));
        list?.addEventListener("click", ({ target }) => target.closest("a") && unroll(false));
        for (const picture of document.querySelectorAll("a.picture:not(:has(picture))")) picture.addEventListener("click", (event) => {
            if (matchMedia("(min-width: 40.01rem)").matches) return;
            event.preventDefault(); // the browser would show it as small again
            picture.ariaExpanded = String(picture.classList.toggle("large"));
        });
        document.querySelectorAll(".moves").forEach(steps);
        const current = document.querySelector(".pages a.current"), field = document.querySelector("header [type=search]");
        if (current) current.closest(".pages").scrollTop = current.offsetTop - 200;
        const search = () => ["lunr.min.js", "search-index.js", "search.js"].forEach((name) => document.head.append(newElement("script", { src: HERE + name, async: false })));
        if (document.getElementById("found")) search(); else field.addEventListener("focus", search, { once: true }); // the index is large
        let opened = []; // paper has the answers; the differences between rungs are too wide for it
        addEventListener("beforeprint", () => { opened = [...document.querySelectorAll("main details:not(.rungs):not([open])")].map((each) => Object.assign(each, { open: true })); });
        addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));
    });
})();
