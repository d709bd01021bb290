//! What one party says and hears in a move.

use lanner_step::ProtocolError;
use lanner_wire::{ChannelError, Reader};

use super::lanes::Values;

/// One party's role in a move: what it says and hears, message by message.
pub(super) trait Role {
    /// The next message of this party's.
    fn say(&mut self) -> Vec<u8>;

    /// Takes the next message of the other's.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if it is not what is due.
    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError>;

    /// What the move gives, when all was said and heard.
    fn finish(self: Box<Self>) -> Vec<Values>;
}

/// The next values of a peer's message.
pub(super) fn packed(message: &mut Reader, count: usize, bits: u32) -> Result<Vec<u64>, ProtocolError> {
    Ok(message.packed(count, bits).map_err(ChannelError::from)?)
}
