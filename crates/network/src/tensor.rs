//! Named float tensors, and their safetensors file.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::CompileError;

/// A float tensor, row-major.
///
/// Invariant: `data.len()` is the product of `shape` (1 for the empty shape).
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Tensor {
    /// A tensor of the shape, or `None` if the number of values is not the product of the shape.
    #[must_use]
    pub fn new(shape: Vec<usize>, data: Vec<f32>) -> Option<Self> {
        (element_count(&shape) == Some(data.len())).then_some(Self { shape, data })
    }

    /// A tensor of one axis.
    #[must_use]
    pub fn vector(data: Vec<f32>) -> Self {
        Self { shape: vec![data.len()], data }
    }

    /// The shape; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row-major.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The values repeated to `shape` by numpy's rule, or `None` if they do not broadcast to it.
    #[must_use]
    pub fn broadcast(&self, shape: &[usize]) -> Option<Vec<f32>> {
        if self.shape == shape {
            return Some(self.data.clone());
        }
        let strides = self.strides(shape)?;
        // The last axes along which nothing changes: one value for all of them.
        let changing = strides.iter().rposition(|stride| *stride > 0).map_or(0, |axis| axis + 1);
        let (outer, repeated) = (&shape[..changing], element_count(&shape[changing..])?);
        let source = |mut index: usize| {
            let mut at = 0;
            for (size, stride) in outer.iter().zip(&strides).rev() {
                at += (index % size) * stride;
                index /= size;
            }
            at
        };
        let mut values = Vec::with_capacity(element_count(shape)?);
        for index in 0..element_count(outer)? {
            values.resize(values.len() + repeated, self.data[source(index)]);
        }
        Some(values)
    }

    /// Whether the values can be repeated to `shape`, as [`Self::broadcast`] does.
    #[must_use]
    pub fn broadcasts_to(&self, shape: &[usize]) -> bool {
        self.strides(shape).is_some() && element_count(shape).is_some()
    }

    /// For each axis of `shape`, how far apart values are that follow each other: 0 where they are repeated.
    fn strides(&self, shape: &[usize]) -> Option<Vec<usize>> {
        let lead = shape.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; shape.len()];
        let mut stride = 1;
        for axis in (lead..shape.len()).rev() {
            let size = self.shape[axis - lead];
            if size == shape[axis] {
                strides[axis] = stride;
            } else if size != 1 {
                return None;
            }
            stride *= size;
        }
        Some(strides)
    }
}

/// The tensors of a graph by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    by_name: BTreeMap<String, Tensor>,
}

impl Drop for Tensors {
    fn drop(&mut self) {
        self.by_name.values_mut().for_each(|tensor| tensor.data.zeroize());
    }
}

impl ZeroizeOnDrop for Tensors {}

impl Tensors {
    /// Reads a safetensors file of `F32` tensors (`F64` is rounded to `f32`).
    ///
    /// # Errors
    /// [`CompileError::TensorFile`] if the bytes are damaged or a tensor has another type; [`CompileError::NotFinite`] if a value is
    /// NaN or infinite.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, CompileError> {
        let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let mut tensors = Self::default();
        for (name, view) in file.iter() {
            tensors.insert(name, decode(name, &view)?)?;
        }
        Ok(tensors)
    }

    /// The tensors as a safetensors file; the same tensors always give the same bytes.
    ///
    /// # Errors
    /// [`CompileError::TensorFile`] if the tensors are too large for the format.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, CompileError> {
        let bytes: Vec<(&String, &Tensor, Vec<u8>)> = self
            .by_name
            .iter()
            .map(|(name, tensor)| (name, tensor, tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect()))
            .collect();
        let views = bytes
            .iter()
            .map(|(name, tensor, data)| Ok((*name, TensorView::new(Dtype::F32, tensor.shape.clone(), data)?)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(damaged::<safetensors::SafeTensorError>)?;
        serialize(views, None).map_err(damaged)
    }

    /// Adds a tensor, replacing one of the same name.
    ///
    /// # Errors
    /// [`CompileError::NotFinite`] if a value is NaN or infinite.
    pub fn insert(&mut self, name: &str, tensor: Tensor) -> Result<(), CompileError> {
        if !tensor.data.iter().all(|x| x.is_finite()) {
            return Err(CompileError::NotFinite { tensor: name.to_owned() });
        }
        self.by_name.insert(name.to_owned(), tensor);
        Ok(())
    }

    /// Every tensor with its name, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.by_name.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The tensor of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.by_name.get(name)
    }

    /// The tensor that a node needs.
    ///
    /// # Errors
    /// [`CompileError::UnknownTensor`] if it is not there.
    pub fn of_node(&self, node: &str, name: &str) -> Result<&Tensor, CompileError> {
        self.get(name)
            .ok_or_else(|| CompileError::UnknownTensor { node: node.to_owned(), tensor: name.to_owned() })
    }
}

