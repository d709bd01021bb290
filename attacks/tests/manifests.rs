//! Servers that describe another model than they serve, an impossible one, or none: refused before a key is made.

use std::time::{Duration, Instant};

use lanner::{Client, ClientConfig, Error, ErrorKind, Manifest};
use lanner_attacks::guard;
use lanner_attacks::live::{impostor, offer};
use lanner_attacks::models::{Subject, circuits, squares, transfers};
use lanner_attacks::script::End;
use lanner_local::reshare::{Reading, Reveal};
use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Item, Mode, Plan, Step, plan};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_session::handshake::Offer;
use lanner_transfers::Rounding;
use sha2::{Digest, Sha256};

/// What a client says of a server that makes this offer.
fn refusal(offer: Offer, pin_model: Option<String>) -> Error {
    let address = impostor(offer, Vec::new(), End::Silence);
    let config = ClientConfig { pin_model, timeout: Some(20.0), ..ClientConfig::plaintext(&address) };
    guard::bounded("an offer", move || Client::connect(&config)).err().expect("a client that refuses")
}

/// An offer of this manifest, under the commitment that it names.
fn offer_of(manifest: &Manifest) -> Offer {
    let commitment = manifest.commitment_bytes().unwrap();
    let mut offer = offer(&circuits());
    offer.model.commitment = commitment;
    offer.parameters = commitment;
    offer.manifest = manifest.to_json().unwrap().into_bytes();
    offer
}

/// The manifest with the commitment that its content has.
fn committed(mut manifest: Manifest) -> Manifest {
    manifest.commitment = String::new();
    let hash =
        Sha256::new_with_prefix("lanner model v1").chain_update(manifest.to_json().unwrap()).finalize();
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap();
    manifest.commitment = hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    manifest
}

fn manifest(subject: &Subject) -> Manifest {
    subject.model.manifest().clone()
}

