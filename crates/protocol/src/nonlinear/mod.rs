//! Nonlinear layers on additive shares.

pub mod windows;
pub mod yao;
