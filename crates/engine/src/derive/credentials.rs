//! Missing, wrong and slightly changed credentials: on the operation, on further pages of its list and on the
//! addresses in its answer.

use super::cases::{Cases, accepted, calling, captured, only, refused};
use conformant_rulebook::Kind;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::{Call, Get, Step};
use serde_json::{Map, Value};

/// Invalid credentials, each with one difference from the valid ones.
const NEAR: [Credentials; 6] = [
    Credentials::UserOtherCase,
    Credentials::PasswordOtherCase,
    Credentials::PasswordShort,
    Credentials::PasswordSpace,
    Credentials::PasswordEmpty,
    Credentials::Bearer,
];

/// All cases about credentials, if the operation needs them.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if !cases.operation.secured {
        return;
    }
    let rule = cases.credentials_rule();
    for (case, credentials) in [
        ("credentials-none", Credentials::None),
        ("credentials-wrong", Credentials::Wrong),
        ("credentials-unknown", Credentials::Unknown),
    ] {
        let step = with(credentials, refused(&rule));
        let what = credentials.flaw().unwrap_or_default();
        if matches!(credentials, Credentials::Wrong) {
            refused_and_not_done(cases, case, what, &step);
        } else {
            cases.add(case, what, step, &Map::new());
        }
    }
    // A service that reads a header field only does not see user names and passwords.
    if cases.has_user_names() {
        let what = "with the account SID and its auth token";
        let step = with(Credentials::Account, accepted(&rule));
        cases.add("credentials-account", what, step, &Map::new());
        near(cases, &rule);
    }
    if let Some(size) = cases.page_size()
        && cases.operation.paging.has_meta()
    {
        page(cases, &size, &rule);
    }
    if cases.operation.response.is_some() && cases.operation.list_key.is_none() {
        addresses(cases, &rule);
    }
}

/// A rejected request, and what shows that nothing happened: an update or a deletion is followed by a fetch, the
/// creation of something that is not listed by the same creation.
fn refused_and_not_done(cases: &mut Cases<'_>, case: &str, what: &str, refused: &Call) {
    let happy = &cases.happy;
    let is_change = cases.operation.method != "GET" && !cases.creates();
    let mut steps = Vec::new();
    match cases.reader() {
        Some(fetch) if is_change => {
            let accepted = accepted(&format!("{}/{}", fetch.service, fetch.id));
            let look = calling(fetch, Cases::path_of(fetch, &happy.with), accepted);
            let change = cases.call(refused.clone(), &cases.optional());
            steps.extend([look.clone(), change, look]);
        }
        None if cases.creates() => {
            let same = accepted(&cases.own_rule());
            steps.push(cases.call(refused.clone(), &Map::new()));
            steps.push(cases.call(same, &Map::new()));
        }
        _ => steps.push(cases.call(refused.clone(), &Map::new())),
    }
    cases.after_setup(case, what, steps);
}

fn near(cases: &mut Cases<'_>, rule: &str) {
    let call = |credentials, step| cases.call(with(credentials, step), &Map::new());
    let user = user_name_rule(cases);
    let steps = NEAR.map(|one| call(one, refused(near_rule(one, rule, &user))));
    let mixed = [Credentials::MixedUser, Credentials::MixedPassword];
    let mixed = mixed.map(|one| call(one, refused(rule)));
    let accounts = [Credentials::OtherUser, Credentials::OtherPassword];
    let accounts = accounts.map(|one| call(one, refused(rule)));
    let what = "with credentials that are nearly right";
    cases.after_setup("credentials-near", what, steps);
    let what = "with halves of two pairs of credentials";
    cases.after_setup("credentials-mixed", what, mixed);
    let what = "with the user name of one account and the password of another";
    cases.after_setup("credentials-mixed-accounts", what, accounts);
}

/// The rule about the letter case of user names, which no document mentions; that of all credentials if there is none.
fn user_name_rule(cases: &Cases<'_>) -> String {
    let rule = format!(
        "{}/credentials/user-name-in-its-case",
        cases.operation.service
    );
    match cases.rulebook.rules.contains_key(&rule) {
        true => rule,
        false => cases.credentials_rule(),
    }
}

/// The rule that rejects invalid credentials with one difference.
fn near_rule<'r>(credentials: Credentials, rule: &'r str, user: &'r str) -> &'r str {
    if matches!(credentials, Credentials::UserOtherCase) {
        user
    } else {
        rule
    }
}

/// Requests for the second page with invalid credentials.
fn page(cases: &mut Cases<'_>, size: &str, rule: &str) {
    let first = captured("page", accepted(&cases.own_rule()));
    let mut steps = cases.more(2);
    steps.push(cases.call(first, &only(size, 1)));
    let blunt = [Credentials::None, Credentials::Wrong, Credentials::Unknown];
    let user = user_name_rule(cases);
    let near: &[Credentials] = if cases.has_user_names() { &NEAR } else { &[] };
    for &credentials in blunt.iter().chain(near) {
        let next = "${page.meta.next_page_url}";
        steps.push(unfollowed(
            next,
            credentials,
            near_rule(credentials, rule, &user),
        ));
    }
    let what = "the next page without credentials, with wrong ones and with nearly right ones";
    cases.after_setup("page-credentials-none", what, steps);
}

/// The addresses in the answer without credentials: its own and those of related resources.
fn addresses(cases: &mut Cases<'_>, rule: &str) {
    let Some(kind) = cases.shown_by(cases.operation) else {
        return;
    };
    let links = links_of(kind);
    let shown = captured("shown", accepted(&cases.own_rule()));
    let shown = cases.call(shown, &Map::new());
    let none = |url: &str| unfollowed(url, Credentials::None, rule);
    if has_url(kind) {
        let what = "the url of what it answers with, without credentials";
        let steps = [shown.clone(), none("${shown.url}")];
        cases.after_setup("url-credentials-none", what, steps);
    }
    if !links.is_empty() {
        let what = "the links of what it answers with, without credentials";
        let links = links.iter().map(|link| none(link));
        let steps: Vec<Step> = std::iter::once(shown).chain(links).collect();
        cases.after_setup("link-credentials-none", what, steps);
    }
}

/// Whether the resource shows its own address.
pub(super) fn has_url(kind: &Kind) -> bool {
    kind.schema.pointer("/properties/url").is_some()
}

/// The addresses of related resources in an answer that is captured as `shown`.
pub(super) fn links_of(kind: &Kind) -> Vec<String> {
    let links = kind.schema.pointer("/properties/links/properties");
    let links = links.and_then(Value::as_object).into_iter().flatten();
    links
        .map(|(key, _)| format!("${{shown.links.{key}}}"))
        .collect()
}

/// A step that follows an address if there is one.
pub(super) fn follow(url: &str) -> Get {
    Get {
        get: url.to_owned(),
        either: true,
        ..Get::default()
    }
}

/// A step that follows an address with credentials that must be rejected.
fn unfollowed(url: &str, credentials: Credentials, rule: &str) -> Step {
    Step::from(Get {
        credentials,
        rejected: Some(rule.to_owned()),
        ..follow(url)
    })
}

fn with(credentials: Credentials, call: Call) -> Call {
    Call {
        credentials,
        ..call
    }
}
