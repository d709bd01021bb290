//! A model's weights are erased when they are dropped: the bound is checked when this compiles.

use lanner_network::{LinearWeights, Tensors};
use zeroize::ZeroizeOnDrop;

fn is_erased<T: ZeroizeOnDrop>() {}

#[test]
fn weights_are_erased_when_dropped() {
    is_erased::<LinearWeights>();
    is_erased::<Tensors>();
}
