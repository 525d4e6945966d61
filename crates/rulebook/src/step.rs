//! One step of a scenario: a verb with its keys, and the keys of every step.
//!
//! Each verb has a struct with its own keys. Deserialization is in `step_format.rs`, name resolution in `scenarios/step.rs`.

use super::call_format::CallFormat;
use super::expect::{Expect, RuleName};
use super::scenario::{CallbackAnswer, Credentials, Existing, TokenSpec, Until};
use super::step_format::verbs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The verb with its keys.
    #[serde(flatten)]
    pub verb: Verb,
    /// Repeat it that many times; `${index}` counts from 0, and the capture is an array.
    pub repeat: Option<usize>,
    /// Its failure violates no rule: the scenario becomes inconclusive.
    pub setup: bool,
}

verbs! {
    Call "call",
    Get "get",
    Hook "hook",
    Listen "listen",
    Await "await",
    Token "token",
    Wait "wait",
    Use "use",
    Concurrently "concurrently",
}

/// Sends a request of an operation. The keys are documented in `call_format.rs`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(try_from = "CallFormat", into = "CallFormat")]
#[expect(missing_docs, reason = "documented at the keys of `CallFormat`")]
pub struct Call {
    pub call: String,
    pub with: Map<String, Value>,
    pub credentials: Credentials,
    pub capture: Option<String>,
    pub expect: Vec<Expect>,
    pub shows: Vec<String>,
    pub demand: Demand,
    pub until: Option<Until>,
    pub walk: bool,
    pub between: Vec<Step>,
    pub judge: Option<String>,
}

/// The expected outcome of a call, and the rule that any other outcome violates.
#[derive(Clone, Debug, Default)]
pub enum Demand {
    /// Acceptance, by the operation's own rule.
    #[default]
    Own,
    /// Acceptance, by this rule.
    Accepted(String),
    /// Refusal.
    Rejected {
        /// The violated rule.
        rule: String,
        /// An accepted response is valid, too, if it contains the existing resource.
        unless: Option<Existing>,
    },
    /// None: the response is only observed.
    Either,
}

impl Demand {
    /// The rule that an acceptance violates.
    pub fn rejected(&self) -> Option<&String> {
        match self {
            Self::Rejected { rule, .. } => Some(rule),
            Self::Own | Self::Accepted(_) | Self::Either => None,
        }
    }

    /// The rule that it names.
    pub fn rule(&self) -> Option<&String> {
        match self {
            Self::Accepted(rule) | Self::Rejected { rule, .. } => Some(rule),
            Self::Own | Self::Either => None,
        }
    }

    /// Whether acceptance is expected.
    pub fn is_acceptance(&self) -> bool {
        matches!(self, Self::Own | Self::Accepted(_))
    }

    /// Whether it expects a rejection with an exception.
    pub fn has_exception(&self) -> bool {
        matches!(
            self,
            Self::Rejected {
                unless: Some(_),
                ..
            }
        )
    }

    /// Whether nothing is expected.
    pub fn is_either(&self) -> bool {
        matches!(self, Self::Either)
    }
}

/// Follows an address.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Get {
    /// Verb: GET this absolute URL of the same origin with the service's credentials, or each URL of an object such
    /// as `links`. The result is `{status, content_type, size, sha256, text, json}`.
    pub get: String,
    /// Credentials to send; `default` if omitted.
    #[serde(default)]
    pub credentials: Credentials,
    /// Name of the result for `${NAME.field}`.
    pub capture: Option<String>,
    /// Statements about the result, each judging one scenario rule.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Rules that this step exercises without a statement: their own predicates judge them.
    #[serde(default)]
    pub shows: Vec<String>,
    /// The rule that an acceptance violates.
    #[serde(default, deserialize_with = "RuleName::optional")]
    #[schemars(with = "Option<RuleName>")]
    pub rejected: Option<String>,
    /// The address may be missing, and then nothing is sent; any outcome is valid.
    #[serde(default)]
    pub either: bool,
}

