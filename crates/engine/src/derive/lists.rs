//! Lists: walked over small pages, over more than one page of the default size, filtered on each of
//! them, and by every address that a page shows.

use super::cases::{Cases, accepted, either, only, rename_all};
use super::credentials::follow;
use super::later::a_while;
use conformant_rulebook::step::{Call, Get, Step};
use conformant_rulebook::{Place, Rule, Subject};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Items on a page where no default is stated (D2, Limits; D3, Limits), and at most.
const PAGE_SIZE: u64 = 50;
const PAGE_SIZE_MAX: u64 = 100;
/// A smaller page that holds several items.
const SMALL_PAGE: u64 = 20;

/// Every case about lists, where the operation is one.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.list_key.is_none() {
        return;
    }
    let Some(size) = cases.page_size() else {
        return;
    };
    let walk = Call {
        walk: true,
        ..accepted(&cases.own_rule())
    };
    let two = only(&size, 2);
    cases.add("walk", "a walk over small pages", walk.clone(), &two);
    if cases.operation.paging.has_links() {
        page_urls(cases, &size);
        filtered_page_urls(cases, &size);
    } else {
        filtered_pages(cases, &size, &walk);
    }
    beyond_a_page(cases, &size, &walk);
}

/// From the second of three pages to every page whose address it shows, and on from there.
fn page_urls(cases: &mut Cases<'_>, size: &str) {
    let first = Call {
        capture: Some("first".to_owned()),
        ..accepted(&cases.own_rule())
    };
    let paging = &cases.operation.paging;
    let mut steps = cases.more(3);
    steps.push(cases.call(first, &only(size, 1)));
    let urls = [
        kept("first", &paging.itself, "itself"),
        kept("first", &paging.next.at, "second"),
        kept("second.json", &paging.itself, "second-itself"),
        kept("second.json", &paging.first, "back-at-first"),
        kept("second.json", &paging.previous, "before"),
        kept("second.json", &paging.next.at, "third"),
        kept("third.json", &paging.previous, "second-again"),
        kept("third.json", &paging.first, "first-again"),
    ];
    steps.extend(urls.into_iter().flatten());
    // What addresses lead to is compared where the list begins as it did.
    steps.push(cases.call(either(), &only(size, 1)));
    cases.after_setup("page-urls", "every address that a page shows", steps);
}

/// The same of a filtered list: from its second page back to the one before and to the first. Something that
/// does not fit the filter comes first and last, so that a page without the filter is another one.
fn filtered_page_urls(cases: &mut Cases<'_>, size: &str) {
    for (name, value) in filters(cases) {
        let mut with = only(&name, value);
        with.insert(size.to_owned(), json!(1));
        let paging = &cases.operation.paging;
        let first = Call {
            capture: Some("first".to_owned()),
            ..either()
        };
        let mut steps = cases.more(2);
        steps.push(cases.call(first, &with));
        let urls = [
            kept("first", &paging.next.at, "second"),
            kept("second.json", &paging.previous, "before"),
            kept("second.json", &paging.first, "back-at-first"),
            paging
                .previous
                .as_ref()
                .and_then(|_| kept("before.json", &paging.next.at, "second-again")),
        ];
        steps.extend(urls.into_iter().flatten());
        // What addresses lead to is compared where the list begins as it did.
        steps.push(cases.call(either(), &with));
        let case = format!("page-urls-{}", conformant_rulebook::kebab(&name));
        let what = format!("addresses of pages that {name} filters");
        cases.after_setup(&case, &what, steps);
    }
}

/// Each filter on pages of one item, with items that do not fit it.
fn filtered_pages(cases: &mut Cases<'_>, size: &str, walk: &Call) {
    for (name, value) in filters(cases) {
        let mut with = only(&name, value);
        with.insert(size.to_owned(), json!(1));
        let mut steps = cases.more(2);
        steps.push(cases.call(walk.clone(), &with));
        let case = format!("pages-{}", conformant_rulebook::kebab(&name));
        let what = format!("pages that {name} filters");
        cases.after_setup(&case, &what, steps);
    }
}

