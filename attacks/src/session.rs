//! Conversations of two parties after the handshake, and a record of what they say to each other.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use lanner_bfv::{ParameterSet, Parameters};
use lanner_hardened::{Client, Item, Layer as CheckedLayer, Network, Scheme, Server, Told};
use lanner_net::memory::{self, MemoryChannel};
use lanner_net::{Limits as NetLimits, TcpChannel};
use lanner_ot::{CorrelatedReceiver, CorrelatedSender};
use lanner_ot::{CotReceiver, CotSender, OtError, SilentReceiver, SilentSender, random_delta, silent};
use lanner_plan::Plan;
use lanner_primitives::{Bits, Prg, Ring, Seed, Share};
use lanner_protocol::Protocol;
use lanner_session::executor::{
    ClientPlan, ClientSession, ExecutionError, Outcome, ServedModel, ServerSession,
};
use lanner_session::requests::{Meeting, OwnKeys, Request, Requester, Responder, Shelf};
use lanner_step::{Convolution, EvaluationSession, GarblingSession, ProtocolError, Sets, Transfers};
use lanner_store::{Limits, Pairing, PairingId, Secret, Stock};
use lanner_transfers::{Layer, Material};
use lanner_wire::Channel;
use tempfile::TempDir;

use crate::models::Subject;
use crate::script::{Frame, Tape};
use crate::verdict::Failure;

/// The party under attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// It asks for one prediction, or receives transfers.
    Client,
    /// It serves one session, or sends transfers.
    Server,
}

/// One party of a conversation, from its beginning to its end.
pub type Party = Arc<dyn Fn(&mut dyn Channel) -> Result<(), Failure> + Send + Sync>;

/// Two parties that understand each other.
pub struct Conversation {
    client: Party,
    server: Party,
    /// For each kind whose values are in a ring of the plan, the rings' primes in the messages' order; none for a power of two.
    primes: Vec<(u16, Option<u64>)>,
    ciphertexts: Option<Ciphertexts>,
}

/// What the ciphertexts of a plan are made of.
pub struct Ciphertexts {
    /// The first limbs of the moduli of keys, in the order of their messages, and of ciphertexts to and from the server; none for a power of
    /// two.
    keys: Vec<Option<u64>>,
    inputs: Vec<Option<u64>>,
    outputs: Vec<Option<u64>>,
    /// Whether outputs are sent as masked phases.
    phases: bool,
}

impl Ciphertexts {
    /// What the first residues of message `number` of a kind are below, counted from 0; none if it has none.
    #[must_use]
    pub fn limb(&self, kind: u16, number: usize) -> Option<u64> {
        let limbs = match kind {
            0x30 | 0x31 => &self.keys,
            0x40 => &self.inputs,
            // Masked phases are modulo a power of two.
            0x41 | 0x43 if !self.phases => &self.outputs,
            _ => return None,
        };
        // Squares that are shared tell no counts; they are the last of their kind, or among others of one modulus.
        limbs.get(number).or(limbs.last()).copied().flatten()
    }
}

/// What both parties said.
pub struct Record {
    client: Vec<Frame>,
    server: Vec<Frame>,
}

impl Record {
    /// What the peer of `victim` said.
    #[must_use]
    pub fn heard_by(&self, victim: Victim) -> &[Frame] {
        match victim {
            Victim::Client => &self.server,
            Victim::Server => &self.client,
        }
    }
}

impl Conversation {
    /// Two parties whose messages have no values below a prime of a plan.
    #[must_use]
    pub fn new(client: Party, server: Party) -> Self {
        Self { client, server, primes: Vec::new(), ciphertexts: None }
    }

    /// Set-up, a preparation, a prediction and the end of a session, whose result is checked.
    #[must_use]
    pub fn session(subject: &Subject) -> Self {
        let (served, plan) = (Arc::clone(&subject.served), Arc::clone(&subject.plan));
        let input = subject.input.clone();
        Self::of(
            subject,
            Arc::new(move |channel| Ok(ask(channel, Arc::clone(&plan), &input).map(drop)?)),
            Arc::new(move |channel| Ok(serve(channel, Arc::clone(&served))?)),
        )
    }

