//! Links that the target hands out: followed only where the configuration says that the target is.

use super::settings::Target;
use conformant_base::json;
use conformant_judge::evidence::{Exchange, FollowedLink};
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// The longest link that is followed.
const LINK_BYTES_MAX: usize = 8 * 1024;

/// Why a link is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LinkError {
    /// It leads nowhere, or where nobody must go.
    #[error("{0}")]
    Broken(&'static str),
    /// It leads to another origin, which may be the target's own.
    #[error(
        "it leads to another origin; is {0} an address of the target, say so as `public_url` of its entry in \
         `targets`, or as one of its `content_origins` where only content lies there"
    )]
    Elsewhere(String),
}

/// Where a link leads that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// Path and query at the target.
    Home(String),
    /// Where the target keeps content: an origin, and path and query there. Nobody shows credentials.
    Content(String, String),
}

/// Where a link leads that stands in the answer to a request for `from`.
pub(super) fn leads(target: &Target, from: &Leads, link: &str) -> Result<Leads, LinkError> {
    let (base, path) = match from {
        Leads::Home(path) => (home_of(target)?, path),
        Leads::Content(origin, path) => (origin_of(origin)?, path),
    };
    let parsed = resolved(&base, path, link)?;
    let origin = parsed.origin();
    match path_at_home(target, &parsed) {
        Ok(path) => Ok(Leads::Home(path)),
        Err(LinkError::Elsewhere(named))
            if target
                .content_origins
                .iter()
                .any(|known| origin_of(known).is_ok_and(|known| known.origin() == origin)) =>
        {
            let path = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
            Ok(Leads::Content(named, path.to_owned()))
        }
        Err(why) => Err(why),
    }
}

/// Path and query at the target of a link that stands in the answer to a request for `from`.
pub(super) fn target_of(target: &Target, from: &str, link: &str) -> Result<String, LinkError> {
    let parsed = resolved(&home_of(target)?, from, link)?;
    path_at_home(target, &parsed)
}

fn origin_of(text: &str) -> Result<Url, LinkError> {
    Url::parse(text).map_err(|_| LinkError::Broken("not a URL"))
}

fn home_of(target: &Target) -> Result<Url, LinkError> {
    let (origin, _) = split_url(&target.url);
    Url::parse(origin).map_err(|_| LinkError::Broken("the target has no origin"))
}

