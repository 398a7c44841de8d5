//! The public API: what it lists, what it costs, and its errors. That no call panics is in `fuzzed`.

use std::fmt::Write;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lately::memory::mapped::TAIL;
use lately::{ConcurrentFilter, Error, Filter, Prefer, Window};

fn file(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files of the public API, in the order of the list, and the types that documents show of each; all if none is named.
const FILES: [(&str, &[&str]); 12] = [
    ("src/lib.rs", &[]),
    ("src/api/builder.rs", &[]),
    ("src/api/concurrent.rs", &[]),
    ("src/api/file.rs", &[]),
    ("src/api/filter.rs", &[]),
    ("src/api/posterior.rs", &[]),
    ("src/api/window.rs", &[]),
    ("src/error.rs", &[]),
    ("src/family/request.rs", &["Prefer"]),
    ("src/format.rs", &["Error"]),
    ("src/key/hashable.rs", &[]),
    ("src/key/mod.rs", &["KeyHasher"]),
];

/// Returns the public items of a file that documents show: types with what they derive, variants, fields, methods, and
/// implementations of traits.
fn listed(source: &str, types: &[&str]) -> String {
    let (mut list, mut pending, mut attributes) = (Vec::new(), None::<String>, Vec::new());
    // The block that the line lies in, whether its items are hidden, and the enumeration or trait that it is.
    let (mut owner, mut owner_hidden, mut body) = (String::new(), false, None::<String>);
    for line in source.lines().take_while(|line| *line != "#[cfg(test)]") {
        let code = line.trim();
        let hidden = attributes.contains(&"#[doc(hidden)]");
        if let Some(signature) = &mut pending {
            signature.push(' ');
            signature.push_str(code);
        } else if code.starts_with("//") || code.is_empty() {
            continue;
        } else if code.starts_with("#[") {
            attributes.push(code);
            continue;
        } else if line == "}" {
            body = None;
        } else if let Some(name) = &body {
            // Variants and fields of an enumeration, or methods of a trait.
            if !hidden && !code.starts_with('}') {
                list.push(format!("{name}::{}", code.trim_end_matches([',', '{', ';', ' '])));
            }
        } else if line.starts_with("impl") {
            (owner, owner_hidden) = (line.trim_end_matches([' ', '{', '}']).to_owned(), hidden);
            if owner.contains(" for ") && !hidden {
                list.push(owner.clone());
            }
        } else if line.starts_with("keys!(") || line.starts_with("pointers!(") {
            list.push(code.split(" =>").next().unwrap_or_default().to_owned());
        } else if code.starts_with("pub ") && !code.starts_with("pub mod") && !hidden {
            pending = (!owner_hidden || !line.starts_with(' ')).then(|| code.to_owned());
        }
        let is_done = |signature: &String| {
            signature.ends_with(['{', ';', ',', '}'])
                && !signature.ends_with("(,")
                && signature.matches('(').count() == signature.matches(')').count()
        };
        if let Some(signature) = pending.take_if(|signature| is_done(signature)) {
            let opens = signature.ends_with('{');
            let signature = signature
                .trim_end_matches("{}")
                .trim_end_matches(['{', ';', ',', ' '])
                .replace("( ", "(")
                .replace(", )", ")");
            let name = signature.strip_prefix("pub enum ").or(signature.strip_prefix("pub trait "));
            body = name.filter(|_| opens).map(|name| name.to_owned());
            // Private fields are no part of the API.
            let visible = match signature.split_once('(') {
                Some((start, fields)) if start.starts_with("pub struct") && !fields.starts_with("pub") => start,
                _ => &signature,
            };
            let inner = if line.starts_with(' ') { format!("{owner}: ") } else { String::new() };
            let shown = attributes.iter().filter(|one| one.contains("derive") || one.contains("non_exhaustive"));
            list.push(format!("{inner}{visible}{}", shown.map(|one| format!(" {one}")).collect::<String>()));
        }
        attributes.clear();
    }
    let of = |line: &String, name: &&str| {
        let starts = ["pub enum ", "pub struct ", "impl "].map(|start| format!("{start}{name}"));
        starts.iter().any(|start| line.starts_with(start))
            || line.starts_with(&format!("{name}::"))
            || line.ends_with(&format!(" for {name}"))
    };
    list.retain(|line| types.is_empty() || types.iter().any(|name| of(line, name)));
    list.join("\n")
}

#[test]
fn a_list_of_the_api_contains_what_documents_show() {
    let source = "/// Text.\n#[derive(Debug)]\n#[non_exhaustive]\npub enum Kind {\n    /// Text.\n    One(u8),\n}\n\
                  impl Kind {\n    pub fn long(\n        self,\n    ) -> u8 {\n    #[doc(hidden)]\n\
                  \x20   pub fn inner(self) {\n\
                  pub trait Key {\n    fn to_hash(&self) -> u64;\n}\npub struct Closed(u8);\n#[doc(hidden)]\n\
                  impl Closed {\n    pub fn not_shown(self) {}\n}\npub struct Open(pub u8);\n";
    let expected = "pub enum Kind #[derive(Debug)] #[non_exhaustive]\nKind::One(u8)\n\
                    impl Kind: pub fn long(self) -> u8\npub trait Key\nKey::fn to_hash(&self) -> u64\n\
                    pub struct Closed\npub struct Open(pub u8)";
    assert_eq!(listed(source, &[]), expected);
    assert_eq!(listed(source, &["Open"]), "pub struct Open(pub u8)");
}

/// Returns the public items of a file without an example in their documents.
fn without_example(source: &str) -> Vec<&str> {
    let (mut missing, mut example, mut hidden) = (Vec::new(), false, false);
    for line in source.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]") {
        match line {
            _ if line.starts_with("///") => example |= line.contains("```"),
            "#[doc(hidden)]" => hidden = true,
            _ if line.starts_with("#[") => {}
            _ => {
                let item = ["pub fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait "];
                if item.iter().any(|item| line.starts_with(item)) && !example && !hidden {
                    missing.push(line);
                }
                (example, hidden) = (false, false);
            }
        }
    }
    missing
}

