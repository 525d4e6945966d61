//! Lists: walked with small pages and beyond the default page size, filtered, and read by every address of a page.

use super::cases::{Cases, accepted, either, only, rename_all};
use super::credentials::follow;
use super::repeated_reads::a_while;
use conformant_rulebook::step::{Call, Get, Step};
use conformant_rulebook::{Place, Rule, Subject};
use serde_json::{Map, Value, json};

/// One more than the default page size (D2, Limits; D3, Limits).
const BEYOND_A_PAGE: usize = 51;
/// Parameters of paging. All other parameters of a list are filters.
const PAGING: [&str; 3] = ["PageSize", "Page", "PageToken"];

/// All cases about lists, if the operation returns one.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.list_key.is_none() || !cases.takes("PageSize") {
        return;
    }
    let walk = Call {
        walk: true,
        ..accepted(&cases.own_rule())
    };
    let two = only("PageSize", 2);
    cases.add("walk", "a walk over small pages", walk.clone(), &two);
    page_urls(cases);
    filtered_page_urls(cases);
    beyond_a_page(cases, &walk);
}

/// From the second of three pages to every page that it links to, and further.
fn page_urls(cases: &mut Cases<'_>) {
    let first = Call {
        capture: Some("first".to_owned()),
        ..accepted(&cases.own_rule())
    };
    let mut steps = cases.more(3);
    steps.push(cases.call(first, &only("PageSize", 1)));
    steps.extend([
        kept("${first.meta.url}", "itself"),
        kept("${first.meta.next_page_url}", "second"),
        kept("${second.json.meta.url}", "second-itself"),
        kept("${second.json.meta.first_page_url}", "back-at-first"),
        kept("${second.json.meta.previous_page_url}", "before"),
        kept("${second.json.meta.next_page_url}", "third"),
        kept("${third.json.meta.previous_page_url}", "second-again"),
        kept("${third.json.meta.first_page_url}", "first-again"),
    ]);
    // The pages are compared only if the list begins as before.
    steps.push(cases.call(either(), &only("PageSize", 1)));
    cases.after_setup("page-urls", "every address that a page shows", steps);
}

/// The same for a filtered list: from its second page to the previous and the first one. Items that do not match the
/// filter come first and last, so that an unfiltered page differs.
fn filtered_page_urls(cases: &mut Cases<'_>) {
    let filters = cases.happy.optional.iter();
    let filters: Vec<_> = filters
        .filter(|(name, _)| !PAGING.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in filters {
        let mut with = only(&name, value);
        with.insert("PageSize".to_owned(), json!(1));
        let first = Call {
            capture: Some("first".to_owned()),
            ..either()
        };
        let mut steps = cases.more(2);
        steps.extend([
            cases.call(first, &with),
            kept("${first.meta.next_page_url}", "second"),
            kept("${second.json.meta.previous_page_url}", "before"),
            kept("${second.json.meta.first_page_url}", "back-at-first"),
            kept("${before.json.meta.next_page_url}", "second-again"),
            // The pages are compared only if the list begins as before.
            cases.call(either(), &with),
        ]);
        let case = format!("page-urls-{}", conformant_rulebook::kebab(&name));
        let what = format!("addresses of pages that {name} filters");
        cases.after_setup(&case, &what, steps);
    }
}

/// The page at an address, captured under a name.
fn kept(url: &str, name: &str) -> Step {
    Step::from(Get {
        capture: Some(name.to_owned()),
        ..follow(url)
    })
}

/// One item more than a page contains. Filters are walked with pages of one item.
fn beyond_a_page(cases: &mut Cases<'_>, walk: &Call) {
    let more = cases.more(BEYOND_A_PAGE);
    if more.is_empty() {
        return;
    }
    let mut steps = Vec::new();
    if is_ordered(cases) {
        // The items beyond the page are older than the rest.
        steps.push(a_while());
    }
    steps.extend(more);
    steps.push(cases.call(walk.clone(), &Map::new()));
    steps.push(cases.call(walk.clone(), &only("PageSize", 20)));
    let filters = cases.happy.optional.iter();
    let filters = filters.filter(|(name, _)| !PAGING.contains(&name.as_str()));
    for (name, value) in filters {
        // A list of values matches few items, a range of time may match all.
        let size = if value.is_array() { 1 } else { 20 };
        let mut with = only(name, value.clone());
        with.insert("PageSize".to_owned(), json!(size));
        steps.push(cases.call(walk.clone(), &with));
    }
    let what = format!("a walk over {BEYOND_A_PAGE} more, filtered and not");
    cases.after_setup("beyond-a-page", &what, steps);
}

/// Whether a rule states the order of the list.
fn is_ordered(cases: &Cases<'_>) -> bool {
    let rules = cases.rulebook.rules.values();
    let mut ordered = rules
        .filter_map(Rule::check)
        .filter(|check| check.predicate == "order");
    ordered.any(|check| check.subject == Subject::operation(&cases.operation.id))
}

impl Cases<'_> {
    /// Steps that add this many items to the list; empty if the rulebook has none.
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

/// A unique word with the number of its repetition.
fn number(value: &mut Value) {
    if let Value::String(text) = value
        && text.contains("${unique.")
    {
        text.push_str("${index}");
    }
}
