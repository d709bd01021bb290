//! Why a network cannot be compiled, as far as that is known before the long work: by its operators and shapes alone, and then by what
//! one sample makes of it.

use lanner_graph::Graph;
use lanner_network::{FixedOp, Outline, OutlinedNode, Tensors};
use lanner_plan::{Choices, PlanError, check_outline, plan_within};
use lanner_quantize::{compile, outline};

use crate::{CompileOptions, Error, Result};

/// Everything in a graph that fixed point does not have, or, if it has all, what of its sizes or of the policy goes beyond a limit.
/// [`Model::compile`](crate::Model::compile) refuses a graph with the first of these before it looks at a sample.
///
/// # Errors
/// [`ErrorKind::Model`](crate::ErrorKind::Model) if the graph or its tensors are damaged, or nothing in it has weights;
/// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if options do not go together.
pub fn refusals(graph: &Graph, tensors: &Tensors, options: &CompileOptions) -> Result<Vec<Error>> {
    options.check()?;
    reasons(&mut outline(graph, tensors, options.public_preprocessing)?, options)
}

/// What is refused of an outlined graph, which is taken from the outline.
///
/// # Errors
/// As [`refusals`] where options do not go together.
pub(crate) fn reasons(outline: &mut Outline, options: &CompileOptions) -> Result<Vec<Error>> {
    let (mode, policy, limits) = (options.mode()?, options.policy()?, options.limits.limits());
    options.check_end(policy, outline.outputs)?;
    options.check_saturation(mode, policy)?;
    let refused = std::mem::take(&mut outline.refused);
    let beyond = if refused.is_empty() { check_outline(outline, policy, mode, &limits).err() } else { None };
    Ok(refused.into_iter().map(Error::from).chain(beyond.map(Error::from)).collect())
}

/// Where calibration would take long, plans what the first sample makes of the network: what goes far beyond a limit then would with
/// all samples too, and is refused now.
///
/// The rings that one sample chooses may be a step larger than those that all choose, and what a step takes goes with the bits of its
/// ring: from 30 to 37 in the longest step. So a limit must be missed by a quarter.
///
/// # Errors
/// [`ErrorKind::Model`](crate::ErrorKind::Model) naming the node that goes beyond a limit.
pub(crate) fn foresee(
    outline: &Outline,
    graph: &Graph,
    tensors: &Tensors,
    calibration: &[f32],
    options: &CompileOptions,
) -> Result<()> {
    let length: usize = graph.inputs[0].shape.iter().product();
    let samples = calibration.len() / length.max(1);
    if samples < FEW || products(outline).saturating_mul(samples as u64) < LONG {
        return Ok(());
    }
    let (mode, policy) = (options.mode()?, options.policy()?);
    // Whatever else is wrong with one sample may be right with all.
    let Ok(network) = compile(graph, tensors, &calibration[..length], &options.quantization(mode)?) else {
        return Ok(());
    };
    let samples = options.samples(mode)?;
    let choices = Choices { samples, ..mode.into() };
    match plan_within(network.public(), policy, &choices, &options.limits.limits()) {
        Err(error @ PlanError::TooLarge { count, limit, .. }) if count / 5 > limit / 4 => Err(error.into()),
        _ => Ok(()),
    }
}

/// Products of weights and values for one sample.
fn products(outline: &Outline) -> u64 {
    let of_node = |node: &OutlinedNode| {
        let outputs: usize = node.shape.iter().product();
        let each = match &node.op {
            Some(FixedOp::Conv2d(geometry)) => {
                node.input[0] / geometry.groups.max(1) * geometry.kernel[0] * geometry.kernel[1]
            }
            Some(FixedOp::Linear { .. }) => node.input[0],
            _ => 0,
        };
        (outputs as u64).saturating_mul(each as u64)
    };
    outline.nodes.iter().map(of_node).fold(0, u64::saturating_add)
}

