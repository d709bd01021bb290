//! Cheating peers and damaged files: see `attacks/README.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod handshake;
mod live_client;
mod live_messages;
mod live_server;
mod manifests;
mod memory;
mod messages;
mod model_files;
mod requests;
mod transport;
mod weights;
