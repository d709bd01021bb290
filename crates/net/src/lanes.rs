//! Several exchanges at once over one channel.
//!
//! Both parties run the same exchanges, each on a lane of its own: a stream of bytes that is cut into chunks, which are frames of the
//! channel. Whoever waits for its lane's bytes takes the other lanes' too, and one thread at a time waits for the connection.

use std::collections::VecDeque;
use std::io::Cursor;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lanner_wire::{Arrivals, Channel, ChannelError, Divisible, Kind};

use crate::framed::{ByteStream, Framed};

/// Most exchanges that share a channel.
pub const MOST_LANES: usize = 16;

/// Runs exchanges at once, and another beside them, each on a thread of its own; the peer runs the same. Rounds and bytes of an exchange are
/// those of its lane: frames of lanes, as whatever else a transport adds, count for the channel alone. Each party goes on when all of its
/// exchanges are over.
///
/// # Errors
/// The error that came first if one of the exchanges failed: whichever fails ends all others. That of the one beside them is in its result
/// if the others were over by then. [`ChannelError::Malformed`] if there are more than [`MOST_LANES`], or the peer sends more than is due.
pub fn abreast<A: Send, B, E: From<ChannelError> + Send>(
    channel: &mut dyn Divisible,
    exchanges: Vec<impl FnOnce(&mut dyn Channel) -> Result<A, E> + Send>,
    beside: impl FnOnce(&mut dyn Channel) -> Result<B, E>,
) -> Result<(Vec<A>, Result<B, E>), E> {
    let last = exchanges.len();
    if last >= MOST_LANES {
        return Err(ChannelError::Malformed { what: "lanes: too many" }.into());
    }
    let road = Road::new(channel, last + 1)?;
    let (made, beside) = thread::scope(|scope| {
        let start = |(lane, exchange)| {
            let road = &road;
            scope.spawn(move || run(road, lane, exchange))
        };
        let running: Vec<_> = exchanges.into_iter().enumerate().map(start).collect();
        let beside = run(&road, last, beside);
        let join = |lane: thread::ScopedJoinHandle<'_, _>| {
            lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (running.into_iter().map(join).collect::<Vec<Result<A, E>>>(), beside)
    });
    let state = road.state();
    let (mut results, mut error) = (Vec::with_capacity(last), None);
    for (lane, result) in made.into_iter().enumerate() {
        match result {
            Ok(result) => results.push(result),
            Err(reason) if error.is_none() || state.failed == Some(lane) => error = Some(reason),
            Err(_) => {}
        }
    }
    match (error, beside) {
        (Some(_), Err(reason)) if state.failed == Some(last) => Err(reason),
        (Some(reason), _) => Err(reason),
        (None, Ok(_)) if state.has_more() => {
            Err(ChannelError::Malformed { what: "lanes: more than was due" }.into())
        }
        (None, beside) => Ok((results, beside)),
    }
}

/// Runs an exchange on its lane; one that fails, or panics, ends the others.
fn run<T, E: From<ChannelError>>(
    road: &Road<'_>,
    lane: usize,
    exchange: impl FnOnce(&mut dyn Channel) -> Result<T, E>,
) -> Result<T, E> {
    let mut ends = EndsOthers { road, lane: Some(lane) };
    let mut channel = Framed::new(LaneStream { road, lane, queue: Vec::new(), sent: 0, received: 0 });
    let result = exchange(&mut channel).and_then(|made| Ok(channel.flush().map(|()| made)?));
    if result.is_ok() {
        ends.lane = None;
    }
    result
}

/// What the lanes share.
struct Road<'c> {
    state: Mutex<State<'c>>,
    /// For each lane: something came for it, something failed, or it is its turn to wait for the connection.
    changed: Vec<Condvar>,
    arrivals: Box<dyn Arrivals>,
}

