//! Errors of stable filters, against the chain of one cell.

use lately::clock::Window;
use lately::family::Shape as _;
use lately::family::baselines::stable::shape::*;
use lately::family::slice_sizes::Slices;

fn shape(k: u32, cells: u64, bits: u32, decrements: u64) -> StableShape {
    StableShape::new(Slices::new(k, cells).unwrap(), bits, decrements).unwrap()
}

/// Advances the chain of one cell by a step: a decrement, then perhaps Max.
fn step(values: &mut [f64], shape: &StableShape) {
    let cells = shape.slices.cells as f64;
    let (d, p) = (shape.decrements as f64 / cells, 1.0 / cells);
    for i in 0..values.len() {
        let above = values.get(i + 1).copied().unwrap_or(0.0);
        values[i] += d * above - if i > 0 { d * values[i] } else { 0.0 };
    }
    values.iter_mut().for_each(|value| *value *= 1.0 - p);
    *values.last_mut().unwrap() += p;
}

#[test]
fn errors_are_those_of_the_chain_of_a_cell() {
    for shape in [shape(1, 7, 1, 3), shape(2, 50, 2, 9), shape(3, 200, 4, 150), shape(1, 90, 8, 90), shape(2, 2, 2, 1)]
    {
        let k = shape.slices.k as i32;
        let mut of_key = vec![0.0_f64; shape.max() as usize + 1];
        *of_key.last_mut().unwrap() = 1.0;
        let mut of_none = vec![0.0_f64; shape.max() as usize + 1];
        of_none[0] = 1.0;
        let mut beyond = 0.0;
        for age in 0..40_000 {
            let missed = 1.0 - (1.0 - of_key[0]).powi(k);
            assert!((shape.false_negative_rate(f64::from(age)) - missed).abs() < 1e-11, "{shape:?} {age}");
            if age < 300 {
                for (values, below) in [
                    (&of_key, shape.below(f64::from(age), 1.0)),
                    (&of_none, shape.below_from_empty(f64::from(age), 1.0)),
                ] {
                    let mut sum = 0.0;
                    for (value, below) in below.into_iter().enumerate() {
                        assert!((below - sum).abs() < 1e-11, "{shape:?} {age} {value}: {below} for {sum}");
                        sum += values.get(value).unwrap_or(&0.0);
                    }
                }
            }
            if age >= 20 {
                beyond += 1.0 - missed - shape.false_positive_rate();
            }
            step(&mut of_key, &shape);
            step(&mut of_none, &shape);
        }
        assert!((of_key[0] - shape.zeros()).abs() < 1e-11);
        let npws = shape.npws(Window::Count { insertions: 20 });
        assert!((npws - beyond / 20.0).abs() <= 1e-3 * npws + 1e-6, "{shape:?} {npws} {}", beyond / 20.0);
    }
}
