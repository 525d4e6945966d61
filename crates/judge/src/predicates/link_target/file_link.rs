//! `link-target` with `aspects`: a link leads to the uploaded file. Judges the responses of links that were followed, except
//! redirects and refused credentials.

use crate::evidence::{FILE_BYTES_MAX, Outcome};
use crate::predicates::prelude::*;
use crate::predicates::uploaded_file::{Upload, essence, is_lossy};
use conformant_base::http::Response;

/// A link in a representation leads to the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::predicates) struct FileLink {
    /// The upload.
    upload: Upload,
    /// The representation that shows the link.
    kind: String,
    /// Where.
    at: String,
    /// What of the file is judged.
    aspects: Vec<Aspect>,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Aspect {
    /// That it exists.
    Found,
    /// Its bytes.
    Bytes,
    /// Its type.
    Type,
}

impl Predicate for FileLink {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
        self.upload.references(references);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let ours = context
            .seen
            .iter()
            .enumerate()
            .filter(|(_, seen)| seen.is_ours());
        for (index, seen) in ours {
            let (Some(via), Outcome::Answered { response, .. }) =
                (&seen.exchange.via, &seen.exchange.outcome)
            else {
                continue;
            };
            let is_shown = |r: &&Representation<'_>| {
                r.exchange == Some(via.exchange)
                    && format!("{}{}", r.prefix, self.at) == via.pointer
            };
            let shown = context.of_kind(&self.kind).find(is_shown);
            let resource = shown.and_then(|shown| {
                let mut resources = context.history.resources.iter();
                let (_, resource) = resources.find(|(_, resource)| {
                    let mut observations = resource.observations.iter();
                    observations.any(|s| {
                        s.representation(context)
                            .is_some_and(|r| std::ptr::eq(r, shown))
                    })
                })?;
                Some(resource)
            });
            let made =
                resource.and_then(|resource| context.history.writes[resource.made?].exchange());
            let file = made.and_then(|made| self.upload.file(context, made));
            let is_refused = matches!(response.status, 401 | 403 | 429) || response.status >= 500;
            let is_elsewhere = (300..400).contains(&response.status);
            let Some(file) = file.filter(|_| !is_refused && !is_elsewhere) else {
                continue;
            };
            for aspect in &self.aspects {
                let found = match aspect {
                    Aspect::Found => Some(not_found(response)),
                    _ if !response.is_success() => None,
                    Aspect::Bytes => {
                        is_whole(context, response).then(|| other_bytes(response, file.content))
                    }
                    Aspect::Type => file.media_type.as_deref().and_then(|wanted| {
                        Some(other_type(response.headers.get("Content-Type")?, wanted))
                    }),
                };
                if let Some(wrong) = found {
                    verdicts.conclude(Site::Exchange(index), wrong);
                }
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let changes = [
            Change::Text("another file"),
            Change::Typed("application/x-another"),
            Change::Refused,
        ];
        Mutation::at(sites.last(), changes)
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let content = "/links/content";
        let shown = json!({
            "sid": sid("ME", "1"), "service_sid": sid("IS", "1"), "links": {"content": "/content"},
        });
        let form = "--x\r\nContent-Disposition: form-data; name=\"media\"; filename=\"a\"\r\n\
                    Content-Type: text/plain\r\n\r\nhello\r\n--x--\r\n";
        let uploaded = |aspect: &str| {
            let parameters = json!({
                "upload": {"operation": "upload-media", "part": "media"}, "kind": "media/media", "at": content,
                "aspects": [aspect],
            });
            let path = json!({"ChatServiceSid": sid("IS", "1")});
            Example::for_rule("media", parameters)
                .answered("upload-media", path, shown.clone())
                .sending("multipart/form-data; boundary=x", form)
        };
        let followed = |aspect: &str, text: &str| {
            let followed = uploaded(aspect).written("", json!({}), text);
            followed.via(0, content)
        };
        let missing = |aspect: &str| uploaded(aspect).refused("", json!({})).via(0, content);
        vec![
            followed("bytes", "hello").passes(),
            followed("bytes", "hallo").fails(""),
            followed("bytes", "").fails(""),
            followed("type", "hello").fails(""),
            followed("found", "hello").passes(),
            missing("found").fails(""),
            missing("bytes").not_judged(),
            uploaded("bytes").not_judged(),
        ]
    }
}

fn not_found(response: &Response) -> Option<Fact> {
    (!response.is_success()).then(|| {
        Fact::new(
            "not-found",
            "the file",
            format!("status {}", response.status),
        )
    })
}

/// Whether all bytes of the response are known.
fn is_whole(context: &Context<'_>, response: &Response) -> bool {
    let length = response
        .headers
        .get("Content-Length")
        .map(str::parse::<usize>);
    let is_said = length == Some(Ok(response.body.len()));
    let is_known = !context.evidence.has_unobserved_actions || is_said;
    let is_plain = response.headers.get("Content-Encoding").is_none();
    is_known && is_plain && !is_lossy(context, &response.body)
}

fn other_bytes(response: &Response, wanted: &[u8]) -> Option<Fact> {
    let got = response.body.as_slice();
    let same = match wanted.len() {
        0..=FILE_BYTES_MAX => got == wanted,
        _ => wanted.starts_with(got),
    };
    (!same).then(|| {
        let at = got.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        let actual = match got.len() {
            0 => "an empty file".to_owned(),
            length => format!("{length} bytes, the same up to byte {at}"),
        };
        let expected = format!("the {} uploaded bytes", wanted.len());
        Fact::new("bytes", expected, actual)
    })
}

fn other_type(got: &str, wanted: &str) -> Option<Fact> {
    (essence(got) != essence(wanted)).then(|| Fact::new("type", essence(wanted), essence(got)))
}
