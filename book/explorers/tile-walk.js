// Tile walk: replays the steps that walk.py made of a trace. window.STEPS lists the kernel files, window.WALK is one file's data,
// {page, rectangles, sources, masks: {none: {command, launches}, causal: ...}}.
"use strict";
const ACTIONS = ["load", "copy", "store", "add", "read from shared memory", "load", "store", "copy by the TMA", "multiply"];
const SAID = ["load # to registers", "copy # to shared memory (cp.async)", "store #", "add to #", "read # from shared memory", "", "", "copy # to shared memory (TMA)",
    "multiply # from shared memory (wgmma)"];
const [LOAD, COPY, STORE, ADD, USE, SHARED_LOAD, SHARED_STORE, BULK_LOAD, MULTIPLY] = ACTIONS.keys();
const [NEVER, LATER, BEFORE, UNDER_WAY, HELD, NOW, WRITTEN, MASKED, MADE] = range(9), COMPUTED = -1, EMPTY = 0; // a place holds an array, or a copy of it is under way: -1 - array
const MEANING = [["other", "never touched, or padding"], ["untouched", "not yet touched"], ["touched", "touched by now"], ["coming", "asked for, not yet seen as arrived"], ["loaded", "in shared memory"], ["read", "read in this step"],
    ["written", "written in this step"], ["masked", "masked: never loaded"], ["made", "computed by the block, in shared memory"]]; // of a cell's state
const MOST_ROWS = 5, PHASES = { copy: "copy to shared memory", load: "load to registers", compute: "compute", scale: "multiply by the scale", softmax: "softmax: shuffles and votes", store: "store", wait: "wait", barrier: "barrier of the block", phase: "a phase is over" };
let walk = null, run = null, launch = null, at = 0, warp = "all", shown = null, shownPhases = null;
let kinds = []; // of the bars, for the legend

function* words(rectangles, columns) {
    for (const [rows, cols] of rectangles)
        for (const [row, lastRow] of spans(rows)) for (let r = row; r <= lastRow; r++)
            for (const [col, lastCol] of spans(cols)) for (let c = col; c <= lastCol; c++) yield r * columns + c;
}
const wordsPerLine = (count) => count > 192 * 168 ? 384 : count > 128 * 84 ? 192 : 128; // of shared memory; they divide 384 pixels
const among = (warps, w) => spans(warps).some(([from, to]) => from <= w && w <= to), inWarp = (warps) => warp === "all" || among(warps, +warp);

// What each word of each array is after step `at`: its state, and of shared memory whose words lie there.
function compute() {
    const arrays = launch.arrays, cells = arrays.map(([, rows, columns]) => new Int8Array(rows * columns).fill(NEVER));
    const holds = new Int16Array(cells[0].length).fill(EMPTY), held = arrays.map(() => new Set()), underWay = arrays.map(() => new Set());
    launch.steps.forEach((step, k) => {
        for (const [array, action, warps, rectangles] of step.touches) {
            const writes = [STORE, ADD, SHARED_STORE].includes(action), copies = k <= at && [COPY, BULK_LOAD].includes(action);
            for (const word of words(rectangles, arrays[array][2])) {
                if (copies) underWay[array].add(word);
                if (k === at && inWarp(warps)) cells[array][word] = writes || cells[array][word] === WRITTEN ? WRITTEN : NOW;
                else if (k <= at ? cells[array][word] < NOW : cells[array][word] === NEVER) cells[array][word] = k <= at && array ? BEFORE : LATER;
            }
        }
        for (const [array, places] of step.content) for (const place of words(places, 32)) [cells[0][place], holds[place]] = [cells[0][place] || LATER, k <= at ? array : holds[place]];
        if (k > at) return;
        for (const [array, rectangles] of step.gone) for (const word of words(rectangles, arrays[array][2])) held[array].delete(word);
        for (const [array, rectangles] of step.came) for (const word of words(rectangles, arrays[array][2])) {
            held[array].add(word);
            underWay[array].delete(word);
        }
    });
    if (byId("mask").value === "causal") for (const array of arrays.keys()) // keys that this block never loads
        if (/^[KV]$/.test(arrays[array][0])) cells[array].forEach((state, word) => { if (state === NEVER) cells[array][word] = MASKED; });
    for (const [state, sets] of [[HELD, held], [UNDER_WAY, underWay]])
        sets.forEach((set, array) => set.forEach((word) => { if (cells[array][word] < NOW) cells[array][word] = state; }));
    return { cells, holds, held, underWay };
}

