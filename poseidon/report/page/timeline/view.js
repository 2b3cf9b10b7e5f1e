/* What part of the iteration is shown, and where it lies on the canvas. */
const find = (id) => document.getElementById(id);
const canvas = find("timeline-canvas");
const pen = canvas.getContext("2d");
const tip = find("timeline-tip"), told = find("timeline-told"), shown = find("timeline-shown");
const withPath = find("timeline-path"), withMessages = find("timeline-messages");

const view = { from: 0, to: whole, stage: 0, hover: -1, chosen: -1 };
const area = { left: 0, top: 24, width: 1, row: 20, height: 1, scale: 1 };
const SMALLEST = whole * 1e-6;

const x = (time) => area.left + ((time - view.from) / (view.to - view.from)) * area.width;
const timeAt = (px) => view.from + ((px - area.left) / area.width) * (view.to - view.from);
const y = (s) => area.top + s * area.row;

function show(from, to) {
  const span = Math.min(whole, Math.max(SMALLEST, to - from));
  view.from = Math.min(Math.max(0, from), whole - span);
  view.to = view.from + span;
  redraw();
}
function zoom(factor, at) {
  const fixed = at === undefined ? 0.5 * (view.from + view.to) : at;
  show(fixed - (fixed - view.from) * factor, fixed + (view.to - fixed) * factor);
}
const pan = (part) => show(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));

let pending = 0;
function redraw() { if (!pending) pending = requestAnimationFrame(() => { pending = 0; draw(); }); }
