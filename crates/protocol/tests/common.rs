//! Two parties in one test: their channels, keys, and shares.

pub(crate) mod ideal;
pub(crate) mod laws;

use std::rc::Rc;

use lanner_bfv::{ParameterSet, Parameters, SecretKey};
use lanner_packed::gazelle::packing::Packing;
use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{Client, ClientKeys, Inputs, KeyUse, Needs, Server, SetUp, Sets, Step, Value};
use lanner_wire::Kind;
use rand_core::Rng;

pub(crate) use lanner_testkit::{Party, run};

/// The generator of a number.
pub(crate) fn rng(number: u8) -> Prg {
    Prg::new(Seed::from_bytes([number; 16]))
}

/// The set of packed layers modulo a prime.
pub(crate) fn rotating(prime: u64) -> ParameterSet {
    if prime > 1 << 29 { ParameterSet::W } else { ParameterSet::B }
}

/// Both parties of a session in which the client has keys of one set.
pub(crate) struct Session {
    pub(crate) parameters: Parameters,
    pub(crate) client: Client,
    pub(crate) server: Server,
}

impl Session {
    /// With the keys of some packed layers.
    pub(crate) fn new<'p>(packings: impl IntoIterator<Item = &'p Packing>) -> Self {
        Self::of(ParameterSet::B, packings)
    }

    pub(crate) fn of<'p>(set: ParameterSet, packings: impl IntoIterator<Item = &'p Packing>) -> Self {
        let set_up = keys_alone(set, packings);
        let (mut at_client, mut at_server) = Party::pair();
        let client = Client::set_up(&mut at_client, &set_up, rng(200)).unwrap();
        assert_eq!(bytes(&at_client.sent), set_up.cost().unwrap().client_bytes());
        let server = Server::set_up(&mut at_server, &set_up, rng(201)).unwrap();
        Self { parameters: set.parameters().unwrap(), client, server }
    }

    pub(crate) fn secret(&self) -> &SecretKey {
        self.client.keys.of(&self.parameters).unwrap()
    }

    /// What the server has of the client's keys.
    pub(crate) fn keys(&self) -> &ClientKeys {
        self.server.keys.of(&self.parameters).unwrap()
    }

    /// A layer on both parties' shares, drawn from generators of these numbers, where the server knows its own share ahead of time or not: both
    /// shares of what it makes, of which the server's is known ahead of time.
    pub(crate) fn run(
        &mut self,
        channels: &mut (Party, Party),
        (client, server): (&impl Step<Client>, &impl Step<Server>),
        shares: (&Share, &Share),
        numbers: [u8; 2],
        is_known: bool,
    ) -> (Share, Share) {
        let [of_client, of_server] = numbers.map(rng);
        (self.client.rng, self.server.rng) = (of_client, of_server);
        run(
            channels,
            |channel| {
                let request = client.request(channel, &mut self.client).unwrap();
                let (material, known) =
                    client.prepare(channel, &mut self.client, request, &unknown(1)).unwrap();
                assert!(known.is_none());
                share(client.online(channel, material, &inputs(&[shares.0])).unwrap())
            },
            |channel| {
                let request = server.request(channel, &mut self.server).unwrap();
                let ahead = if is_known { inputs(&[shares.1]) } else { unknown(1) };
                let (material, known) = server.prepare(channel, &mut self.server, request, &ahead).unwrap();
                let made = share(server.online(channel, material, &inputs(&[shares.1])).unwrap());
                assert!(
                    share(known.unwrap()).values() == made.values(),
                    "the server's share is known ahead of time"
                );
                made
            },
        )
    }
}

/// A set-up that makes keys of one set, for some packed layers.
pub(crate) fn keys_alone<'p>(set: ParameterSet, packings: impl IntoIterator<Item = &'p Packing>) -> SetUp {
    let rotations = packings.into_iter().flat_map(Packing::keys);
    let uses = rotations.map(|rotation| (KeyUse::Rotation(rotation), usize::MAX)).collect();
    let needs = Needs { keys: Some((set, uses)), ..Needs::default() };
    SetUp::of(&[needs], [0; 2], &Sets::new().unwrap()).unwrap()
}

/// Bytes of messages, with their frames.
pub(crate) fn bytes(sent: &[(Kind, Vec<u8>)]) -> u64 {
    sent.iter().map(|(_, payload)| 6 + payload.len() as u64).sum()
}

/// Values that a step reads, of which the party has its shares.
pub(crate) fn inputs(shares: &[&Share]) -> Inputs {
    Inputs::new(shares.iter().map(|share| Some(Rc::new(Value::Shared((*share).clone())))).collect())
}

/// So many values that a step reads, before the party has any.
pub(crate) fn unknown(values: usize) -> Inputs {
    Inputs::new(vec![None; values])
}

/// A share of the same value for each element.
pub(crate) fn constant(ring: Ring, value: i64, length: usize) -> Share {
    Share::embed(ring, &vec![value; length])
}

/// The share of what a step made.
pub(crate) fn share(value: Value) -> Share {
    match value {
        Value::Shared(share) => share,
        _ => unreachable!("what a step makes is shared"),
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
