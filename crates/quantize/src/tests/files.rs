//! Files survive the round trip, and damaged ones are errors, never panics.

use lanner_graph::elementwise::{Function, LeakyRelu, Ramp};
use lanner_graph::{Graph, Op};
use lanner_network::{CompileError, FixedExecutor, Network, NetworkManifest, PublicNetwork};

use super::branches::every_operator;
use super::{Random, Sketch, small_network};
use crate::{QuantizationOptions, compile};

fn network() -> Network {
    compiled(small_network(1))
}

/// A chain, a network with every other operator, and one with functions and a product.
fn networks() -> [Network; 3] {
    let gated = Sketch::new(&[6], 1)
        .dense("a", 4)
        .op("sigmoid", Op::Function(Function::Sigmoid))
        .resume("x")
        .dense("b", 4)
        .op("gelu", Op::Ramp(Ramp::Gelu { approximate: false }))
        .join("gate", Op::Mul, &["gelu", "sigmoid"])
        .dense("c", 2);
    [network(), compiled(every_operator(1)), compiled(gated)]
}

fn compiled(mut sketch: Sketch) -> Network {
    let calibration = sketch.samples(8, 0.0, 1.0);
    compile(&sketch.graph, &sketch.tensors, &calibration, &QuantizationOptions::default()).unwrap()
}

#[test]
fn a_graph_survives_the_round_trip() {
    let graph = small_network(1).graph;
    assert_eq!(Graph::from_json(&graph.to_json().unwrap()), Ok(graph));
}

#[test]
fn the_documented_graph_parses() {
    let json = r#"{"format_version": 2, "inputs": [{"name": "x", "shape": [1, 28, 28]}],
        "nodes": [{"name": "conv1", "op": {"Conv": {"weight": "conv1.w", "bias": null, "strides": [2, 2],
                   "pads": [1, 1, 1, 1], "dilations": [1, 1], "groups": 1}}, "inputs": ["x"]},
                  {"name": "clip", "op": {"Clip": {"min": 0.0, "max": null}}, "inputs": ["conv1"]},
                  {"name": "relu1", "op": "Relu", "inputs": ["clip"]}], "output": "relu1"}"#;
    assert_eq!(Graph::from_json(json).unwrap().nodes.len(), 3);
}

#[test]
fn other_versions_and_unknown_fields_are_named() {
    let json = small_network(1).graph.to_json().unwrap();
    let other = json.replace("\"format_version\":2", "\"format_version\":1");
    let expected = CompileError::FormatVersion { what: "graph", found: 1, expected: 2 };
    assert_eq!(Graph::from_json(&other), Err(expected));
    let unknown = json.replacen("\"Relu\"", "\"Gelu\"", 1);
    assert!(Graph::from_json(&unknown).unwrap_err().to_string().contains("unknown variant `Gelu`"));
    let extra = json.replacen("\"output\"", "\"extra\":1,\"output\"", 1);
    assert!(matches!(Graph::from_json(&extra), Err(CompileError::Json { .. })));
}

#[test]
fn attributes_that_are_not_finite_are_refused() {
    let json = small_network(1).graph.to_json().unwrap();
    let huge = json.replacen("\"Relu\"", r#"{"LeakyRelu":{"alpha":1e300}}"#, 1);
    assert!(Graph::from_json(&huge).is_err());
    let mut graph = small_network(1).graph;
    graph.nodes[1].op = Op::LeakyRelu(LeakyRelu { alpha: f32::INFINITY });
    let error = graph.to_json().unwrap_err();
    assert!(error.to_string().starts_with("node `relu1` (LeakyRelu): an attribute is NaN"), "{error}");
}

#[test]
fn a_network_survives_the_round_trip() {
    for network in networks() {
        let (manifest, weights) = network.to_parts().unwrap();
        let json = manifest.to_json().unwrap();
        let read = Network::from_parts(NetworkManifest::from_json(&json).unwrap(), &weights).unwrap();
        assert_eq!(read, network);
        assert_eq!(read.to_parts().unwrap().0.to_json().unwrap(), json);
        let public = network.public().to_json().unwrap();
        assert_eq!(&PublicNetwork::from_json(&public).unwrap(), network.public());
    }
}

#[test]
fn nodes_that_use_later_values_or_that_nobody_uses_are_refused() {
    let public: serde_json::Value =
        serde_json::from_str(&compiled(every_operator(2)).public().to_json().unwrap()).unwrap();
    let nodes = public["nodes"].as_array().unwrap();
    let sum = nodes.iter().position(|node| node["op"].get("Add").is_some()).unwrap();
    let refusal = |inputs: serde_json::Value| {
        let mut changed = public.clone();
        changed["nodes"][sum]["inputs"] = inputs;
        PublicNetwork::from_json(&changed.to_string()).unwrap_err().to_string()
    };
    for later in [sum + 1, sum + 2, usize::MAX] {
        assert!(refusal(serde_json::json!([0, later])).contains("must lie before it"));
    }
    assert!(refusal(serde_json::json!([])).contains("must lie before it"));
    let first = nodes[sum]["inputs"][1].clone();
    assert!(refusal(serde_json::json!([first, first])).contains("no node uses its value"));
    assert!(refusal(serde_json::json!([0, first])).contains("differ"));
}

#[test]
fn no_nodes_and_too_many_are_refused() {
    let mut public: serde_json::Value = serde_json::from_str(&network().public().to_json().unwrap()).unwrap();
    let last = public["nodes"].as_array().unwrap().last().unwrap().clone();
    public["nodes"] = vec![last; 16385].into();
    let too_many = PublicNetwork::from_json(&public.to_string()).unwrap_err();
    assert_eq!(too_many, CompileError::TooManyNodes { nodes: 16385, most: 16384 });
    public["nodes"].as_array_mut().unwrap().truncate(16384);
    assert!(matches!(PublicNetwork::from_json(&public.to_string()), Err(CompileError::Network { .. })));
    public["nodes"] = serde_json::json!([]);
    let none = PublicNetwork::from_json(&public.to_string()).unwrap_err();
    assert!(none.to_string().contains("it needs nodes"), "{none}");
}

#[test]
fn the_public_half_has_no_weights_and_no_ranges() {
    let network = network();
    let public: serde_json::Value = serde_json::from_str(&network.public().to_json().unwrap()).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&public), ["format_version", "head", "input", "nodes", "output_scale"]);
    assert_eq!(keys(&public["nodes"][0]), ["inputs", "modulus", "name", "op", "shape"]);
    assert_eq!(keys(&public["input"]), ["high", "low", "modulus", "name", "scale", "shape"]);
}

