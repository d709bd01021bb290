//! A plan's steps in the order in which both parties take them: loops iteration by iteration, each over one set of layers.

use lanner_step::{Known, ProtocolError, ValueType};

use crate::built::layer;
use crate::limits::FIXED;
use crate::{Item, Plan, PlanError, Repeated, Scan, Step};

/// One visit of a step, or what a loop does around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// What is done.
    pub action: Action,
    /// The values that it reads.
    pub inputs: Vec<usize>,
    /// The value that it makes.
    pub output: usize,
    /// How often what it belongs to was visited before in one prediction: 0 where nothing repeats.
    pub iteration: usize,
}

impl Visit {
    /// The number of the step that is visited, if one is.
    pub(crate) fn step(&self) -> Option<usize> {
        match self.action {
            Action::Step(step) => Some(step),
            Action::Slice { .. } | Action::Join => None,
        }
    }
}

/// What is done in a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The step of this number.
    Step(usize),
    /// One of a given number of equal parts of a value.
    Slice {
        /// Which.
        part: usize,
        /// Of how many.
        parts: usize,
    },
    /// Values one after another.
    Join,
}

/// The visits of a plan, with the type of every value.
pub(crate) struct Unrolled {
    pub(crate) visits: Vec<Visit>,
    pub(crate) types: Vec<ValueType>,
    /// That of what is visited now.
    iteration: usize,
}

/// Unrolls a plan and checks the types of all its values.
///
/// # Errors
/// [`PlanError::Layer`] naming a step that reads what is not there or of another type; [`PlanError::TooLarge`] for too many visits.
pub(crate) fn unroll(plan: &Plan) -> Result<Unrolled, PlanError> {
    let (ring, len) = plan.input;
    // The server's share of the input is zero.
    let types = vec![ValueType::shared(ring, len, Known::SERVER)];
    let mut unrolled = Unrolled { visits: Vec::new(), types, iteration: 0 };
    // Where each value of the plan is among those of the visits.
    let mut places = vec![0];
    let mut first = 0;
    for item in &plan.items {
        match item {
            Item::Step(step) => places.push(unrolled.step(first, step, &places)?),
            Item::Scan(scan) => places.extend(unrolled.scan(first, scan, &places)?),
            Item::Repeat(repeated) => unrolled.repeat(first, repeated, &mut places)?,
        }
        unrolled.iteration = 0;
        first += item.steps().len();
    }
    Ok(unrolled)
}

impl Unrolled {
    fn visit(&mut self, action: Action, inputs: Vec<usize>, made: ValueType) -> usize {
        let output = self.types.len();
        self.visits.push(Visit { action, inputs, output, iteration: self.iteration });
        self.types.push(made);
        output
    }

    fn step(&mut self, number: usize, step: &Step, places: &[usize]) -> Result<usize, PlanError> {
        self.step_with(number, step, step.inputs.iter().copied(), places)
    }

    /// Visits a step that reads these of the plan's values.
    fn step_with(
        &mut self,
        number: usize,
        step: &Step,
        inputs: impl Iterator<Item = usize>,
        places: &[usize],
    ) -> Result<usize, PlanError> {
        let refuse = |source| layer(&step.name, source);
        let inputs = inputs.map(|value| place(places, value));
        let inputs = inputs.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        let types: Vec<_> = inputs.iter().map(|value| self.types[*value]).collect();
        let made = step.protocol.spec().infer(&types).map_err(refuse)?;
        Ok(self.visit(Action::Step(number), inputs, made))
    }

    /// Visits what repeats, and adds the places of what it makes.
    fn repeat(
        &mut self,
        first: usize,
        repeated: &Repeated,
        places: &mut Vec<usize>,
    ) -> Result<(), PlanError> {
        let Repeated { times, body, advances, .. } = repeated;
        let Some(name) = body.first().map(|step| &step.name) else { return Ok(()) };
        let visits = self.visits.len().saturating_add(times.saturating_mul(body.len()));
        check_visits(name, *times, visits)?;
        let wrong = |what| layer(name, ProtocolError::Parameters(what));
        if advances.len() != body.len() {
            return Err(wrong("another number of advances than of steps"));
        }
        for iteration in 0..*times {
            self.iteration = iteration;
            for (number, (step, advances)) in body.iter().zip(advances).enumerate() {
                if advances.len() != step.inputs.len() {
                    return Err(wrong("another number of advances than of values"));
                }
                // A value that no number is one of is none that was made.
                let inputs = step.inputs.iter().zip(advances).map(|(input, advance)| {
                    let on = advance.checked_mul(iteration as i64)?;
                    input.checked_add_signed(isize::try_from(on).ok()?)
                });
                let inputs = inputs.map(|input| input.unwrap_or(usize::MAX));
                let made = self.step_with(first + number, step, inputs, places)?;
                places.push(made);
            }
        }
        Ok(())
    }