// stateOf: of a cell's number. What is under way is hatched. Adds to `states` what there is.
function paint(canvas, width, count, stateOf, colours, states) {
    if (count === 0) return; // a kernel without shared memory
    Object.assign(canvas, { width, height: Math.ceil(count / width) });
    const context = canvas.getContext("2d"), shadeOf = (k) => stateOf(k) !== UNDER_WAY ? stateOf(k) : (k + Math.floor(k / width)) % 4 < 2 ? HELD : LATER;
    for (let k = 0, end = 0; k < count; k = end) { // cells side by side of one colour
        const shade = shadeOf(k);
        states.add(stateOf(k));
        for (end = k + 1; end < count && end % width && shadeOf(end) === shade;) end++;
        context.fillStyle = colours[shade];
        context.fillRect(k % width, Math.floor(k / width), end - k, 1);
    }
}

// Beside the lines of shared memory the matrix that fills most of each: [name, first line, last line].
function held(across) {
    const lines = range(Math.ceil(shown.holds.length / across)).map((line) => shown.holds.slice(line * across, line * across + across).sort()[across >> 1]), found = [];
    lines.forEach((array, line) => found.at(-1)?.[0] === array ? found.at(-1)[2] = line : found.push([array, line, line]));
    return found.filter(([array, first, last]) => array !== EMPTY && last - first > lines.length / 16).map(([array, ...span]) => [array === COMPUTED ? "computed" : launch.arrays[array < 0 ? -1 - array : array][0], ...span]);
}

let zoom = null, large = 1; // zoom: of the figures, across and down, as large as the wall or the window allows; large: twice as large, where the source is in sight then, which a frame does not know
const fit = () => { [zoom, large] = [wall ? [4, 4] : framed || innerWidth <= 640 ? [1, 1] : [2, 2], launch?.arrays.length < 8 && !framed ? 2 : 1]; };
function draw() {
    const figures = document.querySelectorAll("figure"), states = new Set();
    const style = getComputedStyle(document.documentElement), colours = MEANING.map(([meaning]) => style.getPropertyValue(`--${meaning}`));
    const inShared = (place, cell) => cell >= NOW ? cell : place < COMPUTED ? UNDER_WAY : place === EMPTY ? cell : place === COMPUTED ? MADE : HELD;
    launch.arrays.forEach(([, rows, columns], array) => {
        const canvas = figures[array].querySelector("canvas"), cells = shown.cells[array], across = array ? columns : wordsPerLine(cells.length);
        const stateOf = (k) => array ? cells[k] : inShared(shown.holds[k], cells[k]);
        paint(canvas, across, cells.length, stateOf, colours, states);
        const most = large * 128 * (wall ? 1 : zoom[1]), unit = Math.min(Math.floor(wall ? large : large * zoom[1]), Math.floor(most / rows)) || 1 / Math.ceil(rows / most); // pixels per row, or rows that are left out: the hatches of the others stay even
        const size = array ? [columns === 1 ? 14 : 64 * (framed && figures.length < 8 ? 2 : large), Math.max(16, rows * unit)] : [384, canvas.height * Math.max(1, Math.min(3, Math.floor(180 * (wall ? 1 : zoom[1]) / canvas.height)))];
        const wide = zoom[0] * size[0], high = (wall ? zoom[1] : 1) * size[1];
        canvas.style.cssText = `width: ${wide}px; height: ${high}px`;
        let low = 0; // where the label above ends
        if (!array) canvas.parentElement.replaceChildren(canvas, ...held(across).map(([name, first]) => {
            const top = Math.max(low, high * first / canvas.height);
            low = top + (wall ? 28 : 11);
            return element("small", { ariaHidden: "true", style: `top: ${top}px` }, name);
        }));
    });
    const cells = [WRITTEN, NOW, UNDER_WAY, HELD, MADE, BEFORE, LATER, NEVER, MASKED]
        .filter((state) => state === WRITTEN || states.has(state));
    legend("key", [...kinds, ...cells.map((state) => MEANING[state])]);
    const wraps = (box) => new Set([...box.children].filter((each) => each.checkVisibility()).map((each) => each.offsetTop)).size > 1;
    const isLow = wall ? byId("figures").getBoundingClientRect().bottom > innerHeight - 10 : byId("source").getBoundingClientRect().bottom > Math.max(innerHeight, 800);
    const less = zoom[0] > 1 && [byId("figures"), byId("shared").parentElement].some(wraps) ? 0 : isLow ? 1 : -1;
    if (zoom[less] > 1) zoom[less] -= 0.25;
    else if (isLow && !wall && !framed && large > 1 && innerWidth > 640) large = 1;
    else return;
    draw();
}

