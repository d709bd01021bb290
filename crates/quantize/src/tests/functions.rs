//! Functions by polynomials and products of two values, in networks.

use std::collections::BTreeMap;

use lanner_network::elementwise::FixedFunction;
use lanner_network::{
    Accumulator, Calibrated, CompileError, Evidence, FixedExecutor, FixedNode, FixedOp, GridFactor, Head,
    InputScale, LinearWeights, Network, NetworkInput, PublicNetwork, rescale,
};

fn ring(bits: u32) -> Accumulator {
    Accumulator::from_modulus(1 << bits).unwrap()
}

/// A parabola in two pieces, from 9 down to -100 and up again.
fn bent() -> FixedFunction {
    FixedFunction {
        low: -16,
        bits: 5,
        polynomials: vec![vec![36, -27, 0], vec![-400, 0, 1]],
        shift: 2,
        factors: None,
    }
}

/// A layer, a rescale, a function into a larger ring, and the product of that with another value.
fn nodes() -> Vec<FixedNode> {
    let node = |name: &str, op, inputs: &[usize], bits| FixedNode {
        name: name.to_owned(),
        op,
        inputs: inputs.to_vec(),
        shape: vec![2],
        accumulator: ring(bits),
    };
    vec![
        node("layer", FixedOp::Linear { outputs: 2, picks: false }, &[0], 20),
        node("rescale", FixedOp::Rescale { shift: 3 }, &[1], 18),
        node("bent", FixedOp::Function(bent()), &[2], 24),
        node("flat", FixedOp::Function(FixedFunction { low: 0, ..bent() }), &[2], 24),
        node("product", FixedOp::Mul, &[3, 4], 24),
    ]
}

fn public(nodes: Vec<FixedNode>) -> Result<PublicNetwork, CompileError> {
    let scale = InputScale::Grid(GridFactor::try_from(0).unwrap());
    let (name, accumulator) = ("x".to_owned(), ring(20));
    let input = NetworkInput { name, shape: vec![2], scale, features: None, low: -50, high: 50, accumulator };
    PublicNetwork::new(input, nodes, None, Head::Scores)
}

fn network(nodes: Vec<FixedNode>) -> Result<Network, CompileError> {
    let layer = LinearWeights::new(2, vec![3, -1, 2, 2], vec![5, -7]);
    let count = nodes.len() + 1;
    let seen =
        Calibrated { scale: 1.0, low: 0, high: 0, weight_error: None, function: None, saturates: false };
    Network::new(public(nodes)?, BTreeMap::from([(0, layer)]), &vec![seen; count])
}

#[test]
fn a_network_computes_functions_and_products() {
    let network = network(nodes()).unwrap();
    let executor = FixedExecutor::new(&network).unwrap();
    for x in -50..=50_i64 {
        let y = 10 - x / 3;
        let sums = [3 * x - y + 5, 2 * x + 2 * y - 7].map(|sum| rescale(sum, 3));
        let [first, second] = [bent(), FixedFunction { low: 0, ..bent() }];
        let run = executor.run(&[x, y]).unwrap();
        assert_eq!(run.output, sums.map(|sum| (first.at(sum) * second.at(sum)).into()));
        assert_eq!(run.overflow_count(), 0);
    }
}

/// A term lies within what the public half says, and within that the owner's half knows more.
#[test]
fn terms_are_added_and_bounded() {
    let mut nodes = nodes();
    nodes[1] = FixedNode { op: FixedOp::Bias { bits: 6 }, accumulator: ring(20), ..nodes[1].clone() };
    let weights = |bias: Vec<i128>| {
        let layer = LinearWeights::new(2, vec![3, -1, 2, 2], vec![5, -7]);
        BTreeMap::from([(0, layer), (1, LinearWeights::bias_alone(bias))])
    };
    let seen =
        Calibrated { scale: 1.0, low: 0, high: 0, weight_error: None, function: None, saturates: false };
    let network = |bias| Network::new(public(nodes.clone())?, weights(bias), &vec![seen; 6]);
    let sound = network(vec![63, -20]).unwrap();
    let run = FixedExecutor::new(&sound).unwrap().run(&[7, -2]).unwrap();
    let [first, second] = [bent(), FixedFunction { low: 0, ..bent() }];
    assert_eq!(run.output, [28 + 63, 3 - 20].map(|x| (first.at(x) * second.at(x)).into()));
    let [layer, term] = [1, 2].map(|value| &sound.values()[value]);
    assert_eq!([term.low, term.high], [layer.low - 20, layer.high + 63]);
    assert!(term.weights.is_none());
    let (manifest, bytes) = sound.to_parts().unwrap();
    assert_eq!(Network::from_parts(manifest, &bytes).unwrap(), sound);
    for bias in [vec![64, 0], vec![0, -64], vec![1], vec![1; 3]] {
        network(bias).unwrap_err();
    }
    let refused = network(vec![i128::MIN, 0]).unwrap_err().to_string();
    assert!(refused.contains("more bits than it says"), "{refused}");
    let mut wide = nodes.clone();
    wide[1].op = FixedOp::Bias { bits: 61 };
    assert!(public(wide).unwrap_err().to_string().contains("more than 60"));
}

