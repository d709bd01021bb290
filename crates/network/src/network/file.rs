//! The file form of a network: a JSON manifest without weights, and a safetensors file of integers.
//!
//! The layer at node i has the tensors `i.weight` (`I32`, row-major, one axis) and `i.bias` (`I64`, one axis, of a network of larger integers two
//! words for each), a `Bias` the latter alone.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::public::FORMAT_VERSIONS;
use super::{Calibrated, FixedOp, LinearWeights, Network, PublicNetwork, repeats};
use crate::tensor::damaged;
use crate::version::check_version;
use crate::{CompileError, Reached};

/// A network without its weights: the public half and what calibration saw. Private to the model owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkManifest {
    format_version: u32,
    public: PublicNetwork,
    values: Vec<Calibrated>,
    /// Calibration samples that no ring holds.
    #[serde(default)]
    set_aside: usize,
    /// Inputs that the compiler made beside the samples.
    #[serde(default, skip_serializing_if = "is_none")]
    made: usize,
    /// How many of these there was no room for.
    #[serde(default, skip_serializing_if = "is_none")]
    given_up: usize,
    /// What was asked, and what it reaches on the calibration samples.
    #[serde(default)]
    reached: Option<Reached>,
}

impl NetworkManifest {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`CompileError::Json`] or [`CompileError::FormatVersion`].
    pub fn from_json(json: &str) -> Result<Self, CompileError> {
        check_version("network manifest", &FORMAT_VERSIONS, json)?;
        serde_json::from_str(json)
            .map_err(|reason| CompileError::Json { what: "network manifest", reason: reason.to_string() })
    }

    /// Writes the JSON form; the same network always gives the same bytes.
    ///
    /// # Errors
    /// Never for a manifest of a checked network; the serialiser's error otherwise.
    pub fn to_json(&self) -> Result<String, CompileError> {
        serde_json::to_string(self)
            .map_err(|reason| CompileError::Json { what: "network manifest", reason: reason.to_string() })
    }
}

impl Network {
    /// The manifest and the bytes of the safetensors file.
    ///
    /// # Errors
    /// [`CompileError::TensorFile`] if the weights are too large for the format.
    pub fn to_parts(&self) -> Result<(NetworkManifest, Vec<u8>), CompileError> {
        let repeats = self.public.repeats();
        let is_written = |value: &usize| {
            value.checked_sub(1).and_then(|node| repeats::counterpart(repeats, node)).is_none()
        };
        let values = (0..self.values.len()).filter(is_written).map(|value| self.seen(value)).collect();
        let (format_version, public) = (self.public.format_version(), self.public.clone());
        let Self { set_aside, made, given_up, reached, .. } = *self;
        let manifest = NetworkManifest { format_version, public, values, set_aside, made, given_up, reached };
        Ok((manifest, encode(&self.weights, &self.public)?))
    }

    /// Joins a manifest and a safetensors file, which may come from an untrusted source.
    ///
    /// # Errors
    /// [`CompileError`] if the bytes are damaged or the parts contradict each other.
    pub fn from_parts(manifest: NetworkManifest, weights: &[u8]) -> Result<Self, CompileError> {
        let NetworkManifest { format_version, public, values, set_aside, made, given_up, reached } = manifest;
        let expected = public.format_version();
        if format_version != expected {
            let found = format_version;
            return Err(CompileError::FormatVersion { what: "network manifest", found, expected });
        }
        let weights = decode(&public, weights)?;
        let values = all_values(&public, values)?;
        let network =
            Self::new(public, weights, &values)?.with_set_aside(set_aside).with_made(made, given_up);
        Ok(Self { reached, ..network })
    }
}

/// Whether a file need not say a count.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// What calibration saw of every value, where that of a part that repeats is written once.
fn all_values(public: &PublicNetwork, written: Vec<Calibrated>) -> Result<Vec<Calibrated>, CompileError> {
    let mut made = Vec::with_capacity(public.nodes().len() + 1);
    let mut written = written.into_iter();
    made.extend(written.next());
    for node in 0..public.nodes().len() {
        made.extend(match repeats::counterpart(public.repeats(), node) {
            Some(first) => made.get(first + 1).copied(),
            None => written.next(),
        });
    }
    // Too few are refused where they are joined with the rest.
    match written.len() {
        0 => Ok(made),
        more => {
            let reason = format!("there are {more} calibrated ranges too many");
            Err(CompileError::Network { place: "the ranges".to_owned(), reason })
        }
    }
}

