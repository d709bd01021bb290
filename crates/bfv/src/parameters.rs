//! Ring degree and moduli, checked against the security table when they are built.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lanner_process::{MOST_FORKS, PerProcess};
use lanner_ring::{Modulus, RnsBasis};
use serde::{Deserialize, Serialize};

use crate::{BfvError, PlaintextModulus, security};

/// The named parameter sets: 128-bit security with ternary secrets, limbs of at most 50 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterSet {
    /// `N = 4096`, one limb of 50 bits: coefficient-encoded layers whose shares may be off by one.
    A0,
    /// `N = 4096`, three limbs of 35 bits: coefficient-encoded convolution and matrix-vector products.
    A1,
    /// `N = 8192`, three limbs of 40 bits: slotwise products without rotations, wide coefficient-encoded layers.
    A2,
    /// `N = 2048`, one limb of 50 bits: coefficient-encoded layers with a guard.
    C1,
    /// `N = 2048`, limbs of 27 and 26 bits: the same in rings that are wider by two or three bits.
    C2,
    /// `N = 4096`, two limbs of 50 bits: the same in rings of any width.
    C3,
    /// `N = 4096`, one limb of 50 bits and a special one: coefficient-encoded layers with a guard and [packed answers](crate::Interleaving).
    C4,
    /// `N = 4096`, two limbs of 35 bits and a special one: the same in rings that are wider.
    C5,
    /// `N = 8192`, three limbs of 50 bits and a special one: rotation kernels.
    B,
    /// `N = 8192`, one limb of 50 bits, three of 38 and a special one of 50: rotation kernels modulo wide primes, and two products in a row.
    W,
    /// `N = 16384`, seven limbs of 50 bits and a special one: leveled evaluation of depth two.
    L,
    /// `N = 32768`, sixteen limbs of 50 bits and a special one: leveled evaluation with homomorphic transforms.
    LPrime,
}

impl ParameterSet {
    /// The ring degree of its ciphertexts.
    #[must_use]
    pub const fn degree(self) -> usize {
        match self {
            Self::C1 | Self::C2 => 2048,
            Self::A0 | Self::A1 | Self::C3 | Self::C4 | Self::C5 => 4096,
            Self::A2 | Self::B | Self::W => 8192,
            Self::L => 16384,
            Self::LPrime => 32768,
        }
    }

    /// The set's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A0 => "A0",
            Self::A1 => "A1",
            Self::A2 => "A2",
            Self::C1 => "C1",
            Self::C2 => "C2",
            Self::C3 => "C3",
            Self::C4 => "C4",
            Self::C5 => "C5",
            Self::B => "B",
            Self::W => "W",
            Self::L => "L",
            Self::LPrime => "L'",
        }
    }

    /// The parameters of the set, whose tables are made once a process.
    ///
    /// # Errors
    /// None for the sets above: the tests build each of them.
    pub fn parameters(self) -> Result<Parameters, BfvError> {
        static BUILT: PerProcess<Mutex<BTreeMap<ParameterSet, Parameters>>> =
            PerProcess::new([const { Mutex::new(BTreeMap::new()) }; MOST_FORKS]);
        let Some(built) = BUILT.get() else { return self.build() };
        // What is in it is whole, whoever panicked.
        let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parameters) = built.get(&self) {
            return Ok(parameters.clone());
        }
        let parameters = self.build()?;
        built.insert(self, parameters.clone());
        Ok(parameters)
    }

    fn build(self) -> Result<Parameters, BfvError> {
        let wide = [&PRIMES[..1], &PRIMES_38].concat();
        let (limbs, special) = match self {
            Self::A0 | Self::C1 => (&PRIMES[..1], None),
            Self::C2 => (PRIMES_27_26.as_slice(), None),
            Self::C3 => (&PRIMES[..2], None),
            Self::C4 => (&PRIMES[..1], Some(PRIMES[1])),
            Self::C5 => (&PRIMES_35[1..], Some(PRIMES_35[0])),
            Self::A1 => (PRIMES_35.as_slice(), None),
            Self::A2 => (PRIMES_40.as_slice(), None),
            Self::B => (&PRIMES[..3], Some(PRIMES[3])),
            Self::W => (wide.as_slice(), Some(PRIMES[1])),
            Self::L => (&PRIMES[..7], Some(PRIMES[7])),
            Self::LPrime => (&PRIMES[..16], Some(PRIMES[16])),
        };
        Parameters::checked(self.degree(), limbs, special, Some(self))
    }
}

