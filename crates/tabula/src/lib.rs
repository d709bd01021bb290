//! Activations by masked openings and comparison keys that are made ahead: Tabula ([LYS22](https://arxiv.org/abs/2203.02833)), exact.
//!
//! A value x that keeps to `w = k + d` bits with its sign loses d of them, rounded, and goes through a piecewise linear function of the k that are
//! left. Both parties have, from the offline phase, shares of uniform masks `s = s_hi 2^d + s_lo` and `t`, and keys of the comparisons with `s_lo` and
//! with `t` ([`lanner_dpf`]), whose thresholds neither knows:
//!
//! ```text
//! C: x_C                                              S: x_S
//! v_C = x_C + s_C mod 2^w  ------------------------>  v = x + 2^(d-1) + s;  b_S of [v_lo < s_lo]
//!                                                     e_S = v_hi - s_hi,S - b_S + t_S mod 2^k
//!   <------------------------------------------------ v, e_S
//! b_C;  e_C = -s_hi,C - b_C + t_C mod 2^k
//! e = u + t for the rescaled u  ------------------->  e_C; e
//! c_1, c_2 and c_1 t, c_2 t of [e < t], [e + 2^(k-1) mod 2^k < t]: both parties' parts, and of the result
//! ```
//!
//! With `h = [e >= 2^(k-1)]`, which is public, u is not negative where `1 - c_1 + c_2 - h` is 1, and then it is `e - t + 2^k c_2 (1 - h)`. So the result is
//! a sum of what both have, and no message follows. A bound takes off the positive part of u less it, of e less it and the same keys.
//!
//! A *stochastic* rescale has no borrow: t is `s_hi`, C learns e = v_hi alone, and u is `floor((x + s_lo) / 2^d)`. S, which has v, knows the low bits of x + s_lo, and
//! no result; C, which gets the result, knows nothing of them ([`Rounding`]).
//!
//! Threat model: semi-honest. v and e are uniform, since s and t are, each used once: both openings are reduced modulo exactly what the masks are uniform in.
//! Deviations from the paper: it opens 64 bits under a mask of k and drops low bits of each share by itself, whose error depends on shares that a party
//! knows; here the borrow of the dropped bits is computed. Tables of `2^k` words a value are keys of some hundred bytes.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

mod activation;
mod corrections;
mod dither;
mod keyed;
mod keys;
mod maxima;
mod opening;
mod points;
mod signs;
mod step;
mod table;

pub use activation::{Activation, Material, Shape};
pub use dither::Rounding;
pub use keyed::{Keyed, Maker};
pub use maxima::{Maxima, MaximaMaterial, Tournament};
pub use step::Lookup;
pub use table::{Table, TableLookup, TableMaterial};
