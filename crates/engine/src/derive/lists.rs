//! Lists: walked with small pages and beyond the default page size, filtered, and read by every address of a page.

use super::cases::{
    Cases, accepted, calling, captured, either, needs_nothing, only, rename_all, unique, walking,
};
use super::credentials::follow;
use super::repeated_reads::{a_while, settled};
use conformant_rulebook::step::{Call, Get, Step};
use conformant_rulebook::{ParameterLocation, Place, Rule, Subject};
use serde_json::{Map, Value, json};

/// Items on a page where no default is stated (D2, Limits; D3, Limits), and at most.
const PAGE_SIZE: u64 = 50;
const PAGE_SIZE_MAX: u64 = 100;
/// A smaller page that holds several items.
const SMALL_PAGE: u64 = 20;

/// All cases about lists, if the operation returns one.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let Some(size) = cases.page_size() else {
        return;
    };
    let walk = walking(accepted(&cases.own_rule()));
    let two = only(&size, 2);
    cases.add("walk", "a walk over small pages", walk.clone(), &two);
    if cases.operation.paging.has_meta() {
        page_urls(cases, &size);
        filtered_page_urls(cases, &size);
    } else {
        filtered_pages(cases, &size, &walk);
    }
    beyond_a_page(cases, &size, &walk);
}

/// From the second of three pages to every page whose address it shows, and on from there.
fn page_urls(cases: &mut Cases<'_>, size: &str) {
    let first = captured("first", accepted(&cases.own_rule()));
    // Items with all values are shown in full on each page, also after the lists have caught up.
    let mut steps = cases.more_whole(3);
    steps.push(settled());
    steps.push(cases.call(first, &only(size, 1)));
    // Another walk is begun before this one goes on.
    let aside = captured("aside", either());
    steps.push(cases.call(aside, &only(size, 2)));
    let links = [
        kept(cases, "first.meta.url", "itself"),
        kept(cases, "first.meta.next_page_url", "second"),
        kept(cases, "second.json.meta.url", "second-itself"),
        kept(cases, "second.json.meta.first_page_url", "back-at-first"),
        kept(cases, "second.json.meta.previous_page_url", "before"),
        kept(cases, "aside.meta.next_page_url", "aside-next"),
        kept(cases, "second.json.meta.next_page_url", "third"),
        kept(cases, "third.json.meta.previous_page_url", "second-again"),
        kept(cases, "third.json.meta.first_page_url", "first-again"),
    ];
    steps.extend(links.into_iter().flatten());
    // What addresses lead to is compared where the list begins as it did.
    steps.push(cases.call(either(), &only(size, 1)));
    steps.push(cases.call(walking(either()), &only(size, 3)));
    cases.after_setup("page-urls", "every address that a page shows", steps);
}

/// The same of a filtered list: from its second page back to the one before and to the first. Something that
/// does not fit the filter comes first and last, so that a page without the filter is another one.
fn filtered_page_urls(cases: &mut Cases<'_>, size: &str) {
    for (name, value) in filters(cases) {
        let mut with = only(&name, value);
        with.insert(size.to_owned(), json!(1));
        let first = captured("first", either());
        let mut steps = cases.more(2);
        steps.push(cases.call(first, &with));
        let before = kept(cases, "second.json.meta.previous_page_url", "before");
        let again = before
            .as_ref()
            .and_then(|_| kept(cases, "before.json.meta.next_page_url", "second-again"));
        let links = [
            kept(cases, "first.meta.next_page_url", "second"),
            before,
            kept(cases, "second.json.meta.first_page_url", "back-at-first"),
            again,
        ];
        steps.extend(links.into_iter().flatten());
        // What addresses lead to is compared where the list begins as it did.
        steps.push(cases.call(either(), &with));
        let case = format!("page-urls-{}", conformant_rulebook::kebab(&name));
        let what = format!("addresses of pages that {name} filters");
        cases.after_setup(&case, &what, steps);
    }
}

/// The same of pages that no address leads to.
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
        .filter(|(name, _)| !cases.operation.paging.has_parameter(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A page that an address of a captured page leads to, kept under a name; none if pages have no such address.
fn kept(cases: &Cases<'_>, url: &str, name: &str) -> Option<Step> {
    let (_, at) = url.split_once(".meta.")?;
    let page = cases.shown_by(cases.operation)?;
    Place::root(&page.schema)
        .any()
        .reaches(&format!("/meta/{at}"))
        .ok()?;
    Some(Step::from(Get {
        capture: Some(name.to_owned()),
        ..follow(&format!("${{{url}}}"))
    }))
}

/// One item more than a page holds; each filter finds its few on pages of one.
fn beyond_a_page(cases: &mut Cases<'_>, size: &str, walk: &Call) {
    let default = cases.operation.page_size();
    let default = default.and_then(|size| size.default.as_ref()?.as_u64());
    let default = default.unwrap_or(PAGE_SIZE);
    let small = SMALL_PAGE.min(default);
    let count = default.saturating_add(1);
    let more = cases.more(usize::try_from(count).unwrap_or_default());
    if more.is_empty() || default > PAGE_SIZE_MAX {
        return;
    }
    let mut steps = Vec::new();
    if is_ordered(cases) {
        // The items beyond the page are older than the rest.
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

/// Whether a rule states the order of the list.
fn is_ordered(cases: &Cases<'_>) -> bool {
    let rules = cases.rulebook.rules.values();
    let mut ordered = rules
        .filter_map(Rule::check)
        .filter(|check| check.predicate == "order");
    ordered.any(|check| check.subject == Subject::Operations(vec![cases.operation.id.clone()]))
}

impl Cases<'_> {
    /// Steps that add this many items to the list; empty if the rulebook has none.
    pub(super) fn more(&self, count: usize) -> Vec<Step> {
        self.items(count, false)
    }

    /// The same with every optional value that needs no other resource.
    fn more_whole(&self, count: usize) -> Vec<Step> {
        self.items(count, true)
    }

    fn items(&self, count: usize, is_whole: bool) -> Vec<Step> {
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
        let mut with = happy.with.clone();
        if is_whole {
            let in_body = |name: &str| {
                let mut parameters = maker.parameters.iter();
                parameters.any(|p| p.name == name && p.place == ParameterLocation::Body)
            };
            let optional = happy.optional.iter();
            let optional = optional.filter(|(name, value)| in_body(name) && needs_nothing(value));
            with.extend(optional.map(|(name, value)| (name.clone(), value.clone())));
        }
        let mut with = rename_all(&with, &unique(|word| format!("more-{word}")));
        for (name, value) in &mut with {
            let is_path = maker
                .parameters
                .iter()
                .any(|p| p.name == *name && p.place == ParameterLocation::Path);
            match self.happy.with.get(name) {
                Some(own) if is_path => *value = own.clone(),
                _ => number(value),
            }
        }
        vec![repeat(calling(maker, with, Call::default()))]
    }
}

/// A unique word with the number of its repetition.
fn number(value: &mut Value) {
    if let Value::String(text) = value
        && text.contains("${unique.")
    {
        text.push_str("${index}");
    }
}
