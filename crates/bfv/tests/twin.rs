//! Random programs give on ciphertexts what they give on clear slots, and their noise stays below the carried bound.

use crate::common::{self, Setting, rotated, set_b, swapped};
use lanner_bfv::{Ciphertext, EvaluationKeys};
use proptest::prelude::*;

const T: u64 = 114_689;
const STEPS: [isize; 3] = [1, 64, -5];

#[derive(Clone, Debug)]
enum Operation {
    AddInput,
    SubtractInput,
    AddPlain(u8),
    SubtractPlain(u8),
    MulPlain(u8),
    Rotate(usize),
    RotateHoisted(usize),
    SwapRows,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        Just(Operation::AddInput),
        Just(Operation::SubtractInput),
        any::<u8>().prop_map(Operation::AddPlain),
        any::<u8>().prop_map(Operation::SubtractPlain),
        any::<u8>().prop_map(Operation::MulPlain),
        (0..STEPS.len()).prop_map(Operation::Rotate),
        (0..STEPS.len()).prop_map(Operation::RotateHoisted),
        Just(Operation::SwapRows),
    ]
}

/// The clear twin of a ciphertext.
struct Clear(Vec<u64>);

impl Clear {
    fn zip(&mut self, other: &[u64], operation: impl Fn(u64, u64) -> u64) {
        for (x, y) in self.0.iter_mut().zip(other) {
            *x = operation(*x, *y) % T;
        }
    }
}

struct Machine {
    setting: Setting,
    keys: EvaluationKeys,
    input: (Clear, Ciphertext),
}

impl Machine {
    fn new(seed: u8) -> Self {
        let mut setting = Setting::new(set_b(), T, seed);
        let mut elements = STEPS.map(|steps| setting.evaluator.rotation(steps).unwrap()).to_vec();
        elements.push(setting.evaluator.row_swap().unwrap());
        let keys = setting.keys(&elements);
        let slots = setting.random();
        let ciphertext = setting.encrypt(&slots);
        Self { setting, keys, input: (Clear(slots), ciphertext) }
    }

    fn step(&self, state: &mut (Clear, Ciphertext), operation: &Operation) {
        let evaluator = &self.setting.evaluator;
        let plain = |seed: &u8| common::values(8192, T, &mut common::rng(*seed));
        let (clear, encrypted) = state;
        *encrypted = match operation {
            Operation::AddInput => {
                clear.zip(&self.input.0.0, |x, y| x + y);
                evaluator.add(encrypted, &self.input.1)
            }
            Operation::SubtractInput => {
                clear.zip(&self.input.0.0, |x, y| x + T - y);
                evaluator.sub(encrypted, &self.input.1)
            }
            Operation::AddPlain(seed) => {
                clear.zip(&plain(seed), |x, y| x + y);
                evaluator.add_plain(encrypted, &self.setting.encoder.encode(&plain(seed)).unwrap())
            }
            Operation::SubtractPlain(seed) => {
                clear.zip(&plain(seed), |x, y| x + T - y);
                evaluator.sub_plain(encrypted, &self.setting.encoder.encode(&plain(seed)).unwrap())
            }
            Operation::MulPlain(seed) => {
                clear.zip(&plain(seed), |x, y| x * y);
                evaluator.mul_plain(encrypted, &self.setting.encoder.multiplier(&plain(seed)).unwrap())
            }
            Operation::Rotate(i) => {
                clear.0 = rotated(&clear.0, STEPS[*i]);
                evaluator.rotate(encrypted, STEPS[*i], &self.keys)
            }
            Operation::RotateHoisted(i) => {
                clear.0 = rotated(&clear.0, STEPS[*i]);
                evaluator.hoist(encrypted).unwrap().rotate(STEPS[*i], &self.keys)
            }
            Operation::SwapRows => {
                clear.0 = swapped(&clear.0);
                evaluator.swap_rows(encrypted, &self.keys)
            }
        }
        .unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn programs_on_ciphertexts_equal_their_clear_twins(
        seed: u8,
        operations in proptest::collection::vec(operation(), 1..8),
    ) {
        let machine = Machine::new(seed);
        let mut state = (Clear(machine.input.0.0.clone()), machine.input.1.clone());
        let parameters = &machine.setting.parameters;
        for operation in &operations {
            machine.step(&mut state, operation);
            if state.1.noise().needed_bits(parameters, T) > parameters.log2_modulus(3) {
                // The bound no longer promises anything.
                break;
            }
            prop_assert!(machine.setting.decrypt(&state.1) == state.0.0, "after {:?}", operation);
            machine.setting.assert_noise(&state.1);
        }
    }
}
