//! `scenarios/<topic>.yaml`: stories that produce evidence. Only the shape of the data.

use super::expect::Expect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One file of scenarios.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Named, parameterised groups of steps, usable by every scenario of the service.
    #[serde(default)]
    pub groups: BTreeMap<String, Group>,
    /// The happy path of each operation, by operation id; the derived scenarios start from it.
    #[serde(default)]
    pub operations: BTreeMap<String, HappyPath>,
    /// The stories.
    #[serde(default)]
    pub scenarios: Vec<Scenario>,
}

/// A named group of steps. Its captures are its result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// One line: what stands after it.
    pub says: String,
    /// Parameters with their defaults; `${with.NAME}` reads them.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// How to call one operation so that it is accepted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HappyPath {
    /// What must exist first; failures there accuse nobody.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// The smallest set of parameters that is accepted: path and required ones.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Plausible values for the optional parameters, each tried alone and all together.
    #[serde(default)]
    pub optional: Map<String, Value>,
    /// For a list: how one more item comes to be in it, `${index}` telling them apart. Where it is
    /// left out, by the operation that makes things at the same path; empty where no more fit in.
    #[serde(default)]
    pub more: Option<Vec<Step>>,
    /// Derived cases that must not be made, by name, each with the reason.
    #[serde(default)]
    pub except: BTreeMap<String, String>,
}

/// A story.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// `SERVICE/TOPIC/NAME` in kebab-case.
    pub id: String,
    /// One line: what it shows.
    pub says: String,
    /// Runs once for each combination; `${matrix.NAME}` reads the value.
    #[serde(default)]
    pub matrix: BTreeMap<String, Vec<Value>>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step: exactly one verb (`call`, `get`, `hook`, `listen`, `await`, `token`, `wait`, `use`)
/// and what is special about it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// Verb: send a request of this operation; one of another service is written `media/upload-media`.
    pub call: Option<String>,
    /// Verb: GET this absolute URL of the same origin with the service's credentials. The result
    /// is `{status, content_type, size, sha256, text, json}`.
    pub get: Option<String>,
    /// Verb: have a person or device do something.
    pub hook: Option<String>,
    /// Verb: open a callback address of this name; `${NAME.url}` is its URL.
    pub listen: Option<String>,
    /// Verb: wait for callbacks at a listening address. The result is `{count, requests: [{method,
    /// query, form, json, text, headers}]}`.
    pub r#await: Option<String>,
    /// Verb: build a registration token; the result is `{token, qr}`.
    pub token: Option<TokenSpec>,
    /// Verb: let time pass, such as `3s`.
    pub wait: Option<String>,
    /// Verb: run a group of steps; one of another service is written `chat/a-channel`.
    pub r#use: Option<String>,

    /// Parameters of the call, hook or group, by the document's names. A list repeats the
    /// parameter; null leaves it out.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Credentials to send; `default` unless said otherwise.
    #[serde(default)]
    pub credentials: Credentials,
    /// Name under which the result is kept for `${NAME.field}`.
    pub capture: Option<String>,
    /// Prefix under which a group's captures are kept; without it they keep their own names.
    pub r#as: Option<String>,
    /// Statements about the result, each judging one story rule.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Rules that this step is there for and says nothing about: their own predicates judge them.
    #[serde(default)]
    pub shows: Vec<String>,
    /// The rule that is broken when the call is refused; defaults to the operation's own rule.
    pub accepted: Option<String>,
    /// The rule that is broken when the call is accepted.
    pub rejected: Option<String>,
    /// For `rejected`: an accepted answer is as good as a refusal where it shows the thing that exists
    /// already.
    pub unless: Option<Existing>,
    /// Neither acceptance nor refusal is expected; the answer is only observed. When it is refused,
    /// its own `expect` and later steps that need its capture are skipped and judge nothing. For
    /// `get`: there may be no address, and then nothing is asked.
    #[serde(default)]
    pub either: bool,
    /// Repeat the call until the value is there, or the time is up.
    pub until: Option<Until>,
    /// Follow `meta.next_page_url` to the end; the result is `{pages, items}`.
    #[serde(default)]
    pub walk: bool,
    /// For `walk`: steps to take after the first page. Such a walk is judged by its `expect` alone,
    /// for no document says what a list that changes meanwhile looks like.
    #[serde(default)]
    pub between: Vec<Step>,
    /// Do it that many times; `${index}` counts from 0, and the capture is an array.
    pub repeat: Option<usize>,
    /// Its failure accuses nobody: the scenario becomes inconclusive.
    #[serde(default)]
    pub setup: bool,
    /// For `listen`: how successive attempts are answered; the last one repeats. Default: 200.
    #[serde(default)]
    pub answers: Vec<CallbackAnswer>,
    /// For `listen`: the kind that each payload is judged as, such as `auth/registration-webhook`.
    /// For a `call` that is refused: the kind that its answer is judged as.
    pub judge: Option<String>,
    /// For `await`: how many callbacks to wait for.
    pub count: Option<usize>,
    /// For `await`: how long to wait, default 5 s.
    pub within: Option<String>,
    /// For `await`: how long to listen on for further, unwelcome ones, default none.
    pub quiet: Option<String>,
}

