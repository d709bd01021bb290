//! The label and its softmax probability to a few digits, after FALCON (Li et al., <https://arxiv.org/abs/1811.08257>), section 5.5.
//!
//! With t the class of the largest score, `p = 1 / S` where `S = sum_k e^-(x_t - x_k)`. Scores that lie more than m below the largest are
//! taken at m below ([`Precision`] has m and the proof that the error is at most `10^-digits`). All the parties compute with public constants is
//! integers; `D = 2^w - 1` units stand for m.
//!
//! ```text
//! C: c, a share of the scores                          S: s, r_k uniform mod 2^w
//! offline:
//!   labels of random bits, tables of circuit 1   <---  garbles: index t; a_k = e_k - r_k; wrap_k, shared by XOR: S has w_k
//!   labels of random bits, tables of circuit 2   <---  garbles: round(10^digits / S)
//!   z_kij random bits, v_kij               <- COT ->   u_kij with u_kij + v_kij = z_kij c_kij,
//!                                                      c_ki(w_k) = 2^(F+i-n) e^(r_k) and c_ki(1-w_k) = 0
//! online:
//!   masked bits of c  ------------------------------>
//!         <------------------------------------------  labels
//!   evaluate: t, a_k, v_k = wrap_k xor w_k
//!   exponentials e^(a_k - D) and e^(a_k - D - 2^w), the first where v_k = 0 at place j = 0, else at j = 1:
//!   bits b_kij, i < n
//!   b_kij xor z_kij; masked bits of S's share  ----->  sum of the products
//!         <------------------------------------------  labels, of S's own share, too
//!   evaluate: the digits
//! ```
//!
//! `e_k = D - min(floor(x_t / 2^s) - floor(x_k / 2^s), D)`. Since `e_k = a_k + r_k - wrap_k 2^w`, the term is `e^(e_k - D) = e^(r_k)` times the exponential
//! that the wrap bit selects. S prepares its factor for the place that its half of the wrap bit names and zero for the other, so
//! the selection costs no gate. Products are sums of the server's factors over the client's bits (Gilboa, CRYPTO 1999), whose transfers are made
//! ahead of time: online a bit of a factor costs a bit. All terms add up locally.
//!
//! Threat model: semi-honest. C learns the label and the digits: every `a_k` is uniform, since `r_k` is used once, `v_k` is masked by a permute
//! bit, what the transfers leave are uniform shares, and of each wire it has one label. S learns nothing: it receives bits masked by uniform ones.
//!
//! Deviations from the paper: the exponents are of fixed point and shared modulo `2^w`, where the paper's modulus m + 1 has room
//! for integer scores only; the wrap bit stays shared; products are made by transfers, not in the circuit; a score that is far below counts as `e^-m` instead of nothing, for which
//! the paper's bound holds as well; and **the division is done inside the circuit**, since the paper's denominator in the
//! clear tells more than the digits.

mod client;
mod cost;
mod exponential;
mod function;
mod precision;
mod server;
mod step;

pub use client::{ClientMaterial, ClientRequest, ClientSoftmax};
pub use function::{Likely, Softmax};
pub use precision::{MAX_CLASSES, MAX_DIGITS, Precision};
pub use server::{ServerMaterial, ServerSoftmax};
pub use step::LabelAndProbability;
