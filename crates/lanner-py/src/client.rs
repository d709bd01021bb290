//! A data owner's session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lanner::{Client, ClientConfig, Error, ErrorKind, SetUpWatch, Watch};
use lanner_process::Mark;
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raise;
use crate::model::{Batch, json};

/// A data owner's session: the constructor connects, shakes hands and does the set-up.
#[pyclass(frozen, module = "lanner._native")]
pub(crate) struct NativeClient {
    manifest: String,
    watch: Watch,
    client: Arc<Mutex<Option<Client>>>,
    mark: Mark,
}

#[pymethods]
impl NativeClient {
    #[new]
    fn new(py: Python<'_>, config_json: &str, watch: &NativeSetUpWatch) -> PyResult<Self> {
        let connected = py.detach(|| {
            let client = Client::connect_watched(&parse(config_json)?, &watch.0)?;
            let manifest = client.manifest().to_json()?;
            Ok((manifest, client.watch(), client))
        });
        let (manifest, watch, client) = connected.map_err(|error| raise(py, &error))?;
        Ok(Self { manifest, watch, client: Arc::new(Mutex::new(Some(client))), mark: Mark::here() })
    }

    fn manifest(&self) -> &str {
        &self.manifest
    }

    /// A JSON list; it waits for no call that runs.
    fn progress(&self, py: Python<'_>) -> PyResult<String> {
        json(py, &self.watch.steps())
    }

    fn prepare(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.call(py, |client| client.prepare(count))
    }

    fn keep(&self, py: Python<'_>, count: usize) -> PyResult<String> {
        let phases = self.call(py, |client| client.keep(count))?;
        json(py, &phases)
    }

    fn stock(&self, py: Python<'_>) -> PyResult<usize> {
        self.call(py, |client| client.stock())
    }

    fn together(&self, py: Python<'_>) -> PyResult<usize> {
        self.call(py, Client::together)
    }

    fn predict(&self, py: Python<'_>, x: PyReadonlyArrayDyn<'_, f32>, follow: usize) -> PyResult<String> {
        let batch = Batch::of(&x);
        let predictions = self.call(py, |client| client.predict_many(&batch.samples(), follow))?;
        json(py, &predictions)
    }

    /// The length and the first bytes of the longest message that the last call of `predict` sent.
    fn longest_sent<'py>(&self, py: Python<'py>) -> PyResult<(u64, Bound<'py, PyBytes>)> {
        let excerpt = self.call(py, |client| Ok(client.longest_sent().clone()))?;
        Ok((excerpt.length, PyBytes::new(py, &excerpt.beginning)))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| {
            self.mark.check(CLIENT)?;
            let closing = lock(&self.client).take();
            closing.map_or(Ok(()), Client::close)
        });
        closed.map_err(|error| raise(py, &error))
    }
}

/// Tells how far a client that is being made has come.
#[pyclass(frozen, module = "lanner._native")]
#[derive(Default)]
pub(crate) struct NativeSetUpWatch(SetUpWatch);

#[pymethods]
impl NativeSetUpWatch {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// A JSON list; it waits for nothing.
    fn parts(&self, py: Python<'_>) -> PyResult<String> {
        json(py, &self.0.parts())
    }
}

/// Measures the network to a server: bits per second and the round trip in seconds.
#[pyfunction]
pub(crate) fn measure_link(py: Python<'_>, config_json: &str) -> PyResult<(f64, f64)> {
    let measured =
        py.detach(|| lanner::measure_link(&parse(config_json)?)).map_err(|error| raise(py, &error))?;
    Ok((measured.bandwidth_bits_per_second, measured.round_trip_seconds))
}

/// The models that a server offers: a JSON list of name and commitment.
#[pyfunction]
pub(crate) fn list_models(py: Python<'_>, config_json: &str) -> PyResult<String> {
    let listed =
        py.detach(|| lanner::list_models(&parse(config_json)?)).map_err(|error| raise(py, &error))?;
    json(py, &listed)
}

fn parse(config_json: &str) -> lanner::Result<ClientConfig> {
    serde_json::from_str(config_json)
        .map_err(|error| Error::new(ErrorKind::Misuse, format!("the configuration does not parse: {error}")))
}

impl NativeClient {
    /// Works with the open session. A session that failed is out of step with its peer: it is closed.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Client) -> lanner::Result<T> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| {
            // In a child that `fork` made, a thread that is not there may hold the lock.
            self.mark.check(CLIENT)?;
            // Such a thread has this one for ever, too: a session that it was changing is dropped in no child.
            let client = Arc::clone(&self.client);
            let mut slot = lock(&client);
            let client = slot.as_mut().ok_or_else(|| {
                Error::new(ErrorKind::Misuse, "the session is closed").fix("open another Client")
            })?;
            let result = work(client);
            let out_of_step = |error: &Error| {
                matches!(error.kind, ErrorKind::Peer | ErrorKind::Busy | ErrorKind::Transport)
            };
            if result.as_ref().is_err_and(out_of_step) {
                *slot = None;
            }
            result
        });
        result.map_err(|error| raise(py, &error))
    }
}

fn lock(client: &Mutex<Option<Client>>) -> MutexGuard<'_, Option<Client>> {
    // A panic while the session was in use leaves it out of step; the next message will say so.
    client.lock().unwrap_or_else(PoisonError::into_inner)
}

const CLIENT: &str = "this client";
