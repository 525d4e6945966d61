//! Readings of lists, put together from their pages.

use super::History;
use super::identity::ResourceId;
use super::observations::{Appearance, Moment};
use crate::acceptance::Acceptance;
use crate::context::{Context, Seen};
use crate::evidence::{Exchange, Poll};
use crate::sites::{Site, Sites};
use conformant_rulebook::paging::{NEXT_PAGE_URL, NextPage, Paging};
use conformant_rulebook::{Action, Operation, ParameterLocation};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a page has the url of the next page.
pub const NEXT: &str = NEXT_PAGE_URL;
/// Where it has the url of the previous page.
pub const PREVIOUS: &str = "/meta/previous_page_url";
/// Where it has the url of the first page.
pub const FIRST: &str = "/meta/first_page_url";
/// Where it has its own url.
pub const ITSELF: &str = "/meta/url";

/// One reading of a list, page by page.
#[derive(Debug)]
pub struct List<'a> {
    pub operation: &'a Operation,
    /// The resource type of its items.
    pub item_type: &'a str,
    /// The resources in its path, outermost first.
    pub parents: Vec<Option<ResourceId>>,
    /// The sent filters, by parameter.
    pub filters: BTreeMap<&'a str, &'a Value>,
    /// Exchanges, page by page.
    pub pages: Vec<usize>,
    pub items: Vec<Item>,
    /// Whether its first page is the first page of the list: no link of another page led to it, and no parameter asked for
    /// a later one.
    pub from_start: bool,
    pub is_complete: bool,
    /// When its first page was read.
    pub first: Moment,
    /// When its last page was read.
    pub last: Moment,
    /// Whether a page was read by a poll that was not yet satisfied.
    pub is_attempt: bool,
}

/// One item of a list.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The resource, if its key can be read.
    pub resource: Option<ResourceId>,
    /// Index into the case's representations.
    pub representation: usize,
}

impl List<'_> {
    /// The nearest resource in its path.
    pub fn scope(&self) -> Option<ResourceId> {
        self.parents.last().copied().flatten()
    }

    /// Whether it contains the resource.
    pub fn holds(&self, resource: ResourceId) -> bool {
        self.items
            .iter()
            .any(|item| item.resource == Some(resource))
    }

    /// The places of its items, page by page.
    pub fn sites(&self) -> Option<Sites> {
        let pages = self.pages.iter();
        Sites::collect(pages.map(|&page| Site::answer(page, self.place())))
    }

    /// The pointer to its items on a page.
    pub fn place(&self) -> String {
        self.operation.items_at().unwrap_or_default()
    }

    /// What a list without an expected item is called in a finding.
    pub fn without_it(&self) -> String {
        match self.pages.len() {
            0 | 1 => "a list without it".to_owned(),
            pages => format!("{pages} pages without it"),
        }
    }

    /// Whether the key of each item can be read.
    pub fn is_readable(&self) -> bool {
        self.items.iter().all(|item| item.resource.is_some())
    }
}

impl History<'_> {
    /// The index of the list that was read from its start, and the page number (from 0) of what an exchange returned. A page
    /// that a link led to is numbered by the page with the link: one higher after the link to the next page.
    pub fn page_of(&self, context: &Context<'_>, exchange: usize) -> Option<(usize, usize)> {
        let (at, place) = self.lists.iter().enumerate().find_map(|(at, list)| {
            let place = list.pages.iter().position(|page| *page == exchange)?;
            Some((at, place))
        })?;
        let list = &self.lists[at];
        if list.from_start {
            return Some((at, place));
        }
        let via = context.seen[list.pages[0]].exchange.via.as_ref()?;
        // The page with the link was read earlier, so this ends.
        let (of, from) =
            (via.exchange < list.pages[0]).then(|| self.page_of(context, via.exchange))??;
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

/// Whether a pointer is that of a link between pages.
fn is_paging(pointer: &str) -> bool {
    [NEXT, PREVIOUS, FIRST, ITSELF].contains(&pointer)
}

/// Whether a request for a page behind the last one was rejected. A service may do that where pages have numbers. An error
/// of the service does not show where its list ends.
fn ends_list(paging: &Paging, seen: &Seen<'_>) -> bool {
    let is_rejected = matches!(seen.acceptance, Acceptance::Rejected(_));
    paging.is_counted() && is_rejected && !seen.exchange.is_server_error()
}

/// The number of items on a full page: the requested one up to the documented maximum, or the documented default. `None` if
/// neither is known.
fn requested_page_size(operation: &Operation, exchange: &Exchange) -> Option<u64> {
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
        NextPage::Offset(_)
        | NextPage::Page(..)
        | NextPage::Link(_)
        | NextPage::Token(..)
        | NextPage::None => None,
    };
    let Some(sent) = exchange.sent.get(parameter) else {
        return false;
    };
    let text = || sent.as_str().and_then(|text| text.parse().ok());
    first.is_none_or(|first| sent.as_u64().or_else(text) != Some(first))
}

/// Collects the items of each page, keyed by exchange, in the order of the page.
fn items_by_page<'a>(context: &Context<'a>, history: &History<'a>) -> BTreeMap<usize, Vec<Item>> {
    let mut items: BTreeMap<usize, Vec<Item>> = BTreeMap::new();
    for (id, resource) in history.resources.iter() {
        for observation in &resource.observations {
            if let (Appearance::Item(representation), Some(page)) =
                (observation.shows, observation.exchange)
            {
                let resource = Some(id);
                items.entry(page).or_default().push(Item {
                    resource,
                    representation,
                });
            }
        }
    }
    for (representation, shown) in context.representations.iter().enumerate() {
        let page = shown.exchange.filter(|_| !shown.prefix.is_empty());
        if let Some(page) = page {
            let known = items.entry(page).or_default();
            if !known
                .iter()
                .any(|item| item.representation == representation)
            {
                let resource = None;
                known.push(Item {
                    resource,
                    representation,
                });
            }
        }
    }
    for known in items.values_mut() {
        known.sort_by_key(|item| item.representation);
    }
    items
}

/// Puts the pages of all lists together, in the order in which they were asked for.
pub(super) fn read<'a>(context: &Context<'a>, history: &mut History<'a>) {
    let mut items = items_by_page(context, history);
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, seen) in context.seen.iter().enumerate() {
        let listing = seen.operation.filter(|o| o.does == Action::Lists);
        let Some(operation) = listing.filter(|_| seen.is_ours()) else {
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
        let asked = requested_page_size(operation, exchange);
        let is_last = paging.is_last(document.map(|page| &**page), count, asked);
        // A page that is invalid as a whole shows neither its items nor whether more pages follow.
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
                let Some(item_type) = operation.resource.as_deref() else {
                    continue;
                };
                let queries = operation
                    .parameters
                    .iter()
                    .filter(|p| p.place == ParameterLocation::Query);
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
                    item_type,
                    parents: history.path_bindings[index].parents.clone(),
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
        // A reading goes on only from its own last page: a page that a link to a known page led to begins none.
        if is_sound && !is_last && (continued.is_some() || via.is_none()) {
            open.insert(index, at);
        }
    }
}
