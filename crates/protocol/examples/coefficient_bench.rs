//! Times coefficient-encoded layers, exact and guarded by turns;
//! `cargo run -p lanner-protocol --release --example coefficient_bench [-- REPEATS [LAYER]]`.
//!
//! One thread plays both parties in turn, so that their times add up. Results are checked outside the clock.
//! Medians in milliseconds.

mod queue;

use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use lanner_coefficient::cheetah::{Accuracy, ClientLayer, Scheme, ServerLayer, Stacked};
use lanner_primitives::{Prg, Ring, Seed, Share, parallel};
use lanner_step::{Answering, Client, Convolution, Inputs, Needs, Server, SetUp, Sets, Step, Value};
use queue::{Queue, median};

const WAYS: [(&str, Accuracy); 2] = [("exact", Accuracy::Exact), ("guarded", Accuracy::Guarded(1))];

fn main() -> Result<(), Box<dyn Error>> {
    parallel::set_threads(1);
    let mut arguments = std::env::args().skip(1);
    let repeats = arguments.next().map_or(Ok(15), |repeats| repeats.parse())?;
    let chosen = arguments.next().unwrap_or_default();
    let same = |channels: [usize; 2], side, kernel: usize, stride| Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image: [side; 2],
        kernel: [kernel; 2],
        strides: [stride; 2],
        pads: [kernel / 2; 4],
        dilations: [1, 1],
        groups: 1,
    };
    println!(
        "{:<26} {:>4} {:<8} {:>5} {:>9} {:>6} | {:>8} {:>8} | {:>8} {:>8} | {:>8} {:>10} {:>9} {:>9}",
        "layer",
        "bits",
        "way",
        "N",
        "in, out",
        "mul",
        "client",
        "server",
        "client",
        "server",
        "total",
        "ahead",
        "up",
        "down"
    );
    for (name, shape, bits) in [
        ("conv 32x32x3 3x3 -> 64", same([3, 64], 32, 3, 1), 27),
        ("conv 32x32x64 3x3 -> 64", same([64, 64], 32, 3, 1), 26),
        ("conv 16x16x64 3x3 -> 64", same([64, 64], 16, 3, 1), 27),
        ("conv 8x8x64 3x3 -> 64", same([64, 64], 8, 3, 1), 27),
        ("conv 8x8x64 1x1 -> 64", same([64, 64], 8, 1, 1), 26),
        ("conv 32x32x16 3x3 -> 16", same([16, 16], 32, 3, 1), 26),
        ("conv 32x32x16 3x3/2 -> 32", same([16, 32], 32, 3, 2), 27),
        ("fc 1024 -> 100", Convolution::fully_connected(1024, 100), 26),
    ] {
        if name.contains(&chosen) {
            measure(name, &shape, bits, repeats)?;
        }
    }
    Ok(())
}

fn shared(share: &Share) -> Inputs {
    Inputs::new(vec![Some(Rc::new(Value::Shared(share.clone())))])
}

fn measure(name: &str, shape: &Convolution, bits: u32, repeats: usize) -> Result<(), Box<dyn Error>> {
    let mut rng = Prg::new(Seed::from_bytes([1; 16]));
    let sets = Sets::new()?;
    let weights: Vec<i64> = (0..shape.weights() as i64).map(|i| i * 7919 % 2047 - 1023).collect();
    let bias: Vec<i64> = (0..shape.outputs()? as i64).map(|i| i % 100 - 50).collect();
    let input: Vec<i64> = (0..shape.inputs() as i64).map(|i| i * 31 % 1024).collect();
    let (ring, truth) = (Ring::Pow2(bits), shape.apply(&weights, &input)?);
    let mut ways = Vec::new();
    for (way, accuracy) in WAYS {
        let (set, scheme) = Scheme::cheapest(&Stacked::try_from(shape)?, bits, accuracy, &sets)?;
        let needs = Needs { keys: Some((set, [].into())), ..Needs::default() };
        let set_up = SetUp::of(&[needs], [0; 2], &sets)?;
        let (mut at_client, mut at_server) = Queue::pair();
        let at_home = Client::set_up(&mut at_client, &set_up, Prg::new(Seed::random(&mut rng)))?;
        let serving = Server::set_up(&mut at_server, &set_up, Prg::new(Seed::random(&mut rng)))?;
        let layers = (
            ClientLayer::new(scheme.clone())?,
            Answering(ServerLayer::new(scheme.clone(), &weights, &bias)?),
        );
        let times: [Vec<f64>; 4] = Default::default();
        ways.push((way, accuracy, scheme, [at_client, at_server], (at_home, serving), layers, times));
    }
    let nothing = Inputs::new(vec![None]);
    for _ in 0..repeats {
        for (_, accuracy, _, [at_client, at_server], (at_home, serving), (client, server), times) in &mut ways
        {
            let server_input = Share::random(ring, input.len(), &mut rng);
            let client_input = Share::embed(ring, &input).sub(&server_input)?;
            let mut clock = Instant::now();
            let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed().as_secs_f64() * 1e3;
            let request = client.request(at_client, at_home)?;
            let mut client_ahead = lap();
            let (prepared, _) = server.prepare(at_server, serving, (), &nothing)?;
            let server_ahead = lap();
            let (material, _) = client.prepare(at_client, at_home, request, &nothing)?;
            client_ahead += lap();
            // A thread of its own: either party sends and receives online.
            let (answer, taken) = std::thread::scope(|scope| {
                let run = scope.spawn(|| {
                    let start = Instant::now();
                    let inputs = shared(&server_input);
                    server.online(at_server, prepared, &inputs).map(|made| (made, start.elapsed()))
                });
                let start = Instant::now();
                let made = client.online(at_client, material, &shared(&client_input))?;
                let client_time = start.elapsed();
                let (server_made, server_time) =
                    run.join().map_err(|_| lanner_step::ProtocolError::Missing("a thread ended early"))??;
                Ok::<_, Box<dyn Error>>(([made, server_made], [client_time, server_time]))
            })?;
            let online = taken.map(|time| time.as_secs_f64() * 1e3);
            for (times, time) in times.iter_mut().zip([client_ahead, server_ahead, online[0], online[1]]) {
                times.push(time);
            }
            let [Value::Shared(client_share), Value::Shared(server_share)] = answer else {
                return Err("a layer's output is shared".into());
            };
            let got = client_share.reveal(&server_share)?;
            let expected = truth.iter().zip(&bias).map(|(y, bias)| y + bias);
            if !got.iter().map(|got| got >> accuracy.guard()).eq(expected) {
                return Err(format!("{name}: the result is wrong").into());
            }
        }
    }
    for (way, _, scheme, _, _, _, times) in ways {
        let packing = scheme.packing();
        let [client_ahead, server_ahead, client_online, server_online] = times.map(median);
        let [inputs, outputs] = packing.ciphertexts();
        println!(
            "{name:<26} {bits:>4} {way:<8} {:>5} {:>9} {:>6} | {client_ahead:>8.2} {server_ahead:>8.2} | {client_online:>8.2} {server_online:>8.2} | {:>8.2} {:>10} {:>9} {:>9}",
            scheme.parameters().degree(),
            format!("{inputs}, {outputs}"),
            packing.products(),
            client_ahead + server_ahead + client_online.max(server_online),
            scheme.offline_cost().answer.bytes(),
            scheme.online_cost().client_bytes(),
            scheme.online_cost().server_bytes(),
        );
    }
    Ok(())
}
