//! Two exchanges at once over one channel.
//!
//! Both parties run the same two exchanges, each on a lane of its own: a stream of bytes that is cut into chunks, which are frames of the
//! channel. Whoever waits for its lane's bytes takes the other lane's too, and one thread at a time waits for the connection.

use std::collections::VecDeque;
use std::io::Cursor;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lanner_wire::{Arrivals, Channel, ChannelError, Divisible, Kind};

use crate::framed::{ByteStream, Framed};

/// Runs two exchanges at once, the first on this thread; the peer runs the same two. Rounds and bytes of an exchange are those of its lane:
/// frames of lanes, as whatever else a transport adds, count for the channel alone. Each party goes on when both of its exchanges are over.
///
/// # Errors
/// The first exchange's error, or the second's if that made the first one fail: an exchange that fails ends the other. The second's alone
/// is in its result.
pub fn abreast<A, B: Send, E: From<ChannelError> + Send>(
    channel: &mut dyn Divisible,
    first: impl FnOnce(&mut dyn Channel) -> Result<A, E>,
    second: impl FnOnce(&mut dyn Channel) -> Result<B, E> + Send,
) -> Result<(A, Result<B, E>), E> {
    let arrivals = channel.arrivals()?;
    let road = Road { state: Mutex::new(State::new(channel)), changed: Condvar::new(), arrivals };
    let (ours, beside) = thread::scope(|scope| {
        let beside = scope.spawn(|| run(&road, Lane::Second, second));
        let ours = run(&road, Lane::First, first);
        (ours, beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let state = road.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (ours, beside) {
        (Err(_), Err(reason)) if state.failed == Some(Lane::Second) => Err(reason),
        (Err(reason), _) => Err(reason),
        (Ok(_), Ok(_)) if state.has_more() => {
            Err(ChannelError::Malformed { what: "lanes: more than was due" }.into())
        }
        (Ok(made), beside) => Ok((made, beside)),
    }
}

/// Runs an exchange on its lane; one that fails, or panics, ends the other.
fn run<T, E: From<ChannelError>>(
    road: &Road<'_>,
    lane: Lane,
    exchange: impl FnOnce(&mut dyn Channel) -> Result<T, E>,
) -> Result<T, E> {
    let mut ends = EndsOther { road, lane: Some(lane) };
    let mut channel = Framed::new(LaneStream { road, lane, queue: Vec::new(), sent: 0, received: 0 });
    let result = exchange(&mut channel).and_then(|made| Ok(channel.flush().map(|()| made)?));
    if result.is_ok() {
        ends.lane = None;
    }
    result
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    First,
    Second,
}

impl Lane {
    const fn kind(self) -> Kind {
        match self {
            Self::First => FIRST,
            Self::Second => SECOND,
        }
    }

    const fn of(kind: Kind) -> Option<Self> {
        match kind {
            FIRST => Some(Self::First),
            SECOND => Some(Self::Second),
            _ => None,
        }
    }
}

/// What the two lanes share.
struct Road<'c> {
    state: Mutex<State<'c>>,
    /// Something came, was taken, or failed, or nobody waits for the connection any more.
    changed: Condvar,
    arrivals: Box<dyn Arrivals>,
}

struct State<'c> {
    channel: &'c mut dyn Divisible,
    /// What came and was not read: chunks, and how much of each was.
    came: [VecDeque<Cursor<Vec<u8>>>; 2],
    /// A chunk of which a part has come, and how much.
    chunk: Option<(Lane, Vec<u8>, usize)>,
    /// Chunks that have come.
    chunks: u64,
    /// Whether a thread waits for the connection.
    waiting: bool,
    /// When a lane last had what it read: the peer may be at work for the other one.
    progress: Instant,
    /// The lane that failed first.
    failed: Option<Lane>,
    /// What failed behind something that came or was sent, for whoever waits for more.
    untold: Option<ChannelError>,
}

/// Why nothing more is taken from the channel for now.
enum Pause {
    /// Nothing more has come.
    Nothing,
    /// What has come is for a lane that has much to read already.
    Full,
    /// What has come is for no lane: the peer has sent all that it sends on them.
    Over,
}

impl<'c> State<'c> {
    fn new(channel: &'c mut dyn Divisible) -> Self {
        let came = [VecDeque::new(), VecDeque::new()];
        let progress = Instant::now();
        Self { channel, came, chunk: None, chunks: 0, waiting: false, progress, failed: None, untold: None }
    }

    /// Takes what has come from the channel.
    fn take_in(&mut self) -> Result<Pause, ChannelError> {
        loop {
            if let Some((lane, bytes, filled)) = &mut self.chunk {
                let count = self.channel.take_body(&mut bytes[*filled..])?;
                *filled += count;
                if *filled == bytes.len() {
                    self.came[*lane as usize].push_back(Cursor::new(std::mem::take(bytes)));
                    self.chunk = None;
                    self.chunks += 1;
                } else if count == 0 {
                    return Ok(Pause::Nothing);
                }
                continue;
            }
            let Some((kind, length)) = self.channel.peek_header()? else { return Ok(Pause::Nothing) };
            if kind == Kind::REFUSED {
                // It is the error of this receive.
                self.channel.receive_header()?;
            }
            let Some(lane) = Lane::of(kind) else { return Ok(Pause::Over) };
            if length == 0 || length > CHUNK_LENGTH {
                return Err(ChannelError::Malformed { what: "lanes: a chunk's length" });
            }
            if self.came[lane as usize].len() >= MOST_CHUNKS {
                return Ok(Pause::Full);
            }
            self.channel.receive_header()?;
            self.chunk = Some((lane, vec![0; length], 0));
        }
    }

    /// Gives a lane what has come for it, at most `buffer.len()` bytes.
    fn give(&mut self, lane: Lane, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        let came = &mut self.came[lane as usize];
        while let Some(bytes) = came.front_mut().filter(|_| filled < buffer.len()) {
            let left = &bytes.get_ref()[bytes.position() as usize..];
            let count = left.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&left[..count]);
            filled += count;
            if count == left.len() {
                came.pop_front();
            } else {
                bytes.set_position(bytes.position() + count as u64);
            }
        }
        filled
    }

    fn has_more(&self) -> bool {
        self.chunk.is_some() || self.came.iter().any(|came| !came.is_empty())
    }

    /// Checks that the other lane has not failed.
    fn check_failed(&self) -> Result<(), ChannelError> {
        match self.failed {
            None => Ok(()),
            Some(_) => Err(ChannelError::Transport("the exchange beside this one failed".to_owned())),
        }
    }
}

