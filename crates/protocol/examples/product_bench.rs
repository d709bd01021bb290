//! Times the plaintext product of a layer that is encrypted ahead of time: `cargo run --release --example product_bench -- 20`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::{Duration, Instant};

use lanner_coefficient::delphi::Product;
use lanner_primitives::parallel;
use lanner_step::Convolution;

fn square(in_channels: usize, out_channels: usize, size: usize, kernel: usize, stride: usize) -> Convolution {
    Convolution {
        in_channels,
        out_channels,
        image: [size; 2],
        kernel: [kernel; 2],
        strides: [stride; 2],
        pads: [kernel / 2; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

fn main() {
    let argument = |number| std::env::args().nth(number).map(|text| text.parse().unwrap());
    let (repeats, threads) = (argument(1).unwrap_or(20), argument(2).unwrap_or(1));
    parallel::set_threads(threads);
    let shapes = [
        square(32, 32, 32, 3, 1),
        square(64, 64, 14, 3, 1),
        square(64, 128, 56, 3, 2),
        square(512, 512, 7, 3, 1),
        square(256, 64, 56, 1, 1),
        Convolution { groups: 96, ..square(96, 96, 56, 3, 1) },
        Convolution::fully_connected(2048, 1000),
    ];
    for shape in shapes {
        for bits in [24, 41] {
            let weights: Vec<i64> = (0..shape.weights() as i64).map(|at| at * 7919 % 4095 - 2047).collect();
            let values: Vec<u64> =
                (0..shape.inputs() as u64).map(|at| (at * 0x9e_3779) & 0xff_ffff).collect();
            let product = Product::new(&shape, bits, &weights).unwrap();
            let mut times: Vec<Duration> = (0..repeats)
                .map(|_| {
                    let start = Instant::now();
                    std::hint::black_box(product.apply(&values).unwrap());
                    start.elapsed()
                })
                .collect();
            times.sort();
            let products = product.outputs() * shape.weights() / shape.out_channels;
            let median = times[repeats / 2];
            let rate = products as f64 / median.as_nanos() as f64;
            println!("{shape:?}, {bits} bits: {median:.2?}, {rate:.1} products a nanosecond");
        }
    }
}