fn encode(weights: &BTreeMap<usize, LinearWeights>, public: &PublicNetwork) -> Result<Vec<u8>, CompileError> {
    let mut tensors: Vec<(String, Dtype, usize, Vec<u8>)> = Vec::with_capacity(2 * weights.len());
    let is_written = |index: &usize| repeats::counterpart(public.repeats(), *index).is_none();
    for (index, layer) in weights.iter().filter(|(index, _)| is_written(index)) {
        // Networks hold only weights that fit 32 bits.
        let weight: Vec<u8> = layer.weight().iter().flat_map(|&w| (w as i32).to_le_bytes()).collect();
        let width = if public.is_wide() { 16 } else { 8 };
        let bias: Vec<u8> =
            layer.bias().iter().flat_map(|b| b.to_le_bytes().into_iter().take(width)).collect();
        if !weight.is_empty() {
            tensors.push((format!("{index}.weight"), Dtype::I32, layer.weight().len(), weight));
        }
        tensors.push((format!("{index}.bias"), Dtype::I64, bias.len() / 8, bias));
    }
    let views = tensors
        .iter()
        .map(|(name, dtype, count, bytes)| Ok((name, TensorView::new(*dtype, vec![*count], bytes)?)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(damaged::<safetensors::SafeTensorError>)?;
    serialize(views, None).map_err(damaged)
}

fn decode(public: &PublicNetwork, bytes: &[u8]) -> Result<BTreeMap<usize, LinearWeights>, CompileError> {
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let (mut weights, mut count) = (BTreeMap::new(), 0);
    for (index, node) in public.nodes().iter().enumerate() {
        let channels = match &node.op {
            FixedOp::Conv2d(geometry) => Some(geometry.out_channels),
            FixedOp::Linear { outputs, .. } => Some(*outputs),
            FixedOp::Bias { .. } => None,
            _ => continue,
        };
        if let Some(first) = repeats::counterpart(public.repeats(), index) {
            if let Some(shared) = weights.get(&first).cloned() {
                weights.insert(index, shared);
            }
            continue;
        }
        let bias = biases(&file, &format!("{index}.bias"), public.is_wide())?;
        let layer = match channels {
            Some(channels) => {
                let weight = integers(&file, &format!("{index}.weight"), Dtype::I32)?;
                LinearWeights::new(channels, weight, bias)
            }
            None => LinearWeights::bias_alone(bias),
        };
        count += if channels.is_some() { 2 } else { 1 };
        // Layers of a loop are kept once.
        let same = weights.values().find(|known| **known == layer).cloned();
        weights.insert(index, same.unwrap_or(layer));
    }
    if file.len() != count {
        return Err(damaged("it holds tensors that no layer uses"));
    }
    Ok(weights)
}

/// Biases; of a network whose values do not fit 64 bits, of two words each, the lower first.
fn biases(file: &SafeTensors<'_>, name: &str, are_wide: bool) -> Result<Vec<i128>, CompileError> {
    let words = integers(file, name, Dtype::I64)?;
    if !are_wide {
        return Ok(words.into_iter().map(i128::from).collect());
    }
    match words.as_chunks() {
        (pairs, []) => {
            Ok(pairs.iter().map(|[low, high]| i128::from(*high) << 64 | i128::from(*low as u64)).collect())
        }
        _ => Err(damaged(format!("tensor `{name}` is not one of pairs of words"))),
    }
}

fn integers(file: &SafeTensors<'_>, name: &str, dtype: Dtype) -> Result<Vec<i64>, CompileError> {
    let view = file.tensor(name).map_err(damaged)?;
    if view.dtype() != dtype || view.shape().len() != 1 {
        return Err(damaged(format!("tensor `{name}` is not one axis of {dtype:?}")));
    }
    Ok(match dtype {
        Dtype::I32 => {
            view.data().as_chunks().0.iter().map(|&chunk| i64::from(i32::from_le_bytes(chunk))).collect()
        }
        _ => view.data().as_chunks().0.iter().map(|&chunk| i64::from_le_bytes(chunk)).collect(),
    })
}
