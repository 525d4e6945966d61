//! Rules about the parts of a request, compared with what was sent.

use super::Completeness;
use super::parsed_request::{Body, ParsedRequest, bracketed, texts};
use crate::Fact;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::http::Headers;
use conformant_base::json;
use conformant_rulebook::{Operation, Parameter, ParameterLocation, advice_rule_id};
use conformant_schema::Schemas;
use serde_json::{Value, json};

/// A rule about the client with its verdict.
#[derive(Debug)]
pub(super) struct Ruling<'a> {
    pub(super) of: RuleSubject<'a>,
    pub(super) wrong: Option<Fact>,
}

/// The subject of a rule about the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RuleSubject<'a> {
    /// The encoding of the body.
    Body,
    /// The value of a parameter.
    Parameter(&'a str, ParameterLocation, &'a str),
    /// Advice in the document about a parameter.
    Advice(&'a str, ParameterLocation, &'a str),
    /// The form of credentials.
    Credentials,
}

impl<'a> RuleSubject<'a> {
    fn parameter(parameter: &'a Parameter) -> Self {
        Self::Parameter(&parameter.rule, parameter.place, &parameter.name)
    }

    fn advice(parameter: &'a Parameter) -> Self {
        Self::Advice(&parameter.rule, parameter.place, &parameter.name)
    }

    pub(super) fn rule(self, operation: &Operation) -> String {
        match self {
            Self::Body => operation.body_rule(),
            Self::Parameter(rule, ..) => operation.client_rule(rule),
            Self::Advice(rule, ..) => advice_rule_id(&operation.client_rule(rule)),
            Self::Credentials => operation.client_credentials(),
        }
    }

    /// The pointer of a finding: `/query/PageSize`, `/body/To`, `/header/Authorization`.
    pub(super) fn at(self) -> String {
        match self {
            Self::Body => "/body".to_owned(),
            Self::Parameter(_, place, name) | Self::Advice(_, place, name) => {
                json::join(&format!("/{}", place_name(place)), name)
            }
            Self::Credentials => "/header/Authorization".to_owned(),
        }
    }
}

/// The verdict on a part of a request; `None` for an optional part that is left out.
type PartVerdict = Option<Result<(), Fact>>;

fn sound_unless(wrong: Option<Fact>) -> Result<(), Fact> {
    wrong.map_or(Ok(()), Err)
}

fn ruling(of: RuleSubject<'_>, verdict: PartVerdict) -> Option<Ruling<'_>> {
    let wrong = verdict?.err();
    Some(Ruling { of, wrong })
}

/// The verdicts on all parts of a request, in the order of the operation's parameters.
pub(super) fn rulings<'a>(
    schemas: &Schemas,
    operation: &'a Operation,
    parsed: &ParsedRequest<'_>,
    kept: Completeness,
) -> Vec<Ruling<'a>> {
    let mut all = Vec::new();
    if let Some(ruling) = body_ruling(operation, parsed) {
        all.push(ruling);
    }
    // In another encoding, the parameters are unknown.
    let is_legible = !matches!(parsed.body, Body::Other(_));
    let parameters = operation.parameters.iter();
    for parameter in parameters.filter(|p| p.place != ParameterLocation::Body || is_legible) {
        let asked = RequestValidator {
            schemas,
            operation,
            parsed,
            kept,
        };
        let ruling = ruling(RuleSubject::parameter(parameter), asked.verdict(parameter));
        let is_sound = ruling.as_ref().is_some_and(|r| r.wrong.is_none());
        all.extend(ruling);
        if is_sound {
            all.extend(asked.advice(parameter));
        }
    }
    if operation.secured {
        let verdict = credentials_verdict(&parsed.request.headers, kept);
        all.extend(ruling(RuleSubject::Credentials, verdict));
    }
    all
}

/// The encoding of the body.
fn body_ruling<'a>(operation: &'a Operation, parsed: &ParsedRequest<'_>) -> Option<Ruling<'a>> {
    if operation.bodies.is_empty() || matches!(parsed.body, Body::None) {
        return None;
    }
    let wrong = match &parsed.body {
        Body::Other(what) => Some(Fact::new(
            "encoding",
            format!("a body as {}", operation.bodies.join(" or ")),
            what.clone(),
        )),
        Body::None | Body::Form(_) | Body::Json(_) | Body::Parts(_) => None,
    };
    let of = RuleSubject::Body;
    Some(Ruling { of, wrong })
}

