//! An honest client that asks one query many times: what it computes from the randomness that it knows, and from what it is told.
//!
//! The steps are those of mode cheetah: a layer, an activation that rescales by d bits, a layer whose outputs are revealed. With x one of the
//! hidden sums and u the low d bits of the client's own share of it, faithful rescaling gives `floor(x / 2^d) + [u <= x mod 2^d]`. So each run's
//! scores are constants plus the last layer's weights at those hidden values that the run's shares rounded up, and the client knows
//! the u. No planner makes faithful steps with revealed scores; this test does, to show why.

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{Accuracy, ClientLayer, Scheme, ServerLayer, Stacked};
use lanner_ot::silent::Parameters;
use lanner_primitives::{Ring, Share, parallel};
use lanner_step::{Answering, Client, Convolution, Function, Party, Server, Sets, Step, Transfers, Windows};
use lanner_transfers::{Layer, Rounding};

use crate::common::{Party as End, inputs, keys_alone, rng, run, share, signed, unknown};

const INPUT: i64 = 200;
const HIDDEN: usize = 16;
const SCORES: usize = 4;
const RING: u32 = 24;
const DROPPED: u32 = 10;
const REPEATS: usize = 100;
const TRANSFERS: Parameters = Parameters::ALL[0];

/// What the server keeps to itself.
struct Weights {
    first: Vec<i64>,
    bias: Vec<i64>,
    /// Row by row, one for each score.
    last: Vec<i64>,
}

impl Weights {
    /// Hidden sums are positive, some hundred after rescaling.
    fn new() -> Self {
        let mut rng = rng(7);
        let first = signed(HIDDEN, 700, &mut rng).into_iter().map(|w| 1300 + w).collect();
        let bias = signed(HIDDEN, 1 << DROPPED, &mut rng);
        Self { first, bias, last: signed(HIDDEN * SCORES, 127, &mut rng) }
    }
}

/// What the client has of one run: the low bits of its shares of the hidden sums, and the scores.
#[derive(Clone, Debug, PartialEq)]
struct View {
    low: Vec<u64>,
    scores: Vec<i64>,
}

fn scheme(inputs: usize, outputs: usize, sets: &Sets) -> Scheme {
    let shape = Convolution::fully_connected(inputs, outputs);
    Scheme::new(
        &Stacked::try_from(&shape).unwrap(),
        RING,
        Accuracy::Exact,
        sets.get(ParameterSet::A1).unwrap(),
    )
    .unwrap()
}

/// One session in which a client asks the same many times.
fn views(weights: &Weights, rounding: Rounding) -> Vec<View> {
    parallel::set_threads(2);
    let (sets, ring) = (Sets::new().unwrap(), Ring::Pow2(RING));
    let set_up = keys_alone(ParameterSet::A1, []);
    let schemes = || [scheme(1, HIDDEN, &sets), scheme(HIDDEN, SCORES, &sets)];
    let function = Function { relu: true, shift: DROPPED, ..Function::IDENTITY };
    let activation = Layer::activation(function, &Windows::each(HIDDEN), RING, RING, rounding).unwrap();
    let (client, server) = run(
        &mut End::pair(),
        |end| {
            let layers = schemes().map(|scheme| ClientLayer::new(scheme).unwrap());
            let mut client = Client::set_up(end, &set_up, rng(1)).unwrap();
            let mut transfers =
                Transfers::setup(end, Party::Client, [TRANSFERS; 2], &mut client.rng).unwrap();
            let mut repeat = |_| {
                let [first, last] = [0, 1].map(|i: usize| layers[i].request(end, &mut client).unwrap());
                let asked = activation.request(end, &mut transfers).unwrap();
                let (first, _) = layers[0].prepare(end, &mut client, first, &unknown(1)).unwrap();
                let (last, _) = layers[1].prepare(end, &mut client, last, &unknown(1)).unwrap();
                let material = activation.prepare(end, &mut transfers, asked, &mut client.rng).unwrap();
                let input = inputs(&[&Share::embed(ring, &[INPUT])]);
                let sums = share(layers[0].online(end, first, &input).unwrap());
                let hidden = activation.online(end, Party::Client, material, &[&sums]).unwrap();
                let low = sums.values().iter().map(|sum| sum & ((1 << DROPPED) - 1)).collect::<Vec<u64>>();
                (low, share(layers[1].online(end, last, &inputs(&[&hidden])).unwrap()))
            };
            (0..REPEATS).map(&mut repeat).collect::<Vec<_>>()
        },
        |end| {
            let [first, last] = schemes();
            let layers = [
                Answering(ServerLayer::new(first, &weights.first, &weights.bias).unwrap()),
                Answering(ServerLayer::new(last, &weights.last, &[0; SCORES]).unwrap()),
            ];
            let mut server = Server::set_up(end, &set_up, rng(2)).unwrap();
            let mut transfers =
                Transfers::setup(end, Party::Server, [TRANSFERS; 2], &mut server.rng).unwrap();
            let mut repeat = |_| {
                let [(first, _), (last, _)] =
                    [0, 1].map(|i: usize| layers[i].prepare(end, &mut server, (), &unknown(1)).unwrap());
                let asked = activation.request(end, &mut transfers).unwrap();
                let material = activation.prepare(end, &mut transfers, asked, &mut server.rng).unwrap();
                let input = inputs(&[&Share::embed(ring, &[0])]);
                let sums = share(layers[0].online(end, first, &input).unwrap());
                let hidden = activation.online(end, Party::Server, material, &[&sums]).unwrap();
                share(layers[1].online(end, last, &inputs(&[&hidden])).unwrap())
            };
            (0..REPEATS).map(&mut repeat).collect::<Vec<_>>()
        },
    );
    let revealed = client.into_iter().zip(server);
    revealed.map(|((low, share), server)| View { low, scores: share.reveal(&server).unwrap() }).collect()
}

