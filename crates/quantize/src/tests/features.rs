//! Inputs whose features differ: units and centres by feature, exactly folded into the first layers, and what is told of them.

use lanner_graph::pass::{Coded, Draft, prepare, prepare_coded};
use lanner_graph::{FloatExecutor, Op};
use lanner_network::{
    CompileError, Features, FixedExecutor, InputError, InputScale, Network, Preprocessing, PublicNetwork,
    Tensor,
};

use super::{Random, Sketch, small_network};
use crate::{QuantizationOptions, compile};

/// The middle and the half width of each feature of the table: from a ratio to an area, one far from 0, two that never change.
const TABLE: [[f32; 2]; 8] = [
    [0.003, 0.002],
    [650.0, 500.0],
    [0.0, 0.8],
    [1013.0, 3.3],
    [-40.0, 0.7],
    [14.0, 6.0],
    [0.0, 0.0],
    [7.5, 0.0],
];

/// Samples of which feature `position` along `axis` lies in its row of the table.
fn table_samples(shape: &[usize], axis: usize, count: usize, seed: u64) -> Vec<f32> {
    let (size, mut random) = (shape.iter().product::<usize>(), Random(seed));
    let behind: usize = shape[axis + 1..].iter().product();
    (0..count * size)
        .map(|index| {
            let [middle, width] = TABLE[index / behind % shape[axis]];
            middle + width * random.real(-1.0, 1.0)
        })
        .collect()
}

fn insert(sketch: &mut Sketch, name: &str, shape: &[usize], data: Vec<f32>) -> String {
    sketch.tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
    name.to_owned()
}

/// A subtraction of the means and a division by the deviations, of a shape that broadcasts.
fn scaler(mut sketch: Sketch, shape: &[usize]) -> Sketch {
    let count: usize = shape.iter().product();
    let means = TABLE[..count].iter().map(|row| -row[0]).collect();
    let scales = TABLE[..count].iter().map(|row| if row[1] == 0.0 { 1.0 } else { 1.7 / row[1] }).collect();
    let value = insert(&mut sketch, "means", shape, means);
    let sketch = sketch.op("minus means", Op::AddConstant { value });
    let mut sketch = sketch;
    let value = insert(&mut sketch, "scales", shape, scales);
    sketch.op("over deviations", Op::MulConstant { value })
}

/// The same as a normalisation of batches.
fn normalised(mut sketch: Sketch) -> Sketch {
    let count = sketch.shape()[0];
    let of = |what: fn(&[f32; 2]) -> f32| TABLE[..count].iter().map(what).collect::<Vec<_>>();
    let variance = |row: &[f32; 2]| if row[1] == 0.0 { 1.0 } else { row[1] * row[1] / 3.0 };
    let op = Op::BatchNorm {
        scale: insert(&mut sketch, "gamma", &[count], vec![1.1; count]),
        bias: insert(&mut sketch, "beta", &[count], vec![0.2; count]),
        mean: insert(&mut sketch, "mean", &[count], of(|row| row[0])),
        var: insert(&mut sketch, "var", &[count], of(variance)),
        eps: 1e-7,
    };
    sketch.op("bn", op)
}

/// Networks on the table's features by every way to the first layers, with the axis of the features.
fn sketches() -> Vec<(Sketch, usize)> {
    let vector = |seed| Sketch::new(&[8], seed);
    let channels = |seed| Sketch::new(&[8, 5, 6], seed);
    let rows = |sketch: Sketch| sketch.relu("r").flatten("f").dense("out", 4);
    let nhwc = |seed| Sketch::new(&[5, 6, 8], seed);
    let to_channels = |sketch: Sketch| sketch.op("t", Op::Transpose { axes: vec![2, 0, 1] });
    vec![
        (scaler(vector(1), &[8]).dense("a", 12).relu("r").dense("out", 4), 0),
        (normalised(vector(2)).dense("a", 12).relu("r").dense("out", 4), 0),
        (rows(scaler(channels(3), &[8, 1, 1]).conv("a", 6, 3, 1, 0)), 0),
        (rows(normalised(channels(4)).conv("a", 6, 3, 2, 1)), 0),
        (rows(scaler(to_channels(nhwc(5)), &[8, 1, 1]).conv("a", 6, 3, 1, 1)), 2),
        (rows(to_channels(scaler(nhwc(6), &[8])).conv("a", 6, 3, 1, 0)), 2),
        (scaler(channels(7), &[8, 1, 1]).flatten("f").dense("a", 12).relu("r").dense("out", 4), 0),
        (rows(scaler(channels(8), &[8, 1, 1]).average_pool("p", 2).conv("a", 6, 2, 1, 0)), 0),
        (
            scaler(vector(9), &[8]).dense("a", 6).relu("r").resume("over deviations").dense("b", 6).join(
                "sum",
                Op::Add,
                &["r", "b"],
            ),
            0,
        ),
    ]
}