/// The largest primes below `2^50` that are `1 mod 2^17`, in falling order.
const PRIMES: [u64; 17] = [
    1_125_899_903_827_969,
    1_125_899_902_124_033,
    1_125_899_887_312_897,
    1_125_899_886_395_393,
    1_125_899_885_740_033,
    1_125_899_884_167_169,
    1_125_899_884_036_097,
    1_125_899_883_642_881,
    1_125_899_883_380_737,
    1_125_899_882_987_521,
    1_125_899_879_710_721,
    1_125_899_877_875_713,
    1_125_899_870_404_609,
    1_125_899_870_011_393,
    1_125_899_865_948_161,
    1_125_899_864_506_369,
    1_125_899_862_016_001,
];

/// The same below `2^40`, `2^38` and `2^35`.
const PRIMES_40: [u64; 3] = [1_099_510_054_913, 1_099_507_695_617, 1_099_506_515_969];
const PRIMES_38: [u64; 3] = [274_876_334_081, 274_873_188_353, 274_872_795_137];
const PRIMES_35: [u64; 3] = [34_359_214_081, 34_357_116_929, 34_356_068_353];

/// The largest such prime below `2^27` and the largest below `2^26`.
const PRIMES_27_26: [u64; 2] = [132_120_577, 65_929_217];

/// A secure ring degree, ciphertext modulus `q = q_0 ... q_(L-1)` and, for key switching, a special modulus `P`.
///
/// Cloning shares the tables. Keys depend on the parameters alone, never on a plaintext modulus.
#[derive(Clone, Debug)]
pub struct Parameters {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    set: Option<ParameterSet>,
    /// `q_0, ..., q_(L-1)`, then `P` if there is one.
    extended: RnsBasis,
    /// `L`.
    limbs: usize,
    /// For `l = 1, 2, ..., L` the first `l` limbs and `P`: none without `P`.
    switching: Vec<RnsBasis>,
    /// Made for the first product of ciphertexts.
    auxiliary: OnceLock<RnsBasis>,
}

impl Parameters {
    /// The most bits of a limb: larger primes leave the fast kernels.
    pub const LIMB_BITS: u32 = 50;

    /// Checks and builds the parameters.
    ///
    /// # Errors
    /// [`BfvError::Degree`] or [`BfvError::Insecure`] by the security table; [`BfvError::Modulus`] unless all moduli are
    /// distinct primes `= 1 mod 2 * degree` below `2^50`, and there is at least one; [`BfvError::Mismatch`] if the special
    /// modulus is smaller by more than a bit than another, for key switching would then be noisy.
    pub fn new(degree: usize, moduli: &[u64], special: Option<u64>) -> Result<Self, BfvError> {
        Self::checked(degree, moduli, special, None)
    }

    fn checked(
        degree: usize,
        moduli: &[u64],
        special: Option<u64>,
        set: Option<ParameterSet>,
    ) -> Result<Self, BfvError> {
        if moduli.is_empty() {
            return Err(BfvError::Modulus { modulus: 0, degree });
        }
        let mut chain: Vec<u64> = moduli.to_vec();
        chain.extend(special);
        for (i, modulus) in chain.iter().enumerate() {
            check_modulus(*modulus, degree, &chain[..i])?;
        }
        if special.is_some_and(|p| moduli.iter().any(|q| *q / 2 > p)) {
            return Err(BfvError::Mismatch { what: "the sizes of the special and the other moduli" });
        }
        security::check(degree, chain.iter().map(|q| (*q as f64).log2()).sum())?;
        let extended = RnsBasis::new(degree, &chain)?;
        let limbs = moduli.len();
        let with_special =
            |limbs: usize| extended.select(&(0..limbs).chain([moduli.len()]).collect::<Vec<_>>());
        let shorter = special.iter().flat_map(|_| (1..limbs).map(with_special));
        let mut switching = shorter.collect::<Result<Vec<_>, _>>()?;
        switching.extend(special.map(|_| extended.clone()));
        let auxiliary = OnceLock::new();
        Ok(Self { inner: Arc::new(Inner { set, extended, limbs, switching, auxiliary }) })
    }