    /// As [`Self::session`], between parties that know each other and keep material before it is used.
    #[must_use]
    pub fn kept(subject: &Subject) -> Self {
        let (served, plan) = (Arc::clone(&subject.served), Arc::clone(&subject.plan));
        let input = subject.input.clone();
        Self::of(
            subject,
            Arc::new(move |channel| {
                let (shelf, _directory) = known_shelf(lanner_step::Party::Client);
                let mut requester = Requester::new(Arc::clone(&plan), rng(12)).with_shelf(shelf);
                requester.keep(channel)?;
                requester.predict_kept(channel, &input)?;
                Ok(requester.end(channel)?)
            }),
            Arc::new(move |channel| {
                let (shelf, _directory) = known_shelf(lanner_step::Party::Server);
                let service = Responder::new(Arc::clone(&served), rng(11)).with_shelf(shelf);
                Ok(answer_all(channel, service)?)
            }),
        )
    }

    /// A session in which a prediction runs beside the preparation of the next.
    #[must_use]
    pub fn together(subject: &Subject) -> Self {
        let (served, plan) = (Arc::clone(&subject.served), Arc::clone(&subject.plan));
        let input = subject.input.clone();
        Self::of(
            subject,
            Arc::new(move |channel| {
                let mut requester = Requester::new(Arc::clone(&plan), rng(12));
                requester.predict_together(channel, &[&input], 1)?;
                // Tells what failed beside the first.
                requester.predict(channel, &input)?;
                Ok(requester.end(channel)?)
            }),
            Arc::new(move |channel| Ok(serve(channel, Arc::clone(&served))?)),
        )
    }

    /// A set-up whose keys are uploaded, to a server that has none of them.
    #[must_use]
    pub fn uploading(subject: &Subject) -> Self {
        let (served, plan) = (Arc::clone(&subject.served), Arc::clone(&subject.plan));
        let (keys, upload) = OwnKeys::generate(&plan, &mut rng(13)).unwrap();
        let keys = keys.to_bytes();
        Self::of(
            subject,
            Arc::new(move |channel| {
                let (keys, upload) = (OwnKeys::from_bytes(&keys)?, upload.clone());
                let requester = Requester::new(Arc::clone(&plan), rng(12));
                let mut requester = requester.with_keys(keys, move || Some(upload.clone()))?;
                requester.set_up(channel)?;
                Ok(requester.end(channel)?)
            }),
            Arc::new(move |channel| Ok(serve(channel, Arc::clone(&served))?)),
        )
    }

    /// A preparation and a prediction, time and again in a session that is set up once: setting up takes far longer than both.
    ///
    /// For plans without silent transfers: when those send depends on what was drawn before. And for a client, or a plan without transfers: a server
    /// takes no corrections of transfers twice.
    #[must_use]
    pub fn predictions(subject: &Subject) -> Self {
        let input = subject.input.clone();
        let SetUp { client, server, .. } = SetUp::of(subject);
        let (client, server) = (Mutex::new(client), Mutex::new(server));
        Self::of(
            subject,
            Arc::new(move |channel| {
                let mut session = client.lock().unwrap();
                let prepared = session.prepare(channel)?;
                Ok(session.predict(channel, prepared, &input).map(drop)?)
            }),
            Arc::new(move |channel| {
                let mut session = server.lock().unwrap();
                let prepared = session.prepare(channel)?;
                Ok(session.predict(channel, prepared).map(drop)?)
            }),
        )
    }

    /// A prediction, time and again in a session in which so many are prepared.
    #[must_use]
    pub fn prepared_predictions(subject: &Subject, runs: usize) -> Self {
        let input = subject.input.clone();
        let SetUp { mut client, mut server, mut to_client, mut to_server } = SetUp::of(subject);
        let serving = thread::spawn(move || {
            let prepared: Result<Vec<_>, _> = (0..runs).map(|_| server.prepare(&mut to_client)).collect();
            (server, prepared.unwrap())
        });
        let prepared: Result<Vec<_>, _> = (0..runs).map(|_| client.prepare(&mut to_server)).collect();
        let (client, server) = (Mutex::new((client, prepared.unwrap())), Mutex::new(serving.join().unwrap()));
        Self::of(
            subject,
            Arc::new(move |channel| {
                let (session, prepared) = &mut *client.lock().unwrap();
                let prepared = prepared.pop().expect("material for this many runs");
                Ok(session.predict(channel, prepared, &input).map(drop)?)
            }),
            Arc::new(move |channel| {
                let (session, prepared) = &mut *server.lock().unwrap();
                let prepared = prepared.pop().expect("material for this many runs");
                Ok(session.predict(channel, prepared).map(drop)?)
            }),
        )
    }

