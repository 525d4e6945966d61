//! A document read token by token beside what was compiled: it surely breaks nothing, or nobody is
//! sure.

use super::{
    ANY, ARRAY, BOOLEAN, DEPTH_MAX, DOCUMENT_BYTES_MAX, FRACTION, Glance, INTEGER, NULL, OBJECT,
    Object, Place, STRING, UNLISTED_MAX,
};
use crate::judge::Judgement;

/// Looks at documents of one kind and counts what they gave to judge.
#[derive(Debug)]
pub(in crate::check) struct Look<'g> {
    glance: &'g Glance,
    /// Documents that broke nothing.
    documents: usize,
    /// For each object, the members that were there last, and in how many documents.
    runs: Vec<(u64, usize)>,
    counts: Vec<usize>,
    scratch: Scratch,
}

impl<'g> Look<'g> {
    pub(in crate::check) fn new(glance: &'g Glance) -> Self {
        let runs = vec![(0, 0); glance.judged.len()];
        let counts = vec![0; glance.rules.len()];
        Self {
            glance,
            documents: 0,
            runs,
            counts,
            scratch: Scratch::default(),
        }
    }

    /// True when the document surely breaks nothing; then it is counted.
    pub(in crate::check) fn passes(&mut self, document: &str) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut tokens = Tokens::new(document, &mut scratch);
        let passes = document.len() <= DOCUMENT_BYTES_MAX
            && tokens.value(&self.glance.root, 0).is_some()
            && tokens.is_at_end();
        if passes {
            self.count(&scratch.met);
        }
        self.scratch = scratch;
        passes
    }

    /// Counts a document that broke nothing, with its objects and their members.
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

    /// Adds up a run of documents in which an object had the same members.
    fn settle(&mut self, object: usize) {
        let (members, times) = self.runs[object];
        let judged = &self.glance.judged[object];
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

    /// How many documents passed, and what they gave to judge.
    pub(in crate::check) fn finish(mut self) -> (usize, Judgement) {
        for object in 0..self.runs.len() {
            self.settle(object);
        }
        let mut judgement = Judgement::default();
        for (rule, count) in self
            .glance
            .rules
            .iter()
            .zip(&self.counts)
            .filter(|(_, count)| **count > 0)
        {
            judgement.count(rule, *count);
        }
        (self.documents, judgement)
    }
}

/// A document as tokens. Every step answers nothing where it is not sure.
pub(super) struct Tokens<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) scratch: &'a mut Scratch,
}

/// Memory that is used again for each document.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Objects of the present document with the members that are there.
    pub(super) met: Vec<(usize, u64)>,
    /// Where the unlisted names of the open objects stand.
    names: Vec<(usize, usize)>,
}

/// Where nothing is said.
pub(super) static FREE: Place = Place {
    types: ANY,
    text: None,
    object: None,
    items: None,
};

/// Every byte of a word that is `byte`, as its high bit; right up to the first one.
const fn equal_bytes(word: u64, byte: u8) -> u64 {
    let apart = word ^ (0x0101_0101_0101_0101 * byte as u64);
    apart.wrapping_sub(0x0101_0101_0101_0101) & !apart & 0x8080_8080_8080_8080
}

/// Every byte of a word that is below a blank, as its high bit; right up to the first one.
const fn control_bytes(word: u64) -> u64 {
    word.wrapping_sub(0x2020_2020_2020_2020) & !word & 0x8080_8080_8080_8080
}

