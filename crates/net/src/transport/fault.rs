//! What keeps an exchange from being judged: its cause, and what was seen of it.
//!
//! Deliberately no verdict: a fault makes a step inconclusive about the target, never a pass and
//! never a failure.

use conformant_base::http::Cause;

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
    /// True when the request was sent on a kept connection, which may have ended before it came: that says nothing of
    /// the target, and it may have been carried out or not.
    pub on_kept: bool,
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
            on_kept: false,
        }
    }

    /// True when the target could not even be connected to.
    pub fn is_unreachable(&self) -> bool {
        self.cause.is_unreachable()
    }

    /// The same fault with the start of what had come of the body.
    pub(super) fn within_body(mut self, status: u16, body: &[u8]) -> Self {
        self.status = Some(status);
        self.partial = body[..body.len().min(PARTIAL_BYTES)].to_vec();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_four_kib_of_a_body_are_kept() {
        let fault = Fault::new(Cause::Truncated, "x").within_body(200, &vec![b'a'; 100_000]);
        assert_eq!(fault.partial.len(), PARTIAL_BYTES);
        assert_eq!(fault.status, Some(200));
    }
}