/// Requests an action of a person or device.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hook {
    /// Verb: request an action of a person or device.
    pub hook: String,
    /// Arguments of the hook.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Name of the result for `${NAME.field}`.
    pub capture: Option<String>,
    /// Statements about the result, each judging one scenario rule.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Rules that this step exercises without a statement: their own predicates judge them.
    #[serde(default)]
    pub shows: Vec<String>,
}

/// Opens a callback address.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listen {
    /// Verb: open a callback address of this name; `${NAME.url}` is its URL.
    pub listen: String,
    /// Responses to successive attempts; the last one repeats. Default: 200.
    #[serde(default)]
    pub answers: Vec<CallbackAnswer>,
    /// The resource type that each payload is validated as, such as `auth/registration-webhook`.
    pub judge: Option<String>,
}

/// Waits for callbacks.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Await {
    /// Verb: wait for callbacks at a listening address. The result is `{count, requests: [{method,
    /// query, form, json, text, headers, answered, asked_last}], waited}`: `answered` is the status of our response,
    /// `asked_last` the last operation that was called before.
    pub r#await: String,
    /// How many callbacks to wait for.
    pub count: Option<usize>,
    /// How long to wait, default 5 s.
    pub within: Option<String>,
    /// How long to wait for further, unexpected ones, default none.
    pub quiet: Option<String>,
    /// Name of the result for `${NAME.field}`.
    pub capture: Option<String>,
    /// Statements about the result, each judging one scenario rule.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Rules that this step exercises without a statement: their own predicates judge them.
    #[serde(default)]
    pub shows: Vec<String>,
}

/// Builds a registration token.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Token {
    /// Verb: build a registration token; the result is `{token, qr}`.
    pub token: TokenSpec,
    /// Name of the result for `${NAME.field}`.
    pub capture: Option<String>,
}

/// Lets time pass.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Wait {
    /// Verb: let time pass, such as `3s`; `settled` is the consistency window.
    pub wait: String,
}

impl Wait {
    /// Waits until lists and other reads reflect earlier writes. The runner defines the duration.
    pub const SETTLED: &str = "settled";
}

/// Runs a group of steps.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Use {
    /// Verb: run a group of steps; one of another service is written `chat/a-channel`.
    pub r#use: String,
    /// Parameters of the group; null omits one.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Prefix of the group's captures; without it they keep their own names.
    pub r#as: Option<String>,
}

/// Sends requests at the same time.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Concurrently {
    /// Verb: send these calls and hooks at the same time, 2 to 8 of them with repetitions. Each may be accepted
    /// or refused; rules judge the state afterwards.
    #[serde(deserialize_with = "contended")]
    #[schemars(with = "Vec<Step>")]
    pub concurrently: Vec<Step>,
}

impl Concurrently {
    /// How many requests may be sent at the same time.
    pub const SIZES: std::ops::RangeInclusive<usize> = 2..=8;

    /// How many requests are sent at the same time.
    pub fn size(&self) -> usize {
        let sizes = self
            .concurrently
            .iter()
            .map(|step| step.repeat.unwrap_or(1));
        sizes.sum()
    }
}

/// Reads steps whose calls may be accepted or refused unless they say otherwise.
fn contended<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Step>, D::Error> {
    let mut steps = Vec::<Step>::deserialize(from)?;
    for step in &mut steps {
        if let Verb::Call(call) = &mut step.verb
            && matches!(call.demand, Demand::Own)
        {
            call.demand = Demand::Either;
        }
    }
    Ok(steps)
}

/// The keys of a step that has this verb.
macro_rules! keys_of {
    ($step:expr, $verb:ident) => {
        if let Verb::$verb(keys) = $step {
            Some(&**keys)
        } else {
            None
        }
    };
}

