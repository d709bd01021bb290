//! The other way out, for coefficient encodings: the phase masked by a uniform element, coefficient by coefficient.
//!
//! 1. A fresh encryption of zero under the client's public key is added, as in [`super::seal`], but without an error in its first half, which the mask
//!    hides.
//! 2. Both halves are switched from `q` to `2^w`, rounding.
//! 3. A mask `r` is added to every coefficient of the first half that is sent; the others are not sent.
//!
//! What the client can compute from it is the phase `m 2^w / t + e + r`, `t = 2^l`. There are three kinds of masks, and one for primes `t`:
//!
//! - [`PhaseModulus::guarded`]: `r` is uniform modulo `2^w`, and so is the phase, whatever `m` and the noise `e`: nothing about the weights
//!   is left, for any `w`. The parties' shares are of `2^g m` or of `2^g m + 1`, modulo `2^(l+g)`: with `u = 2^(w-l-g)`, the client's is
//!   `floor((phase + u/2) / u)` and the server's `-floor(r / u)`, whose sum is above `2^g m + (e + u/2) / u - 1` and below that and two, so
//!   one of both where `|e| <= u/2`. Whoever drops the low `g` bits of the sum, exactly, has `m`. Bits of the first half that do not tell which of
//!   both it is are not sent.
//! - [`PhaseModulus::faithful`]: `r` is uniform modulo `2^w`, and so is the phase, whatever `m` and the noise `e`: nothing about the weights
//!   is left, for any `w`. The parties' shares of `m` are the roundings of the phase and of `-r` to `l` bits. Their sum is off by one with
//!   probability `t |e| / 2^w`, and never by more where `t |e| < 2^(w-1)`.
//! - [`PhaseModulus::exact`]: `r = u 2^w / t + f` with `u` uniform modulo `t` and `f` a flooding as that of [`super::seal`]: a centred sum of
//!   three uniform integers below `2^(w-l-2)`. Where `|e|` is below an eighth of `2^w / t`, `e + f` is below a half, so the roundings are `m + u` and
//!   `-u`, never off. A simulator that knows `m + u`, which is uniform, sends it with the flooding alone: the [`Distance`] between both is
//!   what `e` does to `f`.
//!
//! - [`PhaseModulus::prime`], for a prime `t = p`: `r` is uniform modulo `2^w` in steps of `2^-24`, and the first half that is sent is the rounding of the sum.
//!   Shares are the roundings of `p` times the phase and of `-p r` by `2^w`. With `r` in whole steps the rounding of what was evaluated would stay in the server's
//!   share: with probability `p / 2^w` shares would be off by one, or not, as it depends on the message.
//!
//! The public [`NoiseBound`] shows all of this.
//!
//! Threat model as of [`super::seal`].

use lanner_primitives::Prg;
use lanner_ring::{Coeff, Eval, Poly};
use lanner_wire::{DecodeError, Reader, Writer, pack_bits, packed_len, unpack_bits};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::budget::shift_bits;
use super::{CIPHERTEXT_BITS, Distance};
use crate::halves::C0;
use crate::keys::Blind;
use crate::packing::{read_poly, write_poly};
use crate::switch::{NARROW, PowerSwitch, mask};
use crate::{BfvError, Ciphertext, LastCoefficient, NoiseBound, Parameters, PublicKey, SecretKey};

/// The modulus `2^w` in which masked coefficients of messages modulo `2^l` are sent.
#[derive(Clone, Debug)]
pub struct PhaseModulus {
    parameters: Parameters,
    /// Bits of a share: `l`, and `g` where there is a guard.
    message_bits: u32,
    /// `w`.
    bits: u32,
    /// The bits of a coefficient's first half that are sent, the high ones.
    first_bits: u32,
    masks: Masks,
    switch: PowerSwitch,
}

/// What is added to the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masks {
    /// Uniform elements modulo `2^w`.
    Uniform,
    /// The same, with shares of one of two neighbours.
    Guarded,
    /// A uniform message, and flooding that no rounding shows.
    Flooded,
    /// Uniform elements modulo `2^w` in finer steps, with shares modulo this prime.
    Prime(u64),
}