// "K (rows 64-127, columns 0-63)": the rows and columns between the first and the last of what is touched.
function extent(array, lists) {
    if (array === 0) return "computed values";
    const [rows, cols] = [0, 1].map((axis) => {
        const of = axis ? launch.arrays[array][3] : 1; // elements per word
        const all = [...new Set(lists.flat().flatMap((rectangle) => spans(rectangle[axis])).flatMap(([from, to]) => range(of * (to - from + 1)).map((k) => of * from + k)))].sort((a, b) => a - b);
        const [from, to, noun] = [all[0], all.at(-1), axis ? "columns" : "rows"];
        return from === to ? `${noun.slice(0, -1)} ${from}` : all.length === 2 ? `${noun} ${from} and ${to}` : all.length > to - from ? `${noun} ${from}-${to}` : `${all.length} ${noun} between ${from} and ${to}`;
    });
    return `${launch.arrays[array][0]} (${rows}` + (launch.arrays[array][2] > 1 ? `, ${cols})` : ")");
}
const extents = (lists) => lists.map(([array, rectangles]) => extent(array, [rectangles])).join(" and ");
const named = (space, object) => ({ mbarrier: `mbarrier ${launch.mbarriers[object]}`, named: `named barrier ${object}`, cluster: "the barrier of the cluster" })[space];
const arrivalsDue = (mbarrier) => Math.max(0, ...launch.steps.flatMap(({ sync }) => sync).filter(([what, space, object]) => what === "phase" && space === "mbarrier" && object === mbarrier).map(([, , , , , , come]) => come));
function said([what, space, object, phase, , bytes, come, announced]) {
    const due = arrivalsDue(object), now = space === "mbarrier" && due ? ` (${come} of ${due} arrivals${announced && what === "wait" ? `, ${announced} bytes announced` : ""})` : "";
    if (space === "copies") return object ? `wait until at most ${object} ${object === 1 ? "group" : "groups"} of each thread's copies ${object === 1 ? "is" : "are"} under way` : "wait until each thread's copies have arrived";
    if (space === "bulk") return `wait until the TMA has ${what === "wait" ? "finished" : "read shared memory for"} the stores`;
    if (what === "wait") return (bytes ? "go on, since # is over" : "wait for #").replace("#", `phase ${phase} of ${named(space, object)}`) + now;
    return (what === "arrive" ? `arrive at ${named(space, object)}` : "") + (bytes ? `${what === "arrive" ? " and " : `at ${named(space, object)} `}announce ${bytes} bytes` : "") + now;
}
const warpsOf = () => Math.ceil(launch.block.reduce((a, b) => a * b) / 32);
const who = (warps) => warps === String(warpsOf()) ? "another block of the cluster" : `${/[-,]/.test(warps) ? "warps" : "warp"} ${warps}`;
function sentence(step) {
    const [first] = step.sync;
    if (step.warps === "" && first)
        return `Phase ${first[3]} of ${named(first[1], first[2])} is over.` + (first[4] ? ` The wait of ${who(first[4])} sees it.` : "") +
            (step.came.length ? ` The wait sees as arrived in shared memory: ${extents(step.came)}.` : "");
    if (step.warps === "") return `${Object.keys(step.counts)[0]}: every warp waits until all have arrived. Barrier ${launch.steps.slice(0, at + 1).filter(({ warps, sync }) => warps === "" && !sync.length).length} of the block.`;
    const doer = who(step.warps);
    if (!inWarp(step.warps)) return `Warp ${warp} takes no part in this step; ${doer} ${doer.startsWith("warps") ? "do" : "does"}.`;
    const byAction = new Map(), count = spans(step.warps).reduce((sum, [from, to]) => sum + to - from + 1, 0), parts = [];
    const together = count > 1 ? ` (all ${count} warps together)` : "", ofOne = warp === "all" ? "" : together;
    const add = (text, key, unit = "") => text && parts.push({ text, unit, rank: step.order.indexOf(key) });
    for (const [array, action, warps, rectangles] of step.touches) {
        if (array === 0 && ![USE, MULTIPLY].includes(action) || !inWarp(warps)) continue;
        const found = byAction.get(action) || byAction.set(action, new Map()).get(action);
        found.set(array, [...(found.get(array) || []), rectangles]);
    }
    const does = (wanted) => step.touches.some(([, action, warps]) => action === wanted && inWarp(warps)), lands = step.sync.some(([, space]) => space === "copies");
    for (const [action, arrays] of byAction) add(SAID[action].replace("#", [...arrays].sort(([a], [b]) => !a - !b).map(([array, lists]) => extent(array, lists)).join(" and ")), action);
    if (does(SHARED_LOAD) && !byAction.has(USE) && !byAction.has(MULTIPLY)) add("read from shared memory", SHARED_LOAD);
    const stored = [...(lands ? [] : step.came.map((each) => extents([each]) + ofOne)), ...(step.content.some(([array]) => array === COMPUTED) ? ["computed values"] : [])];
    if (does(SHARED_STORE)) add(`store ${stored.join(" and ")} in shared memory`, SHARED_STORE);
    const ofGroup = count === 4 ? " of the warpgroup" : step.alike ? ` of each of the ${count / 4} warpgroups` : ` of ${count / 4} warpgroups in all`; // whose 4 warps execute a wgmma together
    for (const [kind, times] of Object.entries(step.counts)) add(...(kind.startsWith("wgmma") ? [`${times / (step.alike ? count : 4)} ${kind}`, kind, ofGroup] : [`${times} ${kind}`, kind, together || " "]));
    if (step.gone.length) add(`overwrite in shared memory ${extents(step.gone)}${ofOne}`, step.order.find((key) => [COPY, BULK_LOAD, SHARED_STORE].includes(key)));
    step.sync.forEach((entry, k) => inWarp(entry[4]) && add(said(entry) + (warp === "all" && entry[4] !== step.warps ? ` (${who(entry[4])})` : ""), -1 - k));
    parts.sort((a, b) => a.rank - b.rank);
    if (lands && step.came.length) add(`now in shared memory: ${extents(step.came)}${ofOne}`);
    const texts = parts.map(({ text, unit }, k) => [k && unit ? parts[k - 1].unit === unit ? ", " : "; execute " : k ? "; " : unit ? "execute " : "", text, parts[k + 1]?.unit === unit ? "" : unit.trimEnd()]);
    return `${(warp === "all" ? doer : `warp ${warp}`).replace(/^./, (letter) => letter.toUpperCase())}: ${texts.flat().join("")}.`;
}

