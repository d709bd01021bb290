//! The native module of the Python package: conversions only.
//!
//! Documents cross the boundary as JSON text, samples and scores as numpy arrays. The interpreter is free while Rust works.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 extracts arguments into values")]

mod client;
mod error;
mod input;
mod model;
mod relay;
mod server;
mod text;
mod trace;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The module `lanner._native`.
#[pymodule]
mod _native {
    use super::{Bound, PyDict, PyResult, Python};
    use std::path::PathBuf;

    use numpy::PyReadonlyArrayDyn;
    use pyo3::pyfunction;

    #[pymodule_export]
    use super::client::{NativeClient, NativeSetUpWatch};
    #[pymodule_export]
    use super::client::{list_models, measure_link};
    #[pymodule_export]
    use super::error::NativeError;
    #[pymodule_export]
    use super::input::NativeInput;
    #[pymodule_export]
    use super::model::NativeModel;
    #[pymodule_export]
    use super::relay::NativeRelay;
    #[pymodule_export]
    use super::server::NativeServer;
    #[pymodule_export]
    use super::text::{NativeText, read_tokenizer};
    #[pymodule_export]
    use super::trace::traces;

    /// Both parties in this process; samples along the first axis, and the JSON of a list of predictions.
    #[pyfunction]
    fn run_in_memory(
        py: Python<'_>,
        model: &NativeModel,
        x: PyReadonlyArrayDyn<'_, f32>,
    ) -> PyResult<String> {
        let (model, batch) = (model.shared(), super::model::Batch::of(&x));
        let predictions = py
            .detach(|| lanner::run(&model, &batch.samples()))
            .map_err(|error| super::error::raise(py, &error))?;
        super::model::json(py, &predictions)
    }

    /// What a prediction by a model with this public half will take, as JSON.
    #[pyfunction]
    #[pyo3(signature = (manifest_json, kernels_json=None, network=None, max_memory=None, max_seconds=None, cores=(None, None)))]
    fn estimate(
        py: Python<'_>,
        manifest_json: &str,
        kernels_json: Option<&str>,
        network: Option<(f64, f64)>,
        max_memory: Option<u64>,
        max_seconds: Option<u64>,
        cores: (Option<u32>, Option<u32>),
    ) -> PyResult<String> {
        let profile = |(bandwidth_bits_per_second, round_trip_seconds)| lanner::NetworkProfile {
            bandwidth_bits_per_second,
            round_trip_seconds,
        };
        let limits = lanner::LimitOptions { memory: max_memory, seconds: max_seconds };
        let estimated = py.detach(|| {
            let manifest = lanner::Manifest::within(manifest_json, limits)?;
            let cores = lanner::Cores { client: cores.0, server: cores.1 };
            lanner::estimate(&manifest, kernels_json, network.map(profile), cores)
        });
        estimated.map(|document| document.to_string()).map_err(|error| super::error::raise(py, &error))
    }

    /// The table of kernel times that comes with the build, as JSON.
    #[pyfunction]
    fn shipped_kernel_times(py: Python<'_>) -> PyResult<String> {
        lanner::shipped_kernel_times().map_err(|error| super::error::raise(py, &error))
    }

    /// Which table of kernel times this is, or which comes with the build, as JSON.
    #[pyfunction]
    #[pyo3(signature = (kernels_json=None))]
    fn describe_kernel_times(py: Python<'_>, kernels_json: Option<&str>) -> PyResult<String> {
        let used = lanner::describe_kernel_times(kernels_json);
        super::model::json(py, &used.map_err(|error| super::error::raise(py, &error))?)
    }

    /// Why a graph cannot be compiled, as far as that is known before calibration: a JSON list of kind, what, where and fix.
    #[pyfunction]
    fn refusals(
        py: Python<'_>,
        graph_json: &str,
        tensors: &Bound<'_, PyDict>,
        options_json: &str,
    ) -> PyResult<String> {
        super::model::refusals(py, graph_json, tensors, options_json)
    }

    /// Checks compile options, as JSON, for what is wrong whatever the network is.
    #[pyfunction]
    fn check_options(py: Python<'_>, options_json: &str) -> PyResult<()> {
        let options = lanner::CompileOptions::from_json(options_json);
        options.map(drop).map_err(|error| super::error::raise(py, &error))
    }

    /// The bits per second and the round trip in seconds of a named network; none if there is no such name.
    #[pyfunction]
    fn network_profile(name: &str) -> Option<(f64, f64)> {
        let profile = lanner::NetworkProfile::named(name)?;
        Some((profile.bandwidth_bits_per_second, profile.round_trip_seconds))
    }

    /// Makes keys for sessions about the model of a public half, in a file and another beside it; what was written, as JSON.
    #[pyfunction]
    #[pyo3(signature = (manifest_json, path, max_memory = None, max_seconds = None))]
    fn keygen(
        py: Python<'_>,
        manifest_json: &str,
        path: PathBuf,
        max_memory: Option<u64>,
        max_seconds: Option<u64>,
    ) -> PyResult<String> {
        let limits = lanner::LimitOptions { memory: max_memory, seconds: max_seconds };
        let make = || lanner::keygen(&lanner::Manifest::within(manifest_json, limits)?, &path);
        let made = py.detach(make).map_err(|error| super::error::raise(py, &error))?;
        super::model::json(py, &made)
    }

    /// The pairings in a state directory, as a JSON list.
    #[pyfunction]
    fn pairings(py: Python<'_>, state_dir: PathBuf) -> PyResult<String> {
        let found = py.detach(|| lanner::pairings(&state_dir));
        super::model::json(py, &found.map_err(|error| super::error::raise(py, &error))?)
    }

    /// Forgets a pairing; whether there was one.
    #[pyfunction]
    fn revoke(py: Python<'_>, state_dir: PathBuf, pairing: &str) -> PyResult<bool> {
        let revoked = py.detach(|| lanner::revoke(&state_dir, pairing));
        revoked.map_err(|error| super::error::raise(py, &error))
    }

    /// What each mode is, as a JSON list.
    #[pyfunction]
    fn modes() -> String {
        lanner::modes().to_string()
    }

    /// Versions and processor features, as JSON.
    #[pyfunction]
    fn doctor() -> String {
        lanner::doctor().to_string()
    }
}
