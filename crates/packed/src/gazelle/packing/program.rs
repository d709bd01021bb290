//! The operations of a layout: which products there are, what each plaintext weighs, and how partial sums come together.

use std::collections::BTreeMap;

use lanner_step::Rotation;

use super::channels::Channels;
use super::{Cell, Packing};
use crate::gazelle::kernel::Kernel;
use crate::gazelle::program::{Hoisted, Program, Term};

/// A partial sum: what is rotated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Partial {
    output: usize,
    /// The input ciphertext, if each has sums of its own.
    input: usize,
    giant: usize,
    /// The shift down, if partial sums are rotated by it.
    down: isize,
}

/// Phases of input channels that meet output channels of their group, by diagonal and output ciphertext.
type Meetings = BTreeMap<(usize, usize), Vec<[usize; 2]>>;

impl Packing {
    /// Builds the program and the list of plaintexts.
    pub(super) fn build_program(&mut self) {
        let mut program = Program { inputs: Vec::with_capacity(self.channels.inputs), ..Program::default() };
        let mut sums: BTreeMap<Partial, usize> = BTreeMap::new();
        for input in 0..self.channels.inputs {
            let mut hoisted: BTreeMap<(usize, [isize; 2]), Hoisted> = BTreeMap::new();
            for cell in self.cells_of(input) {
                let term = Term {
                    multiplier: self.cells.len(),
                    sum: *sums.entry(self.partial(cell)).or_insert_with(|| program.add_sum()),
                };
                self.cells.push(cell);
                let key = (cell.diagonal % self.channels.baby, self.input_shift(cell));
                let rotation = self.input_rotation(cell);
                hoisted
                    .entry(key)
                    .or_insert_with(|| Hoisted { rotation, terms: Vec::new() })
                    .terms
                    .push(term);
            }
            program.inputs.push(hoisted.into_values().collect());
        }
        for output in 0..self.channels.outputs {
            let own = sums.iter().filter(|(partial, _)| partial.output == output);
            let total = self.combine(&mut program, own.map(|(partial, sum)| (*partial, *sum)).collect());
            for fold in self.folds() {
                program.merge(total, total, fold);
            }
            program.outputs.push(total);
        }
        self.program = program.of_samples(self.samples);
    }

    /// The plaintexts of an input ciphertext that are not zero for all weights, by the rotation they weigh.
    fn cells_of(&self, input: usize) -> Vec<Cell> {
        let shifts = [self.axes[0].shifts(), self.axes[1].shifts()];
        // Where groups are many, few channels meet, and they are sought from the channels; else most diagonals have some.
        let many = self.shape.groups > self.shape.group_inputs();
        let meetings = if many { self.meetings_by_group(input) } else { self.meetings(input) };
        let mut cells = Vec::new();
        for ((diagonal, output), phases) in meetings {
            for down in &shifts[0] {
                for right in &shifts[1] {
                    let shift = [*down, *right];
                    if phases.iter().any(|phase| self.reads(shift, *phase)) {
                        cells.push(Cell { input, output, diagonal, shift });
                    }
                }
            }
        }
        cells.sort_by_key(|cell| (cell.diagonal % self.channels.baby, self.input_shift(*cell)));
        cells
    }

    /// The phases of channels of an input ciphertext that a diagonal weighs for output channels of their group, by diagonal and output ciphertext.
    fn meetings(&self, input: usize) -> Meetings {
        let (sources, targets) = (self.source_groups(input), self.target_groups());
        let pairs = (0..self.channels.diagonals)
            .flat_map(|diagonal| targets.iter().enumerate().map(move |output| (diagonal, output)));
        let of = |(diagonal, (output, targets)): (usize, (usize, &Vec<_>))| {
            ((diagonal, output), self.phases_that_meet(&sources, targets, diagonal))
        };
        pairs.map(of).collect()
    }

    /// The group and the phase of the input channel at each position of an input ciphertext's first copy.
    fn source_groups(&self, input: usize) -> Vec<Option<(usize, [usize; 2])>> {
        let group = |(channel, phase)| (channel / self.shape.group_inputs(), phase);
        (0..self.channels.period).map(|at| self.channels.input(&self.shape, input, at).map(group)).collect()
    }

    /// The group of the output channel that each position weighs inputs for, by output ciphertext.
    fn target_groups(&self) -> Vec<Vec<Option<usize>>> {
        let group = |output, at| {
            self.channels.output(&self.shape, output, at).map(|channel| channel / self.shape.group_outputs())
        };
        (0..self.channels.outputs)
            .map(|output| (0..self.channels.positions).map(|at| group(output, at)).collect())
            .collect()
    }

