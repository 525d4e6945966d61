//! Faults that accept nearly valid credentials.

use super::{Call, Core, Fault, account};

/// Invalid credentials of a request.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    method: &'a str,
    path: &'a [String],
    is_later_page: bool,
    /// Scheme, user name and password; `None` if absent or malformed.
    given: Option<(String, String, String)>,
}

/// A fault with the attempts that it accepts.
pub(super) type CredentialFault = (Fault, fn(&Attempt<'_>) -> bool);

/// True if a fault accepts a request with invalid credentials.
pub(super) fn is_accepted_by_fault(
    core: &Core,
    call: &Call<'_>,
    misses: &[CredentialFault],
) -> bool {
    let attempt = Attempt::from_call(call);
    misses
        .iter()
        .any(|(fault, fits)| fits(&attempt) && core.fails(*fault))
}

const PAIRS: [(&str, &str); 2] = [
    (account::API_KEY, account::API_SECRET),
    (account::SID, account::AUTH_TOKEN),
];

impl<'a> Attempt<'a> {
    fn from_call(call: &'a Call<'_>) -> Self {
        Self {
            method: &call.request.method,
            path: call.path,
            is_later_page: call.query.has("PageToken"),
            given: call.any_scheme(),
        }
    }

    /// No credentials.
    fn is_bare(&self) -> bool {
        self.given.is_none()
    }

    fn basic(&self) -> Option<(&str, &str)> {
        let (scheme, user, password) = self.given.as_ref()?;
        scheme
            .eq_ignore_ascii_case("Basic")
            .then_some((user.as_str(), password.as_str()))
    }

    fn basic_is(&self, fits: impl Fn(&str, &str, &str, &str) -> bool) -> bool {
        self.basic().is_some_and(|(user, password)| {
            PAIRS
                .iter()
                .any(|(known, secret)| fits(user, password, known, secret))
        })
    }
}

/// The user name in another case.
pub(super) fn other_case(attempt: &Attempt<'_>) -> bool {
    attempt.basic_is(|user, password, known, secret| {
        user != known && user.eq_ignore_ascii_case(known) && password == secret
    })
}

/// A prefix of the password, for reads.
pub(super) fn prefix(attempt: &Attempt<'_>) -> bool {
    attempt.method == "GET"
        && attempt.basic_is(|user, password, known, secret| {
            user == known && password.len() >= 4 && secret.starts_with(password)
        })
}

/// The password with surrounding spaces, for writes.
pub(super) fn spaced(attempt: &Attempt<'_>) -> bool {
    attempt.method != "GET"
        && attempt.basic_is(|user, password, known, secret| {
            user == known && password != secret && password.trim() == secret
        })
}

/// The user name of one pair with the password of the other.
pub(super) fn halves(attempt: &Attempt<'_>) -> bool {
    attempt.basic_is(|user, password, known, _| {
        user == known && PAIRS.iter().any(|(_, secret)| *secret == password)
    })
}

/// The user name of one account with a password of another.
pub(super) fn other_account(attempt: &Attempt<'_>) -> bool {
    use super::second_account::{API_KEY, API_SECRET};
    attempt.basic_is(|user, password, known, secret| {
        (user == known && password == API_SECRET) || (user == API_KEY && password == secret)
    })
}

/// An empty password.
pub(super) fn empty_password(attempt: &Attempt<'_>) -> bool {
    attempt.basic_is(|user, password, known, _| user == known && password.is_empty())
}

/// Valid credentials under another scheme.
pub(super) fn other_scheme(attempt: &Attempt<'_>) -> bool {
    attempt
        .given
        .as_ref()
        .is_some_and(|(scheme, user, password)| {
            !scheme.eq_ignore_ascii_case("Basic")
                && PAIRS.contains(&(user.as_str(), password.as_str()))
        })
}

/// A later page without credentials.
pub(super) fn open_page(attempt: &Attempt<'_>) -> bool {
    attempt.is_bare() && attempt.is_later_page
}

/// A deletion without credentials.
pub(super) fn open_delete(attempt: &Attempt<'_>) -> bool {
    attempt.is_bare() && attempt.method == "DELETE"
}

/// A read of a nested resource without credentials.
pub(super) fn open_nested(attempt: &Attempt<'_>) -> bool {
    attempt.is_bare() && attempt.method == "GET" && attempt.path.len() >= 6
}

/// A change of an existing resource without credentials: its path ends in a name.
pub(super) fn open_update(attempt: &Attempt<'_>) -> bool {
    attempt.is_bare() && attempt.method == "POST" && attempt.path.len() % 2 == 1
}

/// An operation of version 3 without credentials.
pub(super) fn open_v3(attempt: &Attempt<'_>) -> bool {
    attempt.is_bare() && attempt.path.first().is_some_and(|version| version == "v3")
}