#[test]
fn bounds_and_limits_stop_at_functions_and_products() {
    let network = network(nodes()).unwrap();
    let values = network.values();
    // The layer's limit leaves room for its rescale, the function's input for nothing: a function reads all of it.
    let limits: Vec<i128> = (0..values.len()).map(|value| network.public().limit(value)).collect();
    assert_eq!(
        limits[1..],
        [ring(20).limit(3), ring(18).limit(0), ring(24).limit(0), ring(24).limit(0), ring(24).limit(0)]
    );
    let [first, second] = [3, 4].map(|value| [values[value].low, values[value].high]);
    assert_eq!((first, second), ([-100, 9], [-100, 9]));
    assert_eq!([values[5].low, values[5].high], [-900, 10_000]);
    assert_eq!(values[5].evidence, Evidence::Proved);
}

/// A value that is off by E leaves a function off by its steepest step times that, and a product by both factors' errors.
#[test]
fn errors_pass_functions_and_products() {
    let network = network(nodes()).unwrap();
    let errors = network.faithful_errors();
    let steepest = (-16..15).map(|x| (bent().at(x + 1) - bent().at(x)).abs()).max().unwrap();
    assert_eq!(errors[2..4], [1, steepest]);
    assert_eq!(errors[5], 2 * 100 * steepest + steepest * steepest);
}

#[test]
fn files_with_other_functions_are_refused() {
    let refusal = |change: fn(&mut Vec<FixedNode>)| {
        let mut nodes = nodes();
        change(&mut nodes);
        public(nodes).unwrap_err().to_string()
    };
    let narrow = |nodes: &mut Vec<FixedNode>| nodes[1].accumulator = ring(24);
    assert!(
        public({
            let mut nodes = nodes();
            narrow(&mut nodes);
            nodes
        })
        .is_ok()
    );
    assert!(refusal(|nodes| nodes[4].accumulator = ring(25)).contains("may change the ring"));
    assert!(refusal(|nodes| nodes[4].inputs = vec![3, 2]).contains("may change the ring"));
    assert!(refusal(|nodes| nodes[4].inputs = vec![3]).contains("of which 2 to 2"));
    let huge = |nodes: &mut Vec<FixedNode>| {
        let FixedOp::Function(function) = &mut nodes[2].op else { return };
        function.polynomials[1][0] = 1 << 30;
    };
    assert!(refusal(huge).contains("outside the ring"));
    let far = |nodes: &mut Vec<FixedNode>| {
        let FixedOp::Function(function) = &mut nodes[2].op else { return };
        function.low = -(1 << 17);
    };
    assert!(refusal(far).contains("outside the ring"));
}

#[test]
fn a_network_with_functions_survives_the_round_trip() {
    let network = network(nodes()).unwrap();
    let json = network.public().to_json().unwrap();
    assert!(
        json.contains(r#"{"Function":{"low":-16,"bits":5,"polynomials":[[36,-27,0],[-400,0,1]],"shift":2}}"#)
    );
    assert_eq!(&PublicNetwork::from_json(&json).unwrap(), network.public());
}

/// Products beyond the ring are counted, and come back into it.
#[test]
fn products_beyond_the_ring_are_counted() {
    let mut nodes = nodes();
    nodes[4].accumulator = ring(16);
    for node in [2, 3] {
        nodes[node].accumulator = ring(16);
        let FixedOp::Function(function) = &mut nodes[node].op else { continue };
        function.polynomials[0][0] = 4000;
    }
    let network = network(nodes).unwrap();
    let run = FixedExecutor::new(&network).unwrap().run(&[-50, 0]).unwrap();
    assert_eq!(run.overflow_count(), 2);
    // The second element lies three places into its function's domain.
    assert_eq!(run.output, [1000 * 1000, 980 * 1000].map(|product| ring(16).centre(product)));
    assert_eq!(network.values()[5].evidence, Evidence::Calibrated);
}
