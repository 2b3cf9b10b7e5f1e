/* Colours: those of the style sheet, light or dark. */
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
