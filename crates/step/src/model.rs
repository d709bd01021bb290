//! What a model gives its steps besides their specs.

use super::{ProtocolError, Result, Shared};

/// What steps are made from besides their specs, by the names of the network's nodes.
pub trait ModelParts {
    /// The integers of a linear node with a given number of output elements. The server's alone.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] if the party has none for the node.
    fn weights(&self, node: &str, outputs: usize) -> Result<Weights<'_>>;

    /// What the model's steps share.
    fn shared(&self) -> &Shared;

    /// For each element that a node makes, the number of the input and of its element that it copies; none for zero.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] if the node does more than move elements.
    fn sources(&self, node: &str) -> Result<Vec<Option<(usize, usize)>>>;
}

/// The integers of a linear layer.
pub struct Weights<'m> {
    /// In the order of the layer's shape.
    pub weight: &'m [i64],
    /// One for each output element.
    pub bias: Vec<i128>,
}

impl Weights<'_> {
    /// The biases, for a ring of less than 64 bits.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] if one has more.
    pub fn small_bias(&self) -> Result<Vec<i64>> {
        let small = |bias: &i128| {
            i64::try_from(*bias).map_err(|_| ProtocolError::WrongModel("a bias has more than 64 bits"))
        };
        self.bias.iter().map(small).collect()
    }
}