/// What the server keeps of a ciphertext whose second half it has sent. It serves one and cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct PhaseSealing {
    #[zeroize(skip)]
    modulus: PhaseModulus,
    /// The noise of what was evaluated so far, and the bound that was announced.
    #[zeroize(skip)]
    noise: NoiseBound,
    #[zeroize(skip)]
    announced: NoiseBound,
    /// The first half of the encryption of zero, and what was evaluated of the ciphertext's.
    zero: Poly<Eval>,
    /// The masks of the coefficients that will be sent.
    masks: Zeroizing<Vec<u128>>,
}

/// What the server keeps of a ciphertext of which coefficient `N - 1` alone will be sent. It serves one and cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct CoefficientSealing {
    #[zeroize(skip)]
    modulus: PhaseModulus,
    /// That coefficient of the encryption of zero, modulo each limb.
    zero: Vec<u64>,
    mask: u128,
}

/// What the client keeps of a second half: `c1 s` at the coefficients that will come. It serves one ciphertext.
#[derive(ZeroizeOnDrop)]
pub struct PreparedPhase {
    #[zeroize(skip)]
    modulus: PhaseModulus,
    products: Zeroizing<Vec<u128>>,
}

impl PhaseModulus {
    /// The smallest modulus in which shares are off by at most one, rarely.
    ///
    /// # Errors
    /// [`BfvError::Budget`] if the noise may be too large for messages of `message_bits` bits; [`BfvError::Mismatch`] for more than three
    /// limbs, or messages of more than 45 bits.
    pub fn faithful(parameters: &Parameters, message_bits: u32, noise: NoiseBound) -> Result<Self, BfvError> {
        Self::new(parameters, message_bits, message_bits + FAITHFUL_BITS, noise, Masks::Uniform)
    }

    /// The smallest modulus in which no share is off, but for a probability of `2^-64` for each ciphertext, and in which `count`
    /// coefficients of a ciphertext are within [`CIPHERTEXT_BITS`].
    ///
    /// # Errors
    /// As [`Self::faithful`], and [`BfvError::Budget`] for more bits than the parameters have room for.
    pub fn exact(
        parameters: &Parameters,
        message_bits: u32,
        count: usize,
        noise: NoiseBound,
    ) -> Result<Self, BfvError> {
        let widest = Self::new(parameters, message_bits, widest(parameters), noise, Masks::Flooded)?;
        let enough = |bits: &u32| {
            let modulus = Self { bits: *bits, ..widest.clone() };
            modulus.distance_bits(count, noise) >= CIPHERTEXT_BITS
        };
        let bits = (message_bits + FAITHFUL_BITS..=widest.bits).find(enough).ok_or(BfvError::Budget {
            step: "hiding the noise of exact shares",
            needed: f64::from(widest.bits) + CIPHERTEXT_BITS - widest.distance_bits(count, noise),
            available: f64::from(widest.bits),
        })?;
        Self::new(parameters, message_bits, bits, noise, Masks::Flooded)
    }

    /// The modulus `2^bits` for shares modulo a prime, which are off by at most one, with probability `p |e| / 2^bits` for an error `e`.
    ///
    /// # Errors
    /// As [`Self::faithful`]; [`BfvError::Mismatch`] for a prime of more than 26 bits or phases of more than 88.
    pub fn prime(
        parameters: &Parameters,
        prime: u64,
        bits: u32,
        noise: NoiseBound,
    ) -> Result<Self, BfvError> {
        if prime >> PRIME_BITS > 0 || bits > 2 * PLANE - FINER {
            return Err(BfvError::Mismatch { what: "shares of masked phases modulo a prime" });
        }
        Self::new(parameters, u64::BITS - prime.leading_zeros(), bits, noise, Masks::Prime(prime))
    }

