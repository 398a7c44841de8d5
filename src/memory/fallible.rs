//! Allocations whose size a caller chooses. If there is not enough memory, they return an error instead of ending the
//! process.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;

use super::huge;
use crate::Error;

/// Returns `len` zeros. They come zeroed from the allocator, so a page is first touched when it is written to.
///
/// Items of a larger alignment than words are written here. The allocator would write them too, but before the advice.
pub fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>, Error> {
    if align_of::<T>() > align_of::<u64>() {
        let mut zeros = with_room(len)?;
        zeros.resize_with(len, T::zeroed);
        return Ok(zeros);
    }
    let zeros = try_zeroed_slice_box(len).map(Vec::from).map_err(|()| not_enough::<T>(len))?;
    huge::advise(&zeros);
    Ok(zeros)
}

/// Collects the items of an iterator of known length.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Error> {
    let mut vec = with_room(items.len())?;
    vec.extend(items);
    Ok(vec)
}

/// Returns an empty vector with room for `len` items.
pub fn with_room<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| not_enough::<T>(len))?;
    huge::advise(vec.spare_capacity_mut());
    Ok(vec)
}

/// Resizes a vector. New items are zeros.
pub fn resize<T: Zeroable + Copy>(vec: &mut Vec<T>, len: usize) -> Result<(), Error> {
    if vec.capacity() < len {
        vec.try_reserve_exact(len - vec.len()).map_err(|_| not_enough::<T>(len))?;
        huge::advise(vec.spare_capacity_mut());
    }
    vec.resize(len, T::zeroed());
    Ok(())
}

/// Returns the error of an allocation of `len` items.
fn not_enough<T>(len: usize) -> Error {
    Error::Memory { bytes: (len as u64).saturating_mul(size_of::<T>() as u64) }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn an_allocation_that_is_too_large_returns_an_error() {
        for len in [usize::MAX, usize::MAX / 8, usize::try_from(1u64 << 58).unwrap_or(usize::MAX)] {
            assert!(matches!(zeroed::<u64>(len), Err(Error::Memory { .. })));
            assert!(matches!(with_room::<u64>(len), Err(Error::Memory { .. })));
            assert!(matches!(
                collected((0..len.min(usize::MAX / 12)).map(|i| i as u64)).map(black_box).map(drop),
                Err(Error::Memory { .. })
            ));
            assert!(matches!(resize(&mut vec![1u64], len), Err(Error::Memory { .. })));
        }
        let mut some = vec![7u64];
        resize(&mut some, 3).unwrap();
        assert_eq!(some, [7, 0, 0]);
        resize(&mut some, 1).unwrap();
        assert_eq!(some, [7]);
        assert_eq!(zeroed::<u64>(3).unwrap(), [0; 3]);
        assert_eq!(zeroed::<()>(usize::MAX).unwrap().len(), usize::MAX);
        assert_eq!(collected(0..3usize).unwrap(), [0, 1, 2]);
    }
}
