//! A nonlinear layer: what it computes, its preparation, and what it sends.

use lanner_gc::library::Exponential;
use lanner_primitives::{Ring, Share};
use lanner_step::{self as step, Cost, CotSupply, OfflineCost, Party, ProtocolError, Result, Windows};
use lanner_wire::Channel;
use zeroize::Zeroizing;

use super::activation::{Activation, Rounding};
use super::counter::Counter;
use super::driver::{Driver, Program, Task, only};
use super::function::{End, Function};
use super::lanes::{Count, Lanes};
use super::material::Material;
use super::matrices::{Shape, transposed};
use super::moves::{Move, Moves};
use super::polynomials::Polynomials;
use super::probability::Softmax;
use super::run::Run;
use super::scale::Scale;

/// A nonlinear layer on shares over `Z_2^from` with shares over `Z_2^to` of its outputs; both parties run the same.
#[derive(Clone, Debug)]
pub struct Layer<P = Standard> {
    program: P,
    pub(super) moves: Moves,
    from: Ring,
    to: Ring,
    inputs: usize,
}

/// What the constructors of [`Layer`] compute.
#[derive(Clone, Debug)]
pub struct Standard(Operation);

#[derive(Clone, Debug)]
enum Operation {
    Activation(Activation),
    /// Of values over a ring of a given number of bits.
    Square(u32),
    Function(Function),
    /// Of the first half of the values and the second, over a ring of a given number of bits.
    Product(u32),
    /// Of matrices, the left ones and then the right ones, over a ring of a given number of bits.
    Matrices(Shape, u32),
    /// Of the low bits of values.
    Drop(Scale),
    Softmax(Softmax),
}

impl Standard {
    /// Elements that all windows read, where there are some.
    fn reads(&self) -> usize {
        match &self.0 {
            Operation::Activation(activation) => activation.reads(),
            Operation::Matrices(shape, _) => shape.sums(),
            Operation::Square(_)
            | Operation::Function(_)
            | Operation::Product(_)
            | Operation::Drop(_)
            | Operation::Softmax(_) => 0,
        }
    }
}

impl Program for Standard {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        match &self.0 {
            Operation::Activation(activation) => activation.run(driver, x),
            Operation::Square(bits) => driver.square(x, *bits),
            Operation::Function(function) => function.run(driver, x),
            Operation::Product(bits) => {
                let half = x.count() / 2;
                let [numbers, values] = [x.range(0..half), x.range(half..2 * half)];
                let task = Task::Multiply { numbers, factor: *bits, values, bits: *bits };
                only(only(driver.turn(vec![task])?)?)
            }
            Operation::Matrices(shape, bits) => multiply(driver, x, *shape, *bits),
            Operation::Drop(scale) => scale.extend(driver, x, scale.left()),
            Operation::Softmax(softmax) => softmax.run(driver, x),
        }
    }
}

impl Layer {
    /// `function` on windows of values, from `from` to `to` bits.
    ///
    /// What a value leaves behind the shift, whichever way it is rounded, must be below half of the ring that is left, or a quarter where windows have
    /// several elements, so that differences of two of them have a sign: `|x|` at most `2^(from - 1) - 2^shift - 1` or `2^(from - 2) - 2^shift - 1`.
    ///
    /// ReLU with the upper bound 1 and no shift is the step function `[x >= 1]`. Of single elements it is one comparison, and right for all but the lowest
    /// value of the ring: `|x|` at most `2^(from - 1) - 1`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the windows do not fit, fewer than 3 bits are left after the shift (2 of a step function), a ring has more than 62 bits, an
    /// upper bound is negative or comes without ReLU, or there is a slope.
    pub fn activation(
        function: step::Function,
        windows: &Windows,
        from: u32,
        to: u32,
        rounding: Rounding,
    ) -> Result<Self> {
        let activation = Activation::new(function, windows, from, to, rounding)?;
        Self::new(Operation::Activation(activation), windows.inputs(), from, to)
    }

    /// The squares of a given number of values, over `Z_2^bits`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, of 2 to 62 bits.
    pub fn square(values: usize, bits: u32) -> Result<Self> {
        ProtocolError::refuse_if(values == 0 || !(2..=62).contains(&bits), "values or bits of a square")?;
        Self::new(Operation::Square(bits), values, bits, bits)
    }

