//! What a client learns by asking the same question again and again: with exact rounding the result and nothing else. A layer, its rescale
//! and the opened result are run thousands of times on one input; what the client sees of each run, jointly with the result, must be drawn
//! alike whatever the low bits are that the rescale drops. Where each party drops the low bits of its own share, the carry that is missing
//! depends on them, and the same test finds it. Chi-square tests under fixed seeds, at a level of `10^-6`.

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{Accuracy, ClientLayer, Scheme, ServerLayer, Stacked};
use lanner_local::reshare;
use lanner_ot::silent::Parameters;
use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Answering, Client, Convolution, Function, Party, Server, Sets, Step, Transfers, Windows};
use lanner_testkit::{check_bits, chi_square_limit, two_sample_chi_square};
use lanner_transfers::{Layer, Rounding};
use lanner_wire::{pack_bits, unpack_bits};

use crate::common::{Party as End, inputs, keys_alone, rng, run, share, unknown};

const BITS: u32 = 20;
/// Bits that the rescale drops.
const DROPPED: u32 = 8;
const FROM: Ring = Ring::Pow2(BITS);
/// Bits of the ring of results.
const TO: u32 = 24;
const INPUT: [i64; 4] = [100, -50, 7, 1];
/// Every output has the same weights and a mask of its own: each is a repetition. A multiple of 64.
const REPEATS: usize = 1024;
const RUNS: u8 = 4;

/// How the layer and the rescale behind it round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Exact,
    /// The same, of sums with bits of guard, which the rescale drops.
    Guarded,
    /// Each party drops the low bits of its own share.
    Local,
    /// The rescale is exact; each party drops the low bits of its own phase, so that a sum may be off by one.
    OffByOne,
}

/// A layer of one row of weights, time and again, and `max(x, 0)` of its sums, rescaled.
struct Network {
    set: ParameterSet,
    client: ClientLayer,
    server: Answering<ServerLayer>,
    activation: Layer,
}

/// What the client gets of a run: its shares of the sums and of the results, and the results.
struct Answer {
    sums: Share,
    outputs: Share,
    results: Vec<i64>,
}

impl Network {
    /// Weights whose sum with the input is `hidden`.
    fn new(way: Way, hidden: i64) -> Self {
        let shape = Convolution::fully_connected(INPUT.len(), REPEATS);
        let (accuracy, rounding) = match way {
            Way::Exact => (Accuracy::Exact, Rounding::Exact),
            Way::Guarded => (Accuracy::Guarded(2), Rounding::Exact),
            Way::Local => (Accuracy::OffByOne, Rounding::Faithful),
            Way::OffByOne => (Accuracy::OffByOne, Rounding::Exact),
        };
        let sets = Sets::new().unwrap();
        let (set, scheme) =
            Scheme::cheapest(&Stacked::try_from(&shape).unwrap(), BITS, accuracy, &sets).unwrap();
        // The last input is one.
        let weights = [31, 12, -5];
        let rest: i64 = weights.iter().zip(INPUT).map(|(w, x)| w * x).sum();
        let row = [&weights[..], &[hidden - rest]].concat();
        let guard = accuracy.guard();
        let function = Function { relu: true, shift: DROPPED + guard, ..Function::IDENTITY };
        let windows = Windows::each(REPEATS);
        Self {
            set,
            client: ClientLayer::new(scheme.clone()).unwrap(),
            server: Answering(ServerLayer::new(scheme, &row.repeat(REPEATS), &[0; REPEATS]).unwrap()),
            activation: Layer::activation(function, &windows, BITS + guard, TO, rounding).unwrap(),
        }
    }

    fn ask(&self, end: &mut End, rng: Prg) -> Vec<Answer> {
        let mut client = Client::set_up(end, &keys_alone(self.set, []), rng).unwrap();
        let mut transfers =
            Transfers::setup(end, Party::Client, [Parameters::ALL[0]; 2], &mut client.rng).unwrap();
        let mut answer = |_| {
            let request = self.client.request(end, &mut client).unwrap();
            let ahead = self.activation.request(end, &mut transfers).unwrap();
            let (material, _) = self.client.prepare(end, &mut client, request, &unknown(1)).unwrap();
            let compared = self.activation.prepare(end, &mut transfers, ahead, &mut client.rng).unwrap();
            let input = inputs(&[&Share::embed(FROM, &INPUT)]);
            let sums = share(self.client.online(end, material, &input).unwrap());
            let outputs = self.activation.online(end, Party::Client, compared, &[&sums]).unwrap();
            let results = reshare::learn(end, &outputs).unwrap();
            Answer { sums, outputs, results }
        };
        (0..RUNS).map(&mut answer).collect()
    }

