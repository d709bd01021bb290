// The thread that computes. Keys, masks and inputs are in its memory and go nowhere else; it waits for the server where the protocol does.

import { LannerError } from "./errors.js";
import { onMessage } from "./platform.js";
import { ENDED, OPENING, Ring } from "./ring.js";
import { wasi } from "./wasi.js";

/** Bytes on their way to the WebSocket, beyond which sending waits. */
const MOST_SENDING = 16 * 1024 * 1024;
/** Bytes of one message of the WebSocket. */
const MESSAGE = 256 * 1024;
/** Bytes of a certificate's or a key's file. */
const MOST_PEM = 256 * 1024;
/** What a browser's WebSocket cannot prevent: it takes all that comes. */
const FLOODED =
  "the server sent more than 512 MB faster than this page computed; use the lanner command, or ask for a model of mode cheetah";
/** Milliseconds for a WebSocket to open. */
const OPENS_WITHIN = 15_000;

let ring = null;
let port = null;
let url = "";
let module = null;
let given = 0;
let exports_ = null;
let said = "";

const answer = await onMessage(take);
answer({ ready: true });

async function take(message) {
  if (message.buffer !== undefined) {
    ({ port, url, module } = message);
    ring = new Ring(message.buffer);
    return;
  }
  const { id, call, argument, number } = message;
  try {
    exports_ ??= await instantiated();
    const bytes = argument === undefined || argument instanceof Uint8Array ? argument : await written(argument);
    answer({ id, result: called(call, bytes, number) });
  } catch (error) {
    const kind = error instanceof LannerError ? error.kind : "internal";
    const text = error instanceof LannerError ? error.message : `the client failed: ${said.trim() || error.message}`;
    answer({ id, error: { kind, message: text } });
  }
}

/** What the module is told of a server and of this client, as bytes. A file of its key is read here alone. */
async function written({ certificate, key, ...link }) {
  const identity = { certificate: await pem(certificate, "certificate"), key: await pem(key, "key") };
  return new TextEncoder().encode(JSON.stringify({ ...link, ...identity }));
}

async function pem(given, name) {
  if (!(given instanceof Blob)) return given;
  if (given.size > MOST_PEM) throw new LannerError("misuse", `${name} has ${given.size} bytes, and is none in PEM form`);
  return given.text().catch(() => {
    throw new LannerError("misuse", `the file of ${name} cannot be read; choose it again`);
  });
}

async function instantiated() {
  const view = () => new DataView(exports_.memory.buffer);
  const complain = (text) => {
    // A panic is told in several pieces; the last says how to see more where there are files.
    if (!text.startsWith("note:")) said = (said + text).slice(-500);
  };
  const instance = await WebAssembly.instantiate(module, { host, wasi_snapshot_preview1: wasi(view, complain) });
  exports_ = instance.exports;
  exports_._initialize?.();
  return exports_;
}

/** Calls a function of the module; what it answers, or throws what it says. */
function called(call, argument, number = 0) {
  const bytes = argument ?? new Uint8Array(0);
  const at = exports_.lanner_room(bytes.length);
  new Uint8Array(exports_.memory.buffer, at, bytes.length).set(bytes);
  // A key may be among them, and the module has its own copy.
  bytes.fill(0);
  const succeeded = exports_[call](number) === 1;
  const answered = new Uint8Array(exports_.memory.buffer, exports_.lanner_answer(), exports_.lanner_answer_length());
  const document = JSON.parse(new TextDecoder().decode(answered));
  if (!succeeded) throw ring?.flooded ? new LannerError("transport", FLOODED) : new LannerError(document.kind, document.message);
  return { document, memory: exports_.memory.buffer.byteLength };
}

const host = {
  open() {
    ring.state = OPENING;
    ring.flooded = false;
    ring.clear();
    given = 0;
    port.postMessage({ open: url });
    const deadline = performance.now() + OPENS_WITHIN;
    for (;;) {
      const news = ring.news;
      if (ring.state !== OPENING) return ring.state === ENDED ? 0 : 1;
      const left = deadline - performance.now();
      if (left <= 0) return 0;
      ring.await(news, left);
    }
  },

  send(address, length) {
    for (let at = 0; at < length; at += MESSAGE) {
      if (ring.state === ENDED && ring.unread === 0) return 0;
      // A copy: what the module has next at this place is another matter.
      const bytes = new Uint8Array(exports_.memory.buffer, address + at, Math.min(MESSAGE, length - at)).slice();
      given += bytes.length;
      port.postMessage({ bytes: bytes.buffer }, [bytes.buffer]);
    }
    // The thread of the WebSocket reads meanwhile, so that a server that waits to write goes on.
    for (;;) {
      const news = ring.news;
      if ((given - ring.taken) >>> 0 <= MOST_SENDING || ring.state === ENDED) return 1;
      ring.await(news, 1000);
    }
  },

  receive(address, length, milliseconds) {
    const deadline = performance.now() + milliseconds;
    for (;;) {
      const news = ring.news;
      const count = ring.read(new Uint8Array(exports_.memory.buffer, address, length));
      if (count > 0) return count;
      if (ring.state === ENDED) return 0;
      const left = deadline - performance.now();
      if (left <= 0) return -1;
      ring.await(news, left);
    }
  },

  close() {
    port.postMessage({ close: true });
  },

  tell(address, length) {
    const text = new TextDecoder().decode(new Uint8Array(exports_.memory.buffer, address, length).slice());
    answer({ progress: JSON.parse(text) });
  },
};
