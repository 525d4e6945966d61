//! `account-scope`: what one account creates is shown to its own credentials only.
//!
//! - Compares words that cannot occur by chance: SIDs, UUIDs and the generated names of a run.
//! - A word belongs to the account whose requests or responses contained it first.
//! - Judges both directions: a response to the second account with words of the first one, and a response to the first
//!   one with values that only the second account sent.
//! - Does not judge which status a request for a resource of another account has.

use super::prelude::*;
use crate::evidence::{Body, Exchange, Outcome};

/// What one account creates is never shown to another.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountScope {
    /// The field that names the account of a resource, if there is one: if both accounts show the same, nothing is judged.
    #[serde(default)]
    account: Option<String>,
}

/// Length of a SID with its prefix.
const SID_LENGTH: usize = 34;

/// Where a word occurred first.
struct Origin {
    is_ours: bool,
    /// The place in a response, if it was not only sent.
    site: Option<Site>,
}

impl Predicate for AccountScope {
    fn references(&self, _: &mut References) {}

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        if context.seen.iter().all(Seen::is_ours) {
            return;
        }
        if is_refused_everywhere(context) {
            let why = "the target rejects the credentials of the second account";
            verdicts.inconclusive(why);
            return;
        }
        if let Some(account) = self.common_account(context) {
            let why = format!(
                "both credentials belong to the account {account}: configure those of another one under `accounts`"
            );
            verdicts.inconclusive(&why);
            return;
        }
        let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
        let mut sent_by_other = BTreeSet::new();
        let mut shared = BTreeSet::new();
        for (index, seen) in context.seen.iter().enumerate() {
            let is_ours = seen.is_ours();
            let sent = words_of_request(seen.exchange);
            let shown = words_of_response(index, seen.exchange);
            if !is_ours {
                sent_by_other.extend(sent.iter().cloned());
            }
            // A resource that an account creates for itself may share values with those of all accounts.
            let is_own_creation = seen.exchange.setup && seen.exchange.request.method == "POST";
            if seen.exchange.service == verdicts.rule.service && !is_own_creation {
                let known = |word: &str| {
                    let was_sent = !is_ours && sent_by_other.contains(word);
                    was_sent || sent.contains(word) || shared.contains(word)
                };
                evaluate_response((index, &shown, &known), &origins, verdicts);
            }
            // What the second account addresses is not what it made.
            let path = path_of(seen.exchange);
            let sent = sent.into_iter();
            for word in sent.filter(|word| is_ours || !is_sid(word) && !path.contains(word)) {
                origins.entry(word).or_insert(Origin {
                    is_ours,
                    site: None,
                });
            }
            for (word, site) in shown {
                let foreign = origins
                    .get(&word)
                    .is_some_and(|origin| origin.is_ours != is_ours);
                if is_own_creation && foreign {
                    shared.insert(word.clone());
                }
                let origin = origins.entry(word).or_insert(Origin {
                    is_ours,
                    site: None,
                });
                origin.site.get_or_insert(site);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let word = |digit: &str| format!("ISa{}", digit.repeat(31));
        let service = |digit: &str, account: &str| {
            json!({
                "sid": word(digit), "account_sid": account, "friendly_name": "a",
            })
        };
        let at = |digit: &str| json!({"Sid": word(digit)});
        let rule = Example::for_rule("chat", json!({"account": "account_sid"}));
        let account = format!("ACa{}", "1".repeat(31));
        let ours_at = |account: &str| rule.shown("create-service", service("1", account));
        let ours = ours_at("AC1");
        let list = |scene: &ExampleBuilder, items: Value| {
            let listed = scene.shown("read-services", page("services", items));
            listed.by_other_account()
        };
        let named = "name-0a1b2c3d4e";
        let mut renamed = service("1", "AC1");
        renamed["friendly_name"] = json!(named);
        let renames = json!({"Sid": word("1"), "FriendlyName": named});
        // The second account addresses a resource that the first one knows from its configuration.
        let addressed = rule.refused("fetch-service", at("3")).by_other_account();
        let known = page("services", json!([service("3", "AC1")]));
        vec![
            addressed.shown("read-services", known).not_judged(),
            list(&ours, json!([service("2", "AC2")])).passes(),
            list(&ours, json!([service("2", "AC2"), service("1", "AC1")])).fails("/services/1/sid"),
            // The same account.
            list(&ours, json!([service("1", "AC1")])).not_judged(),
            // Another account, because its list lacks what ours shows.
            list(&ours_at(&account), json!([]))
                .answered("fetch-service", at("1"), service("1", &account))
                .by_other_account()
                .fails("/account_sid"),
            ours.refused("update-service", renames)
                .by_other_account()
                .answered("fetch-service", at("1"), renamed)
                .fails("/friendly_name"),
            ours.not_judged(),
        ]
    }
}

impl AccountScope {
    /// The account that every response to both credentials names, if they name the same one.
    fn common_account(&self, context: &Context<'_>) -> Option<String> {
        let field = self.account.as_deref()?;
        let accounts = |is_ours: bool| {
            let mut accounts = BTreeSet::new();
            for seen in context.seen.iter().filter(|seen| seen.is_ours() == is_ours) {
                if let Some(document) = seen.exchange.document() {
                    json::visit_leaves(document, &mut |pointer, leaf| {
                        let named = leaf
                            .as_str()
                            .filter(|_| pointer.rsplit('/').next() == Some(field));
                        accounts.extend(named.map(str::to_owned));
                    });
                }
            }
            accounts
        };
        let (ours, others) = (accounts(true), accounts(false));
        let first = others.first()?;
        let is_common = others.is_subset(&ours) && !was_shown_nothing(context);
        is_common.then(|| first.clone())
    }
}

/// Whether a list of all resources of the second account was empty after a response had shown one of ours: then the
/// accounts differ.
fn was_shown_nothing(context: &Context<'_>) -> bool {
    let ours = context
        .seen
        .iter()
        .position(|seen| seen.is_ours() && seen.acceptance == Acceptance::Accepted);
    let later = ours.map_or(&[][..], |first| &context.seen[first..]);
    later.iter().any(|seen| {
        let Some((operation, document)) = seen.operation.zip(seen.exchange.document()) else {
            return false;
        };
        let items = operation.list_key.as_ref().map(|key| &document[key]);
        let is_empty = items
            .and_then(Value::as_array)
            .is_some_and(|items| items.is_empty());
        let is_of_account = !operation.path.contains('{');
        !seen.is_ours() && is_empty && is_of_account && seen.acceptance == Acceptance::Accepted
    })
}

/// Whether every request of the second account was rejected for its credentials.
fn is_refused_everywhere(context: &Context<'_>) -> bool {
    let mut others = context.seen.iter().filter(|seen| !seen.is_ours());
    others.all(|seen| matches!(seen.exchange.status(), Some(401 | 403)))
}

/// A response by its index, what each account was shown, and what may be known anyway.
type OfResponse<'a> = (usize, &'a BTreeMap<String, Site>, &'a dyn Fn(&str) -> bool);

/// One response, if it could contain words of the other account.
fn evaluate_response(
    (index, shown, known): OfResponse<'_>,
    origins: &BTreeMap<String, Origin>,
    verdicts: &mut Verdicts<'_>,
) {
    let context = verdicts.context;
    let exchange = context.seen[index].exchange;
    let is_ours = context.seen[index].is_ours();
    let foreign = origins
        .iter()
        .filter(|(_, origin)| origin.is_ours != is_ours);
    let foreign: Vec<(&String, &Origin)> = foreign.collect();
    let Outcome::Answered { response, body } = &exchange.outcome else {
        return;
    };
    if foreign.is_empty() {
        return;
    }
    let witness = foreign.iter().find_map(|(_, origin)| origin.site.clone());
    let site = match body {
        Body::Document { .. } => Site::answer(index, ""),
        Body::Empty | Body::Unreadable(_) => Site::Exchange(index),
    };
    let leaked = foreign
        .iter()
        .filter(|(word, _)| !known(word))
        .find_map(|(word, _)| Some((*word, shown.get(*word)?)));
    let (reader, owner) = match is_ours {
        true => ("first", "second"),
        false => ("second", "first"),
    };
    let wrong = if let Some((word, site)) = leaked {
        let actual = format!("{word} of the {owner} account");
        Some((site.clone(), actual, resource_of(&context.seen[index])))
    } else if let Some(site) = number_of_ours(context, index) {
        let actual = format!("the number of the {owner} account at {}", site.pointer());
        Some((site, actual, resource_of(&context.seen[index])))
    } else if !is_ours && is_file_of_ours(context, index) {
        let size = response.body.len();
        let actual = format!("the file of the {owner} account, {size} bytes");
        Some((site.clone(), actual, "a file".to_owned()))
    } else {
        None
    };
    let operation = match exchange.operation.as_str() {
        "" => "a response",
        operation => operation,
    };
    let wrong = wrong.map(|(site, actual, what)| {
        let fact = Fact {
            kind: "account-scope",
            expected: format!("nothing that only the {owner} account knows"),
            actual,
            message: format!("{operation} shows the {reader} account {what} of the {owner}"),
        };
        (site, fact)
    });
    let sites = Sites::collect(witness.into_iter().chain([site]));
    if let Some(sites) = sites {
        verdicts.conclude_at(sites, wrong);
    }
}

/// The resource that an operation is about, with its article.
fn resource_of(seen: &Seen<'_>) -> String {
    let kind = seen.operation.and_then(|o| o.resource.as_deref());
    let noun = kind
        .and_then(|kind| kind.rsplit('/').next())
        .unwrap_or("value");
    let article = if noun.starts_with(['a', 'e', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {}", noun.replace('-', " "))
}

/// A number in an accepted response to the second account that the first one was shown at the same place and address, such
/// as the number of a user. Small numbers are equal by chance.
fn number_of_ours(context: &Context<'_>, index: usize) -> Option<Site> {
    const SMALLEST: u64 = 100;
    let seen = &context.seen[index];
    let is_list = seen.operation.is_none_or(|o| o.list_key.is_some());
    if seen.is_ours() || is_list || seen.acceptance != Acceptance::Accepted {
        return None;
    }
    let target = &seen.exchange.request.target;
    // Each account may have a resource of its own with the same small number in the path.
    let mut has_word = false;
    words_in(target, &mut |_| has_word = true);
    let shown = seen.exchange.document().filter(|_| has_word)?;
    let mut earlier = context.seen[..index].iter().filter(|own| {
        own.is_ours()
            && own.acceptance == Acceptance::Accepted
            && own.exchange.request.target == *target
    });
    let own = earlier.next_back()?.exchange.document()?;
    let mut found = None;
    json::visit_leaves(shown, &mut |pointer, leaf| {
        let number = leaf.as_u64().filter(|number| *number >= SMALLEST);
        if number.is_some() && own.pointer(pointer).and_then(Value::as_u64) == number {
            found.get_or_insert_with(|| Site::answer(index, pointer));
        }
    });
    found
}

/// Whether a response to the second account has the bytes of a file that the first one downloaded from the same address.
fn is_file_of_ours(context: &Context<'_>, index: usize) -> bool {
    let file = |exchange: &Exchange| match &exchange.outcome {
        Outcome::Answered {
            response,
            body: Body::Empty,
        } if (200..300).contains(&response.status) => {
            Some(response.body.clone()).filter(|bytes| !bytes.is_empty())
        }
        Outcome::Answered { .. } | Outcome::Fault { .. } => None,
    };
    let exchange = context.seen[index].exchange;
    let Some(bytes) = file(exchange) else {
        return false;
    };
    context.seen[..index].iter().any(|seen| {
        seen.is_ours()
            && seen.exchange.request.target == exchange.request.target
            && file(seen.exchange).is_some_and(|own| own == bytes)
    })
}

fn path_of(exchange: &Exchange) -> &str {
    let target = exchange.request.target.as_str();
    target.split('?').next().unwrap_or(target)
}

/// Whether a word is as long as a SID, which no client chooses.
fn is_sid(word: &str) -> bool {
    word.len() == SID_LENGTH
}

/// The words of path, query and parameters.
fn words_of_request(exchange: &Exchange) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    words_in(&exchange.request.target, &mut |word| {
        found.insert(word.to_owned());
    });
    for value in exchange.sent.values() {
        json::visit_leaves(value, &mut |_, leaf| {
            words_in(leaf.as_str().unwrap_or_default(), &mut |word| {
                found.insert(word.to_owned());
            });
        });
    }
    found
}

/// The words of a response with their first places.
fn words_of_response(index: usize, exchange: &Exchange) -> BTreeMap<String, Site> {
    let mut found = BTreeMap::new();
    let Outcome::Answered { response, body } = &exchange.outcome else {
        return found;
    };
    match body {
        Body::Document { value, .. } => json::visit_leaves(value, &mut |pointer, leaf| {
            words_in(leaf.as_str().unwrap_or_default(), &mut |word| {
                let site = || Site::answer(index, pointer);
                found.entry(word.to_owned()).or_insert_with(site);
            });
        }),
        Body::Empty | Body::Unreadable(_) => {
            words_in(&String::from_utf8_lossy(&response.body), &mut |word| {
                found.insert(word.to_owned(), Site::Exchange(index));
            });
        }
    }
    found
}

/// The words of a text that cannot occur by chance: ten or more hexadecimal digits, with a letter and a decimal digit among
/// them. Host names do not count.
fn words_in(text: &str, visit: &mut dyn FnMut(&str)) {
    const LENGTH_MIN: usize = 10;
    let text = match text.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |path| &rest[path..]),
        None => text,
    };
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        // The prefix of a SID.
        let digits = match word.len() {
            SID_LENGTH => word.get(2..).unwrap_or(word),
            _ => word,
        };
        let is_mixed = digits.bytes().any(|b| b.is_ascii_digit())
            && digits.bytes().any(|b| b.is_ascii_alphabetic());
        if digits.len() >= LENGTH_MIN && is_mixed && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            visit(word);
        }
    }
}
