//! A network of layers and sums as one step, in which the client's part is checked as a whole.

use std::collections::HashSet;

use lanner_bfv::ParameterSet;
use lanner_hardened::{self as hardened, Map, Sum, Term, Told, Whole};
use lanner_network::{Evidence, FixedNode, FixedOp, LinearWeights, Network, Policy, PublicNetwork};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::{Function, Windows};
use lanner_yao::softmax::Probability;

use super::result::scale_of_scores;
use super::saturation::UpperBound;
use super::{OUTPUT, convolution, only_users, ring, unsupported, unsupported_input, windows};
use crate::built::layer as layer_of;
use crate::fuse::Fused;
use crate::limits::{Limits, Totals, check_memory, within};
use crate::{BuiltPlan, Choices, Item, Mode, Plan, PlanError, Step};

/// The set of all ciphertexts: masks of 128 checks have room there.
const SET: ParameterSet = ParameterSet::B;

/// Plans a network.
///
/// # Errors
/// As [`super::plan_within`].
pub(super) fn plan(
    network: &PublicNetwork,
    policy: Policy,
    choices: &Choices,
    bounds: &[UpperBound],
    limits: &Limits,
) -> Result<(Plan, BuiltPlan), PlanError> {
    if !bounds.is_empty() {
        let reason = "mode hardened tells no more than the result".to_owned();
        return Err(PlanError::Saturation { reason, fix: "choose a mode that does not check its clients" });
    }
    let told = match policy {
        Policy::Label => Told::Label,
        Policy::Labels => Told::Positive,
        Policy::TopK { k } => Told::TopK(k as usize),
        Policy::Logits | Policy::Value => Told::Scores,
        Policy::LabelMap { places } => Told::LabelAt(places as usize),
        Policy::Probability { digits } => {
            Told::Probability(Probability { digits, scale: scale_of_scores(network, policy)? })
        }
    };
    let input = network.input();
    let Ring::Prime(prime) = ring(input.accumulator) else {
        return Err(unsupported_input(network, "mode hardened computes modulo a prime"));
    };
    let values = input.high.abs_diff(input.low).saturating_add(1);
    if !values.is_power_of_two() || values < 2 {
        let reason = format!(
            "in mode hardened the number of input integers must be a power of two, because clients commit to bits; here it is {values}"
        );
        return Err(unsupported_input(network, &reason));
    }
    let whole = hardened::Network {
        set: SET,
        prime,
        low: input.low,
        bits: values.ilog2(),
        layers: items(network, prime)?,
        told,
    };
    let step = Step {
        name: OUTPUT.to_owned(),
        inputs: vec![0],
        protocol: Protocol::Hardened(Whole { network: whole }),
    };
    let mut totals = Totals::new(Mode::Hardened, *limits);
    totals.add(&step.name, step.protocol.spec().work())?;
    let input = (Ring::Prime(prime), input.len());
    let Choices { designs, samples, saturation, .. } = choices.clone();
    let items = vec![Item::Step(step)];
    let plan = Plan { mode: Mode::Hardened, designs, policy, samples, saturation, input, items };
    let built = plan.build()?;
    check_memory(&built.memory()?, limits)?;
    Ok((plan, built))
}

/// A value of the network as a sum of what items make; terms name them by their numbers in the plan.
type Form = Vec<Term>;

/// The network as layers, and sums with circuits behind.
struct Planner<'n> {
    network: &'n PublicNetwork,
    prime: u64,
    items: Vec<hardened::Item>,
    /// For each value of the network; a value inside a circuit has none.
    forms: Vec<Option<Form>>,
    only_users: Vec<Option<usize>>,
    /// Bytes of all forms so far.
    bytes: u64,
}

/// Items of a network.
fn items(network: &PublicNetwork, prime: u64) -> Result<Vec<hardened::Item>, PlanError> {
    let nodes = network.nodes();
    let mut forms = vec![None; nodes.len() + 1];
    forms[0] = Some(vec![Term::of(0)]);
    let only_users = only_users(network);
    let mut planner = Planner { network, prime, items: Vec::new(), forms, only_users, bytes: 0 };
    let mut inside = HashSet::new();
    for index in 0..nodes.len() {
        if !inside.contains(&index) {
            inside.extend(planner.node(index)?);
        }
    }
    let Some(told) = planner.forms.pop().flatten() else {
        return Err(unsupported_input(network, "mode hardened computes a network of one layer or more"));
    };
    let node = nodes.last().map(|node| node.name.clone()).unwrap_or_default();
    planner.items.push(hardened::Item::Sum(Sum { node, terms: told, activation: None }));
    Ok(joined(&planner.items))
}

