//! The security table: how large `qP` may be for 128-bit security with ternary secrets and errors of deviation 3.2.
//!
//! Two published tables, both for classical attacks and ternary secrets: that of the homomorphic encryption standard of 2018
//! ([HES18](https://eprint.iacr.org/2019/939), table 1, as far as degree 32768), and table 5.2 of Bossuat et al., *Security Guidelines
//! for Implementing Homomorphic Encryption* ([BCC+24](https://eprint.iacr.org/2024/463)), which knows later attacks. The smaller bound
//! of the two holds. There is no override.

use crate::BfvError;

/// Bits of security of every set of parameters that is accepted.
pub const SECURITY_BITS: u32 = 128;

struct Row {
    degree: usize,
    /// The largest `log2(qP)` of either table.
    standard: Option<u32>,
    guidelines: u32,
}

const TABLE: [Row; 7] = [
    Row { degree: 1024, standard: Some(27), guidelines: 26 },
    Row { degree: 2048, standard: Some(54), guidelines: 53 },
    Row { degree: 4096, standard: Some(109), guidelines: 106 },
    Row { degree: 8192, standard: Some(218), guidelines: 214 },
    Row { degree: 16384, standard: Some(438), guidelines: 430 },
    Row { degree: 32768, standard: Some(881), guidelines: 868 },
    Row { degree: 65536, standard: None, guidelines: 1747 },
];

impl Row {
    fn limit(&self) -> u32 {
        self.standard.map_or(self.guidelines, |standard| standard.min(self.guidelines))
    }
}

/// Checks that `bits = log2(qP)` is secure at `degree`.
///
/// # Errors
/// [`BfvError::Degree`] without an entry; [`BfvError::Insecure`] over the bound.
pub(crate) fn check(degree: usize, bits: f64) -> Result<(), BfvError> {
    let row = TABLE.iter().find(|row| row.degree == degree);
    let limit = row.ok_or(BfvError::Degree { degree })?.limit();
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
        let limits =
            [(1024, 26), (2048, 53), (4096, 106), (8192, 214), (16384, 430), (32768, 868), (65536, 1747)];
        assert_eq!(TABLE.len(), limits.len());
        for (degree, limit) in limits {
            assert_eq!(check(degree, f64::from(limit)), Ok(()));
            let bits = f64::from(limit) + 0.01;
            assert_eq!(check(degree, bits), Err(BfvError::Insecure { degree, bits, limit }));
        }
    }

    #[test]
    fn other_degrees_are_refused() {
        for degree in [0, 1, 512, 3000, 131_072] {
            assert_eq!(check(degree, 1.0), Err(BfvError::Degree { degree }));
        }
    }
}
