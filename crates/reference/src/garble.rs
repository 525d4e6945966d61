//! Ways to lose or change characters of a text.

use conformant_base::http;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Garble {
    /// Surrounding spaces are lost.
    Trimmed,
    /// Upper case is lost.
    Lowered,
    /// Letters with a combining acute accent are composed.
    Composed,
    /// HTML markup is escaped.
    Escaped,
    /// Cut after this number of characters.
    Cut(usize),
    /// Only the date of a time remains.
    TimeDropped,
    /// A phone number has a space after its first digit.
    PhoneSpaced,
    /// Form-decoded twice: a plus sign becomes a space.
    PlusIsSpace,
    /// Percent escapes are decoded, unless there is a percent sign that begins none.
    PercentDecoded,
    /// Line ends are lost.
    NewlinesDropped,
    /// Characters beyond the basic plane, such as emoji, are lost.
    EmojiDropped,
    /// Characters beyond ASCII are lost.
    AsciiOnly,
    /// The query after a path is lost.
    QueryDropped,
    /// Several spaces become one.
    SpacesCollapsed,
    /// Read as Latin-1 instead of UTF-8.
    Latin1,
    Reversed,
    /// Only the part before `@` remains.
    BeforeAt,
    /// The offset of a time becomes the designator of GMT.
    OffsetDropped,
}

impl Garble {
    pub(super) fn apply(self, text: &str) -> String {
        match self {
            Self::Trimmed => text.trim().to_owned(),
            Self::Lowered => text.to_lowercase(),
            Self::Composed => composed(text),
            Self::Escaped => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
            Self::Cut(count) => text.chars().take(count).collect(),
            Self::TimeDropped => text.split('T').next().unwrap_or_default().to_owned(),
            Self::PhoneSpaced => match text.split_at_checked(2) {
                Some((start, rest)) if start.starts_with('+') && rest.len() > 3 => {
                    format!("{start} {rest}")
                }
                _ => text.to_owned(),
            },
            Self::PlusIsSpace => text.replace('+', " "),
            Self::PercentDecoded => percent_decoded(text).unwrap_or_else(|| text.to_owned()),
            Self::NewlinesDropped => text.replace(['\r', '\n'], ""),
            Self::EmojiDropped => text.chars().filter(|c| *c <= '\u{ffff}').collect(),
            Self::AsciiOnly => text.chars().filter(char::is_ascii).collect(),
            Self::QueryDropped => text.split('?').next().unwrap_or_default().to_owned(),
            Self::SpacesCollapsed if text.contains("  ") => {
                let words: Vec<_> = text.split(' ').filter(|word| !word.is_empty()).collect();
                words.join(" ")
            }
            Self::SpacesCollapsed => text.to_owned(),
            Self::Latin1 => text.bytes().map(char::from).collect(),
            Self::Reversed => text.chars().rev().collect(),
            Self::BeforeAt => text.split('@').next().unwrap_or_default().to_owned(),
            Self::OffsetDropped => match text.split_at_checked(text.len().saturating_sub(6)) {
                Some((time, offset)) if offset.starts_with(['+', '-']) && offset.contains(':') => {
                    format!("{time}Z")
                }
                _ => text.to_owned(),
            },
        }
    }
}

/// The decoded text; `None` where a percent sign begins no escape.
fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%').skip(1);
    let is_escape = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    parts.all(is_escape).then(|| http::percent_decode(text))
}

fn composed(text: &str) -> String {
    const ACUTE: [(&str, &str); 5] = [
        ("a\u{301}", "á"),
        ("e\u{301}", "é"),
        ("i\u{301}", "í"),
        ("o\u{301}", "ó"),
        ("u\u{301}", "ú"),
    ];
    ACUTE
        .iter()
        .fold(text.to_owned(), |text, (two, one)| text.replace(two, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_changes_only_its_characters() {
        for (garble, before, after) in [
            (Garble::Trimmed, " a b\n", "a b"),
            (Garble::Lowered, "Ann", "ann"),
            (Garble::Composed, "cafe\u{301}", "café"),
            (Garble::Escaped, "<b>&", "&lt;b&gt;&amp;"),
            (Garble::Cut(3), "éabc", "éab"),
            (Garble::TimeDropped, "20200102T030405Z", "20200102"),
            (Garble::TimeDropped, "2020-01-02T03:04:05Z", "2020-01-02"),
            (Garble::PhoneSpaced, "+12025", "+1 2025"),
            (Garble::PlusIsSpace, "1+1", "1 1"),
            (Garble::PercentDecoded, "%41+b", "A+b"),
            (Garble::PercentDecoded, "%41 100%", "%41 100%"),
            (Garble::NewlinesDropped, "a\r\nb", "ab"),
            (Garble::EmojiDropped, "hé😀", "hé"),
            (Garble::AsciiOnly, "hé😀", "h"),
            (Garble::QueryDropped, "http://x/?a=b", "http://x/"),
            (Garble::SpacesCollapsed, " a  b", "a b"),
            (Garble::Latin1, "é", "Ã©"),
            (Garble::BeforeAt, "ann@x.example", "ann"),
            (
                Garble::OffsetDropped,
                "2020-01-02T03:04:05-05:00",
                "2020-01-02T03:04:05Z",
            ),
        ] {
            assert_eq!(garble.apply(before), after, "{garble:?}");
            let plain = garble.apply("plain text");
            assert!(matches!(garble, Garble::Cut(_)) || plain == "plain text");
        }
    }
}
