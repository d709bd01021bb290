//! Transports: memory, TCP and TLS, with traffic counters.
//!
//! Threat model: the network is hostile. TLS 1.3 is always on, with the server's certificate pinned or issued by a given
//! authority; a channel without it exists only under a name that says so. The peer itself may send anything, at any speed:
//! it meets time-outs and bounded buffers, never a panic.

mod address;
mod error;
mod fingerprint;
mod framed;
mod inbox;
mod limits;
mod listener;
pub mod memory;
mod profile;
mod record;
mod records;
mod relay;
mod socket;
mod state;
mod tcp;
mod tls;

pub use address::Address;
pub use error::NetError;
pub use fingerprint::Fingerprint;
pub use framed::{ByteStream, Framed};
pub use limits::Limits;
pub use listener::Listener;
pub use memory::MemoryChannel;
pub use profile::NetworkProfile;
pub use record::{Entry, Recorded};
pub use records::TcpBytes;
pub use relay::Relay;
pub use state::{StateDirectory, create_private};
pub use tcp::{AbortHandle, TcpChannel, Transport};
pub use tls::{ClientTls, Identity, ServerTls, Trust};
