//! Factors whose words lie elsewhere.

use lanner_ring::Extent;

use crate::BfvError;

/// A factor that can be put down as words, and taken up again where they lie.
///
/// The words are those that it is computed with, whatever the backend. They are as secret as the factor.
pub trait Encoded: Sized + Send {
    /// What is known of a factor but its words: public.
    type Form: Sync;

    /// Words of every factor of a form.
    fn length(form: &Self::Form) -> usize;

    /// The words, one part after the other.
    fn words(&self) -> Vec<&[u64]>;

    /// The factor with these words, which are those of one of the same form.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are as many as the form has.
    fn over(form: &Self::Form, words: Extent) -> Result<Self, BfvError>;
}

/// # Errors
/// [`BfvError::Length`] unless there are as many words as expected.
pub(crate) fn check_length(words: &Extent, expected: usize) -> Result<(), BfvError> {
    let got = words.len();
    if got == expected { Ok(()) } else { Err(BfvError::Length { expected, got }) }
}
