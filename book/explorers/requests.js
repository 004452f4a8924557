// What a request of a warp costs, by the meter's rule (common/simt/meter/counts.c).
"use strict";
const BANKS = 32, SECTOR = 32;
// addresses: per lane, null for a lane that takes no part.
const agree = (addresses, bit) => addresses.every((at, k) => at === null || addresses[k ^ bit] === null || at === addresses[k ^ bit]);
function counts(addresses, bytes, access) {
    const sectors = new Set(), turns = []; // turns: per wavefront {bank: [word, lanes]}
    for (const at of addresses) if (at !== null) for (let s = Math.floor(at / SECTOR); s <= Math.floor((at + bytes - 1) / SECTOR); s++) sectors.add(s);
    let group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    if (group < 32 && access === "load" && (agree(addresses, 1) || agree(addresses, 2))) group *= 2;
    for (let first = 0; first < 32; first += group) {
        const before = turns.length, depth = new Array(BANKS).fill(0), places = new Map();
        for (let k = first; k < first + group; k++) {
            if (addresses[k] === null) continue;
            for (let word = Math.floor(addresses[k] / 4); word <= Math.floor((addresses[k] + bytes - 1) / 4); word++) {
                if (!places.has(word)) {
                    const turn = before + depth[word % BANKS]++;
                    (turns[turn] ||= {})[word % BANKS] = [word, []];
                    places.set(word, turns[turn][word % BANKS]);
                }
                places.get(word)[1].push(k);
            }
        }
    }
    return { sectors: [...sectors].sort((a, b) => a - b), turns, wavefronts: turns.length };
}