/// What a reader must withstand: it parses, and a network that it accepts runs.
fn read(manifest: &str, weights: &[u8]) -> Option<()> {
    let network = Network::from_parts(NetworkManifest::from_json(manifest).ok()?, weights).ok()?;
    let input = network.public().input();
    let x = vec![input.high; input.len()];
    FixedExecutor::new(&network).unwrap().run(&x).unwrap();
    Some(())
}

/// Fuzzing that starts from documents of an older version finds nothing behind the check of the version.
#[test]
fn seeds_of_fuzzing_are_of_the_present_version() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (name, count) in [("public_network", 5), ("manifest", 6)] {
        let files: Vec<_> =
            std::fs::read_dir(folder.join(name)).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), count);
        for file in files {
            let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            let network = document.get("network").unwrap_or(&document);
            assert!(PublicNetwork::from_json(&network.to_string()).is_ok(), "{} is too old", file.display());
        }
    }
}

#[test]
fn mutated_manifests_never_panic() {
    networks().iter().for_each(mutate_manifest);
}

fn mutate_manifest(network: &Network) {
    let (manifest, weights) = network.to_parts().unwrap();
    let json = manifest.to_json().unwrap();
    let mut random = Random(5);
    let alphabet = b"0123456789-+.eE{}[]\",:abnulltruefalse ";
    for _ in 0..3000 {
        let mut bytes = json.clone().into_bytes();
        for _ in 0..=random.word() % 3 {
            let at = random.word() as usize % bytes.len();
            match random.word() % 3 {
                0 => bytes[at] = alphabet[random.word() as usize % alphabet.len()],
                1 => bytes.insert(at, alphabet[random.word() as usize % alphabet.len()]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = read(&text, &weights);
            let _ = Graph::from_json(&text);
            let _ = PublicNetwork::from_json(&text);
        }
    }
}

/// Replaces each number in turn by hostile ones.
#[test]
fn hostile_numbers_never_panic() {
    networks().iter().for_each(replace_numbers);
}

fn replace_numbers(network: &Network) {
    let (manifest, weights) = network.to_parts().unwrap();
    let json: serde_json::Value = serde_json::from_str(&manifest.to_json().unwrap()).unwrap();
    let mut paths = Vec::new();
    number_paths(&json, String::new(), &mut paths);
    assert!(paths.len() > 100);
    let hostile = [
        "0",
        "-1",
        "1",
        "3",
        "255",
        "1048576",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "1e308",
        "-1e-308",
        "137438822401",
        "null",
    ];
    for path in &paths {
        for number in hostile {
            let mut changed = json.clone();
            *changed.pointer_mut(path).unwrap() = serde_json::from_str(number).unwrap();
            let _ = read(&changed.to_string(), &weights);
        }
    }
}

fn number_paths(value: &serde_json::Value, path: String, paths: &mut Vec<String>) {
    match value {
        serde_json::Value::Number(_) => paths.push(path),
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| number_paths(item, format!("{path}/{i}"), paths));
        }
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| number_paths(field, format!("{path}/{key}"), paths));
        }
        _ => {}
    }
}

#[test]
fn mutated_weights_never_panic() {
    let (manifest, weights) = network().to_parts().unwrap();
    let json = manifest.to_json().unwrap();
    assert_eq!(read(&json, &weights), Some(()));
    let mut random = Random(6);
    for _ in 0..400 {
        let mut bytes = weights.clone();
        // Mostly the header, where lengths and names are.
        let region = if random.word().is_multiple_of(4) { bytes.len() } else { 600.min(bytes.len()) };
        let at = random.word() as usize % region;
        bytes[at] ^= 1 << (random.word() % 8);
        let _ = read(&json, &bytes);
        bytes.truncate(random.word() as usize % bytes.len());
        assert_eq!(read(&json, &bytes), None);
    }
}

#[test]
fn weights_larger_than_their_proof_are_refused_or_relabelled() {
    // The proof is recomputed on reading: enlarged weights either lose their "proved" or are refused.
    let network = network();
    let (manifest, bytes) = network.to_parts().unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensors: Vec<_> = file
        .iter()
        .map(|(name, view)| {
            let mut data = view.data().to_vec();
            if name == "0.weight" {
                data.fill(0x7f);
            }
            (name.to_owned(), view.dtype(), view.shape().to_vec(), data)
        })
        .collect();
    let views = tensors.iter().map(|(name, dtype, shape, data)| {
        (name, safetensors::tensor::TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    let changed = safetensors::serialize(views, None).unwrap();
    match Network::from_parts(manifest, &changed) {
        Ok(read) => assert_ne!(read.values()[1].evidence, lanner_network::Evidence::Proved),
        Err(error) => assert!(matches!(error, CompileError::Network { .. }), "{error}"),
    }
}
