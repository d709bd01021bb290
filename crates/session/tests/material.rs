//! Material that was bytes in between: the same prediction by the same messages, and no other bytes are taken for it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use lanner_network::{Network, Policy};
use lanner_plan::{Mode, Plan, plan};
use lanner_session::executor::{ClientPlan, ExecutionError, PartyPlan, Prepared, ServedModel};
use lanner_step::PartyState;
use lanner_tabula as tabula;
use lanner_transfers::Rounding;
use lanner_wire::DecodeError;
use rand_core::Rng;

use crate::common::{Digested, in_rings_of, network, rng, session, session_keeping};
use crate::{matrices, packed, reveal_saturation, select};

const IDENTITY: [u8; 32] = [7; 32];

const IMAGES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu"]},
    {"name":"flat","op":"Flatten","inputs":["pool"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["flat"]},
    {"name":"leaky","op":{"LeakyRelu":{"alpha":0.1}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["leaky"]}],"output":"fc2"}"#;
const IMAGES_SHAPES: [(&str, &[usize]); 5] =
    [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[18, 8]), ("w3", &[8, 4]), ("b3", &[4])];

const SQUARES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
    {"name":"square1","op":"Square","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["square1"]},
    {"name":"square2","op":"Mul","inputs":["fc2","fc2"]},
    {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["square2"]}],"output":"fc3"}"#;
const SQUARES_SHAPES: [(&str, &[usize]); 5] =
    [("w1", &[20, 12]), ("b1", &[12]), ("w2", &[12, 8]), ("b2", &[8]), ("w3", &[8, 4])];

