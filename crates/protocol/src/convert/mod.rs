//! Conversions between forms of shares.

pub mod bits_to_ring;
pub mod reshare;
pub mod shortfall;
