// Fragments: which elements each lane holds, and where they lie in memory. Both are compared with the simulated device's instructions by a test.
"use strict";
const CONTROLS = ["what", "order", "pitch", "swizzle", "top", "left", "major", "count"], DEFAULTS = { what: "A", order: "k", pitch: 128, swizzle: "16",
    top: 0, left: 0, major: "K", count: 128, d: "4000004000000000", row: 0, column: 0 }; // d: a descriptor
const PARTS = [["swizzle mode", 62, 2, "mode", 1], ["0", 52, 10], ["base offset", 49, 3, "base", 1], ["0", 46, 3], ["SBO / 16", 32, 14, "stride", 16], ["0", 30, 2],
    ["LBO / 16", 16, 14, "leading", 16], ["0", 14, 2], ["start / 16", 0, 14, "start", 16]]; // of a descriptor: name, first bit, bits, input, its unit
const INPUTS = PARTS.filter(([, , , id]) => id), SPANS = [16, 128, 64, 32], MUST_BE_0 = 0x3ff1c000c000c000n, HEX = /^[0-9a-f]{1,16}$/i;
const EXAMPLES = { // order in memory, count, mode, base offset, SBO, LBO, start
    "K of 12a to 12d, all 128 keys": ["K", 128, 1, 0, 1024, 0, 0], "K, the next 16 columns": ["K", 128, 1, 0, 1024, 0, 32],
    "V of 12a to 12d, 128 columns": ["MN", 128, 1, 0, 1024, 16384, 0], "V of 12e, 176 keys": ["MN", 128, 1, 0, 1024, 22528, 0],
    "64-byte swizzle, K-major": ["K", 64, 2, 0, 512, 0, 0], "32-byte swizzle, K-major": ["K", 64, 3, 0, 256, 0, 0], "no swizzle, K-major": ["K", 64, 0, 0, 128, 1024, 0], "no swizzle, MN-major": ["MN", 64, 0, 0, 256, 128, 0] };
const STORY = [ // a state, its title, what there is to see; # is what it costs
    [{ what: "A" }, "A: 16 x 16", "Each lane holds 8 elements in 4 registers: two neighbours of a row in each."], [{ what: "B" }, "B: 16 x 8", "Two neighbours of a column lie in one register: K can be read row by row."],
    [{ what: "C" }, "C: 16 x 8 sums", "A lane holds 4 sums of two rows. The softmax of a row needs the 4 lanes that share it."], [{ what: "ldmatrix.x4" }, "ldmatrix without a swizzle", "32 lanes name 32 rows of 16 bytes: #."],
    [{ what: "ldmatrix.x4", swizzle: "xor" }, "ldmatrix with the swizzle", "The unit is XORed with the row: #."], [{ what: "wgmma" }, "A descriptor of wgmma", "One warpgroup reads a whole tile. 64 bits say where its core matrices lie."]];
const captions = STORY.map(([, title, text], at) => ({ at, title, text: () => text.replace("#", `${shown.wavefronts} wavefronts, ${shown.wrong ? "but it does not fit these rows" :
    shown.wavefronts > 4 ? `since up to ${shown.wavefronts / 4} rows lie in the same banks` : "and no bank conflict"}`) }));
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
let set = {}, descriptor = 0n, shown = null;

// Lane by lane and register by register the numbers of the elements, which count row by row; matrices of an ldmatrix lie one below the other.
const FRAGMENTS = Object.fromEntries([["A", 16, 16, 2], ["B", 16, 8, 2], ["C", 16, 8, 1],
    ...["", ".trans"].flatMap((trans) => [4, 2, 1].map((count) => [`ldmatrix.x${count}${trans}`, 8 * count, 8, 2]))].map(([name, rows, columns, each]) => {
    const held = range(rows * columns).map((k) => {
        const places = rows * columns / 32, lane = Math.floor(k / places), part = Math.floor(k % places / 2); // of 8 x 8 elements
        const [r, c] = [lane >> 2, lane % 4 * 2 + k % 2], [row, column] = name === "B" || name.endsWith("trans") ? [c, r] : [r, c];
        return name === "A" ? (part % 2 * 8 + row) * columns + (part >> 1) * 8 + column : (part * 8 + row) * columns + column;
    });
    return [name, { rows, columns, each, held }];
}));

