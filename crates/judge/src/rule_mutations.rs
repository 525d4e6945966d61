//! Mutations that violate a rule from a schema or an operation, and the places to apply them.
//!
//! Written rules propose their own mutations (`Predicate::mutations`).

use super::acceptance::acceptance;
use super::alternatives;
use super::change::{Change, Other};
use super::context::shown_type;
use super::evidence::{Evidence, Exchange, Expectation};
use super::mutation::Mutation;
use super::payload::{Violation, violations};
use super::predicate::predicate_of;
use super::sites::{Site, Sites};
use conformant_base::json;
use conformant_record::Level;
use conformant_rulebook::{Origin, Place, Rule, Rulebook, items_at, types};
use conformant_schema::Schemas;
use serde_json::Value;
use std::sync::Arc;

/// Places of one document where one change is made, one at a time.
const PLACES_MAX: usize = 2;

/// Mutations that may make the rule fail on one instance, one place at a time, likeliest first.
pub fn mutations_of(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    rule: &Rule,
    sites: &Sites,
) -> Vec<Mutation> {
    let site = sites.last();
    match &rule.origin {
        Origin::Written(_) if matches!(site, Site::Exchange(_)) => {
            let mut mutations = opposite_outcome(rulebook, schemas, evidence, site);
            mutations.extend(written_rule_mutations(rulebook, evidence, rule, sites));
            mutations
        }
        Origin::Written(_) => written_rule_mutations(rulebook, evidence, rule, sites),
        Origin::Property { kind, pointer } => {
            let changes = schema_violations(rulebook, kind, pointer);
            document_mutations(rulebook, evidence, site, kind, pointer, changes)
        }
        Origin::NoOtherFields { kind } => {
            let pointer = closed_object_pointer(rulebook, kind, &rule.id);
            let changes = vec![Change::ExtraField];
            document_mutations(rulebook, evidence, site, kind, &pointer, changes)
        }
        Origin::Operation { .. } | Origin::Credentials { .. } => {
            opposite_outcome(rulebook, schemas, evidence, site)
        }
        Origin::Parameter { .. } if matches!(site, Site::Exchange(_)) => {
            opposite_outcome(rulebook, schemas, evidence, site)
        }
        Origin::ListWalk { .. } => walk_mutations(rulebook, evidence, site),
        Origin::Parameter { .. } | Origin::ListKey { .. } => {
            let words = |site: &Site| allowed_values(rulebook, evidence, site);
            let mut mutations = Mutation::of_sites(sites);
            mutations.extend(alternatives::propose_mutations(evidence, sites, &words));
            mutations
        }
        // This rule compares scenarios of the whole run.
        Origin::Either => Vec::new(),
    }
}

/// Mutations that the predicate proposes, followed by alternative values for the places that decide.
fn written_rule_mutations(
    rulebook: &Rulebook,
    evidence: &Evidence,
    rule: &Rule,
    sites: &Sites,
) -> Vec<Mutation> {
    let words = |site: &Site| allowed_values(rulebook, evidence, site);
    let mut mutations = predicate_of(rule).map_or_else(Vec::new, |p| p.mutations(sites));
    mutations.extend(alternatives::propose_mutations(evidence, sites, &words));
    mutations
}

/// The values of the enumeration at a site.
fn allowed_values(rulebook: &Rulebook, evidence: &Evidence, site: &Site) -> Vec<Value> {
    let shown = document_at(rulebook, evidence, site);
    let Some(kind) = shown.and_then(|(kind, _)| rulebook.kinds.get(kind)) else {
        return Vec::new();
    };
    let found = match &kind.page_of {
        None => Some(Place::root(&kind.schema).always().at(site.pointer())),
        // `/flows/*/status` stands at `/status` of an item.
        Some((item, key)) => {
            // One segment less where the page is the array.
            let above = if key.as_deref() == Some("") { 2 } else { 3 };
            let below = site.pointer().splitn(above + 1, '/').nth(above);
            let below = below.unwrap_or_default();
            let item = rulebook.kinds.get(item);
            item.map(|item| Place::root(&item.schema).always().at(&format!("/{below}")))
        }
    };
    let words = found.and_then(|place| place.all("enum").find_map(Value::as_array));
    words.cloned().unwrap_or_default()
}

