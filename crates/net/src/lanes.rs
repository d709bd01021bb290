//! Several exchanges at once over one channel.
//!
//! Both parties run the same exchanges, each on a lane of its own: a stream of bytes that is cut into chunks, which are frames of the
//! channel. Whoever waits for its lane's bytes takes the other lanes' too, and one thread at a time waits for the connection.

use std::collections::VecDeque;
use std::io::Cursor;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use lanner_wire::{Arrivals, Channel, ChannelError, Divisible, Kind};
use parking_lot::{Condvar, Mutex, MutexGuard};

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
///
/// `most_kept` bytes are kept for lanes that read more slowly than their bytes come, and a chunk for each lane. Any number will do, as beyond
/// it only a lane that has nothing to read is given more; with fewer than come, lanes wait for each other.
pub fn abreast<A: Send, B, E: From<ChannelError> + Send>(
    channel: &mut dyn Divisible,
    most_kept: usize,
    exchanges: Vec<impl FnOnce(&mut dyn Channel) -> Result<A, E> + Send>,
    beside: impl FnOnce(&mut dyn Channel) -> Result<B, E>,
) -> Result<(Vec<A>, Result<B, E>), E> {
    let last = exchanges.len();
    if last >= MOST_LANES {
        return Err(ChannelError::Malformed { what: "lanes: too many" }.into());
    }
    let road = Road::new(channel, last + 1, most_kept.min(MOST_KEPT))?;
    let (made, beside) = thread::scope(|scope| {
        let start = |(lane, exchange)| {
            let road = &road;
            let started = thread::Builder::new().spawn_scoped(scope, move || run(road, lane, exchange));
            started.map_err(|error| {
                drop(EndsOthers { road, lane: Some(lane) });
                ChannelError::Transport(format!("no thread for a lane: {error}")).into()
            })
        };
        let running: Vec<_> = exchanges.into_iter().enumerate().map(start).collect();
        let beside = run(&road, last, beside);
        let join = |lane: ScopedJoinHandle<'_, Result<A, E>>| {
            lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (running.into_iter().map(|lane| lane.and_then(join)).collect::<Vec<_>>(), beside)
    });
    let (failed, untold) = {
        let mut state = road.state.lock();
        (state.failed, state.untold.take())
    };
    let (mut results, mut error) = (Vec::with_capacity(last), None);
    for (lane, result) in made.into_iter().enumerate() {
        match result {
            Ok(result) => results.push(result),
            Err(reason) if error.is_none() || failed == Some(lane) => error = Some(reason),
            Err(_) => {}
        }
    }
    match (error, beside) {
        (Some(_), Err(reason)) if failed == Some(last) => Err(reason),
        (Some(reason), _) => Err(reason),
        (None, beside) => {
            // What came behind all that was due, nobody would hear any more.
            let refused = untold.filter(|error| matches!(error, ChannelError::Refused(_)));
            Ok((results, beside.and_then(|made| refused.map_or(Ok(made), |error| Err(error.into())))))
        }
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
    let made = exchange(&mut channel)?;
    channel.flush()?;
    road.finish(lane)?;
    ends.lane = None;
    Ok(made)
}

/// What the lanes share.
struct Road<'c> {
    /// Its lock is fair: a lane that sends much leaves the others their turns.
    state: Mutex<State<'c>>,
    /// For each lane: something came for it, something failed, or it is its turn to wait for the connection.
    changed: Vec<Condvar>,
    arrivals: Box<dyn Arrivals>,
}

struct State<'c> {
    channel: &'c mut dyn Divisible,
    lanes: Vec<Lane>,
    /// Bytes that came and were not read.
    kept: usize,
    /// Beyond these, bytes come in only for a lane that has nothing to read.
    most_kept: usize,
    /// A chunk of which a part has come, and how much.
    chunk: Option<(usize, Vec<u8>, usize)>,
    /// Lanes for which chunks came that nobody was told of.
    fresh: Vec<usize>,
    /// The lane whose thread waits for the connection.
    leader: Option<usize>,
    /// Whether something was left in the connection until a lane has read what it has.
    full: bool,
    /// When a lane last had what it read or could send, and later by what whole chunks may take: the peer may be at work for another one.
    progress: Instant,
    /// The lane that failed first.
    failed: Option<usize>,
    /// What failed behind something that came or was sent, for whoever waits for more.
    untold: Option<ChannelError>,
}

#[derive(Default)]
struct Lane {
    /// What came and was not read: chunks, small ones together, and how much of each was.
    came: VecDeque<Cursor<Vec<u8>>>,
    /// Whether its thread waits for another one to change something.
    parked: bool,
    /// Whether its exchange is over: nothing more is due.
    over: bool,
}