fn options() -> QuantizationOptions {
    QuantizationOptions::default()
}

fn compiled(sketch: &Sketch, axis: usize, options: &QuantizationOptions) -> Network {
    let calibration = table_samples(&sketch.graph.inputs[0].shape, axis, 60, 11);
    compile(&sketch.graph, &sketch.tensors, &calibration, options).unwrap()
}

/// The root mean square of the scores' error over that of their deviation from their means, on new samples; and how many sums overflow.
fn error(sketch: &Sketch, axis: usize, network: &Network) -> (f64, usize) {
    let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
    let fixed = FixedExecutor::new(network).unwrap();
    let samples = table_samples(&sketch.graph.inputs[0].shape, axis, 80, 12);
    let samples: Vec<&[f32]> = samples.chunks_exact(float.input_len()).collect();
    let scores: Vec<Vec<f32>> = samples.iter().map(|x| float.run(x).unwrap()).collect();
    let (mut lost, mut spread, mut overflows) = (0.0, 0.0, 0);
    for output in 0..float.output_len() {
        let mean: f64 = scores.iter().map(|row| f64::from(row[output])).sum::<f64>() / samples.len() as f64;
        for (x, row) in samples.iter().zip(&scores) {
            let run = fixed.run_real(x).unwrap();
            overflows += run.overflow_count();
            let score = f64::from(row[output]);
            lost += (run.output[output] as f64 * network.output_scale() - score).powi(2);
            spread += (score - mean).powi(2);
        }
    }
    ((lost / spread).sqrt(), overflows)
}

#[test]
fn features_of_all_sizes_keep_their_resolution() {
    for (number, (sketch, axis)) in sketches().into_iter().enumerate() {
        let network = compiled(&sketch, axis, &options());
        let features = network.public().input().features.as_ref().unwrap();
        assert_eq!(features.axis, axis);
        let found = error(&sketch, axis, &network);
        assert!(found.0 < 0.05 && found.1 == 0, "{number}: {found:?}");
        // One unit for all, as an owner who states a range has it, loses most of the features.
        let stated = QuantizationOptions { input_range: Some([-100.0, 1200.0]), ..options() };
        let network = compiled(&sketch, axis, &stated);
        assert_eq!(network.public().input().features, None);
        let (found, _) = error(&sketch, axis, &network);
        assert!(found > 0.2, "{number}: {found}");
    }
}

#[test]
fn powers_of_two_serve_features_as_primes_do() {
    let (sketch, axis) = sketches().swap_remove(0);
    let network = compiled(&sketch, axis, &QuantizationOptions::powers_of_two());
    let found = error(&sketch, axis, &network);
    assert!(found.0 < 0.05 && found.1 == 0, "{found:?}");
}

/// Units and centres like those that are chosen, on the grid that they lie on.
fn drawn(count: usize, axis: usize, random: &mut Random) -> Coded {
    let exponent = |random: &mut Random| -((random.word() % 12) as i32);
    let factors: Vec<f32> = (0..count).map(|_| f32::from(2_u8).powi(exponent(random))).collect();
    let terms = factors.iter().map(|factor| factor * ((random.word() % 9) as f32 - 4.0)).collect();
    Coded { axis, factors, terms }
}

