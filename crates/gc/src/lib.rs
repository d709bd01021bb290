//! Garbled circuits: builder, library, half-gates garbler and evaluator.
//!
//! Messages in, messages out: nothing here touches a channel. [`CircuitBuilder`] makes a [`Circuit`]; [`Garbler`] turns
//! many instances of it into tables and [`Evaluator`] evaluates them; [`library`] has the circuits of the layers.

mod arch;
mod circuit;
mod error;
mod half_gates;

pub use arch::Backend;
pub use circuit::{Circuit, CircuitBuilder, Wire};
pub use error::GcError;
pub use half_gates::{
    BYTES_PER_AND, CHUNK_BYTES, Evaluator, Garbler, INSTANCES_PER_BATCH, OutputDecoding, TableSource,
    TablesFrom, TablesInMemory, batches, chunk_lengths, evaluate, garble,
};
