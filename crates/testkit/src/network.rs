//! Descriptions of networks that nobody would train: arbitrary wiring, shapes and attributes.
//!
//! A client plans whatever public half a server sends. These are the JSON form of such halves. Most are sound, so that they reach
//! the planner behind the checks; some have one number that is not.

use std::fmt::Write;

/// Numbers that bytes choose, the first of what is offered when they run out.
struct Choices<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

impl Choices<'_> {
    /// A number below `count`, which is 1 to 256.
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    /// A number in `1..=most`.
    fn size(&mut self, most: usize) -> usize {
        1 + self.below(most)
    }

    fn sizes<const N: usize>(&mut self, most: usize) -> [usize; N] {
        std::array::from_fn(|_| self.size(most))
    }

    fn of<T: Copy>(&mut self, offered: &[T]) -> T {
        offered[self.below(offered.len())]
    }
}

/// A value on the way.
#[derive(Clone)]
struct Value {
    shape: Vec<usize>,
    ring: u64,
    used: bool,
}

impl Value {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

struct Drawing {
    values: Vec<Value>,
    nodes: String,
}

const PRIMES: [u64; 3] = [1_032_193, 16_760_833, 1_073_692_673];
const POWERS: [u64; 3] = [1 << 20, 1 << 26, 1 << 32];

/// The JSON form of a public network, in the version given, of up to 12 operators on small values and what joins their results.
///
/// The bytes are the choices, so that a fuzzer's changes are changes of the network. Rings are primes or powers of two.
#[must_use]
pub fn draw_network(bytes: &[u8], format_version: u32) -> String {
    let choices = &mut Choices { bytes: bytes.iter() };
    let rings = if choices.below(2) == 0 { PRIMES } else { POWERS };
    let ring = choices.of(&rings);
    let shape = if choices.below(4) == 0 { vec![choices.size(12)] } else { choices.sizes::<3>(6).to_vec() };
    let (low, high) = (choices.of(&[0, -1, -100]), choices.of(&[255, 1, 0]));
    let [unit, output_scale] = std::array::from_fn(|_| choices.of(&[-64, 0, -2048, 2048]));
    let features = if choices.below(4) == 1 { features(choices, &shape) } else { String::new() };
    let input = format!(
        r#"{{"name":"x","shape":{shape:?},"scale":{{"grid":{unit}}},{features}"low":{low},"high":{high},"modulus":{ring}}}"#
    );
    let mut drawing = Drawing { values: vec![Value { shape, ring, used: false }], nodes: String::new() };
    for _ in 0..choices.size(12) {
        drawing.operator(choices, &rings);
    }
    drawing.join_the_unused(ring);
    let mut json = format!(
        r#"{{"format_version":{format_version},"input":{input},"nodes":[{}],"output_scale":{output_scale},"head":"scores"}}"#,
        drawing.nodes
    );
    if choices.below(4) == 0 {
        replace_a_number(&mut json, choices);
    }
    json
}

/// Units and centres of the positions along an axis, and constants in front of them.
fn features(choices: &mut Choices<'_>, shape: &[usize]) -> String {
    let axis = choices.below(shape.len());
    let mut of_each = |offered: &[i64]| (0..shape[axis]).map(|_| choices.of(offered)).collect::<Vec<_>>();
    let (exponents, centres) = (of_each(&[0, -1, -64, 64]), of_each(&[0, 64, -1 << 24]));
    let (factors, terms) = (of_each(&[1, -1, 1 << 40]), of_each(&[0, -1, 1 << 40]));
    let constants = if factors.iter().all(|factor| *factor == 1) {
        String::new()
    } else {
        format!(r#","preprocessing":{{"factors":{factors:?},"terms":{terms:?}}}"#)
    };
    format!(r#""features":{{"axis":{axis},"exponents":{exponents:?},"centres":{centres:?}{constants}}},"#)
}

impl Drawing {
    fn push(&mut self, op: &str, inputs: &[usize], shape: Vec<usize>, ring: u64) {
        let (index, separator) = (self.values.len(), if self.nodes.is_empty() { "" } else { "," });
        // Writing to a string does not fail.
        let _ = write!(
            self.nodes,
            r#"{separator}{{"name":"n{index}","op":{op},"inputs":{inputs:?},"shape":{shape:?},"modulus":{ring}}}"#
        );
        for &input in inputs {
            self.values[input].used = true;
        }
        self.values.push(Value { shape, ring, used: false });
    }

    /// One operator on a value of any age.
    fn operator(&mut self, choices: &mut Choices<'_>, rings: &[u64]) {
        let at = self.values.len() - 1 - choices.below(self.values.len());
        let Value { shape, ring, .. } = self.values[at].clone();
        match (choices.below(17), shape.as_slice()) {
            (0..3, &[channels, height, width]) => self.convolution(choices, at, [channels, height, width]),
            (0..3, &[_]) => {
                let outputs = choices.size(9);
                self.push(&format!(r#"{{"Linear":{{"outputs":{outputs}}}}}"#), &[at], vec![outputs], ring);
            }
            (3..5, &[channels, height, width]) => self.pool(choices, at, [channels, height, width]),
            (5, _) => self.push(r#""Relu""#, &[at], shape, ring),
            (6, _) => {
                let shift = choices.below(17);
                let numerator = choices.below(256) % ((1 << shift) + 1);
                let op = format!(r#"{{"LeakyRelu":{{"numerator":{numerator},"shift":{shift}}}}}"#);
                self.push(&op, &[at], shape, ring);
            }
            (7, _) => {
                // Circuits have no upper bound without a ReLU.
                self.push(r#""Relu""#, &[at], shape.clone(), ring);
                let op = format!(r#"{{"Clip":{{"high":{}}}}}"#, choices.below(256));
                self.push(&op, &[self.values.len() - 1], shape, ring);
            }
            (8, _) => {
                let op = format!(r#"{{"Rescale":{{"shift":{}}}}}"#, choices.below(24));
                self.push(&op, &[at], shape, choices.of(rings));
            }
            (9, _) => self.push(r#""Square""#, &[at], shape, ring),
            (10, _) => {
                let other = self.values.iter().position(|other| other.shape == shape && other.ring == ring);
                let factors = [choices.of(&[1, -1, 300]), choices.of(&[1, 7, 1 << 20])];
                let op = format!(r#"{{"Add":{{"factors":{factors:?}}}}}"#);
                self.push(&op, &[at, other.unwrap_or(at)], shape, ring);
            }
            (11, _) => self.push(
                &format!(r#"{{"Scale":{{"factor":{}}}}}"#, choices.of(&[-1, 3])),
                &[at],
                shape,
                ring,
            ),
            (12, _) => self.movement(choices, at),
            (13, &[groups, rows, inner]) => {
                // Its own transpose stands on the right.
                let turned = vec![groups, inner, rows];
                self.push(r#"{"Transpose":{"axes":[0,2,1]}}"#, &[at], turned, ring);
                let op = format!(r#"{{"MatrixProduct":{{"inner":{inner}}}}}"#);
                self.push(&op, &[at, self.values.len() - 1], vec![groups, rows, rows], ring);
            }
            // What is drawn may be no narrower ring.
            (14, _) => self.push(r#""Narrow""#, &[at], shape, choices.of(rings)),
            // Shapes that the operators drawn above do not take become ones that they do.
            (_, &[count]) => self.push(r#""Reshape""#, &[at], vec![1, count, 1], ring),
            _ => self.push(r#""Reshape""#, &[at], vec![shape.iter().product()], ring),
        }
    }

    fn convolution(&mut self, choices: &mut Choices<'_>, at: usize, input: [usize; 3]) {
        let groups = if choices.below(3) == 0 { input[0] } else { 1 };
        let out_channels = groups * choices.size(3);
        let (kernel, strides, dilations) =
            (choices.sizes::<2>(3), choices.sizes::<2>(3), choices.sizes::<2>(2));
        let pads: [usize; 4] = std::array::from_fn(|_| choices.below(4));
        let op = format!(
            r#"{{"Conv2d":{{"out_channels":{out_channels},"kernel":{kernel:?},"strides":{strides:?},"pads":{pads:?},"dilations":{dilations:?},"groups":{groups}}}}}"#
        );
        if let Some([height, width]) = windows([input[1], input[2]], kernel, strides, pads, dilations) {
            self.push(&op, &[at], vec![out_channels, height, width], self.values[at].ring);
        }
    }

    fn pool(&mut self, choices: &mut Choices<'_>, at: usize, input: [usize; 3]) {
        let (kernel, strides) = (choices.sizes::<2>(3), choices.sizes::<2>(3));
        let pads: [usize; 4] = std::array::from_fn(|side| choices.below(kernel[side % 2]));
        let kind = choices.of(&["MaxPool", "SumPool"]);
        let op = format!(r#"{{"{kind}":{{"kernel":{kernel:?},"strides":{strides:?},"pads":{pads:?}}}}}"#);
        if let Some([height, width]) = windows([input[1], input[2]], kernel, strides, pads, [1, 1]) {
            self.push(&op, &[at], vec![input[0], height, width], self.values[at].ring);
        }
    }

    fn movement(&mut self, choices: &mut Choices<'_>, at: usize) {
        let Value { shape, ring, .. } = self.values[at].clone();
        let axes = shape.len();
        match choices.below(4) {
            0 => {
                let order: Vec<usize> = (0..axes).rev().collect();
                let turned = order.iter().map(|&axis| shape[axis]).collect();
                self.push(&format!(r#"{{"Transpose":{{"axes":{order:?}}}}}"#), &[at], turned, ring);
            }
            1 => {
                // Every second element, from the last on.
                let starts: Vec<usize> = shape.iter().map(|size| size - 1).collect();
                let sizes: Vec<usize> = shape.iter().map(|size| size.div_ceil(2)).collect();
                let op = format!(r#"{{"Slice":{{"starts":{starts:?},"steps":{:?}}}}}"#, vec![-2; axes]);
                self.push(&op, &[at], sizes, ring);
            }
            2 => {
                let before: Vec<usize> = (0..axes).map(|_| choices.below(3)).collect();
                let padded = shape.iter().zip(&before).map(|(size, pad)| size + pad + 1).collect();
                self.push(&format!(r#"{{"Pad":{{"before":{before:?}}}}}"#), &[at], padded, ring);
            }
            _ => {
                let mut twice = shape.clone();
                twice[0] *= 2;
                self.push(r#"{"Concat":{"axis":0}}"#, &[at, at], twice, ring);
            }
        }
    }

    /// Concatenates all that no operator has taken, in one ring: a network uses every value but its last.
    fn join_the_unused(&mut self, ring: u64) {
        let unused: Vec<usize> = (0..self.values.len()).filter(|&at| !self.values[at].used).collect();
        if unused.len() == 1 && unused[0] > 0 {
            return;
        }
        let mut flat = Vec::new();
        for mut at in unused {
            if self.values[at].ring != ring {
                self.push(r#"{"Rescale":{"shift":12}}"#, &[at], self.values[at].shape.clone(), ring);
                at = self.values.len() - 1;
            }
            self.push(r#""Reshape""#, &[at], vec![self.values[at].len()], ring);
            flat.push(self.values.len() - 1);
        }
        let count = flat.iter().map(|&at| self.values[at].len()).sum();
        self.push(r#"{"Concat":{"axis":0}}"#, &flat, vec![count], ring);
    }
}

/// How many windows fit, down and across.
fn windows(
    size: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
    pads: [usize; 4],
    dilations: [usize; 2],
) -> Option<[usize; 2]> {
    let of = |axis: usize| {
        let room = size[axis] + pads[axis] + pads[axis + 2];
        Some(room.checked_sub(dilations[axis] * (kernel[axis] - 1) + 1)? / strides[axis] + 1)
    };
    Some([of(0)?, of(1)?])
}

/// Puts a number of a hostile peer in the place of one behind the version's.
fn replace_a_number(json: &mut String, choices: &mut Choices<'_>) {
    const HOSTILE: [&str; 6] = ["0", "1", "7", "-1", "1048576", "18446744073709551615"];
    let bytes = json.as_bytes();
    let starts_number = |at: &usize| bytes[*at].is_ascii_digit() && b"[,:".contains(&bytes[at - 1]);
    let starts: Vec<usize> = (1..bytes.len()).filter(starts_number).skip(1).collect();
    let start = starts[(choices.below(256) * 256 + choices.below(256)) % starts.len()];
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    json.replace_range(start..start + length, choices.of(&HOSTILE));
}