    /// The modulus in which `count` coefficients of a first half and a whole second half take the fewest bits, for shares of messages of
    /// `message_bits` bits with `guard` more below them.
    ///
    /// # Errors
    /// As [`Self::faithful`].
    pub fn guarded(
        parameters: &Parameters,
        message_bits: u32,
        guard: u32,
        count: usize,
        noise: NoiseBound,
    ) -> Result<Self, BfvError> {
        let shares = message_bits + guard;
        let widths = Self::guarded_widths(parameters, shares, count, noise);
        let [bits, first_bits] = widths.ok_or_else(|| {
            let needed = f64::from(shares + 1) + noise.infinity(parameters.degree()).log2();
            let available = parameters.log2_modulus(parameters.limbs());
            BfvError::Budget { step: "guarding shares", needed, available }
        })?;
        Ok(Self { first_bits, ..Self::new(parameters, shares, bits, noise, Masks::Guarded)? })
    }

    /// The bits of a coefficient of a second half and of a first half of which [`Self::guarded`] makes shares of `shares` bits, the guard
    /// included; none if the noise may be too large.
    #[must_use]
    pub fn guarded_widths(
        parameters: &Parameters,
        shares: u32,
        count: usize,
        noise: NoiseBound,
    ) -> Option<[u32; 2]> {
        let fits = |bits: u32| {
            // The noise, and half a unit of the lowest bit of a first half that is sent, are below half a unit of shares.
            let room = f64::from(bits - shares - 1).exp2();
            let spare = room - switched(parameters, noise, bits).infinity(parameters.degree());
            let dropped = (spare.max(0.5).log2() + 1.0).floor() as u32;
            (spare >= 0.0).then(|| [bits, bits - dropped.min(bits - shares)])
        };
        // Beside the rounding, any noise that the modulus has room for fits some width.
        let rounding = NoiseBound::NONE.rescaled(parameters).infinity(parameters.degree());
        let (start, widest) = (shares + 1 + rounding.log2() as u32, widest(parameters));
        let least = (start..=widest).find(|bits| fits(*bits).is_some())?;
        let length =
            |[second, first]: &[u32; 2]| parameters.degree() * *second as usize + count * *first as usize;
        (least..=widest.min(least + WIDER)).filter_map(fits).min_by_key(length)
    }

    fn new(
        parameters: &Parameters,
        message_bits: u32,
        bits: u32,
        noise: NoiseBound,
        masks: Masks,
    ) -> Result<Self, BfvError> {
        if !(1..=MESSAGE_BITS).contains(&message_bits) {
            return Err(BfvError::Mismatch { what: "messages of masked phases" });
        }
        let switch = PowerSwitch::new(parameters)?;
        let error = switched(parameters, noise, bits).infinity(parameters.degree());
        let needed = f64::from(message_bits) + masks.room_bits() + error.log2();
        let widest = f64::from(widest(parameters));
        if needed > f64::from(bits) || f64::from(bits) > widest {
            let needed = needed.max(f64::from(bits));
            return Err(BfvError::Budget { step: "masking phases", needed, available: widest });
        }
        Ok(Self { parameters: parameters.clone(), message_bits, bits, first_bits: bits, masks, switch })
    }

    /// How far `count` coefficients with this noise may be from ones that do not depend on it.
    #[must_use]
    pub fn distance(&self, count: usize, noise: NoiseBound) -> Distance {
        match self.masks {
            Masks::Uniform | Masks::Guarded | Masks::Prime(_) => Distance::NONE,
            Masks::Flooded => Distance::of_bits(self.distance_bits(count, noise)),
        }
    }

    fn distance_bits(&self, count: usize, noise: NoiseBound) -> f64 {
        f64::from(self.flood_bits())
            - shift_bits(count, switched(&self.parameters, noise, self.bits).deviation())
    }

    /// `b`: the flooding of a coefficient is a centred sum of three uniform integers below `2^b`.
    fn flood_bits(&self) -> u32 {
        self.bits - self.message_bits - 2
    }

    /// Bytes of a second half.
    #[must_use]
    pub fn second_half_len(&self) -> usize {
        wide_len(self.parameters.degree(), self.bits)
    }

