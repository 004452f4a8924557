// What the explorers share: the theme, which the page around a frame decides; the state in the address; small helpers. Classic
// scripts, without fetch and modules: a browser refuses both from file://.
"use strict";
const byId = (id) => document.getElementById(id);
function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

const framed = window.parent !== window;
function setTheme(theme) { // by itself; in the site site.js sets the reader's
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themed"));
}
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
addEventListener("message", (event) => {
    if (framed && event.source === window.parent && event.data && /^(light|dark)$/.test(event.data.theme)) setTheme(event.data.theme);
});
if (framed) {
    document.documentElement.classList.add("frame");
    const tell = () => parent.postMessage({ height: document.documentElement.getBoundingClientRect().height + 8 }, "*");
    addEventListener("load", () => new ResizeObserver(tell).observe(document.body));
}

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
// "wall" there: the explorer is large, and without what a lecture does not need.
const asked = (url = location.href) => new URLSearchParams(new URL(url).hash.slice(1));
const readAddress = (url) => Object.fromEntries([...asked(url)].filter(([name]) => name !== "wall"));
let waiting = null, written = {}, wall = false;
const writeAddress = (state = written, hash = "#" + new URLSearchParams(state) + (wall ? "&wall" : "")) => {
    written = state;
    clearTimeout(waiting);
    waiting = setTimeout(() => history.replaceState(null, "", hash), 100);
    if (framed) parent.postMessage({ hash }, "*"); // the page's link to the full width
};

function setWall(on) {
    const zoom = Math.max(0.75, Math.min(1, innerWidth / 1900)); // it is laid out for 1920 pixels
    wall = on;
    document.documentElement.classList.toggle("wall", on);
    document.documentElement.style.cssText = on ? `zoom: ${zoom}; --high: ${innerHeight / zoom}px` : "";
    byId("lecture")?.setAttribute("aria-pressed", String(on));
    dispatchEvent(new Event("themed"));
}
setWall(asked().has("wall"));
addEventListener("hashchange", ({ newURL }) => setWall(asked(newURL).has("wall")));
addEventListener("resize", () => wall && setWall(true));
const button = (id, text, title, onclick) => element("button", { type: "button", id, title, onclick }, text);
addEventListener("DOMContentLoaded", () => {
    for (const link of document.querySelectorAll("nav.explorers a")) link.ariaCurrent = link.pathname === location.pathname ? "page" : null;
    const bars = document.querySelectorAll("body > .bar:has(~ .told)"), [picture, task] = [".told", ".try"].map((each) => document.querySelector(each));
    if (bars[0]) document.querySelector("h1").before(Object.assign(button("lecture", "Large", "Larger, for a lecture; key w", () => {
        setWall(!wall);
        writeAddress();
    }), { ariaPressed: String(wall) }));
    if (!framed && !matchMedia("(max-width: 40rem)").matches) return;
    // In a chapter and on a phone the figure comes first, with what its colours mean beside it.
    byId("notes")?.prepend(byId("key"));
    document.querySelector("h1")?.after(picture, ...(task ? [task] : []), element("details", { id: "settings", open: !framed }, element("summary", {}, "Settings"), ...bars, ...(framed ? document.querySelectorAll("body > p:has(small)") : [])));
});

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
            [at.labels[columns + 1 + row], ...at.items.slice(row * columns, row * columns + columns).map((item) => item || element("i", { className: "none" }))]));
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

// One legend for all explorers: a kind of bar or cell has the class of a meaning, whose colour is explorer.css's.
const legend = (id, entries) => byId(id).replaceChildren(...entries.map(([kind, words]) => element("span", {}, element("i", { className: `swatch ${kind}` }), words)));

