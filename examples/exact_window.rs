//! An exact window: lines of the standard input that did not come among the last thousand.
use lately::{Error, ExactWindow, Window};

fn main() -> Result<(), Error> {
    let mut exact = ExactWindow::new(Window::last(1000))?;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if !exact.seen(&line) {
            println!("{line}");
        }
    }
    Ok(())
}
