//! The driver that lists moves.

use lanner_step::{Party, Result};

use super::driver::{Driver, Task};
use super::lanes::{Count, words};
use super::moves::{Move, Moves, Turn, leaves};

/// Lists the moves that a protocol makes. They are the same for both parties.
#[derive(Default)]
pub(super) struct Counter(Vec<Turn>);

impl Counter {
    pub(super) fn into_moves(self) -> Moves {
        Moves(self.0)
    }

    /// How many results all moves give.
    #[cfg(test)]
    pub(super) fn given(&self) -> usize {
        self.0.iter().flatten().map(|step| step.results()).sum()
    }
}

impl Driver for Counter {
    type Values = Count;

    fn party(&self) -> Party {
        Party::Client
    }

    fn is_second(&self) -> bool {
        false
    }

    fn turn(&mut self, tasks: Vec<Task<Count>>) -> Result<Vec<Vec<Count>>> {
        let given = |task: &Task<Count>| match (task.step(), task) {
            (Move::Leaves { values, parts }, _) => {
                vec![Count(words(values)); leaves(parts).map(|leaf| leaf.rows()).sum()]
            }
            (_, Task::Bits(_, others)) => others.clone(),
            (Move::BothWays { values, .. } | Move::Products { values, .. }, _) => vec![Count(values)],
            (Move::Matrices { shape, .. }, _) => vec![Count(shape.sums())],
            (Move::Lookup { values, shape } | Move::Scaled { values, shape }, _) => {
                shape.columns().map(|_| Count(values)).collect()
            }
            (Move::Bits { .. }, _) => Vec::new(),
        };
        self.0.push(tasks.iter().map(Task::step).collect());
        Ok(tasks.iter().map(given).collect())
    }
}
