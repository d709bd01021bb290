//! The one list of all protocols.

use lanner_coefficient::{cheetah, delphi, matrices};
use lanner_hardened as hardened;
use lanner_local::{self as local, reshare, shortfall};
use lanner_packed::{falcon, gazelle, square};
use lanner_spectral as spectral;
use lanner_step::{Samples, Spec};
use lanner_tabula as tabula;
use lanner_transfers as transfers;
use lanner_yao as yao;
use serde::{Deserialize, Serialize};

/// Makes the enum of all protocols, which a plan writes down with the protocol's variant as tag, and its dispatch.
///
/// A group of protocols has a reason, for people, why a step is computed so. Each has a name in reports; a linear layer has one as a product
/// with a vector and another as a convolution.
macro_rules! protocols {
    ($($reason:literal => {
        $($(#[$doc:meta])* $variant:ident($spec:ty) $name:literal $(| $of_image:literal)?,)*
    })*) => {
        /// The protocol of one step.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[allow(clippy::large_enum_variant, reason = "a plan has few steps")]
        #[serde(tag = "protocol", rename_all = "snake_case")]
        pub enum Protocol {
            $($($(#[$doc])* $variant($spec),)*)*
        }

        impl Protocol {
            /// Its name in reports.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $($($(Self::$variant(spec) if is_of_image(spec) => $of_image,)?)*)*
                    $($(Self::$variant(_) => $name,)*)*
                }
            }

            /// Why a step is computed so, for people.
            #[must_use]
            pub const fn reason(&self) -> &'static str {
                match self {
                    $($(Self::$variant(_))|* => $reason,)*
                }
            }

            /// Its public parameters, whatever they are.
            #[must_use]
            pub fn spec(&self) -> &dyn Spec {
                match self {
                    $($(Self::$variant(spec) => spec,)*)*
                }
            }

            /// As [`Spec::of_samples`].
            #[must_use]
            pub fn of_samples(&self, samples: Samples) -> Option<Self> {
                match self {
                    $($(Self::$variant(spec) => spec.of_samples(samples).map(Self::$variant),)*)*
                }
            }
        }

        $($(impl From<$spec> for Protocol {
            fn from(spec: $spec) -> Self {
                Self::$variant(spec)
            }
        })*)*
    };
}

/// Whether a linear layer is a convolution of an image, of more than one pixel.
fn is_of_image(spec: &dyn Spec) -> bool {
    spec.shape().is_some_and(|shape| shape.image[0] * shape.image[1] != 1)
}

protocols! {
    "rotations of packed ciphertexts: the fewest bytes of a layer, once keys are sent" => {
        /// A linear layer on slots.
        GazelleLinear(gazelle::Linear) "gazelle.fc" | "gazelle.conv",
    }
    "products in the frequency domain, without rotations" => {
        /// A linear layer in the frequency domain.
        FalconLinear(falcon::Linear) "falcon.fc" | "falcon.conv",
    }
    "products of polynomials over a power of two, without rotations or their keys" => {
        /// A linear layer in a coefficient encoding.
        CheetahLinear(cheetah::Linear) "cheetah.fc" | "cheetah.conv",
        /// The products of matrices of two values, by encryption.
        CheetahMatrices(matrices::MatrixProduct) "cheetah.matrices",
    }
    "computed ahead on a mask, so that online it is plaintext arithmetic" => {
        /// A block-diagonal linear layer by oblivious transfer before the input is known, and in the clear on what is left.
        SparseAhead(transfers::ComputedAhead<transfers::RingSparse>) "ot.sparse_ahead",
        /// A layer that picks elements, by oblivious transfer before the input is known, and in the clear on what is left.
        SelectAhead(transfers::ComputedAhead<transfers::RingSelect>) "ot.select_ahead",
        /// A linear layer in a coefficient encoding before the input is known, and in the clear on what is left.
        DelphiLinear(delphi::Linear) "delphi.fc" | "delphi.conv",
    }
    "squares are products of masked values, by one encryption each way" => {
        /// The square of each element, by encryption.
        GazelleSquare(square::Square) "gazelle.square",
        /// The square of each element, by encryption, with the linear layer behind.
        GazelleSquareLinear(square::SquareLinear) "gazelle.square_fc" | "gazelle.square_conv",
    }
    "each party computes on its own shares, without a message" => {
        /// Sums over windows of each party's own share: average pooling without the division.
        SumPool(local::SumPool) "local.sum_pool",
        /// A weighted sum of each party's own shares.
        Add(local::Add) "local.add",
        /// A multiple of each party's own share.
        Scale(local::Scale) "local.scale",
        /// Each party's own share with zeros below its bits, in a wider ring.
        Lift(local::Lift) "local.lift",
        /// The low bits of each party's own share, in a narrower ring.
        Narrow(local::Narrow) "local.narrow",
        /// Constants that the server adds to its share.
        Bias(local::Bias) "local.bias",
        /// Elements of each party's own shares in another order or number.
        Move(local::Move) "local.move",
        /// How far values are below their largest, where only zero is right.
        Shortfall(shortfall::Shortfall) "local.shortfall",
    }
    "shares are moved to another ring, or opened to the client" => {
        /// The server draws its share anew, so that it is known before the input is.
        Reshare(reshare::Reshare) "share.reshare",
        /// The server opens its share of a result to the client.
        Reveal(reshare::Reveal) "share.reveal",
    }
    "a garbled circuit: one round, whatever it computes, and the most bytes" => {
        /// A garbled circuit on each window.
        Yao(yao::Activation) "yao.activation",
        /// Which scores are above zero, which the client learns.
        YaoPositive(yao::Scores<yao::AboveZero>) "yao.positive",
    }
    "a garbled circuit: one round, and about as many gates as values have bits" => {
        /// Whether any value of each window is zero, by a garbled circuit.
        YaoAnyZero(yao::AnyZero) "yao.any_zero",
    }
    "comparisons and rescales by oblivious transfers: the fewest bytes, and some rounds" => {
        /// A nonlinear layer by oblivious transfer, with rescaling.
        RingActivation(transfers::RingActivation) "ot.activation",
        /// Each element without the bits of guard below it, by oblivious transfer.
        DropGuard(transfers::DropGuard) "ot.drop",
    }
    "products of shared values are products of shares, by oblivious transfers" => {
        /// The square of each element, by oblivious transfer.
        RingSquare(transfers::RingSquare) "ot.square",
        /// The products of two values' elements, by oblivious transfer.
        RingProduct(transfers::RingProduct) "ot.product",
        /// The products of matrices of two values, by oblivious transfer.
        RingMatrixProduct(transfers::RingMatrixProduct) "ot.matrices",
    }
    "the server's weights choose, bit by bit, so that a block-diagonal layer costs its blocks alone" => {
        /// A block-diagonal linear layer, by oblivious transfer.
        RingSparse(transfers::RingSparse) "ot.sparse",
    }
    "comparisons choose among the server's weights, so that a step function and the layer behind are one" => {
        /// The step function of each element and the linear layer behind, by oblivious transfer.
        RingChosen(transfers::RingChosen) "ot.chosen",
    }
    "the server picks one element for each output, which one transfer of many strings does" => {
        /// A linear layer that picks elements, by oblivious transfer.
        RingSelect(transfers::RingSelect) "ot.select",
    }
    "smooth functions are polynomials on segments, found by oblivious transfers" => {
        /// A function of each element by polynomials on segments, by oblivious transfer.
        RingFunction(transfers::RingFunction) "ot.function",
    }
    "one opened value and one read online, by keys that are made ahead" => {
        /// The rescale of each element, or its positive part, by openings under masks with comparison keys.
        TabulaLookup(tabula::Lookup) "tabula.lookup",
        /// The largest element of each window, by openings under masks with comparison keys.
        TabulaMaxima(tabula::Maxima) "tabula.maxima",
        /// A function of each rescaled element as a table, by openings under masks with point keys.
        TabulaTable(tabula::Table) "tabula.table",
    }
    "few values and many comparisons: a garbled circuit takes one round" => {
        /// An oblivious arg-max whose result the client learns.
        YaoArgMax(yao::Scores<yao::Largest>) "yao.argmax",
        /// The best classes in order, which the client learns.
        YaoTopK(yao::Scores<yao::Best>) "yao.top_k",
        /// The label and its probability, which the client learns.
        Softmax(yao::Scores<yao::softmax::Probability>) "falcon.softmax",
    }
    "of many classes the largest and its probability send less by oblivious transfers" => {
        /// The label and its probability, by oblivious transfer.
        RingSoftmax(transfers::RingSoftmax) "ot.softmax",
    }
    "the server computes on ciphertexts alone, so that there is one round" => {
        /// The client encrypts the input of a network that the server computes on ciphertexts.
        SpectralEncrypt(spectral::Encrypt) "spectral.encrypt",
        /// A linear layer on ciphertexts.
        SpectralLinear(spectral::Linear) "spectral.fc" | "spectral.conv",
        /// The square of each element, by products of ciphertexts.
        SpectralSquare(spectral::Square) "spectral.square",
        /// The server sends the encrypted result to the client.
        SpectralReveal(spectral::Reveal) "spectral.reveal",
    }
    "one check of all that a client does, before it is told anything" => {
        /// A whole network, whose client is checked.
        Hardened(hardened::Whole) "hardened.network",
    }
}
