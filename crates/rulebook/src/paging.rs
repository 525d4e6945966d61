//! Paging styles: how a service divides a list into pages. Read from `service.yaml`.

use conformant_base::json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// How the lists of a service are divided into pages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The query parameter with the number of items on a page.
    pub size: Option<String>,
    /// How a page leads to the next one.
    pub next: NextPage,
    /// Where a page shows its own URL, as a JSON Pointer.
    pub itself: Option<String>,
    /// Where it shows the URL of the page before.
    pub previous: Option<String>,
    /// Where it shows the URL of the first page.
    pub first: Option<String>,
    /// Further query parameters of paging, which filter nothing.
    #[serde(default)]
    pub parameters: Vec<String>,
}

/// How a page leads to the next one: by a URL (`at`), a cursor (`at`, `parameter`) or a number (`parameter`, `counts`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextPage {
    /// Where a page shows the URL or cursor, as a JSON Pointer; null, empty or absent on the last page.
    pub at: Option<String>,
    /// The query parameter that the cursor or number goes into.
    pub parameter: Option<String>,
    /// What the number counts.
    pub counts: Option<Counted>,
    /// The number of the first page.
    #[serde(default)]
    pub from: u64,
}

/// What a number in the request for a page counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Items on earlier pages.
    Items,
    /// Earlier pages.
    Pages,
}

/// What follows a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Following {
    /// Nothing.
    Nothing,
    /// The page at a URL.
    Link(String),
    /// The page that a query parameter selects.
    Query(String, String),
}

/// The style of services that declare none.
impl Default for Paging {
    fn default() -> Self {
        let at = |name: &str| Some(format!("/meta/{name}"));
        Self {
            size: Some("PageSize".to_owned()),
            next: NextPage {
                at: at("next_page_url"),
                ..NextPage::default()
            },
            itself: at("url"),
            previous: at("previous_page_url"),
            first: at("first_page_url"),
            parameters: vec!["Page".to_owned(), "PageToken".to_owned()],
        }
    }
}

impl Paging {
    /// Where a page shows what leads to the next one; empty if nothing does.
    pub fn next_at(&self) -> &str {
        self.next.at.as_deref().unwrap_or_default()
    }

    /// Whether pages lead to each other by URLs.
    pub fn has_links(&self) -> bool {
        self.next.at.is_some() && self.next.parameter.is_none()
    }

    /// Whether that place of a page shows the URL or cursor of a page.
    pub fn is_page_at(&self, pointer: &str) -> bool {
        let all = [&self.itself, &self.previous, &self.first];
        let mut all = all.into_iter().flatten();
        pointer == self.next_at() || all.any(|at| at == pointer)
    }

    /// Whether a query parameter selects a page.
    pub fn selects(&self, parameter: &str) -> bool {
        let of_next = self.next.parameter.iter();
        of_next
            .chain(&self.parameters)
            .any(|name| name == parameter)
    }

    /// Whether a query parameter is one of paging, and filters nothing.
    pub fn has(&self, parameter: &str) -> bool {
        self.selects(parameter) || self.size.as_deref() == Some(parameter)
    }

    /// What follows a page with so many items, after so many pages and items including it. `size` is the requested
    /// number of items on a page.
    pub fn following(
        &self,
        page: &Value,
        items: usize,
        (pages, all): (usize, usize),
        size: Option<u64>,
    ) -> Following {
        let next = &self.next;
        if let Some(at) = &next.at {
            let shown = match json::get(page, at) {
                Some(Value::String(text)) if !text.is_empty() => text.clone(),
                Some(Value::Number(number)) if next.parameter.is_some() => number.to_string(),
                _ => return Following::Nothing,
            };
            return match &next.parameter {
                Some(parameter) => Following::Query(parameter.clone(), shown),
                None => Following::Link(shown),
            };
        }
        let (Some(parameter), Some(counts)) = (&next.parameter, next.counts) else {
            return Following::Nothing;
        };
        let is_full = size.is_none_or(|size| items as u64 >= size);
        if items == 0 || !is_full {
            return Following::Nothing;
        }
        let done = match counts {
            Counted::Items => all,
            Counted::Pages => pages,
        };
        let number = next.from.saturating_add(done as u64);
        Following::Query(parameter.clone(), number.to_string())
    }

    /// Why it cannot be used, with the place in the file.
    pub(super) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let next = &self.next;
        let is_number = next.parameter.is_some() && next.counts.is_some();
        if next.at.is_some() == is_number {
            return Some((
                "/paging/next",
                "write `{ at }` for a URL, `{ at, parameter }` for a cursor, or `{ parameter, counts }` for a number",
            ));
        }
        let named = [&next.at, &self.itself, &self.previous, &self.first];
        let mut named = named.into_iter().flatten();
        named
            .any(|at| !at.starts_with('/'))
            .then_some(("/paging", "places are JSON Pointers such as `/meta/next`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paging(next: Value) -> Paging {
        serde_json::from_value(json!({"size": "limit", "next": next})).unwrap()
    }

    fn query(name: &str, value: &str) -> Following {
        Following::Query(name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_cursor_goes_into_its_parameter() {
        let paging = paging(json!({"at": "/next", "parameter": "cursor"}));
        let page = json!({"next": "abc"});
        assert_eq!(
            paging.following(&page, 2, (1, 2), None),
            query("cursor", "abc")
        );
        let last = json!({"next": null});
        assert_eq!(paging.following(&last, 2, (1, 2), None), Following::Nothing);
        assert!(paging.has("limit") && paging.selects("cursor") && !paging.has("status"));
        assert!(!paging.has_links());
    }

    #[test]
    fn numbers_count_items_or_pages_until_a_page_is_not_full() {
        let offset = paging(json!({"parameter": "offset", "counts": "items"}));
        let page = json!([]);
        assert_eq!(
            offset.following(&page, 2, (2, 4), Some(2)),
            query("offset", "4")
        );
        assert_eq!(
            offset.following(&page, 1, (2, 3), Some(2)),
            Following::Nothing
        );
        let number = paging(json!({"parameter": "page", "counts": "pages", "from": 1}));
        assert_eq!(number.following(&page, 3, (2, 6), None), query("page", "3"));
        assert_eq!(number.following(&page, 0, (3, 6), None), Following::Nothing);
    }

    #[test]
    fn a_next_page_without_a_place_or_a_number_is_a_problem() {
        assert!(paging(json!({})).problem().is_some());
        assert!(paging(json!({"parameter": "cursor"})).problem().is_some());
        assert!(paging(json!({"at": "next"})).problem().is_some());
        assert!(paging(json!({"at": "/next"})).problem().is_none());
        assert!(Paging::default().problem().is_none());
    }
}
