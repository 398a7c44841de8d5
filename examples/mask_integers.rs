//! The repeats among ten million integers, within the last million.
use lately::{Error, Filter, Window};

fn main() -> Result<(), Error> {
    let mut filter = Filter::builder(Window::last(1_000_000)).fpr(0.001).build()?;
    let numbers = (0..10_000_000u64).map(|i| i * i % 4_000_037);
    let mask = filter.duplicated(numbers);
    println!("{} of {} are repeats", mask.iter().filter(|&&repeat| repeat).count(), mask.len());
    Ok(())
}