/// The address that a link names.
fn resolved(base: &Url, from: &str, link: &str) -> Result<Url, LinkError> {
    if link.len() > LINK_BYTES_MAX {
        return Err(LinkError::Broken("longer than 8 KiB"));
    }
    if link.chars().any(char::is_control) {
        return Err(LinkError::Broken("it has control characters"));
    }
    let parsed = base.join(from).unwrap_or_else(|_| base.clone()).join(link);
    let parsed = parsed.map_err(|_| LinkError::Broken("not a URL"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(LinkError::Broken("not an HTTP address"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(LinkError::Broken("it carries credentials"));
    }
    Ok(parsed)
}

/// Path and query of an address at the target.
fn path_at_home(target: &Target, parsed: &Url) -> Result<String, LinkError> {
    let (_, prefix) = split_url(&target.url);
    let home = home_of(target)?;
    let path = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
    if parsed.origin() == home.origin() {
        return Ok(path.to_owned());
    }
    // An address in front of the target: the same paths below another base.
    let public = target.public_url.as_deref().map(split_url);
    if let Some((front, below)) = public
        && Url::parse(front).is_ok_and(|front| front.origin() == parsed.origin())
        && let Some(rest) = path.strip_prefix(below)
        && (rest.is_empty() || rest.starts_with(['/', '?']))
    {
        return Ok(format!("{prefix}{rest}"));
    }
    Err(LinkError::Elsewhere(parsed.origin().ascii_serialization()))
}

/// The answer that showed this address, and where: the one that a step reads it from, as
/// `${page.json.meta.url}`, where that is known, else the latest.
pub(super) fn shown_in(
    exchanges: &[Exchange],
    url: &str,
    read: &str,
    captured: &BTreeMap<String, usize>,
) -> Option<FollowedLink> {
    if let Some((exchange, pointer)) = place_in(read, captured)
        && let Some(document) = exchanges.get(exchange).and_then(Exchange::document)
        && document.pointer(&pointer).is_some_and(|held| held == url)
    {
        return Some(FollowedLink { exchange, pointer });
    }
    let shown = |(exchange, seen): (usize, &Exchange)| {
        let pointer = place_of(seen.document()?, url)?;
        Some(FollowedLink { exchange, pointer })
    };
    exchanges.iter().enumerate().rev().find_map(shown)
}

/// The answer that an interpolation reads, and where in it; names of captures may hold dots themselves.
fn place_in(read: &str, captured: &BTreeMap<String, usize>) -> Option<(usize, String)> {
    let name = read.strip_prefix("${")?.strip_suffix('}')?;
    let below = |known: &str| name.strip_prefix(known)?.strip_prefix('.');
    let read = captured
        .iter()
        .filter_map(|(known, &exchange)| Some((known.len(), exchange, below(known)?)));
    let (_, exchange, path) = read.max_by_key(|(length, ..)| *length)?;
    let path = path.strip_prefix("json.").unwrap_or(path);
    let mut pointer = String::new();
    path.split('.')
        .for_each(|segment| json::push(&mut pointer, segment));
    Some((exchange, pointer))
}

fn place_of(value: &Value, text: &str) -> Option<String> {
    let below = |segment: &str, value: &Value| {
        let rest = place_of(value, text)?;
        Some(format!("/{}{rest}", json::escape(segment)))
    };
    match value {
        Value::String(held) => (held == text).then(String::new),
        Value::Array(items) => (0..).zip(items).find_map(|(n, v)| below(&n.to_string(), v)),
        Value::Object(members) => members.iter().find_map(|(name, v)| below(name, v)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Links that answers showed, by the address they lead to.
#[derive(Debug, Default)]
pub struct Shown(BTreeMap<String, FollowedLink>);

impl Shown {
    /// Learns the links of an answer from `origin`.
    pub fn learn(&mut self, origin: &str, exchange: usize, document: &Value) {
        let mut links = Vec::new();
        collect(document, &mut String::new(), &mut links);
        for (link, pointer) in links {
            let address = match link.strip_prefix('/') {
                Some(path) => format!("{origin}/{path}"),
                None => link.to_owned(),
            };
            self.0.insert(address, FollowedLink { exchange, pointer });
        }
    }

    /// The answer that showed an address last, and where.
    pub fn find(&self, address: &str) -> Option<FollowedLink> {
        self.0.get(address).cloned()
    }
}

/// Texts that look like an address, each with its place.
fn collect<'v>(value: &'v Value, at: &mut String, links: &mut Vec<(&'v str, String)>) {
    let above = at.len();
    match value {
        Value::String(text) => {
            let is_link = ["http://", "https://", "/"];
            if is_link.iter().any(|start| text.starts_with(start)) {
                links.push((text, at.clone()));
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                json::push(at, &n.to_string());
                collect(item, at, links);
                at.truncate(above);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                json::push(at, name);
                collect(member, at, links);
                at.truncate(above);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Scheme, host and port of a base URL, and its path without a trailing slash.
pub fn split_url(url: &str) -> (&str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..]
        .find('/')
        .map_or(url.len(), |at| authority + at);
    (&url[..path], url[path..].trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::{Leads, LinkError, Shown, leads, split_url, target_of};
    use crate::Target;
    use serde_json::json;

    #[test]
    fn what_was_shown_last_is_what_is_followed() {
        let mut shown = Shown::default();
        shown.learn(
            "http://h",
            0,
            &json!({"url": "http://h/a", "text": "no/link"}),
        );
        shown.learn("http://h", 1, &json!({"links": {"x/y": ["/a"]}}));
        let via = shown.find("http://h/a").unwrap();
        assert_eq!((via.exchange, via.pointer.as_str()), (1, "/links/x~1y/0"));
        assert_eq!(shown.find("no/link"), None);
    }

    fn target(public_url: Option<&str>) -> Target {
        Target {
            url: "http://127.0.0.1:8080/flow".to_owned(),
            public_url: public_url.map(str::to_owned),
            ..Target::default()
        }
    }

    #[test]
    fn links_lead_to_the_target_relative_or_not() {
        for (link, led_to) in [
            ("http://127.0.0.1:8080/v1/Flows?Page=1", "/v1/Flows?Page=1"),
            ("/v1/Flows?Page=1", "/v1/Flows?Page=1"),
            ("?Page=1", "/flow/v1/Flows?Page=1"),
            ("Flows?Page=1", "/flow/v1/Flows?Page=1"),
        ] {
            let led = target_of(&target(None), "/flow/v1/Flows?PageSize=2", link);
            assert_eq!(led.as_deref(), Ok(led_to), "{link}");
        }
    }

    #[test]
    fn a_public_address_is_the_target_where_it_is_configured() {
        let link = "https://api.example/v1/flow/v1/Flows?Page=1";
        let led = |public: Option<&str>| target_of(&target(public), "/flow/v1/Flows", link);
        assert_eq!(
            led(Some("https://api.example/v1/flow")).as_deref(),
            Ok("/flow/v1/Flows?Page=1")
        );
        for other in [
            None,
            Some("https://api.example/v"),
            Some("https://other.example"),
        ] {
            assert!(
                matches!(led(other), Err(LinkError::Elsewhere(_))),
                "{other:?}"
            );
        }
    }

    #[test]
    fn content_may_lie_where_the_configuration_says() {
        let mut target = target(None);
        target.content_origins = vec!["https://store.example".to_owned()];
        let home = Leads::Home("/flow/v1/Flows".to_owned());
        let there = leads(&target, &home, "https://store.example/a?b").unwrap();
        let path = |path: &str| Leads::Content("https://store.example".to_owned(), path.to_owned());
        assert_eq!(there, path("/a?b"));
        assert_eq!(leads(&target, &there, "c"), Ok(path("/c")));
        let back = leads(&target, &there, "http://127.0.0.1:8080/d");
        assert_eq!(back, Ok(Leads::Home("/d".to_owned())));
        for other in ["https://store.example:444/", "http://store.example/"] {
            assert!(leads(&target, &home, other).is_err(), "{other}");
        }
    }

    #[test]
    fn nothing_outside_is_ever_asked() {
        for hostile in [
            "//elsewhere.invalid/x",
            "https://127.0.0.1:8080/x",
            "http://127.0.0.1:8081/x",
            "http://user@127.0.0.1:8080/x",
            "http://127.0.0.1:8080@elsewhere.invalid/x",
            "file:///etc/passwd",
            "http://127.0.0.1:8080/\r\nHost: x",
        ] {
            assert!(target_of(&target(None), "/", hostile).is_err(), "{hostile}");
        }
    }

    #[test]
    fn base_urls_split_into_origin_and_prefix() {
        for (url, origin, prefix) in [
            ("http://127.0.0.1:1/flow", "http://127.0.0.1:1", "/flow"),
            ("https://h", "https://h", ""),
            ("https://h/", "https://h", ""),
            ("https://h/a/b/", "https://h", "/a/b"),
        ] {
            assert_eq!(split_url(url), (origin, prefix));
        }
    }
}
