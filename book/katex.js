// One line of JSON in, [formula, displayed?], one line out, its HTML or {error}: conf.py keeps one such process for all formulas.
const katex = require("katex");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const [formula, displayMode] = JSON.parse(line);
    let answer;
    try {
        answer = katex.renderToString(formula, { displayMode, throwOnError: true, strict: "error" });
    } catch (error) {
        answer = { error: error.message };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
});
