//! A slope below zero, as a fraction.

use lanner_graph::elementwise::LeakyRelu;
use lanner_network::elementwise::{FixedLeakyRelu, MAX_DOMAIN_BITS};
use lanner_network::{FixedOp, FunctionFit};

use super::{Lowered, Part, Wanted};

impl Lowered for LeakyRelu {
    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        let slope = FixedLeakyRelu::closest(f64::from(self.alpha), wanted.activation_bits);
        Ok(vec![Part::exact(FixedOp::LeakyRelu(slope), wanted.scale)])
    }

    fn behind_rescale(&self, wanted: &Wanted<'_>) -> Option<Part> {
        let bits = bits_of(wanted.reach).filter(|bits| *bits <= MAX_DOMAIN_BITS)?;
        let alpha = f64::from(self.alpha);
        let slope = FixedLeakyRelu::closest(alpha, wanted.activation_bits);
        let off = (slope.numerator as f64 / f64::from(slope.shift).exp2() - alpha).abs();
        let error = 0.5 + off * f64::from(bits - 1).exp2();
        let fit = Some(FunctionFit { error, open: [true; 2], vanishes: false });
        Some(Part { suffix: "", op: FixedOp::Function(slope.to_nearest(bits)), scale: wanted.scale, fit })
    }
}

/// The fewest bits that integers between these have with their sign, two at least.
fn bits_of([low, high]: [i64; 2]) -> Option<u32> {
    (2..i64::BITS).find(|bits| low >> (bits - 1) >= -1 && high >> (bits - 1) <= 0)
}

#[cfg(test)]
mod tests {
    use super::bits_of;

    #[test]
    fn bits_are_the_fewest_with_room() {
        let bits = [[0, 0], [-2, 1], [-3, 1], [0, 2], [-512, 511], [-513, 0], [0, 512]].map(bits_of);
        assert_eq!(bits, [2, 2, 3, 3, 10, 11, 11].map(Some));
    }
}