    /// Bytes of `count` coefficients of a first half.
    #[must_use]
    pub fn c0_len(&self, count: usize) -> usize {
        wide_len(count, self.first_bits)
    }

    /// `round(2^w x / q) mod 2^w` for all coefficients of `poly`, to within one.
    fn residues(&self, poly: &Poly<Coeff>) -> Zeroizing<Vec<u128>> {
        Zeroizing::new(if self.bits <= NARROW {
            self.switch.residues(poly, self.bits).iter().map(|value| u128::from(*value)).collect()
        } else {
            (0..self.parameters.degree()).map(|i| self.switch.residue(poly, i, self.bits)).collect()
        })
    }

    /// What is added to a first half before its low bits are cut: the middle of the noise's room, and half a unit of what is left.
    const fn centre(&self) -> u128 {
        match self.masks {
            Masks::Uniform | Masks::Flooded | Masks::Prime(_) => 0,
            Masks::Guarded => {
                let cut = self.bits - self.first_bits;
                (1 << (self.bits - self.message_bits - 1)) + ((1 << cut) >> 1)
            }
        }
    }

    /// Fresh masks; constant time.
    fn draw(&self, count: usize, random: &mut Prg) -> Zeroizing<Vec<u128>> {
        let words = if self.masks == Masks::Flooded { 4 } else { 1 };
        let mut bytes = Zeroizing::new(vec![0; count * words * WORD]);
        random.fill_bytes(&mut bytes);
        let draw = |bytes: &[u8]| {
            let uniform = |word: usize, bits: u32| {
                let mut uniform = [0; WORD];
                uniform.copy_from_slice(&bytes[word * WORD..(word + 1) * WORD]);
                u128::from_le_bytes(uniform) & mask(bits)
            };
            match self.masks {
                Masks::Uniform | Masks::Guarded | Masks::Prime(_) => uniform(0, self.mask_bits()),
                Masks::Flooded => {
                    let (message, bits) = (uniform(0, self.message_bits), self.flood_bits());
                    let flood = uniform(1, bits) + uniform(2, bits) + uniform(3, bits);
                    let centred = flood.wrapping_sub(3 << (bits - 1));
                    (message << (self.bits - self.message_bits)).wrapping_add(centred) & mask(self.bits)
                }
            }
        };
        Zeroizing::new(bytes.chunks_exact(words * WORD).map(draw).collect())
    }

    /// Bits of a mask: where shares are modulo a prime, more than of what it masks.
    const fn mask_bits(&self) -> u32 {
        self.bits + self.finer()
    }

    const fn finer(&self) -> u32 {
        if matches!(self.masks, Masks::Prime(_)) { FINER } else { 0 }
    }

    /// What is sent of coefficient `i` under a mask with [`FINER`] bits more.
    fn masked_finely(&self, poly: &Poly<Coeff>, i: usize, mask_of: u128) -> u128 {
        let sum = self.switch.residue(poly, i, self.mask_bits()) + mask_of + (1 << (FINER - 1));
        (sum >> FINER) & mask(self.bits)
    }

    /// The server's share that goes with a mask.
    fn share_of_mask(&self, mask_of: u128) -> u64 {
        let Masks::Prime(p) = self.masks else {
            return self.round(mask_of).wrapping_neg() & mask(self.message_bits) as u64;
        };
        let p = u128::from(p);
        // What is cut here is below a unit of what is cut there.
        let low = ((mask_of & mask(FINER)) * p) >> FINER;
        let rounded = ((mask_of >> FINER) * p + low + (1 << (self.bits - 1))) >> self.bits;
        below(p - rounded, p)
    }

    /// The share of a message that a phase or a mask gives: its rounding to `l` bits, or with a guard its high bits.
    fn round(&self, phase: u128) -> u64 {
        if let Masks::Prime(p) = self.masks {
            let p = u128::from(p);
            return below((phase * p + (1 << (self.bits - 1))) >> self.bits, p);
        }
        let shift = self.bits - self.message_bits;
        let half = if self.masks == Masks::Guarded { 0 } else { 1 << (shift - 1) };
        (((phase + half) >> shift) & mask(self.message_bits)) as u64
    }
}