#[test]
fn every_public_item_has_an_example() {
    assert_eq!(
        without_example("/// ```\n/// ```\npub fn with() {}\n/// Text.\npub fn bare() {}"),
        ["pub fn bare() {}"]
    );
    for (path, _) in FILES.iter().filter(|(_, types)| types.is_empty()) {
        assert_eq!(without_example(&file(path)), Vec::<&str>::new(), "{path}");
    }
}

/// A change of the public API shows in `tests/golden/public_api.txt`, which `LATELY_PUBLIC_API=write` writes anew.
#[test]
fn the_public_api_is_the_one_that_was_reviewed() {
    let mut list = String::new();
    for (path, types) in FILES {
        writeln!(list, "# {path}\n{}\n", listed(&file(path), types)).unwrap();
    }
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/public_api.txt");
    if std::env::var_os("LATELY_PUBLIC_API").is_some() {
        std::fs::write(&golden, &list).unwrap();
    }
    assert_eq!(list, file("tests/golden/public_api.txt"), "review the difference, then set LATELY_PUBLIC_API=write");
}

#[test]
fn the_top_level_has_at_most_fifteen_names() {
    let source = file("src/lib.rs");
    let names: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub use "))
        .flat_map(|line| line.split(['{', '}', ',', ';']).skip(usize::from(line.contains('{'))))
        .filter(|name| !name.trim().is_empty())
        .collect();
    assert!((8..=15).contains(&names.len()), "{names:?}");
    for (hidden, module) in source.lines().zip(source.lines().skip(1)) {
        assert!(!module.starts_with("pub mod") || hidden.contains("doc(hidden)") || hidden.contains("cfg"), "{module}");
    }
}

