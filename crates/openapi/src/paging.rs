//! How a list is read page by page, as its parameters and its page show it.

use crate::api::{Operation, plain, properties};
use crate::document::Part;
use crate::resources::queries;
use crate::schema::{Schemas, types_of};
use conformant_base::json::join;
use serde_json::{Map, Value, json};

// Names in lower case and without separators, as `plain` spells them; in `LINKS` and `TOKENS` the best one comes first.
const SIZES: &str = "limit pagesize perpage size maxresults pagelimit take top count maxitems maxpagesize \
     itemsperpage";
const CURSORS: &str = "cursor pagetoken after startingafter nexttoken continuationtoken continuation marker token \
     startafter pagecursor nextcursor";
const OFFSETS: &str = "offset skip start startindex pageoffset";
const PAGES: &str = "page pagenumber pageno pageindex pagenum currentpage";
const LINKS: &str = "next nexturl nextlink nextpageurl nextpage nexthref nextpagelink";
const TOKENS: &str =
    "nextcursor nextpagetoken nexttoken continuationtoken endcursor cursor nextmarker next";

/// Whether a list of plain names has this one.
pub(crate) fn is_one_of(names: &str, name: &str) -> bool {
    let name = plain(name);
    names.split(' ').any(|known| known == name)
}

/// What was recognized.
#[derive(Default)]
pub(crate) struct Paging {
    /// The parameter with the number of items on a page.
    pub(crate) size: Option<String>,
    /// The parameter that selects a page.
    pub(crate) position: Option<String>,
    /// Where a page contains the way to the next one.
    next: Option<Next>,
    /// The number of the first page.
    first: Option<u64>,
}

enum Next {
    Link(String),
    Token(String),
    Offset,
    Page,
}

impl Paging {
    pub(crate) fn of<'d>(
        schemas: &Schemas<'d>,
        operation: &Operation<'d>,
        page: &Part<'d>,
        key: &str,
    ) -> Self {
        let find = |names: &str| {
            let found = queries(operation).find(|p| is_one_of(names, &p.name));
            found.filter(|p| p.name.len() < 40)
        };
        let is_number = |schema: &Map<String, Value>| {
            types_of(schema)
                .iter()
                .any(|t| matches!(*t, "integer" | "number"))
        };
        let mut fields: Vec<(String, Part<'d>)> = Vec::new();
        if !key.is_empty() {
            for (name, part) in properties(schemas.doc, page) {
                if name == key {
                    continue;
                }
                let at = join("", name);
                for (inner, part) in properties(schemas.doc, &part) {
                    let below = join(&at, inner);
                    for (deepest, part) in properties(schemas.doc, &part) {
                        if plain(deepest) == "href" && plain(inner) == "next" {
                            fields.push((join(&below, deepest), part));
                        }
                    }
                    fields.push((below, part));
                }
                fields.push((at, part));
            }
        }
        let text_at = |names: &'static str| {
            let mut found = names.split(' ').flat_map(|name| {
                fields.iter().filter(move |(at, _)| {
                    let last = at.rsplit('/').next().unwrap_or_default();
                    plain(last) == name
                        || plain(last) == "href"
                            && plain(at).ends_with("nexthref")
                            && name == "next"
                })
            });
            found.find(|(_, part)| {
                let schema = schemas.request(part);
                let types = types_of(&schema);
                types.contains(&"string") || types.is_empty() && !schema.contains_key("properties")
            })
        };
        let mut paging = Self {
            size: find(SIZES)
                .filter(|p| is_number(&p.schema))
                .map(|p| p.name.clone()),
            ..Self::default()
        };
        let cursor = find(CURSORS).filter(|p| !is_number(&p.schema));
        let is_link = |(at, part): &(String, Part<'d>)| {
            let target = schemas.doc.resolve(part);
            let format = target.as_ref().and_then(|t| t.text("format"));
            let example = target.as_ref().and_then(|t| t.text("example"));
            let last = plain(at.rsplit('/').next().unwrap_or_default());
            matches!(format, Some("uri" | "url" | "uri-reference"))
                || example.is_some_and(|e| e.starts_with("http") || e.starts_with('/'))
                || last.ends_with("url")
                || last.ends_with("link")
                || last == "href"
        };
        let link = text_at(LINKS).filter(|found| cursor.is_none() || is_link(found));
        if let Some((at, _)) = link {
            paging.next = Some(Next::Link(at.clone()));
            paging.position = cursor
                .or_else(|| find(PAGES))
                .or_else(|| find(OFFSETS))
                .map(|p| p.name.clone());
        } else if let Some((cursor, (at, _))) = cursor.zip(text_at(TOKENS)) {
            paging.position = Some(cursor.name.clone());
            paging.next = Some(Next::Token(at.clone()));
        } else if let Some(offset) = find(OFFSETS).filter(|p| is_number(&p.schema)) {
            paging.position = Some(offset.name.clone());
            paging.next = Some(Next::Offset);
        } else if let Some(page) = find(PAGES).filter(|p| is_number(&p.schema)) {
            let number = |key: &str| page.schema.get(key).and_then(Value::as_u64);
            let first = number("minimum")
                .filter(|n| *n < 2)
                .or_else(|| number("default").filter(|n| *n < 2));
            paging.position = Some(page.name.clone());
            paging.first = Some(first.unwrap_or(1));
            paging.next = Some(Next::Page);
        }
        paging
    }

    /// Whether a parameter chooses a part of the list by its place.
    pub(crate) fn is_of_paging(&self, name: &str) -> bool {
        self.size.as_deref() == Some(name) || self.position.as_deref() == Some(name)
    }

    /// The value of a parameter of paging in requests.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        if self.size.as_deref() == Some(name) {
            return None;
        }
        match self.next {
            Some(Next::Offset) => Some(json!(0)),
            Some(Next::Page) => self.first.map(Value::from),
            _ => None,
        }
    }

    /// `x-paging`.
    pub(crate) fn written(&self) -> Value {
        let mut out = match (&self.next, &self.position) {
            (Some(Next::Link(at)), None) => json!({ "link": at }),
            (Some(Next::Link(at)), Some(parameter)) => {
                json!({ "link": at, "parameter": parameter })
            }
            (Some(Next::Token(at)), Some(parameter)) => {
                json!({ "token": at, "parameter": parameter })
            }
            (Some(Next::Offset), Some(parameter)) => json!({ "offset": parameter }),
            (Some(Next::Page), Some(parameter)) => {
                json!({ "page": parameter, "first": self.first.unwrap_or(1) })
            }
            _ => json!({}),
        };
        if let Some(size) = &self.size {
            out["size"] = json!(size);
        }
        out
    }

    /// What a person should decide.
    pub(crate) fn decision(&self, operation: &Operation<'_>) -> Option<String> {
        if self.next.is_some() {
            return None;
        }
        let of = operation.name();
        if operation.has_link_header {
            return Some(format!(
                "{of}: the next page is in the Link header, which is not followed; one page is judged"
            ));
        }
        let suspects: Vec<&str> = queries(operation)
            .map(|p| p.name.as_str())
            .filter(|name| {
                let known = [CURSORS, OFFSETS, PAGES];
                known.iter().any(|names| is_one_of(names, name))
            })
            .collect();
        match (&self.size, &suspects[..]) {
            (None, []) => None,
            _ => Some(format!(
                "{of}: no way to the next page was recognized; write it in x-paging (link, token, offset or page)"
            )),
        }
    }
}
