//! Attacks by a client that keeps all its keys and looks at what a layer sends. Each works on a server that leaves out a
//! protection, so that the tests would notice, and fails on the real one.

use lanner_bfv::function_privacy::{Defect, SealedC0, SealedC1, Sealing};
use lanner_bfv::halves::{C0, C1, Permutations};
use lanner_bfv::{Blinding, Ciphertext, Multiplier, SlotEncoder};
use lanner_packed::gazelle::packing::Packing;
use lanner_packed::gazelle::scheme::evaluate;
use lanner_packed::gazelle::{ClientLayer, EncryptedSlots, FirstHalfSlots, ServerLayer, output_noise};
use lanner_primitives::{Ring, Share};
use lanner_ring::Ntt;
use lanner_step::{Answering, Convolution, galois_element};
use lanner_testkit::{chi_square_limit, mean_and_variance, sum_of_three_uniform, uniform_chi_square};
use lanner_wire::{Encode, pack_bits, unpack_bits};
use rand_core::Rng;

use crate::common::{Party, Session, rng, signed};

/// A layer, and the client's keys for it.
struct Setting {
    packing: Packing,
    encoder: SlotEncoder,
    session: Session,
    prime: u64,
}

/// What a layer sends: the second half and the first half of its one output, and the seed that the client announced.
struct Sent {
    seed: Vec<u8>,
    second: Vec<u8>,
    first: Vec<u8>,
}

impl Setting {
    fn new(shape: &Convolution, prime: u64) -> Self {
        let packing = Packing::new(shape, 8192, 1).unwrap();
        let session = Session::new([&packing]);
        Self { encoder: SlotEncoder::new(&session.parameters, prime).unwrap(), packing, session, prime }
    }

    fn multipliers(&self, weights: &[i64]) -> Vec<Multiplier> {
        let ring = Ring::Prime(self.prime);
        let encode = |index| {
            let slots = self.packing.weighting(index, weights).into_slots(8192);
            let slots: Vec<u64> = slots.into_iter().map(|weight| ring.embed(weight)).collect();
            self.encoder.multiplier(&slots).unwrap()
        };
        (0..self.packing.multipliers()).map(encode).collect()
    }

    /// The layer applied to the second half of a seed.
    fn evaluate(&self, weights: &[i64], seed: &[u8]) -> Ciphertext {
        let input = C1::from_bytes(seed).unwrap().expand(&self.session.parameters);
        let scheme = EncryptedSlots::new(&self.session.parameters, &self.session.keys().evaluation);
        evaluate(&scheme, &self.packing, &self.multipliers(weights), &[input]).unwrap().pop().unwrap()
    }

    fn blinding(&self, defect: Option<Defect>, seed: u8) -> Blinding {
        let noise = output_noise(&self.packing, &self.session.parameters, self.prime).unwrap();
        let modulus = self.encoder.modulus();
        let blinding =
            Blinding::prepare(modulus, &self.session.keys().public, noise, &mut rng(seed)).unwrap();
        match defect {
            Some(defect) => blinding.broken(defect),
            None => blinding,
        }
    }

    /// What the real server sends.
    fn sent(&mut self, weights: &[i64]) -> Sent {
        let client = ClientLayer::new(&self.packing, &self.session.parameters, self.prime).unwrap();
        let shape = self.packing.shape();
        let bias = vec![0; shape.outputs().unwrap()];
        let server = Answering(
            ServerLayer::new(self.packing.clone(), &self.session.parameters, self.prime, weights, &bias)
                .unwrap(),
        );
        let share = Share::random(Ring::Prime(self.prime), shape.inputs(), &mut rng(3));
        let mut channels = Party::pair();
        self.session.run(&mut channels, (&client, &server), (&share, &share), [1, 2], false);
        Sent {
            seed: channels.0.sent_of(0x42)[0].to_vec(),
            second: channels.1.sent_of(0x43)[0].to_vec(),
            first: channels.1.sent_of(0x41)[0].to_vec(),
        }
    }

