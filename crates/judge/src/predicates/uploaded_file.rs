//! `uploaded-file`: a representation shows the size, type and name of the uploaded file.
//!
//! Does not judge files whose bytes a recording did not keep unchanged, nor the file behind a link.

use super::prelude::*;
use conformant_base::http::multipart_parts;

/// The operation that uploads a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Upload {
    /// The operation's id.
    operation: String,
    /// The part of its multipart body that is the file.
    part: String,
}

/// A representation shows what was uploaded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UploadedFile {
    /// The upload.
    upload: Upload,
    /// The representation.
    kind: String,
    /// Where it shows the size.
    #[serde(default)]
    size: Option<String>,
    /// Where it shows the media type.
    #[serde(default)]
    media_type: Option<String>,
    /// Where it shows the name.
    #[serde(default)]
    name: Option<String>,
    /// Which names are judged.
    #[serde(default)]
    names: Spelled,
    /// Whether it is judged in later responses, instead of the response to the upload.
    #[serde(default)]
    later: bool,
}

/// The characters of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Spelled {
    /// ASCII only.
    #[default]
    InAscii,
    /// Other characters, too.
    BeyondAscii,
}

/// A file as sent.
pub(super) struct File<'c> {
    pub(super) name: Option<String>,
    pub(super) media_type: Option<String>,
    pub(super) content: &'c [u8],
}

impl Predicate for UploadedFile {
    fn references(&self, references: &mut References) {
        self.upload.references(references);
        let mut kind = references.kind("kind", &self.kind);
        for (key, at) in [
            ("size", &self.size),
            ("media_type", &self.media_type),
            ("name", &self.name),
        ] {
            if let Some(at) = at {
                kind.pointer(key, at);
            }
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for write in &context.history.writes {
            let (Some(index), Some(id)) = (write.exchange(), write.resource) else {
                continue;
            };
            let Some(file) = self
                .upload
                .file(context, index)
                .filter(|_| write.outcome == Outcome::Done)
            else {
                continue;
            };
            for observation in &context.history.resources.get(id).observations {
                let is_later = observation.exchange != Some(index);
                let shown = observation
                    .representation(context)
                    .filter(|shown| shown.kind == self.kind);
                if let Some(shown) = shown.filter(|_| is_later == self.later) {
                    self.evaluate_observation(&file, shown, verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let uploaded = |mut parameters: Value, name: &str, (field, value): (&str, Value)| {
            parameters["upload"] = json!({"operation": "upload-media", "part": "media"});
            parameters["kind"] = json!("media/media");
            let mut shown = json!({
                "sid": sid("ME", "1"), "service_sid": sid("IS", "1"), "size": 5, "content_type": "text/plain",
                "file_name": name,
            });
            shown[field] = value;
            let form = format!(
                "--x\r\nContent-Disposition: form-data; name=\"media\"; filename=\"{name}\"\r\n\
                 Content-Type: text/plain\r\n\r\nhello\r\n--x--\r\n"
            );
            let sent = json!({"ChatServiceSid": sid("IS", "1"), "media": {"$file": name}});
            Example::for_rule("media", parameters)
                .answered("upload-media", sent, shown)
                .sending("multipart/form-data; boundary=x", &form)
        };
        let sized = |size: u64| uploaded(json!({"size": "/size"}), "a.txt", ("size", json!(size)));
        let typed = |shown: &str| {
            let parameters = json!({"media_type": "/content_type"});
            uploaded(parameters, "a", ("content_type", json!(shown)))
        };
        let named = |names: &str, name: &str, shown: &str| {
            let parameters = json!({"name": "/file_name", "names": names});
            uploaded(parameters, name, ("file_name", json!(shown)))
        };
        vec![
            sized(5).passes(),
            sized(120).fails("/size"),
            typed("text/plain; charset=utf-8").passes(),
            typed("text/csv").fails("/content_type"),
            named("in-ascii", "a.txt", "b.txt").fails("/file_name"),
            named("in-ascii", "ä.txt", "ä.txt").not_judged(),
            named("beyond-ascii", "ä.txt", "ä.txt").passes(),
        ]
    }
}

impl UploadedFile {
    fn evaluate_observation(
        &self,
        file: &File<'_>,
        shown: &Representation<'_>,
        verdicts: &mut Verdicts<'_>,
    ) {
        let mut judge = |at: &str, expected: String, same: &dyn Fn(&Value) -> bool| {
            let site = shown.site(at);
            // The header of the part is judged by a rule of its own.
            let Some(got) = shown.value(at) else {
                return;
            };
            let wrong = !same(got);
            let fact = Fact::new("file", expected, json::short(got));
            verdicts.conclude(site, wrong.then_some(fact));
        };
        if let Some(at) = &self.size {
            let size = file.content.len();
            judge(at, size.to_string(), &|got| json::equal(got, &json!(size)));
        }
        if let (Some(at), Some(media_type)) = (&self.media_type, &file.media_type) {
            let same = |got: &Value| {
                got.as_str()
                    .is_some_and(|got| essence(got) == essence(media_type))
            };
            judge(at, json::short(&json!(media_type)), &same);
        }
        if let (Some(at), Some(name)) = (&self.name, &file.name) {
            let counts = name.is_ascii() == (self.names == Spelled::InAscii);
            // Clients encode names with one of these characters differently.
            if counts && !name.is_empty() && !name.contains(['"', '\\', '%', '/']) {
                judge(at, json::short(&json!(name)), &|got| got == name);
            }
        }
    }
}

/// A media type without its parameters.
pub(super) fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Whether a recording replaced bytes that are not valid UTF-8.
pub(super) fn is_lossy(context: &Context<'_>, bytes: &[u8]) -> bool {
    context.evidence.has_unobserved_actions
        && bytes.windows(3).any(|three| three == "\u{fffd}".as_bytes())
}

impl Upload {
    pub(super) fn references(&self, references: &mut References) {
        references
            .operation("upload/operation", &self.operation)
            .parameter("upload/part", &self.part);
    }

    /// The file of an accepted upload, if its bytes are known.
    pub(super) fn file<'c>(&self, context: &'c Context<'_>, index: usize) -> Option<File<'c>> {
        let seen = &context.seen[index];
        let exchange = seen.exchange;
        let is_upload =
            exchange.operation == self.operation && seen.acceptance == Acceptance::Accepted;
        let media_type = exchange.request.headers.get("Content-Type")?;
        let parts = multipart_parts(media_type, &exchange.request.body);
        let mut files = parts
            .into_iter()
            .filter(|part| part.name == self.part && is_upload);
        let (file, None) = (files.next()?, files.next()) else {
            return None;
        };
        // A wrong size in the request is the fault of the client.
        let stated = exchange.request.headers.get("Content-Size");
        let is_stated = stated.is_none_or(|stated| stated.parse() == Ok(file.content.len()));
        (is_stated && !is_lossy(context, &exchange.request.body)).then_some(File {
            name: file.file_name,
            media_type: file.media_type,
            content: file.content,
        })
    }
}
