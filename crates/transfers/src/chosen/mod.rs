//! The step function and the linear layer behind it in one: each comparison chooses among numbers that the server knows.
//!
//! `y[g, k] = sum_l W[g, k, l] [x[g, l] >= 1] + c[g, k]` modulo `2^to`, for weights `W` and biases `c` of the server's, of any size. The comparisons leave bits
//! `b = b_C xor b_S`, which are never made values: `W b` is `W b_S`, which the server computes, and `b_C W (1 - 2 b_S)`, of which the client's bit chooses whether
//! it is added. So one transfer, in one direction, has the products of a bit with all weights that it multiplies: the correlated product of
//! [Gil99](https://doi.org/10.1007/3-540-48405-1_8), "Two Party RSA Key Generation", section 4.1, on a vector.
//!
//! ```text
//! C: x_C                                  S: x_S, W, c
//! offline:
//!   random choices r and k_r              k_0, k_1 for each comparison
//! online:
//!        <----------------------------->  the comparisons: b_C and b_S
//!   b_C xor r
//!       ------------------------------->  exchanges k_0 and k_1 where that is 1
//!                                         W (1 - 2 b_S) + k_0 - k_1 mod 2^to
//!        <------------------------------  for each comparison, and each output that it adds to
//!   y_C = sum(k_r + b_C times what was sent)
//!                                         y_S = sum(W b_S - k_0) + c
//! ```
//!
//! The sum of the shares is the layer modulo `2^to`, never off. Threat model: semi-honest. The client's message is uniform as its random choices are; the
//! server's are uniform to the client, which knows one of each two keys. Which comparison goes where is public, and nothing else of the layer.

mod places;
mod roles;
mod signs;
mod step;

pub use step::RingChosen;
