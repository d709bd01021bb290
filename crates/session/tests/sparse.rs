//! Products by constants of every shape that no layer takes in: layers of groups, which equal the reference in every mode.

use lanner_graph::Graph;
use lanner_network::{Network, Policy, Tensor, Tensors};
use lanner_plan::{Choices, Limits, Mode, NodeDesign, Plan, Rings, plan, plan_within};
use lanner_quantize::{QuantizationOptions, compile};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common::value;
use crate::executor::{check_exact, check_near, near, over};

/// A layer, a ReLU, a product by a constant of a shape, and what follows.
struct Scaled<'s> {
    /// The input of the product, of the network, too.
    shape: &'s [usize],
    constant: &'s [usize],
    /// The constant's values.
    factors: Factors,
    /// Whether the product is the last operator; else the product and what it is of go into a sum and a layer.
    is_last: bool,
}

#[derive(Clone, Copy, Debug)]
enum Factors {
    /// Of both signs.
    Signed,
    /// Zeros among them.
    Zeros,
    /// One that is a hundred times as large as the others.
    Huge,
}

const fn factor(factors: Factors, index: usize, drawn: f32) -> f32 {
    match (factors, index) {
        (Factors::Zeros, 0 | 2) => 0.0,
        (Factors::Huge, 1) => -100.0,
        _ => drawn,
    }
}

impl Scaled<'_> {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    fn network(&self, options: &QuantizationOptions) -> (Network, Vec<Vec<f32>>) {
        let (len, shape) = (self.len(), self.shape);
        // A layer without a rescale would be the product's own.
        let head = format!(
            r#"{{"format_version":2,"inputs":[{{"name":"x","shape":[{len}]}}],"nodes":[
            {{"name":"fc","op":{{"MatMul":{{"weight":"w","bias":"b"}}}},"inputs":["x"]}},
            {{"name":"relu","op":"Relu","inputs":["fc"]}},
            {{"name":"shaped","op":{{"Reshape":{{"shape":{shape:?}}}}},"inputs":["relu"]}},
            {{"name":"scaled","op":{{"MulConstant":{{"value":"c"}}}},"inputs":["shaped"]}}"#
        );
        let json = if self.is_last {
            format!(r#"{head}],"output":"scaled"}}"#)
        } else {
            format!(
                r#"{head},
                {{"name":"sum","op":"Add","inputs":["scaled","shaped"]}},
                {{"name":"flat","op":"Flatten","inputs":["sum"]}},
                {{"name":"out","op":{{"MatMul":{{"weight":"v","bias":null}}}},"inputs":["flat"]}}],"output":"out"}}"#
            )
        };
        let mut tensors = Tensors::default();
        let mut add = |name: &str, shape: &[usize], of: &dyn Fn(usize) -> f32| {
            let data = (0..shape.iter().product()).map(of).collect();
            tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
        };
        add("w", &[len, len], &|i| value(i, 1) * 0.3);
        add("b", &[len], &|i| value(i, 2));
        add("c", self.constant, &|i| factor(self.factors, i, value(i, 3)));
        add("v", &[len, 4], &|i| value(i, 4));
        let samples: Vec<Vec<f32>> =
            (0..8).map(|s| (0..len).map(|i| value(i, 100 + s).abs()).collect()).collect();
        let graph = Graph::from_json(&json).unwrap();
        (compile(&graph, &tensors, &samples.concat(), options).unwrap(), samples)
    }

    fn check(&self) {
        let (network, samples) = self.network(&QuantizationOptions::default());
        check_exact(&network, &samples, &over(Rings::Primes));
        let (network, samples) = self.network(&QuantizationOptions::powers_of_two());
        check_exact(&network, &samples, &over(Rings::PowersOfTwo));
        for mode in near() {
            check_near(&network, &samples[..1], mode);
        }
        let planned = |mode| protocols(&plan(network.public(), Policy::Logits, mode).unwrap());
        let [transfers, ahead] =
            [Mode::Cheetah(Rounding::Exact), Mode::Tabula(tabula::Rounding::Exact)].map(planned);
        assert!(transfers.contains(&"ot.sparse"), "{transfers:?}");
        assert!(ahead.contains(&"ot.sparse_ahead"), "{ahead:?}");
    }
}

fn protocols(plan: &Plan) -> Vec<&'static str> {
    plan.steps().map(|step| step.protocol.name()).collect()
}

#[test]
fn scales_of_sequences_equal_the_reference() {
    let shape = &[4, 6];
    for (constant, factors) in [
        (&[4, 6][..], Factors::Signed),
        (&[4, 1], Factors::Zeros),
        (&[6], Factors::Huge),
        (&[4, 6], Factors::Zeros),
    ] {
        Scaled { shape, constant, factors, is_last: false }.check();
    }
}

#[test]
fn scales_of_images_equal_the_reference() {
    for (constant, factors) in [(&[3, 2, 4][..], Factors::Huge), (&[2, 1], Factors::Signed)] {
        Scaled { shape: &[3, 2, 4], constant, factors, is_last: false }.check();
    }
}

#[test]
fn scales_at_the_end_equal_the_reference() {
    for (shape, constant, factors) in [
        (&[4, 6][..], &[4, 6][..], Factors::Signed),
        (&[4, 6], &[6], Factors::Zeros),
        (&[3, 2, 4], &[3, 2, 4], Factors::Huge),
    ] {
        Scaled { shape, constant, factors, is_last: true }.check();
    }
}

/// In mode auto each layer has a design: what is computed ahead of time, and what is not.
#[test]
fn each_design_has_its_layer() {
    let scaled = Scaled { shape: &[4, 6], constant: &[4, 6], factors: Factors::Signed, is_last: false };
    let (network, _) = scaled.network(&QuantizationOptions::powers_of_two());
    let reference = plan(network.public(), Policy::Logits, Mode::Cheetah(Rounding::Exact)).unwrap();
    let layer = reference.steps().find(|step| step.protocol.name() == "ot.sparse").unwrap().name.clone();
    let designs = [(layer, NodeDesign::Tabula)].into();
    let choices = Choices { designs, ..Mode::Auto.into() };
    let mixed = plan_within(network.public(), Policy::Logits, &choices, &Limits::default()).unwrap();
    assert!(protocols(&mixed).contains(&"ot.sparse_ahead") && protocols(&mixed).contains(&"cheetah.fc"));
    assert_eq!(protocols(&mixed).len(), protocols(&reference).len());
}
