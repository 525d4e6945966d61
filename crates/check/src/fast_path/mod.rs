//! Fast path: validates a document from its token stream without building a tree.
//!
//! It returns either `valid` or `undecided`. Undecided documents go to the full validator, from which all findings come.
//! Types with unsupported schemas have no fast path.
mod compile;
mod envelope;
mod validate;

#[cfg(test)]
mod tests;

pub(super) use envelope::{Envelopes, LookInside, Part, TypeFastPath};
pub(super) use validate::FastValidator;

/// Larger documents could exceed the limits of the full validator.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Maximum nesting; the full validator accepts more.
const DEPTH_MAX: usize = 32;
/// Maximum number of objects with rules of their own in a document.
const OBJECTS_MAX: usize = 16;
/// Maximum number of unlisted members of an object; the cost of comparing names grows with the square.
const UNLISTED_MAX: usize = 32;

/// Bytes that are compared at once.
const PART: usize = 16;

/// Compiled type.
#[derive(Debug)]
pub(super) struct FastPath {
    root: Place,
    /// Rules that each object triggers.
    judged: Vec<Judged>,
    rules: Vec<String>,
}

/// Rules of one object, as indexes.
#[derive(Debug, Default)]
struct Judged {
    always: Vec<usize>,
    /// By listed member.
    present: Vec<Vec<usize>>,
}

/// Constraint of a place.
#[derive(Debug)]
struct Place {
    types: u8,
    text: Option<Text>,
    object: Option<Box<Object>>,
    items: Option<Box<Place>>,
}

/// Constraint of a text.
#[derive(Debug, Default)]
struct Text {
    /// With their quotes.
    options: Option<Vec<Literal>>,
    patterns: Vec<Pattern>,
    characters_min: usize,
    characters_max: Option<usize>,
    is_date_time: bool,
}

#[derive(Debug)]
enum Pattern {
    /// A literal start, then an exact number of characters of one class.
    Run {
        start: Box<str>,
        class: [bool; 128],
        count: usize,
    },
    /// Any pattern, on the linear engine.
    Other(regex::bytes::Regex),
}

/// Constraint of an object's members.
#[derive(Debug)]
struct Object {
    /// Index into [`FastPath::judged`]; none if its members trigger no rule.
    index: Option<usize>,
    members: Vec<(Name, Place)>,
    /// Bits of required members.
    required: u64,
    /// Constraint of unlisted members; none if there must not be any.
    others: Option<Place>,
}

/// Name of a member.
#[derive(Debug)]
struct Name {
    /// With its quotes.
    quoted: Literal,
    /// With the preceding comma and its colon.
    next: Literal,
}

/// A text in parts for comparison without a loop; most have one or two.
#[derive(Debug)]
struct Literal {
    text: Box<[u8]>,
    /// First bytes with a mask.
    head: u128,
    mask: u128,
    /// Last bytes, if it is long enough.
    tail: u128,
}

impl Text {
    fn says_something(&self) -> bool {
        self.options.is_some()
            || !self.patterns.is_empty()
            || self.characters_min > 0
            || self.characters_max.is_some()
            || self.is_date_time
    }

    /// Whether a text that is not one of several options is valid.
    fn fits(&self, text: &[u8], is_ascii: bool) -> bool {
        if self.characters_min > 0 || self.characters_max.is_some() {
            let starts = || {
                text.iter()
                    .filter(|byte| !matches!(byte, 0x80..0xc0))
                    .count()
            };
            let length = if is_ascii { text.len() } else { starts() };
            if length < self.characters_min || self.characters_max.is_some_and(|most| length > most)
            {
                return false;
            }
        }
        self.patterns.iter().all(|pattern| pattern.fits(text))
            && (!self.is_date_time
                || std::str::from_utf8(text).is_ok_and(conformant_schema::is_date_time))
    }
}

impl Pattern {
    /// Parses `^START[CLASS]{N}$`; other patterns are compiled, but not those with look-around.
    fn new(pattern: &str) -> Option<Self> {
        Self::run(pattern).or_else(|| regex::bytes::Regex::new(pattern).ok().map(Self::Other))
    }

    fn run(pattern: &str) -> Option<Self> {
        let inside = pattern.strip_prefix('^')?.strip_suffix("}$")?;
        let (start, rest) = inside.split_once('[')?;
        let (class, count) = rest.split_once("]{")?;
        if !start
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_')
        {
            return None;
        }
        let mut allowed = [false; 128];
        let mut class = class.as_bytes();
        while let [first, rest @ ..] = class {
            let last = match rest {
                [b'-', last, ..] => *last,
                _ => *first,
            };
            class = if last == *first { rest } else { &rest[2..] };
            if !first.is_ascii_alphanumeric() || !last.is_ascii_alphanumeric() {
                return None;
            }
            (*first..=last).for_each(|b| allowed[usize::from(b)] = true);
        }
        Some(Self::Run {
            start: start.into(),
            class: allowed,
            count: count.parse().ok()?,
        })
    }

    fn fits(&self, text: &[u8]) -> bool {
        match self {
            Self::Run {
                start,
                class,
                count,
            } => text.strip_prefix(start.as_bytes()).is_some_and(|run| {
                let is_in = |b: &u8| class.get(usize::from(*b)).is_some_and(|is_in| *is_in);
                run.len() == *count && run.iter().all(is_in)
            }),
            Self::Other(regex) => regex.is_match(text),
        }
    }
}

impl Name {
    /// None if the name would be escaped in a document.
    fn new(name: &str) -> Option<Self> {
        Some(Self {
            quoted: Literal::quoted(name)?,
            next: Literal::new(&format!(",\"{name}\":")),
        })
    }

    fn is(&self, other: &Self) -> bool {
        self.quoted.text == other.quoted.text
    }
}

impl Literal {
    fn new(text: &str) -> Self {
        let text = text.as_bytes();
        let (mut head, mut mask) = ([0; PART], [0; PART]);
        for ((byte, head), mask) in text.iter().zip(&mut head).zip(&mut mask) {
            (*head, *mask) = (*byte, u8::MAX);
        }
        let tail = text.last_chunk::<PART>();
        Self {
            text: text.into(),
            head: u128::from_le_bytes(head),
            mask: u128::from_le_bytes(mask),
            tail: tail.map_or(0, |tail| u128::from_le_bytes(*tail)),
        }
    }

    /// A text in its quotes; none if it would be escaped in a document.
    fn quoted(text: &str) -> Option<Self> {
        let is_escaped = text.bytes().any(|b| b == b'"' || b == b'\\' || b < b' ');
        (!is_escaped).then(|| Self::new(&format!("\"{text}\"")))
    }

    /// Whether the text begins with this one.
    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        let Some(head) = text.first_chunk::<PART>() else {
            return text.starts_with(&self.text);
        };
        let length = self.text.len();
        let is_likely = u128::from_le_bytes(*head) & self.mask == self.head;
        if !is_likely || length <= PART {
            return is_likely;
        }
        let Some(whole) = text.get(..length) else {
            return false;
        };
        let tail = whole.last_chunk().map(|tail| u128::from_le_bytes(*tail));
        tail == Some(self.tail) && (length <= 2 * PART || *whole == *self.text)
    }
}