    /// What a server sends that leaves out a protection.
    fn sent_without(&self, defect: Defect, weights: &[i64]) -> Sent {
        let (half, prepared) = self.session.secret().prepare_encryption(&mut rng(1));
        let ring = Ring::Prime(self.prime);
        let encode = |seed| self.encoder.encode(Share::random(ring, 8192, &mut rng(seed)).values()).unwrap();
        let ahead = self.evaluate(weights, &half.to_bytes());
        let (second, sealing) = Sealing::new(&ahead, self.blinding(Some(defect), 2), &encode(4)).unwrap();
        let first: C0 = prepared.encrypt(&encode(3)).unwrap();
        let element = |rotation| galois_element(rotation, 8192).unwrap();
        let elements: Vec<_> = self.packing.keys().into_iter().map(element).collect();
        let permutations = Permutations::new(&self.session.parameters, &elements).unwrap();
        let scheme = FirstHalfSlots::new(&self.session.parameters, &permutations);
        let outputs = evaluate(&scheme, &self.packing, &self.multipliers(weights), &[first]).unwrap();
        let first = sealing.seal(&outputs[0]).unwrap();
        Sent { seed: half.to_bytes(), second: second.to_bytes(), first: first.to_bytes() }
    }

    /// Every weight vector of the given ones that explains the second half that was sent.
    fn explanations<'w>(&self, sent: &Sent, candidates: &'w [[i64; 2]]) -> Vec<&'w [i64; 2]> {
        let mask = self.encoder.encode(&vec![0; 8192]).unwrap();
        let explains = |weights: &&[i64; 2]| {
            let ahead = self.evaluate(*weights, &sent.seed);
            let blinding = self.blinding(Some(Defect::NoEncryptionOfZero), 7);
            Sealing::new(&ahead, blinding, &mask).unwrap().0.to_bytes() == sent.second
        };
        candidates.iter().filter(explains).collect()
    }

    /// The ternary secret, as its owner can read it out: the decryption of `round(q / t) X^0` in the second half.
    fn secret(&self) -> Vec<i64> {
        let q = self.session.parameters.moduli()[0];
        let modulus = self.encoder.modulus();
        let zero = pack_bits(&vec![0; 8192], q.bits());
        let mut step = vec![0; 8192];
        step[0] = (q.value() + self.prime / 2) / self.prime;
        let second = SealedC1::from_bytes(modulus, &pack_bits(&step, q.bits())).unwrap();
        let first = SealedC0::from_bytes(modulus, &zero).unwrap();
        let message = self.session.secret().prepare_decryption(second).unwrap().decrypt(&first).unwrap();
        message.coefficients().iter().map(|s| Ring::Prime(self.prime).signed(*s)).collect()
    }

    /// The noise that the owner of the secret finds in what was sent.
    fn residual(&self, sent: &Sent) -> Vec<f64> {
        let q = self.session.parameters.moduli()[0];
        let ntt = Ntt::new(&q, 8192).unwrap();
        let mut s: Vec<u64> = self.secret().into_iter().map(|s| q.reduce_signed(s)).collect();
        let mut phase = unpack_bits(&sent.second, 8192, q.bits()).unwrap();
        ntt.forward(&mut s);
        ntt.forward(&mut phase);
        q.mul_assign_slice(&mut phase, &s);
        ntt.inverse(&mut phase);
        q.add_assign_slice(&mut phase, &unpack_bits(&sent.first, 8192, q.bits()).unwrap());
        let (q, t) = (i128::from(q.value()), i128::from(self.prime));
        let residual = |x: u64| {
            // x - round(q m / t) with m = round(t x / q), on odd moduli.
            let m = (2 * t * i128::from(x) + q) / (2 * q);
            (i128::from(x) - (2 * q * m + t) / (2 * t)) as f64
        };
        phase.into_iter().map(residual).collect()
    }
}

#[test]
fn weights_are_found_from_c1_without_the_encryption_of_zero_and_not_with_it() {
    let mut setting = Setting::new(&Convolution::fully_connected(2, 1), 1_032_193);
    let weights = [3, -2];
    let candidates: Vec<[i64; 2]> = (-3..4).flat_map(|a| (-3..4).map(move |b| [a, b])).collect();
    let broken = setting.sent_without(Defect::NoEncryptionOfZero, &weights);
    assert_eq!(
        setting.explanations(&broken, &candidates),
        [&weights],
        "the attack works on the broken server"
    );
    let sent = setting.sent(&weights);
    assert!(setting.explanations(&sent, &candidates).is_empty(), "the attack works on the real server");
}

