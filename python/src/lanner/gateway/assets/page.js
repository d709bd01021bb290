// The page: which model, which input, asking, and waiting.

import { Drawing } from "./drawing.js";
import { follow, ticket } from "./live.js";
import { duration, show } from "./result.js";

const byId = (id) => document.getElementById(id);
const drawing = new Drawing(byId("canvas"), byId("cursor"), byId("pen"));

const KINDS = ["text", "draw", "form", "file", "numbers"];
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

/** Pixels of a side of the largest pictures that people are first offered to draw. */
const DRAWN = 64;

/** What is said where no answer comes. */
const SILENT = "gateway does not answer; check that it is running";

let models = [];
let token = null; // In memory alone: it is gone when the page is closed or loaded again.

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch {
    throw new Error(`the ${SILENT}`);
  }
  const document = await response.json().catch(() => ({}));
  if (response.status === 401) lock();
  if (!response.ok) throw new Error(document.error ?? `the gateway answered with status ${response.status}`);
  return document;
}

function lock() {
  byId("unlock").hidden = false;
  byId("ask").hidden = byId("before").hidden = true;
  byId("token").focus();
}

async function start() {
  const known = await ask("/ui/models");
  models = known.models;
  byId("model").replaceChildren(...models.map((model) => new Option(model.name, model.name)));
  byId("unlock").hidden = true;
  byId("ask").hidden = false;
  byId("before").hidden = !byId("result").hidden;
  chooseModel();
}

function chosenModel() {
  return models[byId("model").selectedIndex];
}

function chooseModel() {
  const model = chosenModel();
  const several = model.inputs.length > 1;
  const inputs = several ? model.inputs : [{ ...model, name: "", choices: null, ...model.inputs[0] }];
  const described = inputs.map(({ name, shape, choices }) => {
    const kind = choices === null ? "numbers" : `whole numbers from 0 to ${choices - 1}`;
    return `${several ? `${name}, ` : ""}${shape.join(" x ")} ${kind}`;
  });
  const facts = `${several ? "Inputs" : "Input"}: ${described.join("; ")}`;
  byId("model-title").textContent = model.title ?? "";
  byId("model-note").textContent = model.note ?? "";
  byId("model-facts").textContent = `${facts}; mode ${model.mode}; commitment ${model.commitment.slice(0, 16)}...`;
  const pictures = model.image !== null;
  const columns = (!several && model.inputs[0]?.columns) || null;
  const reads = model.text !== null;
  const named = columns !== null && columns.every(({ name }) => name !== undefined);
  const arrays = several ? "A .npz or JSON file" : "A CSV, JSON or .npy file";
  for (const kind of KINDS) {
    const radio = document.querySelector(`input[name="kind"][value="${kind}"]`);
    radio.disabled = kind === "draw" && !pictures;
    const absent = { text: !reads, form: columns === null, draw: columns !== null || reads };
    radio.parentElement.hidden = absent[kind] ?? false;
    radio.checked = kind === (reads ? "text" : pictures ? pictureKind(model.image) : columns !== null ? "form" : "numbers");
  }
  byId("fields").replaceChildren(...(columns ?? []).map(field));
  byId("kind-note").hidden = pictures || reads || columns !== null;
  byId("kind-note").textContent = "This model accepts numbers only: its owner did not describe how a picture becomes its input.";
  byId("file-label").textContent = `${pictures ? "A PNG, JPEG, CSV or .npy file" : arrays}; choose it, or drop it on this page`;
  byId("file-help").textContent = pictures
    ? `The gateway scales a picture to ${model.image.width} x ${model.image.height} pixels by the model's rules.`
    : several ? "An array for each of the inputs, by its name."
    : named ? `One row of ${model.values} numbers, in the model's order, or behind a header with the columns' names.`
    : `One row of ${model.values} numbers.`;
  byId("text-help").textContent = reads
    ? `The gateway always makes ${model.text.length} tokens of it, so that the server does not see how long it is.`
    : "";
  byId("row-label").textContent = several ? "The inputs by name" : `${model.values} numbers`;
  byId("row-help").textContent = several
    ? `JSON, as in {${model.inputs.map(({ name }) => `"${name}": [...]`).join(", ")}}.`
    : "One row, separated by commas, as in a CSV file without a header.";
  // A model that inverts pictures takes dark ink on light paper.
  byId("light-ink").checked = pictures && !model.image.invert;
  drawing.useLightInk(byId("light-ink").checked);
  chooseKind();
  showReady(model);
}

// Small pictures of dark ink on light paper are drawn; others come as files.
function pictureKind({ invert, width, height }) {
  return invert && Math.max(width, height) <= DRAWN ? "draw" : "file";
}

// Whether the server answers now, beside the model's name.
async function showReady(model) {
  const ready = byId("ready");
  ready.textContent = "";
  const path = `/v2/models/${encodeURIComponent(model.name)}/ready`;
  const failed = ({ message }) => (message.endsWith(SILENT) ? `The ${SILENT}.` : `The server is not ready: ${message}.`);
  const said = await ask(path).then(() => "The server is ready.", failed);
  if (model === chosenModel()) ready.textContent = said.replace(/\.\.$/, ".");
}

function chosenKind() {
  return document.querySelector('input[name="kind"]:checked').value;
}

function chooseKind() {
  for (const kind of KINDS) byId(kind).hidden = kind !== chosenKind();
}

