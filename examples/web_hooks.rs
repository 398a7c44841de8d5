//! Web hooks that eight threads receive: a delivery that comes again within a day is dropped.
use lately::{ConcurrentFilter, Error, Window};

fn main() -> Result<(), Error> {
    let day = Window::time(std::time::Duration::from_secs(86_400));
    let seen = ConcurrentFilter::builder(day).fpr(1e-6).capacity(1_000_000).build()?;
    let handle = || (0..100_000).filter(|i| !seen.seen(format!("evt_{i}"))).count();
    let handled: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(handle)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    println!("{handled} events were handled once, of 800,000 deliveries");
    Ok(())
}
