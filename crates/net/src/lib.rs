//! Transports: memory, TCP and TLS, with traffic counters.
//!
//! Threat model: the network is hostile. TLS 1.3 is always on, with the server's certificate pinned or issued by a given
//! authority; a channel without it exists only under a name that says so. The peer itself may send anything, at any speed:
//! it meets time-outs and bounded buffers, never a panic.

mod address;
mod dial;
mod error;
mod excerpt;
mod fingerprint;
mod framed;
mod inbox;
mod lanes;
mod limits;
mod listener;
pub mod memory;
mod meter;
mod profile;
mod proxy;
mod relay;
mod socket;
mod state;
mod tcp;
mod tcp_bytes;
mod tls;
mod transcript;

pub use address::Address;
pub use error::NetError;
pub use excerpt::Excerpt;
pub use fingerprint::Fingerprint;
pub use framed::{ByteStream, Framed, Pollable};
pub use lanes::{MOST_KEPT, MOST_LANES, abreast};
pub use limits::Limits;
pub use listener::Listener;
pub use memory::MemoryChannel;
pub use meter::Meter;
pub use profile::NetworkProfile;
pub use proxy::Proxy;
pub use relay::Relay;
pub use state::{StateDirectory, create_private};
pub use tcp::{AbortHandle, TcpChannel, Transport};
pub use tcp_bytes::TcpBytes;
pub use tls::{ClientTls, Identity, ServerTls, Trust};
pub use transcript::{Entry, Recorded};