/// The form of credentials.
fn credentials_verdict(headers: &Headers, kept: Completeness) -> PartVerdict {
    let wrong = |actual: &str| {
        Some(Err(Fact::new(
            "credentials",
            "HTTP Basic credentials, a user name and a password",
            actual.to_owned(),
        )))
    };
    let Some(field) = headers.get("Authorization") else {
        return match kept {
            Completeness::Whole => wrong("no credentials"),
            Completeness::Cleaned => None,
        };
    };
    let (scheme, rest) = field.trim().split_once(' ').unwrap_or((field.trim(), ""));
    if !scheme.eq_ignore_ascii_case("basic") {
        let is_word = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
        return match kept {
            Completeness::Cleaned if !is_word || rest.is_empty() => None,
            Completeness::Cleaned | Completeness::Whole => wrong("credentials of another scheme"),
        };
    }
    if kept == Completeness::Cleaned {
        // A recorder may have replaced the credentials after the scheme.
        return Some(Ok(()));
    }
    let pair = STANDARD.decode(rest.trim()).ok();
    let Some(colon) = pair
        .as_ref()
        .and_then(|p| p.iter().position(|b| *b == b':'))
    else {
        return wrong("Basic credentials that are not the Base64 of `NAME:PASSWORD`");
    };
    let length = pair.map_or(0, |pair| pair.len());
    if colon == 0 || colon + 1 == length {
        return wrong("Basic credentials of which one half is empty");
    }
    Some(Ok(()))
}

/// One request during validation.
struct RequestValidator<'a> {
    schemas: &'a Schemas,
    operation: &'a Operation,
    parsed: &'a ParsedRequest<'a>,
    kept: Completeness,
}

impl RequestValidator<'_> {
    /// Whether texts follow the documented advice.
    fn advice<'p>(&self, parameter: &'p Parameter) -> Option<Ruling<'p>> {
        let pattern = parameter.advice.as_ref()?;
        let texts = match (parameter.place, &self.parsed.body) {
            (ParameterLocation::Query, _) => self.parsed.in_query(&parameter.name),
            (ParameterLocation::Body, Body::Form(form)) => texts(form, &parameter.name),
            (_, _) => return None,
        };
        let rule = advice_rule_id(&self.operation.client_rule(&parameter.rule));
        let schema = json!({ "pattern": pattern });
        let mut misfits = texts
            .iter()
            .flat_map(|text| self.schemas.misfits(&rule, &schema, text));
        let verdict = Some(sound_unless(misfits.next().map(|defect| {
            let expected = format!("what the document advises for {}", parameter.name);
            Fact::new("advice", expected, defect.actual)
        })));
        drop(misfits);
        ruling(RuleSubject::advice(parameter), verdict)
    }

    fn verdict(&self, parameter: &Parameter) -> PartVerdict {
        let name = &parameter.name;
        let values = match parameter.place {
            ParameterLocation::Path => self.parsed.path.get(name).cloned().into_iter().collect(),
            ParameterLocation::Query => self.parsed.in_query(name),
            ParameterLocation::Header => {
                let fields = self.parsed.request.headers.iter();
                let of_name = fields.filter(|(n, _)| n.eq_ignore_ascii_case(name));
                of_name.map(|(_, v)| Value::from(v.trim())).collect()
            }
            ParameterLocation::Body => match &self.parsed.body {
                Body::Parts(parts) if parts.iter().any(|p| p.name == *name) => {
                    return Some(Ok(()));
                }
                Body::Form(form) => {
                    match is_hash(parameter).then(|| bracketed(form, name)).flatten() {
                        Some(hash) => vec![hash],
                        None => texts(form, name),
                    }
                }
                Body::Json(members) => {
                    return match members.get(name).filter(|v| !v.is_null()) {
                        Some(value) => Some(sound_unless(self.schema_violation(parameter, value))),
                        None => self.missing_parameter(parameter),
                    };
                }
                Body::None | Body::Parts(_) | Body::Other(_) => Vec::new(),
            },
        };
        if values.is_empty() {
            return self.missing_parameter(parameter);
        }
        Some(sound_unless(self.validate_value(parameter, &values)))
    }

    /// The violation if the parameter is missing in its place.
    fn missing_parameter(&self, parameter: &Parameter) -> PartVerdict {
        let name = parameter.name.as_str();
        let (own, other) = match parameter.place {
            ParameterLocation::Query => (ParameterLocation::Query, ParameterLocation::Body),
            ParameterLocation::Body => (ParameterLocation::Body, ParameterLocation::Query),
            ParameterLocation::Path | ParameterLocation::Header => return None,
        };
        let names = self.parsed.names(own);
        if let Some(misspelt) = names.iter().find(|n| self.is_misspelling(n, parameter)) {
            return Some(Err(Fact::new(
                "misspelt",
                format!("the parameter {name}"),
                format!("{misspelt} in its place"),
            )));
        }
        if self.parsed.names(other).contains(&name) {
            return Some(Err(Fact::new(
                "place",
                format!("{name} in the {}", place_name(own)),
                format!("it in the {}", place_name(other)),
            )));
        }
        if !parameter.required {
            return None;
        }
        Some(Err(Fact::new(
            "required-parameter",
            format!("the required {name}"),
            "nothing of that name",
        )))
    }

    /// Whether an undocumented name is another spelling of the parameter.
    fn is_misspelling(&self, sent: &str, parameter: &Parameter) -> bool {
        let is_known = |p: &Parameter| {
            p.name == sent || (is_hash(p) && sent.starts_with(&format!("{}[", p.name)))
        };
        sent != parameter.name
            && !self.operation.parameters.iter().any(is_known)
            && normalize(without_index(sent)) == normalize(&parameter.name)
    }

    fn validate_value(&self, parameter: &Parameter, values: &[Value]) -> Option<Fact> {
        if parameter.schema.get("type").and_then(Value::as_str) == Some("array") {
            let items = parameter.schema.get("items").unwrap_or(&Value::Null);
            // The documents do not define how forms spell lists of hashes.
            if items.get("type").and_then(Value::as_str) == Some("object") {
                return None;
            }
            let list = values.iter().map(|v| convert(v, items)).collect();
            return self.schema_violation(parameter, &Value::Array(list));
        }
        let first = values.first()?;
        if values.iter().any(|value| value != first) {
            return Some(Fact::new(
                "repeated",
                format!("{} once", parameter.name),
                format!("{} different values of it", values.len()),
            ));
        }
        if is_hash(parameter) && !first.is_object() {
            return None;
        }
        if let (ParameterLocation::Header, Some(fact)) =
            (parameter.place, self.validate_size(parameter, first))
        {
            return Some(fact);
        }
        self.schema_violation(parameter, &convert(first, &parameter.schema))
    }

    /// D2, Media: `Content-Size` is the size of the file, not of the body.
    fn validate_size(&self, parameter: &Parameter, value: &Value) -> Option<Fact> {
        let Body::Parts(parts) = &self.parsed.body else {
            return None;
        };
        let declared: usize = value.as_str()?.parse().ok()?;
        let is_size = parameter.echo.as_ref().is_some_and(|e| e.at == "/size");
        let file = parts
            .first()
            .filter(|_| is_size && self.kept == Completeness::Whole)?;
        (file.content.len() != declared).then(|| {
            let expected = format!("{}, the bytes of the file", file.content.len());
            Fact::new("size", expected, declared.to_string())
        })
    }

    fn schema_violation(&self, parameter: &Parameter, value: &Value) -> Option<Fact> {
        let name = format!("request {}", parameter.rule);
        let found = self.schemas.misfits(&name, &parameter.schema, value);
        let defect = found.into_iter().next()?;
        Some(Fact::new(
            defect.kind,
            format!(
                "{} for {}{}",
                defect.expected, parameter.name, defect.pointer
            ),
            defect.actual,
        ))
    }
}

