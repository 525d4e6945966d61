//! Walks lists page by page to their end.

use super::calls::unanswered;
use super::{Called, Runner};
use crate::link::{LinkError, target_of};
use crate::request;
use crate::stop::Stop;
use conformant_base::http::Request;
use conformant_base::text::excerpt;
use conformant_judge::Acceptance;
use conformant_judge::evidence::{Exchange, Expectation, FollowedLink, Span, Walk, WalkEnd};
use conformant_rulebook::Operation;
use conformant_rulebook::paging::NextPage;
use conformant_rulebook::step::Call;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Limits on pages and items of one walk. Longer lists are legal, so a walk that reaches a limit is inconclusive.
const WALK_PAGES_MAX: usize = 1_000;
const WALK_ITEMS_MAX: usize = 100_000;
/// Pages after which a walk of a live target restarts with larger pages, if its step set a smaller page size.
const WALK_PAGES_SMALL: usize = 20;
/// The size of the larger pages.
const PAGE_SIZE_LARGE: u64 = 100;
/// If a walk reaches a limit and at least this many of its last pages are empty, the list counts as endless.
const WALK_EMPTY_PAGES_MAX: usize = 100;

/// The end of a walk that reached a limit. The last `empty_pages` pages contain no items.
fn end_of_long_walk(pages: usize, items: usize, empty_pages: usize) -> WalkEnd {
    let so_far = format!("{pages} pages, {items} items, and no end");
    if empty_pages >= WALK_EMPTY_PAGES_MAX {
        WalkEnd::Endless(format!(
            "{so_far}; the last {empty_pages} pages contain no items"
        ))
    } else {
        WalkEnd::Cut(format!("paging cap reached: {so_far}"))
    }
}

