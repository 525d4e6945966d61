//! `registration-identity`: registrations with one phone belong to one user, registrations with different phones to different users.
//!
//! Does not judge recordings in which a phone number may have changed between two registrations.

use super::prelude::*;
use crate::evidence::{Event, HookCall};

/// Two registrations that differ in one respect belong to the same user, or to different users.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RegistrationIdentity {
    /// What differs.
    differs: Differs,
    /// Registrations by request.
    create: Create,
    /// Registrations by a scanned code.
    scan: Scan,
    /// Changes of the phone by its user. From then on the earlier registrations count for the new one.
    change: PhoneChange,
}

/// A hook by which a user changes the phone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PhoneChange {
    /// The hook.
    hook: String,
    /// Its argument with the user.
    user: String,
    /// Its argument with the new phone number.
    phone: String,
    /// Its argument with the country code.
    country: String,
}

/// An operation that registers a user by phone, its parameters, and the user in its response.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The operation's id.
    operation: String,
    /// The parameter with the e-mail address.
    email: String,
    /// The parameter with the phone number.
    phone: String,
    /// The parameter with the country code.
    country: String,
    /// The parameter with the response format.
    format: String,
    /// Where the response shows the user.
    at: String,
}

/// A registration in three parts: a hook shows a code, a hook scans it, an operation returns the user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the keys of a rule are verbs, and one verb names the whole"
)]
struct Scan {
    /// The hook that shows a code.
    show: String,
    /// The hook that scans a code with a phone.
    scan: String,
    /// The argument of both hooks with the code.
    code: String,
    /// The argument of the scan with the phone number.
    phone: String,
    /// The argument of the scan with the country code.
    country: String,
    /// The operation that returns the registered user.
    operation: String,
    /// Its parameter, and the argument of `show`, that names the registration.
    registration: String,
    /// Where the response shows the user.
    at: String,
}

/// The difference between two registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Differs {
    /// One phone, another e-mail address: the same user.
    Email,
    /// One phone in another spelling: the same user.
    Spelling,
    /// One phone, another format of the response: the same user.
    Format,
    /// One phone, once by e-mail address and once by a scan: the same user.
    Way,
    /// Another phone and e-mail address in the same country: another user.
    Phone,
    /// The same digits in another country: another user.
    Country,
}

/// One registration.
#[derive(Clone)]
struct Registration {
    /// Its place in the evidence.
    event: usize,
    email: Option<String>,
    phone: String,
    country: String,
    format: String,
    user: String,
    site: Site,
}

impl Predicate for RegistrationIdentity {
    fn applies_to(&self) -> AppliesTo {
        // A registration by a scanned code counts, too.
        AppliesTo::Anything
    }

