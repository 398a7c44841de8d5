//! A service that goes on with the file of a Python job, `fill.py`: it prints the new lines of the standard input.
use lately::{Error, Filter};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or("seen.lately".into());
    let mut filter = Filter::open(&path)?;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if !filter.seen(&line) {
            println!("{line}");
        }
    }
    filter.save(&path)
}
