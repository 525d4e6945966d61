//! Fast path of one document: reads its tokens alongside the compiled schema.

use super::{
    DEPTH_MAX, DOCUMENT_BYTES_MAX, FastPath, Literal, Name, Object, Place, Text, UNLISTED_MAX,
};
use conformant_judge::Judgment;
use conformant_rulebook::types::{ALL, ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, OBJECT, STRING};
use std::ops::Range;

/// Validates documents of one type and counts what was judged.
#[derive(Debug)]
pub(crate) struct FastValidator<'g> {
    fast_path: &'g FastPath,
    /// Number of valid documents.
    documents: usize,
    /// For each object, its last set of members, and the number of documents with it.
    runs: Vec<(u64, usize)>,
    counts: Vec<usize>,
    scratch: Scratch,
}

impl<'g> FastValidator<'g> {
    pub(crate) fn new(fast_path: &'g FastPath) -> Self {
        let runs = vec![(0, 0); fast_path.judged.len()];
        let counts = vec![0; fast_path.rules.len()];
        Self {
            fast_path,
            documents: 0,
            runs,
            counts,
            scratch: Scratch::default(),
        }
    }

    /// Validates the first line of a text. If it certainly breaks no rule, counts it and returns its length with its end.
    pub(crate) fn line(&mut self, text: &[u8]) -> Option<usize> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut tokens = Tokens::new(text, &mut scratch);
        let read = tokens.value(0, &self.fast_path.root, 0);
        let taken = read.and_then(|at| tokens.end_of_line(at));
        if taken.is_some() {
            self.count(&scratch.met);
        }
        self.scratch = scratch;
        taken
    }

    /// Counts a valid document with its objects and their members.
    pub(super) fn count(&mut self, met: &[(usize, u64)]) {
        self.documents += 1;
        for (object, members) in met {
            if self.runs[*object].0 == *members {
                self.runs[*object].1 += 1;
            } else {
                self.settle(*object);
                self.runs[*object] = (*members, 1);
            }
        }
    }

    /// Adds a series of documents in which an object had the same members.
    fn settle(&mut self, object: usize) {
        let (members, times) = self.runs[object];
        let judged = &self.fast_path.judged[object];
        for rule in &judged.always {
            self.counts[*rule] += times;
        }
        for (bit, rules) in judged.present.iter().enumerate() {
            if members & (1 << bit) != 0 {
                for rule in rules {
                    self.counts[*rule] += times;
                }
            }
        }
    }

    /// Number of valid documents, and what was judged.
    pub(crate) fn finish(mut self) -> (usize, Judgment) {
        for object in 0..self.runs.len() {
            self.settle(object);
        }
        let mut judgment = Judgment::default();
        for (rule, count) in self
            .fast_path
            .rules
            .iter()
            .zip(&self.counts)
            .filter(|(_, count)| **count > 0)
        {
            judgment.count(rule, *count);
        }
        (self.documents, judgment)
    }
}

/// A line as tokens. Every step takes a position and returns the end of its token, or none if undecided. No step leaves
/// the line, because a line end is neither a blank between tokens nor part of a text.
pub(super) struct Tokens<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) scratch: &'a mut Scratch,
}

/// Buffers that are reused for each document.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Objects of the document with their members.
    pub(super) met: Vec<(usize, u64)>,
    /// Positions of the unlisted names of the open objects.
    names: Vec<Range<usize>>,
}

/// Content of a text between its quotes.
#[derive(Clone, Debug)]
struct Quoted {
    within: Range<usize>,
    is_ascii: bool,
    is_escaped: bool,
}

/// No constraint.
pub(super) static FREE: Place = Place {
    types: ALL,
    text: None,
    object: None,
    items: None,
};

/// The high bit of each byte of a word that needs a closer look: a quote, a backslash, a control character, or not
/// ASCII. Exact up to the first one.
#[inline]
fn marks(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let quote = (word ^ (EACH * u64::from(b'"'))).wrapping_sub(EACH);
    let backslash = (word ^ (EACH * u64::from(b'\\'))).wrapping_sub(EACH);
    let control = word.wrapping_sub(EACH * u64::from(b' '));
    (word | quote | backslash | control) & (EACH * 0x80)
}

impl<'a> Tokens<'a> {
    /// Starts a line; clears `scratch`.
    pub(super) fn new(bytes: &'a [u8], scratch: &'a mut Scratch) -> Self {
        scratch.met.clear();
        scratch.names.clear();
        Self { bytes, scratch }
    }

