// Pipeline: when the copies, waits and products of a block happen. The order is the kernel's: window.PIPELINE has the turns of a block by
// its trace, {turns: [[[array, tile], ...], ...], stages, Q: waited for with the first tiles}, or what its {producer, consumer} does per tile. The times are the reader's.
"use strict";
const FIELDS = { stages: 2, latency: 10, product: 8, softmax: 3, skew: 1, consumers: 3 }, TURNS = 8, TILES = 5, LATEST = 60;
const KINDS = { copy: "a copy is under way", use: "a tile is read", product: "product", softmax: "softmax", wait: "waits for a copy", empty: "waits for an empty stage",
    barrier: "waits at a barrier", hazard: "a read meets a write" };
const START = { early: { skew: 5 }, parity: { latency: 40 } }; // of a fault: other times than usual, with which a read meets a write
const label = (words) => words.split(":")[0].replace(/,| and/g, ""), tileOf = (words) => (words.match(/[KV]\d+/) || words.match(/P\d+/))[0];
const fitLabels = () => { // where a bar has no room for its words, its tile alone, or nothing
    for (const less of [({ title }) => tileOf(title), () => ""])
        [...byId("line").querySelectorAll(".span")].filter((bar) => bar.scrollWidth > bar.clientWidth).forEach((bar) => { bar.textContent = less(bar); });
};
const name = ([array, tile]) => array + tile;
let kernel = null, set = null, moved = [], shown = null, layout = "", scale = 0, moment = 0; // scale: the units of the axis, which grows where they do not suffice, until another kernel is chosen

// What a program consists of. `does` happens at once, or `after` so long; `needs` is waited for until `of` have done it; `takes` is time.
const wait = (needs, of, words, kind = "wait") => ({ kind, needs, of, words }), release = (words) => ({ does: `${words} read` });
const barrier = (words) => ({ kind: "barrier", words, does: words, needs: words, of: 2 });
const copy = (item) => ({ copies: item, does: `${item.words} there`, after: set.latency + moved[item.k] });
const product = (reads, [array, tile], more = 0) => ({ kind: "product", reads, takes: set.product + more, words: array === "K" ? `Q K${tile}\u1d40: S${tile} = Q K${tile}\u1d40` : `P${tile} V${tile}: O += P${tile} V${tile}` });
const softmax = (tile) => ({ kind: "softmax", takes: set.softmax, words: `P${tile}: softmax of S${tile}` });

// cp.async: before a turn a warp waits for its part of the copies and meets the others at a barrier; then it starts the copy that takes
// the stage of the turn before. With a single stage they meet before the copy, too.
function warps({ turns, Q }) {
    const items = turns.slice(0, TURNS).map((turn, k) => ({ k, words: (k === 0 && Q ? "Q, " : "") + turn.map(name).join(" and "), lane: `stage ${k % set.stages}` }));
    const program = (slower) => items.flatMap((item, k) => {
        const turn = turns[k], broken = (kind) => set.fault === kind && turn[0][0] === "K", ahead = items[k + set.stages - 1];
        const meet = (words, copies) => broken("early") ? [...copies, barrier(words)] : [barrier(words), ...copies];
        return [...(set.stages === 1 ? meet(`barrier: before the copy of ${item.words}`, [copy(item)]) : k === 0 ? items.slice(0, set.stages - 1).map(copy) : []),
            ...(broken("unwaited") && (k > 0 || Q) ? [] : [wait(`${item.words} there`, 2, `wait ${name(turn[0])}: for the copy of ${item.words}`)]),
            ...meet(`barrier: before a warp reads ${item.words}`, set.stages > 1 && ahead ? [copy(ahead)] : []),
            ...turn.flatMap((part, at) => [product(item.words, part, at === 0 ? slower : 0), ...(part[0] === "K" ? [softmax(part[1])] : [])])];
    });
    return [items, { "fastest warp": program(0), "slowest warp": program(set.skew) }];
}

