//! `write-persists` with `operation`: a resource shows what it was created with: the same, extended, hidden or masked.
//!
//! Does not judge absent fields, nor resources whose creation was not observed.

use crate::predicates::prelude::*;

/// Shorter texts may occur anywhere by chance.
const TELLING: usize = 4;

/// A name of a member that is never cut (D1, Limits).
const NAME_MAX: usize = 20;

/// A field relates to a parameter of the request that created its resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::predicates) struct CreatedWith {
    /// The operation.
    operation: String,
    /// The parameter.
    parameter: String,
    /// The representation.
    kind: String,
    /// Where in it.
    at: String,
    /// The relation between both.
    shows: Appearance,
    /// Whether people may change it. Not judged after they did, or may have.
    #[serde(default)]
    changed_by_people: bool,
}

/// The relation between the returned and the sent value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Appearance {
    /// It is the same, as a text.
    Same,
    /// It has all sent members with short, plain names.
    All,
    /// It has more members than were sent.
    More,
    /// It contains no member and no value of what was sent.
    Nothing,
    /// It does not contain the sent number in full, in any spelling.
    Masked,
    /// It has no member that only another request of the operation sent, with its value.
    Own,
}

impl Predicate for CreatedWith {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
        references
            .operation("operation", &self.operation)
            .parameter("parameter", &self.parameter);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        if self.changed_by_people && context.history.changed_by_people(&self.kind) {
            return;
        }
        for (_, resource) in context.history.resources.iter() {
            let observations = resource.observations.iter();
            for observation in observations.filter(|s| s.shown_type == self.kind) {
                let made = resource.writes.iter().rev().find_map(|&write| {
                    let write = &context.history.writes[write];
                    let index = write
                        .exchange()
                        .filter(|_| write.outcome == Outcome::Done)?;
                    let seen = &context.seen[index];
                    let is_this = seen.exchange.operation == self.operation;
                    let is_earlier = write.moment.is_before(&observation.moment);
                    (is_this && is_earlier).then_some(seen)
                });
                let Some(seen) = made else { continue };
                let sent = seen.exchange.sent.get(&self.parameter);
                let nothing = json!({});
                let sent = sent.or((self.shows == Appearance::Own).then_some(&nothing));
                let (Some(sent), Some(shown)) = (sent, observation.representation(context)) else {
                    continue;
                };
                self.evaluate_value(sent, shown, verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        // Names of hidden values in the scenarios.
        let members = [json!({"other": "another"}), json!({"session": "given"})];
        Mutation::of_sites_and(sites, &members.map(Change::To))
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const MAKES: &str = "create-approval-request";
        const DETAILS: &str = "/approval_request/details";
        const HIDDEN: &str = "/approval_request/hidden_details";
        let uuid = |digit: &str| format!("00000000-0000-4000-8000-00000000000{digit}");
        let request = |mut shown: Value, digit: &str| {
            shown["uuid"] = json!(uuid(digit));
            json!({"success": true, "approval_request": shown})
        };
        let scene = |parameter: &str, at: &str, shows: &str| {
            let parameters = json!({
                "operation": MAKES, "parameter": parameter, "kind": "auth/approval-request-fetch", "at": at,
                "shows": shows,
            });
            let sent = json!({
                "AUTH_ID": 7, "details": {"Place": "Graz"}, "hidden_details": {"session": "s1234"},
            });
            Example::for_rule("auth", parameters).answered(MAKES, sent, request(json!({}), "1"))
        };
        let fetched = |scene: &ExampleBuilder, shown: Value| {
            let path = json!({"FORMAT": "json", "PUSH_UUID": uuid("1")});
            scene.answered("fetch-approval-request", path, request(shown, "1"))
        };
        let with_hidden = |scene: &ExampleBuilder, members: Value| {
            fetched(scene, json!({"hidden_details": members}))
        };
        let with_details = |shows: &str, members: Value| {
            fetched(
                &scene("hidden_details", DETAILS, shows),
                json!({"details": members}),
            )
        };
        let place = json!({"Place": "Graz"});
        let more = scene("details", DETAILS, "more");
        let own = |sent: Value| {
            let scene = scene("hidden_details", HIDDEN, "own");
            let sent = json!({"AUTH_ID": 8, "hidden_details": sent});
            scene.answered(MAKES, sent, request(json!({}), "2"))
        };
        let others = own(json!({"other": "another"}));
        let user = scene("AUTH_ID", "/approval_request/_auth_id", "same");
        let all = scene("hidden_details", HIDDEN, "all");
        vec![
            with_hidden(&others, json!({"session": "s1234", "at": "12:00"})).passes(),
            with_hidden(&others, json!({"other": "another"})).fails(HIDDEN),
            with_hidden(&own(json!({"order": "17"})), json!({"order": "17"})).not_judged(),
            fetched(&others, json!({})).not_judged(),
            fetched(&user, json!({"_auth_id": 7})).passes(),
            fetched(&user, json!({"_auth_id": 8})).fails("/approval_request/_auth_id"),
            fetched(&user, json!({})).not_judged(),
            with_hidden(&all, json!({"session": "s1234"})).passes(),
            with_hidden(&all, json!({})).fails(HIDDEN),
            fetched(&more, json!({"details": {"Place": "Graz", "time": "1"}})).passes(),
            fetched(&more, json!({"details": place})).fails(DETAILS),
            with_details("nothing", place.clone()).passes(),
            with_details("nothing", json!({"session": "x"})).fails(DETAILS),
            with_details("nothing", json!({"Place": "in s1234"})).fails(DETAILS),
            // There is no number in it.
            with_details("masked", place).not_judged(),
        ]
    }
}

impl CreatedWith {
    fn evaluate_value(
        &self,
        sent: &Value,
        shown: &Representation<'_>,
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let Some((got, site)) = verdicts.without_finding(shown, &self.at) else {
            return;
        };
        let found = match self.shows {
            Appearance::Same => {
                Some((as_text(sent) != as_text(got)).then(|| json::short(&of_type(sent, got))))
            }
            Appearance::All => all(sent, got),
            Appearance::More => more(sent, got),
            Appearance::Nothing => nothing(sent, got),
            Appearance::Masked => masked(sent, got),
            Appearance::Own => own(sent, got, &self.sent_by_others(context, sent)),
        };
        let Some(wrong) = found else {
            verdicts.record_vacuous(Vacuity::Absent);
            return;
        };
        let fact = wrong.map(|expected| Fact::new("made-with", expected, json::short(got)));
        verdicts.conclude(site, fact);
    }

    /// The members that requests of the operation sent, and this one did not.
    fn sent_by_others<'c>(
        &self,
        context: &'c Context<'_>,
        sent: &Value,
    ) -> Vec<(&'c String, &'c Value)> {
        let requests = context.seen.iter().filter(|seen| {
            seen.exchange.operation == self.operation && seen.exchange.service == self.service()
        });
        let members = requests
            .filter_map(|seen| seen.exchange.sent.get(&self.parameter)?.as_object())
            .flatten();
        members
            .filter(|(name, value)| sent.get(*name) != Some(*value))
            .filter(|(_, value)| as_text(value).chars().count() >= TELLING)
            // A longer name may be cut to one that another request sent.
            .filter(|(name, _)| name.len() < NAME_MAX)
            .collect()
    }

    /// The service of the representation.
    fn service(&self) -> &str {
        self.kind.split('/').next().unwrap_or_default()
    }
}

/// The sent value as a number where a number is shown: forms send texts, and the type has a rule of its own.
fn of_type(sent: &Value, got: &Value) -> Value {
    let text = sent.as_str().filter(|_| got.is_number());
    let number = text.and_then(json::parse_text);
    number
        .filter(Value::is_number)
        .unwrap_or_else(|| sent.clone())
}

/// The expected value if it is wrong; the outer `None` if it is unknown.
type Found = Option<Option<String>>;

/// Longer names may be cut, and other characters may be written otherwise in XML.
fn all(sent: &Value, got: &Value) -> Found {
    let (sent, got) = (sent.as_object()?, got.as_object()?);
    let is_plain = |name: &str| {
        name.len() <= NAME_MAX && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let words = |value: &Value| {
        let text = as_text(value);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut members = sent.iter().filter(|(name, _)| is_plain(name)).peekable();
    members.peek()?;
    let lost =
        members.find(|(name, value)| got.get(*name).is_none_or(|got| words(got) != words(value)));
    Some(lost.map(|(name, value)| format!("{name}: {}", json::short(value))))
}

fn more(sent: &Value, got: &Value) -> Found {
    let (sent, got) = (sent.as_object()?, got.as_object()?);
    Some((got.len() <= sent.len()).then(|| format!("more than the {} that were sent", sent.len())))
}

fn nothing(sent: &Value, got: &Value) -> Found {
    let (sent, got) = (sent.as_object()?, got.as_object()?);
    let telling = |text: &&String| text.chars().count() >= TELLING;
    let values: Vec<String> = sent.values().map(as_text).collect();
    let shown: Vec<String> = got.values().map(as_text).collect();
    let mut names = sent.keys().filter(telling).peekable();
    let mut values = values.iter().filter(telling).peekable();
    if names.peek().is_none() && values.peek().is_none() {
        return None;
    }
    let name = names.find(|name| got.contains_key(*name));
    let is_leaked = |value: &&String| shown.iter().any(|shown| shown.contains(value.as_str()));
    let leaked = name.or_else(|| values.find(is_leaked));
    Some(leaked.map(|leaked| format!("nothing of `{leaked}`")))
}

/// Another request may have sent the same member, but then this one sent it, too.
fn own(sent: &Value, got: &Value, others: &[(&String, &Value)]) -> Found {
    let (sent, got) = (sent.as_object()?, got.as_object()?);
    if others.is_empty() {
        return None;
    }
    let foreign = others.iter().find(|(name, value)| {
        let is_shown = |got: &Value| as_text(got) == as_text(value);
        let is_sent = sent.get(*name).is_some_and(is_shown);
        got.get(*name).is_some_and(is_shown) && !is_sent
    });
    Some(foreign.map(|(name, _)| format!("no `{name}` of another request")))
}

fn masked(sent: &Value, got: &Value) -> Found {
    let digits = |value: &Value| -> String {
        as_text(value)
            .chars()
            .filter(char::is_ascii_digit)
            .collect()
    };
    let number = digits(sent);
    let is_number = number.len() >= TELLING && !sent.is_object();
    is_number.then(|| {
        digits(got)
            .contains(&number)
            .then(|| "a number that is masked".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_text_is_expected_as_a_number_where_a_number_is_shown() {
        assert_eq!(of_type(&json!("420"), &json!(42)), json!(420));
        assert_eq!(of_type(&json!("420"), &json!("42")), json!("420"));
        assert_eq!(of_type(&json!("x"), &json!(42)), json!("x"));
    }
}
