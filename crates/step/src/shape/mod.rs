//! The public shapes of layers, as plans write them down.

mod convolution;
mod function;
mod windows;

pub use convolution::Convolution;
pub use function::{Function, Slope};
pub use windows::Windows;

/// Whether there is no guard, which is the rule: a plan does not mention it.
#[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks
#[must_use]
pub const fn is_zero(guard: &u32) -> bool {
    *guard == 0
}