// mbarriers: the producer waits until a stage is empty, a consumer until it is full. A phase of a barrier is one round of the stages.
function mbarriers({ producer, consumer }) {
    const items = range(2 * TILES).map((k) => ({ k, words: name(["KV"[k % 2], k >> 1]), lane: `${"KV"[k % 2]}, stage ${(k >> 1) % set.stages}` }));
    const per = (operations, make) => range(TILES).flatMap((tile) => operations.flatMap(([act, array]) => make(act, array, tile, Math.floor(tile / set.stages) % 2)));
    const loads = per(producer, (act, array, tile, parity) => act === "load" ? copy(items[2 * tile + (array === "V")]) : tile < set.stages ? [] :
        wait(`${name([array, tile - set.stages])} read`, set.consumers,
            `empty ${name([array, tile - set.stages])}: waits until ${name([array, tile - set.stages])} is read, parity ${1 - parity}`, "empty"));
    const computes = () => per(consumer, (act, array, tile, parity) => {
        const words = name([array, tile]), broken = (kind) => set.fault === kind && array === "K";
        if (act === "new_maxima") return softmax(tile);
        if (act === "multiply") return [...(broken("released") ? [release(words)] : []), product(words, [array, tile])];
        if (act === "release") return broken("released") ? [] : release(words);
        if (broken("parity") && parity === 1) return []; // parity 0 is that of the phase before, which is over
        return wait(`${words} there`, 1, `full ${words}: waits for the copy of ${words}, parity ${broken("parity") ? 0 : parity}`);
    });
    return [items, { producer: loads, ...Object.fromEntries(range(set.consumers).map((c) => [`consumer ${c}`, [{ takes: c * set.skew }, ...computes()]])) }];
}

// Runs the programs; then a read meets a write where the times of a stage's copies and reads overlap.
function run([items, programs]) {
    const lanes = Object.fromEntries([...Object.keys(programs), ...items.map(({ lane }) => lane).sort()].map((lane) => [lane, []])), done = {}, hazards = [];
    const put = (lane, kind, words, from, to) => { if (kind && to > from) lanes[lane].push({ kind, words, from, to }); };
    const left = Object.entries(programs).map(([lane, program]) => ({ lane, at: 0, program: [...program] }));
    for (let moves = true; moves;) {
        moves = false;
        for (const who of left) while (who.program.length) {
            const [operation] = who.program, { kind, words, does, needs, of, takes = 0, after = 0, copies, reads } = operation;
            if (does && !operation.did) (done[does] ||= []).push(who.at + after);
            operation.did = true;
            if (needs && (done[needs] || []).length < of) break;
            const from = who.at;
            who.at = needs ? Math.max(from, ...done[needs]) : from + takes;
            put(who.lane, kind, words, from, who.at);
            if (copies) Object.assign(copies, { issued: Math.min(copies.issued ?? from, from), ready: Math.max(copies.ready ?? 0, from + after) });
            for (const item of items.filter((each) => each.words === reads)) Object.assign(item, { from: Math.min(item.from ?? from, from), to: Math.max(item.to ?? 0, who.at) });
            who.program.shift();
            moves = true;
        }
    }
    for (const item of items) {
        const next = items.find(({ k, lane }) => k > item.k && lane === item.lane);
        put(item.lane, "copy", `copy ${item.words}`, item.issued, item.ready);
        put(item.lane, "use", `read ${item.words}`, item.from, item.to);
        for (const [write, from, to] of [[item, item.from, Math.min(item.ready, item.to)], ...(next ? [[next, next.issued, item.to]] : [])]) if (from < to) {
            hazards.push([item.words, write.words, from, to]);
            put(item.lane, "hazard", `the read of ${item.words} meets the copy of ${write.words}`, from, to);
        }
    }
    return { items, lanes, hazards, end: Math.max(...Object.values(lanes).flat().map(({ to }) => to)) };
}

function draw() {
    const { items, lanes } = shown, at = (time) => `${100 * time / scale}%`, now = JSON.stringify([Object.keys(lanes), items.map(({ lane }) => lane)]);
    if (now !== layout) byId("line").replaceChildren(element("div", { className: "track", id: "units", ariaHidden: "true" }, element("b", {}, "units"), element("div")), ...Object.keys(lanes).map((lane) => element("div", { className: "track" }, element("b", {}, lane), element("div", {}, element("div", { className: "bars" }),
        ...items.filter((item) => item.lane === lane).map(({ k, words }) => element("input", { type: "range", id: `arrival${k}`, min: 0, ariaLabel: `arrival of ${words}` }))))));
    layout = now;
    const every = [10, 20, 50, 100].find((each) => scale / each <= (innerWidth < 640 ? 7 : 20)) || 200;
    byId("line").style.cssText = `--lanes: ${Object.keys(lanes).length}; --unit: ${at(every)}`;
    byId("units").lastChild.replaceChildren(...range(Math.floor(scale / every)).map((k) => element("span", { className: "unit", style: `left: ${at(every * k)}` }, String(every * k))));
    Object.values(lanes).forEach((bars, k) => byId("line").children[k + 1].querySelector(".bars").replaceChildren(...bars.map(({ kind, words, from, to }) =>
        element("span", { className: `span ${kind}`, ariaHidden: "true", title: `${words}: ${from} to ${to}`, style: `left: ${at(from)}; width: ${at(to - from)}` }, label(words))), element("i", { className: "cursor" })));
    fitLabels();
    const drawn = Object.entries(KINDS).filter(([kind]) => byId("line").querySelector(`.span.${kind}`));
    legend("key", drawn);
    for (const { k, ready } of items) Object.assign(byId(`arrival${k}`), { max: scale, value: ready });
    byId("bar").replaceChildren("Point at a bar, or touch it, to read what it is. ", element("small", {}, "The table below has every bar.")); // until one is touched
}

