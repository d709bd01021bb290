use lanner_graph::elementwise::{Elementwise, Function, Ramp};

use super::*;

/// Functions on [-8, 8) in integers of 16 bits, and what a unit of the output is in parts of 2^-scale.
fn target(function: &Function, bits: u32, scale: i32) -> Target {
    let (input, output) = (f64::from(bits).exp2().recip() * 16.0, f64::from(-scale).exp2());
    Target::new(|x| function.at(x), -(1 << (bits - 1)), bits, [input, output])
}

fn functions() -> Vec<Function> {
    vec![
        Function::Sigmoid,
        Function::Tanh,
        Function::Erf,
        Function::Softsign,
        Function::Sin,
        Function::Cos,
        Function::Tail(Ramp::Gelu { approximate: false }),
        Function::Tail(Ramp::Gelu { approximate: true }),
        Function::Tail(Ramp::Swish { alpha: 1.0 }),
        Function::Tail(Ramp::Softplus),
        Function::Tail(Ramp::Elu { alpha: 1.0 }),
        Function::Tail(Ramp::Mish),
    ]
}

/// What the formula of the sum says is what is measured, at every integer of the domain.
fn worst(target: &Target, function: &FixedFunction) -> f64 {
    let error = |(place, value): (i64, &f64)| (function.at(target.low + place) as f64 - value).abs();
    (0..).zip(&target.values).map(error).fold(0.0, f64::max)
}

#[test]
fn bounded_functions_are_within_a_unit_everywhere() {
    for function in functions() {
        for (bits, scale) in [(8, 6), (10, 8), (14, 12)] {
            let target = target(&function, bits, scale);
            let fitted = target.fit(1.0);
            assert!(fitted.error <= 1.0, "{function:?} at {scale}: {}", fitted.error);
            assert_eq!(fitted.error.to_bits(), worst(&target, &fitted.function).to_bits());
            fitted.function.check_sizes().unwrap();
            if function.never_decreases() {
                let values: Vec<i64> = (0..1 << bits).map(|u| fitted.function.at(target.low + u)).collect();
                assert!(values.windows(2).all(|pair| pair[1] >= pair[0] - 1), "{function:?}");
            }
        }
    }
}

#[test]
fn short_domains_are_tables_and_lines_are_lines() {
    let jagged = Target::new(|x| f64::from((x * x * 37.0) as u32 % 97), 0, 4, [1.0, 1.0]);
    let fitted = jagged.fit(1.0);
    assert_eq!(
        (fitted.function.polynomials.len(), fitted.function.degree(), fitted.function.shift),
        (16, 0, 0)
    );
    assert!(fitted.error <= 1.0);
    // Nothing is dropped of a table's entries, however little they may be off by.
    let table = Target::new(|x| 4000.0 * (2.5 * x).sin(), 0, 8, [1.0, 1.0]).fit(0.505).function;
    assert_eq!((table.polynomials.len(), table.degree(), table.shift), (256, 0, 0));
    let line = Target::new(|x| 3.0 * x - 7.0, -64, 7, [1.0, 1.0]).fit(1.0);
    assert_eq!(line.function.degree(), 1);
    assert!(line.error <= 1.0);
}

/// Where nothing is close enough, what comes closest is taken, and its error told.
#[test]
fn a_function_that_no_polynomials_reach_comes_as_close_as_they_do() {
    let wild = |x: f64| if (x * x / 3.0) as u64 % 7 < 3 { 40.0 } else { -40.0 };
    let wild = Target::new(wild, 0, 12, [1.0, 1.0]);
    let fitted = wild.fit(1.0);
    assert!((30.0..=41.0).contains(&fitted.error), "{}", fitted.error);
}

/// What ends at the first segment that is too far away is what is found by looking at all places of the whole function.
#[test]
fn a_function_is_near_where_it_is_at_every_place() {
    let (mut near, mut far) = (0, 0);
    for function in functions() {
        for (bits, scale) in [(8, 6), (12, 10), (18, 12)] {
            let target = target(&function, bits, scale);
            for (segment_bits, degree) in [(0, 1), (3, 2), (5, 3), (6, 1)] {
                let pieces = Pieces::new(&target.values, segment_bits, degree).unwrap();
                for shift in [0, 8, 20, MAX_POLYNOMIAL_BITS - 1] {
                    let rounding = pieces.rounding(shift, 0.1);
                    let whole = target.with(&pieces, &rounding);
                    let off = |function: &FixedFunction, place: usize| {
                        (function.at_place(place as i64) as f64 - target.values[place]).abs()
                    };
                    let places = || {
                        (0..target.values.len())
                            .filter(|place| pieces.places().contains(&(place % (1 << pieces.place_bits()))))
                    };
                    for tolerance in [0.6, 1.0, 20.0] {
                        let is_near =
                            |function: &FixedFunction| places().all(|at| off(function, at) <= tolerance);
                        let expected = whole.clone().filter(is_near);
                        near += usize::from(expected.is_some());
                        far += usize::from(expected.is_none());
                        assert_eq!(target.within(&pieces, &rounding, tolerance), expected, "{function:?}");
                    }
                }
            }
        }
    }
    assert!(near > 100 && far > 100, "{near} {far}");
}

#[test]
fn what_was_asked_before_is_not_looked_for_again_whatever_came_of_it() {
    let (cache, fitted) = (FitCache::default(), Target::new(|x| x, 0, 4, [1.0, 1.0]).fit(1.0));
    for (name, found) in [("line", Ok(fitted)), ("pole", Err("a domain from 0 to 1".to_owned()))] {
        assert_eq!(cache.get_or(name.to_owned(), || found.clone()), found);
        assert_eq!(cache.get_or(name.to_owned(), || unreachable!()), found);
    }
}

/// The figures of every function: `cargo test -p lanner-graph figures -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn figures() {
    println!(
        "{:<44} {:>5} {:>5} {:>2} {:>6} {:>5} {:>6} {:>6} {:>6} {:>5}",
        "function", "bits", "scale", "m", "degree", "shift", "factor", "cost", "ULP", "ms"
    );
    for function in functions() {
        for scale in [8, 12, 14] {
            for bits in [scale as u32 + 2, 16, 20] {
                print_figures(&format!("{function:?}"), &target(&function, bits, scale));
            }
        }
    }
    for scale in [8, 12, 14] {
        for bits in [scale as u32 + 2, 16, 20] {
            let (input, output) = (16.0 * f64::from(bits).exp2().recip(), f64::from(-scale).exp2());
            let exp = Target::new(f64::exp, -(1 << bits) + 1, bits, [input, output]);
            print_figures("Exp of what is not above 0", &exp);
            let log = Target::new(f64::ln, 1 << (bits - 4), bits, [input, output]);
            print_figures("Log from 1 to 17", &log);
            let reciprocal = Target::new(f64::recip, 1 << (bits - 4), bits, [input, output]);
            print_figures("Reciprocal from 1 to 17", &reciprocal);
            let root = Target::new(f64::sqrt, 0, bits, [input, output]);
            print_figures("Sqrt from 0 to 16", &root);
        }
    }
}

fn print_figures(name: &str, target: &Target) {
    let start = std::time::Instant::now();
    let Fitted { function, error } = target.fit(1.0);
    let time = start.elapsed().as_millis();
    let scale = (target.values.len() as f64).log2();
    println!(
        "{name:<44} {scale:>5} {:>5} {:>2} {:>6} {:>5} {:>6} {:>6} {error:>6.3} {time:>5}",
        "",
        function.segment_bits(),
        function.degree(),
        function.shift,
        function.factor_bits(),
        function.sent_bits()
    );
}