    /// The phases of input channels that a diagonal weighs for an output channel of their group.
    fn phases_that_meet(
        &self,
        sources: &[Option<(usize, [usize; 2])>],
        targets: &[Option<usize>],
        diagonal: usize,
    ) -> Vec<[usize; 2]> {
        let Channels { positions, period, .. } = self.channels;
        let all = self.axes[0].phases().len() * self.axes[1].phases().len();
        let rotation = self.block_rotation(diagonal, 1);
        let mut phases = Vec::new();
        for (position, target) in targets.iter().enumerate() {
            let (Some(target), Some((group, phase))) =
                (target, sources[rotation.source(position, positions) % period])
            else {
                continue;
            };
            if *target == group && !phases.contains(&phase) {
                phases.push(phase);
            }
            if phases.len() == all {
                break;
            }
        }
        phases
    }

    /// As [`Self::meetings`], where each input channel is held against the output channels of its group alone.
    fn meetings_by_group(&self, input: usize) -> Meetings {
        let Channels { positions, period, diagonals, .. } = self.channels;
        let mut meetings = Meetings::new();
        for at in 0..period {
            let Some((channel, phase)) = self.channels.input(&self.shape, input, at) else { continue };
            let first = channel / self.shape.group_inputs() * self.shape.group_outputs();
            for target in first..first + self.shape.group_outputs() {
                let (output, end) = self.output_position(0, target);
                // Sums that come together at their end, and copies of the channel.
                for position in (end..end + period).step_by(diagonals) {
                    for source in (at..positions).step_by(period) {
                        let diagonal = self.diagonal_between(position, source);
                        if diagonal < diagonals {
                            let phases = meetings.entry((diagonal, output)).or_default();
                            if !phases.contains(&phase) {
                                phases.push(phase);
                            }
                        }
                    }
                }
            }
        }
        meetings
    }

    /// The diagonal that weighs what is at a position for another one.
    fn diagonal_between(&self, position: usize, source: usize) -> usize {
        let half = self.channels.positions / 2;
        let swap = usize::from(position / half != source / half);
        swap * half + (source % half + half - position % half) % half
    }

    /// Output channel, input channel and its phase that meet at a position of a diagonal, if of one group.
    fn pair(
        &self,
        input: usize,
        output: usize,
        diagonal: usize,
        position: usize,
    ) -> Option<(usize, usize, [usize; 2])> {
        let channels = &self.channels;
        let out_channel = channels.output(&self.shape, output, position)?;
        let source = self.block_rotation(diagonal, 1).source(position, channels.positions);
        let (in_channel, phase) = channels.input(&self.shape, input, source % channels.period)?;
        let same = out_channel / self.shape.group_outputs() == in_channel / self.shape.group_inputs();
        same.then_some((out_channel, in_channel, phase))
    }

    fn reads(&self, shift: [isize; 2], phase: [usize; 2]) -> bool {
        [0, 1].into_iter().all(|axis| self.axes[axis].reads(shift[axis], phase[axis]))
    }

    /// The weight at a slot, before partial sums are rotated; none where the source is outside the frame.
    pub(super) fn weight(&self, cell: Cell, slot: usize) -> Option<usize> {
        let (position, pixel) = self.channels.place(slot);
        let (out_channel, in_channel, phase) = self.pair(cell.input, cell.output, cell.diagonal, position)?;
        let y = self.axes[0].tap_inside(pixel[0], cell.shift[0], phase[0])?;
        let x = self.axes[1].tap_inside(pixel[1], cell.shift[1], phase[1])?;
        Some(self.shape.weight_index(out_channel, in_channel % self.shape.group_inputs(), [y, x]))
    }

    /// The weight in all slots alike, where one channel is alone in a ciphertext.
    pub(super) fn constant_weight(&self, cell: Cell) -> Option<usize> {
        let (out_channel, in_channel, phase) = self.pair(cell.input, cell.output, 0, 0)?;
        let y = self.axes[0].tap(cell.shift[0], phase[0])?;
        let x = self.axes[1].tap(cell.shift[1], phase[1])?;
        Some(self.shape.weight_index(out_channel, in_channel % self.shape.group_inputs(), [y, x]))
    }

    /// The rotation by `blocks` block positions of `size` slots each.
    fn block_rotation(&self, blocks: usize, size: usize) -> Rotation {
        let half = self.channels.positions / 2;
        Rotation { step: blocks % half * size, swap: blocks >= half }
    }

    /// The part of a cell's shift that inputs are rotated by.
    fn input_shift(&self, cell: Cell) -> [isize; 2] {
        if self.is_separable() { [0, cell.shift[1]] } else { cell.shift }
    }

    fn is_separable(&self) -> bool {
        matches!(self.kernel, Kernel::Separable { .. })
    }

    fn input_rotation(&self, cell: Cell) -> Rotation {
        let baby = self.block_rotation(cell.diagonal % self.channels.baby, self.channels.block);
        let [down, right] = self.input_shift(cell);
        baby.then(self.shift_rotation(down, right), self.slots)
    }

    fn shift_rotation(&self, down: isize, right: isize) -> Rotation {
        Rotation::by(down * self.channels.block_width as isize + right, self.slots)
    }

