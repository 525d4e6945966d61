//! List pages: `PageSize`, `PageToken`, the `meta` object (D2 Paging; D3 Endpoints).
//!
//! A token names an item instead of an offset, so that a walk returns each item once while others are added
//! or removed. `Page` is only counted in the links.

use super::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::http;
use serde_json::{Value, json};
use std::ops::Range;

/// Direction of a list along its sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Most recent first.
    Descending,
}

/// A list before paging.
#[derive(Clone, Debug)]
pub struct Listing<'a> {
    /// The array's name and `meta.key`.
    pub key: &'a str,
    /// Its absolute URL without query.
    pub url: String,
    /// Other query parameters, repeated in page links.
    pub filters: Vec<(String, String)>,
    /// Display order of `items`.
    pub order: Order,
    /// Largest page (D2 and D3, Paging: 1000).
    pub page_size_max: u64,
}

/// Largest page (D2 and D3, Paging).
const PAGE_SIZE_MAX: u64 = 1000;
/// Default page (D2 and D3, Paging).
const PAGE_SIZE_DEFAULT: usize = 50;

impl<'a> Listing<'a> {
    /// A list without filters.
    pub fn new(key: &'a str, url: String, order: Order) -> Self {
        Self {
            key,
            url,
            filters: Vec::new(),
            order,
            page_size_max: PAGE_SIZE_MAX,
        }
    }

