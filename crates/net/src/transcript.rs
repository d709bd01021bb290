//! A channel that remembers what passed over it: two runs on different secrets must leave equal transcripts.

use lanner_wire::{Channel, ChannelError, Kind, Traffic};

/// One message of a transcript, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether this party sent it.
    pub sent: bool,
    /// Its kind.
    pub kind: Kind,
    /// Its length in bytes.
    pub length: usize,
}

/// A channel and the kinds and lengths of the messages over it, in this party's order.
pub struct Recorded<C> {
    channel: C,
    transcript: Vec<Entry>,
}

impl<C: Channel> Recorded<C> {
    /// Records `channel` from here on.
    #[must_use]
    pub const fn new(channel: C) -> Self {
        Self { channel, transcript: Vec::new() }
    }

    /// The messages so far.
    #[must_use]
    pub fn transcript(&self) -> &[Entry] {
        &self.transcript
    }

    /// The channel and the messages over it.
    #[must_use]
    pub fn into_parts(self) -> (C, Vec<Entry>) {
        (self.channel, self.transcript)
    }
}

impl<C: Channel> Channel for Recorded<C> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.channel.send(kind, payload)?;
        self.transcript.push(Entry { sent: true, kind, length: payload.len() });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.channel.flush()
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let (kind, length) = self.channel.receive_header()?;
        self.transcript.push(Entry { sent: false, kind, length });
        Ok((kind, length))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.channel.receive_body(buffer)
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }

    fn allow_ahead(&mut self, bytes: usize) {
        self.channel.allow_ahead(bytes);
    }
}
