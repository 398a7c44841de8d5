//! Lines, each of which is its own key.

use memchr::memchr_iter;

use super::text::{Encoding, Text, Waiting};
use super::{Found, Reader};
use lately::key::KeyHasher;

/// Lines of text.
#[derive(Clone, Debug)]
pub struct Lines {
    /// How bytes are text.
    pub encoding: Encoding,
    /// Longer lines are left to others.
    pub longest: usize,
}

impl Reader for Lines {
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, found: &mut Found) -> usize {
        let (mut text, mut waiting) = (Text::new(block, self.encoding), Waiting::new());
        let mut stop = block.len();
        for (line, end) in lines(block, start) {
            let content = without_end(&block[line..end]);
            // A mark of byte order is no part of the first line, and of any other it is.
            let marked = content.first() == Some(&0xef) && content.starts_with(b"\xef\xbb\xbf");
            if end - line > self.longest || marked || !text.takes(line, end) {
                stop = line;
                break;
            }
            found.ends.push(end);
            waiting.add(&text, hasher, content, end, &mut found.hashes);
        }
        waiting.finish(hasher, &mut found.hashes);
        stop
    }

    /// A megabyte takes half a millisecond; to start a thread and to take over what it finds takes as long.
    fn is_shared(&self, _: &[u8]) -> bool {
        false
    }
}

/// Where each line begins and ends; the last may lack its newline.
pub fn lines(block: &[u8], start: usize) -> impl Iterator<Item = (usize, usize)> {
    let ends = memchr_iter(b'\n', &block[start..]).map(move |newline| start + newline + 1);
    let last = (block.last() != Some(&b'\n')).then_some(block.len());
    ends.chain(last.filter(|_| start < block.len())).scan(start, |line, end| Some((std::mem::replace(line, end), end)))
}

/// A line without what ends it.
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