// What a step does, and with which arrays.
const isForward = () => !launch.arrays.some(([name]) => name === "dO");
function phaseOf({ touches, content, counts, warps, sync }) {
    const done = touches.map(([, action]) => action), collective = Object.keys(counts)[0];
    const arrays = (...actions) => [...new Set(touches.filter(([array, action]) => array && actions.includes(action)).map(([array]) => launch.arrays[array][0]))];
    const loads = arrays(LOAD), used = arrays(USE, MULTIPLY), stores = arrays(STORE, ADD);
    const stored = done.includes(SHARED_STORE) ? content.filter(([array]) => array > 0).map(([array]) => launch.arrays[array][0]) : []; // by registers
    const copies = [...new Set([...arrays(COPY, BULK_LOAD), ...stored])];
    if (warps === "") return sync.length ? ["phase", [`${sync[0][3]} of ${named(sync[0][1], sync[0][2])}`]] : ["barrier", [collective]];
    if (used.join() === "Q" && done.includes(SHARED_STORE)) return ["scale", used];
    if (used.length) return ["compute", used];
    if (stores.length) return ["store", stores];
    if (copies.length) return ["copy", copies];
    if (loads.length && !collective) return ["load", loads];
    if (!done.length && isForward() && Object.keys(counts).every((kind) => /shfl|any|all|ballot/.test(kind)) && collective) return ["softmax", []];
    return done.length || collective ? ["compute", loads] : ["wait", []];
}
// A phase is what warps do from one step to another: it ends at a barrier, and where they do something else or compute with other arrays.
// A row has the warps that take part in the same steps, or in some of them; where that is more than MOST_ROWS, all warps are in one.
function phasesOf() {
    const parts = launch.steps.map(phaseOf), within = (a, b) => a.every((each) => b.includes(each)), phases = [];
    const ofWarps = range(warpsOf() + 1).map((w) => ({ warps: [w], steps: range(parts.length).filter((k) => launch.steps[k].warps && among(launch.steps[k].warps, w)) }));
    let rows = [];
    for (const each of ofWarps.filter(({ steps }) => steps.length).sort((a, b) => b.steps.length - a.steps.length)) {
        const from = ({ warps }) => Math.min(...warps.map((w) => Math.abs(w - each.warps[0]))), row = rows.filter(({ steps }) => within(each.steps, steps))
            .sort((a, b) => from(a) - from(b) || a.warps[0] - b.warps[0])[0]; // a warp that takes part in little is in the row beside it
        if (row) row.warps.push(...each.warps);
        else rows.push(each);
    }
    rows.sort((a, b) => a.warps[0] - b.warps[0]);
    if (rows.length > MOST_ROWS) rows = [{ steps: rows.flatMap(({ steps }) => steps), warps: rows.flatMap(({ warps }) => warps) }];
    rows.forEach(({ steps }, row) => parts.forEach(([what, arrays], k) => {
        const { warps } = launch.steps[k], last = phases.at(-1), goesOn = last?.row === row && last.to === k && last.what === what && steps.includes(k);
        if (goesOn && (what !== "compute" || within(last.arrays, arrays) || within(arrays, last.arrays))) Object.assign(last, { to: k + 1, arrays: [...new Set([...last.arrays, ...arrays])] });
        else if (!warps || steps.includes(k)) phases.push({ row, what, arrays, from: k, to: k + 1 });
    }));
    return { phases, names: rows.map(({ warps }) => (warps.length > 1 ? "warps " : "warp ") + runs(warps)) };
}
function drawPhases() {
    const { names, phases } = shownPhases = phasesOf(), percent = 100 / launch.steps.length, isDense = launch.steps.length > 40;
    const bar = ({ what, arrays, from, to }) => element("span", { className: `span ${what}`, hidden: isDense && what === "phase", title: `${what} ${arrays.join(", ")}`, style: `left: ${percent * from}%; width: ${percent * (to - from)}%` });
    // Each label stands on its bar, or behind it where the free room is at least as wide as the bar.
    const label = ({ what, arrays, from, to }, k, those) => {
        const free = (those[k + 1]?.from ?? launch.steps.length) - to, isBehind = free >= to - from;
        const [left, room] = isBehind ? [to, free] : [from, to - from];
        const product = what === "compute" && isForward() && { "K Q": "S", V: "PV" }[[...arrays].sort().join(" ")];
        const texts = ["wait", "barrier"].includes(what) ? [] : [product || arrays.join(" "), what];
        const style = `left: ${percent * left}%; width: ${percent * room}%`;
        return element("b", { className: "label", style }, ...texts.map((text) => element("i", {}, text)));
    };
    const drawn = (row, of = phases.filter((each) => each.row === row)) => [...of.map(bar), ...of.filter(({ what }) => what !== "phase").map(label)];
    byId("rows").replaceChildren(...names.map((name, row) => element("div", { className: "track" }, element("b", {}, name), element("div", {}, ...drawn(row), element("span", { className: "span now" })))));
    kinds = Object.entries(PHASES)
        .filter(([kind]) => phases.some(({ what }) => what === kind && !(isDense && kind === "phase")));
    byId("at").style.cssText = `left: calc(${percent / 2}% - .45rem); width: calc(${100 - percent}% + .9rem)`;
    fillTable(byId("phases"), [["steps", "warps", "what", "with"], ...phases.sort((a, b) => a.from - b.from).map(({ row, what, arrays, from, to }) => [to - from > 1 ? `${from + 1}-${to}` : to, names[row], what, arrays.join(", ")])]);
}

