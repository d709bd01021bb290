//! The table of kernels.
#![allow(clippy::type_complexity, clippy::struct_field_names, reason = "functions, by their names")]

/// The loops for sums `S` of numbers `T`, `N` columns at a time where they are many, as a table that instruction sets fill. Only a machine
/// that has the instructions has the table.
#[derive(Clone, Copy)]
pub(super) struct Loops<T, S, const N: usize> {
    pub(super) add_combinations: unsafe fn(&[T], usize, &[T], usize, &mut [S]),
    pub(super) add_rows: unsafe fn(&[T], &[T], &mut [S]),
    pub(super) add_product: unsafe fn(&[[T; ROWS]], &[T], usize, &mut [S]),
}

/// Rows of a tile of sums that is kept in registers. With an odd number compilers make vectors of columns, not of rows.
pub(crate) const ROWS: usize = 5;
