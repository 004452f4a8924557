// Attention by hand: the example of docs/math, with the reader's own numbers, computed here in double precision as the book's
// equations have it. window.EXAMPLE holds the book's inputs, from common/harness/inputs.c.
"use strict";
const N = 4, RANGE = [...Array(N).keys()], INPUTS = ["Q", "K", "V", "dO"];
const PASSES = { forward: ["S", "P", "O", "L"], backward: ["P", "dP", "D", "dS", "dQ", "dK", "dV"] };
const OUTPUTS = [...new Set([...PASSES.forward, ...PASSES.backward])]; // P is shown in both
const AXES = { S: "ij", L: "i", P: "ij", O: "ic", dP: "ij", D: "i", dS: "ij", dQ: "ic", dK: "jc", dV: "jc" }; // of the rows and the columns
const shownNumber = (x) => x === -Infinity ? "-inf" : String(Math.round(x * 10000) / 10000);
const input = {};
let made = {}, chosen = ["O", 0, 0];

const matrix = (of) => RANGE.map((i) => RANGE.map((j) => of(i, j)));
const sum = (of) => RANGE.reduce((total, k) => total + of(k), 0);

function compute(causal, scale) {
    const { Q, K, V, dO } = input;
    const S = matrix((i, j) => causal && j > i ? -Infinity : scale * sum((c) => Q[i][c] * K[j][c]));
    const m = S.map((row) => Math.max(...row)), L = RANGE.map((i) => [m[i] + Math.log(sum((j) => Math.exp(S[i][j] - m[i])))]);
    const P = matrix((i, j) => Math.exp(S[i][j] - L[i][0])), O = matrix((i, c) => sum((j) => P[i][j] * V[j][c]));
    const dP = matrix((i, j) => sum((c) => dO[i][c] * V[j][c])), D = RANGE.map((i) => [sum((c) => dO[i][c] * O[i][c])]);
    const dS = matrix((i, j) => P[i][j] * (dP[i][j] - D[i][0]));
    return { ...input, S, P, O, L, dP, D, dS, dQ: matrix((i, c) => scale * sum((j) => dS[i][j] * K[j][c])),
        dK: matrix((j, c) => scale * sum((i) => dS[i][j] * Q[i][c])), dV: matrix((j, c) => sum((i) => P[i][j] * dO[i][c])) };
}

// The rows of the online softmax of one query: key by key s, m, the rescale, the weight, l and the weighted sum.
function online(row, keys, forget) {
    let m = -Infinity, l = 0, o = [0, 0, 0, 0];
    const rows = [];
    for (let j = 0; j < keys; j++) {
        const s = made.S[row][j], next = Math.max(m, s), masked = next === -Infinity, isFirst = m === -Infinity;
        const rescale = masked ? 1 : Math.exp(m - next), weight = masked ? 0 : Math.exp(s - next), used = forget ? 1 : rescale;
        l = used * l + weight;
        o = o.map((x, c) => used * x + weight * input.V[j][c]);
        m = next;
        rows.push({ j, s, m, rescale, used, weight, l, o, isFirst });
    }
    return { rows, o: o.map((x) => x / l), L: m + Math.log(l) };
}

// How an element is computed: its equation, and by it the elements that enter.
const FORMULAS = { S: "scale x sum over c of Q[i][c] K[j][c]", L: "the logarithm of the sum over j of exp(S[i][j])", P: "exp(S[i][j] - L[i])",
    O: "sum over j of P[i][j] V[j][c]", dP: "sum over c of dO[i][c] V[j][c]", D: "sum over c of dO[i][c] O[i][c]", dS: "P[i][j] (dP[i][j] - D[i])",
    dQ: "scale x sum over j of dS[i][j] K[j][c]", dK: "scale x sum over i of dS[i][j] Q[i][c]", dV: "sum over i of P[i][j] dO[i][c]" };
function partsOf(name, place) {
    const summed = FORMULAS[name].match(/sum over (.)/)?.[1], at = (axis, k) => axis === summed ? k : axis ? place[AXES[name].indexOf(axis)] : 0;
    const factors = [...FORMULAS[name].matchAll(/(\w+)\[(.)\](?:\[(.)\])?/g)];
    return (summed ? RANGE : [0]).flatMap((k) => factors.map(([, of, row, column]) => [of, at(row, k), at(column, k)]));
}