    /// The rotation of the partial sum that a cell belongs to.
    pub(super) fn merge_rotation(&self, cell: Cell) -> Rotation {
        let Partial { giant, down, .. } = self.partial(cell);
        let giant = self.block_rotation(giant * self.channels.baby, self.channels.block);
        giant.then(self.shift_rotation(down, 0), self.slots)
    }

    fn partial(&self, cell: Cell) -> Partial {
        let giant = cell.diagonal / self.channels.baby;
        // What is not rotated needs no sum of its own.
        let per_input = self.kernel == Kernel::OutputRotationsPerInput && giant != 0;
        Partial {
            output: cell.output,
            input: if per_input { cell.input } else { 0 },
            giant,
            down: if self.is_separable() { cell.shift[0] } else { 0 },
        }
    }

    /// Brings the partial sums of one output into place.
    fn combine(&self, program: &mut Program, sums: Vec<(Partial, usize)>) -> usize {
        if self.kernel == Kernel::OutputRotationsPerInput {
            return self.combine_one_by_one(program, &sums);
        }
        let mut rows: BTreeMap<usize, BTreeMap<isize, usize>> = BTreeMap::new();
        for (partial, sum) in sums {
            rows.entry(partial.giant).or_default().insert(partial.down, sum);
        }
        let half = self.channels.positions / 2;
        let mut halves = [BTreeMap::new(), BTreeMap::new()];
        for (giant, downs) in rows {
            let sum = program.gather(&downs, |down| self.shift_rotation(down, 0));
            let diagonal = giant * self.channels.baby;
            halves[usize::from(diagonal >= half)].insert((diagonal % half) as isize, sum);
        }
        let along = |blocks: isize| Rotation::by(blocks * self.channels.block as isize, self.slots);
        let total = program.gather(&halves[0], along);
        if !halves[1].is_empty() {
            let other = program.gather(&halves[1], along);
            program.merge(other, total, Rotation::SWAP);
        }
        total
    }

    /// Every partial sum is rotated by its own diagonal.
    fn combine_one_by_one(&self, program: &mut Program, sums: &[(Partial, usize)]) -> usize {
        let first = sums.iter().find(|(partial, _)| partial.giant == 0).map(|(_, sum)| *sum);
        let total = first.unwrap_or_else(|| program.add_sum());
        for (partial, sum) in sums.iter().filter(|(_, sum)| *sum != total) {
            program.merge(*sum, total, self.block_rotation(partial.giant, self.channels.block));
        }
        total
    }

    /// The rotate-and-add steps that complete the sums.
    fn folds(&self) -> Vec<Rotation> {
        let (diagonals, doublings) =
            (self.channels.diagonals, self.channels.period / self.channels.diagonals);
        (0..doublings.ilog2()).map(|log| self.block_rotation(diagonals << log, self.channels.block)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_step::{Convolution, Samples};

    use super::*;

    #[test]
    fn what_meets_is_found_from_diagonals_and_from_channels() {
        let grouped =
            |groups: usize, outputs: usize, inputs: usize, image: [usize; 2], strides: [usize; 2]| {
                let [in_channels, out_channels] = [groups * inputs, groups * outputs];
                let one = Convolution::fully_connected(in_channels, out_channels);
                Convolution { image, strides, groups, ..one }
            };
        let shapes = [
            grouped(40, 1, 1, [1, 1], [1, 1]),
            grouped(7, 2, 3, [1, 1], [1, 1]),
            grouped(9, 3, 2, [2, 2], [1, 1]),
            Convolution { kernel: [2, 2], ..grouped(6, 1, 2, [4, 4], [2, 2]) },
            grouped(3, 1, 1, [4, 4], [1, 1]),
            grouped(1, 5, 6, [1, 1], [1, 1]),
        ];
        for shape in shapes {
            for packing in Packing::all(&shape, 64).unwrap() {
                for input in 0..packing.channels.inputs {
                    let mut found = packing.meetings_by_group(input);
                    let mut sought = packing.meetings(input);
                    sought.retain(|_, phases| !phases.is_empty());
                    for phases in found.values_mut().chain(sought.values_mut()) {
                        phases.sort_unstable();
                    }
                    assert_eq!(found, sought, "{shape:?}, {:?}", packing.kernel());
                }
            }
        }
    }

    #[test]
    fn work_is_no_less_than_what_a_layout_multiplies() {
        for [groups, outputs, inputs] in
            [[40, 1, 1], [9, 2, 3], [100, 63, 64], [3000, 3, 1], [9000, 1, 2], [20_000, 1, 1]]
        {
            let one = Convolution::fully_connected(groups * inputs, groups * outputs);
            let shape = Convolution { groups, ..one };
            let bound = crate::gazelle::work(&shape, Samples::ONE).products;
            for packing in Packing::choices(&shape, 8192, Samples::ONE).unwrap() {
                let products = packing.operations().multiplications as u64;
                assert!(products <= bound, "{shape:?}, {:?}: {products}, {bound}", packing.kernel());
            }
            assert!(bound <= 6400, "{groups} groups: {bound}");
        }
    }
}
