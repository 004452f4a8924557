// Of each page: the theme, the list of pages on a phone, tables that scroll by themselves, and the frames of explorers. A classic
// script, loaded in the head, so that a dark page is never light first.
"use strict";
(function () {
    const NAMES = ["automatic", "light", "dark"], root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
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
        for (const frame of frames()) frame.contentWindow.postMessage({ theme: root.dataset.theme }, "*");
    }
    show();
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
    // The reader's marks of a page's questions, kept in this browser by a question's text: one that changes loses its mark.
    function questions() {
        const lists = [...document.querySelectorAll("#check-yourself > ol, details.questions > ol")], name = "questions of " + root.dataset.page;
        if (!lists.length) return;
        const make = (kind, properties, ...inside) => { const made = Object.assign(document.createElement(kind), properties); made.append(...inside); return made; };
        let marks = {};
        try { Object.assign(marks, JSON.parse(stored(name))); } catch (error) { /* not written by this page */ }
        const texts = [], buttons = [], said = make("span", { role: "status" });
        const clear = make("button", { type: "button", id: "clear", onclick: () => { marks = {}; kept(); } }, "Clear the marks");
        function kept() {
            const refused = stored(name, JSON.stringify(marks)) === null, count = (mark) => texts.filter((text) => mark ? marks[text] === mark : marks[text]).length;
            for (const [button, text, mark] of buttons) button.setAttribute("aria-pressed", String(marks[text] === mark));
            said.textContent = `${count()} of ${texts.length} questions done` + (count() ? `: ${count("knew")} known, ${count("again")} to look at again.` : ".") +
                (refused ? " This browser does not keep the marks." : "");
        }
        for (const question of lists.flatMap((list) => [...list.children])) {
            const text = question.textContent.trim(), number = texts.push(text), group = make("div", { className: "marks" });
            for (const [mark, words] of [["knew", "I knew it"], ["again", "Look again"]]) {
                const press = () => { marks[text] = marks[text] === mark ? undefined : mark; kept(); };
                buttons.push([make("button", { type: "button", ariaLabel: `${words}: question ${number}`, onclick: press }, words), text, mark]);
                group.append(buttons.at(-1)[0]);
            }
            question.append(group);
        }
        (lists[0].closest("details.questions") || lists[0]).before(make("p", { className: "marks" }, said, clear));
        kept();
    }
    addEventListener("DOMContentLoaded", () => {
        show();
        questions();
        unfold();
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
        if (matchMedia("(max-width: 56rem)").matches) document.querySelector(".pages").open = false;
        const current = document.querySelector(".pages a.current");
        if (current) current.closest(".pages").scrollTop = current.offsetTop - 200;
        for (const wide of document.querySelectorAll("main pre, .wide, main .math")) // reached by the keyboard where it scrolls
            if (wide.scrollWidth > wide.clientWidth) { wide.tabIndex = 0; wide.setAttribute("role", "region"); wide.setAttribute("aria-label", "scrolls sideways"); }
        let opened = []; // paper has the answers; the differences between rungs are too wide for it
        addEventListener("beforeprint", () => { opened = [...document.querySelectorAll("main details:not(.rungs):not([open])")].map((each) => Object.assign(each, { open: true })); });
        addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));
    });
})();
