//! Tables of what operations take: which was used, and what it lacks from the one that comes with the build.

use lanner_plan::{Kernels, Measurement};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::{Error, ErrorKind, Result};

/// Which table of kernel times was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelTimes {
    /// `shipped` with the build, `quick`, or `calibrated`.
    pub table: String,
    /// The machine that it is of.
    pub machine: String,
    /// When it was measured; `None` of the one that comes with the build, and of those that earlier versions wrote.
    pub measured: Option<String>,
    /// SHA-256 of all its rates, those that it takes from the build's table among them, in hexadecimal.
    pub sha256: String,
}

/// The table that comes with the build, as JSON.
///
/// # Errors
/// None.
pub fn shipped_kernel_times() -> Result<String> {
    Kernels::shipped().to_json().map_err(|what| damaged(&what))
}

/// Which table of kernel times this is; which comes with the build where it is `None`.
///
/// # Errors
/// [`ErrorKind::Misuse`] if the table is damaged.
pub fn describe_kernel_times(json: Option<&str>) -> Result<KernelTimes> {
    Ok(read(json)?.1)
}

/// A table of what operations take, with what it lacks from the one that comes with the build, which is used where there is none; and which it is.
///
/// # Errors
/// [`ErrorKind::Misuse`] if the table is damaged.
pub(crate) fn read(json: Option<&str>) -> Result<(Kernels, KernelTimes)> {
    let shipped = Kernels::shipped();
    let (kernels, table) = match json {
        None => (shipped, "shipped"),
        Some(json) => {
            let own = Kernels::from_json(json).map_err(|what| damaged(&what))?;
            let table = match own.origin.as_ref().map(|origin| origin.table) {
                Some(Measurement::Quick) => "quick",
                // Earlier versions kept no others.
                Some(Measurement::Calibrated) | None => "calibrated",
            };
            (own.or(shipped), table)
        }
    };
    let used = KernelTimes {
        table: table.to_owned(),
        machine: kernels.machine.clone(),
        measured: kernels.origin.as_ref().map(|origin| origin.measured.clone()),
        sha256: hex(&Sha256::digest(kernels.to_json().map_err(|what| damaged(&what))?)),
    };
    Ok((kernels, used))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Misuse, format!("the table of kernel times is damaged: {what}"))
        .fix("measure again with lanner doctor --calibrate")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const OWN: &str = r#"{"machine":"m","setup":{},"protocols":{}}"#;

    #[test]
    fn a_table_is_known_by_its_rates_and_by_how_it_was_made() {
        let (kernels, shipped) = read(None).unwrap();
        assert_eq!((shipped.table.as_str(), shipped.machine.as_str()), ("shipped", kernels.machine.as_str()));
        assert_eq!(shipped, read(None).unwrap().1);
        assert_eq!(shipped.sha256.len(), 64);
        let own = read(Some(OWN)).unwrap().1;
        assert_eq!((own.table.as_str(), own.machine.as_str(), own.measured), ("calibrated", "m", None));
        assert_ne!(own.sha256, shipped.sha256);
        let slower =
            read(Some(&OWN.replace("{}}", r#"{"x":{"offline":{},"online":{"steps":1}}}}"#))).unwrap().1;
        assert_ne!(own.sha256, slower.sha256);
        let origin = r#""origin":{"table":"quick","measured":"today","processor":"p","features":[],"build":"b"},"machine""#;
        let quick = read(Some(&OWN.replace("\"machine\"", origin))).unwrap().1;
        assert_eq!((quick.table.as_str(), quick.measured.as_deref()), ("quick", Some("today")));
    }
}
