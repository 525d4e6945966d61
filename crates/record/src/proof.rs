//! What a run's green is worth: of changes to its own answers, how many it would have noticed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What came of changing a run's evidence, one place at a time, and judging it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// `rules`: each rule was tried; `sample`: answers were changed at random, too.
    pub mode: String,
    /// Passed rules that a change of the answers breaks.
    pub proven: usize,
    /// Rules that held whatever was changed: counted as not judged.
    pub vacuous: usize,
    /// Passed rules for which nothing could be changed: they stay passed.
    pub unproven: usize,
    /// What was changed for the rules of each service.
    pub services: BTreeMap<String, Changes>,
    /// What was changed for each rule.
    pub rules: BTreeMap<String, Changes>,
    /// Changes at random, with `sample`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// Changes of answers, one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// How many were made.
    pub made: usize,
    /// After how many something was found.
    pub noticed: usize,
    /// After how many the rule itself was broken; of a service, its rules.
    #[serde(default)]
    pub broke: usize,
}

/// Changes that were drawn from all that could be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// How many were made.
    pub made: usize,
    /// After how many something was found.
    pub noticed: usize,
    /// How many a story was given at most; a story with more places than that was not changed everywhere.
    pub per_story: usize,
    /// By service.
    pub services: BTreeMap<String, Changes>,
    /// Where changes were not noticed, the most first.
    pub blind: Vec<Blind>,
    /// Further such places.
    #[serde(default)]
    pub more: usize,
}

/// A place in answers where a change would not be noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blind {
    /// The operation, as `SERVICE/ID`; for a payload that came in another way its kind.
    pub of: String,
    /// Where in its answer, with `*` for any item.
    pub pointer: String,
    /// The changes that nobody noticed.
    pub changes: Vec<String>,
    /// How many were made there.
    pub made: usize,
    /// How many of them were noticed.
    pub noticed: usize,
    /// What would change that: a hook, a key, a scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would: Vec<String>,
}

impl Changes {
    /// Adds what came of others.
    pub fn add(&mut self, other: Self) {
        self.made += other.made;
        self.noticed += other.noticed;
        self.broke += other.broke;
    }
}

impl Proof {
    /// All changes that were made for rules.
    pub fn whole(&self) -> Changes {
        let mut whole = Changes::default();
        self.services
            .values()
            .for_each(|service| whole.add(*service));
        whole
    }
}

/// A share of a whole with two digits, `0.87`, cut and not rounded: a share of less than all is never told as all.
pub fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let hundredths = part * 100 / whole;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_never_told_larger_than_it_is() {
        assert_eq!(share(999, 1000), "0.99");
        assert_eq!(share(5, 5), "1.00");
        assert_eq!(share(1, 3), "0.33");
        assert_eq!(share(0, 0), "–");
    }
}
