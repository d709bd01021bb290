//! What the layers send, from their circuits alone.

use lanner_gc::{Circuit, chunk_lengths};
use lanner_ot::{arithmetic, softspoken};
use lanner_primitives::{Bits, Block};
use lanner_step::{Cost, OfflineCost, ProtocolError};

use super::function::Layer;
use super::parts::parts;
use super::revealed::Revealed;

impl Layer {
    /// The cost of the offline phase.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the output ring has no transfers.
    pub fn offline_cost(&self) -> Result<OfflineCost, ProtocolError> {
        let ring = self.encoding().ring;
        let inputs = self.instances() * self.circuit().evaluator_inputs();
        let outputs = softspoken::random_extension_cost(self.output_bits());
        let corrections = lanner_ot::Cost {
            receiver_bytes: 0,
            receiver_messages: 0,
            ..arithmetic::random_cost(ring, self.output_bits())
        };
        Ok(OfflineCost {
            request: Cost::NONE.transfer(softspoken::random_extension_cost(inputs)).transfer(outputs),
            answer: tables_cost(self.circuit(), self.instances()).transfer(corrections),
        })
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        labels(self.circuit(), self.instances()).client(Bits::byte_len(self.output_bits()))
    }
}

impl Revealed {
    /// The cost of the offline phase.
    #[must_use]
    pub fn offline_cost(&self) -> OfflineCost {
        let (circuit, instances) = (self.circuit(), self.instances());
        let inputs = instances * circuit.evaluator_inputs();
        OfflineCost {
            request: Cost::NONE.transfer(softspoken::random_extension_cost(inputs)),
            answer: tables_cost(circuit, instances).server(Bits::byte_len(self.output_bits())),
        }
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        labels(self.circuit(), self.instances())
    }
}

fn tables_cost(circuit: &Circuit, instances: usize) -> Cost {
    parts(circuit, instances)
        .flat_map(|part| chunk_lengths(circuit, part.len()))
        .fold(Cost::NONE, Cost::server)
}

fn labels(circuit: &Circuit, instances: usize) -> Cost {
    let masked = Cost::NONE.client(Bits::byte_len(instances * circuit.evaluator_inputs()));
    let lengths =
        parts(circuit, instances).map(|part| part.len() * circuit.evaluator_inputs() * Block::BYTES);
    lengths.fold(masked, Cost::server)
}
