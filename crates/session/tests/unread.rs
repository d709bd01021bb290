//! What the plan says may lie unread is enough for parties of which each may write whenever it likes, on a connection that buffers nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use lanner_network::Policy;
use lanner_plan::{Mode, plan};
use lanner_session::executor::{ClientPlan, ExecutionError, ServedModel};
use lanner_session::requests::{Request, Requester, Responder};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;
use lanner_wire::{Channel, ChannelError, Kind, Traffic};

use crate::common::{in_rings_of, network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[4, 1, 3, 3]), ("b1", &[4]), ("w2", &[256, 4]), ("b2", &[4])];

/// What is added to a plan's bytes for records and small messages, which this connection does not have.
const SMALL: usize = 256 << 10;

/// The bytes on their way to one party, and what it does.
#[derive(Default)]
struct Side {
    unread: VecDeque<u8>,
    /// Bytes that it waits for.
    wanted: usize,
    writes: bool,
    allowed: usize,
    /// Most bytes that ever lay unread while it wrote.
    most: usize,
    gone: bool,
}

#[derive(Default)]
struct Wire {
    sides: Mutex<[Side; 2]>,
    changed: Condvar,
}

/// An end of a connection without buffers: bytes cross when their receiver reads, or writes and has room.
struct End {
    wire: Arc<Wire>,
    own: usize,
    patience: Duration,
    /// Whether the plan says how much room there is, or there is none.
    heeds: bool,
    body: usize,
}

impl End {
    /// Waits until the other end has changed something.
    fn wait<'w>(
        &self,
        sides: MutexGuard<'w, [Side; 2]>,
        deadline: Instant,
    ) -> Result<MutexGuard<'w, [Side; 2]>, ChannelError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ChannelError::TimedOut);
        }
        Ok(self.wire.changed.wait_timeout(sides, left).unwrap().0)
    }

    fn write(&self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        let mut sides = self.wire.sides.lock().unwrap();
        let mut deadline = Instant::now() + self.patience;
        sides[self.own].writes = true;
        // The peer may go on writing now.
        self.wire.changed.notify_all();
        while !bytes.is_empty() {
            let peer = &mut sides[1 - self.own];
            if peer.gone {
                return Err(ChannelError::Disconnected);
            }
            let room = if peer.writes { peer.allowed } else { peer.wanted };
            let count = room.saturating_sub(peer.unread.len()).min(bytes.len());
            peer.unread.extend(&bytes[..count]);
            if peer.writes {
                peer.most = peer.most.max(peer.unread.len());
            }
            bytes = &bytes[count..];
            if count > 0 {
                self.wire.changed.notify_all();
                deadline = Instant::now() + self.patience;
            } else if !bytes.is_empty() {
                sides = self.wait(sides, deadline)?;
            }
        }
        sides[self.own].writes = false;
        Ok(())
    }

    fn read(&self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let mut sides = self.wire.sides.lock().unwrap();
        let deadline = Instant::now() + self.patience;
        sides[self.own].wanted = buffer.len();
        self.wire.changed.notify_all();
        while sides[self.own].unread.len() < buffer.len() {
            if sides[1 - self.own].gone {
                return Err(ChannelError::Disconnected);
            }
            sides = self.wait(sides, deadline)?;
        }
        let own = &mut sides[self.own];
        own.wanted = 0;
        let count = buffer.len();
        buffer.iter_mut().zip(own.unread.drain(..count)).for_each(|(to, byte)| *to = byte);
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.wire.sides.lock().unwrap()[self.own].gone = true;
        self.wire.changed.notify_all();
    }
}

impl Channel for End {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let header = [&(payload.len() as u32).to_le_bytes()[..], &kind.0.to_le_bytes()].concat();
        self.write(&[&header, payload].concat())
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        assert_eq!(self.body, 0);
        let mut header = [0; 6];
        self.read(&mut header)?;
        let [l0, l1, l2, l3, k0, k1] = header;
        self.body = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        Ok((Kind(u16::from_le_bytes([k0, k1])), self.body))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.body -= buffer.len();
        self.read(buffer)
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn allow_ahead(&mut self, bytes: usize) {
        if self.heeds {
            self.wire.sides.lock().unwrap()[self.own].allowed = bytes.saturating_sub(SMALL);
        }
    }
}

/// Two predictions, the second with material that is made beforehand. Returns the most bytes that lay unread while a party wrote.
fn session(mode: Mode, heeds: bool, patience: Duration) -> Result<[usize; 2], ExecutionError> {
    let options = in_rings_of(mode);
    let (network, samples) = network(JSON, &SHAPES, 64, &options);
    let plan = plan(network.public(), Policy::Label, mode).unwrap();
    let model = Arc::new(ServedModel::new(&network, &plan).unwrap());
    let client = Arc::new(ClientPlan::new(network.public(), &plan).unwrap());
    let input = network.public().input().quantize(&samples[0]).unwrap();
    let wire = Arc::new(Wire::default());
    let end = |own| End { wire: Arc::clone(&wire), own, patience, heeds, body: 0 };
    let (mut to_server, mut to_client) = (end(0), end(1));
    let served = thread::spawn(move || -> Result<(), ExecutionError> {
        let mut service = Responder::new(model, rng(2));
        loop {
            match Responder::receive(&mut to_client)? {
                Request::End => return Ok(()),
                request => service.answer(&mut to_client, request)?,
            }
        }
    });
    let mut requester = Requester::new(client, rng(1));
    let ask = || {
        requester.predict(&mut to_server, &input)?;
        requester.prepare(&mut to_server)?;
        requester.predict(&mut to_server, &input)?;
        requester.end(&mut to_server)
    };
    let asked = ask();
    drop(to_server);
    let served = served.join().unwrap();
    asked.and(served)?;
    let sides = wire.sides.lock().unwrap();
    Ok([sides[0].most, sides[1].most])
}

fn goes_on(mode: Mode) {
    let most = session(mode, true, Duration::from_secs(60)).unwrap();
    println!("{}: {most:?} bytes lay unread", mode.name());
}

#[test]
fn gazelle_goes_on() {
    goes_on(Mode::Gazelle);
}

#[test]
fn falcon_goes_on() {
    goes_on(Mode::Falcon);
}

#[test]
fn cheetah_goes_on() {
    goes_on(Mode::Cheetah(Rounding::Exact));
}

#[test]
fn tabula_goes_on() {
    goes_on(Mode::Tabula(tabula::Rounding::Exact));
}

/// Both parties of mode tabula open values at once: with no room at all each waits for the other.
#[test]
fn without_room_parties_wait_for_each_other() {
    let mode = Mode::Tabula(tabula::Rounding::Exact);
    let error = session(mode, false, Duration::from_millis(1500)).unwrap_err();
    assert!(error.to_string().contains("silent") || error.to_string().contains("closed"), "{error}");
}
