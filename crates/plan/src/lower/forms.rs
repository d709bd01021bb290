//! Whether the answers of guarded layers are packed, and whether exact layers are guarded by a bit that is dropped right behind.

use std::collections::{BTreeMap, BTreeSet};

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{Accuracy, price_of_bytes};
use lanner_network::{FixedNode, FixedOp};
use lanner_step::Spec;
use lanner_transfers::{DropGuard, Rounding};

use super::guards::{DROPPED, Form, Guards};
use super::result::sent;
use super::{Chosen, Planner, encrypted, layer};
use crate::PlanError;
use crate::mode;

/// A layer whose answers are cheaper packed.
struct Packable {
    value: usize,
    form: Form,
    /// Whether its guard is dropped right behind.
    drops: bool,
    /// By how much it is cheaper, and what its keys take.
    saves: usize,
    keys: usize,
}

impl Planner<'_> {
    /// The values that layers make in coefficients, and that are needed without a guard.
    pub(super) fn droppable(&self, guards: &Guards) -> Vec<usize> {
        if self.choices.mode.rounding() != Rounding::Exact {
            return Vec::new();
        }
        let chosen: BTreeSet<usize> = self.chosen.iter().flatten().filter_map(Chosen::layer).collect();
        let droppable = |index: &usize| {
            let by_ciphertexts = self.sparse[*index].is_none() && !chosen.contains(index);
            let rule = self.rules(*index).layer;
            // What picks elements is for transfers, which take no round.
            matches!(
                self.network.nodes()[*index].op,
                FixedOp::Conv2d(_) | FixedOp::Linear { picks: false, .. }
            ) && by_ciphertexts
                && matches!(rule, mode::Layer::Coefficients | mode::Layer::Ahead)
                && guards.of(index + 1) == 0
        };
        (0..self.network.nodes().len()).filter(droppable).map(|index| index + 1).collect()
    }

    /// Chooses the form of each guarded layer, and of these exact ones: what costs least.
    ///
    /// Layers are packed in a parameter set if together they save what its keys take.
    pub(super) fn choose_forms(&self, guards: &mut Guards, exact: &[usize]) -> Result<(), PlanError> {
        let mut packable = Vec::new();
        for (value, (_, price)) in guards.forms() {
            if !matches!(self.network.nodes()[value - 1].op, FixedOp::MatrixProduct { .. }) {
                packable.extend(self.packable(value, guards.of(value), price, None)?);
            }
        }
        for value in exact {
            let node = &self.network.nodes()[value - 1];
            let (drop, (shape, bits)) = (self.price_of_drop(node)?, self.layer_of(node)?);
            let cheapest = |accuracy| self.encrypted(node, &shape, bits, &[accuracy]);
            let whole = cheapest(Accuracy::Exact)?.map_or(usize::MAX, |found| found.price);
            let apart = cheapest(Accuracy::Guarded(DROPPED))?.map(|found| (found.set, found.price + drop));
            let apart = apart.filter(|(_, price)| *price < whole);
            if let Some(form) = apart {
                guards.drop_behind(*value, form);
            }
            let least = apart.map_or(whole, |(_, price)| price);
            packable.extend(self.packable(*value, DROPPED, least, Some(drop))?);
        }
        let mut sets = BTreeMap::<ParameterSet, [usize; 2]>::new();
        for layer in &packable {
            let [saved, keys] = sets.entry(layer.form.0).or_default();
            *saved = saved.saturating_add(layer.saves);
            *keys = layer.keys.max(*keys);
        }
        for Packable { value, form, drops, .. } in packable {
            match sets.get(&form.0) {
                Some([saved, keys]) if saved > keys && drops => guards.drop_behind(value, form),
                Some([saved, keys]) if saved > keys => guards.take(value, form),
                _ => {}
            }
        }
        Ok(())
    }

    /// The layer that makes a value with packed answers, and the step that drops its guard at a price; none where that is not cheaper than `least`.
    fn packable(
        &self,
        value: usize,
        guard: u32,
        least: usize,
        drop: Option<usize>,
    ) -> Result<Option<Packable>, PlanError> {
        let node = &self.network.nodes()[value - 1];
        let of_node = |error| layer(node, error);
        let (shape, bits) = self.layer_of(node)?;
        let found = encrypted::packed(&shape, self.choices.samples, bits, guard, &self.sets);
        let Some(found) = found.map_err(of_node)? else { return Ok(None) };
        let price = found.price + drop.unwrap_or_default();
        let Some(saves) = least.checked_sub(price) else { return Ok(None) };
        let (form, keys) = ((found.set, price), found.price_of_keys);
        Ok(Some(Packable { value, form, drops: drop.is_some(), saves, keys }))
    }

    /// The price of the step that drops the guard of a node's values.
    fn price_of_drop(&self, node: &FixedNode) -> Result<usize, PlanError> {
        let values = self.choices.samples.times(node.len());
        let drop = DropGuard { values, bits: node.accumulator.bits(), guard: DROPPED };
        let bytes =
            drop.build(&self.sets).and_then(|built| sent(&*built)).map_err(|error| layer(node, error))?;
        Ok(price_of_bytes(usize::try_from(bytes).unwrap_or(usize::MAX)))
    }
}