// ---- places in memory ----
const exchanged = (at, span, base = 0) => at ^ ((at >> 7) - base & span / 16 - 1) << 4; // by the swizzle of TMA and wgmma
const place = (row, column, pitch, swizzle) => // the byte of an element of 16 bits
    swizzle === "xor" ? row * pitch + (2 * column ^ row % 8 << 4) : exchanged(row * pitch + 2 * column, swizzle);
const bits = (first, count) => Number(descriptor >> BigInt(first) & (1n << BigInt(count)) - 1n);
function byteOf(i, k) { // of element (i, k), by the descriptor: i is a row of A, or a column of B
    const [start, leading, stride] = [0, 16, 32].map((first) => 16 * bits(first, 14)), span = SPANS[bits(62, 2)], transposed = set.major === "MN";
    const [line, along] = transposed ? [k, i] : [i, k];
    if (span === 16) return start + (i >> 3) * stride + (k >> 3) * leading + line % 8 * 16 + along % 8 * 2;
    return exchanged(start + (line >> 3) * stride + line % 8 * span + (transposed ? Math.floor(2 * i / span) * leading + 2 * i % span : 2 * k), span, bits(49, 3));
}

const choose = (row, column) => { if (row !== set.row || column !== set.column) show({ ...set, row, column }); };
// Lines of 128 bytes; units: {number of the unit: [row, column, text, name, class, style]}.
function memory(units, chosen) {
    const lines = [...new Set(Object.keys(units).map((at) => at >> 3))].sort((a, b) => a - b), box = byId("memory");
    const places = lines.flatMap((line) => range(8).map((k) => 8 * line + k)), item = () => box.items[places.indexOf(chosen)];
    grid("memory", range(8).map((k) => `unit ${k}\n${4 * k}-${4 * k + 3}`), lines.map((line) => 128 * line), places.map((at) => units[at] && units[at].slice(2) || null),
        places.indexOf(chosen), (k) => choose(...units[places[k]]));
    if (item() && !box.matches(":hover, :focus-within")) box.scrollTop = item().offsetTop - box.offsetTop - 150;
}
const where = (at) => `byte ${at}, in the 16-byte unit ${at >> 4}, bank ${(at >> 2) % BANKS}`;
function say(said, cost, wrong, elementsSaid, memorySaid) {
    const texts = { said, cost: (wrong ? wrong + " " : "") + cost, elementsSaid, memorySaid: "Shared memory, by banks: " + memorySaid };
    for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
    byId("cost").classList.toggle("warning", Boolean(wrong));
}

