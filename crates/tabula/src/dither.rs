//! Uniform numbers of a few bits that nobody knows, as shares: what a stochastic rescale adds before it drops these bits.
//!
//! ```text
//! a bit = a_C xor a_S of either party's own a;  [a_C and a_S] by a product      u = sum of 2^i (a_C + a_S - 2 a_C a_S), shared modulo 2^to
//! ```

use lanner_primitives::{Ring, Share};
use lanner_step::{CotSupply, OfflineCost, Party, ProtocolError, Result};
use lanner_transfers::Layer;
use lanner_transfers::blocks::{Driver, Lanes, Program};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::keyed::Maker;

/// How a lookup drops d bits of a value x.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// `floor((x + 2^(d-1)) / 2^d)`.
    #[default]
    Exact,
    /// `floor((x + u) / 2^d)` for a uniform u of d bits that nobody knows.
    Stochastic,
}

impl Rounding {
    /// Whether it is that of the reference.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        matches!(self, Self::Exact)
    }
}

/// Uniform numbers of `bits` bits, shared modulo `2^to`.
#[derive(Clone, Debug)]
pub(super) struct Dither(Layer<Numbers>);

/// Numbers of the bits of as many lanes, bit by bit from the lowest, all numbers' of a bit one after the other.
#[derive(Clone, Debug)]
struct Numbers {
    bits: u32,
    to: u32,
}

impl Program for Numbers {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        let count = x.count() / self.bits as usize;
        // What is shifted left counts modulo less.
        let bit = |i: usize| (x.range(i * count..(i + 1) * count), self.to - i as u32);
        let values = driver.all_bits_to_values((0..self.bits as usize).map(bit).collect())?;
        let ring = Ring::Pow2(self.to);
        let sum = values.iter().zip(0..).map(|(value, i)| value.map(|value| value << i));
        let sum = sum
            .reduce(|sum, value| sum.zip_map(&value, |sum, value| ring.add(sum, ring.embed(value as i64))));
        sum.ok_or(ProtocolError::Missing("the bits of a dither"))
    }
}

impl Dither {
    pub(super) fn new(bits: u32, to: u32, values: usize) -> Result<Self> {
        Layer::of(Numbers { bits, to }, bits as usize * values, 1, to).map(Self)
    }

    /// Transfers that a party sends.
    pub(super) fn transfers(&self, sender: Party) -> usize {
        self.0.transfers(sender)
    }

    /// Bytes that are held while the numbers are made.
    pub(super) fn working(&self) -> u64 {
        let products: u64 = [Party::Client, Party::Server].map(|party| self.0.held(party)).into_iter().sum();
        products + 4 * (self.0.inputs() * size_of::<u64>()) as u64
    }

    /// What making them sends.
    pub(super) fn cost(&self, supply: &mut CotSupply) -> OfflineCost {
        let OfflineCost { request, answer } = self.0.offline_cost(supply);
        OfflineCost { request, answer: answer.then(self.0.online_cost()) }
    }

    /// This party's shares of fresh numbers.
    pub(super) fn draw(
        &self,
        Maker { channel, transfers, rng }: &mut Maker<'_, impl CryptoRng>,
    ) -> Result<Zeroizing<Vec<u64>>> {
        let channel = &mut **channel;
        let bits = Share::random(Ring::Pow2(1), self.0.inputs(), rng);
        let request = self.0.request(channel, transfers)?;
        let material = self.0.prepare(channel, transfers, request, rng)?;
        let numbers = self.0.online(channel, transfers.party, material, &[&bits])?;
        Ok(Zeroizing::new(numbers.values().to_vec()))
    }
}