/// The opposite response to the same request.
fn opposite_outcome(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    site: &Site,
) -> Vec<Mutation> {
    let exchange = site
        .exchange(evidence)
        .and_then(|e| evidence.exchanges.get(e));
    let refused = exchange.filter(|e| e.status().is_some_and(|s| !(200..300).contains(&s)));
    let made = refused.and_then(|e| {
        let kind = rulebook
            .operation(&e.service, &e.operation)?
            .response
            .as_ref()?;
        let made = schemas.example(kind, || valid_document(rulebook, schemas, kind));
        Some(Value::clone(&made))
    });
    let is_wanted = |e: &Exchange| matches!(e.expectation, Expectation::Accepted(_));
    let changes = match exchange {
        Some(exchange) if is_wanted(exchange) => [Change::Refused, Change::Accepted(made)],
        Some(_) | None => [Change::Accepted(made), Change::Refused],
    };
    changes
        .map(|change| Mutation::new(site.clone(), change))
        .into()
}

/// A document of a resource type that violates no must-rule about that document alone.
fn valid_document(rulebook: &Rulebook, schemas: &Schemas, kind: &str) -> Value {
    /// Places within an added member are fixed in the next round.
    const ROUNDS_MAX: usize = 4;
    let Some(known) = rulebook.kinds.get(kind) else {
        return Value::Null;
    };
    let mut made = alternatives::generate_minimal(&known.schema);
    for _ in 0..ROUNDS_MAX {
        let broken = violations(rulebook, schemas, kind, &made);
        let must: Vec<Violation> = broken
            .into_iter()
            .filter(|v| v.level == Level::Must)
            .collect();
        if must.is_empty() {
            break;
        }
        for violation in must {
            let at = violation.pointer.as_str();
            let left = |candidate: &Value| {
                let broken = violations(rulebook, schemas, kind, candidate);
                let mut here = broken.into_iter();
                here.find(|v| v.level == Level::Must && v.pointer == at)
            };
            // A value that violates nothing at the place is best; a value that violates another rule there is second best.
            let candidates = alternatives::plausible_values(&violation.expected).into_iter();
            let changed = candidates.filter_map(|value| alternatives::with_value(&made, at, value));
            let ranked = changed.min_by_key(|candidate| match left(candidate) {
                None => 0,
                Some(other) if other.kind != violation.kind => 1,
                Some(_) => 2,
            });
            made = ranked.unwrap_or(made);
        }
    }
    made
}

/// An item that occurs twice: on one page, or also on the page before.
fn walk_mutations(rulebook: &Rulebook, evidence: &Evidence, site: &Site) -> Vec<Mutation> {
    let Some(page) = site.exchange(evidence) else {
        return Vec::new();
    };
    let exchange = &evidence.exchanges[page];
    let operation = rulebook.operation(&exchange.service, &exchange.operation);
    let at = operation.and_then(|o| o.items_at());
    let twice = at.map(|at| Mutation::new(Site::answer(page, at), Change::Twice));
    let again = Mutation::new(Site::Exchange(page), Change::PreviousAnswer);
    twice.into_iter().chain([again]).collect()
}

/// Each change at each of the first places that the pointer selects in the site's document.
fn document_mutations(
    rulebook: &Rulebook,
    evidence: &Evidence,
    site: &Site,
    kind: &str,
    pointer: &str,
    changes: Vec<Change>,
) -> Vec<Mutation> {
    let operation = site.exchange(evidence).map(|index| {
        let exchange = &evidence.exchanges[index];
        format!("{}/{}", exchange.service, exchange.operation)
    });
    let found = document_at(rulebook, evidence, site).and_then(|(shown, document)| {
        let place = resolve_pointer(rulebook, operation.as_deref(), shown, kind, pointer)?;
        Some((document, place))
    });
    let Some((document, pattern)) = found else {
        return Vec::new();
    };
    let mut places = json::expand(document, &pattern);
    // Changes of null come last: they reveal least.
    places.sort_by_key(|(_, value)| value.is_null());
    places.truncate(PLACES_MAX);
    let whole = match (site, site.exchange(evidence)) {
        (Site::Payload { payload, .. }, _) => Site::payload(*payload, ""),
        (_, exchange) => Site::answer(exchange.unwrap_or_default(), ""),
    };
    let mut mutations = Vec::new();
    for change in changes {
        let sites = places.iter().map(|(at, _)| whole.below(at));
        mutations.extend(sites.map(|site| Mutation::new(site, change.clone())));
    }
    mutations
}

