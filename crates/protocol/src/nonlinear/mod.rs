//! Nonlinear layers on additive shares.

pub mod ot_nonlinear;
pub mod softmax;
pub mod square;
pub mod tabula;
pub mod windows;
pub mod yao;
