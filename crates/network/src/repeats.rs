//! Parts of a list of operations that repeat, as the steps of a recurrent layer do.
//!
//! A part repeats where so many entries, again and again, do the same with values that are as far on each time: what the iteration before
//! made, the next part of a sequence, or what all share. So one iteration and the differences between two describe all of them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// Entries that repeat: `times` iterations of `length` each, from entry `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The first entry of the first iteration.
    pub first: usize,
    /// Entries of an iteration.
    pub length: usize,
    /// Iterations.
    pub times: usize,
}

impl Repeat {
    /// The entry behind the last.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.first + self.length * self.times
    }

    /// The iteration that an entry belongs to, and its place in it; none if it is no part of this.
    #[must_use]
    pub fn place(&self, entry: usize) -> Option<[usize; 2]> {
        let behind = entry.checked_sub(self.first)?;
        (entry < self.end()).then(|| [behind / self.length, behind % self.length])
    }

    /// Entries that the first iteration stands for.
    #[must_use]
    pub const fn spared(&self) -> usize {
        self.length * (self.times - 1)
    }
}

/// The fewest iterations that are worth being one.
pub const FEWEST_TIMES: usize = 8;

/// The most entries of an iteration, and how many entries like its first it may hold, beyond which it is not found.
const MOST_LENGTH: usize = 1024;
const MOST_LIKE_ITS_FIRST: usize = 32;

/// A list of operations.
pub trait Listed {
    /// How many there are.
    fn count(&self) -> usize;

    /// What hashes alike for entries that may stand for each other.
    fn hash(&self, entry: usize, hasher: &mut DefaultHasher);

    /// Whether two entries do the same, but for their numbers.
    fn is_alike(&self, one: usize, other: usize) -> bool;

    /// What may be as far on each time: the values that an entry reads first of all.
    fn numbers(&self, entry: usize) -> Vec<i64>;
}

/// The parts that repeat at least [`FEWEST_TIMES`], in order: from each place on that which covers the most.
#[must_use]
pub fn find(list: &impl Listed) -> Vec<Repeat> {
    let kinds: Vec<u64> = (0..list.count())
        .map(|entry| {
            let mut hasher = DefaultHasher::new();
            list.hash(entry, &mut hasher);
            hasher.finish()
        })
        .collect();
    let finder = Finder { list, numbers: (0..kinds.len()).map(|entry| list.numbers(entry)).collect(), kinds };
    let next = finder.next_of_kind();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < next.len() {
        let lengths = std::iter::successors(next[at], |entry| next[*entry]).map(|entry| entry - at);
        let lengths = lengths.take(MOST_LIKE_ITS_FIRST).take_while(|length| *length <= MOST_LENGTH);
        let repeats = lengths.map(|length| Repeat { first: at, length, times: finder.times(at, length) });
        let longest = repeats
            .filter(|repeat| repeat.times >= FEWEST_TIMES)
            .max_by_key(|repeat| (repeat.end(), Reverse(repeat.length)));
        at = longest.map_or(at + 1, |repeat| repeat.end());
        found.extend(longest);
    }
    found
}

/// Whether an iteration reads what the one before made, as a recurrent layer's does.
#[must_use]
pub fn carries(list: &impl Listed, inputs: impl Fn(usize) -> usize, repeat: &Repeat) -> bool {
    let Repeat { first, length, .. } = *repeat;
    (first + length..first + 2 * length).any(|entry| {
        // Value 0 is the input, value i + 1 what entry i makes.
        let made = first as i64 + 1..(first + length) as i64 + 1;
        list.numbers(entry).into_iter().take(inputs(entry)).any(|value| made.contains(&value))
    })
}

struct Finder<'l, L> {
    list: &'l L,
    kinds: Vec<u64>,
    numbers: Vec<Vec<i64>>,
}

impl<L: Listed> Finder<'_, L> {
    /// For each entry, the next that may stand for it.
    fn next_of_kind(&self) -> Vec<Option<usize>> {
        let mut last = HashMap::new();
        let mut next: Vec<_> =
            self.kinds.iter().enumerate().rev().map(|(entry, kind)| last.insert(*kind, entry)).collect();
        next.reverse();
        next
    }

    /// How often the entries from one on repeat.
    fn times(&self, first: usize, length: usize) -> usize {
        let end = self.kinds.len();
        let mut times = 1;
        while first + (times + 1) * length <= end
            && (first..first + length).all(|entry| self.goes_on(entry, length, times))
        {
            times += 1;
        }
        times
    }

    /// Whether an entry of the first iteration has its counterpart in that of this number, as far on from the one before as that is from the one before it.
    fn goes_on(&self, entry: usize, length: usize, iteration: usize) -> bool {
        let [before, this] = [iteration - 1, iteration].map(|iteration| entry + iteration * length);
        self.kinds[entry] == self.kinds[this]
            && self.numbers[entry].len() == self.numbers[this].len()
            && (iteration == 1 || self.steps(before, this).eq(self.steps(entry, entry + length)))
            && self.list.is_alike(entry, this)
    }

    fn steps(&self, one: usize, other: usize) -> impl Iterator<Item = Option<i64>> + '_ {
        self.numbers[one].iter().zip(&self.numbers[other]).map(|(one, other)| other.checked_sub(*one))
    }
}

