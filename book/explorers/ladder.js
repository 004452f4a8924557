// The ladder: window.LADDER is a list of [source, card, pass, size, step, data type, ms, TFLOP/s, {peer: ratio}, [ms for the arithmetic,
// ms for the bytes] or null], made of the records.
"use strict";
const FILTERS = ["source", "card", "pass", "size"], NAMES = { fwd: "forward", bwd: "backward", det: "backward, deterministic",
    latency: "each chapter by itself", rungs: "the rungs of the chapters", peers: "in turns with PyTorch" };
const PEERS = { flash: "FlashAttention-2 (PyTorch's 'flash')", cudnn: "cuDNN (PyTorch's 'cudnn')" };
const PREFERRED = { source: "latency", card: "NVIDIA H200", pass: "fwd", size: "B 4, H 16, N 4096, d 64", metric: "tflops" };
let rows = [];

const metrics = () => [["tflops", "TFLOP/s"], ["ms", "milliseconds"], ["bound", "% of the bound"],
    ...[...new Set(rows.flatMap((row) => Object.keys(row[8])))].map((peer) => [peer, `% of the rate of ${PEERS[peer] || `PyTorch's '${peer}'`}`])];
const boundOf = (row) => row[9] && Math.max(...row[9]);
const valueOf = (row, metric) => metric === "ms" ? row[6] : metric === "tflops" ? row[7] : metric === "bound" ? row[9] && 100 * boundOf(row) / row[6] :
    row[8][metric] === undefined ? null : 100 * row[8][metric];
const digits = (x) => x === null ? "-" : x.toPrecision(3).includes("e") ? String(Math.round(x)) : x.toPrecision(3);

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
    const metric = byId("metric").value, most = metric === "bound" ? 100 : Math.max(...rows.map((row) => valueOf(row, metric) || 0));
    const unit = metrics().find(([name]) => name === metric)[1], best = rows.reduce((a, b) => ((valueOf(b, metric) ?? 0) > (valueOf(a, metric) ?? 0)) === (metric !== "ms") ? b : a);
    const again = { ms: 4, bound: 6 }[metric]; // the column of what is shown
    fillTable(byId("table"), [["program", "data type", unit, "", "ms", "bound, ms", "% of the bound", "bound by"], ...rows.map((row) => [row[4], row[5], digits(valueOf(row, metric)), "",
        digits(row[6]), digits(boundOf(row)), digits(valueOf(row, "bound")), row[9] ? row[9][0] < row[9][1] ? "bytes" : "arithmetic" : "-"])].map((row) => row.filter((_, k) => k !== again)));
    [...byId("table").querySelectorAll("tbody tr")].forEach((tr, k) => tr.children[3].append(element("div", { className: "measure" + (rows[k][4].startsWith("pytorch") ? " peer" : ""),
        style: `width: ${Math.max(0, 16 * (valueOf(rows[k], metric) || 0) / most)}rem` })));
    byId("said").textContent = `${rows.length} programs at ${byId("size").value} on an ${byId("card").value}. The ${metric === "ms" ? "shortest time" : "highest"}: ${best[4]}, ${digits(valueOf(best, metric))} ${metric === "bound" ? `% of its ${best[5]} bound` : unit}.`;
    writeAddress(chosen());
}
const chosen = () => Object.fromEntries([...FILTERS, "metric"].map((id) => [id, byId(id).value]));
for (const id of [...FILTERS, "metric"]) byId(id).addEventListener("change", () => show(chosen()));
show({ ...PREFERRED, ...readAddress() });
