/** How far one part of a set-up has come. */
export interface PartProgress {
  name: "connection" | "model" | "keys" | "transfers";
  begun: boolean;
  ended: boolean;
  seconds: number;
  bytes: number;
  /** Bytes that it takes at most; null where that is not known. */
  expected_bytes: number | null;
}

/** How far one layer has come in one phase, over all predictions of a session. */
export interface StepProgress {
  name: string;
  protocol: string;
  phase: "offline" | "online";
  visits: number;
  begun: number;
  ended: number;
  seconds: number;
  bytes: number;
}

export interface Progress {
  setUp: PartProgress[];
  /** Null before there is a session. */
  steps: StepProgress[] | null;
}

export interface Options {
  /** The fingerprint of the server's certificate, `sha256:` and 64 hexadecimal digits, as `lanner serve` printed it. */
  pin?: string;
  /** This client's certificate in PEM, for servers that accept known clients only: the text, or a file, which the worker alone reads. */
  certificate?: string | Blob;
  /** The certificate's key in PEM, without a password. It goes to the worker and no further. */
  key?: string | Blob;
  /** No TLS inside the WebSocket: the server must say so, too. Then whoever is on the way can read and change everything. */
  insecurePlaintext?: boolean;
  /** The model's name; it may be left out where the server has one. */
  model?: string;
  /** The commitment that the model must have, 64 hexadecimal digits. */
  pinModel?: string;
  /** Seconds to wait for the server; 60 if left out. */
  timeout?: number;
  /** Bytes that a session with one prediction may take of either party's memory; a model that takes more is refused. */
  maxMemory?: number;
  /** Is called some times a second while a call runs. */
  onProgress?: (progress: Progress) => void;
  /** Ends the session when it is aborted, whatever runs: every open call is rejected, and the memory is gone. */
  signal?: AbortSignal;
}

export interface Column {
  unit: number;
  offset: number;
  high: number;
  missing: boolean;
  name?: string;
  categories?: string[];
  /** Whether every other word counts as one category more, the last. */
  others?: boolean;
  /** What its elements are: codes that trees compare, where it is absent; numbers; or a one at the place of the category. */
  coding?: "number" | "choice";
}

export interface NamedInput {
  name: string;
  datatype: string;
  shape: number[];
  choices: number | null;
  factor: number;
  columns?: Column[];
  embeddings?: { rows: number; width: number; sha256: string };
}

/** What the public half of a model says of it. */
export interface Model {
  name: string;
  mode: string;
  /** What is revealed to the client: label, label-map, labels, probability, top-k, logits or value. */
  output: string;
  commitment: string;
  /** What the owner calls the model before people; null where nothing is said. */
  title: string | null;
  /** What the owner lets people know of the results, such as "not for clinical use". */
  note: string | null;
  classes: string[] | null;
  image: {
    channels: 1 | 3;
    size: [number, number];
    resize: "stretch" | "crop" | "pad" | "none";
    scale: number;
    mean: number[];
    std: number[];
    invert: boolean;
  } | null;
  input: { name: string; shape: number[]; limit: number };
  inputs: NamedInput[];
  outputs: { name: string; shape: number[]; factor: number }[];
  text: { length: number; ids: string; mask: string | null; types: string | null } | null;
}

export interface Cost {
  seconds: number;
  bytes_sent: number;
  bytes_received: number;
  rounds: number;
}

export interface LayerCost {
  name: string;
  protocol: string;
  phase: "offline" | "online";
  seconds: number;
  computing: number;
  bytes: number;
  bytes_sent: number;
  rounds: number;
}

/** What the output policy reveals, and what it took. */
export interface Prediction {
  label: number | null;
  class_name: string | null;
  labels: number[] | null;
  /** The names of `labels`, of `top`, or of the classes whose scores `logits` lists, in that order. */
  class_names: string[] | null;
  probability: number | null;
  /** The decimal digits that the probability is rounded to. */
  digits: number | null;
  top: number[] | null;
  logits: number[] | null;
  values: number[] | null;
  integers: number[] | null;
  saturated: boolean | null;
  mode: string;
  model: string;
  phases: { setup: Cost; offline: Cost; online: Cost };
  layers: LayerCost[];
  /** One of the messages that the server got, as it is under TLS. */
  longestSent: { length: number; beginning: string };
}

export type ErrorKind =
  | "misuse" | "model" | "unsupported" | "peer" | "busy" | "transport" | "input" | "aborted" | "internal";

/** What went wrong, in a sentence. After one of kind peer, busy, transport, aborted or internal the session is closed. */
export class LannerError extends Error {
  readonly kind: ErrorKind;
  constructor(kind: ErrorKind, message: string);
}

/** Numbers, nested as the input's shape or flat; null is a missing number of a table's row. */
export type Values = ArrayLike<number> | readonly (number | null | Values)[];

/** Samples of a picture, as `ImageData` has them: red, green, blue and something else, each of 0 to 255. */
export interface Picture {
  data: Uint8ClampedArray | Uint8Array;
  width: number;
  height: number;
}

/** A session with a server. Keys, masks and inputs are in the memory of a worker of its own; nothing is kept when it ends. */
export class Client implements AsyncDisposable {
  /** Connects to `ws://HOST:PORT` or `wss://HOST:PORT`, checks server and model, and does the set-up. */
  static connect(address: string | URL, options?: Options): Promise<Client>;
  readonly model: Model;
  /** Bytes of memory that the module has taken. */
  readonly memory: number;
  /** Makes the one-time material of some predictions, before their inputs are known. */
  prepare(count?: number): Promise<void>;
  /** Predicts one sample: its values, or the values of each input by name. */
  predict(input: Values | Readonly<Record<string, Values>>): Promise<Prediction>;
  /** Predicts a picture, which is made the model's size by its own rules. Transparent parts should lie over `background(model)`. */
  predictPicture(picture: Picture): Promise<Prediction>;
  /** Predicts a text. One that is too long is an error, unless it may be cut. */
  predictText(text: string, options?: { truncate?: boolean }): Promise<Prediction>;
  /** Ends the session and its threads. */
  close(): Promise<void>;
  /** Ends the threads, whatever they do. */
  dispose(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A model's public half, without a set-up. */
export function look(address: string | URL, options?: Options): Promise<Model>;

/** The colour under a picture's transparent parts. */
export function background(model: Model): "#ffffff" | "#000000";