impl<'a> Tokens<'a> {
    /// At the beginning of a document; what the last one left in `scratch` is gone.
    pub(super) fn new(document: &'a str, scratch: &'a mut Scratch) -> Self {
        scratch.met.clear();
        scratch.names.clear();
        Self {
            text: document,
            bytes: document.as_bytes(),
            at: 0,
            scratch,
        }
    }

    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    pub(super) fn value(&mut self, place: &Place, depth: usize) -> Option<()> {
        let allows = |types: u8| (place.types & types != 0).then_some(());
        match self.peek()? {
            b'"' => {
                allows(STRING)?;
                match &place.text {
                    Some(wanted) => wanted.fits(self.plain_string()?).then_some(()),
                    None => self.string(),
                }
            }
            b'{' => {
                allows(OBJECT)?;
                self.object(place.object.as_deref(), depth)
            }
            b'[' => {
                allows(ARRAY)?;
                self.array(place.items.as_deref(), depth)
            }
            b'n' => {
                allows(NULL)?;
                self.word("null")
            }
            b't' => {
                allows(BOOLEAN)?;
                self.word("true")
            }
            b'f' => {
                allows(BOOLEAN)?;
                self.word("false")
            }
            _ => {
                allows(INTEGER | FRACTION)?;
                self.number(place.types & FRACTION != 0)
            }
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let is_there = self.bytes[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_there.then_some(())
    }

    /// A number; one with a fraction or exponent only where any number will do, as `1.0` may count
    /// as an integer or not.
    fn number(&mut self, is_any: bool) -> Option<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if is_any && self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        let ends = self
            .bytes
            .get(self.at)
            .is_none_or(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
        ends.then_some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Passes over a string, escapes of one character included.
    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.next_mark()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    let escaped = self.bytes.get(self.at + 1)?;
                    if !matches!(
                        escaped,
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'
                    ) {
                        return None;
                    }
                    self.at += 2;
                }
                _ => return None,
            }
        }
    }

    /// The text of a string without escapes.
    pub(super) fn plain_string(&mut self) -> Option<&'a str> {
        self.at += 1;
        let start = self.at;
        if self.next_mark()? != b'"' {
            return None;
        }
        self.at += 1;
        self.text.get(start..self.at - 1)
    }

    /// Goes on to the next quote, backslash or control character.
    pub(super) fn next_mark(&mut self) -> Option<u8> {
        while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*chunk);
            let marks = equal_bytes(word, b'"') | equal_bytes(word, b'\\') | control_bytes(word);
            if marks != 0 {
                let at = marks.trailing_zeros() as usize / 8;
                self.at += at;
                return Some(chunk[at]);
            }
            self.at += 8;
        }
        loop {
            let byte = *self.bytes.get(self.at)?;
            if matches!(byte, b'"' | b'\\') || byte < b' ' {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn array(&mut self, items: Option<&Place>, depth: usize) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        self.at += 1;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(items.unwrap_or(&FREE), depth + 1)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn object(&mut self, object: Option<&Object>, depth: usize) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let members = object.map_or(&[][..], |o| &o.members);
        let others = object.map_or(Some(&FREE), |o| o.others.as_ref());
        let first_name = self.scratch.names.len();
        let (mut seen, mut expected) = (0_u64, 0);
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                if self.peek()? != b'"' {
                    return None;
                }
                let rest = &self.bytes[self.at..];
                let is_next = members
                    .get(expected)
                    .is_some_and(|(name, _)| name.begins(rest));
                let bit = is_next
                    .then_some(expected)
                    .or_else(|| members.iter().position(|(name, _)| name.begins(rest)));
                let place = if let Some(bit) = bit {
                    let (name, place) = &members[bit];
                    if seen & (1 << bit) != 0 {
                        return None;
                    }
                    self.at += name.quoted.len();
                    seen |= 1 << bit;
                    expected = bit + 1;
                    place
                } else {
                    self.unlisted_name(first_name)?;
                    others?
                };
                if self.peek()? != b':' {
                    return None;
                }
                self.at += 1;
                self.value(place, depth + 1)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => {
                        self.at += 1;
                        break;
                    }
                    _ => return None,
                }
            }
        }
        self.scratch.names.truncate(first_name);
        if let Some(object) = object {
            if seen & object.required != object.required {
                return None;
            }
            self.scratch
                .met
                .extend(object.index.map(|index| (index, seen)));
        }
        Some(())
    }

    /// How many unlisted names of open objects are known so far.
    pub(super) fn names(&self) -> usize {
        self.scratch.names.len()
    }

    /// The object that began with so many names is closed.
    pub(super) fn forget_names(&mut self, first_name: usize) {
        self.scratch.names.truncate(first_name);
    }

    /// A name that no schema lists, told apart from the others of its object.
    pub(super) fn unlisted_name(&mut self, first_name: usize) -> Option<()> {
        let start = self.at;
        let name = self.plain_string()?;
        let others = &self.scratch.names[first_name..];
        let is_twice = others
            .iter()
            .any(|(start, end)| self.bytes[*start..*end] == *name.as_bytes());
        // Some names have a meaning inside the reader; it refuses them.
        if is_twice || others.len() >= UNLISTED_MAX || name.starts_with('$') {
            return None;
        }
        self.scratch.names.push((start + 1, start + 1 + name.len()));
        Some(())
    }
}