struct State<'c> {
    channel: &'c mut dyn Divisible,
    /// What came and was not read: chunks, and how much of each was.
    came: Vec<VecDeque<Cursor<Vec<u8>>>>,
    /// A chunk of which a part has come, and how much.
    chunk: Option<(usize, Vec<u8>, usize)>,
    /// Lanes for which chunks came that nobody was told of.
    fresh: Vec<usize>,
    /// The lane whose thread waits for the connection.
    leader: Option<usize>,
    /// Whether a lane's thread waits for another one to change something.
    parked: Vec<bool>,
    /// When a lane last had what it read: the peer may be at work for another one.
    progress: Instant,
    /// The lane that failed first.
    failed: Option<usize>,
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
    fn new(channel: &'c mut dyn Divisible, lanes: usize) -> Self {
        Self {
            channel,
            came: (0..lanes).map(|_| VecDeque::new()).collect(),
            chunk: None,
            fresh: Vec::new(),
            leader: None,
            parked: vec![false; lanes],
            progress: Instant::now(),
            failed: None,
            untold: None,
        }
    }

    /// Takes what has come from the channel.
    fn take_in(&mut self) -> Result<Pause, ChannelError> {
        loop {
            if let Some((lane, bytes, filled)) = &mut self.chunk {
                let count = self.channel.take_body(&mut bytes[*filled..])?;
                *filled += count;
                if *filled == bytes.len() {
                    self.came[*lane].push_back(Cursor::new(std::mem::take(bytes)));
                    self.fresh.push(*lane);
                    self.chunk = None;
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
            let lane = usize::from(kind.0.wrapping_sub(LANES.0));
            if lane >= self.came.len() {
                return Ok(Pause::Over);
            }
            if length == 0 || length > CHUNK_LENGTH {
                return Err(ChannelError::Malformed { what: "lanes: a chunk's length" });
            }
            if self.came[lane].len() >= MOST_CHUNKS {
                return Ok(Pause::Full);
            }
            self.channel.receive_header()?;
            self.chunk = Some((lane, vec![0; length], 0));
        }
    }

    /// Gives a lane what has come for it, at most `buffer.len()` bytes.
    fn give(&mut self, lane: usize, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        let came = &mut self.came[lane];
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

    /// Checks that no other lane has failed.
    fn check_failed(&self) -> Result<(), ChannelError> {
        match self.failed {
            None => Ok(()),
            Some(_) => Err(ChannelError::Transport("an exchange beside this one failed".to_owned())),
        }
    }
}

impl<'c> Road<'c> {
    fn new(channel: &'c mut dyn Divisible, lanes: usize) -> Result<Self, ChannelError> {
        let arrivals = channel.arrivals()?;
        let changed = (0..lanes).map(|_| Condvar::new()).collect();
        Ok(Self { state: Mutex::new(State::new(channel, lanes)), changed, arrivals })
    }

    fn state(&self) -> MutexGuard<'_, State<'c>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a lane's thread look at what there is, if it waits.
    fn wake(&self, state: &State<'_>, lane: usize) {
        if state.leader == Some(lane) {
            self.arrivals.wake();
        } else if state.parked[lane] {
            self.changed[lane].notify_one();
        }
    }

    /// Wakes whom something came for.
    fn announce(&self, state: &mut State<'_>) {
        while let Some(lane) = state.fresh.pop() {
            self.wake(state, lane);
        }
    }

    /// Has another thread wait for the connection if none does.
    fn hand_over(&self, state: &State<'_>) {
        if state.leader.is_none()
            && let Some(lane) = state.parked.iter().position(|parked| *parked)
        {
            self.changed[lane].notify_one();
        }
    }

    /// Sends a chunk of a lane.
    fn send(&self, lane: usize, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut state = self.state();
        state.check_failed()?;
        state.channel.send(Kind(LANES.0 + lane as u16), bytes)?;
        state.channel.flush()?;
        // While it was written, something may have come that nobody is woken for. A peer that has all that it waits for may be gone.
        let taken = state.take_in();
        self.announce(&mut state);
        if let Err(error) = taken {
            state.untold = Some(error);
            self.hand_over(&state);
        }
        Ok(())
    }

    /// Waits until `buffer` is full of a lane's bytes.
    fn receive(&self, lane: usize, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let received = self.receive_bytes(lane, buffer);
        self.hand_over(&self.state());
        received
    }

    fn receive_bytes(&self, lane: usize, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let entered = Instant::now();
        let mut filled = 0;
        let mut state = self.state();
        loop {
            state.check_failed()?;
            filled += state.give(lane, &mut buffer[filled..]);
            if filled == buffer.len() {
                state.progress = Instant::now();
                return Ok(());
            }
            let since = state.progress.max(entered);
            if since.elapsed().as_millis() as u64 > state.channel.patience(buffer.len()) {
                return Err(ChannelError::TimedOut);
            }
            if state.leader.is_some() {
                state = self.park(state, lane);
                continue;
            }
            let taken = state.untold.take().map_or_else(|| state.take_in(), Err);
            state.fresh.retain(|other| *other != lane);
            self.announce(&mut state);
            if !state.came[lane].is_empty() {
                // What came before a failure comes first.
                state.untold = taken.err();
                continue;
            }
            state = match taken? {
                Pause::Over => return Err(ChannelError::Malformed { what: "lanes: less than was due" }),
                Pause::Nothing => self.lead(state, lane)?,
                Pause::Full => self.park(state, lane),
            };
        }
    }

    /// Waits for the connection, without holding the channel.
    fn lead<'r>(
        &'r self,
        mut state: MutexGuard<'r, State<'c>>,
        lane: usize,
    ) -> Result<MutexGuard<'r, State<'c>>, ChannelError> {
        state.leader = Some(lane);
        drop(state);
        let waited = self.arrivals.wait(PATIENCE.as_millis() as u64);
        let mut state = self.state();
        state.leader = None;
        waited.map(|()| state)
    }

    /// Waits until another lane's thread has changed something.
    fn park<'r>(&'r self, mut state: MutexGuard<'r, State<'c>>, lane: usize) -> MutexGuard<'r, State<'c>> {
        state.parked[lane] = true;
        let waited = self.changed[lane].wait_timeout(state, PATIENCE);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.parked[lane] = false;
        state
    }
}

/// Ends the other lanes' exchanges when it goes out of scope, unless it was told not to.
struct EndsOthers<'r, 'c> {
    road: &'r Road<'c>,
    lane: Option<usize>,
}

impl Drop for EndsOthers<'_, '_> {
    fn drop(&mut self) {
        let Some(lane) = self.lane else { return };
        let mut state = self.road.state();
        state.failed.get_or_insert(lane);
        (0..state.parked.len()).for_each(|lane| self.road.wake(&state, lane));
    }
}

/// The bytes of a lane.
struct LaneStream<'r, 'c> {
    road: &'r Road<'c>,
    lane: usize,
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

/// A chunk of the first lane; those of the others follow.
const LANES: Kind = Kind(0x100);
/// Most bytes of a chunk, so that a long message of one lane holds up those of the other for no longer than this.
const CHUNK_LENGTH: usize = 1 << 18;
/// Chunks that are kept for a lane that reads more slowly than they come: 64 MiB.
const MOST_CHUNKS: usize = 256;
/// How long a thread waits before it looks whether the peer has had its time.
const PATIENCE: Duration = Duration::from_millis(100);
