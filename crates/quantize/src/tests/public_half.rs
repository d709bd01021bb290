//! What the public half tells of weights and samples: scales on the grid, and nothing that lies between two of its steps.

use lanner_graph::Op;
use lanner_graph::elementwise::{Clip, Function, Ramp};
use lanner_network::grid::holds;
use lanner_network::{
    CompileError, FixedOp, InputError, InputScale, Network, NetworkManifest, PublicNetwork, Tensor,
};

use super::branches::{every_operator, residual};
use super::compiled::agreement;
use super::{Sketch, small_network};
use crate::{QuantizationOptions, compile};

fn options(powers: bool, input_range: Option<[f64; 2]>) -> QuantizationOptions {
    let options = if powers { QuantizationOptions::powers_of_two() } else { QuantizationOptions::default() };
    QuantizationOptions { input_range, ..options }
}

fn network(sketch: &mut Sketch, options: &QuantizationOptions) -> Network {
    let calibration = sketch.samples(40, 0.0, 1.0);
    compile(&sketch.graph, &sketch.tensors, &calibration, options).unwrap()
}

fn constant(mut sketch: Sketch, name: &str, factor: f32) -> Sketch {
    sketch.tensors.insert(name, Tensor::vector(vec![factor])).unwrap();
    sketch.op(&format!("times {name}"), Op::MulConstant { value: name.into() })
}

/// Networks whose outputs come by every way: from a layer, a pool, a square, a factor, a function, and sums, products and joins of all
/// these.
fn sketches() -> Vec<Sketch> {
    let conv = |seed| Sketch::new(&[2, 6, 6], seed).conv("a", 4, 3, 1, 1);
    let vector = |seed| Sketch::new(&[8], seed).dense("a", 6);
    let sum = |sketch: Sketch, inputs: &[&str]| sketch.join("sum", Op::Add, inputs);
    vec![
        small_network(1),
        residual(2),
        every_operator(3),
        conv(4).average_pool("mean", 3),
        conv(5).relu("r").op("gap", Op::GlobalAveragePool),
        conv(6).op("clip", Op::Clip(Clip { min: Some(0.0), max: Some(0.3) })).average_pool("mean", 3),
        vector(7).op("square", Op::Square),
        constant(vector(8).relu("r").op("square", Op::Square), "c", 0.3),
        constant(vector(9).relu("r"), "c", -0.7),
        sum(vector(10).resume("x").dense("b", 6), &["a", "b"]),
        sum(vector(11).relu("r").dense("b", 6), &["r", "b"]),
        sum(vector(12).dense("b", 8), &["x", "b"]),
        sum(constant(vector(13).relu("r"), "c", 0.3), &["r", "times c"]),
        sum(conv(14).average_pool("m", 3).resume("a").max_pool("p", 3), &["m", "p"]),
        conv(15).relu("r").join("both", Op::Concat { axis: 0 }, &["r", "x"]),
        constant(sum(vector(16).resume("x").dense("b", 6).relu("r"), &["a", "r"]), "c", 0.6),
        vector(17).op("gelu", Op::Ramp(Ramp::Gelu { approximate: false })),
        sum(vector(18).op("sigmoid", Op::Function(Function::Sigmoid)), &["a", "sigmoid"]),
        vector(19).op("tanh", Op::Function(Function::Tanh)).join("gate", Op::Mul, &["a", "tanh"]),
        constant(vector(20).resume("x").dense("b", 6).join("gate", Op::Mul, &["a", "b"]), "c", 0.6),
    ]
}

#[test]
fn every_public_scale_lies_on_the_grid() {
    for range in [None, Some([0.0, 1.0]), Some([-0.3, 1.1])] {
        for (powers, sketch) in [false, true]
            .into_iter()
            .flat_map(|powers| sketches().into_iter().map(move |sketch| (powers, sketch)))
        {
            check_scales(sketch, &options(powers, range));
        }
    }
}

fn check_scales(mut sketch: Sketch, options: &QuantizationOptions) {
    let network = network(&mut sketch, options);
    let public = network.public();
    let unit = public.input().scale.unit();
    assert_eq!(matches!(public.input().scale, InputScale::Stated { .. }), options.input_range.is_some());
    assert!(options.input_range.is_some() || holds(unit, 1.0));
    assert!(holds(public.output_scale().unwrap(), unit));
    assert_eq!(public.output_scale(), Some(network.output_scale()));
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.06, "{error} {}", sketch.graph.output);
}

