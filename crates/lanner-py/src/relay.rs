//! An emulated network in front of a server.

use std::sync::{Mutex, PoisonError};

use lanner::{Error, NetworkProfile, Relay};
use pyo3::prelude::*;

use crate::error::raise;

/// A relay that clients of a server connect to instead: they meet the delay and the bandwidth of a network.
#[pyclass(frozen, module = "lanner._native")]
pub(crate) struct NativeRelay {
    address: String,
    relay: Mutex<Option<Relay>>,
}

#[pymethods]
impl NativeRelay {
    #[new]
    fn new(
        py: Python<'_>,
        target: &str,
        bandwidth_bits_per_second: f64,
        round_trip_seconds: f64,
    ) -> PyResult<Self> {
        let profile = NetworkProfile { bandwidth_bits_per_second, round_trip_seconds };
        let start = || Ok::<_, Error>(Relay::start(&target.parse()?, profile)?);
        let relay = py.detach(start).map_err(|error| raise(py, &error))?;
        Ok(Self { address: relay.address().to_string(), relay: Mutex::new(Some(relay)) })
    }

    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Takes no more clients; connections that are open stay as they are.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.relay.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
