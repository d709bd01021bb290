//! A channel between two threads of a test, which keeps what it sends.

use std::sync::mpsc::{Receiver, Sender, channel};

use lanner_wire::{Channel, ChannelError, Kind, Traffic};

/// One party's end of a channel within a test.
pub struct Party {
    out: Option<Sender<(Kind, Vec<u8>)>>,
    inbox: Receiver<(Kind, Vec<u8>)>,
    body: Vec<u8>,
    /// What this party sent.
    pub sent: Vec<(Kind, Vec<u8>)>,
    /// Changes a message of a kind before it is sent.
    pub tamper: Option<Tamper>,
}

/// A kind of message, and what becomes of its payload.
pub type Tamper = (Kind, fn(&mut Vec<u8>));

impl Party {
    /// Both ends.
    #[must_use]
    pub fn pair() -> (Self, Self) {
        let ((to_a, a), (to_b, b)) = (channel(), channel());
        let party =
            |out, inbox| Self { out: Some(out), inbox, body: Vec::new(), sent: Vec::new(), tamper: None };
        (party(to_b, a), party(to_a, b))
    }

    /// The payloads of one kind that it sent.
    #[must_use]
    pub fn sent_of(&self, kind: u16) -> Vec<&[u8]> {
        self.sent.iter().filter(|(k, _)| k.0 == kind).map(|(_, payload)| payload.as_slice()).collect()
    }
}

impl Channel for Party {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut payload = payload.to_vec();
        if let Some((_, change)) = self.tamper.filter(|(tampered, _)| *tampered == kind) {
            change(&mut payload);
        }
        self.sent.push((kind, payload.clone()));
        let out = self.out.as_ref().ok_or(ChannelError::Disconnected)?;
        out.send((kind, payload)).map_err(|_| ChannelError::Disconnected)
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

/// Runs both parties to their ends over channels that the test keeps; a party that has ended sends nothing more.
///
/// # Panics
/// If a party does.
pub fn run<C: Send, S: Send>(
    channels: &mut (Party, Party),
    client: impl FnOnce(&mut Party) -> C + Send,
    server: impl FnOnce(&mut Party) -> S + Send,
) -> (C, S) {
    let (at_client, at_server) = channels;
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let result = server(at_server);
            at_server.out = None;
            result
        });
        let client = client(at_client);
        at_client.out = None;
        (client, serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