/// The numbers of a name, as `12` and `3` of `lstm_12/t3/h`: those that are written as numbers are, of at most nine digits.
pub fn numbers_of(name: &str) -> Vec<i64> {
    pieces(name).filter_map(Result::ok).collect()
}

/// The name without its numbers, each of which is one mark.
#[must_use]
pub fn without_numbers(name: &str) -> String {
    pieces(name).map(|piece| piece.map_or_else(|text| text, |_| "\0")).collect()
}

/// The name with other numbers, one for each that it has; none if one is negative or has too many digits, as it would not be read again.
pub fn with_numbers(name: &str, numbers: impl IntoIterator<Item = i64>) -> Option<String> {
    let mut numbers = numbers.into_iter();
    let mut made = String::with_capacity(name.len() + 8);
    for piece in pieces(name) {
        if let Err(text) = piece {
            made.push_str(text);
            continue;
        }
        let number = numbers.next().filter(|number| (0..1_000_000_000).contains(number))?;
        made.push_str(&number.to_string());
    }
    Some(made)
}

/// Two names that differ in numbers as one, as `lstm/t1..9/h`; the first where they differ in more.
#[must_use]
pub fn from_to(first: &str, last: &str) -> String {
    if without_numbers(first) != without_numbers(last) {
        return first.to_owned();
    }
    let joined = |(one, other): (Result<i64, &str>, Result<i64, &str>)| match (one, other) {
        (Ok(one), Ok(other)) if one != other => format!("{one}..{other}"),
        (Ok(one), _) => one.to_string(),
        (Err(text), _) => text.to_owned(),
    };
    pieces(first).zip(pieces(last)).map(joined).collect()
}

/// Numbers and the text between them.
fn pieces(name: &str) -> impl Iterator<Item = Result<i64, &str>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let first = rest.bytes().next()?.is_ascii_digit();
        let end = rest.bytes().position(|byte| byte.is_ascii_digit() != first).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        let is_number = first && end <= 9 && (end == 1 || !piece.starts_with('0'));
        Some(piece.parse().ok().filter(|_| is_number).ok_or(piece))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::hash::Hash;

    use super::*;

    /// Entries by what they do and read.
    struct List(Vec<(&'static str, Vec<i64>)>);

    impl Listed for List {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn hash(&self, entry: usize, hasher: &mut DefaultHasher) {
            self.0[entry].0.hash(hasher);
        }

        fn is_alike(&self, one: usize, other: usize) -> bool {
            self.0[one].0 == self.0[other].0
        }

        fn numbers(&self, entry: usize) -> Vec<i64> {
            self.0[entry].1.clone()
        }
    }

    /// A beginning, then steps that read the step before and the next of what lies before all, then an end.
    fn recurrent(steps: i64) -> List {
        let mut entries = vec![("begin", vec![0])];
        entries.extend((0..steps).map(|step| ("part", vec![0, step])));
        let base = steps + 1;
        for step in 0..steps {
            let made = base + 3 * step;
            entries.push(("sum", vec![made, step + 2]));
            entries.push(("relu", vec![made + 1]));
            entries.push(("relu", vec![made + 2]));
        }
        entries.push(("end", vec![base]));
        List(entries)
    }

    #[test]
    fn the_steps_are_found_and_what_each_reads_of_the_one_before() {
        let list = recurrent(20);
        let (parts, steps) =
            (Repeat { first: 1, length: 1, times: 20 }, Repeat { first: 21, length: 3, times: 20 });
        assert_eq!(find(&list), [parts, steps]);
        assert_eq!([parts, steps].map(|repeat| carries(&list, |_| 2, &repeat)), [false, true]);
        assert_eq!((steps.end(), steps.spared(), steps.place(25)), (81, 57, Some([1, 1])));
        assert_eq!((steps.place(20), steps.place(81)), (None, None));
    }

    #[test]
    fn a_step_that_differs_ends_what_repeats() {
        for (entry, other) in [(51, ("sum", vec![0, 0])), (52, ("other", vec![52]))] {
            let mut list = recurrent(20);
            list.0[entry] = other;
            let found = find(&list);
            assert!(found.iter().all(|repeat| repeat.place(entry).is_none()), "{found:?}");
            assert!(found.len() >= 2);
        }
        assert_eq!(find(&recurrent(FEWEST_TIMES as i64 - 1)), []);
    }

    #[test]
    fn names_have_their_numbers_back() {
        for (name, numbers) in [
            ("lstm_12/t3/h", vec![12, 3]),
            ("0", vec![0]),
            ("t007/x10", vec![10]),
            ("9999999999", vec![]),
            ("", vec![]),
            ("é1ß", vec![1]),
        ] {
            assert_eq!(numbers_of(name), numbers, "{name}");
            assert_eq!(with_numbers(name, numbers).unwrap(), name);
        }
        assert_eq!(with_numbers("a1/b2", [10, 0]).unwrap(), "a10/b0");
        assert_eq!(with_numbers("a1", [-1]), None);
        assert_eq!(with_numbers("a1", [1_000_000_000]), None);
        assert_ne!(without_numbers("a1b"), without_numbers("ab"));
        assert_eq!(from_to("l_1/t2/h0", "l_1/t9/h0"), "l_1/t2..9/h0");
        assert_eq!([from_to("a1", "a1"), from_to("a1", "b2")], ["a1", "a1"]);
    }
}