impl Masks {
    /// Bits of `2^w / t` that the noise must stay below.
    const fn room_bits(self) -> f64 {
        match self {
            Self::Uniform | Self::Guarded | Self::Prime(_) => 1.0,
            // Three quarters of a half are the flooding's.
            Self::Flooded => 3.0,
        }
    }
}

impl PhaseSealing {
    /// Blinds and switches the second half of what was evaluated, whose first half is still to come: its bytes, and what is kept.
    ///
    /// `count` coefficients of the first half will be sent. `noise` must follow from the public architecture.
    ///
    /// # Errors
    /// [`BfvError::Underblinded`] if the ciphertext's noise exceeds `noise`; [`BfvError::Mismatch`] for other parameters.
    pub fn new(
        modulus: &PhaseModulus,
        ciphertext: &Ciphertext,
        key: &PublicKey,
        noise: NoiseBound,
        count: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Vec<u8>, Self), BfvError> {
        modulus.parameters.check_same(key.parameters())?;
        Self::blinded(modulus, ciphertext, key.blind(rng), noise, count, rng)
    }

    /// As [`Self::new`], with this encryption of zero.
    fn blinded(
        modulus: &PhaseModulus,
        ciphertext: &Ciphertext,
        zero: Blind,
        noise: NoiseBound,
        count: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Vec<u8>, Self), BfvError> {
        noise.check_hides(ciphertext.noise)?;
        let Blind { first: mut zero, second: mut c1, error } = zero;
        if !ciphertext.c1.basis().same(zero.basis()) {
            return Err(BfvError::Mismatch { what: "ciphertext moduli" });
        }
        zero.add_assign(&ciphertext.c0);
        c1.add_assign(&ciphertext.c1);
        let mut c1 = c1.into_coeff();
        c1.add_assign(&error);
        let mut random = Prg::new(lanner_primitives::Seed::random(rng));
        let masks = modulus.draw(count, &mut random);
        let bytes = match modulus.bits {
            ..=NARROW => pack_bits(&modulus.switch.residues(&c1, modulus.bits), modulus.bits),
            _ => pack_wide(&modulus.residues(&c1), modulus.bits),
        };
        Ok((bytes, Self { modulus: modulus.clone(), noise: ciphertext.noise, announced: noise, zero, masks }))
    }

    /// Appends it. The bytes serve one ciphertext, as it does, and are as secret as the masks.
    pub fn encode(&self, writer: &mut Writer) {
        self.noise.encode(writer);
        write_poly(&self.zero, writer);
        writer.bytes(&Zeroizing::new(pack_wide(&self.masks, self.modulus.mask_bits())));
    }

