//! Why a request brought no response, as one word that reports, scripts and kept evidence rely on.
//!
//! Deliberately no verdict, and no text for a person: who names a cause says beside it what was seen.

use crate::text::Size;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The stable word for what went wrong. Its [`Display`](fmt::Display) form is part of the reports:
/// `refused`, `timeout(first-byte)`, `body-over-limit(4 MiB)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The request itself cannot be put on a wire; nothing was sent.
    Unsendable,
    /// The host's name has no address, or none was found in time.
    Unresolved,
    /// Nothing listens at the address.
    Refused,
    /// No connection within the connect deadline.
    ConnectTimeout,
    /// The network could not take us there.
    Unreachable,
    /// The TLS handshake or the TLS stream failed.
    Tls,
    /// The target did not take the whole request in time.
    WriteTimeout {
        /// Bytes it took.
        sent: u64,
        /// Bytes of the whole request.
        total: u64,
    },
    /// Not one byte of an answer in time.
    FirstByteTimeout,
    /// The head of the answer was not complete in time.
    HeadersTimeout,
    /// The body of the answer was not complete in time.
    BodyTimeout {
        /// Bytes that came.
        got: u64,
        /// Bytes that were announced, when they were.
        expected: Option<u64>,
    },
    /// The connection was reset before a byte of the answer.
    Reset,
    /// The connection was closed without an answer.
    EmptyResponse,
    /// What came is another protocol.
    NotHttp,
    /// The head of the answer breaks HTTP's grammar.
    MalformedHead,
    /// The head of the answer is longer than we read.
    HeadOverLimit,
    /// More interim (1xx) answers than we read.
    InterimOverLimit,
    /// Where the body ends cannot be told for certain.
    Framing,
    /// The body is longer than that many bytes.
    BodyOverLimit(u64),
    /// The connection ended within the answer.
    Truncated,
    /// The run was interrupted while this exchange was under way.
    Interrupted,
    /// Nothing was sent yet.
    Unsent,
    /// A redirect to where nobody may follow.
    Redirect,
    /// The answers of one story are longer in all than that many bytes.
    EvidenceOverLimit(u64),
    /// A recording holds no answer, or not all of it.
    NotRecorded,
    /// A word that a file names and that is none of these.
    Unknown(Word),
}

/// A word that is none of our own, as it was read: [`Cause::from_str`] alone makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(Box<str>);

impl Cause {
    /// One of each that has a word of its own, with numbers where one has any.
    pub fn examples() -> Vec<Self> {
        vec![
            Self::Unsendable,
            Self::Unresolved,
            Self::Refused,
            Self::ConnectTimeout,
            Self::Unreachable,
            Self::Tls,
            Self::WriteTimeout { sent: 1, total: 2 },
            Self::FirstByteTimeout,
            Self::HeadersTimeout,
            Self::BodyTimeout {
                got: 1,
                expected: Some(2),
            },
            Self::Reset,
            Self::EmptyResponse,
            Self::NotHttp,
            Self::MalformedHead,
            Self::HeadOverLimit,
            Self::InterimOverLimit,
            Self::Framing,
            Self::BodyOverLimit(8 << 20),
            Self::Truncated,
            Self::Interrupted,
            Self::Unsent,
            Self::Redirect,
            Self::EvidenceOverLimit(10 << 20),
            Self::NotRecorded,
        ]
    }

    /// True when the target could not even be connected to.
    pub const fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Unresolved | Self::Refused | Self::ConnectTimeout | Self::Unreachable
        )
    }

    /// What it means, and what to look at.
    pub const fn says(&self) -> &'static str {
        match self {
            Self::Unsendable => {
                "The request cannot be put on a wire; nothing was sent. Look at what the scenario fills in."
            }
            Self::Unresolved => "The host's name has no address. Look at the target's url.",
            Self::Refused => {
                "Nothing listens at the address. Is the service up, and the port right?"
            }
            Self::ConnectTimeout => "No connection in time. Is there a firewall between?",
            Self::Unreachable => "The network could not take us there.",
            Self::Tls => {
                "The TLS handshake or stream failed. Look at the certificate, and at the target's tls keys."
            }
            Self::WriteTimeout { .. } => {
                "The target did not take the whole request in time (limits.timeout)."
            }
            Self::FirstByteTimeout => "Not one byte of an answer in time (limits.timeout).",
            Self::HeadersTimeout => {
                "The head of the answer was not complete in time (limits.timeout)."
            }
            Self::BodyTimeout { .. } => {
                "The body of the answer was not complete in time (limits.timeout)."
            }
            Self::Reset => "The connection was reset before a byte of the answer.",
            Self::EmptyResponse => "The connection was closed without an answer.",
            Self::NotHttp => {
                "What came is another protocol. Is it https in place of http, or the other way round?"
            }
            Self::MalformedHead => "The head of the answer breaks HTTP's grammar.",
            Self::HeadOverLimit => "The head of the answer is longer than is read.",
            Self::InterimOverLimit => "More interim (1xx) answers came than are read.",
            Self::Framing => {
                "Where the body ends cannot be told for certain: its length is said twice, or not at all."
            }
            Self::BodyOverLimit(_) => "The body is longer than is read (limits.body).",
            Self::Truncated => "The connection ended within the answer.",
            Self::Interrupted => "The run was ended while this exchange was under way.",
            Self::Unsent => "Nothing was sent.",
            Self::Redirect => {
                "A redirect leads to where nobody may follow, or to no end. Look at public_url of the target."
            }
            Self::EvidenceOverLimit(_) => {
                "The answers of one story are longer in all than is kept."
            }
            Self::NotRecorded => "The recording holds no answer, or an answer without its body.",
            Self::Unknown(_) => "A file names it; this version of the program has no such cause.",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsendable => "unsendable",
            Self::Unresolved => "unresolved",
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::WriteTimeout { sent, total } => {
                return write!(f, "timeout(write, {sent}/{total})");
            }
            Self::FirstByteTimeout => "timeout(first-byte)",
            Self::HeadersTimeout => "timeout(headers)",
            Self::BodyTimeout { got, expected } => {
                return match expected {
                    Some(expected) => write!(f, "timeout(body, {got}/{expected})"),
                    None => write!(f, "timeout(body, {got}/unknown)"),
                };
            }
            Self::Reset => "reset",
            Self::EmptyResponse => "empty-response",
            Self::NotHttp => "not-http",
            Self::MalformedHead => "malformed-head",
            Self::HeadOverLimit => "head-over-limit",
            Self::InterimOverLimit => "interim-over-limit",
            Self::Framing => "framing",
            Self::BodyOverLimit(limit) => return write!(f, "body-over-limit({})", Size(*limit)),
            Self::Truncated => "truncated",
            Self::Interrupted => "interrupted",
            Self::Unsent => "unsent",
            Self::Redirect => "redirect",
            Self::EvidenceOverLimit(limit) => {
                return write!(f, "evidence-over-limit({})", Size(*limit));
            }
            Self::NotRecorded => "not-recorded",
            Self::Unknown(Word(word)) => word,
        })
    }
}