    /// Returns the places of what the loop makes.
    fn scan(&mut self, first: usize, scan: &Scan, places: &[usize]) -> Result<Vec<usize>, PlanError> {
        let refuse = |source| layer(&scan.name, source);
        let visits = scan.times.saturating_mul(scan.body.len() + scan.sliced.len());
        check_visits(&scan.name, scan.times, visits)?;
        let read = |values: &mut dyn Iterator<Item = usize>| {
            values.map(|value| place(places, value)).collect::<Result<Vec<_>, _>>()
        };
        let mut carried = read(&mut scan.carried.iter().map(|carried| carried.initial)).map_err(refuse)?;
        let sliced = read(&mut scan.sliced.iter().copied()).map_err(refuse)?;
        let whole = read(&mut scan.whole.iter().copied()).map_err(refuse)?;
        let shapes: Vec<_> = carried.iter().map(|value| shape(self.types[*value])).collect();
        let mut stacks = vec![vec![0; scan.times]; scan.stacked.len()];
        for iteration in 0..scan.times {
            let part = if scan.reverse { scan.times - 1 - iteration } else { iteration };
            self.iteration = iteration;
            let mut body = carried.clone();
            for value in &sliced {
                let made = part_of(self.types[*value], scan.times).map_err(refuse)?;
                body.push(self.visit(Action::Slice { part, parts: scan.times }, vec![*value], made));
            }
            body.extend(&whole);
            for (number, step) in scan.body.iter().enumerate() {
                let made = self.step(first + number, step, &body)?;
                body.push(made);
            }
            let next = scan.carried.iter().map(|carried| place(&body, carried.next));
            carried = next.collect::<Result<_, _>>().map_err(refuse)?;
            if !carried
                .iter()
                .zip(&shapes)
                .all(|(value, shape_before)| shape(self.types[*value]) == *shape_before)
            {
                return Err(refuse(ProtocolError::WrongInput("a carried value changes its type")));
            }
            for (stack, value) in stacks.iter_mut().zip(&scan.stacked) {
                stack[part] = place(&body, *value).map_err(refuse)?;
            }
        }
        for stack in stacks {
            let made = joined(&stack.iter().map(|value| self.types[*value]).collect::<Vec<_>>());
            let made = made.map_err(refuse)?;
            carried.push(self.visit(Action::Join, stack, made));
        }
        Ok(carried)
    }
}

/// Refuses loops without a turn, and with too many visits.
fn check_visits(name: &str, times: usize, visits: usize) -> Result<(), PlanError> {
    if times > 0 && visits <= MAX_VISITS {
        return Ok(());
    }
    Err(PlanError::TooLarge {
        node: name.to_owned(),
        what: "steps of a loop",
        count: visits as u64,
        limit: MAX_VISITS as u64,
        fix: FIXED,
    })
}

fn place(places: &[usize], value: usize) -> Result<usize, ProtocolError> {
    places.get(value).copied().ok_or(ProtocolError::WrongInput("no step made it"))
}

/// A type without who knows its shares.
const fn shape(value: ValueType) -> ValueType {
    match value {
        ValueType::Shared { ring, len, .. } => ValueType::shared(ring, len, Known::NOBODY),
        encrypted @ ValueType::Encrypted(_) => encrypted,
        ValueType::Revealed => ValueType::Revealed,
    }
}

fn part_of(value: ValueType, parts: usize) -> Result<ValueType, ProtocolError> {
    match value {
        ValueType::Shared { ring, len, known } if len.is_multiple_of(parts) => {
            Ok(ValueType::shared(ring, len / parts, known))
        }
        _ => Err(ProtocolError::WrongInput("a value has no such parts")),
    }
}

fn joined(values: &[ValueType]) -> Result<ValueType, ProtocolError> {
    let join = |left: ValueType, right: &ValueType| match (left, *right) {
        (
            ValueType::Shared { ring, len, known },
            ValueType::Shared { ring: other, len: more, known: also },
        ) if ring == other => Ok(ValueType::shared(ring, len + more, known.and(also))),
        _ => Err(ProtocolError::WrongInput("values of different rings are stacked")),
    };
    let (first, rest) = values.split_first().ok_or(ProtocolError::WrongInput("nothing is stacked"))?;
    rest.iter().try_fold(*first, join)
}

/// Visits of one loop, or up to the end of what repeats: far beyond what real recurrent networks have.
const MAX_VISITS: usize = 1 << 17;
