//! What published networks cost: keys at set-up, and memory at the server. `--nocapture` prints the figures.

use crate::common;
use std::fmt::Write;

use lanner_network::Policy;
use lanner_plan::{Mode, Plan, plan};

/// The public half of a network, layer by layer, in the smallest ring.
struct Builder {
    input: [usize; 3],
    nodes: String,
    shapes: Vec<[usize; 3]>,
}

const PRIME: u64 = 1_032_193;

impl Builder {
    fn new(input: [usize; 3]) -> Self {
        Self { input, nodes: String::new(), shapes: vec![input] }
    }

    fn push(&mut self, op: &str, inputs: &[usize], shape: [usize; 3], flat: bool) -> usize {
        let separator = if self.nodes.is_empty() { "" } else { "," };
        let (name, count) = (self.shapes.len(), shape.iter().product::<usize>());
        let dimensions = if flat { format!("[{count}]") } else { format!("{shape:?}") };
        write!(
            self.nodes,
            r#"{separator}{{"name":"n{name}","op":{op},"inputs":{inputs:?},"shape":{dimensions},"modulus":{PRIME}}}"#
        )
        .unwrap();
        self.shapes.push(shape);
        name
    }

    fn conv(&mut self, from: usize, channels: usize, kernel: usize, stride: usize, pad: usize) -> usize {
        let [_, height, width] = self.shapes[from];
        let [height, width] = [height, width].map(|side| (side + 2 * pad - kernel) / stride + 1);
        let op = format!(
            r#"{{"Conv2d":{{"out_channels":{channels},"kernel":[{kernel},{kernel}],"strides":[{stride},{stride}],"pads":[{pad},{pad},{pad},{pad}],"dilations":[1,1],"groups":1}}}}"#
        );
        self.push(&op, &[from], [channels, height, width], false)
    }

    fn pool(&mut self, from: usize, size: usize, kind: &str) -> usize {
        let [channels, height, width] = self.shapes[from];
        let op = format!(
            r#"{{"{kind}":{{"kernel":[{size},{size}],"strides":[{size},{size}],"pads":[0,0,0,0]}}}}"#
        );
        self.push(&op, &[from], [channels, height / size, width / size], false)
    }

