//! Errors so small that masks may not carry: what the lemma leaves to a client, and why the server's masks are finer than what is sent.

use lanner_primitives::Prg;
use rand_core::SeedableRng;

use super::model::{Cheat, Joins, Model, Q};

/// How many of `runs` predictions pass.
fn passes(model: &Model, cheat: &Cheat, runs: usize, rng: &mut Prg) -> usize {
    let input = vec![9; model.degree];
    (0..runs).filter(|_| model.predict(&input, cheat, rng).passed).count()
}

#[test]
fn small_errors_pass_no_oftener_than_the_lemma_says_and_alike_for_all_weights() {
    let mut rng = Prg::from_seed([8; 16]);
    let runs = 1000;
    for (numerator, masks) in [(1, 8), (4, 8), (8, 8), (32, 8), (64, 8), (8, 24)] {
        let a = f64::from(numerator) / 8.0;
        let [one, other] = [vec![1, 0, 0, 0], vec![40, -99, 13, 127]].map(|weights| {
            let model = Model::new(masks, weights);
            // eps is a / H at one coefficient; the model's own noise is far below.
            let added = a * (Q as f64 / 257.0) / model.side as f64;
            let cheat = Cheat { halves: vec![(2, added as u64)], ..Cheat::default() };
            passes(&model, &cheat, runs, &mut rng) as f64 / f64::from(runs as u32)
        });
        let per_mask = if a < 2.0 * 2_f64.sqrt() { (a / (6.0 * 2_f64.sqrt())).min(1.0 / 6.0) } else { 0.29 };
        let bound = (1.0 - per_mask).powi(masks as i32);
        // Six deviations of what may be.
        let room = 6.0 * (0.25 / f64::from(runs as u32)).sqrt();
        assert!(one < bound + room && other < bound + room, "a = {a}: {one} and {other}, bound {bound}");
        assert!((one - other).abs() < room * 2_f64.sqrt(), "a = {a}: {one} and {other}");
        // The test would see a bound that is wrong: the least errors do pass.
        assert!(numerator > 1 || one > 0.6, "{one}");
    }
}

/// Integers as masks leave the rounding of the server's half in its share. A client without a key then fails with a probability that depends on the
/// layer's output, and so on weights.
#[test]
fn masks_as_coarse_as_what_is_sent_would_leave_carries_that_depend_on_weights() {
    let mut rng = Prg::from_seed([9; 16]);
    let (runs, cheat) = (20_000, Cheat { no_key: true, ..Cheat::default() });
    let failures = |finer: u32, weight: i64, rng: &mut Prg| {
        let mut model = Model::new(0, vec![weight, 0]);
        (model.w, model.finer, model.outputs) = (11, finer, vec![0]);
        (model.places, model.joins) = (vec![0], Joins::Random(3));
        runs - passes(&model, &cheat, runs, rng)
    };
    // 9 w 2^11 / 257 is an integer for w = 0, and half of one or nearly so for w = 157.
    let near = |weight: u64| (9 * weight * 2048 % 257).min(257 - 9 * weight * 2048 % 257);
    let worst = (1..257).max_by_key(|weight| near(*weight)).unwrap() as i64;
    let [coarse_none, coarse_worst] = [0, worst].map(|weight| failures(0, weight, &mut rng));
    assert!(coarse_none * 10 < coarse_worst, "{coarse_none} and {coarse_worst} of {runs}");
    let [fine_none, fine_worst] = [0, worst].map(|weight| failures(16, weight, &mut rng));
    // Differences within six deviations, and far from zero: carries there are, but alike.
    let room = 6.0 * ((fine_none + fine_worst) as f64).sqrt();
    assert!(
        fine_none > 200 && (fine_none as f64 - fine_worst as f64).abs() < room,
        "{fine_none} and {fine_worst}"
    );
}
