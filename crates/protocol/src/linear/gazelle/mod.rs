//! GAZELLE's packed linear layers (Juvekar et al., USENIX Security 2018): matrix-vector products and convolutions on
//! slots, with the server's share added and the result masked under encryption.

pub mod packing;
pub mod scheme;