impl Planner<'_> {
    /// Plans a node; returns those that its circuits compute, too.
    fn node(&mut self, index: usize) -> Result<Vec<usize>, PlanError> {
        let network = self.network;
        let node = &network.nodes()[index];
        if ring(node.accumulator) != Ring::Prime(self.prime) {
            return Err(unsupported(node, "mode hardened computes modulo one prime".to_owned()));
        }
        let input = node.inputs[0];
        let shape = network.shape(input);
        let form = match &node.op {
            FixedOp::Reshape => self.form(node, input)?.clone(),
            FixedOp::Add { factors } => {
                let mut sum = Form::new();
                for (value, factor) in node.inputs.iter().zip(factors) {
                    add(node, &mut sum, self.form(node, *value)?, *factor, None)?;
                }
                sum
            }
            FixedOp::Scale { factor } => self.rearranged(node, 0, *factor, None)?,
            FixedOp::SumPool(window) => {
                let map = Map::Summed(windows(shape, window));
                self.rearranged(node, 0, 1, Some(&map))?
            }
            FixedOp::Transpose { .. }
            | FixedOp::Slice { .. }
            | FixedOp::Pad { .. }
            | FixedOp::Concat { .. } => {
                let mut sum = Form::new();
                for (place, value) in node.inputs.iter().enumerate() {
                    let from = network.shape(*value).iter().product();
                    let map = Map::Moved { node: node.name.clone(), place, from, to: node.len() };
                    add(node, &mut sum, self.form(node, *value)?, 1, Some(&map))?;
                }
                sum
            }
            FixedOp::Linear { picks: true, .. } => {
                let reason = "mode hardened has no layers that pick elements".to_owned();
                return Err(unsupported(node, reason));
            }
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                let reads = self.committed(node, input)?;
                let shape = convolution(node, shape)?;
                let node = node.name.clone();
                let layer = hardened::Layer { node, summed: None, reads, shape, activation: None };
                self.push(hardened::Item::Layer(layer))
            }
            _ => return self.circuits(index),
        };
        self.hold(node, &form)?;
        self.forms[index + 1] = Some(form);
        Ok(Vec::new())
    }

    /// A node that circuits compute, with those behind it that they compute, too: each the only reader of the one before.
    fn circuits(&mut self, first: usize) -> Result<Vec<usize>, PlanError> {
        let network = self.network;
        let node = &network.nodes()[first];
        let (value, mut nodes) = (node.inputs[0], Vec::new());
        let chain = std::iter::successors(Some(first), |node| self.only_users[node + 1]);
        let ops = chain.inspect(|node| nodes.push(*node)).map(|node| &network.nodes()[node].op);
        let (Fused { function, windows, .. }, count) = Fused::run(ops, network.shape(value));
        nodes.truncate(count);
        let Some(last) = nodes.last() else {
            let reason = format!("mode hardened cannot compute {}", node.op.name());
            return Err(unsupported(node, reason));
        };
        let sum = Sum {
            node: self.name(value),
            terms: self.form(node, value)?.clone(),
            activation: Some(hardened::Activation { function, windows }),
        };
        let made = self.push(hardened::Item::Sum(sum));
        self.forms[last + 1] = Some(made);
        Ok(nodes)
    }

    /// What a layer reads: elements that clients commit, so circuits that compute nothing stand behind layers whose outputs are read as they are.
    fn committed(&mut self, reader: &FixedNode, value: usize) -> Result<Form, PlanError> {
        let form = self.form(reader, value)?.clone();
        self.hold(reader, &form)?;
        let is_open =
            |term: &Term| term.of.checked_sub(1).is_some_and(|item| self.items[item].activation().is_none());
        if !form.iter().any(is_open) {
            return Ok(form);
        }
        let windows = Windows::each(self.network.shape(value).iter().product());
        let activation = Some(hardened::Activation { function: Function::IDENTITY, windows });
        let sum = Sum { node: self.name(value), terms: form, activation };
        let form = self.push(hardened::Item::Sum(sum));
        self.forms[value] = Some(form.clone());
        Ok(form)
    }

    /// Counts a form: a description of some kilobytes must not become many copies of long ones.
    fn hold(&mut self, node: &FixedNode, form: &Form) -> Result<(), PlanError> {
        let of_map = |map: &Map| {
            let name = if let Map::Moved { node, .. } = map { node.len() } else { 0 };
            size_of::<Map>() + name
        };
        let of_term = |term: &Term| size_of::<Term>() + term.maps.iter().map(of_map).sum::<usize>();
        self.bytes = self.bytes.saturating_add(form.iter().map(of_term).sum::<usize>() as u64);
        within(&node.name, "bytes of sums that layers and circuits read", self.bytes, MOST_BYTES)
    }

    fn name(&self, value: usize) -> String {
        let made = value.checked_sub(1).map(|node| &self.network.nodes()[node].name);
        made.unwrap_or(&self.network.input().name).clone()
    }

    fn push(&mut self, item: hardened::Item) -> Form {
        self.items.push(item);
        vec![Term::of(self.items.len())]
    }

    fn form(&self, node: &FixedNode, value: usize) -> Result<&Form, PlanError> {
        let inside = || unsupported(node, "another node reads a value inside its circuit".to_owned());
        self.forms[value].as_ref().ok_or_else(inside)
    }

    /// What a node makes of one value.
    fn rearranged(
        &self,
        node: &FixedNode,
        place: usize,
        factor: i64,
        map: Option<&Map>,
    ) -> Result<Form, PlanError> {
        let mut sum = Form::new();
        add(node, &mut sum, self.form(node, node.inputs[place])?, factor, map)?;
        Ok(sum)
    }
}

