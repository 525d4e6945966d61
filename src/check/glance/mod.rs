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
    options: Option<Vec<Box<str>>>,
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
    Other(regex::Regex),
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

/// A member's name in its quotes, made for comparing.
#[derive(Debug)]
struct Name {
    quoted: Box<[u8]>,
    head: u64,
    head_mask: u64,
}

impl Text {
    fn says_something(&self) -> bool {
        self.options.is_some()
            || !self.patterns.is_empty()
            || self.characters_min > 0
            || self.characters_max.is_some()
            || self.is_date_time
    }

    #[inline]
    fn fits(&self, text: &str) -> bool {
        if let Some(options) = &self.options
            && !options.iter().any(|option| **option == *text)
        {
            return false;
        }
        if self.characters_min > 0 || self.characters_max.is_some() {
            let length = if text.is_ascii() {
                text.len()
            } else {
                text.chars().count()
            };
            if length < self.characters_min || self.characters_max.is_some_and(|most| length > most)
            {
                return false;
            }
        }
        self.patterns.iter().all(|pattern| pattern.fits(text))
            && (!self.is_date_time || crate::schema::is_date_time(text))
    }
}

impl Pattern {
    /// Reads `^START[CLASS]{N}$`; other patterns run as they are, those with look-around not at all.
    fn new(pattern: &str) -> Option<Self> {
        Self::run(pattern).or_else(|| regex::Regex::new(pattern).ok().map(Self::Other))
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

    #[inline]
    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Run {
                start,
                class,
                count,
            } => text.strip_prefix(&**start).is_some_and(|run| {
                run.len() == *count
                    && run
                        .bytes()
                        .all(|b| class.get(usize::from(b)).is_some_and(|is_in| *is_in))
            }),
            Self::Other(regex) => regex.is_match(text),
        }
    }
}

impl Name {
    /// Nothing where the name would stand escaped in a document.
    fn new(name: &str) -> Option<Self> {
        if name.bytes().any(|b| b == b'"' || b == b'\\' || b < b' ') {
            return None;
        }
        let quoted = format!("\"{name}\"").into_bytes();
        let mut head = [0; 8];
        let mut mask = [0; 8];
        for (at, byte) in quoted.iter().take(8).enumerate() {
            head[at] = *byte;
            mask[at] = u8::MAX;
        }
        let (head, head_mask) = (u64::from_le_bytes(head), u64::from_le_bytes(mask));
        Some(Self {
            quoted: quoted.into(),
            head,
            head_mask,
        })
    }

    /// True when the text begins with this name in its quotes.
    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        let is_likely = text
            .first_chunk()
            .is_none_or(|head| u64::from_le_bytes(*head) & self.head_mask == self.head);
        is_likely && text.starts_with(&self.quoted)
    }
}