    fn serve(&self, end: &mut End, rng: Prg) {
        let mut server = Server::set_up(end, &keys_alone(self.set, []), rng).unwrap();
        let mut transfers =
            Transfers::setup(end, Party::Server, [Parameters::ALL[0]; 2], &mut server.rng).unwrap();
        for _ in 0..RUNS {
            let (material, _) = self.server.prepare(end, &mut server, (), &unknown(1)).unwrap();
            let ahead = self.activation.request(end, &mut transfers).unwrap();
            let compared = self.activation.prepare(end, &mut transfers, ahead, &mut server.rng).unwrap();
            let input = inputs(&[&Share::zero(FROM, INPUT.len())]);
            let sums = share(self.server.online(end, material, &input).unwrap());
            let outputs = self.activation.online(end, Party::Server, compared, &[&sums]).unwrap();
            reshare::reveal(end, &outputs).unwrap();
        }
    }
}

/// Something that the client sees, by its name: a few bits for each repetition.
type Seen = (&'static str, Vec<u64>);

/// All that it sees, and the results.
struct Views {
    seen: Vec<Seen>,
    results: Vec<i64>,
}

impl Views {
    /// What is seen of a network; masks are those of a number.
    fn of(network: &Network, number: u8) -> Self {
        let mut channels = End::pair();
        let (client, server) = (rng(2 * number), rng(2 * number + 1));
        let (answers, ()) =
            run(&mut channels, |end| network.ask(end, client), |end| network.serve(end, server));
        let low = |share: fn(&Answer) -> &Share, shift: u32| {
            let values = answers.iter().flat_map(|answer| share(answer).values());
            values.map(|value| value >> shift & (KEPT - 1)).collect::<Vec<u64>>()
        };
        let mut seen = vec![
            (HIGH, low(|answer| &answer.sums, DROPPED - 4)),
            ("the low part of what its share drops", low(|answer| &answer.sums, 0)),
            ("the lowest bits of its share that stay", low(|answer| &answer.sums, DROPPED)),
            ("its share of the result", low(|answer| &answer.outputs, 0)),
        ];
        seen.extend(messages(&channels.1));
        Self { seen, results: answers.into_iter().flat_map(|answer| answer.results).collect() }
    }
}

const HIGH: &str = "the high part of what its share drops";
/// Values of what is seen that are told apart.
const KEPT: u64 = 16;

/// The first bits of each repetition's value in each message of a comparison that the server sends, message by message of a run.
fn messages(server: &End) -> Vec<Seen> {
    let mut seen = Vec::new();
    for (kind, name) in [
        (0x70, "choices"),
        (0x71, "replies"),
        (0x72, "opened bits"),
        (0x73, "selections"),
        (0x74, "products"),
    ] {
        let sent = server.sent_of(kind);
        let in_run = sent.len() / usize::from(RUNS);
        for first in 0..in_run {
            let values = sent.iter().skip(first).step_by(in_run).flat_map(|message| {
                // Parts of the message have other widths: as many values as there are repetitions, of the first part's.
                let width = match kind {
                    0x71 => 16.min(8 * message.len() / REPEATS),
                    0x72 | 0x73 => 1,
                    _ => 8 * message.len() / REPEATS,
                };
                let values = unpack_bits(&message[..REPEATS * width / 8], REPEATS, width as u32).unwrap();
                values.into_iter().map(|value| value & (KEPT - 1))
            });
            seen.push((name, values.collect()));
        }
    }
    seen
}

/// Counts of what is seen with the last bit of the result.
fn joint(seen: &[u64], results: &[i64]) -> Vec<u64> {
    let mut counts = vec![0; 2 * KEPT as usize];
    seen.iter().zip(results).for_each(|(seen, y)| counts[(2 * seen + (y & 1) as u64) as usize] += 1);
    counts
}

/// What is seen of two hidden sums that is not drawn alike.
fn told_apart(a: &Views, b: &Views) -> Vec<&'static str> {
    let told = |((name, a_seen), (_, b_seen)): (&Seen, &Seen)| {
        let (statistic, degrees) =
            two_sample_chi_square(&joint(a_seen, &a.results), &joint(b_seen, &b.results));
        (statistic >= chi_square_limit(degrees)).then_some(*name)
    };
    a.seen.iter().zip(&b.seen).filter_map(told).collect()
}

