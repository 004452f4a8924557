#!/usr/bin/env bash
# run.sh PROGRAMS FOLDER STEP...: builds the site in FOLDER, follows its links, serves it, shows it in a browser, and shows that each of these
# checks can fail. Exit status 77 where Sphinx or a browser is missing and CI is not set.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
readonly programs=$1 site=$2
shift 2
status=0
for python in python3 /usr/bin/python3 ''; do
    if "${python:-false}" -c 'import sphinx, myst_parser, PIL' 2>/dev/null; then break; fi
done
if [[ ! $python || ! -e /usr/share/nodejs/lunr ]]; then
    echo 'missing: Sphinx, MyST, Pillow or Lunr' && [[ ! ${CI-} ]] && exit 77
    exit 1
fi
"$python" -B book/build.py --bin "$programs" --out "$site" "$@" || exit 1
here=tests/book
python3 -B $here/links.py "$site" || status=1
asks() { NODE_PATH=/usr/share/nodejs node --no-deprecation $here/search.js "$1"; }
asks "$site" || status=1
serve() { "$python" -B $here/serve.py "$site" "$programs" "$@"; }
serve || status=1
[[ $(serve "s/exec \"\$sphinx\"/trap '' INT; &/") == *'does not end'* ]] || { echo 'a server that cannot be interrupted is not noticed' && status=1; }
[[ $(serve 's|--directory build/book|--directory build|') == *'it answers'* ]] || { echo 'a server of another folder is not noticed' && status=1; }
browser() { /usr/bin/python3 -B $here/browser.py "$1" "$programs" "${@:2}"; }
browser "$site"
case $? in 0) ;; 77) exit $((status ? 1 : 77)) ;; *) exit 1 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- a trace of the reader's own ----
cp -r "$site" "$work/own"
cp docs/examples/reverse.cu "$work/my kernel.cu"
nvcc=$(realpath -s "$programs/simt-nvcc")
if ! (cd "$work" && "$nvcc" 'my kernel.cu' -o mine && SIMT_TRACE=mine.json ./mine) >"$work/log" 2>&1; then cat "$work/log" && status=1; fi
own() { "$python" -B book/build.py --out "$work/own" --sources "$work" --trace "$1" 2>&1; }
if ! own "$work/mine.json" || ! grep -q '"my kernel.cu":{"[0-9]*":"' "$work/own/explorers/data/your_trace.js"; then
    echo "the trace of a reader's own program is not shown with its source" && status=1
fi
browser "$work/own" --pages 'explorers/tile-walk.html' --others '' --walks '' || status=1
for wrong in '{}' '{"launches":[]}' '{"launches":[{' ''; do
    printf '%s' "$wrong" >"$work/wrong.json"
    said=$(own "$work/wrong.json")
    if [[ $? != 2 || $(wc -l <<<"$said") != 1 || $said != *'is no trace of the simulated device'* ]]; then echo "a wrong trace, $wrong: $said" && status=1; fi
done

# ---- each fault by itself in a copy of the site, those that a browser notices in one browser, at the end; in continuous integration a ninth
# of them, as .ci/run draws it ----
faults=0
must_fail() { # WHAT SAID FILE SED COMMAND...: with FILE so edited the command fails and says SAID; as a COMMAND alone, the --pages, --others and --walks of browser.py
    local said
    ((++faults))
    [[ ! ${TEST_PART-} ]] || ((faults % 9 == TEST_PART + 3 * ${TEST_THIRD:-0})) || return 0
    if [[ $5 == browser ]]; then (IFS=$'\t' && echo "${*:1:4}"$'\t'"${*:6}") >>"$work/faults" && return; fi
    rm -rf "$work/site" && cp -rl "$site" "$work/site" # sed -i writes another file
    sed -i -E "$4" "$work/site/$3"
    if cmp -s "$site/$3" "$work/site/$3"; then echo "$1: the edit changes nothing" && status=1 && return; fi
    if said=$("${@:5}" 2>&1); then
        echo "$1 is not noticed" && status=1
    elif [[ $said != *"$2"* ]]; then
        echo "$1: not for this reason: $said" && status=1
    else
        echo "noticed: $1"
    fi
}
page=docs/gpu.html
links=(python3 -B "$here/links.py" "$work/site")
pages=(browser "$page" '' '') # --pages, --others, --walks
walks=(browser '' '' 05_fa2_fwd)
must_fail 'a link to no file' 'leads to no file' $page '0,/href="glossary.html/s//href="glosary.html/' "${links[@]}"
must_fail 'a text that leads elsewhere' 'of the next page the text says' steps/06_vectorized/README.html '/<section id="next">/,/<\/section>/s|math/backward.html|glossary.html|' "${links[@]}"
must_fail 'a second name of a chapter' 'has the names' docs/gpu.html 's|>05 FlashAttention-2 forward<|>05 FlashAttention<|' "${links[@]}"
must_fail 'a page that no order has' 'no link to the next page' docs/math/costs.html 's/rel="next" href="[^"]*"/rel="next" href="#"/' "${links[@]}"
must_fail 'a task in the reading order' 'stands in the reading order' docs/math/costs.html 's|rel="next" href="[^"]*"|rel="next" href="../../exercises/01a_naive_kernels/README.html"|' "${links[@]}"
must_fail 'a task that no page lists' 'no page of the reading order lists it' exercises/01a_naive_kernels/README.html 's/rel="up"/rel="top"/' "${links[@]}"
must_fail 'a page behind the chapter that needs it' 'stands behind it' docs/math/costs.html 's|rel="next" href="[^"]*"|rel="next" href="../../steps/07_naive_bwd/README.html"|' "${links[@]}"
must_fail 'a beginning elsewhere' 'the book begins with' index.html 's|rel="next" href="[^"]*"|rel="next" href="docs/gpu.html"|' "${links[@]}"
must_fail 'an end that nothing names' 'nothing says that it is the last' steps/17_ring/README.html 's/The chapters end here/More/' "${links[@]}"
must_fail 'another time than the ladder has' 'nothing says why' steps/10_tensor_core_fwd/README.html \
    's/times of another run/times/' "${links[@]}"
