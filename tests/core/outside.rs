//! What other projects expect of such a filter, in our words: QUIC's log of tokens, a gossip protocol's cache of
//! messages, and the filter of transactions that a node of a currency has seen.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, UNIX_EPOCH};

use lately::{ConcurrentFilter, Filter, Window};

/// A server accepts each token once within its lifetime, by whichever thread, and refuses hardly any valid one.
#[test]
fn a_burst_of_tokens_is_accepted_once_each() {
    let (tokens, fpr) = (10_000u128, 1e-3);
    let builder = ConcurrentFilter::builder(Window::time(Duration::from_secs(120)));
    let log = builder.fpr(fpr).capacity(tokens as u64).secret([9; 16]).build().unwrap();
    let accepted: Vec<_> = (0..tokens).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (nonce, accepted) in (0..tokens).zip(&accepted) {
                    accepted.fetch_add(usize::from(!log.seen(nonce << 64 | 7)), Relaxed);
                }
            });
        }
    });
    let accepted = |n: usize| accepted.iter().filter(|accepted| accepted.load(Relaxed) == n).count();
    assert_eq!(accepted(0) + accepted(1), tokens as usize, "a token was accepted twice");
    let refused = tokens as f64 * fpr;
    assert!(accepted(0) as f64 <= 1.1 * refused + 6.0 * refused.sqrt(), "{} refused", accepted(0));
}

/// A node forwards a message when it first comes, and again when its time has passed. Neighbours repeat it meanwhile.
#[test]
fn a_message_is_forwarded_once_until_its_time_has_passed() {
    let (ttl, fpr) = (60, 1e-3);
    let builder = ConcurrentFilter::builder(Window::time(Duration::from_secs(ttl))).fpr(fpr).capacity(40_000);
    let cache = builder.max_ahead(None).build().unwrap();
    let slack = cache.slack().span().unwrap().as_secs() + 1;
    let (mut forwarded, mut suppressed, mut first) = (HashMap::new(), 0, 0);
    for second in 0..600u64 {
        // 200 new messages a second in waves, repeats of those of the last seconds, and now and then an old one.
        let new = if second % 40 < 10 { 800 } else { 0 };
        let of = |second: u64| (0..800).map(move |i| (second, i));
        let repeated =
            (second.saturating_sub(3)..second).chain(second.checked_sub(ttl + slack)).filter(|s| s % 40 < 10);
        for (message, is_new) in
            of(second).take(new).map(|m| (m, true)).chain(repeated.flat_map(of).map(|m| (m, false)))
        {
            let at = UNIX_EPOCH + Duration::from_secs(1_000_000 + second);
            let known = forwarded.get(&message).is_some_and(|&at| second - at <= ttl);
            let seen = cache.seen_at(message, at).unwrap();
            assert!(seen || !known, "{message:?} was forwarded twice within its time");
            first += usize::from(is_new);
            suppressed += usize::from(is_new && seen);
            if !seen {
                forwarded.insert(message, second);
            } else if is_new {
                // It was reported by chance: nothing is promised of it.
                forwarded.remove(&message);
            }
        }
    }
    let expected = first as f64 * fpr;
    assert!(suppressed as f64 <= 1.1 * expected + 6.0 * expected.sqrt(), "{suppressed} of {first}");
    let again = forwarded.values().filter(|&&at| at % 40 >= 10).count();
    assert!(again > first / 5, "old messages are forwarded again");
}

/// A node knows the last 120,000 transactions for certain, and takes one in a million others for known.
#[test]
fn the_last_transactions_are_known() {
    let mut filter = Filter::builder(Window::last(120_000)).fpr(1e-6).secret([4; 16]).build().unwrap();
    let id = |i: u64| [i, i.wrapping_mul(0x9e37_79b9_7f4a_7c15), 3, i ^ 77];
    for i in 0..400_000 {
        filter.insert(id(i));
        if i % 9973 == 0 {
            assert!((i.saturating_sub(119_999)..=i).step_by(101).all(|i| filter.contains(id(i))));
        }
    }
    let reported = (0..2_000_000).filter(|&i| filter.contains(id(1 << 40 | i))).count();
    assert!(reported <= 2 + 9, "{reported} of two million");
}