function moveTo(time) {
    moment = time;
    for (const each of document.querySelectorAll(".cursor")) each.style.left = `${100 * time / scale}%`;
    told();
}
// Captions by the bars of the figure: of each kind the first, then what is behind a product, and the end.
function captionsOf() {
    const units = (count) => `${count} unit${count === 1 ? "" : "s"}`, time = ({ from, to }) => `from unit ${from} to unit ${to}`, named = (lane) => /warp|producer/.test(lane) ? `the ${lane}` : lane;
    const bars = Object.entries(shown.lanes).flatMap(([lane, those]) => those.map((bar) => ({ lane, ...bar, long: bar.to - bar.from, who: named(lane), item: bar.words.split(": ").at(-1) })));
    const first = (kind, test = () => true) => bars.filter((bar) => bar.kind === kind && test(bar)).sort((a, b) => a.from - b.from)[0], found = [], upper = (text) => text.replace(/^./, (letter) => letter.toUpperCase());
    const covers = (bar) => first("copy", (copy) => copy.from < bar.to && copy.to > bar.from), last = bars.reduce((a, b) => b.to > a.to ? b : a), [waiter, [most]] = Object.entries(shown.waits).sort(([, [a]], [, [b]]) => b - a)[0];
    const hidden = shown.hazards.length ? undefined : first("product", covers); // else it may read what is not there
    const isBefore = set.fault === "unwaited" && !kernel.Q; // the kernel's first wait
    for (const [event, bar, title, text] of [
        ["copy", first("copy"), "The first copy", ({ words, long }) => `${words.replace("copy ", "")}: the copy takes ${units(long)}, and goes on by itself while warps do other work.`],
        ["wait", first("wait"), isBefore ? "The wait before the loop" : "The first wait for a copy", (bar, { who, words } = bar) => `${upper(who)} waits ${time(bar)} ${words.split(/: (?:waits )?/)[1].split(",")[0]}` +
            (isBefore ? " and Q. The fault removes only later waits for K." : ": until then it has nothing to compute.")],
        ["product", first("product"), "The first product", ({ who, words }) => `${upper(who)} waits no longer, and computes ${words.split(": ")[1]}.`],
        ["hazard", first("hazard"), "A read meets a write", ({ words }) => `${upper(words)}: nothing orders the two, and either may come first.`],
        ["softmax", first("softmax"), "The softmax", ({ who, words, long }) => `${upper(who)} takes ${units(long)} for the ${words.split(": ")[1]}. It needs no new tile.`],
        ["hidden", hidden, "A copy behind a product", (bar) => `The copy of ${covers(bar).words.replace("copy ", "")} is under way while ${bar.who} computes ${bar.words.split(": ")[1]}: this part of its latency costs nothing.`],
        ["barrier", first("barrier"), "A wait at a barrier", (bar, { who, words } = bar) => `${upper(who)} waits ${time(bar)} for the other warp. The barrier comes ${words.split(": ")[1]}.`],
        ["empty", first("empty"), "A wait for an empty stage", (bar, { who, words } = bar) => `${upper(who)} waits ${time(bar)} until ${words.match(/until (.*?),/)[1]}: every stage holds a tile that is still needed.`],
        ["end", last, "The end", ({ to }) => `All is done after ${to} units. Of these ${named(waiter)} has waited ${most} for ${waiter === "producer" ? "empty stages" : "copies"}.`]]) {
        const at = bar && range(bar.long).map((k) => event === "end" ? bar.to : bar.from + k).find((time) => found.every((each) => each.at !== time));
        if (at !== undefined) found.push({ event, at, title, text: text(bar), bar });
    }
    return found.sort((a, b) => a.at - b.at);
}