/// Bytes per key of a million, as in the table of the front page.
#[test]
fn the_front_page_states_what_filters_cost() {
    let window = Window::last(1_000_000);
    let per_key = |nbytes: usize| format!("{:.1}", nbytes as f64 / 1e6);
    let row = |name: &str, cost: &dyn Fn(f64) -> usize| {
        let costs: Vec<String> = [1e-2, 1e-3, 1e-6].into_iter().map(|fpr| per_key(cost(fpr))).collect();
        format!("//! | {name} | {} |", costs.join(" | "))
    };
    let filter = |fpr| Filter::builder(window).fpr(fpr);
    let rows = [
        row("[`Filter`]", &|fpr| filter(fpr).build().unwrap().nbytes()),
        row("[`Filter`], [`Prefer::Speed`]", &|fpr| filter(fpr).prefer(Prefer::Speed).build().unwrap().nbytes()),
        row("[`Filter`], [`Prefer::Memory`]", &|fpr| filter(fpr).prefer(Prefer::Memory).build().unwrap().nbytes()),
        row("[`ConcurrentFilter`]", &|fpr| ConcurrentFilter::builder(window).fpr(fpr).build().unwrap().nbytes()),
    ];
    let page = file("src/lib.rs");
    for row in rows {
        assert!(page.contains(&row), "the front page lacks {row}");
    }
}

#[test]
fn a_program_for_each_common_task_has_at_most_fifteen_lines_and_three_names() {
    for name in ["web_hooks", "mask_integers", "go_on", "exact_window", "posterior"] {
        let source = file(&format!("examples/{name}.rs"));
        let code = source.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//!")).count();
        assert!(code <= 15, "{name} has {code} lines");
        let names: Vec<&str> = source.lines().filter(|line| line.starts_with("use lately::")).collect();
        let [names] = names[..] else { panic!("{name}: {names:?}") };
        assert!(names.split(',').count() <= 3, "{name}: {names}");
    }
}

/// A file stores the bound plus 1 nanosecond, and the greatest word for no bound.
#[test]
fn the_greatest_bounds_on_times_ahead_are_saved() {
    let minute = Window::time(Duration::from_secs(60));
    for below in 0..3 {
        let ahead = Duration::from_nanos(u64::MAX - below);
        let filter = Filter::builder(minute).fpr(0.01).max_ahead(ahead).build().unwrap();
        assert!(Filter::from_bytes(&filter.to_bytes()).unwrap() == filter, "{ahead:?}");
        let mut exact = Filter::builder(minute).prefer(Prefer::Exact).max_ahead(ahead).build().unwrap();
        exact = Filter::from_bytes(&exact.to_bytes()).unwrap();
        assert!(exact.seen_at(1, SystemTime::now() + Duration::from_secs(1 << 20)).is_ok(), "{ahead:?}");
    }
}

/// A clock that runs ahead sends an event of tomorrow among others of now, singly and in a batch.
#[test]
fn an_event_far_ahead_is_rejected_whatever_events_came_before() {
    let (minute, now) = (Duration::from_secs(60), SystemTime::now());
    let mut filter = Filter::builder(Window::time(minute)).fpr(0.01).build().unwrap();
    for round in 0..2 {
        for (key, seconds, accepted) in
            [(1, 86_400, false), (2, 0, true), (3, 50, true), (4, 300, false), (5, 50, true)]
        {
            let at = now + Duration::from_secs(seconds);
            assert_eq!(filter.seen_at(key, at).is_ok(), accepted, "{round}: {key}");
            assert_eq!(filter.insert_at(key, at).is_ok(), accepted, "{round}: {key}");
            assert_eq!(filter.duplicated_at([(key, at)]).is_ok(), accepted, "{round}: {key}");
            assert_eq!(filter.contains_at(key, now + minute).unwrap(), accepted, "{round}: {key}");
        }
        filter.clear();
    }
}

/// A key of an iterator that waits is inserted when it has come, not when the call began.
#[test]
fn the_window_of_a_key_from_a_slow_iterator_begins_with_that_key() {
    let second = Duration::from_secs(1);
    let at_last = std::cell::Cell::new(UNIX_EPOCH);
    let slow = || {
        (0..2).inspect(|_| {
            std::thread::sleep(second / 4);
            at_last.set(SystemTime::now());
        })
    };
    let mut filter = Filter::builder(Window::time(second)).fpr(1e-6).capacity(1000).build().unwrap();
    assert!(filter.slack().span() < Some(second / 4));
    filter.extend(slow());
    assert!(filter.contains_at(1, at_last.get() + second).unwrap());
    filter.clear();
    filter.duplicated(slow());
    assert!(filter.contains_at(1, at_last.get() + second).unwrap());
}

