/* What an operation, or a gap between two, is told as. */
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
