//! Offline judging of files: payloads, NDJSON with one payload a line, HAR, registration tokens and QR codes.
//!
//! Applies the rules of a run that need no more than a file contains.

mod aside;
mod blocks;
mod checker;
mod document;
mod envelope;
mod error;
mod fast_path;
mod har;
mod inline;
mod kind;
mod lines;
mod mistaken;
mod payloads;
mod sniff;
mod stream;
mod token;
mod traffic;
mod unknown_types;
mod wire;

pub use aside::SetAside;
pub use checker::{Checker, Counts};
pub use envelope::Mapping;
pub use error::CheckError;
pub use inline::{Inline, Passed};
pub use kind::{Kind, KindError};
pub use sniff::format as format_of;
pub use token::{judge_qr, judge_token};
pub use unknown_types::UnknownType;

use conformant_base::clock::Timestamp;
use conformant_base::http::Headers;
use serde_json::Value;
use std::collections::BTreeMap;

/// Name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// Context of files in addition to the rulebook.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Values of the configuration, by service: `/auth/application/name`.
    pub configured: Value,
    /// Key of the application, if known.
    pub api_key: Option<String>,
    /// Base address by service; without any, recorded traffic is matched by path.
    pub targets: BTreeMap<String, String>,
    /// Name of each hook by the URL that recorded traffic calls it at.
    pub hooks: BTreeMap<String, String>,
    /// By service, the header fields by which requests of a second account are recognized.
    pub second_accounts: BTreeMap<String, Headers>,
    /// Time at which tokens are judged.
    pub now: Option<Timestamp>,
    /// Whether recorded traffic is the only writer.
    pub alone: bool,
    /// Threads that judge lines in parallel.
    pub jobs: usize,
    /// Side of traffic to judge.
    pub sides: Sides,
}

/// Side of traffic to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// Requests and responses.
    #[default]
    Both,
    /// Requests of clients.
    Requests,
    /// Responses of services.
    Responses,
}

impl Sides {
    /// Whether requests are judged.
    pub const fn has_requests(self) -> bool {
        !matches!(self, Self::Responses)
    }

    /// Whether responses are judged.
    pub const fn has_responses(self) -> bool {
        !matches!(self, Self::Requests)
    }
}
