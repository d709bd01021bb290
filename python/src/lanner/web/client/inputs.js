// How pictures, rows of a table and texts become a model's values, by the rules in its public half: the same as those of `lanner predict`.

import { LannerError } from "./errors.js";

const refuse = (what) => {
  throw new LannerError("input", what);
};

/** Rounds half to even. */
function rounded(value) {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** The values of one sample: of a vector, of an array by name, or of a row of a table. `model` is what a client says of it. */
export function valuesOf(model, given) {
  const { inputs } = model;
  if (inputs.length === 0) return checked(flat(given), product(model.input.shape), "the input");
  const named = inputs.length === 1 && !isRecord(given) ? { [inputs[0].name]: given } : given;
  if (!isRecord(named)) refuse(`give the inputs by name: ${inputs.map(({ name }) => name).join(", ")}`);
  for (const name of Object.keys(named)) {
    if (!inputs.some((entry) => entry.name === name)) refuse(`input ${name} is not an input of the model`);
  }
  const parts = inputs.map((entry) => {
    if (named[entry.name] === undefined) refuse(`input ${entry.name} is missing`);
    return encoded(entry, flat(named[entry.name]));
  });
  return Float32Array.from(parts.flatMap((part) => Array.from(part)));
}

/** The values of a text that the module made numbers of. */
export function textValues(model, made) {
  const { ids, mask, types } = model.text;
  const named = { [ids]: made.ids };
  if (mask !== null) named[mask] = made.mask;
  if (types !== null) named[types] = made.types;
  return valuesOf(model, named);
}

const isRecord = (given) => given !== null && typeof given === "object" && !Array.isArray(given) && !ArrayBuffer.isView(given);
const product = (shape) => shape.reduce((all, side) => all * side, 1);

function flat(given) {
  if (ArrayBuffer.isView(given)) return Array.from(given);
  return Array.isArray(given) ? given.flat(Infinity) : [given];
}

function checked(values, count, what) {
  if (values.length !== count) refuse(`${what} has ${values.length} values and should have ${count}`);
  const wrong = values.findIndex((value) => typeof value !== "number" || !Number.isFinite(value));
  if (wrong >= 0) refuse(`${what} has no number in place ${wrong}`);
  return Float32Array.from(values);
}

function encoded(entry, values) {
  const { name, choices, factor, embeddings } = entry;
  const columns = entry.columns ?? null;
  const count = product(entry.shape);
  if (columns !== null) return rowElements(columns, values);
  if (embeddings) {
    refuse(`input ${name} is looked up in a table that the model's owner publishes, which this client does not have; use \`lanner predict\` with that table`);
  }
  const numbers = checked(values, count, `input ${name}`);
  if (choices === null) return numbers.map((value) => value * factor);
  const wrong = numbers.findIndex((value) => !Number.isInteger(value) || value < 0 || value >= choices);
  if (wrong >= 0) refuse(`input ${name} has no whole number from 0 to ${choices - 1} in place ${wrong}`);
  if (choices === 1) return numbers.map(() => 1);
  if (choices === 2) return numbers;
  const rows = new Float32Array(count * choices);
  numbers.forEach((value, place) => (rows[place * choices + value] = 1));
  return rows;
}

/** How many categories a column has, other words among them; 0 of plain numbers. */
export const choicesOf = ({ categories, others }) => (categories ?? []).length + (others ? 1 : 0);

/** The elements of a row, in which null is a missing number, and a category is its place. */
function rowElements(columns, row) {
  if (row.length !== columns.length) refuse(`the row has ${row.length} numbers, the table ${columns.length} columns`);
  const lacking = columns.map((column, place) => {
    const called = column.name ?? `column ${place + 1}`;
    const [value, choices] = [row[place], choicesOf(column)];
    const lacks = value === null || Number.isNaN(value);
    if (lacks && !column.missing) refuse(`${called} is empty`);
    if (!lacks && (typeof value !== "number" || !Number.isFinite(value))) refuse(`${called} is no number`);
    if (!lacks && choices > 0 && !(Number.isInteger(value) && value >= 0 && value < choices)) {
      refuse(`${called} is none of its ${choices} categories`);
    }
    return lacks;
  });
  const isCode = ({ coding }) => (coding ?? "code") === "code";
  if (columns.every(isCode)) return rowCodes(columns, row, lacking);
  const elements = columns.map((column, place) => {
    if (column.coding === "choice") return Array.from({ length: choicesOf(column) }, (_, at) => (at === row[place] ? 1 : 0));
    return [lacking[place] ? 0 : row[place], ...(column.missing ? [lacking[place] ? 1 : 0] : [])];
  });
  return Float32Array.from(elements.flat());
}

/** The codes of a row, and behind them one more for each column that may lack a number. */
function rowCodes(columns, row, lacking) {
  const high = [];
  const codes = columns.map((column, place) => {
    const [value, lacks] = [row[place], lacking[place]];
    const [least, most] = column.missing ? [1, column.high - 1] : [0, column.high];
    const code = lacks ? 0 : Math.min(most, Math.max(least, rounded(Math.fround(value) / column.unit) - column.offset));
    if (column.missing) high.push(lacks ? column.high : code);
    return code;
  });
  return Float32Array.from([...codes, ...high]);
}

/** The values of a picture: samples of 0 to 255, four a pixel, of which the last is ignored, as `ImageData` has them over the model's background. */
export function pictureValues(model, { data, width, height }) {
  const { channels, size, resize, scale, mean, std, invert } = model.image;
  const grey = channels === 1;
  let planes = Array.from({ length: channels }, () => new Uint8Array(width * height));
  for (let pixel = 0; pixel < width * height; pixel++) {
    const [red, green, blue] = [data[4 * pixel], data[4 * pixel + 1], data[4 * pixel + 2]];
    if (grey) planes[0][pixel] = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
    else [planes[0][pixel], planes[1][pixel], planes[2][pixel]] = [red, green, blue];
  }
  planes = planes.map((plane) => fitted(plane, [height, width], size, resize, invert ? 255 : 0));
  const values = planes.map((plane, channel) =>
    Float32Array.from(plane, (sample) => ((invert ? 255 - sample : sample) * scale - mean[channel]) / std[channel]),
  );
  const shape = model.input.shape;
  const last = shape.length === 3 && shape[0] === size[0] && shape[1] === size[1] && shape[2] === channels;
  const out = new Float32Array(size[0] * size[1] * channels);
  values.forEach((plane, channel) =>
    plane.forEach((value, pixel) => (out[last ? pixel * channels + channel : channel * plane.length + pixel] = value)),
  );
  return out;
}

/** The background under a picture's transparent parts: white or black. */
export function background(model) {
  return model.image.invert ? "#ffffff" : "#000000";
}

function fitted(plane, [height, width], [toHeight, toWidth], resize, fill) {
  if (height === toHeight && width === toWidth) return plane;
  if (resize === "none") refuse(`the picture is ${height} x ${width} pixels, the model expects ${toHeight} x ${toWidth}`);
  if (resize === "crop") {
    const ratio = toWidth / toHeight;
    const [cutWidth, cutHeight] = width / height >= ratio ? [ratio * height, height] : [width, width / ratio];
    const [left, top] = [(width - cutWidth) * 0.5, (height - cutHeight) * 0.5];
    return resampled(plane, [height, width], [top, left, top + cutHeight, left + cutWidth], [toHeight, toWidth]);
  }
  if (resize === "pad") {
    const wide = width / height > toWidth / toHeight;
    const inner = wide
      ? [rounded((height / width) * toWidth), toWidth]
      : [toHeight, width / height === toWidth / toHeight ? toWidth : rounded((width / height) * toHeight)];
    const small = resampled(plane, [height, width], [0, 0, height, width], inner);
    const out = new Uint8Array(toHeight * toWidth).fill(fill);
    const top = inner[1] === toWidth ? rounded((toHeight - inner[0]) * 0.5) : 0;
    const left = inner[1] === toWidth ? 0 : rounded((toWidth - inner[1]) * 0.5);
    for (let row = 0; row < inner[0]; row++) {
      out.set(small.subarray(row * inner[1], (row + 1) * inner[1]), (top + row) * toWidth + left);
    }
    return out;
  }
  return resampled(plane, [height, width], [0, 0, height, width], [toHeight, toWidth]);
}

/** Weights of a bilinear filter with antialiasing, in whole numbers as Pillow has them. */
function weights(length, from, to, out) {
  // Its box is in floats of 32 bits.
  [from, to] = [Math.fround(from), Math.fround(to)];
  const scale = Math.fround(to - from) / out;
  const support = Math.max(scale, 1);
  return Array.from({ length: out }, (_, place) => {
    const centre = from + (place + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const last = Math.min(length, Math.trunc(centre + support + 0.5));
    const each = [];
    for (let at = first; at < last; at++) each.push(Math.max(0, 1 - Math.abs((at - centre + 0.5) / support)));
    const sum = each.reduce((all, weight) => all + weight, 0);
    return { first, fixed: each.map((weight) => Math.trunc(0.5 + (sum === 0 ? weight : weight / sum) * (1 << BITS))) };
  });
}

const BITS = 22;

function resampled(plane, [height, width], [top, left, bottom, right], [toHeight, toWidth]) {
  const clip = (sum) => Math.min(255, Math.max(0, Math.floor(sum / (1 << BITS))));
  let [current, currentWidth] = [plane, width];
  if (width !== toWidth || left !== 0 || right !== width) {
    const across = weights(width, left, right, toWidth);
    const out = new Uint8Array(height * toWidth);
    for (let row = 0; row < height; row++) {
      across.forEach(({ first, fixed }, place) => {
        let sum = 1 << (BITS - 1);
        fixed.forEach((weight, at) => (sum += weight * current[row * width + first + at]));
        out[row * toWidth + place] = clip(sum);
      });
    }
    [current, currentWidth] = [out, toWidth];
  }
  if (height === toHeight && top === 0 && bottom === height) return current;
  const down = weights(height, top, bottom, toHeight);
  const out = new Uint8Array(toHeight * toWidth);
  down.forEach(({ first, fixed }, place) => {
    for (let column = 0; column < toWidth; column++) {
      let sum = 1 << (BITS - 1);
      fixed.forEach((weight, at) => (sum += weight * current[(first + at) * currentWidth + column]));
      out[place * toWidth + column] = clip(sum);
    }
  });
  return out;
}
