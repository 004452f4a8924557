// Warp map: the addresses of one request, and by the meter's rule (requests.js) its sectors and wavefronts.
"use strict";
const FIELDS = ["access", "bytes", "lanes", "stride", "columns", "padding", "swizzle", "start"];
const EXAMPLES = { // access, bytes, lanes, stride, columns, padding, swizzle, start
    "neighbouring words": ["load", 4, 32, 1, 64, 0, 1, 0], "every second word": ["load", 4, 32, 2, 64, 0, 1, 0],
    "a column of a matrix": ["load", 4, 1, 1, 64, 0, 1, 0], "a column, rows padded by one word": ["load", 4, 1, 1, 64, 1, 1, 0],
    "one address": ["load", 4, 32, 0, 64, 0, 1, 0], "every 16th word of 8 rows": ["load", 4, 4, 16, 64, 0, 1, 0], "16 bytes of each row": ["load", 16, 1, 1, 32, 0, 1, 0],
    "16 bytes of each row, padded by four words": ["load", 16, 1, 1, 32, 4, 1, 0], "16 bytes of each row, swizzled": ["load", 16, 1, 1, 32, 0, 8, 0],
    "a start that is no multiple of 32": ["load", 4, 32, 1, 64, 0, 1, 16] };
const STORY = { // of seven examples: why
    "neighbouring words": "32 lanes reach 32 banks, and every byte that is moved is needed.", "every second word": "Two lanes share each bank, and half of every sector is not needed.",
    "a column of a matrix": "Rows are 64 words apart, so that all lanes need one bank.", "a column, rows padded by one word": "Each row begins one bank later, and no two lanes share one.",
    "every 16th word of 8 rows": "Four lanes share a row, and rows are 64 words apart: all lanes need two banks.",
    "16 bytes of each row": "8 lanes at a time are served, and all need the same 4 banks.", "16 bytes of each row, swizzled": "The row's number changes the 16-byte unit: 8 lanes reach 8 units." };
const captions = Object.entries(STORY).map(([name, why], at) => ({ at, title: name.replace(/^./, (letter) => letter.toUpperCase()), text: () => `${shown.wavefronts} wavefront${shown.wavefronts === 1 ? "" : "s"}, ${shown.sectors.length} sectors. ${why}` }));
let lane = 0, shown = null;

const value = (id) => ["access"].includes(id) ? byId(id).value : Math.max(+byId(id).min || 0, Math.min(+byId(id).max || Infinity, Math.floor(+byId(id).value) || 0));
function addressOf(k, set) {
    const row = Math.floor(k / set.lanes), inRow = (k % set.lanes) * set.stride * set.bytes;
    const unit = Math.floor(inRow / 16) ^ (row % set.swizzle);
    return set.start + row * (set.columns + set.padding) * 4 + unit * 16 + inRow % 16;
}

function show() {
    const set = Object.fromEntries(FIELDS.map((id) => [id, value(id)]));
    const addresses = range(32).map((k) => addressOf(k, set)), counted = counts(addresses, set.bytes, set.access);
    const misaligned = addresses.some((at) => at % set.bytes);
    shown = { ...set, lane, addresses, sectors: counted.sectors, wavefronts: counted.wavefronts, misaligned };
    const least = counts(addresses.map((_, k) => k * set.bytes), set.bytes, "store").wavefronts;
    byId("said").textContent = misaligned ? `An access of ${set.bytes} bytes must start at a multiple of ${set.bytes}: a card stops with an error here.` :
        `In global memory ${counted.sectors.length} sector${counted.sectors.length === 1 ? "" : "s"}, of which the lanes need ${new Set(addresses).size * set.bytes} bytes of ${counted.sectors.length * SECTOR}. ` +
        `In shared memory ${counted.wavefronts} wavefront${counted.wavefronts === 1 ? "" : "s"}; 32 different addresses take at least ${least}.`;
    byId("said").classList.toggle("warning", misaligned);
    const turnOf = (k) => counted.turns.findIndex((turn) => Object.values(turn).some(([, lanes]) => lanes.includes(k)));
    grid("lanesMap", range(8), [0, 8, 16, 24], addresses.map((at, k) => [k, `lane ${k}, byte ${at}`, turnOf(k) === turnOf(lane) ? "mine" : ""]), lane, (k) => { lane = k; show(); });
    const words = range(Math.ceil(set.bytes / 4)).map((k) => Math.floor(addresses[lane] / 4) + k);
    byId("lane").textContent = `Lane ${lane}: bytes ${addresses[lane]} to ${addresses[lane] + set.bytes - 1}, sector ${Math.floor(addresses[lane] / SECTOR)}, ` +
        `bank${words.length > 1 ? "s" : ""} ${words.map((word) => word % BANKS).join(", ")}, wavefront ${turnOf(lane) + 1}, with the lanes that are marked.`;
    fillTable(byId("banks"), [["wavefront", ...range(BANKS)], ...counted.turns.map((turn, k) => [k + 1, ...range(BANKS).map((bank) => turn[bank] ? turn[bank][1].join(" ") : "")])]);
    byId("banks").tHead.prepend(element("tr", {}, element("th", { scope: "row" }, "16-byte unit"), ...range(8).map((unit) => element("th", { scope: "colgroup", colSpan: 4 }, String(unit)))));
    byId("banks").style.setProperty("--rows", counted.turns.length);
    [...byId("banks").querySelectorAll("tbody tr")].forEach((row, k) => [...row.children].slice(1).forEach((cell, bank) => {
        const served = counted.turns[k][bank]?.[1];
        cell.className = !served ? "" : served.includes(lane) ? "mine" : set.access === "load" ? "read" : "written";
    }));
    const needed = new Set(addresses.flatMap((at) => range(set.bytes).map((k) => at + k))); // bytes
    byId("sectors").replaceChildren(...counted.sectors.map((sector) => element("span", { className: Math.floor(addresses[lane] / SECTOR) <= sector &&
        sector <= Math.floor((addresses[lane] + set.bytes - 1) / SECTOR) ? "mine" : "", style: `--part: ${range(SECTOR).filter((k) => needed.has(sector * SECTOR + k)).length / SECTOR}` }, String(sector))));
    fillTable(byId("table"), [["lane", "first byte", "sector", "bank"], ...addresses.map((at, k) => [k, at, Math.floor(at / SECTOR), Math.floor(at / 4) % BANKS])]);
    byId("example").value = Object.keys(EXAMPLES).find((name) => EXAMPLES[name].every((each, k) => String(each) === String(set[FIELDS[k]]))) || "";
    told();
    writeAddress({ ...set, lane });
}
function setFields(values, usual) {
    FIELDS.forEach((id, k) => { byId(id).value = values[k]; if (byId(id).value === "") byId(id).value = usual[k]; });
    show();
}

startStory({ place: () => Object.keys(STORY).indexOf(byId("example").value), move: (at) => setFields(EXAMPLES[Object.keys(STORY)[at]]) });
options(byId("example"), [["", "your own"], ...Object.keys(EXAMPLES).map((name) => [name, name])]);
byId("example").addEventListener("change", (event) => EXAMPLES[event.target.value] && setFields(EXAMPLES[event.target.value]));
for (const id of FIELDS) byId(id).addEventListener("change", () => { byId(id).value = value(id); show(); }); // within its limits
tell(captions);
for (const kind of ["load", "hashchange"]) addEventListener(kind, () => {
    const given = readAddress(), known = Object.values(EXAMPLES)[0];
    lane = Math.max(0, Math.min(31, Math.floor(+given.lane) || 0));
    setFields(FIELDS.map((id, k) => given[id] ?? known[k]), known);
});
