//! Posteriors, ages and decisions: methods of every filter that call the core's inference.

mod per_key;

use std::sync::Mutex;

use bytemuck::Zeroable;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::array_of;
use crate::calls::detached;
use crate::errors::raise;
use crate::filter::PyFilter;
use crate::time::window;
use crate::whole::Threads;
use lately::Error;
use lately::clock::{Moments, Window};
use lately::engine::Engine;
use lately::inference::{
    Distinct, Evidence, Inference, PerKey, Posterior, PosteriorCache, Question, decide, evidence_of,
};
use lately::memory::fallible;
use per_key::{Numbers, NumbersArgument, equally_frequent, read_curve};

/// The result of a block of keys, whose answers are written elsewhere.
type Done = Result<(), Error>;

/// Prepares the inference of `ages`, with the distinct-count curve of the prior if it has one. A ValueError of the
/// prior means that it has none. One number for all keys is the prior of a stream whose keys are equally frequent.
fn build<'a>(
    py: Python<'_>,
    engine: &'a dyn Engine,
    prior: &Bound<'_, PyAny>,
    numbers: PerKey<'_>,
    ages: &[f64],
    few: Option<&[Evidence]>,
) -> PyResult<Inference<'a>> {
    let (has_curve, prior, raised) = (prior.hasattr("distinct")?, prior.clone().unbind(), Mutex::new(None));
    let inference = detached(py, || {
        let of_prior = |insertions: &[f64]| {
            let curve = Python::attach(|py| read_curve(prior.bind(py), insertions));
            curve.map_err(|error| *raised.lock().expect("no panic while it is locked") = Some(error)).ok()
        };
        let of_equal_keys = |insertions: &[f64]| equally_frequent(numbers, insertions);
        let distinct: &Distinct<'_> = if has_curve { &of_prior } else { &of_equal_keys };
        Inference::about(engine, &Question { ages, distinct: Some(distinct), few })
    })?
    .map_err(raise)?;
    match raised.into_inner().expect("no panic while it was locked") {
        Some(error) if !error.is_instance_of::<PyValueError>(py) => Err(error),
        _ => Ok(inference),
    }
}

/// Reads the edges between bins of ages, in the unit of the window. Edges in insertions are rounded up to whole
/// numbers.
fn read_edges(edges: &Bound<'_, PyAny>, window: Window) -> PyResult<Vec<f64>> {
    let Numbers::Each(edges) = NumbersArgument::read("edges", edges)?.numbers else {
        return Err(PyTypeError::new_err("edges must be an array of at least 2 ages"));
    };
    let edges = edges.as_slice()?;
    let increasing = edges.len() > 1 && edges[0] >= 0.0 && edges.windows(2).all(|pair| pair[0] < pair[1]);
    if !increasing {
        return Err(PyValueError::new_err("edges must be at least 2 ages, from 0 on and increasing"));
    }
    let age = |edge: &f64| match window {
        Window::Count { .. } => edge.ceil(),
        Window::Time { .. } => *edge,
    };
    fallible::collected(edges.iter().map(age)).map_err(raise)
}

