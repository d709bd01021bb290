//! A compiled model.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lanner::{CompileOptions, Error, ErrorKind, LimitOptions, Model};
use lanner_graph::Graph;
use lanner_network::{Tensor, Tensors};
use lanner_quantize::{Calibration, OwnCores, Tracer};
use numpy::{PyArray2, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{parts, raise};
use crate::trace::Elsewhere;

/// The reference's integers, the overflows met, and for each sample the nodes whose values were beyond what there is room for, and how many.
type Reference<'py> = (Bound<'py, PyAny>, usize, Vec<Vec<(String, usize)>>);

/// A compiled model: fixed-point network, scales, plan and output policy.
#[pyclass(frozen, module = "lanner._native")]
pub(crate) struct NativeModel(Arc<Model>);

impl NativeModel {
    pub(crate) fn shared(&self) -> Arc<Model> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl NativeModel {
    #[staticmethod]
    #[pyo3(signature = (graph_json, tensors, calibration, options_json, tell=None, traces=None))]
    fn compile(
        py: Python<'_>,
        graph_json: &str,
        tensors: &Bound<'_, PyDict>,
        calibration: PyReadonlyArrayDyn<'_, f32>,
        options_json: &str,
        tell: Option<Py<PyAny>>,
        traces: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let weights = read_tensors(py, tensors)?;
        let samples = values(&calibration);
        let elsewhere = traces.map(Elsewhere::new);
        let tracer = elsewhere.as_ref().map_or(&OwnCores as &dyn Tracer, |elsewhere| elsewhere);
        let compiled = py.detach(|| {
            let stage = |name: &str| {
                // Whoever listens must not stop the work.
                let _ = tell.as_ref().map(|tell| Python::attach(|py| tell.call1(py, (name,))));
            };
            let options = CompileOptions::from_json(options_json)?;
            let calibration = Calibration { samples: &samples, tracer, tell: &stage };
            Model::compile_telling(Graph::from_json(graph_json)?, weights, calibration, &options)
        });
        if let Some(failure) = elsewhere.and_then(Elsewhere::into_failure) {
            return Err(failure);
        }
        compiled.map(|model| Self(Arc::new(model))).map_err(|error| raise(py, &error))
    }

    #[staticmethod]
    #[pyo3(signature = (path, max_memory=None, max_seconds=None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        max_memory: Option<u64>,
        max_seconds: Option<u64>,
    ) -> PyResult<Self> {
        let limits = LimitOptions { memory: max_memory, seconds: max_seconds };
        let loaded = py.detach(|| Model::load_within(&path, limits));
        loaded.map(|model| Self(Arc::new(model))).map_err(|error| raise(py, &error))
    }

    #[pyo3(signature = (bits, calibration, max_memory=None, max_seconds=None))]
    fn keeping(
        &self,
        py: Python<'_>,
        bits: u32,
        calibration: PyReadonlyArrayDyn<'_, f32>,
        max_memory: Option<u64>,
        max_seconds: Option<u64>,
    ) -> PyResult<Self> {
        let (samples, limits) =
            (values(&calibration), LimitOptions { memory: max_memory, seconds: max_seconds });
        let model = py.detach(|| self.0.keeping(bits, &samples, limits));
        model.map(|model| Self(Arc::new(model))).map_err(|error| raise(py, &error))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&path)).map_err(|error| raise(py, &error))
    }

    fn manifest(&self, py: Python<'_>) -> PyResult<String> {
        self.0.manifest().to_json().map_err(|error| raise(py, &error))
    }

    /// The table that the owner publishes for an input, if any.
    fn published<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let Some(table) = self.0.published(name) else { return Ok(None) };
        let shape = (table.shape().first().copied().unwrap_or(0), table.shape().get(1).copied().unwrap_or(0));
        let rows = numpy::ndarray::ArrayView2::from_shape(shape, table.data())
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Ok(Some(PyArray2::from_array(py, &rows)))
    }

    fn fixed<'py>(&self, py: Python<'py>, x: PyReadonlyArrayDyn<'py, f32>) -> PyResult<Reference<'py>> {
        let samples = values(&x);
        let fixed = py.detach(|| self.0.fixed(&samples)).map_err(|error| raise(py, &error))?;
        Ok((integers(py, fixed.scores)?, fixed.overflows, fixed.saturated))
    }

    fn probability(&self, py: Python<'_>, scores: Vec<i128>) -> PyResult<Option<f64>> {
        self.0.probability(&scores).map_err(|error| raise(py, &error))
    }

    fn float<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArrayDyn<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let samples = values(&x);
        let scores = py.detach(|| self.0.float(&samples)).map_err(|error| raise(py, &error))?;
        Ok(PyArray2::from_vec2(py, &scores)?)
    }

    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let report = py.detach(|| self.0.report()).map_err(|error| raise(py, &error))?;
        Ok(report.to_string())
    }

    /// One sample layer by layer, as JSON; with both parties in this process if `secure`.
    fn debug(&self, py: Python<'_>, x: PyReadonlyArrayDyn<'_, f32>, secure: bool) -> PyResult<String> {
        let sample = values(&x);
        let found =
            py.detach(|| lanner::debug(&self.0, &sample, secure)).map_err(|error| raise(py, &error))?;
        Ok(found.to_string())
    }

    #[getter]
    fn secure_error(&self) -> i64 {
        self.0.secure_error()
    }

    #[getter]
    fn logits_scale(&self) -> f64 {
        1.0 / self.0.network().output_scale()
    }
}