    fn references(&self, references: &mut References) {
        let Create {
            operation,
            email,
            phone,
            country,
            format,
            at,
        } = &self.create;
        references
            .operation("create/operation", operation)
            .parameter("create/email", email)
            .parameter("create/phone", phone)
            .parameter("create/country", country)
            .parameter("create/format", format)
            .answers("create/at", at);
        references
            .operation("scan/operation", &self.scan.operation)
            .parameter("scan/registration", &self.scan.registration)
            .answers("scan/at", &self.scan.at);
        references.hook("change/hook", &self.change.hook);
        references.hook("scan/show", &self.scan.show);
        references.hook("scan/scan", &self.scan.scan);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        if context.evidence.has_unobserved_actions {
            return;
        }
        let all = self.registrations(context, &verdicts.rule.service);
        for (n, later) in all.iter().enumerate() {
            let earlier = all[..n].iter().map(|earlier| {
                let mut earlier = earlier.clone();
                self.change.apply(context, &mut earlier, later.event);
                earlier
            });
            let earlier: Vec<Registration> = earlier.filter(|e| self.fits(e, later)).collect();
            let is_same = |earlier: &&Registration| earlier.user == later.user;
            let wants_same = !matches!(self.differs, Differs::Phone | Differs::Country);
            // If users must differ, any earlier registration of the same user is a violation.
            let other = match wants_same {
                true => earlier.last(),
                false => earlier.iter().find(is_same).or(earlier.last()),
            };
            let Some(other) = other.filter(|_| !verdicts.has_finding_at(&later.site)) else {
                continue;
            };
            let wrong = (other.user == later.user) != wants_same;
            let expected = match wants_same {
                true => format!("user {}, as before", other.user),
                false => format!("another user than {}", other.user),
            };
            let fact = Fact::new("user", expected, format!("user {}", later.user));
            verdicts
                .instance([other.site.clone(), later.site.clone()])
                .after(other.site.exchange(context.evidence))
                .conclude(wrong.then_some(fact));
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const CREATE: &str = "create-user";
        const POLL: &str = "poll-registration-status";
        const USER: &str = "/user/id";
        let rule = |differs: &str| {
            let create = json!({
                "operation": CREATE, "email": "user[email]", "phone": "user[cellphone]",
                "country": "user[country_code]", "format": "FORMAT", "at": USER,
            });
            let scan = json!({
                "show": "announce_registration", "scan": "scan_registration", "code": "qr",
                "phone": "cellphone", "country": "country_code", "operation": POLL,
                "registration": "custom_user_id", "at": "/registration/auth_id",
            });
            let change = json!({
                "hook": "change_phone", "user": "auth_id", "phone": "cellphone", "country": "country_code",
            });
            let parameters =
                json!({"differs": differs, "create": create, "scan": scan, "change": change});
            Example::for_rule("auth", parameters)
        };
        let with = |scene: &ExampleBuilder, email: &str, phone: &str, id: u64| {
            let sent = json!({
                "FORMAT": "json", "user[email]": email, "user[cellphone]": phone, "user[country_code]": "1",
            });
            scene.answered(CREATE, sent, json!({"user": {"id": id}, "success": true}))
        };
        let first = |differs: &str| with(&rule(differs), "a@x", "555-0100", 7);
        let two = |differs: &str, email: &str, phone: &str, id: u64| {
            with(&first(differs), email, phone, id)
        };
        let both_ways = |id: u64| {
            let code = json!({"custom_user_id": "u", "qr": "q"});
            let phone = json!({"qr": "q", "cellphone": "555-0100", "country_code": "1"});
            let polled =
                json!({"registration": {"status": "completed", "auth_id": 7}, "success": true});
            let scanned = rule("way")
                .hook("announce_registration", code, json!({}))
                .hook("scan_registration", phone, json!({"registered": true}))
                .answered(
                    POLL,
                    json!({"FORMAT": "json", "custom_user_id": "u"}),
                    polled,
                );
            with(&scanned, "a@x", "5550100", id)
        };
        let moved = |differs: &str, phone: &str, id: u64| {
            let change = json!({"auth_id": 7, "cellphone": "555-0101", "country_code": "1"});
            let changed = first(differs).hook("change_phone", change, json!({}));
            with(&changed, "b@x", phone, id)
        };
        vec![
            moved("phone", "555-0100", 8).passes(),
            moved("phone", "555-0100", 7).fails(USER),
            moved("email", "555-0101", 7).passes(),
            moved("email", "555-0101", 8).fails(USER),
            two("email", "b@x", "555-0100", 7).passes(),
            two("email", "b@x", "555-0100", 8).fails(USER),
            two("spelling", "a@x", "5550100", 7).passes(),
            two("spelling", "a@x", "5550100", 8).fails(USER),
            two("phone", "b@x", "555-0101", 8).passes(),
            two("phone", "b@x", "555-0101", 7).fails(USER),
            // The same person may have a new phone.
            two("phone", "a@x", "555-0101", 7).not_judged(),
            rule("email").not_judged(),
            both_ways(7).passes(),
            both_ways(8).fails(USER),
            two("way", "b@x", "555-0100", 8).not_judged(),
        ]
    }
}

impl RegistrationIdentity {
    fn fits(&self, earlier: &Registration, later: &Registration) -> bool {
        let is_phone = digits(&earlier.phone) == digits(&later.phone);
        let is_country = earlier.country == later.country;
        let is_spelling = earlier.phone == later.phone;
        let is_format = earlier.format == later.format;
        let is_email = earlier.email.is_some() && earlier.email == later.email;
        // A scan registers without an e-mail address.
        let are_created = earlier.email.is_some() && later.email.is_some();
        match self.differs {
            Differs::Email => is_spelling && is_country && is_format && !is_email && are_created,
            Differs::Spelling => is_phone && is_country && is_format && !is_spelling && are_created,
            Differs::Format => is_spelling && is_country && !is_format && are_created,
            Differs::Way => {
                is_phone && is_country && earlier.email.is_some() != later.email.is_some()
            }
            Differs::Phone => !is_phone && is_country && !is_email,
            Differs::Country => is_phone && !is_country && !is_email,
        }
    }