function show(dragging) {
    const fault = PIPELINE.faults.find((each) => each.kernel === byId("kernel").value && each.kind === byId("fault").value);
    set = { fault: byId("fault").value };
    for (const id of Object.keys(FIELDS)) byId(id).value = set[id] = Math.max(byId(id).min, Math.min(byId(id).max, Math.round(byId(id).value) || 0));
    moved = moved.map((by) => Math.max(-set.latency, Math.min(LATEST, Math.round(by) || 0)));
    shown = run(kernel.turns ? warps(kernel) : mbarriers(kernel));
    if (!dragging && scale < shown.end + 3) scale = 20 * Math.ceil(1.1 * shown.end / 20); // as long as a hand drags, the axis stays as it is
    const total = (bars, kind) => bars.filter((bar) => bar.kind === kind).reduce((sum, { from, to }) => sum + to - from, 0);
    shown.waits = Object.fromEntries(Object.entries(shown.lanes).filter(([lane]) => !lane.includes("stage")).map(([lane, bars]) => [lane, [total(bars, "wait") + total(bars, "empty"), total(bars, "barrier")]]));
    byId("said").textContent = `${kernel.turns ? `${shown.items.length} turns` : `${TILES} tiles`} take ${shown.end} units: ` + Object.entries(shown.waits).map(([who, [copies, barriers]]) =>
        `${who} waits ${copies} for ${who === "producer" ? "empty stages" : "copies"}` + (kernel.turns ? `, ${barriers} at barriers` : "")).join("; ") + ".";
    fillTable(byId("table"), [["who, or where", "what", "from", "to"], ...Object.entries(shown.lanes).flatMap(([lane, bars]) => bars.map(({ words, from, to }) => [lane, words, from, to]))]);
    byId("broken").hidden = !fault;
    byId("own").textContent = kernel.stages;
    if (fault) for (const id of ["file", "change", "says"]) byId(id).textContent = fault[id];
    const [first] = shown.hazards;
    byId("meets").textContent = first ? `The read of ${first[0]} meets the copy of ${first[1]}, from ${first[2]} to ${first[3]}. Places where a read meets a write: ${shown.hazards.length}.` :
        "With these times no read meets a write, and the result may be right. The simulated device stops all the same: it judges by the program's order, and nothing orders the two. " +
        "Change the times, or move an arrival, until they meet.";
    draw();
    tell(captionsOf());
    moveTo(moment);
    writeAddress({ kernel: byId("kernel").value, ...set, moved: moved.join() });
}

function choose(wanted, given = {}) {
    const named = wanted in PIPELINE.kernels ? wanted : Object.keys(PIPELINE.kernels)[0], faults = PIPELINE.faults.filter((fault) => fault.kernel === named);
    if (kernel !== PIPELINE.kernels[named]) scale = 0;
    kernel = PIPELINE.kernels[byId("kernel").value = named];
    options(byId("fault"), [["", "none"], ...faults.map(({ kind, words }) => [kind, words])]);
    byId("fault").value = faults.some(({ kind }) => kind === given.fault) ? given.fault : "";
    for (const [id, usual] of Object.entries({ ...FIELDS, stages: kernel.stages, ...START[byId("fault").value] })) byId(id).value = given[id] ?? usual;
    byId("consumers").parentElement.hidden = Boolean(kernel.turns);
    byId("skewWords").textContent = kernel.turns ? "The slowest warp takes longer, per turn, by" : "Each consumer starts later by";
    byId("page").href = "../" + kernel.page;
    byId("source").textContent = kernel.turns ? "a trace of the kernel on the simulated device; a turn lies between two barriers" : "the kernel's text: of each tile its waits, copies, products and releases. At d 128 it has two consumers";
    moved = range(kernel.turns ? TURNS : 2 * TILES).map((k) => +(given.moved || "").split(",")[k]);
    play(false);
    show();
    moveTo((story.captions.find(({ event }) => event === "hazard") || story.captions[0]).at);
}

startStory({ unit: "unit", place: () => moment, move: moveTo, last: () => shown.end });
options(byId("kernel"), Object.entries(PIPELINE.kernels).map(([each, { title }]) => [each, title]));
byId("kernel").addEventListener("change", (event) => choose(event.target.value));
byId("reset").addEventListener("click", () => { clearNotes(); scale = 0; choose(byId("kernel").value); });
byId("fault").addEventListener("change", ({ target }) => choose(byId("kernel").value, { fault: target.value }));
for (const id of Object.keys(FIELDS)) byId(id).addEventListener("change", () => show());
for (const kind of ["input", "change"]) byId("line").addEventListener(kind, ({ target }) => {
    const k = +target.id.replace("arrival", "");
    moved[k] = target.value - shown.items[k].issued - set.latency;
    show(kind === "input");
});
for (const kind of ["resize", "themed"]) addEventListener(kind, () => shown && draw());
byId("line").addEventListener("pointerover", ({ target }) => { if (target.title) byId("bar").textContent = target.title; });
choose(readAddress().kernel, readAddress());
