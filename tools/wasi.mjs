// Runs a module of WASI in Node, for `make test-wasm`: cargo gives its path and arguments.

import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [path, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [path, ...args], env: process.env, preopens: { "/": "/" } });
const module = await WebAssembly.compile(await readFile(path));
process.exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