/// Why a graph cannot be compiled, as JSON.
pub(crate) fn refusals(
    py: Python<'_>,
    graph_json: &str,
    tensors: &Bound<'_, PyDict>,
    options_json: &str,
) -> PyResult<String> {
    let weights = read_tensors(py, tensors)?;
    let refused = py.detach(|| {
        lanner::refusals(&Graph::from_json(graph_json)?, &weights, &CompileOptions::from_json(options_json)?)
    });
    let refused = refused.map_err(|error| raise(py, &error))?;
    json(py, &refused.iter().map(|error| BTreeMap::from(parts(error))).collect::<Vec<_>>())
}

/// Samples along the first axis of an array.
pub(crate) struct Batch {
    count: usize,
    values: Vec<f32>,
}

impl Batch {
    pub(crate) fn of(array: &PyReadonlyArrayDyn<'_, f32>) -> Self {
        Self { count: array.shape().first().copied().unwrap_or(0), values: values(array) }
    }

    /// Each sample, flattened row-major.
    pub(crate) fn samples(&self) -> Vec<&[f32]> {
        self.values.chunks(self.values.len().checked_div(self.count).unwrap_or(1).max(1)).collect()
    }
}

/// The elements of an array, row-major.
pub(crate) fn values(array: &PyReadonlyArrayDyn<'_, f32>) -> Vec<f32> {
    array.as_array().iter().copied().collect()
}

/// A document as JSON text.
pub(crate) fn json(py: Python<'_>, document: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(document)
        .map_err(|error| raise(py, &Error::new(ErrorKind::Misuse, error.to_string())))
}

fn read_tensors(py: Python<'_>, arrays: &Bound<'_, PyDict>) -> PyResult<Tensors> {
    let mut tensors = Tensors::default();
    for (name, array) in arrays {
        let (name, array): (String, PyReadonlyArrayDyn<'_, f32>) = (name.extract()?, array.extract()?);
        let tensor = Tensor::new(array.shape().to_vec(), values(&array)).ok_or_else(|| {
            raise(py, &Error::new(ErrorKind::Model, "the tensor is too large").at(name.clone()))
        })?;
        tensors.insert(&name, tensor).map_err(|error| raise(py, &error.into()))?;
    }
    Ok(tensors)
}

/// An array of integers; of Python's own where some have more than 64 bits.
fn integers(py: Python<'_>, rows: Vec<Vec<i128>>) -> PyResult<Bound<'_, PyAny>> {
    let narrow = |row: &Vec<i128>| row.iter().map(|x| i64::try_from(*x)).collect::<Result<Vec<_>, _>>();
    if let Ok(rows) = rows.iter().map(narrow).collect::<Result<Vec<_>, _>>() {
        return Ok(PyArray2::from_vec2(py, &rows)?.into_any());
    }
    let object = |x: i128| Ok(x.into_pyobject(py)?.into_any().unbind());
    let rows = rows.into_iter().map(|row| row.into_iter().map(object).collect::<PyResult<Vec<_>>>());
    let rows: Vec<Vec<Py<PyAny>>> = rows.collect::<PyResult<_>>()?;
    Ok(PyArray2::from_owned_object_array(
        py,
        numpy::ndarray::Array2::from_shape_vec(
            (rows.len(), rows.first().map_or(0, Vec::len)),
            rows.into_iter().flatten().collect(),
        )
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?,
    )
    .into_any())
}
