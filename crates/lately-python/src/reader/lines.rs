//! Reads lines of text. The key of a line is the line, or words of it.

use std::ops::Range;

use memchr::memchr_iter;

use super::text::{BlockText, PendingTexts};
use super::{Reader, RecordBatch, RecordOptions, RowHasher};
use lately::key::KeyHasher;

/// Reads lines of text.
#[derive(Clone, Debug)]
pub struct LineReader {
    /// The parts of the key. Without parts, the whole line is the key.
    pub words: Vec<Words>,
    pub options: RecordOptions,
}

/// The part of a line from one word to another, with the blanks between them. Words are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    pub first: usize,
    /// `None` for the end of the line.
    pub last: Option<usize>,
}

impl Reader for LineReader {
    fn read(&self, block: &[u8], start: usize, _last: bool, hasher: &KeyHasher) -> RecordBatch {
        let Self { words, options } = self;
        let mut records = RecordBatch { stop: block.len(), ..RecordBatch::default() };
        let (mut text, mut pending) = (BlockText::new(block, options), PendingTexts::new());
        let row = RowHasher::new(hasher, words.len());
        let mut places = Vec::new();
        for (line, end) in lines(block, start) {
            let content = line..line + without_end(&block[line..end]).len();
            let mut fault = match () {
                () if end - line > options.longest => Some(options.too_long()),
                () if !text.accepts(line, end) => Some(options.encoding.not_valid()),
                () => None,
            };
            if fault.is_none() && !words.is_empty() {
                words_of(block, content.clone(), &mut places);
                if places.is_empty() {
                    records.blank += 1;
                    continue;
                }
                fault = self.too_few(places.len());
            }
            if let Some(reason) = fault {
                if records.reject(line, reason, options) {
                    continue;
                }
                records.stop = line;
                break;
            }
            records.spans.push(line..end);
            let part = |words: &Words| {
                let last = words.last.unwrap_or(places.len());
                places[words.first - 1].start..places[last - 1].end
            };
            match &words[..] {
                [] => pending.push(&text, hasher, &block[content.clone()], content.end, &mut records.hashes),
                [words] => {
                    let part = part(words);
                    pending.push(&text, hasher, &block[part.clone()], part.end, &mut records.hashes);
                }
                words => {
                    pending.flush(hasher, &mut records.hashes);
                    let fields = words.iter().map(part).map(|part| {
                        Ok::<_, std::convert::Infallible>(text.hash(hasher, &block[part.clone()], part.end))
                    });
                    let Ok(hash) = row.hash(hasher, fields);
                    records.hashes.push(hash);
                }
            }
        }
        pending.flush(hasher, &mut records.hashes);
        records
    }

    /// Returns false: a megabyte takes half a millisecond, and starting a thread and appending its records takes as
    /// long.
    fn is_shared(&self, _: &[u8]) -> bool {
        false
    }
}

impl LineReader {
    fn too_few(&self, count: usize) -> Option<String> {
        let most = self.words.iter().map(|words| words.last.unwrap_or(words.first)).max()?;
        (count < most).then(|| format!("expected at least {most} words, for --key, got {count}"))
    }
}

/// Finds the words of a line: what lies between blanks.
fn words_of(block: &[u8], line: Range<usize>, places: &mut Vec<Range<usize>>) {
    places.clear();
    let mut start = None;
    for at in line.clone() {
        let is_blank = matches!(block[at], b' ' | b'\t'..=b'\r');
        match start {
            None if !is_blank => start = Some(at),
            Some(first) if is_blank => {
                places.push(first..at);
                start = None;
            }
            _ => {}
        }
    }
    places.extend(start.map(|first| first..line.end));
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
