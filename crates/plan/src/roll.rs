//! The steps of recurrent layers as one part of a plan that repeats.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash};

use lanner_network::PublicNetwork;
use lanner_network::repeats::{self, Listed, Repeat};

use crate::{Item, Repeated, Step};

/// The steps, where those that a part of the network takes again and again are there once.
///
/// What is one step then has one set of weights, tables and sources: the network says so.
pub(crate) fn roll(network: &PublicNetwork, steps: Vec<Step>) -> Vec<Item> {
    if network.repeats().is_empty() {
        return steps.into_iter().map(Item::Step).collect();
    }
    let list = Planned::of(network, &steps);
    let mut found = repeats::find(&list);
    // Each goes on with the network's next iteration.
    found.retain(|repeat| {
        (repeat.first..repeat.first + repeat.length).all(|step| list.is_next(step, repeat.length))
    });
    let items = found.iter().map(|repeat| (repeat.first, repeated(&steps, repeat))).collect::<Vec<_>>();
    let (mut items, mut rolled, mut skipped) = (items.into_iter().peekable(), Vec::new(), 0);
    for (index, step) in steps.into_iter().enumerate() {
        if let Some((_, repeated)) = items.next_if(|(first, _)| *first == index) {
            skipped = index + repeated.body.len() * repeated.times;
            rolled.push(Item::Repeat(repeated));
        }
        if index >= skipped {
            rolled.push(Item::Step(step));
        }
    }
    rolled
}

fn repeated(steps: &[Step], &Repeat { first, length, times }: &Repeat) -> Repeated {
    let body = &steps[first..first + length];
    let advance = |(step, next): (&Step, &Step)| {
        let inputs = step.inputs.iter().zip(&next.inputs);
        inputs.map(|(input, next)| *next as i64 - *input as i64).collect()
    };
    let advances = body.iter().zip(&steps[first + length..]).map(advance).collect();
    let end = &steps[first + length * (times - 1)..first + length * times];
    let last = end.iter().map(|step| step.name.clone()).collect();
    Repeated { times, body: body.to_vec(), last, advances }
}

/// A plan's steps with the place of each in what repeats in the network.
struct Planned<'s> {
    network: &'s PublicNetwork,
    steps: &'s [Step],
    /// The node of each step, the part that repeats that it belongs to, and the iteration and the place there.
    places: Vec<Option<(usize, usize, [usize; 2])>>,
}

impl<'s> Planned<'s> {
    fn of(network: &'s PublicNetwork, steps: &'s [Step]) -> Self {
        let names = network.nodes().iter().enumerate();
        let names: HashMap<&str, usize> = names.map(|(node, known)| (known.name.as_str(), node)).collect();
        let all = network.repeats();
        let place = |step: &Step| {
            let node = *names.get(step.name.as_str())?;
            let repeat = all.partition_point(|repeat| repeat.first <= node).checked_sub(1)?;
            Some((node, repeat, all[repeat].place(node)?))
        };
        Self { network, steps, places: steps.iter().map(place).collect() }
    }

    /// Whether the step so many on is of the next iteration.
    fn is_next(&self, step: usize, length: usize) -> bool {
        let [this, next] = [step, step + length].map(|step| self.places.get(step).copied().flatten());
        this.zip(next).is_some_and(|((.., [this, _]), (.., [next, _]))| next == this + 1)
    }
}

impl Listed for Planned<'_> {
    fn count(&self) -> usize {
        self.steps.len()
    }

    fn hash(&self, entry: usize, hasher: &mut DefaultHasher) {
        match self.places[entry] {
            Some((_, repeat, [_, place])) => (0, repeat, place).hash(hasher),
            // It has no like.
            None => (1, entry, 0).hash(hasher),
        }
    }

    fn is_alike(&self, one: usize, other: usize) -> bool {
        let [a, b] = [one, other].map(|entry| &self.steps[entry]);
        let ([Some((x, one, [_, place])), Some((y, two, [_, other]))], nodes) =
            ([self.places[one], self.places[other]], self.network.nodes())
        else {
            return false;
        };
        // What begins at another place each time moves other elements.
        (one, place) == (two, other) && a.protocol == b.protocol && nodes[x].op == nodes[y].op
    }

    fn numbers(&self, entry: usize) -> Vec<i64> {
        let iteration = self.places[entry].map_or(0, |(.., [iteration, _])| iteration);
        self.steps[entry].inputs.iter().chain([&iteration]).map(|number| *number as i64).collect()
    }
}
