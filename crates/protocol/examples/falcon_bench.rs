//! Times frequency-domain layers; `cargo run -p lanner-protocol --release --example falcon_bench [-- REPEATS]`.
//!
//! One thread plays both parties in turn, so that their times add up. Results are checked outside the clock. Medians in
//! milliseconds. "reply" is the server's time from the last input ciphertext's bytes, still to be decoded, to its last reply's.

mod queue;

use std::error::Error;
use std::time::Instant;

use lanner_bfv::Parameters;
use lanner_primitives::{Prg, Seed};
use lanner_protocol::linear::falcon::{
    ClientLayer, Packing, ServerLayer, Variant, cheapest, choices, offline_cost, online_cost,
};
use lanner_protocol::linear::keys::{receive_keys, send_keys};
use lanner_protocol::linear::{Convolution, Set, Sets};
use lanner_share::{Ring, Share};
use queue::Queue;

fn main() -> Result<(), Box<dyn Error>> {
    let repeats = std::env::args().nth(1).map_or(Ok(15), |repeats| repeats.parse())?;
    println!("{repeats} repeats; medians in milliseconds; KiB both ways");
    println!("{:74} {:>20} {:>33} {:>17}", "", "offline", "online", "KiB");
    println!(
        "{:<22} {:>8} {:<3} {:<18} {:>4} {:>4} {:>5} {:>10} {:>9} {:>10} {:>10} {:>10} {:>8} {:>8}",
        "layer",
        "p",
        "set",
        "variant",
        "in",
        "out",
        "mul",
        "client",
        "server",
        "client",
        "server",
        "reply",
        "offline",
        "online"
    );
    let convolution = |channels: [usize; 2], side, kernel, pad| Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image: [side; 2],
        kernel: [kernel; 2],
        strides: [1; 2],
        pads: [pad; 4],
        dilations: [1, 1],
        groups: 1,
    };
    let layers = [
        ("conv 28x28x1 5x5x5", convolution([1, 5], 28, 5, 0)),
        ("conv 16x16x128 3x3x128", convolution([128, 128], 16, 3, 1)),
        ("fc 2048 -> 1", Convolution::fully_connected(2048, 1)),
        ("fc 1024 -> 16", Convolution::fully_connected(1024, 16)),
    ];
    let sets = Sets::new()?;
    for (name, shape) in layers {
        for prime in [1_032_193, 33_538_049] {
            let best = cheapest(&shape, prime, &sets)?;
            let parameters = sets.get(best.set);
            let run = |variant| {
                let packing = Packing::new(&shape, prime, parameters.degree(), variant)?;
                measure(name, &packing, best.set, parameters, repeats)
            };
            run(best.variant)?;
            // The paper's ways: every product on its own, and one output for each filter.
            for choice in choices(&shape, prime, &sets)? {
                let plain = matches!(choice.variant, Variant::Literal | Variant::Folded { copies: 1 });
                let other = choice.set == best.set && choice.variant != best.variant;
                if plain && other && choice.operations.output_ciphertexts <= 256 {
                    run(choice.variant)?;
                }
            }
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    packing: &Packing,
    set: Set,
    parameters: &Parameters,
    repeats: usize,
) -> Result<(), Box<dyn Error>> {
    let (shape, prime) = (packing.shape(), packing.prime());
    let mut rng = Prg::new(Seed::from_bytes([1; 16]));
    let weights: Vec<i64> = (0..shape.weights() as i64).map(|i| i * 7919 % 15 - 7).collect();
    let bias: Vec<i64> = (0..shape.outputs()? as i64).map(|i| i % 100 - 50).collect();
    let input: Vec<i64> = (0..shape.inputs() as i64).map(|i| i * 31 % 16).collect();
    let truth = shape.apply(&weights, &input)?;
    let (mut at_client, mut at_server) = Queue::pair();
    let key = send_keys(&mut at_client, parameters, &[], &mut rng)?;
    let public = receive_keys(&mut at_server, parameters, &[])?.public;
    let client = ClientLayer::new(packing, parameters)?;
    let server = ServerLayer::new(packing, parameters, &weights, &bias)?;
    let ring = Ring::Prime(prime);
    let mut times: [Vec<f64>; 5] = Default::default();
    for repeat in 0..repeats {
        let server_share = Share::random(ring, input.len(), &mut rng);
        let client_share = Share::embed(ring, &input).sub(&server_share)?;
        let mut clock = Instant::now();
        let mut lap = |part: usize| {
            times[part].resize(repeat + 1, 0.0);
            times[part][repeat] += clock.elapsed().as_secs_f64() * 1e3;
            clock = Instant::now();
        };
        let request = client.request(&mut at_client, &key, &mut rng)?;
        lap(0);
        let server_material = server.offline(&mut at_server, &public, &mut rng)?;
        lap(1);
        let client_material = client.receive(&mut at_client, &key, request)?;
        lap(0);
        let pending = client.send(&mut at_client, client_material, &client_share)?;
        lap(2);
        let server_share = server.online(&mut at_server, server_material, &server_share)?;
        let reply = at_server.received.elapsed().as_secs_f64() * 1e3;
        lap(3);
        let client_share = client.finish(&mut at_client, pending)?;
        lap(2);
        times[4].push(reply);
        let got = server_share.reveal(&client_share)?;
        let truth = truth.iter().zip(&bias).map(|(y, b)| ring.signed(ring.embed(y + b)));
        if !got.into_iter().eq(truth) {
            return Err(format!("{name}: the result is wrong").into());
        }
    }
    let [client_offline, server_offline, client_online, server_online, reply] = times.map(median);
    let operations = packing.operations();
    let offline = offline_cost(packing, parameters)?;
    println!(
        "{name:<22} {prime:>8} {:<3} {:<18} {:>4} {:>4} {:>5} {client_offline:>10.3} {server_offline:>9.3} {client_online:>10.3} {server_online:>10.3} {reply:>10.3} {:>8.0} {:>8.0}",
        format!("{set:?}"),
        variant(packing.variant()),
        operations.input_ciphertexts,
        operations.output_ciphertexts,
        operations.multiplications,
        offline.request.then(offline.answer).bytes() as f64 / 1024.0,
        online_cost(packing, parameters)?.bytes() as f64 / 1024.0,
    );
    Ok(())
}

fn variant(variant: Variant) -> String {
    match variant {
        Variant::Folded { copies } => format!("folded, {copies} copies"),
        _ => "literal".to_owned(),
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
