//! Near misses: the wrong values that lie nearest to a right one.
//!
//! Says nothing about whether they must be refused; that is for the rules.

/// In which way a text is nearly right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Near {
    /// Its first letter in the other case.
    OtherCase,
    /// Without its last character.
    Short,
    /// Its last character twice.
    Long,
    /// Its last character is the one next to it.
    Last,
    /// A space in front.
    SpaceBefore,
    /// A space behind.
    SpaceBehind,
}

impl Near {
    /// Every way, with its name in scenarios.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::OtherCase, "other-case"),
        (Self::Short, "short"),
        (Self::Long, "long"),
        (Self::Last, "last"),
        (Self::SpaceBefore, "space-before"),
        (Self::SpaceBehind, "space-behind"),
    ];

    /// The way of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(near, known)| (known == name).then_some(near))
    }

    /// A text that is not `text`, and nearly is.
    pub(super) fn miss(self, text: &str) -> String {
        match self {
            Self::OtherCase => in_other_case(text),
            Self::Short => but_last(text).to_owned(),
            Self::Long => format!("{text}{}", text.chars().last().unwrap_or('x')),
            Self::Last => format!("{}{}", but_last(text), next_to(text.chars().last())),
            Self::SpaceBefore => format!(" {text}"),
            Self::SpaceBehind => format!("{text} "),
        }
    }
}

/// Its first letter in the other case; one character more where it has none.
pub(super) fn in_other_case(text: &str) -> String {
    let Some(at) = text.find(|c: char| c.is_ascii_alphabetic()) else {
        return format!("{text}x");
    };
    let (before, rest) = text.split_at(at);
    let (letter, behind) = rest.split_at(1);
    let swapped = if letter.bytes().all(|b| b.is_ascii_uppercase()) {
        letter.to_ascii_lowercase()
    } else {
        letter.to_ascii_uppercase()
    };
    format!("{before}{swapped}{behind}")
}

/// Without the last character.
pub(super) fn but_last(text: &str) -> &str {
    let end = text.char_indices().last().map_or(0, |(at, _)| at);
    &text[..end]
}

/// A character of the same sort: SIDs stay hexadecimal.
fn next_to(last: Option<char>) -> char {
    match last {
        Some('0') => '1',
        Some(c) if c.is_ascii_digit() => '0',
        Some('a') => 'b',
        Some(c) if c.is_ascii_lowercase() => 'a',
        Some('A') => 'B',
        Some(c) if c.is_ascii_uppercase() => 'A',
        Some(_) | None => 'x',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_near_and_misses() {
        for (near, missed) in [
            (Near::OtherCase, "12aB"),
            (Near::Short, "12A"),
            (Near::Long, "12ABB"),
            (Near::Last, "12AA"),
            (Near::SpaceBefore, " 12AB"),
            (Near::SpaceBehind, "12AB "),
        ] {
            assert_eq!(near.miss("12AB"), missed);
        }
    }

    #[test]
    fn every_way_misses_every_text() {
        for text in ["", "a", "A", "0", "é", "12", "FW0123456789abcdef", "x y "] {
            for (near, name) in Near::ALL {
                let is_empty_cut = text.is_empty() && near == Near::Short;
                assert!(
                    is_empty_cut || near.miss(text) != text,
                    "{name} of {text:?}"
                );
                assert_eq!(Near::named(name), Some(near));
            }
        }
    }
}
