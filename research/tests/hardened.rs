//! The check of `docs/protocols/hardened.md` on a model of one layer: what deviates from it is caught as the page says, and variants of the check
//! that lack a part of it let through what the page says that they do.

mod algebra;
mod carries;
mod model;
mod network;
mod torsion;