/// What tells the thing that exists already.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Existing {
    /// JSON Pointer into the answer.
    pub at: String,
    /// The value there.
    pub equals: Value,
}

/// Which credentials a call carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Credentials {
    /// Those of the configuration.
    #[default]
    Default,
    /// None at all.
    None,
    /// The right user name with a wrong password.
    Wrong,
    /// Another user name with the right password.
    Unknown,
    /// The account SID with its auth token, where the configuration has them.
    Account,
    /// The right user name in another letter case, with its password.
    UserOtherCase,
    /// The right user name with its password in another letter case.
    PasswordOtherCase,
    /// The right user name with its password but for the last character.
    PasswordShort,
    /// The right user name with its password and a space.
    PasswordSpace,
    /// The right user name with an empty password.
    PasswordEmpty,
    /// The account SID with the API key's secret: halves of two pairs, where both are configured.
    MixedUser,
    /// The API key with the account's auth token: halves of two pairs, where both are configured.
    MixedPassword,
    /// The right pair under another scheme.
    Bearer,
}

impl Credentials {
    /// How such a request goes, in words; none for those that must be let in, and for a user name in
    /// another letter case, for no line says that case counts there.
    pub const fn flaw(self) -> Option<&'static str> {
        match self {
            Self::Default | Self::Account | Self::UserOtherCase => None,
            Self::None => Some("without credentials"),
            Self::Wrong => Some("with a wrong password"),
            Self::Unknown => Some("with another user name"),
            Self::PasswordOtherCase => Some("with its password in another letter case"),
            Self::PasswordShort => Some("with its password cut short"),
            Self::PasswordSpace => Some("with a space behind its password"),
            Self::PasswordEmpty => Some("with an empty password"),
            Self::MixedUser => Some("with the account SID and the API key's secret"),
            Self::MixedPassword => Some("with the API key and the account's auth token"),
            Self::Bearer => Some("with its credentials as a bearer token"),
        }
    }
}

/// A given null is a value, not the lack of one.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// When polling ends: at one of the values, or, where none is named, as soon as anything but null
/// is there.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Until {
    /// JSON Pointer into the body.
    pub at: String,
    /// The value waited for.
    #[serde(default, deserialize_with = "given")]
    pub equals: Option<Value>,
    /// Or any of these.
    pub one_of: Option<Vec<Value>>,
    /// How long, default 10 s.
    pub within: Option<String>,
    /// How often, default 1 s.
    pub every: Option<String>,
}

/// How the listener answers one callback.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CallbackAnswer {
    /// Status code, default 200.
    pub status: Option<u16>,
    /// How long it takes first, such as `6s`.
    pub after: Option<String>,
}

/// A registration token to build (D1, Registration without personal data); what is left out is as
/// a conforming application would have it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TokenSpec {
    /// `context.custom_user_id`.
    pub custom_user_id: Option<String>,
    /// `HS256` unless said otherwise; `HS384`, `HS512`, `none`, and `hs256` for a near miss.
    pub algorithm: Option<String>,
    /// Header `typ`, default `JWT`.
    pub typ: Option<String>,
    /// `iss`, default the application's name.
    pub issuer: Option<String>,
    /// `iat` relative to now, such as `-5m`; default now.
    pub issued: Option<String>,
    /// `exp` relative to now, default 10 m.
    pub expires: Option<String>,
    /// Sign with another key than the application's.
    #[serde(default)]
    pub wrong_key: bool,
    /// `context.auth_app_id`, default the application's.
    pub auth_app_id: Option<String>,
    /// Leave this claim out: `iss`, `iat`, `exp`.
    pub without: Option<String>,
    /// Change the issuer a little: `other-case`, `short`, `long`, `space-behind`.
    pub issuer_near: Option<String>,
}

impl Step {
    /// Rules that this step names itself, those between its pages not included.
    pub fn rules(&self) -> impl Iterator<Item = &String> {
        let stated = self.expect.iter().map(|e| &e.rule);
        stated
            .chain(&self.shows)
            .chain(&self.accepted)
            .chain(&self.rejected)
    }

    /// Whether this step, those between its pages included, names that rule.
    pub fn names_rule(&self, rule: &str) -> bool {
        self.rules().any(|r| r == rule) || self.between.iter().any(|step| step.names_rule(rule))
    }

    /// The step in one line: its verb and what it is about.
    pub fn summary(&self) -> String {
        let verbs = [
            ("call", &self.call),
            ("get", &self.get),
            ("hook", &self.hook),
            ("listen", &self.listen),
            ("await", &self.r#await),
            ("wait", &self.wait),
            ("use", &self.r#use),
        ];
        let verb = verbs
            .iter()
            .find_map(|(verb, what)| Some(format!("{verb} {}", what.as_ref()?)));
        let mut line = verb.unwrap_or_else(|| "token".to_owned());
        for (name, value) in &self.with {
            line.push_str(&format!(" {name}={}", crate::json::excerpt(value, 60)));
        }
        if let Some(rule) = &self.rejected {
            line.push_str(&format!(" (refused: {rule})"));
        }
        for expect in &self.expect {
            line.push_str(&format!(" (shows {})", expect.rule));
        }
        line
    }
}