// S of a forward pass, which no memory holds: [rows, keys, kind, isNow]. A warp that reads rows of K multiplies them by the rows of Q that it has read
// since it read V; where it reads rows of V, it adds P V to O.
function scoresOf() {
    const [Q, K, V] = ["Q", "K", "V"].map((name) => launch.arrays.findIndex((array) => array[0] === name)), all = launch.steps.flatMap(({ touches }) => touches);
    const isIn = (array, ...actions) => ([other, action]) => other === array && actions.includes(action), reads = (array) => isIn(array, ...(all.some(isIn(array, USE, MULTIPLY)) ? [USE, MULTIPLY] : [LOAD]));
    const found = new Map(), rowsOf = new Map(), hasAdded = new Set(), rowsIn = (lists) => new Set(lists.map(([rows]) => rows));
    if (!isForward() || Math.min(Q, K, V) < 0) return null;
    launch.steps.slice(0, at + 1).forEach((step, k) => {
        const each = (test, act) => step.touches.filter(test).forEach(([, , warps, lists]) => spans(warps).forEach(([from, to]) => range(to - from + 1).forEach((w) => act(from + w, rowsIn(lists)))));
        const mark = (kind) => (w, keys) => keys.forEach((these) => (rowsOf.get(w) || []).forEach((rows) => found.set([rows, these, kind === "made"].join(), [rows, these, kind === "made" && k < at ? "touched" : "product", k === at, w])));
        each(reads(Q), (w, rows) => rowsOf.set(w, hasAdded.delete(w) ? rows : new Set([...(rowsOf.get(w) || []), ...rows])));
        each(reads(K), mark("product"));
        each(reads(V), (w, keys) => { hasAdded.add(w); mark("made")(w, keys); });
        if (phaseOf(step)[0] === "softmax") for (const one of found.values()) if (one[2] === "product" && among(step.warps, one[4])) one[2] = "softmax";
    });
    return [...found].sort(([a], [b]) => a.endsWith("true") - b.endsWith("true")).map(([, one]) => one);
}
function drawScores() {
    const found = scoresOf(), [N_q, N_kv] = ["Q", "K"].map((name) => launch.arrays.find((array) => array[0] === name)?.[1]), percent = (part, whole) => `${100 * part / whole}%`;
    const box = element("div", { role: "img", ariaLabel: "The scores that this block has computed" }, ...(found || []).flatMap(([rows, keys, kind, isNow]) => spans(rows).flatMap(([top, bottom]) => spans(keys).map(([left, right]) =>
        element("span", { className: `span ${kind}${isNow ? " new" : ""}`, style: `top: ${percent(top, N_q)}; height: ${percent(bottom - top + 1, N_q)}; left: ${percent(left, N_kv)}; width: ${percent(right - left + 1, N_kv)}` })))));
    byId("scores").hidden = !found;
    byId("scores").replaceChildren(box, element("small", {}, `S, ${N_q} x ${N_kv}`), element("span", { className: "key", id: "scored" }));
    legend("scored", [["product", "S"], ["softmax", "P"], ["touched", "in O"]]);
}

