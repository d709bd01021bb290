//! Layers on packed slots: a ciphertext holds a value in each slot.

pub mod exchange;
pub mod falcon;
pub mod gazelle;
pub mod square;
