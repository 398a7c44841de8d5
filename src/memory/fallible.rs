//! Memory whose size a caller chooses: if there is not enough, an error instead of the end of the process.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;

use super::huge;
use crate::Error;

/// `len` zeros from the allocator, so that the first write to a page is the first touch of it.
pub fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>, Error> {
    let zeros = try_zeroed_slice_box(len).map(Vec::from).map_err(|()| refused::<T>(len))?;
    huge::advise(&zeros);
    Ok(zeros)
}

/// The items of an iterator that knows its length.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Error> {
    let mut vec = with_room(items.len())?;
    vec.extend(items);
    Ok(vec)
}

/// An empty vector with room for `len`.
pub fn with_room<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| refused::<T>(len))?;
    huge::advise(vec.spare_capacity_mut());
    Ok(vec)
}

/// Makes a vector of this length, of what it has and zeros.
pub fn resize<T: Zeroable + Copy>(vec: &mut Vec<T>, len: usize) -> Result<(), Error> {
    if vec.capacity() < len {
        vec.try_reserve_exact(len - vec.len()).map_err(|_| refused::<T>(len))?;
        huge::advise(vec.spare_capacity_mut());
    }
    vec.resize(len, T::zeroed());
    Ok(())
}

fn refused<T>(len: usize) -> Error {
    Error::Memory { bytes: (len as u64).saturating_mul(size_of::<T>() as u64) }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn more_than_there_is_is_an_error() {
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
