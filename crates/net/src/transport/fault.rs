//! Why an exchange has no judgeable response.
//!
//! Not a verdict: a fault makes a step inconclusive, never passed or failed.

use conformant_base::http::Cause;

/// Bytes of an incomplete body kept as evidence.
pub(super) const PARTIAL_BYTES: usize = 4 * 1024;

/// Why an exchange has no judgeable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {detail}")]
pub struct Fault {
    pub cause: Cause,
    /// A description with escaped bytes.
    pub detail: String,
    /// The status, if the head was complete.
    pub status: Option<u16>,
    /// The start of an incomplete body, at most 4 KiB.
    pub partial: Vec<u8>,
    /// True after several failed connections in a row: the target is given up.
    pub fatal: bool,
    /// True if the request was sent on a kept connection that may have been closed before. This says
    /// nothing about the target, and the request may have been executed.
    pub on_kept: bool,
}

impl Fault {
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

    /// True if no connection was established.
    pub fn is_unreachable(&self) -> bool {
        self.cause.is_unreachable()
    }

    /// Adds the start of the received body.
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