    /// Two parties of a subject's session.
    fn of(subject: &Subject, client: Party, server: Party) -> Self {
        let primes = subject.protocols.steps().filter_map(|step| match &step.protocol {
            Protocol::Yao(activation) => Some((0x17, prime(activation.to))),
            Protocol::Softmax(_) => Some((0x17, None)),
            Protocol::Reshare(reshare) => Some((0x61, prime(reshare.ring))),
            Protocol::Reveal(reveal) => Some((0x62, prime(reveal.from))),
            _ => None,
        });
        Self { client, server, primes: primes.collect(), ciphertexts: Some(ciphertexts(&subject.protocols)) }
    }

    /// Silent transfers with given choices.
    #[must_use]
    pub fn silent_transfers() -> Self {
        let set = silent::Parameters::ALL[0];
        let receive = move |channel: &mut dyn Channel| {
            let source = CotReceiver::setup(channel, &mut rng(1))?;
            let mut silent = SilentReceiver::setup(channel, source, set)?;
            silent.extend(channel, &Bits::random(TRANSFERS, &mut rng(3)), &mut Vec::new()).map(drop)
        };
        let send = move |channel: &mut dyn Channel| {
            let source = CotSender::setup(channel, random_delta(&mut rng(4)), &mut rng(5))?;
            let mut silent = SilentSender::setup(channel, source, set, &mut rng(6))?;
            silent.extend(channel, TRANSFERS, &mut Vec::new()).map(drop)
        };
        Self::transfers(receive, send)
    }

    /// A nonlinear layer by comparisons, online. Material is made for a given number of runs of each party, since setting up takes far longer
    /// than a run.
    #[must_use]
    pub fn comparisons(layer: Layer, inputs: usize, bits: u32, runs: usize) -> Self {
        let layer = Arc::new(layer);
        let (mut client, mut server) = memory::pair();
        let ahead = Arc::clone(&layer);
        let preparing = thread::spawn(move || prepare(&ahead, lanner_step::Party::Server, &mut server, runs));
        let materials = prepare(&layer, lanner_step::Party::Client, &mut client, runs);
        let party = |party, materials: Vec<Material>| -> Party {
            let (layer, materials) = (Arc::clone(&layer), Mutex::new(materials));
            Arc::new(move |channel| {
                let material = materials.lock().unwrap().pop().expect("material for this many runs");
                let share = Share::zero(Ring::Pow2(bits), inputs);
                layer.online(channel, party, material, &[&share])?;
                Ok(channel.flush().map_err(ProtocolError::from)?)
            })
        };
        let client = party(lanner_step::Party::Client, materials);
        Self::new(client, party(lanner_step::Party::Server, preparing.join().unwrap()))
    }

    /// A network whose client is checked, from its set-up to the label.
    #[must_use]
    pub fn checked() -> Self {
        let shape = Convolution::fully_connected(3, 2);
        let network = Network {
            set: ParameterSet::B,
            prime: 1_032_193,
            low: -8,
            bits: 5,
            layers: vec![Item::Layer(CheckedLayer {
                node: "scores".to_owned(),
                summed: None,
                reads: Vec::new(),
                shape,
                activation: None,
            })],
            told: Told::Label,
        };
        let scheme = Arc::new(Scheme::new(&network).unwrap());
        let weights: (&[i64], _) = (&[3, -1, 4, 1, -5, 9], vec![-200, 60]);
        let server = Server::new(Arc::clone(&scheme), &[weights]).unwrap();
        let input = Share::embed(Ring::Prime(network.prime), &[7, -8, 23]);
        let client = Client::new(scheme);
        let ask = move |channel: &mut dyn Channel| {
            let rng = &mut rng(1);
            let mut session = EvaluationSession::setup(channel, rng)?;
            let material = client.offline(channel, &mut session, rng)?;
            Ok(client.online(channel, material, &input).map(drop)?)
        };
        let serve = move |channel: &mut dyn Channel| {
            let rng = &mut rng(2);
            let mut session = GarblingSession::setup(channel, rng)?;
            let material = server.offline(channel, &mut session, rng)?;
            Ok(server.online(channel, material)?)
        };
        Self::new(Arc::new(ask), Arc::new(serve))
    }

