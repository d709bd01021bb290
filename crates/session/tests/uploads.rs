//! Keys of one's own: made once, uploaded once, used in every session and with every model like it.

use std::path::PathBuf;
use std::sync::Arc;

use lanner_net::memory;
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Mode, Plan, plan};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::{
    ClientPlan, ClientSession, ExecutionError, Outcome, ServedModel, ServerSession,
};
use lanner_session::requests::{OwnKeys, Request, Requester, Responder};
use lanner_store::Uploads;
use lanner_tabula as tabula;
use lanner_transfers::Rounding;
use lanner_wire::{Channel, ChannelError, Kind, Refusal};
use tempfile::TempDir;

use crate::common::{in_rings_of, network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[72, 4]), ("b2", &[4])];

const MODES: [Mode; 4] =
    [Mode::Gazelle, Mode::Falcon, Mode::Cheetah(Rounding::Exact), Mode::Tabula(tabula::Rounding::Exact)];

const REQUEST: Kind = Kind(0x20);
const READY: Kind = Kind(0x22);
const HASH: Kind = Kind(0x25);
const HELD: Kind = Kind(0x26);
const CHUNK: Kind = Kind(0x27);
const SET_UP_UPLOADED: u8 = 10;
const MIB: usize = 1 << 20;

/// A model, and a server's state directory.
struct World {
    network: Network,
    plan: Plan,
    input: Vec<i64>,
    label: Outcome,
    root: TempDir,
}

/// Keys as they are in files.
struct Files {
    keys: Vec<u8>,
    upload: Vec<u8>,
}

impl Files {
    fn keys(&self) -> OwnKeys {
        OwnKeys::from_bytes(&self.keys).unwrap()
    }
}

impl World {
    fn of(mode: Mode) -> Self {
        let options = in_rings_of(mode);
        let (network, samples) = network(JSON, &SHAPES, 36, &options);
        let plan = plan(network.public(), Policy::Label, mode).unwrap();
        let input = network.public().input().quantize(&samples[0]).unwrap();
        let label = Outcome::Label(FixedExecutor::new(&network).unwrap().run(&input).unwrap().label());
        Self { network, plan, input, label, root: tempfile::tempdir().unwrap() }
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn uploads(&self) -> Uploads {
        Uploads::new(self.state(), 1 << 30)
    }

    fn client_plan(&self) -> Arc<ClientPlan> {
        Arc::new(ClientPlan::new(self.network.public(), &self.plan).unwrap())
    }

    fn files(&self) -> Files {
        let (keys, upload) = OwnKeys::generate(&self.client_plan(), &mut rng(90)).unwrap();
        Files { keys: keys.to_bytes().to_vec(), upload }
    }

    /// A session with a server that keeps these uploads, if any, until its client is done; how the server ended.
    fn session<T>(
        &self,
        uploads: Option<Uploads>,
        ask: impl FnOnce(&mut memory::MemoryChannel) -> T,
    ) -> (T, Result<(), ExecutionError>) {
        let (mut client, mut server) = memory::pair();
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let model = Arc::new(ServedModel::new(&self.network, &self.plan).unwrap());
                let mut service = Responder::new(model, rng(1));
                if let Some(uploads) = uploads {
                    service = service.with_uploads(Arc::new(uploads));
                }
                loop {
                    match Responder::receive(&mut server)? {
                        Request::End => return Ok(()),
                        request => service.answer(&mut server, request)?,
                    }
                }
            });
            let asked = ask(&mut client);
            drop(client);
            (asked, serving.join().unwrap())
        })
    }

    /// Predicts with keys of one's own; the bytes that the set-up sent.
    fn predict(&self, channel: &mut dyn Channel, files: &Files) -> u64 {
        self.predict_reading(channel, files, Some(files.upload.clone()))
    }

    fn predict_reading(&self, channel: &mut dyn Channel, files: &Files, read: Option<Vec<u8>>) -> u64 {
        let requester = Requester::new(self.client_plan(), rng(2));
        let mut requester = requester.with_keys(files.keys(), move || read.clone()).unwrap();
        let (label, _) = requester.predict(channel, &self.input).unwrap();
        assert_eq!(label, self.label);
        let sent = requester.setup().traffic.sent;
        requester.end(channel).unwrap();
        sent
    }

    /// A whole session; the bytes that its set-up sent.
    fn run(&self, uploads: Option<Uploads>, files: &Files) -> u64 {
        let (sent, ended) = self.session(uploads, |channel| self.predict(channel, files));
        ended.unwrap();
        sent
    }
}

