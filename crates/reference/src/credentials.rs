//! Checks of HTTP Basic credentials (D2 and D3, Authentication; D2: the same scheme for media), and their faults.

use super::{Call, Core, Fault, Refusal, Variant, account};

/// Faults of the credential check in one service.
pub(super) struct CredentialFaults {
    pub(super) account_refused: Fault,
    pub(super) api_key_refused: Fault,
    /// Faults with the invalid credentials that they accept.
    pub(super) accepting: &'static [(Fault, Fits)],
}

/// True for the credentials that a fault accepts.
type Fits = fn(&Attempt<'_>) -> bool;

/// The credentials of a request.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    method: &'a str,
    path: &'a [String],
    is_later_page: bool,
    /// Scheme, user name and password; `None` if absent or malformed.
    given: Option<(String, String, String)>,
}

pub(super) fn authenticate(
    core: &Core,
    call: &Call<'_>,
    faults: &CredentialFaults,
) -> Result<(), Refusal> {
    let attempt = Attempt {
        method: &call.request.method,
        path: call.path,
        is_later_page: call.query.has("PageToken"),
        given: call.credentials(),
    };
    let is_valid = attempt.basic_is(|user, password, known, secret| {
        password == secret
            && (user == known
                || user.eq_ignore_ascii_case(known) && core.varies(Variant::UserNameAnyCase))
    });
    let is_accepted = if is_valid {
        let is_account = attempt.basic_is(|user, _, _, _| user == account::SID);
        !core.fails(if is_account {
            faults.account_refused
        } else {
            faults.api_key_refused
        })
    } else {
        let mut accepting = faults.accepting.iter();
        accepting.any(|(fault, fits)| fits(&attempt) && core.fails(*fault))
    };
    if is_accepted {
        Ok(())
    } else {
        Err(Refusal::new(401, 20003, "Authenticate"))
    }
}

const PAIRS: [(&str, &str); 2] = [
    (account::API_KEY, account::API_SECRET),
    (account::SID, account::AUTH_TOKEN),
];

impl Attempt<'_> {
    /// No credentials.
    fn is_bare(&self) -> bool {
        self.given.is_none()
    }

    /// True if there are Basic credentials that fit, with one of the known pairs, the condition.
    fn basic_is(&self, fits: impl Fn(&str, &str, &str, &str) -> bool) -> bool {
        self.given.as_ref().is_some_and(|(scheme, user, password)| {
            scheme.eq_ignore_ascii_case("Basic")
                && PAIRS
                    .iter()
                    .any(|(known, secret)| fits(user, password, known, secret))
        })
    }
}

/// No Basic credentials.
pub(super) fn missing(attempt: &Attempt<'_>) -> bool {
    !any(attempt)
}

/// Any Basic credentials.
pub(super) fn any(attempt: &Attempt<'_>) -> bool {
    attempt.basic_is(|_, _, _, _| true)
}

/// A known user name with any password.
pub(super) fn wrong_password(attempt: &Attempt<'_>) -> bool {
    attempt.basic_is(|user, _, known, _| user == known)
}

/// An unknown user name.
pub(super) fn unknown_user(attempt: &Attempt<'_>) -> bool {
    any(attempt) && !wrong_password(attempt)
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
