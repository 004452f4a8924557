// For browser.py, in each document before its scripts: window.state() says what an explorer shows.
"use strict";
const STATES = {
    "tile-walk": () => ({ step: byId("rung").value, mask: byId("mask").value, launch: run.launches.indexOf(launch), warp, at, steps: launch.steps.length, playing: story.timer !== null,
        epoch: launch.steps[at].epoch, sites: launch.steps[at].sites.map((site) => launch.sites[site]), said: byId("said").textContent, ...Object.fromEntries(["sync", "warps", "counts", "alike"].map((name) => [name, launch.steps[at][name]])),
        came: launch.steps[at].came.map(([array, rectangles]) => [launch.arrays[array][0], runs([...words(rectangles, launch.arrays[array][2])])]),
        touches: launch.steps[at].touches.filter(([, , warps]) => inWarp(warps)).map(([array, action, warps, rectangles]) =>
            [launch.arrays[array][0], action, warps, runs([...words(rectangles, launch.arrays[array][2])])]),
        cells: Object.fromEntries(launch.arrays.map(([name], array) => [name || "shared", shown.cells[array].join("")])),
        ...Object.fromEntries(["held", "underWay"].map((what) => [what, Object.fromEntries(launch.arrays.slice(1).map(([name], k) => [name, runs([...shown[what][k + 1]])]))])), names: shownPhases.names,
        marked: [...document.querySelectorAll("#source mark")].map((mark) => parseInt(mark.textContent, 10)) }),
    "warp-map": () => shown,
    fragments: () => shown,
    ladder: () => ({ ...chosen(), rows: rows.map((row) => [row[4], row[5], valueOf(row, byId("metric").value), boundOf(row)]),
        cells: [...byId("table").querySelectorAll("tbody tr")].map((tr) => [...tr.children].map((cell, k) => [byId("table").rows[0].cells[k].textContent, cell.textContent])),
        said: byId("said").textContent,
        limits: [...document.querySelectorAll(".limit")].map((bar) => parseFloat(bar.style.left)),
        dots: [...document.querySelectorAll(".measure")].map((dot) => [parseFloat(dot.style.left), dot.matches(".peer")]) }),
    pipeline: () => ({ kernel: byId("kernel").value, ...set, moved, waits: shown.waits, end: shown.end, hazards: shown.hazards, items: shown.items, meets: byId("meets").textContent,
        rows: byId("table").querySelectorAll("tbody tr").length }),
    example: () => ({ ...made, chosen, scale: +byId("scale").value, online: online(+byId("row").value, +byId("keys").value, byId("forget").checked) }),
};
window.state = () => STATES[location.pathname.match(/([\w-]+)\.html$/)[1]]();
window.count = (addresses, bytes, access) => { const { sectors, wavefronts } = counts(addresses, bytes, access); return [sectors.length, wavefronts]; };
window.simulate = (wanted, given) => { choose(wanted, given); return window.state(); };
