//! Additive shares over `Z_p` and `Z_2^l`. Local algebra only: nothing here sends a message.

mod share;

pub use share::{Share, ShareError};
