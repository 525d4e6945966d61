//! `consistent-spelling`: if a document spells a word in several ways, a target uses one of them.

use super::prelude::*;

/// The value at `at` keeps one spelling throughout a run, whatever its value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsistentSpelling {
    /// The representation.
    pub kind: String,
    /// The value.
    pub at: String,
    /// The spellings of which only one may be used.
    pub of: Vec<String>,
}

impl Predicate for ConsistentSpelling {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
        if self.of.len() < 2 {
            references.problem("of", "one spelling of several: name at least two");
        }
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let mut first: Option<(&str, Site)> = None;
        for resource in context.of_kind(&self.kind) {
            let Some(word) = resource.value(&self.at).and_then(Value::as_str) else {
                continue;
            };
            if !self.of.iter().any(|spelling| spelling == word) {
                continue;
            }
            let site = resource.site(&self.at);
            let Some((used, earlier)) = &first else {
                verdicts.record_vacuous(Vacuity::Alone);
                first = Some((word, site));
                continue;
            };
            let instance = verdicts.instance([earlier.clone(), site]);
            let instance = instance.after(earlier.exchange(context.evidence));
            instance.conclude(
                (*used != word)
                    .then(|| Fact::new("spelling", format!("{used}, as before"), word.to_owned())),
            );
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let words = self.of.iter().map(|word| Change::To(json!(word)));
        Mutation::at(sites.last(), words)
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "chat/user-channel";
        let parameters = json!({"kind": kind, "at": "/status", "of": ["notThere", "not_there"]});
        let shown = |statuses: &[&str]| {
            let rule = Example::for_rule("chat", parameters.clone());
            let shows = |scene: ExampleBuilder, status: &&str| {
                scene.payload(kind, json!({"status": status}))
            };
            statuses.iter().fold(rule, shows)
        };
        vec![
            shown(&["notThere", "notThere"]).passes(),
            shown(&["notThere", "not_there"]).fails("/status"),
            shown(&["joined"]).not_judged(),
        ]
    }
}
