//! Windows of time while the clocks of the machine are moved: in a child process, whose clocks a preloaded library
//! moves.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, SystemTime};

use lately::{ConcurrentFilter, Filter, Prefer, Window};

const CLOCKS: &str = "LATELY_CLOCKS";
const SECOND: i64 = 1_000_000_000;

/// The clocks of this process.
struct Clocks {
    file: File,
    moved: [i64; 2],
}

impl Clocks {
    fn new() -> Self {
        let file = File::options().write(true).open(std::env::var(CLOCKS).unwrap()).unwrap();
        Self { file, moved: [0; 2] }
    }

    fn add(&mut self, [wall, since_start]: [i64; 2]) {
        self.moved = [self.moved[0] + wall * SECOND, self.moved[1] + since_start * SECOND];
        let bytes = self.moved.map(i64::to_ne_bytes).concat();
        self.file.write_all_at(&bytes, 0).unwrap();
    }

    /// Lets time pass, awake or asleep.
    fn pass(&mut self, seconds: i64) {
        self.add([seconds; 2]);
    }

    fn set_wall(&mut self, seconds: i64) {
        self.add([seconds, 0]);
    }
}

/// `seen` of each filter of a service.
type Filters = Vec<(&'static str, Box<dyn FnMut(&str) -> bool>)>;

fn filters() -> Filters {
    let window = Window::time(Duration::from_secs(300));
    let builder = || Filter::builder(window).fpr(1e-6);
    let mut all: Filters = Vec::new();
    for (name, filter) in [
        ("chosen", builder().capacity(1000).build()),
        ("speed", builder().capacity(1000).prefer(Prefer::Speed).build()),
        ("memory", builder().capacity(1000).prefer(Prefer::Memory).build()),
        ("unknown rate", builder().build()),
    ] {
        let mut filter = filter.unwrap();
        all.push((name, Box::new(move |key| filter.seen(key))));
    }
    let concurrent = ConcurrentFilter::builder(window).fpr(1e-6).capacity(1000).build().unwrap();
    all.push(("concurrent", Box::new(move |key| concurrent.seen(key))));
    let mut exact = Filter::builder(window).prefer(Prefer::Exact).build().unwrap();
    all.push(("exact", Box::new(move |key| exact.seen(key))));
    all
}

#[test]
#[ignore = "for a child process"]
fn child() {
    let hour = 3600;
    for wall in [-hour, 4 * 365 * 24 * hour] {
        let mut clocks = Clocks::new();
        clocks.add([0; 2]);
        for (name, mut seen) in filters() {
            assert!(!seen("warm"));
            clocks.set_wall(wall);
            assert!(seen("warm"), "{name}: a key of the window was missed");
            for alert in 0..8 {
                clocks.pass(600);
                assert!(!seen("warm"), "{name}: alert {alert} was dropped, the wall clock was moved by {wall} s");
            }
            assert!(seen("warm"), "{name}");
        }
    }
    // The steps were noticed, each of them once.
    let mut clocks = Clocks::new();
    clocks.add([0; 2]);
    clocks.pass(100 * 24 * hour);
    lately::clock_step();
    clocks.pass(60);
    assert_eq!(lately::clock_step(), None);
    clocks.pass(60);
    clocks.set_wall(-hour);
    assert!(lately::clock_step().is_some_and(|step| (step + 3600.0).abs() < 1.0));
    clocks.pass(60);
    assert_eq!(lately::clock_step(), None);

    saved_filters_continue(&mut clocks);
    calls_with_and_without_times(&mut clocks);
}

fn saved_filters_continue(clocks: &mut Clocks) {
    let window = Window::time(Duration::from_secs(300));
    for prefer in [Prefer::Speed, Prefer::Memory] {
        let mut filter = Filter::builder(window).fpr(1e-6).capacity(1000).prefer(prefer).build().unwrap();
        let shared = ConcurrentFilter::builder(window).fpr(1e-6).capacity(1000).build().unwrap();
        let mut exact = Filter::builder(window).prefer(Prefer::Exact).build().unwrap();
        assert!(!filter.seen("a") && !shared.seen("a") && !exact.seen("a"));
        clocks.set_wall(-7200);
        clocks.pass(60);
        filter = Filter::from_bytes(&filter.to_bytes()).unwrap();
        let shared = Filter::from_bytes(&shared.snapshot().unwrap().to_bytes()).unwrap();
        let shared = ConcurrentFilter::try_from(shared).unwrap();
        exact = Filter::from_bytes(&exact.to_bytes()).unwrap();
        assert!(filter.contains("a") && shared.contains("a") && exact.contains("a"), "60 s old");
        clocks.pass(600);
        assert!(!filter.contains("a") && !shared.contains("a") && !exact.contains("a"), "660 s old");
        clocks.set_wall(7200);
    }
}

/// A device that begins in 1970 sets its clock, and its events have times from then on.
fn calls_with_and_without_times(clocks: &mut Clocks) {
    let window = Window::time(Duration::from_secs(300));
    let mut filter = Filter::builder(window).fpr(1e-6).capacity(1000).build().unwrap();
    let shared = ConcurrentFilter::builder(window).fpr(1e-6).capacity(1000).build().unwrap();
    let mut exact = Filter::builder(window).prefer(Prefer::Exact).build().unwrap();
    filter.seen("before");
    clocks.set_wall(56 * 365 * 24 * 3600);
    let now = SystemTime::now();
    assert_eq!(filter.seen_at("event", now), Ok(false));
    assert_eq!(shared.seen_at("event", now), Ok(false));
    assert_eq!(exact.seen_at("event", now), Ok(false));
    for _ in 0..4 {
        assert!(!filter.seen("call") && !shared.seen("call") && !exact.seen("call"), "time stands still");
        clocks.pass(100);
        assert!(filter.seen("call") && shared.seen("call") && exact.seen("call"));
        clocks.pass(600);
    }
}

#[test]
fn a_wall_clock_that_is_moved_neither_stops_nor_ends_a_window() {
    let folder = std::env::temp_dir().join(format!("lately-clocks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (library, clocks) = (folder.join("clocks.so"), folder.join("clocks"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/clocks.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl").status();
    if !built.is_ok_and(|status| status.success()) {
        return;
    }
    std::fs::write(&clocks, [0; 16]).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "clocks::child", "--ignored", "--nocapture"])
        .env("LD_PRELOAD", &library)
        .env(CLOCKS, &clocks)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}