const BINS: usize = 64;

#[test]
fn residual_noise_is_the_flooding_whatever_the_weights_and_its_absence_is_noticed() {
    let shape = Convolution::fully_connected(8, 4);
    let mut setting = Setting::new(&shape, 1_032_193);
    let largest = (setting.prime as i64 - 1) / 2;
    for weights in [vec![0; 32], vec![largest; 32], signed(32, largest, &mut rng(5))] {
        let budget = setting.blinding(None, 6).budget();
        let parameters = &setting.session.parameters;
        let dropped = parameters.log2_modulus(budget.flood_limbs()) - parameters.log2_modulus(1);
        let width = (f64::from(budget.flood_bits()) - dropped).exp2();
        let sent = setting.sent(&weights);
        let residual = setting.residual(&sent);
        let mut counts = [0; BINS];
        for e in &residual {
            assert!(e.abs() <= 1.5 * width + 16.0, "noise beyond the flooding");
            let bin = (sum_of_three_uniform(e / width) * BINS as f64) as usize;
            counts[bin.min(BINS - 1)] += 1;
        }
        assert!(uniform_chi_square(&counts) < chi_square_limit(BINS - 1));
        let broken = setting.residual(&setting.sent_without(Defect::NoFlooding, &weights));
        let (flooded, bare) = (mean_and_variance(&residual).1, mean_and_variance(&broken).1);
        assert!(bare < flooded / 1e6, "a server without flooding looks like one with it: {bare} {flooded}");
    }
}

/// The second convolution of the paper's network D, with plaintexts whose coefficients are all as large as they can be.
#[test]
fn measured_noise_of_the_largest_weights_is_below_its_bound() {
    let shape = Convolution {
        in_channels: 16,
        out_channels: 16,
        image: [12, 12],
        kernel: [5, 5],
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    };
    for prime in [1_032_193, 137_438_822_401] {
        let setting = Setting::new(&shape, prime);
        let (parameters, encoder) = (&setting.session.parameters, &setting.encoder);
        let mut rng = rng(8);
        let worst = |rng: &mut lanner_primitives::Prg, random: bool| {
            let edge = |bit: bool| if bit { prime / 2 } else { prime / 2 + 1 };
            let coefficients = (0..8192).map(|_| edge(!random || rng.next_u64() & 1 == 1)).collect();
            let plaintext = lanner_bfv::Plaintext::new(encoder.modulus(), coefficients).unwrap();
            encoder.multiplier(&encoder.decode(&plaintext).unwrap()).unwrap()
        };
        for random in [false, true] {
            // One multiplier for all terms keeps the test small; nothing cancels.
            let multiplier = worst(&mut rng, random);
            let multipliers = vec![multiplier; setting.packing.multipliers()];
            let slots = Share::random(Ring::Prime(prime), 8192, &mut rng);
            let message = encoder.encode(slots.values()).unwrap();
            let fresh = setting.session.secret().encrypt(&message, &mut rng).unwrap().expand();
            let input = lanner_bfv::Evaluator::new(parameters).add_plain(&fresh, &message).unwrap();
            let scheme = EncryptedSlots::new(parameters, &setting.session.keys().evaluation);
            let output = evaluate(&scheme, &setting.packing, &multipliers, &[input]).unwrap().pop().unwrap();
            let bound = output_noise(&setting.packing, parameters, prime).unwrap();
            let measured = setting.session.secret().noise_bits(&output, encoder.modulus()).unwrap();
            let limit = bound.infinity(8192).log2();
            assert!(measured < limit, "{measured} bits, bound {limit}");
            assert!(output.noise().deviation() <= bound.deviation() * (1.0 + 1e-9));
            assert!(measured > limit - 16.0, "the bound is far off: {measured} bits, bound {limit}");
        }
    }
}
