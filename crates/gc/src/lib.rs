//! Garbled circuits: builder, library, half-gates garbler and evaluator.
//!
//! Messages in, messages out: nothing here touches a channel. [`CircuitBuilder`] makes a [`Circuit`]; [`Garbler`] turns
//! many instances of it into tables and [`Evaluator`] evaluates them; [`library`] has the circuits of the layers.
//!
//! ```
//! use lanner_gc::library::{relu_rescale};
//! use lanner_primitives::Ring;
//! use lanner_gc::{GcError, TablesInMemory, evaluate, garble};
//! use lanner_primitives::{Block, Prg};
//!
//! // Two instances of y = rescale(max(x, 0), 7); the shares are those of x = 1000 and x = -1000.
//! let p = 1_032_193;
//! let relu = relu_rescale(Ring::Prime(p), 7)?;
//! let (client_shares, server_shares) = ([400, p - 5], [600, p - 995]);
//!
//! // Offline: the server garbles. The labels of the client's inputs come from oblivious transfer.
//! let mut prg = Prg::from_entropy().map_err(|_| "no entropy")?;
//! let (delta, salt) = (Block::random(&mut prg).with_lsb(true), Block::random(&mut prg));
//! let inputs = relu.evaluator_bits(&client_shares)?;
//! let mut zero_labels = vec![Block::ZERO; inputs.len()];
//! prg.fill_blocks(&mut zero_labels);
//! let (mut tables, known) = (Vec::new(), relu.garbler_bits(&server_shares)?);
//! let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
//!     tables.extend_from_slice(chunk);
//!     Ok(())
//! };
//! let permute = garble(relu.circuit(), 2, delta, salt, 0, &zero_labels, &known, &mut sink)?;
//! assert_eq!(tables.len(), 2 * 44 * 32);
//!
//! // Online: the client evaluates with the labels of its bits.
//! let pairs = zero_labels.iter().zip(inputs.iter());
//! let labels: Vec<_> = pairs.map(|(zero, bit)| *zero ^ (Block::mask(bit) & delta)).collect();
//! let colours = evaluate(relu.circuit(), 2, salt, 0, &labels, &mut TablesInMemory::new(&tables))?;
//!
//! let outputs = permute.xor(&colours).map_err(|_| "lengths differ")?;
//! assert_eq!(relu.output_words(&outputs)?, [8, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
    BYTES_PER_AND, CHUNK_BYTES, Evaluator, Garbler, INSTANCES_PER_BATCH, OutputDecoding, SECURITY_BITS,
    TableSource, TablesFrom, TablesInMemory, batches, chunk_lengths, evaluate, garble,
};
