//! List pages: `PageSize`, `PageToken`, the `meta` object (D2 Paging; D3 Endpoints).
//!
//! A token names the last item of the page before, not an offset, so that a walk yields each item
//! once also while items are added.

use super::{Answer, Call, Core, Refusal};
use crate::http;
use serde_json::{Map, Value, json};

/// Which way a list runs along its sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Most recent first.
    Descending,
}

/// A list about to be cut into pages.
#[derive(Clone, Debug)]
pub struct Listing<'a> {
    /// The array's name and `meta.key`.
    pub key: &'a str,
    /// Its absolute address without query.
    pub url: String,
    /// Query parameters other than the paging ones, which page links repeat.
    pub filters: Vec<(String, String)>,
    /// The order in which `items` are shown.
    pub order: Order,
    /// The largest page (D2 and D3, Paging: 1000).
    pub page_size_max: u64,
}

impl Listing<'_> {
    /// Answers the page that the call asks for; each item has its sequence number.
    pub fn page(&self, core: &Core, call: &Call<'_>, mut items: Vec<(u64, Value)>) -> Answer {
        const PAGE_SIZE_DEFAULT: u64 = 50;
        let page_size = match call.query.get("PageSize") {
            None => PAGE_SIZE_DEFAULT,
            Some(text) => {
                let size: u64 = text
                    .parse()
                    .map_err(|_| Refusal::bad_parameter("PageSize", "not a number"))?;
                if size == 0 {
                    return Err(Refusal::bad_parameter("PageSize", "at least 1"));
                }
                size.min(self.page_size_max)
            }
        };
        let number: u64 = match call.query.get("Page") {
            None => 0,
            Some(text) => text
                .parse()
                .map_err(|_| Refusal::bad_parameter("Page", "not a number"))?,
        };
        items.sort_by_key(|(sequence, _)| *sequence);
        if self.order == Order::Descending {
            items.reverse();
        }
        let start = match call.query.get("PageToken") {
            None => 0,
            Some(token) => self.start(token, &items)?,
        };
        let end = items
            .len()
            .min(start + usize::try_from(page_size).unwrap_or(usize::MAX));
        let link = |number: u64, token: Option<String>| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.filters);
            query.append_pair("PageSize", &page_size.to_string());
            query.append_pair("Page", &number.to_string());
            if let Some(token) = token {
                query.append_pair("PageToken", &token);
            }
            Value::String(format!("{}?{}", self.url, query.finish()))
        };
        // "After" tokens lead on, "before" tokens lead back; both name an item.
        let next = (end < items.len() && end > 0)
            .then(|| link(number + 1, Some(format!("PA{}", items[end - 1].0))));
        let previous = (start > 0 && start < items.len() && number > 0).then(|| {
            link(
                number - 1,
                Some(format!("PB{}.{page_size}", items[start].0)),
            )
        });
        let meta = json!({
            "page": number,
            "page_size": page_size,
            "first_page_url": link(0, None),
            "previous_page_url": previous,
            "url": link(number, call.query.get("PageToken").map(str::to_owned)),
            "next_page_url": next,
            "key": self.key,
        });
        let shown: Vec<Value> = items.drain(start..end).map(|(_, item)| item).collect();
        let mut body = Map::new();
        body.insert("meta".to_owned(), meta);
        body.insert(self.key.to_owned(), Value::Array(shown));
        Ok(core.ok(&Value::Object(body)))
    }

    fn start(&self, token: &str, items: &[(u64, Value)]) -> Result<usize, Refusal> {
        let bad = || Refusal::bad_parameter("PageToken", "not a token of this list");
        let is_past = |sequence: u64, mark: u64| match self.order {
            Order::Ascending => sequence > mark,
            Order::Descending => sequence < mark,
        };
        if let Some(mark) = token.strip_prefix("PA") {
            let mark: u64 = mark.parse().map_err(|_| bad())?;
            return Ok(items
                .iter()
                .position(|(s, _)| is_past(*s, mark))
                .unwrap_or(items.len()));
        }
        let (mark, size) = token
            .strip_prefix("PB")
            .and_then(|t| t.split_once('.'))
            .ok_or_else(bad)?;
        let mark: u64 = mark.parse().map_err(|_| bad())?;
        let size: usize = size.parse().map_err(|_| bad())?;
        let at = items
            .iter()
            .position(|(s, _)| *s == mark || is_past(*s, mark))
            .unwrap_or(items.len());
        Ok(at.saturating_sub(size))
    }
}

/// Joins an origin and decoded path segments into an absolute URL.
pub fn url_of(origin: &str, segments: &[&str]) -> String {
    let mut url = origin.to_owned();
    for segment in segments {
        url.push('/');
        url.push_str(&http::percent_encode(segment));
    }
    url
}