impl FromStr for Cause {
    type Err = Infallible;

    /// Reads what [`Display`](fmt::Display) writes. What would be written in another way stays the word it is,
    /// so that evidence that is read and kept again is the same to the letter.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_it = |cause: &Self| cause.to_string() == text;
        let plain = || Self::examples().into_iter().find(is_it);
        Ok(with_numbers(text)
            .filter(is_it)
            .or_else(plain)
            .unwrap_or_else(|| Self::Unknown(Word(text.into()))))
    }
}

/// The causes that have numbers, however these are written.
fn with_numbers(text: &str) -> Option<Cause> {
    let (word, numbers) = text.strip_suffix(')')?.split_once('(')?;
    let size = || numbers.parse().ok().map(|Size(bytes)| bytes);
    match word {
        "body-over-limit" => size().map(Cause::BodyOverLimit),
        "evidence-over-limit" => size().map(Cause::EvidenceOverLimit),
        "timeout" => {
            let (what, bytes) = numbers.split_once(", ")?;
            let (done, whole) = bytes.split_once('/')?;
            let (done, whole) = (done.parse().ok()?, whole.parse().ok());
            match what {
                "write" => whole.map(|total| Cause::WriteTimeout { sent: done, total }),
                "body" => Some(Cause::BodyTimeout {
                    got: done,
                    expected: whole,
                }),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Ok(cause) = String::deserialize(from)?.parse();
        Ok(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn cause_words_are_stable() {
        for (cause, word) in [
            (Cause::Refused, "refused"),
            (Cause::FirstByteTimeout, "timeout(first-byte)"),
            (Cause::HeadersTimeout, "timeout(headers)"),
            (
                Cause::BodyTimeout {
                    got: 3,
                    expected: Some(10),
                },
                "timeout(body, 3/10)",
            ),
            (
                Cause::BodyTimeout {
                    got: 3,
                    expected: None,
                },
                "timeout(body, 3/unknown)",
            ),
            (
                Cause::WriteTimeout { sent: 1, total: 2 },
                "timeout(write, 1/2)",
            ),
            (Cause::BodyOverLimit(4 << 20), "body-over-limit(4 MiB)"),
            (Cause::BodyOverLimit(64 << 10), "body-over-limit(64 KiB)"),
            (Cause::BodyOverLimit(1000), "body-over-limit(1000 B)"),
        ] {
            assert_eq!(cause.to_string(), word);
            assert_eq!(word.parse(), Ok(cause));
        }
    }

    #[test]
    fn each_is_read_as_it_was_written() {
        for cause in Cause::examples() {
            let kept = serde_json::to_string(&cause).expect("a word is JSON");
            assert_eq!(kept, format!("\"{cause}\""));
            assert_eq!(serde_json::from_str::<Cause>(&kept).ok(), Some(cause));
        }
    }

    #[test]
    fn what_is_not_ours_stays_the_word_it_is() {
        for word in [
            "",
            "Refused",
            "timeout",
            "timeout(connect)",
            "timeout(body, 03/10)",
            "timeout(body, 3/none)",
            "timeout(write, 1/unknown)",
            "body-over-limit(1024 KiB)",
            "body-over-limit(99999999999999999999 MiB)",
            "evidence-over-limit(10MiB)",
            "redirect()",
        ] {
            let Ok(read) = word.parse::<Cause>();
            assert!(matches!(read, Cause::Unknown(_)), "{word}: {read:?}");
            assert_eq!(read.to_string(), word);
        }
    }

    #[test]
    fn the_examples_leave_none_out() {
        let source = include_str!("cause.rs").lines();
        let body = source.skip_while(|line| !line.starts_with("pub enum Cause"));
        let body = body.skip(1).take_while(|line| *line != "}");
        let name = |text: &str| {
            text.split(|c: char| !c.is_alphanumeric())
                .next()
                .map(str::to_owned)
        };
        let variants = body.filter_map(|line| line.strip_prefix("    "));
        let variants = variants.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        let declared: BTreeSet<_> = variants.filter_map(name).collect();
        let shown = Cause::examples()
            .into_iter()
            .map(|cause| format!("{cause:?}"));
        let shown = shown.chain(["Unknown".to_owned()]);
        assert_eq!(
            shown
                .filter_map(|text| name(&text))
                .collect::<BTreeSet<_>>(),
            declared
        );
    }
}
