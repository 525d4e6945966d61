//! `list-filter` with `parameter`: each item of a filtered list matches the filter.

use super::prelude::*;
use crate::compare::{as_text, instant};

/// When the query parameter is sent, each listed item fits it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFilter {
    /// Operation id of the list.
    operation: String,
    /// Query parameter as the document spells it.
    parameter: String,
    /// The items' values: `/executions/*/date_created`.
    at: String,
    /// How they must relate to what was sent.
    keeps: Keeps,
}

/// How listed values relate to a filter.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Keeps {
    /// On or after the instant sent, at whole seconds.
    AtOrAfter,
    /// Before the instant sent, at whole seconds.
    Before,
    /// One of the values sent.
    OneOf,
}

impl Predicate for ListFilter {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .parameter("parameter", &self.parameter)
            .answers("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(&self.operation) {
            let Some(sent) = seen.exchange.sent.get(&self.parameter) else {
                continue;
            };
            let values = seen.select(&self.at);
            let places = values.iter().map(|(at, _)| Site::answer(index, at));
            let Some(sites) = Sites::collect(places) else {
                verdicts.record_vacuous(Vacuity::Empty);
                continue;
            };
            let wrong = values
                .iter()
                .find(|(_, value)| !self.keeps.fits(sent, value));
            let wrong = wrong.map(|(at, value)| {
                let relation = self.keeps.words();
                let fact = Fact::new(
                    "filter",
                    format!(
                        "{relation} {}, as {} asks",
                        json::short(sent),
                        self.parameter
                    ),
                    json::short(value),
                );
                (Site::answer(index, at), fact)
            });
            verdicts.conclude_at(sites, wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const LIST: &str = "read-executions";
        let of = |parameter: &str, at: &str, keeps: &str| {
            let at = format!("/executions/*/{at}");
            let parameters =
                json!({"operation": LIST, "parameter": parameter, "at": at, "keeps": keeps});
            Example::for_rule("flow", parameters)
        };
        let bound = "2026-01-01T00:00:00-00:00";
        let listed = |name: &str, value: &str| page("executions", json!([{name: value}]));
        let from = |created: &str| {
            let rule = of("DateCreatedFrom", "date_created", "at-or-after");
            rule.answered(
                LIST,
                json!({"DateCreatedFrom": bound}),
                listed("date_created", created),
            )
        };
        let to = |created: &str| {
            let rule = of("DateCreatedTo", "date_created", "before");
            rule.answered(
                LIST,
                json!({"DateCreatedTo": bound}),
                listed("date_created", created),
            )
        };
        let of_status = of("Status", "status", "one-of");
        let status = |status: &str| {
            let sent = json!({"Status": ["active", "waiting"]});
            of_status.answered(LIST, sent, listed("status", status))
        };
        vec![
            from("2026-01-01T00:00:00Z").passes(),
            from("2025-12-31T23:59:59Z").fails("/executions/0/date_created"),
            to("2025-12-31T23:59:59Z").passes(),
            to("2026-01-01T00:00:00Z").fails("/executions/0/date_created"),
            status("active").passes(),
            status("ended").fails("/executions/0/status"),
            of_status
                .shown(LIST, listed("status", "ended"))
                .not_judged(),
        ]
    }
}

impl Keeps {
    const fn words(self) -> &'static str {
        match self {
            Self::AtOrAfter => "on or after",
            Self::Before => "before",
            Self::OneOf => "one of",
        }
    }

    pub(super) fn fits(self, sent: &Value, value: &Value) -> bool {
        let seconds = |v: &Value| instant(v).map(conformant_base::clock::Timestamp::as_second);
        let instants = seconds(sent).zip(seconds(value));
        match self {
            Self::AtOrAfter => instants.is_none_or(|(sent, value)| value >= sent),
            Self::Before => instants.is_none_or(|(sent, value)| value < sent),
            Self::OneOf => match sent.as_array() {
                Some(words) => words.iter().any(|word| as_text(word) == as_text(value)),
                None => as_text(sent) == as_text(value),
            },
        }
    }
}
