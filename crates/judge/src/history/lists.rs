//! Lists: pages put together by the links that lead from one to the next.

use super::History;
use super::identity::ThingId;
use super::sights::{Shows, When};
use crate::acceptance::Acceptance;
use crate::case::{Case, Seen};
use crate::evidence::{Exchange, Poll};
use conformant_rulebook::paging::{NEXT_PAGE_URL, NextPage, Paging};
use conformant_rulebook::{Does, Operation, Place};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a page names the next one.
pub const NEXT: &str = NEXT_PAGE_URL;
/// Where it names the one before.
pub const PREVIOUS: &str = "/meta/previous_page_url";
/// Where it names the first one.
pub const FIRST: &str = "/meta/first_page_url";
/// Where it names itself.
pub const ITSELF: &str = "/meta/url";

/// A list as it was read, page by page.
#[derive(Debug)]
pub struct List<'a> {
    /// The operation.
    pub operation: &'a Operation,
    /// Kind of its items as they are shown.
    pub face: &'a str,
    /// What its path names, outermost first.
    pub parents: Vec<Option<ThingId>>,
    /// Filters that were sent, by parameter.
    pub filters: BTreeMap<&'a str, &'a Value>,
    /// Exchanges, page by page.
    pub pages: Vec<usize>,
    /// What it holds, in order.
    pub items: Vec<Item>,
    /// Whether it was read from its beginning, by its parameters and by no link.
    pub from_start: bool,
    /// Whether it was read from its first page to its last.
    pub is_complete: bool,
    /// When its first page was read.
    pub first: When,
    /// When its last page was.
    pub last: When,
    /// Whether a page was one try of several.
    pub is_attempt: bool,
}

/// One item of a list.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// What it is, where its key can be read.
    pub thing: Option<ThingId>,
    /// Index into the case's representations.
    pub representation: usize,
}

impl List<'_> {
    /// The nearest thing that its path names.
    pub fn scope(&self) -> Option<ThingId> {
        self.parents.last().copied().flatten()
    }

    /// Whether it shows that thing.
    pub fn holds(&self, thing: ThingId) -> bool {
        self.items.iter().any(|item| item.thing == Some(thing))
    }

    /// Where its items stand on a page.
    pub fn place(&self) -> String {
        self.operation.items_at().unwrap_or_default()
    }

    /// Whether each of its items is known by its key.
    pub fn is_readable(&self) -> bool {
        self.items.iter().all(|item| item.thing.is_some())
    }
}

impl History<'_> {
    /// Which page of which list an exchange brought: an index into the lists, read from their
    /// beginning, and the page's place counted from 0. Links between pages count as what they are named.
    pub fn page_of(&self, case: &Case<'_>, exchange: usize) -> Option<(usize, usize)> {
        let (at, place) = self.lists.iter().enumerate().find_map(|(at, list)| {
            let place = list.pages.iter().position(|page| *page == exchange)?;
            Some((at, place))
        })?;
        let list = &self.lists[at];
        if list.from_start {
            return Some((at, place));
        }
        let via = case.seen[list.pages[0]].exchange.via.as_ref()?;
        // A link leads back in time, so that this ends.
        let (of, from) =
            (via.exchange < list.pages[0]).then(|| self.page_of(case, via.exchange))??;
        let begins = match via.pointer.as_str() {
            FIRST => 0,
            ITSELF => from,
            PREVIOUS => from.checked_sub(1)?,
            NEXT => from + 1,
            _ => return None,
        };
        Some((of, begins + place))
    }
}

/// Whether a link to a page stands there.
fn is_paging(pointer: &str) -> bool {
    [NEXT, PREVIOUS, FIRST, ITSELF].contains(&pointer)
}

/// Whether a request for a page behind the last one was rejected, as it may be where pages are counted.
fn ends_list(paging: &Paging, seen: &Seen<'_>) -> bool {
    let is_counted = matches!(paging.next, NextPage::Offset(_) | NextPage::Page(..));
    is_counted && matches!(seen.acceptance, Acceptance::Rejected(_))
}

/// How many items a page holds if there are as many: what the request asks for within the documented bounds, or the
/// documented default.
fn asked(operation: &Operation, exchange: &Exchange) -> Option<u64> {
    let size = operation.page_size()?;
    let Some(sent) = exchange.sent.get(&size.name) else {
        return size.default.as_ref().and_then(Value::as_u64);
    };
    let text = || sent.as_str().and_then(|text| text.parse().ok());
    let sent = sent.as_u64().or_else(text)?;
    let most = size.schema.get("maximum").and_then(Value::as_u64);
    most.is_some_and(|most| sent <= most).then_some(sent)
}

