//! Times the parts of a packed layer; `cargo run -p lanner-protocol --release --example layer_bench [-- REPEATS]`.
//!
//! One thread plays both parties in turn, so that their times add up. Results are checked outside the clock.
//! Medians in milliseconds.

mod queue;

use std::error::Error;
use std::time::Instant;

use lanner_bfv::Parameters;
use lanner_primitives::{Prg, Seed};
use lanner_protocol::linear::Convolution;
use lanner_protocol::linear::gazelle::packing::{Packing, Rotation};
use lanner_protocol::linear::gazelle::{
    ClientLayer, ServerLayer, galois_element, parameters, receive_keys, send_keys,
};
use lanner_share::{Ring, Share};
use queue::Queue;

const PRIME: u64 = 33_538_049;

fn main() -> Result<(), Box<dyn Error>> {
    let repeats = std::env::args().nth(1).map_or(Ok(15), |repeats| repeats.parse())?;
    println!("p = {PRIME}, {repeats} repeats; medians in milliseconds");
    println!("{:77} {:>19} {:>19}", "", "offline", "online");
    println!(
        "{:<24} {:<28} {:>5} {:>5} {:>5} {:>5} {:>9} {:>9} {:>9} {:>9}",
        "layer", "kernel", "keys", "hoist", "rot", "mul", "client", "server", "client", "server"
    );
    let parameters = parameters()?;
    let convolution = |channels: [usize; 2], side, kernel, stride| Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image: [side; 2],
        kernel: [kernel; 2],
        strides: [stride; 2],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    };
    let layers = [
        ("conv 28x28x1 5x5 -> 5", convolution([1, 5], 28, 5, 1)),
        ("conv 28x28x1 5x5/2 -> 5", convolution([1, 5], 28, 5, 2)),
        ("conv 28x28x1 5x5 -> 16", convolution([1, 16], 28, 5, 1)),
        ("conv 12x12x16 5x5 -> 16", convolution([16, 16], 12, 5, 1)),
        ("conv 32x32x32 3x3 -> 32", Convolution { pads: [1; 4], ..convolution([32, 32], 32, 3, 1) }),
        (
            "depthwise 32x32x32 3x3",
            Convolution { pads: [1; 4], groups: 32, ..convolution([32, 32], 32, 3, 1) },
        ),
        ("fc 2048 -> 1", Convolution::fully_connected(2048, 1)),
        ("fc 1024 -> 128", Convolution::fully_connected(1024, 128)),
        ("fc 1024 -> 16", Convolution::fully_connected(1024, 16)),
        ("fc 256 -> 100", Convolution::fully_connected(256, 100)),
        ("fc 128 -> 16", Convolution::fully_connected(128, 16)),
    ];
    for (name, shape) in layers {
        for packing in Packing::choices(&shape, parameters.degree())? {
            let few = packing.keys().len() <= 64 && packing.operations().output_ciphertexts <= 8;
            if few && packing.multipliers() <= 2048 {
                measure(name, &packing, &parameters, repeats)?;
            }
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    packing: &Packing,
    parameters: &Parameters,
    repeats: usize,
) -> Result<(), Box<dyn Error>> {
    let shape = packing.shape();
    let mut rng = Prg::new(Seed::from_bytes([1; 16]));
    let weights: Vec<i64> = (0..shape.weights() as i64).map(|i| i * 7919 % 255 - 127).collect();
    let bias: Vec<i64> = (0..shape.outputs()? as i64).map(|i| i % 100 - 50).collect();
    let input: Vec<i64> = (0..shape.inputs() as i64).map(|i| i * 31 % 256).collect();
    let truth = shape.apply(&weights, &input)?;

    let rotations: Vec<Rotation> = packing.keys().into_iter().collect();
    let elements = rotations.iter().map(|rotation| galois_element(*rotation, parameters.degree()));
    let elements = elements.collect::<Result<Vec<_>, _>>()?;
    let (mut at_client, mut at_server) = Queue::pair();
    let key = send_keys(&mut at_client, parameters, &elements, &mut rng)?;
    let keys = receive_keys(&mut at_server, parameters, &elements)?;
    let client = ClientLayer::new(packing, parameters, PRIME)?;
    let server = ServerLayer::new(packing.clone(), parameters, PRIME, &weights, &bias)?;
    let ring = Ring::Prime(PRIME);
    let mut times: [Vec<f64>; 4] = Default::default();
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
        let server_material = server.offline(&mut at_server, &keys, &mut rng)?;
        lap(1);
        let client_material = client.receive(&mut at_client, &key, request)?;
        lap(0);
        let pending = client.send(&mut at_client, client_material, &client_share)?;
        lap(2);
        let server_share = server.online(&mut at_server, &keys, server_material, &server_share)?;
        lap(3);
        let client_share = client.finish(&mut at_client, pending)?;
        lap(2);
        let got = server_share.reveal(&client_share)?;
        if got.iter().zip(truth.iter().zip(&bias)).any(|(got, (y, b))| *got != y + b) {
            return Err(format!("{name}: the result is wrong").into());
        }
    }
    let [client_offline, server_offline, client_online, server_online] = times.map(median);
    let operations = packing.operations();
    println!(
        "{name:<24} {:<28} {:>5} {:>5} {:>5} {:>5} {client_offline:>9.2} {server_offline:>9.2} {client_online:>9.2} {server_online:>9.2}",
        format!("{} {}", packing.kernel().name(), packing.baby()),
        elements.len(),
        operations.hoisted_rotations,
        operations.rotations,
        operations.multiplications,
    );
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
