//! No kernel shows more than its shape: transcripts are alike whatever the weights and inputs, every slot of every output is
//! uniform to the client, and only the kernel that is named a baseline leaves partial sums for the mask to hide at the border.

use std::collections::BTreeSet;

use lanner_bfv::SlotEncoder;
use lanner_bfv::function_privacy::{SealedC0, SealedC1};
use lanner_packed::gazelle::packing::{Packing, Weighting};
use lanner_packed::gazelle::{ClientLayer, Kernel, ServerLayer};
use lanner_primitives::{Ring, Share};
use lanner_step::{Answering, Convolution};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

use crate::common::{Party, Session};

const P: u64 = 1_032_193;
const BINS: usize = 64;

/// The kinds and lengths of what each party sends.
type Transcript = [Vec<(u16, usize)>; 2];

/// Runs a layer with equal weights and equal inputs; returns the transcript and all slots that the client can decrypt.
fn observe(packing: &Packing, session: &mut Session, weight: i64, input: i64) -> (Transcript, Vec<Vec<u64>>) {
    let encoder = SlotEncoder::new(&session.parameters, P).unwrap();
    let client = ClientLayer::new(packing, &session.parameters, P).unwrap();
    let shape = packing.shape();
    let (weights, bias) = (vec![weight; shape.weights()], vec![0; shape.outputs().unwrap()]);
    let server =
        Answering(ServerLayer::new(packing.clone(), &session.parameters, P, &weights, &bias).unwrap());
    let share = Share::embed(Ring::Prime(P), &vec![input; packing.inputs()]);
    let nothing = Share::zero(Ring::Prime(P), packing.inputs());
    let mut channels = Party::pair();
    session.run(&mut channels, (&client, &server), (&share, &nothing), [1, 2], false);
    let decrypt = |(first, second): (&[u8], &[u8])| {
        let second = SealedC1::from_bytes(encoder.modulus(), second).unwrap();
        let first = SealedC0::from_bytes(encoder.modulus(), first).unwrap();
        let prepared = session.secret().prepare_decryption(second).unwrap();
        encoder.decode(&prepared.decrypt(&first).unwrap()).unwrap()
    };
    let halves = channels.1.sent_of(0x41).into_iter().zip(channels.1.sent_of(0x43));
    let slots = halves.map(decrypt).collect();
    let lengths = |party: &Party| party.sent.iter().map(|(kind, body)| (kind.0, body.len())).collect();
    ([lengths(&channels.0), lengths(&channels.1)], slots)
}

fn convolution(channels: [usize; 2], image: [usize; 2]) -> Convolution {
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image,
        kernel: [3, 3],
        strides: [1, 1],
        pads: [1; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

/// Every kernel whose outputs or partial sums lie in other places than those of the rest.
fn packings() -> Vec<Packing> {
    let of = |shape: &Convolution, kernel| Packing::of(shape, 8192, kernel).unwrap();
    let matrix = Convolution::fully_connected(64, 3);
    let image = convolution([3, 2], [20, 20]);
    vec![
        of(&matrix, Kernel::Naive),
        of(&matrix, Kernel::NaiveInputPacked),
        of(&matrix, Kernel::Diagonal),
        of(&matrix, Kernel::Hybrid),
        of(&image, Kernel::OneChannel),
        of(&image, Kernel::InputRotations),
        of(&image, Kernel::OutputRotationsPerInput),
        of(&image, Kernel::OutputRotations),
        of(&image, Kernel::Separable { baby: 1 }),
        of(&image, Kernel::PaddedSiso),
        of(&image, Kernel::Batched { images: 5 }),
        // Groups, and frames that overlap.
        of(&Convolution { groups: 4, ..convolution([4, 4], [20, 20]) }, Kernel::OutputRotations),
        of(&convolution([1, 1], [70, 70]), Kernel::Separable { baby: 1 }),
    ]
}

#[test]
fn transcripts_are_alike_and_every_slot_is_uniform_whatever_the_weights() {
    for packing in packings() {
        let mut session = Session::new([&packing]);
        let mut transcripts = Vec::new();
        for (weight, input) in [(0, 0), (127, 255), (-127, -255)] {
            let (transcript, outputs) = observe(&packing, &mut session, weight, input);
            assert_eq!(outputs.len(), packing.ciphertexts()[1]);
            let mut bins = [0; BINS];
            let slots = outputs.iter().flatten();
            slots.for_each(|slot| bins[(*slot * BINS as u64 / P) as usize] += 1);
            let kernel = packing.kernel();
            assert!(uniform_chi_square(&bins) < chi_square_limit(BINS - 1), "{kernel:?}, weights {weight}");
            transcripts.push(transcript);
        }
        assert!(transcripts.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", packing.kernel());
    }
}

#[test]
fn only_the_padded_kernel_weighs_slots_that_are_no_output() {
    let shape = convolution([1, 1], [20, 20]);
    for (kernel, leaks) in [(Kernel::PackedSiso, false), (Kernel::PaddedSiso, true)] {
        let packing = Packing::of(&shape, 8192, kernel).unwrap();
        let outputs: BTreeSet<usize> = packing.output_slots().into_iter().map(|(_, slot)| slot).collect();
        let weighs = |index: usize| {
            let weights = packing.weighting(index, &[1; 9]).into_slots(8192);
            weights.iter().enumerate().any(|(slot, weight)| *weight != 0 && !outputs.contains(&slot))
        };
        assert_eq!((0..packing.multipliers()).any(weighs), leaks, "{kernel:?}");
        // And where outputs lie tells the filter's size, which the packed kernel keeps to the layer's shape.
        let constant = matches!(packing.weighting(0, &[1; 9]), Weighting::Constant(_));
        assert_eq!(constant, leaks);
    }
    let choices = Kernel::choices(&shape, 1);
    assert!(!choices.contains(&Kernel::PaddedSiso), "a plan must not have it");
}

#[test]
fn messages_of_a_prediction_are_alike_for_filters_of_any_size_but_the_keys_of_a_session_are_not() {
    let of = |side: usize| {
        let shape = Convolution { kernel: [side; 2], pads: [side / 2; 4], ..convolution([3, 2], [20, 20]) };
        Packing::of(&shape, 8192, Kernel::InputRotations).unwrap()
    };
    let transcript = |packing: &Packing| observe(packing, &mut Session::new([packing]), 1, 1).0;
    let (small, large) = (of(3), of(5));
    assert_eq!(transcript(&small), transcript(&large));
    // So the size is public, as docs/threat-model.md says.
    assert!(small.keys().len() < large.keys().len());
}

#[test]
fn layouts_and_work_depend_on_the_shape_alone() {
    // A multiplier of zero weights is there like any other: nothing is left out for the weights' sake.
    for packing in packings() {
        let zero = vec![0; packing.shape().weights()];
        let one = vec![1; packing.shape().weights()];
        for index in 0..packing.multipliers() {
            let values = packing.weighting(index, &zero).into_slots(8192);
            assert!(values.iter().all(|weight| *weight == 0));
            let values = packing.weighting(index, &one).into_slots(8192);
            assert!(values.iter().any(|weight| *weight != 0), "{:?} {index}", packing.kernel());
        }
    }
}