/// Whether a parameter selects another page than the first one.
fn is_beyond_first(paging: &Paging, parameter: &str, exchange: &Exchange) -> bool {
    let first = match &paging.next {
        NextPage::Offset(name) if name == parameter => Some(0),
        NextPage::Page(name, first) if name == parameter => Some(*first),
        _ => None,
    };
    let Some(sent) = exchange.sent.get(parameter) else {
        return false;
    };
    let text = || sent.as_str().and_then(|text| text.parse().ok());
    first.is_none_or(|first| sent.as_u64().or_else(text) != Some(first))
}

/// Puts the pages of all lists together, in the order in which they were asked for.
pub(super) fn read<'a>(case: &Case<'a>, history: &mut History<'a>) {
    let mut items: BTreeMap<usize, Vec<Item>> = BTreeMap::new();
    for (id, thing) in history.things.iter() {
        for sight in &thing.sights {
            if let (Shows::Item(representation), Some(page)) = (sight.shows, sight.exchange) {
                let thing = Some(id);
                items.entry(page).or_default().push(Item {
                    thing,
                    representation,
                });
            }
        }
    }
    for (representation, shown) in case.representations.iter().enumerate() {
        let page = shown.exchange.filter(|_| !shown.prefix.is_empty());
        if let Some(page) = page {
            let known = items.entry(page).or_default();
            if !known
                .iter()
                .any(|item| item.representation == representation)
            {
                let thing = None;
                known.push(Item {
                    thing,
                    representation,
                });
            }
        }
    }
    for known in items.values_mut() {
        known.sort_by_key(|item| item.representation);
    }
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, seen) in case.seen.iter().enumerate() {
        let Some(operation) = seen.operation.filter(|o| o.does == Does::Lists) else {
            continue;
        };
        let exchange = seen.exchange;
        let paging = &operation.paging;
        let via = exchange.via.as_ref();
        let via = via.filter(|via| via.pointer == paging.next_at());
        let page = items.remove(&index).unwrap_or_default();
        let is_past_end = via.is_some() && ends_list(paging, seen);
        let accepted = seen.acceptance == Acceptance::Accepted || is_past_end;
        let document = exchange.document().filter(|_| !is_past_end);
        let count = document.map_or(0, |page| operation.items_of(page).len());
        let asked = asked(operation, exchange);
        let is_last = paging.is_last(document.map(|page| &**page), count, asked);
        // What broke as a whole shows neither what it holds nor whether it ends.
        let is_sound = accepted && !seen.broken.iter().any(String::is_empty);
        let continued = via.and_then(|via| open.remove(&via.exchange));
        let at = match continued {
            Some(at) => {
                let list = &mut history.lists[at];
                list.pages.push(index);
                list.items.extend(page);
                list.last = history.moments[index];
                list.is_complete = is_sound && is_last;
                list.is_attempt |= exchange.poll == Poll::Attempt;
                at
            }
            None => {
                let Some(face) = operation.thing.as_deref() else {
                    continue;
                };
                let queries = operation
                    .parameters
                    .iter()
                    .filter(|p| p.place == Place::Query);
                let filters = queries.filter(|p| !paging.has_parameter(&p.name));
                let filters = filters
                    .filter_map(|p| Some((p.name.as_str(), exchange.sent.get(&p.name)?)))
                    .collect();
                let from_start = exchange
                    .via
                    .as_ref()
                    .is_none_or(|via| !is_paging(&via.pointer))
                    && !paging
                        .positions
                        .iter()
                        .any(|p| is_beyond_first(paging, p, exchange));
                history.lists.push(List {
                    operation,
                    face,
                    parents: history.bound[index].parents.clone(),
                    filters,
                    pages: vec![index],
                    items: page,
                    from_start,
                    is_complete: from_start && is_sound && is_last,
                    first: history.moments[index],
                    last: history.moments[index],
                    is_attempt: exchange.poll == Poll::Attempt,
                });
                history.lists.len() - 1
            }
        };
        if is_sound && !is_last && (continued.is_some() || via.is_none()) {
            open.insert(index, at);
        }
    }
}
