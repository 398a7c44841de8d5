//! A prior learned from the stream itself, in fixed memory.
//!
//! A posterior needs p, the key's chance of being the next insertion, from which a geometric law of ages follows. If
//! keys come in bursts no single p describes both how often a key comes and how long ago it last came. On three real
//! streams p = n_x / n, over the whole stream, made answers up to 7.7 times as costly as without inference; the prior
//! learned here, at most 0.87 times (`benchmarks/inference_learned.py`). A posterior is about the age, so the age is
//! what is learned:
//!
//! 1. A *sketch* counts how often each key came lately, with exponential forgetting, and puts it into one of 35
//!    classes.
//! 2. A *sample* of all keys, fair by hash, stores exactly when each was last inserted. An insertion of such a key
//!    gives its age, and the class in which it was found.
//! 3. *Recency* counts, by class, how many of them were no older than one half-life. That share is P(age <= half-life)
//!    of any key found in the class, whatever bursts, repeats or collisions in the sketch have done to it; p is the one
//!    whose geometric law passes through it. A class without data begins with the law for independent keys, p = count /
//!    n.
//!
//! So at the age of one half-life the prior is calibrated by construction for keys that come as those inserted did. The
//! ages of all classes together also give the expected number of distinct keys (paper 5, section 2.5).

mod recency;
mod sample;
mod sketch;

use bytemuck::{bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use xxhash_rust::xxh3::xxh3_64;

use crate::Error;
use crate::clock::Moments;
use crate::key::Seed;
use crate::memory::bits::odd_constants;
use crate::memory::fallible;
use crate::memory::prefetch::Address;
use recency::Recency;
use sample::Sample;
use sketch::Sketch;

/// The first bytes of a saved prior; the last two are the version.
const MAGIC: [u8; 8] = *b"LATPRI\x01\x00";
/// Bytes of magic, header and checksum.
const FRAME: usize = 8 + size_of::<Header>() + 8;
/// Least size: a smaller sample would have too few keys to learn from.
const MIN_BYTES: u64 = 1 << 13;
/// Greatest size: more than any machine has, and small enough that no arithmetic overflows.
const MAX_BYTES: u64 = 1 << 48;
/// Greatest number of insertions, as for a filter: more than any stream has.
const MAX_INSERTED: u64 = 1 << 62;
/// Number of insertions after which ages by class are forgotten, or one half-life if that is longer: with fewer, a
/// class would hold too few of them to be informative.
const STATISTICS: u64 = 1 << 16;
/// The constants that remix hashes, so that the sketch and a filter of the same seed err for different keys.
const MIX: [u64; 2] = odd_constants(64);
/// Number of lines of the sketch to prefetch.
const AHEAD: usize = 16;

/// The state beside cells, sightings and ages. All of it is saved.
#[derive(Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Header {
    scheme: u64,
    nbytes: u64,
    half_life: u64,
    seed: u64,
    inserted: u64,
    /// Number of leading zeros of the hashes in the sample.
    level: u64,
    /// Insertions with a time, except the first, and the seconds between them; both fade with the ages.
    timed: f64,
    seconds: f64,
    /// 1 and the latest time in nanoseconds since the epoch, or zeros.
    has_latest: u64,
    latest: i64,
}

/// A prior learned from the stream. See the [module](self).
///
/// ```
/// use lately::clock::Moments;
/// use lately::prior::learned::Learned;
/// use lately::key::KeyHasher;
///
/// let mut prior = Learned::new(1 << 20, 1000, 0)?;
/// let hasher = KeyHasher::new(prior.seed());
/// let keys: Vec<u64> = (0..10_000).map(|i| hasher.integer(if i % 2 == 0 { 7 } else { i })).collect();
/// prior.insert(&keys, Moments::Untimed);
/// let mut p = [0.0; 2];
/// prior.probability(&[hasher.integer(7), hasher.text("never seen")], &mut p);
/// assert!(p[0] > 0.1 && p[1] < 1e-5 && p[1] > 0.0);
/// # Ok::<(), lately::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Learned {
    header: Header,
    sketch: Sketch,
    sample: Sample,
    recency: Recency,
}

