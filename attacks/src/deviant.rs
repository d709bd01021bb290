//! A client that is the real one but for a change of its messages, and a server that does not notice.

use std::sync::Arc;
use std::thread;

use lanner_bfv::{Parameters, SecretKey};
use lanner_net::memory::{self, MemoryChannel};
use lanner_primitives::{Prg, Seed};
use lanner_session::executor::{ClientSession, Outcome, ServerSession};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};

use crate::models::Subject;
use crate::script::Frame;

/// A client and a server after their set-up.
pub struct Pair {
    client: ClientSession,
    server: ServerSession,
    to_client: MemoryChannel,
    to_server: MemoryChannel,
}

/// What a client has after a prediction.
pub struct Seen {
    /// The result.
    pub outcome: Outcome,
    /// What the server said, in the preparation and in the prediction.
    pub heard: Vec<Frame>,
}

impl Pair {
    /// Sets up a session.
    #[must_use]
    pub fn of(subject: &Subject) -> Self {
        let (mut to_server, mut to_client) = memory::pair();
        let served = Arc::clone(&subject.served);
        let serving = thread::spawn(move || {
            let server = ServerSession::setup(&mut to_client, served, rng(31)).unwrap();
            (server, to_client)
        });
        let (client, _) = ClientSession::setup(&mut to_server, Arc::clone(&subject.plan), rng(32)).unwrap();
        let (server, to_client) = serving.join().unwrap();
        Self { client, server, to_client, to_server }
    }

    /// The client's own secret key, in a session with one parameter set.
    #[must_use]
    pub fn secret_key(&self, parameters: &Parameters) -> SecretKey {
        let seed = Seed::from_bytes(self.client.keys().as_bytes().try_into().unwrap());
        let of_set = Seed::random(&mut Prg::new(seed));
        lanner_step::secret_key(parameters, &mut Prg::new(of_set))
    }

    /// One prediction in which `change` may alter what the client says.
    ///
    /// # Panics
    /// If either party finds fault with the other: then the change is no attack.
    #[must_use]
    pub fn predict(&mut self, input: &[i64], change: impl FnMut(Kind, &mut Vec<u8>)) -> Seen {
        let Self { client, server, to_client, to_server } = self;
        thread::scope(|scope| {
            scope.spawn(|| {
                let prepared = server.prepare(to_client).unwrap();
                server.predict(to_client, prepared).unwrap();
                to_client.flush().unwrap();
            });
            let mut line = Line { channel: to_server, change, heard: Vec::new() };
            let prepared = client.prepare(&mut line).unwrap();
            let (outcome, _) = client.predict(&mut line, prepared, input).unwrap();
            Seen { outcome, heard: line.heard }
        })
    }
}

/// A channel whose messages are changed as they go, and kept as they come.
struct Line<'c, F> {
    channel: &'c mut MemoryChannel,
    change: F,
    heard: Vec<Frame>,
}

impl<F: FnMut(Kind, &mut Vec<u8>)> Channel for Line<'_, F> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut payload = payload.to_vec();
        (self.change)(kind, &mut payload);
        self.channel.send(kind, &payload)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.channel.flush()
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let (kind, length) = self.channel.receive_header()?;
        self.heard.push(Frame { kind, payload: Vec::new() });
        Ok((kind, length))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.channel.receive_body(buffer)?;
        if let Some(frame) = self.heard.last_mut() {
            frame.payload.extend_from_slice(buffer);
        }
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }
}

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}