// A story: captions {at, title, text, event} by their places in the figure. `place` says where the figure is, `move` moves it. Of what an
// explorer has found it calls tell(captions), and told() where the place has changed. Play goes from caption to caption, between two of
// them step by step, unless the reader wants less motion, and ends at the last. A caption whose place is passed is pale.
const READ = 5000, BEGUN = 1000, STEP = 400, WAY = 2000; // ms: for a caption, the one where Play begins, a step, all steps to the next caption at most
const still = matchMedia("(prefers-reduced-motion: reduce)"), story = { captions: [], unit: "", timer: null, reserved: false };
const captionNow = () => story.captions.findLastIndex(({ at }) => at <= story.place());
const toCaption = (k) => story.captions[k] && story.move(story.captions[k].at);
function beside(by) { // to the caption before or behind the place
    const now = captionNow(), isBetween = now >= 0 && story.captions[now].at !== story.place();
    play(false);
    toCaption(Math.max(0, now + by + (by < 0 && isBetween)));
}
const none = () => ({ title: "The story", text: `Play, or choose one of the ${story.captions.length} captions.` });
function write({ title, text, at, end = at + 1 }) { // it tells the steps at to end
    const said = [title, at === undefined || !story.unit ? "" : end > at + 1 ? ` steps ${at + 1}-${end}` : ` ${story.unit} ${at + (story.unit === "step")}`, typeof text === "string" ? text : text()];
    const caption = byId("caption");
    if (caption.textContent !== said.join("")) // else it would be read aloud again
        caption.replaceChildren(element("strong", {}, said[0]), element("small", {}, said[1]), element("br"), said[2]);
}
function told() {
    const now = captionNow();
    write(story.captions[now] || none());
    byId("caption").className = story.captions[now]?.at === story.place() ? "" : "passed";
    [...byId("captions").children].forEach((each, k) => { each.ariaPressed = String(k === now && !(story.place() >= story.captions[k].end)); });
    if (story.timer === null) byId("play").textContent = "Play";
    if (!story.reserved) reserve();
}
function reserve() { // the room of the longest caption, so that the figure does not move
    const caption = byId("caption");
    if (captionNow() < 0) return;
    story.reserved = true;
    Object.assign(caption, { ariaLive: "off", style: "min-height: 0" });
    const heights = story.captions.map((each) => { write(each); return caption.offsetHeight; });
    Object.assign(caption, { ariaLive: "polite", style: `min-height: ${Math.max(0, ...heights)}px` });
    told();
}
function tell(captions) {
    story.captions = captions;
    const buttons = byId("captions");
    if (buttons.children.length !== captions.length) // else one of them keeps the focus
        buttons.replaceChildren(...captions.map((_, k) => element("button", { type: "button", onclick: () => { play(false); toCaption(k); } }, String(k + 1))));
    captions.forEach(({ title }, k) => Object.assign(buttons.children[k], { title, ariaLabel: `Caption ${k + 1}: ${title}` }));
    story.reserved = false;
    told();
}
function goOn(read = READ) {
    const at = story.place(), next = story.captions.find((each) => each.at > at), isCaption = story.captions.some((each) => each.at === at);
    story.timer = setTimeout(() => {
        if (!next) return play(false);
        story.move(still.matches ? next.at : Math.min(next.at, at + 1));
        goOn();
    }, (isCaption || still.matches ? read : Math.min(STEP, WAY / (next ? next.at - at : 1))) / byId("speed").value);
}
function play(on) {
    clearTimeout(story.timer);
    story.timer = null;
    if (on && captionNow() === story.captions.length - 1) toCaption(0); // it writes "Play"
    Object.assign(byId("play"), { textContent: on ? "Pause" : "Play", ariaPressed: String(on) });
    if (on) goOn(BEGUN); // the reader has read this caption
}
// By steps: of the figure, where captions are bound to some of them, else from caption to caption.
const lastStep = () => story.last ? story.last() : story.captions.at(-1).at;
function step(to) {
    play(false);
    story.move(Math.max(0, Math.min(lastStep(), to)));
}
function settings() { // unfolded, where they are folded, and reached
    const folded = byId("settings"), box = folded || document.querySelector("body > .bar");
    if (folded) folded.open = !folded.open;
    if (!folded || folded.open) box.querySelector("select:enabled, input")?.focus();
}
// The keys of all explorers. A control that has the focus keeps the keys that operate it; a list those up and down: after s the others move the figure.
const KEYS = { p: () => play(story.timer === null), b: () => beside(-1), n: () => beside(1), w: () => byId("lecture").click(), s: settings, Escape: () => wall && KEYS.w() };
const MOVING = { ArrowLeft: () => step(story.place() - 1), ArrowRight: () => step(story.place() + 1), Home: () => step(0), End: () => step(Infinity) };
const keyOf = ({ key, target }) => target.matches("select") && /Left|Right/.test(key) ? MOVING[key] : target.matches("select, pre, canvas, input:not([type=range])") ? null : KEYS[key] || (key === " " ? !target.matches("a, button, summary, input") && KEYS.p : !target.matches(".wide, .track .bars ~ input, #keys") && MOVING[key]);
const TOLD = { Space: "plays", "\u2190 \u2192": "one step", "Home End": "first, last", "b n": "caption before, next", s: "settings", w: "large", Esc: "not large" };
function startStory(explorer) {
    Object.assign(story, explorer);
    const speed = element("select", { id: "speed", ariaLabel: "Speed" });
    options(speed, ["0.5", "1", "2", "4"].map((each) => [each, `${each}x`]));
    speed.value = "1";
    const [earlier, later] = [["earlier", "\u25c2", "Caption before", "b"], ["later", "\u25b8", "Next caption", "n"]].map(([id, text, ariaLabel, key]) => Object.assign(button(id, text, `${ariaLabel}; key ${key}`, KEYS[key]), { ariaLabel }));
    const keys = Object.entries(TOLD).flatMap(([key, does]) => [element("kbd", {}, key), ` ${does} `]);
    byId("story").prepend(element("div", { id: "controls" }, element("b", {}, "Story"), button("play", "Play", "The story; key p", KEYS.p), speed, element("div", { id: "numbers" }, earlier, element("div", { id: "captions", role: "group", ariaLabel: "Captions" }), later),
        element("details", { className: "keys" }, element("summary", {}, ...keys.slice(0, 4), element("u", {}, "all keys")), ...keys.slice(4))), element("p", { id: "caption", ariaLive: "polite" }));
    for (const kind of ["resize", "themed"]) addEventListener(kind, reserve);
    addEventListener("keydown", (event) => {
        const key = keyOf(event);
        if (event.defaultPrevented || !key || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        key();
    });
}
