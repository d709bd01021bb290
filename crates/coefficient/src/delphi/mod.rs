//! Linear layers over `Z_2^l` whose encryption is done before the input is known, after Delphi
//! ([MLSZP20](https://eprint.iacr.org/2020/050), section 4): online the client sends one element of the ring for each input, and the server
//! multiplies plain integers.
//!
//! ```text
//! C: x_C mod 2^l                          S: x_S, W, b
//! offline:
//!   r uniform mod 2^l
//!   both phases of a coefficient-encoded layer, on r and 0 as the shares of its input
//!       ------------------------------->  c1 and c0 of [r]
//!       <-------------------------------  c1, c0 of each output
//!   y_C                                   z_S, where y_C + z_S = 2^g (W r + b) mod 2^(l+g)
//! online:
//!       ------------------------------->  x_C - r
//!   y_C                                   y_S = z_S + 2^g (W (x_S + x_C - r) mod 2^l)
//! ```
//!
//! `g` is the guard of the layer's [`Accuracy`](super::cheetah::Accuracy), which says how often, and by how much, the sum of the shares is off; what is
//! computed online is exact. Threat model: semi-honest. The server sees besides the messages of [`cheetah`](super::cheetah) a difference
//! that is uniform, since `r` is uniform and used once; the client sees the same as there, and all of it before its input is known. It knows
//! its share `y_C` ahead of time, and the server, which in other layers knows its own, does not.
//!
//! `r` is always drawn. Where the client's share of the input is known ahead of time, it could serve in place of `r`, and nothing would be
//! sent online. But a client requests all layers of a run before it prepares the first, and c0 of `[r]` is sent in the request, so that the offline
//! phase stays one round: a share that another layer's preparation makes comes too late. Few layers could gain: nonlinear layers
//! make shares that nobody knows ahead.
//!
//! Deviations from the paper: the encryption is that of Cheetah, with its masks and bits of guard; the server's share of the output is masked by
//! the encrypted layer's own masks; and inputs are shared by both parties, not known to the client but for a mask.

mod arch;
mod client;
mod pixels;
mod places;
mod product;
mod server;
mod step;

pub use client::{ClientLayer, ClientMaterial, ClientRequest};
pub use product::Product;
pub use server::{ServerLayer, ServerMaterial};
pub use step::Linear;

use lanner_step::{Cost, OfflineCost, StepCost};
use lanner_wire::packed_len;

use super::cheetah::Scheme;

/// What a layer sends in both phases.
#[must_use]
pub fn cost(scheme: &Scheme) -> StepCost {
    let OfflineCost { request, answer } = scheme.offline_cost();
    let offline =
        OfflineCost { request: request.then(scheme.input_cost()), answer: answer.then(scheme.output_cost()) };
    let inputs = scheme.packing().shape().inputs();
    StepCost { offline, online: Cost::NONE.client(packed_len(inputs, scheme.input_ring().bits())) }
}
