//! Transports: memory, TCP, WebSocket and TLS, with traffic counters.
//!
//! Threat model: the network is hostile. TLS 1.3 is always on, with the server's certificate pinned or issued by a given
//! authority; a channel without it exists only under a name that says so. The peer itself may send anything, at any speed:
//! it meets time-outs and bounded buffers, never a panic.

mod address;
#[cfg(not(target_family = "wasm"))]
mod dial;
mod error;
mod excerpt;
mod fingerprint;
mod framed;
#[cfg(not(target_family = "wasm"))]
mod inbox;
mod lanes;
mod limits;
#[cfg(not(target_family = "wasm"))]
mod listener;
pub mod memory;
mod meter;
mod platform;
mod profile;
#[cfg(not(target_family = "wasm"))]
mod proxy;
#[cfg(not(target_family = "wasm"))]
mod ready;
#[cfg(not(target_family = "wasm"))]
mod relay;
#[cfg(not(target_family = "wasm"))]
mod socket;
mod state;
#[cfg(not(target_family = "wasm"))]
mod tcp;
#[cfg(not(target_family = "wasm"))]
mod tcp_bytes;
mod tls;
mod transcript;
mod transport;
mod tunnel;
#[cfg(not(target_family = "wasm"))]
pub mod web;

pub use address::Address;
pub use error::NetError;
pub use excerpt::Excerpt;
pub use fingerprint::{Fingerprint, KeyFingerprint, PeerCertificate};
pub use framed::{ByteStream, Framed, Pollable};
pub use lanes::{MOST_KEPT, MOST_LANES, abreast};
pub use limits::Limits;
#[cfg(not(target_family = "wasm"))]
pub use listener::Listener;
pub use memory::MemoryChannel;
pub use meter::Meter;
pub use profile::NetworkProfile;
#[cfg(not(target_family = "wasm"))]
pub use proxy::Proxy;
#[cfg(not(target_family = "wasm"))]
pub use relay::Relay;
pub use state::{StateDirectory, create_private, is_shared, sync_directory};
#[cfg(not(target_family = "wasm"))]
pub use tcp::{AbortHandle, TcpChannel};
#[cfg(not(target_family = "wasm"))]
pub use tcp_bytes::TcpBytes;
pub use tls::{ClientTls, Identity, Trust};
#[cfg(not(target_family = "wasm"))]
pub use tls::{ServerTls, check_authorities};
pub use transcript::{Entry, Recorded};
pub use transport::Transport;
pub use tunnel::{Pipe, Tunnel, TunnelChannel};
