/* The operations of the timeline, as lists over all of them, stage by stage. */
const data = JSON.parse(document.getElementById("timeline-data").textContent);

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