const MATRICES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
    {"name":"left","op":{"Reshape":{"shape":[1,3,4]}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["x"]},
    {"name":"right","op":{"Reshape":{"shape":[1,4,2]}},"inputs":["fc2"]},
    {"name":"product","op":"MatrixProduct","inputs":["left","right"]},
    {"name":"flat","op":"Flatten","inputs":["product"]},
    {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"fc3"}"#;
const MATRICES_SHAPES: [(&str, &[usize]); 5] =
    [("w1", &[20, 12]), ("b1", &[12]), ("w2", &[20, 8]), ("b2", &[8]), ("w3", &[6, 4])];

const EXACT: Mode = Mode::Cheetah(Rounding::Exact);
const FAITHFUL: Mode = Mode::Cheetah(Rounding::Faithful);
const STOCHASTIC: Mode = Mode::Tabula(tabula::Rounding::Stochastic);

/// The network over the rings of a mode.
fn of_mode(json: &str, shapes: &[(&str, &[usize])], mode: Mode) -> (Network, Vec<i64>) {
    let options = in_rings_of(mode);
    let inputs = if json == IMAGES { 36 } else { 20 };
    let (network, samples) = network(json, shapes, inputs, &options);
    let input = network.public().input().quantize(&samples[0]).unwrap();
    (network, input)
}

/// Each in turn: network, mode, policy.
fn plans() -> Vec<(Network, Vec<i64>, Plan)> {
    let probability = Policy::Probability { digits: 2 };
    let at_places = Policy::LabelMap { places: 2 };
    let policies =
        [Policy::Label, at_places, Policy::Labels, Policy::TopK { k: 2 }, probability, Policy::Logits];
    let images = [Mode::Gazelle, EXACT].into_iter().flat_map(|mode| policies.map(|policy| (mode, policy)));
    let images =
        images.chain([(Mode::Falcon, Policy::Label), (FAITHFUL, Policy::Label), (STOCHASTIC, Policy::Label)]);
    let images = images.map(|(mode, policy)| (IMAGES, &IMAGES_SHAPES, mode, policy));
    let squares = [Mode::Gazelle, Mode::Falcon, EXACT];
    let squares = squares.map(|mode| (SQUARES, &SQUARES_SHAPES, mode, Policy::Logits));
    let matrices = [Mode::Gazelle, EXACT].map(|mode| (MATRICES, &MATRICES_SHAPES, mode, Policy::Logits));
    let made = images.chain(squares).chain(matrices).map(|(json, shapes, mode, policy)| {
        let (network, input) = of_mode(json, shapes, mode);
        let plan = plan(network.public(), policy, mode).unwrap();
        (network, input, plan)
    });
    let picks = [EXACT, Mode::Tabula(tabula::Rounding::Exact)].map(select::example);
    made.chain(picks)
        .chain([reveal_saturation::example(Mode::Gazelle), matrices::example(), packed::example()])
        .collect()
}

/// The material as it comes back from its bytes, by a plan that was made anew.
fn through<P: PartyState>(prepared: Prepared, plan: &PartyPlan<P>) -> Prepared {
    let bytes = prepared.encode(plan, &IDENTITY).unwrap();
    let decoded = plan.decode(bytes.as_bytes(), &IDENTITY).unwrap();
    let again = decoded.encode(plan, &IDENTITY).unwrap();
    assert!(again.as_bytes() == bytes.as_bytes());
    plan.decode(again.as_bytes(), &IDENTITY).unwrap()
}

#[test]
fn kept_material_makes_the_same_prediction_by_the_same_bytes() {
    let mut protocols = BTreeSet::new();
    for (network, input, plan) in plans() {
        protocols.extend(plan.steps().map(|step| step.protocol.name()));
        let (channel, outcome, _) = session(&network, &plan, &input, Digested::new);
        let client = ClientPlan::new(network.public(), &plan).unwrap();
        let server = ServedModel::new(&network, &plan).unwrap();
        let (kept_channel, kept_outcome, _) = session_keeping(
            &network,
            &plan,
            &input,
            Digested::new,
            |prepared| through(prepared, &client),
            |prepared| through(prepared, &server),
        );
        assert_eq!(kept_outcome, outcome);
        assert_eq!(kept_channel.digests(), channel.digests());
    }
    let with_material = [
        "cheetah.conv",
        "cheetah.matrices",
        "falcon.conv",
        "falcon.softmax",
        "gazelle.conv",
        "gazelle.square",
        "gazelle.square_fc",
        "ot.activation",
        "ot.matrices",
        "ot.select",
        "ot.select_ahead",
        "ot.square",
        "share.reshare",
        "yao.activation",
        "yao.argmax",
        "yao.top_k",
    ];
    for name in with_material {
        assert!(protocols.contains(name), "{name} in {protocols:?}");
    }
}

/// Other bytes than those that were written, which are cut, longer, of another header, or changed anywhere.
fn attack<P: PartyState>(prepared: Prepared, plan: &PartyPlan<P>) -> Prepared {
    let bytes = prepared.encode(plan, &IDENTITY).unwrap().as_bytes().to_vec();
    let refused = |bytes: &[u8]| plan.decode(bytes, &IDENTITY).err().unwrap();
    let lengths = (0..40).chain((40..bytes.len()).step_by(bytes.len() / 50)).chain([bytes.len() - 1]);
    for length in lengths {
        let error = refused(&bytes[..length]);
        assert!(
            matches!(error, ExecutionError::Material(DecodeError::Truncated { .. })),
            "{length}: {error}"
        );
    }
    for more in [1, 1000] {
        let error = refused(&[&bytes[..], &vec![0; more]].concat());
        assert!(matches!(error, ExecutionError::Material(DecodeError::Trailing { left }) if left == more));
    }
    for (place, what) in [(0, "version"), (4, "party"), (5, "plan"), (36, "plan")] {
        let mut other = bytes.clone();
        other[place] ^= 1;
        let error = refused(&other);
        assert!(matches!(error, ExecutionError::OtherMaterial { what: w } if w == what), "{error}");
    }
    assert!(plan.decode(&bytes, &[8; 32]).is_err());
    let mut random = rng(3);
    for _ in 0..200 {
        let mut other = bytes.clone();
        for _ in 0..=random.next_u32() % 3 {
            let place = random.next_u64() as usize % bytes.len();
            other[place] = random.next_u32() as u8;
        }
        // Whether it is refused or read: masks and shares may be any numbers.
        let _ = plan.decode(&other, &IDENTITY);
    }
    plan.decode(&bytes, &IDENTITY).unwrap()
}

#[test]
fn other_bytes_are_refused_and_nothing_panics() {
    let policy = Policy::Probability { digits: 2 };
    let images = [Mode::Gazelle, Mode::Falcon, EXACT].map(|mode| (IMAGES, &IMAGES_SHAPES, mode));
    let products = [(SQUARES, &SQUARES_SHAPES, Mode::Gazelle), (MATRICES, &MATRICES_SHAPES, EXACT)];
    for (json, shapes, mode) in images.into_iter().chain(products) {
        let (network, input) = of_mode(json, shapes, mode);
        let plan = plan(network.public(), policy, mode).unwrap();
        let client = ClientPlan::new(network.public(), &plan).unwrap();
        let server = ServedModel::new(&network, &plan).unwrap();
        let attacked = Mutex::new(0);
        let count = || *attacked.lock().unwrap() += 1;
        session_keeping(
            &network,
            &plan,
            &input,
            |channel| channel,
            |prepared| {
                count();
                attack(prepared, &client)
            },
            |prepared| {
                count();
                attack(prepared, &server)
            },
        );
        assert_eq!(*attacked.lock().unwrap(), 2);
    }
}

/// What a seed of it gave was something else in another build.
#[test]
fn material_of_a_checked_client_has_a_version_of_its_own() {
    fn other_version<P: PartyState>(prepared: Prepared, plan: &PartyPlan<P>) -> Prepared {
        let bytes = prepared.encode(plan, &IDENTITY).unwrap().as_bytes().to_vec();
        let mut other = bytes.clone();
        other[HEADER] ^= 1;
        let error = plan.decode(&other, &IDENTITY).err().unwrap();
        assert!(error.to_string().contains("version"), "{error}");
        plan.decode(&bytes, &IDENTITY).unwrap()
    }
    let (network, input) = of_mode(IMAGES, &IMAGES_SHAPES, Mode::Hardened);
    let plan = plan(network.public(), Policy::Label, Mode::Hardened).unwrap();
    let client = ClientPlan::new(network.public(), &plan).unwrap();
    let server = ServedModel::new(&network, &plan).unwrap();
    let (at_client, at_server) = (|made| other_version(made, &client), |made| other_version(made, &server));
    session_keeping(&network, &plan, &input, |channel| channel, at_client, at_server);
}

/// Bytes of version, party and identity.
const HEADER: usize = 37;