must_fail 'a value that is empty' 'empty: Now' steps/06_vectorized/README.html 's|(Now</span></a>:</strong>) [0-9]+ % \([^.]*|\1 -|' "${links[@]}"
must_fail 'a summary without words' 'empty: <summary' steps/06_vectorized/README.html 's|<summary>[^<]+|<summary>|' "${links[@]}"
must_fail 'a search that takes the worst' 'among the first three answers for' _static/search.js 's/b.score \* b.groups/-b.score * b.groups/' asks "$work/site"
must_fail 'a definition behind other pages' 'the first answer for the term' _static/search.js 's/ \? 40 : 4/ ? 1 : 4/' asks "$work/site"
must_fail 'a snippet of code' 'a line of code is shown' _static/search.js 's/prose.length \? prose : all.map.*/all;/' asks "$work/site"
must_fail 'a formula as it is typed' 'TeX is shown' _static/search-index.js 's/ the / \\\\infty /g' asks "$work/site"
must_fail 'sentences that are joined' 'two sentences without a space' _static/search-index.js 's/(faster than 13a\.) /\1/' asks "$work/site"
must_fail 'credits as an answer' 'an answer that answers nothing' _static/search.js 's/\? 0.1 : 0.3/? 9 : 0.3/' asks "$work/site"
must_fail 'words of a question that stand apart' '"out of bounds" finds' _static/search.js 's/hit.score \*= 2/hit.score *= 1/' asks "$work/site"
must_fail 'joined words that are not cut' '"tensorcore" finds' _static/search.js 's/cut > 0/cut > 99/' asks "$work/site"
must_fail 'a header that goes' 'the header, where the page' _static/header.css 's/position: sticky; top: 0; z/z/' browser '' ways ''
must_fail 'a section that is not marked' 'the mark of the section' _static/site.js 's/addEventListener\("scroll", mark.*//' browser '' ways ''
must_fail 'contents of a page that are hidden' 'the mark of the section' _static/site.css 's/> ul > li > ul ul \{/ul ul {/' browser '' ways ''
must_fail 'a prompt that is copied' 'a copy of commands' _static/site.js 's/commands \? line.replace\([^)]*\) : line/line/' browser '' ways ''
must_fail 'a key that leads nowhere' 'by a key' _static/site.js 's/ArrowLeft: "a/Arrow: "a/' browser '' ways ''
must_fail 'a key in the field of search' 'typed in the field' _static/site.js 's/closest\?\.\("input, /closest?.("/' browser '' ways ''
must_fail 'a search that waits for a key' 'results while typing' _static/site.js 's/else field.addEventListener.*//' browser '' ways ''
must_fail 'results that a phone cuts off' 'cut off on a phone' _static/header.css 's/header form \{ position: static; \} header #found \{ left: 3vw; \}//' browser '' ways ''
must_fail 'answers that keys do not reach' 'the answer by keys' _static/search.js 's/ArrowDown: 1/Arrow: 1/' browser '' ways ''
must_fail 'results from the top of the page' 'a result leads to' _static/search.js 's/href = root \+ to/href = to/' browser '' ways ''
must_fail 'a chapter by its folder' 'names in the list of pages' steps/06_vectorized/README.html 's/>05 FlashAttention-2 forward</>05_fa2_fwd</' browser '' page ''
must_fail 'a picture for a wide screen on a phone' 'the first picture' _static/site.css 's/\.moves \.broad \{ display: none !important; \}//' browser '' phone ''
must_fail 'a picture wider than a phone' 'wider than a phone' _static/site.css 's/img \{ max-width: 100%;/img {/' browser '' phone ''
must_fail 'a table that is cut off on a phone' 'cut off on a phone' explorers/explorer.css 's/#online :is\(th, td\) \{ white-space: normal;/#nothing { /' browser '' phone ''
must_fail 'a first picture that begins empty' 'has nothing yet' _images/tile_walk.svg 's/linear -[0-9.]+s infinite/linear infinite/' browser '' phone ''
must_fail 'an explorer that forgets the page' 'the way back from an explorer' _static/site.js 's/back.textContent = .*//' browser '' ways ''
must_fail 'a header in a frame' 'a frame without a header' _static/header.css 's/^\.frame .*//' browser '' ways ''
must_fail 'a link to no place' 'leads to no such place' $page '0,/glossary.html#[a-z-]+/s//glossary.html#nowhere/' "${links[@]}"
must_fail 'an error on the console' 'the console says' $page 's|</body>|<script>nothing();</script></body>|' "${pages[@]}"
must_fail 'a request outside' 'it asks for' $page 's|</body>|<img alt="x" src="http://127.0.0.1:9/x.png"></body>|' "${pages[@]}"
must_fail 'a page that is too wide' 'wider than the window' $page 's|</main>|<div style="width: 500px; height: 1px"></div></main>|' "${pages[@]}"
must_fail 'pale text' 'contrast' _static/site.css 's/--text: #1d2129/--text: #888/' "${pages[@]}"
must_fail 'a button without a name' 'no name' $page 's|</main>|<button></button></main>|' "${pages[@]}"
must_fail 'one access of a trace' 'differ from the trace' explorers/data/05_fa2_fwd.js 's/"touches":\[\[0,6,"0",0\]/"touches":[[0,6,"1",0]/' "${walks[@]}"
hopper=(browser '' '' 12a_wgmma)
must_fail 'a copy by the TMA' 'differ from the trace' explorers/data/12a_wgmma.js 's/"touches":\[\[2,7,/"touches":[[1,7,/' "${hopper[@]}"
must_fail 'scores that are never multiplied by V' 'scores that never are' explorers/tile-walk.js 's/each\(reads\(V\), .*//' "${walks[@]}"
must_fail 'who waits' 'who waits for what' explorers/data/12a_wgmma.js 's/\["wait","mbarrier",0,0,"0-3"/["wait","mbarrier",0,0,"0-2"/' "${hopper[@]}"
must_fail 'a phase' 'what lands with which phase' explorers/data/12a_wgmma.js 's/\["phase","mbarrier",1,1,/["phase","mbarrier",1,0,/' "${hopper[@]}"
must_fail 'a wrong bank' 'differ from the meter' explorers/requests.js 's/depth\[word % BANKS\]/depth[word % 31]/' browser '' warp-map ''
must_fail 'a wrong lane of a fragment' 'fragments: the tables' explorers/fragments.js 's/lane % 4 \* 2/lane % 4 + 2/' browser '' fragments ''
must_fail 'a wrong register' 'lane, register, half' explorers/fragments.js 's/register = Math.floor\(mine % places/register = Math.floor((mine + 2) % places/' browser '' fragments ''
must_fail 'a wrong swizzle' 'fragments: the places of' explorers/fragments.js 's/row % 8 << 4/row % 4 << 4/' browser '' fragments ''
must_fail 'a wrong base offset' 'differ from the simulated device' explorers/fragments.js 's/\(at >> 7\) - base/(at >> 7) + base/' browser '' fragments ''
must_fail 'a wrong bank of an element' 'fragments: said says' explorers/fragments.js 's/\(at >> 2\) % BANKS/(at >> 2) % 31 + 1/' browser '' fragments ''
must_fail 'a first column without effect' 'after left' explorers/fragments.js 's/set.left \+ c, set.pitch/c, set.pitch/g' browser '' fragments ''
must_fail 'a wrong equation' 'the program prints' explorers/example.js 's/\* \(dP\[i\]\[j\] - D\[i\]\[0\]\)/* dP[i][j]/' browser '' example ''
must_fail 'a field without effect' 'addresses after padding' explorers/warp-map.js 's/set.columns \+ set.padding/set.columns/' browser '' warp-map ''
must_fail 'words that make a column of numbers wide' 'tables without a number' _static/site.js 's/cell\.style\.whiteSpace = "normal"/0/' browser '' phone ''
must_fail 'marks that are not kept' 'questions: kept' _static/site.js 's/localStorage.setItem\(name, value\)/name.length/' browser '' questions ''
must_fail 'marks of all pages together' "questions: another page's" _static/site.js 's/"questions of " \+ root.dataset.page/"questions"/' browser '' questions ''
must_fail 'marks that are not cleared' 'questions: cleared' _static/site.js 's/marks = \{\}; kept\(\);/kept();/' browser '' questions ''
must_fail 'a checkpoint without marks' 'questions with marks' docs/study-plan.html '0,/<details class="questions"/s//<details/' browser '' questions ''
must_fail 'a control without a role' 'a control of role generic' explorers/tile-walk.html 's/ role="region" aria-labelledby/ aria-labelledby/' browser explorers/tile-walk.html '' ''
must_fail 'a picture without words' 'a picture of role' explorers/tile-walk.js 's/role: "img", ariaLabel: [^}]*\}/role: "img" }/' browser explorers/tile-walk.html '' ''
must_fail 'a focus that goes back' 'the focus goes back' explorers/ladder.html 's/<select id="size">/<select id="size" tabindex="1">/' browser '' focus ''
must_fail 'a focus that cannot be seen' 'the focus cannot be seen' explorers/explorer.css 's/^:focus-visible .*//' browser '' focus ''
must_fail 'a control out of reach' 'stops of the key Tab' _static/site.js 's/type: "button", id: "clear"/type: "button", id: "clear", onfocus: (event) => event.target.blur()/' browser '' focus ''
must_fail 'a control for a pointer only' 'no key operates' explorers/warp-map.js 's/(of FIELDS\) byId\(id\).addEventListener)\("change"/\1("pointerup"/' browser '' keys ''
must_fail 'a figure without a table' 'no table beside the figure' explorers/explorer.js 's/^    table.replaceChildren.*//' browser '' keys ''
must_fail 'a page that moves' 'what moves on a page' _static/site.css 's/@media \(prefers-reduced-motion: no-preference\) \{ (.*) \}/\1/' browser '' motion ''
must_fail 'a picture that moves all the same' 'less motion: the moving picture' _static/site.js 's/run\(!still.matches\);/run(true);/' browser '' motion ''
must_fail 'a picture without steps' 'the moving picture: after button' _static/site.js 's/"Next step", \(\) => step\(1\)/"Next step", () => 0/' browser '' motion ''
must_fail 'a picture that nothing stops' 'the moving picture: paused' _static/site.js 's/each.play\(\); else each.pause\(\);/each.play();/' browser '' motion ''
must_fail 'a step that does not end' 'at the end of its step' _static/site.js 's/timer = setTimeout\(hold, way/timer = setTimeout(hold, 1e6 * way/' browser '' motion ''
must_fail 'a story that moves' 'where the story has been' explorers/explorer.js 's/still.matches \? next.at : //' browser '' motion ''
must_fail 'controls on paper' "it has 'I knew it'" _static/site.css 's/\.skip, \.marks, /.skip, /' browser '' paper ''
must_fail 'frames on paper' "it has 'Try it" _static/site.css 's/section:has\(> iframe.explorer\), //' browser '' paper ''
must_fail 'answers that stay folded on paper' 'is missing' _static/site.js 's/addEventListener\("beforeprint"/addEventListener("before"/' browser '' paper ''
must_fail 'answers that stay open' 'folded again' _static/site.js 's/addEventListener\("afterprint"/addEventListener("after"/' browser '' paper ''
must_fail 'a record changed' 'the ladder, ' explorers/data/ladder.js 's/("12_hopper_fwd","bf16",[0-9.]+,)[0-9.]+/\11.5/' browser '' ladder ''
must_fail 'a bound of another card' 'bounds' explorers/data/ladder.js 's/("NVIDIA H200","fwd","[^]]*\{[^]]*\},\[)[0-9.]+/\10.1/' browser '' ladder ''
must_fail 'the shorter of two bounds' 'bounds' explorers/ladder.js 's/Math.max\(\.\.\.row\[9\]\)/Math.min(...row[9])/' browser '' ladder ''
must_fail 'bytes and arithmetic exchanged' 'the table says' explorers/ladder.js 's/"bytes" : "arithmetic"/"arithmetic" : "bytes"/' browser '' ladder ''
must_fail 'a wait that is too short' ': waits' explorers/pipeline.js 's/Math.max\(from, \.\.\.done\[needs\]\)/Math.max(from, done[needs][0])/' browser '' pipeline ''
must_fail 'a barrier that nobody waits at' ': waits' explorers/pipeline.js 's/needs: words, of: 2/needs: words, of: 1/' browser '' pipeline ''
must_fail 'a producer in another order' ': waits' explorers/data/pipeline.js 's/\["release","K"\],(\["new_maxima"\])/\1,["release","K"]/' browser '' pipeline ''
must_fail 'a read that meets a write unseen' 'where a read meets' explorers/pipeline.js 's/if \(from < to\) \{/if (from + 1 < to) {/' browser '' pipeline ''
must_fail 'turns that the trace does not have' 'turns of 06' explorers/data/pipeline.js 's/\["V",3\]/["V",4]/' browser '' pipeline ''
must_fail 'a message that no program gives' "is not the program's" explorers/data/pipeline.js 's/race on byte/race at byte/g' browser '' pipeline ''
must_fail 'an arrival that stays' 'moved by keys' explorers/pipeline.js 's/moved\[k\] = target.value/moved[k] = 0 * target.value/' browser '' pipeline ''
must_fail 'a time line that loses its state' 'the state of its address' explorers/pipeline.js 's/, moved: moved.join\(\) \}\);/ });/' browser '' pipeline ''
must_fail 'a fault that the picture does not show' ', as it is chosen' explorers/pipeline.js 's/parity: \{ latency: 40 \}/parity: {}/' browser '' pipeline ''
must_fail 'a first copy without Q' 'turns of 10' explorers/data/pipeline.js 's/"Q":true/"Q":false/' browser '' pipeline ''
must_fail 'a missing wait that the kernel has' 'where a read meets' explorers/pipeline.js 's/\(k > 0 \|\| Q\)/true/' browser '' pipeline ''
must_fail 'a wait that is called as a copy is' 'names of more than one kind' explorers/pipeline.js 's/`full \$\{words\}: /`copy ${words}: /' browser '' pipeline ''
must_fail 'two waits of one colour' 'nearly the same colour' explorers/explorer.css 's/--waiting-empty: #dcb0ec/--waiting-empty: #f0a9a9/' browser '' pipeline ''
must_fail 'a handle beside the end of its copy' 'pixels from the end' explorers/explorer.css 's/max-width: none; margin: 0;//' browser '' pipeline ''
must_fail 'a bar that says nothing when it is touched' 'a bar that is touched' explorers/pipeline.js 's/if \(target.title\) //; s/= target.title; /= ""; /' browser '' pipeline ''
must_fail 'a message of other stages' 'whose message' explorers/pipeline.js 's/textContent = kernel.stages/textContent = set.stages/' browser '' pipeline ''
must_fail 'a pin that holds nothing' 'while the choice is pinned' explorers/explorer.js 's/ \|\| pinned \&\& kind !== "click"//' browser '' fragments ''
must_fail 'a key that frees nothing' 'the pointer over row 9' explorers/explorer.js 's/!\(pinned \&\& target.ariaPressed === "true"\)/true/' browser '' fragments ''
must_fail 'colours of the swizzled units' 'the colours of the units' explorers/fragments.js 's/\+ set.left >> 3 & 7\}/+ to >> 3 \& 7}/' browser '' fragments ''
must_fail 'fields of a descriptor that touch' 'touch the next column' explorers/explorer.css 's/#bits :is\(th, td\) \{[^}]*\}//' browser '' fragments ''
must_fail 'a least that one address has' 'of one address it says' explorers/warp-map.js 's/take at least/without bank conflicts take/' browser '' warp-map ''
must_fail 'a dot of 67 % at the end' 'dots are not where' explorers/ladder.js 's/metric === "bound" \? 100 : //' browser '' ladder ''
must_fail 'a column that is there twice' ': columns' explorers/ladder.js 's/bound: 6 \}\[metric\]/bound: 8 }[metric]/' browser '' ladder ''
must_fail 'a best program among several bounds' 'of the highest it says' explorers/ladder.js 's/% of its \$\{best\[5\]\} bound/% of the bound/' browser '' ladder ''
must_fail 'an axis that is as narrow as its ticks' 'instead of 16 rem' explorers/explorer.css 's/min-width: 16rem;//; s/#table:has\(\.axis\) \{ width: 100%; \}//; s/td:has\(> \.axis\) \{ width: 40%; \}//' browser '' ladder ''
must_fail 'a number on its equation' 'equation numbers on' _static/site.css 's/\.katex-display \.katex-html:has\(> \.tag\) \{[^}]*\}//' browser docs/math/backward.html '' ''
must_fail 'a box that hides a part' 'boxes that hide' _static/site.js 's/wide.classList.toggle\("scrolls".*//' browser docs/simulated-device.html '' ''
must_fail 'an arrow key that a pin holds' 'elements after a key' explorers/explorer.js 's/focus\(\); at.choose\(k\);/focus();/' browser '' fragments ''
must_fail 'stages that all take as long' 'the frame of chapter 10' steps/10_tensor_core_fwd/README.html 's/&amp;latency=30//g' browser '' pipeline ''
must_fail 'a warp map in which the stride does nothing' 'wavefronts after stride' explorers/warp-map.html 's/every 16th word of 8 rows/one address/' browser '' warp-map ''
must_fail 'a wrong input without a word' 'what is said beside' explorers/explorer.js 's/target.closest\("label, figure"\)/element("p")/' browser '' warp-map ''
must_fail 'a rescale that is shown though it is omitted' 'beside what is right' explorers/example.js 's/beside\(used, right/beside(rescale, right/; s/m, used, weight, l, o \}, k/m, rescale, weight, l, o }, k/' browser '' example ''
must_fail 'a field that is too narrow' 'is cut off' explorers/explorer.css 's/(figure input\[type=number\] \{ width:) 3.6rem/\1 1rem/' browser '' example ''
must_fail 'the pass both' 'the ladder: passes' explorers/data/ladder.js 's/\["latency","NVIDIA H200","fwd"/["latency","NVIDIA H200","both"/' browser '' ladder ''
must_fail 'a fault of another kernel' 'the file of' explorers/data/pipeline.js 's|steps/12_hopper_fwd/12b_producer.cu|steps/12_hopper_fwd/hopper_fwd.cu|' browser '' pipeline ''
must_fail 'words that are cut off' 'is cut off' explorers/pipeline.js 's/^    fitLabels\(\);//' browser '' pipeline ''
must_fail 'a colour of two kinds' 'nearly the same colour' explorers/explorer.css 's/--read: #1668a8/--read: #b5d4ee/' browser '' pipeline ''
must_fail 'a key with what does not occur' 'kinds in the key' explorers/pipeline.js 's/\.filter\(\(\[kind\]\) => .*\);/;/' browser '' pipeline ''
must_fail 'a wrong line' 'the lines that are marked' explorers/tile-walk.js 's/marked.has\(\+number\)/marked.has(number - 1)/' "${walks[@]}"
must_fail 'a call that is not marked' 'the lines that are marked' explorers/tile-walk.js 's/\[launch.sites\[site\]\[4\], /[/' "${walks[@]}"
must_fail 'a source line out of sight' 'without the line of a touch in sight' explorers/tile-walk.js 's/source.scrollTop = /source.scrollTop = 999 + /' "${walks[@]}"
must_fail 'a walk on two screens' 'below the window' explorers/explorer.css 's/(#source \{ max-height:) 6rem/\1 20rem/' "${walks[@]}"
must_fail 'a copy that has arrived when it is issued' 'what is under way' explorers/tile-walk.js 's/\[COPY, BULK_LOAD\].includes/[BULK_LOAD].includes/' browser '' '' 06_vectorized
must_fail 'a copy that never arrives' 'what is under way' explorers/tile-walk.js 's/underWay\[array\].delete\(word\);//' browser '' '' 06_vectorized
must_fail 'a copy by the TMA that has arrived when it is issued' 'is not drawn as under way' explorers/tile-walk.js 's/\[COPY, BULK_LOAD\].includes/[COPY].includes/' "${hopper[@]}"
must_fail 'a phase with another name' 'the time line says' explorers/tile-walk.js 's/return \["store", stores\]/return ["copy", stores]/' "${walks[@]}"
must_fail 'a time line without barriers' 'rows in which it is' explorers/tile-walk.js 's/!warps \|\| steps.includes/steps.includes/' "${walks[@]}"
must_fail 'a bank in a wrong unit' 'the 16-byte unit of each bank' explorers/warp-map.js 's/colSpan: 4/colSpan: 2/' browser '' warp-map ''
must_fail 'a bank that is not that of the element' 'that do not mark the others' explorers/fragments.js \
    's/banks\[mine\]/banks[0]/' browser '' fragments ''
