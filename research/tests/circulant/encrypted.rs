//! The same on ciphertexts, with the keys of the rotations that an algorithm announces and no others.

use lanner_bfv::{Ciphertext, EvaluationKeys, NoiseBound, ParameterSet, SecretKey, SlotEncoder};
use lanner_primitives::{Prg, Seed};
use lanner_research::circulant::{
    BlockCirculant, Bounds, Counted, EncryptedSlots, HConv, Hfc, Rows, StackedRows,
};
use lanner_step::Convolution;
use lanner_step::Rotation;
use lanner_step::galois_element;

use crate::circulant::layers::{
    Client, check_hconv, check_hfc, check_rows, check_stacked, circulant, convolution, transform,
};

/// `1 mod 2^16`.
const T: u64 = 65_537;
const SET: ParameterSet = ParameterSet::B;

struct KeyHolder {
    secret: SecretKey,
    encoder: SlotEncoder,
    rng: Prg,
}

impl Client<EncryptedSlots<'_>> for KeyHolder {
    fn encrypt(&mut self, slots: &[u64]) -> Ciphertext {
        self.secret.encrypt(&self.encoder.encode(slots).unwrap(), &mut self.rng).unwrap().expand()
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<u64> {
        let (t, parameters) = (self.encoder.modulus(), self.encoder.modulus().parameters());
        // Whatever decrypts right has to be bound to.
        let room =
            parameters.log2_modulus(ciphertext.limbs()) - ciphertext.noise().needed_bits(parameters, T);
        assert!(room > 0.0, "{room} bits of room");
        assert!(
            self.secret.noise_bits(ciphertext, t).unwrap()
                < ciphertext.noise().infinity(parameters.degree()).log2()
        );
        self.encoder.decode(&self.secret.decrypt(ciphertext, t).unwrap()).unwrap()
    }
}

/// A client, and its keys for these rotations.
fn keys(rotations: &[Rotation]) -> (KeyHolder, EvaluationKeys) {
    let parameters = SET.parameters().unwrap();
    let mut rng = Prg::new(Seed::from_bytes([1; 16]));
    let secret = SecretKey::generate(&parameters, &mut rng);
    let elements: Vec<_> = rotations.iter().map(|r| galois_element(*r, SET.degree()).unwrap()).collect();
    let keys = EvaluationKeys::generate(&secret, &elements, &mut rng).unwrap();
    (KeyHolder { encoder: SlotEncoder::new(&parameters, T).unwrap(), secret, rng }, keys)
}

#[test]
fn circulant_layers_on_ciphertexts_equal_dense_products() {
    let slots = SET.degree();
    for [inputs, outputs, block] in [[845, 100, 4], [60, 70, 8], [200, 1100, 4]] {
        let layer = Hfc::new(inputs, outputs, block, slots).unwrap();
        let (mut client, keys) = keys(&layer.rotations());
        let scheme = EncryptedSlots::new(&client.encoder, &keys, SET.parameters().unwrap().limbs());
        check_hfc(&scheme, &mut client, &layer, [inputs, outputs, block, slots], T);
    }
}

#[test]
fn circulant_convolutions_on_ciphertexts_equal_dense_products() {
    let slots = SET.degree();
    for (shape, block) in [
        (convolution([10, 9], [7, 6], [4, 3], [2, 1]), 4),
        (convolution([40, 5], [14, 14], [6, 6], [2, 2]), 8),
    ] {
        let layer = HConv::new(&shape, block, slots).unwrap();
        let (mut client, keys) = keys(&layer.rotations());
        let scheme = EncryptedSlots::new(&client.encoder, &keys, SET.parameters().unwrap().limbs());
        check_hconv(&scheme, &mut client, &shape, [block, slots], T);
    }
}

#[test]
fn lolas_layers_on_ciphertexts_equal_dense_products() {
    let slots = SET.degree();
    let layer = StackedRows::new(120, 30, 8, slots).unwrap();
    let (mut client, keys) = keys(&layer.rotations());
    let scheme = EncryptedSlots::new(&client.encoder, &keys, 2);
    check_stacked(&scheme, &mut client, [120, 30, 8, slots], T);
}

#[test]
fn rows_on_ciphertexts_equal_dense_products() {
    let slots = SET.degree();
    let places: Vec<usize> = (0..100).map(|element| element % 8 * 1024 + element / 8).collect();
    let (mut client, keys) = keys(&Rows::new(&places, slots).unwrap().rotations());
    let scheme = EncryptedSlots::new(&client.encoder, &keys, 3);
    check_rows(&scheme, &mut client, &places, 3, slots, T);
}

#[test]
fn bounds_are_those_that_ciphertexts_carry() {
    let (parameters, shape) = (SET.parameters().unwrap(), Convolution::fully_connected(40, 20));
    let layer = Hfc::new(40, 20, 4, SET.degree()).unwrap();
    let weights = BlockCirculant::of(&shape, &circulant(&shape, 4, 3, 1000), 4).unwrap();
    let (mut client, keys) = keys(&layer.rotations());
    let (limbs, transform) = (parameters.limbs(), transform(T, 4));
    let scheme = EncryptedSlots::new(&client.encoder, &keys, limbs);
    let factors = layer.prepare(&scheme, &transform, &weights).unwrap();
    let x = client.encrypt(&vec![1; SET.degree()]);
    let result = layer.apply(&mut Counted::new(&scheme), &x, &factors).unwrap();
    let bounds = Bounds::new(&parameters, T, limbs);
    let factors = layer.prepare(&bounds, &transform, &weights).unwrap();
    let bound = layer.apply(&mut Counted::new(&bounds), &NoiseBound::fresh(), &factors).unwrap();
    assert_eq!(result[0].noise(), bound[0]);
}