    fn transfers(
        receive: impl Fn(&mut dyn Channel) -> Result<(), OtError> + Send + Sync + 'static,
        send: impl Fn(&mut dyn Channel) -> Result<(), OtError> + Send + Sync + 'static,
    ) -> Self {
        let receive = move |channel: &mut dyn Channel| Ok(receive(channel)?);
        Self::new(Arc::new(receive), Arc::new(move |channel| Ok(send(channel)?)))
    }

    /// A party of it.
    #[must_use]
    pub fn party(&self, victim: Victim) -> Party {
        match victim {
            Victim::Client => Arc::clone(&self.client),
            Victim::Server => Arc::clone(&self.server),
        }
    }

    /// The prime that the values of message `number` of a kind are below, counted from 0; none if there is none.
    #[must_use]
    pub fn prime(&self, kind: u16, number: usize) -> Option<u64> {
        let mut primes = self.primes.iter().filter(|(of, _)| *of == kind);
        primes.nth(number).and_then(|(_, prime)| *prime)
    }

    /// What its ciphertexts are made of, if it has some.
    #[must_use]
    pub fn ciphertexts(&self) -> Option<&Ciphertexts> {
        self.ciphertexts.as_ref()
    }

    /// Lets both parties speak.
    ///
    /// # Panics
    /// If they do not come to the end.
    #[must_use]
    pub fn record(&self) -> Record {
        let (client, mut server) = connection();
        let serve = Arc::clone(&self.server);
        let serving = thread::spawn(move || serve(&mut server));
        let mut tape = Tape::new(client);
        (self.client)(&mut tape).unwrap();
        tape.flush().unwrap();
        serving.join().unwrap().unwrap();
        Record { client: tape.sent, server: tape.received }
    }
}

/// A client's and a server's end of a connection that exchanges can share.
fn connection() -> (TcpChannel, TcpChannel) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let client = TcpChannel::connect_insecure_plaintext(&address, NetLimits::default()).unwrap();
    (client, TcpChannel::insecure_plaintext(listener.accept().unwrap().0, NetLimits::default()).unwrap())
}

/// Both parties of a session after its set-up, and their channels.
struct SetUp {
    client: ClientSession,
    server: ServerSession,
    to_client: MemoryChannel,
    to_server: MemoryChannel,
}

impl SetUp {
    fn of(subject: &Subject) -> Self {
        let (mut to_server, mut to_client) = memory::pair();
        let served = Arc::clone(&subject.served);
        let serving = thread::spawn(move || {
            let server = ServerSession::setup(&mut to_client, served, rng(9)).unwrap();
            (server, to_client)
        });
        let (client, _) = ClientSession::setup(&mut to_server, Arc::clone(&subject.plan), rng(10)).unwrap();
        let (server, to_client) = serving.join().unwrap();
        Self { client, server, to_client, to_server }
    }
}

/// A party's material for a given number of runs of a layer.
fn prepare(
    layer: &Layer,
    party: lanner_step::Party,
    channel: &mut dyn Channel,
    runs: usize,
) -> Vec<Material> {
    let mut rng = rng(8);
    let mut transfers = Transfers::setup(channel, party, [silent::Parameters::ALL[0]; 2], &mut rng).unwrap();
    let material = |_| {
        let request = layer.request(channel, &mut transfers).unwrap();
        let material = layer.prepare(channel, &mut transfers, request, &mut rng).unwrap();
        channel.flush().unwrap();
        material
    };
    (0..runs).map(material).collect()
}

/// A party's shelf for one session with a peer that it has met, and the directory where it is.
fn known_shelf(party: lanner_step::Party) -> (Shelf, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let stock = Stock::new(directory.path().join("state"), party, Limits::default());
    let pairing = |number| Pairing {
        id: PairingId::from_bytes([number; 16]),
        secret: Secret([number; 32]),
        model: [2; 32],
        model_name: "subject".to_owned(),
        peer: "peer".to_owned(),
        certificate: None,
    };
    stock.pair(&pairing(1), None).unwrap();
    let meeting = Meeting { transcript: [0; 32], challenge: [6; 32], pairing: pairing(4) };
    (Shelf::new(Arc::new(stock), meeting), directory)
}

