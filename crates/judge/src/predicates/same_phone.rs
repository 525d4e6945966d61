//! `same-phone`: who registers with one phone is one user, who registers with another is another. Says nothing
//! where people may have changed a number unseen: then it may be anybody's.

use super::prelude::*;
use crate::acceptance::Acceptance;
use crate::compare::as_text;
use crate::evidence::Event;

/// The operation that registers by phone.
const CREATE: &str = "create-user";
/// The operation that tells whom a scan registered.
const POLL: &str = "poll-registration-status";

/// Of two registrations that differ in this alone, the users are the same, or not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SamePhone {
    /// What differs.
    differs: Differs,
}

/// In what two registrations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Differs {
    /// One phone, another e-mail address: the same user.
    Email,
    /// One phone in another spelling: the same user.
    Spelling,
    /// One phone, another format of the answer: the same user.
    Format,
    /// One phone, once by e-mail address and once by a scan: the same user.
    Way,
    /// Another phone and e-mail address in the same country: another user.
    Phone,
    /// The same digits in another country: another user.
    Country,
}

/// One registration.
struct Registration {
    email: Option<String>,
    phone: String,
    country: String,
    format: String,
    user: String,
    site: Site,
}

impl Predicate for SamePhone {
        fn subject(&self) -> Subject {
        Subject::operation(CREATE)
    }

    fn applies_to(&self) -> AppliesTo {
        // A registration by a person's app counts, too.
        AppliesTo::Anything
    }

    fn references(&self, references: &mut References) {
        references.operation("differs", CREATE);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        if case.evidence.deeds_unseen {
            return;
        }
        let all = registrations(case);
        for (n, later) in all.iter().enumerate() {
            let earlier: Vec<&Registration> =
                all[..n].iter().filter(|e| self.fits(e, later)).collect();
            let is_same = |earlier: &&&Registration| earlier.user == later.user;
            let wants_same = !matches!(self.differs, Differs::Phone | Differs::Country);
            // Where users are to differ, any that has the same number accuses.
            let other = match wants_same {
                true => earlier.last(),
                false => earlier.iter().find(is_same).or(earlier.last()),
            };
            let Some(other) = other.filter(|_| !verdicts.accuses(&later.site)) else {
                continue;
            };
            let wrong = (other.user == later.user) != wants_same;
            let expected = match wants_same {
                true => format!("user {}, as before", other.user),
                false => format!("another user than {}", other.user),
            };
            let fact = Fact {
                kind: "user",
                expected,
                actual: format!("user {}", later.user),
                ..Fact::default()
            };
            verdicts
                .instance(rule, [other.site.clone(), later.site.clone()])
                .conclude(wrong.then_some(fact));
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let scene = |differs: &str| Example::of("auth", json!({ "differs": differs }));
        let with = |scene: Scene, email: &str, phone: &str, id: u64| {
            let sent = json!({
                "FORMAT": "json", "user[email]": email, "user[cellphone]": phone, "user[country_code]": "1",
            });
            let answer = json!({"message": "", "user": {"id": id}, "success": true});
            scene.answered(CREATE, sent, answer)
        };
        let two = |differs: &str, (email, phone): (&str, &str), id: u64| {
            with(with(scene(differs), "a@x", "555-0100", 7), email, phone, id)
        };
        let both_ways = |id: u64| {
            let code = json!({"custom_user_id": "u", "qr": "q"});
            let phone = json!({"qr": "q", "cellphone": "555-0100", "country_code": "1"});
            let sent = json!({"FORMAT": "json", "custom_user_id": "u"});
            let answer =
                json!({"registration": {"status": "completed", "auth_id": 7}, "success": true});
            let scanned = scene("way")
                .hook("announce_registration", code, json!({}))
                .hook("scan_registration", phone, json!({"registered": true}))
                .answered(POLL, sent, answer);
            with(scanned, "a@x", "5550100", id)
        };
        vec![
            two("email", ("b@x", "555-0100"), 7).passes(),
            two("email", ("b@x", "555-0100"), 8).fails("/user/id"),
            two("spelling", ("a@x", "5550100"), 7).passes(),
            two("spelling", ("a@x", "5550100"), 8).fails("/user/id"),
            two("phone", ("b@x", "555-0101"), 8).passes(),
            two("phone", ("b@x", "555-0101"), 7).fails("/user/id"),
            // The same person may have another phone by now.
            two("phone", ("a@x", "555-0101"), 7).not_judged(),
            scene("email").not_judged(),
            both_ways(7).passes(),
            both_ways(8).fails("/user/id"),
            two("way", ("b@x", "555-0100"), 8).not_judged(),
        ]
    }
}

impl SamePhone {
    fn fits(&self, earlier: &Registration, later: &Registration) -> bool {
        let is_phone = digits(&earlier.phone) == digits(&later.phone);
        let is_country = earlier.country == later.country;
        let is_spelling = earlier.phone == later.phone;
        let is_format = earlier.format == later.format;
        let is_email = earlier.email.is_some() && earlier.email == later.email;
        // What a scan registers is said of its own phone alone.
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
}

/// Who was registered, in order: by a request, or by a scan that polling tells of.
fn registrations(case: &Case<'_>) -> Vec<Registration> {
    let mut found = Vec::new();
    for (index, seen) in case.seen.iter().enumerate() {
        let sent = |name: &str| seen.exchange.sent.get(name).map(as_text);
        let is_auth = seen.exchange.service == "auth" && seen.acceptance == Acceptance::Accepted;
        let format = sent("FORMAT").unwrap_or_default();
        let operation = seen.exchange.operation.as_str();
        let (email, phone, country, at) = match operation {
            CREATE if is_auth => {
                let email = sent("user[email]").map(|email| email.to_lowercase());
                let phone = sent("user[cellphone]").unwrap_or_default();
                let country = sent("user[country_code]").unwrap_or_default();
                (email, phone, country, "/user/id")
            }
            POLL if is_auth => {
                let Some((phone, country)) = sent("custom_user_id").and_then(|of| scan(case, &of))
                else {
                    continue;
                };
                (None, phone, country, "/registration/auth_id")
            }
            _ => continue,
        };
        if let Some(user) = seen.value(at) {
            found.push(Registration {
                email,
                phone,
                country: digits(&country),
                format,
                user: as_text(user),
                site: Site::answer(index, at),
            });
        }
    }
    found
}

/// The phone that scanned the only code which was shown for this user.
fn scan(case: &Case<'_>, custom_user_id: &str) -> Option<(String, String)> {
    let calls = |name: &'static str| {
        let events = case.evidence.events.iter();
        events.filter_map(move |event| match event {
            Event::Hook(call) if call.name == name && call.result.is_ok() => Some(call),
            Event::Hook(_) | Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_) => None,
        })
    };
    let of = |call: &&crate::evidence::HookCall| {
        call.arguments.get("custom_user_id") == Some(&json!(custom_user_id))
    };
    let shown = calls("announce_registration").find(of)?;
    let qr = shown.arguments.get("qr")?;
    let mut scans = calls("scan_registration").filter(|call| call.arguments.get("qr") == Some(qr));
    let (scan, None) = (scans.next()?, scans.next()) else {
        return None;
    };
    let said = |name: &str| scan.arguments.get(name).map(as_text);
    Some((said("cellphone")?, said("country_code")?))
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}
