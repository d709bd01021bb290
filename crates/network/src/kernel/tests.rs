//! The kernels equal their naive twins.

use lanner_testkit::TestRng;
use proptest::prelude::*;
use rand_core::Rng;

use super::{add_columns, add_conv, add_rows, fold_windows};
use crate::{ConvGeometry, Window};

/// Convolution by its definition.
fn naive_conv(x: &[i64], shape: [usize; 3], w: &[i64], g: &ConvGeometry, out: [usize; 2]) -> Vec<i64> {
    let [channels, height, width] = shape;
    let (group_in, group_out) = (channels / g.groups, g.out_channels / g.groups);
    let mut y = Vec::new();
    for o in 0..g.out_channels {
        for (row, column) in (0..out[0]).flat_map(|r| (0..out[1]).map(move |c| (r, c))) {
            let mut sum = 0;
            for i in 0..group_in {
                for (dy, dx) in (0..g.kernel[0]).flat_map(|dy| (0..g.kernel[1]).map(move |dx| (dy, dx))) {
                    let r = (row * g.strides[0] + dy * g.dilations[0]).checked_sub(g.pads[0]);
                    let c = (column * g.strides[1] + dx * g.dilations[1]).checked_sub(g.pads[1]);
                    if let (Some(r), Some(c)) = (r, c)
                        && r < height
                        && c < width
                    {
                        let source = o / group_out * group_in + i;
                        let tap = ((o * group_in + i) * g.kernel[0] + dy) * g.kernel[1] + dx;
                        sum += w[tap] * x[(source * height + r) * width + c];
                    }
                }
            }
            y.push(sum);
        }
    }
    y
}

fn geometries() -> impl Strategy<Value = ([usize; 3], ConvGeometry)> {
    let axis = || (1_usize..10, 1_usize..6, 1_usize..4, 0_usize..4, 0_usize..4, 1_usize..3);
    (1_usize..4, 1_usize..4, 1_usize..3, axis(), axis()).prop_map(|(c, o, groups, v, h)| {
        let geometry = ConvGeometry {
            out_channels: o * groups,
            kernel: [v.1, h.1],
            strides: [v.2, h.2],
            pads: [v.3, h.3, v.4, h.4],
            dilations: [v.5, h.5],
            groups,
        };
        ([c * groups, v.0, h.0], geometry)
    })
}

proptest! {
    #[test]
    fn convolution_equals_its_definition((shape, geometry) in geometries(), seed: u64) {
        let Ok(output) = geometry.output(&shape) else { return Ok(()) };
        let out = [output[1], output[2]];
        let mut random = TestRng::new(seed);
        let mut integers = |count: usize| -> Vec<i64> { (0..count).map(|_| (random.next_u64() % 201) as i64 - 100).collect() };
        let (x, w) = (integers(shape.iter().product()), integers(geometry.weight_count(shape[0])));
        let mut y = vec![7; output.iter().product()];
        add_conv(&x, shape, &w, &geometry, out, &mut y);
        let expected: Vec<i64> = naive_conv(&x, shape, &w, &geometry, out).iter().map(|y| y + 7).collect();
        prop_assert_eq!(&y, &expected);
        // The narrow type gives the same.
        let narrow = |values: &[i64]| values.iter().map(|&x| x as i32).collect::<Vec<_>>();
        let mut y = vec![7; expected.len()];
        add_conv(&narrow(&x), shape, &narrow(&w), &geometry, out, &mut y);
        prop_assert_eq!(y, narrow(&expected));
    }

    #[test]
    fn pools_equal_their_definition(
        size in (1_usize..9, 1_usize..9), kernel in (1_usize..4, 1_usize..4), stride in 1_usize..4, pads: [u8; 4], seed: u64,
    ) {
        let kernel = [kernel.0, kernel.1];
        let pads = [0, 1, 2, 3].map(|side| usize::from(pads[side]) % kernel[side % 2]);
        let window = Window { kernel, strides: [stride, stride], pads };
        let Ok(out) = window.output([size.0, size.1]) else { return Ok(()) };
        let mut random = TestRng::new(seed);
        let x: Vec<i64> = (0..2 * size.0 * size.1).map(|_| (random.next_u64() % 99) as i64 - 49).collect();
        let folded = fold_windows(&x, [2, size.0, size.1], &window, out, i64::max);
        let mut expected = Vec::new();
        for (channel, row, column) in (0..2 * out[0] * out[1]).map(|i| (i / (out[0] * out[1]), i / out[1] % out[0], i % out[1])) {
            let inside = |r: usize, c: usize| {
                let (r, c) = ((row * stride + r).checked_sub(pads[0])?, (column * stride + c).checked_sub(pads[1])?);
                (r < size.0 && c < size.1).then(|| x[(channel * size.0 + r) * size.1 + c])
            };
            let real: Vec<i64> =
                (0..kernel[0]).flat_map(|r| (0..kernel[1]).map(move |c| (r, c))).filter_map(|(r, c)| inside(r, c)).collect();
            expected.push((*real.iter().max().unwrap(), real.len()));
        }
        prop_assert_eq!(folded, expected);
    }
}

#[test]
fn rows_and_columns_are_transposes_of_each_other() {
    let x = [1_i64, -2, 3];
    let mut by_rows = [10, 20];
    add_rows(&x, &[1, 2, 3, 4, 5, 6], &mut by_rows);
    assert_eq!(by_rows, [16, 32]);
    let mut by_columns = [10, 20];
    add_columns(&x, &[1, 4, 2, 5, 3, 6], &mut by_columns);
    assert_eq!(by_columns, by_rows);
}

#[test]
fn a_kernel_of_more_taps_than_a_block_is_whole() {
    let geometry = ConvGeometry {
        out_channels: 1,
        kernel: [9, 9],
        strides: [1, 1],
        pads: [4; 4],
        dilations: [1, 1],
        groups: 1,
    };
    let (x, w): (Vec<i64>, Vec<i64>) = ((0..81).collect(), (0..81).map(|w| w % 7 - 3).collect());
    let mut y = vec![0; 81];
    add_conv(&x, [1, 9, 9], &w, &geometry, [9, 9], &mut y);
    assert_eq!(y, naive_conv(&x, [1, 9, 9], &w, &geometry, [9, 9]));
}
