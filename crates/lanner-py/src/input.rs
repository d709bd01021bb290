//! A model's input, as its manifest describes it.

use lanner::{Error, ErrorKind};
use lanner_network::NetworkInput;
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;

use crate::error::raise;
use crate::model::values;

/// What a model accepts, and how a prediction rounds it.
#[pyclass(frozen, module = "lanner._native")]
pub(crate) struct NativeInput(NetworkInput);

#[pymethods]
impl NativeInput {
    #[new]
    fn new(py: Python<'_>, input_json: &str) -> PyResult<Self> {
        let read = || {
            let input: NetworkInput = serde_json::from_str(input_json)
                .map_err(|error| Error::new(ErrorKind::Model, format!("the input: {error}")))?;
            input.check_description()?;
            Ok(Self(input))
        };
        read().map_err(|error: Error| raise(py, &error))
    }

    /// What makes another of it, in another process too.
    fn __getnewargs__(&self, py: Python<'_>) -> PyResult<(String,)> {
        Ok((crate::model::json(py, &self.0)?,))
    }

    #[getter]
    fn axis(&self) -> Option<usize> {
        self.0.features.as_ref().map(|features| features.axis)
    }

    #[getter]
    fn preprocessed(&self) -> bool {
        self.0.features.as_ref().is_some_and(|features| features.preprocessing.is_some())
    }

    #[getter]
    fn unit(&self) -> f64 {
        self.0.scale.unit()
    }

    /// The smallest and the largest real value and the unit: of each feature, or one for all.
    fn limits(&self) -> [Vec<f64>; 3] {
        let elements: Vec<usize> = match &self.0.features {
            Some(features) => features.first_elements(&self.0.shape).collect(),
            None => vec![0],
        };
        let ends: Vec<[f64; 2]> = elements.iter().map(|&index| self.0.limits_of(index)).collect();
        let units = elements.iter().map(|&index| self.0.step(index)).collect();
        [ends.iter().map(|end| end[0]).collect(), ends.iter().map(|end| end[1]).collect(), units]
    }

    /// The first value, row-major, of samples one after the other that rounds to one beyond the range.
    fn outside(&self, py: Python<'_>, x: PyReadonlyArrayDyn<'_, f32>) -> Option<usize> {
        let values = values(&x);
        py.detach(|| self.0.first_outside(&values))
    }
}