    fn relu(&mut self, from: usize, flat: bool) -> usize {
        let relu = self.push(r#""Relu""#, &[from], self.shapes[from], flat);
        self.push(r#"{"Rescale":{"shift":8}}"#, &[relu], self.shapes[from], flat)
    }

    fn conv_relu(&mut self, from: usize, channels: usize, kernel: usize) -> usize {
        let conv = self.conv(from, channels, kernel, 1, kernel / 2);
        self.relu(conv, false)
    }

    fn flatten(&mut self, from: usize) -> usize {
        self.push(r#""Reshape""#, &[from], self.shapes[from], true)
    }

    fn linear(&mut self, from: usize, outputs: usize) -> usize {
        self.push(&format!(r#"{{"Linear":{{"outputs":{outputs}}}}}"#), &[from], [outputs, 1, 1], true)
    }

    fn plan(&self, mode: Mode) -> Plan {
        let network = common::network(&format!("{:?}", self.input), 255, PRIME, &self.nodes);
        plan(&network, Policy::Logits, mode).unwrap()
    }
}

/// Fully connected layers with activations between them, behind convolutions.
fn mnist(convolutions: impl Fn(&mut Builder) -> usize, hidden: &[usize], square: bool) -> Builder {
    let mut network = Builder::new([1, 28, 28]);
    let mut at = convolutions(&mut network);
    at = network.flatten(at);
    for width in hidden {
        at = network.linear(at, *width);
        at = if square {
            network.push(r#""Square""#, &[at], [*width, 1, 1], true)
        } else {
            network.relu(at, true)
        };
    }
    network.linear(at, 10);
    network
}

fn mnist_d() -> Builder {
    let convolutions = |network: &mut Builder| {
        let mut at = 0;
        for _ in 0..2 {
            at = network.conv(at, 16, 5, 1, 0);
            at = network.pool(at, 2, "MaxPool");
            at = network.relu(at, false);
        }
        at
    };
    mnist(convolutions, &[100], false)
}

/// A residual network for CIFAR-10 with `blocks` blocks at each of three sizes; shortcuts that change it are convolutions of one tap.
fn resnet(blocks: usize) -> Builder {
    let mut network = Builder::new([3, 32, 32]);
    let mut at = network.conv_relu(0, 16, 3);
    for (stage, channels) in [16, 32, 64].into_iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let first = network.conv(at, channels, 3, stride, 1);
            let first = network.relu(first, false);
            let second = network.conv(first, channels, 3, 1, 1);
            let shortcut = if stride == 2 { network.conv(at, channels, 1, 2, 0) } else { at };
            let sum = network.push(
                r#"{"Add":{"factors":[1,1]}}"#,
                &[second, shortcut],
                network.shapes[second],
                false,
            );
            at = network.relu(sum, false);
        }
    }
    at = network.pool(at, 8, "SumPool");
    at = network.flatten(at);
    network.linear(at, 10);
    network
}

/// The network for CIFAR-10 of Liu et al. (CCS 2017).
fn minionn() -> Builder {
    let mut network = Builder::new([3, 32, 32]);
    let mut at = network.conv_relu(0, 64, 3);
    for _ in 0..2 {
        at = network.conv_relu(at, 64, 3);
        at = network.pool(at, 2, "SumPool");
        at = network.conv_relu(at, 64, 3);
    }
    at = network.conv_relu(at, 64, 1);
    at = network.conv_relu(at, 16, 1);
    at = network.flatten(at);
    network.linear(at, 10);
    network
}

fn one_convolution() -> Builder {
    let mut network = Builder::new([128, 16, 16]);
    network.conv(0, 128, 3, 1, 1);
    network
}

const MEGA: u64 = 1_000_000;

#[test]
fn keys_and_memory_of_published_networks_keep_to_their_limits() {
    let strided = |network: &mut Builder| network.conv(0, 5, 5, 2, 1);
    let networks = [
        ("MNIST A", mnist(|_| 0, &[128, 128], true)),
        ("MNIST B", mnist(strided, &[100], true)),
        (
            "MNIST C",
            mnist(
                |network| {
                    let conv = strided(network);
                    network.relu(conv, false)
                },
                &[100],
                false,
            ),
        ),
        ("MNIST D", mnist_d()),
        ("MiniONN", minionn()),
        ("ResNet-20", resnet(3)),
        ("ResNet-32", resnet(5)),
        ("conv 16x16x128 3x3 -> 128", one_convolution()),
    ];
    let modes = [Mode::Gazelle, Mode::Falcon];
    for ((name, network), mode) in networks.iter().flat_map(|network| modes.map(|mode| (network, mode))) {
        let built = network.plan(mode).build().unwrap();
        let keys: usize = built.set_up().unwrap().keys.iter().map(|keys| keys.needed.len()).sum();
        assert!(keys == 0 || mode == Mode::Gazelle, "{name} takes no rotation in the frequency domain");
        let (setup, memory) = (built.cost().unwrap().setup.bytes(), built.memory().unwrap());
        println!(
            "{name:<26} {:<8} {keys:>3} keys, set-up {:>5.1} MB; server {:>5} MB a model, {:>4} MB a client (keys {}, prediction {}, working {}); client {:>4} MB a prediction",
            mode.name(),
            setup as f64 / 1e6,
            memory.model / MEGA,
            memory.client() / MEGA,
            memory.session / MEGA,
            memory.server_material / MEGA,
            memory.working / MEGA,
            memory.client_material / MEGA,
        );
        assert!(setup <= 50 * MEGA, "{name}");
        assert!(memory.model + memory.client() <= 1500 * MEGA, "{name}");
        assert!(memory.client() <= 150 * MEGA, "{name}");
        assert!(memory.client_material <= 1500 * MEGA, "{name}");
        let [client, server] = [memory.client_material, memory.server_material];
        assert!(
            (1..=client).contains(&memory.client_run) && (1..=server).contains(&memory.server_run),
            "{name}"
        );
        let whole = built.runs().unwrap().len() == 1;
        assert!(!whole || [memory.client_run, memory.server_run] == [client, server], "{name}");
    }
}
