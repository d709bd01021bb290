//! LoLa's products of an encrypted vector and a matrix in the clear, row by row, by the names that LoLa gives its layouts
//! ([BEG19](https://proceedings.mlr.press/v97/brutzkus19a.html)).

use zeroize::Zeroizing;

use super::hdft::{halves, stack, turn};
use super::{Counted, Operations, SlotScheme};
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// "Stacked vector - row major": as many rows at once as there are copies of the input, and all results brought together in one ciphertext, "interleaved".
///
/// Copies lie at the multiples of the period, the power of two from the inputs on. Row `copies g + r` is summed in group `g` at slot `period r`. Other
/// slots hold sums over parts of rows then, so that a mask takes the results, one rotation for each further group brings them to slot `period r + g`, and they are added. With one copy that fills
/// all slots ("dense vector - row major"), or one that fills a row of them, every slot holds the sum, and a mask suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackedRows {
    inputs: usize,
    outputs: usize,
    copies: usize,
    slots: usize,
}

impl StackedRows {
    /// The layer with so many copies, a power of two.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless a ciphertext holds the copies, and the results.
    pub fn new(inputs: usize, outputs: usize, copies: usize, slots: usize) -> Result<Self, ProtocolError> {
        let layer = Self { inputs, outputs, copies, slots };
        let powers = copies.is_power_of_two() && slots.is_power_of_two();
        let fits = powers && (1..=slots).contains(&inputs) && copies <= slots / layer.period();
        if fits && outputs > 0 && layer.groups() <= layer.period() {
            Ok(layer)
        } else {
            Err(ProtocolError::Parameters("a stacked layer that one ciphertext holds"))
        }
    }

    fn period(&self) -> usize {
        self.inputs.next_power_of_two()
    }

    /// Groups of rows that are computed at once.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.outputs.div_ceil(self.copies)
    }

    /// Whether every slot of a copy holds the sum of its row, since rotations close a circle.
    fn is_circle(&self) -> bool {
        self.period() >= self.slots / 2
    }

    /// The slot of an output element; all others are zero.
    #[must_use]
    pub fn to(&self, element: usize) -> usize {
        element % self.copies * self.period() + element / self.copies
    }

    fn stacking(&self) -> Vec<Rotation> {
        stack(self.period(), self.copies, self.slots)
    }

    fn sums(&self) -> Vec<Rotation> {
        halves(1, self.period(), self.slots)
    }

    /// What brings the results of a group to their slots.
    fn placing(&self, group: usize) -> Option<Rotation> {
        (group > 0 && !self.is_circle()).then(|| Rotation::by(-(group as isize), self.slots))
    }

    /// All rotations.
    #[must_use]
    pub fn rotations(&self) -> Vec<Rotation> {
        let placing: Vec<_> = (0..self.groups()).filter_map(|group| self.placing(group)).collect();
        [self.stacking(), self.sums(), placing].concat()
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> Operations {
        let stacking = Operations::rotate_and_add(self.copies.ilog2() as usize);
        let row = Operations::PRODUCT + Operations::rotate_and_add(self.period().ilog2() as usize);
        let further = self.groups() - 1;
        let rotations = if self.is_circle() { 0 } else { further };
        let placing = Operations { rotations, additions: further, ..Operations::NONE };
        stacking + (row + Operations::PRODUCT) * self.groups() + placing
    }

    /// Makes the weights of a group, `[outputs][inputs]`, and its mask ready: residues.
    ///
    /// # Errors
    /// The scheme's.
    pub fn prepare<S: SlotScheme>(
        &self,
        scheme: &S,
        group: usize,
        weights: &[u64],
    ) -> Result<[S::Multiplier; 2], ProtocolError> {
        let (mut rows, mut mask) = (Zeroizing::new(vec![0; self.slots]), Zeroizing::new(vec![0; self.slots]));
        let outputs = group * self.copies..self.outputs.min((group + 1) * self.copies);
        for (copy, output) in outputs.enumerate() {
            rows[copy * self.period()..][..self.inputs]
                .copy_from_slice(&weights[output * self.inputs..][..self.inputs]);
            mask[copy * self.period() + if self.is_circle() { group } else { 0 }] = 1;
        }
        Ok([scheme.multiplier(&rows)?, scheme.multiplier(&mask)?])
    }

    /// Makes copies of an input whose element `e` lies in slot `e`, all others being zero.
    ///
    /// # Errors
    /// The scheme's.
    pub fn stacked<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        input: &S::Ciphertext,
    ) -> Result<S::Ciphertext, ProtocolError> {
        scheme.fold(input.clone(), &self.stacking())
    }

    /// The results of a group, in their slots.
    ///
    /// # Errors
    /// The scheme's.
    pub fn group<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        stacked: &S::Ciphertext,
        group: usize,
        [rows, mask]: &[S::Multiplier; 2],
    ) -> Result<S::Ciphertext, ProtocolError> {
        let products = scheme.multiply(stacked, rows)?;
        let sums = scheme.fold(products, &self.sums())?;
        let masked = scheme.multiply(&sums, mask)?;
        match self.placing(group) {
            None => Ok(masked),
            Some(rotation) => scheme.rotate(&masked, rotation),
        }
    }

    /// The layer. The results lie as [`Self::to`] says.
    ///
    /// # Errors
    /// The scheme's.
    pub fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        input: &S::Ciphertext,
        groups: &[[S::Multiplier; 2]],
    ) -> Result<S::Ciphertext, ProtocolError> {
        let stacked = self.stacked(scheme, input)?;
        scheme.sum(groups.len(), |scheme, group| self.group(scheme, &stacked, group, &groups[group]))
    }
}

