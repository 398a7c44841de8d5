//! The claims of a private filter, in memory.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The claimed keys of a private filter, by their hashes, and the process that claimed them.
#[derive(Default)]
pub struct Claims(Mutex<(u32, HashSet<u64>)>);

impl Claims {
    /// Returns the keys that this process has claimed: a child of a fork begins without any.
    pub fn own(&self) -> MutexGuard<'_, (u32, HashSet<u64>)> {
        let (mut claims, process) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), std::process::id());
        if claims.0 != process {
            *claims = (process, HashSet::new());
        }
        claims
    }
}
