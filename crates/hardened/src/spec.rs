//! The public description of a network.

use lanner_bfv::ParameterSet;
use lanner_step::{Convolution, Function, ProtocolError, Result, Windows};
use lanner_yao::softmax::Probability;
use serde::{Deserialize, Serialize};

/// A network as both parties know it, modulo one prime: layers, and sums of what they and activations make.
///
/// Value 0 is the input, value `i + 1` what item `i` makes: its activation's elements, or the outputs or sums themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The parameter set of all ciphertexts.
    pub set: ParameterSet,
    /// The prime, which is 1 modulo twice the set's degree.
    pub prime: u64,
    /// The least value that an element of the input may have.
    pub low: i64,
    /// Bits of an element above the least: all values of so many bits are taken.
    pub bits: u32,
    /// The items, in the order in which they are computed.
    pub layers: Vec<Item>,
    /// What the client is told of what the last one makes.
    pub told: Told,
}

/// What is computed next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a network has few, and none is copied often")]
pub enum Item {
    /// A linear layer.
    Layer(Layer),
    /// A sum.
    Sum(Sum),
}

impl Item {
    /// What is computed in circuits on its outputs.
    #[must_use]
    pub const fn activation(&self) -> Option<&Activation> {
        match self {
            Self::Layer(layer) => layer.activation.as_ref(),
            Self::Sum(sum) => sum.activation.as_ref(),
        }
    }
}

/// A linear layer, and what is computed on its outputs in circuits. Without circuits sums take the outputs, or they are what the client is told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// The network's node that has the weights.
    pub node: String,
    /// Windows of what is in front, whose sums are the layer's inputs; none where it reads the elements themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summed: Option<Windows>,
    /// The terms whose sum it reads, none of them another layer's outputs; empty where it reads the value in front of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Term>,
    /// The layer's shape.
    pub shape: Convolution,
    /// What turns its outputs into elements.
    pub activation: Option<Activation>,
}

impl Layer {
    /// The terms whose sum it reads, where its item has this number.
    pub(crate) fn terms(&self, number: usize) -> Vec<Term> {
        if !self.reads.is_empty() {
            return self.reads.clone();
        }
        vec![Term {
            maps: self.summed.iter().map(|windows| Map::Summed(*windows)).collect(),
            ..Term::of(number)
        }]
    }
}

/// A sum of layers' outputs and of earlier elements, and what is computed on it in circuits; nothing behind the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The network's node that it is.
    pub node: String,
    /// What is added.
    pub terms: Vec<Term>,
    /// What turns it into elements.
    pub activation: Option<Activation>,
}

/// A value times a public integer, rearranged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The value's number.
    pub of: usize,
    /// The integer, which is not zero.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub factor: i64,
    /// How its elements come to their places, the first map first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Map>,
}

impl Term {
    /// A value as it is.
    #[must_use]
    pub const fn of(value: usize) -> Self {
        Self { of: value, factor: 1, maps: Vec::new() }
    }
}

const fn one() -> i64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_one(factor: &i64) -> bool {
    *factor == 1
}

/// A public linear map of elements: sums of some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Map {
    /// The sum of each window.
    Summed(Windows),
    /// One element each, or zero, as a node of the network moves one of the values that it reads.
    Moved {
        /// The node.
        node: String,
        /// The place of the value among those that the node reads.
        place: usize,
        /// Its elements.
        from: usize,
        /// Elements that the node makes.
        to: usize,
    },
}

impl Map {
    /// Elements before it.
    fn from(&self) -> usize {
        match self {
            Self::Summed(windows) => windows.inputs(),
            Self::Moved { from, .. } => *from,
        }
    }

    /// Elements behind it.
    fn to(&self) -> Result<usize> {
        match self {
            Self::Summed(windows) => windows.count(),
            Self::Moved { to, .. } => Ok(*to),
        }
    }

    /// Elements that it reads or makes, and lists of them, which take the place of as many as they have room for.
    fn elements(&self) -> u64 {
        match self {
            Self::Summed(windows) => {
                let each = (windows.area() as u64).saturating_add(LIST);
                // Windows that cannot be counted are refused when they are laid out.
                each.saturating_mul(windows.count().unwrap_or_default() as u64)
            }
            Self::Moved { from, to, .. } => (*from as u64).saturating_add(*to as u64),
        }
    }
}