impl<'c> Road<'c> {
    fn state(&self) -> MutexGuard<'_, State<'c>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has both threads look at what there is.
    fn wake(&self, state: &State<'_>) {
        self.changed.notify_all();
        if state.waiting {
            self.arrivals.wake();
        }
    }

    /// Sends a chunk of a lane.
    fn send(&self, lane: Lane, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut state = self.state();
        state.check_failed()?;
        state.channel.send(lane.kind(), bytes)?;
        state.channel.flush()?;
        // While it was written, something may have come that nobody is woken for. A peer that has all that it waits for may be gone.
        let before = state.chunks;
        let taken = state.take_in();
        state.untold = taken.err();
        if state.chunks != before || state.untold.is_some() {
            self.wake(&state);
        }
        Ok(())
    }

    /// Waits until `buffer` is full of a lane's bytes.
    fn receive(&self, lane: Lane, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let entered = Instant::now();
        let mut filled = 0;
        let mut state = self.state();
        loop {
            state.check_failed()?;
            filled += state.give(lane, &mut buffer[filled..]);
            if filled == buffer.len() {
                state.progress = Instant::now();
                self.changed.notify_all();
                return Ok(());
            }
            let taken = state.untold.take().map_or_else(|| state.take_in(), Err);
            if !state.came[lane as usize].is_empty() {
                // What came before a failure comes first.
                state.untold = taken.err();
                continue;
            }
            let pause = taken?;
            let since = state.progress.max(entered);
            if Instant::now() > state.channel.deadline(since, buffer.len()) {
                return Err(ChannelError::TimedOut);
            }
            state = match pause {
                Pause::Over => return Err(ChannelError::Malformed { what: "lanes: less than was due" }),
                Pause::Nothing if !state.waiting => self.wait_for_peer(state)?,
                Pause::Nothing | Pause::Full => self.wait_for_other(state),
            };
        }
    }

    /// Waits for the connection, without holding the channel.
    fn wait_for_peer<'r>(
        &'r self,
        mut state: MutexGuard<'r, State<'c>>,
    ) -> Result<MutexGuard<'r, State<'c>>, ChannelError> {
        state.waiting = true;
        drop(state);
        let waited = self.arrivals.wait(PATIENCE);
        let mut state = self.state();
        state.waiting = false;
        self.changed.notify_all();
        waited.map(|()| state)
    }

    /// Waits until the other lane's thread has changed something.
    fn wait_for_other<'r>(&'r self, state: MutexGuard<'r, State<'c>>) -> MutexGuard<'r, State<'c>> {
        self.changed.notify_all();
        let waited = self.changed.wait_timeout(state, PATIENCE);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Ends the other lane's exchange when it goes out of scope, unless it was told not to.
struct EndsOther<'r, 'c> {
    road: &'r Road<'c>,
    lane: Option<Lane>,
}

impl Drop for EndsOther<'_, '_> {
    fn drop(&mut self) {
        let Some(lane) = self.lane else { return };
        let mut state = self.road.state();
        state.failed.get_or_insert(lane);
        self.road.wake(&state);
    }
}

/// The bytes of a lane.
struct LaneStream<'r, 'c> {
    road: &'r Road<'c>,
    lane: Lane,
    /// Bytes not sent yet, fewer than [`CHUNK_LENGTH`].
    queue: Vec<u8>,
    sent: u64,
    received: u64,
}

impl ByteStream for LaneStream<'_, '_> {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_LENGTH - self.queue.len()));
            self.queue.extend_from_slice(now);
            bytes = later;
            if self.queue.len() == CHUNK_LENGTH {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        if self.queue.is_empty() {
            return Ok(());
        }
        self.road.send(self.lane, &self.queue)?;
        self.sent += self.queue.len() as u64;
        self.queue.clear();
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.road.receive(self.lane, buffer)?;
        self.received += buffer.len() as u64;
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn received(&self) -> u64 {
        self.received
    }
}

/// The frames of the two lanes.
const FIRST: Kind = Kind(0x28);
const SECOND: Kind = Kind(0x29);
/// Most bytes of a chunk, so that a long message of one lane holds up those of the other for no longer than this.
const CHUNK_LENGTH: usize = 1 << 18;
/// Chunks that are kept for a lane that reads more slowly than they come: 64 MiB.
const MOST_CHUNKS: usize = 256;
/// How long a thread waits before it looks whether the peer has had its time.
const PATIENCE: Duration = Duration::from_millis(100);
