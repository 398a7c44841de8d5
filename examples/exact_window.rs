//! An exact window: lines of the standard input that did not come among the last thousand, or those of a file.
use lately::{Filter, Prefer, Window};

fn main() -> Result<(), lately::Error> {
    let file = std::env::args().nth(1);
    let new = || Filter::builder(Window::last(1000)).prefer(Prefer::Exact).build();
    let mut exact = file.as_ref().map_or_else(new, Filter::open)?;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if !exact.seen(&line) {
            println!("{line}");
        }
    }
    file.map_or(Ok(()), |file| exact.save(file))
}