    /// A function of values over `Z_2^from`, of which `shift` bits are dropped first, rounded, with results over `Z_2^to`.
    ///
    /// What is left of a value must be at least as far from the ends of its ring as a quarter of it, and so must its distance from where the domain
    /// begins; or the domain is the whole ring that is left, from its lowest number on, which rounding must not carry a value out of.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, rings have at most 62 bits, and the polynomials are within their bounds.
    pub fn function(function: &Polynomials, values: usize, from: u32, to: u32, shift: u32) -> Result<Self> {
        Self::function_within(function, values, [from, to], shift, None)
    }

    /// The same from one ring to the other, of values none of which lies beyond an end of the domain. Of one that does what comes out is a function of
    /// that value, too, but not this one.
    ///
    /// # Errors
    /// As [`Self::function`]; and where bits are dropped in front of a domain whose low end is that one.
    pub fn function_within(
        function: &Polynomials,
        values: usize,
        [from, to]: [u32; 2],
        shift: u32,
        within: Option<End>,
    ) -> Result<Self> {
        ProtocolError::refuse_if(values == 0, "the values of a function")?;
        let function = Function::new(function, [from, to], shift)?.within(within)?;
        Self::new(Operation::Function(function), values, from, to)
    }

    /// The products of two values each, over `Z_2^bits`: all first factors, then all second ones.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, of 2 to 62 bits.
    pub fn product(values: usize, bits: u32) -> Result<Self> {
        ProtocolError::refuse_if(values == 0 || !(2..=62).contains(&bits), "values or bits of a product")?;
        Self::new(Operation::Product(bits), 2 * values, bits, bits)
    }

    /// The products of matrices in pairs, `[groups, rows, inner]` and `[groups, inner, columns]`, over `Z_2^bits`: the sides in this order; all left
    /// ones come first, row-major, then all right ones.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, of 2 to 62 bits, and fewer than `2^40` products.
    pub fn matrix_product(sides: [usize; 4], bits: u32) -> Result<Self> {
        let products = sides.into_iter().try_fold(1_usize, usize::checked_mul);
        ProtocolError::refuse_if(
            !products.is_some_and(|products| (1..1_u64 << 40).contains(&(products as u64)))
                || !(2..=62).contains(&bits),
            "matrices or bits of a product",
        )?;
        let [groups, rows, inner, columns] = sides;
        let shape = Shape { groups, rows, inner, columns };
        Self::new(Operation::Matrices(shape, bits), shape.numbers() + shape.values(), bits, bits)
    }

    /// `floor(x / 2^guard)` of a given number of values, over `Z_2^bits`, of values over `Z_2^(bits + guard)`: for every value of the ring.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, of at least 2 bits, and a guard, which have at most 62 bits together.
    pub fn drop_guard(values: usize, bits: u32, guard: u32) -> Result<Self> {
        let from = bits.saturating_add(guard);
        ProtocolError::refuse_if(
            values == 0 || bits < 2 || guard == 0 || from > 62,
            "values or bits of a dropped guard",
        )?;
        Self::new(Operation::Drop(Scale { from, shift: guard }), values, from, bits)
    }

    /// The index of the largest of `classes` scores over `Z_2^bits`, ties to the lowest, and its softmax probability in units of `10^-digits`, as
    /// [`softmax_parts`](lanner_gc::library::softmax_parts) has them: two values over [`softmax_ring`](lanner_step::softmax_ring).
    ///
    /// Scores must be below a quarter of their ring, so that differences of two have a sign.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are 2 to `2^16` classes, at least 3 bits that are not dropped, and 1 to 9 digits, and if no ring has room
    /// for the exponential's sums or their division.
    pub fn softmax(
        classes: usize,
        bits: u32,
        dropped: u32,
        exponential: &Exponential,
        digits: u32,
    ) -> Result<Self> {
        let softmax = Softmax::new(classes, bits, dropped, exponential, digits)?;
        let to = softmax.to();
        Self::new(Operation::Softmax(softmax), classes, bits, to)
    }

    fn new(operation: Operation, inputs: usize, from: u32, to: u32) -> Result<Self> {
        Self::of(Standard(operation), inputs, from, to)
    }

