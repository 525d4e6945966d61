//! `event-emitted`: the outcome of a send is reported by an event of a type. Judges sends whose events were collected.
//! Does not judge the fields of an event.

#[cfg(test)]
use super::feed::examples::{collected, of_feed, sent};
use super::feed::{Collected, Collection, Feed};
use super::prelude::*;

/// A send with one of these outcomes is reported by an event of this type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventEmitted {
    /// Where the events come from.
    feed: Feed,
    /// The type of the event.
    r#type: String,
    /// Requested outcomes of the send, any of these.
    #[serde(default)]
    outcomes: Vec<String>,
    /// Whether the send is for later.
    #[serde(default)]
    scheduled: bool,
    /// In place of outcomes: events of these types, of which one shows that the send has come that far.
    #[serde(default)]
    after: Vec<String>,
    /// Whether each message of the send must have come that far.
    #[serde(default)]
    each: Option<Each>,
}

/// How the messages of a send are counted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Each {
    /// The argument of `send` with the recipients: one message for each.
    recipients: String,
    /// The field of an event that identifies the message: `/message_id`.
    message: String,
}

impl Each {
    /// Whether as many messages as the send has recipients are named by events of these types.
    fn has_come(&self, collection: &Collection<'_>, types: &[String]) -> bool {
        let recipients = BTreeSet::from_iter(collection.texts(&self.recipients));
        let events = collection.events.iter().filter(|event| event.is_of(types));
        let messages: BTreeSet<String> = events.filter_map(|e| e.text(&self.message)).collect();
        !recipients.is_empty() && messages.len() >= recipients.len()
    }
}

impl Predicate for EventEmitted {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for collection in self.feed.collections(verdicts.context) {
            let came = |types: &[String]| collection.events.iter().any(|event| event.is_of(types));
            let is_later = self.feed.is_scheduled(&collection);
            let fits = match self.feed.outcome_of(&collection) {
                _ if !self.after.is_empty() => match &self.each {
                    Some(each) => each.has_come(&collection, &self.after),
                    None => came(&self.after),
                },
                _ if self.scheduled => is_later,
                Some(outcome) => !is_later && self.outcomes.contains(&outcome),
                None => false,
            };
            if !fits {
                continue;
            }
            let fact = || {
                let names = collection.events.iter().filter_map(Collected::name);
                let expected = format!("an event {}", self.r#type);
                Fact::new("not-told", expected, types_with_counts(names))
            };
            let is_missing = !came(std::slice::from_ref(&self.r#type));
            verdicts.conclude(collection.site(""), is_missing.then(fact));
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        /// More messages than a send of a scenario has recipients.
        const MESSAGES: usize = 16;
        let message = self.each.as_ref().map(|each| &each.message);
        let payload = |number: usize| match message {
            Some(message) => json!({message.trim_start_matches('/'): number}),
            None => json!({}),
        };
        let of_type = |r#type: &String| {
            let events = (0..MESSAGES).map(|n| json!({"type": r#type, "payload": payload(n)}));
            events.collect::<Vec<_>>()
        };
        let events = self.after.iter().flat_map(of_type).collect();
        Mutation::at(sites.last(), [Change::To(events)])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let typed = |kind: &str| json!({"type": kind, "payload": {}});
        let failed = of_feed(json!({"type": "message.failed", "outcomes": ["failed"]}));
        let failed = |outcome: &str| sent(&failed, json!({"to": ["+1"], "outcome": outcome}));
        let after = of_feed(json!({"type": "operation.processing", "after": ["message.sent"]}));
        let went_on = sent(&after, json!({"to": ["+1"], "scheduled": true}));
        let each = of_feed(json!({
            "type": "completed", "after": ["failed"],
            "each": {"recipients": "to", "message": "/message_id"},
        }));
        let finished = |messages: &[&str], others: &[&str]| {
            let failed = |id: &&str| json!({"type": "failed", "payload": {"message_id": id}});
            let others = others.iter().map(|kind| typed(kind));
            let events: Vec<Value> = messages.iter().map(failed).chain(others).collect();
            let scene = sent(&each, json!({"to": ["+1", "+2", "+1"], "scheduled": true}));
            collected(&scene, &events)
        };
        vec![
            collected(&failed("failed"), &[typed("message.failed")]).passes(),
            collected(&failed("failed"), &[typed("message.sent")]).fails("/events"),
            collected(&failed("delivered"), &[typed("message.sent")]).not_judged(),
            failed("failed").not_judged(),
            collected(&went_on, &[typed("message.sent")]).fails("/events"),
            collected(&went_on, &[typed("message.queued")]).not_judged(),
            collected(
                &went_on,
                &["operation.processing", "message.sent"].map(typed),
            )
            .passes(),
            finished(&["1", "2"], &[]).fails("/events"),
            finished(&["1", "2"], &["completed"]).passes(),
            finished(&["1"], &[]).not_judged(),
            finished(&["1", "1"], &[]).not_judged(),
        ]
    }
}

/// The types of events by name: `6× message.queued, 1× operation.completed`.
fn types_with_counts<'e>(names: impl Iterator<Item = &'e str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let words = counts
        .iter()
        .map(|(name, count)| format!("{count}× {name}"));
    match counts.is_empty() {
        true => "no event".to_owned(),
        false => words.collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::types_with_counts;

    #[test]
    fn collected_types_are_counted_by_name() {
        let names = ["sent", "completed", "sent"].into_iter();
        assert_eq!(types_with_counts(names), "1× completed, 2× sent");
        assert_eq!(types_with_counts([].into_iter()), "no event");
    }
}
