//! `scenarios/<topic>.yaml`: stories that produce evidence. Only the shape of the data.

use super::step::Step;
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
    /// `HS256` unless said otherwise; `HS384`, `HS512`, `none` in any letter case, and `hs256` for a near miss.
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
    /// Sign with this key.
    pub key: Option<String>,
    /// What stands in place of the signature: `empty`, `cut` (its first half), `another` (that of another token).
    pub signature: Option<String>,
    /// Further claims.
    #[serde(default)]
    pub claims: Map<String, Value>,
    /// Give both times a fraction.
    #[serde(default)]
    pub fraction: bool,
    /// `context.auth_app_id`, default the application's.
    pub auth_app_id: Option<String>,
    /// Leave this claim out: `iss`, `iat`, `exp`.
    pub without: Option<String>,
    /// Change the issuer a little: `other-case`, `short`, `long`, `space-behind`.
    pub issuer_near: Option<String>,
}
