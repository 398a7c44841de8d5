//! Claims of keys in the file of a filter that processes share: the work of a claimed key is under way.
//!
//! A claim is four words behind the cells: its *state*, the hash of the key, the process that holds it and the start of
//! the machine. The state is a number of the claim in the upper half and the end of its lease in the lower; 0 marks a
//! free place. A process takes a claim under the lock of the file: it writes the other words, and then the state. It
//! ends or renews a claim by exchanging the state, which needs no lock and waits for no process. So a process that is
//! killed anywhere leaves a claim or none, and a claim that another process has taken over is never ended by the first.
//!
//! A claim has ended when its lease is over, when the machine has been started again, or when its process has died: a
//! process holds a lock of the system at a byte of its own, far behind the end of the file ([`Holder`]).

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::Error;
use crate::clock::system;
use crate::memory::mapped::Place;

/// Number of places that a key may have, from its home on.
const NEAR: usize = 64;
/// Nanoseconds of a unit of leases: an eighth of a second.
const TICK: u64 = 125_000_000;

/// A claim that this process holds, or held.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    place: usize,
    state: u64,
}

/// Returns a random number that is not 0.
fn random() -> u64 {
    RandomState::new().hash_one(0) | 1
}

/// Returns when a lease that begins now ends, rounded up, since the start of the machine.
fn end_of(lease: u64) -> u64 {
    let end = (system::machine_time() as u64).saturating_add(lease) / TICK + 1;
    end.min(u32::MAX.into())
}

fn is_over(state: u64) -> bool {
    (state & u64::from(u32::MAX)) * TICK <= system::machine_time() as u64
}

/// Claims a key, unless it has a claim: then returns `None`. The caller holds the lock of the file. `lives` returns
/// whether a holder is alive.
pub fn take(
    places: &[Place],
    hash: u64,
    holder: u64,
    lease: u64,
    lives: impl Fn(u64) -> bool,
) -> Result<Option<Claim>, Error> {
    let (boot, home) = (system::boot(), hash as usize % places.len());
    let mut free = None;
    for place in (home..home + NEAR).map(|place| place % places.len()) {
        let [state, own, held_by, since] = &places[place];
        let before = state.load(Acquire);
        let mine = own.load(Relaxed) == hash;
        let ended =
            before != 0 && (since.load(Relaxed) != boot || is_over(before) || mine && !lives(held_by.load(Relaxed)));
        if before == 0 || ended && state.compare_exchange(before, 0, AcqRel, Relaxed).is_ok() {
            free = free.or(Some(place));
        } else if mine {
            return Ok(None);
        }
    }
    let Some(place) = free else {
        return Err(Error::value("too many keys are claimed at a time: end some claims, or share several filters"));
    };
    let [state, own, held_by, since] = &places[place];
    own.store(hash, Relaxed);
    held_by.store(holder, Relaxed);
    since.store(boot, Relaxed);
    let claim = Claim { place, state: random() << 32 | 1 << 32 | end_of(lease) };
    state.store(claim.state, Release);
    Ok(Some(claim))
}

impl Claim {
    /// Returns whether another process has the place of this claim, or may take it.
    pub fn is_lost(&self, places: &[Place]) -> bool {
        places[self.place][0].load(Acquire) != self.state
    }

    /// Begins the lease anew. Returns false if the claim is lost: then nothing has changed.
    pub fn renew(&mut self, places: &[Place], lease: u64) -> bool {
        let renewed = self.state & !u64::from(u32::MAX) | end_of(lease);
        let exchanged = places[self.place][0].compare_exchange(self.state, renewed, AcqRel, Relaxed).is_ok();
        if exchanged {
            self.state = renewed;
        }
        exchanged
    }

    /// Ends the claim, unless it is lost.
    pub fn end(self, places: &[Place]) {
        let _ = places[self.place][0].compare_exchange(self.state, 0, AcqRel, Relaxed);
    }
}

/// The name of a process that holds claims, with a lock that the system releases when the process dies.
pub struct Holder(u64);

impl Holder {
    /// Draws a name, and locks its byte of the open `file`, which has to stay open. Without such locks the name is 0.
    pub fn new(file: &File) -> Self {
        // The greatest offset of a file is below 2^63.
        let name = random() >> 2;
        Self(if byte_lock(file, name, false).is_some() { name } else { 0 })
    }

    /// Returns the name.
    pub fn name(&self) -> u64 {
        self.0
    }

    /// Returns whether the process of this name may be alive: it has the lock of its byte, or no such lock is known.
    pub fn lives(&self, file: &File, name: u64) -> bool {
        name == 0 || name == self.0 || byte_lock(file, name, true) != Some(false)
    }
}

/// Locks the byte of a name for this open file or, with `find`, returns whether another open file has locked it.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code, reason = "std and rustix have no locks of bytes that belong to an open file")]
fn byte_lock(file: &File, name: u64, find: bool) -> Option<bool> {
    use std::os::fd::AsRawFd;

    let command = if find { libc::F_OFD_GETLK } else { libc::F_OFD_SETLK };

    // SAFETY: all fields of the structure are numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_whence) = (libc::F_WRLCK as _, libc::SEEK_SET as _);
    (lock.l_start, lock.l_len) = (name as libc::off_t, 1);
    // SAFETY: the file is open, and the call reads and writes `lock` alone.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    (result == 0).then_some(i32::from(lock.l_type) != libc::F_UNLCK)
}

/// Returns `None`: the system has no such locks.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn byte_lock(_: &File, _: u64, _: bool) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapped::PLACES;

    fn places() -> Vec<Place> {
        (0..PLACES).map(|_| Place::default()).collect()
    }

    #[test]
    fn a_key_has_one_claim_until_it_ends_and_a_lost_claim_ends_nothing() {
        let (places, hour) = (places(), 3_600_000_000_000);
        let take = |hash, lease, lives: bool| take(&places, hash, 5, lease, |_| lives).unwrap();
        let mut first = take(7, hour, true).unwrap();
        assert!(take(7, hour, true).is_none() && take(7 + PLACES as u64, hour, true).is_some());
        assert!(first.renew(&places, hour));
        // Its process died, or was thought to.
        let mut second = take(7, hour, false).unwrap();
        assert!(first.is_lost(&places) && !first.renew(&places, hour));
        first.end(&places);
        assert!(!second.is_lost(&places) && second.renew(&places, 0));
        std::thread::sleep(std::time::Duration::from_millis(260));
        assert!(!second.is_lost(&places), "no other block has claimed the key");
        let third = take(7, hour, true).unwrap();
        assert!(second.is_lost(&places));
        third.end(&places);
        let fourth = take(7, hour, true).unwrap();
        places[fourth.place][3].store(2, Relaxed);
        assert!(take(7, hour, true).is_some(), "the machine has been started again since");
    }

    #[test]
    fn ten_thousand_claims_are_held_at_a_time() {
        let places = places();
        let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key << 7;
        let claims: Vec<Claim> =
            (0..10_000).map(|key| take(&places, hash(key), 5, 1 << 40, |_| true).unwrap().unwrap()).collect();
        assert!((0..10_000).all(|key| take(&places, hash(key), 5, 1 << 40, |_| true).unwrap().is_none()));
        claims.iter().for_each(|claim| claim.end(&places));
        assert!(places.iter().all(|place| place[0].load(Relaxed) == 0));
    }
}
