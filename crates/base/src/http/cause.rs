//! Why a request has no response, as one stable word for reports, scripts and stored evidence.
//!
//! Not a verdict. The caller adds a description of what happened.

use crate::size::Size;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Cause of a missing response. Its [`Display`](fmt::Display) form is part of the reports:
/// `refused`, `timeout(first-byte)`, `body-over-limit(4 MiB)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The request cannot be encoded; nothing was sent.
    Unsendable,
    /// The host name did not resolve in time.
    Unresolved,
    /// Nothing listens at the address.
    Refused,
    /// No connection within the connect deadline.
    ConnectTimeout,
    /// The network is unreachable.
    Unreachable,
    /// The TLS handshake or the TLS stream failed.
    Tls,
    /// The target did not receive the whole request in time.
    WriteTimeout {
        /// Bytes sent.
        sent: u64,
        total: u64,
    },
    /// No byte of a response in time.
    FirstByteTimeout,
    /// The response headers were incomplete at the deadline.
    HeadersTimeout,
    /// The response body was incomplete at the deadline.
    BodyTimeout {
        /// Bytes received.
        got: u64,
        /// Bytes announced, if any.
        expected: Option<u64>,
    },
    /// The connection was reset before the response.
    Reset,
    /// The connection was closed without a response.
    EmptyResponse,
    /// The response is of another protocol.
    NotHttp,
    /// Malformed response headers.
    MalformedHead,
    /// The response headers exceed the limit.
    HeadOverLimit,
    /// Too many interim (1xx) responses.
    InterimOverLimit,
    /// The end of the body is ambiguous.
    Framing,
    /// The body exceeds this many bytes.
    BodyOverLimit(u64),
    /// The connection ended within the response.
    Truncated,
    /// The run was interrupted during this exchange.
    Interrupted,
    Unsent,
    /// A redirect that must not be followed.
    Redirect,
    /// The responses of one scenario exceed this many bytes in total.
    EvidenceOverLimit(u64),
    /// A recording has no response, or only part of it.
    NotRecorded,
    /// An unknown word in a file.
    Unknown(Word),
}

/// An unknown word. Only [`Cause::from_str`] creates one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(Box<str>);

impl Cause {
    /// One example of each cause.
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

    /// True if no connection was established.
    pub const fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Unresolved | Self::Refused | Self::ConnectTimeout | Self::Unreachable
        )
    }

    /// The meaning and what to check.
    pub const fn says(&self) -> &'static str {
        match self {
            Self::Unsendable => {
                "The request cannot be encoded; nothing was sent. Check the values that the scenario fills in."
            }
            Self::Unresolved => "The host name does not resolve. Check the target's url.",
            Self::Refused => {
                "Nothing listens at the address. Check that the service runs and that the port is correct."
            }
            Self::ConnectTimeout => "No connection in time (limits.connect). Check for a firewall.",
            Self::Unreachable => "The network is unreachable.",
            Self::Tls => {
                "The TLS handshake or stream failed. Check the certificate and the target's tls keys."
            }
            Self::WriteTimeout { .. } => {
                "The target did not receive the whole request in time (limits.timeout)."
            }
            Self::FirstByteTimeout => "No byte of a response in time (limits.timeout).",
            Self::HeadersTimeout => {
                "The response headers were not complete in time (limits.timeout)."
            }
            Self::BodyTimeout { .. } => {
                "The response body was not complete in time (limits.timeout)."
            }
            Self::Reset => "The connection was reset before the response.",
            Self::EmptyResponse => "The connection was closed without a response.",
            Self::NotHttp => "The response is not HTTP. Check whether the url needs https or http.",
            Self::MalformedHead => "The response headers are malformed.",
            Self::HeadOverLimit => "The response headers exceed the limit.",
            Self::InterimOverLimit => "Too many interim (1xx) responses.",
            Self::Framing => {
                "The end of the body is ambiguous: its length is given twice, or not at all."
            }
            Self::BodyOverLimit(_) => "The body exceeds limits.body.",
            Self::Truncated => "The connection ended within the response.",
            Self::Interrupted => "The run was interrupted during this exchange.",
            Self::Unsent => "Nothing was sent.",
            Self::Redirect => {
                "A redirect leaves the target or loops. Check the target's public_url."
            }
            Self::EvidenceOverLimit(_) => "The responses of one scenario exceed the limit.",
            Self::NotRecorded => "The recording holds no response, or a response without its body.",
            Self::Unknown(_) => "This version does not know the cause that the file names.",
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

    /// Parses the [`Display`](fmt::Display) form. Anything else becomes [`Cause::Unknown`], so that stored
    /// evidence round-trips unchanged.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_it = |cause: &Self| cause.to_string() == text;
        let plain = || Self::examples().into_iter().find(is_it);
        Ok(with_numbers(text)
            .filter(is_it)
            .or_else(plain)
            .unwrap_or_else(|| Self::Unknown(Word(text.into()))))
    }
}

/// Causes with numbers.
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
