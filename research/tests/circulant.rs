//! The algorithms of Falcon spectral and of LoLa equal dense products modulo a prime, on slots in the clear and on ciphertexts, and take the operations that
//! their formulas say.

mod clear;
mod encrypted;
mod layers;
mod weights;
