/* Mouse, touch and keyboard; and what else makes the timeline be drawn anew. */
function hover(event) {
  const box = canvas.getBoundingClientRect();
  const px = event.clientX - box.left, py = event.clientY - box.top;
  const s = Math.floor((py - area.top) / area.row);
  const inside = px >= area.left && px <= area.left + area.width && s >= 0 && s < stages.length;
  const before = view.hover;
  view.hover = -1;
  tip.hidden = !inside;
  if (inside) {
    const time = timeAt(px), i = after(s, time);
    if (i < first[s + 1] && start[i] <= time) view.hover = i;
    put(wordsAt(s, time));
    const room = canvas.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(4, Math.min(px + 14, room))}px`;
    tip.style.top = `${py + 18}px`;
  }
  if (before !== view.hover) redraw();
}
function leave() {
  tip.hidden = true;
  if (view.hover >= 0) { view.hover = -1; redraw(); }
}

/* The next operation of the chosen stage, brought into view and read out. */
function choose(step) {
  const s = view.stage, [low, high] = [first[s], first[s + 1] - 1];
  const here = view.chosen >= low && view.chosen <= high;
  const i = here ? Math.min(high, Math.max(low, view.chosen + step)) : Math.min(high, after(s, view.from));
  view.chosen = i;
  const length = view.to - view.from;
  if (start[i] < view.from || end[i] > view.to) show(start[i] - 0.3 * length, start[i] + 0.7 * length);
  told.textContent = wordsOf(i).join(". ");
  redraw();
}
function chooseStage(step) {
  view.stage = Math.min(stages.length - 1, Math.max(0, view.stage + step));
  view.chosen = -1;
  told.textContent = stages[view.stage].full;
  redraw();
}

const fingers = new Map();
canvas.addEventListener("pointerdown", (event) => {
  fingers.set(event.pointerId, event.clientX);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!fingers.has(event.pointerId)) { hover(event); return; }
  const before = [...fingers.values()];
  fingers.set(event.pointerId, event.clientX);
  const now = [...fingers.values()], left = canvas.getBoundingClientRect().left;
  if (now.length === 1) {
    const moved = timeAt(before[0]) - timeAt(now[0]);
    if (moved) show(view.from + moved, view.to + moved);
  } else if (now.length === 2 && now[0] !== now[1]) {
    zoom(Math.abs((before[0] - before[1]) / (now[0] - now[1])), timeAt(0.5 * (now[0] + now[1]) - left));
  }
  tip.hidden = true;
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    fingers.delete(event.pointerId);
    if (name === "pointerup") hover(event);
  });
}
canvas.addEventListener("pointerleave", leave);
canvas.addEventListener("dblclick", (event) => {
  zoom(0.25, timeAt(event.clientX - canvas.getBoundingClientRect().left));
});
canvas.addEventListener("wheel", (event) => {
  const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (event.ctrlKey || event.metaKey) {
    zoom(Math.exp(event.deltaY * 0.0025), timeAt(event.clientX - canvas.getBoundingClientRect().left));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    pan(sideways / area.width);
  } else {
    return; // the page scrolls
  }
  event.preventDefault();
  hover(event);
}, { passive: false });

const KEYS = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), ArrowUp: () => chooseStage(-1), ArrowDown: () => chooseStage(1),
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => show(0, whole), Home: () => show(0, view.to - view.from),
  End: () => show(whole - (view.to - view.from), whole), n: () => choose(1), p: () => choose(-1),
  Escape: () => { view.chosen = -1; leave(); redraw(); },
};
canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  KEYS[event.key]();
  event.preventDefault();
});
for (const name of ["focus", "blur"]) canvas.addEventListener(name, redraw);
find("timeline-in").addEventListener("click", () => zoom(0.5));
find("timeline-out").addEventListener("click", () => zoom(2));
find("timeline-left").addEventListener("click", () => pan(-0.5));
find("timeline-right").addEventListener("click", () => pan(0.5));
find("timeline-all").addEventListener("click", () => show(0, whole));
for (const box of [withPath, withMessages]) box.addEventListener("change", redraw);

function restyle() { readColours(); draw(); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
window.addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; restyle(); });
window.addEventListener("afterprint", () => { delete document.documentElement.dataset.print; restyle(); });
new ResizeObserver(redraw).observe(canvas.parentElement);
restyle();
