//! A serving party.

use lanner::{Error, ErrorKind, Server, ServerConfig};
use pyo3::prelude::*;

use crate::error::raise;
use crate::model::{NativeModel, json};

/// A serving party: accepts sessions until stopped.
#[pyclass(frozen, module = "lanner._native")]
pub(crate) struct NativeServer(Server);

#[pymethods]
impl NativeServer {
    #[new]
    #[pyo3(signature = (models, config_json, page=None))]
    fn new(
        py: Python<'_>,
        models: Vec<(String, Py<NativeModel>)>,
        config_json: &str,
        page: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let models: Vec<_> = models.into_iter().map(|(name, model)| (name, model.get().shared())).collect();
        let server = py.detach(|| {
            let config: ServerConfig = serde_json::from_str(config_json).map_err(|error| {
                Error::new(ErrorKind::Misuse, format!("the configuration does not parse: {error}"))
            })?;
            Server::new(models, config)
        });
        let mut server = server.map_err(|error| raise(py, &error))?;
        if let Some(page) = page {
            // It names the fingerprint, which there is now.
            let files = page.call1(py, (server.fingerprint(),))?;
            let files: Vec<(String, String, Vec<u8>)> = files.extract(py)?;
            let files = files.into_iter().map(|(path, kind, content)| (path, kind, content.into()));
            server.set_page(files.collect());
        }
        Ok(Self(server))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.start()).map_err(|error| raise(py, &error))
    }

    fn stop(&self, py: Python<'_>, drain_seconds: f64) -> PyResult<()> {
        py.detach(|| self.0.stop(drain_seconds)).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn address(&self) -> String {
        self.0.address()
    }

    #[getter]
    fn web_address(&self) -> Option<String> {
        self.0.web_address()
    }

    #[getter]
    fn fingerprint(&self) -> Option<String> {
        self.0.fingerprint().map(str::to_owned)
    }

    #[getter]
    fn outside_term(&self) -> Option<String> {
        self.0.outside_term().map(str::to_owned)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let stats = py.detach(|| self.0.stats());
        json(py, &stats)
    }

    fn kept(&self, py: Python<'_>) -> PyResult<String> {
        let kept = py.detach(|| self.0.kept());
        json(py, &kept)
    }

    fn journal(&self, py: Python<'_>) -> PyResult<String> {
        let journal = py.detach(|| self.0.journal());
        json(py, &journal)
    }

    fn computed(&self, py: Python<'_>) -> PyResult<String> {
        let computed = py.detach(|| self.0.computed());
        json(py, &computed)
    }
}
