//! BFV homomorphic encryption with hoisted rotations and function-private outgoing ciphertexts.
