//! Payloads of one type, each a document or a line of a file.

use super::document::DocumentJudge;
use super::fast_path::{FastPath, FastValidator};
use super::lines::{Judged, LineJudge, Quick};

/// The start of a note about an unreadable line.
pub(super) const NOT_READABLE: &str = "not a readable document: ";

/// The day of a time such as `2026-01-31T00:00:00Z`.
pub(super) fn day(time: &str) -> Option<&str> {
    let day = time.get(..10)?;
    let is_day = day.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    is_day.then_some(day)
}

/// The last day in a path such as `archive/2026-01-31/part.ndjson`; empty without one.
pub(super) fn day_of_path(path: &str) -> &str {
    let mut starts = path.char_indices().map(|(at, _)| at).rev();
    starts.find_map(|at| day(&path[at..])).unwrap_or_default()
}

/// Lines with payloads of one type.
#[derive(Debug)]
pub(super) struct Payloads<'a> {
    one: DocumentJudge<'a>,
    /// The day in the file's path.
    day: &'a str,
    kind: &'a str,
    fast_path: Option<FastPath>,
}

impl<'a> Payloads<'a> {
    pub(super) fn new(one: DocumentJudge<'a>, kind: &'a str) -> Self {
        let fast_path = FastPath::of(one.rulebook, kind);
        Self {
            one,
            day: day_of_path(one.name),
            kind,
            fast_path,
        }
    }
}

impl LineJudge for Payloads<'_> {
    type Quick<'q>
        = FastPayloads<'q>
    where
        Self: 'q;

    fn quick(&self) -> Option<FastPayloads<'_>> {
        let fast_path = self.fast_path.as_ref()?;
        Some(FastPayloads {
            kind: self.kind,
            validator: FastValidator::new(fast_path),
        })
    }

    fn full(&self, line: usize, bytes: &[u8]) -> Judged {
        match self.one.read(self.kind, line, bytes) {
            Ok(parsed) => {
                let judgment = self.one.payload(line, self.kind, parsed);
                let mut judged = Judged::one(self.kind, self.day, judgment);
                judged.rejected = judged.has_failure().then(|| bytes.to_vec());
                judged
            }
            Err(why) => self.unreadable(line, &why),
        }
    }

    fn unreadable(&self, line: usize, why: &str) -> Judged {
        Judged::unreadable(line, format!("{NOT_READABLE}{why}"))
    }
}

/// Fast path of payloads.
pub(super) struct FastPayloads<'g> {
    kind: &'g str,
    validator: FastValidator<'g>,
}

impl Quick for FastPayloads<'_> {
    fn line(&mut self, text: &[u8]) -> Option<usize> {
        self.validator.line(text)
    }

    fn finish(self) -> Judged {
        let (documents, judgment) = self.validator.finish();
        let mut judged = Judged {
            judgment,
            documents,
            ..Judged::default()
        };
        if documents > 0 {
            judged.sums.add_documents(self.kind, documents, 0);
        }
        judged
    }
}