/// The product of a shape, or `None` if it overflows.
#[must_use]
pub fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))
}

fn decode(name: &str, view: &TensorView<'_>) -> Result<Tensor, CompileError> {
    let bytes = view.data();
    let data: Vec<f32> = match view.dtype() {
        Dtype::F32 => bytes.as_chunks().0.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect(),
        Dtype::F64 => bytes.as_chunks().0.iter().map(|&chunk| f64::from_le_bytes(chunk) as f32).collect(),
        other => {
            return Err(CompileError::TensorFile {
                reason: format!("tensor `{name}` has type {other:?}, expected F32"),
            });
        }
    };
    Tensor::new(view.shape().to_vec(), data).ok_or_else(|| CompileError::TensorFile {
        reason: format!("tensor `{name}` does not fill its shape"),
    })
}

/// The error of a file that is damaged.
pub(crate) fn damaged<E: std::fmt::Display>(reason: E) -> CompileError {
    CompileError::TensorFile { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_survives_the_round_trip() {
        let mut tensors = Tensors::default();
        tensors.insert("b", Tensor::new(vec![2, 2], vec![1.0, -2.5, 0.0, 4.0]).unwrap()).unwrap();
        tensors.insert("a", Tensor::new(vec![], vec![7.0]).unwrap()).unwrap();
        let bytes = tensors.to_safetensors().unwrap();
        assert_eq!(Tensors::from_safetensors(&bytes), Ok(tensors.clone()));
        assert_eq!(tensors.to_safetensors().unwrap(), bytes);
    }

    /// The bound is checked when this compiles.
    #[test]
    fn weights_are_erased_when_dropped() {
        fn is_erased<T: ZeroizeOnDrop>() {}
        is_erased::<crate::LinearWeights>();
        is_erased::<Tensors>();
    }

    #[test]
    fn truncated_files_are_errors() {
        let mut tensors = Tensors::default();
        tensors.insert("a", Tensor::vector(vec![1.0; 9])).unwrap();
        let bytes = tensors.to_safetensors().unwrap();
        for length in 0..bytes.len() {
            assert!(Tensors::from_safetensors(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn not_a_number_is_refused() {
        let result = Tensors::default().insert("w", Tensor::vector(vec![f32::NAN]));
        assert_eq!(result, Err(CompileError::NotFinite { tensor: "w".into() }));
    }

    #[test]
    fn broadcast_follows_numpy() {
        let channel = Tensor::new(vec![2, 1, 1], vec![1.0, 2.0]).unwrap();
        assert_eq!(channel.broadcast(&[2, 1, 2]).unwrap(), [1.0, 1.0, 2.0, 2.0]);
        let row = Tensor::vector(vec![1.0, 2.0]);
        assert_eq!(row.broadcast(&[2, 2]).unwrap(), [1.0, 2.0, 1.0, 2.0]);
        let column = Tensor::new(vec![2, 1], vec![1.0, 2.0]).unwrap();
        assert_eq!(column.broadcast(&[2, 2, 1]).unwrap(), [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(channel.broadcast(&[2, 2, 0]).unwrap(), [0.0; 0]);
        assert_eq!(row.broadcast(&[3]), None);
        assert_eq!(row.broadcast(&[]), None);
        assert_eq!(Tensor::new(vec![], vec![3.0]).unwrap().broadcast(&[2]).unwrap(), [3.0, 3.0]);
    }
}
