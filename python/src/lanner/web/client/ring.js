// Bytes that came, from the thread that has the WebSocket to the one that computes, which waits for them.

const WRITTEN = 0; // bytes written, modulo 2^32
const READ = 1; // bytes read, likewise
const STATE = 2;
const NEWS = 3; // counts up at every change that the reader may wait for
const TAKEN = 4; // bytes that the WebSocket has taken of what is to be sent, modulo 2^32
const FLOODED = 5; // 1 once more came than may wait
const WORDS = 8;

export const OPENING = 0;
export const OPEN = 1;
export const ENDED = 2;

/** Bytes that wait to be read; a power of two. */
export const CAPACITY = 1 << 22;

/** The memory of a ring, which both threads get. */
export function memory() {
  return new SharedArrayBuffer(WORDS * 4 + CAPACITY);
}

export class Ring {
  constructor(buffer) {
    this.words = new Int32Array(buffer, 0, WORDS);
    this.bytes = new Uint8Array(buffer, WORDS * 4);
  }

  get state() {
    return Atomics.load(this.words, STATE);
  }

  set state(state) {
    Atomics.store(this.words, STATE, state);
    this.#tell();
  }

  get flooded() {
    return Atomics.load(this.words, FLOODED) === 1;
  }

  /** Whether the connection ended because more came than may wait. */
  set flooded(flooded) {
    Atomics.store(this.words, FLOODED, flooded ? 1 : 0);
  }

  /** Forgets what is in it. Nobody writes at that time. */
  clear() {
    Atomics.store(this.words, READ, Atomics.load(this.words, WRITTEN));
    Atomics.notify(this.words, READ);
  }

  get unread() {
    return (Atomics.load(this.words, WRITTEN) - Atomics.load(this.words, READ)) >>> 0;
  }

  /** The writer: puts in what there is room for, and returns how many bytes that is. */
  write(bytes) {
    const written = Atomics.load(this.words, WRITTEN) >>> 0;
    const count = Math.min(bytes.length, CAPACITY - this.unread);
    const at = written % CAPACITY;
    const head = Math.min(count, CAPACITY - at);
    this.bytes.set(bytes.subarray(0, head), at);
    this.bytes.set(bytes.subarray(head, count), 0);
    if (count > 0) {
      Atomics.store(this.words, WRITTEN, (written + count) | 0);
      this.#tell();
    }
    return count;
  }

  /** The writer: a promise that there is more room than now. */
  async room() {
    const read = Atomics.load(this.words, READ);
    if (this.unread < CAPACITY) return;
    if (Atomics.waitAsync !== undefined) {
      await Atomics.waitAsync(this.words, READ, read).value;
    } else {
      while (Atomics.load(this.words, READ) === read) await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** The reader: takes what has come into `buffer`, and returns how many bytes that is. */
  read(buffer) {
    const read = Atomics.load(this.words, READ) >>> 0;
    const count = Math.min(buffer.length, this.unread);
    const at = read % CAPACITY;
    const head = Math.min(count, CAPACITY - at);
    buffer.set(this.bytes.subarray(at, at + head));
    buffer.set(this.bytes.subarray(0, count - head), head);
    if (count > 0) {
      Atomics.store(this.words, READ, (read + count) | 0);
      Atomics.notify(this.words, READ);
    }
    return count;
  }

  /** How much the WebSocket has taken. */
  get taken() {
    return Atomics.load(this.words, TAKEN) >>> 0;
  }

  set taken(bytes) {
    if (this.taken !== bytes >>> 0) {
      Atomics.store(this.words, TAKEN, bytes | 0);
      this.#tell();
    }
  }

  /** The reader: what `await` is told, before a look at what there is. */
  get news() {
    return Atomics.load(this.words, NEWS);
  }

  /** The reader: waits until there are other news than these, at most so many milliseconds. */
  await(news, milliseconds) {
    Atomics.wait(this.words, NEWS, news, milliseconds);
  }

  #tell() {
    Atomics.add(this.words, NEWS, 1);
    Atomics.notify(this.words, NEWS);
  }
}
