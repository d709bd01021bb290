//! Messages of exchanges that share a connection, each on a lane of its own.

use crate::mutation::Attack;
use crate::script::{End, Frame, bytes_of, frames_of};

/// What a party said in a conversation in which exchanges once shared the connection.
pub struct Lanes {
    before: Vec<Frame>,
    streams: Vec<Vec<Frame>>,
    after: Vec<Frame>,
}

impl Lanes {
    /// What these frames say, of which some are chunks of lanes; none if no frame is.
    #[must_use]
    pub fn of(frames: &[Frame]) -> Option<Self> {
        let lane = |frame: &Frame| frame.kind.0.checked_sub(FIRST).map(usize::from);
        let first = frames.iter().position(|frame| lane(frame).is_some())?;
        let behind = frames.iter().rposition(|frame| lane(frame).is_some())? + 1;
        let mut streams: Vec<Vec<u8>> = Vec::new();
        for frame in &frames[first..behind] {
            let lane = lane(frame).unwrap();
            streams.resize_with(streams.len().max(lane + 1), Vec::new);
            streams[lane].extend_from_slice(&frame.payload);
        }
        let lanes = streams.iter().map(|stream| frames_of(stream)).collect();
        Some(Self { before: frames[..first].to_vec(), streams: lanes, after: frames[behind..].to_vec() })
    }

    /// Each lane's messages.
    #[must_use]
    pub fn lanes(&self) -> &[Vec<Frame>] {
        &self.streams
    }

    /// All that the party says with an attack on one lane, the other lanes' messages first. Behind a lane on which something is
    /// missing, nothing comes.
    #[must_use]
    pub fn attacked(&self, lane: usize, attack: &Attack) -> Vec<u8> {
        let mut bytes = bytes_of(&self.before);
        for (other, frames) in self.streams.iter().enumerate().filter(|(other, _)| *other != lane) {
            bytes.extend(chunks(other, &bytes_of(frames)));
        }
        bytes.extend(chunks(lane, &attack.bytes));
        if attack.end == End::Silence && !attack.is_cut {
            bytes.extend(bytes_of(&self.after));
        }
        bytes
    }
}

/// A lane's bytes, cut.
fn chunks(lane: usize, bytes: &[u8]) -> Vec<u8> {
    let chunk = |bytes| Frame::new(FIRST + lane as u16, bytes).to_bytes();
    bytes.chunks(CHUNK_LENGTH).flat_map(chunk).collect()
}

/// The kind of the first lane's chunks, and most bytes of one.
const FIRST: u16 = 0x100;
const CHUNK_LENGTH: usize = 1 << 18;
