//! Peers whose transfers fail their check, in whole sessions: what was made with them is gone afterwards, on disk too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lanner_net::memory::{self, MemoryChannel};
use lanner_network::{Network, Policy};
use lanner_plan::{Mode, Plan, plan};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::{ClientPlan, ExecutionError, ServedModel};
use lanner_session::requests::{Meeting, Request, Requester, Responder, Room, Shelf};
use lanner_step::Party;
use lanner_store::{Limits, Pairing, PairingId, Secret, Stock};
use lanner_transfers::Rounding;
use lanner_wire::{Channel, ChannelError, Kind, Traffic};
use tempfile::TempDir;

use crate::common::{network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[72, 4]), ("b2", &[4])];

/// One bit that a party changes of what it sends: in message `number` of a kind, counted from 0 and from when it begins to cheat.
#[derive(Clone, Copy, Debug)]
struct Cheat {
    kind: Kind,
    number: usize,
    byte: usize,
}

/// A sum that completes a tree; the sum of the tags of another tree's leaves; the correction of one column, behind those that hide the proof; the proof.
const CHEATS: [Cheat; 4] = [
    Cheat { kind: Kind(0x13), number: 0, byte: 5 * 96 },
    Cheat { kind: Kind(0x13), number: 0, byte: 32 * 96 + 9 * 32 },
    Cheat { kind: Kind(0x14), number: 1, byte: 7 },
    Cheat { kind: Kind(0x16), number: 0, byte: 40 },
];

/// Of mode hardened: an opening of the key's commitments, bits of the last layer's outputs. The mode's own tests have the others.
const COMPUTED: [Cheat; 2] =
    [Cheat { kind: Kind(0x93), number: 0, byte: 100 }, Cheat { kind: Kind(0x52), number: 1, byte: 1 }];

/// A sum of nodes of a silent tree, and the sum of its leaves' tags.
const SILENT: [Cheat; 2] = [
    Cheat { kind: Kind(0x18), number: 0, byte: 8 * 16 },
    Cheat { kind: Kind(0x18), number: 0, byte: 9 * 16 + 15 },
];

/// A party's channel that may change what it sends.
struct Cheating {
    channel: MemoryChannel,
    cheat: Option<Cheat>,
}

impl Channel for Cheating {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut payload = payload.to_vec();
        if let Some(cheat) = self.cheat.as_mut().filter(|cheat| cheat.kind == kind) {
            if let Some(number) = cheat.number.checked_sub(1) {
                cheat.number = number;
            } else {
                payload[cheat.byte] ^= 1;
                self.cheat = None;
            }
        }
        self.channel.send(kind, &payload)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.channel.flush()
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        self.channel.receive_header()
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.channel.receive_body(buffer)
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }
}

/// A model, and what both parties keep.
struct World {
    network: Network,
    plan: Plan,
    root: TempDir,
}

impl World {
    fn new(mode: Mode, options: &QuantizationOptions) -> Self {
        let (network, _) = network(JSON, &SHAPES, 36, options);
        let plan = plan(network.public(), Policy::Label, mode).unwrap();
        Self { plan, network, root: tempfile::tempdir().unwrap() }
    }

    fn stock(&self, party: Party) -> Stock {
        Stock::new(self.root.path().join(format!("{party:?}")), party, Limits::default())
    }

    fn held(&self, party: Party) -> u64 {
        self.stock(party).held().unwrap().predictions
    }

    fn shelf(&self, number: u8, party: Party) -> Shelf {
        let pairing = Pairing {
            id: PairingId::from_bytes([number; 16]),
            secret: Secret([number; 32]),
            model: [5; 32],
            model_name: "digits".into(),
            peer: "peer".into(),
            certificate: (party == Party::Server).then(|| "peer".into()),
        };
        let meeting = Meeting { transcript: [number; 32], challenge: [number; 32], pairing };
        Shelf::new(Arc::new(self.stock(party)), meeting)
    }

    /// A session in which each party does what it is told to.
    fn session(
        &self,
        number: u8,
        serve: impl FnOnce(&mut Responder, &mut Cheating) + Send,
        ask: impl FnOnce(&mut Requester, &mut Cheating),
    ) {
        let (client, server) = memory::pair();
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let model = Arc::new(ServedModel::new(&self.network, &self.plan).unwrap());
                let service = Responder::new(model, rng(2 * number));
                let mut channel = Cheating { channel: server, cheat: None };
                serve(&mut service.with_shelf(self.shelf(number, Party::Server)), &mut channel);
            });
            let plan = Arc::new(ClientPlan::new(self.network.public(), &self.plan).unwrap());
            let requester = Requester::new(plan, rng(2 * number + 1));
            let mut channel = Cheating { channel: client, cheat: None };
            ask(&mut requester.with_shelf(self.shelf(number, Party::Client)), &mut channel);
            drop(channel);
            serving.join().unwrap();
        });
    }
}

