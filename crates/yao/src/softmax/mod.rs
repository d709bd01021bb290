//! The label and its softmax probability to a few digits, after FALCON (Li et al., <https://arxiv.org/abs/1811.08257>), section 5.5.
//!
//! With t the class of the largest score, `p = 1 / S` where `S = sum_k e^-(x_t - x_k)`. Scores that lie more than m below the largest are
//! taken at m below. [`Precision`] has m and the proof that the error is at most `10^-digits`. All that is computed are integers: [`likeliest`]
//! computes the same in the clear.
//!
//! ```text
//! C: c, a share of the scores                          S: s
//! offline:
//!   labels of random bits, tables   <----------------  garbles: index t; round(10^digits / S)
//! online:
//!   masked bits of c  ------------------------------>
//!         <------------------------------------------  labels
//!   evaluate: t, the digits
//! ```
//!
//! One circuit adds the shares, finds the largest score, and has for each class the difference `d = min(floor(x_t / 2^s) - floor(x_k / 2^s), D)`. A
//! public factor makes it `h 2^j + f`, in units of `2^-j` halvings. The term is `2^-h` of what polynomials give for f, whose coefficients are
//! looked up by wires of which one is set, which takes no gate beyond these wires ([`lanner_gc::library::Exponential`]).
//! The terms are added and the sum divides. Oblivious transfers can make the same integers.
//!
//! Threat model: semi-honest; in mode `hardened`, whose server sends the decoding behind its check, C may do anything. C learns the label and the digits, which are a function of the scores: of each wire it has one label. S learns
//! nothing: it receives bits masked by uniform ones.
//!
//! Deviations from the paper: **exponentials are made inside the circuit**, where the paper has each party exponentiate its own share of an
//! exponent and multiplies: products of rounded factors differ in their last bits from one sharing to the next, and as the client knows its
//! share, what it sees of a probability near a digit's edge in repeated runs tells it more of the scores than the digits;
//! exponents are of fixed point, where the paper's are integers; a score that is far below counts as `e^-m` instead of nothing, for which
//! the paper's bound holds as well; and **the division is done inside the circuit**, since the paper's denominator in the
//! clear tells more than the digits.

mod function;
mod mantissa;
mod precision;

pub use function::{Probability, likeliest, softmax};
pub use precision::{MAX_CLASSES, Precision};