    /// Position and first byte of the next token.
    #[inline]
    pub(super) fn peek(&self, mut at: usize) -> Option<(usize, u8)> {
        loop {
            let byte = *self.bytes.get(at)?;
            if !matches!(byte, b' ' | b'\t' | b'\r') {
                return Some((at, byte));
            }
            at += 1;
        }
    }

    /// Position of the next line, if this one is complete and not too long.
    pub(super) fn end_of_line(&self, at: usize) -> Option<usize> {
        let end = match self.peek(at) {
            Some((at, b'\n')) => at + 1,
            None => self.bytes.len(),
            Some(_) => return None,
        };
        (end <= DOCUMENT_BYTES_MAX).then_some(end)
    }

    #[inline]
    fn literal(&self, at: usize, literal: &Literal) -> Option<usize> {
        let is_there = literal.begins(&self.bytes[at..]);
        is_there.then(|| at + literal.text.len())
    }

    #[inline]
    pub(super) fn value(&mut self, at: usize, place: &Place, depth: usize) -> Option<usize> {
        let allows = |types: u8| (place.types & types != 0).then_some(());
        let (at, first) = self.peek(at)?;
        match first {
            b'"' => {
                allows(STRING)?;
                match &place.text {
                    Some(wanted) => self.fits(at, wanted),
                    None => self.text(at).map(|text| text.within.end + 1),
                }
            }
            b'{' => {
                allows(OBJECT)?;
                self.object(at, place.object.as_deref(), depth)
            }
            b'[' => {
                allows(ARRAY)?;
                self.array(at, place.items.as_deref(), depth)
            }
            b'n' => {
                allows(NULL)?;
                self.word(at, "null")
            }
            b't' => {
                allows(BOOLEAN)?;
                self.word(at, "true")
            }
            b'f' => {
                allows(BOOLEAN)?;
                self.word(at, "false")
            }
            _ => {
                allows(INTEGER | FRACTION)?;
                self.number(at, place.types & FRACTION != 0)
            }
        }
    }

    fn word(&self, at: usize, word: &str) -> Option<usize> {
        let is_there = self.bytes[at..].starts_with(word.as_bytes());
        is_there.then_some(at + word.len())
    }

    /// A number; with a fraction or exponent only if any number is valid, because `1.0` may count as an integer.
    fn number(&self, mut at: usize, is_any: bool) -> Option<usize> {
        if self.bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        at = match self.bytes.get(at) {
            Some(b'0') => at + 1,
            _ => self.digits(at)?,
        };
        if is_any && self.bytes.get(at) == Some(&b'.') {
            at = self.digits(at + 1)?;
        }
        let ends = self
            .bytes
            .get(at)
            .is_none_or(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
        ends.then_some(at)
    }

    fn digits(&self, start: usize) -> Option<usize> {
        let digits = self.bytes[start..].iter();
        let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(start + count)
    }

    /// A valid text; compares options without looking for its end.
    fn fits(&self, at: usize, wanted: &Text) -> Option<usize> {
        if let Some(options) = &wanted.options {
            return options.iter().find_map(|option| self.literal(at, option));
        }
        let text = self.text(at).filter(|text| !text.is_escaped)?;
        let end = text.within.end + 1;
        wanted
            .fits(&self.bytes[text.within], text.is_ascii)
            .then_some(end)
    }

    /// A text with escapes of one character.
    #[inline]
    fn text(&self, at: usize) -> Option<Quoted> {
        let start = at + 1;
        let mut at = start;
        let (mut is_ascii, mut is_escaped) = (true, false);
        loop {
            let (mark, byte) = self.next_mark(at)?;
            at = match byte {
                b'"' => {
                    let within = start..mark;
                    let is_read =
                        is_ascii || std::str::from_utf8(&self.bytes[within.clone()]).is_ok();
                    return is_read.then_some(Quoted {
                        within,
                        is_ascii,
                        is_escaped,
                    });
                }
                b'\\' => {
                    is_escaped = true;
                    let escaped = self.bytes.get(mark + 1)?;
                    let is_short = matches!(
                        escaped,
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'
                    );
                    is_short.then_some(mark + 2)?
                }
                0x80.. => {
                    is_ascii = false;
                    let others = self.bytes[mark..].iter();
                    mark + others.take_while(|byte| !byte.is_ascii()).count()
                }
                _ => return None,
            };
        }
    }

    /// The content of a text without escapes.
    pub(super) fn plain_text(&self, at: usize) -> Option<Range<usize>> {
        self.text(at)
            .filter(|text| !text.is_escaped)
            .map(|text| text.within)
    }

    /// The next byte that needs a closer look, with its position.
    #[inline]
    pub(super) fn next_mark(&self, mut at: usize) -> Option<(usize, u8)> {
        while let Some(chunk) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let marks = marks(u64::from_le_bytes(*chunk));
            if marks != 0 {
                let within = marks.trailing_zeros() as usize / 8;
                return Some((at + within, chunk[within]));
            }
            at += 8;
        }
        let rest = self.bytes.get(at..)?;
        let is_mark = |byte: &u8| marks(u64::from(*byte) | 0x2020_2020_2020_2000) != 0;
        let within = rest.iter().position(is_mark)?;
        Some((at + within, rest[within]))
    }

