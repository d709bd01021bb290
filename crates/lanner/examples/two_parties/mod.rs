//! Runs of one layer by both parties, a thread each, over queues in memory.

use std::error::Error;
use std::time::Instant;

use lanner_net::memory::{self, MemoryChannel};
use lanner_primitives::{Prg, Seed, Share};
use lanner_step::{Party, Transfers, transfer_sets};
use lanner_transfers::Layer;
use lanner_transfers::blocks::Program;
use lanner_wire::Channel;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// What was measured of all runs together.
pub(crate) struct Measured {
    /// The client's milliseconds offline and online, run by run.
    pub(crate) times: [Vec<f64>; 2],
    /// Bytes that both sent in a run, a session's set-up apart.
    pub(crate) bytes: f64,
    /// The outputs of each run.
    pub(crate) outputs: Vec<Vec<i64>>,
}

/// What one party has of it.
struct Half {
    times: [Vec<f64>; 2],
    sent: u64,
    outputs: Vec<Share>,
}

/// A run for each pair of inputs, the client's and the server's.
pub(crate) fn measure<P: Program + Sync>(
    layer: &Layer<P>,
    inputs: &[[Share; 2]],
) -> Result<Measured, Failure> {
    let (mut client, mut server) = memory::pair();
    let (mine, theirs) = std::thread::scope(|scope| -> Result<_, Failure> {
        let serving = scope.spawn(|| party(&mut server, Party::Server, layer, inputs));
        let mine = party(&mut client, Party::Client, layer, inputs)?;
        Ok((mine, serving.join().map_err(|_| "the server failed")??))
    })?;
    let outputs = mine.outputs.iter().zip(&theirs.outputs).map(|(mine, theirs)| mine.reveal(theirs));
    Ok(Measured {
        times: mine.times,
        bytes: (mine.sent + theirs.sent) as f64 / inputs.len() as f64,
        outputs: outputs.collect::<Result<_, _>>()?,
    })
}

fn party<P: Program>(
    end: &mut MemoryChannel,
    me: Party,
    layer: &Layer<P>,
    inputs: &[[Share; 2]],
) -> Result<Half, Failure> {
    let mut rng = Prg::new(Seed::from_bytes([me as u8; 16]));
    let drawn = [Party::Client, Party::Server].map(|party| layer.transfers(party));
    let mut transfers = Transfers::setup(end, me, transfer_sets(drawn), &mut rng)?;
    let before = end.traffic().sent;
    let (mut times, mut outputs) = ([Vec::new(), Vec::new()], Vec::new());
    for [of_client, of_server] in inputs {
        let share = if me == Party::Client { of_client } else { of_server };
        let start = Instant::now();
        let request = layer.request(end, &mut transfers)?;
        let material = layer.prepare(end, &mut transfers, request, &mut rng)?;
        times[0].push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        outputs.push(layer.online(end, me, material, &[share])?);
        times[1].push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Half { times, sent: end.traffic().sent - before, outputs })
}
