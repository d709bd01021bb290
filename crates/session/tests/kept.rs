//! Material on disk between sessions: used once, whatever ends in between.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use lanner_net::memory;
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Mode, Plan, plan};
use lanner_session::executor::{ClientPlan, ExecutionError, Outcome, ServedModel};
use lanner_session::requests::{Meeting, Request, Requester, Responder, Room, Shelf};
use lanner_step::Party;
use lanner_store::{Limits, Pairing, PairingId, Secret, Stock};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;
use lanner_wire::{Channel, ChannelError, Refusal};
use tempfile::TempDir;

use crate::common::{in_rings_of, network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[72, 4]), ("b2", &[4])];

/// A model, inputs and their labels, and both parties' directories.
struct World {
    network: Network,
    plan: Plan,
    inputs: Vec<Vec<i64>>,
    labels: Vec<Outcome>,
    root: TempDir,
}

/// What a party brings to a session.
struct Brings {
    stock: Option<Arc<Stock>>,
    model: [u8; 32],
    /// The client's peer; the server's client certificate.
    who: &'static str,
    /// The server's.
    room: Room,
}

const MODEL: [u8; 32] = [5; 32];

impl World {
    fn new() -> Self {
        Self::of(Mode::Cheetah(Rounding::Exact))
    }

    fn of(mode: Mode) -> Self {
        let options = in_rings_of(mode);
        let (network, samples) = network(JSON, &SHAPES, 36, &options);
        let plan = plan(network.public(), Policy::Label, mode).unwrap();
        let inputs: Vec<_> =
            samples.iter().map(|sample| network.public().input().quantize(sample).unwrap()).collect();
        let executor = FixedExecutor::new(&network).unwrap();
        let labels = inputs.iter().map(|input| Outcome::Label(executor.run(input).unwrap().label()));
        Self { labels: labels.collect(), plan, inputs, network, root: tempfile::tempdir().unwrap() }
    }

    fn directory(&self, party: Party) -> PathBuf {
        self.root.path().join(format!("{party:?}"))
    }

    /// A stock as it is on disk: what a party has that restarts.
    fn stock(&self, party: Party) -> Stock {
        Stock::new(self.directory(party), party, Limits::default())
    }

    fn held(&self) -> [u64; 2] {
        PARTIES.map(|party| self.stock(party).held().unwrap().predictions)
    }

    /// What both bring who remember everything.
    fn bring(&self) -> [Brings; 2] {
        PARTIES.map(|party| Brings {
            stock: Some(Arc::new(self.stock(party))),
            model: MODEL,
            who: "peer",
            room: Room::MOST,
        })
    }

    /// One session between parties that are made anew, which ends well; its number makes its transcript.
    fn session<T>(
        &self,
        number: u8,
        [client, server]: [Brings; 2],
        ask: impl FnOnce(&mut Requester, &mut dyn Channel) -> T,
    ) -> T {
        let mut channels = memory::pair();
        let shelf = |brings: Brings, certificate: Option<String>| {
            let pairing = Pairing {
                id: PairingId::from_bytes([number; 16]),
                secret: Secret([number; 32]),
                model: brings.model,
                model_name: "digits".into(),
                peer: brings.who.into(),
                certificate,
            };
            let meeting = Meeting { transcript: [number; 32], challenge: [number; 32], pairing };
            brings.stock.map(|stock| Shelf::new(stock, meeting))
        };
        let (certificate, room) = (Some(server.who.to_owned()), server.room);
        let (at_client, at_server) = (shelf(client, None), shelf(server, certificate));
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let model = Arc::new(ServedModel::new(&self.network, &self.plan).unwrap());
                let channel = &mut channels.1;
                let mut service = Responder::new(model, rng(2 * number));
                if let Some(shelf) = at_server {
                    service = service.with_shelf(shelf);
                }
                loop {
                    match Responder::receive(channel).unwrap() {
                        Request::End => break,
                        request => service.answer_within(channel, request, room).unwrap(),
                    }
                }
            });
            let plan = Arc::new(ClientPlan::new(self.network.public(), &self.plan).unwrap());
            let channel = &mut channels.0;
            let mut requester = Requester::new(plan, rng(2 * number + 1));
            if let Some(shelf) = at_client {
                requester = requester.with_shelf(shelf);
            }
            let answer = ask(&mut requester, channel);
            requester.end(channel).unwrap();
            serving.join().unwrap();
            answer
        })
    }

    /// Keeps the material of a given number of predictions in one session; what its set-up sent.
    fn keep(&self, number: u8, brings: [Brings; 2], count: usize) -> u64 {
        self.session(number, brings, |requester, channel| {
            for _ in 0..count {
                let costs = requester.keep(channel).unwrap();
                assert!(costs.iter().any(|step| step.traffic.sent > 0));
            }
            assert!(requester.stock().unwrap() >= count);
            requester.setup().traffic.sent
        })
    }

    /// Predicts with kept material and no set-up, if there is any.
    fn predict_kept(&self, requester: &mut Requester, channel: &mut dyn Channel, sample: usize) -> bool {
        match requester.predict_kept(channel, &self.inputs[sample]).unwrap() {
            Some((label, costs)) => {
                assert_eq!(label, self.labels[sample]);
                assert!(costs.iter().any(|step| step.traffic.sent > 0));
                true
            }
            None => false,
        }
    }

    /// A session is of use: it predicts with material of its own.
    fn check_usable(&self, requester: &mut Requester, channel: &mut dyn Channel) {
        let (label, _) = requester.predict(channel, &self.inputs[0]).unwrap();
        assert_eq!(label, self.labels[0]);
    }
}

