//! What can go wrong with a model, and what can go wrong with an input.
//!
//! The two are separate because they are different people's mistakes: a [`CompileError`] is the model owner's, an [`InputError`]
//! the data owner's. Each displays what is wrong and where; `fix` is what to do about it.

use thiserror::Error;

/// A graph, its weights, its calibration or a compiled network that cannot be used.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CompileError {
    /// The JSON of a graph or network does not parse.
    #[error("the {what} does not parse: {reason}")]
    Json {
        /// Which document.
        what: &'static str,
        /// The parser's words, with line and column.
        reason: String,
    },
    /// A file of another format version.
    #[error("the {what} has format version {found}; this build reads {expected}")]
    FormatVersion {
        /// Which document.
        what: &'static str,
        /// The version in the file.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
    /// A tensor file that does not parse or holds an unexpected tensor.
    #[error("the tensor file is damaged: {reason}")]
    TensorFile {
        /// What is wrong.
        reason: String,
    },
    /// A node refers to a tensor that is not there.
    #[error("node `{node}` reads the tensor `{tensor}`, which is not among the weights")]
    UnknownTensor {
        /// The node.
        node: String,
        /// The missing tensor.
        tensor: String,
    },
    /// A tensor holds NaN or infinity.
    #[error("tensor `{tensor}` contains NaN or infinity; weights must be finite")]
    NotFinite {
        /// The tensor.
        tensor: String,
    },
    /// The graph's wiring is wrong: names, order, number of inputs.
    #[error("node `{node}` is connected wrongly: {reason}")]
    Wiring {
        /// The node, or the graph's input or output.
        node: String,
        /// What is wrong.
        reason: String,
    },
    /// More nodes than a compiled network may have.
    #[error("the network has {nodes} operations; the limit is {most}")]
    TooManyNodes {
        /// How many it has.
        nodes: usize,
        /// How many it may have.
        most: usize,
    },
    /// More elements in all values together than a compiled network may have.
    #[error("node `{node}`: up to here the network's values have {elements} elements; the limit is {most}")]
    TooManyElements {
        /// The node.
        node: String,
        /// How many the values up to it have.
        elements: usize,
        /// How many all may have.
        most: usize,
    },
    /// No node has weights.
    #[error("the network has no convolution or matrix product with weights, so there is no model to protect")]
    NoLayer,
    /// Shapes do not fit an operator.
    #[error("node `{node}` ({operator}): {reason}")]
    Shape {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// What does not fit, with the shapes.
        reason: String,
    },
    /// The fixed-point path does not have this operator, or not with this attribute.
    #[error("node `{node}`: {}", unsupported(.operator, .attribute))]
    UnsupportedOp {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// The attribute and its value that are not supported.
        attribute: String,
        /// What to do instead.
        fix: &'static str,
    },
    /// No ring offered holds a layer's sums at the precision asked for, or they share a unit with sums so large that its weights keep too few bits.
    #[error("layer `{node}`: {}", overflow(*.bound, *.limit))]
    RangeOverflow {
        /// The layer.
        node: String,
        /// The largest absolute value the sums reach; [`i128::MAX`] stands for more.
        bound: i128,
        /// The largest absolute value the ring allows.
        limit: i128,
    },
    /// The scores miss the precision asked for with all the bits that there is room for.
    #[error(
        "layer `{node}`: with {bits} bits, the most that fit ({limit}), scores are off by {reached} of their range on the \
         calibration samples{labels}; the precision asked for is {asked}",
        labels = lost_labels(*.lost)
    )]
    Precision {
        /// The layer.
        node: String,
        /// The bits of its activations and weights.
        bits: u32,
        /// The percentage asked for.
        asked: Box<str>,
        /// The percentage reached.
        reached: Box<str>,
        /// How many samples with a clear label have another one.
        lost: u32,
        /// Why it cannot have more.
        limit: Box<str>,
        /// What to do about it.
        fix: Box<str>,
    },
    /// A range that is to be proved, and that no ring has room to prove.
    #[error(
        "node `{node}` may overflow on some accepted input: no ring is large enough for all its possible values"
    )]
    Unproved {
        /// The first such node.
        node: String,
    },
    /// The calibration samples cannot be used.
    #[error("calibration samples: {reason}")]
    Calibration {
        /// What is wrong.
        reason: String,
        /// What to pass.
        fix: String,
    },
    /// Networks cannot be traced over the calibration samples.
    #[error("the networks could not be run on the calibration samples: {reason}")]
    Tracing {
        /// Why.
        reason: String,
    },
    /// A stated range of the input that is none.
    #[error(
        "the input range is [{low}, {high}]; its ends must be finite, different, and have 0 between them"
    )]
    InputRange {
        /// The stated minimum.
        low: f64,
        /// The stated maximum.
        high: f64,
    },
    /// A graph whose first constants cannot be published as preprocessing.
    #[error("public preprocessing: {reason}")]
    Preprocessing {
        /// What is wrong.
        reason: String,
        /// What to do.
        fix: &'static str,
    },
    /// An option outside its range.
    #[error("`{option}` is {value}; allowed are {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u64,
        /// The values allowed.
        allowed: &'static str,
    },
    /// The modulus is none of those that the protocols offer.
    #[error("the model uses a ring of modulus {modulus}, which this build does not have")]
    UnknownModulus {
        /// The modulus.
        modulus: u128,
    },
    /// A compiled network that contradicts itself.
    #[error("the compiled network contradicts itself at {place}: {reason}")]
    Network {
        /// The node, or the part.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

/// What is too large, or too small beside it.
fn overflow(bound: i128, limit: i128) -> String {
    if bound == i128::MAX {
        return format!("its constants exceed 2^127 units; the largest ring allows {limit}");
    }
    if bound > limit {
        return format!("its sums reach {bound} units; the largest ring allows {limit}");
    }
    "its weights are too small beside the values that its sums are added to, and would keep fewer bits than asked for".to_owned()
}

/// What is not supported.
fn unsupported(operator: &str, attribute: &str) -> String {
    if attribute == ENCRYPTED_VALUES {
        return format!("mode spectral cannot compute {operator}");
    }
    format!("{operator} with {attribute} is not supported")
}

/// The attribute of a [`CompileError::UnsupportedOp`] that only mode `spectral` lacks, whose values stay encrypted.
pub const ENCRYPTED_VALUES: &str = "encrypted values";

impl CompileError {
    /// What to do about it; empty where nothing can be suggested.
    #[must_use]
    pub fn fix(&self) -> &str {
        match self {
            Self::Json { .. } => "write the document again with this version of lanner",
            Self::FormatVersion { .. } => "compile the model again with this version, or update lanner",
            Self::TensorFile { .. } => "export the weights again",
            Self::UnknownTensor { .. } => "export the model again",
            Self::NotFinite { .. } => "retrain or repair the model",
            Self::TooManyNodes { .. } | Self::TooManyElements { .. } => {
                "use fewer layers, or shorter sequences"
            }
            Self::NoLayer => "run it without lanner: there are no weights to protect",
            Self::UnsupportedOp { fix, .. } | Self::Preprocessing { fix, .. } => fix,
            Self::RangeOverflow { .. } => "normalise the weights of this layer, or ask for fewer bits",
            Self::Unproved { .. } => {
                "bound the values before it with a ReLU or ReLU6, or, except in mode hardened, compile without ⟦proved_ranges⟧"
            }
            Self::Precision { fix, .. } => fix,
            Self::Calibration { fix, .. } => fix,
            Self::InputRange { .. } => "give two numbers with 0 between them, as in 0,1",
            Self::UnknownModulus { .. } | Self::Network { .. } => "compile the model again",
            Self::Wiring { .. } | Self::Shape { .. } => {
                "export the model again, and check it with onnx.checker"
            }
            Self::Option { .. } => "choose one of these values",
            Self::Tracing { .. } => "",
        }
    }
}

impl InputError {
    /// What to do about it; empty where nothing can be suggested.
    #[must_use]
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::Length { .. } => "give one sample of the model's shape",
            Self::NotFinite { .. } => "replace missing or infinite values by numbers",
            Self::OutOfRange { .. } => {
                "scale the input as in training, or ask the model's owner to compile for a wider range"
            }
        }
    }
}

