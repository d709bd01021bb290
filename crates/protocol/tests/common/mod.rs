//! Two parties in one test: a channel that keeps what it sends, keys, and shares.
#![allow(dead_code)]

pub(crate) mod ideal;

use std::sync::mpsc::{Receiver, Sender, channel};

use lanner_bfv::{Parameters, SecretKey};
use lanner_primitives::{Prg, Seed};
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_protocol::linear::gazelle::{galois_element, parameters};
use lanner_protocol::linear::keys::{ClientKeys, receive_keys, send_keys};
use lanner_share::{Ring, Share};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};
use rand_core::Rng;

/// One end of a pair of queues.
pub(crate) struct Party {
    out: Option<Sender<(Kind, Vec<u8>)>>,
    inbox: Receiver<(Kind, Vec<u8>)>,
    body: Vec<u8>,
    /// What this party sent.
    pub(crate) sent: Vec<(Kind, Vec<u8>)>,
    /// Changes a message of a kind before it is sent.
    pub(crate) tamper: Option<Tamper>,
}

pub(crate) type Tamper = (Kind, fn(&mut Vec<u8>));

impl Party {
    pub(crate) fn pair() -> (Self, Self) {
        let ((to_a, a), (to_b, b)) = (channel(), channel());
        let party =
            |out, inbox| Self { out: Some(out), inbox, body: Vec::new(), sent: Vec::new(), tamper: None };
        (party(to_b, a), party(to_a, b))
    }

    /// The payloads of one kind.
    pub(crate) fn sent_of(&self, kind: u16) -> Vec<&[u8]> {
        self.sent.iter().filter(|(k, _)| k.0 == kind).map(|(_, payload)| payload.as_slice()).collect()
    }
}

impl Channel for Party {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut payload = payload.to_vec();
        if let Some((_, change)) = self.tamper.filter(|(tampered, _)| *tampered == kind) {
            change(&mut payload);
        }
        self.sent.push((kind, payload.clone()));
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
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// Runs both parties to their ends over channels that the test keeps; a party that has ended sends nothing more.
pub(crate) fn run<C: Send, S: Send>(
    channels: &mut (Party, Party),
    client: impl FnOnce(&mut Party) -> C + Send,
    server: impl FnOnce(&mut Party) -> S + Send,
) -> (C, S) {
    let (at_client, at_server) = channels;
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let result = server(at_server);
            at_server.out = None;
            result
        });
        let client = client(at_client);
        at_client.out = None;
        (client, serving.join().unwrap())
    })
}

/// The generator of a number.
pub(crate) fn rng(number: u8) -> Prg {
    Prg::new(Seed::from_bytes([number; 16]))
}

/// A client's keys for some layers, on both sides.
pub(crate) struct Keys {
    pub(crate) parameters: Parameters,
    pub(crate) secret: SecretKey,
    pub(crate) client: ClientKeys,
}

impl Keys {
    pub(crate) fn new<'p>(packings: impl IntoIterator<Item = &'p Packing>) -> Self {
        let parameters = parameters().unwrap();
        let rotations = packings.into_iter().flat_map(Packing::keys);
        let elements: Vec<_> =
            rotations.map(|rotation| galois_element(rotation, parameters.degree()).unwrap()).collect();
        let (mut at_client, mut at_server) = Party::pair();
        let secret = send_keys(&mut at_client, &parameters, &elements, &mut rng(200)).unwrap();
        let client = receive_keys(&mut at_server, &parameters, &elements).unwrap();
        Self { parameters, secret, client }
    }
}

/// Shares of signed secrets: the client's is what the mask leaves.
pub(crate) fn split(ring: Ring, secrets: &[i64], server: &Share) -> Share {
    Share::embed(ring, secrets).sub(server).unwrap()
}

/// Shares that hit the edges of the ring: the server's are 0, 1, the middle and the top in turn, and some random ones.
pub(crate) fn edge_share(ring: Ring, length: usize, rng: &mut Prg) -> Share {
    let top = ring.neg(1);
    let edges = [0, 1, top / 2, top / 2 + 1, top];
    let random = Share::random(ring, length, rng);
    let value = |i: usize| if i % 7 < 5 { edges[i % 7] } else { random.values()[i] };
    Share::new(ring, (0..length).map(value).collect()).unwrap()
}

/// Uniform signed integers in `[-bound, bound]`.
pub(crate) fn signed(length: usize, bound: i64, rng: &mut Prg) -> Vec<i64> {
    (0..length).map(|_| (rng.next_u64() % (2 * bound as u64 + 1)) as i64 - bound).collect()
}
