//! The server's side of a layer that is encrypted ahead of time.

use std::sync::Arc;

use lanner_primitives::Share;
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::receive_share;
use lanner_step::{Answer, Asked, Inputs, Result, Value, WeightForm, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::Product;
use crate::cheetah::{self, Scheme};

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

impl ServerLayer {
    /// Lays the weights out for both phases; `bias` has one integer for each output element.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::Length`] if weights or bias do not fit the shape, or a weight has more than [`Scheme::weight_bits`] bits.
    pub fn new(scheme: Scheme, weights: &[i64], bias: &[i64]) -> Result<Self> {
        let product = Product::new(scheme.packing().shape(), scheme.input_ring().bits(), weights)?;
        let layer = cheetah::ServerLayer::in_form(WeightForm::Coefficient, scheme, weights, bias)?;
        Ok(Self::of(layer, Arc::new(product)))
    }

    /// Both parts of a layer, of the same shape and weights.
    pub(super) fn of(layer: cheetah::ServerLayer, product: Arc<Product>) -> Self {
        Self { layer, product }
    }
}

impl Answer for ServerLayer {
    type Material = ServerMaterial;

    /// It sends nothing before it has received all.
    fn prepare(&self, Asked { channel, server, .. }: Asked<'_>) -> Result<(ServerMaterial, Option<Value>)> {
        let scheme = self.layer.scheme();
        let nothing = Share::zero(scheme.input_ring(), scheme.packing().shape().inputs());
        // C -> S: seeds of c1, c0 of the mask
        let announced = self.layer.receive_seeds(channel)?;
        let inputs = self.layer.receive_inputs(channel, &nothing)?;
        // S -> C: c1 of each output, then c0
        let material = self.layer.answer_seeds(channel, server, &announced)?;
        Ok((ServerMaterial(self.layer.answer_inputs(channel, material, &inputs)?), None))
    }

    fn encode(&self, ServerMaterial(masked): &ServerMaterial, writer: &mut Writer) {
        write_share(masked, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let outputs = self.product.outputs();
        Ok(ServerMaterial(read_share(reader, self.layer.scheme().ring(), outputs)?))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        ServerMaterial(masked): ServerMaterial,
        inputs: &Inputs,
    ) -> Result<Value> {
        let (scheme, share) = (self.layer.scheme(), inputs.share()?);
        scheme.check_input(share)?;
        // C -> S: x_C - r
        let difference = receive_share(channel, kind::LINEAR_DIFFERENCE, share.ring(), share.len())?;
        let mut product = self.product.apply(share.add(&difference)?.values())?;
        // What is above the ring of inputs goes above that of outputs.
        let guard = scheme.ring().bits() - scheme.input_ring().bits();
        product.iter_mut().for_each(|value| *value <<= guard);
        let product = Share::new(scheme.ring(), std::mem::take(&mut product))?;
        Ok(Value::Shared(masked.add(&product)?))
    }
}
