//! Options, as remedies name them.

use std::fmt;

/// An option by the name of its field, whichever face sets it: `--max-memory` on the command line is `max_memory=` in Python.
///
/// A remedy names it as `⟦max_memory⟧`, or as `⟦precision=1%⟧` with a value; each face replaces that by its own spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(&'static str);

#[expect(missing_docs, reason = "each is the option of its name")]
impl Field {
    pub const AGAINST: Self = Self("against");
    pub const ALLOW_IMPRECISE: Self = Self("allow_imprecise");
    pub const BATCH: Self = Self("batch");
    pub const CA: Self = Self("ca");
    pub const CERT: Self = Self("cert");
    pub const CLIENT_CA: Self = Self("client_ca");
    pub const INPUT_RANGE: Self = Self("input_range");
    pub const PROXY: Self = Self("proxy");
    pub const INSECURE_PLAINTEXT: Self = Self("insecure_plaintext");
    pub const KEY: Self = Self("key");
    pub const KEYS: Self = Self("keys");
    pub const LISTEN: Self = Self("listen");
    pub const MAX_MATERIAL: Self = Self("max_material");
    pub const MAX_MEMORY: Self = Self("max_memory");
    pub const MAX_SECONDS: Self = Self("max_seconds");
    pub const MAX_STOCK: Self = Self("max_stock");
    pub const MODEL: Self = Self("model");
    pub const OUTPUT: Self = Self("output");
    pub const PIN: Self = Self("pin");
    pub const PRECISION: Self = Self("precision");
    pub const PROVED_RANGES: Self = Self("proved_ranges");
    pub const PUBLIC_PREPROCESSING: Self = Self("public_preprocessing");
    pub const REPLACE_RELU: Self = Self("replace_relu");
    pub const REVEAL_SATURATION: Self = Self("reveal_saturation");
    pub const TIMEOUT: Self = Self("timeout");
    pub const TLS_CERT: Self = Self("tls_cert");
    pub const TLS_KEY: Self = Self("tls_key");
    pub const WEB: Self = Self("web");
}

impl Field {
    /// The option with a value.
    #[must_use]
    pub fn set_to(self, value: impl fmt::Display) -> String {
        format!("⟦{}={value}⟧", self.0)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "⟦{}⟧", self.0)
    }
}

/// A sentence with the options that it names in plain words: quoted, with their values behind them.
#[must_use]
pub fn in_words(sentence: &str) -> String {
    sentence.replace(['⟦', '⟧'], "`")
}
