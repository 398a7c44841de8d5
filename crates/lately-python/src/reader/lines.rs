//! Reads lines. Each line is its own key.

use memchr::memchr_iter;

use super::text::{BlockText, Encoding, PendingTexts};
use super::{Reader, RecordBatch};
use lately::key::KeyHasher;

/// Reads lines of text.
#[derive(Clone, Debug)]
pub struct LineReader {
    /// How bytes are decoded as text.
    pub encoding: Encoding,
    /// The longest line that is read.
    pub longest: usize,
}

impl Reader for LineReader {
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, records: &mut RecordBatch) -> usize {
        let (mut text, mut pending) = (BlockText::new(block, &self.encoding), PendingTexts::new());
        let mut stop = block.len();
        for (line, end) in lines(block, start) {
            let content = without_end(&block[line..end]);
            if end - line > self.longest || !text.accepts(line, end) {
                stop = line;
                break;
            }
            records.ends.push(end);
            pending.push(&text, hasher, content, end, &mut records.hashes);
        }
        pending.flush(hasher, &mut records.hashes);
        stop
    }

    /// Returns false: a megabyte takes half a millisecond, and starting a thread and appending its records takes as
    /// long.
    fn is_shared(&self, _: &[u8]) -> bool {
        false
    }
}

/// Returns the start and the end of each line. The last line may lack its newline.
pub fn lines(block: &[u8], start: usize) -> impl Iterator<Item = (usize, usize)> {
    let ends = memchr_iter(b'\n', &block[start..]).map(move |newline| start + newline + 1);
    let last = (block.last() != Some(&b'\n')).then_some(block.len());
    ends.chain(last.filter(|_| start < block.len())).scan(start, |line, end| Some((std::mem::replace(line, end), end)))
}

/// Returns a line without its newline, or carriage return and newline.
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
