//! Splits an input into blocks of whole lines for several threads: a stream in order, a file by position.

use super::wire;
use conformant_base::parallel::lock;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size of a block, which one thread judges at once; a longer line makes a longer block.
const BLOCK_BYTES: usize = 128 * 1024;
/// Maximum length of a line, as of a document.
pub(super) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Origin of lines.
pub(super) enum Source<'s> {
    /// A stream, read once.
    Stream(&'s mut (dyn Read + Send)),
    /// A file, read at any position.
    File(&'s File),
}

impl Source<'_> {
    pub(super) fn reader(&mut self) -> &mut dyn Read {
        match self {
            Self::Stream(source) => source,
            Self::File(file) => file,
        }
    }
}

/// A source that threads share.
pub(super) enum Blocks<'s> {
    Stream(Mutex<Cutter<'s>>),
    File { file: &'s File, next: AtomicUsize },
}

/// A block of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Index, from 0.
    pub(super) number: usize,
    /// Range of its lines in the buffer.
    pub(super) lines: Range<usize>,
    /// Whether a line that is too long follows.
    pub(super) is_too_long: bool,
    /// Whether the source ends unexpectedly, as a compressed file that was cut.
    pub(super) is_cut: bool,
}

impl<'s> Blocks<'s> {
    /// Creates a source of which a prefix was read already; a file is read from its beginning.
    pub(super) fn of(source: Source<'s>, start: Vec<u8>) -> Self {
        match source {
            Source::Stream(source) => Self::Stream(Mutex::new(Cutter {
                source,
                rest: start,
                number: 0,
                is_done: false,
                is_cut: false,
            })),
            Source::File(file) => Self::File {
                file,
                next: AtomicUsize::new(0),
            },
        }
    }

    /// Reads the next block into this buffer; none at the end.
    pub(super) fn next(&self, buffer: &mut Vec<u8>) -> io::Result<Option<Block>> {
        match self {
            Self::Stream(cutter) => lock(cutter).next(buffer),
            Self::File { file, next } => {
                at_place(file, next.fetch_add(1, Ordering::Relaxed), buffer)
            }
        }
    }
}

/// Splits a stream.
pub(super) struct Cutter<'s> {
    source: &'s mut (dyn Read + Send),
    /// Bytes after the last whole line.
    rest: Vec<u8>,
    /// Index of the next block.
    number: usize,
    is_done: bool,
    /// Whether the end came unexpectedly and is not reported yet.
    is_cut: bool,
}

impl Cutter<'_> {
    fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<Block>> {
        buffer.clear();
        buffer.append(&mut self.rest);
        let mut wanted = BLOCK_BYTES;
        loop {
            self.read_up_to(wanted, buffer)?;
            if self.is_done {
                let end = buffer.len();
                return Ok((end > 0 || self.is_cut).then(|| self.block(end, false)));
            }
            if let Some(end) = wire::last_line_end(buffer, 0) {
                self.rest.extend_from_slice(&buffer[end + 1..]);
                return Ok(Some(self.block(end + 1, false)));
            }
            if buffer.len() >= LINE_BYTES_MAX {
                self.skip_line(buffer)?;
                return Ok(Some(self.block(0, true)));
            }
            wanted = (buffer.len() * 2).min(LINE_BYTES_MAX);
        }
    }

    fn block(&mut self, end: usize, is_too_long: bool) -> Block {
        self.number += 1;
        Block {
            number: self.number - 1,
            lines: 0..end,
            is_too_long,
            is_cut: self.is_done && std::mem::take(&mut self.is_cut),
        }
    }

    fn read_up_to(&mut self, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let wanted = length.saturating_sub(buffer.len());
        if !self.is_done && wanted > 0 {
            let before = buffer.len();
            let read = (&mut *self.source).take(wanted as u64).read_to_end(buffer);
            self.is_cut = match read {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
                other => other.map(|_| false)?,
            };
            self.is_done = buffer.len() - before < wanted;
        }
        Ok(())
    }

    /// Reads to the end of the line; bytes after it are kept.
    fn skip_line(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        while !self.is_done {
            buffer.clear();
            self.read_up_to(BLOCK_BYTES, buffer)?;
            if let Some(end) = memchr::memchr(b'\n', buffer) {
                self.rest.extend_from_slice(&buffer[end + 1..]);
                break;
            }
        }
        Ok(())
    }
}

