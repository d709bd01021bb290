//! What the tests of whole sessions share.

use std::sync::Arc;

use lanner_graph::Graph;
use lanner_net::memory;
use lanner_network::{Network, Tensor, Tensors};
use lanner_plan::{Mode, Plan, Rings};
use lanner_primitives::{Prg, Seed};
use lanner_quantize::{QuantizationOptions, compile};
use lanner_session::executor::{
    ClientPlan, ClientSession, Measured, Outcome, Prepared, ServedModel, ServerSession,
};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};
use sha2::{Digest, Sha256};

pub(crate) fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

/// A deterministic value in [-1, 1).
pub(crate) fn value(index: usize, seed: usize) -> f32 {
    let mixed = (index + 1).wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503)) % 100_003;
    mixed as f32 / 50_001.5 - 1.0
}

pub(crate) fn tensors(shapes: &[(&str, &[usize])]) -> Tensors {
    let mut tensors = Tensors::default();
    for (seed, (name, shape)) in shapes.iter().enumerate() {
        let count = shape.iter().product();
        let data = (0..count).map(|i| value(i, seed)).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
    }
    tensors
}

/// Networks in the rings of a mode.
pub(crate) fn in_rings_of(mode: Mode) -> QuantizationOptions {
    match mode.design().rings {
        Rings::Primes => QuantizationOptions::default(),
        Rings::OnePrime => QuantizationOptions::one_prime(),
        Rings::PowersOfTwo => QuantizationOptions::powers_of_two(),
        Rings::Products => QuantizationOptions::without_rescales(),
    }
}

/// A network of a graph with deterministic weights, and samples of its input.
pub(crate) fn network(
    json: &str,
    shapes: &[(&str, &[usize])],
    input: usize,
    options: &QuantizationOptions,
) -> (Network, Vec<Vec<f32>>) {
    let graph = Graph::from_json(json).unwrap();
    let samples: Vec<Vec<f32>> =
        (0..8).map(|s| (0..input).map(|i| value(i, 100 + s).abs()).collect()).collect();
    (compile(&graph, &tensors(shapes), &samples.concat(), options).unwrap(), samples)
}

/// Hashes each direction: which of two messages comes first does not depend on the bytes, but on the machine.
pub(crate) struct Digested<C> {
    channel: C,
    sent: Sha256,
    received: Sha256,
}

impl<C: Channel> Channel for Digested<C> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.sent.update(kind.0.to_le_bytes());
        self.sent.update(payload);
        self.channel.send(kind, payload)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.channel.flush()
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let header = self.channel.receive_header()?;
        self.received.update(header.0.0.to_le_bytes());
        Ok(header)
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.channel.receive_body(buffer)?;
        self.received.update(buffer);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }
}

impl<C> Digested<C> {
    pub(crate) fn new(channel: C) -> Self {
        Self { channel, sent: Sha256::new(), received: Sha256::new() }
    }

    /// The first bytes of both directions' digests.
    pub(crate) fn digests(self) -> String {
        let hex =
            |hash: Sha256| format!("{:016x}", u64::from_be_bytes(*hash.finalize().first_chunk().unwrap()));
        format!("{} {}", hex(self.sent), hex(self.received))
    }
}

/// One session of both parties with one prediction, seeded; `wrap` goes around the client's channel.
pub(crate) fn session<C: Channel>(
    network: &Network,
    plan: &Plan,
    input: &[i64],
    wrap: impl FnOnce(memory::MemoryChannel) -> C,
) -> (C, Outcome, Vec<Measured>) {
    session_keeping(network, plan, input, wrap, |prepared| prepared, |prepared| prepared)
}

/// The same; the client's and the server's material goes through `keep` between the phases.
pub(crate) fn session_keeping<C: Channel>(
    network: &Network,
    plan: &Plan,
    input: &[i64],
    wrap: impl FnOnce(memory::MemoryChannel) -> C,
    keep_client: impl FnOnce(Prepared) -> Prepared,
    keep_server: impl FnOnce(Prepared) -> Prepared + Send,
) -> (C, Outcome, Vec<Measured>) {
    let model = Arc::new(ServedModel::new(network, plan).unwrap());
    let client_plan = Arc::new(ClientPlan::new(network.public(), plan).unwrap());
    let (client, mut server) = memory::pair();
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let mut session = ServerSession::setup(&mut server, model, rng(1)).unwrap();
            let prepared = session.prepare(&mut server).unwrap();
            session.predict(&mut server, keep_server(prepared)).unwrap();
        });
        let mut client = wrap(client);
        let (mut session, setup) = ClientSession::setup(&mut client, client_plan, rng(2)).unwrap();
        let prepared = session.prepare(&mut client).unwrap();
        let (outcome, mut costs) = session.predict(&mut client, keep_client(prepared), input).unwrap();
        serving.join().unwrap();
        costs.insert(0, setup);
        (client, outcome, costs)
    })
}
