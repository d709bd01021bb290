//! Shares into slots and back, by places that are worked out once for a layer.

use lanner_primitives::{Ring, Share};
use lanner_step::{ProtocolError, Result};
use zeroize::Zeroizing;

use super::packing::Packing;

/// The places of a layer's elements in the slots of its ciphertexts.
pub struct Layout {
    ring: Ring,
    slots: usize,
    elements: usize,
    /// For every input ciphertext, each slot that carries an element, and that element.
    inputs: Vec<Vec<(u32, u32)>>,
    /// For every output element, its ciphertext and slot.
    outputs: Vec<(u32, u32)>,
}

impl Layout {
    pub(crate) fn new(packing: &Packing, ring: Ring) -> Self {
        let input = |ciphertext| {
            let slots = packing.input_slots(ciphertext).into_iter().enumerate();
            slots.filter_map(|(slot, element)| Some((slot as u32, element? as u32))).collect()
        };
        let outputs = packing.output_slots().into_iter();
        Self {
            ring,
            slots: packing.slots(),
            elements: packing.inputs(),
            inputs: (0..packing.operations().input_ciphertexts).map(input).collect(),
            outputs: outputs.map(|(ciphertext, slot)| (ciphertext as u32, slot as u32)).collect(),
        }
    }

    /// Elements one after another, in slots and ciphertexts alike.
    pub(crate) fn dense(ring: Ring, slots: usize, elements: usize) -> Self {
        let place = |element| ((element / slots) as u32, (element % slots) as u32);
        let ciphertext = |first| {
            let count = slots.min(elements - first);
            (0..count).map(|slot| (slot as u32, (first + slot) as u32)).collect()
        };
        let inputs = (0..elements).step_by(slots).map(ciphertext).collect();
        Self { ring, slots, elements, inputs, outputs: (0..elements).map(place).collect() }
    }

    /// The slots of each input ciphertext that carry `share`; the others are zero.
    pub(crate) fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>> {
        ProtocolError::check_share("input share of a linear layer", share, self.ring, self.elements)?;
        let pack = |places: &Vec<(u32, u32)>| {
            let mut slots = Zeroizing::new(vec![0; self.slots]);
            for (slot, element) in places {
                slots[*slot as usize] = share.values()[*element as usize];
            }
            slots
        };
        Ok(self.inputs.iter().map(pack).collect())
    }

    /// The share in the slots of the output ciphertexts.
    pub(crate) fn unpack(&self, outputs: &[impl AsRef<[u64]>]) -> Result<Share> {
        let places = self.outputs.iter();
        let values = places.map(|(ciphertext, slot)| outputs[*ciphertext as usize].as_ref()[*slot as usize]);
        Ok(Share::new(self.ring, values.collect())?)
    }
}
