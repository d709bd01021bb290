//! Networks of functions, products and biases that nobody would write are refused or planned, whatever their integers, and never panic.

use lanner_network::Policy;
use lanner_network::elementwise::{Factors, FixedFunction};
use lanner_plan::{Mode, plan};
use lanner_step::Party;
use lanner_transfers::{Layer, Rounding};

use crate::common;

/// A generator of numbers, good enough to choose among few.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// An integer that a file may have.
    fn integer(&mut self) -> i64 {
        let near = self.of(&[-1, 0, 1]);
        match self.below(6) {
            0 => self.of(&[i64::MIN, i64::MAX, i64::MIN + 1]),
            1 => (1_i64 << self.below(63)) + near,
            2 => near - (1_i64 << self.below(63)),
            3 => 0,
            _ => self.below(1000) as i64 - 500,
        }
    }

    /// A number of bits, most often a usable one.
    fn bits(&mut self) -> i64 {
        let any = self.below(22) as i64;
        if self.below(12) > 0 {
            any
        } else {
            self.of(&[-1, 0, 31, 32, 58, 59, 60, 61, 62, 63, 64, 65, 127, 128, 255, 1 << 31])
        }
    }

    fn integers(&mut self, count: usize) -> String {
        let small = self.below(3) > 0;
        let all: Vec<i64> =
            (0..count).map(|_| if small { self.below(4000) as i64 - 2000 } else { self.integer() }).collect();
        format!("{all:?}")
    }

    fn function(&mut self) -> String {
        let segments = if self.below(8) > 0 { 1 << self.below(9) } else { self.below(5) };
        let terms = if self.below(8) > 0 { 1 + self.below(4) } else { self.below(6) };
        let polynomials: Vec<String> = (0..segments).map(|_| self.integers(terms)).collect();
        let low = match self.below(3) {
            0 => self.integer(),
            _ => -(1 << self.below(14)),
        };
        let factors = if self.below(2) == 0 {
            let count = if self.below(8) > 0 { 1 << self.below(9) } else { self.below(5) };
            format!(r#","factors":{{"values":{},"shift":{}}}"#, self.integers(count), self.bits())
        } else {
            String::new()
        };
        format!(
            r#"{{"Function":{{"low":{low},"bits":{},"polynomials":[{}],"shift":{}{factors}}}}}"#,
            self.bits(),
            polynomials.join(","),
            self.bits()
        )
    }

    fn node(&mut self, prime: bool) -> String {
        match self.below(9) {
            0 => r#"{"Linear":{"outputs":16}}"#.to_owned(),
            1 | 2 => format!(r#"{{"Rescale":{{"shift":{}}}}}"#, self.bits()),
            3 if !prime || self.below(2) == 0 => format!(r#"{{"Bias":{{"bits":{}}}}}"#, self.bits() * 3),
            4 => r#""Mul""#.to_owned(),
            5 => format!(r#"{{"Scale":{{"factor":{}}}}}"#, self.integer()),
            _ => self.function(),
        }
    }
}

#[test]
fn hostile_functions_and_biases_never_panic() {
    let (mut planned, mut read) = (0, 0);
    for seed in 0..4_000_u64 {
        let draw = &mut Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let prime = draw.below(3) == 0;
        let rings: &[u64] = if prime {
            &[114_689, 1_032_193, 16_760_833, 137_438_822_401]
        } else {
            &[1 << 16, 1 << 20, 1 << 30, 1 << 41]
        };
        let first = draw.of(rings);
        let mut modulus = first;
        let nodes: Vec<String> = (0..=draw.below(4))
            .map(|number| {
                let op = draw.node(prime);
                if (op.contains("Function") || op.contains("Rescale")) && draw.below(2) == 0 {
                    modulus = draw.of(rings);
                }
                let inputs =
                    if op.contains("Mul") { vec![number, draw.below(number + 1)] } else { vec![number] };
                format!(
                    r#"{{"name":"n{number}","op":{op},"inputs":{inputs:?},"shape":[16],"modulus":{modulus}}}"#
                )
            })
            .collect();
        let high = draw.of(&[1, 255, 1 << 13]);
        let Ok(network) = common::read("[16]", high, first, &nodes.join(",")) else { continue };
        read += 1;
        // A file says what it said.
        let json = network.to_json().unwrap();
        assert!(lanner_network::PublicNetwork::from_json(&json).unwrap() == network);
        let mode = if prime { Mode::Falcon } else { Mode::Cheetah(Rounding::Exact) };
        if seed % 8 == 0 || json.contains("Function") && seed % 2 == 0 {
            planned += usize::from(plan(&network, Policy::Logits, mode).is_ok());
        }
    }
    assert!(planned > 0 && read > planned);
}

#[test]
fn hostile_matrices_never_panic_nor_take_memory() {
    let ends = [
        0,
        1,
        2,
        3,
        16,
        255,
        4096,
        1 << 20,
        (1 << 20) + 1,
        1 << 24,
        u32::MAX as usize,
        usize::MAX / 2,
        usize::MAX,
    ];
    let mut read = 0;
    for seed in 0..1_000_u64 {
        let draw = &mut Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let [g, m, k, n] = [(); 4].map(|()| draw.of(&ends[..if seed % 2 == 0 { 8 } else { 13 }]));
        let (left, right) = (format!("[{g},{m},{k}]"), format!("[{g},{k},{n}]"));
        let inner = if draw.below(4) == 0 { draw.of(&ends) } else { k };
        let total = g.saturating_mul(m).saturating_mul(k);
        let modulus: u64 = draw.of(&[1 << 16, 1 << 41]);
        // One input that is cut in two ways.
        let nodes = format!(
            r#"{{"name":"a","op":{{"Slice":{{"starts":[0],"steps":[1]}}}},"inputs":[0],"shape":[{total}],"modulus":{modulus}}},
               {{"name":"b","op":"Reshape","inputs":[1],"shape":{left},"modulus":{modulus}}},
               {{"name":"c","op":{{"Transpose":{{"axes":[0,2,1]}}}},"inputs":[2],"shape":[{g},{k},{m}],"modulus":{modulus}}},
               {{"name":"d","op":{{"MatrixProduct":{{"inner":{inner}}}}},"inputs":[2,3],"shape":[{g},{m},{m}],"modulus":{modulus}}}"#
        );
        let nodes = if draw.below(3) == 0 { nodes.replace(&format!("[{g},{m},{m}]"), &right) } else { nodes };
        let Ok(network) = common::read(&format!("[{total}]"), 1, modulus, &nodes) else { continue };
        read += 1;
        let _ = plan(&network, Policy::Logits, Mode::Cheetah(Rounding::Exact)).is_ok();
    }
    assert!(read > 0);
}

/// A run of operators is looked for no further than one circuit goes: with each node's to the end, this would take minutes.
#[test]
fn as_many_activations_as_a_network_may_have_are_planned_at_once() {
    for ops in [&[r#""Relu""#][..], &[r#""Relu""#, r#"{"Rescale":{"shift":1}}"#]] {
        let node = |number: usize| {
            let op = ops[number % ops.len()];
            format!(r#"{{"name":"n{number}","op":{op},"inputs":[{number}],"shape":[4],"modulus":33554432}}"#)
        };
        let nodes: Vec<String> = (0..4096).map(node).collect();
        let network = common::network("[4]", 255, 1 << 25, &nodes.join(","));
        assert!(plan(&network, Policy::Logits, Mode::Cheetah(Rounding::Exact)).is_ok());
    }
}

/// What polynomials are chosen by is what is sent, of any function: but for the carry's value in some ring, where nothing is cut off.
#[test]
fn what_is_counted_is_what_is_sent() {
    const VALUES: usize = 64;
    let mut found = 0;
    for seed in 0..1500_u64 {
        let draw = &mut Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let bits = 1 + draw.below(14);
        let factor = draw.below(3).min(1) * draw.below(bits.min(8) + 1);
        let segment = draw.below((bits - factor).min(8) + 1);
        let kinds = [(); 4].map(|()| draw.below(5));
        let terms = 1 + draw.below(4);
        let mut coefficient = |power: usize| {
            let any = (draw.below(1 << 16) as i64 - (1 << 15)) >> (3 * power);
            match kinds[power] {
                0 => 0,
                1 => -77,
                2 => any & !63,
                3 => any.abs() + 5,
                _ => any,
            }
        };
        let polynomials = (0..1 << segment).map(|_| (0..terms).map(&mut coefficient).collect()).collect();
        let shift = draw.below(20) as u32;
        let values = (0..1 << factor).map(|_| draw.below(500) as i64 - 250).collect();
        let factors = (factor > 0).then(|| Factors { values, shift: draw.below(20) as u32 });
        let function =
            FixedFunction { low: -(1 << (bits - 1)), bits: bits as u32, polynomials, shift, factors };
        if function.check_sizes().is_err() {
            continue;
        }
        found += 1;
        let sent = |to: u32| {
            let protocol = lanner_plan::polynomials(&function);
            let layer = Layer::function(&protocol, VALUES, bits as u32, to, 0).unwrap();
            let bytes: usize = layer.messages().map(|(_, bytes)| bytes).sum();
            let transfers = [Party::Client, Party::Server].map(|party| layer.transfers(party));
            ((8 * bytes + transfers.iter().sum::<usize>()) / VALUES) as u64
        };
        let last = function.factors.as_ref().map_or(shift, |factors| factors.shift);
        let of_carry = |to: u32| match last {
            0 => 0,
            1 => u64::from(to),
            _ => u64::from(to - 1).max(1),
        };
        let is_same = |to: u32| sent(to) == function.sent_bits() + of_carry(to);
        let off: Vec<i64> =
            (1..=62).map(|to| (sent(to) - of_carry(to)) as i64 - function.sent_bits() as i64).collect();
        assert!((1..=62).any(is_same), "{function:?}: {} {off:?}", function.sent_bits());
    }
    assert!(found > 100, "{found}");
}
