//! What steps are made from, by the names of the network's nodes.

use std::collections::HashMap;

use lanner_network::{Network, PublicNetwork};
use lanner_step::{ModelParts, ProtocolError, Shared, Weights};

/// A network as the party knows it: the server with its weights.
pub(super) struct Parts<'n> {
    public: &'n PublicNetwork,
    private: Option<&'n Network>,
    /// The numbers of nodes by name.
    nodes: HashMap<&'n str, usize>,
    shared: Shared,
}

impl<'n> Parts<'n> {
    /// What the client knows.
    pub(super) fn public(public: &'n PublicNetwork) -> Self {
        let nodes = public.nodes().iter().enumerate().map(|(index, node)| (node.name.as_str(), index));
        Self { public, private: None, nodes: nodes.collect(), shared: Shared::default() }
    }

    /// What the server knows, and where its steps have factors of weights from.
    pub(super) fn private(network: &'n Network, shared: Shared) -> Self {
        Self { private: Some(network), shared, ..Self::public(network.public()) }
    }

    fn node(&self, name: &str) -> Option<usize> {
        self.nodes.get(name).copied()
    }
}

impl ModelParts for Parts<'_> {
    fn weights(&self, node: &str, outputs: usize) -> Result<Weights<'_>, ProtocolError> {
        let weights = self.private.zip(self.node(node)).and_then(|(network, node)| network.weights(node));
        let weights = weights.ok_or(ProtocolError::WrongModel("it has no weights of this layer"))?;
        Ok(Weights { weight: weights.weight(), bias: weights.bias_of(outputs) })
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn sources(&self, node: &str) -> Result<Vec<Option<(usize, usize)>>, ProtocolError> {
        let sources = self.node(node).and_then(|node| self.public.sources(node));
        let sources = sources.ok_or(ProtocolError::WrongModel("it moves elements otherwise"))?;
        Ok(sources.into_iter().map(|source| source.map(|source| (source.input, source.element))).collect())
    }
}
