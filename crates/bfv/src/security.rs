//! The security table: how large `qP` may be for 128-bit security with ternary secrets.
//!
//! Bounds of the homomorphic encryption standard's classical 128-bit column
//! ([HES18](https://eprint.iacr.org/2019/939)), kept a few bits lower at the middle degrees to leave room for better
//! attacks. There is no override.

use crate::BfvError;

/// `(degree, largest log2(qP))`.
const TABLE: [(usize, u32); 5] = [(2048, 54), (4096, 106), (8192, 214), (16384, 430), (32768, 881)];

/// Checks that `bits = log2(qP)` is secure at `degree`.
///
/// # Errors
/// [`BfvError::Degree`] without an entry; [`BfvError::Insecure`] over the bound.
pub(crate) fn check(degree: usize, bits: f64) -> Result<(), BfvError> {
    let entry = TABLE.iter().find(|(n, _)| *n == degree);
    let limit = entry.ok_or(BfvError::Degree { degree })?.1;
    if bits > f64::from(limit) {
        return Err(BfvError::Insecure { degree, bits, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_accepts_its_bound_and_refuses_more() {
        for (degree, limit) in TABLE {
            assert_eq!(check(degree, f64::from(limit)), Ok(()));
            let bits = f64::from(limit) + 0.01;
            assert_eq!(check(degree, bits), Err(BfvError::Insecure { degree, bits, limit }));
        }
    }

    #[test]
    fn other_degrees_are_refused() {
        for degree in [0, 1, 1024, 3000, 65536] {
            assert_eq!(check(degree, 1.0), Err(BfvError::Degree { degree }));
        }
    }
}
