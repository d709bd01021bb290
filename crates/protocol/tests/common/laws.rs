//! What every step keeps to, whatever its protocol. It sends as many bytes as it says, and unless it says that it converses, its offline phase is one
//! round. Its material comes back from its bytes and from no others, and takes the memory that it says. Who knows its share of the output ahead of time
//! is whom its type names.

use lanner_local::reshare::Reshare;
use lanner_primitives::{Ring, Share};
use lanner_step::{
    AnyState, BoxedStep, Built, Client, Cost, CotSupply, DynStep, Inputs, Known, Memory, ModelParts,
    ProtocolError, Server, SetUp, Sets, Shared, Spec, StepCost, Value, ValueType, Weights, transfer_sets,
};
use lanner_wire::{Channel, DecodeError, Kind, Reader, Writer};

use super::{Party as End, bytes, inputs, rng, run, share, unknown};

/// A model of one layer, if it has weights.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) weights: Vec<i64>,
    pub(crate) bias: Vec<i64>,
    shared: Shared,
}

impl Model {
    pub(crate) fn new(weights: Vec<i64>, bias: Vec<i64>) -> Self {
        Self { weights, bias, shared: Shared::default() }
    }
}

impl ModelParts for Model {
    fn weights(&self, _: &str, outputs: usize) -> Result<Weights<'_>, ProtocolError> {
        assert_eq!(outputs, self.bias.len());
        Ok(Weights { weight: &self.weights, bias: self.bias.iter().map(|b| (*b).into()).collect() })
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn sources(&self, _: &str) -> Result<Vec<Option<(usize, usize)>>, ProtocolError> {
        Err(ProtocolError::WrongModel("it moves no elements"))
    }
}

/// A step that is to keep to the laws.
pub(crate) struct Case<'c> {
    pub(crate) spec: Box<dyn Spec>,
    pub(crate) model: &'c Model,
    /// How many times the bytes of material its memory may be: values are kept in words, and written in as many bits as they have.
    pub(crate) words: u64,
}

/// A message of a party.
pub(crate) type Message = (Kind, Vec<u8>);

/// What a run made and sent, the client's first.
pub(crate) struct Outcome {
    pub(crate) outputs: [Share; 2],
    /// To request, to prepare, and online.
    pub(crate) sent: [[Vec<Message>; 3]; 2],
}

impl Outcome {
    /// The only message that a party sent in a phase, of this kind.
    pub(crate) fn only(&self, party: usize, phase: usize, kind: u16) -> Vec<u8> {
        let [(sent, payload)] = &self.sent[party][phase][..] else { unreachable!("there is one message") };
        assert_eq!(sent.0, kind);
        payload.clone()
    }
}

/// A party with its step and its shares of what it reads.
struct Half<'h, P> {
    state: P,
    step: Box<dyn DynStep<P>>,
    shares: &'h [&'h Share],
    /// What its material may take, and how many times as much as its bytes.
    memory: [u64; 2],
}

impl<P> Half<'_, P> {
    fn request(&mut self, end: &mut End) -> (AnyState, usize) {
        (self.step.request(end, &mut self.state).unwrap(), end.sent.len())
    }

    fn prepare(&mut self, end: &mut End, request: AnyState) -> (AnyState, Option<Share>, usize) {
        let nothing = unknown(self.shares.len());
        let (material, known) = self.step.prepare(end, &mut self.state, request, &nothing).unwrap();
        (through(&*self.step, &material, self.memory), known.map(share), end.sent.len())
    }

    fn online(&self, end: &mut End, material: AnyState) -> Share {
        share(self.step.online(end, material, &inputs(self.shares)).unwrap())
    }
}

impl<'c> Case<'c> {
    pub(crate) fn new(spec: impl Spec + 'static, model: &'c Model) -> Self {
        Self { spec: Box::new(spec), model, words: 64 }
    }

    pub(crate) fn built(&self) -> Box<dyn Built> {
        self.spec.build(&Sets::new().unwrap()).unwrap()
    }

