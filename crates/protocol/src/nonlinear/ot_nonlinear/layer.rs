//! A nonlinear layer: what it computes, its preparation, and what it sends.

use lanner_share::{Ring, Share};
use lanner_wire::Channel;
use rand_core::CryptoRng;

use super::activation::{Activation, Rounding};
use super::material::{Material, Request};
use super::moves::Moves;
use super::run::Run;
use super::square::Square;
use super::transfers::{Supplies, Transfers};
use crate::nonlinear::windows::Windows;
use crate::nonlinear::yao::Function;
use crate::{Cost, OfflineCost, Party, ProtocolError};

/// A nonlinear layer on shares over `Z_2^from` with shares over `Z_2^to` of its outputs; both parties run the same.
#[derive(Clone, Debug)]
pub struct Layer {
    operation: Operation,
    moves: Moves,
    from: Ring,
    inputs: usize,
}

#[derive(Clone, Debug)]
enum Operation {
    Activation(Activation),
    Square(Square),
}

impl Layer {
    /// `function` on windows of values, from `from` to `to` bits.
    ///
    /// What a value leaves behind the shift, whichever way it is rounded, must be below a quarter of the ring that is left: `|x|` at most
    /// `2^(from - 2) - 2^shift - 1`. Then differences of two of them have a sign.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the windows do not fit, fewer than 3 bits are left after the shift, a ring has more than 62 bits, an
    /// upper bound is negative or comes without ReLU, or there is a slope.
    pub fn activation(
        function: Function,
        windows: &Windows,
        from: u32,
        to: u32,
        rounding: Rounding,
    ) -> Result<Self, ProtocolError> {
        let activation = Activation::new(function, windows, from, to, rounding)?;
        let moves = activation.moves();
        Ok(Self {
            operation: Operation::Activation(activation),
            moves,
            from: Ring::Pow2(from),
            inputs: windows.inputs(),
        })
    }

    /// The squares of so many values, over `Z_2^bits`.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] unless there are 2 to 62 bits.
    pub fn square(values: usize, bits: u32) -> Result<Self, ProtocolError> {
        let square = Square::new(values, bits)?;
        let moves = square.moves();
        Ok(Self { operation: Operation::Square(square), moves, from: Ring::Pow2(bits), inputs: values })
    }

    /// Transfers that a party sends in one run.
    #[must_use]
    pub fn transfers(&self, sender: Party) -> usize {
        self.moves.sent_by(sender)
    }

    /// Values of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bytes that a party keeps of one run's material.
    #[must_use]
    pub fn held(&self, party: Party) -> u64 {
        self.moves.held_by(party) as u64
    }

    /// Offline: draws the transfers that the client sends.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the channel fails or the peer sends something else.
    pub fn request(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
    ) -> Result<Request, ProtocolError> {
        self.moves.request(channel, transfers)
    }

    /// Offline: draws the transfers that the server sends, and expands all.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn prepare(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
        request: Request,
        rng: &mut impl CryptoRng,
    ) -> Result<Material, ProtocolError> {
        self.moves.complete(channel, transfers, request, rng)
    }

    /// Online: this party's share of the outputs.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the share or the material is not this layer's; [`ProtocolError::Channel`] if the channel fails or
    /// the peer sends something else.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: Material,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        if (share.ring(), share.len()) != (self.from, self.inputs) {
            return Err(ProtocolError::Shape { what: "input share of a nonlinear layer" });
        }
        let mut run = Run::new(channel, party, material);
        match &self.operation {
            Operation::Activation(activation) => activation.run(&mut run, party, share.values()),
            Operation::Square(square) => square.run(&mut run, share.values()),
        }
    }

    /// The cost of the offline phase, which depends on what the sources gave before.
    pub fn offline_cost(&self, supplies: &mut Supplies) -> OfflineCost {
        OfflineCost {
            request: supplies.client(self.moves.sent_by(Party::Client)),
            answer: supplies.server(self.moves.sent_by(Party::Server)),
        }
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        self.moves.cost()
    }
}