/// Adds the terms of a form, times a factor and rearranged, to a node's.
fn add(
    node: &FixedNode,
    sum: &mut Form,
    form: &Form,
    factor: i64,
    map: Option<&Map>,
) -> Result<(), PlanError> {
    for term in form {
        let mut maps = term.maps.clone();
        maps.extend(map.cloned());
        let same = sum.iter().position(|other| other.of == term.of && other.maps == maps);
        let place = same.unwrap_or_else(|| {
            sum.push(Term { of: term.of, factor: 0, maps });
            sum.len() - 1
        });
        let own = term.factor.checked_mul(factor);
        let all = own.and_then(|own| own.checked_add(sum[place].factor));
        let fits = all.filter(|factor| *factor != 0 && factor.unsigned_abs() <= MOST_FACTOR);
        sum[place].factor = fits.ok_or_else(|| {
            let reason = "mode hardened adds values times integers other than 0, of at most 19 bits";
            unsupported(node, reason.to_owned())
        })?;
        if sum.len() > MOST_TERMS || sum.iter().any(|term| term.maps.len() > MOST_MAPS) {
            let reason =
                format!("mode hardened adds at most {MOST_TERMS} values, moved {MOST_MAPS} times at most");
            return Err(unsupported(node, reason));
        }
    }
    Ok(())
}