#[test]
fn layers_that_meet_have_coarse_factors() {
    let mut seen = 0;
    for seed in 0..6 {
        let network = network(&mut residual(seed), &options(false, None));
        for node in network.public().nodes() {
            let FixedOp::Add { factors } = node.op else { continue };
            for factor in factors {
                let factor = factor as f64;
                assert_eq!(lanner_network::grid::whole_below(factor).to_bits(), factor.to_bits());
                seen += 1;
            }
        }
    }
    assert!(seen > 20);
}

/// The tensors with the largest weight of each a little larger or smaller.
fn nudged(sketch: &Sketch, factor: f32) -> lanner_network::Tensors {
    let mut nudged = lanner_network::Tensors::default();
    for node in &sketch.graph.nodes {
        let (Op::Conv { weight, bias, .. } | Op::MatMul { weight, bias }) = &node.op else { continue };
        let tensor = sketch.tensors.get(weight).unwrap();
        let mut data = tensor.data().to_vec();
        let largest = (0..data.len()).max_by(|a, b| data[*a].abs().total_cmp(&data[*b].abs())).unwrap();
        data[largest] *= factor;
        nudged.insert(weight, Tensor::new(tensor.shape().to_vec(), data).unwrap()).unwrap();
        if let Some(bias) = bias {
            nudged.insert(bias, sketch.tensors.get(bias).unwrap().clone()).unwrap();
        }
    }
    nudged
}

#[test]
fn models_of_one_cell_of_the_grid_have_one_public_half() {
    for powers in [false, true] {
        // Each of a network's three layers leaves its cell with a chance of one in nine or less.
        let alike = alike(small_network, &options(powers, None));
        assert!(alike >= 8, "{alike} of 12");
        let alike = self::alike(with_functions, &options(powers, None));
        assert!(alike >= 8, "{alike} of 12 with functions");
    }
}

/// A function with limits, one without, and one beside its `Relu`.
fn with_functions(seed: u64) -> Sketch {
    Sketch::new(&[6], seed)
        .dense("a", 8)
        .op("gelu", Op::Ramp(Ramp::Gelu { approximate: false }))
        .dense("b", 8)
        .op("sigmoid", Op::Function(Function::Sigmoid))
        .op("root", Op::Function(Function::Sqrt))
        .dense("c", 4)
}

/// Of how many of twelve networks the public half stays when the weights change a little.
fn alike(network: fn(u64) -> Sketch, options: &QuantizationOptions) -> usize {
    let stays = |seed: &u64| {
        let mut sketch = network(*seed);
        let calibration = sketch.samples(40, 0.0, 1.0);
        let of = |tensors: &lanner_network::Tensors| {
            let network = compile(&sketch.graph, tensors, &calibration, options).unwrap();
            (network.public().to_json().unwrap(), network.weights(0).unwrap().weight().to_vec())
        };
        let (one, other) = (of(&sketch.tensors), of(&nudged(&sketch, 0.99)));
        assert_ne!(one.1, other.1);
        one.0 == other.0
    };
    (0..12).filter(stays).count()
}