/// A key that only these verbs have.
macro_rules! key_of {
    (&mut $step:expr, $key:ident of $($verb:ident)+) => {
        match &mut $step {
            $(Verb::$verb(keys) => Some(&mut keys.$key),)+
            _ => None,
        }
    };
    (&$step:expr, $key:ident of $($verb:ident)+) => {
        match &$step {
            $(Verb::$verb(keys) => Some(&keys.$key),)+
            _ => None,
        }
    };
}

impl Step {
    /// The step as a part of the setup: its failure violates no rule.
    #[must_use]
    pub fn of_setup(self) -> Self {
        Self {
            setup: true,
            ..self
        }
    }

    pub fn call(&self) -> Option<&Call> {
        keys_of!(&self.verb, Call)
    }

    /// The operation that it calls, as written.
    pub fn operation(&self) -> Option<&str> {
        self.call().map(|call| call.call.as_str())
    }

    /// The address that it follows.
    pub fn address(&self) -> Option<&str> {
        self.get().map(|get| get.get.as_str())
    }

    fn get(&self) -> Option<&Get> {
        keys_of!(&self.verb, Get)
    }

    /// The hook that it calls.
    pub fn hook(&self) -> Option<&str> {
        keys_of!(&self.verb, Hook).map(|hook| &*hook.hook)
    }

    /// How long it waits, as written.
    pub fn wait(&self) -> Option<&str> {
        keys_of!(&self.verb, Wait).map(|wait| &*wait.wait)
    }

    /// The group that it runs.
    pub fn group(&self) -> Option<&Use> {
        keys_of!(&self.verb, Use)
    }

    /// The requests that it sends at the same time.
    pub fn race(&self) -> Option<&Concurrently> {
        keys_of!(&self.verb, Concurrently)
    }

    /// Whether it builds a token.
    pub fn is_token(&self) -> bool {
        matches!(self.verb, Verb::Token(_))
    }

    /// Parameters of the call, hook or group.
    pub fn with(&self) -> Option<&Map<String, Value>> {
        key_of!(&self.verb, with of Call Hook Use)
    }