/// What is dropped of sums that round to `RESULT`: the least, the largest and some in between.
const LOW: [i64; 7] = [-128, -127, -37, 0, 1, 90, 127];
const RESULT: i64 = 5;

fn views(way: Way) -> Vec<(i64, Views)> {
    let views = |(low, number)| (low, Views::of(&Network::new(way, (RESULT << DROPPED) + low), number));
    LOW.into_iter().zip(0..).map(views).collect()
}

#[test]
fn exact_results_are_constant_and_nothing_that_is_seen_depends_on_what_is_dropped() {
    for way in [Way::Exact, Way::Guarded] {
        check_exact(&views(way));
    }
}

fn check_exact(views: &[(i64, Views)]) {
    for (number, (_, view)) in views.iter().enumerate() {
        assert!(view.results.iter().all(|y| *y == RESULT));
        // The result is given: what is seen is uniform.
        for (name, seen) in &view.seen {
            let bits = if seen.iter().all(|seen| *seen < 2) { 1 } else { 4 };
            assert_eq!(check_bits(&[&pack_bits(seen, bits)], &[bits as usize]), Ok(()), "{name}");
        }
        for (_, other) in &views[..number] {
            assert_eq!(told_apart(other, view), [""; 0]);
        }
    }
}

#[test]
fn local_rounding_tells_what_is_dropped() {
    let views = views(Way::Local);
    for (number, (low, view)) in views.iter().enumerate() {
        assert!(view.results.iter().any(|y| *y != view.results[0]));
        // With a given number of repetitions to a sixteenth of a unit.
        for (_, other) in views[..number].iter().filter(|(other, _)| low.abs_diff(*other) >= 16) {
            assert!(told_apart(other, view).contains(&HIGH));
        }
    }
}

/// A last layer's sums without their guard, opened: what the client sees of runs with one result is drawn alike whatever the weights.
#[test]
fn opened_sums_tell_nothing_of_the_noise_below_them() {
    let shape = Convolution::fully_connected(INPUT.len(), REPEATS);
    let sets = Sets::new().unwrap();
    for guard in [1, 2] {
        let (set, scheme) =
            Scheme::cheapest(&Stacked::try_from(&shape).unwrap(), BITS, Accuracy::Guarded(guard), &sets)
                .unwrap();
        // All rows have one sum, and the noise of the second is a thousand times that of the first.
        let rows = [[0, 0, 0, RESULT], [-1, -2, 2, RESULT - 14], [1001, 2002, 0, RESULT]];
        let views = rows.into_iter().zip(0..).map(|(row, number)| {
            let hidden: i64 = row.iter().zip(INPUT).map(|(w, x)| w * x).sum();
            assert_eq!(hidden, RESULT);
            let network = Network {
                set,
                client: ClientLayer::new(scheme.clone()).unwrap(),
                server: Answering(
                    ServerLayer::new(scheme.clone(), &row.repeat(REPEATS), &[0; REPEATS]).unwrap(),
                ),
                activation: Layer::drop_guard(REPEATS, BITS, guard).unwrap(),
            };
            (row[0], Views::of(&network, number))
        });
        check_exact(&views.collect::<Vec<_>>());
    }
}

/// Behind an exact rescale a layer that is off by one shows where a sum is at an edge.
#[test]
fn sums_that_are_off_by_one_are_found_at_an_edge() {
    let views = Views::of(&Network::new(Way::OffByOne, (RESULT << DROPPED) + LOW[LOW.len() - 1]), 0);
    assert!(views.results.contains(&(RESULT + 1)));
}