impl PyFilter {
    /// Runs `act` over the keys block by block, with an inference of `ages`, and returns `width` answers for each key.
    /// The whole batch is answered from one state of the filter.
    fn infer<T: Zeroable + Send>(
        &self,
        (keys, at): (&Bound<'_, PyAny>, Option<&Bound<'_, PyAny>>),
        prior_given: &Bound<'_, PyAny>,
        (ages, width): (&[f64], usize),
        threads: Threads,
        act: impl Fn(&Inference<'_>, &mut PosteriorCache, &[u64], Moments<'_>, PerKey<'_>, &mut [T]) -> Done + Sync,
    ) -> PyResult<Vec<T>> {
        let py = keys.py();
        let state = detached(py, || self.snapshot())??;
        let prior = NumbersArgument::of_keys(prior_given, keys, state.engine().clock().window())?;
        let numbers = prior.borrow()?;
        let batch = self.batch(py, keys, at, false)?;
        prior.check_len(batch.keys.len())?;
        let few = if batch.is_short() { Some(evidence_of(state.engine(), &batch.hashes(py)?)) } else { None };
        let inference = build(py, state.engine(), prior_given, numbers, ages, few.as_deref())?;
        let cache = || PosteriorCache::new(batch.keys.len());
        Ok(batch.run_with(py, threads.0, width, cache, |cache, hashes, keys, at, answers| {
            act(&inference, cache, hashes, at, numbers.slice(keys), answers)
        })?)
    }

    /// Reads the window of a query, which is the filter's own by default, in insertions or seconds.
    fn read_window(&self, window: Option<&Bound<'_, PyAny>>, own: Window) -> PyResult<f64> {
        let length = window.map_or(Ok(own.length()), |window| window::length("window", window, own))?;
        Ok(match own {
            Window::Count { .. } => length as f64,
            Window::Time { .. } => length as f64 / 1e9,
        })
    }
}

#[pymethods]
impl PyFilter {
    /// Compute for each key the probability that it was inserted within the window, from all cells and a prior.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys, as in `query`.
    /// prior : float, ndarray of float64, shape (n,), or object
    ///     How often each key arrives. For a window of insertions, the probability that the next insertion is the key.
    ///     For a window of time, its insertions per second. One number for all keys, one for each key, or an object
    ///     whose ``probability(keys)``, or ``rate(keys)`` for a window of time, returns them.
    /// window : int or span, optional
    ///     Another window than the filter's, in insertions or a span of time.
    /// at : time or n times, optional
    ///     The end of the window, for a window of time, with the default of `query`. It may lie before `latest` by at
    ///     most `lateness`: a key that was inserted since then counts too, as of age 0.
    /// threads : int, default 1
    ///     How many threads share the batch, as in `query`. The answers are the same, bit for bit.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     P(inserted within `window`), accurate to 1e-5 given the match rates. It is calibrated if keys arrive
    ///     independently and as often as the prior states: of the keys with a posterior of 0.3, three in ten were
    ///     inserted.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the prior is not a probability or rate, or does not fit `keys`; the message names the position. If
    ///     filters of this family have no inference.
    /// TypeError
    ///     As `query`, and for a prior that is not a number.
    ///
    /// Notes
    /// -----
    /// The framework of paper 5 (J. L. Dautrich, C. V. Ravishankar, 2019, section 2), with the likelihood of the
    /// present cells in place of expected ones. Match rates are measured on at most 64 KiB for each slice.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GuardedEpochBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(range(5000))
    /// >>> f.posterior([4999, 4500, 7, -1], prior=1e-5, window=500).round(2)
    /// array([0.94, 0.49, 0.  , 0.  ])
    #[pyo3(signature = (keys, prior, window=None, *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, prior, window=None, *, at=None, threads=1)")]
    fn posterior<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        prior: &Bound<'py, PyAny>,
        window: Option<&Bound<'py, PyAny>>,
        at: Option<&Bound<'py, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let py = keys.py();
        let window = self.read_window(window, self.window)?;
        let posteriors = self.infer(
            (keys, at),
            prior,
            (&[window], 1),
            threads,
            |inference, cache, hashes, at, prior, posteriors| {
                inference.posterior(hashes, at, prior, window, cache, posteriors)
            },
        )?;
        array_of(py, posteriors)
    }

