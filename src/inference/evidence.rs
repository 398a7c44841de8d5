//! Evidence: what the cells contain about one key.

/// The evidence about one key: 128 bits, which each family assigns in its own way.
///
/// | cells | bits | content |
/// |---|---|---|
/// | cannot distinguish generations | 0 | the key is there |
/// | rings | j | generation j, the newest first, is [not ruled out](super::ring::not_ruled_out) |
/// | time-limited slices | j | the same; of more than 128 slices, for a group of generations |
/// | lines | j | the same for the key's page: fewer than 64 generations |
/// | | 96.. | the [page range](crate::family::lines::likelihood) that contains its page |
/// | aged cuckoo | 0..32 | 1 + the epochs since the key's last occurrence, 0 if it is not there |
/// | | 32 | whether the key may have been rejected then, and is not there |
/// | timers | 0..32 | number of timers that show the oldest block |
/// | | 32..96 | the age of that block |
/// | | 96.. | the [part](crate::family::timing::likelihood::PartsLikelihood) of the key, if parts come and go |
/// | buffer | 0..64 | the age of the newest fingerprint equal to the key's |
/// | stable | 0..64 | the least of its cells |
/// | generalized | 0..32 | [`Matches`](crate::family::baselines::generalized::likelihood::Matches), a byte per count |
///
/// Timers and buffers return [`ABSENT`](Self::ABSENT) for a key that they do not contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Evidence(
    /// The lower half comes first: compilers make vectors of halves, and none of numbers of 128 bits.
    [u64; 2],
);

/// Greatest number of slices or segments of a ring: evidence has a bit for each.
pub const MAX_SLICES: u32 = u128::BITS;

/// The lowest bit of a page range or a part in the upper half.
const UPPER: u32 = 32;
/// The lowest bit of the age of the oldest block.
const AGE: u32 = 32;

impl Evidence {
    /// The evidence of timers and buffers about a key that is not there.
    pub const ABSENT: Self = Self([u64::MAX; 2]);

    /// Creates evidence of whether the key is there.
    #[inline(always)]
    pub fn present(present: bool) -> Self {
        Self([present.into(), 0])
    }

    /// Creates evidence of the generations that are not ruled out, one bit each with the newest lowest.
    #[inline(always)]
    pub fn generations(possible: u128) -> Self {
        Self([possible as u64, (possible >> 64) as u64])
    }

    /// Returns the generations that are not ruled out.
    #[inline(always)]
    pub fn possible(self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }

    /// Adds the page range that contains the page of the key.
    #[inline(always)]
    pub fn in_page_range(self, range: u64) -> Self {
        Self([self.0[0], range << UPPER | self.0[1]])
    }

    /// Returns the page range, and the evidence without it.
    #[inline(always)]
    pub fn page_range(self) -> (usize, Self) {
        ((self.0[1] >> UPPER) as usize, Self([self.0[0], 0]))
    }

    /// Creates evidence of the epochs since the key's last occurrence, and whether it is certainly there; `None` for a
    /// key that is not there.
    #[inline(always)]
    pub fn epochs(epochs: Option<(u32, bool)>) -> Self {
        Self([epochs.map_or(0, |(epochs, surely)| u64::from(epochs + 1) | u64::from(!surely) << AGE), 0])
    }

    /// Returns the epochs since the key's last occurrence, and whether it is certainly there; `None` for a key that is
    /// not there.
    #[inline(always)]
    pub fn as_epochs(self) -> Option<(usize, bool)> {
        Some(((self.0[0] as u32).checked_sub(1)? as usize, self.0[0] >> AGE & 1 == 0))
    }

    /// Creates evidence of timers that are all live: the age in blocks of the oldest timers, and how many show it.
    #[inline(always)]
    pub fn oldest(age: u64, count: u64) -> Self {
        Self([age << AGE | count, age >> (64 - AGE)])
    }

    /// Returns this evidence if the key is `present`, else [`ABSENT`](Self::ABSENT). There is no branch, because none
    /// could be predicted for keys that may be there.
    #[inline(always)]
    pub fn if_present(self, present: bool) -> Self {
        Self(self.0.map(|half| half | u64::from(!present).wrapping_neg()))
    }

    /// Returns the age of the oldest timers.
    #[inline(always)]
    pub fn age(self) -> u64 {
        self.0[0] >> AGE | self.0[1] << (64 - AGE)
    }

    /// Returns how many timers show the oldest age.
    #[inline(always)]
    pub fn count(self) -> u32 {
        self.0[0] as u32
    }

    /// Adds the part of a growing timing filter that contains the timers.
    #[inline(always)]
    pub fn in_part(self, part: usize) -> Self {
        self.in_page_range(part as u64)
    }

    /// Returns the part of a growing timing filter that contains the timers.
    #[inline(always)]
    pub fn part(self) -> usize {
        self.page_range().0
    }

    /// Creates evidence that consists of one number.
    #[inline(always)]
    pub fn number(number: u64) -> Self {
        Self([number, 0])
    }

    /// Returns the number of evidence that is one number.
    #[inline(always)]
    pub fn as_number(self) -> u64 {
        self.0[0]
    }

    /// Creates evidence of four counts.
    #[inline(always)]
    pub fn counts(counts: [u8; 4]) -> Self {
        Self([u32::from_le_bytes(counts).into(), 0])
    }

    /// Returns the counts of evidence that is four counts.
    #[inline(always)]
    pub fn as_counts(self) -> [u32; 4] {
        (self.0[0] as u32).to_le_bytes().map(u32::from)
    }

    /// Creates evidence of its halves, the lower first.
    pub(crate) fn of(halves: [u64; 2]) -> Self {
        Self(halves)
    }

    /// Returns the lower half and the upper.
    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 2] {
        self.0
    }
}
