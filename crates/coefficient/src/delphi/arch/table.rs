//! The table of kernels.
#![allow(clippy::type_complexity, reason = "functions")]

/// The loops over words `T`, as a table that instruction sets fill. Only a machine that has the instructions has the table.
#[derive(Clone, Copy)]
pub(super) struct Loops<T, const ROWS: usize, const COLUMNS: usize> {
    pub(super) add_rows: unsafe fn(&[[T; ROWS]], &[[T; COLUMNS]], &mut [[T; COLUMNS]; ROWS]),
    pub(super) dot: unsafe fn(&[T], &[T]) -> T,
}
