// search.js SITE: are the questions of questions.tsv answered by the site's search? Each line has a question and the pages of which one must
// be among the first three answers. Of 92 questions 86 must be, and the first seven in any case. Of a bare
// term the first answer is its definition, or the chapter that has its name, what is shown of an answer is no line of code and no TeX, and
// no answer is a list of credits or one of the model answers, unless the question asks for these.
"use strict";
const fs = require("fs"), path = require("path"), site = path.resolve(process.argv[2]);
const { find, excerpt } = require(path.join(site, "_static/search.js"));
const BOOK = new Function(fs.readFileSync(path.join(site, "_static/search-index.js"), "utf-8") + "return BOOK;")();
const index = lunr.Index.load(BOOK.index), vocabulary = new Set(BOOK.index.invertedIndex.map(([term]) => term));
const lines = fs.readFileSync(path.join(__dirname, "questions.tsv"), "utf-8").trim().split("\n");
let missed = 0, wrong = lines.length === 92 ? 0 : 1;
for (const [k, line] of lines.entries()) {
    const [question, pages] = line.split("\t"), answers = find(index, vocabulary, BOOK.sections, question).slice(0, 3);
    const first = answers.map(([[at]]) => BOOK.sections[at][0].replace(/\.html.*/, ""));
    if (!pages.split(" ").some((page) => first.includes(page))) {
        console.log(`"${question}" finds ${first.join(", ")}, none of ${pages}`);
        missed++;
        wrong += k < 7;
    }
    for (const [[at, terms]] of answers) {
        const [page, , heading, text] = BOOK.sections[at], shown = excerpt(text, terms).map(([piece]) => piece).join("");
        if (text && !shown.trim()) wrong++, console.log(`"${question}": an answer without a sentence`);
        if (/\\[a-z]{2}|`/.test(shown)) wrong++, console.log(`"${question}": of an answer TeX is shown: ${shown}`);
        if (heading === "Credits" || page.startsWith("docs/answers") && !pages.includes("docs/answers")) wrong++, console.log(`"${question}": an answer that answers nothing: ${page}`);
    }
}
for (const [page, , , text] of BOOK.sections) {
    const joined = text.split("\n").find((line) => line[0] !== "`" && /\d\w?\.[A-Z][a-z]* /.test(line));
    if (joined) wrong++, console.log(`two sentences without a space in ${page}: ${joined.match(/.{0,20}\d\w?\.[A-Z].{0,20}/)[0]}`);
}
if (!find(index, vocabulary, BOOK.sections, "bank conflict").slice(0, 8).some(([[at]]) => BOOK.sections[at][0] === "explorers/warp-map.html")) wrong++, console.log('"bank conflict" does not find the explorer of banks');
if (find(index, vocabulary, BOOK.sections, "rolf").length) wrong++, console.log("a word of four letters is taken for another one");
for (const [term, page] of Object.entries({ warp: "docs/glossary.html#warp", softmax: "docs/glossary.html#softmax", "bank conflict": "docs/glossary.html#bank-conflict", occupancy: "docs/glossary.html#occupancy",
    wgmma: "docs/glossary.html#wgmma", "flash attention": "steps/05_fa2_fwd/README.html", FlashAttention: "steps/05_fa2_fwd/README.html",
    RoPE: "docs/glossary.html#rotary-embedding-rope", attension: "docs/glossary.html#attention", "what is flash attention": "docs/glossary.html#flashattention",
    "difference between FlashAttention 1 and 2": "steps/05_fa2_fwd/README.html#the-loops-exchanged", "how long does the book take": "docs/study-plan.html", "where do I start": "docs/first.html",
    "how do I install this": "index.html#the-first-minute", "what does __syncthreads do": "docs/gpu.html#barriers-and-races", "what is a kernel": "docs/glossary.html#kernel",
    "pipeline stages": "explorers/pipeline.html", "tile walk": "explorers/tile-walk.html", "__syncthreads deadlock": "docs/gpu.html#barriers-and-races" })) {
    const answers = find(index, vocabulary, BOOK.sections, term).slice(0, 3), [first] = BOOK.sections[answers[0][0][0]];
    if (first !== page) wrong++, console.log(`the first answer for the term "${term}" is ${first}`);
    for (const [[at, terms]] of answers) {
        const shown = excerpt(BOOK.sections[at][3], terms).map(([piece]) => piece).join("");
        if (shown && (BOOK.sections[at][3].includes("`" + shown) || shown[0] === "`")) wrong++, console.log(`"${term}": of an answer a line of code is shown: ${shown}`);
    }
}
console.log(`Search finds a right page among the first three answers for ${lines.length - missed} of ${lines.length} questions.`);
process.exit(missed > 6 || wrong ? 1 : 0);
