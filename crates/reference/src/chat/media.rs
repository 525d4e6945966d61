//! Media: uploaded files, with a representation and two links to the content.

use super::multipart::{self, Part};
use super::service::Service;
use crate::listing::url_of;
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::http::Response;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Bytes per megabyte of `size_limit_mb`.
const MEGABYTE: u64 = 1024 * 1024;
/// Lifetime of a temporary URL; undocumented.
const TEMPORARY_SECONDS: i64 = 300;

#[derive(Clone, Debug)]
pub(super) struct Media {
    pub(super) sid: String,
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: String,
    pub(super) file_name: Option<String>,
    /// The channel and message to which it was first added.
    pub(super) attached_to: Option<(String, String)>,
    /// Signing key of temporary URLs.
    secret: String,
    /// Size of the upload request's body.
    body_bytes: usize,
    created: Timestamp,
}

impl Media {
    fn represent(&self, service: &Service, core: &Core) -> Value {
        let url = |below| self.url(service, core, below);
        let direct = self.direct(service, core);
        let size = if core.fails(Fault::MediaSizeOfBody) {
            self.body_bytes
        } else {
            self.bytes.len()
        };
        let places = service.media.rows().filter_map(|m| m.attached_to.as_ref());
        let first = places.map(|(channel, _)| channel).next();
        let channel = match &self.attached_to {
            Some((own, _)) if first.is_some_and(|first| first != own) => Some(own)
                .filter(|_| !core.fails(Fault::MediaChannelOfFirst))
                .or(first),
            place => place.as_ref().map(|(own, _)| own),
        };
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "date_created": core.date(self.created),
            // D2, Media: null unless edited, and there is no edit operation.
            "date_updated": null,
            "channel_sid": channel,
            "message_sid": self.attached_to.as_ref().map(|(_, message)| message),
            "size": size,
            "content_type": self.content_type,
            "file_name": self.file_name,
            "author": "system",
            "url": url(&[]),
            "links": {
                "content": url(&["Content"]),
                "content_direct_temporary": direct,
            },
        })
    }

    /// Its URL, or one below it. Also under the variant of relative links, the links of media are absolute.
    fn url(&self, service: &Service, core: &Core, below: &[&str]) -> String {
        let own = ["media", "v1", "Services", &service.sid, "Media", &self.sid];
        url_of(&core.origin, &[&own[..], below].concat())
    }

    /// The temporary URL with its permission.
    fn direct(&self, service: &Service, core: &Core) -> String {
        let expires = core.now.as_second() + TEMPORARY_SECONDS;
        let url = self.url(service, core, &["Direct"]);
        let signature = self.signature(expires);
        format!("{url}?Expires={expires}&Signature={signature}")
    }

    fn signature(&self, expires: i64) -> String {
        let digest = Sha256::digest(format!("{}.{expires}", self.secret));
        digest.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes every write");
            hex
        })
    }

    fn serve(&self, core: &Core, altered: bool, untyped: bool) -> Response {
        let mut bytes = damaged(core, &self.bytes, &self.content_type);
        if altered {
            // A fault typical of text handling: bytes beyond ASCII are lost.
            bytes = bytes.into_iter().filter(u8::is_ascii).collect();
            bytes.push(b'\n');
        }
        let content_type = if untyped {
            "application/octet-stream"
        } else {
            &self.content_type
        };
        let mut response = Response::new(200, content_type, bytes);
        if core.varies(Variant::MediaDownloadHeaders) {
            let headers = &mut response.headers;
            headers.add("Content-Disposition", "attachment; filename=\"file\"");
            headers.add("ETag", "\"1\"");
            headers.add("Accept-Ranges", "bytes");
        }
        response
    }
}

