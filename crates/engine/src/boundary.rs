//! Boundary-invalid values: the smallest changes that make a valid text wrong.
//!
//! The rules decide whether they must be rejected.

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoundaryChange {
    /// Changes the case of the first letter.
    OtherCase,
    /// Drops the last character.
    Short,
    /// Repeats the last character.
    Long,
    /// Replaces the last character by its successor.
    Last,
    /// Adds a space in front.
    SpaceBefore,
    /// Adds a space at the end.
    SpaceBehind,
}

impl BoundaryChange {
    /// All changes with their names in scenarios.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::OtherCase, "other-case"),
        (Self::Short, "short"),
        (Self::Long, "long"),
        (Self::Last, "last"),
        (Self::SpaceBefore, "space-before"),
        (Self::SpaceBehind, "space-behind"),
    ];

    /// The change of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(near, known)| (known == name).then_some(near))
    }

    /// The changed text, which always differs from `text`.
    pub(super) fn apply(self, text: &str) -> String {
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

/// Changes the case of the first letter; appends a character if there is none.
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

/// Drops the last character.
pub(super) fn but_last(text: &str) -> &str {
    let end = text.char_indices().last().map_or(0, |(at, _)| at);
    &text[..end]
}

/// A character of the same class: SIDs stay hexadecimal.
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
    fn each_change_is_small_and_differs() {
        for (near, missed) in [
            (BoundaryChange::OtherCase, "12aB"),
            (BoundaryChange::Short, "12A"),
            (BoundaryChange::Long, "12ABB"),
            (BoundaryChange::Last, "12AA"),
            (BoundaryChange::SpaceBefore, " 12AB"),
            (BoundaryChange::SpaceBehind, "12AB "),
        ] {
            assert_eq!(near.apply("12AB"), missed);
        }
    }

    #[test]
    fn every_change_alters_every_text() {
        for text in ["", "a", "A", "0", "é", "12", "FW0123456789abcdef", "x y "] {
            for (near, name) in BoundaryChange::ALL {
                let is_empty_cut = text.is_empty() && near == BoundaryChange::Short;
                assert!(
                    is_empty_cut || near.apply(text) != text,
                    "{name} of {text:?}"
                );
                assert_eq!(BoundaryChange::named(name), Some(near));
            }
        }
    }
}
