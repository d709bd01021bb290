//! FALCON's linear layers: equal to the convolution in every variant, with the operations of the tables, and hiding what they must.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod clear;
#[path = "../common/mod.rs"]
mod common;
mod counts;
mod encrypted;
mod equality;
mod privacy;