#[test]
fn a_stated_range_is_kept_and_calibration_is_not_told() {
    let mut sketch = small_network(5);
    let range = [-0.123_456_789, 1.1];
    let (calibration, dimmer) = (sketch.samples(40, 0.0, 1.0), 0.999);
    let of = |factor: f32| {
        let samples: Vec<f32> = calibration.iter().map(|x| x * factor).collect();
        compile(&sketch.graph, &sketch.tensors, &samples, &options(false, Some(range))).unwrap()
    };
    let network = of(1.0);
    let input = network.public().input();
    let bits = |ends: [f64; 2]| ends.map(f64::to_bits);
    assert_eq!(bits(input.limits()), bits(range));
    assert_eq!(input, of(dimmer).public().input());
    let json = network.public().to_json().unwrap();
    assert!(json.contains(r#""scale":{"stated":{"low":-0.123456789,"high":1.1,"steps":255}}"#), "{json}");
    let mut x = vec![0.5; 196];
    for inside in [-0.123_456_79_f32, 1.1] {
        x[3] = inside;
        assert!(input.quantize(&x).is_ok(), "{inside}");
    }
    for outside in [-0.128, 1.105] {
        x[3] = outside;
        let error = input.quantize(&x).unwrap_err();
        assert!(
            matches!(error, InputError::OutOfRange { low, high, .. } if bits([low, high]) == bits(range)),
            "{error}"
        );
    }
    let integers = [input.low, input.high];
    assert_eq!(integers, range.map(|end| (end / input.scale.unit()).round() as i64));
}

#[test]
fn samples_outside_the_stated_range_and_ranges_that_are_none_are_refused() {
    let mut sketch = small_network(6);
    let calibration = sketch.samples(4, 0.0, 1.0);
    let refusal = |range| {
        compile(&sketch.graph, &sketch.tensors, &calibration, &options(false, Some(range))).unwrap_err()
    };
    let error = refusal([0.0, 0.5]).to_string();
    assert!(error.contains("sample 0") && error.contains("outside [0, 0.5]"), "{error}");
    for range in [[0.1, 1.0], [-1.0, -0.1], [0.0, 0.0], [1.0, 0.0], [0.0, f64::INFINITY], [f64::NAN, 1.0]] {
        assert!(matches!(refusal(range), CompileError::InputRange { .. }), "{range:?}");
    }
}

#[test]
fn a_calibrated_range_is_rounded_up_to_the_grid() {
    let mut sketch = Sketch::new(&[4], 7).dense("a", 3).relu("r").dense("b", 2);
    let calibration: Vec<f32> = (0..40).map(|i| -0.7 + i as f32 / 39.0).collect();
    sketch.random.word();
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options(false, None)).unwrap();
    let input = network.public().input();
    let InputScale::Grid(_) = input.scale else { panic!("{input:?}") };
    let [low, high] = input.limits();
    // Twice the calibrated range, a step further at most, and half a unit.
    let slack = input.scale.unit();
    for (limit, twice) in [(-low, 1.4), (high, 0.6)] {
        assert!(limit > twice - slack && limit < 1.1 * twice + slack, "{limit} {twice}");
    }
    assert!(input.quantize(&calibration[..4]).is_ok() && input.quantize(&calibration[36..]).is_ok());
}

#[test]
fn the_scale_of_the_scores_can_be_left_out() {
    let network = network(&mut small_network(8), &options(false, None));
    let hidden = network.clone().without_public_output_scale();
    assert_eq!(hidden.public().output_scale(), None);
    assert_eq!(hidden.output_scale().to_bits(), network.output_scale().to_bits());
    let json = hidden.public().to_json().unwrap();
    assert!(!json.contains("output_scale") && network.public().to_json().unwrap().contains("output_scale"));
    assert_eq!(&PublicNetwork::from_json(&json).unwrap(), hidden.public());
    let (manifest, weights) = hidden.to_parts().unwrap();
    assert_eq!(Network::from_parts(manifest, &weights).unwrap(), hidden);
}

#[test]
fn a_public_scale_that_is_not_the_owners_is_refused() {
    let network = network(&mut small_network(9), &options(false, None));
    let (manifest, weights) = network.to_parts().unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&manifest.to_json().unwrap()).unwrap();
    let scale = changed["public"]["output_scale"].as_i64().unwrap();
    changed["public"]["output_scale"] = (scale + 1).into();
    let changed = NetworkManifest::from_json(&changed.to_string()).unwrap();
    let error = Network::from_parts(changed, &weights).unwrap_err();
    assert!(error.to_string().contains("its public scale is not its scale"), "{error}");
}

#[test]
fn stated_ranges_in_files_are_checked() {
    let network = network(&mut small_network(10), &options(false, Some([0.0, 1.0])));
    let public: serde_json::Value = serde_json::from_str(&network.public().to_json().unwrap()).unwrap();
    let with = |stated: serde_json::Value| {
        let mut changed = public.clone();
        changed["input"]["scale"] = stated;
        PublicNetwork::from_json(&changed.to_string())
    };
    let stated = |low: f64, high: f64, steps: i64| {
        with(serde_json::json!({"stated": {"low": low, "high": high, "steps": steps}}))
    };
    assert!(stated(0.0, 1.0, 255).is_ok() && stated(0.0, 7.0, 255).is_ok());
    for (low, high, steps) in [
        (0.0, 1.0, 254),
        (0.0, 1.0, 0),
        (-1.0, 1.0, 255),
        (0.5, 1.0, 255),
        (0.0, 0.0, 255),
        (0.0, -1.0, 255),
        (0.0, 1e-320, 255),
    ] {
        assert!(stated(low, high, steps).is_err(), "{low} {high} {steps}");
    }
    for scale in [serde_json::json!({"grid": 2049}), serde_json::json!({"grid": 0.5}), serde_json::json!(0.5)]
    {
        assert!(with(scale).is_err());
    }
}
