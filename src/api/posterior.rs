//! Probabilities, and decisions from them.

use super::{Filter, each_chunk};
use crate::Error;
use crate::clock::Window as CoreWindow;
use crate::inference::{Inference, PerKey, PosteriorCache, decide};
use crate::key::Key;

impl Filter {
    /// Returns for each key the probability that it was inserted within the window.
    ///
    /// `prior` states how often a key comes: the probability that an insertion is of this key, or for a window of time
    /// its insertions per second. Rejects a prior out of range, and the families that have no probabilities.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.extend(0..1000);
    /// let posterior = filter.posterior([7, 2000], 1e-4)?;
    /// assert!(posterior[0] > 0.8);
    /// assert!(posterior[1] < 0.01);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn posterior<K: Key>(&self, keys: impl IntoIterator<Item = K>, prior: f64) -> Result<Vec<f64>, Error> {
        let core = self.core();
        let window = match core.window() {
            CoreWindow::Count { insertions } => insertions as f64,
            CoreWindow::Time { span, .. } => span as f64 / 1e9,
        };
        let mut hashes = Vec::new();
        each_chunk(keys, self.hasher(), |some| {
            hashes.extend_from_slice(some);
            Ok(())
        })?;
        let mut posteriors = vec![0.0; hashes.len()];
        let (at, mut cache) = (self.now(), PosteriorCache::new(hashes.len()));
        let inference = Inference::new(core.engine())?;
        inference.posterior(&hashes, at, PerKey::All(prior), window, &mut cache, &mut posteriors)?;
        Ok(posteriors)
    }

    /// Returns for each key the answer of the least expected cost: whether to report it.
    ///
    /// A report of a key that was not inserted within the window costs `false_positive`, a key of the window that is
    /// not reported costs `false_negative`. `prior` is that of [`posterior`](Self::posterior).
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.extend(0..1000);
    /// assert_eq!(filter.decide([7, 2000], 1e-4, 1.0, 1.0)?, [true, false]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn decide<K: Key>(
        &self,
        keys: impl IntoIterator<Item = K>,
        prior: f64,
        false_positive: f64,
        false_negative: f64,
    ) -> Result<Vec<bool>, Error> {
        PerKey::All(false_positive).check_penalty("false_positive")?;
        PerKey::All(false_negative).check_penalty("false_negative")?;
        let posteriors = self.posterior(keys, prior)?;
        Ok(posteriors.into_iter().map(|posterior| decide(posterior, false_positive, false_negative)).collect())
    }
}
