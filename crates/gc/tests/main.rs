//! Every integration test of this crate, in one binary.
#![allow(clippy::doc_markdown, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod garbling;
mod library;
mod published;
mod security;
mod softmax;
mod streaming;
mod support;