    /// Reads what [`Self::encode`] wrote of a sealing with this bound and a given number of coefficients to come.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if bytes are missing, padding is set or a value is not below its modulus; [`BfvError::Underblinded`]
    /// if the noise exceeds the bound.
    pub fn decode(
        modulus: &PhaseModulus,
        announced: NoiseBound,
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Result<Self, BfvError> {
        let noise = NoiseBound::decode(reader)?;
        announced.check_hides(noise)?;
        let zero = read_poly(&modulus.parameters.basis(modulus.parameters.limbs()), reader)?;
        let masks = read_wide(reader, count, modulus.mask_bits())?;
        Ok(Self { modulus: modulus.clone(), noise, announced, zero, masks })
    }

    /// The server's shares modulo `2^l`, or the prime, of the coefficients that will be sent.
    #[must_use]
    pub fn shares(&self) -> Zeroizing<Vec<u64>> {
        Zeroizing::new(self.masks.iter().map(|mask_of| self.modulus.share_of_mask(*mask_of)).collect())
    }

    /// The bytes of the first half at these coefficients.
    ///
    /// # Errors
    /// [`BfvError::Underblinded`] if the noise may exceed what was announced; [`BfvError::Mismatch`] for another number of
    /// coefficients, or a half of other parameters.
    pub fn seal(self, half: &C0, coefficients: &[usize]) -> Result<Vec<u8>, BfvError> {
        if coefficients.len() != self.masks.len() || !half.c0.basis().same(self.zero.basis()) {
            return Err(BfvError::Mismatch { what: "what was prepared of a masked phase" });
        }
        self.announced.check_hides(self.noise.plus(half.noise))?;
        let mut c0 = half.c0.clone();
        c0.add_assign(&self.zero);
        let c0 = c0.into_coeff();
        let PhaseModulus { bits, first_bits, .. } = self.modulus;
        if let Masks::Prime(_) = self.modulus.masks {
            let sent = |(i, r): (&usize, &u128)| self.modulus.masked_finely(&c0, *i, *r);
            let masked: Vec<u128> = coefficients.iter().zip(self.masks.iter()).map(sent).collect();
            return Ok(pack_wide(&masked, bits));
        }
        let (switched, centre) = (self.modulus.residues(&c0), self.modulus.centre());
        let sent =
            |(i, r): (&usize, &u128)| ((switched[*i] + r + centre) & mask(bits)) >> (bits - first_bits);
        let masked: Vec<u128> = coefficients.iter().zip(self.masks.iter()).map(sent).collect();
        Ok(pack_wide(&masked, first_bits))
    }
}

impl CoefficientSealing {
    /// As [`PhaseSealing::new`], of coefficient `N - 1`, for shares modulo a prime.
    ///
    /// # Errors
    /// As [`PhaseSealing::new`]; [`BfvError::Mismatch`] for a modulus of other shares.
    pub fn new(
        modulus: &PhaseModulus,
        ciphertext: &Ciphertext,
        key: &PublicKey,
        noise: NoiseBound,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Vec<u8>, Self), BfvError> {
        let Masks::Prime(_) = modulus.masks else {
            return Err(BfvError::Mismatch { what: "a masked coefficient modulo a prime" });
        };
        let (second, mut sealing) = PhaseSealing::new(modulus, ciphertext, key, noise, 1, rng)?;
        let basis = sealing.zero.basis().clone();
        let zero = std::mem::replace(&mut sealing.zero, Poly::zero(&basis)).into_coeff();
        let zero = zero.limbs().map(|limb| limb[limb.len() - 1]).collect();
        Ok((second, Self { modulus: modulus.clone(), zero, mask: sealing.masks[0] }))
    }

    /// The server's share modulo the prime.
    #[must_use]
    pub fn share(&self) -> u64 {
        self.modulus.share_of_mask(self.mask)
    }

    /// The bytes of the coefficient, given that of what was evaluated of the first halves.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for other parameters.
    pub fn seal(self, last: &LastCoefficient) -> Result<Vec<u8>, BfvError> {
        let parameters = &self.modulus.parameters;
        if last.residues.len() != self.zero.len() {
            return Err(BfvError::Mismatch { what: "parameters" });
        }
        let mut poly = Poly::<Coeff>::zero(&parameters.basis(parameters.limbs()));
        let pairs = last.residues.iter().zip(&self.zero).zip(parameters.moduli());
        for (limb, ((last, zero), q)) in poly.limbs_mut().zip(pairs) {
            limb[0] = q.add(*last, *zero);
        }
        Ok(pack_wide(&[self.modulus.masked_finely(&poly, 0, self.mask)], self.modulus.bits))
    }