/// Why nothing more is taken from the channel for now.
enum Pause {
    /// Nothing more has come.
    Nothing,
    /// Much has come that was not read, and what comes next is for a lane that has something to read.
    Full,
    /// What has come is for no lane: the peer has sent all that it sends on them.
    Over,
}

impl<'c> State<'c> {
    fn new(channel: &'c mut dyn Divisible, lanes: usize, most_kept: usize) -> Self {
        Self {
            channel,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            kept: 0,
            most_kept,
            chunk: None,
            fresh: Vec::new(),
            leader: None,
            full: false,
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
                    let (lane, bytes) = (*lane, std::mem::take(bytes));
                    self.chunk = None;
                    self.keep(lane, bytes);
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
            let number = usize::from(kind.0.wrapping_sub(LANES.0));
            let Some(lane) = self.lanes.get(number) else { return Ok(Pause::Over) };
            if lane.over {
                return Err(MORE_THAN_DUE);
            }
            if length == 0 || length > CHUNK_LENGTH {
                return Err(ChannelError::Malformed { what: "lanes: a chunk's length" });
            }
            if self.kept + length > self.most_kept && !lane.came.is_empty() {
                self.full = true;
                // What the peer sends waits for this party.
                self.progress = Instant::now();
                return Ok(Pause::Full);
            }
            self.channel.receive_header()?;
            self.chunk = Some((number, vec![0; length], 0));
        }
    }

    /// Keeps a chunk until it is read.
    fn keep(&mut self, lane: usize, bytes: Vec<u8>) {
        if bytes.len() == CHUNK_LENGTH {
            let time = self.channel.patience(CHUNK_LENGTH) - self.channel.patience(0);
            self.progress = Instant::now().min(self.progress + Duration::from_millis(time));
        }
        self.kept += bytes.len();
        let came = &mut self.lanes[lane].came;
        match came.back_mut().map(Cursor::get_mut) {
            // What is kept of many small ones takes no more than their bytes.
            Some(last) if last.len() + bytes.len() <= CHUNK_LENGTH => last.extend_from_slice(&bytes),
            _ => came.push_back(Cursor::new(bytes)),
        }
        if !self.fresh.contains(&lane) {
            self.fresh.push(lane);
        }
    }

    /// Takes what has come; a failure is kept for whoever waits for more than came before it. None if there was one.
    fn take_all(&mut self) -> Option<Pause> {
        if self.untold.is_none() {
            match self.take_in() {
                Ok(pause) => return Some(pause),
                Err(error) => self.untold = Some(error),
            }
        }
        None
    }

    /// Takes what has come before a failure to send, of which a peer that refuses and leaves may be the reason.
    fn hear_refusal(&mut self) {
        if self.untold.is_none() {
            self.take_all();
            self.untold.take_if(|error| !matches!(error, ChannelError::Refused(_)));
        }
    }

    /// Gives a lane what has come for it, at most `buffer.len()` bytes.
    fn give(&mut self, lane: usize, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        let came = &mut self.lanes[lane].came;
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
        self.kept -= filled;
        filled
    }

    /// Checks that no other lane has failed.
    fn check_failed(&self) -> Result<(), ChannelError> {
        match self.failed {
            None => Ok(()),
            Some(_) => Err(ChannelError::Transport("an exchange beside this one failed".to_owned())),
        }
    }

    /// A lane fails. The error is the one that came first, since a peer that refuses and leaves makes what follows fail, too.
    fn fail(&mut self, lane: usize, error: ChannelError) -> ChannelError {
        self.failed.get_or_insert(lane);
        self.untold.take().unwrap_or(error)
    }
}

impl<'c> Road<'c> {
    fn new(channel: &'c mut dyn Divisible, lanes: usize, most_kept: usize) -> Result<Self, ChannelError> {
        channel.flush()?;
        let arrivals = channel.arrivals()?;
        let changed = (0..lanes).map(|_| Condvar::new()).collect();
        Ok(Self { state: Mutex::new(State::new(channel, lanes, most_kept)), changed, arrivals })
    }

    /// Has a lane's thread look at what there is, if it waits.
    fn wake(&self, state: &State<'_>, lane: usize) {
        if state.leader == Some(lane) {
            self.arrivals.wake();
        } else if state.lanes[lane].parked {
            self.changed[lane].notify_one();
        }
    }

    /// Wakes whom something came for.
    fn announce(&self, state: &mut State<'_>) {
        while let Some(lane) = state.fresh.pop() {
            self.wake(state, lane);
        }
    }

