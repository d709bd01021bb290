//! What a softmax sends, from its circuits alone.

use lanner_ot::{arithmetic, softspoken};
use lanner_primitives::{Bits, Block};

use super::Softmax;
use crate::nonlinear::yao::tables_cost;
use crate::{Cost, OfflineCost};

impl Softmax {
    /// The cost of the offline phase.
    #[must_use]
    pub fn offline_cost(&self) -> OfflineCost {
        let transfers = [self.exponents().evaluator_inputs(), self.sum_bits(), self.product_bits()];
        let request = |cost: Cost, count| cost.transfer(softspoken::random_extension_cost(count));
        let corrections = lanner_ot::Cost {
            receiver_bytes: 0,
            receiver_messages: 0,
            ..arithmetic::random_cost(self.group(), self.product_bits())
        };
        OfflineCost {
            request: transfers.into_iter().fold(Cost::NONE, request),
            answer: tables_cost(self.exponents(), 1)
                .server(Bits::byte_len(self.revealed_bits()))
                .then(tables_cost(self.division(), 1))
                .server(Bits::byte_len(self.division().outputs()))
                .transfer(corrections),
        }
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        let inputs = self.exponents().evaluator_inputs();
        Cost::NONE
            .client(Bits::byte_len(inputs))
            .server(inputs * Block::BYTES)
            .client(Bits::byte_len(self.product_bits()))
            .client(Bits::byte_len(self.sum_bits()))
            .server(2 * self.sum_bits() * Block::BYTES)
    }
}
