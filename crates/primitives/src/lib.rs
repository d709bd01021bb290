//! Blocks, pseudorandom generators, correlation-robust hashes, bit vectors.