    /// Has another thread wait for the connection if none does, and look at it if something was left there.
    fn hand_over(&self, state: &mut State<'_>) {
        if state.leader.is_none() {
            if let Some(lane) = state.lanes.iter().position(|lane| lane.parked) {
                self.changed[lane].notify_one();
            }
        } else if std::mem::take(&mut state.full) || state.untold.is_some() {
            self.arrivals.wake();
        }
    }

    /// Sends a chunk of a lane.
    fn send(&self, lane: usize, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut state = self.state.lock();
        state.check_failed()?;
        let sent = state.channel.send(Kind(LANES.0 + lane as u16), bytes);
        if let Err(error) = sent.and_then(|()| state.channel.flush()) {
            state.hear_refusal();
            return Err(state.fail(lane, error));
        }
        state.progress = Instant::now();
        // While it was written, something may have come that nobody is woken for. A peer that has all that it waits for may be gone.
        if state.take_all().is_none() {
            self.hand_over(&mut state);
        }
        self.announce(&mut state);
        Ok(())
    }

    /// Waits until `buffer` is full of a lane's bytes.
    fn receive(&self, lane: usize, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let mut state = self.state.lock();
        let received = self.receive_bytes(&mut state, lane, buffer);
        self.hand_over(&mut state);
        received
    }

    fn receive_bytes(
        &self,
        state: &mut MutexGuard<'_, State<'c>>,
        lane: usize,
        buffer: &mut [u8],
    ) -> Result<(), ChannelError> {
        let entered = Instant::now();
        let mut filled = 0;
        loop {
            filled += state.give(lane, &mut buffer[filled..]);
            if filled == buffer.len() {
                state.progress = Instant::now();
                return Ok(());
            }
            state.check_failed()?;
            let pause = state.take_all();
            state.fresh.retain(|other| *other != lane);
            self.announce(state);
            if !state.lanes[lane].came.is_empty() {
                // What came before a failure comes first.
                continue;
            }
            let silence = state.progress.max(entered).elapsed();
            match pause {
                None => return Err(state.fail(lane, ChannelError::Disconnected)),
                Some(Pause::Over) => return Err(state.fail(lane, LESS_THAN_DUE)),
                Some(Pause::Nothing) if silence.as_millis() as u64 > state.channel.patience(buffer.len()) => {
                    return Err(state.fail(lane, ChannelError::TimedOut));
                }
                Some(Pause::Nothing) if state.leader.is_none() => self.lead(state, lane)?,
                // Where it is full, this party is at work: the peer may have sent all that is due.
                Some(Pause::Nothing | Pause::Full) => self.park(state, lane),
            }
        }
    }

    /// Waits for the connection, without holding the channel.
    fn lead(&self, state: &mut MutexGuard<'_, State<'c>>, lane: usize) -> Result<(), ChannelError> {
        state.leader = Some(lane);
        let waited = MutexGuard::unlocked(state, || self.arrivals.wait(PATIENCE.as_millis() as u64));
        state.leader = None;
        waited.map_err(|error| state.fail(lane, error))
    }

    /// Waits until another lane's thread has changed something.
    fn park(&self, state: &mut MutexGuard<'_, State<'c>>, lane: usize) {
        state.lanes[lane].parked = true;
        self.changed[lane].wait_for(state, PATIENCE);
        state.lanes[lane].parked = false;
    }

    /// An exchange is over, with which the peer's bytes on its lane are at their end.
    fn finish(&self, lane: usize) -> Result<(), ChannelError> {
        let mut state = self.state.lock();
        state.lanes[lane].over = true;
        let coming = state.chunk.as_ref().is_some_and(|(coming, ..)| *coming == lane);
        if coming || !state.lanes[lane].came.is_empty() {
            return Err(state.fail(lane, MORE_THAN_DUE));
        }
        Ok(())
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
        let mut state = self.road.state.lock();
        state.failed.get_or_insert(lane);
        (0..state.lanes.len()).for_each(|lane| self.road.wake(&state, lane));
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

const MORE_THAN_DUE: ChannelError = ChannelError::Malformed { what: "lanes: more than was due" };
const LESS_THAN_DUE: ChannelError = ChannelError::Malformed { what: "lanes: less than was due" };

/// A chunk of the first lane; those of the others follow.
const LANES: Kind = Kind(0x100);
/// Most bytes of a chunk, so that a long message of one lane holds up those of the others for no longer than this.
const CHUNK_LENGTH: usize = 1 << 18;
/// Most bytes that are kept for lanes that read more slowly than they come, whatever a caller allows.
pub const MOST_KEPT: usize = 64 << 20;
/// How long a thread waits before it looks whether the peer has had its time.
const PATIENCE: Duration = Duration::from_millis(100);
