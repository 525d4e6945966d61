//! `link-target` without `to`: `links` contain a separate address for each documented target. If the keys are given in
//! words, any keys are allowed.

use crate::predicates::prelude::*;

/// The links of a representation are at least as many as the resources that they lead to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::predicates) struct LinksPresent {
    /// The places of links, and the number of resources that they lead to.
    shown: Vec<Linked>,
}

/// Links of one representation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Linked {
    /// The representation.
    kind: String,
    /// Pointer to its links.
    at: String,
    /// The resources that they lead to, in the document's words.
    #[serde(rename = "things")]
    resources: Vec<String>,
    /// A field with the key of the last of them, which may not exist if the field is empty.
    given: Option<String>,
    /// Those that always exist: as many links are not null, and none of them that has such a name.
    #[serde(default)]
    always: Vec<String>,
}

/// `1 address`, `2 different addresses and 1 null`.
fn shown_links(addresses: usize, null: usize) -> String {
    let addresses = match addresses {
        0 => "without an address".to_owned(),
        1 => "1 address".to_owned(),
        _ => format!("{addresses} different addresses"),
    };
    match null {
        0 => addresses,
        _ => format!("{addresses} and {null} null"),
    }
}

impl Predicate for LinksPresent {
    fn references(&self, references: &mut References) {
        for Linked {
            kind, at, given, ..
        } in &self.shown
        {
            let mut kind = references.kind("kind", kind);
            kind.pointer("at", at);
            if let Some(given) = given {
                kind.pointer("given", given);
            }
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for linked in &self.shown {
            for shown in context.of_kind(&linked.kind) {
                let fresh = verdicts.without_finding(shown, &linked.at);
                let links = fresh.and_then(|(links, site)| Some((links.as_object()?, site)));
                let references_no_resource = linked.given.as_ref().is_some_and(|given| {
                    shown
                        .value(given)
                        .and_then(Value::as_str)
                        .is_none_or(str::is_empty)
                });
                let Some((links, site)) = links else {
                    continue;
                };
                let least = linked.resources.len() - usize::from(references_no_resource);
                let always = linked.always.len().min(least);
                let is_null = |(name, link): (&String, &Value)| {
                    let is_for_nothing =
                        references_no_resource && linked.resources.last() == Some(name);
                    link.is_null() && linked.always.contains(name) && !is_for_nothing
                };
                // What is null now may lead somewhere later; one address leads to one resource.
                let null = links.values().filter(|link| link.is_null()).count();
                let led = links.values().filter_map(Value::as_str);
                let led: BTreeSet<&str> = led.filter(|link| !link.is_empty()).collect();
                let few =
                    led.len() + null < least || led.len() < always || links.iter().any(is_null);
                let fact = Fact::new(
                    "missing-link",
                    format!(
                        "a separate address for each of {}",
                        linked.resources.join(", ")
                    ),
                    shown_links(led.len(), null),
                );
                verdicts.conclude(site, few.then_some(fact));
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::at(sites.last(), [Change::To(json!({}))])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let shown = |mut linked: Value, kind: &str, resource: Value| {
            linked["kind"] = json!(kind);
            linked["at"] = json!("/links");
            Example::for_rule("chat", json!({"shown": [linked]})).payload(kind, resource)
        };
        let both = |links: Value| {
            let linked = json!({"things": ["channels", "bindings"]});
            shown(linked, "chat/user", json!({"links": links}))
        };
        let always = |links: Value| {
            let linked = json!({"things": ["channels", "bindings"], "always": ["bindings"]});
            shown(linked, "chat/user", json!({"links": links}))
        };
        let with_member = |sid: Value, links: Value| {
            let linked = json!({"things": ["channel", "member"], "given": "/member_sid"});
            shown(
                linked,
                "chat/user-channel",
                json!({"member_sid": sid, "links": links}),
            )
        };
        let channel = json!({"channel": "/a", "member": ""});
        vec![
            both(json!({"one": "/a", "other": "/b"})).passes(),
            both(json!({"one": "/a", "other": null})).passes(),
            both(json!({"one": "/a", "other": "/a"})).fails("/links"),
            both(json!({"channels": "/a"})).fails("/links"),
            both(json!("/a")).not_judged(),
            with_member(Value::Null, channel.clone()).passes(),
            with_member(Value::Null, json!({})).fails("/links"),
            with_member(json!("MB1"), channel).fails("/links"),
            always(json!({"one": "/a", "other": "/b"})).passes(),
            always(json!({"one": "/a", "other": null})).passes(),
            always(json!({"one": null, "other": null})).fails("/links"),
            always(json!({"channels": "/a", "bindings": null})).fails("/links"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::shown_links;

    #[test]
    fn links_are_counted_in_words() {
        for (addresses, null, expected) in [
            (0, 0, "without an address"),
            (1, 0, "1 address"),
            (2, 1, "2 different addresses and 1 null"),
        ] {
            assert_eq!(shown_links(addresses, null), expected);
        }
    }
}
