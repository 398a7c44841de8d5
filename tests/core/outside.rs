//! What other projects expect of such a filter, in our words: QUIC's log of tokens, a gossip protocol's cache of
//! messages, the filter of transactions that a node of a currency has seen, a validator's filter of packets, and a
//! cache whose entries live for a time.

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

/// Threads of a validator drop packets that came within two seconds. Of equal packets one passes, of different ones
/// nearly all, a flood is visible in the rate, and after two seconds all pass again.
#[test]
fn equal_packets_of_a_batch_are_dropped_but_one() {
    let (capacity, fpr) = (20_000, 1e-3);
    let builder = ConcurrentFilter::builder(Window::time(Duration::from_secs(2))).fpr(fpr).capacity(capacity);
    let filter = builder.secret([2; 16]).max_ahead(None).build().unwrap();
    let at = |millis| UNIX_EPOCH + Duration::from_millis(10_000 + millis);
    let packet = |thread: u64, i: u64| [thread.to_le_bytes(), i.to_le_bytes()].concat();
    // Eight threads with 128 batches of equal packets each, and some of their own between these.
    let passed = |millis, own: u64| {
        let count = |thread: u64| {
            let packets = (0..128u64).flat_map(|i| [vec![0; 200], vec![1; 200], packet(thread, own + i)]);
            packets.filter(|packet| !filter.seen_at(&packet[..], at(millis)).unwrap()).count()
        };
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..8).map(|thread| scope.spawn(move || count(thread))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        })
    };
    let most = capacity * 8 / 10;
    let different = |thread| (0..most).filter(|&i| !filter.seen_at(&packet(thread, i)[..], at(900)).unwrap()).count();
    assert!((1024..=1026).contains(&passed(0, 0)));
    assert!((1020..=1024).contains(&passed(800, 1 << 30)), "the equal ones are known");
    let new = different(8) as f64;
    assert!(new >= most as f64 * (1.0 - 1.5 * fpr), "{new} of {most} pass");
    let rate = filter.false_positive_rate();
    let _ = [9, 10, 11].map(different);
    assert!(rate < 1.1 * fpr && filter.false_positive_rate() > 10.0 * fpr, "a flood of three times more is visible");
    let slack = filter.slack().span().unwrap().as_millis() as u64 + 1;
    assert!((1024..=1026).contains(&passed(900 + 2000 + slack, 0)), "all pass again");
}

/// Entries live for a minute, at any of these rates: each is found until its time is over, and then as seldom as one
/// that was never there. The cache is as full as it may be.
#[test]
fn entries_live_for_their_time_and_absent_ones_are_found_at_the_rate() {
    let capacity = 30_000u64;
    for fpr in [1e-2, 1e-3, 1e-4, 1e-6] {
        let builder = Filter::builder(Window::time(Duration::from_secs(60))).fpr(fpr).capacity(capacity);
        let mut cache = builder.max_ahead(None).build().unwrap();
        let slack = cache.slack().span().unwrap().as_secs() + 1;
        let (mut absent, mut found, each) = (0u64, 0u64, capacity / 60);
        for second in 0..300 {
            let at = UNIX_EPOCH + Duration::from_secs(second);
            cache.duplicated_at((0..each).map(|i| ((second, i), at))).unwrap();
            let living = second.saturating_sub(60)..=second;
            for then in living.step_by(7).chain([second.saturating_sub(60)]) {
                assert!((0..each).step_by(9).all(|i| cache.contains_at((then, i), at).unwrap()), "{then} at {second}");
            }
            let gone = second.checked_sub(61 + slack).into_iter().flat_map(|then| (0..each).map(move |i| (then, i)));
            for entry in gone.chain((0..500).map(|i| (1 << 40 | second, i))) {
                absent += 1;
                found += u64::from(cache.contains_at(entry, at).unwrap());
            }
        }
        let expected = absent as f64 * fpr;
        assert!(found as f64 <= 1.1 * expected + 6.0 * expected.sqrt() + 2.0, "{found} of {absent} at {fpr}");
    }
}