    /// Appends it. The bytes serve one ciphertext, as it does, and are as secret as the mask.
    pub fn encode(&self, writer: &mut Writer) {
        for (zero, q) in self.zero.iter().zip(self.modulus.parameters.moduli()) {
            writer.packed(&[*zero], q.bits());
        }
        writer.bytes(&Zeroizing::new(pack_wide(&[self.mask], self.modulus.mask_bits())));
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if bytes are missing, padding is set or a value is not below its modulus.
    pub fn decode(modulus: &PhaseModulus, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let mut zero = Vec::with_capacity(modulus.parameters.limbs());
        for q in modulus.parameters.moduli() {
            let [value] = reader.packed(1, q.bits())?[..] else { return Err(NO_COEFFICIENT.into()) };
            if value >= q.value() {
                return Err(NO_COEFFICIENT.into());
            }
            zero.push(value);
        }
        let mask = read_wide(reader, 1, modulus.mask_bits())?[0];
        Ok(Self { modulus: modulus.clone(), zero, mask })
    }
}

#[cfg(any(test, debug_assertions))]
impl PhaseSealing {
    /// The sealing with masks that are multiples of `2^w / t`, which leave the low bits of phases as they are: for tests that must notice.
    #[doc(hidden)]
    #[must_use]
    pub fn with_coarse_masks(mut self) -> Self {
        let low = mask(self.modulus.mask_bits() - self.modulus.message_bits);
        self.masks.iter_mut().for_each(|mask_of| *mask_of &= !low);
        self
    }
}

impl SecretKey {
    /// Prepares the opening of the coefficients that will come, by the second half that the server sent.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are a second half's; [`BfvError::Mismatch`] for other parameters.
    pub fn prepare_phase(
        &self,
        modulus: &PhaseModulus,
        c1: &[u8],
        coefficients: &[usize],
    ) -> Result<PreparedPhase, BfvError> {
        self.parameters().check_same(&modulus.parameters)?;
        let degree = modulus.parameters.degree();
        let c1 = unpack_wide(c1, degree, modulus.bits)?;
        // |c1 s| <= N 2^(w-1), which the limbs taken hold.
        let limbs =
            (1..=modulus.parameters.limbs()).find(|limbs| room(&modulus.parameters, *limbs) >= modulus.bits);
        let basis = modulus.parameters.basis(limbs.unwrap_or(modulus.parameters.limbs()));
        let mut lifted = Poly::<Coeff>::zero(&basis);
        // (c1 + 2^(w-1) mod 2^w) - 2^(w-1) is the centred representative.
        let half = 1 << (modulus.bits - 1);
        let shifted = c1.iter().map(|c1| c1.wrapping_add(half) & mask(modulus.bits));
        let words: Option<Vec<u64>> = shifted.clone().map(|value| u64::try_from(value).ok()).collect();
        for (limb, q) in lifted.limbs_mut().zip(basis.moduli()) {
            if let Some(words) = &words {
                q.reduce_slice(limb, words);
            } else {
                for (value, c1) in limb.iter_mut().zip(shifted.clone()) {
                    *value = q.reduce_u128(c1);
                }
            }
            let offset = q.reduce_u128(half);
            for value in limb {
                *value = q.sub(*value, offset);
            }
        }
        let mut product = lifted.into_eval();
        self.multiply(&mut product);
        let product = product.into_coeff();
        let products =
            coefficients.iter().map(|i| modulus.switch.centred(&product, *i) & mask(modulus.bits)).collect();
        Ok(PreparedPhase { modulus: modulus.clone(), products: Zeroizing::new(products) })
    }
}

impl PreparedPhase {
    /// Appends it. The bytes are as secret as the key: the server, which knows `c1`, can solve `c1 s` for it.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bytes(&Zeroizing::new(pack_wide(&self.products, self.modulus.bits)));
    }

    /// Reads what [`Self::encode`] wrote of a given number of coefficients.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if bytes are missing or padding is set.
    pub fn decode(modulus: &PhaseModulus, count: usize, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        Ok(Self { modulus: modulus.clone(), products: read_wide(reader, count, modulus.bits)? })
    }