    /// The requested page. Each item has its sequence number and a function that renders it.
    pub fn page<Show: FnOnce() -> Value>(
        &self,
        core: &Core,
        call: &Call<'_>,
        items: impl IntoIterator<Item = (u64, Show)>,
    ) -> Answer {
        let in_flow = call.request.path().starts_with("/flow/");
        let faults = Faults { core, in_flow };
        let page_size = self.page_size(call, faults)?;
        let number: u64 = match call.query.get("Page") {
            None => 0,
            Some(text) => text
                .parse()
                .map_err(|_| Refusal::bad_parameter("Page", "not a number"))?,
        };
        let mut items: Vec<_> = items.into_iter().collect();
        items.sort_by_key(|(sequence, _)| *sequence);
        if self.order == Order::Descending {
            items.reverse();
        }
        let token = call.query.get("PageToken");
        let is_long = |count: usize| count > PAGE_SIZE_DEFAULT;
        if is_long(items.len())
            && faults.has(Fault::FlowLongListLosesItem, Fault::ChatLongListLosesItem)
        {
            items.remove(PAGE_SIZE_DEFAULT);
        }
        if is_long(items.len()) && in_flow && core.fails(Fault::FlowOrderTurnsBeyondPage) {
            items[PAGE_SIZE_DEFAULT..].reverse();
        }
        let span = self.span(faults, (number, token), page_size, &items)?;
        let (before, mut after) = neighbours(core, &span, page_size, &items);
        if after.is_some() && faults.has_offsets() {
            after = Some(Token::After(span.end as u64).write(false));
        }
        core.list_mark
            .set(items[span.clone()].last().map(|(sequence, _)| *sequence));
        let link = |number: u64, token: Option<&str>| {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.filters);
            query.append_pair("PageSize", &page_size.to_string());
            query.append_pair("Page", &number.to_string());
            if let Some(token) = token {
                query.append_pair("PageToken", token);
            }
            if core.varies(Variant::PageUrlsExtra) {
                query.append_pair("Cache", "1");
            }
            let url = match self.url.strip_prefix(&core.origin) {
                Some(path) if core.varies(Variant::RelativePageUrls) => path,
                _ => &self.url,
            };
            format!("{url}?{}", query.finish())
        };
        let next = after.map(|token| link(number.saturating_add(1), Some(&token)));
        let previous = before.map(|token| link(number.saturating_sub(1), Some(&token)));
        let meta = json!({
            "page": number,
            "page_size": page_size,
            "first_page_url": link(0, None),
            "previous_page_url": previous,
            "url": link(number, token),
            "next_page_url": next,
            "key": self.key,
        });
        let shown: Vec<Value> = items.drain(span).map(|(_, show)| show()).collect();
        Ok(core.ok(&json!({"meta": meta, (self.key): shown})))
    }

    fn page_size(&self, call: &Call<'_>, faults: Faults<'_>) -> Result<u64, Refusal> {
        let core = faults.core;
        let Some(text) = call.query.get("PageSize") else {
            return Ok(PAGE_SIZE_DEFAULT as u64);
        };
        let size: u64 = text
            .parse()
            .map_err(|_| Refusal::bad_parameter("PageSize", "not a number"))?;
        // A size out of bounds must not be applied; nothing else is defined.
        if size == 0 && !faults.has(Fault::FlowPageSizeZero, Fault::ChatPageSizeZero) {
            return if core.varies(Variant::PageSizeRaised) {
                Ok(1)
            } else {
                Err(Refusal::bad_parameter("PageSize", "at least 1"))
            };
        }
        let one_more = size == self.page_size_max + 1
            && faults.has(Fault::FlowPageSizeOneMore, Fault::ChatPageSizeOneMore);
        if size > self.page_size_max
            && !one_more
            && !faults.has(Fault::FlowPageSizeUnbounded, Fault::ChatPageSizeUnbounded)
        {
            return if core.varies(Variant::PageSizeRefused) {
                Err(Refusal::bad_parameter("PageSize", "too large"))
            } else {
                Ok(self.page_size_max)
            };
        }
        Ok(size)
    }

    /// Range of items on the page.
    fn span<T>(
        &self,
        faults: Faults<'_>,
        (number, token): (u64, Option<&str>),
        page_size: u64,
        items: &[(u64, T)],
    ) -> Result<Range<usize>, Refusal> {
        let core = faults.core;
        let size = usize::try_from(page_size).unwrap_or(usize::MAX);
        let short = usize::from(core.varies(Variant::ShortPages) && size > 1);
        let over = usize::from(faults.has(Fault::FlowPageOverfull, Fault::ChatPageOverfull));
        let full = (size - short).saturating_add(over);
        let Some(token) =
            token.filter(|_| !faults.has(Fault::FlowPageTokenIgnored, Fault::ChatPageTokenIgnored))
        else {
            return Ok(0..items.len().min(full));
        };
        match Token::read(token) {
            Some(Token::After(offset)) if faults.has_offsets() => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let start = start.min(items.len());
                Ok(start..items.len().min(start.saturating_add(full)))
            }
            Some(Token::After(mark)) => {
                let mark = core
                    .list_mark
                    .get()
                    .filter(|last| {
                        *last != mark
                            && faults.has(
                                Fault::FlowPageTokenOfLastList,
                                Fault::ChatPageTokenOfLastList,
                            )
                    })
                    .unwrap_or(mark);
                let start = self.first_past(mark, items);
                let is_long = items.len() > PAGE_SIZE_DEFAULT && size == PAGE_SIZE_DEFAULT;
                let is_fourth = number > 2 && !faults.in_flow;
                let start = if faults.has(Fault::FlowPageRepeats, Fault::ChatPageRepeats)
                    || (is_long
                        && faults.has(
                            Fault::FlowLongListRepeatsItem,
                            Fault::ChatLongListRepeatsItem,
                        ))
                    || (is_fourth && core.fails(Fault::ChatFourthPageRepeats))
                {
                    start.saturating_sub(1)
                } else if faults.has(Fault::FlowPageSkips, Fault::ChatPageSkips)
                    || (is_fourth && core.fails(Fault::ChatFourthPageSkips))
                {
                    items.len().min(start + 1)
                } else {
                    start
                };
                Ok(start..items.len().min(start.saturating_add(full)))
            }
            Some(Token::Before(mark)) => {
                let past = self.first_past(mark, items);
                let is_there = past > 0 && items[past - 1].0 == mark;
                let end = past - usize::from(is_there);
                Ok(end.saturating_sub(full)..end)
            }
            None if core.varies(Variant::BadPageTokenIgnored) => Ok(0..items.len().min(full)),
            None => Err(Refusal::bad_parameter(
                "PageToken",
                "not a token of this list",
            )),
        }
    }

    /// The first item after `mark`, which may be gone.
    fn first_past<T>(&self, mark: u64, items: &[(u64, T)]) -> usize {
        items.partition_point(|(sequence, _)| match self.order {
            Order::Ascending => *sequence <= mark,
            Order::Descending => *sequence >= mark,
        })
    }
}