// The lines of a step, and of one in a header the kernel's line that calls it.
const placesOf = (step) => [...new Set(step.sites.flatMap((site) => [launch.sites[site][4], launch.sites[site].slice(0, 2).join(":")]).filter(Boolean))];
function showSource(step) {
    const lines = new Map(), byCall = new Map(), parts = [], last = (path) => path.split("/").pop(), byLine = (a, b) => a.split(":")[1] - b.split(":")[1];
    const add = (map, key, line) => map.set(key, (map.get(key) || new Set()).add(line));
    for (const [file, line] of placesOf(step).map((place) => place.split(":"))) add(lines, file, +line);
    const touches = (site) => /global|shared|bulk|operand/.test(launch.sites[site][3]), [aim] = placesOf({ sites: [...step.sites].sort((a, b) => touches(b) - touches(a)) });
    for (const [file, line, , , caller] of step.sites.map((site) => launch.sites[site])) add(byCall, caller && `, called at ${last(caller)}`, `${file}:${line}`);
    for (const [file, marked] of lines) {
        parts.push(`${file}\n`);
        for (const [number, text] of Object.entries(walk.sources[file] || {})) {
            if (![...marked].some((line) => Math.abs(line - number) <= 5)) continue;
            const row = `${String(number).padStart(4)}  ${text}`;
            parts.push(marked.has(+number) ? element("mark", { id: `${file}:${number}` }, row) : row, "\n");
        }
    }
    const source = byId("source");
    source.replaceChildren(...parts);
    const scroll = (first, last = first) => { // to whole lines
        const [top, bottom] = [first, last].map((place) => byId(place)?.offsetTop ?? 0), line = byId(first)?.getBoundingClientRect().height || 1;
        source.scrollTop = Math.max(0, Math.round((top + bottom + line - source.clientHeight) / 2 / line)) * line;
    };
    const marks = [...source.querySelectorAll("mark")].map(({ id }) => id).filter((id) => id.split(":")[0] === aim?.split(":")[0]), [above, below] = [marks[0], marks.at(-1)].map((id) => byId(id)?.offsetTop);
    if (marks.length && below - above < source.clientHeight) scroll(marks[0], marks.at(-1));
    else scroll(aim); // a line that touches memory, if one does
    const link = (place, at, all) => element("button", { type: "button", title: `Show ${place}`, onclick: () => scroll(place) }, at && all[at - 1].split(":")[0] === place.split(":")[0] ? place.split(":")[1] : last(place));
    byId("where").replaceChildren("Source: ", ...[...byCall].flatMap(([words, places], k) => [k ? "; " : "", ...[...places].sort(byLine).flatMap((place, at, all) => [at ? ", " : "", link(place, at, all)]), words]));
}