    /// Report the keys for which reporting has the least expected cost.
    ///
    /// Parameters
    /// ----------
    /// keys, prior, window, at, threads
    ///     As in `posterior`.
    /// false_positive, false_negative : float or ndarray of float64, shape (n,), default 1.0
    ///     The cost of reporting a key that was not inserted within the window, and of missing a key that was.
    ///
    /// Returns
    /// -------
    /// ndarray of bool, shape (n,)
    ///     True where the expected cost of reporting is at most that of not reporting (paper 5, section 2.6).
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     As `posterior`, and for a cost that is negative or not finite, or does not fit `keys`.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GuardedEpochBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(range(5000))
    /// >>> f.decide([4999, -1], prior=1e-5, false_positive=5.0)
    /// array([ True, False])
    #[pyo3(signature = (keys, prior, false_positive=None, false_negative=None, *, window=None, at=None,
            threads=Threads::default()),
        text_signature = "($self, keys, prior, false_positive=1.0, false_negative=1.0, *, window=None, at=None, \
            threads=1)")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of a Python method")]
    fn decide<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        prior: &Bound<'py, PyAny>,
        false_positive: Option<&Bound<'py, PyAny>>,
        false_negative: Option<&Bound<'py, PyAny>>,
        window: Option<&Bound<'py, PyAny>>,
        at: Option<&Bound<'py, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let py = keys.py();
        let penalty = |name, value: Option<&Bound<'py, PyAny>>| match value {
            Some(value) => NumbersArgument::penalty(name, value),
            None => Ok(NumbersArgument { name, numbers: Numbers::All(1.0) }),
        };
        let costs = [penalty("false_positive", false_positive)?, penalty("false_negative", false_negative)?];
        let posteriors = self.posterior(keys, prior, window, at, threads)?.readonly();
        let posteriors = posteriors.as_slice()?;
        costs.iter().try_for_each(|cost| cost.check_len(posteriors.len()))?;
        let [false_positive, false_negative] = [costs[0].borrow()?, costs[1].borrow()?];
        let decision = |(key, &posterior)| decide(posterior, false_positive.of(key), false_negative.of(key));
        let decisions =
            detached(py, || fallible::collected(posteriors.iter().enumerate().map(decision)))?.map_err(raise)?;
        array_of(py, decisions)
    }

    /// Estimate how long ago each key was last inserted.
    ///
    /// Parameters
    /// ----------
    /// keys, prior, at, threads
    ///     As in `posterior`.
    /// kind : {"most_likely", "expected"}
    ///     The age of greatest probability (for a window of time, of greatest density), or the mean age. Both assume
    ///     that the key was inserted, however improbable that is.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     Ages in insertions, 0 for the latest one, or in seconds, as of a stream without a start (equation 4 of the
    ///     paper). Infinite if the prior is 0.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     As `posterior`, and for another `kind`.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GuardedEpochBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(range(5000))
    /// >>> f.age([4999, 4400, -1], prior=1e-5)
    /// array([   0.,  567., 1139.])
    #[pyo3(signature = (keys, prior, kind="most_likely", *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, prior, kind='most_likely', *, at=None, threads=1)")]
    fn age<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        prior: &Bound<'py, PyAny>,
        kind: &str,
        at: Option<&Bound<'py, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let age: fn(&Posterior<'_>) -> f64 = match kind {
            "most_likely" => |posterior| posterior.most_likely(),
            "expected" => |posterior| posterior.expected(),
            _ => return Err(PyValueError::new_err(format!("kind must be 'most_likely' or 'expected', got '{kind}'"))),
        };
        let py = keys.py();
        let ages = self.infer((keys, at), prior, (&[], 1), threads, |inference, _, hashes, at, prior, ages| {
            inference.each(hashes, at, prior, f64::INFINITY, |key, posterior| ages[key] = age(posterior))
        })?;
        array_of(py, ages)
    }

    /// Compute the probability of each range of ages.
    ///
    /// Parameters
    /// ----------
    /// keys, prior, at, threads
    ///     As in `posterior`.
    /// edges : array-like of float, shape (m + 1,)
    ///     Increasing ages, in insertions or seconds. Bin j contains the ages in [edges[j], edges[j + 1]). The last
    ///     edge may be infinite.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n, m)
    ///     P(age in bin j) for each key.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     As `posterior`, and for edges that do not increase from 0 or above.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GuardedEpochBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(range(5000))
    /// >>> f.age_probability([4999, 4400], prior=1e-5, edges=[0, 500, 1000]).round(2)
    /// array([[0.94, 0.  ],
    ///        [0.  , 0.92]])
    #[pyo3(signature = (keys, prior, edges, *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, prior, edges, *, at=None, threads=1)")]
    fn age_probability<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        prior: &Bound<'py, PyAny>,
        edges: &Bound<'py, PyAny>,
        at: Option<&Bound<'py, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let py = keys.py();
        let edges = read_edges(edges, self.window)?;
        let bins = edges.len() - 1;
        let shares =
            self.infer((keys, at), prior, (&edges, bins), threads, |inference, _, hashes, at, prior, shares| {
                inference.each(hashes, at, prior, f64::INFINITY, |key, posterior| {
                    let mut below = posterior.within(edges[0]);
                    for (share, &edge) in shares[key * bins..][..bins].iter_mut().zip(&edges[1..]) {
                        let up_to = posterior.within(edge);
                        (*share, below) = ((up_to - below).max(0.0), up_to);
                    }
                })
            })?;
        let keys = shares.len() / bins;
        array_of(py, shares)?.reshape([keys, bins])
    }
}
