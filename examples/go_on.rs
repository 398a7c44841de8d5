//! A service that goes on with the file that a Python job has saved: `f.save("seen.lately")`, or `f` in lines.
use lately::{Error, Filter};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or("tests/golden/words.lately".into());
    let mut filter = Filter::open(&path)?;
    println!("{filter:?}");
    println!("key 7 was seen by the job: {}", filter.seen("key 7"));
    filter.save(std::env::temp_dir().join("seen.lately"))
}
