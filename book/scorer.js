// How Sphinx's search orders what it finds: pages by the word in their title, in a heading, in the text; files of code behind them.
"use strict";
var Scorer = {
    score: ([page, , , , points]) => (page.startsWith("code/") ? points - 1000 : points),
    objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
    title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
