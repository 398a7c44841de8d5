//! An exact window: lines of the standard input that did not come among the last thousand, or those of a file.
use lately::{Error, ExactWindow, Window};

fn main() -> Result<(), Error> {
    let file = std::env::args().nth(1);
    let new = || ExactWindow::new(Window::last(1000));
    let mut exact = file.as_ref().map_or_else(new, ExactWindow::open)?;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if !exact.seen(&line) {
            println!("{line}");
        }
    }
    file.map_or(Ok(()), |file| exact.save(file))
}
