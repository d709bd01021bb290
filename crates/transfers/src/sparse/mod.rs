//! Products of block-diagonal matrices of the server's by shared values, where nothing but the blocks costs anything: diagonals, and layers of
//! many small groups.
//!
//! `W x` is `W x_S`, which the server computes, and `W x_C`: bit `i` of a weight chooses whether `2^i` times the client's elements is added to the sum, the
//! product of [Gil99](https://doi.org/10.1007/3-540-48405-1_8), "Two Party RSA Key Generation", section 4.1. One transfer serves all elements that
//! a weight multiplies: those of all pixels, and of all samples of a request. A weight is sent as `w + 2^(b-1)`, of `b` bits, so that its sign is none of the ring's bits.
//!
//! ```text
//! C: x_C mod 2^l                          S: x_S, W, c
//! offline:
//!   k_0, k_1 for each bit of each weight  random choices r and k_r
//!        <------------------------------  bits of w + 2^(b-1), xor r
//! online, with the keys exchanged where these are 1:
//!   x_C + k_0 - k_1 mod 2^(l-i)
//!       ------------------------------->  for bit i of each weight, and each element that it multiplies
//!   y_C = -sum(2^i k_0) - 2^(b-1) sum(x_C)
//!                                         y_S = W x_S + c + sum(2^i (k_w + w_i times what was sent))
//! ```
//!
//! The sum of the shares is `W x + c` modulo `2^l`, never off. Threat model: semi-honest. The server's message is uniform as its random choices are; the
//! client's are uniform to the server, which knows one of each two keys. Where the blocks are is public, and nothing else of them.

mod places;
mod roles;
mod step;

pub use step::RingSparse;