/// The bytes after faulty handling; queries only faults that would change them.
fn damaged(core: &Core, bytes: &[u8], content_type: &str) -> Vec<u8> {
    const BUFFER: usize = 65_536;
    let text = String::from_utf8_lossy(bytes);
    let ways: [(Fault, Vec<u8>); 5] = [
        (Fault::MediaBytesAsText, text.as_bytes().to_vec()),
        (Fault::MediaLineEndsTurned, turned(bytes)),
        (
            Fault::MediaCutAtZero,
            bytes.split(|b| *b == 0).next().unwrap_or_default().to_vec(),
        ),
        (
            Fault::MediaCutAtBuffer,
            bytes[..bytes.len().min(BUFFER)].to_vec(),
        ),
        (
            Fault::MediaLastLineEndLost,
            bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec(),
        ),
    ];
    let of_types = [
        (Fault::MediaBytesAsText, "image/", Fault::MediaImagesAsText),
        (
            Fault::MediaLastLineEndLost,
            "image/",
            Fault::MediaImageLineEndLost,
        ),
        (Fault::MediaCutAtZero, "video/", Fault::MediaVideoCutAtZero),
    ];
    for (fault, changed) in &ways {
        let fails_for_type = of_types.iter().any(|(of, prefix, for_type)| {
            of == fault && content_type.starts_with(prefix) && core.fails(*for_type)
        });
        if changed != bytes && (core.fails(*fault) || fails_for_type) {
            return changed.clone();
        }
    }
    bytes.to_vec()
}

/// With LF instead of CR LF.
fn turned(bytes: &[u8]) -> Vec<u8> {
    let mut turned = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            turned.push(*byte);
        }
    }
    turned
}

/// The upload whose bytes are served.
fn served<'a>(
    service: &'a Service,
    core: &Core,
    sid: &str,
    [of_first, of_namesake]: [Fault; 2],
) -> Result<&'a Media, Refusal> {
    let asked = service.media.find(sid, false)?;
    let mut namesakes = service.media.rows();
    let namesake = namesakes.find(|m| m.file_name.is_some() && m.file_name == asked.file_name);
    if let Some(namesake) = namesake.filter(|m| m.sid != asked.sid)
        && core.fails(of_namesake)
    {
        return Ok(namesake);
    }
    let second = service.media.rows().nth(1);
    let is_third = service.media.rows().skip(2).any(|media| media.sid == sid);
    if let Some(second) = second
        && is_third
        && core.fails(Fault::MediaThirdOfSecond)
    {
        return Ok(second);
    }
    let first = service.media.rows().next();
    Ok(match first.filter(|first| first.sid != asked.sid) {
        Some(first) if core.fails(of_first) => first,
        Some(_) | None => asked,
    })
}

pub(super) fn upload(service: &mut Service, core: &mut Core, call: &Call<'_>) -> Answer {
    let Part {
        bytes,
        content_type,
        file_name,
        ..
    } = read_upload(core, call)?;
    check_content_size(core, call, bytes.len())?;
    let megabyte = if core.varies(Variant::MediaDecimalMegabytes) {
        1_000_000
    } else {
        MEGABYTE
    };
    let limit = service.fields.media.size_limit_mb.saturating_mul(megabyte);
    let size = bytes.len() as u64;
    let one_more = size == limit + 1 && core.fails(Fault::MediaSizeLimitOneMore);
    if size > limit && !one_more && !core.fails(Fault::MediaSizeLimitIgnored) {
        return Err(Refusal::new(
            413,
            20413,
            "the file is larger than the service allows",
        ));
    }
    if let Some(known) = service.media.rows().find(|known| known.bytes == bytes)
        && core.fails(Fault::MediaSameBytesOnce)
    {
        let value = known.represent(service, core);
        return Ok(core.created(&value));
    }
    let count = service.media.len();
    let is_second = core.read_or_stale(Fault::MediaRaceUpload, || count) != count;
    let bytes = match service.media.last() {
        Some(last) if is_second => last.bytes.clone(),
        Some(_) | None => bytes.to_vec(),
    };
    let first = service.media.rows().next();
    let media = Media {
        sid: match first {
            Some(first) if core.fails(Fault::MediaSidShared) => first.sid.clone(),
            Some(_) | None => core.sid("ME"),
        },
        bytes,
        // RFC 7578, 4.4: text/plain unless the part says otherwise.
        content_type: content_type.unwrap_or_else(|| "text/plain".to_owned()),
        file_name: match service.media.rows().nth(1) {
            Some(second)
                if second.file_name != file_name && core.fails(Fault::MediaThirdNameOfSecond) =>
            {
                second.file_name.clone()
            }
            _ => file_name,
        },
        attached_to: None,
        // Any unguessable text works.
        secret: core.sid("TK"),
        body_bytes: call.request.body.len(),
        created: core.now,
    };
    let value = media.represent(service, core);
    if !core.fails(Fault::MediaNotStored) {
        service.media.insert(media.sid.clone(), None, media);
    }
    Ok(core.created(&value))
}

