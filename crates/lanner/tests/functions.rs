//! Functions of one value, from the polynomials that are found for them to both parties' shares: every input, whatever the shares, equals the
//! integer reference, which is as near to the function as it says.

use std::thread;

use lanner_net::memory;
use lanner_network::elementwise::FixedFunction;
use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_quantize::polynomials;
use lanner_step::{Party, Transfers, transfer_sets};
use lanner_transfers::Layer;
use lanner_wire::Channel;

/// A function on integers of some bits, around 0, with fraction bits of input and output.
struct Case {
    name: &'static str,
    function: fn(f64) -> f64,
    bits: u32,
    scale: i32,
    /// Bits of the ring of the output.
    to: u32,
    /// What it may be off by, in units of the last place.
    tolerance: f64,
}

const CASES: [Case; 7] = [
    case("exp of negatives", exp_of_negatives, 15, 12, 14, 1.0),
    case("exp", f64::exp, 16, 12, 25, 2.0),
    case("sigmoid", sigmoid, 16, 12, 14, 1.0),
    case("sigmoid, coarse", sigmoid, 16, 12, 14, 3.0),
    case("tanh", f64::tanh, 16, 12, 14, 1.0),
    case("tanh, coarse", f64::tanh, 16, 12, 14, 4.0),
    case("tanh of 20 bits", f64::tanh, 20, 16, 18, 4.0),
];

