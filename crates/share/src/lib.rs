//! Additive shares over Z_p and Z_2^l.