// Of a long sentence what fits in three lines; the others when asked for.
function say(text) {
    const parts = text.split(/(; | and (?=\w+ \())/), until = (k) => parts.slice(0, k).join(""), most = text.length < 140 ? 140 : 100;
    const cut = Math.max(1, ...range(parts.length + 1).filter((k) => k % 2 && until(k).length < most)), rest = element("span", { hidden: true }, parts.slice(cut).join(""));
    const more = element("button", { type: "button", onclick: () => { rest.hidden = false; more.remove(); } }, `and ${(parts.length - cut) / 2} more`);
    byId("said").replaceChildren(until(cut), ...(cut < parts.length ? [" ", more, rest] : []));
}
function show() {
    const step = launch.steps[at], count = launch.steps.length, said = `${at + 1} of ${count}`;
    shown = compute();
    byId("wrong").textContent = "";
    Object.assign(byId("at"), { max: count - 1, value: at, ariaValueText: `step ${said}` });
    byId("count").textContent = said;
    for (const each of document.querySelectorAll(".now")) each.style.cssText = `left: ${100 * at / count}%; width: ${100 / count}%`;
    // A caption may tell the rows of several steps together; the sentence is about one of these steps.
    const caption = story.captions.find((each) => each.at <= at && at < each.end && each.end > each.at + 1);
    byId("said").dataset.part = caption ? `Step ${at + 1} of steps ${caption.at + 1}-${caption.end}. ` : "";
    say(sentence(step));
    for (const id of ["first", "back", "next", "last"]) byId(id).disabled = at === (id === "first" || id === "back" ? 0 : count - 1);
    showSource(step);
    const name = (array) => array === 0 ? "shared memory, lines of 32 banks" : launch.arrays[array][0];
    fillTable(byId("table"), [["what", "array", "warps", "rows", "words of each row"],
        ...step.touches.flatMap(([array, action, warps, rectangles]) => rectangles.map(([rows, cols]) => [ACTIONS[action], name(array), warps, rows, cols])),
        ...step.sync.map(([what, space, object, phase, warps, bytes]) => [what, named(space, object) ?? (space === "copies" ? "copies" : "stores"), warps, `phase ${phase}`, what === "wait" ? "" : `${bytes} bytes`]),
        ...step.came.flatMap(([array, rectangles]) => rectangles.map(([rows, cols]) => ["is now in shared memory", name(array), "", rows, cols])),
        ...step.gone.flatMap(([array, rectangles]) => rectangles.map(([rows, cols]) => ["is overwritten", name(array), "", rows, cols]))]);
    drawScores(); // first: it moves the figures, which draw() fits to the window
    draw();
    told();
    if (framed) parent.postMessage({ lines: placesOf(step) }, "*");
    writeAddress(chosen());
}

const chosen = () => ({ step: byId("rung").value, mask: byId("mask").value, launch: byId("launch").value, warp, at });
function go(to) {
    at = Math.max(0, Math.min(launch.steps.length - 1, to));
    show();
}
const MOVES = [["First", "Home", () => go(0)], ["Back", "ArrowLeft", () => go(at - 1)], ["Next", "ArrowRight", () => go(at + 1)],
    ["Last", "End", () => go(Infinity)]];

// Says which word a column and a row of a canvas are, and what is with it.
function pick(array, canvas, x, y) {
    const column = Math.max(0, Math.min(canvas.width - 1, x)), row = Math.max(0, Math.min(canvas.height - 1, y)), cell = row * canvas.width + column;
    const [name, , columns, elements] = launch.arrays[array], holds = shown.holds[cell], first = elements * column;
    const held = !holds ? "nothing yet" : holds === COMPUTED ? "a computed value" : holds < COMPUTED ? `${launch.arrays[-1 - holds][0]} is on the way` : launch.arrays[holds][0];
    Object.assign(canvas, { x: column, y: row });
    byId("picked").textContent = array === 0 ? `Shared memory, byte ${4 * cell}, bank ${cell % 32}: ${held}` :
        `${name} row ${row}` + (columns > 1 ? `, column${elements > 1 ? `s ${first}-${first + elements - 1}` : ` ${first}`}` : "") + `; byte ${4 * cell}: ${MEANING[shown.cells[array][cell]][1]}`;
}

function chooseLaunch(index, where) {
    launch = run.launches[index] || run.launches[0];
    byId("launch").value = run.launches.indexOf(launch);
    const warps = warpsOf();
    options(byId("warp"), [["all", "all warps"], ...range(warps).map((k) => [k, `warp ${k}`])]);
    if (warp !== "all" && !(warp < warps)) warp = "all";
    byId("warp").value = warp;
    const [memory, ...matrices] = launch.arrays.map(([name, rows, columns, elements], array) => {
        const text = array === 0 ? `shared memory, ${launch.bytes} bytes; a line is ${wordsPerLine(rows * columns) / 32} x 32 banks` : `${name}: ${rows} x ${columns * elements}`;
        const canvas = element("canvas", { tabIndex: 0, role: "img", ariaLabel: text + "; the table below says the same. Arrow keys go from word to word" });
        canvas.onpointermove = ({ offsetX, offsetY }) => pick(array, canvas, Math.floor(offsetX / canvas.clientWidth * canvas.width), Math.floor(offsetY / canvas.clientHeight * canvas.height));
        canvas.onkeydown = canvas.onfocus = (event) => {
            const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key], [x, y] = move || [0, 0];
            if (move) event.preventDefault();
            pick(array, canvas, (canvas.x ?? 0) + x, (canvas.y ?? 0) + y);
        };
        const sides = array ? rows < 16 ? [[`0-${rows - 1}`, "top: 0"]] : [["0", "top: 0"], [rows - 1, "bottom: 0"]] : [];
        return element("figure", { hidden: array === 0 && rows === 0 || name === "workspace" && rows === 1 }, element("div", { className: "sides" }, canvas, ...sides.map(([side, style]) => element("small", { ariaHidden: "true", style }, side))),
            element("figcaption", {}, text));
    });
    byId("shared").replaceChildren(memory);
    const rows = launch.steps.flatMap(({ touches }) => touches).filter(([array]) => launch.arrays[array][0] === "Q").flatMap(([, , , rectangles]) => rectangles.flatMap(([rows]) => spans(rows).flat()));
    const [first, last] = [Math.min(...rows), Math.max(...rows)], isLast = launch.arrays.some(([name, count]) => name === "Q" && count === last + 1);
    byId("block").textContent = rows.length && first ? `This block, (${launch.index}), takes the ${isLast ? "last " : ""}rows of Q, ${first}-${last}.` : "";
    byId("figures").replaceChildren(...matrices);
    for (const list of document.querySelectorAll("select")) list.disabled = list.options.length === 1; // and looks like text
    drawPhases();
    fit();
    tell(captionsOf(launch, byId("mask").value === "causal"));
    go(where ?? story.captions[0].at);
}
function chooseMask(mask, index, where) {
    run = walk.masks[mask] || Object.values(walk.masks)[0];
    byId("mask").value = Object.keys(walk.masks).find((name) => walk.masks[name] === run);
    byId("command").textContent = run.command;
    options(byId("launch"), run.launches.map(({ kernel, grid, index }, k) => [k, `${k + 1}: ${kernel.replace(/<.*/, "")}, block (${index}) of (${grid})`]));
    chooseLaunch(index, where);
}
const unpacked = (text) => new Response(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]).stream()
    .pipeThrough(new DecompressionStream("gzip"))).text();
