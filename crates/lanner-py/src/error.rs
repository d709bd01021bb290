//! Errors, as exceptions with their three parts.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    lanner._native,
    NativeError,
    PyException,
    "An error of the native layers: `kind`, `what`, `where` and `fix` are its attributes."
);

/// The exception of an error.
pub(crate) fn raise(py: Python<'_>, error: &lanner::Error) -> PyErr {
    let exception = NativeError::new_err(error.to_string());
    let value = exception.value(py);
    for (name, text) in parts(error) {
        if let Err(failure) = value.setattr(name, text) {
            return failure;
        }
    }
    exception
}

/// An error's parts by their names in Python and JSON.
pub(crate) fn parts(error: &lanner::Error) -> [(&'static str, &str); 4] {
    [("kind", error.kind.name()), ("what", &error.what), ("where", &error.place), ("fix", &error.fix)]
}