/// A text converted to the type of its schema, if it is a spelling of that type.
fn convert(value: &Value, schema: &Value) -> Value {
    let Some(text) = value.as_str() else {
        return value.clone();
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => text
            .parse::<i64>()
            .map_or_else(|_| value.clone(), Value::from),
        // The documents do not define how forms spell it.
        Some("boolean") => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Value::Bool(true),
            "false" | "0" => Value::Bool(false),
            _ => value.clone(),
        },
        Some(_) | None => value.clone(),
    }
}

/// Whether it is a hash or a list of hashes, which forms may spell with brackets.
fn is_hash(parameter: &Parameter) -> bool {
    let is = |schema: &Value, word: &str| schema.get("type").and_then(Value::as_str) == Some(word);
    let of_hashes = parameter
        .schema
        .get("items")
        .is_some_and(|i| is(i, "object"));
    is(&parameter.schema, "object") || of_hashes
}

/// A name without its list index: `Permission[]`, `Permission[0]`, `Permission.0`.
fn without_index(name: &str) -> &str {
    let is_index = |index: &str| index.bytes().all(|b| b.is_ascii_digit());
    if let Some((stem, index)) = name.strip_suffix(']').and_then(|n| n.rsplit_once('['))
        && is_index(index)
    {
        return stem;
    }
    match name.rsplit_once('.') {
        Some((stem, index)) if !index.is_empty() && is_index(index) => stem,
        Some(_) | None => name,
    }
}

/// The lowercase letters and digits of a name.
fn normalize(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

const fn place_name(place: ParameterLocation) -> &'static str {
    match place {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
        ParameterLocation::Body => "body",
    }
}
