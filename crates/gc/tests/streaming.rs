//! Tables in bounded chunks, in pieces, from memory or from a function; and what is refused.

use crate::support::{BATCH, check, clear, garble, prg};
use lanner_gc::library::{argmax, relu_rescale};
use lanner_gc::{
    Backend, CHUNK_BYTES, Circuit, CircuitBuilder, Evaluator, Garbler, GcError, OutputDecoding, TableSource,
    TablesFrom, TablesInMemory, batches, chunk_lengths, evaluate, garble as garble_all,
};
use lanner_primitives::{Bits, Block, Ring};

fn relu() -> Circuit {
    relu_rescale(Ring::Prime(1_032_193), 7).unwrap().circuit().clone()
}

#[test]
fn chunks_are_whole_rows_of_bounded_size() {
    let circuit = relu();
    for instances in [0, 1, 16, 127, 128, 129, 143, 333, 1000] {
        let lengths: Vec<_> = chunk_lengths(&circuit, instances).collect();
        assert_eq!(lengths.iter().sum::<usize>(), 32 * 44 * instances);
        assert!(lengths.iter().all(|bytes| *bytes > 0 && *bytes <= CHUNK_BYTES));
        let full = lengths.len().saturating_sub(2);
        assert!(lengths[..full].iter().all(|bytes| *bytes == CHUNK_BYTES));
        check(&circuit, instances, 1);
    }
}

#[test]
fn one_instance_may_fill_many_chunks() {
    let circuit = argmax(Ring::Prime(1_032_193), 400).unwrap().circuit().clone();
    for instances in [1, 3, 17] {
        assert!(chunk_lengths(&circuit, instances).count() > 3);
        check(&circuit, instances, 2);
    }
}

#[test]
fn pieces_of_whole_batches_give_the_bytes_of_one_call() {
    let circuit = relu();
    let known = Bits::random(200 * circuit.garbler_inputs(), &mut prg(5));
    let whole = garble(&circuit, 200, &known, 6, Backend::detect());
    let mut garbler = Garbler::new(&circuit, whole.delta, whole.salt, BATCH).unwrap();
    let (mut tables, mut first) = (Vec::new(), 0);
    for instances in [32, 160, 8] {
        let inputs = first * circuit.evaluator_inputs()..(first + instances) * circuit.evaluator_inputs();
        let bits = first * circuit.garbler_inputs()..(first + instances) * circuit.garbler_inputs();
        let bits: Bits = bits.map(|i| known.get(i)).collect();
        let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
            tables.extend_from_slice(chunk);
            Ok(())
        };
        let permute = garbler.garble(instances, &whole.zero_labels[inputs], &bits, &mut sink).unwrap();
        let outputs = circuit.outputs();
        assert!((0..permute.len()).all(|i| permute.get(i) == whole.permute.get(first * outputs + i)));
        first += instances;
    }
    assert!(tables == whole.tables);
    assert_eq!(garbler.next_batch(), BATCH + batches(200));
}

#[test]
fn tables_may_come_from_a_function() {
    let (circuit, instances) = (relu(), 300);
    let mut prg = prg(7);
    let inputs = Bits::random(instances * circuit.evaluator_inputs(), &mut prg);
    let known = Bits::random(instances * circuit.garbler_inputs(), &mut prg);
    let garbling = garble(&circuit, instances, &known, 8, Backend::detect());
    let mut rest = &garbling.tables[..];
    let mut source = TablesFrom::new(|chunk: &mut [u8]| -> Result<(), GcError> {
        let (now, later) = rest.split_at(chunk.len());
        chunk.copy_from_slice(now);
        rest = later;
        Ok(())
    });
    let labels = garbling.active_labels(&inputs);
    let colours = evaluate(&circuit, instances, garbling.salt, BATCH, &labels, &mut source).unwrap();
    let decoding =
        OutputDecoding::from_bytes(colours.len(), &OutputDecoding::new(garbling.permute).to_bytes());
    let outputs = decoding.unwrap().decode(&colours).unwrap();
    assert_eq!(outputs.as_words(), clear(&circuit, instances, &inputs, &known).as_words());
}

