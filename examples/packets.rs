//! Packets with times of their own: a copy within ten seconds is dropped, whichever of two interfaces sees it first.
use std::time::{Duration, SystemTime};

use lately::{ConcurrentFilter, Error, Window};

fn main() -> Result<(), Error> {
    let window = Window::time(Duration::from_secs(10));
    // The interfaces' clocks and queues differ by up to a second.
    let filter =
        ConcurrentFilter::builder(window).fpr(1e-4).capacity(500_000).lateness(Duration::from_secs(1)).build()?;
    let begin = SystemTime::now();
    let interface = || {
        let packets = (0..100_000u32).map(|i| ([10, 0, 0, 1], 443u16, i, begin + Duration::from_micros(i.into())));
        packets
            .filter(|&(address, port, number, at)| !filter.seen_at((address, port, number), at).unwrap_or(true))
            .count()
    };
    let passed: usize = std::thread::scope(|scope| {
        let interfaces = [scope.spawn(interface), scope.spawn(interface)];
        interfaces.into_iter().map(|interface| interface.join().unwrap_or(0)).sum()
    });
    println!("{passed} of 200,000 packets passed");
    Ok(())
}