/// "Interleaved vector - row major", or dense: row by row, with a ciphertext for each result ("sparse").
///
/// Inputs lie in any slots. Those of which a bit of the slot's number differs from others' are summed over that bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    places: Vec<usize>,
    slots: usize,
}

impl Rows {
    /// For inputs in these slots.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if there is none, or a slot beyond all.
    pub fn new(places: &[usize], slots: usize) -> Result<Self, ProtocolError> {
        ProtocolError::refuse_if(
            places.is_empty() || !slots.is_power_of_two() || places.iter().any(|place| *place >= slots),
            "the slots of a layer's input",
        )?;
        Ok(Self { places: places.to_vec(), slots })
    }

    /// The slot of each result.
    #[must_use]
    pub fn to(&self) -> usize {
        self.places.iter().fold(self.slots - 1, |common, place| common & place)
    }

    /// The rotations of each row, whose results are added.
    #[must_use]
    pub fn rotations(&self) -> Vec<Rotation> {
        let any = self.places.iter().fold(0, |any, place| any | place);
        let differs = |bit: &u32| (any & !self.to()) >> bit & 1 == 1;
        (0..self.slots.ilog2()).filter(differs).map(|bit| turn(1 << bit, self.slots)).collect()
    }

    /// All operations of so many rows.
    #[must_use]
    pub fn operations(&self, rows: usize) -> Operations {
        (Operations::PRODUCT + Operations::rotate_and_add(self.rotations().len())) * rows
    }

    /// Makes a row's weights ready: residues.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] unless there is one for each input; the scheme's.
    pub fn prepare<S: SlotScheme>(&self, scheme: &S, row: &[u64]) -> Result<S::Multiplier, ProtocolError> {
        ProtocolError::check_length("weights of a row", self.places.len(), row.len())?;
        let mut values = Zeroizing::new(vec![0; self.slots]);
        for (place, weight) in self.places.iter().zip(row) {
            values[*place] = *weight;
        }
        scheme.multiplier(&values)
    }

    /// The results of all rows, each in slot [`Self::to`] of its ciphertext; other slots hold anything.
    ///
    /// # Errors
    /// The scheme's.
    pub fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        input: &S::Ciphertext,
        rows: &[S::Multiplier],
    ) -> Result<Vec<S::Ciphertext>, ProtocolError> {
        let mut result = |row: &S::Multiplier| {
            let products = scheme.multiply(input, row)?;
            scheme.fold(products, &self.rotations())
        };
        rows.iter().map(&mut result).collect()
    }
}

/// "Convolution vector - row major": for each place of the kernel a ciphertext with what it reads at every output position, and each map the sum of these,
/// weighted. Maps are brought together by one rotation each.
///
/// A client may as well lay out what a place reads for all maps, and in any slots: then there is one map, of all outputs, and no rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Places of the kernel, over all input channels.
    pub taps: usize,
    /// Maps.
    pub maps: usize,
    /// Slots from one map to the next.
    pub pitch: usize,
    /// Slots of a ciphertext.
    pub slots: usize,
}

impl Planes {
    /// The rotation of all maps but one.
    #[must_use]
    pub fn rotation(&self) -> Rotation {
        Rotation::by(-(self.pitch as isize), self.slots)
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> Operations {
        let products =
            Operations { multiplications: self.taps, additions: self.taps - 1, ..Operations::NONE };
        products * self.maps + Operations::rotate_and_add(self.maps - 1)
    }

    /// The maps, one behind the other, of inputs in the order of places, and factors in the order of maps and places.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] unless there are as many of both as the layer takes; the scheme's.
    pub fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        inputs: &[S::Ciphertext],
        factors: &[S::Multiplier],
    ) -> Result<S::Ciphertext, ProtocolError> {
        ProtocolError::refuse_if(
            inputs.len() != self.taps || factors.len() != self.taps * self.maps || self.taps == 0,
            "the planes of a convolution",
        )?;
        let mut all = None;
        for factors in factors.chunks(self.taps).rev() {
            let map = scheme.sum(self.taps, |scheme, tap| scheme.multiply(&inputs[tap], &factors[tap]))?;
            all = Some(match all {
                None => map,
                Some(behind) => {
                    let mut moved = scheme.rotate(&behind, self.rotation())?;
                    scheme.add_assign(&mut moved, &map)?;
                    moved
                }
            });
        }
        all.ok_or(ProtocolError::Parameters("a convolution without maps"))
    }
}
