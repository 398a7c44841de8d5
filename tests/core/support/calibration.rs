//! A comparison of posteriors with what was inserted.

/// Predictions, and how often they came true.
#[derive(Default, Clone, Copy)]
pub struct Calibration {
    pub trials: f64,
    pub predicted: f64,
    pub happened: f64,
}

impl Calibration {
    /// Adds a trial.
    pub fn note(&mut self, predicted: f64, happened: bool) {
        self.trials += 1.0;
        self.predicted += predicted;
        self.happened += f64::from(u8::from(happened));
    }

    /// Returns whether the outcomes lie within five standard deviations of the predictions, and a thousandth of a
    /// trial.
    pub fn holds(&self) -> bool {
        let variance = self.predicted * (1.0 - self.predicted / self.trials).max(0.0);
        (self.happened - self.predicted).abs() <= 5.0 * variance.sqrt() + 5.0
    }
}