// ---- mma.sync and ldmatrix ----
function showWarp() {
    const { rows: named, columns: across, each, held } = FRAGMENTS[set.what], loads = set.what[0] === "l", places = held.length / 32, bytes = loads ? 16 : 4;
    const corner = (i) => set.order === "k" ? [i % 2 * 8, (i >> 1) * 8] : [(i >> 1) * 8, i % 2 * 8]; // of quadrant i in the piece
    const shownAt = (e) => loads ? [corner(e >> 6)[0] + (e >> 3 & 7), corner(e >> 6)[1] + (e & 7)] : [Math.floor(e / across), e % across];
    const elements = held.map(shownAt), [rows, columns] = [0, 1].map((axis) => Math.max(...elements.map((at) => at[axis])) + 1);
    const holder = Object.fromEntries(elements.map((at, k) => [at, k])), laneOf = (r, c) => Math.floor(holder[[r, c]] / places);
    const row = Math.min(set.row, rows - 1), column = Math.min(set.column, columns - 1), mine = holder[[row, column]], lane = laneOf(row, column);
    const register = Math.floor(mine % places / each), name = (r) => loads ? `register ${r}` : set.what + r, holds = loads ? "receives" : "holds";
    const inLane = (k) => range(places / each).map((r) => elements.slice(k * places + r * each, k * places + r * each + each).map(([r, c]) => `(${r},\u00a0${c})`).join(" "));
    // What the lanes access: rows of a quadrant, or a pair of elements each. Of a C two registers are stored at once.
    const byte = ([r, c]) => set.what === "B" ? place(set.top + c, set.left + r, set.pitch, set.swizzle) : place(set.top + r, set.left + c, set.pitch, set.swizzle);
    const first = each === 2 ? register * 2 : register & ~1, accessed = range(32).map((k) => !loads ? elements[k * places + first] : k < named ? shownAt(8 * k) : null);
    const addresses = accessed.map((at) => at && byte(at)), counted = counts(addresses, bytes, loads ? "ldmatrix" : set.what === "C" ? "store" : "load");
    const turns = range(32).map((k) => counted.turns.findIndex((turn) => Object.values(turn).some(([, lanes]) => lanes.includes(k))) + 1);
    const at = byte([row, column]), units = {}, bank = (to) => loads ? `${(to >> 2) % BANKS}-${(to >> 2) % BANKS + 3}` : (to >> 2) % BANKS;
    addresses.forEach((to, k) => { if (to !== null) (units[to >> 4] ||= []).push(k); });
    for (const [to, lanes] of Object.entries(units)) {
        const who = lanes.length > 1 ? `${lanes[0]}-${lanes.at(-1)}` : lanes[0], turn = turns[lanes[0]];
        units[to] = [...accessed[lanes[0]], `${who}\nw${turn}`, `byte ${16 * to}: lanes ${who}, wavefront ${turn}`, turn === turns[lane] ? "mine" : "",
            `--unit: ${accessed[lanes[0]][set.what === "B" ? 0 : 1] + set.left >> 3 & 7}`];
    }
    const wrong = set.swizzle === "xor" ? set.pitch % 128 !== 0 && "This swizzle needs rows of 128 bytes or a multiple." :
        set.swizzle > 16 && set.pitch > set.swizzle && `The TMA refuses rows wider than ${set.swizzle} bytes with this swizzle.`;
    say(`Row ${row}, column ${column} of ${loads ? "the piece" : set.what}: lane ${lane} ${holds} it in ${name(register)}${each === 1 ? "" : mine % 2 ? ", the upper half" : ", the lower half"}. ` +
        `In memory: ${where(at)}. Lane ${lane} ${holds} ${inLane(lane).map((pairs, r) => `${name(r)}: ${pairs}`).join("; ")}.` +
        (loads && accessed[lane] ? ` It names the row at byte ${addresses[lane]}.` : ""),
    (loads ? `${named} lanes name a row of 16 bytes each` : set.what === "C" ? `Rounded to 16 bits, C${first} and C${first + 1} are stored by 4 bytes per lane` :
        `${name(register)} is loaded by 4 bytes per lane`) + `: ${plural(counted.wavefronts, "wavefront")}. Without bank conflicts: ${loads ? named / 8 : 1}.`,
    wrong,
    (loads ? "The piece in the tile" : `The ${set.what === "C" ? "accumulator" : "operand"} ${set.what}`) +
        `: the lane that ${holds} each element`,
    `the lane that ${loads ? "names" : "accesses"} a unit, and its wavefront, w1 for the first. Marked: lane ${lane}'s wavefront. The colour above: the unit without the swizzle.` +
        (set.what === "B" ? " A column of B is a row here, as in K." : ""));
    grid("elements", range(columns), range(rows), range(rows * columns).map((k) => [Math.floor(k / columns), k % columns]).map(([r, c]) => [laneOf(r, c),
        `row ${r}, column ${c}: lane ${laneOf(r, c)}`, `${laneOf(r, c) === lane ? "mine" : ""}${c === 8 ? " left" : ""}${r === 8 ? " top" : ""}`]),
    row * columns + column, (k) => choose(Math.floor(k / columns), k % columns));
    grid("lanes", range(8), [0, 8, 16, 24], range(32).map((k) => [k, `lane ${k}`]), lane, (k) => choose(...elements[k * places + mine % places]));
    const banks = elements.map((each) => (byte(each) >> 2) % BANKS), own = banks.slice(lane * places).slice(0, places);
    // The element that a bank shows: one of the lane's own, where it has one there.
    const inBank = (k) => own.includes(k) ? lane * places + own.indexOf(k) : banks.indexOf(k);
    const bankOf = (k) => banks.includes(k) ? [k, `bank ${k}`, own.includes(k) ? "mine" : ""] : null;
    grid("bank", range(8), [0, 8, 16, 24], range(BANKS).map(bankOf), banks[mine],
        (k) => choose(...elements[inBank(k)]));
    memory(units, at >> 4);
    byId("order").disabled = named === 8;
    fillTable(byId("table"), [["lane", "byte", "bank", "wavefront", ...range(places / each).map(name)],
        ...addresses.map((to, k) => [k, to ?? "none", to === null ? "" : bank(to), turns[k] || "", ...inLane(k)])]);
    return { row, column, lane, register, half: mine % each, byte: at, addresses, wavefronts: counted.wavefronts, wrong };
}

