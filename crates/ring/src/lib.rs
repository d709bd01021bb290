//! RNS polynomials, number-theoretic transforms, samplers.