#[test]
fn a_failing_sink_or_source_ends_the_call() {
    #[derive(Debug)]
    struct Closed;
    impl From<GcError> for Closed {
        fn from(_: GcError) -> Self {
            unreachable!("the inputs are right")
        }
    }
    let circuit = relu();
    let zero_labels = vec![Block::ONES; 16 * circuit.evaluator_inputs()];
    let bits = Bits::zeros(16 * circuit.garbler_inputs());
    let delta = Block::from(3);
    let result = garble_all(&circuit, 16, delta, Block::ZERO, 0, &zero_labels, &bits, &mut |_| Err(Closed));
    assert!(matches!(result, Err(Closed)));
    let mut source = TablesFrom::new(|_: &mut [u8]| Err(Closed));
    assert!(matches!(evaluate(&circuit, 16, Block::ZERO, 0, &zero_labels, &mut source), Err(Closed)));
}

/// A source whose chunks are one byte short.
struct Short(Vec<u8>);

impl TableSource for Short {
    type Error = GcError;
    fn next_chunk(&mut self, bytes: usize) -> Result<&[u8], GcError> {
        self.0.resize(bytes - 1, 0);
        Ok(&self.0)
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let circuit = relu();
    let (inputs, known) = (circuit.evaluator_inputs(), circuit.garbler_inputs());
    let labels = vec![Block::ONES; 17 * inputs];
    let mut ignore = |_: &[u8]| -> Result<(), GcError> { Ok(()) };
    let mut garble = |delta: u128, batch, instances, labels: &[Block], bits: usize| {
        let bits = Bits::zeros(bits);
        garble_all(&circuit, instances, Block::from(delta), Block::ZERO, batch, labels, &bits, &mut ignore)
    };
    assert!(garble(1, 0, 17, &labels, 17 * known).is_ok());
    assert!(matches!(garble(2, 0, 17, &labels, 17 * known), Err(GcError::DeltaColour)));
    assert!(matches!(garble(1, 0, 16, &labels, 16 * known), Err(GcError::Length { .. })));
    assert!(matches!(garble(1, 0, 17, &labels, 17 * known + 1), Err(GcError::Length { .. })));
    assert!(matches!(garble(1, u64::MAX - 1, 17, &labels, 17 * known), Err(GcError::BatchesExhausted)));
    assert!(matches!(garble(1, 0, usize::MAX / 2, &labels, 0), Err(GcError::BatchesExhausted)));

    let tables = vec![0; circuit.table_bytes(17)];
    let evaluate = |tables: &[u8], labels: &[Block]| {
        Evaluator::new(&circuit, Block::ZERO, 0)
            .evaluate(17, labels, &mut TablesInMemory::new(tables))
            .map(|_| ())
    };
    assert!(evaluate(&tables, &labels).is_ok());
    assert!(matches!(evaluate(&tables[1..], &labels), Err(GcError::Length { .. })));
    assert!(matches!(evaluate(&tables, &labels[1..]), Err(GcError::Length { .. })));
    let short = Evaluator::new(&circuit, Block::ZERO, 0).evaluate(17, &labels, &mut Short(Vec::new()));
    assert!(matches!(short, Err(GcError::Length { expected, got, .. }) if got + 1 == expected));

    assert!(OutputDecoding::from_bytes(9, &[0]).is_err());
    assert!(OutputDecoding::from_bytes(9, &[0, 2]).is_err());
    assert!(OutputDecoding::new(Bits::zeros(3)).decode(&Bits::zeros(4)).is_err());
    assert!(circuit.evaluate_clear(&[], &[]).is_err());
}

#[test]
fn misuse_of_a_builder_is_an_error() {
    let mut other = CircuitBuilder::new();
    let foreign = other.evaluator_word(5)[4];
    assert!(matches!(CircuitBuilder::new().build(&[foreign]), Err(GcError::ForeignWire)));
    let mut builder = CircuitBuilder::new();
    let word = builder.evaluator_word(3);
    let sum = builder.add(&word, &word[1..]);
    assert!(matches!(builder.build(&sum), Err(GcError::Width { left: 3, right: 2 })));
}