    /// One run on both parties' shares of the values that the step reads, in a session of its own.
    pub(crate) fn run(&self, shares: [&[&Share]; 2], seed: u8) -> Outcome {
        self.run_over(&mut End::pair(), shares, seed)
    }

    /// The same, with all that was sent from the set-up on left in the channels.
    pub(crate) fn run_over(&self, channels: &mut (End, End), shares: [&[&Share]; 2], seed: u8) -> Outcome {
        let types: Vec<_> = shares[0]
            .iter()
            .map(|share| ValueType::shared(share.ring(), share.len(), Known::NOBODY))
            .collect();
        let ValueType::Shared { ring, len, known } = self.spec.infer(&types).unwrap() else {
            unreachable!("what the step makes is shared")
        };
        let (needs, memory) = (self.built().needs().unwrap(), self.built().memory().unwrap());
        let supply = &mut CotSupply::new(transfer_sets(needs.transfers));
        let StepCost { offline, online } = self.built().cost(supply).unwrap();
        let set_up = SetUp::of(std::slice::from_ref(&needs), needs.transfers, &Sets::new().unwrap()).unwrap();
        let mut first = End::pair();
        let (client, server) = run(
            &mut first,
            |end| Client::set_up(end, &set_up, rng(seed)).unwrap(),
            |end| Server::set_up(end, &set_up, rng(seed + 1)).unwrap(),
        );
        let mut client = Half {
            state: client,
            step: self.built().client("layer", self.model).unwrap(),
            shares: shares[0],
            memory: [memory.client_material, self.words],
        };
        let mut server = Half {
            state: server,
            step: self.built().server("layer", self.model).unwrap(),
            shares: shares[1],
            memory: [memory.server_material, self.words],
        };
        let (of_client, of_server) = if needs.conversation || needs.comparison_keys {
            fn all<P>(half: &mut Half<'_, P>, end: &mut End) -> (Share, Option<Share>, [usize; 2]) {
                let (request, asked) = half.request(end);
                let (material, known, prepared) = half.prepare(end, request);
                (half.online(end, material), known, [asked, prepared])
            }
            run(channels, |end| all(&mut client, end), |end| all(&mut server, end))
        } else {
            // One after the other: whoever waited for more than was sent by then would wait for ever.
            let (at_client, at_server) = &mut *channels;
            let (request, client_asked) = client.request(at_client);
            let (received, server_asked) = server.request(at_server);
            let (server_material, server_known, server_prepared) = server.prepare(at_server, received);
            let (client_material, client_known, client_prepared) = client.prepare(at_client, request);
            let (of_client, of_server) = run(
                channels,
                |end| client.online(end, client_material),
                |end| server.online(end, server_material),
            );
            (
                (of_client, client_known, [client_asked, client_prepared]),
                (of_server, server_known, [server_asked, server_prepared]),
            )
        };
        let phases = |end: &End, [asked, prepared]: [usize; 2]| {
            [&end.sent[..asked], &end.sent[asked..prepared], &end.sent[prepared..]].map(<[Message]>::to_vec)
        };
        let sent = [phases(&channels.0, of_client.2), phases(&channels.1, of_server.2)];
        let costs = [offline.request, offline.answer, online];
        assert_eq!(sent[0].each_ref().map(|sent| bytes(sent)), costs.map(Cost::client_bytes));
        assert_eq!(sent[1].each_ref().map(|sent| bytes(sent)), costs.map(Cost::server_bytes));
        for (made, ahead, is_known) in
            [(&of_client.0, &of_client.1, known.client), (&of_server.0, &of_server.1, known.server)]
        {
            assert_eq!((made.ring(), made.len()), (ring, len));
            let ahead = ahead.as_ref().map(|ahead| ahead.values() == made.values());
            assert_eq!(ahead, is_known.then_some(true), "who knows its share ahead of time");
        }
        channels.0.sent.splice(..0, first.0.sent);
        channels.1.sent.splice(..0, first.1.sent);
        Outcome { outputs: [of_client.0, of_server.0], sent }
    }
}

