//! Algorithms of papers that no plan chooses, to be read, counted and compared with those that plans do choose.
#![allow(clippy::doc_markdown, reason = "LoLa is a name, not code")]

pub mod circulant;