    /// The values of its parameters.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.with().into_iter().flat_map(Map::values)
    }

    /// As `with`, for changes.
    pub fn with_mut(&mut self) -> Option<&mut Map<String, Value>> {
        key_of!(&mut self.verb, with of Call Hook Use)
    }

    /// The name of its result.
    pub fn capture(&self) -> Option<&String> {
        key_of!(&self.verb, capture of Call Get Hook Await Token)?.as_ref()
    }

    /// As `capture`, for changes.
    pub fn capture_mut(&mut self) -> Option<&mut Option<String>> {
        key_of!(&mut self.verb, capture of Call Get Hook Await Token)
    }

    /// The names that later steps use: of its result, its address, or the prefix of a group's results.
    pub fn names(&self) -> Option<&String> {
        if let Verb::Listen(listen) = &self.verb {
            return Some(&listen.listen);
        }
        self.group()
            .map_or_else(|| self.capture(), |group| group.r#as.as_ref())
    }

    /// The names that a single step defines, without groups.
    pub fn own_name(&self) -> Option<&String> {
        self.names().filter(|_| self.group().is_none())
    }

    /// Its statements about the result.
    pub fn expect(&self) -> &[Expect] {
        key_of!(&self.verb, expect of Call Get Hook Await).map_or(&[], Vec::as_slice)
    }

    /// As `expect`, for changes.
    pub fn expect_mut(&mut self) -> Option<&mut Vec<Expect>> {
        key_of!(&mut self.verb, expect of Call Get Hook Await)
    }

    /// Rules that it exercises without a statement.
    pub fn shows(&self) -> &[String] {
        key_of!(&self.verb, shows of Call Get Hook Await).map_or(&[], Vec::as_slice)
    }

    /// The rule that a rejection violates, if it names one.
    pub fn accepted(&self) -> Option<&String> {
        if let Demand::Accepted(rule) = &self.call()?.demand {
            Some(rule)
        } else {
            None
        }
    }

    /// The rule that an acceptance violates.
    pub fn rejected(&self) -> Option<&String> {
        let of_call = self.call().and_then(|call| call.demand.rejected());
        of_call.or_else(|| self.get()?.rejected.as_ref())
    }

    /// Whether any outcome is valid.
    pub fn is_either(&self) -> bool {
        self.call().is_some_and(|call| call.demand.is_either())
            || self.get().is_some_and(|get| get.either)
    }

    /// Makes any outcome valid.
    pub fn demand_nothing(&mut self) {
        if let Verb::Call(call) = &mut self.verb {
            call.demand = Demand::Either;
        } else if let Verb::Get(get) = &mut self.verb {
            get.rejected = None;
            get.either = true;
        }
    }

    /// The credentials that it sends.
    pub fn credentials(&self) -> Credentials {
        let of_call = self.call().map(|call| call.credentials);
        let given = of_call.or_else(|| Some(self.get()?.credentials));
        given.unwrap_or_default()
    }

    /// Makes it send the default credentials.
    pub fn carry_default_credentials(&mut self) {
        if let Verb::Call(call) = &mut self.verb {
            call.credentials = Credentials::Default;
        } else if let Verb::Get(get) = &mut self.verb {
            get.credentials = Credentials::Default;
        }
    }

    /// Steps that it contains: those between its pages, or those that it takes at the same time.
    pub fn nested(&self) -> &[Self] {
        let of_call = self.call().map(|call| &*call.between);
        let nested = of_call.or_else(|| Some(&*self.race()?.concurrently));
        nested.unwrap_or_default()
    }

    /// The resource type that its payload is validated as.
    pub fn judge(&self) -> Option<&String> {
        if let Verb::Listen(listen) = &self.verb {
            return listen.judge.as_ref();
        }
        self.call()?.judge.as_ref()
    }

    /// Rules that this step names, without those of the steps between its pages.
    pub fn rules(&self) -> impl Iterator<Item = &String> {
        let stated = self.expect().iter().map(|e| &e.rule);
        stated
            .chain(self.shows())
            .chain(self.accepted())
            .chain(self.rejected())
    }

    /// Whether this step or a nested one names that rule.
    pub fn names_rule(&self, rule: &str) -> bool {
        self.rules().any(|r| r == rule) || self.nested().iter().any(|step| step.names_rule(rule))
    }

    /// The operand of its verb; empty for a token.
    pub fn about(&self) -> &str {
        match &self.verb {
            Verb::Call(call) => &call.call,
            Verb::Get(get) => &get.get,
            Verb::Hook(hook) => &hook.hook,
            Verb::Listen(listen) => &listen.listen,
            Verb::Await(wait) => &wait.r#await,
            Verb::Token(_) => "",
            Verb::Wait(wait) => &wait.wait,
            Verb::Use(group) => &group.r#use,
            Verb::Concurrently(race) => race.concurrently.first().map_or("", Self::about),
        }
    }

    /// The step in one line: its verb and operand.
    pub fn summary(&self) -> String {
        if let Verb::Concurrently(race) = &self.verb {
            let steps: Vec<String> = race.concurrently.iter().map(Self::summary).collect();
            return format!("{} {}", self.verb.word(), steps.join(" | "));
        }
        let mut line = format!("{} {}", self.verb.word(), self.about());
        line.truncate(line.trim_end().len());
        for (name, value) in self.with().into_iter().flatten() {
            line.push_str(&format!(
                " {name}={}",
                conformant_base::json::excerpt(value, 60)
            ));
        }
        if let Some(rule) = self.rejected() {
            line.push_str(&format!(" (refused: {rule})"));
        }
        for expect in self.expect() {
            line.push_str(&format!(" (shows {})", expect.rule));
        }
        line
    }
}
