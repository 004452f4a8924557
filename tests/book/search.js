// search.js SITE: are the questions of questions.tsv answered by the site's search? Each line has a question and the pages of which one must
// be among the first three answers. Of 63 questions 57 must be, and the first seven in any case.
"use strict";
const fs = require("fs"), path = require("path"), site = path.resolve(process.argv[2]);
const { find, excerpt } = require(path.join(site, "_static/search.js"));
const BOOK = new Function(fs.readFileSync(path.join(site, "_static/search-index.js"), "utf-8") + "return BOOK;")();
const index = lunr.Index.load(BOOK.index), vocabulary = new Set(BOOK.index.invertedIndex.map(([term]) => term));
const lines = fs.readFileSync(path.join(__dirname, "questions.tsv"), "utf-8").trim().split("\n");
let missed = 0, wrong = lines.length === 63 ? 0 : 1;
for (const [k, line] of lines.entries()) {
    const [question, pages] = line.split("\t"), answers = find(index, vocabulary, BOOK.sections, question).slice(0, 3);
    const first = answers.map(([[at]]) => BOOK.sections[at][0].replace(/\.html.*/, ""));
    if (!pages.split(" ").some((page) => first.includes(page))) {
        console.log(`"${question}" finds ${first.join(", ")}, none of ${pages}`);
        missed++;
        wrong += k < 7;
    }
    for (const [[at, terms]] of answers) if (BOOK.sections[at][3] && !excerpt(BOOK.sections[at][3], terms).join("").trim()) wrong++, console.log(`"${question}": an answer without a sentence`);
}
console.log(`Search finds a right page among the first three answers for ${lines.length - missed} of ${lines.length} questions.`);
process.exit(missed > 6 || wrong ? 1 : 0);