/// Serves one session to its end.
///
/// # Errors
/// Those of the session.
pub fn serve(channel: &mut dyn Channel, model: Arc<ServedModel>) -> Result<(), ExecutionError> {
    answer_all(channel, Responder::new(model, rng(11)))
}

fn answer_all(channel: &mut dyn Channel, mut service: Responder) -> Result<(), ExecutionError> {
    loop {
        match Responder::receive(channel)? {
            Request::End => return Ok(()),
            request => service.answer(channel, request)?,
        }
    }
}

/// Asks for one prediction. A session that has failed must give none any more, whatever still lies in its channel.
///
/// # Errors
/// Those of the session.
pub fn ask(
    channel: &mut dyn Channel,
    plan: Arc<ClientPlan>,
    input: &[i64],
) -> Result<Outcome, ExecutionError> {
    let mut requester = Requester::new(plan, rng(12));
    match requester.predict(channel, input) {
        Ok((outcome, _)) => {
            requester.end(channel)?;
            Ok(outcome)
        }
        Err(error) => {
            let again = requester.predict(channel, input);
            assert!(matches!(again, Err(ExecutionError::Broken)), "a broken session goes on after: {error}");
            Err(error)
        }
    }
}

/// Runs an honest session on a model and checks its result.
///
/// # Panics
/// If it is wrong.
pub fn check_honest(subject: &Subject) {
    let (mut client, mut server) = memory::pair();
    let model = Arc::clone(&subject.served);
    let serving = thread::spawn(move || serve(&mut server, model));
    let outcome = ask(&mut client, Arc::clone(&subject.plan), &subject.input).unwrap();
    serving.join().unwrap().unwrap();
    let best = lanner_network::arg_max(&subject.scores);
    match outcome {
        Outcome::Logits(scores) | Outcome::Saturable { scores, .. } => assert_eq!(scores, subject.scores),
        Outcome::Label(label) => assert_eq!(label, best),
        Outcome::Probability(likely) => assert_eq!(likely.label, best),
        Outcome::TopK(labels) => assert_eq!(labels[0], best),
        Outcome::Labels(labels) => {
            let scores = subject.scores.iter().enumerate();
            let positive: Vec<usize> =
                scores.filter(|(_, score)| **score > 0).map(|(class, _)| class).collect();
            assert_eq!(labels, positive);
        }
        Outcome::LabelMap(labels) => {
            let places = subject.scores.chunks_exact(subject.scores.len() / labels.len());
            assert_eq!(labels, places.map(lanner_network::arg_max).collect::<Vec<_>>());
        }
        Outcome::Each(_) => panic!("a request for one sample tells of several"),
    }
}

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

/// Not a multiple of 8, so that bits on the wire are filled up.
const TRANSFERS: usize = 13;

/// The ciphertexts of a plan.
fn ciphertexts(plan: &Plan) -> Ciphertexts {
    let (built, sets) = (plan.build().unwrap(), Sets::new().unwrap());
    let limb = |parameters: &Parameters| Some(parameters.moduli()[0].value());
    let keys = built.set_up().unwrap().keys.iter().map(|keys| limb(&keys.parameters)).collect();
    let [mut inputs, mut outputs] = [Vec::new(), Vec::new()];
    for (step, planned) in built.steps().iter().zip(plan.steps()) {
        let Some((set, _)) = step.needs().unwrap().keys else { continue };
        let counts = step.built.counts();
        let count = |name| counts.iter().find(|(of, _)| *of == name).map_or(1, |(_, count)| *count as usize);
        let limb = limb(sets.get(set).unwrap());
        let rounded =
            matches!(&planned.protocol, Protocol::CheetahLinear(layer) if layer.accuracy.guard() > 0);
        inputs.extend(std::iter::repeat_n(limb.filter(|_| !rounded), count("input_ciphertexts")));
        outputs.extend(std::iter::repeat_n(limb, count("output_ciphertexts")));
    }
    let phases = plan.steps().any(|step| matches!(step.protocol, Protocol::CheetahLinear(_)));
    Ciphertexts { keys, inputs, outputs, phases }
}

fn prime(ring: Ring) -> Option<u64> {
    match ring {
        Ring::Prime(prime) => Some(prime),
        Ring::Pow2(_) => None,
    }
}
