//! List rules: the array stands under `meta.key`, and a walk over `next_page_url` yields each item
//! exactly once and ends.

use super::acceptance::Acceptance;
use super::case::Case;
use super::evidence::{Walk, WalkEnd};
use super::sites::Site;
use super::verdicts::{Fact, Trivial, Verdicts};
use conformant_base::json;
use serde_json::Value;
use std::collections::BTreeMap;

/// Judges every list page and every walk.
pub(super) fn judge(case: &Case<'_>, verdicts: &mut Verdicts<'_>) {
    for (index, seen) in case.seen.iter().enumerate() {
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
        let place = format!("/{}", json::escape(key));
        // An array that is missing or no array breaks its own rule.
        if seen.breaks(&place) {
            continue;
        }
        let array = seen.whole(&place).and_then(Value::as_array);
        let fact = array.is_none().then(|| Fact {
            kind: "list-key",
            expected: "the name of the array in this answer".into(),
            actual: json::short(&Value::from(key)),
            ..Fact::default()
        });
        let instance = verdicts.instance(&rule, Site::answer(index, "/meta/key"));
        instance.conclude(fact);
    }
    for (index, walk) in case.evidence.walks.iter().enumerate() {
        judge_walk(case, index, walk, verdicts);
    }
}

fn judge_walk(case: &Case<'_>, index: usize, walk: &Walk, verdicts: &mut Verdicts<'_>) {
    let rule = format!("{}/{}/walk", walk.service, walk.operation);
    let fact = match &walk.end {
        WalkEnd::Broken(why) => {
            verdicts.inconclusive(
                &rule,
                &format!("a page of the walk could not be had: {why}"),
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
            let operation = case.seen[*page].operation;
            Site::answer(*page, operation.map_or("", |o| o.paging.next_at()))
        });
        verdicts.instance(&rule, site).conclude(Some(fact));
        return;
    }
    let wrong = repeated(case, walk);
    match &walk.end {
        WalkEnd::Cut(why) if wrong.is_none() => verdicts.inconclusive(&rule, why),
        WalkEnd::Complete if walk.pages.len() < 2 && is_short(case, walk) => {
            verdicts.trivial(&rule, Trivial::Alone);
        }
        WalkEnd::Cut(_)
        | WalkEnd::Complete
        | WalkEnd::Endless(_)
        | WalkEnd::Unfollowable(_)
        | WalkEnd::Broken(_) => {
            let instance = verdicts.instance(&rule, Site::Walk(index));
            instance.conclude_at(wrong);
        }
    }
}

/// Whether no item of the walk could have come twice.
fn is_short(case: &Case<'_>, walk: &Walk) -> bool {
    let counts = walk.pages.iter().filter_map(|page| items(case, *page));
    counts.map(|items| items.len()).sum::<usize>() < 2
}

/// An item that the walk yields twice.
fn repeated(case: &Case<'_>, walk: &Walk) -> Option<(Site, Fact)> {
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let mut previous = None;
    for &page in &walk.pages {
        let keys = keys(case, page);
        for (pointer, item) in items(case, page)? {
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

fn items<'a>(case: &'a Case<'_>, page: usize) -> Option<Vec<(String, &'a Value)>> {
    let seen = &case.seen[page];
    let at = seen.operation?.items_at()?;
    Some(seen.select(&format!("{at}/*")))
}

/// The fields that identify the items of a page.
fn keys<'a>(case: &Case<'a>, page: usize) -> &'a [String] {
    let operation = case.seen[page].operation;
    let kind = operation.and_then(|o| case.rulebook.kinds.get(o.thing.as_ref()?));
    let identity = kind.and_then(|kind| kind.about.identity.as_ref());
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
