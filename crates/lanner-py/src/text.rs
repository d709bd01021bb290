//! Texts as a model's inputs, as its manifest describes them.

use lanner::{Encoder, Error, ErrorKind, TextError, TextInput, TokenizerFile};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use serde_json::json;

use crate::error::raise;

/// The numbers of texts, their masks and types, each a row a text, and which texts were cut.
type Arrays<'py> =
    (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<u32>>, Vec<bool>);

/// How a text becomes a model's inputs.
#[pyclass(frozen, module = "lanner._native")]
pub(crate) struct NativeText {
    encoder: Encoder,
    length: usize,
}

#[pymethods]
impl NativeText {
    #[new]
    fn new(py: Python<'_>, text_json: &str) -> PyResult<Self> {
        let read = || {
            let input: TextInput = serde_json::from_str(text_json)
                .map_err(|error| Error::new(ErrorKind::Model, format!("texts: {error}")))?;
            let encoder = Encoder::new(&input).map_err(|error| of_file(&error))?;
            Ok(Self { encoder, length: input.length })
        };
        py.detach(read).map_err(|error: Error| raise(py, &error))
    }

    /// How words become tokens, how many there are, the largest number of one, and whether there are capitals.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let told = json!({
            "kind": self.encoder.kind(),
            "tokens": self.encoder.tokens(),
            "largest": self.encoder.largest(),
            "lowercases": self.encoder.lowercases(),
        });
        crate::model::json(py, &told)
    }

    /// The tokens of these numbers; none of a number that no token has.
    fn tokens(&self, ids: Vec<u32>) -> Vec<Option<String>> {
        ids.into_iter().map(|id| self.encoder.token(id)).collect()
    }

    /// What texts become; an error has the text's place as its `where`.
    fn encode<'py>(&self, py: Python<'py>, texts: Vec<String>, truncate: bool) -> PyResult<Arrays<'py>> {
        let work = || {
            let mut rows = [Vec::new(), Vec::new(), Vec::new()];
            let mut cut = Vec::with_capacity(texts.len());
            for (place, text) in texts.iter().enumerate() {
                let made = self.encoder.encode(text, truncate);
                let made = made.map_err(|error| of_text(&error).at(place.to_string()))?;
                for (row, values) in rows.iter_mut().zip([&made.ids, &made.mask, &made.types]) {
                    row.extend_from_slice(values);
                }
                cut.push(made.cut);
            }
            let shaped = rows.map(|row| Array2::from_shape_vec((texts.len(), self.length), row));
            Ok((shaped, cut))
        };
        let ([ids, mask, types], cut) = py.detach(work).map_err(|error: Error| raise(py, &error))?;
        let array = |made: Result<Array2<u32>, _>| {
            let wrong = |error: numpy::ndarray::ShapeError| Error::new(ErrorKind::Input, error.to_string());
            made.map_err(|error| raise(py, &wrong(error))).map(|values| values.into_pyarray(py))
        };
        Ok((array(ids)?, array(mask)?, array(types)?, cut))
    }
}

/// A tokenizer file as it goes into a model's public half, and what it says of lengths, as JSON.
#[pyfunction]
#[pyo3(signature = (text, pad=None))]
pub(crate) fn read_tokenizer(py: Python<'_>, text: &str, pad: Option<&str>) -> PyResult<String> {
    let file = py.detach(|| TokenizerFile::read(text, pad)).map_err(|error| raise(py, &of_file(&error)))?;
    let told = json!({
        "tokenizer": file.text,
        "kind": file.kind,
        "length": file.length,
        "pad": file.pad,
        "left": file.left,
    });
    crate::model::json(py, &told)
}

fn of_file(error: &TextError) -> Error {
    let fix = match error {
        TextError::Choice(_) => "name another, or give more room",
        _ => "give a tokenizer.json of WordPiece, BPE, Unigram or whole words",
    };
    Error::new(ErrorKind::Model, error.to_string()).fix(fix)
}

fn of_text(error: &TextError) -> Error {
    let fix = match error {
        TextError::TooLong { .. } | TextError::TooLarge => {
            "shorten it, or let it be cut: --truncate, in Python truncate=True"
        }
        _ => "give another text",
    };
    Error::new(ErrorKind::Input, error.to_string()).fix(fix)
}