    /// Bytes that either party holds while it computes, at most and besides the material.
    #[must_use]
    pub fn working(&self) -> u64 {
        self.working_on(self.program.reads())
    }

    /// Bytes of the list of what windows read.
    #[must_use]
    pub fn layout_bytes(&self) -> u64 {
        (self.program.reads() * size_of::<usize>()) as u64
    }
}

impl<P: Program> Layer<P> {
    /// A program on a given number of values over `Z_2^from`, whose results are over `Z_2^to`; both of at most 64 bits.
    ///
    /// # Errors
    /// Those of the program.
    pub fn of(program: P, inputs: usize, from: u32, to: u32) -> Result<Self> {
        let mut counter = Counter::default();
        program.run(&mut counter, &Count(inputs))?;
        let [from, to] = [from, to].map(Ring::Pow2);
        Ok(Self { program, moves: counter.into_moves(), from, to, inputs })
    }

    /// Bytes that either party holds while it computes on so many elements that windows read, at most and besides the material.
    pub(super) fn working_on(&self, reads: usize) -> u64 {
        // The input, what windows read of it, and numbers that lie between the moves.
        let between = self.inputs + 4 * reads.max(self.inputs);
        (between * size_of::<u64>() + self.moves.working()) as u64
    }

    /// What it computes.
    pub const fn program(&self) -> &P {
        &self.program
    }

    /// Transfers that a party sends in one run.
    #[must_use]
    pub fn transfers(&self, sender: Party) -> usize {
        self.moves.sent_by(sender)
    }

    /// Values of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bytes that a party keeps of one run's material.
    #[must_use]
    pub fn held(&self, party: Party) -> u64 {
        self.moves.held_by(party) as u64
    }

    /// What it is made of, in order.
    pub fn moves(&self) -> impl Iterator<Item = Move> + '_ {
        self.moves.in_turn().map(|(step, _)| step)
    }

    /// Online: this party's share of the outputs, of those of the inputs one after the other.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share or the material is not this layer's; [`ProtocolError::Channel`] if the channel fails or
    /// the peer sends something else.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: Material,
        shares: &[&Share],
    ) -> Result<Share> {
        let mut inputs = Zeroizing::new(Vec::with_capacity(self.inputs));
        for share in shares {
            let room = self.inputs - inputs.len();
            ProtocolError::check_share(INPUT, share, self.from, share.len().min(room))?;
            inputs.extend_from_slice(share.values());
        }
        ProtocolError::check_length(INPUT, self.inputs, inputs.len())?;
        let mut run = Run::new(channel, party, material);
        let mut outputs = self.program.run(&mut run, &inputs)?;
        run.finish()?;
        Ok(Share::new(self.to, std::mem::take(&mut *outputs))?)
    }

    /// The cost of the offline phase, which depends on what the sources gave before.
    pub fn offline_cost(&self, supply: &mut CotSupply) -> OfflineCost {
        OfflineCost {
            request: supply.client(self.moves.draws(Party::Client)),
            answer: supply.server(self.moves.draws(Party::Server)),
        }
    }

    /// The messages of the online phase in order: who sends each, and the bytes of its payload.
    pub fn messages(&self) -> impl Iterator<Item = (Party, usize)> + '_ {
        self.moves.messages()
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        self.moves.cost()
    }
}

/// The products of matrices, with transfers for the bits of those that have fewer elements: `X Y` is the transpose of `Y^T X^T`.
fn multiply<D: Driver>(driver: &mut D, x: &D::Values, shape: Shape, bits: u32) -> Result<D::Values> {
    let Shape { groups, rows, inner, columns } = shape;
    let (numbers, values) = (x.range(0..shape.numbers()), x.range(shape.numbers()..x.count()));
    if rows <= columns {
        return only(only(driver.turn(vec![Task::Matrices { numbers, values, shape, bits }])?)?);
    }
    let task = Task::Matrices {
        numbers: transposed(&values, groups, inner, columns),
        values: transposed(&numbers, groups, rows, inner),
        shape: Shape { rows: columns, columns: rows, ..shape },
        bits,
    };
    let product = only(only(driver.turn(vec![task])?)?)?;
    Ok(transposed(&product, groups, columns, rows))
}

const INPUT: &str = "input share of a nonlinear layer";
