// What the explorers share: the theme, which the page around a frame decides; the state in the address; small helpers. Classic
// scripts, without fetch and modules: a browser refuses both from file://.
"use strict";
const byId = (id) => document.getElementById(id);
function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

const framed = window.parent !== window, dark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themed"));
}
const chosenTheme = () => {
    let stored = null;
    try { stored = localStorage.getItem("theme"); } catch (error) { /* not from a file, in this browser */ }
    return stored === "light" || stored === "dark" ? stored : dark.matches ? "dark" : "light";
};
document.documentElement.dataset.theme = chosenTheme();
dark.addEventListener("change", () => setTheme(chosenTheme()));
addEventListener("message", (event) => {
    if (framed && event.source === window.parent && event.data && /^(light|dark)$/.test(event.data.theme)) setTheme(event.data.theme);
});
if (framed) {
    document.documentElement.classList.add("frame");
    const tell = () => parent.postMessage({ height: document.documentElement.getBoundingClientRect().height + 8 }, "*");
    addEventListener("load", () => new ResizeObserver(tell).observe(document.body));
} else addEventListener("DOMContentLoaded", () => document.body.prepend(element("a", { href: "../index.html", className: "home" }, "Back to the book")));

// What a field does not take is said beside it. The explorers' own listeners come later, and put there what it takes.
const clearNotes = () => document.querySelectorAll(".note").forEach((note) => note.remove());
addEventListener("change", ({ target }) => {
    clearNotes();
    if (!target.matches("input") || target.value && target.validity.valid) return;
    const { min, max, step, title } = target, multiple = step > 1 ? `, a multiple of ${step}` : "";
    const wanted = title || (step === "any" ? "a number: an empty field counts as 0" : `a whole number from ${min} to ${max}${multiple}`);
    target.closest("label, figure").append(element("small", { className: "note", role: "alert" }, `Enter ${wanted}.`));
}, true);

// The state lives in the address, behind its #: name=value&name=value. A browser refuses many changes in a short time: the last counts.
const readAddress = (url = location.href) => Object.fromEntries(new URLSearchParams(new URL(url).hash.slice(1)));
let waiting = null;
const writeAddress = (state, hash = "#" + new URLSearchParams(state)) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => history.replaceState(null, "", hash), 100);
    if (framed) parent.postMessage({ hash }, "*"); // the page's link to the full width
};

// A table of rows of texts, the first of which is its head.
function fillTable(table, [head, ...rows]) {
    const row = (cells, kind) => element("tr", {}, ...cells.map((cell) => element(kind, kind === "th" ? { scope: "col" } : {}, String(cell))));
    table.replaceChildren(element("thead", {}, row(head, "th")), element("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
}
const range = (count) => [...Array(count).keys()];
// "0-3,8" as [[0, 3], [8, 8]].
const spans = (text) => text.split(",").map((part) => part.split("-").map(Number)).map(([from, to = from]) => [from, to]);
// [0, 1, 3] as "0-1,3".
const runs = (numbers) => numbers.sort((a, b) => a - b).map((n, k) => numbers[k - 1] === n - 1 ? numbers[k + 1] === n + 1 ? "" : `-${n}` : `,${n}`).join("").slice(1);
const options = (select, pairs) => select.replaceChildren(...pairs.map(([value, text]) => element("option", { value }, text)));

// A grid of buttons: arrow keys move in it, and moving to one, by pointer or key, chooses it. A click or Enter pins the choice: the way to
// another figure changes nothing then. The next one on the same button frees it.
// cells: [text, name, class, style] or null; heads: of the columns; sides: of the rows.
let pinned = false;
function grid(id, heads, sides, cells, chosen, choose) {
    const at = byId(id), columns = heads.length, shape = columns + cells.map((cell) => cell ? "x" : "-").join("");
    if (!at.items) for (const kind of ["pointerenter", "focus", "click"]) at.addEventListener(kind, ({ target }) => {
        if (!at.items.includes(target) || pinned && kind !== "click") return;
        pinned = kind === "click" && !(pinned && target.ariaPressed === "true");
        document.body.classList.toggle("pinned", pinned);
        at.choose(at.items.indexOf(target));
    }, true);
    if (at.shape !== shape) {
        at.items = cells.map((cell) => cell && element("button", { type: "button" }));
        at.labels = ["", ...heads, ...sides].map(() => element("i", { ariaHidden: "true" }));
        at.replaceChildren(...at.labels.slice(0, columns + 1), ...sides.flatMap((_, row) =>
            [at.labels[columns + 1 + row], ...at.items.slice(row * columns, row * columns + columns).map((item) => item || element("i"))]));
        at.style.gridTemplateColumns = `auto repeat(${columns}, minmax(0, 1fr))`;
    }
    at.onkeydown = (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
        let k = at.items.indexOf(event.target) + step;
        while (at.items[k] === null) k += step;
        if (step) event.preventDefault();
        if (at.items[k]) { at.items[k].focus(); at.choose(k); }
    };
    Object.assign(at, { shape, choose });
    ["", ...heads, ...sides].forEach((text, k) => { at.labels[k].textContent = text; });
    const reached = cells[chosen] ? chosen : cells.findIndex(Boolean); // by the tab key
    cells.forEach((cell, k) => cell && Object.assign(at.items[k], { textContent: cell[0], ariaLabel: cell[1], className: cell[2] || "", style: cell[3] || "",
        ariaPressed: String(k === chosen), tabIndex: k === reached ? 0 : -1 }));
}
