//! Versions of documents.

use serde::Deserialize;

use crate::CompileError;

/// Names a version mismatch before the fields of another version fail to parse.
///
/// # Errors
/// [`CompileError::FormatVersion`] for another one, [`CompileError::Json`] for what is no such document.
pub fn check_version(what: &'static str, known: &[u32], json: &str) -> Result<(), CompileError> {
    #[derive(Deserialize)]
    struct Versioned {
        format_version: u32,
    }
    let versioned: Versioned = serde_json::from_str(json)
        .map_err(|reason| CompileError::Json { what, reason: reason.to_string() })?;
    match versioned.format_version {
        found if known.contains(&found) => Ok(()),
        found => {
            let expected = known.last().copied().unwrap_or_default();
            Err(CompileError::FormatVersion { what, found, expected })
        }
    }
}
