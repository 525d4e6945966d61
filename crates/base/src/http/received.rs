//! Lenient parser of `multipart/form-data`. Refuses nothing.

/// A received part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedPart<'b> {
    pub name: String,
    pub file_name: Option<String>,
    pub media_type: Option<String>,
    pub content: &'b [u8],
}

/// The readable parts of a body; none without a boundary in the media type.
pub fn multipart_parts<'b>(content_type: &str, body: &'b [u8]) -> Vec<ReceivedPart<'b>> {
    let Some(boundary) = parameter(content_type, "boundary").filter(|b| !b.is_empty()) else {
        return Vec::new();
    };
    let delimiter = format!("--{boundary}");
    let marks: Vec<usize> = memchr::memmem::find_iter(body, delimiter.as_bytes()).collect();
    let mut parts = Vec::new();
    for (mark, next) in marks.iter().zip(marks.iter().skip(1)) {
        let part = &body[mark + delimiter.len()..*next];
        let Some(at) = memchr::memmem::find(part, b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&part[..at]).into_owned();
        let content = &part[at + 4..];
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        let field = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(n, _)| n.trim().eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let disposition = field("Content-Disposition").unwrap_or_default();
        if let Some(name) = parameter(&disposition, "name") {
            parts.push(ReceivedPart {
                name,
                file_name: parameter(&disposition, "filename"),
                media_type: field("Content-Type"),
                content,
            });
        }
    }
    parts
}

/// A parameter of a header field: `form-data; name="media"`.
fn parameter(field: &str, name: &str) -> Option<String> {
    let mut is_quoted = false;
    let mut pairs = field.split(|c| {
        is_quoted ^= c == '"';
        c == ';' && !is_quoted
    });
    pairs.by_ref().skip(1).find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        key.trim()
            .eq_ignore_ascii_case(name)
            .then(|| inner.unwrap_or(value).to_owned())
    })
}
