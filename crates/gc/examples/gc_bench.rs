//! Millions of AND gates per second, garbled and evaluated on one core, by backend.
//!
//! Run with `cargo run --release -p lanner-gc --example gc_bench`. Tables go to one reused chunk, as they do before they
//! are sent; every result is verified outside the clock.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use lanner_gc::library::{ShareRing, argmax, max_pool_relu_rescale, relu_rescale};
use lanner_gc::{
    Backend, Circuit, CircuitBuilder, Evaluator, Garbler, GcError, TableSource, TablesInMemory, Wire,
};
use lanner_primitives::{Bits, Block, Prg};
use rand_core::SeedableRng;

/// Runs per measurement; the median is printed.
const RUNS: usize = 15;

fn main() {
    println!("half-gates, 16 lanes, one core; median of {RUNS} runs");
    let prime = ShareRing::Prime(1_032_193);
    let circuits = [
        ("adder chain", adder_chain(32), 4096),
        ("relu_rescale", relu_rescale(prime, 7).unwrap().circuit().clone(), 8192),
        ("max_pool 2x2", max_pool_relu_rescale(prime, 4, 7).unwrap().circuit().clone(), 2048),
        ("argmax 1000", argmax(prime, 1000).unwrap().circuit().clone(), 16),
    ];
    for backend in Backend::ALL.into_iter().filter(|b| b.is_available()) {
        for (name, circuit, instances) in &circuits {
            bench(name, circuit, *instances, backend);
        }
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

fn bench(name: &str, circuit: &Circuit, instances: usize, backend: Backend) {
    let mut prg = Prg::from_seed([1; 16]);
    let delta = Block::random(&mut prg).with_lsb(true);
    let salt = Block::random(&mut prg);
    let mut zero_labels = vec![Block::ZERO; instances * circuit.evaluator_inputs()];
    prg.fill_blocks(&mut zero_labels);
    let inputs = Bits::random(zero_labels.len(), &mut prg);
    let known = Bits::random(instances * circuit.garbler_inputs(), &mut prg);
    let labels: Vec<_> =
        zero_labels.iter().zip(inputs.iter()).map(|(zero, bit)| *zero ^ (Block::mask(bit) & delta)).collect();

    let mut tables = Vec::new();
    let mut garbler = Garbler::new(circuit, delta, salt, 0).unwrap().with_backend(backend).unwrap();
    let permute = garbler
        .garble::<GcError>(instances, &zero_labels, &known, &mut |c| {
            tables.extend_from_slice(c);
            Ok(())
        })
        .unwrap();
    let mut evaluator = Evaluator::new(circuit, salt, 0).with_backend(backend).unwrap();
    let colours = evaluator.evaluate(instances, &labels, &mut TablesInMemory::new(&tables)).unwrap();
    verify(circuit, instances, &inputs, &known, &colours.xor(&permute).unwrap());

    let ands = (circuit.and_count() * instances) as f64;
    let garbling = median(|| {
        garbler
            .garble::<GcError>(instances, &zero_labels, &known, &mut |chunk| {
                black_box(chunk);
                Ok(())
            })
            .unwrap();
    });
    let evaluating = median(|| {
        black_box(evaluator.evaluate(instances, &labels, &mut Reused(&tables)).unwrap());
    });
    let from_memory = median(|| {
        black_box(evaluator.evaluate(instances, &labels, &mut TablesInMemory::new(&tables)).unwrap());
    });
    println!(
        "{backend:8?} {name:12} {instances:4} x {:6} AND, {:4} slots, {:9} bytes: garble {:6.1} M AND/s, evaluate \
         {:6.1} M AND/s, from memory {:6.1} M AND/s",
        circuit.and_count(),
        circuit.slots(),
        tables.len(),
        ands / garbling / 1e6,
        ands / evaluating / 1e6,
        ands / from_memory / 1e6,
    );
}

fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn verify(circuit: &Circuit, instances: usize, inputs: &Bits, known: &Bits, got: &Bits) {
    let slice = |bits: &Bits, width: usize, i: usize| -> Vec<bool> {
        (i * width..(i + 1) * width).map(|j| bits.get(j)).collect()
    };
    for i in 0..instances {
        let expected = circuit
            .evaluate_clear(
                &slice(inputs, circuit.evaluator_inputs(), i),
                &slice(known, circuit.garbler_inputs(), i),
            )
            .unwrap();
        assert_eq!(slice(got, circuit.outputs(), i), expected, "instance {i}");
    }
}
