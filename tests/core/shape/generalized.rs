//! Errors of generalized filters, against the chain of all cells.

use lately::family::baselines::generalized::shape::*;

/// Returns the chance that all cells of a key match after each age, by the exact chain, and of a fresh key in the end.
/// It goes back in time, hash by hash: the last hash that hit a cell determines its value. States are how many of the
/// key's zeros and ones no later hash has hit; a hash of the wrong kind ends it.
fn by_chain(shape: GeneralizedShape, ages: u32) -> (Vec<f64>, f64) {
    let (k1, k0, m) = (shape.k1 as usize, shape.k0 as usize, shape.bits as f64);
    let mut open = vec![vec![0.0; k1 + 1]; k0 + 1];
    // The key's own cells: different ones, zeros first.
    let mut cells = vec![1.0];
    let mut different = |hashes: usize| {
        for _ in 0..hashes {
            let mut next = vec![0.0; cells.len() + 1];
            for (d, chance) in cells.iter().enumerate() {
                next[d] += chance * d as f64 / m;
                next[d + 1] += chance * (1.0 - d as f64 / m);
            }
            cells = next;
        }
        cells.clone()
    };
    for (zeros, chance) in different(k0).into_iter().enumerate() {
        let mut ones = vec![0.0; k1 + 1];
        ones[0] = chance;
        for _ in 0..k1 {
            for d in (0..k1).rev() {
                let moved = ones[d] * (1.0 - (zeros + d) as f64 / m);
                ones[d] -= moved;
                ones[d + 1] += moved;
            }
        }
        open[zeros] = ones;
    }
    let step = |open: &mut Vec<Vec<f64>>, resets: bool| {
        for zeros in 0..=k0 {
            for ones in 0..=k1 {
                let (right, here) = (if resets { zeros } else { ones }, open[zeros][ones]);
                open[zeros][ones] -= here * (zeros + ones) as f64 / m;
                if right > 0 {
                    *(if resets { &mut open[zeros - 1][ones] } else { &mut open[zeros][ones - 1] }) +=
                        here * right as f64 / m;
                }
            }
        }
    };
    let total = |open: &Vec<Vec<f64>>| open.iter().flatten().sum::<f64>();
    let mut matching = vec![total(&open)];
    for age in 1..400 * shape.bits as u32 {
        (0..k0).for_each(|_| step(&mut open, true));
        (0..k1).for_each(|_| step(&mut open, false));
        if age <= ages {
            matching.push(total(&open));
        }
        if total(&open) - open[0][0] < 1e-15 {
            break;
        }
    }
    (matching, open[0][0])
}

#[test]
fn errors_are_those_of_the_chain_of_all_cells() {
    for (bits, k1, k0) in [(50, 1, 1), (2000, 3, 4), (300, 2, 1), (1000, 6, 3), (4000, 8, 8)] {
        let shape = GeneralizedShape::new(bits, k1, k0).unwrap();
        let (matching, fresh) = by_chain(shape, 2 * bits as u32);
        let near = f64::from((k0 + k1).pow(2)) / bits as f64;
        let memory = shape.memory();
        for (age, exact) in matching.iter().enumerate() {
            let computed = memory.matches(age as f64);
            assert!((computed / exact - 1.0).abs() < near, "{shape:?} {age}: {computed} {exact}");
            assert!((computed + memory.missed(age as f64) - 1.0).abs() < 1e-12);
        }
        let rate = shape.false_positive_rate();
        assert!((rate / fresh - 1.0).abs() < near, "{shape:?}: {rate} {fresh}");
        let beyond: f64 = (5..1_000_000).map(|age| memory.matches(f64::from(age)) - rate).sum();
        assert!((memory.remembered_from(5.0) / beyond - 1.0).abs() < 1e-6);
    }
}

#[test]
fn single_cells_are_exact() {
    // One insertion of one set and one reset into two cells, for a key of different cells.
    let shape = GeneralizedShape::new(2, 1, 1).unwrap();
    assert!((shape.log_missed(2).exp() - 0.25).abs() < 1e-15);
    assert!((shape.steady_fill() - 1.0 / 3.0).abs() < 1e-15, "q1 = 1/4, q0 = 1/2");
    let memory = shape.memory();
    assert!((memory.matches(0.0) - 1.0).abs() < 1e-15);
    // One cell in half of the cases, a zero; two in the other.
    let fresh = 0.5 * (2.0 / 3.0) + 0.5 * (2.0 / 3.0 * 1.0 / 3.0);
    assert!((shape.false_positive_rate() - fresh).abs() < 1e-15);
}
