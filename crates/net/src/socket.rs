//! A TCP socket, or a WebSocket over one, that reads while it waits to write.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use lanner_process::{Mark, OtherProcess};
use lanner_wire::{Arrivals, ChannelError};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::Limits;
use crate::inbox::Inbox;
use crate::limits::LEAST_BACKLOG;
use crate::meter::Meter;
use crate::platform::{Wire, wires};
use crate::ready::{await_any, channel_error};
use crate::web::WebLine;

/// What carries a socket's bytes.
enum Carrier {
    Tcp(TcpStream),
    Web(Box<WebLine>),
}

/// A non-blocking socket with the bytes that came but were not used yet.
pub(crate) struct Socket {
    carrier: Carrier,
    pub(crate) inbox: Inbox,
    /// Whether the peer will send nothing more.
    ended: bool,
    pub(crate) limits: Limits,
    pub(crate) meter: Meter,
    /// A child that `fork` made has the socket, too: what it read its parent would miss, and what it wrote the peer would take for its
    /// parent's.
    mark: Mark,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, limits: Limits) -> Result<Self, ChannelError> {
        Self::over(Carrier::Tcp(stream), Meter::default(), limits)
    }

    /// The bytes of a WebSocket. It counts them itself.
    pub(crate) fn of_web(line: WebLine, limits: Limits) -> Result<Self, ChannelError> {
        let meter = line.meter();
        Self::over(Carrier::Web(Box::new(line)), meter, limits)
    }

    fn over(carrier: Carrier, meter: Meter, limits: Limits) -> Result<Self, ChannelError> {
        let stream = carrier.tcp();
        stream.set_nonblocking(true).map_err(channel_error)?;
        // Messages are collected before they are written, so waiting for more can only add latency.
        stream.set_nodelay(true).map_err(channel_error)?;
        probe_when_silent(stream).map_err(|error| channel_error(error.into()))?;
        let (inbox, mark) = (Inbox::default(), Mark::here());
        Ok(Self { carrier, inbox, ended: false, limits, meter, mark })
    }

    /// Lets the peer have sent so many bytes that are not used yet; at least those of any peer.
    pub(crate) fn allow_ahead(&mut self, bytes: usize) {
        self.limits.backlog = bytes.max(LEAST_BACKLOG);
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.carrier.tcp()
    }

    /// Checks that this is the process that the connection belongs to.
    pub(crate) fn check_here(&self) -> Result<(), OtherProcess> {
        self.mark.check("the connection")
    }

    /// Calls `write` each time the socket can take bytes, until it returns `None`: nothing is left.
    ///
    /// Reads what the peer sends in the meantime: a peer that itself waits to write goes on.
    pub(crate) fn write(
        &mut self,
        deadline: Instant,
        mut write: impl FnMut(&mut dyn Write) -> io::Result<Option<usize>>,
    ) -> Result<(), ChannelError> {
        self.check_here()?;
        loop {
            match self.carrier.write_with(&mut write) {
                Ok(None) => return Ok(()),
                Ok(Some(0)) => return Err(ChannelError::Disconnected),
                Ok(Some(count)) => self.count_sent(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_to_write(deadline)?,
                Err(error) => return Err(channel_error(error)),
            }
        }
    }

    fn count_sent(&self, count: usize) {
        if matches!(self.carrier, Carrier::Tcp(_)) {
            self.meter.add_sent(count);
        }
    }

    fn wait_to_write(&mut self, deadline: Instant) -> Result<(), ChannelError> {
        let drains = !self.ended && self.inbox.len() < self.limits.backlog;
        let wanted = if drains { PollFlags::OUT | PollFlags::IN } else { PollFlags::OUT };
        let ready = self.wait(wanted, deadline)?;
        // Also where more can be written: what a peer says before it leaves is lost with the connection unless it was read.
        if drains && ready.contains(PollFlags::IN) {
            self.read_some()?;
        }
        Ok(())
    }

    /// Waits until at least one more byte is in the inbox.
    pub(crate) fn fill(&mut self, deadline: Instant) -> Result<(), ChannelError> {
        while !self.ended {
            if self.read_some()? > 0 {
                return Ok(());
            }
            if !self.ended {
                self.wait(PollFlags::IN, deadline)?;
            }
        }
        Err(ChannelError::Disconnected)
    }

    /// Takes what came and there is room for, without waiting. Nothing comes any more once the socket [has ended](Self::has_ended).
    pub(crate) fn read_some(&mut self) -> Result<usize, ChannelError> {
        self.check_here()?;
        if self.inbox.len() >= self.limits.backlog {
            return Ok(0);
        }
        let filled = match &mut self.carrier {
            Carrier::Tcp(stream) => self.inbox.fill_from(&*stream, self.limits.backlog),
            Carrier::Web(line) => self.inbox.fill_from(line, self.limits.backlog),
        };
        match filled {
            Ok(0) => {
                self.ended = true;
                Ok(0)
            }
            Ok(count) => {
                if matches!(self.carrier, Carrier::Tcp(_)) {
                    self.meter.add_received(count);
                }
                Ok(count)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(channel_error(error)),
        }
    }

    /// Whether the peer sends nothing more.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    fn wait(&self, wanted: PollFlags, deadline: Instant) -> Result<PollFlags, ChannelError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ChannelError::TimedOut);
            }
            let mut socket = [PollFd::new(self.stream(), wanted)];
            await_any(&mut socket, left)?;
            if !socket[0].revents().is_empty() {
                return Ok(socket[0].revents());
            }
        }
    }

    /// Tells the peer that nothing more comes, also where a child of this process still has the socket; whether it could be told.
    pub(crate) fn end(&mut self) -> bool {
        if !self.mark.is_here() {
            return false;
        }
        if let Carrier::Web(line) = &mut self.carrier {
            line.say_end();
        }
        self.stream().shutdown(Shutdown::Write).is_ok()
    }

    /// Tells the peer that nothing more comes, then discards what it still sends until it closes too, so that the last
    /// message is not lost to a reset.
    pub(crate) fn finish(&mut self, deadline: Instant) {
        if !self.end() {
            return;
        }
        let mut discarded = 0;
        while discarded < DISCARDED_AT_CLOSE {
            discarded += self.inbox.len();
            self.inbox.consume(usize::MAX);
            if self.fill(deadline).is_err() {
                return;
            }
        }
    }
}

