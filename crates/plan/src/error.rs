//! Why a network cannot be planned.

use std::borrow::Cow;

use lanner_bfv::BfvError;
use lanner_network::Field;
use lanner_step::ProtocolError;
use thiserror::Error;

/// Why a network cannot be planned.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The mode has no protocol for a node.
    #[error("node {node}: {operator} is not supported: {reason}")]
    Unsupported {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The output policy does not fit the network's scores.
    #[error("output {policy} does not fit this network: {reason}")]
    Policy {
        /// The policy asked for.
        policy: &'static str,
        /// What does not fit.
        reason: String,
        /// What would.
        fix: String,
    },
    /// The network is larger than either party may be made to prepare for.
    #[error("{}the model needs {}", place(.node), needed(.what, *.count, *.limit))]
    TooLarge {
        /// The node; empty where it is all of them together.
        node: String,
        /// What there is too much of. Numbers of what begins with "bytes" are written with units.
        what: &'static str,
        /// How much.
        count: u64,
        /// The limit.
        limit: u64,
        /// What raises the limit, if anything does.
        raised_by: Option<Field>,
    },
    /// The ciphertexts of many predictions would together tell more of the weights than they may.
    #[error(
        "{ciphertexts} ciphertexts per prediction hide the weights too weakly: 2^-{bits:.1} over 2^20 predictions; 2^-40 is required"
    )]
    Distance {
        /// Ciphertexts of a prediction.
        ciphertexts: u64,
        /// The statistical distance over `2^20` predictions is `2^-bits`.
        bits: f64,
    },
    /// A request does not hold so many samples.
    #[error("a request cannot hold {samples} samples: {reason}")]
    Samples {
        /// How many were asked for.
        samples: usize,
        /// Why not.
        reason: String,
    },
    /// A plan gives a design to what has none.
    #[error("node {node} has a protocol of its own in this plan, and no such node may have one")]
    Design {
        /// The node.
        node: String,
    },
    /// Whether activations saturate is not told here.
    #[error("lanner cannot reveal whether activations saturate: {reason}")]
    Saturation {
        /// What is missing.
        reason: String,
        /// What would do.
        fix: &'static str,
    },
    /// A layer does not fit the protocol.
    #[error("node {node}: {source}")]
    Layer {
        /// The node.
        node: String,
        /// What does not fit.
        source: ProtocolError,
    },
}

/// Where something is, in front of a sentence.
fn place(node: &str) -> String {
    match node {
        "" => String::new(),
        "output" => "at the output ".to_owned(),
        _ => format!("at node {node} "),
    }
}

/// How much is needed of something, and how much there may be.
fn needed(what: &str, count: u64, limit: u64) -> String {
    let Some(what) = what.strip_prefix("bytes ") else { return format!("{count} {what} (limit: {limit})") };
    let (mut needed, mut most) = (bytes(count), bytes(limit));
    if needed == most {
        (needed, most) = (format!("{count} bytes"), format!("{limit} bytes"));
    }
    format!("{needed} {what} (limit: {most})")
}

/// A number of bytes for people, in powers of ten.
fn bytes(count: u64) -> String {
    for (unit, size) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)] {
        if count >= size {
            let tenths = count.saturating_add(size / 20) / (size / 10);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{count} bytes")
}

impl PlanError {
    /// What to do about it; empty where nothing can be suggested.
    #[must_use]
    pub fn fix(&self) -> Cow<'_, str> {
        match self {
            Self::Policy { fix, .. } => fix.into(),
            Self::Saturation { fix, .. } => (*fix).into(),
            Self::TooLarge { raised_by: None, .. } => "use a smaller network".into(),
            Self::TooLarge { raised_by: Some(field), .. } => {
                format!("use a smaller network, or raise the limit with {field}").into()
            }
            Self::Distance { .. } => {
                "use a smaller network, or ask for fewer bits of weights and activations".into()
            }
            Self::Samples { .. } => "compile with a smaller batch".into(),
            Self::Unsupported { .. } | Self::Layer { .. } => {
                "compile for another mode, or change this part of the network".into()
            }
            Self::Design { .. } => "compile the model again".into(),
        }
    }

    /// The node that cannot be planned; empty where it is all of them together.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Unsupported { node, .. }
            | Self::TooLarge { node, .. }
            | Self::Layer { node, .. }
            | Self::Design { node } => node,
            Self::Policy { .. } => "output",
            Self::Distance { .. } | Self::Samples { .. } | Self::Saturation { .. } => "",
        }
    }

    /// Whether the parameters have too little room to hide noise, so that others may have more.
    pub(crate) fn is_of_noise(&self) -> bool {
        match self {
            Self::Distance { .. } => true,
            Self::Layer { source: ProtocolError::Bfv(error), .. } => matches!(error, BfvError::Budget { .. }),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PlanError;

    #[test]
    fn a_size_has_a_unit_and_is_never_as_large_as_its_limit() {
        let told = |node: &str, what, count, limit| {
            PlanError::TooLarge { node: node.to_owned(), what, count, limit, raised_by: None }.to_string()
        };
        assert_eq!(
            told("", "bytes on the client", 12_345_678_901, 8 << 30),
            "the model needs 12.3 GB on the client (limit: 8.6 GB)"
        );
        assert_eq!(
            told("fc", "bytes of memory", 100_001, 100_000),
            "at node fc the model needs 100001 bytes of memory (limit: 100000 bytes)"
        );
        assert_eq!(
            told("output", "classes of an arg-max", 70_000, 65_536),
            "at the output the model needs 70000 classes of an arg-max (limit: 65536)"
        );
    }
}
