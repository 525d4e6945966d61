//! `scenarios/<topic>.yaml`: scenarios that produce evidence. Only the file format.

use super::step::Step;
use conformant_base::sorted::SortedMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One file of scenarios.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Named, parameterized groups of steps, usable by every scenario of the service.
    #[serde(default)]
    pub groups: SortedMap<String, Group>,
    /// The happy path of each operation, by operation id; the derived scenarios start from it.
    #[serde(default)]
    pub operations: SortedMap<String, HappyPath>,
    /// The scenarios.
    #[serde(default)]
    pub scenarios: Vec<Scenario>,
}

/// A named group of steps. Its captures are its result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// One line: the state afterwards.
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
    /// Required state. Failures here violate no rule.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// The smallest accepted set of parameters: path and required ones.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Valid values for the optional parameters, each tested alone and all together.
    #[serde(default)]
    pub optional: Map<String, Value>,
    /// For a list: the steps that add one more item; `${index}` distinguishes items. If omitted, the operation that
    /// creates resources at the same path; empty if the list cannot grow.
    #[serde(default)]
    pub more: Option<Vec<Step>>,
    /// Derived scenarios that must not be generated, by name, each with the reason.
    #[serde(default)]
    pub except: SortedMap<String, String>,
}

/// A scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// `SERVICE/TOPIC/NAME` in kebab-case.
    pub id: String,
    /// One line: what it demonstrates.
    pub says: String,
    /// Runs once for each combination; `${matrix.NAME}` reads the value.
    #[serde(default)]
    pub matrix: SortedMap<String, Vec<Value>>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// Recognizes a response with the existing resource.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Existing {
    /// JSON Pointer into the answer.
    pub at: String,
    /// The value there.
    pub equals: Value,
}

/// The credentials of a call.
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
    /// The user name of the second account with the right password, where the configuration has both.
    OtherUser,
    /// The right user name with the password of the second account, where the configuration has both.
    OtherPassword,
    /// The right pair under another scheme.
    Bearer,
    /// Those of the second account, where the configuration has one.
    OtherAccount,
}

impl Credentials {
    /// Whether its answers show the resources of the configured account.
    pub const fn sees_ours(self) -> bool {
        self.flaw().is_none() && !matches!(self, Self::OtherAccount)
    }

    /// The invalid credentials in words; `None` for those that must be accepted, and for a user name in
    /// another letter case, because no document states that case matters there.
    pub const fn flaw(self) -> Option<&'static str> {
        match self {
            Self::Default | Self::Account | Self::UserOtherCase | Self::OtherAccount => None,
            Self::None => Some("without credentials"),
            Self::Wrong => Some("with a wrong password"),
            Self::Unknown => Some("with another user name"),
            Self::PasswordOtherCase => Some("with its password in another letter case"),
            Self::PasswordShort => Some("with its password cut short"),
            Self::PasswordSpace => Some("with a space behind its password"),
            Self::PasswordEmpty => Some("with an empty password"),
            Self::MixedUser => Some("with the account SID and the API key's secret"),
            Self::MixedPassword => Some("with the API key and the account's auth token"),
            Self::OtherUser => Some("with the user name of another account"),
            Self::OtherPassword => Some("with the password of another account"),
            Self::Bearer => Some("with its credentials as a bearer token"),
        }
    }
}

/// A given null is a value; an omitted one is `None`.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// When polling ends: at one of the values or, without values, at any value other than null.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Until {
    /// JSON Pointer into the body.
    pub at: String,
    /// The expected value.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub equals: Option<Value>,
    /// Or any of these.
    pub one_of: Option<Vec<Value>>,
    /// How long, default 10 s.
    pub within: Option<String>,
    /// How often, default 1 s.
    pub every: Option<String>,
}

/// The response of the listener to a callback.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CallbackAnswer {
    /// Status code, default 200.
    pub status: Option<u16>,
    /// Delay before the response, such as `6s`.
    pub after: Option<String>,
}

/// A registration token to build (D1, Registration without personal data). Omitted values are those of a
/// conforming application.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TokenSpec {
    /// `context.custom_user_id`.
    pub custom_user_id: Option<String>,
    /// `HS256` by default; `HS384`, `HS512`, `none` in any letter case, and `hs256` as an invalid spelling.
    pub algorithm: Option<String>,
    /// Header `typ`, default `JWT`.
    pub typ: Option<String>,
    /// `iss`, default the application's name.
    pub issuer: Option<String>,
    /// `iat` relative to now, such as `-5m`; default 5 seconds ago, because clocks may differ by as much.
    pub issued: Option<String>,
    /// `exp` relative to now, default 10 m.
    pub expires: Option<String>,
    /// Sign with another key than the application's.
    #[serde(default)]
    pub wrong_key: bool,
    /// Sign with this key.
    pub key: Option<String>,
    /// A replacement of the signature: `empty`, `cut` (its first half), `another` (that of another token).
    pub signature: Option<String>,
    /// Further claims.
    #[serde(default)]
    pub claims: Map<String, Value>,
    /// Fractional seconds in both times.
    #[serde(default)]
    pub fraction: bool,
    /// `context.auth_app_id`, default the application's.
    pub auth_app_id: Option<String>,
    /// Omit this claim: `iss`, `iat`, `exp`.
    pub without: Option<String>,
    /// A near-valid issuer: `other-case`, `short`, `long`, `space-behind`.
    pub issuer_near: Option<String>,
}