/// Layers that one sum alone takes as they are, with its circuits; and terms that name what is in front left out.
fn joined(items: &[hardened::Item]) -> Vec<hardened::Item> {
    let mut readers = vec![0; items.len() + 1];
    for item in items {
        let terms = match item {
            hardened::Item::Layer(layer) => &layer.reads,
            hardened::Item::Sum(sum) => &sum.terms,
        };
        for term in terms {
            readers[term.of] += 1;
        }
    }
    // The layer that each sum is, and where each value is in the end.
    let alone = |sum: &Sum| match &sum.terms[..] {
        [Term { of, factor: 1, maps }] if maps.is_empty() && *of > 0 && readers[*of] == 1 => {
            matches!(&items[of - 1], hardened::Item::Layer(_)).then_some(of - 1)
        }
        _ => None,
    };
    let layers: Vec<Option<usize>> = items
        .iter()
        .map(|item| match item {
            hardened::Item::Layer(_) => None,
            hardened::Item::Sum(sum) => alone(sum),
        })
        .collect();
    let taken: HashSet<usize> = layers.iter().flatten().copied().collect();
    let (mut all, mut numbers) = (Vec::with_capacity(items.len()), vec![0; items.len() + 1]);
    for (number, item) in items.iter().enumerate() {
        if taken.contains(&number) {
            continue;
        }
        let renumbered = |terms: &[Term]| -> Form {
            terms.iter().map(|term| Term { of: numbers[term.of], ..term.clone() }).collect()
        };
        let layer = |layer: &hardened::Layer, activation: &Option<hardened::Activation>| {
            let layer = hardened::Layer {
                reads: renumbered(&layer.reads),
                activation: activation.clone(),
                ..layer.clone()
            };
            hardened::Item::Layer(as_in_front(layer, all.len()))
        };
        let joined = match (item, layers[number].map(|layer| &items[layer])) {
            (hardened::Item::Sum(sum), Some(hardened::Item::Layer(own))) => layer(own, &sum.activation),
            (hardened::Item::Layer(own), _) => layer(own, &None),
            (hardened::Item::Sum(sum), _) => {
                hardened::Item::Sum(Sum { terms: renumbered(&sum.terms), ..sum.clone() })
            }
        };
        all.push(joined);
        numbers[number + 1] = all.len();
    }
    all
}

/// A layer that reads no more than the value in front of it, or sums of its windows, without terms.
fn as_in_front(mut layer: hardened::Layer, number: usize) -> hardened::Layer {
    let summed = match &layer.reads[..] {
        [Term { of, factor: 1, maps }] if *of == number => match &maps[..] {
            [] => None,
            [Map::Summed(windows)] => Some(*windows),
            _ => return layer,
        },
        _ => return layer,
    };
    layer.summed = summed;
    layer.reads.clear();
    layer
}

/// The largest factor of a term, less than half of every prime that the compiler chooses for the mode.
const MOST_FACTOR: u64 = (1 << 19) - 1;
/// The most terms of a sum, and the most maps of one: sums of sums may double them.
const MOST_TERMS: usize = 256;
const MOST_MAPS: usize = 16;
/// The most bytes of all values' sums.
const MOST_BYTES: u64 = 1 << 28;