// ---- descriptors ----
function showDescriptor() {
    const row = Math.min(set.row, set.count - 1), column = Math.min(set.column, 15), at = byteOf(row, column), transposed = set.major === "MN";
    const core = (row >> 3) * 2 + (column >> 3), cores = range(set.count / 4), span = SPANS[bits(62, 2)], xored = Math.log2(span / 16), units = {};
    const inCore = (c, r, e) => [(c >> 1) * 8 + (transposed ? e : r), c % 2 * 8 + (transposed ? r : e)]; // e of row r of core matrix c, as it lies in memory
    const byteIn = (c, r = 0) => byteOf(...inCore(c, r, 0)), bit = (from) => xored === 1 ? `bit ${from}` : `bits ${from} to ${from + xored - 1}`;
    for (const c of cores) for (const r of range(8))
        units[byteIn(c, r) >> 4] = [...inCore(c, r, 0), `${c}\n.${r}`, `byte ${byteIn(c, r)}: core matrix ${c}, row ${r}`, c === core ? "mine" : ""];
    const different = Object.keys(units).length, groups = new Set(range(8).map((r) => (byteIn(core, r) >> 4) % 8)).size, others = "rows of A, or columns of B";
    say(`Row ${row} of A, or column ${row} of B, and k ${column}: core matrix ${core}, its row ${transposed ? column % 8 : row % 8}; ${where(at)}. ` +
        `The 8 rows of core matrix ${core} lie in ${plural(groups, "different group")} of 4 banks.`,
    (span > 16 && transposed ? `LBO: from ${span / 2} ${others}, to the next ${span / 2}. SBO: from 8 k to the next 8 k.` :
        `LBO${span > 16 ? " is not used" : ": from 8 k to the next 8 k"}. SBO: from 8 ${others}, to the next 8.`) +
        (span > 16 ? ` Start and offsets are added first. Then ${bit(4)} of the sum become${xored === 1 ? "s its" : " their"} XOR with ${bit(7)}.` : ""),
    [descriptor & MUST_BE_0 ? "Bits outside of the fields must be 0." : "", Math.max(...Object.keys(units)) * 16 >= 232448 ? "It reads past the 227 KiB that a block can have." : "",
        different < 8 * cores.length ? `The offsets overlap: of ${8 * cores.length} units ${different} differ.` : ""].filter(Boolean).join(" "),
    `Core matrix ${core}: the bank of each element; lines are ${transposed ? "k" : others}`, `the core matrix of each unit, and its row, .0 to .7. Marked: core matrix ${core}.`);
    grid("cores", ["k 0-7", "k 8-15"], range(cores.length / 2).map((k) => `${8 * k}-${8 * k + 7}`), cores.map((c) => [byteIn(c), `core matrix ${c}: byte ${byteIn(c)}`]), core,
        (c) => choose((c >> 1) * 8 + row % 8, c % 2 * 8 + column % 8));
    const cells = range(64).map((k) => inCore(core, k >> 3, k % 8)), across = transposed ? 0 : 1;
    grid("elements", cells.slice(0, 8).map((cell) => cell[across]), range(8).map((r) => cells[8 * r][1 - across]), cells.map(([i, k]) => [(byteOf(i, k) >> 2) % BANKS,
        `row ${i}, k ${k}: byte ${byteOf(i, k)}`]), cells.findIndex(([i, k]) => i === row && k === column), (k) => choose(...cells[k]));
    memory(units, at >> 4);
    const digits = PARTS.map(([, first, count]) => bits(first, count).toString(2).padStart(count, "0"));
    byId("binary").textContent = digits.join(" ");
    fillTable(byId("bits"), [["bits", "field", "in binary", "number", "bytes"], ...PARTS.map(([name, first, count, id, by], k) => [`${first}-${first + count - 1}`, name, digits[k],
        bits(first, count), by === 16 ? 16 * bits(first, count) : id === "mode" && span > 16 ? span : ""])]);
    fillTable(byId("table"), [["core matrix", "rows of A, or columns of B", "k", "byte of each of its 8 rows"], ...cores.map((c) => [c, `${8 * (c >> 1)}-${8 * (c >> 1) + 7}`,
        `${c % 2 * 8}-${c % 2 * 8 + 7}`, range(8).map((r) => byteIn(c, r)).join(", ")])]);
    return { row, column, byte: at, core, groups, units: Object.keys(units).map(Number), bits: digits.join(" ") };
}