/// A change of a manifest, in words.
type Change = (&'static str, fn(&mut Manifest));

/// Refused even if the commitment is that of the changed manifest.
fn assert_refused((what, change): &Change, of: &Subject, because: &str) {
    let mut changed = manifest(of);
    change(&mut changed);
    let error = refusal(offer_of(&committed(changed)), None);
    assert_eq!(error.kind, ErrorKind::Peer, "{what}: {error}");
    assert!(error.what.contains(because), "{what}: {error}");
}

#[test]
fn the_commitment_of_a_test_is_that_of_the_library() {
    let honest = manifest(&circuits());
    assert_eq!(committed(honest.clone()), honest);
}

#[test]
fn a_copied_commitment_over_another_manifest_is_refused() {
    guard::start();
    let (promised, other) = (manifest(&circuits()), manifest(&squares()));
    // The document names the pinned commitment; its content has another.
    let forged = Manifest { commitment: promised.commitment.clone(), ..other.clone() };
    let error = refusal(offer_of(&forged), Some(promised.commitment.clone()));
    assert_eq!(error.kind, ErrorKind::Peer);
    assert!(error.what.contains("commitment"), "{error}");
    // The greeting names the pinned commitment; the document is another's, whole.
    let mut offer = offer_of(&other);
    offer.model.commitment = promised.commitment_bytes().unwrap();
    let error = refusal(offer, Some(promised.commitment));
    assert!(error.what.contains("not the one announced"), "{error}");
}

#[test]
fn any_change_under_the_old_commitment_is_refused() {
    guard::start();
    let changes: [Change; 6] = [
        ("classes", |manifest| manifest.classes.as_mut().unwrap().swap(0, 1)),
        ("image", |manifest| manifest.image = Some(serde_json::json!({"channels": 3}))),
        ("weights", |manifest| manifest.weights = "0".repeat(64)),
        ("policy", |manifest| manifest.policy = Policy::Logits),
        ("name", |manifest| manifest.name.push('x')),
        ("mode", |manifest| manifest.mode.push('x')),
    ];
    let subject = circuits();
    for (what, change) in changes {
        let mut changed = manifest(&subject);
        change(&mut changed);
        let error = refusal(offer_of(&changed), None);
        assert!(error.what.contains("commitment"), "{what}: {error}");
    }
}

#[test]
fn a_plan_that_is_not_the_networks_own_is_refused() {
    guard::start();
    let changes: [Change; 7] = [
        ("nothing", |manifest| manifest.plan.items.clear()),
        ("no output", |manifest| drop(manifest.plan.items.pop())),
        ("a step twice", |manifest| manifest.plan.items.push(manifest.plan.items[0].clone())),
        ("a value of the future", |manifest| step(&mut manifest.plan.items[0]).inputs = vec![usize::MAX]),
        ("scores instead of a label", |manifest| {
            let last = step(manifest.plan.items.last_mut().unwrap());
            last.protocol = Protocol::Reveal(Reveal {
                values: 3,
                from: Ring::Prime(1_032_193),
                reading: Reading::Scores,
            });
        }),
        ("another policy", |manifest| manifest.policy = Policy::Logits),
        ("an unknown mode", |manifest| manifest.mode = "magic".to_owned()),
    ];
    for change in &changes {
        assert_refused(change, &circuits(), "plan");
    }
}

fn step(item: &mut Item) -> &mut Step {
    match item {
        Item::Step(step) => step,
        Item::Scan(scan) => &mut scan.body[0],
        Item::Repeat(repeated) => &mut repeated.body[0],
    }
}

/// A carry that the client's own share decides about may not show in scores, whether a server says that it plans so or not.
#[test]
fn faithful_steps_under_another_policy_than_label_are_refused() {
    guard::start();
    let subject = transfers();
    let faithful = Mode::Cheetah(Rounding::Faithful);
    let network = &subject.model.manifest().network;
    let labels = plan(network, Policy::Label, faithful).unwrap();
    for (mode, because) in [(faithful, "faithful rounding"), (Mode::Cheetah(Rounding::Exact), "plan")] {
        let mut changed = manifest(&subject);
        (changed.policy, changed.output) = (Policy::Logits, Policy::Logits.name().to_owned());
        let mut items = labels.items.clone();
        let last = step(items.last_mut().unwrap());
        let Protocol::YaoArgMax(arg_max) = &last.protocol else { panic!("another end of a plan") };
        last.protocol = Protocol::Reveal(Reveal { values: 3, from: arg_max.from, reading: Reading::Scores });
        changed.plan = Plan { mode, policy: Policy::Logits, items, ..labels.clone() };
        let error = refusal(offer_of(&committed(changed)), None);
        assert_eq!(error.kind, ErrorKind::Peer, "{error}");
        assert!(error.to_string().contains(because), "{error}");
    }
}

#[test]
fn a_plan_with_impossible_numbers_is_refused() {
    guard::start();
    let primes: [u64; 4] = [0, 1, 4, u64::MAX];
    for prime in primes {
        let mut changed = manifest(&circuits());
        for item in &mut changed.plan.items {
            match &mut step(item).protocol {
                Protocol::Yao(activation) => {
                    (activation.from, activation.to) = (Ring::Prime(prime), Ring::Prime(prime));
                }
                Protocol::GazelleLinear(linear) => linear.prime = prime,
                Protocol::Reshare(reshare) => reshare.ring = Ring::Prime(prime),
                _ => {}
            }
        }
        let error = refusal(offer_of(&committed(changed)), None);
        assert!(error.what.contains("plan"), "{error}");
    }
}

#[test]
fn a_description_that_is_not_the_networks_is_refused() {
    guard::start();
    let changes: [Change; 6] = [
        ("a label promised, scores planned", |manifest| manifest.output = "logits".to_owned()),
        ("an unknown output", |manifest| manifest.output = "nothing".to_owned()),
        ("another shape", |manifest| manifest.input.shape = vec![25]),
        ("a huge shape", |manifest| manifest.input.shape = vec![usize::MAX; 3]),
        ("another limit", |manifest| manifest.input.limit *= 2.0),
        ("names of more classes", |manifest| manifest.classes.as_mut().unwrap().push("oak".to_owned())),
    ];
    for change in &changes {
        assert_refused(change, &circuits(), "description");
    }
}

/// The manifest of a network that is only described, for all its scores; its plan does not matter.
fn described(input: &str, nodes: &[String]) -> Manifest {
    described_for(Policy::Logits, input, nodes)
}

fn described_for(policy: Policy, input: &str, nodes: &[String]) -> Manifest {
    let json = format!(
        r#"{{"format_version":7,"input":{{"name":"x","shape":{input},"scale":{{"grid":0}},"low":0,"high":1,"modulus":1032193}},"nodes":[{}],"output_scale":0,"head":"scores"}}"#,
        nodes.join(",")
    );
    let network = PublicNetwork::from_json(&json).unwrap();
    let honest = manifest(&squares());
    let plan = Plan { items: Vec::new(), ..honest.plan.clone() };
    let output = policy.name().to_owned();
    let mut manifest = Manifest { network, plan, policy, output, classes: None, ..honest };
    manifest.input.shape.clone_from(&manifest.network.input().shape);
    committed(manifest)
}

fn node(index: usize, op: &str, shape: &str) -> String {
    format!(r#"{{"name":"n{index}","op":{op},"inputs":[{index}],"shape":{shape},"modulus":1032193}}"#)
}

fn chain(length: usize, op: &str, shape: &str) -> Vec<String> {
    (0..length).map(|index| node(index, op, shape)).collect()
}

/// So many pools that read the whole input, and what adds them up.
fn wide_circuits(count: usize) -> Vec<String> {
    let node = |name: String, op: &str, inputs: [usize; 2], arity: usize| {
        let inputs = &inputs[..arity];
        format!(r#"{{"name":"{name}","op":{op},"inputs":{inputs:?},"shape":[1,1,1],"modulus":1032193}}"#)
    };
    let pool = r#"{"MaxPool":{"kernel":[1,16384],"strides":[1,1],"pads":[0,0,0,0]}}"#;
    let pools = (0..count).map(|index| node(format!("pool{index}"), pool, [0, 0], 1));
    // Value i + 1 is pool i's; the sum so far stands behind the last pool.
    let sum = |index: usize| if index == 1 { 1 } else { count + index - 1 };
    let sums = (1..count)
        .map(|index| node(format!("sum{index}"), r#"{"Add":{"factors":[1,1]}}"#, [sum(index), index + 1], 2));
    pools.chain(sums).collect()
}

/// The input's sum, and seven by seven taps from each of the input's 512 channels to as many.
fn large_behind_small() -> Vec<String> {
    let node = |name: &str, op: &str, inputs: &str, shape: &str| {
        format!(r#"{{"name":"{name}","op":{op},"inputs":{inputs},"shape":{shape},"modulus":1032193}}"#)
    };
    let pool =
        |kernel: &str| format!(r#"{{"SumPool":{{"kernel":{kernel},"strides":[1,1],"pads":[0,0,0,0]}}}}"#);
    let conv = r#"{"Conv2d":{"out_channels":512,"kernel":[7,7],"strides":[1,1],"pads":[3,3,3,3],"dilations":[1,1],"groups":1}}"#;
    vec![
        node("flat", r#""Reshape""#, "[0]", "[1,512,256]"),
        node("small", &pool("[512,256]"), "[1]", "[1,1,1]"),
        node("large", conv, "[0]", "[512,16,16]"),
        node("pool", &pool("[16,16]"), "[3]", "[512,1,1]"),
        node("both", r#"{"Concat":{"axis":0}}"#, "[2,4]", "[513,1,1]"),
    ]
}

/// A few hundred bytes, or at most 4 MiB of them, that would keep a machine busy for hours or fill its memory.
#[test]
fn a_manifest_of_huge_work_is_refused_before_any_of_it_is_done() {
    guard::start();
    let pool =
        |kernel: &str| format!(r#"{{"MaxPool":{{"kernel":{kernel},"strides":[1,1],"pads":[0,0,0,0]}}}}"#);
    let hostile: [(&str, Manifest); 8] = [
        (
            "one window of sixteen million values",
            described("[1,4096,4096]", &[node(0, &pool("[4096,4096]"), "[1,1,1]")]),
        ),
        (
            "a large layer behind one element that it does not take",
            described("[512,16,16]", &large_behind_small()),
        ),
        ("windows that overlap", described("[1,1024,1024]", &[node(0, &pool("[512,512]"), "[1,513,513]")])),
        ("a thousand wide circuits", described("[1,1,16384]", &wide_circuits(1000))),
        ("tables beyond any memory", described("[16,1024,1024]", &chain(1, r#""Relu""#, "[16,1024,1024]"))),
        (
            "thousands of scores in order",
            described_for(Policy::TopK { k: 8192 }, "[8192]", &chain(1, r#""Relu""#, "[8192]")),
        ),
        (
            "many large layers",
            described(
                "[1,1024,1024]",
                &chain(
                    900,
                    r#"{"SumPool":{"kernel":[1,1],"strides":[1,1],"pads":[0,0,0,0]}}"#,
                    "[1,1024,1024]",
                ),
            ),
        ),
        (
            "filters of a million taps",
            described(
                "[1,1024,1024]",
                &[node(
                    0,
                    r#"{"Conv2d":{"out_channels":1,"kernel":[1024,1024],"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}}"#,
                    "[1,1,1]",
                )],
            ),
        ),
    ];
    for (what, manifest) in hostile {
        let start = Instant::now();
        let error = refusal(offer_of(&manifest), None);
        eprintln!("{what}: {:?} {error}", start.elapsed());
        assert_eq!(error.kind, ErrorKind::Peer, "{what}: {error}");
        assert!(error.what.contains("limit"), "{what}: {error}");
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: {:?}", start.elapsed());
    }
}

#[test]
fn what_is_no_manifest_is_refused() {
    guard::start();
    let honest = offer(&circuits());
    let text = String::from_utf8(honest.manifest.clone()).unwrap();
    let nested = |open: &str, depth: usize| {
        text.replacen("\"image\":null", &format!("\"image\":{}", open.repeat(depth)), 1)
    };
    let features =
        |of: &str| text.replacen("\"low\":", &format!("\"features\":{of},\"low\":"), 1).into_bytes();
    let documents: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"null".to_vec(),
        b"{}".to_vec(),
        b"[]".to_vec(),
        vec![0xff; 100],
        vec![b'['; 4 << 20],
        br#"{"a":"#.repeat(500_000),
        text.as_bytes()[..text.len() - 1].to_vec(),
        format!("{text}{text}").into_bytes(),
        text.replacen("\"format_version\":4", "\"format_version\":3", 1).into_bytes(),
        text.replacen("\"format_version\":4", "\"format_version\":4,\"format_version\":4", 1).into_bytes(),
        text.replacen("\"name\"", "\"unknown\":0,\"name\"", 1).into_bytes(),
        nested("[", 100_000).into_bytes(),
        nested("{\"a\":", 100_000).into_bytes(),
        text.replacen("\"limit\":", "\"limit\":1e999,\"was\":", 1).into_bytes(),
        features(r#"{"axis":0,"exponents":[65],"centres":[0]}"#),
        features(r#"{"axis":0,"exponents":[0],"centres":[-9223372036854775808]}"#),
        features(r#"{"axis":3,"exponents":[0],"centres":[0]}"#),
        features(r#"{"axis":0,"exponents":[],"centres":[]}"#),
        features(
            r#"{"axis":0,"exponents":[0],"centres":[0],"preprocessing":{"factors":[0.0],"terms":[0.0]}}"#,
        ),
    ];
    for document in documents {
        let shown = String::from_utf8_lossy(&document[..document.len().min(60)]).into_owned();
        let error = refusal(Offer { manifest: document, ..honest.clone() }, None);
        assert_eq!(error.kind, ErrorKind::Peer, "{shown}: {error}");
        assert!(error.what.len() < 1000, "{shown}: an error of {} bytes", error.what.len());
    }
}

/// Below the sockets, so that there can be many: any byte changed, any part missing.
#[test]
fn a_damaged_manifest_is_refused() {
    guard::start();
    for subject in [circuits(), squares()] {
        let text = subject.model.manifest().to_json().unwrap();
        let read =
            |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| Manifest::from_json(text).ok());
        for position in 0..text.len() {
            assert!(read(&text.as_bytes()[..position]).is_none(), "cut at {position}");
            for change in [0x01, 0x10, 0x80] {
                let mut damaged = text.clone().into_bytes();
                damaged[position] ^= change;
                // A digit beyond the precision of its number may change: the number is then the same.
                let same = read(&damaged).is_none_or(|manifest| manifest == *subject.model.manifest());
                assert!(same, "byte {position}: {}", String::from_utf8_lossy(&damaged));
            }
        }
    }
}
