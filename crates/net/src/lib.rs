//! Transports: memory, TCP, WebSocket and TLS, with traffic counters.
//!
//! Threat model: the network is hostile. TLS 1.3 is always on, with the server's certificate pinned or issued by a given
//! authority; a channel without it exists only under a name that says so. The peer itself may send anything, at any speed:
//! it meets time-outs and bounded buffers, never a panic.

mod address;
#[cfg(unix)]
mod dial;
mod error;
mod excerpt;
mod fingerprint;
mod framed;
#[cfg(unix)]
mod inbox;
mod lanes;
mod limits;
#[cfg(unix)]
mod listener;
pub mod memory;
mod meter;
mod profile;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod relay;
#[cfg(unix)]
mod socket;
mod state;
#[cfg(unix)]
mod tcp;
#[cfg(unix)]
mod tcp_bytes;
mod tls;
mod transcript;
mod transport;
mod tunnel;
#[cfg(unix)]
pub mod web;

pub use address::Address;
pub use error::NetError;
pub use excerpt::Excerpt;
pub use fingerprint::Fingerprint;
pub use framed::{ByteStream, Framed, Pollable};
pub use lanes::{MOST_KEPT, MOST_LANES, abreast};
pub use limits::Limits;
#[cfg(unix)]
pub use listener::Listener;
pub use memory::MemoryChannel;
pub use meter::Meter;
pub use profile::NetworkProfile;
#[cfg(unix)]
pub use proxy::Proxy;
#[cfg(unix)]
pub use relay::Relay;
pub use state::{StateDirectory, create_private};
#[cfg(unix)]
pub use tcp::{AbortHandle, TcpChannel};
#[cfg(unix)]
pub use tcp_bytes::TcpBytes;
#[cfg(unix)]
pub use tls::ServerTls;
pub use tls::{ClientTls, Identity, Trust};
pub use transcript::{Entry, Recorded};
pub use transport::Transport;
pub use tunnel::{Pipe, Tunnel, TunnelChannel};