impl Carrier {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Web(line) => line.tcp(),
        }
    }

    /// One write, or what is left of earlier ones where nothing more is to be written.
    fn write_with(
        &mut self,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => write(&mut &*stream),
            Self::Web(line) => match write(&mut **line)? {
                None => line.flush().map(|()| None),
                some => Ok(some),
            },
        }
    }
}

/// Waits for a socket's bytes while others use the socket.
pub(crate) struct SocketArrivals {
    stream: TcpStream,
    /// A byte that is written to the second comes out of the first.
    alarm: [Wire; 2],
}

impl SocketArrivals {
    pub(crate) fn of(stream: &TcpStream) -> io::Result<Self> {
        let [woken, wakes] = wires()?;
        woken.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        Ok(Self { stream: stream.try_clone()?, alarm: [woken, wakes] })
    }
}

impl Arrivals for SocketArrivals {
    fn wait(&self, milliseconds: u64) -> Result<(), ChannelError> {
        let [woken, _] = &self.alarm;
        let mut sockets = [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        await_any(&mut sockets, Duration::from_millis(milliseconds))?;
        if !sockets[1].revents().is_empty() {
            // Whatever was said, it is heard.
            let _ = (&mut &*woken).read(&mut [0; 64]);
        }
        Ok(())
    }

    fn wake(&self) {
        // It is full only if it was not heard yet.
        let _ = (&mut &self.alarm[1]).write(&[0]);
    }
}

/// Has the system ask a peer that says nothing whether it is still there. One whose machine or network is gone closes nothing, and a
/// session would wait for it as long as for a person who thinks.
/// Systems that do not let a connection choose when, such as Windows before version 10 and Wine, probe after their own two hours.
fn probe_when_silent(stream: &TcpStream) -> rustix::io::Result<()> {
    for chosen in [
        sockopt::set_tcp_keepidle(stream, PROBED_AFTER),
        sockopt::set_tcp_keepintvl(stream, PROBED_EVERY),
        sockopt::set_tcp_keepcnt(stream, PROBES),
    ] {
        chosen.or_else(|error| if error == Errno::NOPROTOOPT { Ok(()) } else { Err(error) })?;
    }
    sockopt::set_socket_keepalive(stream, true)
}

/// Silence after which a peer is probed, the time between probes, and how many of them it may leave unanswered.
const PROBED_AFTER: Duration = Duration::from_secs(60);
const PROBED_EVERY: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;

/// Bytes read from a peer that goes on sending after the end.
const DISCARDED_AT_CLOSE: usize = 64 << 20;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn both_ends_are_probed_when_they_are_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for stream in [connecting, listener.accept().unwrap().0] {
            let socket = Socket::new(stream, Limits::default()).unwrap();
            assert!(sockopt::socket_keepalive(socket.stream()).unwrap());
            let silence = sockopt::tcp_keepidle(socket.stream()).unwrap()
                + PROBES * sockopt::tcp_keepintvl(socket.stream()).unwrap();
            assert_eq!(silence, Duration::from_secs(120));
            assert_eq!(sockopt::tcp_keepcnt(socket.stream()).unwrap(), PROBES);
        }
    }
}
