//! Ciphertexts that are off by a fraction of the modulus, which a product by a multiple of the denominator does not see.

use lanner_primitives::Prg;
use rand_core::SeedableRng;

use super::model::{Cheat, Joins, Model, Q};

/// How many of `runs` predictions pass, with `q / by` added at a coefficient that one weight reaches.
fn passes(model: &Model, by: u64, runs: usize, rng: &mut Prg) -> usize {
    let cheat = Cheat { halves: vec![(1, Q / by)], ..Cheat::default() };
    let input = vec![5; model.degree];
    (0..runs).filter(|_| model.predict(&input, &cheat, rng).passed).count()
}

/// A layer of one output, which reads coefficient 1 with a given weight.
fn layer(masks: usize, weight: i64) -> Model {
    let mut weights = vec![0; 8];
    weights[2] = weight;
    let mut model = Model::new(masks, weights);
    model.outputs = vec![3];
    model
}

#[test]
fn torsion_is_caught_whatever_the_weight() {
    let mut rng = Prg::from_seed([5; 16]);
    for by in [2, 3, 4, 5, 7, 8, 64] {
        for weight in [0, 1, 6, 7, 64] {
            assert_eq!(passes(&layer(64, weight), by, 10, &mut rng), 0, "q / {by}, weight {weight}");
        }
    }
}

/// The first design: three masks, an equation each. Whether it aborts tells whether a weight is even.
#[test]
fn three_masks_would_tell_the_parity_of_a_weight() {
    let mut rng = Prg::from_seed([6; 16]);
    let rate = |weight: i64, by: u64, rng: &mut Prg| {
        let mut model = layer(3, weight);
        model.joins = Joins::Apart;
        passes(&model, by, 2000, rng)
    };
    // An eighth of 2000, and no more than six deviations off.
    for even in [0, 6] {
        assert!((160..340).contains(&rate(even, 2, &mut rng)), "weight {even}");
    }
    for odd in [1, 7] {
        assert_eq!(rate(odd, 2, &mut rng), 0, "weight {odd}");
    }
    // A 27th for thirds.
    assert!((25..130).contains(&rate(6, 3, &mut rng)));
    assert_eq!(rate(7, 3, &mut rng), 0);
}

/// Joined by random factors, three masks are no better: their three parities are all that there is to guess.
#[test]
fn factors_do_not_replace_masks() {
    let mut rng = Prg::from_seed([7; 16]);
    assert!((160..340).contains(&passes(&layer(3, 6), 2, 2000, &mut rng)));
    assert_eq!(passes(&layer(3, 7), 2, 2000, &mut rng), 0);
}