/// Tokens of the previous and the next page.
fn neighbours<T>(
    core: &Core,
    span: &Range<usize>,
    page_size: u64,
    items: &[(u64, T)],
) -> (Option<String>, Option<String>) {
    let write = |token: Token| token.write(core.varies(Variant::OpaqueTokens));
    let before =
        (span.start > 0 && !span.is_empty()).then(|| write(Token::Before(items[span.start].0)));
    let more = span.end < items.len()
        || (core.varies(Variant::EmptyLastPage) && span.len() as u64 == page_size);
    let after = (more && !span.is_empty()).then(|| write(Token::After(items[span.end - 1].0)));
    (before, after)
}

/// Position of a page: after or before an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    After(u64),
    Before(u64),
}

impl Token {
    fn write(self, opaque: bool) -> String {
        let (letters, mark) = match self {
            Self::After(mark) => ("PA", mark),
            Self::Before(mark) => ("PB", mark),
        };
        if opaque {
            format!("{letters}+{mark}/&?=%")
        } else {
            format!("{letters}{mark}")
        }
    }

    fn read(text: &str) -> Option<Self> {
        let number = |digits: &str| {
            digits
                .trim_start_matches('+')
                .trim_end_matches("/&?=%")
                .parse()
        };
        if let Some(digits) = text.strip_prefix("PA") {
            return number(digits).ok().map(Self::After);
        }
        number(text.strip_prefix("PB")?).ok().map(Self::Before)
    }
}

/// The paging faults of a service.
#[derive(Clone, Copy)]
struct Faults<'a> {
    core: &'a Core,
    in_flow: bool,
}

impl Faults<'_> {
    fn has(self, flow: Fault, chat: Fault) -> bool {
        self.core.fails(if self.in_flow { flow } else { chat })
    }

    /// Fault: a token is the number of items before the page.
    fn has_offsets(self) -> bool {
        !self.in_flow && self.core.fails(Fault::ChatPageTokenIsOffset)
    }
}

