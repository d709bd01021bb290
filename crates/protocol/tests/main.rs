//! Every integration test of this crate, in one binary.
#![allow(clippy::doc_markdown, clippy::expect_used, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod cheetah;
mod chosen;
mod common;
mod delphi;
mod erased;
mod falcon;
mod kernels;
mod leakage;
mod linear;
mod matrices;
mod ot_nonlinear;
mod phases;
mod privacy;
mod repeated_query;
mod repeats;
mod select;
mod shortfall;
mod softmax;
mod sparse;
mod square;
mod tabula;
mod transcripts;
mod uniform;
mod yao;
