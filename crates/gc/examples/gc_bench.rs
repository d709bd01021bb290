//! Millions of AND gates per second, garbled and evaluated on one core, by backend.
//!
//! Run with `cargo run --release -p lanner-gc --example gc_bench [-- --json]`: tables of text, or one document a line. Tables go to one reused chunk, as they do before they
//! are sent; every result is verified outside the clock.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use lanner_gc::library::{argmax, max_pool_relu_rescale, relu_rescale};
use lanner_gc::{
    Backend, Circuit, CircuitBuilder, Evaluator, Garbler, GcError, TableSource, TablesInMemory, Wire,
};
use lanner_primitives::{Bits, Block, Prg, Ring};
use rand_core::SeedableRng;

/// Runs per measurement, short enough that some are not interrupted on a busy machine.
const RUNS: usize = 151;

fn main() {
    if !json() {
        println!("half-gates, 16 lanes, one core; M AND/s as median (best) of {RUNS} runs");
    }
    aes();
    let prime = Ring::Prime(1_032_193);
    let circuits = [
        ("adder chain", adder_chain(32), 512),
        ("relu_rescale", relu_rescale(prime, 7).unwrap().circuit().clone(), 1024),
        ("max_pool 2x2", max_pool_relu_rescale(prime, 4, 7).unwrap().circuit().clone(), 256),
        ("argmax 1000", argmax(prime, 1000).unwrap().circuit().clone(), 16),
    ];
    for &backend in Backend::available().iter().rev() {
        for (name, circuit, instances) in &circuits {
            let case = Case::new(circuit, *instances, backend);
            let (garbling, evaluation) = (case.garbling(), case.evaluation());
            if json() {
                print_line(name, "garble", &format!("{backend:?}"), &garbling);
                print_line(name, "evaluate", &format!("{backend:?}"), &evaluation);
                continue;
            }
            println!(
                "{backend:8?} {name:12} {instances:4} x {:5} AND, {:3} slots, {:8} bytes: garble {}, evaluate {}",
                circuit.and_count(),
                circuit.slots(),
                case.tables.len(),
                garbling.in_millions(),
                evaluation.in_millions(),
            );
        }
    }
}

/// Whether the output is for programs.
fn json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}

/// AES blocks under one key that stay in the first-level cache: what bounds the gates.
fn aes() {
    let mut prg = Prg::from_seed([2; 16]);
    let mut blocks = vec![Block::ZERO; 1024];
    let rate = Rate::of(blocks.len(), || prg.fill_blocks(black_box(&mut blocks)));
    if json() {
        print_line("aes", "counter", "fastest", &rate);
    } else {
        println!("AES in counter mode, M blocks/s: {}", rate.in_millions());
    }
}

fn print_line(name: &str, kernel: &str, backend: &str, rate: &Rate) {
    let per_second = rate.median;
    println!(
        r#"{{"bench": "gc", "name": "{name}", "kernel": "{kernel}", "backend": "{backend}", "per_second": {per_second:e}, "repeat": {RUNS}}}"#
    );
}

/// Items a second.
struct Rate {
    median: f64,
    best: f64,
}

impl Rate {
    /// That of a run that does so many.
    fn of(items: usize, mut run: impl FnMut()) -> Self {
        let time = |()| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        };
        let mut times: Vec<f64> = [(); RUNS].map(time).into();
        times.sort_by(f64::total_cmp);
        Self { median: items as f64 / times[RUNS / 2], best: items as f64 / times[0] }
    }

    fn in_millions(&self) -> String {
        format!("{:6.1} ({:6.1})", self.median / 1e6, self.best / 1e6)
    }
}

/// Addition, masking by the sign, addition: about three ANDs for each bit, with few inputs and outputs.
fn adder_chain(bits: u32) -> Circuit {
    let mut builder = CircuitBuilder::new();
    let (c, s, r) = (builder.evaluator_word(bits), builder.garbler_word(bits), builder.garbler_word(bits));
    let sum = builder.add(&c, &s);
    let sign: Wire = sum[sum.len() - 1];
    let masked = builder.mask_word(!sign, &sum);
    let out = builder.add(&masked, &r);
    builder.build(&out).unwrap()
}