const fn case(
    name: &'static str,
    function: fn(f64) -> f64,
    bits: u32,
    scale: i32,
    to: u32,
    tolerance: f64,
) -> Case {
    Case { name, function, bits, scale, to, tolerance }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// On (-4, 4), that is.
fn exp_of_negatives(x: f64) -> f64 {
    (x - 4.0).exp()
}

impl Case {
    /// All inputs.
    fn domain(&self) -> std::ops::Range<i64> {
        -1 << (self.bits - 1)..1 << (self.bits - 1)
    }

    /// What it is at an integer, in units of the output.
    fn real(&self, x: i64) -> f64 {
        let unit = f64::from(self.scale).exp2();
        (self.function)(x as f64 / unit) * unit
    }

    fn fixed(&self) -> FixedFunction {
        let unit = f64::from(-self.scale).exp2();
        let (fixed, error) =
            polynomials(self.function, self.domain().start, self.bits, [unit; 2], self.tolerance);
        assert!(error <= self.tolerance, "{}: {error}", self.name);
        fixed
    }
}

/// The server's shares that adversaries would choose: none, all ones, the top bit, the low bits, and random ones.
fn patterns(ring: Ring, count: usize) -> [Vec<u64>; 5] {
    let top = ring.neg(1);
    let all = |share: u64| vec![share; count];
    let random = Share::random(ring, count, &mut Prg::new(Seed::from_bytes([9; 16])));
    [all(0), all(top), all(top / 2 + 1), all((1 << (ring.bits() / 2)) - 1), random.values().to_vec()]
}

/// What both parties have in the end of these inputs, shared like this, modulo `2^from`.
fn secure(fixed: &FixedFunction, [from, to]: [u32; 2], secrets: &[i64], server: Vec<u64>) -> Vec<i64> {
    let ring = Ring::Pow2(from);
    let layer = Layer::function(&lanner_plan::polynomials(fixed), secrets.len(), from, to, 0).unwrap();
    let server = Share::new(ring, server).unwrap();
    let client = Share::embed(ring, secrets).sub(&server).unwrap();
    let party = |end: &mut dyn Channel, me: Party, share: &Share| {
        let mut rng = Prg::new(Seed::from_bytes([me as u8; 16]));
        let drawn = [Party::Client, Party::Server].map(|party| layer.transfers(party));
        let mut transfers = Transfers::setup(end, me, transfer_sets(drawn), &mut rng).unwrap();
        let request = layer.request(end, &mut transfers).unwrap();
        let material = layer.prepare(end, &mut transfers, request, &mut rng).unwrap();
        layer.online(end, me, material, &[share]).unwrap()
    };
    let (mut here, mut there) = memory::pair();
    thread::scope(|scope| {
        let serving = scope.spawn(|| party(&mut there, Party::Server, &server));
        let mine = party(&mut here, Party::Client, &client);
        mine.reveal(&serving.join().unwrap()).unwrap()
    })
}

/// Secrets under every pattern of shares equal the reference.
fn check(case: &Case, fixed: &FixedFunction, from: u32, secrets: &[i64]) {
    let expected: Vec<i64> = secrets.iter().map(|x| fixed.at(*x)).collect();
    let patterns = patterns(Ring::Pow2(from), secrets.len());
    let all = secrets.repeat(patterns.len());
    let found = secure(fixed, [from, case.to], &all, patterns.concat());
    for (number, found) in found.chunks(secrets.len()).enumerate() {
        assert!(found == expected, "{} with shares of pattern {number}", case.name);
    }
}

/// Some inputs of each function, its ends and both sides of every segment's among them.
#[test]
fn shares_of_every_pattern_give_the_reference() {
    for case in &CASES {
        let fixed = case.fixed();
        let segment = 1 << fixed.place_bits();
        let is_edge = |x: &i64| [0, segment - 1].contains(&((x - fixed.low) & (segment - 1)));
        let step = 1009 << (case.bits - 15);
        let secrets: Vec<i64> = case.domain().filter(|x| is_edge(x) || x % step == 0).collect();
        check(case, &fixed, case.bits, &secrets);
    }
}

/// Every input of every function.
#[test]
#[ignore = "a minute or two"]
fn shares_of_every_pattern_give_the_reference_at_every_input() {
    for case in &CASES {
        let (fixed, secrets) = (case.fixed(), case.domain().collect::<Vec<_>>());
        for secrets in secrets.chunks(1 << 16) {
            check(case, &fixed, case.bits, secrets);
        }
    }
}

/// Inputs beyond the domain count as its ends, wherever in their ring they are: where a function is near its limits there, they are right.
#[test]
fn inputs_beyond_the_domain_are_its_ends() {
    for case in [
        case("sigmoid on (-16, 16)", sigmoid, 17, 12, 14, 1.0),
        case("tanh on (-16, 16)", f64::tanh, 17, 12, 14, 1.0),
        case("tanh", f64::tanh, 20, 16, 18, 4.0),
    ] {
        let (fixed, from) = (case.fixed(), case.bits + 6);
        let reach = (1 << (from - 1)) - (1 << (case.bits - 1)) - 1;
        let beyond = |x: i64| [x - 2, x - 1, x, x + 1, x + 999];
        let ends = [fixed.low, fixed.last()].into_iter().flat_map(beyond);
        let secrets: Vec<i64> = ends.chain([-reach, 1 - reach, 0, reach - 1, reach]).collect();
        check(&case, &fixed, from, &secrets);
        for x in secrets {
            // A quarter of a unit is what the function itself goes on by there.
            let off = (fixed.at(x) as f64 - case.real(x)).abs();
            assert!(off <= case.tolerance + 0.25, "{} at {x}: {off}", case.name);
        }
    }
}

/// What holds of the reference: nowhere farther from the function than is said, rising but for the last places, and as odd as the function.
#[test]
fn references_are_close_and_keep_the_shape_of_their_functions() {
    for case in &CASES {
        let fixed = case.fixed();
        let mut before = i64::MIN;
        let (mut falls, mut odd) = (0, 0);
        for x in case.domain() {
            let y = fixed.at(x);
            assert!((y as f64 - case.real(x)).abs() <= case.tolerance, "{} at {x}", case.name);
            falls = falls.max(before.saturating_sub(y));
            before = y;
            if case.name.starts_with("tanh") && x > case.domain().start {
                odd = odd.max((y + fixed.at(-x)).abs());
            }
        }
        println!("{}: falls by {falls}, odd but for {odd}", case.name);
        // Two integers within a unit of what rises, or is the other's negative, are one unit apart at most: they are off by less than two.
        let apart = (2.0 * case.tolerance).ceil() as i64 - 1;
        assert!(falls <= apart && odd <= apart, "{}: {falls} {odd}", case.name);
    }
}

/// What the compiler chooses polynomials by is what is sent: both counts differ by the carry's value in the result's ring alone.
#[test]
fn what_is_minimised_is_what_is_sent() {
    const VALUES: usize = 64;
    for case in &CASES {
        let fixed = case.fixed();
        let sent = |to: u32| {
            let function = lanner_plan::polynomials(&fixed);
            let layer = Layer::function(&function, VALUES, case.bits, to, 0).unwrap();
            let bytes: usize = layer.messages().map(|(_, bytes)| bytes).sum();
            let transfers: usize =
                [Party::Client, Party::Server].map(|party| layer.transfers(party)).iter().sum();
            ((8 * bytes + transfers) / VALUES) as u64
        };
        // In some ring nothing wraps and nothing is cut off.
        let is_same = |to: u32| sent(to) == fixed.sent_bits() + u64::from(to) - 1;
        let rings = case.to - 2..=case.to + 2;
        let found: Vec<u64> = rings.clone().map(sent).collect();
        assert!(rings.into_iter().any(is_same), "{}: {} {found:?}", case.name, fixed.sent_bits());
    }
}
