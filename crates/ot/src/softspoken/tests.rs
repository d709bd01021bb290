//! Receivers that are honest but for one leaf: what they get for guessing, and how often they are caught.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lanner_primitives::{Block, Prg, Seed};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};
use rand_core::SeedableRng;

use super::{CotReceiver, CotSender, LEAVES, random_delta};
use crate::{CorrelatedReceiver, CorrelatedSender, OtError};

/// One end of a pair of queues.
struct Queue {
    out: Sender<(Kind, Vec<u8>)>,
    inbox: Receiver<(Kind, Vec<u8>)>,
    body: Vec<u8>,
}

impl Queue {
    fn pair() -> (Self, Self) {
        let ((to_a, a), (to_b, b)) = (channel(), channel());
        let end = |out, inbox| Self { out, inbox, body: Vec::new() };
        (end(to_b, a), end(to_a, b))
    }
}

impl Channel for Queue {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.out.send((kind, payload.to_vec())).map_err(|_| ChannelError::Disconnected)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let (kind, body) = self.inbox.recv().map_err(|_| ChannelError::Disconnected)?;
        self.body = body;
        Ok((kind, self.body.len()))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        buffer.copy_from_slice(&self.body);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// Two parties after an honest set-up, and their channels.
fn set_up(number: u8, delta: Block) -> ((CotSender, Queue), (CotReceiver, Queue)) {
    let (mut a, mut b) = Queue::pair();
    let mut rng = Prg::from_seed([number; 16]);
    let receiving = thread::spawn(move || (CotReceiver::setup(&mut b, &mut rng).unwrap(), b));
    let sender = CotSender::setup(&mut a, delta, &mut Prg::from_seed([99; 16])).unwrap();
    ((sender, a), receiving.join().unwrap())
}

/// The sender's end of a batch of `count` transfers in which a leaf of the receiver's is not the sender's: corrections of its tree are wrong in about
/// half of the columns, and the proof is that of who guesses that the sender misses this leaf.
fn batch(number: u8, delta: Block, tree: usize, leaf: usize, count: usize) -> Result<u64, OtError> {
    let ((mut sender, mut a), (mut receiver, mut b)) = set_up(number, delta);
    receiver.trees[tree].replace(leaf, &Seed::from_bytes([7; 16]));
    receiver.extend_random(&mut b, count, &mut Vec::new()).unwrap();
    let mut q = Vec::new();
    let ended = sender.extend_random(&mut a, count, &mut q);
    match &ended {
        Ok(_) => assert_eq!(q.len(), count),
        Err(_) => assert!(q.is_empty() && sender.delta() == Block::ZERO && sender.trees.is_empty()),
    }
    ended
}

#[test]
fn a_wrong_leaf_passes_where_the_sender_misses_it_and_nowhere_else() {
    // A set-up in a debug build takes tens of milliseconds: a leaf each, of the first, a middle and the last tree.
    let delta = random_delta(&mut Prg::from_seed([1; 16]));
    for (number, (tree, count)) in [(0, 1), (9, 8193), (31, 70_000)].into_iter().enumerate() {
        let missing = (delta.0 >> (4 * tree) & 15) as usize;
        assert!(batch(number as u8, delta, tree, missing, count).is_ok());
        for other in [missing ^ 1, missing ^ 8, LEAVES - 1 - missing] {
            let ended = batch(number as u8, delta, tree, other, count);
            assert!(matches!(ended, Err(OtError::Dishonest { .. })), "tree {tree}, leaf {other}");
        }
    }
}

/// Over many deltas a guess passes as often as it should: one in sixteen.
#[test]
#[ignore = "a minute: hundreds of set-ups"]
fn guesses_pass_one_time_in_sixteen() {
    let trials = 320_u32;
    let passed = (0..trials).filter(|trial| {
        let mut rng = Prg::from_seed(u128::from(*trial + 1000).to_le_bytes());
        batch((trial % 251) as u8, random_delta(&mut rng), 5, 3, 200).is_ok()
    });
    let (low, high) = wilson(passed.count() as f64, f64::from(trials), 4.0);
    assert!(low < 1.0 / 16.0 && 1.0 / 16.0 < high && high < 1.0 / 4.0, "{low} to {high}");
}

/// The rates that so many successes of so many trials are within `z` standard deviations of: Wilson's interval.
fn wilson(successes: f64, trials: f64, z: f64) -> (f64, f64) {
    let (rate, z2) = (successes / trials, z * z / trials);
    let half = (z2 * (rate * (1.0 - rate) + z2 / 4.0)).sqrt();
    let at = |side: f64| (rate + z2 / 2.0 + side * half) / (1.0 + z2);
    (at(-1.0), at(1.0))
}