// ---- what is chosen ----
function show(wanted) {
    set = { ...wanted };
    for (const id of CONTROLS) {
        const { min, max, step } = byId(id), by = +step || 1;
        if (min) set[id] = Math.max(+min, Math.min(+max, Math.floor(+set[id] / by) * by || 0));
        byId(id).value = set[id];
        if (byId(id).value === "") byId(id).value = set[id] = DEFAULTS[id];
    }
    for (const id of ["row", "column"]) set[id] = Math.max(0, Math.floor(+set[id]) || 0);
    descriptor = BigInt("0x" + (HEX.test(set.d) ? set.d : DEFAULTS.d));
    set.d = descriptor.toString(16).padStart(16, "0");
    for (const [, first, count, id, by] of INPUTS) byId(id).value = bits(first, count) * by;
    byId("descriptor").value = "0x" + set.d;
    const numbers = String([set.major, set.count, ...INPUTS.map(([, , , id]) => byId(id).value)]);
    byId("example").value = Object.keys(EXAMPLES).find((name) => String(EXAMPLES[name]) === numbers) || "";
    for (const part of document.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.includes(set.what[0]);
    const found = set.what === "wgmma" ? showDescriptor() : showWarp();
    [set.row, set.column] = [found.row, found.column];
    shown = { ...set, ...found };
    told();
    writeAddress(set);
}
const pack = (values) => INPUTS.reduce((sum, [, first, count, , by], k) =>
    sum | BigInt(Math.max(0, Math.min(2 ** count - 1, Math.floor(values[k] / by) || 0))) << BigInt(first), 0n).toString(16);
startStory({ place: () => STORY.findIndex(([state]) => Object.entries({ swizzle: "16", ...state }).every(([id, value]) => set[id] === value)), move: (at) => show({ ...DEFAULTS, ...STORY[at][0] }) });
tell(captions);
const GROUPS = [["Operands of the product", ["A", "B"]], ["Accumulator of the product", ["C"]],
    ["Loads of operands", Object.keys(FRAGMENTS).slice(3)], ["Operands in shared memory", ["wgmma"]]];
const calledSo = (name) => name.length === 1 ? `${name} of mma.sync.m16n8k16` : name.replace(/^w/, "descriptor of w");
const optionOf = (name) => element("option", { value: name }, calledSo(name));
byId("what").replaceChildren(...GROUPS.map(([label, names]) => element("optgroup", { label }, ...names.map(optionOf))));
options(byId("example"), [["", "your own"], ...Object.keys(EXAMPLES).map((name) => [name, name])]);
for (const id of CONTROLS) byId(id).addEventListener("change", (event) => show({ ...set, [id]: event.target.value }));
for (const [, , , id] of INPUTS) byId(id).addEventListener("change", () => show({ ...set, d: pack(INPUTS.map(([, , , name]) => byId(name).value)) }));
byId("descriptor").addEventListener("change", ({ target }) => show({ ...set, d: [target.value.trim().replace(/^0x/i, ""), set.d].find((d) => HEX.test(d)) }));
byId("example").addEventListener("change", ({ target }) => {
    const [major, count, ...values] = EXAMPLES[target.value] || [];
    if (major) show({ ...set, major, count, d: pack(values), row: 0, column: 0 });
});
for (const kind of ["load", "hashchange"]) addEventListener(kind, () => show({ ...DEFAULTS, ...readAddress() }));
