//! The one list of all protocols.

use serde::{Deserialize, Serialize};

use super::Spec;
use crate::convert::reshare::{Reshare, Reveal};
use crate::convert::shortfall::Shortfall;
use crate::linear::{cheetah, delphi, falcon, gazelle};
use crate::local;
use crate::nonlinear::{ot_nonlinear, softmax, square, tabula, yao};
use crate::spectral;

/// Makes the enum of all protocols, which a plan writes down with the protocol's name as tag, and its dispatch.
macro_rules! protocols {
    ($($(#[$doc:meta])* $name:ident($spec:ty),)*) => {
        /// The protocol of one step.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[allow(clippy::large_enum_variant, reason = "a plan has few steps")]
        #[serde(tag = "protocol", rename_all = "snake_case")]
        pub enum Protocol {
            $($(#[$doc])* $name($spec),)*
        }

        impl Protocol {
            /// Its public parameters, whatever they are.
            #[must_use]
            pub fn spec(&self) -> &dyn Spec {
                match self {
                    $(Self::$name(spec) => spec,)*
                }
            }
        }

        $(impl From<$spec> for Protocol {
            fn from(spec: $spec) -> Self {
                Self::$name(spec)
            }
        })*
    };
}

protocols! {
    /// A linear layer on slots.
    GazelleLinear(gazelle::Linear),
    /// A linear layer in the frequency domain.
    FalconLinear(falcon::Linear),
    /// A linear layer in a coefficient encoding.
    CheetahLinear(cheetah::Linear),
    /// A linear layer in a coefficient encoding before the input is known, and in the clear on what is left.
    DelphiLinear(delphi::Linear),
    /// The square of each element, by encryption.
    GazelleSquare(square::Square),
    /// The square of each element, by encryption, with the linear layer behind.
    GazelleSquareLinear(square::SquareLinear),
    /// Sums over windows of each party's own share: average pooling without the division.
    SumPool(local::SumPool),
    /// A weighted sum of each party's own shares.
    Add(local::Add),
    /// A multiple of each party's own share.
    Scale(local::Scale),
    /// Each party's own share with zeros below its bits, in a wider ring.
    Lift(local::Lift),
    /// The low bits of each party's own share, in a narrower ring.
    Narrow(local::Narrow),
    /// Constants that the server adds to its share.
    Bias(local::Bias),
    /// Elements of each party's own shares in another order or number.
    Move(local::Move),
    /// The server draws its share anew, so that it is known before the input is.
    Reshare(Reshare),
    /// A garbled circuit on each window.
    Yao(yao::Activation),
    /// How far values are below their largest, where only zero is right.
    Shortfall(Shortfall),
    /// Whether any value of each window is zero, by a garbled circuit.
    YaoAnyZero(yao::AnyZero),
    /// A nonlinear layer by oblivious transfer, with rescaling.
    RingActivation(ot_nonlinear::RingActivation),
    /// The square of each element, by oblivious transfer.
    RingSquare(ot_nonlinear::RingSquare),
    /// A function of each element by polynomials on segments, by oblivious transfer.
    RingFunction(ot_nonlinear::RingFunction),
    /// The products of two values' elements, by oblivious transfer.
    RingProduct(ot_nonlinear::RingProduct),
    /// The products of matrices of two values, by oblivious transfer.
    RingMatrixProduct(ot_nonlinear::RingMatrixProduct),
    /// The rescale of each element, or its positive part, by openings under masks with comparison keys.
    TabulaLookup(tabula::Lookup),
    /// The largest element of each window, by openings under masks with comparison keys.
    TabulaMaxima(tabula::Maxima),
    /// A function of each rescaled element as a table, by openings under masks with point keys.
    TabulaTable(tabula::Table),
    /// Each element without the bits of guard below it, by oblivious transfer.
    DropGuard(ot_nonlinear::DropGuard),
    /// An oblivious arg-max whose result the client learns.
    YaoArgMax(yao::ArgMax),
    /// The best classes in order, which the client learns.
    YaoTopK(yao::TopK),
    /// Which scores are above zero, which the client learns.
    YaoPositive(yao::Positive),
    /// The label and its probability, which the client learns.
    Softmax(softmax::LabelAndProbability),
    /// The label and its probability, by oblivious transfer.
    RingSoftmax(softmax::RingSoftmax),
    /// The server opens its share of a result to the client.
    Reveal(Reveal),
    /// The client encrypts the input of a network that the server computes on ciphertexts.
    SpectralEncrypt(spectral::Encrypt),
    /// A linear layer on ciphertexts.
    SpectralLinear(spectral::Linear),
    /// The square of each element, by products of ciphertexts.
    SpectralSquare(spectral::Square),
    /// The server sends the encrypted result to the client.
    SpectralReveal(spectral::Reveal),
}
