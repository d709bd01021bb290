//! Elements of a shared value that the server picks, each less a number of its own: which and how much less is its secret.
//!
//! `y_j = x[f_j] + c_j`: a linear layer each of whose rows has a single 1. The server picks of its own share by itself. Of the client's it chooses by a transfer of one
//! string of `2^w`, for `2^w` not below the number of elements, combined of `w` correlated ones as in [`leaf`](super::leaf). All samples of a request are picked by the same
//! transfers.
//!
//! ```text
//! C: x_C mod 2^l                          S: x_S, f, c
//! offline:
//!   a string for each of 2^w numbers        random choices r, and the string k_r
//!        <------------------------------  f_j xor r_j, of w bits
//!   k_j[i]: the string of i xor that        k_j[f_j]
//! online:
//!   x_C[i] - x_C[0] + k_j[0] - k_j[i]
//!       ------------------------------->  for each output and each i but 0
//!   y_C = x_C[0] - k_j[0]                   y_S = x_S[f_j] + c_j + k_j[f_j] + what was sent for f_j, or 0 where that is 0
//! ```
//!
//! The sum of the shares is `x[f_j] + c_j` modulo `2^l`, never off. Threat model: semi-honest. The server's message is uniform as its random choices are, whether or not each
//! number has an element; the client's are uniform to the server, which knows one string of each output: where that is `k_j[0]`, each of the others masks one of the
//! differences; where it is another, `k_j[0]` masks that one's. How many elements and outputs there are is public.

mod pads;
mod places;
mod roles;
mod step;

pub use step::RingSelect;
