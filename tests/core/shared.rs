//! A file that processes share, copied while one of them writes.

use lately::Error;
use lately::clock::{Moments, Window};
use lately::family::{AnyFilter, Budget, Request, Variant};
use lately::format::{self, SaveError};
use lately::lock::TIMEOUT;
use lately::memory::mapped::TAIL;
use lately::shared::open;

use crate::support::key;

/// A copy from front to back that begins before a step of a writer and ends after it.
#[test]
fn a_copy_made_during_a_write_is_rejected_and_one_of_a_killed_writer_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.lately");
    let window = Window::Count { insertions: 300 };
    let variant = Variant::named("guarded-epoch-transposed").unwrap();
    let shape = variant.plan(&Request::of(window, Budget::Rate(0.01))).unwrap();
    format::save(&AnyFilter::of(shape, window, 7).unwrap(), &path).unwrap();
    let (mut filter, file) = open(&path).unwrap();
    let copy = path.with_extension("copy");
    for batch in 0..40 {
        let before = std::fs::read(&path).unwrap();
        let locked = file.lock(TIMEOUT).unwrap();
        let hashes: Vec<u64> = (0..90).map(|i| key(batch, i)).collect();
        filter.engine_mut().insert(&hashes, Moments::Untimed).unwrap();
        drop(locked);
        let after = std::fs::read(&path).unwrap();
        let end = before.len() - TAIL * 8;
        for cut in [400, end / 2, end] {
            std::fs::write(&copy, [&before[..cut], &after[cut..]].concat()).unwrap();
            assert!(matches!(format::open(&copy), Err(SaveError::Filter(Error::Format(_)))));
            assert!(matches!(open(&copy), Err(SaveError::Filter(Error::Format(_)))));
        }
        std::fs::write(&copy, &after).unwrap();
        assert!(format::open(&copy).is_ok() && open(&copy).is_ok());
        // Killed between the number at the front and the one at the end.
        std::fs::write(&copy, [&after[..end], &before[end..]].concat()).unwrap();
        assert!(format::open(&copy).is_ok() && open(&copy).is_ok());
    }
}
