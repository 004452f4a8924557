// Search by Lunr, by section: in the browser it fills the page of search; under node it writes the index of the sections that it reads.
"use strict";
{ // an explorer has names of its own
// What newcomers say, and what the book calls it, by which it is replaced.
const CALLED = [[/\b(sqrt|square root)\b( of)? ?\(?(d|dk|d_k)\b\)?/, "scale unit variance"], [/\bnvcc\b.*\b(not found|missing|no such file)\b/, "cuda programs of your own nvcc"],
    [/\bfa ?-?([1-4])\b/g, "flashattention$1"], [/\bhow (fast|quick|good) is (it|this)\b/, "measurements how far from the best"], [/\bhow much (v?ram|memory)\b/, "costs bytes memory"], [/\bfastest\b/, "measurements how far from the best"], [/\blearn (cuda|gpus?)\b|\bfrom scratch\b/, "a gpu for c programmers"],
    [/\b(where|how) (do|can|should) (i|we|you) (start|begin)\b|\bgetting started\b/, "ten minutes"], [/\bwhy is shared memory slow\b/, "bank conflicts"], [/\bhow long\b.*\btake\b/, "study plan stages weeks"],
    [/\binstall (this|it|the book)\b|\bset (this|it) up\b/, "install the first minute"], [/\bgpus?\b(.*)\bbenchmark/, "card$1benchmark"], [/\bbenchmark(s|ed|ing)?\b/, "measurements"], [/\b(my|your) own (kernel|program|code)s?\b/, "cuda programs of your own"],
    [/__syncthreads\b/, "barrier __syncthreads"], [/\b(the|a) mask\b/, "causal mask"], [/\bpaged attention\b/, "paged kv cache"], [/\bneed to know\b/, "need to know prerequisites"],
    [/\bis (it|this|this book|the book) free\b|\bopen source\b/, "licence"], [/\bback-?prop(agation)?\b/, "backward pass gradients"], [/\b(wrong|bugs?) (with|in) my\b/, "$1 debugging"],
    [/\bwhere is the (source )?code\b/, "folder holds kernels"], [/\bflashattention ?-?1 (and|or) (flashattention)?[ -]?2\b/, "the loops exchanged"],
    [/\bflashattention ?-?([1-4]) (and|or|vs) ([1-4])\b/, "flashattention$1 flashattention$3"], [/\bflashattention ?3\b/, "flashattention3 hopper"],
    [/\bout of memory\b|\boom\b/, "bytes memory of S"], [/\bmatrix[ -]multiplications?\b|\bmat ?muls?\b/, "tiled matmul"], [/\btransformers?\b/, "attention function"],
    [/\bmulti-?head(ed)?( attention)?\b/, "batch heads attention"], [/\bposition(al)? (encoding|embedding)s?\b|\brope\b/, "rotary embedding"]];
// What a question is asked with, beside Lunr's own words of no meaning.
const ASKED = /^(work|works|working|use|used|using|difference|explain|explained|explanation|mean|means|tell|show|exactly|really|please|many)$/;
const words = (text) => String(text).toLowerCase().replace(/flash[ -]?attention[ -]([1-4])\b/g, "flashattention flashattention$1").match(/[\p{L}\p{N}]+/gu) || [];
const tokens = (text) => words(text).filter((word) => !/^\d{3,}$|^\p{N}[\p{N}a-f]{7,}$/u.test(word)).map((word, at) => new lunr.Token(word, { at }));

function makeIndex(sections) {
    return lunr(function () {
        this.tokenizer = tokens;
        this.pipeline.remove(lunr.trimmer);
        this.ref("at");
        this.field("page", { boost: 3 });
        this.field("heading", { boost: 6 });
        this.field("text");
        sections.forEach(([, page, heading, text], at) => this.add({ at, page, heading: heading || page, text }, { boost: text ? 1 : 0.1 }));
    });
}

// The pages that fit a question, the best first, as lists of their sections, at most three: [number of a section, stems that it has].
function find(index, vocabulary, sections, question) {
    const stem = (word) => lunr.stemmer(new lunr.Token(word)).toString(), groups = [], asked = question.toLowerCase().replace(/^\s*flash[ -]?attention\s*$/, "flashattention2 forward").replace(/flash[ -]attention/g, "flashattention"); // the chapter
    const spoken = words(CALLED.reduce((text, [said, called]) => text.replace(said, called), asked)), meant = (word) => lunr.stopWordFilter(new lunr.Token(word));
    const means = spoken.some((word) => meant(word) && !ASKED.test(word)) ? (word) => meant(word) && !ASKED.test(word) : meant, places = spoken.flatMap((word, k) => means(word) ? [k] : []);
    const phrases = places.slice(1).map((to, k) => spoken.slice(places[k], to + 1)).filter((each) => each[0][1] && each.at(-1)[1]).map((each) => ` ${each.map(stem).join(" ")} `); // "out of bounds"
    const count = (term) => Object.keys(index.invertedIndex[term].text).length, isBegun = (word) => [...vocabulary].some((term) => term.startsWith(word));
    const headed = (term) => sections.filter(([, title, heading]) => words(heading || title).some((word) => stem(word) === term)).length;
    const right = (word) => { // of a word that no page has the nearest stem, of several the one of most headings: attention, not attended
        const near = (edits) => index.tokenSet.intersect(lunr.TokenSet.fromFuzzyString(stem(word), edits)).toArray().sort((a, b) => headed(b) - headed(a) || count(b) - count(a))[0];
        return word.length < 5 || vocabulary.has(stem(word)) || isBegun(word) ? stem(word) : near(1) || word.length > 7 && near(2) || stem(word);
    };
    const typed = [...new Set(spoken.filter(means))];
    typed.forEach((word, at) => {
        if (vocabulary.has(stem(word + (typed[at + 1] || "")))) groups.push([stem(word + typed[at + 1])]); // "flash attention", "FlashAttention"
        const cut = vocabulary.has(stem(word)) ? 0 : [...word].findIndex((_, k) => k > 2 && k < word.length - 2 && vocabulary.has(stem(word.slice(0, k))) && vocabulary.has(stem(word.slice(k))));
        groups.push(...(cut > 0 ? [[stem(word.slice(0, cut))], [stem(word.slice(cut))]] : [[right(word), word]])); // "tensorcore"
    });
    const hits = new Map();
    for (const [term, word = term] of groups) {
        const found = index.query((query) => {
            query.term(term, { usePipeline: false, boost: 10 });
            if (word.length > 2) query.term(word, { usePipeline: false, wildcard: lunr.Query.wildcard.TRAILING });
        });
        const rare = Math.log(1 + sections.length / (1 + (vocabulary.has(term) ? count(term) : found.length))); // of two words the one that fewer sections have says more
        for (const { ref, score, matchData } of found) {
            const hit = hits.get(ref) || { score: 0, terms: new Map(), groups: 0 };
            hits.set(ref, hit);
            hit.score += score;
            hit.groups += rare;
            for (const each of Object.keys(matchData.metadata)) hit.terms.set(each, [term, rare]);
        }
    }
    const typedOnce = [...new Set(typed.map(right))].sort().join(" "); // a heading that is the question; of a bare term its definition is the first
    for (const [ref, hit] of hits) {
        const [page, title, heading] = sections[ref], names = (heading || title).split(",").map((name) => words(name).filter((word) => !/^(the|an?)$/.test(word)).map(stem).sort().join(" "));
        if (names.includes(typedOnce)) hit.score *= page.startsWith("docs/glossary") && spoken.length < 4 ? 40 : 4;
        else if (!heading && typed.length < 4 && typed.every((word) => words(title).map(stem).includes(stem(word)))) hit.score *= 4; // a page whose name has the term
    }
    for (const [ref, hit] of hits) { // the pages to start with before those that explain, these before tasks, appendices and tables, and all before what answers nothing
        const [page, , heading] = sections[ref];
        hit.score *= /^docs\/(gpu|first|math\/\w+)\./.test(page) ? 1.3 : /^docs\/answers/.test(page) ? 0.2 : /^CONTRIBUTING|^tests\//.test(page) ? 0.3 : /^explorers/.test(page) ? 1.5 : /^docs\/(math|study-plan|reading-code|references|gallery|teaching)\./.test(page) ? 0.4 : /^exercises\/\w+\/|^docs\/(counters|measurements)\.html#|\/(appendix|worked-example|precision)/.test(page) ? 0.6 : 1;
        if (/^(Credits|Next|Exercises|Check yourself|For your work log|What to hand in|What to write|Run it)$/.test(heading)) hit.score *= heading === "Credits" ? 0.1 : 0.3;
    }
    const order = ([, a], [, b]) => b.score * b.groups ** 2 - a.score * a.groups ** 2;
    for (const [ref, hit] of phrases.length ? [...hits].sort(order).slice(0, 100) : []) {
        const said = ` ${words(sections[ref].slice(1).join(" ")).map(stem).join(" ")} `;
        for (const phrase of phrases) if (said.includes(phrase)) hit.score *= 2;
    }
    const pages = new Map();
    for (const [ref, hit] of [...hits].sort(order)) {
        const page = sections[ref][0].split("#")[0];
        pages.set(page, [...(pages.get(page) || []), [+ref, hit.terms]]);
    }
    return [...pages.values()].map((hits) => hits.slice(0, 3));
}

// The sentence of a text that has the rarest of these stems, in pieces: [piece, is it one of them?].
function excerpt(text, terms) {
    const found = (word) => words(word).map((each) => terms.get(lunr.stemmer(new lunr.Token(each)).toString()) || terms.get(each)).filter(Boolean);
    const all = text.split(/(?<=[.?!])(?<!\beq\.)\s+|\n/).filter((sentence) => sentence.length > 20), prose = all.filter((line) => line[0] !== "`" && /[.?!:]$/.test(line));
    const sentences = prose.length ? prose : all.map((line) => line.replace(/^`/, "")); // rather than a line of code or a cell of a table
    const counts = sentences.map((sentence) => [...new Map(found(sentence)).values()].reduce((sum, rare) => sum + rare, -/:$/.test(sentence))), best = counts.indexOf(Math.max(...counts));
    const whole = prose.join(" "), shown = whole && whole.length < 320 ? whole : sentences.length ? sentences.slice(best, best + (sentences[best].length < 100 ? 2 : 1)).join(" ") : text;
    return shown.slice(0, 320).replaceAll("`", "").split(/(flash[ -]?attention[ -][1-4]\b|[\p{L}\p{N}]+)/iu).map((piece, k) => [piece, k % 2 === 1 && found(piece).length > 0]);
}

// On the page of search its list, on every other page one below the field, of the best eight.
if (typeof document !== "undefined") {
    const index = lunr.Index.load(BOOK.index), vocabulary = new Set(BOOK.index.invertedIndex.map(([term]) => term));
    const field = document.querySelector("header [name=q]"), root = document.querySelector("script[src$='_static/site.js']").src.replace("_static/site.js", "");
    const here = document.getElementById("found"), list = here || field.form.appendChild(newElement("ol", { id: "found", ariaLabel: "Pages found" }));
    const count = here && document.getElementById("count"), most = count ? 20 : 8; // explorers have a count of their own
    const show = () => {
        const question = field.value.trim(), found = question ? find(index, vocabulary, BOOK.sections, question) : [];
        const one = ([at, terms], first) => {
            const [to, page, heading, text] = BOOK.sections[at], href = root + to;
            return [newElement("a", { href }, first ? page : heading || page), ...(first && heading ? [" › ", newElement("a", { href }, heading)] : []),
                newElement("p", {}, ...excerpt(text, terms).map(([piece, hit]) => hit ? newElement("mark", {}, piece) : piece))];
        };
        list.replaceChildren(...found.slice(0, most).map((hits) => newElement("li", {}, ...(count ? hits : hits.slice(0, 1)).flatMap((hit, k) =>
            k ? [newElement("div", {}, ...one(hit, false))] : one(hit, true)))));
        if (!count) return;
        count.textContent = !question ? "Type a word or a question in the field above."
            : found.length ? `${found.length} pages${found.length > most ? `, the best ${most} of them:` : ":"}` : "No page has any of these words. Try another word, or the glossary.";
        document.title = `${question ? question + " - " : ""}Search - Attention, step by step`;
        history.replaceState(null, "", "?" + new URLSearchParams({ q: field.value }));
    };
    if (count) {
        field.value = new URLSearchParams(location.search).get("q") || "";
        field.form.addEventListener("submit", (event) => event.preventDefault());
        if (!field.value) field.focus();
    }
    field.addEventListener("input", show);
    field.form.addEventListener("keydown", (event) => { // below the field: from answer to answer, and away
        const links = [...list.querySelectorAll("li > a:first-child")], step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") document.activeElement.blur();
        if (!step || !field.form.contains(list)) return;
        event.preventDefault();
        (links[links.indexOf(document.activeElement) + step] || field).focus();
    });
    show();
} else {
    globalThis.lunr = require("lunr");
    module.exports = { find, excerpt };
    if (require.main === module) {
        const sections = JSON.parse(require("fs").readFileSync(0, "utf-8"));
        process.stdout.write(`var BOOK = ${JSON.stringify({ sections, index: makeIndex(sections) })};\n`);
    }
}
}
