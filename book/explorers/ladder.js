// The ladder: window.LADDER is a list of [source, card, pass, size, step, data type, ms, TFLOP/s, {peer: ratio}, [ms for the arithmetic,
// ms for the bytes] or null], made of the records; window.IDEAS says what each program of the book does, window.TITLES what it is called.
"use strict";
const FILTERS = ["source", "card", "pass", "size"], NAMES = { fwd: "forward", bwd: "backward", det: "backward, deterministic",
    latency: "each chapter by itself", rungs: "the rungs of the chapters", peers: "in turns with PyTorch" };
const PEERS = { flash: "FlashAttention-2", cudnn: "cuDNN", fa4: "FlashAttention-4" }, peerOf = (row) => row[4].replace("pytorch_", "");
const named = (row) => PEERS[peerOf(row)] || TITLES[row[4]] || row[4];
const PREFERRED = { source: "latency", card: "NVIDIA H200", pass: "fwd", size: "B 4, H 16, N 4096, d 64", metric: "tflops", theirs: "1" };
const MOST = 10; // captions
let rows = [], place = 0;

const metrics = () => [["tflops", "TFLOP/s"], ["ms", "milliseconds"], ["bound", "% of the bound"],
    ...[...new Set(rows.flatMap((row) => Object.keys(row[8])))].map((peer) => [peer, `% of the rate of ${PEERS[peer] || `PyTorch's '${peer}'`}`])];
const boundOf = (row) => row[9] && Math.max(...row[9]);
const valueOf = (row, metric) => metric === "ms" ? row[6] : metric === "tflops" ? row[7] : metric === "bound" ? row[9] && 100 * boundOf(row) / row[6] :
    row[8][metric] === undefined ? null : 100 * row[8][metric];
const digits = (x) => x === null ? "-" : x.toPrecision(3).includes("e") ? String(Math.round(x)) : x.toPrecision(3);

const isTheirs = (row) => peerOf(row) in PEERS;

function move(to) {
    place = to;
    [...byId("table").tBodies[0].rows].forEach((row, k) => { row.className = k === place || isTheirs(rows[k]) && isTheirs(rows[place]) ? "mine" : ""; }); // the libraries have one caption
    told();
}
// One caption for all libraries, and one for each program, or for the first and those that change the rate most, each compared with the one told before.
function captionsOf() {
    const [metric, unit] = metrics().find(([name]) => name === byId("metric").value), theirs = rows.filter(isTheirs), times = (row, before) => before && !isTheirs(before) ? before[6] / row[6] : 1;
    const change = (k) => k && !isTheirs(rows[k]) ? Math.abs(Math.log(times(rows[k], rows[k - 1]))) : Infinity, candidates = range(rows.length).filter((k) => !isTheirs(rows[k]) || rows[k] === theirs[0]);
    const told = candidates.sort((a, b) => change(b) - change(a) || a - b).slice(0, MOST).sort((a, b) => a - b);
    return told.map((at, k) => {
        const row = rows[at], before = rows[told.slice(0, k).findLast((each) => !isTheirs(rows[each]))], faster = times(row, before);
        const title = isTheirs(row) && theirs.length > 1 ? "The libraries" : named(row);
        const idea = (IDEAS[row[4]] || "PyTorch's own kernel, on the same card at the same size").replace(/^(.*?): /, (all, what) => title.includes(what) ? "" : all);
        const rate = faster < 1 ? `${digits(1 / faster)}x the time of` : `${digits(faster)}x as fast as`;
        return { at, title, text: isTheirs(row) ? `On the same card at the same size, in ${unit}: ${theirs.map((each) => `${named(each)} ${digits(valueOf(each, metric))}`).join(", ")}.` :
            before ? `${rate} ${named(before)}${before[5] === row[5] ? "" : `, in ${row[5]}, not ${before[5]}`}: ${idea}.` : `${digits(valueOf(row, metric))} ${unit}. ${idea.replace(/^./, (letter) => letter.toUpperCase())}.` };
    });
}

function show(wanted) {
    rows = LADDER;
    FILTERS.forEach((id, k) => {
        const values = [...new Set(rows.map((row) => row[k]))], wish = [wanted[id], PREFERRED[id]].find((each) => values.includes(each)) ?? values[0];
        options(byId(id), values.map((each) => [each, NAMES[each] || each]));
        byId(id).value = wish;
        rows = rows.filter((row) => row[k] === wish);
    });
    options(byId("metric"), metrics());
    byId("metric").value = metrics().some(([name]) => name === wanted.metric) ? wanted.metric : PREFERRED.metric;
    byId("theirs").checked = wanted.theirs !== "0";
    if (byId("theirs").checked && byId("source").value !== "peers") // recorded at this size
        rows = [...rows, ...LADDER.filter((row) => row[0] === "peers" && FILTERS.every((id, k) => !k || row[k] === byId(id).value) && peerOf(row) in PEERS)];
    const isAlone = !rows.some(isTheirs) && byId("theirs").checked;
    byId("none").hidden = !(byId("theirs").disabled = isAlone);
    const metric = byId("metric").value, limits = rows.map((row) => row[9] && { ms: boundOf(row), tflops: row[7] * row[6] / boundOf(row) }[metric]); // what the bound allows
    const values = [...rows.map((row) => valueOf(row, metric)), ...limits].filter(Boolean), most = metric === "bound" ? 100 : Math.max(...values), least = 10 ** Math.floor(Math.log10(Math.min(...values)) - 1e-9);
    const isLinear = metric === "bound", share = (value) => isLinear ? value ?? 0 : value ? 100 * Math.log(value / least) / Math.log(most / least) : 0; // of the width
    const unit = metrics().find(([name]) => name === metric)[1], best = rows.reduce((a, b) => ((valueOf(b, metric) ?? 0) > (valueOf(a, metric) ?? 0)) === (metric !== "ms") ? b : a);
    const again = { ms: 4, bound: 6 }[metric]; // the column of what is shown
    fillTable(byId("table"), [["program", "data type", unit, "", "ms", "bound, ms", "% of the bound", "bound by"], ...rows.map((row) => [named(row), row[5], digits(valueOf(row, metric)), "",
        digits(row[6]), digits(boundOf(row)), digits(valueOf(row, "bound")), row[9] ? row[9][0] < row[9][1] ? "bytes" : "arithmetic" : "-"])].map((row) => row.filter((_, k) => k !== again)));
    const cells = [...byId("table").rows].map((tr) => tr.cells[3].appendChild(element("div", { className: "axis" })));
    rows.forEach((row, k) => valueOf(row, metric) && cells[k + 1].append(element("i", { className: "measure" + (row[4] !== peerOf(row) || row[4] in PEERS ? " peer" : ""),
        style: `left: ${share(valueOf(row, metric))}%` })));
    limits.forEach((limit, k) => limit && cells[k + 1].append(element("i", { className: "limit", title: `bound: ${digits(limit)}`, style: `left: ${share(limit)}%` })));
    byId("table").style.setProperty("--decade", `${isLinear ? 25 : share(10 * least)}%`);
    const ticks = isLinear ? [0, 25, 50, 75, 100].map((each) => [each, each]) : range(Math.floor(Math.log10(most / least) + 1e-9) + 1).map((k) => [+(least * 10 ** k).toPrecision(1), k * share(10 * least)]);
    cells[0].append(...ticks.map(([value, place]) => element("span", { className: `tick${place < 85 ? "" : " last"}`, style: `left: ${place}%` }, String(value))));
    byId("said").textContent = `${rows.length} programs at ${byId("size").value} on an ${byId("card").value}. The ${metric === "ms" ? "shortest time" : "highest"}: ${named(best)}, ${digits(valueOf(best, metric))} ${metric === "bound" ? `% of its ${best[5]} bound` : unit}.`;
    writeAddress(chosen());
    tell(captionsOf());
    move(story.captions[0].at);
}
startStory({ place: () => place, move, last: () => rows.length - 1 });
const chosen = () => ({ ...Object.fromEntries([...FILTERS, "metric"].map((id) => [id, byId(id).value])), theirs: byId("theirs").checked ? "1" : "0" });
for (const id of [...FILTERS, "metric", "theirs"]) byId(id).addEventListener("change", () => show(chosen()));
show({ ...PREFERRED, ...readAddress() });
