//! Links that the target hands out: followed only on the origin they came from.

use crate::json;
use crate::judge::evidence::{Exchange, Via};
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// The longest link that is followed.
const LINK_BYTES_MAX: usize = 8 * 1024;

/// Path and query of a link on `origin` (scheme, host and port), to which a relative one is
/// resolved; else why it must not be followed.
pub(super) fn target_of(origin: &str, link: &str) -> Result<String, &'static str> {
    if link.len() > LINK_BYTES_MAX {
        return Err("longer than 8 KiB");
    }
    if link.chars().any(char::is_control) {
        return Err("it has control characters");
    }
    let home = Url::parse(origin).map_err(|_| "the target has no origin")?;
    let parsed = home.join(link).map_err(|_| "it is no URL")?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("it carries credentials");
    }
    if parsed.origin() != home.origin() {
        return Err("it leads to another origin");
    }
    Ok(parsed[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

/// The latest answer that showed this address, and where.
pub(super) fn shown_in(exchanges: &[Exchange], url: &str) -> Option<Via> {
    let shown = |(exchange, seen): (usize, &Exchange)| {
        let pointer = place_of(seen.document()?, url)?;
        Some(Via { exchange, pointer })
    };
    exchanges.iter().enumerate().rev().find_map(shown)
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
pub(crate) struct Shown(BTreeMap<String, Via>);

impl Shown {
    /// Learns the links of an answer from `origin`.
    pub(crate) fn learn(&mut self, origin: &str, exchange: usize, document: &Value) {
        let mut links = Vec::new();
        collect(document, &mut String::new(), &mut links);
        for (link, pointer) in links {
            let address = match link.strip_prefix('/') {
                Some(path) => format!("{origin}/{path}"),
                None => link.to_owned(),
            };
            self.0.insert(address, Via { exchange, pointer });
        }
    }

    /// The answer that showed an address last, and where.
    pub(crate) fn find(&self, address: &str) -> Option<Via> {
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

#[cfg(test)]
mod tests {
    use super::{Shown, target_of};
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

    #[test]
    fn only_links_on_the_same_origin_are_followed() {
        let origin = "http://127.0.0.1:8080";
        assert_eq!(
            target_of(origin, "http://127.0.0.1:8080/v1/Flows?Page=1").as_deref(),
            Ok("/v1/Flows?Page=1")
        );
        assert_eq!(
            target_of(origin, "/v1/Flows?Page=1").as_deref(),
            Ok("/v1/Flows?Page=1")
        );
        for hostile in [
            "//elsewhere.invalid/x",
            "https://127.0.0.1:8080/x",
            "http://127.0.0.1:8081/x",
            "http://user@127.0.0.1:8080/x",
            "http://127.0.0.1:8080@elsewhere.invalid/x",
            "file:///etc/passwd",
            "http://127.0.0.1:8080/\r\nHost: x",
        ] {
            assert!(target_of(origin, hostile).is_err(), "{hostile}");
        }
    }
}
