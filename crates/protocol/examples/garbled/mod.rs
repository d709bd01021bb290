//! `ReLU` with its rescale by garbled circuits, measured as `tabula_bench` measures lookups.

use std::time::Instant;

use lanner_gc::library::signed_bound;
use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{Built, EvaluationSession, Function, GarblingSession, Party, Windows};
use lanner_yao::{ClientLayer, Layer, ServerLayer};

use crate::queue::{Failure, Queue, both};
use crate::{Measured, Played};

/// `values` values of `bits` bits, of which `dropped` go, to the ring of `to` bits.
pub(crate) fn measure(
    (bits, dropped, to): (u32, u32, u32),
    values: usize,
    repeats: usize,
) -> Result<Measured, Failure> {
    let (from, to) = (Ring::Pow2(bits), Ring::Pow2(to));
    let function = Function { relu: true, shift: dropped, ..Function::IDENTITY };
    let layer = Layer::new(function, &Windows::each(values), from, to)?;
    let most = signed_bound(from, dropped)? as i64;
    let secrets: Vec<i64> = (0..values as i64).map(|i| i * 7919 % (2 * most - 1) - most + 1).collect();
    let play = |channel: &mut Queue, party: Party| -> Result<Played, Failure> {
        let rng = &mut Prg::new(Seed::from_bytes([100 + party as u8; 16]));
        // Known to its party before the input is, as the garbler's is.
        let masks = Share::random(from, values, &mut Prg::new(Seed::from_bytes([1; 16])));
        match party {
            Party::Client => {
                evaluate(channel, &layer, &Share::embed(from, &secrets).sub(&masks)?, repeats, rng)
            }
            Party::Server => garble(channel, &layer, &masks, repeats, rng),
        }
    };
    let [client, server] = both(play)?;
    let half = (1_i64 << dropped) / 2;
    let expected: Vec<i64> = secrets.iter().map(|x| ((x + half) >> dropped).max(0)).collect();
    for (client, server) in client.results.iter().zip(&server.results) {
        if client.reveal(server)? != expected {
            return Err("the result of the circuits is wrong".into());
        }
    }
    let (offline, online, memory) = (layer.offline_cost()?, layer.online_cost(), layer.memory()?);
    let held = [memory.client_material, memory.server_material];
    Ok(Measured::of_one(values, client.times, [offline.request.then(offline.answer), online], held))
}

fn evaluate(
    channel: &mut Queue,
    layer: &Layer,
    share: &Share,
    repeats: usize,
    rng: &mut Prg,
) -> Result<Played, Failure> {
    let mut session = EvaluationSession::setup(channel, rng)?;
    let layer = ClientLayer::new(layer.clone());
    let mut played = Played::default();
    for _ in 0..repeats {
        let start = Instant::now();
        let request = layer.request(channel, &mut session)?;
        let material = layer.receive(channel, &session, request)?;
        played.times[0].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        played.results.push(layer.online(channel, material, share)?);
        played.times[1].push(start.elapsed().as_secs_f64());
    }
    Ok(played)
}

fn garble(
    channel: &mut Queue,
    layer: &Layer,
    share: &Share,
    repeats: usize,
    rng: &mut Prg,
) -> Result<Played, Failure> {
    let mut session = GarblingSession::setup(channel, rng)?;
    let layer = ServerLayer::new(layer.clone());
    let mut played = Played::default();
    for _ in 0..repeats {
        let material = layer.offline(channel, &mut session, share, rng)?;
        played.results.push(layer.online(channel, material)?);
    }
    Ok(played)
}