const PARTIES: [Party; 2] = [Party::Client, Party::Server];

fn is_refused<T>(result: &Result<T, ExecutionError>) -> bool {
    matches!(result, Err(ExecutionError::Channel(ChannelError::Refused(Refusal::Material))))
}

#[test]
fn what_was_kept_serves_once_after_both_have_restarted() {
    let modes =
        [Mode::Gazelle, Mode::Falcon, Mode::Cheetah(Rounding::Exact), Mode::Tabula(tabula::Rounding::Exact)];
    for world in modes.map(World::of) {
        world.keep(1, world.bring(), 2);
        assert_eq!(world.held(), [2, 2]);
        world.session(2, world.bring(), |requester, channel| {
            assert!(requester.resume(channel).unwrap());
            assert_eq!(requester.stock().unwrap(), 2);
            assert!(world.predict_kept(requester, channel, 1));
            assert_eq!(requester.setup().traffic.sent, 0, "no set-up");
            world.check_usable(requester, channel);
            assert!(world.predict_kept(requester, channel, 2));
            assert!(!world.predict_kept(requester, channel, 3));
        });
        assert_eq!(world.held(), [0, 0]);
        world.session(3, world.bring(), |requester, channel| {
            assert!(requester.resume(channel).unwrap());
            assert!(!world.predict_kept(requester, channel, 0));
        });
    }
}

#[test]
fn a_pairing_keeps_the_keys() {
    for party in PARTIES {
        let world = World::of(Mode::Gazelle);
        let first = world.keep(1, world.bring(), 1);
        let second = world.keep(2, world.bring(), 1);
        assert!(second < first / 10, "{second} of {first} bytes");
        // New keys where either side's are damaged.
        for entry in fs::read_dir(world.directory(party).join("material")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_str().unwrap().contains("keys") {
                fs::write(path, b"else").unwrap();
            }
        }
        assert_eq!(world.keep(3, world.bring(), 1), first);
        assert_eq!(world.held(), [3, 3]);
        world.session(9, world.bring(), |requester, channel| {
            requester.resume(channel).unwrap();
            assert!((0..3).all(|sample| world.predict_kept(requester, channel, sample)));
        });
    }
}

/// Each piece that a client tries is gone: one whose server cannot use what it keeps tries no other.
#[test]
fn a_server_whose_disk_fails_costs_one_piece() {
    let world = World::new();
    world.keep(1, world.bring(), 3);
    world.session(2, world.bring(), |requester, channel| {
        assert!(requester.resume(channel).unwrap());
        let index = world.directory(Party::Server).join("material/index");
        for aside in ["index-wal", "index-shm"] {
            let _ = fs::remove_file(index.with_file_name(aside));
        }
        fs::write(&index, b"no index").unwrap();
        assert!(!world.predict_kept(requester, channel, 0));
        assert_eq!(requester.stock().unwrap(), 2);
        assert!(!world.predict_kept(requester, channel, 0));
        assert_eq!(requester.stock().unwrap(), 2);
        world.check_usable(requester, channel);
    });
    assert_eq!(world.stock(Party::Client).held().unwrap().predictions, 2);
}

