//! Why a file could not be judged.

/// An error of a file, or of the system.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Reading failed.
    #[error("failed to read {name}: {source}")]
    Unreadable {
        name: String,
        source: std::io::Error,
    },
    /// Too large to be read as a whole.
    #[error(
        "{name} is larger than {limit} bytes; files with one document a line (.ndjson) may have any size"
    )]
    TooLarge { name: String, limit: u64 },
    /// A format that is not read.
    #[error("{name} is {format}, expected {expected}; {PAGE} names what reads it")]
    Format {
        name: String,
        format: &'static str,
        expected: &'static str,
    },
    /// A JSON document where a text is expected.
    #[error("{name} is a JSON document, expected {expected}; `--as TYPE` names its type")]
    Document {
        name: String,
        expected: &'static str,
    },
    #[error("{name} is empty, expected {expected}")]
    Empty {
        name: String,
        expected: &'static str,
    },
    /// A file with one document that cannot be read.
    #[error("{name} is not a readable document: {why}; {PAGE} lists the formats that are read")]
    Malformed { name: String, why: String },
    /// Several documents where one document is expected.
    #[error(
        "{name} is {}{count} documents, expected one document; judge each of them: jq -c {}{file} | conformant check - --as {kind}",
        if *.is_list { "a list of " } else { "" },
        if *.is_list { "'.[]'" } else { "." }
    )]
    Several {
        name: String,
        count: usize,
        /// Whether they are the items of a list; otherwise they follow each other.
        is_list: bool,
        /// The file as an argument; empty for standard input.
        file: String,
        kind: String,
    },
    /// A wire header before something that is not JSON.
    #[error(
        "{name}{place}: a Confluent wire header with schema id {id} before a payload that is not JSON, such as Avro or Protobuf; expected JSON after the header; {PAGE} names what reads it"
    )]
    Binary {
        name: String,
        /// `, line 7`, or nothing.
        place: String,
        id: String,
    },
    /// A line could not be set aside.
    #[error("failed to set lines aside: {0}")]
    NotSetAside(std::io::Error),
}

/// Where other formats are described.
const PAGE: &str = "the page Archives (docs/src/archives.md)";

impl CheckError {
    /// The error for a failure to read the file of that name.
    pub(super) fn unreadable(name: &str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Unreadable {
            name: name.to_owned(),
            source,
        }
    }

    /// True for an invalid file, false for an error of the system.
    pub fn is_usage(&self) -> bool {
        use std::io::ErrorKind;
        let Self::Unreadable { source, .. } = self else {
            return !matches!(self, Self::NotSetAside(_));
        };
        matches!(
            source.kind(),
            ErrorKind::InvalidData
                | ErrorKind::InvalidInput
                | ErrorKind::UnexpectedEof
                | ErrorKind::FileTooLarge
        )
    }
}