/// Rules that the document of a site violates on its own.
pub fn validate_site(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    site: &Site,
) -> Vec<Violation> {
    document_at(rulebook, evidence, site).map_or_else(Vec::new, |(kind, value)| {
        violations(rulebook, schemas, kind, value)
    })
}

/// The document that a site is in, with the resource type that it is validated as.
fn document_at<'e>(
    rulebook: &'e Rulebook,
    evidence: &'e Evidence,
    site: &Site,
) -> Option<(&'e str, &'e Arc<Value>)> {
    if let Site::Payload { payload, .. } = site {
        let payload = evidence.payloads.get(*payload)?;
        return Some((&payload.kind, &payload.value));
    }
    let exchange = evidence.exchanges.get(site.exchange(evidence)?)?;
    Some((response_kind(rulebook, exchange)?, exchange.document()?))
}

/// The resource type that a response is validated as.
fn response_kind<'r>(rulebook: &'r Rulebook, exchange: &Exchange) -> Option<&'r str> {
    let operation = rulebook.operation(&exchange.service, &exchange.operation);
    let acceptance = acceptance(rulebook, exchange, operation);
    shown_type(exchange, operation, &acceptance)
}

/// The pointer into a document of the type `shown` that selects what `pointer` selects in `kind`. `operation` is `SERVICE/ID`.
pub fn resolve_pointer(
    rulebook: &Rulebook,
    operation: Option<&str>,
    shown: &str,
    kind: &str,
    pointer: &str,
) -> Option<String> {
    if operation == Some(kind) || shown == kind {
        return Some(pointer.to_owned());
    }
    let page = rulebook.kinds.get(shown)?;
    if kind.ends_with("/list-meta") && page.page_of.is_some() {
        return Some(format!("/meta{pointer}"));
    }
    match &page.page_of {
        Some((item, Some(key))) if item == kind => Some(format!("{}/*{pointer}", items_at(key))),
        Some(_) | None => None,
    }
}

/// Every change that violates the schema of this property.
pub fn schema_violations(rulebook: &Rulebook, kind: &str, pointer: &str) -> Vec<Change> {
    let Some(root) = rulebook.schema_of(kind) else {
        return Vec::new();
    };
    let whole = Place::root(root).always();
    let mut changes = Vec::new();
    if let Some((above, _)) = pointer.rsplit_once('/')
        && let Some(name) = json::segments(pointer).last()
        && whole.clone().at(above).requires(&name)
    {
        changes.push(Change::Gone);
    }
    let found = whole.at(pointer);
    if found.has("type") {
        let types = found.constraints().types;
        if types & types::NULL == 0 {
            changes.push(Change::To(Value::Null));
        }
        // A number in place of a text and a text in place of a number come first: truthy comparisons accept those.
        let other = Other::ALL.into_iter().find(|other| !other.is_among(types));
        changes.extend(other.map(Change::OtherType));
    }
    if found.has("enum") {
        changes.push(Change::Foreign);
    }
    if found
        .text("pattern")
        .is_some_and(|pattern| pattern.contains("{32}"))
    {
        changes.push(Change::Cut);
        changes.push(Change::Prefix);
    }
    if found.has("format") || found.has("contentMediaType") {
        changes.push(Change::Format);
    }
    if found.has("maximum") {
        changes.push(Change::TooLarge);
    }
    if found.has("minimum") {
        changes.push(Change::TooSmall);
    }
    changes
}

/// The pointer to the object that the rule about unlisted fields closes.
pub fn closed_object_pointer(rulebook: &Rulebook, kind: &str, rule: &str) -> String {
    let object = rule.strip_suffix("/no-other-fields");
    let object = object.and_then(|id| rulebook.rules.get(id));
    let object = object.filter(|property| property.kind() == Some(kind));
    let pointer = object.and_then(Rule::pointer);
    pointer.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An implementation that accepts an invalid request returns a valid response.
    #[test]
    fn a_valid_response_can_be_generated_for_every_operation() {
        let rulebook = crate::load::embedded().expect("it loads");
        let schemas = Schemas::default();
        for kind in rulebook
            .operations()
            .filter_map(|operation| operation.response.as_ref())
        {
            let made = valid_document(&rulebook, &schemas, kind);
            let broken = violations(&rulebook, &schemas, kind, &made);
            let must = broken.iter().filter(|v| v.level == Level::Must);
            let undetected: Vec<String> = must
                .map(|v| format!("{} {}", v.pointer, v.message))
                .collect();
            assert!(undetected.is_empty(), "{kind}: {undetected:?} in {made}");
        }
    }
}
