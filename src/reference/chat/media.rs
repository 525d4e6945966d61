//! Media: uploaded files, shown by their representation and served by two links.

use super::misstate::misstate;
use super::multipart::{self, Part};
use super::service::Service;
use crate::clock::Timestamp;
use crate::http::Response;
use crate::reference::listing::url_of;
use crate::reference::{Answer, Call, Core, Fault, Refusal, Variant, account};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Bytes in one of the megabytes that `size_limit_mb` counts.
const MEGABYTE: u64 = 1024 * 1024;
/// How long a temporary url lasts; no document says.
const TEMPORARY_SECONDS: i64 = 300;

/// One uploaded file.
#[derive(Clone, Debug)]
pub(super) struct Media {
    pub(super) sid: String,
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: String,
    pub(super) file_name: Option<String>,
    /// The channel and the message it was added to first.
    pub(super) attached_to: Option<(String, String)>,
    /// What temporary urls are signed with.
    secret: String,
    /// Length of the request body it came in.
    body_bytes: usize,
    created: Timestamp,
}

impl Media {
    fn represent(&self, service: &Service, core: &Core, now: Timestamp) -> Value {
        let base = ["media", "v1", "Services", &service.sid, "Media", &self.sid];
        let url = |below: &[&str]| url_of(&core.origin, &[&base[..], below].concat());
        let expires = now.as_second() + TEMPORARY_SECONDS;
        let direct = format!(
            "{}?Expires={expires}&Signature={}",
            url(&["Direct"]),
            self.signature(expires)
        );
        let created = if core.varies(Variant::MediaDateOnly) {
            json!(self.created.strftime("%Y-%m-%d").to_string())
        } else {
            core.date(self.created)
        };
        // D2, Media: null if not edited, and nothing here edits.
        let updated = core
            .fails(Fault::MediaUpdatedWithoutEdit)
            .then(|| created.clone());
        let size = if core.fails(Fault::MediaSizeOfBody) {
            self.body_bytes
        } else {
            self.bytes.len()
        };
        let value = json!({
            "sid": self.sid,
            "account_sid": account::SID,
            "service_sid": service.sid,
            "date_created": created,
            "date_updated": updated,
            "channel_sid": self.attached_to.as_ref().map(|(channel, _)| channel),
            "message_sid": self.attached_to.as_ref().map(|(_, message)| message),
            "size": size,
            "content_type": if core.fails(Fault::MediaContentTypeLost) {
                "application/octet-stream"
            } else {
                &self.content_type
            },
            "file_name": self.file_name.as_ref().filter(|_| !core.fails(Fault::MediaFileNameLost)),
            "author": (!core.varies(Variant::MediaAuthorUnknown)).then_some("system"),
            "url": url(&[]),
            "links": {
                "content": url(&["Content"]),
                "content_direct_temporary":
                    (!core.varies(Variant::MediaWithoutTemporaryLink)).then_some(direct),
            },
        });
        misstate(
            core,
            value,
            &[
                ("url", Fault::MediaUrlWrong),
                ("service_sid", Fault::MediaServiceSidWrong),
                ("links", Fault::MediaLinksWrong),
            ],
        )
    }

    fn signature(&self, expires: i64) -> String {
        let digest = Sha256::digest(format!("{}.{expires}", self.secret));
        digest.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes every write");
            hex
        })
    }

    fn serve(&self, altered: bool, untyped: bool) -> Response {
        let mut bytes = self.bytes.clone();
        if altered {
            // A defect that text-minded code has: bytes beyond ASCII are lost.
            bytes = bytes.into_iter().filter(u8::is_ascii).collect();
            bytes.push(b'\n');
        }
        let content_type = if untyped {
            "application/octet-stream"
        } else {
            &self.content_type
        };
        Response::new(200, content_type, bytes)
    }
}

/// Uploads a file.
pub(super) fn upload(service: &mut Service, core: &mut Core, call: &Call<'_>) -> Answer {
    let Upload {
        bytes,
        content_type,
        file_name,
    } = read_upload(core, call)?;
    check_content_size(core, call, bytes.len())?;
    let megabyte = if core.varies(Variant::MediaDecimalMegabytes) {
        1_000_000
    } else {
        MEGABYTE
    };
    let limit = service.fields.media.size_limit_mb.saturating_mul(megabyte);
    if bytes.len() as u64 > limit && !core.fails(Fault::MediaSizeLimitIgnored) {
        return Err(Refusal::new(
            413,
            20413,
            "the file is larger than the service allows",
        ));
    }
    let media = Media {
        sid: core.sid("ME"),
        bytes: bytes.to_vec(),
        content_type,
        file_name,
        attached_to: None,
        // Any text that others do not know will do.
        secret: core.sid("TK"),
        body_bytes: call.request.body.len(),
        created: call.now,
    };
    let value = media.represent(service, core, call.now);
    if !core.fails(Fault::MediaNotStored) {
        let sid = media.sid.clone();
        service.media.insert(&sid, None, media);
    }
    Ok(core.created(&value))
}

