// The page: which model, which input, asking, and waiting. What computes runs in a worker of the client.

import { Client, background, look } from "./client/lanner.js";
import { Drawing } from "./drawing.js";
import { follow } from "./live.js";
import { duration, show } from "./result.js";

const byId = (id) => document.getElementById(id);
const drawing = new Drawing(byId("canvas"), byId("cursor"), byId("pen"));

const KINDS = ["text", "draw", "form", "file", "numbers"];
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;
/** Milliseconds without a question after which the session ends, so that others have its place. */
const IDLE = 120_000;
/** Larger pictures are refused before they are decoded. */
const MOST_PIXELS = 100_000_000;

/** Pixels of a side of the largest pictures that people are first offered to draw. */
const DRAWN = 64;

let server = null; // As server.json names it: address, pin, models, and whether it asks clients for certificates.
let model = null; // What the chosen model's public half says.
let client = null; // In memory alone: it is gone when the page is closed or loaded again.
let idle = null;
let asking = false;
let tell = () => {}; // Takes what the session says of how far it has come.

function options() {
  const chosen = server.models[byId("model").selectedIndex];
  const trust = server.pin === null ? { insecurePlaintext: true } : { pin: server.pin };
  const [certificate, key] = identity();
  return { ...trust, certificate, key, model: chosen.name, pinModel: chosen.commitment };
}

/** The files of this client's certificate and of its key, which this thread does not read. */
function identity() {
  return ["certificate", "key"].map((name) => byId(name).files[0]);
}

async function start() {
  const response = await fetch("server.json", { cache: "no-store", credentials: "omit" }).catch(() => null);
  if (!response?.ok) throw new Error("this page's host does not answer; check that it is running");
  server = await response.json();
  server.address ??= location.origin;
  byId("model").replaceChildren(...server.models.map(({ name }) => new Option(name, name)));
  byId("trust").textContent =
    server.pin === null
      ? "This server does not use TLS: anybody on the network between can read and change everything."
      : `Server ${server.address}, certificate ${server.pin.slice(0, 23)}... The code of this page came from ${location.host}: whoever can change it there can read your input.`;
  byId("more").hidden = server.pin === null;
  await chooseModel();
}

async function chooseModel() {
  drop();
  byId("ask").hidden = true;
  byId("ready").textContent = "";
  const chosen = identity().filter((file) => file !== undefined).length;
  byId("no-identity").hidden = chosen === 0;
  if (chosen === 1 || (chosen === 0 && server.certificates)) {
    byId("more").open = true;
    byId("status").textContent =
      chosen === 1 ? "Choose the other file, too." : "This server accepts known clients only: choose your certificate and its key.";
    return;
  }
  byId("status").textContent = "Asking the server about the model.";
  try {
    model = await look(server.address, options());
  } catch (error) {
    // A page of another host does not know whether its server asks for certificates.
    byId("more").open ||= server.certificates !== false;
    throw error;
  }
  byId("ready").textContent = "The server is ready.";
  byId("status").textContent = "";
  byId("ask").hidden = false;
  byId("before").hidden = !byId("result").hidden;
  describe();
}

const product = (shape) => shape.reduce((all, side) => all * side, 1);

