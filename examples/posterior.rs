//! How probable it is that a key came within the window, where one in ten thousand insertions is of that key.
use lately::{Error, Filter, Window};

fn main() -> Result<(), Error> {
    let mut filter = Filter::builder(Window::last(10_000)).fpr(0.01).build()?;
    filter.extend(0..10_000);
    let keys = [1, 9_999, 20_000];
    println!("{:?} of {keys:?}", filter.posterior(keys, 1e-4)?);
    println!("{:?} are worth a look", filter.decide(keys, 1e-4, 1.0, 10.0)?);
    Ok(())
}
