//! The client for WebAssembly. Whoever loads the module gives it a connection (`host`), and a clock and randomness by five of WASI's functions, and
//! calls it in a thread that may wait: a Web Worker, or a worker of Node. The ABI is that of `worker.js`, which is built with this and of the same version:
//! nobody else need know it.
//!
//! Threat model: keys, masks and inputs are in the module's memory, which the worker alone has; what leaves it is what a client sends, inside
//! TLS, and what the caller gets. All randomness is the host's `crypto.getRandomValues`.

#[cfg(target_family = "wasm")]
mod abi;
#[cfg(target_family = "wasm")]
mod host;
#[cfg(target_family = "wasm")]
mod pipe;
mod session;
#[cfg(target_family = "wasm")]
mod telling;

pub use session::{Answer, Link, Session, written};
