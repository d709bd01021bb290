//! Nonlinear layers by oblivious transfer as steps of a plan: the same on both sides.

use lanner_primitives::Ring;
use lanner_step::{
    BoxedStep, Built, Client, CotSupply, Function, Inputs, Known, Memory, ModelParts, Needs, Party,
    PartyState, ProtocolError, Result, Samples, Server, Sets, Spec, Step, StepCost, Value, ValueType,
    Windows, Work,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::{End, Layer, Material, Polynomials, Request, Rounding};

/// A function of each window, from `Z_2^from` to `Z_2^to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingActivation {
    /// What it computes.
    pub function: Function,
    /// The windows.
    pub windows: Windows,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits of the ring of the output.
    pub to: u32,
    /// How values are rescaled.
    pub rounding: Rounding,
}

/// The square of each element, over `Z_2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSquare {
    /// Number of elements.
    pub values: usize,
    /// The ring.
    pub bits: u32,
}

/// A function of each element, from `Z_2^from` to `Z_2^to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingFunction {
    /// What it computes of a value that has lost `shift` bits.
    pub function: Polynomials,
    /// Number of elements.
    pub values: usize,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits of the ring of the output.
    pub to: u32,
    /// Bits that are dropped of the input first, rounded.
    pub shift: u32,
    /// The end of the domain that no value lies beyond, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<End>,
}

/// The products of the elements of two values, over `Z_2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingProduct {
    /// Number of elements of each.
    pub values: usize,
    /// The ring.
    pub bits: u32,
}

/// The products of matrices of two values in pairs, `[groups, rows, inner]` and `[groups, inner, columns]`, over `Z_2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingMatrixProduct {
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
}

/// Each element without the bits of guard below it, over `Z_2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropGuard {
    /// Number of elements.
    pub values: usize,
    /// Bits of the ring of the output.
    pub bits: u32,
    /// Bits that the ring of the input has more, below.
    pub guard: u32,
}

impl Spec for RingActivation {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Pow2(self.from), self.windows.inputs())?;
        Ok(ValueType::shared(Ring::Pow2(self.to), self.windows.count()?, Known::NOBODY))
    }

    fn work(&self) -> Work {
        self.windows.work().without_circuits()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { windows: self.windows.of_samples(samples), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let layer = Layer::activation(self.function, &self.windows, self.from, self.to, self.rounding)?;
        Ok(Box::new(layer))
    }
}

impl Spec for RingSquare {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let ring = Ring::Pow2(self.bits);
        ValueType::only(inputs, ring, self.values)?;
        Ok(ValueType::shared(ring, self.values, Known::NOBODY))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::square(self.values, self.bits)?))
    }
}

impl Spec for RingFunction {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Pow2(self.from), self.values)?;
        Ok(ValueType::shared(Ring::Pow2(self.to), self.values, Known::NOBODY))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let rings = [self.from, self.to];
        Ok(Box::new(Layer::function_within(&self.function, self.values, rings, self.shift, self.within)?))
    }
}

impl Spec for RingProduct {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let &[left, right] = inputs else {
            return Err(ProtocolError::WrongInput("there must be two factors"));
        };
        let ring = Ring::Pow2(self.bits);
        ValueType::only(&[left], ring, self.values)?;
        ValueType::only(&[right], ring, self.values)?;
        Ok(ValueType::shared(ring, self.values, Known::NOBODY))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::product(self.values, self.bits)?))
    }
}

impl RingMatrixProduct {
    /// The product of sides, which may be anyone's.
    fn count(sides: [usize; 3]) -> Result<usize> {
        let count = sides.into_iter().try_fold(1_usize, usize::checked_mul);
        count.ok_or(ProtocolError::Parameters("the sides of matrices"))
    }
}

impl Spec for RingMatrixProduct {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let &[left, right] = inputs else {
            return Err(ProtocolError::WrongInput("there must be two factors"));
        };
        let (&Self { groups, rows, inner, columns, .. }, ring) = (self, Ring::Pow2(self.bits));
        ValueType::only(&[left], ring, Self::count([groups, rows, inner])?)?;
        ValueType::only(&[right], ring, Self::count([groups, inner, columns])?)?;
        Ok(ValueType::shared(ring, Self::count([groups, rows, columns])?, Known::NOBODY))
    }

    fn work(&self) -> Work {
        let sides = [self.groups, self.rows, self.inner, self.columns];
        let products = sides.into_iter().fold(1_u64, |all, side| all.saturating_mul(side as u64));
        Work { window_elements: products, ..Work::default() }
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { groups: samples.times(self.groups), ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let &Self { groups, rows, inner, columns, bits } = self;
        Ok(Box::new(Layer::matrix_product([groups, rows, inner, columns], bits)?))
    }
}

impl Spec for DropGuard {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Pow2(self.bits.saturating_add(self.guard)), self.values)?;
        Ok(ValueType::shared(Ring::Pow2(self.bits), self.values, Known::NOBODY))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::drop_guard(self.values, self.bits, self.guard)?))
    }
}

impl Built for Layer {
    fn needs(&self) -> Result<Needs> {
        let transfers = [Party::Client, Party::Server].map(|party| self.transfers(party));
        Ok(Needs { transfers, ..Needs::default() })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { offline: self.offline_cost(supply), online: self.online_cost() })
    }

    fn memory(&self) -> Result<Memory> {
        let [client_material, server_material] = [Party::Client, Party::Server].map(|party| self.held(party));
        let (working, layouts) = (self.working(), self.layout_bytes());
        Ok(Memory {
            client_material,
            server_material,
            working,
            client_working: working,
            layouts,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let transfers = self.transfers(Party::Client) + self.transfers(Party::Server);
        vec![("instances", self.inputs() as u64), ("transfers", transfers as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(self)
    }
}

impl<P: PartyState> Step<P> for Layer {
    type Request = Request;
    type Material = Material;

    fn request(&self, channel: &mut dyn Channel, party: &mut P) -> Result<Request> {
        let (transfers, _) = party.transfers()?;
        self.request(channel, transfers)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        request: Request,
        _: &Inputs,
    ) -> Result<(Material, Option<Value>)> {
        let (transfers, rng) = party.transfers()?;
        Ok((self.prepare(channel, transfers, request, rng)?, None))
    }

    fn encode(&self, material: &Material, writer: &mut Writer) {
        material.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Material, DecodeError> {
        Material::decode(reader, self, P::PARTY)
    }

    fn online(&self, channel: &mut dyn Channel, material: Material, inputs: &Inputs) -> Result<Value> {
        self.online(channel, P::PARTY, material, &inputs.shares()?).map(Value::Shared)
    }
}
