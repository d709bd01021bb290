//! Every integration test of this crate, in one binary.
#![allow(clippy::doc_markdown, clippy::expect_used, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod circulant;
mod hardened;