    /// The set whose parameters these are, if they are a set's.
    #[must_use]
    pub fn set(&self) -> Option<ParameterSet> {
        self.inner.set
    }

    /// The ring degree `N`.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.inner.extended.degree()
    }

    /// The number `L` of limbs of a fresh ciphertext.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.inner.limbs
    }

    /// The limb moduli `q_0, ..., q_(L-1)`.
    #[must_use]
    pub fn moduli(&self) -> &[Modulus] {
        &self.inner.extended.moduli()[..self.inner.limbs]
    }

    /// The special modulus `P`.
    #[must_use]
    pub fn special(&self) -> Option<&Modulus> {
        self.inner.extended.moduli().get(self.inner.limbs)
    }

    /// `log2(q_0 ... q_(limbs-1))`.
    #[must_use]
    pub fn log2_modulus(&self, limbs: usize) -> f64 {
        self.moduli().iter().take(limbs).map(|q| (q.value() as f64).log2()).sum()
    }

    /// Whether both describe the same ring and moduli.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
            || self.limbs() == other.limbs() && self.inner.extended.same(&other.inner.extended)
    }

    /// The basis of the first `limbs <= L` limbs.
    pub(crate) fn basis(&self, limbs: usize) -> RnsBasis {
        debug_assert!(limbs <= self.limbs());
        self.inner.extended.prefix(limbs)
    }

    /// The basis of all limbs and the special modulus, if there is one.
    pub(crate) fn extended(&self) -> &RnsBasis {
        &self.inner.extended
    }

    /// The basis of the first `limbs` limbs and the special modulus: where the keys of ciphertexts of so many limbs live.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; [`BfvError::Limbs`] unless `1 <= limbs <= L`.
    pub(crate) fn key_switching(&self, limbs: usize) -> Result<&RnsBasis, BfvError> {
        self.special().ok_or(BfvError::NoSpecialModulus)?;
        self.check_limbs(limbs)?;
        Ok(&self.inner.switching[limbs - 1])
    }

    /// Primes beside the limbs, whose product exceeds that of the first `limbs` times `2^bits`: where products of ciphertexts are computed.
    ///
    /// # Errors
    /// None for parameters that were accepted, and no more bits than a plaintext modulus and the degree make.
    pub(crate) fn auxiliary(&self, limbs: usize, bits: f64) -> Result<RnsBasis, BfvError> {
        let all = if let Some(all) = self.inner.auxiliary.get() {
            all
        } else {
            let made = self.all_auxiliary()?;
            self.inner.auxiliary.get_or_init(|| made)
        };
        let needed = self.log2_modulus(limbs) + bits;
        let enough = (1..=all.len()).map(|len| all.prefix(len)).find(|basis| basis.log2() >= needed);
        enough.ok_or(BfvError::Budget { step: "multiplying ciphertexts", needed, available: all.log2() })
    }

    /// The largest primes of at most [`Self::LIMB_BITS`] bits that are not limbs, as many as the widest plaintext modulus may need.
    fn all_auxiliary(&self) -> Result<RnsBasis, BfvError> {
        let step = 2 * self.degree() as u64;
        let room = f64::from(PlaintextModulus::BITS + step.trailing_zeros() + 1);
        // The primes are so close to 2^50 that all of them together lack less than the bit that is added here.
        let bits = self.log2_modulus(self.limbs()) + room + 1.0;
        let count = (bits / f64::from(Self::LIMB_BITS)).ceil() as usize;
        let is_limb = |q: &u64| self.moduli().iter().any(|limb| limb.value() == *q);
        let candidates = (1..(1 << Self::LIMB_BITS) / step).rev().map(|k| k * step + 1);
        let primes = candidates.filter(|q| lanner_ring::is_prime(*q) && !is_limb(q)).take(count);
        Ok(RnsBasis::new(self.degree(), &primes.collect::<Vec<_>>())?)
    }

    /// # Errors
    /// [`BfvError::Limbs`] unless `1 <= limbs <= L`.
    pub(crate) fn check_limbs(&self, limbs: usize) -> Result<(), BfvError> {
        let most = self.limbs();
        if (1..=most).contains(&limbs) { Ok(()) } else { Err(BfvError::Limbs { got: limbs, most }) }
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless `basis` is a ciphertext's: some of the limbs, from the first on.
    pub(crate) fn check_basis(&self, basis: &RnsBasis) -> Result<(), BfvError> {
        let fits = basis.len() <= self.limbs() && self.basis(basis.len()).same(basis);
        if fits { Ok(()) } else { Err(BfvError::Mismatch { what: "parameters" }) }
    }

    /// Whether `basis` is a ciphertext's, or that with the special modulus behind it.
    pub(crate) fn has_basis(&self, basis: &RnsBasis) -> bool {
        let extended = basis.len().checked_sub(2).and_then(|i| self.inner.switching.get(i));
        self.check_basis(basis).is_ok() || extended.is_some_and(|extended| extended.same(basis))
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless both are the same parameters.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), BfvError> {
        if self.same(other) { Ok(()) } else { Err(BfvError::Mismatch { what: "parameters" }) }
    }
}

