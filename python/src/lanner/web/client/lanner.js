// Private inference with a lanner server. What computes runs in a worker: see lanner.d.ts for what each function does.

import { LannerError } from "./errors.js";
import { background, pictureValues, textValues, valuesOf } from "./inputs.js";
import { compiled, spawn } from "./platform.js";
import { memory } from "./ring.js";

export { LannerError, background };

/** Two threads, and what they have in common. */
class Threads {
  static async start(address, onProgress) {
    if (globalThis.SharedArrayBuffer === undefined || globalThis.crossOriginIsolated === false) {
      throw new LannerError(
        "misuse",
        "the page is not isolated from others, without which a browser shares no memory between threads; " +
          "its host must send Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp",
      );
    }
    const threads = new Threads();
    threads.onProgress = onProgress;
    const url = socketUrl(address);
    const buffer = memory();
    const { port1, port2 } = new MessageChannel();
    const compiling = compiled().catch((error) => error);
    threads.workers = await Promise.all([spawn("worker.js"), spawn("socket.js")]);
    const [computing, socket] = threads.workers;
    for (const worker of threads.workers) {
      worker.onerror = ({ message }) => {
        // A browser says nothing of a script that it cannot load.
        if (message) threads.fail("internal", `a worker failed: ${message}`);
        else threads.fail("transport", "the client's scripts cannot be loaded; check that the page's host is running");
      };
    }
    computing.onmessage = ({ data }) => threads.hear(data);
    const module = await compiling;
    if (module instanceof Error) threads.fail("internal", `the client cannot be started: ${module.message}`);
    socket.postMessage({ buffer, port: port2 }, [port2]);
    computing.postMessage({ buffer, port: port1, url: url.href, module }, [port1]);
    await threads.ready;
    return threads;
  }

  constructor() {
    this.calls = new Map();
    this.count = 0;
    this.workers = [];
    this.memory = 0;
    this.failed = null;
    this.ready = new Promise((resolve, reject) => {
      this.resolveReady = resolve;
      this.rejectReady = reject;
    });
    this.ready.catch(() => {});
  }

  hear({ ready, id, result, error, progress }) {
    if (ready) this.resolveReady();
    else if (progress !== undefined) this.onProgress?.(progress);
    else {
      const call = this.calls.get(id);
      this.calls.delete(id);
      if (error === undefined) {
        this.memory = result.memory;
        call?.resolve(result.document);
      } else call?.reject(new LannerError(error.kind, error.message));
    }
  }

  fail(kind, message) {
    this.failed ??= new LannerError(kind, message);
    this.rejectReady(this.failed);
    for (const { reject } of this.calls.values()) reject(this.failed);
    this.calls.clear();
    for (const worker of this.workers) worker.terminate();
  }

  call(call, argument, number) {
    if (this.failed !== null) return Promise.reject(this.failed);
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      const given = argument instanceof Uint8Array ? [argument.buffer] : [];
      this.workers[0].postMessage({ id, call, argument, number }, given);
    });
  }
}

/** The address of the WebSocket that a server answers. */
function socketUrl(address) {
  const text = String(address);
  let url;
  try {
    url = new URL(/^(wss?|https?):\/\//.test(text) ? text : `ws://${text}`);
  } catch {
    throw new LannerError("misuse", `${JSON.stringify(text)} is no address; write ws://HOST:PORT, or HOST:PORT`);
  }
  url.protocol = url.protocol.replace("http", "ws");
  url.pathname = "/lanner";
  url.hash = url.search = "";
  return url;
}

/** What the module is told; the worker itself reads certificate and key, where they are files. */
function link(address, options) {
  const { pin, insecurePlaintext, certificate, key, model, pinModel, timeout, maxMemory } = options;
  for (const [name, given] of Object.entries({ certificate, key })) {
    if (given !== undefined && typeof given !== "string" && !(given instanceof Blob)) {
      throw new LannerError("misuse", `${name} is neither a text nor a file`);
    }
  }
  const host = socketUrl(address).hostname;
  const wanted = { model, pin_model: pinModel, timeout, limits: { memory: maxMemory } };
  return { host, pin, certificate, key, insecure_plaintext: insecurePlaintext ?? false, wanted };
}

/** Does something with threads of its own, unless `signal` says to stop. */
async function started(address, options, work) {
  const { signal, onProgress } = options;
  const aborted = () => new LannerError("aborted", "the call was aborted");
  if (signal?.aborted) throw aborted();
  const threads = await Threads.start(address, onProgress);
  const abort = () => threads.fail("aborted", "the call was aborted");
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return await work(threads);
  } catch (error) {
    threads.fail("misuse", "the session is closed");
    throw error;
  }
}

export async function look(address, options = {}) {
  return started(address, options, async (threads) => {
    const model = await threads.call("lanner_look", link(address, options));
    threads.fail("misuse", "the session is closed");
    return model;
  });
}

export class Client {
  #threads;

  static async connect(address, options = {}) {
    return started(address, options, async (threads) => {
      const model = await threads.call("lanner_connect", link(address, options));
      return new Client(threads, model);
    });
  }

  constructor(threads, model) {
    this.#threads = threads;
    this.model = model;
  }

  get memory() {
    return this.#threads.memory;
  }

  async prepare(count = 1) {
    await this.#threads.call("lanner_prepare", undefined, count);
  }

  async predict(input) {
    return this.#predict(valuesOf(this.model, input));
  }

  async predictPicture(picture) {
    if (this.model.image === null) throw new LannerError("misuse", "this model does not say how a picture becomes its input");
    return this.#predict(pictureValues(this.model, picture));
  }

  async predictText(text, { truncate = false } = {}) {
    if (this.model.text === null) throw new LannerError("misuse", "this model reads no texts");
    const made = await this.#threads.call("lanner_encode", new TextEncoder().encode(text), truncate ? 1 : 0);
    return this.#predict(textValues(this.model, made));
  }

  async #predict(floats) {
    const told = await this.#threads.call("lanner_predict", new Uint8Array(floats.buffer));
    return { ...told.prediction, longestSent: told.longestSent };
  }

  async close() {
    try {
      await this.#threads.call("lanner_close");
    } finally {
      this.dispose();
    }
  }

  dispose() {
    this.#threads.fail("misuse", "the session is closed");
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}