/// A file on its way in.
struct Upload<'a> {
    bytes: &'a [u8],
    content_type: String,
    file_name: Option<String>,
}

/// D2, Media: a multipart form with a part named `media`.
fn read_upload<'a>(core: &Core, call: &Call<'a>) -> Result<Upload<'a>, Refusal> {
    let header = call.request.headers.get("Content-Type").unwrap_or_default();
    let Some(boundary) = multipart::boundary(header) else {
        return Err(Refusal::new(
            415,
            20415,
            "Content-Type must be multipart/form-data with a boundary",
        ));
    };
    let parts = multipart::parts(&call.request.body, &boundary)
        .ok_or_else(|| Refusal::new(400, 20001, "the body is not a multipart form"))?;
    let part: Option<Part<'a>> = parts.into_iter().find(|part| part.name == "media");
    if part.is_none() && core.fails(Fault::MediaFileNotRequired) {
        return Ok(Upload {
            bytes: &[],
            content_type: "text/plain".to_owned(),
            file_name: None,
        });
    }
    let part =
        part.ok_or_else(|| Refusal::bad_parameter("media", "a part of this name is required"))?;
    Ok(Upload {
        bytes: part.bytes,
        // RFC 7578, 4.4: text/plain unless the part says otherwise.
        content_type: part.content_type.unwrap_or_else(|| "text/plain".to_owned()),
        file_name: part.file_name,
    })
}

/// D2, Media: `Content-Size` is the file's size in bytes.
fn check_content_size(core: &Core, call: &Call<'_>, size: usize) -> Result<(), Refusal> {
    // The defect of taking nothing for a file has nothing to measure.
    let nothing = size == 0 && core.fails(Fault::MediaFileNotRequired);
    if nothing || core.varies(Variant::MediaContentSizeNotNeeded) {
        return Ok(());
    }
    let Some(stated) = call.request.headers.get("Content-Size") else {
        return Err(Refusal::bad_parameter("Content-Size", "required"));
    };
    let size = if core.fails(Fault::MediaContentSizeOfBody) {
        call.request.body.len()
    } else {
        size
    };
    if stated.trim().parse() == Ok(size) {
        return Ok(());
    }
    Err(Refusal::bad_parameter(
        "Content-Size",
        "not the file's size",
    ))
}

/// Retrieves the representation.
pub(super) fn fetch(service: &Service, core: &Core, call: &Call<'_>, sid: &str) -> Answer {
    let media = service.media.find(sid, false)?;
    let value = media.represent(service, core, call.now);
    let moves = ("date_created", Fault::MediaFetchedMoves);
    let changes = ("sid", Fault::MediaFetchedSidChanges);
    Ok(core.ok(&misstate(core, value, &[moves, changes])))
}

/// Serves the bytes behind the `content` link.
pub(super) fn content(service: &Service, core: &Core, sid: &str) -> Answer {
    Ok(service.media.find(sid, false)?.serve(
        core.fails(Fault::MediaContentAltered),
        core.fails(Fault::MediaContentUntyped),
    ))
}

/// Serves the bytes behind the temporary link, which carries its permission and its end.
pub(super) fn content_direct(service: &Service, core: &Core, call: &Call<'_>, sid: &str) -> Answer {
    let media = service.media.find(sid, false)?;
    let expires: i64 = call
        .query
        .get("Expires")
        .and_then(|text| text.parse().ok())
        .ok_or_else(Refusal::not_found)?;
    let signed = call.query.get("Signature") == Some(media.signature(expires).as_str());
    if !signed || call.now.as_second() > expires {
        return Err(Refusal::new(
            403,
            20403,
            "the url has expired or is not ours",
        ));
    }
    Ok(media.serve(
        core.fails(Fault::MediaDirectAltered),
        core.fails(Fault::MediaDirectUntyped),
    ))
}
