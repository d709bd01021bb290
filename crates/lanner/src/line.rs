//! A client's connection, whatever it goes over.

#[cfg(not(target_family = "wasm"))]
use lanner_net::TcpChannel;
use lanner_net::{Excerpt, Meter, Pipe, Transport, TunnelChannel};

/// A connection to a server, as a client uses it.
pub trait Line: Transport {
    /// What has crossed the connection so far, told while it is in use.
    fn meter(&self) -> Meter;

    /// The beginning of the longest message that was sent since this was last asked.
    fn take_longest_sent(&mut self) -> Excerpt;
}

impl<P: Pipe + Send> Line for TunnelChannel<P> {
    fn meter(&self) -> Meter {
        Self::meter(self)
    }

    fn take_longest_sent(&mut self) -> Excerpt {
        Self::take_longest_sent(self)
    }
}

#[cfg(not(target_family = "wasm"))]
impl Line for TcpChannel {
    fn meter(&self) -> Meter {
        Self::meter(self)
    }

    fn take_longest_sent(&mut self) -> Excerpt {
        Self::take_longest_sent(self)
    }
}
