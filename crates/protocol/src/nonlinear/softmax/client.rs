//! The client: evaluator of both circuits, and holder of the bits that the products are made of.

use lanner_gc::OutputDecoding;
use lanner_ot::{CorrelatedReceiver, arithmetic};
use lanner_primitives::Bits;
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::exponential::Factor;
use super::function::{Likely, Softmax, sum_products};
use crate::nonlinear::yao::{EvaluationSession, Garbled, Transfers, Tweaks, read_decoding, receive_decoding};
use crate::step::encoding::{read_bits, read_elements, write_bits, write_elements};
use crate::{ProtocolError, kind};

/// The transfers of a softmax, asked for; the server's answer is still to be received.
pub struct ClientRequest {
    scores: Transfers,
    sum: Transfers,
    products: Transfers,
    tweaks: [Tweaks; 2],
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
            tweaks: [session.take_batches(1), session.take_batches(1)],
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
        let ClientRequest { scores, sum, products, tweaks: [first, second] } = request;
        let exponents = scores.receive_tables(channel, self.0.exponents(), 1, first)?;
        let revealed = receive_decoding(channel, self.0.revealed_bits())?;
        let division = sum.receive_tables(channel, self.0.division(), 1, second)?;
        let digits = receive_decoding(channel, self.0.division().outputs())?;
        let Transfers { choices, mut blocks, first } = products;
        let (hash, group) = (session.hash(), self.0.group());
        let products = arithmetic::receive_extended(hash, channel, group, &choices, &mut blocks, first)?;
        Ok(ClientMaterial { exponents, revealed, division, digits, choices, products })
    }

    pub(super) fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        let ClientMaterial { exponents, revealed, division, digits, choices, products } = material;
        exponents.encode(writer);
        writer.bytes(&revealed.to_bytes());
        division.encode(writer);
        writer.bytes(&digits.to_bytes());
        write_bits(choices, writer);
        write_elements(self.0.sum_ring(), products, writer);
    }

    /// Reads what [`Self::encode`] wrote.
    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        let (exponents, division) = (self.0.exponents(), self.0.division());
        Ok(ClientMaterial {
            exponents: Garbled::decode(reader, exponents, 1, exponents.evaluator_inputs())?,
            revealed: read_decoding(reader, self.0.revealed_bits())?,
            division: Garbled::decode(reader, division, 1, self.0.sum_bits())?,
            digits: read_decoding(reader, division.outputs())?,
            choices: read_bits(reader, self.0.product_bits())?,
            products: read_elements(reader, self.0.sum_ring(), self.0.product_bits())?,
        })
    }

    /// Online: the label and its probability.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's messages are not the ones
    /// due, the label is not of a class, or the probability is above one.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Likely, ProtocolError> {
        let softmax = &self.0;
        let ClientMaterial { exponents, revealed, division, digits, choices, products } = material;
        let input = softmax.evaluator_bits(share)?;
        let colours = exponents.evaluate(channel, softmax.exponents(), 1, &input)?;
        let split = softmax.revealed_bits();
        let revealed = revealed.decode(&colours.iter().take(split).collect())?;
        let wraps: Bits = colours.iter().skip(split).collect();

        // C -> S: b xor z
        let masked = self.factors(&revealed, &wraps).xor(&choices)?;
        channel.send(kind::MASKED_BITS, &masked.to_bytes())?;
        let terms = products.iter().copied().zip(masked.iter());
        let sum = Zeroizing::new(sum_products(softmax.sum_ring(), terms, |_| 0));
        let input = softmax.sum_as_bits(*sum);
        let colours = division.evaluate(channel, softmax.division(), 1, &input)?;
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

/// Bits `first..first + width` as an integer.
fn word(bits: &Bits, first: usize, width: usize) -> u64 {
    (0..width).fold(0, |word, i| word | u64::from(bits.get(first + i)) << i)
}