impl Runner<'_> {
    /// The request for the page after the exchange `previous`.
    fn page_request(&self, operation: &Operation, previous: usize, target: String) -> Exchange {
        let mut exchange = unanswered(&self.evidence.exchanges[previous]);
        exchange.request.target = target;
        let named = page_parameters(operation, &exchange.request);
        exchange.sent.extend(named);
        exchange.span = Span::at(self.session.now());
        let paging = &operation.paging;
        exchange.via = Some(FollowedLink {
            exchange: previous,
            pointer: paging.next_at().to_owned(),
        });
        let mut parameters = operation.parameters.iter();
        let position = parameters.find(|p| paging.positions.last() == Some(&p.name));
        if let Some(position) = position {
            exchange.expectation = Expectation::Accepted(position.rule.clone());
        }
        // The request for a page after the last one may be rejected.
        if paging.is_counted() {
            exchange.expectation = Expectation::Either;
        }
        exchange
    }

    /// The address of the page after `page`, which the exchange `previous` returned; `None` after the last page.
    fn next_page(
        &self,
        operation: &Operation,
        page: &Value,
        previous: usize,
    ) -> Option<NextAddress> {
        let paging = &operation.paging;
        if let NextPage::Link(at) = &paging.next {
            let link = page.pointer(at).and_then(Value::as_str);
            let link = link.filter(|link| !link.is_empty())?;
            return Some(NextAddress::Link(link.to_owned()));
        }
        let exchange = &self.evidence.exchanges[previous];
        let items = operation.items_of(page).len();
        let parameters = paging.following(page, items, &exchange.sent)?;
        let target = request::with_query(&exchange.request.target, &parameters);
        Some(NextAddress::Target(target))
    }

    /// Whether the last request asked for a page after the last one. A service with page numbers may reject that; an error
    /// of the service does not show where its list ends.
    fn is_past_end(&self, operation: &Operation, pages: &[usize], acceptance: &Acceptance) -> bool {
        let [_, .., last] = pages else { return false };
        operation.paging.is_counted()
            && matches!(acceptance, Acceptance::Rejected(_))
            && !self.evidence.exchanges[*last].is_server_error()
    }

    /// Reads all pages of a list. `first` is the first page, which was already read. Returns `{pages, items}`: the
    /// number of pages and, if the step reads them, all items.
    pub(super) fn walk(
        &mut self,
        step: &Call,
        operation: &Operation,
        first: &Called,
    ) -> Result<Value, Stop> {
        if operation.list_key.is_none() {
            let message = format!("{} does not return a list", operation.id);
            return Err(Stop::Error(message));
        }
        let mut pages = vec![first.exchange];
        // A long list is large, so it is copied only if later steps read it.
        let wants_items = step.capture.is_some() || !step.expect.is_empty();
        let copied_items = |page: &Value| match wants_items {
            true => operation.items_of(page).to_vec(),
            false => Vec::new(),
        };
        let mut items: Vec<Value> = copied_items(&first.value);
        let mut count = operation.items_of(&first.value).len();
        let mut empty_pages_in_a_row = 0;
        let is_counted = operation.paging.is_counted();
        let mut page = Arc::clone(&first.value);
        let mut addresses: BTreeSet<String> = BTreeSet::new();
        let mut acceptance = first.acceptance.clone();
        for between in &step.between {
            self.step(between)?;
        }
        let end = loop {
            if self.is_past_end(operation, &pages, &acceptance) {
                // The previous page was the last one.
                acceptance = Acceptance::Accepted;
                pages.pop();
                break WalkEnd::Complete;
            }
            if let Acceptance::Rejected(why) | Acceptance::Inconclusive(why) = &acceptance {
                break WalkEnd::Broken(why.clone());
            }
            let previous = pages[pages.len() - 1];
            let Some(next) = self.next_page(operation, &page, previous) else {
                break WalkEnd::Complete;
            };
            if !addresses.insert(next.text().to_owned()) {
                break WalkEnd::Endless(format!("a cycle at {}", excerpt(next.text(), 200)));
            }
            if pages.len() == WALK_PAGES_SMALL
                && step.between.is_empty()
                && let Some(wider) = self.with_larger_pages(step, operation)
            {
                let called = self.call(&wider, operation)?;
                return self.walk(&wider, operation, &called);
            }
            if pages.len() >= WALK_PAGES_MAX || count > WALK_ITEMS_MAX {
                break end_of_long_walk(pages.len(), count, empty_pages_in_a_row);
            }
            let target = match self.target_of_page(next, previous) {
                Ok(target) => target,
                Err(end) => break end,
            };
            let exchange = self.page_request(operation, previous, target);
            let called = self.exchange(exchange, operation)?;
            acceptance = called.acceptance;
            pages.push(called.exchange);
            let page_items = operation.items_of(&called.value);
            let is_repeated =
                is_counted && !page_items.is_empty() && page_items == operation.items_of(&page);
            let size = operation.paging.size.as_deref().unwrap_or_default();
            let asked = step.with.get(size).and_then(Value::as_u64);
            if is_repeated && asked.is_none_or(|asked| (page_items.len() as u64) < asked) {
                // Some services answer a request for a page after the last one with the last page.
                pages.pop();
                break WalkEnd::Complete;
            }
            items.extend(copied_items(&called.value));
            if is_repeated {
                // Two equal full pages: the second one stays in the walk, so that rules report its items.
                break WalkEnd::Complete;
            }
            if page_items.is_empty() {
                empty_pages_in_a_row += 1;
            } else {
                empty_pages_in_a_row = 0;
            }
            count += page_items.len();
            page = called.value;
        };
        let was_inserted_into =
            end == WalkEnd::Complete && self.was_inserted_into(operation, &pages)?;
        let result = json!({"pages": pages.len(), "items": items});
        // If the step changes the list during the walk, no rule judges the pages together.
        if step.between.is_empty() {
            self.evidence.walks.push(Walk {
                service: operation.service.clone(),
                operation: operation.id.clone(),
                pages,
                end: end.clone(),
                moved: was_inserted_into,
                step: self.step,
            });
        }
        // An incomplete walk shows neither that an item is in the list nor that it is absent.
        if let WalkEnd::Cut(why) = end {
            return Err(Stop::Inconclusive(why));
        }
        // The caller handles a rejected first page.
        match acceptance {
            Acceptance::Inconclusive(why) => {
                Err(Stop::Inconclusive(format!("a page of the walk: {why}")))
            }
            Acceptance::Rejected(_) if first.acceptance == Acceptance::Accepted => {
                Err(Stop::Unexpected)
            }
            Acceptance::Accepted | Acceptance::Rejected(_) => Ok(result),
        }
    }

    /// The address of the next page, or the end of the walk if it cannot be requested.
    fn target_of_page(&self, next: NextAddress, previous: usize) -> Result<String, WalkEnd> {
        let previous = &self.evidence.exchanges[previous];
        let settings = &self.session.settings().targets[&previous.service];
        let link = match next {
            NextAddress::Target(target) => return Ok(target),
            NextAddress::Link(link) => link,
        };
        target_of(settings, &previous.request.target, &link).map_err(|why| {
            let message = format!("{}: {why}", excerpt(&link, 200));
            match why {
                LinkError::Broken(_) => WalkEnd::Unfollowable(message),
                LinkError::OtherOrigin(_) => WalkEnd::Cut(message),
            }
        })
    }

    /// The step with a larger page size, because lists of a live target can be long. `None` if the target is not live or
    /// the step set no page size or a larger one.
    fn with_larger_pages(&self, step: &Call, operation: &Operation) -> Option<Call> {
        let size = operation.page_size()?;
        let most = size.schema.get("maximum").and_then(Value::as_u64);
        let larger = most.unwrap_or(PAGE_SIZE_LARGE).min(PAGE_SIZE_LARGE);
        let asked = step.with.get(&size.name).and_then(Value::as_u64);
        if !self.session.is_live() || asked.is_none_or(|asked| asked >= larger) {
            return None;
        }
        let mut wider = step.clone();
        wider.with.insert(size.name.clone(), json!(larger));
        Some(wider)
    }

    /// Whether another client inserted an item at the start of the list during the walk. Then an item appears on two
    /// pages, and the first page now begins with another item.
    fn was_inserted_into(&mut self, operation: &Operation, pages: &[usize]) -> Result<bool, Stop> {
        if operation.list_key.is_none() || !self.session.is_live() {
            return Ok(false);
        }
        let mut seen = BTreeSet::new();
        let walked = || {
            let exchanges = pages.iter().map(|&page| &self.evidence.exchanges[page]);
            exchanges.flat_map(|exchange| items_in(exchange, operation))
        };
        // A single item may be as large as a body, and cannot appear twice.
        let has_duplicate =
            walked().nth(1).is_some() && walked().any(|item| !seen.insert(fingerprint(item)));
        if !has_duplicate {
            return Ok(false);
        }
        let mut again = unanswered(&self.evidence.exchanges[pages[0]]);
        again.span = Span::at(self.session.now());
        let again = self.exchange(again, operation)?.exchange;
        let first =
            |exchange: usize| items_in(&self.evidence.exchanges[exchange], operation).first();
        Ok(first(again) != first(pages[0]))
    }
}

/// The list items in a response.
fn items_in<'e>(exchange: &'e Exchange, operation: &Operation) -> &'e [Value] {
    let page = exchange.document();
    page.map_or(&[], |page| operation.items_of(page))
}

/// A digest of an item, because its text can be as long as a body.
fn fingerprint(item: &Value) -> [u8; 32] {
    Sha256::digest(item.to_string()).into()
}

/// Where the next page is.
enum NextAddress {
    /// A URL that the page contains.
    Link(String),
    /// The request target of the page, with other parameters.
    Target(String),
}

impl NextAddress {
    fn text(&self) -> &str {
        match self {
            Self::Link(text) | Self::Target(text) => text,
        }
    }
}

/// Query parameters of a page link. Parameters that it omits keep the values of the first page.
fn page_parameters<'a>(
    operation: &'a Operation,
    request: &Request,
) -> impl Iterator<Item = (String, Value)> + use<'a> {
    let query = request.query_pairs();
    operation
        .parameters
        .iter()
        .filter_map(move |p| Some((p.name.clone(), request::repeated(&query, &p.name)?)))
}