/// The filters of the happy path.
fn filters(cases: &Cases<'_>) -> Vec<(String, Value)> {
    let given = cases.happy.optional.iter();
    given
        .filter(|(name, _)| !cases.operation.paging.has(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A page that the URL at a place of a captured page leads to, kept under a name.
fn kept(page: &str, at: &Option<String>, name: &str) -> Option<Step> {
    let url = url_at(page, at.as_deref()?);
    Some(Step::from(Get {
        capture: Some(name.to_owned()),
        ..follow(&url)
    }))
}

/// What stands at a place of a captured page.
pub(super) fn url_at(page: &str, at: &str) -> String {
    format!("${{{page}{}}}", at.replace('/', "."))
}

/// One item more than a page holds; each filter finds its few on pages of one.
fn beyond_a_page(cases: &mut Cases<'_>, size: &str, walk: &Call) {
    let default = cases.operation.page_size(&BTreeMap::new());
    let default = default.unwrap_or(PAGE_SIZE);
    let count = usize::try_from(default.saturating_add(1)).unwrap_or(usize::MAX);
    if default > PAGE_SIZE_MAX {
        return;
    }
    let small = SMALL_PAGE.min(default);
    let more = cases.more(count);
    if more.is_empty() {
        return;
    }
    let mut steps = Vec::new();
    if is_ordered(cases) {
        // Those beyond the page are older than the rest.
        steps.push(a_while());
    }
    steps.extend(more);
    steps.push(cases.call(walk.clone(), &Map::new()));
    steps.push(cases.call(walk.clone(), &only(size, small)));
    for (name, value) in filters(cases) {
        // A list of values finds few, a range of time may find all.
        let items = if value.is_array() { 1 } else { small };
        let mut with = only(&name, value);
        with.insert(size.to_owned(), json!(items));
        steps.push(cases.call(walk.clone(), &with));
    }
    let what = format!("a walk over {count} more, filtered and not");
    cases.after_setup("beyond-a-page", &what, steps);
}

/// Whether the order of the list is stated.
fn is_ordered(cases: &Cases<'_>) -> bool {
    let rules = cases.rulebook.rules.values();
    let mut ordered = rules
        .filter_map(Rule::check)
        .filter(|check| check.predicate == "order");
    ordered.any(|check| check.subject == Subject::operation(&cases.operation.id))
}

impl Cases<'_> {
    /// Steps after which the list holds so many more; none where nothing shows how.
    pub(super) fn more(&self, count: usize) -> Vec<Step> {
        let repeat = |step: Step| Step {
            setup: true,
            repeat: Some(count),
            ..step
        };
        if let Some(more) = &self.happy.more {
            return more.iter().cloned().map(repeat).collect();
        }
        let maker = self.service.operations.values();
        let mut maker = maker.filter(|o| o.method == "POST" && o.path == self.operation.path);
        let Some((maker, happy)) = maker.find_map(|o| Some((o, self.service.happy.get(&o.id)?)))
        else {
            return Vec::new();
        };
        let numbered = |name: &str| {
            let word = name.strip_prefix("unique.")?;
            Some(format!("unique.more-{word}"))
        };
        let mut with = rename_all(&happy.with, &numbered);
        for (name, value) in &mut with {
            let is_path = maker
                .parameters
                .iter()
                .any(|p| p.name == *name && p.place == Place::Path);
            match self.happy.with.get(name) {
                Some(own) if is_path => *value = own.clone(),
                _ => number(value),
            }
        }
        vec![repeat(Step::from(Call {
            call: maker.id.clone(),
            with,
            ..Call::default()
        }))]
    }
}

/// A fresh word with the number of its repetition.
fn number(value: &mut Value) {
    if let Value::String(text) = value
        && text.contains("${unique.")
    {
        text.push_str("${index}");
    }
}