impl Learned {
    /// Creates an empty prior of `nbytes`, rounded down to whole cache lines. A sighting counts half after `half_life`
    /// insertions, and p is fitted at that age.
    pub fn new(nbytes: u64, half_life: u64, seed: u64) -> Result<Self, Error> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&nbytes) {
            return Err(Error::value(format!("nbytes must lie in {MIN_BYTES} .. 2**48, got {nbytes}")));
        }
        if !(1..=MAX_INSERTED).contains(&half_life) {
            return Err(Error::value(format!("half_life must lie in 1 .. 2**62 insertions, got {half_life}")));
        }
        let nbytes = nbytes & !63;
        let header =
            Header { scheme: Seed::Public(seed).scheme().into(), nbytes, half_life, seed, ..Header::default() };
        // The sample takes a quarter, at 16 bytes per key it follows; the sketch takes the rest.
        let sample = (nbytes / 4) & !63;
        let sketch = nbytes - sample - Recency::BYTES;
        let refused = |_| Error::Memory { bytes: nbytes };
        Ok(Self {
            header,
            sketch: Sketch::new(sketch as usize).map_err(refused)?,
            sample: Sample::new(sample as usize).map_err(refused)?,
            recency: Recency::default(),
        })
    }

    /// Returns the bytes of cells, sightings and ages together.
    pub fn nbytes(&self) -> u64 {
        self.header.nbytes
    }

    /// Returns the insertions after which a sighting counts half, and the age at which p is fitted.
    pub fn half_life(&self) -> u64 {
        self.header.half_life
    }

    /// Returns the seed with which the keys are hashed.
    pub fn seed(&self) -> u64 {
        self.header.seed
    }

    /// Returns the number of insertions so far.
    pub fn inserted(&self) -> u64 {
        self.header.inserted
    }

    /// Learns from keys in the order in which they were inserted.
    pub fn insert(&mut self, hashes: &[u64], at: Moments<'_>) {
        let cells = Address::of(self.sketch.words());
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                cells.fetch(self.sketch.line(mix(later)));
            }
            if !matches!(at, Moments::Untimed) {
                self.count_time(at.moment(i));
            }
            self.insert_one(mix(hash));
        }
    }

    fn insert_one(&mut self, hash: u64) {
        let header = &mut self.header;
        // The sample numbers insertions from 1; 0 marks a free place.
        header.inserted += 1;
        let now = header.inserted;
        if hash.leading_zeros() as u64 >= header.level {
            let class = self.sketch.class(hash, phase(now - 1, header.half_life));
            let weight = (header.level as f64).exp2();
            let horizon = sample::horizon(header.half_life);
            let age = self.sample.renew(hash, now).map(|last| now - last).filter(|&age| age <= horizon);
            let recent = age.is_some_and(|age| age <= header.half_life);
            self.recency.record(class, recent, age.ok_or((now - 1).min(horizon)), weight);
            header.level = self.sample.make_room(header.level, now.saturating_sub(horizon));
        }
        self.recency.insertions += 1.0;
        self.sketch.insert(hash, phase(now - 1, header.half_life));
        if now.is_multiple_of(header.half_life) {
            self.sketch.halve();
        }
        if now.is_multiple_of(header.half_life.max(STATISTICS)) {
            self.recency.halve();
            header.timed /= 2.0;
            header.seconds /= 2.0;
        }
    }

    /// Counts the time since the last insertion, which never runs backwards.
    fn count_time(&mut self, moment: i64) {
        let header = &mut self.header;
        if header.has_latest == 1 {
            header.timed += 1.0;
            header.seconds += i128::from(moment).saturating_sub(header.latest.into()).max(0) as f64 / 1e9;
            header.latest = header.latest.max(moment);
        } else {
            (header.has_latest, header.latest) = (1, moment);
        }
    }

    /// Writes for each key the chance, in (0, 1), that the next insertion is this key.
    pub fn probability(&self, hashes: &[u64], out: &mut [f64]) {
        let half_life = self.half_life() as f64;
        self.by_class(hashes, out, |hazard| -(-hazard / half_life).exp_m1());
    }

    /// Writes for each key its insertions per second; `None` while no time has passed.
    pub fn rate(&self, hashes: &[u64], out: &mut [f64]) -> Option<()> {
        let per_second = self.header.timed / self.header.seconds;
        let half_life = self.half_life() as f64;
        (per_second.is_finite() && per_second > 0.0)
            .then(|| self.by_class(hashes, out, |hazard| hazard / half_life * per_second))
    }

    /// Writes for each key `answer` of the hazard that its class accumulates in one half-life.
    fn by_class(&self, hashes: &[u64], out: &mut [f64], answer: impl Fn(f64) -> f64) {
        let weight = (self.header.level as f64).exp2();
        let classes = self.recency.hazards(weight).map(answer);
        let phase = phase(self.header.inserted, self.header.half_life);
        let cells = Address::of(self.sketch.words());
        for (i, out) in out.iter_mut().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                cells.fetch(self.sketch.line(mix(later)));
            }
            *out = classes[self.sketch.class(mix(hashes[i]), phase)];
        }
    }

    /// Writes the expected number of distinct keys among n insertions: D(j) of paper 5, section 2.5.
    pub fn distinct(&self, insertions: &[f64], out: &mut [f64]) {
        let curve = self.recency.distinct();
        for (out, &j) in out.iter_mut().zip(insertions) {
            *out = curve.at(j);
        }
    }

    /// Returns the saved form: magic, header, ages, sightings, cells, and the xxh3-64 of everything before it.
    /// Little-endian.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = fallible::with_room(FRAME + self.header.nbytes as usize)?;
        bytes.extend(MAGIC);
        bytes.extend(bytes_of(&self.header));
        bytes.extend(bytes_of(&self.recency));
        bytes.extend(cast_slice::<_, u8>(self.sample.slots()));
        bytes.extend(cast_slice::<_, u8>(self.sketch.words()));
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Reads the bytes that [`to_bytes`](Self::to_bytes) returned. Nothing is trusted: bytes that pass are legal, and
    /// their answers are in range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::format("the prior is damaged");
        let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| Error::format("not a saved prior of this version"))?;
        let (body, sum) = bytes.split_last_chunk().ok_or_else(damaged)?;
        if xxh3_64(body).to_le_bytes() != *sum || bytes.len() < FRAME {
            return Err(damaged());
        }
        let mut header = Header::default();
        let (saved, mut rest) = rest.split_at(size_of::<Header>());
        bytes_of_mut(&mut header).copy_from_slice(saved);
        let scheme = Seed::Public(header.seed).scheme();
        if header.scheme != u64::from(scheme) {
            return Err(Error::format(format!("keys were hashed by scheme {}, not {scheme}", header.scheme)));
        }
        // Checked before anything of that size is allocated.
        if header.nbytes != (bytes.len() - FRAME) as u64 {
            return Err(Error::format(format!(
                "the header of the prior states {} bytes, but the file ends before them",
                header.nbytes
            )));
        }
        let mut prior = Self::new(header.nbytes, header.half_life, header.seed)
            .map_err(|error| Error::format(error.to_string()))?;
        for part in [
            bytes_of_mut(&mut prior.recency),
            cast_slice_mut(prior.sample.slots_mut()),
            cast_slice_mut(prior.sketch.words_mut()),
        ] {
            let (saved, after) = rest.split_at_checked(part.len()).ok_or_else(damaged)?;
            part.copy_from_slice(saved);
            rest = after;
        }
        let fine = |value: f64| value.is_finite() && value >= 0.0;
        let legal = prior.header.nbytes == header.nbytes
            && header.inserted <= MAX_INSERTED
            && header.level <= 63
            && header.has_latest <= 1
            && fine(header.timed)
            && fine(header.seconds)
            && prior.recency.is_legal()
            && prior.sample.recount(header.inserted);
        prior.header = header;
        legal.then_some(prior).ok_or_else(damaged)
    }
}

/// Returns how much of the current half-life is over, in [0, 1).
fn phase(inserted: u64, half_life: u64) -> f64 {
    (inserted % half_life) as f64 / half_life as f64
}

/// Returns a hash remixed to bits by which a filter does not address its cells.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(MIX[0]);
    (hash ^ hash >> 29).wrapping_mul(MIX[1])
}
