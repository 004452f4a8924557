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
    addEventListener("message", (event) => { // a frame says how high it is, once it can hear
        for (const frame of frames()) {
            if (frame.contentWindow !== event.source || !(event.data && event.data.height > 0)) continue;
            frame.style.height = Math.min(event.data.height, 4000) + "px";
            if (performance.now() < 5000 && aimed()) aimed().scrollIntoView(); // the frame above it grew after the jump
            frame.contentWindow.postMessage({ theme: root.dataset.theme }, "*");
        }
    });
    addEventListener("DOMContentLoaded", () => {
        show();
        unfold();
        document.getElementById("theme").addEventListener("click", () => {
            theme = NAMES[(NAMES.indexOf(theme) + 1) % NAMES.length];
            stored("theme", theme);
            show();
        });
        if (matchMedia("(max-width: 56rem)").matches) document.querySelector(".pages").open = false;
        const current = document.querySelector(".pages a.current");
        if (current) current.closest(".pages").scrollTop = current.offsetTop - 200;
        for (const wide of document.querySelectorAll("main pre, .wide, main .math")) // reached by the keyboard where it scrolls
            if (wide.scrollWidth > wide.clientWidth) { wide.tabIndex = 0; wide.setAttribute("role", "region"); wide.setAttribute("aria-label", "scrolls sideways"); }
        addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach((each) => { each.open = !each.matches(".rungs"); }));
    });
})();