function describe() {
  const several = model.inputs.length > 1;
  const inputs = model.inputs.length > 0 ? model.inputs : [{ ...model.input, choices: null }];
  const described = inputs.map(({ name, shape, choices }) => {
    const kind = choices === null ? "numbers" : `whole numbers from 0 to ${choices - 1}`;
    return `${several ? `${name}, ` : ""}${shape.join(" x ")} ${kind}`;
  });
  model.values = inputs.reduce((all, { shape }) => all + product(shape), 0);
  const pictures = model.image !== null;
  const columns = (!several && model.inputs[0]?.columns) || null;
  const given = columns === null ? described.join("; ") : `${columns.length} ${columns.length === 1 ? "column" : "columns"}`;
  const facts = `${several ? "Inputs" : "Input"}: ${given}`;
  byId("model-title").textContent = model.title ?? "";
  byId("model-note").textContent = model.note ?? "";
  byId("model-facts").textContent = `${facts}; mode ${model.mode}; commitment ${model.commitment.slice(0, 16)}...`;
  const reads = model.text !== null;
  const hidden = { text: !reads, form: columns === null, draw: !pictures, file: !pictures };
  const first = reads ? "text" : pictures ? pictureKind(model.image) : columns !== null ? "form" : "numbers";
  for (const kind of KINDS) {
    const radio = document.querySelector(`input[name="kind"][value="${kind}"]`);
    radio.parentElement.hidden = hidden[kind] ?? false;
    radio.checked = kind === first;
  }
  byId("fields").replaceChildren(...(columns ?? []).map(field));
  byId("kind-note").hidden = pictures || reads || columns !== null;
  byId("kind-note").textContent = "This model accepts numbers only: its owner did not describe how a picture becomes its input.";
  byId("file-label").textContent = "A PNG or JPEG picture; choose it, or drop it on this page";
  if (pictures) {
    const [height, width] = model.image.size;
    byId("file-help").textContent = `This page scales it to ${width} x ${height} pixels by the model's rules.`;
  }
  byId("text-help").textContent = reads
    ? `This page always makes ${model.text.length} tokens of it, so that the server does not see how long it is.`
    : "";
  byId("row-label").textContent = several ? "The inputs by name" : `${model.values} numbers`;
  byId("row-help").textContent = several
    ? `JSON, as in {${model.inputs.map(({ name }) => `"${name}": [...]`).join(", ")}}.`
    : "One row, separated by commas.";
  // A model that inverts pictures takes dark ink on light paper.
  byId("light-ink").checked = pictures && !model.image.invert;
  drawing.useLightInk(byId("light-ink").checked);
  chooseKind();
}

/** Small pictures of dark ink on light paper are drawn; others come as files. */
function pictureKind({ invert, size }) {
  return invert && Math.max(...size) <= DRAWN ? "draw" : "file";
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

/** The row of the form, in the model's order, where null is a missing number. */
function filledRow() {
  const { columns } = model.inputs[0];
  return [...byId("fields").querySelectorAll("input, select")].map((taken, place) => {
    const called = columns[place].name ?? `column ${place + 1}`;
    const text = taken.value.trim();
    if (text === "" && columns[place].missing) return null;
    if (text === "" || !NUMBER.test(text)) {
      taken.focus();
      throw new Error(text === "" ? `${called} is empty; fill it in` : `${called} is not a number; write it as in -1.5`);
    }
    return Number(text);
  });
}

/** The samples of a picture, upright, over the model's background. */
async function pixels(blob) {
  const decoded = createImageBitmap(blob, { colorSpaceConversion: "none" });
  const bitmap = await decoded.catch(() => {
    throw new Error("the browser cannot read this picture; choose a PNG or JPEG file");
  });
  const { width, height } = bitmap;
  if (width * height > MOST_PIXELS) throw new Error("the picture has more than 100 million pixels");
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = background(model);
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return context.getImageData(0, 0, width, height);
}

/** What asks the client about the chosen input, once it is checked that there is one. */
async function question() {
  const kind = chosenKind();
  if (kind === "draw") {
    if (drawing.empty) throw new Error("nothing is drawn yet");
    const picture = await pixels(await drawing.file());
    return (asked) => asked.predictPicture(picture);
  }
  if (kind === "file") {
    const file = byId("chosen").files[0];
    if (!file) throw new Error("no picture is chosen yet");
    const picture = await pixels(file);
    return (asked) => asked.predictPicture(picture);
  }
  if (kind === "text") {
    const text = byId("sentence").value;
    if (text.trim() === "") throw new Error("there is no text yet");
    return (asked) => asked.predictText(text);
  }
  if (kind === "form") {
    const row = filledRow();
    return (asked) => asked.predict(row);
  }
  const text = byId("row").value.trim();
  if (text === "") throw new Error("there are no numbers yet");
  const values = model.inputs.length > 1 ? parsed(text) : numbers(text);
  return (asked) => asked.predict(values);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("this is not JSON; write the inputs as shown below the field");
  }
}

