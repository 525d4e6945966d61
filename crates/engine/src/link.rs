//! Links in responses: followed only to the configured addresses of the target.

use super::settings::Target;
use super::stop::ANOTHER_ORIGIN;
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
    /// It is malformed or forbidden.
    #[error("{0}")]
    Broken(&'static str),
    /// It leads to another origin.
    #[error(
        "{ANOTHER_ORIGIN}; if {0} is an address of the target, configure it as `public_url` of its entry in \
         `targets`, with the path that comes before the documented ones; if it only serves content, as one of its `content_origins`"
    )]
    OtherOrigin(String),
}

/// The destination of a link that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// Path and query at the target.
    Home(String),
    /// The target's content store: origin, path and query. Requests to it carry no credentials.
    Content(String, String),
}

/// The destination of a link in the answer to a request for `from`.
pub(super) fn destination(
    target: &Target,
    from: &Destination,
    link: &str,
) -> Result<Destination, LinkError> {
    let (base, path) = match from {
        Destination::Home(path) => (target_url(target)?, path),
        Destination::Content(origin, path) => (origin_of(origin)?, path),
    };
    let parsed = resolved(&base, path, link)?;
    let origin = parsed.origin();
    match path_at_target(target, &parsed) {
        Ok(path) => Ok(Destination::Home(path)),
        Err(LinkError::OtherOrigin(named))
            if target
                .content_origins
                .iter()
                .any(|known| origin_of(known).is_ok_and(|known| known.origin() == origin)) =>
        {
            let path = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
            Ok(Destination::Content(named, path.to_owned()))
        }
        Err(why) => Err(why),
    }
}

/// Path and query at the target of a link in the answer to a request for `from`.
pub(super) fn target_of(target: &Target, from: &str, link: &str) -> Result<String, LinkError> {
    let parsed = resolved(&target_url(target)?, from, link)?;
    path_at_target(target, &parsed)
}

/// The address of the target that a link to a resource at this documented path shows, if a run would not follow it there.
pub fn unknown_address(target: &Target, link: &str, documented: &str) -> Option<String> {
    let home = target_url(target).ok()?;
    let parsed = resolved(&home, "/", link).ok()?;
    let below = &parsed.path()[..parsed.path().find(documented)?];
    let prefix = split_url(&target.url).1;
    // A public URL without its path would add that of the target.
    let is_known = path_at_target(target, &parsed)
        .is_ok_and(|path| path.find(documented) == Some(prefix.len()));
    let is_other = parsed.origin() != home.origin() && !is_known;
    is_other.then(|| format!("{}{below}", parsed.origin().ascii_serialization()))
}

fn origin_of(text: &str) -> Result<Url, LinkError> {
    Url::parse(text).map_err(|_| LinkError::Broken("not a URL"))
}

fn target_url(target: &Target) -> Result<Url, LinkError> {
    let (origin, _) = split_url(&target.url);
    Url::parse(origin).map_err(|_| LinkError::Broken("the target has no origin"))
}

/// The absolute URL of a link.
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

/// Path and query of a URL at the target.
fn path_at_target(target: &Target, parsed: &Url) -> Result<String, LinkError> {
    let (_, prefix) = split_url(&target.url);
    let home = target_url(target)?;
    let path = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
    if parsed.origin() == home.origin() {
        return Ok(path.to_owned());
    }
    // A public URL in front of the target: the same paths below another base.
    let public = target.public_url.as_deref().map(split_url);
    if let Some((front, below)) = public
        && Url::parse(front).is_ok_and(|front| front.origin() == parsed.origin())
        && let Some(rest) = path.strip_prefix(below)
        && (rest.is_empty() || rest.starts_with(['/', '?']))
    {
        return Ok(format!("{prefix}{rest}"));
    }
    Err(LinkError::OtherOrigin(
        parsed.origin().ascii_serialization(),
    ))
}

/// The answer that contains this address, and the place. If known, the one that the step reads (such as
/// `${page.json.meta.url}`), otherwise the latest.
pub(super) fn place_of_link(
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

/// The answer that an interpolation reads, and the place in it. Names of captures may contain dots.
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

/// The links of answers, by destination.
#[derive(Debug, Default)]
pub struct Shown(BTreeMap<String, FollowedLink>);

impl Shown {
    /// Adds the links of an answer from `origin`.
    pub fn learn(&mut self, origin: &str, exchange: usize, document: &Value) {
        json::visit_leaves(document, &mut |pointer, leaf| {
            let text = leaf.as_str().unwrap_or_default();
            let address = match text.strip_prefix('/') {
                Some(path) => format!("{origin}/{path}"),
                None if text.starts_with("http://") || text.starts_with("https://") => {
                    text.to_owned()
                }
                None => return,
            };
            let pointer = pointer.to_owned();
            self.0.insert(address, FollowedLink { exchange, pointer });
        });
    }

    /// The last answer that contained an address, and the place.
    pub fn find(&self, address: &str) -> Option<FollowedLink> {
        self.0.get(address).cloned()
    }
}

pub use conformant_base::http::split_url;

#[cfg(test)]
mod tests {
    use super::{Destination, LinkError, Shown, destination, split_url, target_of};
    use crate::Target;
    use serde_json::json;

    #[test]
    fn the_last_answer_with_a_link_is_found() {
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
            let destination = target_of(&target(None), "/flow/v1/Flows?PageSize=2", link);
            assert_eq!(destination.as_deref(), Ok(led_to), "{link}");
        }
    }

    #[test]
    fn a_public_address_is_the_target_where_it_is_configured() {
        let link = "https://api.example/v1/flow/v1/Flows?Page=1";
        let destination = |public: Option<&str>| target_of(&target(public), "/flow/v1/Flows", link);
        assert_eq!(
            destination(Some("https://api.example/v1/flow")).as_deref(),
            Ok("/flow/v1/Flows?Page=1")
        );
        for other in [
            None,
            Some("https://api.example/v"),
            Some("https://other.example"),
        ] {
            assert!(
                matches!(destination(other), Err(LinkError::OtherOrigin(_))),
                "{other:?}"
            );
        }
    }

    #[test]
    fn links_lead_to_configured_content_origins() {
        let mut target = target(None);
        target.content_origins = vec!["https://store.example".to_owned()];
        let home = Destination::Home("/flow/v1/Flows".to_owned());
        let there = destination(&target, &home, "https://store.example/a?b").unwrap();
        let path =
            |path: &str| Destination::Content("https://store.example".to_owned(), path.to_owned());
        assert_eq!(there, path("/a?b"));
        assert_eq!(destination(&target, &there, "c"), Ok(path("/c")));
        let back = destination(&target, &there, "http://127.0.0.1:8080/d");
        assert_eq!(back, Ok(Destination::Home("/d".to_owned())));
        for other in ["https://store.example:444/", "http://store.example/"] {
            assert!(destination(&target, &home, other).is_err(), "{other}");
        }
    }

    #[test]
    fn links_to_other_origins_are_errors() {
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