/// The largest difference, relative to the largest score, between a graph on real inputs and one on the same inputs coded.
fn difference(sketch: &Sketch, coded: &Coded, folded: &Draft) -> f64 {
    let real = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
    let decoding = FloatExecutor::new(&folded.graph, &folded.tensors).unwrap();
    let shape = &sketch.graph.inputs[0].shape;
    let behind: usize = shape[coded.axis + 1..].iter().product();
    let mut random = Random(31);
    let (mut largest, mut apart) = (0.0_f64, 0.0_f64);
    for _ in 0..8 {
        let z = random.reals(real.input_len(), -1.0, 1.0);
        let decode = |(index, z): (usize, &f32)| {
            let feature = index / behind % shape[coded.axis];
            z * coded.factors[feature] + coded.terms[feature]
        };
        let x: Vec<f32> = z.iter().enumerate().map(decode).collect();
        for (left, right) in real.run(&x).unwrap().iter().zip(&decoding.run(&z).unwrap()) {
            largest = largest.max(f64::from(left.abs()));
            apart = apart.max(f64::from((left - right).abs()));
        }
    }
    apart / largest
}

/// Networks whose first layers take units and centres, with the axis of the features.
fn takers(seed: u64) -> Vec<(Sketch, usize)> {
    let image = || Sketch::new(&[3, 6, 5], seed);
    let nhwc = || Sketch::new(&[6, 5, 3], seed).op("t", Op::Transpose { axes: vec![2, 0, 1] });
    let pad = Op::Pad { before: vec![0, 2, 1], after: vec![0, 1, 0] };
    vec![
        (Sketch::new(&[7], seed).dense("a", 5), 0),
        (image().conv("a", 4, 3, 1, 0), 0),
        (image().conv("a", 4, 3, 2, 1), 0),
        (image().op("pad", pad).conv("a", 4, 3, 1, 1), 0),
        (image().batch_norm("bn", [-2.0, 2.0]).conv("a", 4, 3, 1, 2), 0),
        (nhwc().conv("a", 4, 3, 1, 1), 2),
        (image().flatten("f").dense("a", 5), 2),
        (image().average_pool("p", 2).conv("a", 4, 2, 1, 0), 0),
        (
            image().conv("a", 4, 3, 1, 1).resume("x").conv("b", 4, 1, 1, 0).join("sum", Op::Add, &["a", "b"]),
            0,
        ),
    ]
}

#[test]
fn first_layers_take_units_and_centres_exactly() {
    for seed in 0..12 {
        let mut random = Random(1000 + seed);
        for (number, (sketch, axis)) in takers(seed).into_iter().enumerate() {
            let coded = drawn(sketch.graph.inputs[0].shape[axis], axis, &mut random);
            let (plain, _) = prepare(&sketch.graph, &sketch.tensors).unwrap();
            let (folded, _) = prepare_coded(&sketch.graph, &sketch.tensors, Some(&coded)).unwrap();
            let names =
                |draft: &Draft| draft.graph.nodes.iter().map(|node| node.op.name()).collect::<Vec<_>>();
            assert_eq!(names(&plain), names(&folded), "{number}");
            let apart = difference(&sketch, &coded, &folded);
            assert!(apart < 2e-5, "{number}: {apart}");
        }
    }
}

#[test]
fn a_centre_folded_through_zero_padding_as_one_bias_is_caught() {
    let sketch = Sketch::new(&[3, 6, 5], 21).conv("a", 4, 3, 1, 1);
    let coded = Coded { axis: 0, factors: vec![1.0; 3], terms: vec![3.0, -2.0, 1.0] };
    let (mut folded, _) = prepare_coded(&sketch.graph, &sketch.tensors, Some(&coded)).unwrap();
    assert!(difference(&sketch, &coded, &folded) < 2e-5);
    // The twin gives every place of a channel the bias of the places inside, as if the padding were not zero but the centre.
    let Op::Conv { bias: Some(bias), .. } = &mut folded.graph.nodes[0].op else {
        panic!("{:?}", folded.graph)
    };
    let whole = folded.tensors.get(bias).unwrap();
    assert_eq!(whole.shape(), [4, 6, 5]);
    let inside = whole.data().chunks_exact(30).map(|channel| channel[2 * 5 + 2]).collect();
    folded.tensors.insert("one a channel", Tensor::vector(inside)).unwrap();
    "one a channel".clone_into(bias);
    assert!(difference(&sketch, &coded, &folded) > 0.05);
}

