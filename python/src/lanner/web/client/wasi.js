// The few functions of WASI that the module uses: randomness, clocks, and what it says when it panics.

const SUCCESS = 0;
const BAD_DESCRIPTOR = 8;
const NO_SYSTEM = 52;
/** Bytes that `getRandomValues` gives at a time. */
const MOST_RANDOM = 65536;

/** Thrown when the module ends its process, which it never does but after a panic. */
export class Exited extends Error {}

/** The functions, over the memory that `view` gives, each time anew. `complain` takes what is written to the standard error. */
export function wasi(view, complain) {
  const number = (address, value) => view().setUint32(address, value, true);
  const implemented = {
    random_get(address, length) {
      const bytes = new Uint8Array(view().buffer, address, length);
      for (let at = 0; at < length; at += MOST_RANDOM) {
        globalThis.crypto.getRandomValues(bytes.subarray(at, at + MOST_RANDOM));
      }
      return SUCCESS;
    },
    clock_time_get(clock, _precision, address) {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(address, BigInt(Math.round(milliseconds * 1e6)), true);
      return SUCCESS;
    },
    fd_write(descriptor, vectors, count, address) {
      if (descriptor !== 1 && descriptor !== 2) return BAD_DESCRIPTOR;
      let length = 0;
      for (let place = vectors; place < vectors + 8 * count; place += 8) {
        const start = view().getUint32(place, true);
        const bytes = new Uint8Array(view().buffer, start, view().getUint32(place + 4, true));
        complain(new TextDecoder().decode(bytes.slice()));
        length += bytes.length;
      }
      number(address, length);
      return SUCCESS;
    },
    environ_sizes_get(count, size) {
      number(count, 0);
      number(size, 0);
      return SUCCESS;
    },
    environ_get: () => SUCCESS,
    args_sizes_get(count, size) {
      number(count, 0);
      number(size, 0);
      return SUCCESS;
    },
    args_get: () => SUCCESS,
    sched_yield: () => SUCCESS,
    proc_exit(code) {
      throw new Exited(`exit ${code}`);
    },
    fd_prestat_get: () => BAD_DESCRIPTOR,
    fd_prestat_dir_name: () => BAD_DESCRIPTOR,
  };
  // There are no files.
  return new Proxy(implemented, { get: (known, name) => known[name] ?? (() => NO_SYSTEM) });
}