/// Checks that weights are as small as checks take them, and that every sum of a network is proved to stay where circuits read it alike, whichever of two representatives a client commits.
///
/// # Errors
/// [`PlanError::Unsupported`] naming the node whose weights or sums may be beyond.
pub fn check_sums(network: &Network, plan: &Plan) -> Result<(), PlanError> {
    for step in plan.steps() {
        let Protocol::Hardened(Whole { network: whole }) = &step.protocol else { continue };
        let nodes = network.public().nodes();
        for item in &whole.layers {
            let (name, activation) = match item {
                hardened::Item::Layer(layer) => (&layer.node, &layer.activation),
                hardened::Item::Sum(sum) => (&sum.node, &sum.activation),
            };
            let read = nodes.iter().position(|node| node.name == *name);
            let (node, weights) = match read {
                Some(index) => (&nodes[index], network.weights(index)),
                // Circuits read the input, whose range is proved as others' are.
                None if *name == network.public().input().name => (&nodes[0], None),
                None => return Err(PlanError::Design { node: name.clone() }),
            };
            let value = &network.values()[read.map_or(0, |index| index + 1)];
            let weights = weights.map_or(&[][..], LinearWeights::weight);
            if weights.iter().any(|weight| weight.unsigned_abs() > hardened::MOST_WEIGHT.into()) {
                let reason = format!(
                    "a weight is too large; mode hardened accepts integer weights up to {}",
                    hardened::MOST_WEIGHT
                );
                return Err(unsupported(node, reason));
            }
            if value.evidence != Evidence::Proved {
                let reason =
                    "its sums are not proved to fit for every input, which mode hardened requires".to_owned();
                return Err(unsupported(node, reason));
            }
            let shift = activation.as_ref().map_or(0, |activation| activation.function.shift);
            let bound = hardened::bound(whole.prime, shift).map_err(|source| layer_of(&node.name, source))?;
            if value.high.max(-value.low) >= i128::from(bound) {
                let reason = format!(
                    "its sums may reach {}; mode hardened accepts sums below {bound}",
                    value.high.max(-value.low)
                );
                return Err(unsupported(node, reason));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_network::Accumulator;
    use lanner_step::Convolution;

    use super::*;

    fn node() -> FixedNode {
        FixedNode {
            name: "sum".to_owned(),
            op: FixedOp::Add { factors: [1, 1] },
            inputs: vec![0, 0],
            shape: vec![4],
            accumulator: Accumulator::PRIMES[0],
        }
    }

    fn moved(number: usize) -> Map {
        Map::Moved { node: format!("node{number}"), place: 0, from: 4, to: 4 }
    }

    #[test]
    fn terms_of_one_value_are_one_and_what_cancels_or_grows_is_refused() {
        let (node, mut sum) = (node(), Form::new());
        let value = vec![Term::of(0), Term { factor: -3, ..Term::of(2) }];
        add(&node, &mut sum, &value, 2, None).unwrap();
        add(&node, &mut sum, &vec![Term::of(0)], 5, None).unwrap();
        add(&node, &mut sum, &vec![Term::of(0)], 1, Some(&moved(0))).unwrap();
        let apart = Term { maps: vec![moved(0)], ..Term::of(0) };
        let [first, second] = [(0, 7), (2, -6)].map(|(of, factor)| Term { factor, ..Term::of(of) });
        assert_eq!(sum, [first, second, apart]);
        let mut refused = |form: &Form, factor, map: Option<&Map>| {
            add(&node, &mut sum, form, factor, map).unwrap_err().to_string()
        };
        assert!(refused(&vec![Term::of(0)], -7, None).contains("other than 0"));
        assert!(refused(&vec![Term::of(9)], 1 << 19, None).contains("19 bits"));
        let deep = vec![Term { maps: vec![moved(0); MOST_MAPS], ..Term::of(0) }];
        assert!(refused(&deep, 1, Some(&moved(1))).contains("moved"));
        let many: Form = (10..10 + MOST_TERMS).map(Term::of).collect();
        assert!(refused(&many, 1, None).contains("at most"));
    }

    fn layer(of: usize, activation: Option<hardened::Activation>) -> hardened::Item {
        let shape = Convolution::fully_connected(4, 4);
        let node = format!("reads{of}");
        hardened::Item::Layer(hardened::Layer {
            node,
            summed: None,
            reads: vec![Term::of(of)],
            shape,
            activation,
        })
    }

    fn sum(of: &[usize], activation: Option<hardened::Activation>) -> hardened::Item {
        let terms = of.iter().map(|of| Term::of(*of)).collect();
        hardened::Item::Sum(Sum { node: "sum".to_owned(), terms, activation })
    }

    /// A shortcut's layer comes first, and the layer that circuits alone read moves to them; numbers follow.
    #[test]
    fn a_layer_that_circuits_alone_read_has_them_and_others_stay_apart() {
        let relu = || Some(hardened::Activation { function: Function::IDENTITY, windows: Windows::each(4) });
        let items =
            vec![layer(0, None), layer(0, None), sum(&[1], relu()), layer(3, None), sum(&[2, 4, 3], None)];
        let hardened::Item::Layer(mut chained) = layer(2, None) else { unreachable!() };
        chained.reads.clear();
        let hardened::Item::Layer(mut first) = layer(0, relu()) else { unreachable!() };
        first.node = "reads0".to_owned();
        chained.node = "reads3".to_owned();
        let hardened::Item::Layer(mut short) = layer(0, None) else { unreachable!() };
        short.reads.clear();
        let expected = vec![
            hardened::Item::Layer(short),
            hardened::Item::Layer(first),
            hardened::Item::Layer(chained),
            sum(&[1, 3, 2], None),
        ];
        assert_eq!(joined(&items), expected);
        // One that a sum reads, too, is no circuit's own.
        let items = vec![layer(0, None), sum(&[1], relu()), sum(&[1, 2], None)];
        assert!(matches!(&joined(&items)[..], [hardened::Item::Layer(_), hardened::Item::Sum(_), _]));
    }
}