#[test]
fn inputs_of_one_size_stay_as_they_were() {
    let mut sketch = small_network(3);
    let calibration = sketch.samples(40, 0.0, 1.0);
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options()).unwrap();
    assert_eq!(network.public().input().features, None);
    // Pixels at the border vary less, but weigh no more than the others. Also where rounding happens to lose nothing with one unit.
    for is_round in [false, true] {
        let mut sketch = Sketch::new(&[16], 4).dense("a", 8).relu("r").dense("b", 3);
        let mut calibration = sketch.samples(60, 0.0, 1.0);
        for row in calibration.chunks_exact_mut(16) {
            row[0] = 0.0;
            row[3] /= 16.0;
            row[12] /= 10.0;
            row.iter_mut().filter(|_| is_round).for_each(|x| *x = (*x * 16.0).round() / 16.0);
        }
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options()).unwrap();
        assert_eq!(network.public().input().features, None);
    }
}

#[test]
fn features_that_no_layer_can_take_stay_in_one_unit() {
    // The input's own values reach the sum.
    let sketch = Sketch::new(&[8], 5).dense("a", 8).join("sum", Op::Add, &["a", "x"]).dense("out", 3);
    let network = compiled(&sketch, 0, &options());
    assert_eq!(network.public().input().features, None);
}

#[test]
fn a_centre_that_an_activation_stops_is_not_taken_but_units_are() {
    let mut sketch = Sketch::new(&[8], 6).relu("first");
    let weights = TABLE.iter().flat_map(|row| {
        let unit = 1.0 / (row[0].abs() + row[1] + 0.001);
        [unit, -unit, 0.5 * unit]
    });
    let weights = weights.collect();
    let weight = insert(&mut sketch, "w", &[8, 3], weights);
    let sketch = sketch.op("out", Op::MatMul { weight, bias: None });
    let network = compiled(&sketch, 0, &options());
    let features = network.public().input().features.as_ref().unwrap();
    assert!(features.centres.iter().all(|centre| *centre == 0), "{features:?}");
    assert!(features.exponents.iter().any(|exponent| *exponent < -8), "{features:?}");
}

#[test]
fn what_is_told_is_coarse_and_the_same_for_values_of_one_cell() {
    let (sketch, _) = sketches().swap_remove(0);
    let calibration = table_samples(&[8], 0, 60, 11);
    let public = |samples: &[f32]| {
        let network = compile(&sketch.graph, &sketch.tensors, samples, &options()).unwrap();
        network.public().input().clone()
    };
    let input = public(&calibration);
    let InputScale::Grid(unit) = input.scale else { panic!("{input:?}") };
    assert_eq!(i32::from(unit) % 8, 0);
    for end in [input.low, input.high] {
        assert!(end == 0 || end.unsigned_abs().is_power_of_two());
    }
    let features = input.features.as_ref().unwrap();
    assert!(features.centres.iter().all(|centre| centre % 64 == 0), "{features:?}");
    assert_eq!(features.exponents.iter().max(), Some(&0));
    for (feature, [middle, width]) in TABLE.into_iter().enumerate() {
        let units = 2.0 * f64::from(width) / input.unit(feature);
        let is_centred = features.centres[feature] != 0;
        assert_eq!(is_centred, width > 0.0 && middle.abs() > 3.0 * width, "{feature}");
        // The range itself, or with 0, makes 2^8 to 2^9 steps.
        assert!(!is_centred || (230.0..530.0).contains(&units), "{feature}: {units}");
        let centre = features.centres[feature] as f64 * input.unit(feature);
        assert!(
            !is_centred || (centre - f64::from(middle)).abs() < 1.3 * f64::from(width),
            "{feature}: {centre}"
        );
        let [low, high] = input.limits_of(feature);
        assert!(
            low <= f64::from(middle - 2.0 * width) && high >= f64::from(middle + 2.0 * width),
            "{feature}"
        );
    }
    // One person's value, the largest, moves a little: nothing of it is seen.
    let mut alike = 0;
    for (feature, [_, width]) in TABLE.into_iter().take(6).enumerate() {
        let largest = |samples: &[f32]| {
            (0..60).map(|row| 8 * row + feature).max_by(|a, b| samples[*a].total_cmp(&samples[*b])).unwrap()
        };
        let mut moved = calibration.clone();
        let at = largest(&moved);
        moved[at] += 0.05 * width;
        assert_ne!(moved, calibration);
        alike += usize::from(public(&moved) == input);
    }
    assert!(alike >= 5, "{alike} of 6");
}

