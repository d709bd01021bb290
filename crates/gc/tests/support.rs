//! Garbles and evaluates in one process, and compares with the clear.

use lanner_gc::{Backend, Circuit, Evaluator, Garbler, GcError, TablesInMemory};
use lanner_primitives::{Bits, Block, Prg};
use rand_core::SeedableRng;

pub fn prg(seed: u8) -> Prg {
    Prg::from_seed([seed; 16])
}

/// One garbling: what the garbler and the evaluator hold.
pub struct Garbling {
    pub delta: Block,
    pub salt: Block,
    pub batch: u64,
    pub zero_labels: Vec<Block>,
    pub tables: Vec<u8>,
    pub chunks: Vec<usize>,
    pub permute: Bits,
}

pub const BATCH: u64 = 0x1234_5678_9abc;

/// Garbles on a backend under seeded inputs.
pub fn garble(circuit: &Circuit, instances: usize, known: &Bits, seed: u8, backend: Backend) -> Garbling {
    let mut prg = prg(seed);
    let delta = Block::random(&mut prg).with_lsb(true);
    let salt = Block::random(&mut prg);
    let mut zero_labels = vec![Block::ZERO; instances * circuit.evaluator_inputs()];
    prg.fill_blocks(&mut zero_labels);
    let (mut tables, mut chunks) = (Vec::new(), Vec::new());
    let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
        tables.extend_from_slice(chunk);
        chunks.push(chunk.len());
        Ok(())
    };
    let mut garbler = Garbler::new(circuit, delta, salt, BATCH).unwrap().with_backend(backend);
    let permute = garbler.garble(instances, &zero_labels, known, &mut sink).unwrap();
    Garbling { delta, salt, batch: BATCH, zero_labels, tables, chunks, permute }
}

impl Garbling {
    pub fn active_labels(&self, inputs: &Bits) -> Vec<Block> {
        let pairs = self.zero_labels.iter().zip(inputs.iter());
        pairs.map(|(zero, bit)| *zero ^ (Block::mask(bit) & self.delta)).collect()
    }

    pub fn evaluate(&self, circuit: &Circuit, instances: usize, inputs: &Bits, backend: Backend) -> Bits {
        let mut tables = TablesInMemory::new(&self.tables);
        let mut evaluator = Evaluator::new(circuit, self.salt, self.batch).with_backend(backend);
        let colours = evaluator.evaluate(instances, &self.active_labels(inputs), &mut tables).unwrap();
        assert!(tables.is_empty(), "tables left over");
        colours.xor(&self.permute).unwrap()
    }
}

/// The outputs of every instance in the clear.
pub fn clear(circuit: &Circuit, instances: usize, inputs: &Bits, known: &Bits) -> Bits {
    let slice = |bits: &Bits, width: usize, i: usize| -> Vec<bool> {
        (i * width..(i + 1) * width).map(|j| bits.get(j)).collect()
    };
    let outputs = (0..instances).flat_map(|i| {
        let evaluator = slice(inputs, circuit.evaluator_inputs(), i);
        let garbler = slice(known, circuit.garbler_inputs(), i);
        circuit.evaluate_clear(&evaluator, &garbler).unwrap()
    });
    outputs.collect()
}

/// Checks garbled = clear on random inputs, on every backend, with equal tables.
pub fn check(circuit: &Circuit, instances: usize, seed: u8) {
    let mut prg = prg(seed ^ 0x55);
    let inputs = Bits::random(instances * circuit.evaluator_inputs(), &mut prg);
    let known = Bits::random(instances * circuit.garbler_inputs(), &mut prg);
    let expected = clear(circuit, instances, &inputs, &known);
    let reference = garble(circuit, instances, &known, seed, Backend::PORTABLE);
    assert_eq!(reference.tables.len(), circuit.table_bytes(instances));
    let lengths: Vec<_> = lanner_gc::chunk_lengths(circuit, instances).collect();
    assert_eq!(reference.chunks, lengths);
    for &backend in Backend::available() {
        let garbling = garble(circuit, instances, &known, seed, backend);
        assert!(garbling.tables == reference.tables, "{backend:?} tables differ");
        assert_eq!(garbling.permute.as_words(), reference.permute.as_words(), "{backend:?} permute bits");
        let got = garbling.evaluate(circuit, instances, &inputs, backend);
        assert_eq!(got.as_words(), expected.as_words(), "{backend:?} {instances} instances");
        check_labels(circuit, instances, &garbling, &known, &inputs, backend);
    }
}

/// Checks that the active label of an output is its zero-label, moved by delta where the output is one; and that colour and permute bits are their lowest bits.
fn check_labels(
    circuit: &Circuit,
    instances: usize,
    garbling: &Garbling,
    known: &Bits,
    inputs: &Bits,
    backend: Backend,
) {
    let expected = clear(circuit, instances, inputs, known);
    let Garbling { delta, salt, batch, .. } = *garbling;
    let mut zeros = vec![Block::ONES; expected.len()];
    let mut garbler = Garbler::new(circuit, delta, salt, batch).unwrap().with_backend(backend);
    let mut garble = |labels: &mut [Block]| {
        let mut tables = Vec::new();
        let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
            tables.extend_from_slice(chunk);
            Ok(())
        };
        let permute = garbler.garble_with_labels(instances, &garbling.zero_labels, known, labels, &mut sink);
        permute.map(|permute| (permute, tables))
    };
    let (permute, tables) = garble(&mut zeros).unwrap();
    assert!(tables == garbling.tables);
    let mut active = vec![Block::ONES; expected.len()];
    let mut evaluator = Evaluator::new(circuit, salt, batch).with_backend(backend);
    let mut tables = TablesInMemory::new(&tables);
    let labels = garbling.active_labels(inputs);
    let colours = evaluator.evaluate_with_labels(instances, &labels, &mut active, &mut tables).unwrap();
    for (i, (zero, active)) in zeros.iter().zip(&active).enumerate() {
        assert!(*active == *zero ^ (Block::mask(expected.get(i)) & delta), "{backend:?}, output {i}");
        assert_eq!((permute.get(i), colours.get(i)), (zero.lsb(), active.lsb()), "{backend:?}, output {i}");
    }
    if let Some((_, short)) = zeros.split_first_mut() {
        assert!(matches!(garble(short), Err(GcError::Length { .. })));
    }
}
