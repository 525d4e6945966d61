//! Decodes an entry of a recording in HAR 1.2.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Headers, Request, Response};
use conformant_engine::request::{self, EncodeError};
use conformant_judge::evidence::Span;
use serde::Deserialize;
use std::time::Duration;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    #[serde(default)]
    started_date_time: String,
    time: Option<f64>,
    pub(super) request: RecordedRequest,
    pub(super) response: RecordedResponse,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordedRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Field>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    name: String,
    #[serde(default)]
    value: String,
    file_name: Option<String>,
    content_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostData {
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
    #[serde(default)]
    params: Vec<Field>,
}

#[derive(Deserialize)]
pub(super) struct RecordedResponse {
    status: i32,
    #[serde(default)]
    headers: Vec<Field>,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    size: i64,
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
}

/// Why an entry cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    /// A wrong structure.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    #[error("not an absolute address: {0}")]
    Address(String),
    #[error("a body is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("a body is encoded as {0}, which HAR does not have")]
    Encoding(String),
    /// A multipart body that cannot be built again from its parts.
    #[error("{0}")]
    Upload(#[from] EncodeError),
}

/// Why an entry has no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRecorded {
    /// No response, or none recorded.
    #[error("no answer was recorded (status {0})")]
    Answer(i32),
    /// A body that was not recorded.
    #[error("the body of {0} bytes was not recorded")]
    Body(i64),
}

impl Entry {
    /// Start and end, if recorded.
    pub(super) fn span(&self) -> Span {
        span(&self.started_date_time, self.time)
    }
}

impl RecordedRequest {
    /// `METHOD PATH`, for a note.
    pub(super) fn without_query(&self) -> Option<String> {
        let (_, target) = split(&self.url).ok()?;
        let path = target.split('?').next().unwrap_or_default();
        let line = format!("{} {path}", self.method.to_ascii_uppercase());
        Some(conformant_base::text::escape_line(&line).into_owned())
    }

    /// Origin and request.
    pub(super) fn into_request(self) -> Result<(String, Request), EntryError> {
        let (origin, target) = split(&self.url)?;
        let mut request = Request::new(&self.method.to_ascii_uppercase(), target);
        request.headers = headers(&self.headers);
        if let Some(data) = self.post_data {
            if request.headers.get("Content-Type").is_none()
                && let Some(media_type) = &data.mime_type
            {
                request.headers.set("Content-Type", media_type.clone());
            }
            let (media_type, body) = data.body()?;
            if let Some(media_type) = media_type {
                request.headers.set("Content-Type", media_type);
            }
            request.body = body;
        }
        Ok((origin, request))
    }
}

impl PostData {
    /// The body and, if it was built again, its media type.
    pub(super) fn body(self) -> Result<(Option<String>, Vec<u8>), EntryError> {
        if let Some(text) = self
            .text
            .filter(|text| !text.is_empty() || self.params.is_empty())
        {
            return Ok((None, decoded(text, self.encoding.as_deref())?));
        }
        let media_type = self.mime_type.unwrap_or_default().to_ascii_lowercase();
        if media_type.starts_with("multipart/form-data") {
            let (media_type, body) = parts(&self.params)?;
            return Ok((Some(media_type), body));
        }
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        for field in &self.params {
            form.append_pair(&field.name, &field.value);
        }
        Ok((None, form.finish().into_bytes()))
    }
}

impl RecordedResponse {
    /// The response, or why there is none.
    pub(super) fn into_response(self) -> Result<Result<Response, NotRecorded>, EntryError> {
        let Ok(status @ 100..=999) = u16::try_from(self.status) else {
            return Ok(Err(NotRecorded::Answer(self.status)));
        };
        let mut headers = headers(&self.headers);
        if let (None, Some(media_type)) = (headers.get("Content-Type"), &self.content.mime_type) {
            headers.set("Content-Type", media_type.clone());
        }
        let body = match self.content.text {
            Some(text) => decoded(text, self.content.encoding.as_deref())?,
            None if self.content.size > 0 => {
                return Ok(Err(NotRecorded::Body(self.content.size)));
            }
            None => Vec::new(),
        };
        Ok(Ok(Response {
            status,
            headers,
            body,
            oddities: Vec::new(),
        }))
    }
}

/// Start and end of an entry; unknown if missing or invalid.
pub(super) fn span(started: &str, took_ms: Option<f64>) -> Span {
    let Ok(began) = started.parse::<Timestamp>() else {
        return Span::UNKNOWN;
    };
    let took = took_ms.filter(|ms| *ms >= 0.0);
    let took = took.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
    let ended = took.and_then(|took| began.checked_add(took).ok());
    Span {
        began,
        ended: ended.unwrap_or(Timestamp::MAX),
    }
}

/// Splits an absolute address into origin and request target.
fn split(url: &str) -> Result<(String, String), EntryError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(EntryError::Address(url.to_owned()));
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    let target = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    };
    Ok((format!("{scheme}://{host}"), target))
}

fn headers(fields: &[Field]) -> Headers {
    let mut headers = Headers::default();
    // Recordings of HTTP/2 have pseudo header fields, such as `:authority`.
    for field in fields.iter().filter(|f| !f.name.starts_with(':')) {
        headers.add(&field.name, field.value.clone());
    }
    headers
}

/// The parts of a multipart body; recordings omit the content of files.
fn parts(params: &[Field]) -> Result<(String, Vec<u8>), EntryError> {
    let fields = params.iter().map(|field| {
        let media_type = field.content_type.as_deref();
        let media_type = media_type.unwrap_or("application/octet-stream");
        request::Field {
            name: &field.name,
            value: &field.value,
            file: field.file_name.as_deref().map(|name| (name, media_type)),
        }
    });
    Ok(request::upload(fields)?)
}

fn decoded(text: String, encoding: Option<&str>) -> Result<Vec<u8>, EntryError> {
    match encoding {
        None | Some("") => Ok(text.into_bytes()),
        Some("base64") => Ok(STANDARD.decode(text.trim())?),
        Some(other) => Err(EntryError::Encoding(other.to_owned())),
    }
}
