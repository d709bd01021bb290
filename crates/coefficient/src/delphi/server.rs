//! The server's side of a layer that is encrypted ahead of time.

use std::sync::Arc;

use lanner_primitives::Share;
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::receive_share;
use lanner_step::{ProtocolError, WeightForm, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use rand_core::CryptoRng;

use super::Product;
use crate::cheetah::{self, LayerKeys, Scheme};

/// A layer as the server runs it, shared by all sessions.
pub struct ServerLayer {
    layer: cheetah::ServerLayer,
    product: Arc<Product>,
}

/// One-time material of one run: the share of the outputs, but for what the difference adds.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_coefficient::delphi::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial(Share);

impl ServerMaterial {
    pub(super) fn encode(&self, writer: &mut Writer) {
        write_share(&self.0, writer);
    }
}

impl ServerLayer {
    /// Lays the weights out for both phases; `bias` has one integer for each output element.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if weights or bias do not fit the shape, or a weight has more than [`Scheme::weight_bits`] bits.
    pub fn new(scheme: Scheme, weights: &[i64], bias: &[i64]) -> Result<Self, ProtocolError> {
        let product = Product::new(scheme.packing().shape(), scheme.input_ring().bits(), weights)?;
        let layer = cheetah::ServerLayer::in_form(WeightForm::Coefficient, scheme, weights, bias)?;
        Ok(Self::of(layer, Arc::new(product)))
    }

    /// Both parts of a layer, of the same shape and weights.
    pub(super) fn of(layer: cheetah::ServerLayer, product: Arc<Product>) -> Self {
        Self { layer, product }
    }

    /// Offline: receives both halves of the encryptions, and sends both of the outputs'. It sends nothing before it has received all.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn prepare<'a>(
        &self,
        channel: &mut dyn Channel,
        keys: impl Into<LayerKeys<'a>>,
        rng: &mut impl CryptoRng,
    ) -> Result<ServerMaterial, ProtocolError> {
        let scheme = self.layer.scheme();
        let nothing = Share::zero(scheme.input_ring(), scheme.packing().shape().inputs());
        // C -> S: seeds of c1, c0 of the mask
        let announced = self.layer.receive_seeds(channel)?;
        let inputs = self.layer.receive_inputs(channel, &nothing)?;
        // S -> C: c1 of each output, then c0
        let material = self.layer.answer_seeds(channel, keys.into(), &announced, rng)?;
        Ok(ServerMaterial(self.layer.answer_inputs(channel, material, &inputs)?))
    }

    /// Reads what [`ServerMaterial::encode`] wrote.
    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let outputs = self.product.outputs();
        Ok(ServerMaterial(read_share(reader, self.layer.scheme().ring(), outputs)?))
    }

    /// Online: this party's share of the outputs, in [`Scheme::ring`].
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share is not the layer's; [`ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ServerMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let (scheme, ServerMaterial(masked)) = (self.layer.scheme(), material);
        scheme.check_input(share)?;
        // C -> S: x_C - r
        let difference = receive_share(channel, kind::LINEAR_DIFFERENCE, share.ring(), share.len())?;
        let mut product = self.product.apply(share.add(&difference)?.values())?;
        // What is above the ring of inputs goes above that of outputs.
        let guard = scheme.ring().bits() - scheme.input_ring().bits();
        product.iter_mut().for_each(|value| *value <<= guard);
        let product = Share::new(scheme.ring(), std::mem::take(&mut product))?;
        Ok(masked.add(&product)?)
    }
}
