// Two walks of step-cc, each as high as it says.
"use strict";
const frames = STEPS.map(([name, title]) => element("iframe", { title, src: `tile-walk.html#step=${name}` }));
byId("beside").append(...frames);
addEventListener("message", ({ source, data }) => {
    const frame = frames.find((each) => each.contentWindow === source);
    if (frame && data.height) frame.style.height = `${data.height}px`;
});