    /// The client's shares modulo `2^l`, or the prime, of the coefficients prepared.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are those of a given number of coefficients.
    pub fn open(self, c0: &[u8]) -> Result<Zeroizing<Vec<u64>>, BfvError> {
        let PhaseModulus { bits, first_bits, .. } = self.modulus;
        let values = unpack_wide(c0, self.products.len(), first_bits)?;
        let phases = values.iter().zip(self.products.iter());
        let share = |(c0, product): (&u128, &u128)| {
            self.modulus.round((c0 << (bits - first_bits)).wrapping_add(*product) & mask(bits))
        };
        Ok(Zeroizing::new(phases.map(share).collect()))
    }
}

/// A value of at most `p`, modulo `p`.
const fn below(value: u128, p: u128) -> u64 {
    // All bits, unless `value - p` borrows.
    let is_p = (value.wrapping_sub(p) >> 127).wrapping_sub(1);
    (value - (p & is_p)) as u64
}

/// The noise after blinding and switching to `2^bits`.
fn switched(parameters: &Parameters, noise: NoiseBound, bits: u32) -> NoiseBound {
    let blinded = noise.plus(NoiseBound::public_key(parameters));
    let scale = (f64::from(bits) - parameters.log2_modulus(parameters.limbs())).exp2();
    blinded.multiplied_by_norm(scale).rescaled(parameters)
}

/// The widest modulus whose products with ternary polynomials the limbs hold.
fn room(parameters: &Parameters, limbs: usize) -> u32 {
    let degree = (parameters.degree() as f64).log2();
    (parameters.log2_modulus(limbs) - degree).floor() as u32
}

fn widest(parameters: &Parameters) -> u32 {
    room(parameters, parameters.limbs()).min(2 * PLANE)
}

/// Values of up to 112 bits: the low 56 bits of all, then the others'.
fn pack_wide(values: &[u128], bits: u32) -> Vec<u8> {
    let plane = |shift: u32, bits: u32| {
        let words = values.iter().map(|value| (value >> shift) as u64 & mask(bits) as u64);
        let words = Zeroizing::new(words.collect::<Vec<_>>());
        Zeroizing::new(pack_bits(&words, bits))
    };
    let low = plane(0, bits.min(PLANE));
    let high = if bits > PLANE { plane(PLANE, bits - PLANE) } else { Zeroizing::default() };
    [low.as_slice(), &high].concat()
}

/// Secrets that were written by [`pack_wide`].
fn read_wide(reader: &mut Reader<'_>, count: usize, bits: u32) -> Result<Zeroizing<Vec<u128>>, BfvError> {
    let bytes = reader.bytes(wide_len(count, bits))?;
    Ok(Zeroizing::new(unpack_wide(bytes, count, bits)?))
}

fn unpack_wide(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u128>, BfvError> {
    if bits <= PLANE {
        return Ok(unpack_bits(bytes, count, bits)?.into_iter().map(u128::from).collect());
    }
    let (low, high) = bytes.split_at(packed_len(count, PLANE).min(bytes.len()));
    let low = unpack_bits(low, count, PLANE)?.into_iter().map(u128::from);
    let high = unpack_bits(high, count, bits - PLANE)?;
    Ok(low.zip(high).map(|(low, high)| low | u128::from(high) << PLANE).collect())
}

fn wide_len(count: usize, bits: u32) -> usize {
    packed_len(count, bits.min(PLANE)) + if bits > PLANE { packed_len(count, bits - PLANE) } else { 0 }
}

/// Bytes of a uniform value.
const WORD: usize = size_of::<u128>();
/// Bits of the first part of wide values.
const PLANE: u32 = 56;
/// The most bits of a message, the guard below it included.
const MESSAGE_BITS: u32 = 45;
const NO_COEFFICIENT: DecodeError =
    DecodeError::Invalid { what: "coefficient: a value is not below its modulus" };
/// The most bits of a prime that shares are modulo.
const PRIME_BITS: u32 = 26;
/// Bits of masks below what is sent, where shares are modulo a prime.
const FINER: u32 = 24;
/// Bits beyond the least that are tried where a first half may then have fewer.
const WIDER: u32 = 3;
/// Bits beyond the message's that leave shares off by one for one value in some hundreds.
const FAITHFUL_BITS: u32 = 12;

#[cfg(test)]
mod tests;
