// What runs now: asks the gateway, while a prediction runs, how far the set-up of its session and its layers have come.

import { PHASES, bar, duration, size } from "./result.js";

const PAUSE = 200; // Milliseconds between two questions.
const byId = (id) => document.getElementById(id);

/** A ticket for one prediction, which nobody can guess. */
export function ticket() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Shows how far the prediction with a ticket has come, until what is returned is called. */
export function follow(ask, model, mine) {
  const path = `/ui/progress?model=${encodeURIComponent(model.name)}&ticket=${mine}`;
  let timer = null;
  let over = false;
  const look = async () => {
    try {
      const { running, set_up: parts, steps } = await ask(path);
      if (!over && running) draw(parts, steps);
    } catch {
      // The prediction itself says what is wrong.
    }
    if (!over) timer = setTimeout(look, PAUSE);
  };
  byId("live-steps").replaceChildren();
  byId("live").hidden = false;
  byId("live-now").textContent = "Waiting for its turn.";
  timer = setTimeout(look, PAUSE);
  return () => {
    over = true;
    clearTimeout(timer);
    byId("live").hidden = true;
  };
}

function draw(parts, steps) {
  const met = [...parts.filter((part) => part.begun).map(ofSetUp), ...steps.filter((step) => step.begun > 0).map(ofLayer)];
  const last = met.filter((layer) => layer.runs).at(-1) ?? met.at(-1);
  if (!last) return;
  const ofPhase = last.phase === "setup" ? parts : steps.filter((step) => step.phase === last.phase);
  const number = ofPhase.findIndex((step) => step.name === last.name) + 1;
  const what = last.phase === "setup" ? "part" : "layer";
  byId("live-now").textContent = `${PHASES[last.phase]}: ${what} ${number} of ${ofPhase.length}, ${last.name}${last.soFar}`;
  const whole = met.reduce((sum, layer) => sum + layer.seconds, 0);
  let start = 0;
  const rows = met.map((layer) => {
    const row = bar({ layer, start }, whole || 1);
    if (!layer.ended) row.classList.add("now");
    start += layer.seconds;
    return row;
  });
  byId("live-steps").replaceChildren(...rows);
}

// What is sent of keys is known ahead of time, and may take minutes.
function ofSetUp(part) {
  const { seconds, bytes, ended, expected_bytes: expected } = part;
  const counted = !ended && expected !== null ? `, ${size(Math.min(bytes, expected))} of ${size(expected)}` : "";
  const took = ended ? duration(seconds) : `now, ${duration(seconds)}`;
  return { ...part, phase: "setup", protocol: "set-up", took, runs: !ended, soFar: counted };
}

function ofLayer(step) {
  const ended = step.ended >= step.visits;
  const took = ended ? duration(step.seconds) : "now";
  return { ...step, took, ended, runs: step.begun > step.ended, soFar: "" };
}