/// D2, Media: a multipart form with a part named `media`.
fn read_upload<'a>(core: &Core, call: &Call<'a>) -> Result<Part<'a>, Refusal> {
    let header = call.request.headers.get("Content-Type").unwrap_or_default();
    let Some(boundary) = multipart::boundary(header) else {
        if !call.request.body.is_empty() && core.fails(Fault::MediaRawBodyAccepted) {
            return Ok(Part {
                bytes: &call.request.body,
                content_type: Some(header.to_owned()),
                ..Part::default()
            });
        }
        return Err(Refusal::new(
            415,
            20415,
            "Content-Type must be multipart/form-data with a boundary",
        ));
    };
    let parts = multipart::parts(&call.request.body, &boundary)
        .ok_or_else(|| Refusal::new(400, 20001, "the body is not a multipart form"))?;
    let part: Option<Part<'a>> = parts
        .into_iter()
        .find(|part| part.name == "media" || core.fails(Fault::MediaAnyPartAccepted));
    if part.is_none() && core.fails(Fault::MediaFileNotRequired) {
        return Ok(Part::default());
    }
    let mut part =
        part.ok_or_else(|| Refusal::bad_parameter("media", "a part of this name is required"))?;
    if let Some((start, _)) = part
        .file_name
        .as_ref()
        .and_then(|name| name.split_once(';'))
        && core.fails(Fault::MediaFileNameCutAtSemicolon)
    {
        part.file_name = Some(start.to_owned());
    }
    Ok(part)
}

/// D2, Media: `Content-Size` is the file's size in bytes.
fn check_content_size(core: &Core, call: &Call<'_>, size: usize) -> Result<(), Refusal> {
    // Under the fault of an optional file there is nothing to measure.
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

pub(super) fn fetch(service: &Service, core: &Core, sid: &str) -> Answer {
    let media = service.media.find(sid, false)?;
    Ok(core.ok(&media.represent(service, core)))
}

/// Serves the bytes behind the `content` link.
pub(super) fn content(service: &Service, core: &Core, sid: &str) -> Answer {
    let media = served(
        service,
        core,
        sid,
        [Fault::MediaContentOfFirst, Fault::MediaContentOfNamesake],
    )?;
    if core.varies(Variant::MediaContentRedirects) {
        let mut response = Response::empty(307);
        let address = media.direct(service, core);
        response.headers.set("Location", address);
        return Ok(response);
    }
    Ok(media.serve(
        core,
        core.fails(Fault::MediaContentAltered),
        core.fails(Fault::MediaContentUntyped),
    ))
}

/// Serves the bytes of the temporary link, which contains permission and expiry.
pub(super) fn content_direct(service: &Service, core: &Core, call: &Call<'_>, sid: &str) -> Answer {
    let media = service.media.find(sid, false)?;
    let expires: i64 = call
        .query
        .get("Expires")
        .and_then(|text| text.parse().ok())
        .ok_or_else(Refusal::not_found)?;
    let signed = call.query.get("Signature") == Some(media.signature(expires).as_str());
    if !signed || core.now.as_second() > expires {
        return Err(Refusal::new(
            403,
            20403,
            "the url has expired or is not ours",
        ));
    }
    if core.fails(Fault::MediaDirectGone) {
        return Err(Refusal::new(404, 20404, "nothing is there"));
    }
    let later = service.media.rows().skip(3).any(|media| media.sid == sid);
    let media = match service.media.rows().next().filter(|_| later) {
        Some(first) if core.fails(Fault::MediaFourthDirectOfFirst) => first,
        _ => served(
            service,
            core,
            sid,
            [Fault::MediaDirectOfFirst, Fault::MediaDirectOfNamesake],
        )?,
    };
    Ok(media.serve(
        core,
        core.fails(Fault::MediaDirectAltered),
        core.fails(Fault::MediaDirectUntyped),
    ))
}
