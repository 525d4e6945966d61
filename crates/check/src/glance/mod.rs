//! A glance at a document: whether it breaks no rule, told from its tokens without building a tree.
//!
//! It knows two answers: nothing is broken, or not sure. What it is not sure of is judged the
//! careful way, so that every finding comes from there. A kind whose schema says more than is
//! understood here has no glance.
mod compile;
mod envelope;
mod look;

#[cfg(test)]
mod tests;

pub(super) use envelope::{Envelopes, LookInside, Part, TypeGlance};
pub(super) use look::Look;

/// Larger documents might hold more values than the careful reader allows.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Containers within each other; the careful reader allows more.
const DEPTH_MAX: usize = 32;
/// Objects with rules of their own in one document.
const OBJECTS_MAX: usize = 16;
/// Members of one object that no schema lists; telling their names apart grows with the square.
const UNLISTED_MAX: usize = 32;

/// Bytes that are compared at once.
const PART: usize = 16;

const NULL: u8 = 1;
const BOOLEAN: u8 = 2;
const INTEGER: u8 = 4;
const FRACTION: u8 = 8;
const STRING: u8 = 16;
const ARRAY: u8 = 32;
const OBJECT: u8 = 64;
const ANY: u8 = 127;

/// What is compiled of one kind.
#[derive(Debug)]
pub(super) struct Glance {
    root: Place,
    /// Which rules each object gives something to judge for.
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

/// What may stand somewhere.
#[derive(Debug)]
struct Place {
    types: u8,
    text: Option<Text>,
    object: Option<Box<Object>>,
    items: Option<Box<Place>>,
}

/// What a text must be like.
#[derive(Debug, Default)]
struct Text {
    /// In their quotes.
    options: Option<Vec<Literal>>,
    patterns: Vec<Pattern>,
    characters_min: usize,
    characters_max: Option<usize>,
    is_date_time: bool,
}

#[derive(Debug)]
enum Pattern {
    /// A literal start, then so many characters of one class, and nothing else.
    Run {
        start: Box<str>,
        class: [bool; 128],
        count: usize,
    },
    /// Anything else, on the linear engine.
    Other(regex::bytes::Regex),
}

/// What members an object may have.
#[derive(Debug)]
struct Object {
    /// Index into [`Glance::judged`]; none where nothing is judged by its members.
    index: Option<usize>,
    members: Vec<(Name, Place)>,
    /// Bits of the members that must be there.
    required: u64,
    /// What other members may be; none where there may not be any.
    others: Option<Place>,
}

/// A member's name.
#[derive(Debug)]
struct Name {
    /// In its quotes.
    quoted: Literal,
    /// With the comma of the member before and its own colon.
    next: Literal,
}

/// A text that is looked for, made for comparing without a loop: most are of one or two such parts.
#[derive(Debug)]
struct Literal {
    text: Box<[u8]>,
    /// Its first bytes, and which of them count.
    head: u128,
    mask: u128,
    /// Its last ones, where they are so many.
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

    /// Whether a text that is no option of several is as wanted.
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
    /// Reads `^START[CLASS]{N}$`; other patterns run as they are, those with look-around not at all.
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
    /// Nothing where the name would stand escaped in a document.
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

    /// A text in its quotes; nothing where it would stand escaped in a document.
    fn quoted(text: &str) -> Option<Self> {
        let is_escaped = text.bytes().any(|b| b == b'"' || b == b'\\' || b < b' ');
        (!is_escaped).then(|| Self::new(&format!("\"{text}\"")))
    }

    /// Without the quotes.
    fn within(&self) -> &[u8] {
        &self.text[1..self.text.len() - 1]
    }

    /// True when the text begins with this one.
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
