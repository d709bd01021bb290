//! Models that must check what their clients do: mode `auto` has such modes alone, and what they do not take is refused.

use lanner::{CompileOptions, Error, ErrorKind, Model};
use lanner_graph::Graph;
use lanner_network::{Tensor, Tensors};

const CHAIN: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

/// A residual sum.
const SUM: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w0","bias":null}},"inputs":["x"]},
    {"name":"sum","op":"Add","inputs":["fc1","x"]},
    {"name":"relu","op":"Relu","inputs":["sum"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

/// A function that other modes take.
const FUNCTION: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"gate","op":{"Function":"Sigmoid"},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["gate"]}],"output":"fc2"}"#;

fn compiled(graph: &str, options: CompileOptions) -> Result<Model, Error> {
    let mut tensors = Tensors::default();
    let shapes: [(&str, &[usize]); 4] =
        [("w0", &[12, 12]), ("w1", &[12, 8]), ("w2", &[8, 3]), ("w3", &[12, 3])];
    for (seed, (name, shape)) in shapes.into_iter().enumerate().filter(|(_, (name, _))| graph.contains(name))
    {
        let weight = |i: usize| ((i * 29 + seed * 7) % 23) as f32 / 23.0 - 0.5;
        let weights = (0..shape.iter().product()).map(weight).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), weights).unwrap()).unwrap();
    }
    let calibration: Vec<f32> =
        (0..8).flat_map(|seed| (0..12).map(move |i| ((i * 37 + seed * 11) % 17) as f32 / 17.0)).collect();
    let options = CompileOptions {
        name: "m".to_owned(),
        input_range: Some([0.0, 1.0]),
        allow_imprecise: true,
        ..options
    };
    options.check()?;
    Model::compile(Graph::from_json(graph).unwrap(), tensors, &calibration, &options)
}

fn against() -> CompileOptions {
    CompileOptions { against: Some("cheating-clients".to_owned()), ..CompileOptions::default() }
}

#[test]
fn mode_auto_chooses_a_mode_that_checks_clients() {
    let chosen = compiled(CHAIN, against()).unwrap();
    let named = CompileOptions { mode: "hardened".to_owned(), ..CompileOptions::default() };
    let named = compiled(CHAIN, named).unwrap();
    assert_eq!(chosen.manifest().plan, named.manifest().plan);
    assert!(chosen.manifest().plan.mode.design().checks_clients());
    let trusting = compiled(CHAIN, CompileOptions::default()).unwrap();
    assert!(!trusting.manifest().plan.mode.design().checks_clients());
}

#[test]
fn it_takes_networks_with_sums() {
    let sum = compiled(SUM, against()).unwrap();
    assert!(sum.manifest().plan.mode.design().checks_clients());
}

#[test]
fn it_tells_a_probability() {
    let options = CompileOptions { output: "probability".to_owned(), ..against() };
    assert!(compiled(CHAIN, options).unwrap().manifest().plan.mode.design().checks_clients());
}

#[test]
fn what_no_such_mode_takes_is_refused() {
    assert!(compiled(FUNCTION, CompileOptions::default()).is_ok());
    let said = |graph, options| compiled(graph, options).err().unwrap();
    let function = said(FUNCTION, against());
    assert_eq!(function.kind, ErrorKind::Unsupported);
    for what in ["node gate", "cannot compute", "`against` leaves mode hardened alone", "leave `against` out"]
    {
        assert!(function.to_string().contains(what), "{function}");
    }
    let saturation = CompileOptions { output: "logits".to_owned(), reveal_saturation: true, ..against() };
    assert!(compiled(CHAIN, saturation).is_err());
}

#[test]
fn what_does_not_go_with_it_is_refused_before_anything_is_compiled() {
    let said = |options: CompileOptions| options.check().unwrap_err();
    let falcon = said(CompileOptions { mode: "falcon".to_owned(), ..against() });
    assert_eq!(falcon.kind, ErrorKind::Misuse);
    assert!(falcon.to_string().contains("mode hardened alone, and the mode is falcon"), "{falcon}");
    let batch = said(CompileOptions { batch: 2, ..against() });
    assert!(batch.to_string().contains("one by one"), "{batch}");
    let other = said(CompileOptions { against: Some("servers".to_owned()), ..CompileOptions::default() });
    assert!(other.to_string().contains("cheating-clients"), "{other}");
    CompileOptions { mode: "hardened".to_owned(), ..against() }.check().unwrap();
}