fn check_modulus(modulus: u64, degree: usize, earlier: &[u64]) -> Result<(), BfvError> {
    let splits = modulus % (2 * degree.max(1) as u64) == 1;
    let prime = lanner_ring::is_prime(modulus);
    if splits && prime && modulus >> Parameters::LIMB_BITS == 0 && !earlier.contains(&modulus) {
        return Ok(());
    }
    Err(BfvError::Modulus { modulus, degree })
}

/// A small secure ring for tests that try every rotation: `N = 2048`, one limb of 26 bits and a special one of 27.
#[cfg(test)]
pub(crate) fn small() -> Parameters {
    #[allow(clippy::unwrap_used)]
    Parameters::new(2048, &[67_104_769], Some(134_176_769)).unwrap()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_named_set_is_accepted() {
        use ParameterSet::{A0, A1, A2, B, C1, C2, C3, C4, C5, L, LPrime, W};
        for (set, degree, limbs, bits) in [
            (A0, 4096, 1, 50.0),
            (A1, 4096, 3, 105.0),
            (A2, 8192, 3, 120.0),
            (C1, 2048, 1, 50.0),
            (C2, 2048, 2, 52.9517),
            (C3, 4096, 2, 100.0),
            (C4, 4096, 1, 50.0),
            (C5, 4096, 2, 70.0),
            (B, 8192, 3, 150.0),
            (W, 8192, 4, 164.0),
            (L, 16384, 7, 350.0),
            (LPrime, 32768, 16, 800.0),
        ] {
            let parameters = set.parameters().unwrap();
            assert_eq!(parameters.set(), Some(set));
            assert_eq!(parameters.degree(), degree);
            assert_eq!(parameters.limbs(), limbs);
            assert!((parameters.log2_modulus(limbs) - bits).abs() < 1e-3);
        }
        assert_eq!((small().set(), small().degree()), (None, 2048));
    }

    #[test]
    fn insecure_moduli_are_refused() {
        let refused = Parameters::new(8192, &PRIMES[..4], Some(PRIMES[4]));
        assert!(matches!(refused, Err(BfvError::Insecure { degree: 8192, limit: 214, .. })));
        let refused = Parameters::new(4096, &PRIMES[..2], Some(PRIMES[2]));
        assert!(matches!(refused, Err(BfvError::Insecure { degree: 4096, .. })));
        let refused = Parameters::new(2048, &[134_176_769], Some(134_111_233));
        assert!(matches!(refused, Err(BfvError::Insecure { degree: 2048, limit: 53, .. })));
        assert!(matches!(Parameters::new(512, &PRIMES[..1], None), Err(BfvError::Degree { degree: 512 })));
    }

    #[test]
    fn unusable_moduli_are_refused() {
        let bad = |moduli: &[u64], special| {
            matches!(Parameters::new(8192, moduli, special), Err(BfvError::Modulus { .. }))
        };
        assert!(bad(&[], None), "no modulus");
        assert!(bad(&[PRIMES[0], PRIMES[0]], None), "a repeated one");
        assert!(bad(&[PRIMES[0]], Some(PRIMES[0])), "the special one repeated");
        assert!(bad(&[PRIMES[0] - 2], None), "a composite");
        assert!(bad(&[65537 * 3], None), "a composite = 1 mod 2^14");
        assert!(bad(&[1_000_003], None), "a prime that does not split");
        assert!(bad(&[(1 << 51) - 0x0012_ffff], None), "over 50 bits");
        assert!(Parameters::new(8192, &PRIMES[..1], Some(114_689)).is_err(), "a small special modulus");
    }
}
