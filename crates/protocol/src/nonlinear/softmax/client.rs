//! The client: evaluator of both circuits, and holder of the bits that the products are made of.

use lanner_gc::OutputDecoding;
use lanner_ot::{CorrelatedReceiver, arithmetic};
use lanner_primitives::Bits;
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError};
use zeroize::Zeroizing;

use super::exponential::Factor;
use super::function::{Likely, Softmax, sum_products};
use crate::nonlinear::yao::{EvaluationSession, Garbled, Transfers};
use crate::{ProtocolError, kind};

/// The transfers of a softmax, asked for; the server's answer is still to be received.
pub struct ClientRequest {
    scores: Transfers,
    sum: Transfers,
    products: Transfers,
    first_batches: [u64; 2],
}

/// One-time material: both circuits, labels of random bits, what decodes the outputs, and shares of products of random bits.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::nonlinear::softmax::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    exponents: Garbled,
    revealed: OutputDecoding,
    division: Garbled,
    digits: OutputDecoding,
    choices: Bits,
    products: Zeroizing<Vec<u64>>,
}

/// A softmax on the client's side.
pub struct ClientSoftmax(Softmax);

impl ClientSoftmax {
    /// Prepares a softmax.
    #[must_use]
    pub fn new(softmax: Softmax) -> Self {
        Self(softmax)
    }

    /// Offline, first half: asks for all transfers.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
    ) -> Result<ClientRequest, ProtocolError> {
        Ok(ClientRequest {
            scores: session.transfers(channel, self.0.exponents().evaluator_inputs())?,
            // The labels of the server's share come without a transfer.
            sum: session.transfers(channel, self.0.sum_bits())?,
            products: session.transfers(channel, self.0.product_bits())?,
            first_batches: [session.take_batches(1), session.take_batches(1)],
        })
    }

    /// Offline, second half: receives the circuits and the shares, in the order of the requests.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn receive<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &EvaluationSession<R>,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        let ClientRequest { scores, sum, products, first_batches: [first, second] } = request;
        let exponents = scores.receive_tables(channel, self.0.exponents(), 1, first)?;
        let revealed = receive_decoding(channel, self.0.revealed_bits())?;
        let mut division = sum.receive_tables(channel, self.0.division(), 1, second)?;
        division.labels = self.0.division_labels(&division.labels);
        let digits = receive_decoding(channel, self.0.division().outputs())?;
        let Transfers { choices, mut blocks, first } = products;
        let (hash, group) = (session.hash(), self.0.group());
        let products = arithmetic::receive_extended(hash, channel, group, &choices, &mut blocks, first)?;
        Ok(ClientMaterial { exponents, revealed, division, digits, choices, products })
    }

    /// Online: the label and its probability.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's messages are not the ones
    /// due, the label is not of a class, or the probability is above one.
    pub fn online<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &EvaluationSession<R>,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Likely, ProtocolError> {
        let softmax = &self.0;
        let ClientMaterial { exponents, revealed, division, digits, choices, products } = material;
        let input = softmax.evaluator_bits(share)?;
        let colours = session.evaluate(channel, softmax.exponents(), 1, exponents, &input)?;
        let split = softmax.revealed_bits();
        let revealed = revealed.decode(&colours.iter().take(split).collect())?;
        let wraps: Bits = colours.iter().skip(split).collect();

        // C -> S: b xor z
        let masked = self.factors(&revealed, &wraps).xor(&choices)?;
        channel.send(kind::MASKED_BITS, &masked.to_bytes())?;
        let terms = products.iter().copied().zip(masked.iter());
        let sum = Zeroizing::new(sum_products(softmax.sum_ring(), terms, |_| 0));
        let input = softmax.sum_as_bits(*sum);
        let colours = session.evaluate(channel, softmax.division(), 1, division, &input)?;
        let label = word(&revealed, 0, softmax.index_bits()) as usize;
        let parts = word(&digits.decode(&colours)?, 0, softmax.division().outputs());
        self.checked(label, parts)
    }

    /// The bits of both factors of each class: first the one of this party's half of the wrap bit.
    fn factors(&self, revealed: &Bits, wraps: &Bits) -> Bits {
        let (precision, exponential) = (self.0.precision(), self.0.exponential());
        let width = precision.width() as usize;
        let mut bits = Bits::zeros(self.0.product_bits());
        let n = precision.factor_bits();
        let mut index = 0;
        for class in 0..precision.classes() {
            let masked = word(revealed, self.0.index_bits() + class * width, width);
            let pair = exponential.client(masked);
            for wrap in [wraps.get(class), !wraps.get(class)] {
                let factor = Factor::select(pair, wrap);
                for place in 0..n {
                    bits.set(index, exponential.bit(factor, place));
                    index += 1;
                }
            }
        }
        bits
    }

    fn checked(&self, label: usize, parts: u64) -> Result<Likely, ProtocolError> {
        let digits = self.0.precision().digits();
        if label < self.0.precision().classes() && parts <= 10_u64.pow(digits) {
            Ok(Likely { label, parts, digits })
        } else {
            Err(ChannelError::Malformed { what: "garbled tables" }.into())
        }
    }
}

fn receive_decoding(channel: &mut dyn Channel, bits: usize) -> Result<OutputDecoding, ProtocolError> {
    let bytes = channel.receive(kind::DECODING, Bits::byte_len(bits))?;
    OutputDecoding::from_bytes(bits, &bytes)
        .map_err(|_| ChannelError::Malformed { what: "output decoding" }.into())
}

/// Bits `first..first + width` as an integer.
fn word(bits: &Bits, first: usize, width: usize) -> u64 {
    (0..width).fold(0, |word, i| word | u64::from(bits.get(first + i)) << i)
}