/// Begins an upload by hand; what the server holds of it.
fn begin(channel: &mut dyn Channel, files: &Files) -> usize {
    channel.send(REQUEST, &[SET_UP_UPLOADED]).unwrap();
    channel.send(HASH, files.keys().hash()).unwrap();
    u64::from_le_bytes(channel.receive(HELD, 8).unwrap().try_into().unwrap()) as usize
}

#[test]
fn keys_are_uploaded_once() {
    for world in MODES.map(World::of) {
        let (files, mode) = (world.files(), world.plan.mode);
        let length = files.upload.len() as u64;
        let first = world.run(Some(world.uploads()), &files);
        assert_eq!(world.uploads().held(), length);
        let second = world.run(Some(world.uploads()), &files);
        let chunks = files.upload.len().div_ceil(MIB) as u64;
        assert_eq!(first, second + length + 6 * chunks, "{mode:?}: all of it, and nothing");
        // Without a place for uploads each session has its own.
        assert_eq!(world.run(None, &files), first);
    }
}

#[test]
fn a_session_that_sends_its_keys_has_what_is_uploaded() {
    for world in MODES.map(World::of) {
        let (mut client, mut server) = memory::pair();
        let model = Arc::new(ServedModel::new(&world.network, &world.plan).unwrap());
        let keys = std::thread::scope(|scope| {
            let serving =
                scope.spawn(move || ServerSession::setup(&mut server, model, rng(1)).unwrap().keys());
            // The generator that the keys of the files were made with.
            ClientSession::setup(&mut client, world.client_plan(), rng(90)).unwrap();
            serving.join().unwrap()
        });
        assert!(keys.as_bytes() == world.files().upload);
    }
}

#[test]
fn keys_serve_every_model_of_their_needs_and_no_other() {
    let world = World::of(Mode::Gazelle);
    let files = world.files();
    let plan = |world: &World, policy, mode| {
        let plan = plan(world.network.public(), policy, mode).unwrap();
        ClientPlan::new(world.network.public(), &plan).unwrap()
    };
    files.keys().check(&plan(&world, Policy::Logits, Mode::Gazelle)).unwrap();
    let cheetah = World::of(Mode::Cheetah(Rounding::Exact));
    let refused = Requester::new(cheetah.client_plan(), rng(2)).with_keys(files.keys(), || None);
    let refused = refused.err().unwrap();
    assert!(matches!(refused, ExecutionError::OtherKeys { .. }));
    let said = refused.to_string();
    assert!(
        said.contains("the keys are for parameter set B with") && said.contains("need parameter set"),
        "{said}"
    );
    // Nor other rotations of the same set.
    let shapes: [(&str, &[usize]); 2] = [("w1", &[40, 7]), ("w2", &[7, 3])];
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[40]}],"nodes":[
        {"name":"a","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
        {"name":"relu","op":"Relu","inputs":["a"]},
        {"name":"b","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"b"}"#;
    let (other, _) = network(json, &shapes, 40, &QuantizationOptions::default());
    let other_plan = lanner_plan::plan(other.public(), Policy::Label, Mode::Gazelle).unwrap();
    let other_plan = ClientPlan::new(other.public(), &other_plan).unwrap();
    assert!(matches!(files.keys().check(&other_plan), Err(ExecutionError::OtherKeys { .. })));
}

#[test]
fn an_upload_that_is_lost_or_damaged_is_made_again() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    let files = world.files();
    let truncated = files.upload[1..].to_vec();
    for read in [None, Some(Vec::new()), Some(truncated), Some(vec![0; files.upload.len()])] {
        let (_, ended) = world.session(None, |channel| world.predict_reading(channel, &files, read));
        ended.unwrap();
    }
}

#[test]
fn an_upload_goes_on_after_every_chunk() {
    let world = World::of(Mode::Gazelle);
    let files = world.files();
    let chunks = files.upload.len().div_ceil(MIB);
    assert!(chunks > 2, "{chunks}");
    for cut in 0..=chunks {
        let directory = tempfile::tempdir().unwrap();
        let uploads = || Some(Uploads::new(directory.path().join("state"), 1 << 30));
        let (held, ended) = world.session(uploads(), |channel| {
            let held = begin(channel, &files);
            for chunk in files.upload.chunks(MIB).take(cut) {
                channel.send(CHUNK, chunk).unwrap();
            }
            channel.flush().unwrap();
            held
        });
        assert_eq!(held, 0);
        let lost = matches!(ended.as_ref().unwrap_err().channel(), Some(ChannelError::Disconnected));
        assert!(lost, "{ended:?}");
        let (held, ended) = world.session(uploads(), |channel| begin(channel, &files));
        assert_eq!(held, (cut * MIB).min(files.upload.len()), "cut after {cut}");
        ended.unwrap_err();
        world.run(uploads(), &files);
        assert_eq!(uploads().unwrap().held(), files.upload.len() as u64);
    }
}

#[test]
fn wrong_bytes_are_refused_and_the_session_goes_on() {
    let world = World::of(Mode::Gazelle);
    let files = world.files();
    let mut wrong = files.upload.clone();
    wrong[files.upload.len() / 2] ^= 1;
    let ((), ended) = world.session(Some(world.uploads()), |channel| {
        assert_eq!(begin(channel, &files), 0);
        for chunk in wrong.chunks(MIB) {
            channel.send(CHUNK, chunk).unwrap();
        }
        let heard = channel.receive(READY, 0);
        assert!(matches!(heard, Err(ChannelError::Refused(Refusal::Material))), "{heard:?}");
        assert_eq!(world.uploads().held(), 0, "nothing is kept of it");
        world.predict(channel, &files);
    });
    ended.unwrap();
    // Bytes of the right hash that are no keys.
    let zeros = vec![0xff; files.upload.len()];
    let hash: [u8; 32] =
        sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix(&zeros)).into();
    let held = world.uploads().held();
    let ((), ended) = world.session(Some(world.uploads()), |channel| {
        channel.send(REQUEST, &[SET_UP_UPLOADED]).unwrap();
        channel.send(HASH, &hash).unwrap();
        channel.receive(HELD, 8).unwrap();
        zeros.chunks(MIB).for_each(|chunk| channel.send(CHUNK, chunk).unwrap());
        assert!(matches!(channel.receive(READY, 0), Err(ChannelError::Refused(Refusal::Material))));
        world.predict(channel, &files);
    });
    ended.unwrap();
    assert_eq!(world.uploads().held(), held);
}

