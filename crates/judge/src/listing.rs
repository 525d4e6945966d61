//! List rules: the array is at the key in `meta.key`, and a walk along `next_page_url` ends and returns each item exactly once.

use super::acceptance::Acceptance;
use super::context::Context;
use super::evidence::{Walk, WalkEnd};
use super::sites::Site;
use super::verdicts::{Fact, Recorder, Vacuity};
use conformant_base::json;
use serde_json::Value;
use std::collections::BTreeMap;

/// Evaluates the rules of every list page and every walk.
pub(super) fn evaluate(context: &Context<'_>, verdicts: &mut Recorder<'_>) {
    for (index, seen) in context.seen.iter().enumerate() {
        let Some(operation) = seen.operation.filter(|o| o.list_key.is_some()) else {
            continue;
        };
        if seen.acceptance != Acceptance::Accepted {
            continue;
        }
        let Some(key) = seen.value("/meta/key").and_then(Value::as_str) else {
            continue;
        };
        let rule = format!("{}/{}/key", operation.service, operation.id);
        // A key that is not that of the document is already a finding about the page.
        if seen.breaks("/meta/key") {
            continue;
        }
        let place = format!("/{}", json::escape(key));
        // A missing or invalid array violates its own rule.
        if seen.breaks(&place) {
            continue;
        }
        let array = seen.whole(&place).and_then(Value::as_array);
        let fact = array.is_none().then(|| {
            let expected = "the name of the array in this answer";
            Fact::new("list-key", expected, json::short(&Value::from(key)))
        });
        verdicts.conclude(&rule, Site::answer(index, "/meta/key"), fact);
    }
    for (index, walk) in context.evidence.walks.iter().enumerate() {
        evaluate_walk(context, index, walk, verdicts);
    }
}

fn evaluate_walk(context: &Context<'_>, index: usize, walk: &Walk, verdicts: &mut Recorder<'_>) {
    let rule = format!("{}/{}/walk", walk.service, walk.operation);
    let fact = match &walk.end {
        WalkEnd::Broken(why) => {
            verdicts.inconclusive(
                &rule,
                &format!("a page of the walk could not be read: {why}"),
            );
            return;
        }
        WalkEnd::Endless(why) => Some(("endless", "a walk that ends".to_owned(), why.clone())),
        WalkEnd::Unfollowable(why) => Some((
            "next-page-url",
            "a link to the next page on the same origin".to_owned(),
            why.clone(),
        )),
        WalkEnd::Complete | WalkEnd::Cut(_) => None,
    };
    if let Some((kind, expected, actual)) = fact {
        let message = format!("paging does not work: {actual}");
        let fact = Fact {
            kind,
            expected,
            actual,
            message,
        };
        let last = walk.pages.last();
        let site = last.map_or(Site::Walk(index), |page| {
            let operation = context.seen[*page].operation;
            Site::answer(*page, operation.map_or("", |o| o.paging.next_at()))
        });
        verdicts.conclude(&rule, site, Some(fact));
        return;
    }
    let wrong = repeated(context, walk);
    match &walk.end {
        WalkEnd::Cut(why) if wrong.is_none() => verdicts.inconclusive(&rule, why),
        WalkEnd::Complete if walk.pages.len() < 2 && is_short(context, walk) => {
            verdicts.record_vacuous(&rule, Vacuity::Alone);
        }
        WalkEnd::Cut(_)
        | WalkEnd::Complete
        | WalkEnd::Endless(_)
        | WalkEnd::Unfollowable(_)
        | WalkEnd::Broken(_) => {
            verdicts
                .instance(&rule, Site::Walk(index))
                .conclude_at(wrong);
        }
    }
}

/// Whether a walk is too short to repeat an item.
fn is_short(context: &Context<'_>, walk: &Walk) -> bool {
    let counts = walk.pages.iter().filter_map(|page| items(context, *page));
    counts.map(|items| items.len()).sum::<usize>() < 2
}

/// An item that the walk returns twice.
fn repeated(context: &Context<'_>, walk: &Walk) -> Option<(Site, Fact)> {
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let mut previous = None;
    for &page in &walk.pages {
        let keys = keys(context, page);
        for (pointer, item) in items(context, page)? {
            let identity = identity(item, keys);
            if let Some(earlier) = first.insert(identity.clone(), page) {
                if walk.moved && Some(earlier) == previous {
                    continue;
                }
                let fact = Fact {
                    kind: "repeated-item",
                    expected: "each item once over all pages".into(),
                    actual: format!("{identity} on two pages"),
                    message: format!(
                        "{identity} came twice: exchanges {} and {}",
                        earlier + 1,
                        page + 1
                    ),
                };
                return Some((Site::answer(page, pointer), fact));
            }
        }
        previous = Some(page);
    }
    None
}

fn items<'a>(context: &'a Context<'_>, page: usize) -> Option<Vec<(String, &'a Value)>> {
    let seen = &context.seen[page];
    let at = seen.operation?.items_at()?;
    Some(seen.select(&format!("{at}/*")))
}

/// The fields that identify the items of a page.
fn keys<'a>(context: &Context<'a>, page: usize) -> &'a [String] {
    let operation = context.seen[page].operation;
    let kind = operation.and_then(|o| context.rulebook.kinds.get(o.resource.as_ref()?));
    let identity = kind.and_then(|kind| kind.annotations.identity.as_ref());
    identity.map_or(&[], |identity| &identity.key)
}

/// What identifies an item: its last key, else all of it.
fn identity(item: &Value, keys: &[String]) -> String {
    let key = keys.last().and_then(|key| json::get(item, key));
    match key {
        Some(Value::String(text)) => text.clone(),
        Some(number @ Value::Number(_)) => number.to_string(),
        Some(_) | None => item.to_string(),
    }
}
