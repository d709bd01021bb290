// What differs between a browser and Node.

const inNode = globalThis.process?.versions?.node !== undefined;

/** A worker that runs a module beside this one, with `onmessage` and `onerror`. */
export async function spawn(name) {
  const url = new URL(name, import.meta.url);
  if (!inNode) return new Worker(url, { type: "module", name: `lanner ${name}` });
  const { Worker: NodeWorker } = await import("node:worker_threads");
  // What a program was given in place of a file is none of its workers' business.
  const execArgv = process.execArgv.filter((argument) => !argument.startsWith("--input-type"));
  const worker = new NodeWorker(url, { execArgv });
  const face = {
    onmessage: null,
    onerror: null,
    postMessage: (message, transfer) => worker.postMessage(message, transfer),
    terminate: () => worker.terminate(),
  };
  worker.on("message", (data) => face.onmessage?.({ data }));
  worker.on("error", (error) => face.onerror?.(error));
  return face;
}

/** In a worker: has a function take the messages of whoever started it, and returns one that answers. */
export async function onMessage(take) {
  if (!inNode) {
    globalThis.onmessage = ({ data }) => take(data);
    return (message, transfer = []) => globalThis.postMessage(message, transfer);
  }
  const { parentPort } = await import("node:worker_threads");
  parentPort.on("message", take);
  return (message, transfer = []) => parentPort.postMessage(message, transfer);
}

let module = null;

/** The module, compiled once for all threads: what a browser has made of it serves later sessions, too. */
export async function compiled() {
  module ??= compile();
  try {
    return await module;
  } catch (error) {
    module = null;
    throw error;
  }
}

async function compile() {
  const url = new URL("lanner.wasm", import.meta.url);
  if (!inNode) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`lanner.wasm cannot be loaded: status ${response.status}`);
    // While it is loaded, where the host names its type.
    if (response.headers.get("Content-Type") === "application/wasm") return WebAssembly.compileStreaming(response);
    return WebAssembly.compile(await response.arrayBuffer());
  }
  const { readFile } = await import("node:fs/promises");
  return WebAssembly.compile(await readFile(url));
}

/** The class of WebSockets, of the platform or of the package `ws`; none if there is neither. */
export async function webSocket() {
  if (globalThis.WebSocket !== undefined) return globalThis.WebSocket;
  try {
    return (await import("ws")).default;
  } catch {
    return null;
  }
}
