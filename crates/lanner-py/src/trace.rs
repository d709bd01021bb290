//! Traces of networks over calibration samples, made where Python has them made.

use std::sync::OnceLock;

use lanner::{Error, ErrorKind};
use lanner_network::{CompileError, Network, NetworkManifest};
use lanner_quantize::{OneCore, Trace, Tracer};
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::error::raise;
use crate::model::Batch;

/// Has a function of Python's make traces: of a network's manifest and weights, and of the numbers of samples.
pub(crate) struct Elsewhere {
    function: Py<PyAny>,
    failure: OnceLock<PyErr>,
}

impl Elsewhere {
    pub(crate) const fn new(function: Py<PyAny>) -> Self {
        Self { function, failure: OnceLock::new() }
    }

    /// What the function failed with, if it did.
    pub(crate) fn into_failure(self) -> Option<PyErr> {
        self.failure.into_inner()
    }
}

impl Tracer for Elsewhere {
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError> {
        let (manifest, weights) = network.to_parts()?;
        let (manifest, numbers) = (manifest.to_json()?, samples.iter().map(|(number, _)| *number));
        let told = Python::attach(|py| {
            let given = (manifest, PyBytes::new(py, &weights), numbers.collect::<Vec<_>>());
            self.function.call1(py, given)?.extract::<Vec<PyBackedBytes>>(py)
        });
        let told = told.map_err(|failure| {
            let reason = failure.to_string();
            // The search asks for nothing after a failure.
            let _ = self.failure.set(failure);
            CompileError::Tracing { reason }
        })?;
        let read = |bytes: PyBackedBytes| {
            let damaged = || CompileError::Tracing { reason: "a trace is damaged".to_owned() };
            Trace::from_bytes(&bytes).ok_or_else(damaged)
        };
        told.into_iter().map(read).collect()
    }
}

/// The traces of a network over samples, shape (n, *shape), with the numbers that errors name them by, on one core: what `Elsewhere` asks
/// for.
#[pyfunction]
pub(crate) fn traces(
    py: Python<'_>,
    manifest: &str,
    weights: &[u8],
    samples: PyReadonlyArrayDyn<'_, f32>,
    numbers: Vec<usize>,
) -> PyResult<Vec<Py<PyBytes>>> {
    let batch = Batch::of(&samples);
    let made = py.detach(|| {
        let network = Network::from_parts(NetworkManifest::from_json(manifest)?, weights)?;
        let samples = batch.samples();
        if samples.len() != numbers.len() {
            return Err(Error::new(ErrorKind::Misuse, "there are not as many samples as numbers"));
        }
        let numbered: Vec<(usize, &[f32])> = numbers.into_iter().zip(samples).collect();
        Ok(OneCore.traces(&network, &numbered)?)
    });
    let made = made.map_err(|error| raise(py, &error))?;
    Ok(made.iter().map(|trace| PyBytes::new(py, &trace.to_bytes()).unbind()).collect())
}