/// What labels add to a sentence on scores.
fn lost_labels(lost: u32) -> String {
    match lost {
        0 => String::new(),
        1 => ", and one sample gets another label".to_owned(),
        _ => format!(", and {lost} samples get other labels"),
    }
}

/// An input that a network cannot take.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum InputError {
    /// The wrong number of values.
    #[error("the input has {found} values; the model expects {expected} (shape {shape:?})")]
    Length {
        /// Values passed.
        found: usize,
        /// Values expected.
        expected: usize,
        /// The model's input shape, without the batch axis.
        shape: Vec<usize>,
    },
    /// NaN or infinity.
    #[error("the input's value {index} is NaN or infinite")]
    NotFinite {
        /// Its position, row-major.
        index: usize,
    },
    /// A value beyond the range that the network accepts.
    #[error(
        "the input's value {index}{} is {value}, outside [{low}, {high}], the range that the model accepts{}",
        .feature.map_or_else(String::new, |feature| format!(" (feature {feature})")),
        if feature.is_some() { " for this feature" } else { "" }
    )]
    OutOfRange {
        /// Its position, row-major.
        index: usize,
        /// The feature that it is a value of, where features have ranges of their own.
        feature: Option<usize>,
        /// Its value.
        value: f64,
        /// The smallest value accepted.
        low: f64,
        /// The largest value accepted.
        high: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::CompileError;

    #[test]
    fn an_overflow_says_what_is_too_large_or_too_small() {
        let told = |bound: i128| {
            CompileError::RangeOverflow { node: "fc".to_owned(), bound, limit: 100 }.to_string()
        };
        assert_eq!(told(101), "layer `fc`: its sums reach 101 units; the largest ring allows 100");
        assert!(told(100).starts_with("layer `fc`: its weights are too small beside"), "{}", told(100));
        assert!(told(i128::MAX).contains("constants exceed 2^127 units"), "{}", told(i128::MAX));
    }
}
