//! What a page in a browser meets: a request for a file of the page, or for a WebSocket.
//!
//! Threat model: any page that a browser shows can have it connect to any address that it reaches. So `Host` and `Origin` are checked before
//! anything else is done; a request's head is bounded in bytes and in time; and what is inside the WebSocket is TLS, to which this is but the network.

mod door;
mod head;
mod line;

pub use door::{Door, File, Visitor};
pub use head::Origins;
pub use line::WebLine;
