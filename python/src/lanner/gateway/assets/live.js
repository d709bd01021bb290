// What runs now: asks the gateway, while a prediction runs, how far its layers have come.

import { PHASES, bar, duration } from "./result.js";

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
      const { running, steps } = await ask(path);
      if (!over && running) draw(steps);
    } catch {
      // The prediction itself says what is wrong.
    }
    if (!over) timer = setTimeout(look, PAUSE);
  };
  byId("live-steps").replaceChildren();
  byId("live").hidden = false;
  byId("live-now").textContent = "Waiting for its turn, or for the set-up of a new session.";
  timer = setTimeout(look, PAUSE);
  return () => {
    over = true;
    clearTimeout(timer);
    byId("live").hidden = true;
  };
}

function draw(steps) {
  const met = steps.filter((step) => step.begun > 0);
  const last = met.filter((step) => step.begun > step.ended).at(-1) ?? met.at(-1);
  if (!last) return;
  const ofPhase = steps.filter((step) => step.phase === last.phase);
  byId("live-now").textContent = `${PHASES[last.phase]}: layer ${ofPhase.indexOf(last) + 1} of ${ofPhase.length}, ${last.name}`;
  const whole = met.reduce((sum, step) => sum + step.seconds, 0);
  let start = 0;
  const rows = met.map((step) => {
    const ended = step.ended >= step.visits;
    const layer = { ...step, took: ended ? duration(step.seconds) : "now" };
    const row = bar({ layer, start }, whole || 1);
    if (!ended) row.classList.add("now");
    start += step.seconds;
    return row;
  });
  byId("live-steps").replaceChildren(...rows);
}
