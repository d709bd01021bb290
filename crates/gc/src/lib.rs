//! Garbled circuits: builder, library, half-gates garbler and evaluator.
//!
//! Messages in, messages out: nothing here touches a channel. [`CircuitBuilder`] makes a [`Circuit`]; [`Garbler`] turns
//! many instances of it into tables and [`Evaluator`] evaluates them; [`library`] has the circuits of the layers.
#![allow(clippy::doc_markdown, reason = "ReLU and Z_p are the field's names, not code")]

mod arch;
mod circuit;
mod error;
mod half_gates;
pub mod library;

pub use arch::Backend;
pub use circuit::{Circuit, CircuitBuilder, Wire};
pub use error::GcError;
pub use half_gates::{
    BYTES_PER_AND, CHUNK_BYTES, Evaluator, Garbler, INSTANCES_PER_BATCH, OutputDecoding, TableSource,
    TablesFrom, TablesInMemory, batches, chunk_lengths, evaluate, garble,
};
