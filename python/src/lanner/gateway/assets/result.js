// Shows a prediction: what it says, what it took, and what the server got.

export const PHASES = { setup: "set-up", offline: "offline", online: "online" };
const SHORT = 1e-3; // Seconds of a layer that is left out if it sends nothing, too.

const byId = (id) => document.getElementById(id);

/** Fills the result's section from the gateway's answer about a model. */
export function show(answer, model) {
  const { prediction, costs } = answer;
  [byId("answer").textContent, byId("answer-more").textContent] = told(prediction, model);
  byId("answer-notes").textContent = (answer.notes ?? []).map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`).join(" ");
  byId("answer-owner").textContent = [model.title, model.note].filter((text) => text).join(": ");
  byId("probability").textContent = prediction.probability === null ? "" : `probability ${rounded(prediction)}`;
  byId("phases").replaceChildren(...Object.entries(costs).map(phaseRow));
  byId("phases-note").textContent =
    "This machine measured bytes and rounds on its connection to the server. The set-up happens once per session" +
    (answer.new_session ? ", and this prediction opened one." : "; this session's was done before this prediction.");
  byId("seen").textContent = seen(costs, answer.new_session, model);
  showMessage(answer.longest_sent);
  byId("timeline").replaceChildren(...timeline(prediction.layers));
}

/** A probability with its decimals: 1 reads as the rounded number that it is. */
export function rounded({ probability, digits }) {
  return probability.toFixed(digits ?? 2);
}

/** A number of bytes for people, in powers of ten. */
export function size(count) {
  for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) {
    if (count >= factor) return `${(count / factor).toFixed(2)} ${unit}`;
  }
  return `${Math.round(count)} B`;
}

/** A time for people. */
export function duration(seconds) {
  return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1e3).toFixed(1)} ms`;
}

// So many numbers of one output of several are shown.
const SHOWN = 12;

/** A class by its name, where it has one, with its index beside it, where the name is another. */
function withIndex(name, index) {
  return name === undefined || name === String(index) ? String(index) : `${name} (${index})`;
}

/** How often each name is in a list, the most frequent first. */
function frequencies(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const listed = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name} (${count})`);
  return listed.length > SHOWN ? `${listed.slice(0, SHOWN).join(", ")}, ...` : listed.join(", ");
}

function told(prediction, model) {
  const { label, class_name: name, top, labels, class_names: names, logits, values } = prediction;
  const more = [`The model's owner lets you learn its ${POLICIES[model.output] ?? model.output}, and nothing else.`];
  if (values && !Array.isArray(values)) {
    const each = Object.entries(values).map(([output, numbers]) => {
      const shown = numbers.length > SHOWN ? `${numbers.slice(0, SHOWN).map(number).join(", ")}, ...` : numbers.map(number).join(", ");
      return `${output} (${prediction.shape[output].join(" x ")}): ${shown}`;
    });
    return [each.join("; "), more.join(" ")];
  }
  if (model.output === "label-map") return [frequencies(names ?? labels.map(String)), `Labels at ${labels.length} places. ${more.join(" ")}`];
  const map = prediction.shape && (values ?? logits);
  if (map) {
    const [least, most] = map.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    return [`a map of ${prediction.shape.join(" x ")} values`, [`They are from ${number(least)} to ${number(most)}.`, ...more].join(" ")];
  }
  if (values) return [values.map(number).join(", "), more.join(" ")];
  if (labels) return [labels.map((index, at) => withIndex(names?.[at], index)).join(", ") || "none", more.join(" ")];
  const called = (index) => withIndex(model.classes?.[index], index);
  // A single score is that of class 1 of two.
  const first = logits?.length === 1 ? 1 : 0;
  if (logits) more.unshift(`Scores: ${logits.map((score, at) => `${called(first + at)}: ${number(score)}`).join(", ")}.`);
  if (top) more.unshift(`Best classes in order: ${top.map(called).join(", ")}.`);
  if (name !== null) more.unshift(`Class ${label}.`);
  return [String(name ?? label), more.join(" ")];
}

const POLICIES = {
  label: "label",
  "label-map": "label at each place",
  labels: "list of labels",
  probability: "label and that label's probability",
  "top-k": "best classes in order",
  logits: "scores",
  value: "value",
};

function number(value) {
  return String(Number(value.toPrecision(4)));
}

function phaseRow([name, cost]) {
  const row = element("tr", name);
  const cells = [PHASES[name], duration(cost.seconds), size(cost.bytes_sent), size(cost.bytes_received), cost.rounds];
  row.append(...cells.map((text) => element("td", "", String(text))));
  return row;
}

function seen(costs, opened, model) {
  const phases = Object.entries(costs).filter(([name]) => opened || name !== "setup");
  const sent = phases.reduce((sum, [, cost]) => sum + cost.bytes_sent, 0);
  const values = model.values === 1 ? "value" : `${model.values} values`;
  const what = opened ? "keys, and messages that are encrypted or masked" : "messages that are encrypted or masked";
  return (
    `For this prediction the server got ${size(sent)} from here: ${what}. They reveal neither your input's ${values}` +
    " nor the result, as long as both sides follow the protocol. The server knows that you asked model " +
    `${model.name}, when, and from which address.`
  );
}

/** Shows how one of the messages began, byte by byte. */
function showMessage({ length, beginning }) {
  const bytes = beginning.match(/../g) ?? [];
  const told = bytes.length < length ? `One of these messages, ${size(length)}, begins with` : "One of these messages is";
  byId("message-about").textContent = `${told} these ${bytes.length} bytes, here as two hexadecimal digits each:`;
  byId("message").textContent = bytes.join(" ") + (bytes.length < length ? " \u2026" : "");
}

function timeline(layers) {
  const spans = [];
  let start = 0;
  for (const layer of layers) {
    if (layer.bytes > 0 || layer.seconds > SHORT) spans.push({ layer, start });
    start += layer.seconds;
  }
  return spans.map((span) => bar(span, start));
}

/** A row of a timeline: a layer, and where its time lies in the whole. */
export function bar({ layer, start }, whole) {
  const item = element("li", layer.phase);
  const said = element("span", "said");
  said.append(element("span", "name", `${layer.name} (${layer.protocol})`));
  const told = [PHASES[layer.phase], layer.took ?? duration(layer.seconds), size(layer.bytes)];
  // While it runs nobody tells of rounds.
  if (layer.rounds !== undefined) told.push(`${layer.rounds} ${layer.rounds === 1 ? "round" : "rounds"}`);
  said.append(element("span", "took", told.join(", ")));
  const track = element("span", "track");
  const drawn = element("span", "bar");
  drawn.style.left = `${(100 * start) / whole}%`;
  drawn.style.width = `${(100 * layer.seconds) / whole}%`;
  track.setAttribute("aria-hidden", "true");
  track.append(drawn);
  item.append(said, track);
  return item;
}

function element(tag, kind, text = "") {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.textContent = text;
  return made;
}