#[test]
fn a_server_without_memory_for_a_whole_prediction_makes_none_and_uses_none() {
    let world = World::new();
    world.keep(1, world.bring(), 3);
    let [client, server] = world.bring();
    let small = Brings { room: Room { whole: 0, ..Room::MOST }, ..server };
    world.session(2, [client, small], |requester, channel| {
        assert!(requester.resume(channel).unwrap());
        // One piece is what it costs to find out.
        assert!((0..2).all(|sample| !world.predict_kept(requester, channel, sample)));
        assert!(is_refused(&requester.keep(channel)));
        let (label, _) = requester.predict_unprepared(channel, &world.inputs[0]).unwrap();
        assert_eq!(label, world.labels[0]);
    });
    assert_eq!(world.held(), [2, 3]);
    // With memory, the others serve.
    world.session(3, world.bring(), |requester, channel| {
        assert!(requester.resume(channel).unwrap());
        assert!((0..2).all(|sample| world.predict_kept(requester, channel, sample)));
    });
}

#[test]
fn a_server_without_memory_for_a_whole_prediction_says_what_it_takes() {
    let world = World::new();
    let model = Arc::new(ServedModel::new(&world.network, &world.plan).unwrap());
    let material = model.memory().server_material;
    let room = Room { whole: material - 1, ..Room::MOST };
    let mut channels = memory::pair();
    let prepare = |room| {
        let mut service = Responder::new(Arc::clone(&model), rng(1));
        service.answer_within(&mut channels.1, Request::Prepare, room).unwrap_err()
    };
    let [refused, out_of_turn] = [room, Room { whole: material, ..room }].map(prepare);
    let is_said = |most| matches!(refused, ExecutionError::TooMuchAhead { bytes, most: told } if bytes == material && told == most);
    assert!(is_said(material - 1), "{refused}");
    assert!(matches!(out_of_turn, ExecutionError::Channel(ChannelError::Malformed { .. })), "{out_of_turn}");
}

#[test]
fn damaged_material_costs_its_own_prediction() {
    for party in PARTIES {
        let world = World::new();
        world.keep(1, world.bring(), 3);
        let pairing = PairingId::from_bytes([1; 16]);
        let first = world.stock(party).available(pairing).unwrap()[0];
        let name = format!("{}-material-{first}", if party == Party::Client { "client" } else { "server" });
        fs::write(world.directory(party).join("material").join(name), b"else").unwrap();
        world.session(2, world.bring(), |requester, channel| {
            assert!(requester.resume(channel).unwrap());
            assert!((0..2).all(|sample| world.predict_kept(requester, channel, sample)));
            assert!(!world.predict_kept(requester, channel, 0));
        });
    }
}

#[test]
fn what_one_party_took_before_it_died_serves_nobody() {
    let world = World::new();
    world.keep(1, world.bring(), 3);
    let pairing = PairingId::from_bytes([1; 16]);
    // The server dies with the first, the client with the second, before a byte is sent.
    let [client, server] = PARTIES.map(|party| world.stock(party));
    let kept = client.available(pairing).unwrap();
    drop((server.take(pairing, kept[0]).unwrap(), client.take(pairing, kept[1]).unwrap()));
    world.session(2, world.bring(), |requester, channel| {
        assert!(requester.resume(channel).unwrap());
        assert!(world.predict_kept(requester, channel, 0), "the third");
        assert!(!world.predict_kept(requester, channel, 0));
        world.check_usable(requester, channel);
    });
    // The server's copy of the second waits for its expiry, or for its pairing's end.
    assert_eq!(world.held(), [0, 1]);
}

#[test]
fn a_name_is_given_once() {
    let world = World::new();
    world.keep(1, world.bring(), 1);
    // The same transcript again, which no handshake gives.
    world.session(1, world.bring(), |requester, channel| {
        assert!(is_refused(&requester.keep(channel)));
        world.check_usable(requester, channel);
    });
}

