//! A connection in memory, for both parties of a bench, and the median of what they measure.
#![allow(dead_code)] // Each bench uses its own part.

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};

use lanner_step::Party;
use lanner_wire::{Channel, ChannelError, Kind, Traffic};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// One end of a pair of queues.
pub(crate) struct Queue {
    out: Sender<(Kind, Vec<u8>)>,
    inbox: Receiver<(Kind, Vec<u8>)>,
    body: Vec<u8>,
    /// Bytes sent from here, with their frames.
    pub(crate) sent: u64,
}

impl Queue {
    /// Two ends of a connection.
    pub(crate) fn pair() -> (Self, Self) {
        let ((to_a, a), (to_b, b)) = (channel(), channel());
        let end = |out, inbox| Self { out, inbox, body: Vec::new(), sent: 0 };
        (end(to_b, a), end(to_a, b))
    }
}

impl Channel for Queue {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.sent += payload.len() as u64 + 6;
        self.out.send((kind, payload.to_vec())).map_err(|_| ChannelError::Disconnected)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let (kind, body) = self.inbox.recv().map_err(|_| ChannelError::Disconnected)?;
        self.body = body;
        Ok((kind, self.body.len()))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        buffer.copy_from_slice(&self.body);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// What each party's part gives, the client's first; both run at once, a thread each.
pub(crate) fn both<T: Send>(
    play: impl Fn(&mut Queue, Party) -> Result<T, Failure> + Sync,
) -> Result<[T; 2], Failure> {
    let (mut at_client, mut at_server) = Queue::pair();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| play(&mut at_server, Party::Server));
        let client = play(&mut at_client, Party::Client)?;
        Ok([client, serving.join().map_err(|_| "the server failed")??])
    })
}

/// The middle one; the larger of two.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