const keySaid = (last, forget) => !last ? "No key yet: m = -inf, l = 0, and the weighted sum is 0." :
    last.s === -Infinity ? `Key ${last.j} is masked: its weight is 0.` : last.isFirst ? `Key ${last.j} is the first: its score is the maximum, and there is nothing yet to rescale.` : last.rescale === 1 ? `Key ${last.j} does not raise the maximum: nothing is rescaled.` :
        `Key ${last.j} is a new maximum: what was there is multiplied by ${shownNumber(last.rescale)}${forget ? ", but here this is omitted." : "."}`;
const scaleOf = () => /^\s*ln ?2\s*$/.test(byId("scale").value) ? Math.LN2 : +byId("scale").value || 0;
const place = () => byId("forget").checked ? N + 1 : +byId("keys").value;
function move(at) {
    byId("keys").value = Math.min(at, N);
    byId("forget").checked = at > N;
    show();
}

function show() {
    // After a change of the pass an element that is shown.
    if (!PASSES[byId("pass").value].includes(chosen[0])) chosen = byId("pass").value === "backward" ? ["dS", 3, 0] : ["O", 3, 0];
    const scale = scaleOf(), causal = byId("causal").checked, row = +byId("row").value, keys = +byId("keys").value, forget = byId("forget").checked;
    for (const name of INPUTS) input[name] = matrix((i, j) => +byId(`${name}${i}${j}`).value || 0);
    made = compute(causal, scale);
    const steps = online(row, keys, forget), last = steps.rows[keys - 1];
    byId("keysShown").textContent = `${keys} of ${N}`;
    const right = online(row, keys, false), list = (numbers) => [numbers].flat().map(shownNumber).join(", ");
    const beside = (is, ought) => list(is) + (list(is) === list(ought) ? "" : ` (right: ${list(ought)})`);
    fillTable(byId("online"), [["key", "s", "new maximum m", "rescale", "weight exp(s - m)", "l", "weighted sum of V"], ...steps.rows.map(({ j, s, m, used, weight, l, o }, k) =>
        [j, ...[s, m].map(shownNumber), beside(used, right.rows[k].used), shownNumber(weight), beside(l, right.rows[k].l), beside(o, right.rows[k].o)]), ...range(N).slice(keys).map((j) => [j, ...Array(6).fill("")])]);
    byId("said").textContent = keySaid(last, forget) +
        (keys === N ? ` The end: O = (${list(steps.o)}), L = ${list(steps.L)}.` + (forget ? ` Right is O = (${list(right.o)}), L = ${list(right.L)}.` : "") : "");
    byId("said").style.visibility = keys < N && !forget ? "hidden" : ""; // the caption says the same
    const [name, i, j] = chosen, formula = FORMULAS[name], parts = partsOf(name, [i, j]), used = new Set(parts.map((part) => part.join()));
    const here = formula.replace(/\[([ijc])\]/g, (text, axis) => AXES[name].includes(axis) ? `[${[i, j][AXES[name].indexOf(axis)]}]` : text);
    const products = /sum over . of \w+\[.\]\[.\] /.test(formula) ? parts.flatMap((part, k) => k % 2 ? [] : [[part, parts[k + 1]]]) : [];
    const named = ([of, a, b]) => `${of}[${a}]${["L", "D"].includes(of) ? "" : `[${b}]`}`, worth = ([of, a, b]) => shownNumber(made[of][a][b]);
    byId("element").textContent = `${named(chosen)} = ${here} = ` + (products.length ?
        `${formula.startsWith("scale") ? `${shownNumber(scale)} x ` : ""}(${products.map((pair) => pair.map(worth).join(" x ")).join(" + ")}) = ${worth(chosen)}.` :
        `${worth(chosen)}, from ${parts.map((part) => `${named(part)} = ${worth(part)}`).join(", ")}.`);
    for (const of of OUTPUTS) made[of].forEach((cells, a) => cells.forEach((x, b) => Object.assign(byId(`${of}${a}${b}`), { textContent: shownNumber(x),
        ariaLabel: `${of}, row ${a}, column ${b}: ${shownNumber(x)}`, ariaPressed: String(of === name && a === i && b === j), style: of === "P" ? `--part: ${x}` : "", className: used.has([of, a, b].join()) ? "mine" : causal && b > a && ["S", "P"].includes(of) ? "masked" : "" })));
    for (const of of INPUTS) for (const a of RANGE) for (const b of RANGE) byId(`${of}${a}${b}`).className = used.has([of, a, b].join()) ? "mine" : "";
    for (const cell of document.querySelectorAll(".turn")) cell.classList.remove("turn");
    for (const cell of keys ? [...RANGE.flatMap((b) => [`Q${row}${b}`, `K${keys - 1}${b}`, `V${keys - 1}${b}`]), `S${row}${keys - 1}`, `P${row}${keys - 1}`] : []) byId(cell).classList.add("turn");
    const { rows } = online(row, N, false), wrong = online(row, N, true);
    tell([...range(N + 1).map((at) => ({ at, title: at ? `Key ${at - 1}` : "Before the first key", text: keySaid(rows[at - 1]) })),
        { at: N + 1, title: "Without the rescale", text: `l becomes ${shownNumber(wrong.rows[N - 1].l)} instead of ${shownNumber(rows[N - 1].l)}: earlier keys weigh too much wherever the maximum rose behind them.` }]);
    OUTPUTS.forEach((of, k) => { byId("outputs").children[k].hidden = !PASSES[byId("pass").value].includes(of); });
    writeAddress({ ...Object.fromEntries(INPUTS.map((of) => [of, input[of].flat().join(" ")])), scale, causal: +causal, row, keys, forget: +forget, pass: byId("pass").value, at: chosen.join(" ") });
}

