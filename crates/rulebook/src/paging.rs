//! How a list is read page by page: `x-paging` next to `x-list-key`.
//!
//! Without `x-paging` a page contains the URL of the next one in `meta.next_page_url`, and `PageSize` is the number of items.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Where a page contains the URL of the next one, if no `x-paging` is written.
pub const NEXT_PAGE_URL: &str = "/meta/next_page_url";

/// How a list is read page by page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// The parameter with the number of items on a page.
    pub size: Option<String>,
    /// Parameters that select a page; every other query parameter is a filter.
    pub positions: Vec<String>,
    /// The way to the next page.
    pub next: NextPage,
}

/// The way from a page to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPage {
    /// None: the list has one page, or the way is not known.
    None,
    /// The URL at this pointer; null, empty or absent on the last page.
    Link(String),
    /// The token at this pointer, as the value of the parameter; null, empty or absent on the last page.
    Token(String, String),
    /// The number of items before the page, as the value of the parameter. The list ends with an empty page.
    Offset(String),
    /// The number of the page, counted from the first one, as the value of the parameter. The list ends with an empty page.
    Page(String, u64),
}

/// `x-paging` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    link: Option<String>,
    token: Option<String>,
    parameter: Option<String>,
    offset: Option<String>,
    page: Option<String>,
    first: Option<u64>,
    size: Option<String>,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            size: Some("PageSize".to_owned()),
            positions: vec!["Page".to_owned(), "PageToken".to_owned()],
            next: NextPage::Link(NEXT_PAGE_URL.to_owned()),
        }
    }
}

impl Written {
    /// What it says, or what is wrong with it.
    pub(crate) fn read(self) -> Result<Paging, &'static str> {
        let ways = [&self.link, &self.token, &self.offset, &self.page];
        if ways.into_iter().flatten().count() > 1 {
            return Err("expected one of `link`, `token`, `offset` and `page`");
        }
        let mut positions: Vec<String> = self.parameter.iter().cloned().collect();
        let next = if let Some(at) = self.link {
            NextPage::Link(at)
        } else if let Some(at) = self.token {
            let parameter = self.parameter.ok_or("a `token` needs a `parameter`")?;
            NextPage::Token(at, parameter)
        } else if let Some(parameter) = self.offset {
            positions.push(parameter.clone());
            NextPage::Offset(parameter)
        } else if let Some(parameter) = self.page {
            positions.push(parameter.clone());
            NextPage::Page(parameter, self.first.unwrap_or(1))
        } else {
            NextPage::None
        };
        Ok(Paging {
            size: self.size,
            positions,
            next,
        })
    }
}

impl Paging {
    /// Where a page contains the way to the next one; empty if it follows from the request.
    pub fn next_at(&self) -> &str {
        match &self.next {
            NextPage::Link(at) | NextPage::Token(at, _) => at,
            NextPage::None | NextPage::Offset(_) | NextPage::Page(..) => "",
        }
    }

    /// Whether pages are addressed by the number of a page or of items before it.
    pub fn is_counted(&self) -> bool {
        matches!(self.next, NextPage::Offset(_) | NextPage::Page(..))
    }

    /// Whether pages contain `meta` with the URLs of other pages.
    pub fn has_meta(&self) -> bool {
        self.next_at() == NEXT_PAGE_URL
    }

    /// Whether a query parameter is for paging, not a filter.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.size.as_deref() == Some(name) || self.positions.iter().any(|known| known == name)
    }

    /// The parameters of the next page, where the way there is no URL; nothing after the last page.
    pub fn following(
        &self,
        page: &Value,
        items: usize,
        sent: &BTreeMap<String, Value>,
    ) -> Option<Map<String, Value>> {
        let number = |name: &str, otherwise: u64| {
            let value = sent.get(name);
            let text = value.and_then(|value| value.as_str()?.parse().ok());
            value.and_then(Value::as_u64).or(text).unwrap_or(otherwise)
        };
        let (name, value) = match &self.next {
            NextPage::None | NextPage::Link(_) => return None,
            NextPage::Token(at, parameter) => {
                let token = page.pointer(at).filter(|token| !is_end(token))?;
                (parameter, token.clone())
            }
            NextPage::Offset(_) | NextPage::Page(..) if items == 0 => return None,
            NextPage::Offset(parameter) => (parameter, json!(number(parameter, 0) + items as u64)),
            NextPage::Page(parameter, first) => (parameter, json!(number(parameter, *first) + 1)),
        };
        Some(Map::from_iter([(name.clone(), value)]))
    }

    /// Whether a page shows that it is the last one.
    pub fn is_last(&self, page: Option<&Value>, items: usize, asked: Option<u64>) -> bool {
        let at = |pointer: &str| page.and_then(|page| page.pointer(pointer));
        match &self.next {
            NextPage::Link(to) | NextPage::Token(to, _) => at(to).is_none_or(is_end),
            NextPage::Offset(_) | NextPage::Page(..) => {
                items == 0 || asked.is_some_and(|asked| (items as u64) < asked)
            }
            NextPage::None => {
                self.size.is_none() || asked.is_some_and(|asked| (items as u64) < asked)
            }
        }
    }
}

fn is_end(next: &Value) -> bool {
    next.is_null() || *next == ""
}