/// The lines that begin in the section of a file with that index.
fn at_place(file: &File, number: usize, buffer: &mut Vec<u8>) -> io::Result<Option<Block>> {
    // The bytes before the section decide whether a line begins with it.
    let before = if number > 0 { wire::CONTEXT } else { 0 };
    let offset = number as u64 * BLOCK_BYTES as u64 - before as u64;
    let mut read = 0;
    let mut read_up_to = |length: usize, buffer: &mut Vec<u8>| -> io::Result<usize> {
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        while read < length {
            match read_at(file, &mut buffer[read..length], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    };
    let mut filled = read_up_to(before + BLOCK_BYTES, buffer)?;
    if filled <= before {
        return Ok(None);
    }
    let block = |lines, is_too_long| {
        Ok(Some(Block {
            number,
            lines,
            is_too_long,
            is_cut: false,
        }))
    };
    let start = match before {
        0 => Some(0),
        // The section that contains a line end ends with its line.
        _ => wire::line_end(&buffer[..filled], before - 1)
            .filter(|end| *end < filled - 1)
            .map(|end| end + 1),
    };
    let Some(start) = start else {
        return block(0..0, false);
    };
    let last = wire::last_line_end(&buffer[..filled], start).map_or(start, |end| end + 1);
    // The last line may continue after the section.
    let mut seen = last;
    let mut more = BLOCK_BYTES / 32;
    loop {
        if let Some(end) = wire::line_end(&buffer[..filled], seen) {
            return match end - last < LINE_BYTES_MAX {
                true => block(start..end + 1, false),
                false => block(start..last, true),
            };
        }
        if last == filled && seen == last {
            return block(start..last, false);
        }
        if filled - last >= LINE_BYTES_MAX {
            return block(start..last, true);
        }
        seen = filled;
        filled = read_up_to(filled + more, buffer)?;
        if filled == seen {
            return block(start..filled, false);
        }
        more = (more * 2).min(8 * BLOCK_BYTES);
    }
}

#[cfg(unix)]
use std::os::unix::fs::FileExt as _;

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Every line with its end, without those that are too long, in order.
    fn lines(source: Source<'_>) -> Vec<Option<Vec<u8>>> {
        let blocks = Blocks::of(source, Vec::new());
        let (mut lines, mut buffer, mut number) = (Vec::new(), Vec::new(), 0);
        while let Some(block) = blocks.next(&mut buffer).unwrap() {
            assert_eq!(block.number, number);
            number += 1;
            let cut = buffer[block.lines].split_inclusive(|b| *b == b'\n');
            lines.extend(cut.map(|line| Some(line.to_vec())));
            lines.extend(block.is_too_long.then_some(None));
        }
        lines
    }

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_stream_and_a_file_hold_the_same_lines() {
        let line = |length: usize| [vec![b'x'; length - 1], vec![b'\n']].concat();
        let mut texts = vec![
            Vec::new(),
            b"\n".repeat(3 * BLOCK_BYTES),
            b"one\n\ntwo".to_vec(),
            (1..900).flat_map(line).collect(),
            [
                line(3 * BLOCK_BYTES),
                line(7),
                line(2 * BLOCK_BYTES),
                line(9),
            ]
            .concat(),
        ];
        for around in BLOCK_BYTES - 2..BLOCK_BYTES + 3 {
            texts.push([line(around), line(5), line(around)].concat());
            texts.push(vec![b'x'; around]);
        }
        for text in &texts {
            let file = file_of(text);
            let all: Vec<Option<Vec<u8>>> = text
                .split_inclusive(|b| *b == b'\n')
                .map(|line| Some(line.to_vec()))
                .collect();
            let of_stream = lines(Source::Stream(&mut &text[..]));
            assert!(of_stream == all, "{} bytes in a stream", text.len());
            assert!(
                lines(Source::File(&file)) == all,
                "{} bytes in a file",
                text.len()
            );
        }
    }

    #[test]
    fn a_line_is_too_long_at_the_same_length() {
        for (length, is_read) in [(LINE_BYTES_MAX - 1, true), (LINE_BYTES_MAX, false)] {
            for end in [&b"\nend"[..], b""] {
                let text = [b"start\n", &vec![b'x'; length][..], end].concat();
                let of_stream = lines(Source::Stream(&mut &text[..]));
                let decisions: Vec<bool> = of_stream.iter().map(Option::is_some).collect();
                let wanted = [true, is_read, true];
                assert_eq!(decisions, wanted[..if end.is_empty() { 2 } else { 3 }]);
                assert!(lines(Source::File(&file_of(&text))) == of_stream);
            }
        }
    }
}