/// Every chunk is the same memory: the time without that of moving the tables.
struct Reused<'a>(&'a [u8]);

impl TableSource for Reused<'_> {
    type Error = GcError;
    fn next_chunk(&mut self, bytes: usize) -> Result<&[u8], GcError> {
        Ok(&self.0[..bytes])
    }
}

/// One circuit's seeded inputs and verified tables.
struct Case<'c> {
    circuit: &'c Circuit,
    instances: usize,
    backend: Backend,
    delta: Block,
    salt: Block,
    zero_labels: Vec<Block>,
    known: Bits,
    labels: Vec<Block>,
    tables: Vec<u8>,
}

impl<'c> Case<'c> {
    fn new(circuit: &'c Circuit, instances: usize, backend: Backend) -> Self {
        let mut prg = Prg::from_seed([1; 16]);
        let delta = Block::random(&mut prg).with_lsb(true);
        let salt = Block::random(&mut prg);
        let mut zero_labels = vec![Block::ZERO; instances * circuit.evaluator_inputs()];
        prg.fill_blocks(&mut zero_labels);
        let inputs = Bits::random(zero_labels.len(), &mut prg);
        let known = Bits::random(instances * circuit.garbler_inputs(), &mut prg);
        let active = zero_labels.iter().zip(inputs.iter());
        let labels = active.map(|(zero, bit)| *zero ^ (Block::mask(bit) & delta)).collect();
        let mut case =
            Self { circuit, instances, backend, delta, salt, zero_labels, known, labels, tables: Vec::new() };
        let mut tables = Vec::new();
        let permute = case.garble(&mut |chunk| tables.extend_from_slice(chunk));
        case.tables = tables;
        let colours = case.evaluate(&mut TablesInMemory::new(&case.tables));
        case.verify(&inputs, &colours.xor(&permute).unwrap());
        case
    }

    fn garble(&self, sink: &mut dyn FnMut(&[u8])) -> Bits {
        let mut garbler = Garbler::new(self.circuit, self.delta, self.salt, 0).unwrap();
        garbler = garbler.with_backend(self.backend);
        let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
            sink(chunk);
            Ok(())
        };
        garbler.garble(self.instances, &self.zero_labels, &self.known, &mut sink).unwrap()
    }

    fn evaluate(&self, tables: &mut impl TableSource<Error = GcError>) -> Bits {
        let mut evaluator = Evaluator::new(self.circuit, self.salt, 0).with_backend(self.backend);
        evaluator.evaluate(self.instances, &self.labels, tables).unwrap()
    }

    fn garbling(&self) -> Rate {
        self.rate(|| {
            black_box(self.garble(&mut |chunk| {
                black_box(chunk);
            }));
        })
    }

    fn evaluation(&self) -> Rate {
        self.rate(|| {
            black_box(self.evaluate(&mut Reused(&self.tables)));
        })
    }

    fn rate(&self, run: impl FnMut()) -> Rate {
        Rate::of(self.circuit.and_count() * self.instances, run)
    }

    fn verify(&self, inputs: &Bits, got: &Bits) {
        let slice = |bits: &Bits, width: usize, i: usize| -> Vec<bool> {
            (i * width..(i + 1) * width).map(|j| bits.get(j)).collect()
        };
        for i in 0..self.instances {
            let evaluator = slice(inputs, self.circuit.evaluator_inputs(), i);
            let garbler = slice(&self.known, self.circuit.garbler_inputs(), i);
            let expected = self.circuit.evaluate_clear(&evaluator, &garbler).unwrap();
            assert_eq!(slice(got, self.circuit.outputs(), i), expected, "instance {i}");
        }
    }
}