    fn array(&mut self, at: usize, items: Option<&Place>, depth: usize) -> Option<usize> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let mut at = at + 1;
        if let (at, b']') = self.peek(at)? {
            return Some(at + 1);
        }
        loop {
            at = self.value(at, items.unwrap_or(&FREE), depth + 1)?;
            match self.peek(at)? {
                (comma, b',') => at = comma + 1,
                (end, b']') => return Some(end + 1),
                _ => return None,
            }
        }
    }

    fn object(&mut self, at: usize, object: Option<&Object>, depth: usize) -> Option<usize> {
        let members = object.map_or(&[][..], |o| &o.members);
        let others = object.map_or(Some(&FREE), |o| o.others.as_ref());
        let (at, seen) = self.members(at, members, depth, |tokens, at, listed| {
            tokens.value(at, listed.or(others)?, depth + 1)
        })?;
        if let Some(object) = object {
            if seen & object.required != object.required {
                return None;
            }
            if let Some(index) = object.index {
                self.scratch.met.push((index, seen));
            }
        }
        Some(at)
    }

    /// The members of an object with their constraints; returns the bits of listed ones.
    #[inline]
    pub(super) fn members<'l, T>(
        &mut self,
        at: usize,
        listed: &'l [(Name, T)],
        depth: usize,
        mut read: impl FnMut(&mut Self, usize, Option<&'l T>) -> Option<usize>,
    ) -> Option<(usize, u64)> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let first_name = self.scratch.names.len();
        let mut seen = 0_u64;
        let mut at = at + 1;
        if let (at, b'}') = self.peek(at)? {
            return Some((at + 1, seen));
        }
        loop {
            let (name, first) = self.peek(at)?;
            if first != b'"' {
                return None;
            }
            if let Some((mut bit, mut end)) = self.name(name, listed) {
                // Most documents have the order of the schema and no blanks.
                loop {
                    if seen & (1 << bit) != 0 {
                        return None;
                    }
                    seen |= 1 << bit;
                    at = read(self, end, Some(&listed[bit].1))?;
                    bit += 1;
                    let next = listed.get(bit);
                    match next.and_then(|(name, _)| self.literal(at, &name.next)) {
                        Some(next) => end = next,
                        None => break,
                    }
                }
            } else {
                at = self.unlisted_name(name, first_name)?;
                at = read(self, at, None)?;
            }
            match self.peek(at)? {
                (comma, b',') => at = comma + 1,
                (end, b'}') => {
                    self.scratch.names.truncate(first_name);
                    return Some((end + 1, seen));
                }
                _ => return None,
            }
        }
    }

    /// A listed name with its colon.
    fn name<T>(&self, at: usize, listed: &[(Name, T)]) -> Option<(usize, usize)> {
        let mut all = listed.iter().enumerate();
        let (bit, end) =
            all.find_map(|(bit, (name, _))| Some((bit, self.literal(at, &name.quoted)?)))?;
        let (colon, byte) = self.peek(end)?;
        (byte == b':').then_some((bit, colon + 1))
    }

    /// An unlisted name with its colon, distinct from others of its object.
    fn unlisted_name(&mut self, at: usize, first_name: usize) -> Option<usize> {
        let name = self.plain_text(at)?;
        let (colon, byte) = self.peek(name.end + 1)?;
        let text = &self.bytes[name.clone()];
        let others = &self.scratch.names[first_name..];
        let is_twice = others
            .iter()
            .any(|other| self.bytes[other.clone()] == *text);
        // Names with a meaning inside the reader, which rejects them.
        if byte != b':' || is_twice || others.len() >= UNLISTED_MAX || text.starts_with(b"$") {
            return None;
        }
        self.scratch.names.push(name);
        Some(colon + 1)
    }
}
