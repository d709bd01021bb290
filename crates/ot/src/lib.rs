//! Oblivious transfer: base, SoftSpoken correlated, random and chosen.
