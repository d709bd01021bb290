//! Transports: memory, TCP and TLS, with traffic counters.
//!
//! Threat model: the network is hostile. TLS 1.3 is always on, with the server's certificate pinned or issued by a given
//! authority; a channel without it exists only under a name that says so. The peer itself may send anything, at any speed:
//! it meets time-outs and bounded buffers, never a panic.

mod framed;
pub mod memory;
mod profile;
mod record;

pub use framed::{ByteStream, Framed};
pub use memory::MemoryChannel;
pub use profile::NetworkProfile;
pub use record::{Entry, Recorded};