must_fail 'a bank that shows no element' 'that do not mark the others' explorers/fragments.js \
    's/banks.indexOf\(k\)/0/' browser '' fragments ''
must_fail 'an accumulator among the operands' 'apart from the accumulator' explorers/fragments.js \
    's/\["A", "B"\]/["A", "B", "C"]/' browser '' fragments ''
must_fail 'captions below the fold' 'below the fold' explorers/explorer.css \
    's/#bankSaid \{ /#caption { margin-top: 90vh !important; } &/' browser '' fragments ''
must_fail 'a wrong unit of a column' 'the columns of shared memory' explorers/fragments.js 's/`unit \$\{k\}/`unit ${k + 1}/' browser '' fragments ''
must_fail 'a link to another line' 'a quoted line' steps/06_vectorized/README.html '0,/data-line="[^"]*"/s//data-line="steps\/06_vectorized\/vectorized.cu:88"/' browser '' page ''
must_fail 'a line without effect on the walk' 'the first step of' explorers/tile-walk.js 's/if \(first >= 0\) go\(first\);//' browser '' page ''
must_fail 'a line that the page does not mark' 'the page marks' _static/site.js 's/classList.toggle\("now"/classList.toggle("then"/' browser '' page ''
must_fail 'a button without effect' 'after the button back' explorers/tile-walk.js 's/\(\) => go\(at - 1\)/() => go(at)/' "${walks[@]}"
must_fail 'a choice without effect' 'has no effect' explorers/tile-walk.js 's/warp = event.target.value; //' "${walks[@]}"
must_fail 'an explorer that leads nowhere' 'the explorers in the list of pages' steps/06_vectorized/README.html 's|(<ul><li>)(<a href="../../explorers/)|\1\2beside.html">Beside</a></li><li>\2|' browser '' page ''
must_fail 'no way back to a line' 'the way back to the line' _static/site.js 's/history.pushState\(null, ""\);//' browser '' page ''
must_fail 'a full width that begins anew' 'the link to the full width' explorers/explorer.js 's/if \(framed\) parent.postMessage\(\{ hash \}.*//' browser '' page ''
must_fail 'other warps that touch nothing' 'drawn as untouched' explorers/tile-walk.js 's/if \(k === at && inWarp\(warps\)\) cells/if (k === at \&\& !inWarp(warps)) continue; else if (k === at) cells/' "${walks[@]}"
must_fail 'a store that is not said' 'is not said' explorers/tile-walk.js 's/if \(does\(SHARED_STORE\)\)/if (0)/' "${walks[@]}"
must_fail 'a read of computed values that is not said' 'is not said' explorers/tile-walk.js 's/!\[USE, MULTIPLY\].includes\(action\)/action !== MULTIPLY/' browser '' '' 06_vectorized
must_fail 'a count that seems one warp'"'"'s' 'is not said' explorers/tile-walk.js 's/together \|\| " "/" "/' "${walks[@]}"
must_fail 'waits of all warps for all barriers' 'is not said' explorers/tile-walk.js 's/said\(entry\) \+ .*/said(entry), -1 - k));/' browser '' '' 12_hopper_fwd
must_fail 'an mbarrier without its name' 'is not said' explorers/tile-walk.js 's/`mbarrier \$\{launch.mbarriers\[object\]\}`/`mbarrier ${object}`/' "${hopper[@]}"
must_fail 'a warp that idly does something' 'of a warp that takes no part' explorers/tile-walk.js 's/ takes no part in this step; / does nothing; /' browser '' '' 12_hopper_fwd
must_fail 'words as columns' 'the caption of' explorers/tile-walk.js 's/\$\{columns \* elements\}/${columns}/' "${hopper[@]}"
must_fail 'the rows of a block as those of a matrix' 'the caption of L' explorers/data/05_fa2_fwd.js 's/\["L",128,1,1\]/["L",32,1,1]/' "${walks[@]}"
must_fail 'a load that is called a copy' 'the time line says' explorers/tile-walk.js 's/return \["load", loads\]/return ["copy", loads]/' browser '' '' 03_online_softmax
must_fail 'a label that is cut off' 'labels that are cut off' explorers/explorer.css 's/min-width: 0; overflow: hidden; text-overflow: ellipsis;//' browser '' '' 12_hopper_fwd
must_fail 'a wrong address that is accepted' 'of a wrong address' explorers/tile-walk.js 's/byId\("wrong"\).textContent = odd/void odd/' "${walks[@]}"
must_fail 'a key that the slider keeps' 'by a key on the slider' explorers/explorer.js 's/input:not\(\[type=range\]\)/input/' browser '' play ''
must_fail 'a state that the address loses' 'the state of its address' explorers/tile-walk.js 's/, warp, at \}\);/, warp });/' "${walks[@]}"
w=explorers/tile-walk.js last=(browser '' '' 12_hopper_fwd)
must_fail 'operations in another order' 'another order than' $w 's/parts.sort\(.*//' "${last[@]}"
must_fail 'a wgmma of each warp' 'is not said' $w 's/times \/ \(step.alike \? count : 4\)/times/' "${last[@]}"
must_fail 'bytes that the kernel has not asked for' 'bytes of shared memory' $w 's/\$\{launch.bytes\} bytes/${rows * columns * 4} bytes/' "${last[@]}"
must_fail 'a phase that ends by itself' 'is not said' $w 's/ The wait sees as arrived/ Has arrived/' "${last[@]}"
must_fail 'arrivals that are not counted' 'have arrived is not said' $w 's/ of \$\{due\} arrivals/ arrivals/' "${last[@]}"
must_fail 'a time line without labels' 'labels are visible' explorers/explorer.css 's/\(max-width: 9px\)/(max-width: 99px)/' "${last[@]}"
must_fail 'the last rows as if they were the first' 'which rows the block takes' $w 's/rows.length \&\& first/rows.length \&\& !first/' "${last[@]}"
must_fail 'parts of pixels' 'a part of a pixel' $w 's/Math.ceil\(rows \/ most\)/(rows \/ 100)/' "${last[@]}"
must_fail 'a touch out of sight' 'the line of a touch in sight' $w 's/touches\(b\) - touches\(a\)/touches(a) - touches(b)/' "${last[@]}"
must_fail 'memory that no step uses' 'that no step uses' $w 's/fill\(NEVER\)/fill(LATER)/' "${walks[@]}"
must_fail 'a softmax that is called otherwise' 'the time line says' $w 's/"softmax", \[\]/"compute", []/' "${walks[@]}"
must_fail 'a factor that is called a product' 'the time line says' $w 's/\["scale", used\]/["compute", used]/' browser '' '' 06_vectorized
must_fail 'rows of two readings' 'is not said' $w 's/\$\{noun\} between \$\{from\} and \$\{to\}/of ${from}-${to}/' browser '' '' 10_tensor_core_fwd
must_fail 'a word that keys do not reach' 'the word of a figure' $w 's/Object.assign\(canvas, \{.*//' "${walks[@]}"
must_fail 'a wrong last row' 'rows beside a figure' $w 's/\[rows - 1, "bottom/[rows, "bottom/' "${walks[@]}"
must_fail 'a list of one' 'lists of one' $w 's/list.disabled = /void /' "${walks[@]}"
must_fail 'a line that leads nowhere' 'that their link does not show' $w 's/onclick: \(\) => scroll\(place\)/onclick: () => 0/' "${last[@]}"
must_fail 'a label that is longer than its bar' 'longer than their bars' \
    $w 's/\? \[to, free\]/? [from, free + 1]/' browser '' '' 13_hopper_bwd
