//! What the cells say about one key.

/// 128 bits, laid out by each family in its own way:
///
/// | cells | bits | what they say |
/// |---|---|---|
/// | cannot tell generations apart | 0 | the key is there |
/// | rings, time-limited slices | j | generation j, the newest first, is [not ruled out](super::ring::not_ruled_out) |
/// | lines | j | the same for the key's page: fewer than 64 generations |
/// | | 96.. | the [stretch](super::line) of pages that its page is in |
/// | aged quotient | 0..32 | 1 + the epochs since the key's last occurrence, 0 where it is not there |
/// | | 32 | whether it may have been turned away then, and is not there |
/// | | 33..64 | how many lines of its page have keys without room; 0 where that is not told |
/// | | 96.. | the stretch of pages |
/// | timers | 0..8, 8..16, .. | how many timers show the oldest block; in lines, for each line of the key |
/// | | 32..96 | the age of that block |
/// | | 96.. | the [part](super::timing::Parts) that has the key, where parts come and go |
/// | buffer | 0..64 | the age of the newest fingerprint equal to the key's |
/// | stable | 0..64 | the least of its cells |
/// | generalized | 0..32 | [`Matches`](super::generalized::Matches), a byte per count |
///
/// Timers and buffers return [`ABSENT`](Self::ABSENT) for a key that they do not hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Evidence(
    /// The lower half comes first: compilers make vectors of halves, and none of numbers of 128 bits.
    [u64; 2],
);

/// Where a stretch or a part begins in the upper half.
const UPPER: u32 = 32;
/// Where the age of the oldest block begins.
const AGE: u32 = 32;
/// Bits of a count.
const COUNT: u32 = 8;

impl Evidence {
    /// The key is not there, as timers and buffers say it.
    pub const ABSENT: Self = Self([u64::MAX; 2]);

    /// Whether the key is there.
    #[inline(always)]
    pub fn there(there: bool) -> Self {
        Self([there.into(), 0])
    }

    /// The generations that are not ruled out, a bit each, the newest lowest.
    #[inline(always)]
    pub fn generations(possible: u128) -> Self {
        Self([possible as u64, (possible >> 64) as u64])
    }

    /// The generations that are not ruled out.
    #[inline(always)]
    pub fn possible(self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }

    /// The same, for a page in this stretch of all pages.
    #[inline(always)]
    pub fn in_stretch(self, stretch: u64) -> Self {
        Self([self.0[0], stretch << UPPER | self.0[1]])
    }

    /// The stretch, and the generations without it.
    #[inline(always)]
    pub fn stretch(self) -> (usize, Self) {
        ((self.0[1] >> UPPER) as usize, Self([self.0[0], 0]))
    }

    /// The epochs since the key's last occurrence, and whether it is surely there; nothing where it is not.
    #[inline(always)]
    pub fn epochs(told: Option<(u32, bool)>) -> Self {
        Self([told.map_or(0, |(epochs, surely)| u64::from(epochs + 1) | u64::from(!surely) << AGE), 0])
    }

    /// The same where so many lines of its page have keys without room.
    #[inline(always)]
    pub fn of_marked(self, lines: Option<u32>) -> Self {
        Self([self.0[0] | u64::from(lines.unwrap_or(0)) << (AGE + 1), self.0[1]])
    }

    /// The same of a key.
    #[inline(always)]
    pub fn as_epochs(self) -> Option<(usize, bool)> {
        Some(((self.0[0] as u32).checked_sub(1)? as usize, self.0[0] >> AGE & 1 == 0))
    }

    /// How many lines of its page have keys without room, where one may be this key.
    pub fn marked(self) -> Option<u32> {
        Some((self.0[0] >> (AGE + 1)) as u32).filter(|&lines| lines > 0)
    }

    /// The age in blocks of the oldest timers, all of them live, and how many show it, for each line.
    #[inline(always)]
    pub fn oldest<const LINES: usize>(age: u64, counts: [u64; LINES]) -> Self {
        let counts = (0..).zip(counts).fold(0, |all, (line, count)| all | count << (line * COUNT));
        Self([age << AGE | counts, age >> (64 - AGE)])
    }

    /// This, or [`ABSENT`](Self::ABSENT). Without a branch: of keys that may be there nobody can predict it.
    #[inline(always)]
    pub fn if_there(self, there: bool) -> Self {
        Self(self.0.map(|half| half | u64::from(!there).wrapping_neg()))
    }

    /// The age of the oldest timers.
    #[inline(always)]
    pub fn age(self) -> u64 {
        self.0[0] >> AGE | self.0[1] << (64 - AGE)
    }

    /// How many timers of a line show it.
    #[inline(always)]
    pub fn count(self, line: usize) -> usize {
        (self.0[0] >> (line as u32 * COUNT)) as usize & ((1 << COUNT) - 1)
    }

    /// The same, for timers in this part.
    #[inline(always)]
    pub fn in_part(self, part: usize) -> Self {
        self.in_stretch(part as u64)
    }

    /// The part.
    #[inline(always)]
    pub fn part(self) -> usize {
        self.stretch().0
    }

    /// One number.
    #[inline(always)]
    pub fn number(number: u64) -> Self {
        Self([number, 0])
    }

    /// The number.
    #[inline(always)]
    pub fn as_number(self) -> u64 {
        self.0[0]
    }

    /// Four counts.
    #[inline(always)]
    pub fn counts(counts: [u8; 4]) -> Self {
        Self([u32::from_le_bytes(counts).into(), 0])
    }

    /// The counts.
    #[inline(always)]
    pub fn as_counts(self) -> [u32; 4] {
        (self.0[0] as u32).to_le_bytes().map(u32::from)
    }

    /// Of its halves, the lower first.
    pub(super) fn of(halves: [u64; 2]) -> Self {
        Self(halves)
    }

    /// The lower half and the upper.
    #[inline(always)]
    pub(super) fn words(self) -> [u64; 2] {
        self.0
    }
}
