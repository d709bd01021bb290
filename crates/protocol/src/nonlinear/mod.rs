//! Nonlinear layers on additive shares.

pub mod compare;
pub mod softmax;
pub mod square;
pub mod windows;
pub mod yao;
