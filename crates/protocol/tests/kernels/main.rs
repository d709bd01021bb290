//! GAZELLE's kernels: each equals the convolution, over clear slots and under BFV, with the operations of the paper's tables.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod clear;
mod counts;
mod encrypted;
mod equality;
