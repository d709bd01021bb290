//! The algorithms of Falcon spectral and of LoLa equal dense products modulo a prime, on slots in the clear and on ciphertexts, and take the operations that
//! their formulas say.
#![allow(clippy::unwrap_used)]
#![allow(clippy::doc_markdown, reason = "LoLa is a name, not code")]

mod clear;
mod encrypted;
mod layers;
mod weights;
