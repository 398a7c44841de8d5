//! A log of QUIC's address validation tokens: each is accepted once, in 16 bytes per token or fewer.
//!
//! It implements `TokenLog` of quinn-proto. A token that is rejected by chance (here one in a million) costs its client
//! a round trip. No token is accepted twice within its lifetime.

use std::time::{Duration, SystemTime};

use lately::{ConcurrentFilter, Error, Window};
use quinn_proto::{TokenLog, TokenReuseError};

struct SeenTokens {
    seen: ConcurrentFilter,
    lifetime: Duration,
}

impl SeenTokens {
    fn new(lifetime: Duration, tokens: u64) -> Result<Self, Error> {
        let seen = ConcurrentFilter::builder(Window::time(lifetime)).fpr(1e-6).capacity(tokens).build()?;
        Ok(Self { seen, lifetime })
    }
}

impl TokenLog for SeenTokens {
    fn check_and_insert(&self, nonce: u128, issued: SystemTime, lifetime: Duration) -> Result<(), TokenReuseError> {
        // A token that expired by a clock that steps, or outlives the window, is rejected.
        let expired = issued.checked_add(lifetime).is_none_or(|end| end < SystemTime::now());
        if expired || lifetime > self.lifetime || self.seen.seen(nonce) { Err(TokenReuseError) } else { Ok(()) }
    }
}

fn main() -> Result<(), Error> {
    let lifetime = Duration::from_secs(1_209_600);
    let log = SeenTokens::new(lifetime, 100_000)?;
    let offer =
        || (0..10_000u128).filter(|&nonce| log.check_and_insert(nonce, SystemTime::now(), lifetime).is_ok()).count();
    let accepted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(offer)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    assert!((9_990..=10_000).contains(&accepted), "{accepted} accepted");
    println!("{accepted} of 10,000 tokens were accepted, each offered by eight threads; {} bytes", log.seen.nbytes());
    Ok(())
}