must_fail 'a legend without the bars' 'what the legend begins with' $w 's/\[\.\.\.kinds, /[/' "${walks[@]}"
must_fail 'rows of a caption as those of a step' 'whose rows the sentence has' \
    $w 's/dataset.part = caption/dataset.part = 0/' browser '' stories ''
must_fail 'two legends' 'legends: 2' explorers/tile-walk.html \
    's/id="block"/id="kinds" class="key"><i class="swatch"><\/i><\/small><small &/' "${walks[@]}"
must_fail 'a legend that begins otherwise' 'what the legend begins with' $w 's/\[WRITTEN, NOW, /[/' "${walks[@]}"
w=explorers/walk-story.js
must_fail 'a caption one step late' 'is bound to no event' $w 's/push\(\{ event, at, title/push({ event, at: at + 1, title/' browser '' stories ''
must_fail 'a barrier of another warp' 'is bound to no event' $w 's/action, writer, reader\];/action, writer + 9, reader];/' browser '' stories ''
must_fail 'a first tile that is not the first' 'is bound to no event: product' $w 's/tile = first\(isTile\)/tile = first(isTile, 30)/' browser '' stories ''
must_fail 'a power in a caption as plain text' 'captions with mathematics as plain text' $w 's/K\\u1d40:/K^T:/' browser '' stories ''
must_fail 'a caption that is too long' 'a caption of' $w 's/because the copy of/because, as it has been said before of other copies and of other barriers, the copy of/' browser '' stories ''
must_fail 'a story of three captions' 'captions at' $w 's/FEWEST = 6/FEWEST = 3/' browser '' stories ''
must_fail 'a first walk by the alphabet' 'the names of the walks' explorers/tile-walk.js 's/\[name, "05_fa2_fwd"\]/[name]/' browser '' stories ''
must_fail 'a figure that does not move' 'where the story has been' explorers/explorer.js 's/Math.min\(next.at, at \+ 1\)/next.at/' browser '' play ''
must_fail 'a caption that is passed over' 'the caption after n' explorers/explorer.js 's/n: \(\) => beside\(1\)/n: () => beside(2)/' browser '' play ''
must_fail 'arrow keys of one explorer alone' 'the place after a key' explorers/explorer.js 's/, ArrowRight: \(\) => step/, Right: () => step/' browser '' play ''
must_fail 'an end that is no end' 'the place after a key' explorers/explorer.js 's/Math.min\(lastStep\(\), to\)/Math.min(3, to)/' browser '' play ''
must_fail 'settings out of reach' 'the settings by a key' explorers/explorer.js 's/, s: settings,/,/' browser '' play ''
must_fail 'a frame that begins with its settings' 'its settings folded' explorers/explorer.js 's/after\(picture, /after(/; s/\.\.\.bars\)\)/...bars), picture)/' browser '' page ''
must_fail 'a pause that does not hold' 'it pauses' explorers/explorer.js 's/^    story.timer = null;//' browser '' play ''
must_fail 'an end inside the last bar' 'is bound to no bar' explorers/pipeline.js 's/event === "end" \? bar.to :/event === "end" ? bar.to - 1 :/' browser '' pipeline ''
must_fail 'ticks beside the bars' 'by the ticks of the axis' explorers/pipeline.js 's/left: \$\{at\(every \* k\)\}/left: ${at(every * k * 1.1)}/' browser '' pipeline ''
must_fail 'an axis that changes with each setting' 'the scale of the axis' explorers/pipeline.js 's/!dragging \&\& scale < shown.end \+ 3/!dragging/' browser '' pipeline ''
must_fail 'a wait that the fault seems to take away' 'the wait that is left' explorers/pipeline.js 's/const isBefore = .*/const isBefore = false;/' browser '' pipeline ''
must_fail 'a caption at another bar' 'is bound to no bar' explorers/pipeline.js 's/: bar.from \+ k\)/: bar.to + k)/' browser '' pipeline ''
must_fail 'small labels on a wall' 'labels of less than 20 pixels' explorers/explorer.css 's/font-size: 1.3rem !important/font-size: 1.2rem !important/' browser '' wall ''
must_fail 'a figure larger than the wall' 'parts below the wall' explorers/tile-walk.js 's/> innerHeight - 10/> 9999/' browser '' wall ''
must_fail 'a wall that the address forgets' 'on a wall: its address' explorers/explorer.js 's/\(wall \? "&wall" : ""\)/""/' browser '' wall ''
must_fail 'text that is hard to read' 'has a contrast of' explorers/explorer.css 's/--masked: #969ba5/--masked: #60656f/' browser '' wall ''
must_fail 'two meanings of one colour' 'nearly the same colour' explorers/explorer.css 's/--touched: #faecd0/--touched: #f4f6f8/' browser '' wall ''
must_fail 'a colour without a meaning' 'has its own' explorers/tile-walk.js 's/getPropertyValue\(`--/getPropertyValue(`#123456`, `--/' browser '' wall ''
must_fail 'a ladder that is not logarithmic' 'or their logarithms are' explorers/ladder.js 's/isLinear \? value \?\? 0 : value/isLinear ? 0 : value/' browser '' ladder ''
must_fail 'a library in the colour of a chapter' 'dots are not where' explorers/ladder.js 's/ \|\| row\[4\] in PEERS//' browser '' ladder ''
must_fail 'a library by its name in the records' 'names of libraries' explorers/ladder.js 's/, fa4: "FlashAttention-4"/, fa4: "fa4"/' browser '' ladder ''
must_fail 'a caption that stays yellow' 'whose place is passed' explorers/explorer.js 's/ \? "" : "passed"/ ? "" : ""/' browser '' play ''
must_fail 'a vote that exchanges numbers' 'what is not so' $w 's/kinds\(k\).includes\("shfl"\) \? `\$/true ? `$/' browser '' stories ''
must_fail 'a rescale where nothing is rescaled' 'bound to no event: rise' $w 's/isRescaled\(k\) \?/true ?/' browser '' stories ''
must_fail 'a counter that many blocks add to' 'bound to no event: add' $w 's/!isCounter\(each\)/true/' browser '' stories ''
must_fail 'rows of later steps' 'rows of' $w 's/text: text\(at\), end \}/text: text(at), end: at + 1 }/' browser '' stories ''
must_fail 'a list that an arrow changes' 'after s and an arrow' explorers/explorer.js 's/target.matches\("select"\) \&\& .Left\|Right.\.test\(key\) \? MOVING\[key\] : //' browser '' play ''
must_fail 'a wall without a way back' 'after Esc' explorers/explorer.js 's/, Escape: .* \};/ };/' browser '' wall ''
must_fail 'a caption that no setting changes' 'what the caption says' explorers/fragments.js 's/shown.wavefronts > 4 \?/true ?/' browser '' fragments ''
must_fail 'a story that opens in its midst' 'where it opens' explorers/tile-walk.js 's/where \?\? story.captions\[0\]/where ?? story.captions[3]/' browser '' play ''
must_fail 'a large view for a large window only' 'large in a window of 1280' explorers/explorer.js 's/innerWidth \/ 1900/1/' browser '' wall ''
must_fail 'a large view that stays when the window changes' 'as high as a window of' explorers/explorer.js 's/wall && setWall\(true\)/wall/' browser '' wall ''
must_fail 'a button that says Play while it plays' 'where Play begins' explorers/explorer.js 's/on \? "Pause"/0 ? "Pause"/' browser '' play ''
must_fail 'a story without an end' 'the story ends with' $w 's/tell\(\["end", work.at\(-1\)/tell(["end", undefined/' browser '' stories ''
must_fail 'a ladder without the fastest' 'the ladder: as it opens' explorers/ladder.js 's/theirs: "1" \}/theirs: "0" }/' browser '' ladder ''
must_fail 'a warp map that leaves half a wall empty' 'as high as a window of' explorers/explorer.css 's/\.wall #banks tbody tr \{[^}]*\}//' browser '' wall ''
must_fail 'an example that leaves a wall empty' 'as high as a window of' explorers/explorer.css 's/(figure :is\(button, input\) \{ height:) var\(--row\)/\1 1rem/' browser '' wall ''
must_fail 'fragments on two screens' 'figures below a window' explorers/explorer.css 's/min-width: 64rem/min-width: 640rem/' browser '' wall ''
must_fail 'a pipeline by the name of its program' 'kernels by number and idea' explorers/pipeline.js 's/\[each, title\]/[each, each]/' browser '' pipeline ''
must_fail 'a walk by the name of its program' 'names of programs' explorers/tile-walk.js 's/called = \(\[, title/called = ([title, /' browser '' stories ''
must_fail 'a heading that says a name twice' 'say something twice' explorers/data/steps.js 's/forward: one block/forward: FlashAttention-2 forward: one block/' browser '' stories ''
must_fail 'a bound at another place' 'bars are not where' explorers/ladder.js 's/left: \$\{share\(limit\)\}/left: ${share(limit) \/ 2}/' browser '' ladder ''
must_fail 'banks without a colour' 'drawn as read' explorers/warp-map.js 's/"read" : "written"/"" : "written"/' browser '' warp-map ''
must_fail 'sectors that seem needed as a whole' 'the part of each sector' explorers/warp-map.js 's/needed\.has\(.* \+ k\)/true/' browser '' warp-map ''
must_fail 'lanes of other wavefronts' 'the lanes of the wavefront' explorers/warp-map.js 's/turnOf\(k\) === turnOf\(lane\)/k === lane/' browser '' warp-map ''
must_fail 'a query that is not outlined' 'the query and its last key' explorers/example.js 's/`S\$\{row\}/`S${0 * row}/' browser '' example ''
must_fail 'weights without bars' 'a weight as a bar' explorers/example.js 's/of === "P" \? `--part/of === "X" ? `--part/' browser '' example ''
must_fail 'a power as plain text' 'mathematics as plain text' _images/tile_walk.svg 's/\xe1\xb5\x80/^T/g' browser '' phone ''
must_fail 'explorers out of reach on a phone' 'links to the explorers on a phone' _static/header.css 's/header \.explorers \{ order: 1; [^}]*\}/header .explorers { display: none; }/' browser '' phone ''
must_fail 'a list of pages out of reach on a phone' 'the button of the list of pages' _static/header.css 's/header \{ position: sticky;/header { position: static;/' browser '' page ''
must_fail 'a list of pages that stays open' 'the list of pages, closed' _static/site.js 's/event.key === "Escape"/event.key === "Esc"/' browser '' page ''
must_fail 'pages among the chapters' 'that look like chapters' steps/06_vectorized/README.html 's/class="before[^"]*"//' browser '' page ''
must_fail 'a picture that stays small' 'a picture that is enlarged' _static/site.js 's/picture.classList.toggle\("large"\)/false/' browser '' page ''
must_fail 'a table that a small phone cuts off' 'cut off on a phone' explorers/explorer.css 's/font-size: .62rem; padding: .1rem;/font-size: .7rem; padding: .15rem;/' browser '' phone ''
must_fail 'a large ladder that is cut off' 'figures that scroll sideways' explorers/explorer.css 's/\.wall #table:has\(\.axis\) :is\(th, td\):last-child \{[^}]*\}//' browser '' wall ''
must_fail 'numbers over each other' 'is cut off' explorers/explorer.css 's/white-space: normal; overflow-wrap: normal/white-space: nowrap/; s/width: 9.2rem/width: 3rem/' browser '' example ''
must_fail 'explorers without a way to others' 'to the others' explorers/tile-walk.html 's/<a href="pipeline.html">Pipeline<.a>//' browser '' ways ''
must_fail 'walks in the order of files' 'the order of the list' explorers/tile-walk.js 's/chapter\)\)\]\.sort\(\)/chapter))]/' browser '' stories ''
must_fail 'half a line of source' 'parts of lines' explorers/tile-walk.js 's/ \/ 2 \/ line\)\) \* line;/ \/ 2 \/ line) * line + 3);/' browser '' stories ''
must_fail 'a number that stays lit' 'numbers of captions' explorers/explorer.js 's/ && !\(story.place\(\) >= story.captions\[k\].end\)//' browser '' stories ''
must_fail 'a walk as small as in a small window' 'that fill a window' explorers/tile-walk.js 's/: \[2, 2\], launch/: [1, 1], launch/' browser '' stories ''
must_fail 'one library of three' 'the caption of the libraries' explorers/ladder.js 's/ \|\| isTheirs\(rows\[k\]\) && isTheirs\(rows\[place\]\)//' browser '' ladder ''
must_fail 'percentages by decades' 'ticks of a percentage' explorers/ladder.js 's/isLinear \? \[0, 25/false ? [0, 25/' browser '' ladder ''
must_fail 'a caption in another unit' 'in the unit that is shown' explorers/ladder.js 's/ \$\{unit\}\. \$\{idea/ TFLOP. ${idea/' browser '' ladder ''
must_fail 'ticks over each other' 'that overlap' explorers/explorer.css 's/\.tick:has\(\+ \.last\) \{ visibility: hidden; \}//' browser '' ladder ''
must_fail 'libraries that nobody recorded' 'where no library' explorers/ladder.js 's/byId\("none"\)\.hidden = !\(/byId("none").hidden = (/' browser '' ladder ''
browser "$site" --faults "$work/faults" || status=1
exit "$status"