function numbers(text) {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== "");
  const wrong = parts.findIndex((part) => !NUMBER.test(part));
  if (wrong >= 0) throw new Error(`there is no number in place ${wrong + 1}`);
  return parts.map(Number);
}

async function predict() {
  // One question at a time, also while a picture is being read.
  if (asking) return;
  asking = true;
  try {
    await ask(await question());
  } finally {
    asking = false;
  }
}

async function ask(put) {
  clearTimeout(idle);
  const progress = { running: false, set_up: [], steps: [] };
  const stop = waiting(progress);
  const began = performance.now();
  try {
    const opened = client === null;
    client ??= await Client.connect(server.address, { ...options(), onProgress: (now) => tell(now) });
    const session = client;
    const { longestSent, ...prediction } = await put(session);
    const { setup, offline, online } = prediction.phases;
    const answer = { prediction, costs: { setup, offline, online }, new_session: opened, longest_sent: longestSent };
    show(answer, model);
    const seconds = (performance.now() - began) / 1e3;
    stop(`Done in ${duration(seconds)}, with ${Math.round(session.memory / 1e6)} MB of this browser's memory.`);
    showResult(true);
    byId("result").focus({ preventScroll: true });
    byId("result").scrollIntoView({ block: "nearest" });
    idle = setTimeout(drop, IDLE);
  } catch (error) {
    stop("");
    showResult(false);
    if (!["input", "misuse"].includes(error.kind)) drop();
    throw error;
  }
}

/** Asks without a certificate. */
async function leaveOut() {
  for (const name of ["certificate", "key"]) byId(name).value = "";
  await chooseModel();
}

/** Ends the session, if there is one. */
function drop() {
  clearTimeout(idle);
  client?.close().catch(() => {});
  client = null;
}

// A result stays until the next one, or until something else was asked and failed.
function showResult(shown) {
  byId("result").hidden = !shown;
  byId("before").hidden = shown || byId("ask").hidden;
}

function waiting(progress) {
  const began = performance.now();
  tell = ({ setUp, steps }) => Object.assign(progress, { running: true, set_up: setUp, steps: steps ?? [] });
  byId("before").hidden = true;
  const leave = follow(async () => progress, model, "");
  byId("status").textContent = `Asking model ${model.name}: set-up where the session is new, then offline, then online.`;
  const label = byId("send").textContent;
  const timer = setInterval(() => {
    byId("send").textContent = `Waiting, ${((performance.now() - began) / 1e3).toFixed(0)} s`;
  }, 500);
  byId("send").disabled = true;
  byId("model").disabled = true;
  byId("result").setAttribute("aria-busy", "true");
  return (said) => {
    clearInterval(timer);
    leave();
    byId("result").removeAttribute("aria-busy");
    byId("send").disabled = byId("model").disabled = false;
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
      byId("status").textContent = "";
      byId("error").textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`.replace(/\.\.$/, ".");
      byId("error").scrollIntoView({ block: "nearest" });
    }
  };
}

byId("ask").addEventListener("submit", guarded(predict));
byId("model").addEventListener("change", guarded(chooseModel));
for (const radio of document.querySelectorAll('input[name="kind"]')) radio.addEventListener("change", chooseKind);
for (const name of ["certificate", "key"]) byId(name).addEventListener("change", guarded(chooseModel));
byId("no-identity").addEventListener("click", guarded(leaveOut));
byId("clear").addEventListener("click", () => drawing.clear());
byId("light-ink").addEventListener("change", (event) => drawing.useLightInk(event.target.checked));
byId("chosen").addEventListener("change", showPreview);
byId("preview").addEventListener("error", () => (byId("preview").hidden = true));
// A page that the browser keeps to come back to has no session.
addEventListener("pagehide", () => {
  client?.dispose();
  client = null;
});

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
  if (model.image === null) throw new Error("this model takes no pictures");
  document.querySelector('input[name="kind"][value="file"]').click();
  byId("chosen").files = files;
  showPreview();
}

guarded(start)();