// A field for a column of a table: a choice between its categories, else a number; empty where it may be missing.
function field(column, place) {
  const label = document.createElement("label");
  label.textContent = column.name ?? `column ${place + 1}`;
  const words = column.categories ? [...column.categories, ...(column.others ? ["another word"] : [])] : null;
  const taken = document.createElement(words === null ? "input" : "select");
  if (words === null) {
    taken.type = "text";
    taken.inputMode = "decimal";
    taken.autocomplete = "off";
  } else {
    taken.append(new Option(column.missing ? "missing" : "choose", ""), ...words.map((word, index) => new Option(word, index)));
  }
  if (column.missing && words === null) taken.placeholder = "empty where it is missing";
  label.append(taken);
  return label;
}

// The row of the form as JSON, in the model's order, where null is a missing number.
function filledRow() {
  const columns = chosenModel().inputs[0].columns;
  const row = [...byId("fields").querySelectorAll("input, select")].map((taken, place) => {
    const called = columns[place].name ?? `column ${place + 1}`;
    const text = taken.value.trim();
    const lacks = () => {
      taken.focus();
      return new Error(text === "" ? `${called} is empty; fill it in` : `${called} is not a number; write it as in -1.5`);
    };
    if (text === "") {
      if (!columns[place].missing) throw lacks();
      return null;
    }
    if (!NUMBER.test(text) || !Number.isFinite(Number(text))) throw lacks();
    return Number(text);
  });
  return JSON.stringify([row]);
}

async function chosenInput() {
  const kind = chosenKind();
  if (kind === "draw") {
    if (drawing.empty) throw new Error("nothing is drawn yet");
    return drawing.file();
  }
  if (kind === "text") {
    if (byId("sentence").value.trim() === "") throw new Error("there is no text yet");
    return new Blob([byId("sentence").value]);
  }
  if (kind === "form") return new Blob([filledRow()]);
  if (kind === "file") {
    const file = byId("chosen").files[0];
    if (!file) throw new Error("no file is chosen yet");
    return file;
  }
  if (byId("row").value.trim() === "") throw new Error("there are no numbers yet");
  return new Blob([byId("row").value]);
}

async function predict() {
  const model = chosenModel();
  let stop = () => {};
  try {
    const body = new Blob([await chosenInput()], { type: "application/octet-stream" });
    const mine = ticket();
    stop = waiting(model, mine);
    const header = chosenKind() === "file" && byId("csv-header").checked ? "&csv_header=true" : "";
    const text = chosenKind() === "text" ? "&text=true" : "";
    const path = `/ui/predict?model=${encodeURIComponent(model.name)}&ticket=${mine}${header}${text}`;
    const answer = await ask(path, { method: "POST", body, headers: { "Content-Type": "application/octet-stream" } });
    show(answer, model);
    stop(`Done in ${duration(answer.seconds)}.`);
    showResult(true);
    byId("result").focus({ preventScroll: true });
    byId("result").scrollIntoView({ block: "nearest" });
  } catch (error) {
    stop("");
    showResult(false);
    throw error;
  }
}

// A result stays until the next one, or until something else was asked and failed.
function showResult(shown) {
  byId("result").hidden = !shown;
  byId("before").hidden = shown || byId("ask").hidden;
}

function waiting(model, mine) {
  const began = performance.now();
  byId("before").hidden = true;
  const leave = follow(ask, model, mine);
  byId("status").textContent = `Asking model ${model.name}: set-up where the session is new, then offline, then online.`;
  const label = byId("send").textContent;
  const timer = setInterval(() => {
    byId("send").textContent = `Waiting, ${((performance.now() - began) / 1e3).toFixed(0)} s`;
  }, 500);
  byId("send").disabled = true;
  byId("result").setAttribute("aria-busy", "true");
  return (said) => {
    clearInterval(timer);
    leave();
    byId("result").removeAttribute("aria-busy");
    byId("send").disabled = false;
    byId("send").textContent = label;
    byId("status").textContent = said;
  };
}

function showPreview() {
  const file = byId("chosen").files[0];
  const preview = byId("preview");
  if (preview.src) URL.revokeObjectURL(preview.src);
  preview.hidden = !["image/png", "image/jpeg"].includes(file?.type);
  if (!preview.hidden) preview.src = URL.createObjectURL(file);
  else preview.removeAttribute("src");
}

function guarded(work) {
  return async (event) => {
    event?.preventDefault();
    byId("error").textContent = "";
    try {
      await work(event);
    } catch (error) {
      byId("error").textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`.replace(/\.\.$/, ".");
      byId("error").scrollIntoView({ block: "nearest" });
    }
  };
}

byId("ask").addEventListener("submit", guarded(predict));
byId("unlock").addEventListener("submit", guarded(async () => {
  token = byId("token").value.trim();
  await start();
  byId("token").value = "";
  byId("model").focus();
}));
byId("model").addEventListener("change", chooseModel);
for (const radio of document.querySelectorAll('input[name="kind"]')) radio.addEventListener("change", chooseKind);
byId("clear").addEventListener("click", () => drawing.clear());
byId("light-ink").addEventListener("change", (event) => drawing.useLightInk(event.target.checked));
byId("chosen").addEventListener("change", showPreview);
byId("preview").addEventListener("error", () => (byId("preview").hidden = true));

// A file may be dropped anywhere: elsewhere than in its place a browser would leave the page for it.
const ofFiles = (event) => event.dataTransfer.types.includes("Files");
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    if (!ofFiles(event)) return;
    event.preventDefault();
    byId("drop").classList.add("over");
  });
}
document.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) byId("drop").classList.remove("over");
});
document.addEventListener("drop", (event) => {
  if (ofFiles(event)) guarded(takeDropped)(event);
});

function takeDropped(event) {
  byId("drop").classList.remove("over");
  const { files } = event.dataTransfer;
  if (byId("ask").hidden) return;
  if (files.length !== 1) throw new Error("one file at a time can be dropped");
  document.querySelector('input[name="kind"][value="file"]').click();
  byId("chosen").files = files;
  showPreview();
}

guarded(start)();