/// So many samples are no work to speak of.
const FEW: usize = 4;
/// So many products take some seconds.
const LONG: u64 = 1 << 33;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_network::Tensor;

    use super::*;
    use crate::{ErrorKind, LimitOptions};

    /// A convolution of 3x3 taps from `channels` to as many over a square image, before these nodes.
    fn network(channels: usize, side: usize, after: &str, output: &str) -> (Graph, Tensors) {
        let json = format!(
            r#"{{"format_version":2,"inputs":[{{"name":"x","shape":[{channels},{side},{side}]}}],"nodes":[
                {{"name":"conv","op":{{"Conv":{{"weight":"w","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}}}},"inputs":["x"]}}
                {after}],"output":"{output}"}}"#
        );
        let mut tensors = Tensors::default();
        let weights = vec![0.01; channels * channels * 9];
        tensors.insert("w", Tensor::new(vec![channels, channels, 3, 3], weights).unwrap()).unwrap();
        (Graph::from_json(&json).unwrap(), tensors)
    }

    fn options(output: &str, k: u32) -> CompileOptions {
        let json = format!(
            r#"{{"name":"n","mode":"gazelle","rounding":null,"output":"{output}","k":{k},"digits":2,"input_range":null,"classes":null,"image":null}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn every_operator_that_fixed_point_lacks_is_told() {
        let leaky = |name, input| {
            format!(r#",{{"name":"{name}","op":{{"LeakyRelu":{{"alpha":2.0}}}},"inputs":["{input}"]}}"#)
        };
        let (graph, tensors) =
            network(2, 8, &[leaky("first", "conv"), leaky("second", "first")].concat(), "second");
        let found = refusals(&graph, &tensors, &options("logits", 1)).unwrap();
        let places: Vec<_> = found.iter().map(|error| (error.kind, error.place.as_str())).collect();
        assert_eq!(places, [(ErrorKind::Unsupported, "first"), (ErrorKind::Unsupported, "second")]);
    }

    #[test]
    fn sizes_and_policies_are_refused_without_a_sample() {
        let (graph, tensors) = network(2, 8, "", "conv");
        assert!(refusals(&graph, &tensors, &options("label", 1)).unwrap().is_empty());
        let refused = refusals(&graph, &tensors, &options("top-k", 1000)).unwrap_err();
        assert_eq!((refused.kind, refused.fix.as_str()), (ErrorKind::Misuse, "give 1 to 128"));
        let (graph, tensors) = network(256, 64, "", "conv");
        let refusals_within = |memory, seconds| {
            let limits = LimitOptions { memory, seconds };
            refusals(&graph, &tensors, &CompileOptions { limits, ..options("logits", 1) }).unwrap()
        };
        assert!(refusals_within(Some(10 << 30), None).is_empty());
        for (limits, what) in
            [([None; 2], "GB of memory"), ([Some(10 << 30), Some(2)], "seconds of computation")]
        {
            let [memory, seconds] = limits;
            let found = refusals_within(memory, seconds);
            assert_eq!((found.len(), found[0].place.as_str()), (1, "conv"));
            assert!(found[0].what.contains(what), "{}", found[0]);
        }
    }

    #[test]
    fn what_calibration_would_refuse_is_foreseen_from_one_sample_alone() {
        // The circuits of 8.4 million activations are more than may be held.
        let relu = r#",{"name":"relu","op":"Relu","inputs":["conv"]}"#;
        let (graph, tensors) = network(8, 1024, relu, "relu");
        let options = options("logits", 1);
        let outline = outline(&graph, &tensors, false).unwrap();
        assert!(refusals(&graph, &tensors, &options).unwrap().is_empty());
        let sample: Vec<f32> = (0..8 * 1024 * 1024).map(|i| (i % 17) as f32 / 16.0).collect();
        let calibration = sample.repeat(15);
        let refused = foresee(&outline, &graph, &tensors, &calibration, &options).unwrap_err();
        assert!(refused.what.contains(" GB "), "{refused}");
    }
}
