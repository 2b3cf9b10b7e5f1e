"use strict";
/* Draws the timeline of a report on a canvas: zoom, pan, hover, keyboard. Data are in #timeline-data. */
(() => {
  const source = document.getElementById("timeline-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const find = (id) => document.getElementById(id);
  const canvas = find("timeline-canvas");
  const pen = canvas.getContext("2d");
  const tip = find("timeline-tip"), told = find("timeline-told"), shown = find("timeline-shown");
  const withPath = find("timeline-path"), withMessages = find("timeline-messages");

  // ---- data: one entry for each operation, stage by stage ----
  const KINDS = "FBIW";
  const NAMES = { F: "forward", B: "backward", I: "backward, input part", W: "backward, weight part" };
  const stages = data.stages, count = data.kinds.length, whole = data.iteration_ms || 1;
  const first = [0];
  for (const stage of stages) first.push(first[first.length - 1] + stage.count);
  const start = Float64Array.from(data.start), end = new Float64Array(count);
  const kind = new Uint8Array(count), stageOf = new Int32Array(count);
  for (let s = 0; s < stages.length; s++) {
    for (let i = first[s]; i < first[s + 1]; i++) {
      const name = data.kinds[i];
      kind[i] = KINDS.indexOf(name);
      stageOf[i] = s;
      end[i] = start[i] + stages[s].ms[name][chunkOf(i)];
    }
  }
  const onPath = new Set(data.path.filter((step) => step[0] >= 0 && step[1] < 0).map((step) => step[0]));

  function chunkOf(i) { return data.chunk ? data.chunk[i] : 0; }
  function labelOf(i) { return data.num_chunks > 1 ? `${data.microbatch[i]}.${chunkOf(i)}` : `${data.microbatch[i]}`; }
  function sentAt(i) { return data.sent ? data.sent[i] : end[data.sender[i]]; }
  function arrivedAt(i) { return sentAt(i) + data.wire_ms[data.wire[i]]; }

  /* The first operation of a stage that ends after `time`; first[s + 1] if there is none. */
  function after(s, time) {
    let low = first[s], high = first[s + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (end[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  // ---- view ----
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

  // ---- colours: those of the style sheet ----
  let colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = { ink: read("ink"), faint: read("faint"), line: read("line"), row: read("row"), path: read("path"),
      message: read("transfer"), reduce: read("reduce"), back: read("back"), choice: read("choice") };
    colours.kinds = [...KINDS].map((name) => read(`kind-${name}`));
  }
  function parts(colour) {
    const value = parseInt(colour.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  }
  /* Later chunks of a stage are drawn paler. */
  function paled(colour, chunk) {
    const share = data.num_chunks > 1 ? 0.45 * chunk / (data.num_chunks - 1) : 0;
    const [base, back] = [parts(colour), parts(colours.back)];
    return base.map((value, i) => Math.round(value + (back[i] - value) * share));
  }

  /* Dark text on light colours, light text on dark ones. */
  const textOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 135 ? "#14181f" : "#ffffff");

  // ---- drawing ----
  function measure() {
    const width = canvas.clientWidth, narrow = width < 560, ratio = window.devicePixelRatio || 1;
    const rows = stages.length;
    area.row = rows <= 8 ? 32 : rows <= 16 ? 26 : rows <= 40 ? 18 : Math.max(4, Math.min(15, 1200 / rows));
    area.height = area.top + rows * area.row + 6;
    pen.font = "12px system-ui, sans-serif";
    const longest = Math.max(...stages.map((stage, s) => pen.measureText(title(s, narrow)).width));
    area.left = Math.ceil(Math.min(longest + 14, narrow ? 60 : 190));
    area.width = Math.max(20, width - area.left - 8);
    area.scale = ratio;
    canvas.style.height = `${area.height}px`;
    const [w, h] = [Math.round(width * ratio), Math.round(area.height * ratio)];
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  function title(s, narrow) { return narrow || !stages[s].short ? `${s}` : `${s}  ${stages[s].short}`; }

  function draw() {
    measure();
    pen.fillStyle = colours.back;
    pen.fillRect(0, 0, canvas.clientWidth, area.height);
    drawFrame();
    // At the edges also operations that take no time.
    const spans = stages.map((_, s) => [view.from > 0 ? after(s, view.from) : first[s],
      view.to < whole ? after(s, view.to) : first[s + 1]]);
    for (const [s, span] of spans.entries()) {
      while (span[1] < first[s + 1] && start[span[1]] < view.to) span[1]++;
    }
    const visible = spans.reduce((sum, span) => sum + span[1] - span[0], 0);
    const detailed = visible * 2.5 <= area.width * stages.length;
    pen.save();
    pen.beginPath();
    pen.rect(area.left, 0, area.width, area.height);
    pen.clip();
    const drawn = detailed ? drawBoxes(spans) : drawColumns(spans, visible);
    drawAllReduces();
    if (detailed && withMessages.checked) drawMessages(spans);
    if (withPath.checked) drawPath();
    for (const i of [view.hover, view.chosen]) if (i >= 0) outline(i);
    pen.restore();
    shown.textContent = `${number(view.from)} to ${number(view.to)} ms of ${number(whole)} ms`;
    // What was drawn, for tests and for whoever wants to know.
    Object.assign(canvas.dataset, { operations: count, drawn, mode: detailed ? "boxes" : "columns",
      from: view.from, to: view.to, left: area.left, top: area.top, width: area.width, row: area.row });
  }

  function drawFrame() {
    pen.textBaseline = "middle";
    pen.font = "12px system-ui, sans-serif";
    const narrow = canvas.clientWidth < 560;
    const every = Math.ceil(13 / area.row);
    for (let s = 0; s < stages.length; s++) {
      pen.fillStyle = colours.row;
      pen.fillRect(area.left, y(s) + 1, area.width, area.row - 2);
      if (s % every) continue;
      pen.fillStyle = s === view.stage && document.activeElement === canvas ? colours.choice : colours.ink;
      pen.save();
      pen.beginPath();
      pen.rect(0, 0, area.left - 4, area.height);
      pen.clip();
      pen.textAlign = "left";
      pen.fillText(title(s, narrow), 4, y(s) + area.row / 2);
      pen.restore();
    }
    const step = tick((view.to - view.from) / Math.max(2, area.width / 110));
    pen.textAlign = "center";
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      pen.fillStyle = colours.line;
      pen.fillRect(Math.round(x(at)), area.top - 6, 1, area.height - area.top + 2);
      const text = number(at, step), half = pen.measureText(text).width / 2;
      pen.fillStyle = colours.faint;
      pen.fillText(text, Math.min(Math.max(x(at), area.left + half), area.left + area.width - half), 9);
    }
  }
  function tick(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999);
  }
  function number(value, step) {
    const smallest = step || (view.to - view.from) / 1000;
    const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(smallest) - 1e-9)));
    return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  /* Each operation as a box, with its micro-batch where there is room. */
  function drawBoxes(spans) {
    const tall = area.row >= 12;
    let drawn = 0;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (const [s, [low, high]] of spans.entries()) {
      for (let i = low; i < high; i++) {
        const left = x(start[i]), width = x(end[i]) - left;
        const colour = paled(colours.kinds[kind[i]], chunkOf(i));
        pen.fillStyle = `rgb(${colour})`;
        pen.fillRect(left, y(s) + 1, width > 3 ? width - 1 : width, area.row - 2);
        drawn++;
        const text = labelOf(i);
        const seen = [Math.max(left, area.left), Math.min(left + width, area.left + area.width)];
        if (tall && seen[1] - seen[0] > 7 * text.length + 5) {
          pen.fillStyle = textOn(colour);
          pen.fillText(text, (seen[0] + seen[1]) / 2, y(s) + area.row / 2);
        }
      }
    }
    return drawn;
  }

  /* Too many for boxes: in each column the height of a colour is its part of the time. Columns are about three
     operations wide: narrower ones would show stripes that mean nothing. */
  const strip = document.createElement("canvas");
  const STACK = [1, 2, 3, 0]; // from the bottom: backwards, then forwards; what is left on top is waiting
  function drawColumns(spans, visible) {
    const pixelsEach = 3 * area.width * area.scale * stages.length / visible;
    const width = Math.ceil(area.width * area.scale / Math.max(1, pixelsEach)), tall = Math.max(2, Math.round((area.row - 2) * area.scale));
    strip.width = width;
    strip.height = tall;
    const ink = strip.getContext("2d"), image = ink.createImageData(width, tall);
    const pixels = new Uint32Array(image.data.buffer);
    const packed = (colour) => { const [r, g, b] = parts(colour); return (255 << 24 | b << 16 | g << 8 | r) >>> 0; };
    const back = packed(colours.row), inks = colours.kinds.map(packed);
    const perMs = width / (view.to - view.from), sums = new Float64Array(4 * width);
    let drawn = 0;
    for (const [s, [low, high]] of spans.entries()) {
      sums.fill(0);
      for (let i = low; i < high; i++) {
        const left = Math.max(0, (start[i] - view.from) * perMs), right = Math.min(width, (end[i] - view.from) * perMs);
        for (let column = Math.floor(left); column < right; column++) {
          sums[4 * column + kind[i]] += Math.min(right, column + 1) - Math.max(left, column);
        }
        drawn++;
      }
      pixels.fill(back);
      for (let column = 0; column < width; column++) {
        let filled = 0, from = tall;
        for (const k of STACK) {
          filled += sums[4 * column + k];
          const to = Math.max(0, Math.round(tall * (1 - filled)));
          for (let line = to; line < from; line++) pixels[line * width + column] = inks[k];
          from = Math.min(from, to);
        }
      }
      ink.putImageData(image, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(strip, 0, 0, width, tall, area.left, y(s) + 1, area.width, area.row - 2);
    }
    return drawn;
  }

  function drawAllReduces() {
    pen.fillStyle = colours.reduce;
    for (const [s, stage] of stages.entries()) {
      const [from, ms] = stage.all_reduce;
      if (ms > 0) pen.fillRect(x(from), y(s) + 1, Math.max(1, x(from + ms) - x(from)), area.row - 2);
    }
  }

  /* From the end of the sending operation to the start of the receiving one. */
  function drawMessages(spans) {
    pen.strokeStyle = pen.fillStyle = colours.message;
    pen.lineWidth = 1;
    for (const [s, [low, high]] of spans.entries()) {
      for (let i = low; i < high; i++) {
        if (data.sender[i] < 0 || data.wire_ms[data.wire[i]] <= 0) continue;
        const from = stageOf[data.sender[i]], down = s > from;
        const [x0, x1] = [x(sentAt(i)), x(arrivedAt(i))];
        const [y0, y1] = [y(from) + (down ? area.row - 2 : 2), y(s) + (down ? 2 : area.row - 2)];
        pen.beginPath();
        pen.moveTo(x0, y0);
        pen.lineTo(x1, y1);
        pen.stroke();
        pen.beginPath();
        pen.arc(x1, y1, 2, 0, 2 * Math.PI);
        pen.fill();
      }
    }
  }

  function drawPath() {
    const base = (s) => y(s) + area.row - Math.min(4, area.row / 3), thick = area.row >= 12 ? 2.5 : 1.5;
    const steps = data.path.filter(([, , from, to]) => to >= view.from && from <= view.to);
    const stageAt = ([operation, stage]) => (operation < 0 ? stage : stageOf[operation]);
    const turns = steps.filter((step) => step[0] >= 0 && step[1] >= 0).length;
    pen.strokeStyle = pen.fillStyle = colours.path;
    pen.lineWidth = thick;
    pen.lineJoin = "round";
    pen.beginPath();
    if (turns > area.width) { // lines up and down would hide everything: only where the path stays
      for (const step of steps) {
        if (step[1] < 0 || step[0] < 0) {
          pen.fillRect(x(step[2]), base(stageAt(step)) - thick / 2, Math.max(1, x(step[3]) - x(step[2])), thick);
        }
      }
      return;
    }
    for (const [number, step] of steps.entries()) {
      const s0 = stageAt(step), s1 = step[0] >= 0 && step[1] >= 0 ? step[1] : s0;
      if (number) pen.lineTo(x(step[2]), base(s0)); else pen.moveTo(x(step[2]), base(s0));
      pen.lineTo(x(step[3]), base(s1));
    }
    pen.stroke();
  }

  function outline(i) {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.strokeRect(x(start[i]), y(stageOf[i]) + 1, Math.max(2, x(end[i]) - x(start[i]) - 1), area.row - 2);
  }

  // ---- words ----
  const span = (from, to) => `${exact(from)} to ${exact(to)} ms (${exact(to - from)}\u00a0ms)`;
  const exact = (value) => value.toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });

  function wordsOf(i) {
    const name = data.kinds[i], s = stageOf[i];
    const lines = [`${name}${labelOf(i)}: ${NAMES[name]} of micro-batch ${data.microbatch[i]}` +
      (data.num_chunks > 1 ? `, chunk ${chunkOf(i)}` : ""), span(start[i], end[i]), stages[s].full];
    if (data.sender[i] >= 0) {
      lines.push(`message from stage ${stageOf[data.sender[i]]}: ${span(sentAt(i), arrivedAt(i))}`);
    }
    if (onPath.has(i)) lines.push("on the critical path");
    return lines;
  }
  function wordsAt(s, time) {
    const [from, ms] = stages[s].all_reduce, i = after(s, time);
    if (ms > 0 && time >= from && time <= from + ms) return ["gradient all-reduce", span(from, from + ms), stages[s].full];
    if (i < first[s + 1] && start[i] <= time) return wordsOf(i);
    const idle = i > first[s] ? end[i - 1] : 0;
    if (i < first[s + 1]) {
      const why = data.sender[i] >= 0 ? `, from stage ${stageOf[data.sender[i]]}` : "";
      return [`waits for ${data.kinds[i]}${labelOf(i)}${why}`, span(idle, start[i]), stages[s].full];
    }
    const done = ms > 0 && time > from ? from + ms : idle;
    return ["waits for the end of the iteration", span(done, whole), stages[s].full];
  }
  function put(lines) {
    tip.replaceChildren(...lines.map((line) => {
      const element = document.createElement("div");
      element.textContent = line;
      return element;
    }));
  }

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

  // ---- mouse, touch, keys ----
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

  // ---- the rest of the world changes ----
  function restyle() { readColours(); draw(); }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; restyle(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.print; restyle(); });
  new ResizeObserver(redraw).observe(canvas.parentElement);
  restyle();
})();