    /// All registrations of the service, in order.
    fn registrations(&self, context: &Context<'_>, service: &str) -> Vec<Registration> {
        let mut found = Vec::new();
        for (index, seen) in context.seen.iter().enumerate() {
            let exchange = seen.exchange;
            if exchange.service != service
                || seen.acceptance != Acceptance::Accepted
                || !seen.is_ours()
            {
                continue;
            }
            let sent = |name: &str| exchange.sent.get(name).map(as_text);
            let (email, phone, country, at) = if exchange.operation == self.create.operation {
                let email = sent(&self.create.email).map(|email| email.to_lowercase());
                let phone = sent(&self.create.phone).unwrap_or_default();
                let country = sent(&self.create.country).unwrap_or_default();
                (email, phone, country, &self.create.at)
            } else if exchange.operation == self.scan.operation {
                let registration = sent(&self.scan.registration);
                let Some((phone, country)) =
                    registration.and_then(|of| self.scan.phone_of(context, &of))
                else {
                    continue;
                };
                (None, phone, country, &self.scan.at)
            } else {
                continue;
            };
            if let Some(user) = seen.value(at) {
                found.push(Registration {
                    event: context.history.moments[index].event,
                    email,
                    phone,
                    country: digits(&country),
                    format: sent(&self.create.format).unwrap_or_default(),
                    user: as_text(user),
                    site: Site::answer(index, at),
                });
            }
        }
        found
    }
}

impl PhoneChange {
    /// Gives an earlier registration the phone that its user had before `until`.
    fn apply(&self, context: &Context<'_>, earlier: &mut Registration, until: usize) {
        let between = &context.evidence.events[earlier.event.min(until)..until];
        for call in between.iter().filter_map(Event::hook) {
            let argument = |name: &str| call.arguments.get(name).map(as_text);
            if call.name != self.hook
                || call.result.is_err()
                || argument(&self.user).as_ref() != Some(&earlier.user)
            {
                continue;
            }
            if let (Some(phone), Some(country)) = (argument(&self.phone), argument(&self.country)) {
                earlier.phone = phone;
                earlier.country = digits(&country);
            }
        }
    }
}

impl Scan {
    /// The phone and country of the only scan of the code that was shown for a registration.
    fn phone_of(&self, context: &Context<'_>, registration: &str) -> Option<(String, String)> {
        let calls = |name: &str| {
            let calls = context.evidence.hooks().map(|(_, call)| call);
            let calls = calls.filter(|call| call.name == name && call.result.is_ok());
            calls.collect::<Vec<_>>()
        };
        let is_named =
            |call: &&HookCall| call.arguments.get(&self.registration) == Some(&json!(registration));
        let shown = calls(&self.show).into_iter().find(is_named)?;
        let code = shown.arguments.get(&self.code)?;
        let mut scans = calls(&self.scan);
        scans.retain(|call| call.arguments.get(&self.code) == Some(code));
        let [scan] = scans[..] else { return None };
        let argument = |name: &str| scan.arguments.get(name).map(as_text);
        Some((argument(&self.phone)?, argument(&self.country)?))
    }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}
