//! A product of matrices as a step of a plan.

use lanner_bfv::{CoefficientFactor, ParameterSet};
use lanner_primitives::Ring;
use lanner_step::{
    Answering, Answers, BoxedStep, Built, Client, CotSupply, Known, Memory, ModelParts, Needs, ProtocolError,
    Result, Samples, Server, Sets, Spec, StepCost, ValueType, WORD, Work, limb,
};
use serde::{Deserialize, Serialize};

use super::{ClientProduct, Scheme, ServerProduct, Shape};

/// The products of matrices of two values in pairs, `[groups, rows, inner]` and `[groups, inner, columns]`, over `Z_2^bits`, by encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixProduct {
    /// Number of pairs.
    pub groups: usize,
    /// Rows of the left matrices.
    pub rows: usize,
    /// Products in a sum.
    pub inner: usize,
    /// Columns of the right matrices.
    pub columns: usize,
    /// The ring.
    pub bits: u32,
    /// Bits below those of the sums that the shares have.
    pub guard: u32,
    /// The parameter set.
    pub set: ParameterSet,
}

impl MatrixProduct {
    /// The shape.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        let &Self { groups, rows, inner, columns, .. } = self;
        Shape { groups, rows, inner, columns }
    }

    fn scheme(&self, sets: &Sets) -> Result<Scheme> {
        Scheme::new(self.shape(), self.bits, self.guard, sets.get(self.set)?)
    }
}

impl Spec for MatrixProduct {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let &[left, right] = inputs else {
            return Err(ProtocolError::WrongInput("there must be two factors"));
        };
        let ([lefts, rights, products], ring) = (self.shape().elements()?, Ring::Pow2(self.bits));
        ValueType::only(&[left], ring, lefts)?;
        ValueType::only(&[right], ring, rights)?;
        let ring = Ring::Pow2(self.bits.saturating_add(self.guard));
        Ok(ValueType::shared(ring, products, Known::NOBODY))
    }

    fn work(&self) -> Work {
        // A ciphertext holds an element of a matrix at least; the layout is searched for among few.
        let sides = [self.groups, self.rows, self.inner, self.columns];
        let products = sides.into_iter().fold(1_u64, |all, side| all.saturating_mul(side as u64));
        let elements = self
            .shape()
            .elements()
            .map_or(u64::MAX, |all| all.iter().fold(0_u64, |sum, count| sum.saturating_add(*count as u64)));
        Work { window_elements: products.saturating_add(elements), ..Work::default() }
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { groups: samples.times(self.groups), ..*self })
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(BuiltProduct { set: self.set, scheme: self.scheme(sets)? }))
    }
}

/// A product with its layout, and the modulus in which answers are sent.
struct BuiltProduct {
    set: ParameterSet,
    scheme: Scheme,
}

impl Built for BuiltProduct {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { keys: Some((self.set, [].into())), ..Needs::default() })
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { offline: self.scheme.offline_cost(), online: self.scheme.online_cost() })
    }

    fn answers(&self) -> Result<Answers> {
        Ok(self.scheme.answers())
    }

    fn memory(&self) -> Result<Memory> {
        let Scheme { parameters, shape, packing, .. } = &self.scheme;
        let [left, right, outputs] = self.scheme.ciphertexts().map(|count| count as u64);
        let (half, groups) = (limb(parameters) * parameters.limbs() as u64, shape.groups as u64);
        // A second half beside a first one of zero, the first half that came, and the server's share.
        let pair = 3 * half + CoefficientFactor::bytes(parameters) as u64;
        let [lefts, rights, products] = shape.elements()?.map(|count| count as u64 * WORD);
        Ok(Memory {
            client_material: groups * (left + right) * half + half,
            server_material: groups * (left + right + outputs) * 2 * WORD + 2 * half,
            // One pair in work, with both parties' shares of all.
            working: (left + right) * pair + lefts + rights + products,
            client_working: lefts + rights + products + 8 * half,
            layouts: packing.layout_bytes() + right * packing.degree() as u64 * 2 * WORD,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let ([left, right, outputs], groups) = (self.scheme.ciphertexts(), self.scheme.shape.groups);
        vec![
            ("degree", self.scheme.parameters.degree() as u64),
            ("multiplications", self.scheme.products() as u64),
            ("input_ciphertexts", (groups * (left + right)) as u64),
            ("output_ciphertexts", (groups * outputs) as u64),
        ]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientProduct::new(self.scheme)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Answering(ServerProduct::new(self.scheme))))
    }
}