const called = ([, title, chapter]) => title.startsWith(`${chapter}:`) ? chapter : title; // the last rung of a chapter by its name, without its idea
function chooseRung(name, state = {}, asked = state) { // asked: what the address says
    const known = [name, "05_fa2_fwd"].map((each) => STEPS.find(([step]) => step === each)).find(Boolean) || STEPS[0], script = element("script", { src: `data/${known[0]}.js` });
    play(false);
    script.onload = async () => {
        walk = window.WALK;
        const lists = (await unpacked(walk.rectangles)).split("\n").map((text) => text.split(";").map((each) => each.split(":")));
        for (const { launches } of Object.values(walk.masks)) for (const { steps } of launches) for (const step of steps) // kept once each
            for (const kind of ["touches", "content", "came", "gone"]) for (const found of step[kind]) found.push(lists[found.pop()]);
        byId("rung").value = known[0];
        byId("page").href = "../" + walk.page;
        document.querySelector("h1").textContent = known[1];
        options(byId("mask"), Object.keys(walk.masks).map((mask) => [mask, mask === "none" ? "no mask" : mask]));
        warp = state.warp || "all";
        // Without a wish, the kernel with the most steps: the others prepare and clean up.
        const most = (launches) => launches.reduce((best, each, k) => each.steps.length > launches[best].steps.length ? k : best, 0);
        const mask = state.mask in walk.masks ? state.mask : Object.keys(walk.masks)[0];
        chooseMask(mask, state.launch ?? most(walk.masks[mask].launches), state.at === undefined ? undefined : parseInt(state.at) || 0);
        const first = state.line ? launch.steps.findIndex((step) => placesOf(step).includes(state.line)) : -1; // "file:line"
        if (first >= 0) go(first);
        const is = { ...chosen(), line: first >= 0 ? state.line : "none" }, odd = Object.keys(asked).filter((name) => String(asked[name]) !== String(is[name]));
        byId("wrong").textContent = odd.map((name) => `The address asks for ${name}=${asked[name]}, which is not here` + (name in is ? `; ${name} is ${is[name]}.` : ".")).join(" ");
    };
    document.head.append(script);
}

startStory({ unit: "step", place: () => at, move: go, last: () => launch.steps.length - 1 });
byId("moves").prepend(element("b", {}, "Step"), ...MOVES.map(([text, title, onclick]) => element("button", { type: "button", id: text.toLowerCase(), title, onclick }, text)));
byId("rung").replaceChildren(...[...new Set(STEPS.map(([, , chapter]) => chapter))].sort().map((label) => element("optgroup", { label },
    ...STEPS.filter(([, , chapter]) => chapter === label).map((each) => element("option", { value: each[0] }, called(each))))));
byId("rung").addEventListener("change", (event) => chooseRung(event.target.value));
byId("mask").addEventListener("change", (event) => chooseMask(event.target.value, byId("launch").value));
byId("launch").addEventListener("change", (event) => chooseLaunch(event.target.value));
byId("warp").addEventListener("change", (event) => { warp = event.target.value; show(); });
byId("at").addEventListener("input", (event) => go(+event.target.value));
addEventListener("themed", () => {
    fit();
    if (shown) draw();
});
addEventListener("hashchange", ({ newURL }) => { // which the step before may have replaced
    const now = chosen(), state = { ...now, ...readAddress(newURL) };
    if (state.line || Object.keys(now).some((name) => String(state[name]) !== String(now[name]))) chooseRung(state.step, state, readAddress(newURL));
});
chooseRung(readAddress().step, readAddress());
