//! What a file contains: the type that it is judged as.

use super::Mapping;
use conformant_rulebook::Rulebook;
use conformant_rulebook::service::ServiceIndex;

/// Type of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A representation of the rulebook: `flow/execution`, `chat/channel[]`, `events/MessageSent/4`.
    Representation(String),
    /// A registration token in its compact form.
    Token,
    /// The text of a registration's QR code.
    Qr,
    /// Recorded traffic.
    Har,
    /// Captured events with type, schema address and payload.
    Events(Mapping),
}

/// Why a name is not a type that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// An event type without a documented payload.
    #[error("the documents do not describe the payload of {0}, so that it cannot be judged")]
    NotShown(String),
    #[error("unknown type `{name}`; {help}")]
    Unknown {
        name: String,
        /// A similar name, or how to list all.
        help: String,
    },
}

impl Kind {
    /// Parses `--as`; an event type means its present schema.
    pub fn parse(rulebook: &Rulebook, text: &str) -> Result<Self, KindError> {
        match text {
            "token" => return Ok(Self::Token),
            "qr" => return Ok(Self::Qr),
            "har" => return Ok(Self::Har),
            "events" => return Ok(Self::Events(Mapping::default())),
            _ if rulebook.kinds.contains_key(text) => {
                return Ok(Self::Representation(text.to_owned()));
            }
            _ => {}
        }
        match rulebook.event_types.get(text) {
            Some(Some(kind)) => return Ok(Self::Representation(kind.clone())),
            Some(None) => {
                return Err(KindError::NotShown(text.to_owned()));
            }
            None => {}
        }
        let mut known = vec!["token", "qr", "har", "events"];
        known.extend(rulebook.kinds.keys().map(String::as_str));
        known.extend(rulebook.event_types.keys().map(String::as_str));
        let near = conformant_base::text::did_you_mean(text, &known);
        let help = near.map_or_else(
            || "see `conformant list kinds`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let name = text.to_owned();
        Err(KindError::Unknown { name, help })
    }

    /// Whether files may have one document per line.
    pub fn has_lines(&self) -> bool {
        matches!(self, Self::Representation(_) | Self::Events(_))
    }

    /// The expected content of a file.
    pub(crate) fn expected(&self, by_line: bool) -> &'static str {
        match self {
            _ if by_line => "one JSON document a line",
            Self::Representation(_) => "a JSON document",
            Self::Events(_) => "JSON with events",
            Self::Har => "recorded traffic in JSON (HAR)",
            Self::Token => "a token",
            Self::Qr => "the text of a QR code",
        }
    }

    /// Whether rules of that service judge it.
    pub(crate) fn is_of(&self, index: &ServiceIndex, service: &str) -> bool {
        match self {
            Self::Representation(kind) => kind.split('/').next() == Some(service),
            Self::Token | Self::Qr => index.token_reader() == Some(service),
            Self::Events(_) => index.feeds().contains(&service),
            Self::Har => true,
        }
    }
}
