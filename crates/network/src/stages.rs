//! Where runs of the reference may begin again: networks that differ in late nodes alone have the first values in common.

use crate::FixedExecutor;
use crate::network::FixedOp;
use crate::stage::Stage;

/// Parts of a run's work, in 32nds, behind which a stage is worth having: most changes are late ones.
const PARTS: [usize; 8] = [8, 14, 18, 22, 25, 28, 30, 31];

/// How many products of a layer take as long as all that is done with one of its elements beside.
const PRODUCTS_OF_ELEMENT: usize = 10;

impl FixedExecutor<'_> {
    /// Numbers of nodes behind which runs have stages of at most so many elements together, in order. None of a network that runs on 128 bits.
    #[must_use]
    pub fn stages(&self, most_elements: usize) -> Vec<usize> {
        let network = self.network.public();
        if network.is_wide() {
            return Vec::new();
        }
        let mut done = 0_usize;
        let work = (0..network.nodes().len()).map(|node| {
            done = done.saturating_add(self.work(node));
            done
        });
        let work: Vec<usize> = work.collect();
        let kept = self.elements_kept();
        let (mut found, mut left) = (Vec::new(), most_elements);
        let mut end = network.nodes().len();
        // The last first: they are the smallest.
        for part in PARTS.into_iter().rev() {
            let begin = work.partition_point(|behind| behind / 32 * 32 < done / 32 * part);
            let smallest = (begin + 1..end).min_by_key(|nodes| kept[*nodes]);
            end = end.min(begin + 1);
            if let Some(nodes) = smallest.filter(|nodes| kept[*nodes] <= left) {
                left -= kept[nodes];
                found.push(nodes);
            }
        }
        found.reverse();
        found
    }

    /// Whether runs of this network may begin at a stage of another one of which so many first nodes, and what their values may be, are the same.
    #[must_use]
    pub fn begins_at(&self, stage: &Stage, alike: usize) -> bool {
        let is_kept = |value: &usize| stage.values.binary_search_by_key(value, |(kept, _)| *kept).is_ok();
        let later = self.network.public().nodes().get(stage.nodes..).unwrap_or_default();
        let mut read = later.iter().flat_map(|node| &node.inputs).filter(|value| **value <= stage.nodes);
        stage.nodes <= alike && !later.is_empty() && read.all(is_kept) && !self.network.public().is_wide()
    }

    /// About how long a node takes, in products of a layer.
    fn work(&self, node: usize) -> usize {
        let (node, index) = (&self.network.public().nodes()[node], node);
        let weights = self.network.weights(index).map_or(0, |weights| weights.weight().len());
        let products = match &node.op {
            FixedOp::Conv2d(_) => weights.saturating_mul(node.shape.iter().skip(1).product()),
            FixedOp::MatrixProduct { inner } => node.len().saturating_mul(*inner),
            _ => weights,
        };
        node.len().saturating_mul(PRODUCTS_OF_ELEMENT).saturating_add(products)
    }

    /// How many elements the values have together that are read behind so many nodes.
    fn elements_kept(&self) -> Vec<usize> {
        let network = self.network.public();
        let nodes = network.nodes().len();
        let mut no_more = vec![0_usize; nodes + 2];
        let mut kept = 0_usize;
        let behind = (0..=nodes).map(|value| {
            let elements = network.shape(value).iter().product();
            kept = kept.saturating_add(elements).saturating_sub(no_more[value]);
            no_more[self.last_use(value).clamp(value, nodes) + 1] += elements;
            kept
        });
        behind.collect()
    }
}