#[test]
fn an_iterator_is_not_called_after_its_end() {
    for len in [0, 1, 4095, 4096, 4097] {
        let keys = || (0..len).map(Some).chain([None, Some(len)]).map_while(|key| key);
        let mut twice = keys();
        let mut filter = Filter::builder(Window::last(10_000)).fpr(0.01).build().unwrap();
        assert_eq!(filter.duplicated(&mut twice).len(), len);
        assert_eq!(twice.next(), Some(len));
        let mut twice = keys();
        filter.extend(&mut twice);
        assert_eq!(twice.next(), Some(len));
    }
}

/// A service may catch the panic of a request, and go on with its filters.
#[test]
fn filters_are_safe_to_use_after_a_panic_of_a_caller() {
    use std::panic::{RefUnwindSafe, UnwindSafe};

    fn safe<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    safe::<Filter>();
    safe::<ConcurrentFilter>();
    let filter = ConcurrentFilter::builder(Window::last(10_000)).fpr(1e-6).build().unwrap();
    let keys = (0..5000).inspect(|&key| assert!(key < 4500, "a panic of the caller's"));
    assert!(std::panic::catch_unwind(|| filter.duplicated(keys)).is_err());
    assert_eq!(filter.inserted(), 4096);
    assert!(!filter.seen("a") && filter.seen("a"));
}

#[test]
fn errors_name_the_argument() {
    let hour = Duration::from_secs(3600);
    let build = |window| Filter::builder(window).fpr(0.01);
    for (error, start) in [
        (Filter::builder(Window::last(10)).build().err(), "fpr or nbytes must be given: "),
        (build(Window::last(10)).nbytes(10).build().err(), "fpr or nbytes must be given, and not both"),
        (build(Window::last(10)).lateness(hour).build().err(), "lateness is for windows of time"),
        (build(Window::last(10)).capacity(5).build().err(), "capacity is for windows of time"),
        (build(Window::last(10)).max_ahead(hour).build().err(), "max_ahead is for windows of time"),
        (build(Window::last(10)).slack(Window::time(hour)).build().err(), "slack must be a number of insertions"),
        (build(Window::time(hour)).slack(Window::last(5)).build().err(), "slack must be a span of time"),
        (ConcurrentFilter::builder(Window::time(hour)).fpr(0.1).build().err(), "capacity must be given"),
        (build(Window::time(Duration::ZERO)).build().err(), "window must be longer than 0"),
        (build(Window::last(10)).prefer(Prefer::Exact).build().err(), "fpr does not apply to an exact window"),
        (Filter::from_bytes(&[]).err(), "the bytes are cut short"),
        (Filter::open("/no/such/file").err(), "/no/such/file: "),
    ] {
        let error = error.map_or_else(|| panic!("{start} is not refused"), |error| error.to_string());
        assert!(error.starts_with(start), "{error}");
    }
}

/// One sentence serves for all families.
#[test]
fn too_few_bytes_are_answered_with_how_many_are_enough() {
    for window in [Window::last(1000), Window::last(1_000_000), Window::time(Duration::from_secs(3600))] {
        for prefer in [None, Some(Prefer::Speed), Some(Prefer::Memory)] {
            let build = |nbytes| {
                let mut builder = Filter::builder(window).nbytes(nbytes);
                if window.span().is_some() {
                    builder = builder.capacity(1000);
                }
                if let Some(prefer) = prefer {
                    builder = builder.prefer(prefer);
                }
                builder.build()
            };
            let error = build(0).unwrap_err().to_string();
            let least = error.strip_prefix("nbytes must be at least ").expect("the least");
            let least = least.strip_suffix(" for a rate of false positives of 0.5, got 0").expect("one sentence");
            assert!(build(least.parse().unwrap()).unwrap().fpr() <= 0.5, "{error}");
        }
    }
}

