//! Products of pairs of matrices, whatever their numbers are.

use crate::arch::add_combinations;

/// Pairs of matrices `[groups, rows, inner]` and `[groups, inner, columns]` that are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrices {
    groups: usize,
    rows: usize,
    /// Columns of the first and rows of the second.
    pub inner: usize,
    columns: usize,
}

impl Matrices {
    /// The matrices of two shapes; the reason where they do not fit.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn of(x: &[usize], y: &[usize]) -> Result<Self, String> {
        match (x, y) {
            (&[groups, rows, inner], &[others, depth, columns]) if groups == others && inner == depth => {
                Ok(Self { groups, rows, inner, columns })
            }
            _ => Err(format!("matrices of shapes {x:?} and {y:?} have no product")),
        }
    }

    /// The shape of the products.
    #[must_use]
    pub fn product_shape(&self) -> Vec<usize> {
        vec![self.groups, self.rows, self.columns]
    }

    /// The products, each sum in the order of the inner axis.
    pub fn products<T: Copy, S: Copy + Default>(
        &self,
        x: &[T],
        y: &[T],
        add: impl Fn(S, T, T) -> S,
    ) -> Vec<S> {
        let mut sums = Vec::with_capacity(self.groups * self.rows * self.columns);
        for (x, y) in x.chunks_exact(self.rows * self.inner).zip(y.chunks_exact(self.inner * self.columns)) {
            for row in x.chunks_exact(self.inner) {
                let start = sums.len();
                sums.resize(start + self.columns, S::default());
                for (x, line) in row.iter().zip(y.chunks_exact(self.columns)) {
                    sums[start..].iter_mut().zip(line).for_each(|(sum, y)| *sum = add(*sum, *x, *y));
                }
            }
        }
        sums
    }

    /// The same of integers of 32 bits whose sums 64 bits hold.
    pub(crate) fn small_products(&self, x: &[i32], y: &[i32]) -> Vec<i64> {
        let mut sums = vec![0; self.groups * self.rows * self.columns];
        let each = x.chunks_exact(self.rows * self.inner).zip(y.chunks_exact(self.inner * self.columns));
        for ((x, y), sums) in each.zip(sums.chunks_exact_mut(self.rows * self.columns)) {
            add_combinations(x, self.inner, y, self.columns, sums);
        }
        sums
    }
}