impl Network {
    /// The elements of each value.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] or [`ProtocolError::Length`] unless items fit one another.
    pub(crate) fn sizes(&self) -> Result<Vec<usize>> {
        let mut sizes = vec![self.inputs()?];
        for (number, item) in self.layers.iter().enumerate() {
            let is_last = number + 1 == self.layers.len();
            let made = match item {
                Item::Layer(layer) => {
                    let wanted = layer.shape.inputs();
                    let both = layer.summed.is_some() && !layer.reads.is_empty();
                    ProtocolError::refuse_if(both, "a layer that reads windows and terms")?;
                    for term in &layer.terms(number) {
                        ProtocolError::check_length(
                            "inputs of a layer",
                            wanted,
                            self.arriving(term, &sizes)?,
                        )?;
                        let is_open = term.of > 0 && self.layers[term.of - 1].activation().is_none();
                        ProtocolError::refuse_if(
                            is_open,
                            "a layer that reads another's outputs as they are",
                        )?;
                    }
                    layer.shape.outputs()?
                }
                Item::Sum(sum) => {
                    ProtocolError::refuse_if(sum.activation.is_none() && !is_last, "a sum without circuits")?;
                    let first = sum.terms.first().ok_or(ProtocolError::Parameters("a sum of nothing"))?;
                    let wanted = self.arriving(first, &sizes)?;
                    for term in &sum.terms {
                        ProtocolError::check_length(
                            "elements of a sum",
                            wanted,
                            self.arriving(term, &sizes)?,
                        )?;
                    }
                    wanted
                }
            };
            sizes.push(match item.activation() {
                Some(_) if is_last => return Err(ProtocolError::Parameters("circuits behind the last sums")),
                Some(activation) => {
                    ProtocolError::check_length("windows", made, activation.windows.inputs())?;
                    activation.windows.count()?
                }
                None => made,
            });
        }
        Ok(sizes)
    }

    /// Elements of the input, by what reads it.
    pub(crate) fn inputs(&self) -> Result<usize> {
        let read_by = |(number, item): (usize, &Item)| {
            let (terms, wanted) = match item {
                Item::Layer(layer) => (layer.terms(number), Some(layer.shape.inputs())),
                Item::Sum(Sum { terms, activation, .. }) => {
                    (terms.clone(), activation.as_ref().map(|activation| activation.windows.inputs()))
                }
            };
            let term = terms.into_iter().find(|term| term.of == 0)?;
            term.maps.first().map(Map::from).or(wanted)
        };
        let read = self.layers.iter().enumerate().find_map(read_by);
        read.ok_or(ProtocolError::Parameters("a hardened network that does not read its input"))
    }

    /// How many elements of a term arrive.
    fn arriving(&self, term: &Term, sizes: &[usize]) -> Result<usize> {
        let too_large = term.factor.unsigned_abs() >= self.prime / 2;
        ProtocolError::refuse_if(term.factor == 0 || too_large, "the factor of a term")?;
        let size = sizes.get(term.of).ok_or(ProtocolError::Parameters("a term of what comes later"))?;
        term.maps.iter().try_fold(*size, |size, map| {
            ProtocolError::check_length("elements of a map", map.from(), size)?;
            map.to()
        })
    }

    /// Elements that maps read or make, and terms add.
    pub(crate) fn moved_elements(&self) -> u64 {
        let of_term = |term: &Term| term.maps.iter().map(Map::elements).fold(0, u64::saturating_add);
        let of_item = |(number, item): (usize, &Item)| match item {
            Item::Layer(layer) => layer.terms(number).iter().map(of_term).fold(0, u64::saturating_add),
            Item::Sum(sum) => {
                let elements = sum.activation.as_ref().map_or(0, |activation| activation.windows.inputs());
                let each = |term: &Term| of_term(term).saturating_add(elements as u64);
                sum.terms.iter().map(each).fold(0, u64::saturating_add)
            }
        };
        self.layers.iter().enumerate().map(of_item).fold(0, u64::saturating_add)
    }
}

/// Elements for which a list of a window's has room at least, and its own size.
const LIST: u64 = 8;

/// A function of windows of a layer's outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// What it computes.
    pub function: Function,
    /// The windows.
    pub windows: Windows,
}

/// What the client is told of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Every score.
    Scores,
    /// The index of the largest one.
    Label,
    /// The indices of so many of the largest.
    TopK(usize),
    /// Those above zero.
    Positive,
    /// The index of the largest one, and its softmax probability.
    Probability(Probability),
    /// The index of the largest one at each of so many places, all of which have as many scores.
    LabelAt(usize),
}
