//! Times the parts of a packed layer;
//! `cargo run -p lanner-protocol --release --example layer_bench [-- [--json] REPEATS [LAYER]]`.
//!
//! One thread plays both parties in turn, so that their times add up. Results are checked outside the clock.
//! Medians in milliseconds.

mod queue;

use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use lanner_bfv::Parameters;
use lanner_packed::gazelle::packing::Packing;
use lanner_packed::gazelle::{ClientLayer, ServerLayer, offline_cost, online_cost, parameters};
use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{
    Answering, Client, Convolution, Inputs, KeyUse, Needs, Samples, Server, SetUp, Sets, Step, Value,
    WeightForm,
};
use queue::{Queue, median};

const PRIME: u64 = 33_538_049;
/// Kernels that take more evaluation keys are left out.
const MOST_KEYS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--json");
    let repeats = arguments.next().map_or(Ok(15), |repeats| repeats.parse())?;
    let chosen = arguments.next().unwrap_or_default();
    if !json() {
        print_columns(repeats);
    }
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
    let same = |channels, side, kernel: usize| Convolution {
        pads: [kernel / 2; 4],
        ..convolution(channels, side, kernel, 1)
    };
    let layers = [
        ("fc 2048 -> 1", Convolution::fully_connected(2048, 1)),
        ("fc 1024 -> 128", Convolution::fully_connected(1024, 128)),
        ("fc 1024 -> 16", Convolution::fully_connected(1024, 16)),
        ("fc 128 -> 16", Convolution::fully_connected(128, 16)),
        ("conv 28x28x1 5x5 -> 5", convolution([1, 5], 28, 5, 1)),
        ("conv 16x16x128 1x1 -> 128", same([128, 128], 16, 1)),
        ("conv 16x16x128 3x3 -> 128", same([128, 128], 16, 3)),
        ("conv 32x32x32 3x3 -> 32", same([32, 32], 32, 3)),
        ("conv 28x28x1 5x5/2 -> 5", convolution([1, 5], 28, 5, 2)),
        ("conv 28x28x1 5x5 -> 16", convolution([1, 16], 28, 5, 1)),
        ("conv 12x12x16 5x5 -> 16", convolution([16, 16], 12, 5, 1)),
        ("depthwise 32x32x32 3x3", Convolution { groups: 32, ..same([32, 32], 32, 3) }),
        ("fc 256 -> 100", Convolution::fully_connected(256, 100)),
    ];
    for (name, shape) in layers.iter().filter(|(name, _)| name.contains(&chosen)) {
        for packing in Packing::choices(shape, parameters.degree(), Samples::ONE)? {
            if packing.keys().len() <= MOST_KEYS {
                measure(name, &packing, WeightForm::Evaluation, &parameters, repeats)?;
            }
        }
        // The forms differ by the same work for each product: one layout shows it.
        if let Some(packing) = Packing::choices(shape, parameters.degree(), Samples::ONE)?.last() {
            measure(name, packing, WeightForm::Coefficient, &parameters, repeats)?;
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    packing: &Packing,
    form: WeightForm,
    parameters: &Parameters,
    repeats: usize,
) -> Result<(), Box<dyn Error>> {
    let shape = packing.shape();
    let mut rng = Prg::new(Seed::from_bytes([1; 16]));
    let weights: Vec<i64> = (0..shape.weights() as i64).map(|i| i * 7919 % 255 - 127).collect();
    let bias: Vec<i64> = (0..shape.outputs()? as i64).map(|i| i % 100 - 50).collect();
    let input: Vec<i64> = (0..shape.inputs() as i64).map(|i| i * 31 % 256).collect();
    let truth = shape.apply(&weights, &input)?;

    let uses = packing.keys().into_iter().map(|rotation| (KeyUse::Rotation(rotation), usize::MAX));
    let needs = Needs { keys: parameters.set().map(|set| (set, uses.collect())), ..Needs::default() };
    let set_up = SetUp::of(&[needs], [0; 2], &Sets::new()?)?;
    let (mut at_client, mut at_server) = Queue::pair();
    let mut at_home = Client::set_up(&mut at_client, &set_up, Prg::new(Seed::from_bytes([2; 16])))?;
    let mut serving = Server::set_up(&mut at_server, &set_up, Prg::new(Seed::from_bytes([3; 16])))?;
    let nothing = Inputs::new(vec![None]);
    let client = ClientLayer::new(packing, parameters, PRIME)?;
    let server =
        Answering(ServerLayer::in_form(form, packing.clone(), parameters, PRIME, weights[..].into(), &bias)?);
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
        let request = client.request(&mut at_client, &mut at_home)?;
        lap(0);
        let (server_material, _) = server.prepare(&mut at_server, &mut serving, (), &nothing)?;
        lap(1);
        let (client_material, _) = client.prepare(&mut at_client, &mut at_home, request, &nothing)?;
        lap(0);
        let pending = client.send(&mut at_client, client_material, &client_share)?;
        lap(2);
        let inputs = Inputs::new(vec![Some(Rc::new(Value::Shared(server_share)))]);
        let Value::Shared(server_share) = server.online(&mut at_server, server_material, &inputs)? else {
            return Err("a layer's output is shared".into());
        };
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
    let form_name = if form == WeightForm::Evaluation { "prepared" } else { "compact" };
    if json() {
        println!(
            r#"{{"bench": "layer", "name": "{name}", "kernel": "{}", "baby": {}, "weights": "{form_name}", "keys": {}, "hoisted": {}, "rotations": {}, "products": {}, "client_offline": {client_offline:.4}, "server_offline": {server_offline:.4}, "client_online": {client_online:.4}, "server_online": {server_online:.4}, "repeat": {repeats}}}"#,
            packing.kernel().name(),
            packing.baby(),
            packing.keys().len(),
            operations.hoisted_rotations,
            operations.rotations,
            operations.multiplications,
        );
        return Ok(());
    }
    let offline = offline_cost(packing, parameters, PRIME)?;
    let mega = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{name:<24} {:<24} {form_name:<8} {:>5} {:>5} {:>4} {:>5} {:>7.1} {:>7.1} | {client_offline:>8.2} {server_offline:>8.2} {:>9} | {client_online:>8.2} {server_online:>8.2} {:>8.2} {:>9}",
        format!("{} {}", packing.kernel().name(), packing.baby()),
        packing.keys().len(),
        operations.hoisted_rotations,
        operations.rotations,
        operations.multiplications,
        mega(set_up.cost()?.bytes()),
        mega(ServerLayer::bytes(packing, parameters, PRIME, form)),
        offline.request.beside(offline.answer).bytes(),
        client_online + server_online,
        online_cost(packing, parameters, PRIME)?.bytes(),
    );
    Ok(())
}

fn print_columns(repeats: usize) {
    println!(
        "p = {PRIME}, {repeats} repeats; medians in milliseconds, offline and online of both parties in turn; bytes of one"
    );
    println!("prediction; keys, and weights as the server keeps them, in MB");
    println!(
        "{:<24} {:<24} {:<8} {:>5} {:>5} {:>4} {:>5} {:>7} {:>7} | {:>8} {:>8} {:>9} | {:>8} {:>8} {:>8} {:>9}",
        "layer",
        "kernel",
        "weights",
        "keys",
        "hoist",
        "rot",
        "mul",
        "keys MB",
        "wgts MB",
        "client",
        "server",
        "bytes",
        "client",
        "server",
        "total",
        "bytes"
    );
}

/// Whether the output is for programs.
fn json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}
