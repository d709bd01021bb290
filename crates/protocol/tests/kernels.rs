//! GAZELLE's kernels: each equals the convolution, over clear slots and under BFV, with the operations of the paper's tables.

mod clear;
mod counts;
mod encrypted;
mod equality;
