//! Writes `multipart/form-data` bodies in memory; identical parts give identical bytes.

use super::encode::{self, EncodeError};
use conformant_base::text;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// A body under construction.
#[derive(Clone, Debug, Default)]
pub struct Multipart<'c> {
    parts: Vec<Part<'c>>,
}

#[derive(Clone, Debug)]
struct Part<'c> {
    head: String,
    content: Cow<'c, [u8]>,
}

impl<'c> Multipart<'c> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plain field.
    #[must_use]
    pub fn text(mut self, name: &str, value: &'c str) -> Self {
        self.parts.push(Part {
            head: format!(
                "Content-Disposition: form-data; name=\"{}\"\r\n\r\n",
                quoted(name)
            ),
            content: Cow::Borrowed(value.as_bytes()),
        });
        self
    }

    /// Adds a file with its name and media type.
    pub fn file(
        mut self,
        name: &str,
        file_name: &str,
        media_type: &str,
        content: impl Into<Cow<'c, [u8]>>,
    ) -> Result<Self, EncodeError> {
        encode::header("Content-Type", media_type)?;
        self.parts.push(Part {
            head: format!(
                "Content-Disposition: form-data; name=\"{}\"; filename=\"{}\"\r\nContent-Type: {media_type}\r\n\r\n",
                quoted(name),
                quoted(file_name),
            ),
            content: content.into(),
        });
        Ok(self)
    }

    /// The `Content-Type` and the body. The boundary is derived from the parts and occurs in none.
    pub fn finish(&self) -> (String, Vec<u8>) {
        let boundary = self.boundary();
        let size: usize = self
            .parts
            .iter()
            .map(|p| p.head.len() + p.content.len())
            .sum();
        let mut body = Vec::with_capacity(size + (self.parts.len() + 1) * (boundary.len() + 8));
        for part in &self.parts {
            body.extend_from_slice(format!("--{boundary}\r\n{}", part.head).as_bytes());
            body.extend_from_slice(&part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (format!("multipart/form-data; boundary={boundary}"), body)
    }

    fn boundary(&self) -> String {
        let mut digest = Sha256::new();
        for part in &self.parts {
            digest.update(part.head.as_bytes());
            digest.update((part.content.len() as u64).to_be_bytes());
            digest.update(&part.content);
        }
        (0..u64::MAX)
            .map(|attempt| {
                let digest = digest
                    .clone()
                    .chain_update(attempt.to_be_bytes())
                    .finalize();
                format!("part-{}", text::hex(digest.into_iter().take(16)))
            })
            .find(|boundary| !self.parts.iter().any(|p| p.holds(boundary.as_bytes())))
            .expect("a body of bounded size cannot hold every boundary")
    }
}

impl Part<'_> {
    fn holds(&self, needle: &[u8]) -> bool {
        let found = |hay: &[u8]| memchr::memmem::find(hay, needle).is_some();
        found(self.head.as_bytes()) || found(&self.content)
    }
}

/// A name as browsers write it: only quotes and line breaks are percent-encoded.
fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::http::multipart_parts;

    fn body(parts: &Multipart<'_>) -> (String, String) {
        let (media_type, body) = parts.finish();
        let boundary = media_type
            .split_once("boundary=")
            .expect("a boundary")
            .1
            .to_owned();
        (boundary, String::from_utf8(body).expect("text parts"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written = Multipart::new()
            .text("note", "a\r\nb")
            .file("media", "dot.png", "image/png", b"\x89PNG\r\n\r\n--")
            .expect("it can be written");
        let (content_type, body) = written.finish();
        let read = multipart_parts(&content_type, &body);
        let shown: Vec<_> = read
            .iter()
            .map(|p| (p.name.as_str(), p.file_name.as_deref(), p.content))
            .collect();
        assert_eq!(
            shown,
            [
                ("note", None, &b"a\r\nb"[..]),
                ("media", Some("dot.png"), &b"\x89PNG\r\n\r\n--"[..])
            ]
        );
        assert_eq!(read[1].media_type.as_deref(), Some("image/png"));
        assert_eq!(multipart_parts("multipart/form-data", &body), []);
        assert_eq!(multipart_parts(&content_type, &body[..20]), []);
    }

    #[test]
    fn parts_stand_in_order_with_names_that_cannot_break_out() {
        let parts = Multipart::new()
            .text("a\"\r\nX: y", "1")
            .file("media", "p\"q.png", "image/png", b"bytes\r\n")
            .expect("a media type");
        let (boundary, text) = body(&parts);
        assert_eq!(
            text.replace(&boundary, "B"),
            "--B\r\nContent-Disposition: form-data; name=\"a%22%0D%0AX: y\"\r\n\r\n1\r\n\
             --B\r\nContent-Disposition: form-data; name=\"media\"; filename=\"p%22q.png\"\r\n\
             Content-Type: image/png\r\n\r\nbytes\r\n\r\n--B--\r\n"
        );
        assert_eq!(
            body(&parts),
            (boundary, text),
            "the same parts, the same bytes"
        );
    }

    #[test]
    fn the_boundary_never_occurs_in_a_part() {
        let plain = Multipart::new().text("a", "x");
        let first = body(&plain).0;
        let within = body(&plain).1;
        let nested = Multipart::new().text("a", &within);
        let (boundary, text) = body(&nested);
        assert_ne!(boundary, first);
        assert_eq!(text.matches(&boundary).count(), 2);
    }

    #[test]
    fn a_media_type_with_a_line_break_is_refused() {
        assert!(Multipart::new().file("m", "f", "a/b\r\nX: y", b"").is_err());
    }
}
