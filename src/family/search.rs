//! The search for a shape. Each candidate is sized for the budget. Candidates that take about as little memory as the
//! smallest, or have about the lowest rate, are compared, and the one whose calls cost least is chosen.
//!
//! Segments, slices and lines cost time: every call reads a few. Memory falls with their number, ever more slowly. So a
//! little of the budget is traded for fewer of them; each family defines how much.

/// A candidate of the planner: a shape whose size follows from the budget.
pub(crate) trait Candidate {
    /// The shape of the candidate with its size.
    type Shape;

    /// Returns the cost of a call: the number of segments, slices or lines. Candidates are sorted by it.
    fn rank(&self) -> u32;

    /// Returns the order in which candidates are first tried. If the smallest comes early, one look rules out each of
    /// the others.
    fn order(&self) -> u32 {
        0
    }

    /// Returns the shape of a number of units, at least 1.
    fn shape(&self, units: u64) -> Self::Shape;

    /// Returns the memory of a unit, in a measure that all candidates share: bytes, bits, cells or pages.
    fn memory_of_unit(&self) -> u64;

    /// Returns the false positive rate at the worst phase, if it is at most `limit`.
    fn rate_at_most(&self, shape: &Self::Shape, limit: f64) -> Option<f64>;

    /// Returns the fewest units, at most `most`, whose rate is at most `fpr`: by bisection, since larger shapes are
    /// emptier.
    fn fewest_units(&self, fpr: f64, most: u64) -> Option<u64> {
        let holds = |units| self.rate_at_most(&self.shape(units), fpr).is_some();
        (most > 0 && holds(most)).then(|| bisection(0, most, holds))
    }

    /// Returns the most units that the shape can have, up to `most`.
    fn most_units(&self, most: u64) -> Option<u64> {
        (most > 0).then_some(most)
    }
}

/// Returns the shape for a rate. Each candidate gets the fewest units that hold it. Among those with at most `near` the
/// least memory, the first of the least rank is chosen, and among these the smallest. Returns `None` if all take more
/// memory than `most`.
pub(crate) fn for_rate<C: Candidate>(
    candidates: &[C],
    fpr: f64,
    most: u64,
    near: impl Fn(u64) -> u64,
) -> Option<C::Shape> {
    preferred(candidates, most, near, |candidate, most| {
        let unit = candidate.memory_of_unit();
        let units = candidate.fewest_units(fpr, most / unit)?;
        Some((units * unit, candidate.shape(units)))
    })
}

/// Returns the shape for an amount of memory. Each candidate gets the most units that fit. Among those with at most
/// `near` the least rate, the first of the least rank is chosen, and among these the one of the least rate. Returns
/// `None` if no unit fits.
pub(crate) fn for_memory<C: Candidate>(candidates: &[C], memory: u64, near: impl Fn(f64) -> f64) -> Option<C::Shape> {
    preferred(candidates, 1.0, near, |candidate, limit| {
        let shape = candidate.shape(candidate.most_units(memory / candidate.memory_of_unit())?);
        Some((candidate.rate_at_most(&shape, limit)?, shape))
    })
}

/// Returns the least memory that a shape takes, if there is any candidate.
pub(crate) fn least_memory<C: Candidate>(candidates: &[C]) -> u64 {
    candidates.iter().map(Candidate::memory_of_unit).min().unwrap_or(0)
}

/// Returns the cheapest shape of the least rank that has one at `near` the least cost. `sized` returns the shape of a
/// candidate and its cost, if that is at most the second argument.
///
/// The least cost is found first, with ever lower limits. The second look ends at the first rank that has a shape.
fn preferred<C: Candidate, T: Copy + PartialOrd>(
    candidates: &[C],
    most: T,
    near: impl Fn(T) -> T,
    sized: impl Fn(&C, T) -> Option<(T, C::Shape)>,
) -> Option<C::Shape> {
    // Numbers are sorted, so that the sort is compiled once and not for every family.
    let mut in_order: Vec<_> = candidates.iter().map(Candidate::order).zip(0..).collect();
    in_order.sort_unstable();
    let next =
        |least: Option<T>, i: usize| sized(&candidates[i], least.unwrap_or(most)).map(|(cost, _)| cost).or(least);
    let least = in_order.into_iter().fold(None, |least, (_, i)| next(least, i))?;
    let within = if near(least) < most { near(least) } else { most };
    candidates.chunk_by(|a, b| a.rank() == b.rank()).find_map(|group| {
        let of_group = group.iter().filter_map(|candidate| sized(candidate, within));
        of_group.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|(_, shape)| shape)
    })
}

/// Returns the shapes that cost at most `near` the least cost.
pub(crate) fn near_the_least<S, T: Copy + PartialOrd>(
    shapes: Vec<S>,
    cost: impl Fn(&S) -> T,
    near: impl Fn(T) -> T,
) -> impl Iterator<Item = S> {
    let least = shapes.iter().map(&cost).reduce(|least, cost| if cost < least { cost } else { least });
    shapes.into_iter().filter(move |shape| least.is_some_and(|least| cost(shape) <= near(least)))
}

/// Returns the least number above `too_few` that holds, if all numbers from it to `enough` hold.
pub(crate) fn bisection(mut too_few: u64, mut enough: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        *(if holds(middle) { &mut enough } else { &mut too_few }) = middle;
    }
    enough
}