/// Material as it comes back from its bytes.
fn through<P>(step: &dyn DynStep<P>, material: &AnyState, [memory, words]: [u64; 2]) -> AnyState {
    let encode = |material: &AnyState| {
        let mut writer = Writer::new();
        step.encode(material, &mut writer).unwrap();
        writer.into_bytes()
    };
    let bytes = encode(material);
    assert!((memory / words..=memory).contains(&(bytes.len() as u64)), "{} of {memory}", bytes.len());
    for length in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        assert!(bytes.is_empty() || step.decode(&mut Reader::new(&bytes[..length])).is_err());
    }
    let mut reader = Reader::new(&bytes);
    let decoded = step.decode(&mut reader).unwrap();
    reader.finish().unwrap();
    assert_eq!(encode(&decoded), bytes);
    assert!(step.encode(&(Box::new(Vec::<Share>::new()) as AnyState), &mut Writer::new()).is_err());
    decoded
}

/// What a step says that is not so.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    /// A byte less is sent.
    Cost,
    /// The server's material takes no memory.
    Memory,
    /// Nobody knows a share ahead of time.
    Known,
    /// The server reads material that is cut off.
    Reading,
}

/// The smallest step, with a fault.
struct Broken(Reshare, Fault);

/// It without its fault, and what it says.
struct BuiltBroken(Box<dyn Built>, Fault);

/// A server that takes what it cannot read for zeros.
struct Careless(Box<dyn DynStep<Server>>, Share);

impl Spec for Broken {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        let made = self.0.infer(inputs)?;
        Ok(match made {
            ValueType::Shared { ring, len, .. } if self.1 == Fault::Known => {
                ValueType::shared(ring, len, Known::NOBODY)
            }
            made => made,
        })
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        Ok(Box::new(BuiltBroken(self.0.build(sets)?, self.1)))
    }
}

impl Built for BuiltBroken {
    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost, ProtocolError> {
        let cost = self.0.cost(supply)?;
        let online = if self.1 == Fault::Cost { cost.online.server(1) } else { cost.online };
        Ok(StepCost { online, ..cost })
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        if self.1 == Fault::Memory { Ok(Memory::default()) } else { self.0.memory() }
    }

    fn client(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Client> {
        self.0.client(node, model)
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let step = self.0.server(node, model)?;
        let zeros = Share::zero(RING, VALUES);
        Ok(if self.1 == Fault::Reading { Box::new(Careless(step, zeros)) } else { step })
    }
}

impl DynStep<Server> for Careless {
    fn request(&self, channel: &mut dyn Channel, party: &mut Server) -> Result<AnyState, ProtocolError> {
        self.0.request(channel, party)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut Server,
        request: AnyState,
        known: &Inputs,
    ) -> Result<(AnyState, Option<Value>), ProtocolError> {
        self.0.prepare(channel, party, request, known)
    }

    fn encode(&self, material: &AnyState, writer: &mut Writer) -> Result<(), ProtocolError> {
        self.0.encode(material, writer)
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<AnyState, DecodeError> {
        Ok(self.0.decode(reader).unwrap_or_else(|_| Box::new(self.1.clone())))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: AnyState,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.0.online(channel, material, inputs)
    }
}

const RING: Ring = Ring::Pow2(20);
const VALUES: usize = 9;

#[test]
fn steps_that_break_a_law_are_found() {
    let share = Share::embed(RING, &[5; VALUES]);
    let keeps = |fault| {
        let model = Model::default();
        let case = Case::new(Broken(Reshare { values: VALUES, ring: RING }, fault), &model);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.run([&[&share]; 2], 1))).is_ok()
    };
    assert!(keeps(Fault::Nothing));
    for fault in [Fault::Cost, Fault::Memory, Fault::Known, Fault::Reading] {
        assert!(!keeps(fault), "{fault:?}");
    }
}
