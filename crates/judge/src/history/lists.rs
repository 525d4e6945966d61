//! Lists: pages that are connected by their links.

use super::History;
use super::identity::ResourceId;
use super::observations::{Appearance, Moment};
use crate::acceptance::Acceptance;
use crate::context::Context;
use crate::evidence::Poll;
use conformant_base::json;
use conformant_rulebook::{Does, Operation, Place};
use serde_json::Value;
use std::collections::BTreeMap;

/// The link to the next page.
pub const NEXT: &str = "/meta/next_page_url";
/// The link to the previous page.
pub const PREVIOUS: &str = "/meta/previous_page_url";
/// The link to the first page.
pub const FIRST: &str = "/meta/first_page_url";
/// The link to the page itself.
pub const ITSELF: &str = "/meta/url";

/// One reading of a list, page by page.
#[derive(Debug)]
pub struct List<'a> {
    pub operation: &'a Operation,
    /// The resource type of its items.
    pub face: &'a str,
    /// The resources in its path, outermost first.
    pub parents: Vec<Option<ResourceId>>,
    /// The sent filters, by parameter.
    pub filters: BTreeMap<&'a str, &'a Value>,
    /// Exchanges, page by page.
    pub pages: Vec<usize>,
    pub items: Vec<Item>,
    /// Whether it was read from its beginning, by parameters and not by a link.
    pub from_start: bool,
    pub is_complete: bool,
    /// When its first page was read.
    pub first: Moment,
    /// When its last page was read.
    pub last: Moment,
    /// Whether a page is a poll attempt.
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

    /// The pointer to its items on a page.
    pub fn place(&self) -> String {
        let key = self.operation.list_key.as_deref().unwrap_or_default();
        conformant_base::json::join("", key)
    }

    /// Whether the key of each item can be read.
    pub fn is_readable(&self) -> bool {
        self.items.iter().all(|item| item.resource.is_some())
    }
}

impl History<'_> {
    /// The list and the page number (from 0) that an exchange returned, as an index into the lists that are read from their
    /// beginning. Links between pages count as what they are named.
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
        // Links lead back in time, so that this ends.
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

/// Connects the pages of all lists, in the order of the requests.
pub(super) fn read<'a>(context: &Context<'a>, history: &mut History<'a>) {
    let mut items: BTreeMap<usize, Vec<Item>> = BTreeMap::new();
    for (id, resource) in history.resources.iter() {
        for sight in &resource.observations {
            if let (Appearance::Item(representation), Some(page)) = (sight.shows, sight.exchange) {
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
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, seen) in context.seen.iter().enumerate() {
        let Some(operation) = seen.operation.filter(|o| o.does == Does::Lists) else {
            continue;
        };
        let exchange = seen.exchange;
        let via = exchange.via.as_ref().filter(|via| via.pointer == NEXT);
        let page = items.remove(&index).unwrap_or_default();
        let accepted = seen.acceptance == Acceptance::Accepted;
        let next = exchange.document().and_then(|page| json::get(page, NEXT));
        let is_last = next.is_none_or(|next| next.is_null() || *next == "");
        // A page that violates a rule as a whole has unknown items and an unknown end.
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
                let Some(face) = operation.resource.as_deref() else {
                    continue;
                };
                let queries = operation
                    .parameters
                    .iter()
                    .filter(|p| p.place == Place::Query);
                let filters = queries.filter(|p| !p.name.starts_with("Page"));
                let filters = filters
                    .filter_map(|p| Some((p.name.as_str(), exchange.sent.get(&p.name)?)))
                    .collect();
                let from_start = exchange
                    .via
                    .as_ref()
                    .is_none_or(|via| !is_paging(&via.pointer))
                    && !["Page", "PageToken"]
                        .iter()
                        .any(|p| exchange.sent.contains_key(*p));
                history.lists.push(List {
                    operation,
                    face,
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
        if is_sound && !is_last && (continued.is_some() || via.is_none()) {
            open.insert(index, at);
        }
    }
}
