// The story of a tile walk: captions, each bound to a step of the trace in which its event is, most often the first. An event that a
// kernel does not have is not told; where few are left, phases without a caption are.
"use strict";
const MOST = 10, FEWEST = 6, VERBS = { copy: "copy", load: "load", compute: "compute with", scale: "scale", softmax: "compute the softmax", store: "store", wait: "wait" };
const list = (words) => [...new Set(words)].join(", ").replace(/, (?=[^,]*$)/, " and ");

function captionsOf({ steps, arrays, mbarriers }, isCausal) {
    const parts = steps.map(phaseOf), all = range(steps.length), work = all.filter((k) => steps[k].warps !== ""), barriers = all.filter((k) => !steps[k].warps && !steps[k].sync.length), found = [];
    const first = (test, from = 0) => work.find((k) => k >= from && test(k)), name = (array) => arrays[array][0];
    const does = (k, verb, warps = steps[k].warps) => who(warps).replace(/^./, (letter) => letter.toUpperCase()) + " " + (/[-,]/.test(warps) ? verb : verb.replace(/y$/, "ie") + "s");
    const touches = (k, ...actions) => steps[k].touches.filter(([array, action]) => array && actions.includes(action)), reads = (k) => touches(k, USE, MULTIPLY);
    const uses = (k, ...wanted) => wanted.every((each) => reads(k).some(([array]) => name(array) === each)), names = (touched) => list(touched.map(([array]) => name(array)));
    // "rows 0-31 of K": what `of` a step says, of the phase that begins at step k and ends behind `end`; the names only where that is long.
    let end = 0;
    const areas = (k, of, most = 3) => {
        const lists = new Map();
        end = all.find((j) => j > k && (parts[j].join() !== parts[k].join() || steps[j].warps !== steps[k].warps)) ?? steps.length;
        for (const each of all.slice(k, end).flatMap(of)) lists.set(each[0], [...(lists.get(each[0]) || []), each.at(-1)]);
        const text = list([...lists].map(([array, those]) => extent(array, those).replace(/^(\w+) \(([^,)]*).*$/, "$2 of $1")));
        return lists.size > most || text.split(" ").length > 14 ? names([...lists]) : text;
    };
    const inputs = (k) => touches(k, LOAD, COPY, BULK_LOAD), copies = (k) => touches(k, COPY, BULK_LOAD), stores = (k) => touches(k, STORE);
    const firsts = (of) => all.filter((k) => of(k).some(([array]) => !all.slice(0, k).some((j) => of(j).some(([other]) => other === array)))), results = firsts(stores).reverse();
    const next = (k) => barriers.find((each) => each > k) ?? steps.length, before = (k) => barriers.findLast((each) => each < k) ?? -1;
    // What one warp writes before barrier k, and no barrier is between, another reads behind it: [array, action, writer, reader].
    const pair = (k, wanted) => {
        for (const [array, action, warps, rectangles] of all.slice(before(k) + 1, k).flatMap((j) => touches(j, LOAD, COPY)))
            for (const [other, , readers, those] of all.slice(k).flatMap((j) => touches(j, USE))) {
                const writer = spans(warps)[0][0], reader = spans(readers).at(-1)[1], isSame = other === array && reader !== writer && (!wanted || name(array) === wanted), mine = isSame && new Set(words(rectangles, arrays[array][2]));
                if (mine && [...words(those, arrays[array][2])].some((word) => mine.has(word))) return [name(array), action, writer, reader];
            }
        return null;
    };
    const victim = (k) => all.slice(k, next(k)).flatMap((j) => steps[j].gone).find(([array]) => all.slice(before(k) + 1, k).some((j) => uses(j, name(array)))); // read before barrier k, overwritten behind it
    const waits = (k, space) => steps[k].sync.filter(([what, where, , , , seen]) => what === "wait" && where === space && !seen), turn = (k) => waits(k, "named").at(-1);
    const over = (wait) => steps.find(({ warps, sync }) => !warps && sync[0]?.slice(1, 4).join() === wait.slice(1, 4).join()); // the phase that is waited for
    const lands = (k) => waits(k, "mbarrier").find((wait) => over(wait)?.came.length), frees = (k) => waits(k, "mbarrier").find((wait) => over(wait)?.came.length === 0);
    const ends = (k, wanted) => reads(k).filter(([array]) => name(array) === wanted).flatMap(([, , , those]) => those.flatMap(([rows]) => spans(rows).flat())), isTile = (k) => uses(k, "Q", "K");
    const lately = (k, of, array) => all.slice(0, k + 1).findLast((j) => of(j).some(([each]) => each === array)) ?? -1;
    const underWay = (k) => [...arrays.keys()].filter((array) => lately(k, copies, array) > lately(k, (j) => steps[j].came, array)).map(name);
    const isLate = all.some((k) => touches(k, LOAD).some(([array]) => name(array) === "L")), kinds = (k) => list(votes(k)); // isLate: behind the forward pass
    const votes = (k) => isForward() && !isLate ? Object.keys(steps[k].counts).filter((kind) => /shfl_xor|any_sync/.test(kind)) : [];
    const tile = first(isTile), second = first((k) => isForward() ? uses(k, "V") : uses(k, "Q", "dO") && steps[k].touches.some(([array, action]) => !array && [USE, MULTIPLY].includes(action)), tile ?? 0);
    const again = first((k) => isTile(k) && !ends(k, "K").some((key) => ends(tile, "K").includes(key)), tile ?? 0); // another tile of keys
    const isRescaled = (k) => all.slice(k, all.find((j) => j > k && parts[j][0] !== "softmax")).some((j) => kinds(j).includes("shfl"));
    const isCounter = ([array, , , lists]) => [...words(lists, arrays[array][2])].length === 1, adds = (k) => touches(k, ADD);
    // Of an array of which a part goes, the part that comes: other rows, or other columns of the same rows.
    const replaced = (k) => {
        const [array] = steps[k].gone[0], of = (each) => each[0] === array, [old, now] = [(j) => steps[j].gone.filter(of), (j) => [...inputs(j), ...steps[j].came].filter(of)];
        const [was, is] = [areas(k, old), areas(k, now)], columns = (which) => extent(array, all.slice(k, end).flatMap(which).map((each) => each.at(-1))).match(/columns [^)]*/)?.[0];
        return !is ? was : was === is ? `${columns(old)} of ${name(array)} by ${columns(now)}` : `${was} by ${is.replace(` of ${name(array)}`, "")}`;
    };
    const deed = (k) => stores(k).length ? `${does(k, "store")} ${areas(k, stores)} in global memory.` : areas(k, (j) => touches(j, ...ACTIONS.keys())) ? `${does(k, VERBS[parts[k][0]])} ${areas(k, (j) => touches(j, ...ACTIONS.keys()))}.` :
        steps[k].sync.length ? `${said(steps[k].sync.at(-1)).replace(/^\w+/, (verb) => does(k, verb))}.` : `${does(k, "compute")} in registers.`;
    const ofLoad = (k) => ["load", k, `${names(inputs(k))}: the first rows`, () => `${does(k, copies(k).length ? "copy" : "load")} ${areas(k, inputs)}` +
        (copies(k).length ? " to shared memory, in the background." : steps[k].came.length ? " and store them in shared memory." : " to registers.")];
    const ofStore = (k) => ["store", k, `${names(stores(k))}: the result`, () => `${does(k, "store")} ${areas(k, stores)} in global memory.`];
    const events = [...firsts(inputs).slice(0, 2).map(ofLoad),
        ["product", tile, isForward() ? "S = Q K\u1d40: the first product" : "S again, from Q and K", (k) => `${does(k, "read")} ${areas(k, reads)}${underWay(k).length ? ` for S. Copies of ${list(underWay(k))} go on.` : ": S stays in registers."}`],
        ...results.slice(0, 1).map(ofStore),
        ["masked", isCausal ? first((k) => isTile(k) && k > tile && Math.max(...ends(k, "K")) > Math.min(...ends(k, "Q"))) : undefined, "The causal mask",
            (k) => `Keys up to ${Math.max(...ends(k, "K"))} meet queries from ${Math.min(...ends(k, "Q"))}: where a key comes after its query, its score is masked.`],
        ["barrier", barriers.find((k) => pair(k, "K")) ?? barriers.find((k) => pair(k)), "A barrier: written, then read", (k, [array, action, writer, reader] = pair(k, "K") || pair(k)) =>
            `Warp ${reader} waits here because warp ${writer} may still ${action === COPY ? "wait for its copies of" : "write its rows of"} ${array}. Behind the barrier warp ${reader} reads these rows.`],
        ["softmax", first((k) => votes(k).length), "The softmax", (k) => kinds(k).includes("shfl") ? `${does(k, "exchange")} numbers by ${kinds(k)}: a row's scores lie in several lanes, and the row needs one maximum m.` :
            `${does(k, "vote")} by ${kinds(k)} whether the maximum of a row rises: only then do its lanes exchange numbers.`],
        ["second", second, isForward() ? "P V is added to O" : "dK and dV grow", (k) => `${does(k, "read")} ${areas(k, reads, 2)} from shared memory${isForward() ? " and multiply V by P. The sum stays in registers." : ": P\u1d40 dO and dS\u1d40 Q go to dV and dK."}`],
        ["rise", first((k) => votes(k).length && !stores(k).length, Math.max(again ?? steps.length, (second ?? steps.length) + 1)), "The rescale", (k) => isRescaled(k) ?
            "Where the new tile raises a row's maximum m, its l and O are multiplied by exp(old m - new m)." : `${does(k, "vote")} by ${kinds(k)}: no row's maximum rises by much here, and nothing is rescaled.`],
        ["overwrite", first((k) => steps[k].gone.length), "The next tile takes the place", (k) => `${does(k, "overwrite")} ${replaced(k)}: no warp still needs the old.`],
        ["overlap", first((k) => underWay(k).length && reads(k).length), "A copy behind the products", (k) => `${does(k, "compute")} while the copy of ${list(underWay(k))} is under way: its latency is hidden.`],
        ["full", first(lands), "A wait for a copy", (k) => `${does(k, "wait", lands(k)[4])} at mbarrier ${mbarriers[lands(k)[2]]}, because the copy of ${names(over(lands(k)).came)} is still under way.`],
        ["turn", first(turn), "Warpgroups wait for each other", (k, [, , barrier, , warps] = turn(k)) => `${does(k, "wait", warps)} at named barrier ${barrier}: ` +
            (spans(warps).reduce((sum, [from, to]) => sum + to - from + 1, 0) > 4 ? "each warpgroup reads what the others have written." : "the warpgroup before still issues its products.")],
        ["empty", first(frees), "A wait for a free stage", (k) => `${does(k, "wait", frees(k)[4])} at mbarrier ${mbarriers[frees(k)[2]]} until ${arrivalsDue(frees(k)[2])} arrivals say that the stage may be overwritten.`],
        ["reuse", barriers.find(victim), "A barrier: read, then overwritten", (k) => `Every warp waits here. Next, ${name(victim(k)[0])} is overwritten in shared memory, and a slower warp may still read it.`],
        ["add", first((k) => adds(k).some((each) => !isCounter(each))), "Many blocks add", (k) => `${does(k, "add")} to ${areas(k, adds)} by atomics: other blocks add to the same rows.`],
        ["count", first((k) => adds(k).some(isCounter)), "The next tile of queries", (k) => `${does(k, "add")} 1 to a counter in ${names(adds(k))}: its old value is the number of the block's next tile.`],
        ...firsts(inputs).slice(2).map(ofLoad), ...results.slice(1).map(ofStore)];
    const tell = ([event, at, title, text]) => {
        if (at === undefined || found.length === MOST || found.some((each) => each.at === at)) return;
        end = at + 1;
        found.push({ event, at, title, text: text(at), end });
    };
    tell(["end", work.at(-1), "The end", (k) => `${deed(k)} The block is done.`]);
    events.forEach(tell);
    const distance = (k) => Math.min(steps.length, ...found.map(({ at }) => Math.abs(at - k))); // to a caption
    while (found.length < Math.min(FEWEST, work.length)) tell(["phase", work.reduce((best, each) => distance(each) > distance(best) ? each : best), "", deed]);
    for (const each of found) each.title ||= PHASES[parts[each.at][0]].replace(/^./, (letter) => letter.toUpperCase());
    return found.sort((a, b) => a.at - b.at);
}