/// Answers until something fails, and tells what.
fn answer(service: &mut Responder, channel: &mut Cheating) -> Option<ExecutionError> {
    answer_or_tell(service, channel, &|| ())
}

/// The same, and tells of a failed check.
fn answer_or_tell(
    service: &mut Responder,
    channel: &mut Cheating,
    caught: &(dyn Fn() + Sync),
) -> Option<ExecutionError> {
    while let Ok(request) = Responder::receive(channel) {
        if let Err(error) = service.answer_or_tell(channel, request, Room::MOST, caught) {
            return Some(error);
        }
    }
    None
}

/// A request after a failed check.
const AFTER: [Request; 3] = [Request::Predict, Request::Prepare, Request::Keep];

fn honest(service: &mut Responder, channel: &mut Cheating) {
    assert!(answer(service, channel).is_none());
}

#[test]
fn a_server_keeps_nothing_that_it_made_with_a_client_that_cheats() {
    let gazelle = World::new(Mode::Gazelle, &QuantizationOptions::default());
    let cheetah = World::new(Mode::Cheetah(Rounding::Exact), &QuantizationOptions::powers_of_two());
    let hardened = World::new(Mode::Hardened, &crate::hardened::options());
    let cheats =
        CHEATS.map(|cheat| (&gazelle, cheat)).into_iter().chain(SILENT.map(|cheat| (&cheetah, cheat)));
    let cheats = cheats.chain(COMPUTED.map(|cheat| (&hardened, cheat)));
    for (number, (world, cheat)) in cheats.enumerate() {
        let number = 2 * number as u8 + 1;
        world.session(number, honest, |requester, channel| drop(requester.keep(channel).unwrap()));
        assert_eq!(world.held(Party::Server), 1);
        let caught = |service: &mut Responder, channel: &mut Cheating| {
            let told = AtomicBool::new(false);
            let tell = || {
                // Whoever is told writes it down before anything is removed.
                assert_eq!(world.held(Party::Server), 1, "{cheat:?}");
                told.store(true, Ordering::Relaxed);
            };
            let error = answer_or_tell(service, channel, &tell).unwrap();
            assert!(told.into_inner(), "{cheat:?}");
            assert!(error.is_dishonest(), "{cheat:?}: {error}");
            assert_eq!((service.prepared(), world.held(Party::Server)), (0, 0), "{cheat:?}");
            for request in AFTER {
                assert!(matches!(service.answer(channel, request), Err(ExecutionError::Broken)));
            }
        };
        world.session(number + 1, caught, |requester, channel| {
            assert!(requester.resume(channel).unwrap());
            channel.cheat = Some(cheat);
            assert!(requester.predict(channel, &[0; 36]).is_err());
        });
    }
}

/// What is prepared in the session, and kept in it, goes with it.
#[test]
fn a_server_drops_what_it_prepared_before_a_client_cheats() {
    let world = World::new(Mode::Gazelle, &QuantizationOptions::default());
    let caught = |service: &mut Responder, channel: &mut Cheating| {
        let error = answer(service, channel).unwrap();
        assert!(error.is_dishonest(), "{error}");
        assert_eq!((service.prepared(), world.held(Party::Server)), (0, 0));
    };
    world.session(1, caught, |requester, channel| {
        requester.keep(channel).unwrap();
        requester.prepare(channel).unwrap();
        assert_eq!(world.held(Party::Server), 1);
        channel.cheat = Some(CHEATS[2]);
        assert!(requester.prepare(channel).is_err());
    });
}

#[test]
fn a_client_keeps_nothing_that_it_made_with_a_server_that_cheats() {
    let world = World::new(Mode::Cheetah(Rounding::Exact), &QuantizationOptions::powers_of_two());
    for (number, cheat) in CHEATS.into_iter().chain(SILENT).enumerate() {
        let number = 2 * number as u8 + 1;
        world.session(number, honest, |requester, channel| drop(requester.keep(channel).unwrap()));
        assert_eq!(world.held(Party::Client), 1);
        let cheating = |service: &mut Responder, channel: &mut Cheating| {
            channel.cheat = Some(cheat);
            drop(answer(service, channel));
        };
        world.session(number + 1, cheating, |requester, channel| {
            assert!(requester.resume(channel).unwrap());
            let error = requester.prepare(channel).unwrap_err();
            assert!(error.is_dishonest(), "{cheat:?}: {error}");
            assert_eq!((requester.prepared(), world.held(Party::Client)), (0, 0), "{cheat:?}");
            assert!(matches!(requester.prepare(channel), Err(ExecutionError::Broken)));
        });
    }
}
