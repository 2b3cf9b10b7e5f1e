/* Draws what is shown: boxes from near, columns from afar. */
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
