//! Reading `multipart/form-data` as far as it can be read: which part holds what. Refuses nothing.

/// A part of a body as it was received: its name and, for a file, the file's name and media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<'b> {
    /// The name of the field.
    pub name: String,
    /// The file's name, where it is one.
    pub file_name: Option<String>,
    /// The media type, where it is given.
    pub media_type: Option<String>,
    /// What it holds.
    pub content: &'b [u8],
}

/// The parts of a body, as far as they can be read; none where the media type has no boundary.
pub fn received<'b>(content_type: &str, body: &'b [u8]) -> Vec<Received<'b>> {
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
            parts.push(Received {
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
    field.split(';').skip(1).find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        key.trim()
            .eq_ignore_ascii_case(name)
            .then(|| inner.unwrap_or(value).to_owned())
    })
}
