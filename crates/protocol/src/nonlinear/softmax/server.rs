//! The server: garbler of both circuits, and holder of the factors that the products are made with.

use lanner_gc::{Circuit, OutputDecoding};
use lanner_ot::{CorrelatedSender, arithmetic};
use lanner_primitives::{Bits, Prg};
use lanner_share::{Ring, Share};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::function::{Softmax, sum_products};
use crate::nonlinear::yao::{GarblingSession, InputLabels, receive_bits};
use crate::step::encoding::{read_elements, write_elements};
use crate::{ProtocolError, kind};

/// One-time material: what answers the client with labels, the factors, and shares of their products with random bits.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::nonlinear::softmax::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial {
    scores: InputLabels,
    sum: InputLabels,
    factors: Zeroizing<Vec<u64>>,
    products: Zeroizing<Vec<u64>>,
}

/// A softmax on the server's side.
pub struct ServerSoftmax(Softmax);

impl ServerSoftmax {
    /// Prepares a softmax.
    #[must_use]
    pub fn new(softmax: Softmax) -> Self {
        Self(softmax)
    }

    /// Offline: garbles for the server's share of the scores, and correlates its factors.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; any failure of the channel.
    pub fn offline<S: CorrelatedSender>(
        &self,
        channel: &mut dyn Channel,
        session: &mut GarblingSession<S>,
        share: &Share,
        rng: &mut Prg,
    ) -> Result<ServerMaterial, ProtocolError> {
        let softmax = &self.0;
        let precision = softmax.precision();
        let masks = Share::random(Ring::Pow2(precision.width()), precision.classes(), rng);
        let garbler_bits = softmax.garbler_bits(share, &masks)?;
        // Taken before anything is sent, so that the client never has to read in order to go on asking.
        let (wires, _) = session.transfers(channel, softmax.exponents().evaluator_inputs())?;
        let (sum_wires, _) = session.transfers(channel, softmax.sum_bits())?;
        let (mut q, first) = session.transfers(channel, softmax.product_bits())?;

        let (scores, permute) = session.garble(channel, softmax.exponents(), 1, wires, &garbler_bits, rng)?;
        let split = softmax.revealed_bits();
        send_decoding(channel, permute.iter().take(split).collect())?;
        let wraps: Bits = permute.iter().skip(split).collect();

        let sum_wires = softmax.division_labels(&sum_wires);
        let (sum, permute) =
            session.garble(channel, softmax.division(), 1, sum_wires, &Bits::zeros(0), rng)?;
        send_decoding(channel, permute)?;

        let factors = self.factors(&masks, &wraps);
        let products =
            arithmetic::send_extended(session.cot(), channel, softmax.group(), &factors, &mut q, first)?;
        Ok(ServerMaterial { scores, sum, factors, products })
    }

    pub(super) fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        let ServerMaterial { scores, sum, factors, products } = material;
        scores.encode(writer);
        sum.encode(writer);
        write_elements(self.0.sum_ring(), factors, writer);
        write_elements(self.0.sum_ring(), products, writer);
    }

    /// Reads what [`Self::encode`] wrote.
    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let labels = |reader: &mut Reader<'_>, circuit: &Circuit| {
            InputLabels::decode(reader, circuit, circuit.evaluator_inputs())
        };
        Ok(ServerMaterial {
            scores: labels(reader, self.0.exponents())?,
            sum: labels(reader, self.0.division())?,
            factors: read_elements(reader, self.0.sum_ring(), self.0.product_bits())?,
            products: read_elements(reader, self.0.sum_ring(), self.0.product_bits())?,
        })
    }

    /// Online: answers the client, which learns the label and the digits.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn online(&self, channel: &mut dyn Channel, material: ServerMaterial) -> Result<(), ProtocolError> {
        let ServerMaterial { scores, sum, factors, products } = material;
        scores.answer(channel, &Bits::zeros(0))?;
        channel.flush()?;
        // C -> S: b xor z
        let masked = receive_bits(channel, kind::MASKED_BITS, self.0.product_bits())?;
        let terms = products.iter().copied().zip(masked.iter());
        let own = Zeroizing::new(sum_products(self.0.sum_ring(), terms, |i| factors[i]));
        sum.answer(channel, &self.0.sum_as_bits(*own))
    }

    /// What each bit of the client's factors is multiplied by: nothing at the place that this party's half of the wrap bit does not name.
    fn factors(&self, masks: &Share, wraps: &Bits) -> Zeroizing<Vec<u64>> {
        let exponential = self.0.exponential();
        let mut factors = Zeroizing::new(Vec::with_capacity(self.0.product_bits()));
        for (mask, wrap) in masks.values().iter().zip(wraps.iter()) {
            let weights = Zeroizing::new(exponential.server(*mask).collect::<Vec<_>>());
            for named in [!wrap, wrap] {
                factors.extend(weights.iter().map(|weight| weight & u64::from(named).wrapping_neg()));
            }
        }
        factors
    }
}

fn send_decoding(channel: &mut dyn Channel, permute: Bits) -> Result<(), ProtocolError> {
    Ok(channel.send(kind::DECODING, &OutputDecoding::new(permute).to_bytes())?)
}
