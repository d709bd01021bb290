//! The moves as one party makes them with its peer.

use lanner_step::{Party, ProtocolError, Result, kind};
use lanner_wire::{Channel, Kind, Reader};

use super::driver::{Driver, Task};
use super::lanes::Values;
use super::material::{Material, PreparedMove};
use super::moves::{Move, joint_messages};
use super::role::Role;

/// One party's walk through the moves of a layer, with their material.
pub(super) struct Run<'c> {
    channel: &'c mut dyn Channel,
    party: Party,
    material: std::iter::Peekable<std::vec::IntoIter<PreparedMove>>,
    /// Whether this party speaks first in the next turn.
    is_first: bool,
}

impl<'c> Run<'c> {
    pub(super) fn new(channel: &'c mut dyn Channel, party: Party, material: Material) -> Self {
        let material = material.0.into_iter().peekable();
        Self { channel, party, material, is_first: party == Party::Client }
    }

    /// This party's role in a move, whose material must be the next.
    fn role(&mut self, task: Task<Values>) -> Result<Box<dyn Role>> {
        let step = task.step();
        let is_next = |next: &PreparedMove| next.step == step && next.is_first == self.is_first;
        let next = self.material.next_if(is_next).ok_or_else(other_material)?;
        next.prepared.role(task, self.is_first).ok_or_else(other_material)
    }

    /// Ends the walk, which has come through all the material.
    pub(super) fn finish(mut self) -> Result<()> {
        self.material.next().map_or(Ok(()), |_| Err(other_material()))
    }
}

impl Driver for Run<'_> {
    type Values = Values;

    fn party(&self) -> Party {
        self.party
    }

    fn is_second(&self) -> bool {
        !self.is_first
    }

    fn turn(&mut self, tasks: Vec<Task<Values>>) -> Result<Vec<Vec<Values>>> {
        let steps: Vec<Move> = tasks.iter().map(Task::step).collect();
        let mut roles: Vec<Box<dyn Role>> = Vec::new();
        for task in tasks {
            roles.push(self.role(task)?);
        }
        let lengths = joint_messages(&steps);
        for (number, length) in lengths.iter().enumerate() {
            let said = |step: &Move| step.messages().len() > number;
            let mut taking = roles.iter_mut().zip(&steps).filter(|(_, step)| said(step));
            let kind = steps.iter().find(|step| said(step)).map_or(kind::MUX, |step| kind_of(*step, number));
            if number.is_multiple_of(2) == self.is_first {
                let mut parts: Vec<Vec<u8>> = taking.map(|(role, _)| role.say()).collect();
                let message = if parts.len() == 1 { parts.swap_remove(0) } else { parts.concat() };
                self.channel.send(kind, &message)?;
                self.channel.flush()?;
            } else {
                let message = self.channel.receive(kind, *length)?;
                let mut message = Reader::new(&message);
                taking.try_for_each(|(role, _)| role.hear(&mut message))?;
            }
        }
        if lengths.len().is_multiple_of(2) {
            self.is_first = !self.is_first;
        }
        Ok(roles.into_iter().map(Role::finish).collect())
    }
}

/// The kind of a move's messages, of which those of a turn have the first one's.
const fn kind_of(step: Move, number: usize) -> Kind {
    match step {
        Move::Leaves { .. } if number == 0 => kind::LEAF_CHOICES,
        Move::Leaves { .. } => kind::LEAF_REPLIES,
        Move::Bits { .. } => kind::BIT_PRODUCTS,
        Move::BothWays { .. } | Move::Matrices { .. } => kind::MUX,
        Move::Products { .. } => kind::PRODUCTS,
        Move::Lookup { .. } | Move::Scaled { .. } if number == 0 => kind::LOOKUP_PLACES,
        Move::Lookup { .. } | Move::Scaled { .. } => kind::LOOKUP_REPLIES,
    }
}

fn other_material() -> ProtocolError {
    ProtocolError::WrongMaterial("material of another move")
}
