//! Transposition of bit matrices of 128 rows.

use crate::arch;
use crate::{Block, PrimitivesError};

/// The rows of a matrix that [`transpose`] takes: the bits of a [`Block`].
pub const TRANSPOSE_ROWS: usize = 128;

/// Transposes a bit matrix of 128 rows and `out.len()` columns, which must be a multiple of 128.
///
/// `rows` holds the rows one after the other, each of `out.len() / 128` blocks: bit `j % 128` of block `j / 128` of a row
/// is its column `j`. Afterwards bit `r` of `out[j]` is column `j` of row `r`.
///
/// # Errors
/// [`PrimitivesError::Length`] if `out.len()` is not a multiple of 128 or differs from `rows.len()`.
pub fn transpose(rows: &[Block], out: &mut [Block]) -> Result<(), PrimitivesError> {
    let columns = rows.len() - rows.len() % TRANSPOSE_ROWS;
    if columns != rows.len() || rows.len() != out.len() {
        return Err(PrimitivesError::Length { expected: columns, got: out.len() });
    }
    arch::kernels().transpose(rows, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use rand_core::SeedableRng;

    #[test]
    fn bit_r_of_out_j_is_bit_j_of_row_r() {
        let mut prg = Prg::from_seed([3; 16]);
        let counts = [0, 1, 2, 3, 4, 5, 8, 13];
        for &tiles in &counts[..if cfg!(miri) { 3 } else { counts.len() }] {
            let mut rows = vec![Block::ZERO; 128 * tiles];
            prg.fill_blocks(&mut rows);
            let mut out = vec![Block::ZERO; rows.len()];
            transpose(&rows, &mut out).unwrap();
            for (j, column) in out.iter().enumerate() {
                let expected = (0..128).fold(0, |acc, r| {
                    let bit = rows[r * tiles + j / 128].0 >> (j % 128) & 1;
                    acc | bit << r
                });
                assert!(column.0 == expected, "column {j} of {}", out.len());
            }
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(transpose(&[Block::ZERO; 128], &mut [Block::ZERO; 256]).is_err());
        assert!(transpose(&[Block::ZERO; 100], &mut [Block::ZERO; 100]).is_err());
    }
}
