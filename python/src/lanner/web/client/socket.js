// The thread that has the WebSocket. It carries what TLS made, and knows nothing of what is inside.

import { onMessage, webSocket } from "./platform.js";
import { CAPACITY, ENDED, OPEN, Ring } from "./ring.js";

/** Bytes that may wait here, beyond the ring, where the platform does not let the sender be held up. */
const MOST_WAITING = 512 * 1024 * 1024;

let ring = null;
let socket = null;
let waiting = []; // what came and has no place in the ring yet
let waitingBytes = 0;
let draining = false;
let given = 0; // bytes given to the WebSocket, of this connection

await onMessage(({ buffer, port }) => {
  ring = new Ring(buffer);
  port.onmessage = ({ data }) => {
    if (data.open !== undefined) open(data.open);
    else if (data.close) close();
    else send(data.bytes);
  };
});

async function open(url) {
  close();
  given = 0;
  ring.taken = 0;
  const Kind = await webSocket();
  if (Kind === null) {
    ring.state = ENDED;
    return;
  }
  let opened;
  try {
    opened = new Kind(url);
  } catch {
    ring.state = ENDED;
    return;
  }
  socket = opened;
  opened.binaryType = "arraybuffer";
  opened.onopen = () => {
    if (socket === opened) ring.state = OPEN;
  };
  opened.onmessage = ({ data }) => {
    if (socket !== opened || !(data instanceof ArrayBuffer)) return;
    waiting.push(new Uint8Array(data));
    waitingBytes += data.byteLength;
    if (waitingBytes > MOST_WAITING) flood();
    else drain(opened);
  };
  opened.onclose = opened.onerror = () => end(opened);
}

async function drain(of) {
  if (draining) return;
  draining = true;
  while (waiting.length > 0 && socket === of) {
    const count = ring.write(waiting[0]);
    waitingBytes -= count;
    if (count === waiting[0].length) {
      waiting.shift();
      continue;
    }
    waiting[0] = waiting[0].subarray(count);
    if (waitingBytes > CAPACITY) of.pause?.();
    await ring.room();
  }
  draining = false;
  of.resume?.();
  if (socket === of && of.readyState >= 2) ring.state = ENDED;
}

function end(of) {
  // What came before the end comes first.
  if (socket === of && waiting.length === 0) ring.state = ENDED;
}

/** Gives up: the server sends faster than the other thread reads, and nothing here can hold it up. */
function flood() {
  ring.flooded = true;
  close();
  ring.state = ENDED;
}

function send(bytes) {
  if (socket?.readyState !== 1) return;
  given += bytes.byteLength;
  socket.send(bytes);
  report(socket);
}

/** Says how much has been taken, until all has. */
function report(of) {
  if (socket !== of || of.readyState !== 1) return;
  ring.taken = given - of.bufferedAmount;
  if (of.bufferedAmount > 0) setTimeout(() => report(of), 4);
}

function close() {
  const closing = socket;
  socket = null;
  waiting = [];
  waitingBytes = 0;
  closing?.close(1000);
}
