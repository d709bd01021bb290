//! Layers on packed slots: a ciphertext holds a value in each slot.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod exchange;
pub mod falcon;
pub mod gazelle;
pub mod square;