#[test]
fn faithful_rounding_gives_a_client_that_repeats_its_query_every_weight_behind_it() {
    let weights = Weights::new();
    assert_eq!(recover(&views(&weights, Rounding::Faithful)).unwrap(), weights.last);
}

#[test]
fn exact_rounding_gives_it_the_same_scores_again() {
    let views = views(&Weights::new(), Rounding::Exact);
    assert!(views.windows(2).all(|pair| pair[0].low != pair[1].low), "shares are fresh");
    assert!(views.iter().all(|view| view.scores == views[0].scores));
    assert_eq!(recover(&views), None);
}

/// The last layer's weights, if they explain every score of every run.
///
/// Whether a hidden value was rounded up is whether the client's low bits are at most those of a hidden threshold: a step of
/// the runs in the order of these bits. Each step in turn is put where, with the others as they are, least squares leave
/// the least unexplained; nothing is left once all are right.
fn recover(views: &[View]) -> Option<Vec<i64>> {
    let scores: Vec<Column> =
        (0..SCORES).map(|score| views.iter().map(|view| view.scores[score] as f64).collect()).collect();
    // Any places to begin with; some lead nowhere.
    (0..50).find_map(|start| {
        let places = Share::random(Ring::Pow2(DROPPED), HIDDEN, &mut rng(start));
        let placed = places.values().iter().enumerate();
        let mut steps: Vec<Column> = placed.map(|(hidden, place)| step(views, hidden, *place)).collect();
        for _ in 0..5 {
            for hidden in 0..HIDDEN {
                let others = without(&steps, hidden);
                let left: Vec<Column> = scores.iter().map(|score| beside(&others, score)).collect();
                let explained = |step: &Column| {
                    let own = beside(&others, step);
                    let explained: f64 = left.iter().map(|score| dot(score, &own).powi(2)).sum();
                    explained / dot(&own, &own).max(1e-6)
                };
                let places = views.iter().map(|view| step(views, hidden, view.low[hidden]));
                steps[hidden] = places.max_by(|a, b| explained(a).total_cmp(&explained(b)))?;
            }
        }
        let unexplained = scores.iter().map(|score| beside(&without(&steps, HIDDEN), score));
        let right = unexplained.flatten().all(|left| left.abs() < 1e-3);
        let weight = |score: &Column, hidden: usize| {
            let own = beside(&without(&steps, hidden), &steps[hidden]);
            (dot(score, &own) / dot(&own, &own).max(1e-6)).round() as i64
        };
        let weights = scores
            .iter()
            .flat_map(|score| (0..HIDDEN).map(|hidden| weight(score, hidden)).collect::<Vec<_>>());
        let weights: Vec<i64> = weights.collect();
        (right && weights.iter().any(|weight| *weight != 0)).then_some(weights)
    })
}

/// A number for each run.
type Column = Vec<f64>;

/// In which runs a hidden value was rounded up if its low bits are `threshold`.
fn step(views: &[View], hidden: usize, threshold: u64) -> Column {
    views.iter().map(|view| f64::from(view.low[hidden] <= threshold)).collect()
}

/// Orthonormal columns that span the constants and all columns but one.
fn without(columns: &[Column], one: usize) -> Vec<Column> {
    let mut basis = vec![vec![1.0 / (REPEATS as f64).sqrt(); REPEATS]];
    for (_, column) in columns.iter().enumerate().filter(|(number, _)| *number != one) {
        let own = beside(&basis, column);
        let length = dot(&own, &own).sqrt();
        if length > 1e-6 {
            basis.push(own.iter().map(|x| x / length).collect());
        }
    }
    basis
}

/// What a column has beside an orthonormal basis.
fn beside(basis: &[Column], column: &Column) -> Column {
    basis.iter().fold(column.clone(), |rest, unit| {
        let along = dot(unit, &rest);
        rest.iter().zip(unit).map(|(rest, unit)| rest - along * unit).collect()
    })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