function figure(name, columns, cell) {
    const rows = RANGE.map((i) => element("tr", {}, ...[...Array(columns).keys()].map((j) => element("td", {}, cell(i, j)))));
    return element("figure", {}, element("figcaption", {}, element("strong", {}, name)), element("table", {}, ...rows));
}
function set(state) {
    for (const name of INPUTS) {
        const numbers = state[name] ? state[name].split(" ").map(Number) : EXAMPLE[name].flat();
        for (const i of RANGE) for (const j of RANGE) byId(`${name}${i}${j}`).value = numbers[N * i + j] || 0;
    }
    const scale = +(state.scale ?? EXAMPLE.scale) || 0;
    byId("scale").value = scale === Math.LN2 ? "ln 2" : scale;
    for (const id of ["causal", "forget"]) byId(id).checked = state[id] === "1";
    byId("row").value = /^[0-3]$/.test(state.row) ? state.row : "3";
    byId("keys").value = state.keys ?? 0;
    byId("pass").value = state.pass in PASSES ? state.pass : "forward";
    const [name, i, j] = (state.at || "O 3 0").split(" ");
    chosen = name in FORMULAS && /^[0-3]$/.test(i) && /^[0-3]$/.test(j) ? [name, +i, ["L", "D"].includes(name) ? 0 : +j] : ["O", 3, 0];
    show();
}

startStory({ place, move });
byId("inputs").append(...INPUTS.map((name) => figure(name, N, (i, j) => element("input", { type: "number", step: "any", id: `${name}${i}${j}`, ariaLabel: `${name}, row ${i}, column ${j}`, oninput: show }))));
byId("outputs").append(...OUTPUTS.map((name) => figure(name, ["L", "D"].includes(name) ? 1 : N, (i, j) =>
    element("button", { type: "button", id: `${name}${i}${j}`, onclick: () => { chosen = [name, i, j]; show(); } }))));
for (const kind of ["load", "hashchange"]) addEventListener(kind, () => set(readAddress()));
for (const id of ["scale", "causal", "row", "keys", "forget", "pass"]) byId(id).addEventListener(byId(id).tagName === "SELECT" ? "change" : "input", show);
byId("reset").addEventListener("click", () => { clearNotes(); set({}); });