#[test]
fn values_out_of_range_are_refused_by_feature() {
    let (sketch, axis) = sketches().swap_remove(2);
    let network = compiled(&sketch, axis, &options());
    let input = network.public().input();
    let sample = table_samples(&[8, 5, 6], 0, 1, 12);
    for feature in 0..8 {
        let index = 30 * feature + 7;
        let [low, high] = input.limits_of(index);
        let unit = input.unit(index);
        for (value, is_in) in
            [(low, true), (high, true), (low - 0.4 * unit, true), (low - unit, false), (high + unit, false)]
        {
            let mut sample = sample.clone();
            sample[index] = value as f32;
            let found = input.quantize(&sample);
            assert_eq!(found.is_ok(), is_in, "{feature} {value}");
            if let Err(error) = found {
                assert!(
                    matches!(error, InputError::OutOfRange { index: at, feature: Some(of), .. } if (at, of) == (index, feature))
                );
                let expected = format!("the input's value {index} (feature {feature}) is ");
                assert!(error.to_string().starts_with(&expected), "{error}");
            }
        }
        let integers = input.quantize(&sample).unwrap();
        assert!((input.real(index, integers[index]) - f64::from(sample[index])).abs() <= 0.5 * unit);
        assert!(input.check(&integers).is_ok());
    }
    let mut integers = input.quantize(&sample).unwrap();
    integers[239] = input.high + 1;
    let refused = input.check(&integers).unwrap_err();
    assert!(matches!(refused, InputError::OutOfRange { index: 239, feature: Some(7), .. }), "{refused}");
}

#[test]
fn published_preprocessing_is_the_clients() {
    let published = QuantizationOptions { public_preprocessing: true, ..options() };
    for (number, (sketch, axis)) in sketches().into_iter().enumerate().take(8) {
        let network = compiled(&sketch, axis, &published);
        let features = network.public().input().features.as_ref().unwrap();
        assert_eq!(features.axis, axis, "{number}");
        let Preprocessing { factors, terms } = features.preprocessing.as_ref().unwrap();
        for (feature, [middle, width]) in TABLE.into_iter().enumerate() {
            assert!((factors[feature] * f64::from(middle) + terms[feature]).abs() < 0.3, "{number}");
            assert!((factors[feature] * f64::from(width)).abs() < 2.0, "{number}");
        }
        // What is left differs little, so that one unit serves all.
        assert_eq!((&features.exponents, &features.centres), (&vec![0; 8], &vec![0; 8]), "{number}");
        let found = error(&sketch, axis, &network);
        assert!(found.0 < 0.05 && found.1 == 0, "{number}: {found:?}");
        let json = network.public().to_json().unwrap();
        assert_eq!(&PublicNetwork::from_json(&json).unwrap(), network.public());
    }
}