#[test]
fn who_has_no_stock_keeps_nothing() {
    let world = World::new();
    let [client, server] = world.bring();
    world.session(1, [Brings { stock: None, ..client }, server], |requester, channel| {
        assert!(matches!(requester.keep(channel), Err(ExecutionError::NoStore)));
        world.check_usable(requester, channel);
    });
    let [client, server] = world.bring();
    world.session(2, [client, Brings { stock: None, ..server }], |requester, channel| {
        assert!(is_refused(&requester.keep(channel)));
        world.check_usable(requester, channel);
    });
    // A client that remembers meets a server that does not.
    world.keep(3, world.bring(), 1);
    let [client, server] = world.bring();
    world.session(4, [client, Brings { stock: None, ..server }], |requester, channel| {
        assert!(!requester.resume(channel).unwrap());
        assert!(!world.predict_kept(requester, channel, 0));
        world.check_usable(requester, channel);
    });
    assert_eq!(world.held(), [1, 1], "a replica may know it still");
}

#[test]
fn a_full_stock_refuses_and_the_session_goes_on() {
    let world = World::new();
    let [client, server] = world.bring();
    world.keep(1, [client, server], 1);
    let entry = &world.stock(Party::Server).entries().unwrap()[0];
    let limits = Limits { bytes: entry.bytes + entry.bytes / 2, ..Limits::default() };
    let [client, server] = world.bring();
    let full = Some(Arc::new(Stock::new(world.directory(Party::Server), Party::Server, limits)));
    world.session(2, [client, Brings { stock: full, ..server }], |requester, channel| {
        assert!(requester.resume(channel).unwrap());
        assert!(is_refused(&requester.keep(channel)));
        assert!(world.predict_kept(requester, channel, 1));
        requester.keep(channel).unwrap();
    });
}

#[test]
fn a_pairing_is_of_one_model_peer_and_certificate() {
    let world = World::new();
    world.keep(1, world.bring(), 1);
    let other: [fn([Brings; 2]) -> [Brings; 2]; 4] = [
        |[client, server]| [Brings { model: [6; 32], ..client }, server],
        |[client, server]| [client, Brings { model: [6; 32], ..server }],
        |[client, server]| [Brings { who: "another", ..client }, server],
        |[client, server]| [client, Brings { who: "another", ..server }],
    ];
    for (number, change) in (2..).zip(other) {
        world.session(number, change(world.bring()), |requester, channel| {
            assert!(!requester.resume(channel).unwrap(), "{number}");
            world.check_usable(requester, channel);
        });
    }
    assert_eq!(world.held(), [1, 1]);
}

#[test]
fn who_does_not_know_the_secret_has_no_pairing() {
    let world = World::new();
    world.keep(1, world.bring(), 1);
    let pairing = PairingId::from_bytes([1; 16]);
    // A stranger that knows the name and has material of its own under it: as client, and as server.
    for (number, party) in (2..).zip(PARTIES) {
        let stranger = tempfile::tempdir().unwrap();
        let stock = Stock::new(stranger.path().join("state"), party, Limits::default());
        let certificate = (party == Party::Server).then(|| "peer".to_owned());
        let (model_name, peer) = ("digits".to_owned(), "peer".to_owned());
        let forged =
            Pairing { id: pairing, secret: Secret([9; 32]), model: MODEL, model_name, peer, certificate };
        stock.pair(&forged, None).unwrap();
        let mut brings = world.bring();
        brings[party as usize].stock = Some(Arc::new(stock));
        world.session(number, brings, |requester, channel| {
            assert!(!requester.resume(channel).unwrap());
            assert!(!world.predict_kept(requester, channel, 0));
            world.check_usable(requester, channel);
        });
    }
    assert_eq!(world.held(), [1, 1]);
}

#[test]
fn a_revoked_pairing_is_made_anew() {
    for party in PARTIES {
        let world = World::new();
        world.keep(1, world.bring(), 1);
        assert!(world.stock(party).revoke(PairingId::from_bytes([1; 16])).unwrap());
        world.session(2, world.bring(), |requester, channel| {
            assert!(!requester.resume(channel).unwrap());
            assert!(!world.predict_kept(requester, channel, 0));
            requester.keep(channel).unwrap();
            assert!(world.predict_kept(requester, channel, 1));
        });
    }
}

#[test]
fn an_input_of_another_length_costs_no_material() {
    let world = World::new();
    world.keep(1, world.bring(), 1);
    world.session(2, world.bring(), |requester, channel| {
        requester.resume(channel).unwrap();
        let error = requester.predict_kept(channel, &[1, 2, 3]).err().unwrap();
        assert!(matches!(error, ExecutionError::Mismatch { .. }), "{error}");
        assert!(world.predict_kept(requester, channel, 0));
    });
}
