//! What keeps an exchange from being judged, as one word that reports and scripts may rely on.
//!
//! Deliberately no verdict: a fault makes a step inconclusive about the target, never a pass and
//! never a failure.

use std::fmt;

/// How many bytes of an incomplete body are kept as evidence.
pub(super) const PARTIAL_BYTES: usize = 4 * 1024;

/// Why an exchange brought no response that could be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {detail}")]
pub struct Fault {
    /// The stable word.
    pub cause: Cause,
    /// What was seen, for a person; bytes of others are escaped.
    pub detail: String,
    /// The status of the answer, when its head was complete.
    pub status: Option<u16>,
    /// The start of an incomplete body, at most 4 KiB.
    pub partial: Vec<u8>,
    /// True when the target could not be reached several times in a row, so that nothing further
    /// is tried.
    pub fatal: bool,
}

impl Fault {
    /// A fault without a body.
    pub(super) fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: detail.into(),
            status: None,
            partial: Vec::new(),
            fatal: false,
        }
    }

    /// True when the target could not even be connected to.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self.cause,
            Cause::Unresolved | Cause::Refused | Cause::ConnectTimeout | Cause::Unreachable
        )
    }

    /// The same fault with the start of what had come of the body.
    pub(super) fn within_body(mut self, status: u16, body: &[u8]) -> Self {
        self.status = Some(status);
        self.partial = body[..body.len().min(PARTIAL_BYTES)].to_vec();
        self
    }
}

/// The stable word for what went wrong. Its [`Display`](fmt::Display) form is part of the reports:
/// `refused`, `timeout(first-byte)`, `body-over-limit(4 MiB)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl Cause {
    /// One of each, with numbers where one has any.
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
        ]
    }

    /// What it means, and what to look at.
    pub const fn says(self) -> &'static str {
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
        })
    }
}

/// A number of bytes as people write it: `8 MiB`, `64 KiB`, `1000 B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KIB: u64 = 1024;
        const MIB: u64 = KIB * KIB;
        match self.0 {
            n if n >= MIB && n % MIB == 0 => write!(f, "{} MiB", n / MIB),
            n if n >= KIB && n % KIB == 0 => write!(f, "{} KiB", n / KIB),
            n => write!(f, "{n} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
    }

    #[test]
    fn at_most_four_kib_of_a_body_are_kept() {
        let fault = Fault::new(Cause::Truncated, "x").within_body(200, &vec![b'a'; 100_000]);
        assert_eq!(fault.partial.len(), PARTIAL_BYTES);
        assert_eq!(fault.status, Some(200));
    }
}