#[test]
fn preprocessing_that_cannot_be_published_is_refused() {
    let published = QuantizationOptions { public_preprocessing: true, ..options() };
    let refusal = |sketch: &Sketch, options: &QuantizationOptions| {
        let size: usize = sketch.graph.inputs[0].shape.iter().product();
        let samples = Random(1).reals(size * 8, 0.0, 1.0);
        match compile(&sketch.graph, &sketch.tensors, &samples, options).unwrap_err() {
            CompileError::Preprocessing { reason, .. } => reason,
            other => panic!("{other}"),
        }
    };
    let none = Sketch::new(&[4], 1).dense("a", 3);
    assert!(refusal(&none, &published).starts_with("no constant"));
    let image = Sketch::new(&[2, 4, 4], 2).add_constant("mean image", &[2, 4, 4]).conv("a", 3, 3, 1, 0);
    assert!(refusal(&image, &published).contains("several axes"));
    let zero = Sketch::new(&[2], 3);
    let zero = {
        let mut zero = zero;
        let value = insert(&mut zero, "zero", &[2], vec![0.0, 1.0]);
        zero.op("m", Op::MulConstant { value }).dense("a", 3)
    };
    assert!(refusal(&zero, &published).contains("is 0"));
    let stated = QuantizationOptions { input_range: Some([0.0, 1.0]), ..published };
    assert!(refusal(&scaler(Sketch::new(&[8], 1), &[8]).dense("a", 3), &stated).contains("stated range"));
}

#[test]
fn features_in_files_are_checked() {
    let (sketch, axis) = sketches().swap_remove(2);
    let published = QuantizationOptions { public_preprocessing: true, ..options() };
    let network = compiled(&sketch, axis, &published);
    let public: serde_json::Value = serde_json::from_str(&network.public().to_json().unwrap()).unwrap();
    let sound: Features = serde_json::from_value(public["input"]["features"].clone()).unwrap();
    let with = |change: &dyn Fn(&mut Features)| {
        let (mut changed, mut features) = (public.clone(), sound.clone());
        change(&mut features);
        changed["input"]["features"] = serde_json::to_value(features).unwrap();
        PublicNetwork::from_json(&changed.to_string())
    };
    let constants = |change: fn(&mut Preprocessing)| {
        move |features: &mut Features| change(features.preprocessing.as_mut().unwrap())
    };
    assert!(with(&|features| features.preprocessing = None).is_ok());
    assert!(with(&|features| (features.exponents[0], features.centres[7]) = (-64, 1 << 24)).is_ok());
    let changes: [&dyn Fn(&mut Features); 14] = [
        &|features| features.axis = 1,
        &|features| features.axis = 3,
        &|features| features.axis = usize::MAX,
        &|features| features.exponents.push(0),
        &|features| features.centres.truncate(7),
        &|features| features.exponents[3] = 65,
        &|features| features.exponents[3] = i32::MIN,
        &|features| features.centres[2] = -(1 << 24) - 1,
        &|features| features.centres[2] = i64::MIN,
        &constants(|constants| constants.factors[1] = 0.0),
        &constants(|constants| constants.factors[1] = -1e31),
        &constants(|constants| constants.factors[1] = f64::NAN),
        &constants(|constants| constants.terms[5] = f64::INFINITY),
        &constants(|constants| constants.terms.clear()),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(with(change).is_err(), "{number}");
    }
    let mut stated = public.clone();
    stated["input"]["scale"] = serde_json::json!({"stated": {"low": 0.0, "high": 1.0, "steps": 255}});
    (stated["input"]["low"], stated["input"]["high"]) = (0.into(), 255.into());
    assert!(PublicNetwork::from_json(&stated.to_string()).is_err());
    stated["input"].as_object_mut().unwrap().remove("features");
    assert!(PublicNetwork::from_json(&stated.to_string()).is_ok());
    // The largest that are accepted overflow nothing.
    let widest = with(&|features| {
        (features.exponents[1], features.centres[1]) = (64, 1 << 24);
        let constants = features.preprocessing.as_mut().unwrap();
        (constants.factors[1], constants.terms[1]) = (-1e-30, 1e30);
    });
    let widest = widest.unwrap();
    let input = widest.input();
    assert!(input.limits().iter().all(|end| end.is_finite()));
    for value in [f32::MIN, -1.0, 0.0, f32::MIN_POSITIVE, f32::MAX] {
        let _ = input.quantize(&vec![value; input.len()]);
    }
    assert!(
        input.check(&vec![i64::MAX; input.len()]).is_err()
            && input.check(&vec![i64::MIN; input.len()]).is_err()
    );
}