/// Joins an origin and decoded path segments into an absolute URL.
pub(super) fn url_of(origin: &str, segments: &[&str]) -> String {
    let mut url = origin.to_owned();
    for segment in segments {
        url.push('/');
        url.push_str(&http::percent_encode(segment));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use conformant_base::clock::Timestamp;
    use conformant_base::http::{Request, Response};

    /// Reads one page of a list with `sequences`, as a flow list.
    fn read(core: &Core, order: Order, sequences: &[u64], target: &str) -> Result<Value, Refusal> {
        let request = Request::new("GET", target);
        let call = Call::new(&request, &[]);
        let listing = Listing {
            filters: vec![("Kind".to_owned(), "a b".to_owned())],
            ..Listing::new("items", "http://x/flow/items".to_owned(), order)
        };
        let items = sequences.iter().map(|n| (*n, move || json!(n)));
        let Response { body, .. } = listing.page(core, &call, items)?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    fn core_with(variants: &[Variant]) -> Core {
        let settings = Settings {
            variants: variants.iter().copied().collect(),
            ..Settings::default()
        };
        Core::new(settings, Timestamp::UNIX_EPOCH)
    }

    /// The request target of a link.
    fn target(link: &Value) -> Option<String> {
        let link = link.as_str().filter(|link| !link.is_empty())?;
        Some(link.strip_prefix("http://x").unwrap().to_owned())
    }

    /// Follows `name` from `start`; an item is added after the first page.
    fn walk(core: &Core, order: Order, count: u64, start: &str, name: &str) -> Vec<Vec<u64>> {
        let mut sequences: Vec<u64> = (1..=count).collect();
        let mut next = Some(start.to_owned());
        let mut pages = Vec::new();
        while let Some(at) = next {
            let page = read(core, order, &sequences, &at).unwrap();
            pages.push(serde_json::from_value(page["items"].clone()).unwrap());
            if order == Order::Descending && pages.len() == 1 {
                sequences.push(count + 1);
            }
            next = target(&page["meta"][name]);
            assert!(pages.len() < 50, "the walk does not end");
        }
        pages
    }

    #[test]
    fn walks_yield_each_item_once_under_every_freedom() {
        let freedoms: [&[Variant]; 4] = [
            &[],
            &[Variant::OpaqueTokens],
            &[Variant::EmptyLastPage],
            &[Variant::ShortPages],
        ];
        for variants in freedoms {
            let core = core_with(variants);
            for size in [1, 2, 3, 7, 1000] {
                let start = format!("/flow/items?PageSize={size}");
                let up = walk(&core, Order::Ascending, 7, &start, "next_page_url").concat();
                assert_eq!(up, [1, 2, 3, 4, 5, 6, 7], "{variants:?} {size}");
                let down = walk(&core, Order::Descending, 7, &start, "next_page_url").concat();
                assert_eq!(down, [7, 6, 5, 4, 3, 2, 1], "{variants:?} {size}");
            }
        }
    }

    #[test]
    fn previous_links_lead_back_the_same_pages() {
        let core = core_with(&[]);
        let start = "/flow/items?PageSize=3";
        let there = walk(&core, Order::Ascending, 7, start, "next_page_url");
        assert_eq!(there, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
        let last = "/flow/items?PageSize=3&Page=2&PageToken=PA6";
        let back = walk(&core, Order::Ascending, 7, last, "previous_page_url");
        assert_eq!(back, [vec![7], vec![4, 5, 6], vec![1, 2, 3]]);
        // The item of a token may be gone.
        let target = "/flow/items?PageToken=PA3";
        let page = read(&core, Order::Ascending, &[1, 2, 4], target).unwrap();
        assert_eq!(page["items"], json!([4]));
    }

    #[test]
    fn meta_has_its_seven_keys_and_links_keep_the_filters() {
        let core = core_with(&[]);
        let target = "/flow/items?PageSize=2&Page=4";
        let page = read(&core, Order::Ascending, &[1, 2, 3], target).unwrap();
        let base = "http://x/flow/items?Kind=a+b&PageSize=2";
        let expected = json!({
            "page": 4,
            "page_size": 2,
            "first_page_url": format!("{base}&Page=0"),
            "previous_page_url": null,
            "url": format!("{base}&Page=4"),
            "next_page_url": format!("{base}&Page=5&PageToken=PA2"),
            "key": "items",
        });
        assert_eq!(page["meta"], expected);
    }

    #[test]
    fn page_sizes_are_bounded() {
        let many: Vec<u64> = (1..=1100).collect();
        let check = |core: &Core, query: &str, shown: Option<usize>| {
            let target = format!("/flow/items{query}");
            let page = read(core, Order::Ascending, &many, &target).ok();
            let count = page.map(|page| page["items"].as_array().unwrap().len());
            assert_eq!(count, shown, "{query}");
        };
        let core = core_with(&[]);
        for (query, shown) in [
            ("", Some(50)),
            ("?PageSize=1", Some(1)),
            ("?PageSize=1000", Some(1000)),
            ("?PageSize=1001", Some(1000)),
            ("?PageSize=18446744073709551615", Some(1000)),
            ("?PageSize=0", None),
            ("?PageSize=-1", None),
            ("?PageSize=x", None),
            ("?Page=-1", None),
            ("?Page=7", Some(50)),
            ("?Page=18446744073709551615", Some(50)),
            ("?PageToken=PA18446744073709551615", Some(0)),
            ("?PageToken=elsewhere", None),
        ] {
            check(&core, query, shown);
        }
        let core = core_with(&[Variant::PageSizeRefused, Variant::PageSizeRaised]);
        check(&core, "?PageSize=1001", None);
        check(&core, "?PageSize=0", Some(1));
    }
}