#[test]
fn who_spoils_another_s_part_costs_it_one_upload() {
    let world = World::of(Mode::Gazelle);
    let files = world.files();
    let ((), ended) = world.session(Some(world.uploads()), |channel| {
        begin(channel, &files);
        channel.send(CHUNK, &vec![0; MIB]).unwrap();
        channel.flush().unwrap();
    });
    ended.unwrap_err();
    let spoiled = world.run(Some(world.uploads()), &files);
    assert!(spoiled > files.upload.len() as u64, "the keys are sent as without an upload");
    let sent = [(); 2].map(|()| world.run(Some(world.uploads()), &files));
    assert!(sent[0] > files.upload.len() as u64 && sent[1] < sent[0] / 10, "{sent:?}");
}

#[test]
fn lengths_are_those_of_the_plan() {
    let world = World::of(Mode::Gazelle);
    let files = world.files();
    // The client's chunks.
    for length in [0, 1, MIB - 1, MIB + 1] {
        let ((), ended) = world.session(None, |channel| {
            begin(channel, &files);
            channel.send(CHUNK, &vec![0; length]).unwrap();
            channel.flush().unwrap();
        });
        let error = ended.unwrap_err();
        assert!(matches!(error.channel(), Some(ChannelError::Unexpected { .. })), "{error}");
    }
    // What the server says that it holds.
    for held in [files.upload.len() as u64 + 1, u64::MAX] {
        let (mut client, mut server) = memory::pair();
        server.send(HELD, &held.to_le_bytes()).unwrap();
        server.flush().unwrap();
        let requester = Requester::new(world.client_plan(), rng(2));
        let mut requester = requester.with_keys(files.keys(), || None).unwrap();
        let error = requester.set_up(&mut client).unwrap_err();
        assert!(matches!(error.channel(), Some(ChannelError::Malformed { .. })), "{error}");
        assert!(matches!(requester.set_up(&mut client), Err(ExecutionError::Broken)));
    }
}

#[test]
fn a_file_of_keys_is_read_whole_or_not_at_all() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    let Files { keys, .. } = world.files();
    assert!(keys.len() < 300, "{}", keys.len());
    assert_eq!(OwnKeys::from_bytes(&keys).unwrap().to_bytes()[..], keys);
    // A changed version is another release's, as far as can be told.
    let damaged = |bytes: &[u8]| {
        use ExecutionError::{DamagedKeys, KeysVersion};
        matches!(OwnKeys::from_bytes(bytes), Err(DamagedKeys { .. } | KeysVersion { ours: 1, .. }))
    };
    assert!((0..keys.len()).all(|length| damaged(&keys[..length])));
    assert!(damaged(&[&keys[..], &[0]].concat()));
    for place in 0..keys.len() * 8 {
        let mut changed = keys.clone();
        changed[place / 8] ^= 1 << (place % 8);
        assert!(damaged(&changed), "bit {place}");
    }
}