#[test]
fn a_key_that_is_too_late_is_answered_with_a_lateness_that_is_enough() {
    for nanoseconds in [1, 12_345, 1_000_000_000, 20_000_000_000_000_003] {
        let gap = Duration::from_nanos(nanoseconds);
        let insert_late = |lateness| {
            let filter = Filter::builder(Window::time(Duration::from_secs(60))).lateness(lateness).fpr(0.01).build();
            let mut filter = filter.unwrap();
            filter.insert_at(1, UNIX_EPOCH + gap).unwrap();
            filter.insert_at(2, UNIX_EPOCH).map_err(|error| error.to_string())
        };
        let error = insert_late(Duration::ZERO).unwrap_err();
        let stated = error.rsplit_once("lateness, of ").unwrap().1.strip_suffix(" s for these times").unwrap();
        let (seconds, fraction) = stated.split_once('.').unwrap_or((stated, ""));
        let enough = Duration::new(seconds.parse().unwrap(), format!("{fraction:0<9}").parse().unwrap());
        assert_eq!((enough, insert_late(enough)), (gap, Ok(())), "{error}");
    }
}

#[test]
fn filters_are_values_of_serde() {
    let mut filter = Filter::builder(Window::last(100)).fpr(0.01).build().unwrap();
    filter.insert("a");
    let text = serde_json::to_string(&filter).unwrap();
    assert!(serde_json::from_str::<Filter>(&text).unwrap() == filter);
    let of = serde::de::value::BytesDeserializer::<serde_json::Error>::new;
    assert!(serde::Deserialize::deserialize(of(&filter.to_bytes())).is_ok_and(|read: Filter| read == filter));
    assert!(serde_json::from_str::<Filter>("[1, 2]").is_err_and(|error| error.to_string().contains("cut short")));
}

/// `?` carries every failure of the public API into one error type.
#[test]
fn one_error_type_serves_all_calls() {
    fn all() -> Result<(), Error> {
        let folder = tempfile::tempdir().map_err(|_| Error::value("no folder"))?;
        let path = folder.path().join("seen.lately");
        let shared =
            ConcurrentFilter::builder(Window::time(Duration::from_secs(60))).fpr(0.01).capacity(100).build()?;
        shared.insert_at("a", SystemTime::now())?;
        shared.snapshot()?.save(&path)?;
        let mut alone = Filter::open(&path)?;
        assert!(alone.seen_at("a", SystemTime::now())?);
        alone.save(&path)?;
        assert!(ConcurrentFilter::try_from(Filter::open(&path)?)?.seen("a"));
        Ok(())
    }
    all().unwrap();
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(Filter::open("nowhere").unwrap_err());
    assert!(boxed.to_string().starts_with("nowhere: "));
}

/// Returns a copy of a file. The file of a shared filter is stored without its places for claims, which are zeros.
fn with_claims(path: &Path) -> tempfile::NamedTempFile {
    let mut bytes = std::fs::read(path).unwrap();
    if path.file_stem().is_some_and(|name| name == "shared") {
        bytes.resize(bytes.len() + 8 * (TAIL - 8), 0);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

/// A file of every kind that Python wrote opens here, and goes on.
#[test]
fn files_of_python_open_and_go_on() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (mut opened, mut shared) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "lately") {
            let whole = with_claims(&path);
            let path = whole.path();
            let mut filter = Filter::open(path).unwrap();
            if let Ok(concurrent) = ConcurrentFilter::try_from(filter.clone()) {
                shared += 1;
                let again = concurrent.snapshot().unwrap();
                for i in 0..2000 {
                    assert_eq!(again.contains(i), filter.contains(i), "{path:?} {i}");
                    assert_eq!(concurrent.contains(i), filter.contains(i), "{path:?} {i}");
                }
            }
            filter.seen("a new key");
            assert!(filter.contains("a new key"), "{path:?}");
            opened += 1;
        }
    }
    assert!(opened > 25 && shared >= 3, "{opened} opened, {shared} of them by threads");
}
