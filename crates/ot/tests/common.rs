//! A channel between two threads of a test, which records what it sends.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lanner_primitives::{Bits, Block, Prg};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};

type Frame = (Kind, Vec<u8>);

/// One end of a pair of queues.
pub(crate) struct TestChannel {
    /// Gone once this party has ended.
    out: Option<Sender<Frame>>,
    inbox: Receiver<Frame>,
    body: Vec<u8>,
    traffic: Traffic,
    messages: u64,
    sent: Sha256,
    /// Replaces the payload of the numbered message of a kind before it is sent.
    pub(crate) tamper: Option<Tamper>,
}

/// A change to one message: its kind, and what becomes of its payload.
pub(crate) type Tamper = (Kind, fn(&mut Vec<u8>));

impl TestChannel {
    pub(crate) fn pair() -> (Self, Self) {
        let ((to_a, a), (to_b, b)) = (channel(), channel());
        (Self::new(to_b, a), Self::new(to_a, b))
    }

    fn new(out: Sender<Frame>, inbox: Receiver<Frame>) -> Self {
        Self {
            out: Some(out),
            inbox,
            body: Vec::new(),
            traffic: Traffic::default(),
            messages: 0,
            sent: Sha256::new(),
            tamper: None,
        }
    }

    /// Payload bytes and messages sent so far.
    #[allow(dead_code)]
    pub(crate) fn sent(&self) -> (u64, u64) {
        (self.traffic.sent, self.messages)
    }

    /// The hexadecimal digest of all frames sent so far.
    #[allow(dead_code)]
    pub(crate) fn digest(&self) -> String {
        let digest: [u8; 32] = self.sent.clone().finalize().into();
        let (high, low) = digest.split_at(16);
        let half = |half: &[u8]| half.iter().fold(0_u128, |acc, b| acc << 8 | u128::from(*b));
        format!("{:032x}{:032x}", half(high), half(low))
    }
}

impl Channel for TestChannel {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut payload = payload.to_vec();
        if let Some((_, change)) = self.tamper.filter(|(tampered, _)| *tampered == kind) {
            change(&mut payload);
        }
        self.sent.update((payload.len() as u32).to_le_bytes());
        self.sent.update(kind.0.to_le_bytes());
        self.sent.update(&payload);
        self.traffic.sent += payload.len() as u64;
        self.messages += 1;
        let out = self.out.as_ref().ok_or(ChannelError::Disconnected)?;
        out.send((kind, payload)).map_err(|_| ChannelError::Disconnected)
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
        self.traffic.received += buffer.len() as u64;
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }
}

/// Runs both parties to their ends.
#[allow(dead_code)]
pub(crate) fn run<A: Send, B: Send>(
    a: impl FnOnce(&mut TestChannel) -> A + Send,
    b: impl FnOnce(&mut TestChannel) -> B + Send,
) -> (A, B) {
    let (mut ca, mut cb) = TestChannel::pair();
    run_over(&mut ca, &mut cb, a, b)
}

/// As [`run`], over channels that the test keeps.
pub(crate) fn run_over<A: Send, B: Send>(
    ca: &mut TestChannel,
    cb: &mut TestChannel,
    a: impl FnOnce(&mut TestChannel) -> A + Send,
    b: impl FnOnce(&mut TestChannel) -> B + Send,
) -> (A, B) {
    // As on three cores, whatever the machine.
    lanner_primitives::parallel::set_threads(3);
    thread::scope(|scope| {
        let handle = scope.spawn(|| {
            let result = a(ca);
            ca.out = None;
            result
        });
        let b = b(cb);
        cb.out = None;
        (handle.join().expect("no party panics"), b)
    })
}

/// A generator of a test, one for each number.
pub(crate) fn rng(number: u8) -> Prg {
    Prg::from_seed([number; 16])
}

/// Whether `t[i] = q[i] xor x[i] * delta` for all `i`.
#[allow(dead_code)]
pub(crate) fn correlated(delta: Block, q: &[Block], x: &Bits, t: &[Block]) -> bool {
    q.len() == x.len()
        && t.len() == x.len()
        && q.iter().zip(t).zip(x.iter()).all(|((q, t), x)| *t == *q ^ (delta & Block::mask(x)))
}
