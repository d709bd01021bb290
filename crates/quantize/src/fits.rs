//! Linear layers and what was found of them: a search asks for the same fit again and again, since it begins anew wherever one layer does not
//! fit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lanner_graph::pass::Draft;
use lanner_network::CompileError;

use super::item::{Action, Item};
use super::layer::{FittedLayer, RealLayer, Room};

/// The linear layers of a graph, by node.
pub(super) struct Fits<'a>(BTreeMap<usize, Layer<'a>>);

struct Layer<'a> {
    real: RealLayer<'a>,
    tried: RefCell<Tried>,
}

/// What was asked of a layer, and what came of it.
#[derive(Default)]
struct Tried {
    refused: Vec<(Room, f64)>,
    /// The last fit alone: each holds all weights.
    fitted: Option<((Room, f64), FittedLayer)>,
}

/// How many refusals are remembered of a layer.
const MOST_REFUSED: usize = 256;

/// How many scales of a layer are remembered with their integers, and how many integers of all layers: 256 megabytes.
const MOST_MADE: usize = 16;
const MOST_WEIGHTS_MADE: usize = 1 << 25;

impl<'a> Fits<'a> {
    /// Reads the layers' tensors, which have so many weights together.
    pub(super) fn new(draft: &'a Draft, items: &[Item<'_>], weights: usize) -> Result<Self, CompileError> {
        let most_made = (MOST_WEIGHTS_MADE / weights.max(1)).clamp(1, MOST_MADE);
        let layers = items.iter().filter_map(|item| match item.action {
            Action::Layer { node, .. } => Some((node, item.shape[0])),
            _ => None,
        });
        let read = |(node, channels)| {
            Ok((
                node,
                Layer { real: RealLayer::new(draft, node, channels, most_made)?, tried: RefCell::default() },
            ))
        };
        layers.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// As [`RealLayer::fit`].
    ///
    /// # Errors
    /// [`CompileError::Network`] if the node is no layer.
    pub(super) fn fit(
        &self,
        node: usize,
        room: &Room,
        slack: f64,
    ) -> Result<Option<FittedLayer>, CompileError> {
        let layer = self.layer(node)?;
        let asked = (*room, slack);
        let mut tried = layer.tried.borrow_mut();
        if let Some((_, fitted)) = tried.fitted.as_ref().filter(|(fitting, _)| *fitting == asked) {
            return Ok(Some(fitted.clone()));
        }
        if tried.refused.contains(&asked) {
            return Ok(None);
        }
        let fitted = layer.real.fit(room, slack);
        match &fitted {
            Some(fitted) => tried.fitted = Some((asked, fitted.clone())),
            None if tried.refused.len() < MOST_REFUSED => tried.refused.push(asked),
            None => {}
        }
        Ok(fitted)
    }

    /// As [`RealLayer::needed`].
    ///
    /// # Errors
    /// As [`Self::fit`].
    pub(super) fn needed(&self, node: usize, room: &Room) -> Result<i128, CompileError> {
        Ok(self.layer(node)?.real.needed(room))
    }

    /// As [`RealLayer::worst`].
    ///
    /// # Errors
    /// As [`Self::fit`].
    pub(super) fn worst(&self, node: usize, room: &Room) -> Result<f64, CompileError> {
        Ok(self.layer(node)?.real.worst(room))
    }

    /// The largest absolute weight of a layer.
    ///
    /// # Errors
    /// As [`Self::fit`].
    pub(super) fn largest(&self, node: usize) -> Result<f64, CompileError> {
        Ok(self.layer(node)?.real.largest())
    }

    fn layer(&self, node: usize) -> Result<&Layer<'a>, CompileError> {
        self.0.get(&node).ok_or_else(|| CompileError::Network {
            place: format!("node {node}"),
            reason: "it is no linear layer".to_owned(),
        })
    }
}
