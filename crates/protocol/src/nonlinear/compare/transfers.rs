//! The session's sources of transfers, one in each direction.

use lanner_ot::silent::{Parameters, SilentReceiver, SilentSender, Supply};
use lanner_ot::{CotReceiver, CotSender, random_delta};
use lanner_wire::Channel;
use rand_core::CryptoRng;

use crate::{Cost, Party, ProtocolError};

/// A party's sources: it is the sender in one and the receiver in the other, with independent deltas.
pub struct Transfers {
    pub(super) party: Party,
    pub(super) sender: SilentSender,
    pub(super) receiver: SilentReceiver,
}

impl Transfers {
    /// Sets up both directions, the server's first.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the peer's messages are not the ones due, or the channel fails.
    pub fn setup<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        party: Party,
        parameters: Parameters,
        rng: &mut R,
    ) -> Result<Self, ProtocolError> {
        let sender = |channel: &mut dyn Channel, rng: &mut R| {
            let source = CotSender::setup(channel, random_delta(rng), rng)?;
            SilentSender::setup(channel, source, parameters, rng)
        };
        let receiver = |channel: &mut dyn Channel, rng: &mut R| {
            let source = CotReceiver::setup(channel, rng)?;
            SilentReceiver::setup(channel, source, parameters)
        };
        let (sender, receiver) = match party {
            Party::Server => (sender(channel, rng)?, receiver(channel, rng)?),
            Party::Client => {
                let receiver = receiver(channel, rng)?;
                (sender(channel, rng)?, receiver)
            }
        };
        Ok(Self { party, sender, receiver })
    }
}

/// How far the sources of both directions have come: what preparing the next layer sends depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Supplies {
    /// Of transfers that the client sends.
    client: Supply,
    /// Of transfers that the server sends.
    server: Supply,
}

impl Supplies {
    /// After the set-up of [`Transfers`].
    #[must_use]
    pub const fn new(parameters: Parameters) -> Self {
        Self { client: Supply::new(parameters), server: Supply::new(parameters) }
    }

    /// What so many transfers of the client's send.
    pub(super) fn client(&mut self, count: usize) -> Cost {
        Cost::NONE.offer(self.client.take(count))
    }

    /// What so many transfers of the server's send.
    pub(super) fn server(&mut self, count: usize) -> Cost {
        Cost::NONE.transfer(self.server.take(count))
    }
}
